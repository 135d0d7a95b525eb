"""Histories of branches by single steps: as gdb steps the same program, after every kind of end, with threads,
signals, children and kills; and what is said where it cannot be."""
import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

from kymotest import (KYMO, NOBODY, babeltrace, check, check_equal, check_matches, check_untraced, eventually, kymo,
                      need_root, record, run, skip, start, start_record, timeout)

HERE = Path(__file__).parent
STEPS = ('--branch-source', 'steps')


def compile_it(tmp, name, *options):
    run('gcc', '-g', '-O1', *options, '-o', tmp / name, HERE / f'{name}.c').ok()


def threads(directory='kymo.data', *args):
    return json.loads(kymo('branches', '--json', *args, directory).ok().out)['threads']


def functions(thread):
    """Each function that is called, entered or returned to, in order."""
    return [branch.get('to', {}).get('function') for branch in thread['branches']]


def pairs(thread):
    return [(branch['from']['address'], branch['to']['address']) for branch in thread['branches'] if 'from' in branch]


# ---- beside gdb ----------------------------------------------------------------------------------


@timeout(240)
def test_each_branch_as_gdb_steps(tmp):
    if not shutil.which('gdb'):
        skip('needs gdb')
    compile_it(tmp, 'steps', '-nostdlib', '-static', '-no-pie', '-fno-stack-protector', '-fcf-protection=none')
    bare = run('./steps')
    result = record('-b', 'all', '--tail', '100000', '--', './steps', seconds=200)
    check_equal((result.status, result.out), (bare.status, bare.out), 'how the program ends')
    out = run('gdb', '-nx', '-batch', '-x', HERE / 'gdb_steps.py', './steps', env={**os.environ, 'DEBUGINFOD_URLS': ''},
              seconds=200).out
    expected = [tuple(line.split()[1:]) for line in out.splitlines() if line.startswith('BRANCH ')]
    check(len(expected) > 400, 'gdb has stepped it', out[-500:])
    found = pairs(threads()[0])
    check_equal(found[:20], expected[:20], 'the first branches')
    check_equal(found, expected, 'all branches')
    babeltrace()


# ---- ends ----------------------------------------------------------------------------------------

CRASH = r"""
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
__attribute__((noinline)) static int step(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
int main(int argc, char **argv)
{
	volatile int *nowhere = (volatile int *)8;
	int n = 0;
	for (int i = 0; i < 50; i++)
		n = step(n);
	if (!strcmp(argv[1], "segv"))
		*nowhere = n;
	if (!strcmp(argv[1], "abort"))
		abort();
	if (!strcmp(argv[1], "kill"))
		raise(SIGKILL);
	_exit(7);
}
"""


def build(tmp, source, name, *options):
    (tmp / f'{name}.c').write_text(source)
    run('gcc', '-g', '-O1', *options, '-o', tmp / name, tmp / f'{name}.c').ok()


def check_end(source, how, status, signal_name):
    result = record('-b', './crash:main', '-b', './crash:step', '--tail', '64', '--branch-source', source, '--',
                    './crash', how)
    check_equal(result.status, status, f'the status of {how}')
    thread, = threads()
    check_equal(thread.get('signal'), signal_name, f'the end of {how}')
    check(thread['taken'] > thread['kept'] == 64, 'the newest are kept', thread['taken'], thread['kept'])
    check('step' in functions(thread)[-12:], 'the loop is before the end', functions(thread)[-12:])
    return thread


@timeout(120)
def test_tails_after_every_end(tmp):
    build(tmp, CRASH, 'crash')
    for source in 'auto', 'steps':
        check_ends(source)


