"""Thread-local variables have the values that the program prints of itself, and those that gdb prints."""
import json
import re

from kymotest import (check, check_equal, check_matches, check_same, events, kymo, may_read_fs_base, program, record,
                      run, sampled, share, skip, start, timeout)
from seeds import seed

# ---- programs ------------------------------------------------------------------------------------

# What is asked for, and printed by the program. Threads take turns, so that each run is the same.
WORDS = ('first', 'counter', 'here.x', 'here.y[2]', 'here.flags', 'here.next == &here', 'here.next->x',
         'table[counter & 3]', 'wide', 'page', 'page + here.y[0] * 2', 'sizeof(here)', '&table[2] - table', 'far[700]',
         'kind == LARGE')

SOURCE = r'''
#include <pthread.h>
#include <stdio.h>
#ifdef LIBRARY
long lib_work(int n);
#endif
enum kind { SMALL, LARGE };
struct point { int x; long y[3]; struct point *next; unsigned flags : 3; };
__thread char first = 'f';
static __thread int counter = 5;
_Thread_local struct point here = { 7, { 1, 2, 3 }, 0, 5 };
static __thread int table[4] = { 10, 20, 30, 40 };
_Alignas(64) __thread long wide = 64;
_Alignas(ALIGNMENT) static __thread long page = 4096;
__thread short far[1000];
__thread enum kind kind = LARGE;

static inline __attribute__((always_inline)) void bump(int by)
{
	static __thread int bumps = 1;
	__asm__ volatile("" : "+m"(bumps) : "r"(by));
	bumps += by;
}

__attribute__((noinline)) int work(int n)
{
	static __thread int calls;
	bump(n);
	calls += 2;
	counter += n;
	here.x += n;
	here.y[2] -= n;
	here.next = &here;
	table[n & 3]++;
	wide += n;
	page -= n;
	far[700] += n;
	kind = n & 1;
	first++;
	__asm__ volatile("" ::: "memory");
	return calls;
}

#define THREADS 4
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next = PTHREAD_COND_INITIALIZER;
static int turn;

static void say(int n) { printf(FORMAT, VALUES); }

static void *run(void *data)
{
	here.next = &here;
	for (int i = 0; i < 3; i++) {
		const int mine = i * THREADS + (int)(long)data;

		pthread_mutex_lock(&lock);
		while (turn != mine)
			pthread_cond_wait(&next, &lock);
		say(mine);
		work(mine);
#ifdef LIBRARY
		lib_work(mine);
#endif
		turn++;
		pthread_cond_broadcast(&next);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];

	for (long i = 1; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	run(NULL);
	for (int i = 1; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}
'''

BUILDS = (('gcc', '-O0'), ('gcc', '-O2', '-no-pie'), ('clang', '-O2', '-gdwarf-4'), ('gcc', '-O1', '-static'),
          ('clang', '-O0', '-no-pie', '-gdwarf-5'), ('gcc', '-O2', '-static-pie'), ('clang', '-O1', '-gsplit-dwarf'))
MUSL = (('musl-gcc', '-O0'), ('musl-gcc', '-O2', '-static'), ('musl-gcc', '-O1', '-static-pie'))
PER_PROBE = 8


def build(tmp, command, *options, alignment=4096):
    values = ', '.join(f'(long)({word})' for word in WORDS)
    text = SOURCE.replace('FORMAT', '"' + '%ld ' * len(WORDS) + r'\n"').replace('VALUES', values)
    (tmp / 'app.c').write_text(text.replace('ALIGNMENT', str(alignment)))
    run(program(command[0]), '-g', '-w', '-pthread', *command[1:], '-o', 'app', 'app.c', *options, seconds=120).ok()


def recorded(location, words, options=(), lead='p'):
    """The rows of values that kymo records, and what the program has printed."""
    parts = [words[i:i + PER_PROBE] for i in range(0, len(words), PER_PROBE)]
    specs = [
        option for k, part in enumerate(parts)
        for option in (f'-{lead}',
                       f'{lead}:e{k} {location} ' + ' '.join(f'v{i}=(long)({word})' for i, word in enumerate(part)))
    ]
    result = record(*options, *specs, '--', './app', seconds=120).ok()
    found = events()
    columns = [[[event[f'v{i}'] for i in range(len(part))] for event in found if event.name == f'e{k}']
               for k, part in enumerate(parts)]
    check_equal(len({len(column) for column in columns}), 1, 'numbers of hits')
    return [sum(row, []) for row in zip(*columns)], result.out


def check_own_words(words=WORDS, options=()):
    """What the program prints of itself is recorded."""
    rows, out = recorded('./app:work', words, options)
    check_equal(len(rows), 12, 'hits')
    check_same('\n'.join(' '.join(map(str, row)) + ' ' for row in rows) + '\n', out, 'values')
    return rows


# ---- gdb -----------------------------------------------------------------------------------------

