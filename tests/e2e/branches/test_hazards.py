"""What programs do that histories of branches have to survive: code that comes and goes, handlers that end a call,
flags that are pushed at the end, execs by other threads, 32-bit code, wrong words."""
import json
import os
import re
import signal
from pathlib import Path

from kymotest import (KYMO, check, check_equal, check_matches, check_untraced, eventually, kymo, need_32_bit_programs,
                      record, run, skip, start, timeout)


STEPS = ('--branch-source', 'steps')


def build(tmp, source, name, *options):
    (tmp / f'{name}.c').write_text(source)
    run('gcc', '-g', '-O1', '-o', tmp / name, tmp / f'{name}.c', *options).ok()


def threads(directory='kymo.data'):
    return json.loads(kymo('branches', '--json', directory).ok().out)['threads']


def functions(thread):
    return [branch.get('to', {}).get('function') for branch in thread['branches']]


def is_traced(pid):
    return not re.search(r'^TracerPid:\t0$', Path(f'/proc/{pid}/status').read_text(), re.M)


# ---- code that comes and goes --------------------------------------------------------------------

LIBRARY = '__attribute__((noinline)) int work(int n) { int s = 0; for (volatile int i = 0; i < n; i++) s += i; return s; }'

LOADING = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(void)
{
	uintptr_t first = 0;
	char *page = NULL;
	for (int i = 0; i < 3; i++) {
		void *library = dlopen("./libwork.so", RTLD_NOW);
		int (*work)(int) = (int (*)(int))dlsym(library, "work");
		work(10);
		printf("%s\n", !first || first == (uintptr_t)work ? "same" : "other");
		first = (uintptr_t)work;
		dlclose(library);
	}
	page = mmap((void *)(first & ~4095ul), 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (page == MAP_FAILED)
		return 3;
	memset(page, 0xcc, 4096);
	puts("data");
	fflush(stdout);
	for (;;) {
		usleep(1000);
		for (int i = 0; i < 4096; i++)
			if (page[i] != (char)0xcc) {
				printf("changed at %d\n", i);
				return 4;
			}
		if (!access("done", F_OK))
			return 0;
	}
}
"""


def build_loading(tmp):
    build(tmp, LIBRARY, 'libwork.so', '-shared', '-fPIC')
    build(tmp, LOADING, 'loading', '-ldl')


def test_a_library_that_comes_again_where_it_was(tmp):
    build_loading(tmp)
    (tmp / 'done').touch()
    result = record('-b', 'libwork:work', '--', './loading').ok()
    check_equal(result.out, 'same\nsame\nsame\ndata\n', 'the output')
    thread, = threads()
    entries = [branch for branch in thread['branches'] if branch['kind'] == 'enter']
    check_equal([branch['to']['function'] for branch in entries], ['work'] * 3, 'each call is seen')


def test_data_where_code_was_is_not_touched(tmp):
    build_loading(tmp)
    out = tmp / 'out'
    with open(out, 'wb') as stdout:
        recorder = start(KYMO, 'record', '-q', '-b', 'libwork:work', '--', './loading', stdout=stdout)
        eventually(lambda: 'data' in out.read_text(), 'the library has gone')
        target, = [int(pid) for pid in os.listdir('/proc') if pid.isdigit() and
                   (Path('/proc') / pid / 'comm').exists() and
                   (Path('/proc') / pid / 'comm').read_text() == 'loading\n' and
                   os.path.realpath(f'/proc/{pid}/cwd') == str(tmp)]
        check(is_traced(target), 'it is traced')
        recorder.signal(signal.SIGINT)
        (tmp / 'done').touch()
        recorder.end()
    check('changed' not in out.read_text(), 'its data is as it was', out.read_text())


TABLES = r"""
#include <stdio.h>
extern const unsigned long table[8];
__asm__(".text\n.globl table\n.type table, @object\n.p2align 4\n"
	"table: .quad 1, 2, 3, 4, 5, 6, 7, 8\n.size table, 64\n");
__attribute__((noinline)) static unsigned long sum(void)
{
	unsigned long s = 0;
	for (int i = 0; i < 8; i++)
		s = s * 31 + table[i];
	return s;
}
int main(void) { printf("%lu\n", sum()); return 0; }
"""


def test_tables_in_text_are_not_touched(tmp):
    for options in [], ['-no-pie', '-static']:
        build(tmp, TABLES, 'tables', *options)
        check_equal(record('-b', './tables', *STEPS, '--', './tables').ok().out, run('./tables').ok().out, 'the sum')


MAPPING = r"""
#define _GNU_SOURCE
#include <sys/mman.h>
__attribute__((noinline)) int work(int n) { int s = 0; for (volatile int i = 0; i < n; i++) s += i; return s; }
int main(void)
{
	for (int i = 0; i < 4400; i++) {
		void *page = mmap((void *)(0x200000000000 + i * 4096ul), 4096, PROT_READ | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (i < 4399)
			munmap(page, 4096);
	}
	return work(10) != 45;
}
"""


@timeout(240)
def test_code_is_seen_after_many_changes_of_mappings(tmp):
    build(tmp, MAPPING, 'mapping')
    result = record('-b', './mapping:work', *STEPS, '--', './mapping', seconds=200).ok()
    check_matches(result.err, r'mapped and unmapped code too often: branches after that have addresses and no names',
                  'the sentence')
    thread, = threads()
    check_equal(thread['taken'], 11, 'branches')
    check_equal({branch.get('to', {}).get('function') for branch in thread['branches']}, {None}, 'no names')


# ---- handlers ------------------------------------------------------------------------------------

SLEEPING = r"""
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>
static volatile int hits;
__attribute__((noinline)) static void inner(void) { hits++; }
static void handler(int n) { inner(); inner(); }
int main(void)
{
	struct itimerval once = { .it_value = { 0, 200000 } };
	signal(SIGALRM, handler);
	setitimer(ITIMER_REAL, &once, 0);
	while (!hits)
		pause();
	return 0;
}
"""


def test_a_handler_that_ends_a_sleep(tmp):
    build(tmp, SLEEPING, 'sleeping')
    record('-b', 'all', '--tail', '100000', *STEPS, '--', './sleeping').ok()
    thread, = threads()
    kinds = [(branch['kind'], branch.get('to', {}).get('function')) for branch in thread['branches']]
    at = kinds.index(('signal', 'handler'))
    check_equal(kinds[at:at + 5], [('signal', 'handler'), ('call', 'inner'), ('return', 'handler'), ('call', 'inner'),
                                   ('return', 'handler')], 'the handler, step by step')


PUSHING = r"""
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	unsigned long flags, n = 0;
	puts("runs");
	fflush(stdout);
	for (;;) {
		__asm__ volatile("pushfq\n\tpopfq\n\tpushfq\n\tpop %0" : "=r"(flags) : : "cc", "memory");
		if (flags & 0x100)
			return 5;
		if (!(++n & 0xffffff) && !access("done", F_OK))
			return 0;
	}
}
"""


@timeout(240)
def test_flags_that_are_pushed_at_the_end(tmp):
    build(tmp, PUSHING, 'pushing', '-mno-red-zone')
    target = start('./pushing', stdout=open(os.devnull, 'wb'))
    for i in range(40):
        record('-o', f'd{i}', '-b', 'all', '--pid', str(target.pid), '--for', '0.02').ok()
        check(target.is_alive(), f'it runs on, after {i + 1} recordings')
    check_untraced(target.pid)
    (tmp / 'done').touch()
    check_equal(target.end().status, 0, 'no flag of ours has come back')


AGAIN = r"""
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
int main(int argc, char **argv)
{
	if (work(argc) == 2) execl(argv[0], argv[0], "again", NULL);
	puts("done");
	return 0;
}
"""


def test_a_program_that_executes_itself_at_the_same_addresses(tmp):
    build(tmp, AGAIN, 'again', '-static', '-no-pie')
    if run('setarch', '-R', './again').status:
        skip('needs setarch -R')
    result = run('setarch', '-R', KYMO, 'record', '-q', '-b', './again:work', '--', './again', seconds=200).ok()
    check_equal(result.out, 'done\n', 'the output')
    thread, = threads()
    check_equal([branch['kind'] for branch in thread['branches']], ['enter', 'return'] * 2, 'before and after')


# ---- threads -------------------------------------------------------------------------------------

EXECUTING = r"""
#include <pthread.h>
#include <unistd.h>
__attribute__((noinline)) static int spin(void) { int s = 0; for (volatile int i = 0; i < 30; i++) s += i; return s; }
static void *run(void *arg) { spin(); execl("/bin/echo", "echo", "from a thread", (char *)NULL); return NULL; }
int main(void) { pthread_t thread; pthread_create(&thread, NULL, run, NULL); for (;;) spin(); }
"""


@timeout(240)
def test_an_exec_by_another_thread_mixes_no_histories(tmp):
    build(tmp, EXECUTING, 'executing', '-pthread')
    record('-b', './executing', '--tail', '1000', *STEPS, '--', './executing', seconds=200).ok()
    first, other = threads()
    check_equal(first['tid'], other['tid'], 'both had the id of the first thread in the end')
    check('main' in functions(first) and 'run' not in functions(first), 'the first thread', functions(first)[:9])
    check('run' in functions(other) and 'main' not in functions(other), 'the one that has executed',
          functions(other)[:9])


# ---- 32-bit code ---------------------------------------------------------------------------------

OF_32_BITS = r"""
static long call(long number, long a, long b, long c)
{
	long result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return result;
}
void _start(void)
{
	for (volatile int i = 0; i < 1000; i++)
		;
	call(4, 1, (long)"32 bits\n", 8);
	call(1, 6, 0, 0);
}
"""


def test_32_bit_code_is_told_and_runs(tmp):
    need_32_bit_programs()
    build(tmp, OF_32_BITS, 'narrow', '-m32', '-nostdlib', '-static', '-no-pie', '-fno-stack-protector')
    result = record('-b', 'all', '--', './narrow')
    check_equal((result.status, result.out), (6, '32 bits\n'), 'it does its work')
    check_matches(result.err, r'a thread executes 32-bit code: its branches are not recorded', 'the sentence')


# ---- exceptions ----------------------------------------------------------------------------------

THROWING = r"""
#include <cstdio>
__attribute__((noinline)) int thrower(int n) { if (n % 2) throw n; return n; }
__attribute__((noinline)) static int after(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
__attribute__((noinline)) int catcher(int n) { try { return thrower(n); } catch (int &e) { return after(e); } }
int main() { int s = 0; for (int i = 0; i < 4; i++) s += catcher(i); std::printf("%d\n", s); }
"""


def test_handlers_of_exceptions_are_seen(tmp):
    (tmp / 'throwing.cc').write_text(THROWING)
    run('g++', '-g', '-O1', '-o', tmp / 'throwing', tmp / 'throwing.cc').ok()
    result = record('-b', './throwing:catcher', *STEPS, '--', './throwing').ok()
    check_equal(result.out, '8\n', 'the output')
    thread, = threads()
    called = [branch.get('to', {}).get('function') for branch in thread['branches'] if branch['kind'] == 'call']
    check_equal(called.count('after(int)'), 2, 'what handlers call')


# ---- wrong words ---------------------------------------------------------------------------------


def test_a_function_that_a_command_does_not_have(tmp):
    build(tmp, LIBRARY + 'int main(void) { __builtin_puts("runs"); return work(3) != 3; }', 'app')
    result = record('-b', './app:wrok', '--', './app')
    check_equal((result.status, result.out), (1, ''), 'the command does not run')
    check_matches(result.err, r"--branch ./app:wrok: ./app has no such function; the nearest names are work", 'the sentence')
    result = record('-b', './app:work', '-b', 'libnothing:work', '--', './app')
    check_equal((result.status, result.out), (1, ''), 'the command does not run')
    check_matches(result.err, 'there is no file called libnothing, and ./app was not run', 'the sentence')
    result = record('--late', '-b', './app:work', '-b', 'libnothing:work', '--', './app')
    check_equal((result.status, result.out), (0, 'runs\n'), 'what is not loaded yet may come')
    check_matches(result.err, r"--branch libnothing:work: process \d+ has no such function", 'the sentence')


def test_a_command_does_not_run_without_a_trace(tmp):
    (tmp / 'file').touch()
    result = record('-o', 'file/d', '-b', 'all', '--', 'touch', tmp / 'ran')
    check_equal(result.status, 1, 'the status')
    check(not (tmp / 'ran').exists(), 'the command does not run')