def check_ends(source):
    thread = check_end(source, 'segv', 128 + signal.SIGSEGV, 'SIGSEGV')
    check_equal((thread['at']['function'], thread['fault']), ('main', '0x8'), 'where it was')
    check_matches(
        kymo('report', '--crash').ok().out, r'then SIGSEGV at crash:main\+0x[0-9a-f]+ crash.c:15, address 0x8\n',
        'the crash')
    check_matches(
        kymo('report', '--crash').out, r'address 0x8\n  #0  crash:main\+0x\S+ crash.c:15\n'
        r'       and calls that are not in the history\n', 'the stack')
    check_matches(kymo('branches').ok().out, r'  [×x]\d+\n', 'loops are folded')
    check_end(source, 'abort', 128 + signal.SIGABRT, 'SIGABRT')
    check_end(source, 'kill', 128 + signal.SIGKILL, 'SIGKILL')
    check_equal(check_end(source, '_exit', 7, None)['status'], 7, 'its status')
    check_matches(
        kymo('report', '--crash').err, r"nothing crashed in kymo.data: no thread was ended by a signal", 'no crash')


def test_all_of_a_program_and_its_libraries(tmp):
    build(tmp, CRASH, 'crash')
    result = record('-b', 'all', *STEPS, '--', './crash', 'abort')
    check_equal(result.status, 128 + signal.SIGABRT, 'the status')
    check_matches(result.err, r'single steps.*short windows', 'what it costs is told')
    thread, = threads()
    check_equal(thread['kept'], 4096, 'as many as are kept')
    check_equal(
        pairs(thread) and {branch['from']['file'].split('/')[-1].split('.')[0]
                           for branch in thread['branches']} >= {'crash', 'libc'}, True, 'files')
    check(any(name and 'abort' in name for name in functions(thread)[-60:]), 'abort() is near the end',
          functions(thread)[-60:])
    stack = re.findall(r'^  #\d+ +\S+:(\w+)\+', kymo('report', '--crash').out, re.MULTILINE)
    check('main' in stack and stack[0].endswith('kill_implementation'), 'the stack', stack)
    babeltrace()


CLOCK = r"""
#include <stdlib.h>
#include <time.h>
int main(void) { struct timespec now; clock_gettime(CLOCK_MONOTONIC, &now); return 0; }
"""


def test_code_without_a_file_has_offsets(tmp):
    """Which are the same in each run."""
    build(tmp, CLOCK, 'clock')
    record('-b', './clock:main', '-b', 'libc:clock_gettime', *STEPS, '--', './clock')
    places = {branch['to']['linked'] for branch in threads()[0]['branches'] if branch['to'].get('file') == '[vdso]'}
    check(places and all(int(place, 16) < 0x10000 for place in places), 'where the code is', places)


MANY = r"""
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) { int s = 0; for (volatile int i = 0; i < n; i++) s += i; return s; }
static void *run(void *arg) { for (;;) { work(10); usleep(1000); } return NULL; }
int main(void)
{
	pthread_t thread;
	for (int i = 0; i < 63; i++) pthread_create(&thread, NULL, run, NULL);
	for (int i = 0; i < 30; i++) { work(100); usleep(10000); }
	raise(SIGKILL);
}
"""


NAMED = r"""
#include <string.h>
__attribute__((noinline)) static size_t measure(const char *volatile text) { return strlen(text); }
int main(void) { return measure("name") != 4; }
"""


def test_links_and_indirect_functions_are_followed(tmp):
    """By a link's path, and by a name whose function is chosen when the program is linked."""
    (tmp / 'named.c').write_text(NAMED)
    run('gcc', '-O1', '-fno-builtin', '-o', 'other-name', 'named.c').ok()
    (tmp / 'link').symlink_to('other-name')
    for source in 'steps', 'clones':
        for spec, function in (tmp / 'link', 'measure'), ('libc:strlen', '__strlen_'):
            record('-b', spec, '--branch-source', source, '--', './link').ok()
            found = json.loads(kymo('branches', '--json').ok().out)['threads'][0]['branches']
            check(any(branch.get('to', {}).get('function', '').startswith(function) for branch in found),
                  f'{spec} by {source}', found)