GDB = r"""
import gdb, json
words, where = json.load(open('asked.json'))
rows = []

class Look(gdb.Breakpoint):
    def stop(self):
        rows.append([int(gdb.parse_and_eval(word)) for word in words])
        return False

Look(where)
gdb.execute('run')
json.dump(rows, open('found.json', 'w'))
"""


def gdb_says(tmp, words, where):
    (tmp / 'look.py').write_text(GDB)
    (tmp / 'asked.json').write_text(json.dumps([words, where]))
    run(program('gdb'), '-nx', '-batch', '-iex', 'set debuginfod enabled off', '-ex', 'set breakpoint pending on', '-x',
        'look.py', './app', seconds=120).ok()
    return json.loads((tmp / 'found.json').read_text())


@sampled
@timeout(480)
def test_they_have_the_values_that_gdb_prints(tmp):
    seed()
    builds = [command for command in BUILDS if may_read_fs_base() or not {'-static', '-static-pie'} & set(command)]
    for command in share(builds, 2):
        for alignment in share((8, 64, 4096), 2):
            build(tmp, command, alignment=alignment)
            rows = check_own_words()
            told = gdb_says(tmp, WORDS, 'work' if '-O0' in command else '*work')
            check_equal(rows, told, f'values of {command} with alignment {alignment}')


def test_of_what_gcc_splits(tmp):
    """gdb 13 does not know an operation that gcc uses there."""
    build(tmp, ('gcc', '-O2', '-gsplit-dwarf'))
    check_own_words()


@timeout(240)
def test_of_musl(tmp):
    if not may_read_fs_base():
        skip('programs may not read the FS base here')
    for command in MUSL:
        build(tmp, command)
        check_own_words()


# ---- where a name may stand ----------------------------------------------------------------------


def test_scopes_returns_filters_keys_and_wholes(tmp):
    for command in (('gcc', '-O0'), ('gcc', '-O2'), ('clang', '-O2')):
        build(tmp, command)
        inlined = ('-p', 'p:in ./app:bump by bumps') if command == ('gcc', '-O0') else ()
        record(*inlined, '-r', 'r:out ./app:work calls counter', '-p',
               'p:some ./app:work /counter > 20 && here.flags == 5/ n', '-p', 'p:whole ./app:work first 1 here',
               '--count', './app:work by ((int)(counter > 20))', '--sum', './app:work wide', '--', './app').ok()
        found = events()
        turns = [(i, t, 4 * i + t) for i in range(3) for t in range(4)]
        before = {(i, t): sum(4 * k + t for k in range(i)) for i, t, _ in turns}
        check_equal([(event['by'], event['bumps']) for event in found if event.name == 'in'],
                    [(n, 1 + before[i, t]) for i, t, n in turns if inlined], f'of an inlined function, {command}')
        check_equal([(event['calls'], event['counter']) for event in found if event.name == 'out'],
                    [(2 * i + 2, 5 + before[i, t] + n) for i, t, n in turns], f'at returns, {command}')
        check_equal([event['n'] for event in found if event.name == 'some'],
                    [n for i, t, n in turns if 5 + before[i, t] > 20], f'filtered, {command}')
        shown = kymo('report', '--events').ok().out
        whole = re.findall(r' whole (here=.*)', shown)
        check(len(whole) == 1 and re.fullmatch(
            r'here=\{x = 7, y = \{1, 2, 3\}, next = 0x[0-9a-f]+, flags = 5\}', whole[0]), f'whole: {whole}')
        n_large = sum(5 + before[i, t] > 20 for i, t, _ in turns)
        check_equal(sorted(re.findall(r' count:\S+ key1=(\d) count=(\d+)$', shown, re.M)),
                    sorted((key, str(n)) for key, n in (('0', 12 - n_large), ('1', n_large)) if n), 'rows by a key')
        total = sum(64 + before[i, t] for i, t, _ in turns)
        check_matches(shown, rf' sum:./app:work count=12 sum={total}\n', 'sum')


