"""A recorder is a program like any other: others record it, are killed while they do, and detach from it, and its own
recording is whole."""
import signal
import time

import processes
from killing import NO_LEAKS
from kymotest import (KYMO, KYMO_PLAIN, check, check_equal, check_text_intact, eventually, is_recorded, kymo, program,
                      record, report_json, run, start, start_record, target)

N = 100000
PROBES = ['-p', 'libc:poll', '-p', 'libc:clock_gettime', '-r', 'libc:poll']


def begin():
    """A program that makes N calls once it is told to, and the recorder of these."""
    calls = target('callmany', '-w', N)
    return calls, start_record(calls.pid, '-q', '-o', 'whole', '-p', 'callmany:work_a', env=NO_LEAKS)


def finish(calls, recorder):
    check(recorder.is_alive(), 'the recorder runs on', recorder.result)
    check_equal(processes.tracer(recorder.pid), 0, 'tracer of the recorder')
    calls.end(input='\n').ok()
    recorder.end().ok()
    check_equal([probe['count'] for probe in report_json('whole')['probes']], [N], 'calls')


def mappings(pid):
    return sorted(
        (mapping.start, mapping.end, mapping.path) for mapping in processes.maps(pid) if 'memfd:kymo' in mapping.path)


def test_a_recorder_that_is_recorded_keeps_its_memory_and_its_recording(tmp):
    calls, recorder = begin()
    before = mappings(recorder.pid)
    check(before, 'a recorder has mapped its rings')
    for options in ([], ['--follow'], ['-s', 'all']):
        other = record('-q', '-o', 'other', *PROBES, *options, '--for', '0.3', '--pid', recorder.pid).ok()
        check(report_json('other')['events'] > 0, 'it polls', other)
        check_equal(mappings(recorder.pid), before, 'memory of the recorder')
        check_text_intact(recorder.pid)
    finish(calls, recorder)


def test_there_is_nothing_to_detach_from_a_recorder(tmp):
    calls, recorder = begin()
    before = mappings(recorder.pid)
    kymo('detach', recorder.pid).refused(f'process {recorder.pid} has no kymo probes')
    check_equal(kymo('status', recorder.pid).out.count('sites'), 0, 'no sites')
    check_equal(mappings(recorder.pid), before, 'memory of the recorder')
    finish(calls, recorder)


def test_what_a_killed_recorder_left_in_another_one_is_taken_out_alone(tmp):
    calls, recorder = begin()
    before = mappings(recorder.pid)
    for call in ('mmap', 'pwrite64', 'ptrace', 'pidfd_getfd'):
        for when in (1, 2, 5, 9):
            run(program('strace'), '-qq', '-o', '/dev/null', '-e', f'trace={call}', '-e', 'signal=none', '-e',
                f'inject={call}:signal=KILL:when={when}', KYMO_PLAIN, 'record', '-q', '-o', 'other', *PROBES, '--for',
                '0.01', '--pid', recorder.pid)
    other = start_record(recorder.pid, '-q', '-o', 'other', *PROBES, env=NO_LEAKS)
    other.signal(signal.SIGKILL)
    other.end()
    kymo('detach', recorder.pid).ok()
    check_equal([mapping for mapping in mappings(recorder.pid) if mapping in before], before, 'memory of the recorder')
    check_text_intact(recorder.pid)
    finish(calls, recorder)


def test_recorders_that_begin_are_recorded_by_each_other(tmp):
    """Each one that begins, and maps its memory, is attached to at that time."""
    for i in range(8):
        calls = target('callmany', '-w', N)
        recorder = start(KYMO, 'record', '-q', '-o', 'whole', '-p', 'callmany:work_a', '--pid', calls.pid, env=NO_LEAKS)
        time.sleep(i * 0.02)
        run(KYMO_PLAIN, 'record', '-q', '-o', 'other', *PROBES, '--for', '0.2', '--pid', recorder.pid)
        eventually(lambda: is_recorded(calls.pid), f'{recorder.command} has put its probes in', 60)
        finish(calls, recorder)
