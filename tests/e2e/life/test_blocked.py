"""System calls in which threads sleep while kymo comes and goes: they return what they would have, when they would
have."""
import errno
import os
import random
import shutil
import signal
import time

import processes
import remains
from killing import NO_LEAKS
from kymotest import (KYMO, KYMO_PLAIN, check, check_equal, eventually, program, record, run, start, start_record,
                      target, waits)
from sleeping import WITH_BLOCK, Sleepers
from sleeping import WOKEN as WOKEN_BY_KERNEL
from test_joined import SLEEPING

PROBES = ['-q', '-p', 'libc:malloc', '-p', 'libc:read']
WOKEN = {'read': 1, 'poll': 1, 'select': 1, 'epoll': 1, 'futex': 0, 'accept': 0, 'sem': 0, 'msg': 1, 'wait': 0}
# The kernel keeps their end.
LIMITED = {
    'poll_timeout': (0, 0), 'select_timeout': (0, 0), 'nanosleep_timeout': (0, 0), 'until_timeout': (0, 0),
    'futex_timeout': (-1, errno.ETIMEDOUT)
}
# Their limits begin anew.
RESTARTED = {
    'epoll_timeout': (0, 0), 'recv_timeout': (-1, errno.EAGAIN), 'sem_timeout': (-1, errno.EAGAIN), 'signal_timeout':
    (-1, errno.EAGAIN), 'aio_timeout': (0, 0)
}
EXPECTED = {**{way: (result, 0) for way, result in WOKEN.items()}, **LIMITED, **RESTARTED}
LIMIT_MS = 9500  # less than what ends as by a signal, and long enough for visits on a loaded machine
SLACK_MS = 1500  # and a process without a visit is late


class Sleeping:
    """These ways, in a process for visit(), and some beside it that are not disturbed."""
    def __init__(self, *ways):
        self.beside = target('blocked', '-m', LIMIT_MS, *LIMITED)
        self.process = target('blocked', '-m', LIMIT_MS, *ways)

    def check_ways(self, attached_ms):
        check(attached_ms < LIMIT_MS, f'the visit took {attached_ms} ms, too long for this test')
        late_ms = max(took_ms for _, _, took_ms in self.beside.end().ok().json().values()) - LIMIT_MS
        for way, (result, error, took_ms) in self.process.end().ok().json().items():
            check_equal((result, error), EXPECTED[way], f'result and errno of {way}')
            latest = LIMIT_MS + late_ms + SLACK_MS + (attached_ms if way in RESTARTED else 0)
            check(LIMIT_MS - 50 <= took_ms <= latest,
                  f'{way} took {took_ms} ms instead of {LIMIT_MS}, and others {late_ms} ms more')


def visit(process, times):
    """Attach and detach; the ms from the process's start to the last detach."""
    begin = time.monotonic()
    before = remains.lasting_mappings(process.pid)  # its threads may still be coming
    for _ in range(times):
        # in much less than the limit
        result = run(KYMO_PLAIN, 'record', *PROBES, '--pid', process.pid, '--for', '0.01')
        check(process.is_alive(), 'it sleeps on', process.result(), result)
        result.ok()
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    return int((time.monotonic() - begin) * 1000) + 500


@waits
def test_sleeping_threads_are_not_disturbed():
    sleeping = Sleeping(*EXPECTED)
    sleeping.check_ways(visit(sleeping.process, 3))


@waits
def test_a_process_whose_only_thread_sleeps_is_not_disturbed():
    """System calls are made in that thread's name meanwhile."""
    visited = []
    for way in EXPECTED:
        sleeping = Sleeping(way)
        visited.append((sleeping, visit(sleeping.process, 1)))
    for sleeping, attached_ms in visited:
        sleeping.check_ways(attached_ms)


def test_a_wait_with_a_long_limit_ends_as_by_a_signal_rather_than_late():
    # and their calls; a socket's limit is not told
    ways = {'epoll_timeout': 232, 'sem_timeout': 220, 'signal_timeout': 128, 'aio_timeout': 208}
    process = target('blocked', '-m', '30000', *ways)
    eventually(lambda: {processes.call(tid) for tid in processes.threads(process.pid)} >= set(ways.values()),
               'each sleeps')
    record(*PROBES, '--pid', process.pid, '--for', '0.01')
    said = process.end().ok().json()
    check_equal({way: (result, error) for way, (result, error, _) in said.items()},
                dict.fromkeys(ways, (-1, errno.EINTR)))


def test_a_command_that_sleeps_is_not_disturbed_by_the_end_of_its_recording(tmp):
    recorder = start(KYMO, 'record', '-p', 'libc:nanosleep', '--for', '0.3', '--', 'sleep', 1000)
    recorder.wait_for('^kymo: waiting for sleep to end$', which=1)
    pid, = processes.children(recorder.pid)
    eventually(lambda: processes.call(pid) in SLEEPING, 'it sleeps on')
    os.kill(pid, signal.SIGTERM)
    recorder.end().ended(128 + signal.SIGTERM)