@timeout(240)
def test_tails_of_64_threads_after_sigkill(tmp):
    build(tmp, MANY, 'many', '-pthread')
    result = record('-b', './many:work', *STEPS, '--', './many', seconds=200)
    check_equal(result.status, 128 + signal.SIGKILL, 'the status')
    found = threads()
    check_equal(len(found), 64, 'threads')
    for thread in found:
        check_equal(thread['signal'], 'SIGKILL', 'the end')
        check_equal(len(thread['branches']), thread['kept'], 'what is kept')
    check(sum(thread['taken'] for thread in found) > 1000, 'branches')


EXECUTING = r"""
#include <pthread.h>
#include <unistd.h>
static void *run(void *arg) { execl("/bin/echo", "echo", "from a thread", (char *)NULL); return NULL; }
int main(void) { pthread_t thread; pthread_create(&thread, NULL, run, NULL); for (;;) pause(); }
"""


@timeout(240)
def test_a_thread_that_executes_a_program(tmp):
    build(tmp, EXECUTING, 'executing', '-pthread')
    check_equal(
        record('-b', 'all', '--tail', '1000000', *STEPS, '--', './executing', seconds=200).ok().out, 'from a thread\n',
        'the output')
    first, other = threads()
    check_equal(first['tid'], other['tid'], 'it has the id of the first thread')
    check_equal(other['name'], 'echo', 'its program')
    check_equal([branch['kind'] for branch in other['branches']].count('exec'), 1, 'one exec')
    check(first['taken'] == len(first['branches']) and other['taken'] == len(other['branches']),
          'each has its own branches')


# ---- what programs do ----------------------------------------------------------------------------

LIFE = r"""
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int hits;
static jmp_buf out;
__attribute__((noinline)) void handler(int n) { hits++; }
__attribute__((noinline)) int work(int n) { int s = 0; for (volatile int i = 0; i < n; i++) s += i; return s; }
static void *run(void *arg) { return (void *)(long)work((int)(long)arg); }
static unsigned long flags(void) { unsigned long f; __asm__ volatile("pushfq\n\tpop %0" : "=r"(f)); return f & 0x100; }
static unsigned long popped(void) { unsigned long f; __asm__ volatile("pushfq\n\tmov (%%rsp), %0\n\tpopfq\n\tnop" : "=r"(f) : : "cc"); return f & 0x100; }
static unsigned long r11(void) { unsigned long r; __asm__ volatile("mov $39,%%eax\n\tsyscall\n\tmov %%r11,%0" : "=r"(r) :: "rax","rcx","r11","memory"); return r & 0x100; }
static void jump(int n) { if (n) jump(n - 1); else longjmp(out, 5); }
int main(void)
{
	pthread_t threads[4];
	int status;
	pid_t child;
	signal(SIGUSR1, handler);
	for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, run, (void *)(20 + i));
	for (int i = 0; i < 4; i++) { void *r; pthread_join(threads[i], &r); printf("%ld\n", (long)r); }
	raise(SIGUSR1);
	status = setjmp(out);
	if (!status) jump(3);
	printf("%d handled, %d jumped, flags %lx %lx %lx\n", hits, status, popped(), flags(), r11());
	fflush(stdout);
	child = fork();
	if (!child) { raise(SIGUSR1); printf("child %d %lx\n", hits, flags()); fflush(stdout); _exit(3); }
	waitpid(child, &status, 0);
	printf("child %d\n", status);
	fflush(stdout);
	child = vfork();
	if (!child) { execl("/bin/echo", "echo", "vfork", NULL); _exit(1); }
	waitpid(child, &status, 0);
	printf("vfork %d, system %d\n", status, system("exit 2"));
	fflush(stdout);
	execl("/bin/echo", "echo", "done", NULL);
	return 1;
}
"""


