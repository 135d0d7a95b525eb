"""Several `kymo syscalls` on one process: the first traces it, the others join, and each is complete by its own set."""
import re
import signal
from pathlib import Path

from kymotest import KYMO, at_end, check, check_equal, check_untraced, eventually, program, run, start

HERE = Path(__file__).parent
THREADS = 3


def counted(tmp, **options):
    run(program('gcc'), '-w', '-pthread', '-o', tmp / 'counted', HERE / 'counted.c').ok()
    process = start(tmp / 'counted', **options)
    process.wait_for(r'^ready$')
    return process


def trace(process, calls, *options, sees, **how):
    """A tracer that sees all three threads: each has made the call `sees`."""
    tracer = start(KYMO, 'syscalls', '-e', calls, *options, '--pid', process.pid, **how)
    eventually(lambda: len(set(re.findall(rf'^\[pid +(\d+)\] {sees}\(', tracer.output(1), re.MULTILINE))) == THREADS or not tracer.is_alive(),
               f'{sees} of each thread', 60)
    check(tracer.is_alive(), 'the tracer goes on', tracer.result())
    return tracer


def check_calls(result, **expected):
    """How often each call was made, and that all threads' ends were told."""
    for name, n in expected.items():
        check_equal(result.err.count(f' {name}('), n, f'calls of {name}')
    check_equal(result.err.count('+++ exited with 0 +++'), THREADS + 1, 'ends')


def test_two_with_different_sets_are_each_complete(tmp):
    process = counted(tmp)
    first = trace(process, 'getpgid,getuid', sees='getpgid')
    second = trace(process, 'getsid,getgid', sees='getsid')
    process.end(input='x').ok()
    check_calls(first.end().ok(), getuid=500 * THREADS, getgid=0, getsid=0)
    check_calls(second.end().ok(), getgid=300 * THREADS, getuid=0, getpgid=0)


def test_who_leaves_takes_nothing_from_the_others(tmp):
    process = counted(tmp)
    first = trace(process, 'getpgid,getuid', sees='getpgid')
    second = trace(process, 'getsid', sees='getsid')
    third = trace(process, 'getsid', sees='getsid')
    second.end(signal.SIGINT).ok()
    third.kill()
    process.end(input='x').ok()
    check_calls(first.end().ok(), getuid=500 * THREADS)


def check_first_ends(tmp, how):
    """Who has joined says so, and that it is not its own wish is its status."""
    process = counted(tmp)
    first = trace(process, 'getpgid', sees='getpgid')
    second = trace(process, 'getsid', sees='getsid')
    how(first)
    second.end().refused(rf'what process {process.pid} did from here on is not shown: the kymo that traced it, and let this one in, has ended')
    check_untraced(process.pid)
    process.end(input='x').ok()


def test_who_has_joined_is_told_that_the_first_has_ended(tmp):
    check_first_ends(tmp, lambda first: first.end(signal.SIGINT).ok())


def test_who_has_joined_is_told_that_the_first_was_killed(tmp):
    check_first_ends(tmp, lambda first: first.kill())


def test_who_stops_to_take_lines_is_left_behind(tmp):
    process = counted(tmp)
    first = trace(process, 'getpgid,getuid', sees='getpgid')
    second = trace(process, 'getsid', sees='getsid')
    second.signal(signal.SIGSTOP)
    at_end(second.signal, signal.SIGCONT)
    before = first.output(1).count('\n')
    eventually(lambda: first.output(1).count('\n') > before + 20, 'the first and the process go on', 60)
    second.signal(signal.SIGCONT)
    second.end().refused(rf'what process {process.pid} did from here on is not shown: ')
    process.end(input='x').ok()
    check_calls(first.end().ok(), getuid=500 * THREADS)
