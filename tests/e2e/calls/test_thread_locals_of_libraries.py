"""Thread-local variables of libraries: linked, loaded later, of each access model, of glibc and musl."""
import json
from pathlib import Path

from kymotest import (check, check_equal, check_same, kymo, may_read_fs_base, program, record, run, sampled, share,
                      skip, timeout)
from seeds import seed

LIBRARY = r'''
#include <stdio.h>
#define SHOWN __attribute__((visibility("default")))
static __thread char padding[PADDING];
__thread long count = 100;
static __thread int own[3] = { 1, 2, 3 };
static __thread struct { int a; short b[4]; } pair = { 5, { 6, 7, 8, 9 } };
SHOWN void say(int n) { printf("%d %ld %d %d %d\n", n, count, own[1], pair.b[3], padding[n]); }
SHOWN __attribute__((noinline)) void lib_work(int n)
{
	__asm__ volatile("" : : "r"(own), "r"(padding), "r"(&pair) : "memory");
	count += n;
	own[1] -= n;
	pair.b[3] += own[1];
	padding[n]++;
}
'''
WORDS = ('n', 'count', 'own[1]', 'pair.b[3]', 'padding[n]')
LINKED = r'''
#include <pthread.h>
void lib_work(int n);
void say(int n);
static void *run(void *data)
{
	for (int i = 0; i < 3; i++) {
		say((long)data + i);
		lib_work((long)data + i);
	}
	return NULL;
}
int main(void)
{
	pthread_t thread;
	for (long i = 1; i < 4; i++) {
		pthread_create(&thread, NULL, run, (void *)(10 * i));
		pthread_join(thread, NULL);
	}
	run((void *)5);
}
'''
LOADED = r'''
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
static void (*work)(int), (*tell)(int);
static pthread_barrier_t barrier;
static void *run(void *data)
{
	const long first = (long)data;
	if (first > 20) { /* this one is there before the library */
		pthread_barrier_wait(&barrier);
		pthread_barrier_wait(&barrier);
	}
	for (int i = 0; i < 3; i++) {
		work(first + i);
		tell(first + i);
	}
	return NULL;
}
int main(void)
{
	pthread_t threads[2];
	void *library;
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&threads[0], NULL, run, (void *)30);
	pthread_barrier_wait(&barrier);
	library = dlopen("./lib.so", RTLD_NOW);
	if (!library)
		abort();
	work = (void (*)(int))dlsym(library, "lib_work");
	tell = (void (*)(int))dlsym(library, "say");
	pthread_create(&threads[1], NULL, run, (void *)10);
	pthread_join(threads[1], NULL);
	pthread_barrier_wait(&barrier);
	pthread_join(threads[0], NULL);
	run((void *)5);
}
'''
EARLY = '''	pthread_create(&threads[0], NULL, run, (void *)30);
	pthread_barrier_wait(&barrier);
'''
LATE = '''	tell = (void (*)(int))dlsym(library, "say");
'''
# kymo sees what musl's linker maps while there is one thread.
LOADED_FIRST = LOADED.replace(EARLY, '').replace(LATE, LATE + EARLY)

# How code may look for its variables. Hidden ones have no symbols that another library might define.
MODELS = ((), ('-ftls-model=local-dynamic', '-fvisibility=hidden'), ('-ftls-model=initial-exec', ),
          ('-ftls-model=initial-exec', '-fvisibility=hidden'), ('-mtls-dialect=gnu2', ),
          ('-mtls-dialect=gnu2', '-fvisibility=hidden'))


def build(tmp, compiler, source, *options, padding=100):
    (tmp / 'lib.c').write_text(LIBRARY.replace('PADDING', str(padding)))
    (tmp / 'app.c').write_text(source)
    run(program(compiler), '-g', '-w', '-shared', '-fPIC', *options, '-o', 'lib.so', 'lib.c', seconds=60).ok()
    linked = ('./lib.so', ) if source is LINKED else ()
    run(program(compiler), '-g', '-w', '-O1', '-pthread', '-o', 'app', 'app.c', *linked, seconds=60).ok()


def recorded(words=WORDS, options=()):
    """The rows of values, None for faults; and what the program has printed."""
    spec = './lib.so:lib_work ' + ' '.join(f'v{i}={word}' for i, word in enumerate(words))
    out = record(*options, '-p', spec, '--', './app', seconds=120).ok().out
    rows = [json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()]
    return [[row['args'][f'v{i}'] for i in range(len(words))] for row in rows if row['event'] == 'probe'], out


def text_of(rows):
    return ''.join(' '.join(map(str, row)) + '\n' for row in rows)


@sampled
@timeout(300)
def test_a_library_that_is_linked(tmp):
    seed()
    compilers = [('gcc', '-O0'), ('gcc', '-O2'), ('clang', '-O2')]
    if may_read_fs_base():
        compilers.append(('musl-gcc', '-O1'))
    for compiler, optimized in share(compilers, 2):
        for model in MODELS:
            if compiler == 'clang' and '-mtls-dialect=gnu2' in model:
                continue
            build(tmp, compiler, LINKED, optimized, *model)
            rows, out = recorded()
            check_equal(len(rows), 12, f'hits by {compiler} {model}')
            check_same(text_of(rows), out, f'values by {compiler} {optimized} {model}')


# Before a call the block may not be there; after it, the program prints.
AT_FIRST = (0, 3, 6)