def test_they_are_listed_with_their_place(tmp):
    build(tmp, ('gcc', '-O0'), alignment=64)
    symbols = run('readelf', '-sW', './app').ok().out
    at = int(re.search(r'(?m)^ *\d+: (\w+) .* TLS .* calls\.\d+$', symbols)[1], 16)
    tls = re.search(r'TLS +\S+ (\S+) \S+ \S+ (\S+) +R +(\S+)', run('readelf', '-lW', './app').ok().out)
    vaddr, size, align = (int(word, 16) for word in tls.groups())
    distance = -(-(vaddr + size) // align) * align - vaddr - at
    place = f'thread-local, at the thread pointer-{distance:#x}'
    rows = kymo('list', '--vars', './app:work').ok().out.splitlines()
    check_equal(rows[1:], ['  n      int  register, %di', f'  calls  int  {place}'], 'variables')
    listed = json.loads(kymo('list', '--vars', '--json', './app:work').ok().out)[0]['variables']
    check_equal((listed[1]['name'], listed[1]['static'], listed[1]['kind'], listed[1]['where']),
                ('calls', True, 'memory', place), 'JSON')


def test_the_kernel_and_writes_have_no_thread_locals(tmp):
    build(tmp, ('gcc', '-O0'))
    kernel = ("'./app:work counter' has a thread-local variable, which only code in the process itself can compute: "
              'leave --backend kernel out, or that')
    write = ('column 22: what is written is computed of constants and registers, and can always be computed: no '
             'memory, no stack, no division by a register')
    for options, sentence in ((('--backend', 'kernel', '-p', './app:work counter'), kernel),
                              (('--allow-write', '-p', './app:work set %ax = counter'), write)):
        result = kymo('record', *options, '--', './app')
        check_equal(result.status, 2, f'exit status with {options}')
        check_same(result.err.splitlines()[0], f'kymo: {sentence}', f'sentence about {options}')


# ---- when a thread has its variables -------------------------------------------------------------

EARLY = r'''
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
__thread int counter = 5;
__thread char name[12] = "first";
static int one(void) { return 1; }
__attribute__((noinline)) int early(int n) { __asm__ volatile("nop; nop; nop; nop; nop" ::: "memory"); return n; }
static int (*resolve(void))(void) { early(1); return one; }
int it(void) __attribute__((ifunc("resolve")));
static void *other(void *data) { for (;;) early(3), usleep(1000); }
int main(int argc, char **argv)
{
	pthread_t thread;
	counter = 7;
	strcpy(name, "second");
	early(2);
	if (argc == 1)
		return it() - 1;
	pthread_create(&thread, NULL, other, NULL);
	puts("ready");
	fflush(stdout);
	for (;;)
		early(4), usleep(1000);
}
'''


def test_a_thread_that_has_no_thread_pointer_yet(tmp):
    """Resolvers of a static program run before it is set up: nothing is read there, and nothing faults. A static
    program has no values at all where programs may not read the FS base."""
    (tmp / 'app.c').write_text(EARLY)
    none, values = [None, None, None], [7, 'second', 0]
    of_static = none, values if may_read_fs_base() else none
    of_dynamic = [0, '', 0], values
    for options, (first, second) in (('-static', of_static), ('-static-pie', of_static), ('-pie', of_dynamic)):
        run('gcc', '-g', '-O1', '-w', '-pthread', options, '-o', 'app', 'app.c').ok()
        record('-p', './app:early n counter str(name) none=(&counter==0)', '--', './app').ok()
        rows = [json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()]
        found = [[row['args'][name] for name in ('n', 'counter', 'name', 'none')]
                 for row in rows if row['event'] == 'probe']
        check_equal(found, [[1, *first], [2, *second]], f'events of {options}')


def test_of_a_running_process(tmp):
    (tmp / 'app.c').write_text(EARLY)
    run('gcc', '-g', '-O1', '-w', '-pthread', '-o', 'app', 'app.c').ok()
    process = start('./app', 'on')
    process.wait_for('^ready$')
    record('--pid', process.pid, '--until', './app:early /n == 3/', '-p', './app:early n counter str(name)').ok()
    found = {(event['n'], event['counter']) for event in events() if event.name.endswith('early')}
    check(found and found <= {(3, 5), (4, 7)}, f'values: {found}')
    process.kill()


# ---- C++ -----------------------------------------------------------------------------------------

CPP = r"""
#include <cstdio>
#include <thread>
namespace net {
thread_local int limit = 77;
static thread_local long hits;
struct pool {
	static thread_local int used;
	int size;
	__attribute__((noinline)) int take(int n);
};
thread_local int pool::used = 3;
struct counted { int value; counted() : value(limit + 1) {} };
thread_local counted late;
int pool::take(int n)
{
	static thread_local int calls = 100;
	hits += n;
	used++;
	calls++;
	late.value += n;
	asm volatile("" ::: "memory");
	return size + calls;
}
}
int main()
{
	auto run = [] { net::pool pool = { 9 }; for (int i = 1; i < 4; i++) pool.take(i); };
	run();
	std::thread(run).join();
}
"""


def test_of_cpp(tmp):
    (tmp / 'app.cc').write_text(CPP)
    words = ('n', 'net::limit', 'net::hits', 'net::pool::used', 'calls', 'net::late.value', 'size')
    once = [[1, 77, 0, 3, 100, 0, 9], [2, 77, 1, 4, 101, 79, 9], [3, 77, 3, 5, 102, 81, 9]]
    for command in (('g++', '-O0'), ('g++', '-O2'), ('clang++', '-O1', '-no-pie')):
        run(program(command[0]), *command[1:], '-g', '-w', '-pthread', '-o', 'app', 'app.cc', seconds=120).ok()
        rows, _ = recorded('./app:net::pool::take', words)
        check_equal(rows, once + once, f'values of {command}')
