"""Recording a process that a kymo syscalls traces: it is stopped and changed through that one, and neither takes
anything from the other."""
import collections
import signal
from pathlib import Path

import processes
import remains
from killing import NO_LEAKS
from kymotest import (KYMO, SYS_CLOCK_NANOSLEEP, Event, babeltrace, check, check_equal, check_matches, check_same,
                      check_text_intact, check_untraced, eventually, is_on_all_threads, kymo, probe_counts, program,
                      record, record_some, run, sleeper, start, target, wait_for_records)
from recorders import watching_recorder

COUNTED = Path(__file__).parents[1] / 'syscalls/counted.c'
GETUID, GETGID = 102, 104
SLEEPING = (SYS_CLOCK_NANOSLEEP, 219)  # restart_syscall
THREADS = 3
SELFCHECK = ['-p', 'selfcheck:work_*', '-p', 'libc:nanosleep']
KYMOS_OWN = 'memfd_create|ftruncate|pidfd_getfd'


def trace(pid, *options, **how):
    """A tracer, once it traces, or has joined."""
    tracer = start(KYMO, 'syscalls', *options, '--pid', pid, **how)
    eventually(lambda: tracer.output(1) or not tracer.is_alive(), 'it sees something', 60)
    eventually(lambda: is_on_all_threads(pid, tracer) or not tracer.is_alive(), 'it has come to all threads', 60)
    check(tracer.is_alive(), 'the tracer goes on', tracer.result())
    return tracer


def quiet_trace(process, *options):
    """One that may not see anything for long."""
    tracer = start(KYMO, 'syscalls', *options, '--pid', process.pid)
    eventually(lambda: processes.tracer(process.pid), 'it is traced')
    return tracer


def start_recorder(pid, *args, where='kymo.data'):
    """Once its probes are in."""
    return watching_recorder(pid, where, *args)


def all_record(recorders):
    """Of one process, into data0, data1 ... They end at the same time when each of them has met it."""
    for i in range(len(recorders)):
        wait_for_records(f'data{i}')
    for recorder in recorders:
        recorder.signal(signal.SIGTERM)
    for i, recorder in enumerate(recorders):
        recorder.end().ok()
        check(sum(probe_counts(f'data{i}').values()) > 100, 'hits are recorded')


def counted(tmp):
    run(program('gcc'), '-w', '-pthread', '-o', tmp / 'counted', COUNTED).ok()
    process = start(tmp / 'counted')
    process.wait_for(r'^ready$')
    return process


def checked():
    """A program that checks itself, and its mappings after each thread has done everything once, so that lazy mappings
    are there."""
    process = target('selfcheck', '-t', '4')
    eventually(
        lambda: sum(
            int(processes.status(tid).get('voluntary_ctxt_switches', 0)) > 256
            for tid in processes.threads(process.pid)) >= 4, 'each of its threads has gone around')
    return process, remains.lasting_mappings(process.pid)


def recorded_calls(directory='kymo.data'):
    """How many calls of each number libc's syscall() was recorded for."""
    return collections.Counter(Event(line)['number'] for line in babeltrace(directory) if ' libc:syscall: ' in line)


RECORD_CALLS = ['-p', 'libc:syscall number=%di:u64']


def check_all_complete(process, first, second, recorder):
    process.end(input='x').ok()
    check_equal(first.end().ok().err.count(' getuid('), 500 * THREADS, 'getuid of the first')
    check_equal(second.end().ok().err.count(' getgid('), 300 * THREADS, 'getgid of the second')
    recorder.end().ok()
    calls = recorded_calls()
    check_equal((calls[GETUID], calls[GETGID]), (500 * THREADS, 300 * THREADS), 'recorded calls')


def test_a_recorder_that_comes_to_two_tracers_and_they_are_each_complete(tmp):
    process = counted(tmp)
    first = trace(process.pid, '-e', 'getpgid,getuid')
    second = trace(process.pid, '-e', 'getsid,getgid')
    recorder = start_recorder(process.pid, *RECORD_CALLS)
    check_all_complete(process, first, second, recorder)


def test_two_tracers_that_come_to_a_recorder_and_it_are_each_complete(tmp):
    process = counted(tmp)
    recorder = start_recorder(process.pid, *RECORD_CALLS)
    first = trace(process.pid, '-e', 'getpgid,getuid')
    second = trace(process.pid, '-e', 'getsid,getgid')
    check_all_complete(process, first, second, recorder)


def test_probes_go_in_and_out_and_the_tracer_sees_none_of_it(tmp):
    process, before = checked()
    tracer = start(KYMO, 'syscalls', '-o', tmp / 'calls', '--pid', process.pid)
    eventually(lambda: (tmp / 'calls').exists() and 'tgkill' in (tmp / 'calls').read_text(), 'it sees calls')
    record_some('kymo.data', process.pid, *SELFCHECK, '-r', 'libc:write')
    check(sum(probe_counts().values()) > 100, 'hits are recorded')
    check_equal(processes.tracer(process.pid) != 0, True, 'traced still')
    check_text_intact(process.pid)
    check_same(remains.lasting_mappings(process.pid), before, 'mappings')
    check_same(remains.descriptors(process.pid), [], 'descriptors')
    tracer.end(signal.SIGTERM)
    text = (tmp / 'calls').read_text()
    for name in KYMOS_OWN.split('|'):
        check(f' {name}(' not in text, f'no {name} is shown')
    check_untraced(process.pid)
    process.end(signal.SIGTERM).ok()


