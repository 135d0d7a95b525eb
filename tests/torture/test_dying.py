"""Programs that die while they are attached to, recorded, or detached from: the recorder ends in order, with what
there was."""
import contextlib
import os
import random
import re
import shutil
import signal
import time

import processes
from killing import NO_LEAKS
from kymotest import (KYMO, TORTURE_SECONDS, check, clean_up_after, eventually, program, report_json, run, start,
                      target, timeout)
from seeds import seed

PROBES = ['-p', 'selfcheck:work_a:*', '-p', 'selfcheck:work_*', '-p', 'libc:nanosleep', '-p', 'libc:write']


def recorder(pid, directory):
    return [KYMO, 'record', '-q', '-o', directory, *PROBES, '--pid', pid, '--for', '0.05']


def check_ended(result, directory):
    """Well, or with a sentence; what it wrote can be read. No sanitizer has anything to say."""
    check(result.status in (0, 1), 'the recorder ends in order', result)
    check(result.status == 0 or re.search(r'^kymo: \S.*', result.err, re.MULTILINE), 'it says why', result)
    if result.status == 0 and (directory / 'metadata').exists():
        report_json(directory)
    shutil.rmtree(directory, ignore_errors=True)


@timeout(7200)
def test_a_program_is_killed_at_any_instant(tmp):
    seed()
    end, n = time.monotonic() + TORTURE_SECONDS / 2, 0
    while n < 5 or time.monotonic() < end:
        with clean_up_after():
            process = target('selfcheck', '-t', random.choice([1, 4, 16]))
            recording = start(*recorder(process.pid, tmp / 'dying'))
            time.sleep(random.random() * 0.25)
            process.signal(random.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT]))
            check_ended(recording.end(seconds=60), tmp / 'dying')
            process.end(signal.SIGKILL)
        n += 1


def die_at(call, number, tmp):
    """Hold the recorder at a call of its, and meanwhile kill the program."""
    with clean_up_after():
        process = target('selfcheck', '-t', '4')
        trace = tmp / 'calls'
        trace.unlink(missing_ok=True)
        recording = start(program('strace'), '-qq', '-o', trace, '-e', f'trace={call}', '-e',
                          'signal=none', '-e', f'inject={call}:delay_enter=150000:when={number}',
                          *recorder(process.pid, tmp / 'dying'), env=NO_LEAKS)

        def there():
            return not recording.is_alive() or trace.exists() and trace.read_text().count(f'{call}(') >= number

        eventually(there, f'the recorder comes to {call} {number}')
        was_alive = recording.is_alive()
        process.signal(signal.SIGKILL)
        check_ended(recording.end(seconds=60), tmp / 'dying')
        process.end()
        return was_alive


@timeout(7200)
def test_a_program_is_killed_at_each_step(tmp):
    seed()
    with clean_up_after():
        process = target('selfcheck', '-t', '4')
        result = run(program('strace'), '-qq', '-o', tmp / 'all', '-e',
                     'trace=ptrace,pwrite64,wait4,pidfd_getfd,process_vm_writev,process_vm_readv', '-e', 'signal=none',
                     *recorder(process.pid, tmp / 'whole'), env=NO_LEAKS).ok()
        calls = re.findall(r'^(\w+)\(', (tmp / 'all').read_text(), re.MULTILINE)
        check(len(calls) > 20, 'steps', result)
        process.end(signal.SIGTERM).ok()
    points = sorted({(call, number + 1) for call in set(calls) for number in range(calls.count(call))})
    random.shuffle(points)
    end, n, held = time.monotonic() + TORTURE_SECONDS / 2, 0, 0
    for call, number in points:
        # how often it asks whether a thread has stopped differs: some points are not reached
        if n >= 5 and held > n // 2 and time.monotonic() > end:
            break
        held += die_at(call, number, tmp)
        n += 1
    check(held > n // 2, f'{held} of {n} died while they were worked on')


@timeout(7200)
def test_a_command_is_killed_at_any_instant(tmp):
    seed()
    end, n = time.monotonic() + TORTURE_SECONDS / 2, 0
    while n < 5 or time.monotonic() < end:
        with clean_up_after():
            recording = start(KYMO, 'record', '-q', '-o', tmp / 'dying', '-p', 'libc:malloc', '-p', 'libc:write', '--',
                              '/bin/sh', '-c', 'while :; do /bin/true; done')
            time.sleep(random.random() * 0.4)
            for child in processes.children(recording.pid):  # whatever it is by now
                kill(child)
            eventually(lambda: kill_children(recording), 'the recorder ends', 60)
            result = recording.end()
            check(result.status in (1, 137), 'the exit status is the command\'s', result)
            shutil.rmtree(tmp / 'dying', ignore_errors=True)
        n += 1


def kill(child):
    """Unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)


def kill_children(recording):
    for child in processes.children(recording.pid):
        # the leak checker of a build with sanitizers, as it ends
        if processes.status(child).get('Name', 'kymo') != 'kymo':
            kill(child)
    return not recording.is_alive()
