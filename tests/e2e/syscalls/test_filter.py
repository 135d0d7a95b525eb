"""kymo syscalls --seccomp-bpf: the lines are those of the set, other calls don't stop, and nothing that has the filter
outlives kymo."""
import os
import re
import signal

import processes
from kymotest import (KYMO, NOBODY, SOURCE, check, check_equal, check_matches, check_same, eventually, kymo, need_root,
                      program, run, start, waits)
from straced import CHILDREN, PYTHON, PYTHON_ENV, build, check_like_strace, command_of, git_log

SH = program('sh')
FILTER = ('--seccomp-bpf', )
SYS_POLL, SYS_RESTART_SYSCALL = 7, 219


def like_strace(tmp, chosen, *command, **how):
    check_like_strace(tmp, *command, options=['-e', chosen], backend=FILTER, **how)


def test_lines_are_those_of_the_set(tmp):
    like_strace(tmp, '%file', program('ls'), '-lR', SOURCE / 'docs', at_least=40)
    like_strace(tmp, '%desc,exit_group', program('python3'), *PYTHON, at_least=50, env=PYTHON_ENV)
    like_strace(tmp, 'openat,execve,rt_sigaction', *git_log(tmp), at_least=20)


@waits
def test_lines_of_threads_and_children_are_those_of_the_set(tmp):
    like_strace(tmp, 'clone3,clone,futex,exit', build(tmp, 'threads', '-pthread'), at_least=4)
    like_strace(tmp, '%process', SH, '-c', CHILDREN, at_least=10)
    like_strace(tmp, 'execve', SH, '-c', CHILDREN, at_least=3)
    like_strace(tmp, 'none', SH, '-c', CHILDREN, at_least=3)


def test_odd_calls_look_as_in_strace(tmp):
    # A child that wants no tracer is refused it.
    like_strace(tmp, 'all', build(tmp, 'calls'), at_least=450,
                changes=[(r'^(clone3.*CLONE_UNTRACED.*) = -1 E.*', r'\1 = -1')])


def test_an_interrupted_call_is_named_when_it_goes_on(tmp):
    code = 'import select\nwaiting = select.poll()\nwaiting.register(0, select.POLLIN)\nwaiting.poll(1000000)'
    tracer = start(KYMO, 'syscalls', '-f', *FILTER, '-e', 'restart_syscall,openat,write', '-o', tmp / 'lines',
                   program('python3'), '-S', '-c', code)
    sleeper = command_of(tracer)
    eventually(lambda: processes.call(sleeper) == SYS_POLL, 'it waits for its input', 30)
    os.kill(sleeper, signal.SIGSTOP)
    eventually(lambda: 'stopped by SIGSTOP' in (tmp / 'lines').read_text(), 'the stop', 30)
    os.kill(sleeper, signal.SIGCONT)
    eventually(lambda: processes.call(sleeper) == SYS_RESTART_SYSCALL, 'it goes on', 30)
    tracer.end(input='\n').ok()
    check_matches((tmp / 'lines').read_text(), r'restart_syscall\(<\.\.\. resuming interrupted poll \.\.\.>\) = 1')


def switches(*options):
    """How often a program that makes a thousand calls gave its processor up by itself, as it does to stop."""
    code = 'import os, resource\nfor i in range(1000): os.getppid()\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw)'
    return int(kymo('syscalls', '-f', *options, '-o', '/dev/null', program('python3'), '-S', '-c', code).ok().out)


def test_other_calls_do_not_stop():
    plain, filtered = switches('-e', 'chdir'), switches(*FILTER, '-e', 'chdir')
    check(plain >= 2000, f'{plain} switches without the filter')
    check(filtered < 1000, f'{filtered} switches with it')


def begin(tmp, *options):
    """A tree that sleeps: the tracer, and the pids."""
    tracer = start(
        KYMO, 'syscalls', '-f', *FILTER, '-e', 'openat', '-o', '/dev/null', *options, SH, '-c',
        'sleep 1000 & echo $! >> pids; setsid sleep 1000 & echo $! >> pids; echo $$ >> pids; echo x > begun; wait',
        cwd=tmp)
    eventually(lambda: (tmp / 'begun').exists() and (tmp / 'begun').read_text(), 'the tree has begun', 30)
    return tracer, [int(word) for word in (tmp / 'pids').read_text().split()]


def are_gone(pids):
    return not any(processes.is_alive(pid) for pid in pids)