def test_what_a_killed_recorder_left_is_shown_and_detached_under_a_tracer(tmp):
    process, before = checked()
    tracer = quiet_trace(process, '-e', 'tgkill')
    recorder = start_recorder(process.pid, *SELFCHECK)
    recorder.kill()
    check_matches(kymo('status', process.pid).ok().out, 'selfcheck:work_a')
    kymo('detach', process.pid).ok()
    check(processes.tracer(process.pid), 'traced still')
    tracer.end(signal.SIGTERM)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_two_recorders_at_once_change_a_traced_process_in_turn(tmp):
    process, before = checked()
    tracer = quiet_trace(process, '-e', 'tgkill')
    all_record([start(KYMO, 'record', '-o', f'data{i}', *SELFCHECK, '--pid', process.pid) for i in range(3)])
    tracer.end(signal.SIGTERM)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_a_sleep_is_slept_on_and_no_call_of_kymos_is_shown(tmp):
    process = sleeper()
    tracer = quiet_trace(process, '-e', 'mmap,munmap,close,rt_sigreturn,' + KYMOS_OWN.replace('|', ','))
    record('-p', 'libc:nanosleep', '-p', 'libc:malloc', '--pid', process.pid, '--for', '0.1').ok()
    eventually(lambda: processes.call(process.pid) in SLEEPING, 'it sleeps again')
    tracer.end(signal.SIGTERM)
    check_equal([line for line in tracer.err.splitlines() if '(' in line], [], 'calls shown')
    check_text_intact(process.pid)


def test_a_stopped_process_stays_stopped(tmp):
    process = sleeper()
    process.signal(signal.SIGSTOP)
    eventually(lambda: processes.status(process.pid)['State'][0] == 'T', 'it is stopped')
    tracer = quiet_trace(process, '-e', 'none')
    recorder = start_recorder(process.pid, '-p', 'libc:nanosleep')
    recorder.end(signal.SIGTERM).ok()
    check(processes.tracer(process.pid), 'traced')
    tracer.end(signal.SIGTERM)
    check_untraced(process.pid)
    eventually(lambda: processes.status(process.pid)['State'][0] == 'T', 'it is stopped again')
    check_text_intact(process.pid)
    process.signal(signal.SIGCONT)
    eventually(lambda: processes.status(process.pid)['State'][0] == 'S', 'it goes on')


def test_a_recorder_goes_on_when_the_tracer_is_killed(tmp):
    process, before = checked()
    tracer = quiet_trace(process, '-e', 'tgkill')
    recorder = start_recorder(process.pid, *SELFCHECK)
    tracer.kill()
    wait_for_records()
    recorder.end(signal.SIGTERM).ok()
    check(sum(probe_counts().values()) > 100, 'hits are recorded')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_a_recorder_that_sleeps_too_long_has_lost_its_hold(tmp):
    process, before = checked()
    tracer = trace(process.pid, '-e', 'tgkill')
    at_message = 'sendmsg:delay_enter=12s:when=12'  # the first thread makes remote calls
    recorder = start(program('strace'), '-qq', '-o', tmp / 'messages', '-e', f'inject={at_message}', '-e',
                     'trace=sendmsg', '-e', 'signal=none', KYMO, 'record', *SELFCHECK, '--for', '0.1', '--pid',
                     process.pid, env=NO_LEAKS)
    eventually(lambda: (tmp / 'messages').exists() and (tmp / 'messages').read_text().count('sendmsg') == 12,
               'it sleeps', 60)
    seen = len(tracer.output(1))
    eventually(lambda: len(tracer.output(1)) > seen + 1000, 'the thread goes on')
    check_equal((tmp / 'messages').read_text().count('sendmsg'), 12, 'messages: it sleeps still')
    result = recorder.end()
    check(result.status in (0, 1), 'it ends well, as it can try again, or with a sentence', result)
    tracer.end(signal.SIGTERM)
    if remains.are_there(process.pid):
        kymo('detach', process.pid).ok()
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_a_thousand_threads_are_held(tmp):
    process = target('threads1000')
    tracer = quiet_trace(process, '-e', 'none')
    recorder = start_recorder(process.pid, '-p', 'libc:clock_nanosleep')
    recorder.end(signal.SIGTERM).ok()
    check(tracer.is_alive(), 'the tracer goes on', tracer.result())
    check_text_intact(process.pid)
    tracer.end(signal.SIGTERM)
    check_untraced(process.pid)


def test_following_a_traced_process_is_refused_with_what_to_do(tmp):
    process = sleeper()
    tracer = quiet_trace(process, '-e', 'none')
    record('-p', 'libc:nanosleep', '--follow', '--pid', process.pid).refused(
        rf'process {process.pid} is traced by process \d+ \(kymo\) already, so the children that it makes cannot be followed; record it without --follow'
    )
    tracer.end(signal.SIGTERM)
    check_text_intact(process.pid)