def check_loaded(rows, out, may_have_no_block, what):
    told = [[int(word) for word in line.split()] for line in out.splitlines()]
    check_equal(len(rows), 9, f'hits {what}')
    for i, (row, after) in enumerate(zip(rows, told)):
        if i in AT_FIRST:
            n = row[0]
            values = ([n, None, None, None, None], ) if may_have_no_block else ([n, 100, 2, 9, 0], )
            check(row in values, f'values of hit {i} {what}', row)
        else:
            before = told[i - 1]
            check_equal(row[:4], [after[0], *before[1:4]], f'values of hit {i} {what}')


@timeout(300)
def test_a_library_that_is_loaded_later(tmp):
    """A thread has no block of glibc's until it first uses one. A small block that descriptors lead to is among the
    first ones."""
    for model in MODELS:
        if '-ftls-model=initial-exec' in model:
            continue
        for padding in (100, 20000):
            build(tmp, 'gcc', LOADED, '-O2', *model, padding=padding)
            rows, out = recorded()
            check_loaded(rows, out, '-mtls-dialect=gnu2' not in model or padding > 100, f'of {model}, {padding}')
    build(tmp, 'gcc', LOADED, '-O2', '-ftls-model=initial-exec')
    check_loaded(*recorded(), False, 'of initial-exec')
    for model in MODELS[:2] if may_read_fs_base() else ():
        build(tmp, 'musl-gcc', LOADED_FIRST, '-O2', *model, padding=20000)
        check_loaded(*recorded(), False, f'of musl, {model}')


def test_fast_reads_have_the_same_values(tmp):
    build(tmp, 'gcc', LOADED, '-O2', padding=20000)
    rows, out = recorded(options=('--fast-reads', ))
    check_loaded(rows, out, True, 'by fast reads')
    build(tmp, 'gcc', LINKED, '-O2')
    rows, out = recorded(options=('--fast-reads', ))
    check_same(text_of(rows), out, 'values by fast reads')


# ---- what is not found ---------------------------------------------------------------------------


def test_what_is_not_found_is_refused_by_a_sentence(tmp):
    build(tmp, 'gcc', LINKED, '-O0')
    unused = 'extern __thread int used; __thread int unused = 3; int lib_work(int n) { return used + n; }'
    Path('lib.c').write_text(unused)
    Path('other.c').write_text('__thread int used;')
    run('gcc', '-g', '-shared', '-fPIC', '-o', 'other.so', 'other.c').ok()
    run('gcc', '-g', '-shared', '-fPIC', '-o', 'lib.so', 'lib.c', './other.so').ok()
    for word, why in (
        ('unused', "'unused' is a thread-local variable that its library's own code does not look for: nothing tells "
         "where it is"), ):
        result = kymo('record', '-p', f'./lib.so:lib_work {word}', '--', './app')
        check_equal(result.status, 2, f'status of {word}')
        check_same(result.err.splitlines()[0], f'kymo: column 19: {why}', f'sentence about {word}')
    Path('lib.c').write_text('static __thread int mine = 3; int lib_work(int n) { return mine += n; }')
    run('gcc', '-g', '-shared', '-fPIC', '-nostdlib', '-Wl,--as-needed', '-o', 'lib.so', 'lib.c').ok()
    result = kymo('record', '-p', './lib.so:lib_work mine', '--', './app')
    check_same(result.err.splitlines()[0],
               "kymo: column 19: 'mine' is a thread-local variable of a library that needs neither glibc nor musl",
               'sentence about a library without a C library')


# ---- libc ----------------------------------------------------------------------------------------

GDB = r"""
import gdb, json
rows = []

class Look(gdb.Breakpoint):
    def stop(self):
        rows.append([int(gdb.parse_and_eval(word)) for word in ('tcache != 0', 'errno')])
        return False

gdb.execute('unset environment LINES')
gdb.execute('unset environment COLUMNS')
gdb.execute('break main')
gdb.execute('run')
gdb.execute('delete')
Look('*free')
gdb.execute('continue')
json.dump(rows, open('found.json', 'w'))
"""


def test_of_debians_libc(tmp):
    """Its heap and errno, in a program of Debian's: at its first calls, as gdb prints them."""
    if kymo('explain', '-e', 'tcache', 'libc', 'free').status:
        skip('libc has no debug information here (libc6-dbg)')
    (tmp / 'app.c').write_text(APP)
    run('gcc', '-g', '-o', 'app', 'app.c').ok()
    (tmp / 'look.py').write_text(GDB)
    run(program('gdb'), '-nx', '-batch', '-iex', 'set debuginfod enabled off', '-x', 'look.py', './app',
        seconds=120).ok()
    told = json.loads((tmp / 'found.json').read_text())
    record('-p', 'libc:free heap=(tcache!=0) errno', '--', './app').ok()
    rows = [json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()]
    found = [[row['args']['heap'], row['args']['errno']] for row in rows if row['event'] == 'probe']
    check(len(told) >= 4, f'{len(told)} hits in gdb')
    check_equal(found[-len(told):], told, 'values')


APP = r'''
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	void *volatile first = malloc(10);
	close(-1);
	free(first);
	errno = 77;
	first = malloc(100);
	free(first);
	errno = 0;
	first = malloc(1000);
	free(first);
	first = NULL;
	access("/nothing/there", 0);
	free(malloc(10));
}
'''
