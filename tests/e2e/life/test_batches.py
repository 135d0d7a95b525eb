"""Calls that a program which starts makes for kymo between one stop and the next, ended by a signal to itself."""
import os
import re
import shutil

import processes
from killing import NO_LEAKS
from kymotest import KYMO, check, check_equal, program, record, run, target_path

COMMAND = [target_path('callmany'), '1000']
OUTPUT = 'work_a 1000\n'
WHAT = ('-p', 'callmany:work_*', '-s', '%file')

# Starts a program 20 times, and sends it the two signals of batches all the while. Their handler counts them.
STORM = '''
import os, signal, sys, time
for i in range(20):
    pid = os.fork()
    if not pid:
        os.execv(sys.argv[1], sys.argv[1:])
    for k in range(400):
        os.kill(pid, signal.SIGURG)
        os.kill(pid, signal.SIGWINCH)
        if os.waitpid(pid, os.WNOHANG)[0]:
            break
    else:
        status = os.waitpid(pid, 0)[1]
        assert status == 0, status
'''


def recorder(tmp):
    return [KYMO, 'record', '-q', '-o', tmp / 'killed', *WHAT, '--', *COMMAND]


def batches(tmp):
    """At which of its ptrace() calls, from 1, a recorder lets a thread begin a batch: it has one signal less blocked."""
    trace = tmp / 'trace'
    run(program('strace'), '-qq', '-o', trace, '-e', 'trace=ptrace', '-e', 'signal=none', *recorder(tmp),
        env=NO_LEAKS).ok()
    calls = re.findall(r'ptrace\((\w+)', trace.read_text())
    return [i + 1 for i, call in enumerate(calls) if call == 'PTRACE_CONT' and calls[i - 1] == 'PTRACE_SETSIGMASK']


def test_a_program_whose_recorder_is_killed_in_a_batch_runs_on(tmp):
    begun = batches(tmp)
    check(len(begun) >= 2, f'batches begin at the ptrace() calls {begun}')
    for number in sorted({near for at in begun for near in (at, at + 1, at + 2)}):
        shutil.rmtree(tmp / 'killed', ignore_errors=True)
        out = tmp / 'out'
        with open(out, 'w') as file:
            run(program('strace'), '-qq', '-o', '/dev/null', '-e', 'trace=ptrace', '-e', 'signal=none', '-e',
                f'inject=ptrace:signal=KILL:when={number}', *recorder(tmp), env=NO_LEAKS, stdout=file)
        # The program's parent is gone: this process adopts it, and wait() tells how it ended.
        for status in [os.waitpid(pid, 0)[1] for pid in processes.children(os.getpid())]:
            check_equal(os.waitstatus_to_exitcode(status), 0, f'status, the recorder killed at ptrace() {number}')
        check_equal(out.read_text(), OUTPUT, f'output, the recorder killed at ptrace() {number}')


def test_signals_of_the_kind_that_ends_batches_may_come_at_any_time(tmp):
    result = record('-o', tmp / 'data', *WHAT, '--', 'python3', '-c', STORM, *COMMAND).ok()
    check_equal(result.out, 20 * OUTPUT)