@timeout(240)
def test_threads_signals_children_and_exec(tmp):
    build(tmp, LIFE, 'life', '-pthread')
    bare = run('./life').ok()
    check_equal(record('-b', 'all', *STEPS, '--', './life', seconds=200).ok().out, bare.out, 'the output')
    found = threads()
    check_equal(len(found), 5, 'threads')
    others = [thread for thread in found if thread['tid'] != thread['pid']]
    check_equal(len(others), 4, 'threads that were made')
    for thread in others:
        check_equal(thread['status'], 0, 'the end of a thread')
        check('work' in functions(thread), 'what it did', functions(thread))
    check_equal([thread['name'] for thread in found if thread not in others], ['echo'], 'the last program')
    check_equal(
        record('-b', './life:work', '-b', './life:handler', *STEPS, '--', './life', seconds=200).ok().out, bare.out,
        'the output')
    found = threads()
    check_equal(sorted((thread['branches'][0]['kind'], thread['branches'][0]['to']['function']) for thread in found),
                [('enter', 'handler'), *[('enter', 'work')] * 4], 'entries')
    check_equal(sorted(thread['taken'] for thread in found), [2, 21, 22, 23, 24], 'branches')


SIGNALS = r"""
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
static volatile int ticks;
static void tick(int n) { ticks++; }
int main(void)
{
	struct itimerval often = { { 0, 3000 }, { 0, 3000 } };
	volatile unsigned int n = 0, sum = 0;
	signal(SIGALRM, tick);
	setitimer(ITIMER_REAL, &often, NULL);
	while (n < 3000) { n++; sum += n * n; }
	puts(sum == 415142412u ? "right" : "wrong");
	return 0;
}
"""


@timeout(240)
def test_handlers_between_steps(tmp):
    build(tmp, SIGNALS, 'signals')
    bare = run('./signals').ok()
    result = record('-b', './signals', '--tail', '1000000', *STEPS, '--', './signals', seconds=200).ok()
    check_equal(result.out, bare.out, 'the output')
    thread, = threads()
    entered = [branch for branch in thread['branches'] if branch['kind'] == 'signal']
    check(len(entered) > 3, 'signals came', len(entered))
    check_equal({branch['to']['function'] for branch in entered}, {'tick'}, 'handlers')


# ---- kills ---------------------------------------------------------------------------------------

SPIN = r"""
#include <unistd.h>
__attribute__((noinline)) static int work(void) { int s = 0; for (volatile int i = 0; i < 50; i++) s += i; return s; }
int main(void)
{
	while (work() && write(1, ".", 1) == 1)
		;
	return 1;
}
"""


def is_traced(pid):
    return not re.search(r'^TracerPid:\t0$', Path(f'/proc/{pid}/status').read_text(), re.M)


@timeout(240)
def test_the_target_runs_on_when_the_recorder_is_killed(tmp):
    build(tmp, SPIN, 'spin')
    with open(tmp / 'dots', 'wb') as dots:
        target = start('./spin', stdout=dots)
    for i in range(20):
        recorder = start(KYMO, 'record', '-q', '-o', tmp / f'd{i}', '-b', 'all', '--pid', str(target.pid))
        eventually(lambda: is_traced(target.pid), 'it is traced')
        time.sleep(0.003 * i)
        recorder.end(signal.SIGKILL)
        eventually(lambda: not is_traced(target.pid), 'it is let go of')
        check(target.is_alive(), f'it runs on, after {i + 1} kills')
    size = os.path.getsize(tmp / 'dots')
    eventually(lambda: os.path.getsize(tmp / 'dots') > size, 'it goes on with its work')
    eventually(lambda: 'threads' in kymo('branches', '--json', tmp / 'd19').out, 'what was seen is written')
    target.kill()


def test_it_ends_in_time_and_by_signals(tmp):
    build(tmp, SPIN, 'spin')
    target = start('./spin', stdout=open(os.devnull, 'wb'))

    def has_branches():
        record('-b', './spin:work', '--pid', str(target.pid), '--for', '0.5').ok()
        check_untraced(target.pid)
        return sum(thread['taken'] for thread in threads())

    eventually(has_branches, 'there are branches')
    recorder = start(KYMO, 'record', '-q', '-b', 'all', '--pid', str(target.pid))
    eventually(lambda: is_traced(target.pid), 'it is traced')
    check_equal(recorder.end(signal.SIGTERM).status, 0, 'the status')
    check(target.is_alive(), 'it runs on')
    check_untraced(target.pid)
    check(len(threads()) <= 1, 'the trace is whole')
    target.kill()


