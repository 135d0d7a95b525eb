"""Threads that make a system call for a recorder that is killed: they finish it and come home, however late they get to
run, and recorders that meet them let them.

A share of the recorder's ptrace calls, chosen by the clock or KYMO_SEED; all of them with make torture.
"""
import os
import signal

import killing
import processes
import remains
from kymotest import KYMO_PLAIN, check, kymo, program, run, sampled, share, target, timeout
from seeds import seed

PROBES = ['-p', 'selfcheck:work_a', '-p', 'selfcheck:work_b:*', '-p', 'libc:nanosleep']


def calls(tmp, pid):
    """How many ptrace calls a recording makes."""
    run(program('strace'), '-qq', '-o', tmp / 'calls', '-e', 'trace=ptrace', '-e', 'signal=none', KYMO_PLAIN, 'record',
        '-q', '-o', 'data', *PROBES, '--for', '0.01', '--pid', pid, env=killing.NO_LEAKS).ok()
    return (tmp / 'calls').read_text().count('ptrace(')


def kill_at(number, pid):
    run(program('strace'), '-qq', '-o', '/dev/null', '-e', 'trace=ptrace', '-e', 'signal=none', '-e',
        f'inject=ptrace:signal=KILL:when={number}', KYMO_PLAIN, 'record', '-q', '-o', 'data', '--overwrite', *PROBES,
        '--for', '0.01', '--pid', pid, env=killing.NO_LEAKS)


@sampled
@timeout(300)
def test_threads_of_a_stopped_program_come_home_when_somebody_detaches(tmp):
    """While stopped, no thread goes on with what the dead recorder had begun. The next kymo would find memory from
    before that."""
    process = target('selfcheck', '-t', '2')
    before = remains.lasting_mappings(process.pid)
    left = 0
    seed()
    for number in share(range(5, calls(tmp, process.pid)), 5):
        os.kill(process.pid, signal.SIGSTOP)
        kill_at(number, process.pid)
        left += remains.are_there(process.pid)
        kymo('detach', process.pid)
        os.kill(process.pid, signal.SIGCONT)
        try:
            remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
        except Exception as error:
            error.args = (f'killed at ptrace number {number}: {error.args[0]}', *error.args[1:])
            raise
    check(left > 5, f'{left} kills came when something of kymo was in the process')
    check(process.is_alive(), 'the program runs on', process.result())
    process.end(signal.SIGTERM).ok()
    check(not processes.is_alive(process.pid), 'it has ended')
