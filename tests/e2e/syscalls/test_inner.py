"""Tracers inside of what `kymo syscalls -f` traces: they do what they do without it, and nothing hangs, whichever
process dies."""
import os
import re
import signal
from pathlib import Path

import processes
from kymotest import (KYMO, NOBODY, at_end, check, check_equal, check_matches, check_same, eventually, need_root,
                      program, run, start, waits)

HERE = Path(__file__).parent
LEAK = '#include <stdlib.h>\nvoid *volatile p;\nint main(int argc, char **argv) { p = malloc(1234); if (argc > 1) free(p); p = 0; return 0; }\n'
CALLS = '''#include <stdio.h>
int inner(int x) { printf("%d\\n", x); fflush(stdout); return x + 1; }
int outer(int x) { return inner(x * 2) + 1; }
int main(void) { int r = 0; for (int i = 0; i < 3; i++) r += outer(i); return r; }
'''
NAPS = '''#include <pthread.h>
#include <time.h>
static void *nap(void *data) { for (;;) nanosleep(&(struct timespec){ 0, 5000000 }, 0); }
int main(void) { pthread_t t; pthread_create(&t, 0, nap, 0); nap(0); }
'''


def build(tmp, source, *options):
    (tmp / 'program.c').write_text(source)
    run(program('gcc'), '-g', '-o', tmp / 'program', tmp / 'program.c', '-pthread', *options).ok()
    return tmp / 'program'


def inside(tmp, *command, **how):
    return run(KYMO, 'syscalls', '-f', '-o', tmp / 'kymo', *command, **how)


def check_like_without(tmp, *command, change=lambda text: text, **how):
    alone, traced = run(*command, **how), inside(tmp, *command, **how)
    check_equal(traced.status, alone.status, 'exit status')
    for which in ('out', 'err'):
        check_same(change(getattr(traced, which)), change(getattr(alone, which)), which)
    return alone


def check_case(tmp, name):
    run(program('gcc'), '-D_GNU_SOURCE', '-o', tmp / 'tracing', HERE / 'tracing.c', '-pthread').ok()
    result = check_like_without(tmp, tmp / 'tracing', name)
    check(result.ok().out.count('\n') > 1, 'it says something', result)


def test_a_tracer_sees_and_changes_calls(tmp):
    check_case(tmp, 'calls')


def test_a_tracer_reads_and_writes_memory_and_registers(tmp):
    check_case(tmp, 'memory')


def test_a_tracer_changes_and_takes_signals(tmp):
    check_case(tmp, 'signals')


def test_a_tracer_steps(tmp):
    check_case(tmp, 'steps')


def test_a_tracer_attaches(tmp):
    check_case(tmp, 'attach')


def test_a_tracer_seizes_and_sees_job_control(tmp):
    check_case(tmp, 'seize')


def test_a_tracer_gets_the_children_too(tmp):
    check_case(tmp, 'children')


def test_a_tracer_is_told_of_threads_and_their_ends(tmp):
    check_case(tmp, 'threads')


@waits
def test_waits_for_who_is_no_child_end_by_stops_signals_and_ends(tmp):
    check_case(tmp, 'wait')


def test_tracees_of_a_killed_tracer_run_on_or_are_killed_as_it_asked(tmp):
    check_case(tmp, 'ends')


def test_a_tracer_gets_sigchld_of_a_stop(tmp):
    check_case(tmp, 'sigchld')


def without_ids(text):
    return re.sub(r'==\d+==|0x[0-9a-f]{6,}|\(process \d+\)', 'ID', text)


def test_leak_sanitizer_finds_leaks(tmp):
    leaky = build(tmp, LEAK, '-fsanitize=leak')
    result = check_like_without(tmp, leaky, change=without_ids)
    check_matches(result.err, r'^SUMMARY: LeakSanitizer: 1234 byte')
    check_like_without(tmp, leaky, 'free').ok()


def test_gdb_runs_a_program_to_a_breakpoint_and_to_its_end(tmp):
    words = [
        'set pagination off', 'break inner', 'run', 'bt', 'info registers rip', 'delete', 'stepi', 'finish', 'continue'
    ]
    result = check_like_without(tmp,
                                program('gdb'), '-nx', '-batch', *[word for each in words for word in ('-ex', each)],
                                build(tmp, CALLS), change=without_ids)
    check_matches(result.out, r'^#2 .* in main')
    check_matches(result.out, 'exited with code 014')