# ---- two histories -------------------------------------------------------------------------------


def test_where_two_histories_part(tmp):
    build(
        tmp, r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static int even(int n) { __asm__ volatile("" : "+r"(n)); return n / 2; }
__attribute__((noinline)) static int odd(int n) { __asm__ volatile("" : "+r"(n)); return 3 * n + 1; }
int main(int argc, char **argv)
{
	int n = atoi(argv[1]), steps = 0;
	for (; n != 1; steps++)
		n = n % 2 ? odd(n) : even(n);
	printf("%d\n", steps);
	return 0;
}
""", 'collatz')
    for n in (6, 26):
        record('-o', f'd{n}', '-b', './collatz:main', '-b', './collatz:even', '-b', './collatz:odd', '--', './collatz',
               str(n)).ok()
    check_matches(kymo('branches', '--diff', 'd6', 'd6').ok().out, r': the same, \d+ branches\n', 'itself')
    out = kymo('branches', '--diff', 'd6', 'd26').ok().out
    check_matches(out, r'branches are the same, then they part:', 'they part')
    first, second = out.split('then in d6:')[1].split('then in d26:')
    check('odd' in first or 'even' in first or 'main' in first, 'what comes in the one', out)
    check(first != second, 'they differ', out)


# ---- what cannot be ------------------------------------------------------------------------------


def check_refused(pattern, *args, status=2):
    result = record(*args)
    check_equal(result.status, status, f'the status of {args}')
    check_matches(result.err, pattern, 'the sentence')


def test_sentences(tmp):
    build(tmp, SPIN, 'spin')
    check_refused(r"--branch ':main' names no code: write all, a file", '-b', ':main', '--', 'true')
    check_refused(r"--tail takes a number of branches up to", '-b', 'all', '--tail', '0', '--', 'true')
    check_refused(r"--tail is for branches", '-p', 'libc:malloc', '--tail', '5', '--', 'true')
    check_refused(r"branches \(-b\) are recorded by themselves.*leave -p", '-b', 'all', *STEPS, '-p', 'libc:malloc',
                  '--', 'true')
    check_refused(r"leave --debug-file out", '-b', 'all', '--debug-file', './spin', '--', 'true')
    check_refused(r"leave -s out", '-b', 'all', *STEPS, '-s', 'read', '--', 'true')
    check_refused(r"cannot run ./nothing", '-b', 'all', '--', './nothing', status=1)
    target = start('./spin', stdout=open(os.devnull, 'wb'))
    check_refused(r"--branch ./spin:nothing: process \d+ has no such function", '-b', './spin:nothing', '--pid',
                  str(target.pid), status=1)
    target.kill()
    record('-p', 'libc:malloc', '--', 'true').ok()
    result = kymo('branches')
    check_equal(result.status, 1, 'the status')
    check_matches(result.err, r"kymo.data has no branches: record some with 'kymo record -b all", 'the sentence')
    record('-b', 'all', '--', 'true').ok()
    check_matches(kymo('branches', '--thread', '1').err, r'has no branches of a thread 1\n', 'the sentence')


def test_a_process_with_probes(tmp):
    build(tmp, SPIN, 'spin')
    target = start('./spin', stdout=open(os.devnull, 'wb'))
    recorder = start_record(target.pid, '-p', './spin:work', '-o', 'probes')
    check_refused(rf"process {target.pid} has probes of a recording in it.*'kymo detach {target.pid}'", '-b', 'all',
                  '--pid', str(target.pid), status=1)
    recorder.end(signal.SIGINT)
    check(target.is_alive(), 'it runs on')
    target.kill()


def test_the_process_of_another_user(tmp):
    need_root()
    target = start('sleep', '60')
    result = run(KYMO, 'record', '-o', '/tmp/never', '-b', 'all', '--pid', str(target.pid), user=NOBODY)
    check_equal(result.status, 1, 'the status')
    check_matches(result.err, rf'cannot trace process {target.pid}: ', 'the sentence')