def test_a_stopped_process_stays_stopped():
    process = target('selfcheck', '-t', '4')
    time.sleep(0.1)
    before = remains.lasting_mappings(process.pid)

    def states():
        return {processes.status(tid)['State'][0] for tid in processes.threads(process.pid)}

    def check_stopped(when):
        """A thread that is let go enters the stop anew, when it gets a processor."""
        eventually(lambda: states() == {'T'}, lambda: f'all are stopped {when}: {states()}')

    with processes.stopped(process.pid):
        recorder = start_record(process.pid, '-p', 'selfcheck:work_*')
        check_stopped('while it is recorded')
        recorder.end(signal.SIGTERM).ok()
        check_stopped('afterwards')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    with processes.stopped(process.pid):
        recorder = start_record(process.pid, '-p', 'selfcheck:work_*')
        recorder.signal(signal.SIGKILL)
        recorder.end()
        time.sleep(0.1)
        check_stopped('after the death of the recorder')
    record('-q', '-p', 'selfcheck:work_a', '--pid', process.pid, '--for', '0.1').ok()
    os.kill(process.pid, signal.SIGCONT)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def check_killed(tmp, ways, busy, may_begin_anew=False):
    kills, limit_ms = 0, 6000
    # once, but on a machine that is too busy for three recordings in that time
    while kills <= 2 and limit_ms < 100_000:
        sleepers = Sleepers(tmp, ways, busy, limit_ms)
        sleepers.kill_for_a_while(1000)
        kills = sleepers.end(may_begin_anew)
        limit_ms *= 2
    check(kills > 2, 'recorders were killed')


def test_a_killed_recorder_ends_no_sleep_where_a_thread_is_awake(tmp):
    """The first thread sleeps with a restart block, which does not outlive a sigreturn: another one makes the calls."""
    check_killed(tmp, [*WOKEN_BY_KERNEL, *WITH_BLOCK], 2)


def test_a_thread_that_falls_asleep_before_it_is_stopped_makes_no_calls_where_another_is_awake(tmp):
    """It was running when the recorder looked for a thread to make system calls by, as a thread that returns into a
    sleep is."""
    check(any(falls_asleep_before_it_is_stopped(tmp) for _ in range(4)),
          'the delay came between the look and the stop once')


def falls_asleep_before_it_is_stopped(tmp):
    """False where the recorder made other calls than the time before, so that the delay came elsewhere."""
    process = target('blocked', '-m', 6000, '-a', 5000, '-b', 1, 'nanosleep_timeout')
    recorder = [KYMO_PLAIN, 'record', '-q', '-o', tmp / 'trace', *PROBES, '--for', '0.01', '--pid', process.pid]

    def calls(*options):
        traced = tmp / 'calls'
        run(program('strace'), '-qq', '-o', traced, '-e', 'trace=ptrace,openat', '-e', 'signal=none', *options,
            *recorder, env=NO_LEAKS).ok()
        shutil.rmtree(tmp / 'trace')
        return traced.read_text().splitlines()

    seen = calls()
    look = next(i for i, call in enumerate(seen) if f'"/proc/{process.pid}/task/{process.pid}/syscall"' in call)
    number = sum(call.startswith('ptrace(') for call in seen[:look]) + 1
    check(processes.call(process.pid) is None, 'the thread is awake yet')
    seen = calls('-e', f'inject=ptrace:delay_enter=5s:when={number}')
    delayed = next(i for i, call in enumerate(seen) if call.endswith('(DELAYED)'))
    look = next(i for i, call in enumerate(seen) if f'"/proc/{process.pid}/task/{process.pid}/syscall"' in call)
    if delayed != next(i for i, call in enumerate(seen) if i > look and call.startswith('ptrace(')):
        process.end()
        return False
    asleep = seen[delayed:]
    made = {int(call.split(',')[1]) for call in asleep if call.startswith('ptrace(PTRACE_SYSCALL,')}
    check(made and process.pid not in made, f'the calls are made by another thread than {process.pid}: {made}')
    check_equal(process.end().ok().json()['nanosleep_timeout'][:2], [0, 0], 'how the sleep ended')
    return True


def test_a_killed_recorder_ends_no_sleep_where_some_restart_without_a_block(tmp):
    check_killed(tmp, ['read', 'futex', *WITH_BLOCK], 0)


def test_a_killed_recorder_lets_a_sleep_begin_anew_where_all_have_a_limit(tmp):
    """The call that the thread is in is named by the instruction before it, also where the kernel has restarted it
    since."""
    check_killed(tmp, [random.choice(['poll_timeout', 'nanosleep_timeout'])], 0, may_begin_anew=True)
