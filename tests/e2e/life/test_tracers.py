"""Other tracers: a recorded process is not traced, so they attach as to any other."""
import signal
import time

import processes
import remains
from kymotest import (check, check_equal, check_matches, check_untraced, eventually, kymo, program, report_json, run,
                      start, start_record, target, waits)

PROBES = ['-p', 'selfcheck:work_*', '-p', 'libc:nanosleep']


def recorded():
    process = target('selfcheck', '-t', '4')
    time.sleep(0.1)
    return process, remains.lasting_mappings(process.pid), start_record(process.pid, *PROBES)


def finish(process, before, recorder):
    recorder.end(signal.SIGTERM).ok()
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def gdb(pid, *commands):
    words = [word for command in ('set confirm off', *commands) for word in ('-ex', command)]
    return run(program('gdb'), '-nx', '-batch', '-iex', 'set debuginfod enabled off', '-p', pid, *words).ok()


def test_gdb_attaches_to_a_recorded_process():
    process, before, recorder = recorded()

    def sees_all():
        result = gdb(process.pid, 'thread apply all bt', 'detach')
        check_matches(result.out, r'^#0 .* in ')
        check_matches(result.out, r'^\[Inferior 1 .* detached\]$')
        check_untraced(process.pid)
        return result.out.count('worker') >= 4

    eventually(sees_all, 'gdb sees the stacks of all threads, once none of them happens to be in a pad', 90)
    finish(process, before, recorder)


def test_gdb_stops_in_a_probed_function():
    process, before, recorder = recorded()
    result = gdb(process.pid, 'handle SIGUSR1 nostop noprint pass', 'break work_b', 'continue', 'bt 2', 'finish',
                 'delete', 'detach')
    check_matches(result.out, r'hit Breakpoint 1')
    check_matches(result.out, r'^#1 .* call_all')
    check(process.is_alive(), 'the program runs on', process.result())
    finish(process, before, recorder)


def test_strace_attaches_to_a_recorded_process(tmp):
    process, before, recorder = recorded()
    tracer = start(program('strace'), '-f', '-p', process.pid, '-o', tmp / 'calls')
    eventually(lambda: (tmp / 'calls').exists() and (tmp / 'calls').read_text().count('nanosleep') > 100,
               'strace sees calls')
    check_equal(processes.tracer(process.pid), tracer.pid, 'tracer')
    tracer.end(signal.SIGINT)
    check_untraced(process.pid)
    finish(process, before, recorder)
    calls = next(probe['count'] for probe in report_json()['probes'] if probe['name'] == 'libc:nanosleep')
    check(calls > 100, 'they were recorded too')


def test_a_recorder_that_ends_under_another_tracer_says_so_and_detach_does_the_rest_later(tmp):
    process, before, recorder = recorded()
    tracer = start(program('strace'), '-f', '-p', process.pid, '-o', tmp / 'calls', '-e', 'trace=read')
    eventually(lambda: processes.tracer(process.pid), 'strace is there')
    result = recorder.end(signal.SIGTERM).ended(1)
    check_matches(result.err, rf'is being traced by process {tracer.pid}')
    check_matches(result.err, rf'kymo detach {process.pid}')
    check(report_json()['events'] > 0, 'what was recorded is there')
    kymo('detach', process.pid).refused(rf'traced by process {tracer.pid} \(strace\)')
    tracer.end(signal.SIGINT)
    kymo('detach', process.pid).ok()
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_a_traced_process_is_not_attached_to(tmp):
    process = target('selfcheck', '-t', '4')
    tracer = start(program('strace'), '-f', '-p', process.pid, '-o', tmp / 'calls', '-e', 'trace=read')
    eventually(lambda: processes.tracer(process.pid), 'strace is there')
    kymo('record', *PROBES, '--pid', process.pid).refused(rf'is being traced by process {tracer.pid} \(strace\)')
    tracer.end(signal.SIGINT)
    process.end(signal.SIGTERM).ok()


def switches(tid):
    return sum(int(processes.status(tid)[key]) for key in ('voluntary_ctxt_switches', 'nonvoluntary_ctxt_switches'))


@waits
def test_threads_beside_a_traced_one_are_stopped_once_at_most_however_often_it_is_tried(tmp):
    process = target('crowd', 'sleep', '-t', '8')
    *others, last = processes.threads(process.pid)
    tracer = start(program('strace'), '-p', last, '-o', tmp / 'calls')
    eventually(lambda: processes.tracer(last) == tracer.pid, 'strace is there')
    before = {tid: switches(tid) for tid in others[1:]}
    kymo('record', '-p', 'crowd:main', '--pid',
         process.pid).refused(rf'is being traced by process {tracer.pid} \(strace\)')
    stops = {tid: switches(tid) - n for tid, n in before.items()}
    check(max(stops.values()) < 10, 'they sleep on', stops)
    check_equal(processes.tracer(others[0]), 0, 'the first one is let go')
    tracer.end(signal.SIGINT)
    process.send('\n')
    process.wait_for('^woke 8$')
    process.end()