def test_a_killed_tracer_takes_the_tree_with_it(tmp):
    tracer, pids = begin(tmp)
    check_equal(len(pids), 3)
    check(not are_gone(pids[:1]), 'it runs')
    tracer.kill()
    eventually(lambda: are_gone(pids), 'the tree is gone', 30)


def test_a_tracer_that_is_ended_takes_the_tree_with_it(tmp):
    for number in (signal.SIGTERM, signal.SIGHUP):
        for name in ('pids', 'begun'):
            (tmp / name).unlink(missing_ok=True)
        tracer, pids = begin(tmp)
        tracer.end(number).ended(128 + number)
        eventually(lambda: are_gone(pids), 'the tree is gone', 30)


def test_a_call_outside_of_the_set_can_be_injected_into(tmp):
    result = kymo('syscalls', '-f', *FILTER, '-e', 'exit_group', '--inject', 'chdir:error=EPERM', SH, '-c',
                  'cd / || exit 5').ended(5)
    check_matches(result.err, r'exit_group\(5\)')


def test_tracers_inside_work(tmp):
    kymo('syscalls', '-f', *FILTER, '-e', 'openat', '-o', tmp / 'outer', program('strace'), '-f', '-o', tmp / 'inner',
         SH, '-c', '/bin/true; cd /').ok()
    check_matches((tmp / 'inner').read_text(), r'(?s)execve\(.*chdir\("/"\) += 0.*exited with 0')
    check_matches((tmp / 'outer').read_text(), r'openat\(')


def test_who_joins_sees_the_calls_that_pass(tmp):
    code = 'import os, time\nopen("begun", "w")\nwhile not os.path.exists("enough"): os.getppid(); time.sleep(0.01)'
    first = start(KYMO, 'syscalls', '-f', *FILTER, '-e', 'exit_group', '-o', tmp / 'first', program('python3'), '-S',
                  '-c', code, cwd=tmp)
    eventually((tmp / 'begun').exists, 'it runs', 30)
    second = start(KYMO, 'syscalls', '-e', 'getppid', '-o', tmp / 'second', '--pid', command_of(first))
    eventually(lambda: (tmp / 'second').exists() and (tmp / 'second').read_text().count('getppid()') > 5,
               'calls that pass', 30)
    second.end(signal.SIGTERM).ok()
    (tmp / 'enough').write_text('')
    first.end().ok()
    check_same([line.split()[1] for line in (tmp / 'first').read_text().splitlines()], ['exit_group(0)', '+++'])


def test_filters_of_the_program_and_children_without_a_tracer_get_along(tmp):
    filtered = build(tmp, 'filtered')
    alone = run(filtered).ok().out
    check_same(alone.splitlines(), [
        'clone 3', 'clone3 3', 'getppid done', 'errno Invalid cross-device link', 'trace Function not implemented',
        'trace of what passes Function not implemented'
    ])
    traced = kymo('syscalls', '-f', *FILTER, '-e', 'getppid,sethostname', '-o', tmp / 'lines', filtered).ok().out
    check_same(traced.splitlines(),
               [line.replace('clone3 3', 'clone3 Function not implemented') for line in alone.splitlines()])
    lines = (tmp / 'lines').read_text()
    check_equal(lines.count('getppid()'), 3)
    check_matches(lines, r'getppid\(\) += -1 ENOSYS')
    check(not re.search(r'sethostname', lines), 'what is refused by a stricter filter is not seen')


def test_users_without_rights_may_use_it(tmp):
    need_root()
    result = kymo('syscalls', '-f', *FILTER, '-e', 'exit_group', program('grep'), 'NoNewPrivs', '/proc/self/status',
                  user=NOBODY).ok()
    check_equal(result.out.split(), ['NoNewPrivs:', '1'])
    check_equal(
        kymo('syscalls', '-f', *FILTER, '-e', 'exit_group', program('grep'), 'NoNewPrivs',
             '/proc/self/status').ok().out.split(), ['NoNewPrivs:', '0'])


def test_what_can_not_have_a_filter_is_refused():
    kymo('syscalls', *FILTER, '-e', 'openat', 'true').refused(r'cannot do without a tracer: add -f', 2)
    kymo('syscalls', *FILTER, '-f', '--pid', 1).refused(r'for commands that kymo starts and traces: leave --pid', 2)
    kymo('syscalls', *FILTER, '-f', '--backend', 'kernel', 'true').refused(
        r'leave --pid, --all and --backend kernel out', 2)