def names(text):
    """The calls of each process, except those that depend on which was faster."""
    calls = {}
    for line in text.splitlines():
        pid, _, rest = line.partition(' ')
        found = re.match(r'(\w+)\(', rest.lstrip())
        if found and found[1] not in ('wait4', 'rt_sigreturn', 'restart_syscall'):
            calls.setdefault(pid, []).append(found[1])
    return sorted(' '.join(of_one) for of_one in calls.values())


def test_strace_shows_the_calls_of_a_tree(tmp):
    command = [
        program('strace'), '-f', '-o', tmp / 'strace',
        program('sh'), '-c', 'ls / | cat; (exit 3); exec sh -c "exit 5"'
    ]
    check_equal(run(*command).status, 5, 'exit status')
    alone = names((tmp / 'strace').read_text())
    check_equal(inside(tmp, *command).status, 5, 'exit status')
    check_same(names((tmp / 'strace').read_text()), alone, 'calls')
    check_matches((tmp / 'kymo').read_text(), r'^\d+ +exit_group\(5\)')


def test_strace_in_strace_is_as_without(tmp):
    for options, status in (((), 5), (('-f', ),
                                      1)):  # with -f the outer one has all of the inner one's children already
        result = inside(tmp, program('strace'), *options, '-o', tmp / 'one', program('strace'), '-o', tmp / 'two',
                        program('sh'), '-c', 'exit 5')
        check_equal(result.status, status, 'exit status')
    check_matches(result.err, 'Operation not permitted')


def test_nobody_gets_at_a_process_of_another_user(tmp):
    need_root()
    script = f'sleep 100 & {program("setpriv")} --reuid {NOBODY} --clear-groups {program("strace")} -p $!; echo $?; kill $!'
    check_like_without(tmp, program('sh'), '-c', script, change=lambda text: re.sub(r'\d{2,}', 'N', text))


def kymo_of_strace(tmp):
    """kymo that traces a shell, which starts a program, and strace, which attaches to that. Them all, but the shell."""
    naps = build(tmp, NAPS)
    kymo = start(KYMO, 'syscalls', '-f', '-o', tmp / 'kymo', program('sh'), '-c',
                 'echo $$; "$@" & echo $!; strace -f -o out -p $! & echo $!; wait; wait', 'sh', naps, cwd=tmp)
    ids = [int(kymo.wait_for(r'(?s)' + r'\d+\s+' * n + r'(\d+)\s')[1]) for n in (0, 1, 2)]
    for pid in ids:
        at_end(kill, pid)
    eventually(lambda: (tmp / 'out').exists() and (tmp / 'out').read_text().count('nanosleep(') > 20,
               'strace shows calls')
    return kymo, ids[1], ids[2]


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def sleeps_again(pid):
    """It gets on."""
    before = processes.voluntary_switches(pid)
    eventually(lambda: processes.voluntary_switches(pid) > before + 10, f'process {pid} runs')


def test_strace_leaves_a_process_by_an_interrupt(tmp):
    kymo, naps, strace = kymo_of_strace(tmp)
    os.kill(strace, signal.SIGTERM)
    eventually(lambda: not processes.is_alive(strace), 'strace ends')
    check_matches(kymo.err, f'Process {naps} detached')
    sleeps_again(naps)


def test_the_tracee_of_a_killed_strace_runs_on(tmp):
    kymo, naps, strace = kymo_of_strace(tmp)
    os.kill(strace, signal.SIGKILL)
    eventually(lambda: not processes.is_alive(strace), 'strace ends')
    sleeps_again(naps)
    check(kymo.is_alive(), 'kymo goes on')


def test_when_kymo_is_killed_the_tracee_runs_on_and_its_tracer_is_told(tmp):
    kymo, naps, strace = kymo_of_strace(tmp)
    kymo.signal(signal.SIGKILL)
    kymo.popen.wait(60)
    sleeps_again(naps)
    eventually(lambda: not processes.is_alive(strace), 'strace ends, as it has nobody to wait for')


def test_when_kymo_is_asked_to_end_all_go_on(tmp):
    kymo, naps, strace = kymo_of_strace(tmp)
    kymo.signal(signal.SIGTERM)
    kymo.popen.wait(60)
    sleeps_again(naps)
    eventually(lambda: not processes.is_alive(strace), 'strace ends, as it has nobody to wait for')
