"""Several `kymo syscalls` on one process: the first traces it, the others join, and each is complete by its own set."""
import fcntl
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import processes
from kymotest import KYMO, at_end, check, check_equal, check_matches, eventually, has_joined, program, run, start, waits

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
    eventually(
        lambda: len(set(re.findall(rf'^\[pid +(\d+)\] {sees}\(', tracer.output(1), re.MULTILINE))) == THREADS or
        not tracer.is_alive(), f'{sees} of each thread', 60)
    check(tracer.is_alive(), 'the tracer goes on', tracer.result())
    return tracer


def is_stalled(process):
    """No thread makes calls."""
    before = [processes.status(tid)['voluntary_ctxt_switches'] for tid in processes.threads(process.pid)]
    time.sleep(0.5)
    return [processes.status(tid)['voluntary_ctxt_switches'] for tid in processes.threads(process.pid)] == before


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


def test_who_joins_is_shown_the_call_that_a_thread_is_in(tmp):
    """When it returns: its beginning was told before."""
    def shown(path):
        return Path(path).read_text() if Path(path).exists() else ''

    process = start(program('cat'))
    first = start(KYMO, 'syscalls', '-e', 'read,write', '-o', 'first', '--pid', process.pid)
    eventually(lambda: shown('first').startswith('read(0, '), 'it reads')
    second = start(KYMO, 'syscalls', '-e', 'read,write', '-o', 'second', '--pid', process.pid)
    eventually(lambda: has_joined(process.pid, second), 'the second is there')
    process.end(input='word\n').ok()
    first.end().ok()
    second.end().ok()
    check_equal(re.findall(r'^[a-z]+\(\d, "[^"]*"', shown('second'), re.MULTILINE),
                [r'read(0, "word\n"', r'write(1, "word\n"', 'read(0, ""'], 'calls')
    check_equal(shown('second'), shown('first'), 'what both show')


def test_who_leaves_takes_nothing_from_the_others(tmp):
    process = counted(tmp)
    first = trace(process, 'getpgid,getuid', sees='getpgid')
    second = trace(process, 'getsid', sees='getsid')
    third = trace(process, 'getsid', sees='getsid')
    second.end(signal.SIGINT).ok()
    third.kill()
    process.end(input='x').ok()
    check_calls(first.end().ok(), getuid=500 * THREADS)


@waits
def test_who_can_not_write_its_lines_is_left_behind(tmp):
    """No process reads from the second one for five seconds."""
    process = counted(tmp)
    first = trace(process, 'getpgid,getuid', sees='getpgid')
    outer, inner = os.pipe()
    fcntl.fcntl(inner, fcntl.F_SETPIPE_SZ, 4096)
    second = subprocess.Popen([KYMO, 'syscalls', '-e', 'getsid', '--pid', str(process.pid)], stderr=inner)
    at_end(lambda: second.poll() is None and second.kill())
    os.close(inner)
    check(os.read(outer, 100), 'it sees calls')
    eventually(lambda: is_stalled(process), 'the process waits for it', 60)
    before = first.output(1).count('\n')
    eventually(lambda: first.output(1).count('\n') > before + 20, 'the first and the process go on', 60)
    said = b''
    while part := os.read(outer, 65536):
        said += part
    os.close(outer)
    check_equal(second.wait(60), 1)
    check_matches(said.decode(), f'what process {process.pid} did from here on is not shown: ')
    process.end(input='x').ok()
    check_calls(first.end().ok(), getuid=500 * THREADS)
