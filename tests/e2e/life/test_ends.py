"""How recorded processes end: what they did before is kept, and their exit status is the command's."""
import os
import shutil
import signal

import processes
import remains
from kymotest import (KYMO, check, check_equal, check_matches, event_counts, eventually, kymo, record, report_json, run,
                      start, start_record, target, target_path, timeout, wait_for_records)

N = 1000
HOW = {
    'segv': -signal.SIGSEGV, 'abort': -signal.SIGABRT, 'kill': -signal.SIGKILL, 'trap': -signal.SIGTRAP, 'term':
    -signal.SIGTERM, 'stack': -signal.SIGSEGV, '_exit': 7, 'exit': 7, 'return': 7, 'thread': 7, 'exec': 0
}


def calls(how):
    return 2 * N if how == 'thread' else N


def test_a_command_that_ends_in_any_way_keeps_its_records_and_its_status():
    for how, status in HOW.items():
        bare = run(target_path('crasher'), N, how)
        check_equal(bare.status, status, how)
        recorded = record('-p', 'crasher:work_a n=%edi:s32', '-o', how, '--', target_path('crasher'), N, how)
        check_equal(recorded.status, status if status >= 0 else 128 - status, how)
        check_equal(recorded.out, bare.out, 'stdout')
        check_equal(event_counts(how)['crasher:work_a'], calls(how), f'records before {how}')
        check_equal(report_json(how)['lost_events'], 0)


def test_a_process_that_ends_in_any_way_ends_its_recording_in_order():
    for how, status in HOW.items():
        process = target('crasher', '-w', N, how)
        recorder = start_record(process.pid, '-p', 'crasher:work_a', '-o', how)
        check_equal(process.end(input='\n').status, status, how)
        recorder.end().ok()
        check_equal(event_counts(how)['crasher:work_a'], calls(how), f'records before {how}')


def test_an_exec_of_a_process_is_told():
    process = target('crasher', '-w', N, 'exec')
    recorder = start_record(process.pid, '-p', 'crasher:work_a')
    process.end(input='\n')
    result = recorder.end().ok()
    check(report_json()['events'] == N, 'records', result)


EXECS = 500


def check_executing(attach):
    """A program that executes itself again and again, from a thread beside others, does what it does without kymo,
    whichever recorders come and go meanwhile."""
    bare = run(target_path('family'), 'exec', EXECS)
    process = start(target_path('family'), 'exec', EXECS)
    while process.is_alive():
        attach(process)
    result = process.end()
    check_equal((result.status, result.out, result.err), (bare.status, bare.out, bare.err), 'how it ends')


@timeout(300)
def test_a_program_that_executes_again_and_again_is_recorded_by_one_after_the_other(tmp):
    def attach(process):
        result = kymo('record', '-q', '--backend', 'inproc', '-p', 'family:work_a', '--for', '0.01', '-o', 'data',
                      '--pid', process.pid)
        check(result.status in (0, 1), 'it ends in order', result)
        shutil.rmtree(tmp / 'data', ignore_errors=True)
        shutil.rmtree(tmp / 'data.old', ignore_errors=True)

    check_executing(attach)


@timeout(300)
def test_a_program_that_executes_again_and_again_is_traced_by_one_after_the_other(tmp):
    def attach(process):
        tracer = start(KYMO, 'syscalls', '-o', 'lines', '--pid', process.pid)
        eventually(
            lambda: not tracer.is_alive() or not process.is_alive() or os.path.exists('lines') and os.path.getsize(
                'lines'), 'it is traced')
        result = tracer.end(signal.SIGTERM)
        # the last: before it has done anything
        check(result.status in (0, 1, -signal.SIGTERM), 'it ends in order', result)
        if os.path.exists('lines'):
            os.unlink('lines')

    check_executing(attach)


def test_a_process_whose_main_thread_ended_is_left_clean():
    """Its /proc/PID tells of no memory any more; its other threads' do."""
    process = target('crasher', '-w', 100_000_000, 'thread')
    recorder = start_record(process.pid, '-p', 'crasher:work_a', '--buffer', '1M')
    process.send('\n')
    eventually(lambda: processes.status(process.pid)['State'][0] == 'Z', 'the main thread has ended', 120)
    other, = set(processes.threads(process.pid)) - {process.pid}  # ids begin anew at some number
    check(remains.are_there(other), 'it is recorded still')
    recorder.end(signal.SIGTERM).ok()
    check(not remains.are_there(other), 'nothing is left')
    check_equal(processes.changed_text(other), [], 'text')
    check(process.is_alive(), 'it runs on')
    check_equal(process.end().status, 7)


def test_a_sigkill_of_the_process_keeps_what_was_recorded():
    process = target('selfcheck')
    recorder = start_record(process.pid, '-p', 'selfcheck:work_*')
    wait_for_records(n=1001)
    process.end(signal.SIGKILL)
    result = recorder.end().ok()
    check_matches(result.err, 'shows them')
    check(report_json()['events'] > 1000, 'records')
    check_equal(sum(event_counts().values()), report_json()['events'], 'events by babeltrace2')


def test_a_command_that_is_sent_sigterm_by_its_recorders_user_runs_on():
    recorder = start(KYMO, 'record', '-p', 'selfcheck:work_*', '--', target_path('selfcheck'), '-t', '4')
    recorder.wait_for('^ready$')
    pid = eventually(lambda: processes.children(recorder.pid), 'the command runs')[0]
    wait_for_records(n=1001)
    result = recorder.end(signal.SIGTERM).ended(128 + signal.SIGTERM)
    check_matches(result.err, 'runs on')
    check(not remains.are_there(pid), 'nothing is left')
    remains.check_running(pid)
    check(report_json()['events'] > 1000, 'records')
    os.kill(pid, signal.SIGTERM)
