"""Keys of aggregations that are texts and words: as many hits as the program itself counts, by each of them."""
import collections
import json
import re

from kymotest import (KYMO, check, check_equal, check_matches, events, eventually, is_recorded, kymo, program, record,
                      report_json, run, skip, start, timeout, waits)

TEXTS = r'''
#include <stdint.h>
#include <stdio.h>
struct item { int number; char name[8]; double weight; };
static const char *const names[] = { "set", "get", "", "a\tb", "\xff\xfe", "0123456789012345678901234567890123456789" };
__attribute__((noipa)) long take(const char *name, int n, struct item *item, double d) { return n; }
__attribute__((noipa)) long nothing(const char *name) { return 0; }
__attribute__((noipa)) long weigh(struct item *item, long n) { return n; }
int main(void)
{
	struct item items[3] = { { 1, "one", 0.5 }, { 2, "two", 1.5 }, { 3, "eightchr", 2.5 } };
	long sum = 0;
	for (int i = 0; i < 600; i++)
		sum += take(names[i % 6], i % 4, &items[i % 3], i * 0.5);
	nothing((const char *)16);
	nothing("here");
	for (long i = 0; i < 40; i++)
		weigh(i % 4 ? &items[i % 4 - 1] : (struct item *)16, i - 20);
	return sum == 0;
}
'''
NAMES = ['set', 'get', '', 'a\tb', '\\xff\\xfe', '0123456789' * 4]


def build(tmp, name, text, *options, suffix='c'):
    (tmp / f'{name}.{suffix}').write_text(text)
    run(program('g++' if suffix == 'cc' else 'gcc'), '-g', '-O1', '-w', *options, '-o', name, f'{name}.{suffix}',
        seconds=60).ok()


def tables():
    """Of each aggregation {keys: count}."""
    return [{tuple(row['keys']): row['count'] for row in table['rows']} for table in report_json()['aggregations']]


@timeout(120)
def test_texts_are_keys(tmp):
    build(tmp, 'texts', TEXTS)
    place = './texts:take'
    result = record('--count', f'{place} by str(name)', '--count', f'{place} by str(arg0), n', '--count',
                    f'{place} by item->name', '--count', f'{place} by str(name, 3)', '-r', place, '--hist',
                    'duration by str(name), n', '--count', './texts:nothing by str(name)', '--', './texts').ok()
    by_name, by_both, by_array, by_piece, by_call, faults = tables()
    wanted = [name.encode().decode('unicode_escape') if '\\' in name else name for name in NAMES]
    texts = {keys[0]: count for keys, count in by_name.items()}
    check_equal(sorted(texts.values()), 6 * [100], 'by the text')
    check_equal({name: texts.get(name) for name in wanted if name.isascii()},
                {name: 100 for name in wanted if name.isascii()}, 'the texts')
    both = collections.Counter((i % 6, i % 4) for i in range(600))
    check_equal(sorted(by_both.values()), sorted(both.values()), 'by two keys')
    check_equal({keys: count for keys, count in by_both.items() if keys[0] == 'set'},
                {('set', n): both[0, n] for n in range(4) if both[0, n]}, 'by two keys, of one text')
    check_equal(by_call, by_both, 'calls by what they are entered with')
    check_equal(by_array, {('one', ): 200, ('two', ): 200, ('eightchr', ): 200}, 'an array of characters')
    check_equal({keys[0]: count for keys, count in by_piece.items() if keys[0].isascii()},
                {'set': 100, 'get': 100, '': 100, 'a\tb': 100}, 'the beginnings of texts')
    check_equal(by_piece[('012…', )], 100, 'a text that is cut')
    check_equal(faults, {(None, ): 1, ('here', ): 1}, 'a text that cannot be read')
    check_matches(result.out, r'str\(name\) +count\n(.*\n){,5} +set +100 ', 'the table')
    check_matches(result.out, r'\(fault\) +1', 'a fault in a table')
    record('--count', './texts:nothing by str(name)', '--', './texts').ok()
    check_equal(
        sorted(
            (event.fields.get('key1'), event['count']) for event in events() if event.name == 'count:./texts:nothing'),
        [('""', 1), ('"here"', 1)], 'rows by babeltrace2')


@timeout(120)
def test_numbers_that_cannot_be_read_are_a_row_of_their_own(tmp):
    """Records without a fault are added by another way than those with one."""
    build(tmp, 'texts', TEXTS)
    record('--count', './texts:weigh by item->number, tid', '--sum', './texts:weigh n by item->number', '--sum',
           './texts:weigh item->number', '--', './texts').ok()
    by_both, sums, total = (table['rows'] for table in report_json()['aggregations'])
    check_equal({row['keys'][0]: row['count'] for row in by_both}, {None: 10, 1: 10, 2: 10, 3: 10}, 'by both')
    check_equal(len({row['keys'][1] for row in by_both}), 1, 'threads')
    check_equal({row['keys'][0]: row['sum'] for row in sums},
                {number or None: sum(i - 20 for i in range(40) if i % 4 == number) for number in range(4)}, 'sums')
    check_equal([(row['count'], row['sum']) for row in total], [(30, 60)], 'what could be read')
    check_equal([table['faults'] for table in report_json()['aggregations']], [0, 0, 10], 'what could not')


@timeout(120)
def test_arguments_of_the_probe_may_be_of_any_type(tmp):
    build(tmp, 'texts', TEXTS)
    record('-p', './texts:take str(name) d item->weight buf(item, 12)', '--count', 'by n', '--sum', 'n by str(name)',
           '--', './texts').ok()
    by_number, by_name = tables()
    check_equal(by_number, {(n, ): 150 for n in range(4)}, 'by the last one')
    check_equal(by_name[('set', )], 100, 'by a text of the aggregation beside one of the probe')
    sums = {row['keys'][0]: row['sum'] for row in report_json()['aggregations'][1]['rows']}
    check_equal(sums['set'], sum(i % 4 for i in range(0, 600, 6)), 'a sum by a text')
    for words, sentence in (
        (('--count', './texts:take by d'),
         "column 17: keys are integers and texts, and 'd' is bytes or a floating-point number"),
        (('--count', './texts:take by buf(item, 4)'),
         "column 17: keys are integers and texts, and 'buf(item, 4)' is bytes or a floating-point number"),
        (('--sum', './texts:take item->name by n'),
         "column 14: aggregations are of integers, and 'item->name' is a text, bytes or a floating-point number"),
        (('--sum', './texts:take func by n'), "column 14: 'func' is text, and sum takes a number; write 'by func'")):
        result = record(*words, '--', './texts')
        check_equal((result.status, result.err.splitlines()[0]), (2, f'kymo: {sentence}'), f'sentence about {words}')


@timeout(60)
def test_a_histogram_is_titled_by_its_keys(tmp):
    """Names that take the room of the keys are in the heading alone."""
    build(tmp, 'texts', TEXTS)
    result = record('--hist', './texts:take arg1 by str(item->name, 7), n % 2', '--hist', './texts:take arg1 by n', '--',
                    './texts').ok()
    check_matches(result.out, r'by str\(item->name, 7\), n % 2  600 hits, 6 rows$', 'the heading')
    titles = set(re.findall(r'(?<=  )(\S+, n % 2 \d)(?=  )', result.out))
    check_equal(titles, {f'{name}, n % 2 {n}' for name in ('one', 'two', 'eightch…') for n in (0, 1)}, 'the titles')
    check_matches(result.out, r'^  n 0  always 0 .*n 1  always 1 ', 'a short name stays')


MANY = r'''
#include <stdio.h>
__attribute__((noipa)) void take(const char *name) { }
int main(void)
{
	char name[32];
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 70000; i++) {
			sprintf(name, "n%d", i);
			take(name);
		}
}
'''


@timeout(120)
def test_tables_of_texts_are_bounded(tmp):
    build(tmp, 'many', MANY)
    record('--count', './many:take by str(arg0)', '--rows', '1000', '--buffer', '256M', '--', './many').ok()
    table = report_json()['aggregations'][0]
    check_equal((len(table['rows']), table['hits'], table['lost'], {row['count'] for row in table['rows']}),
                (1000, 2000, 138000, {2}), 'rows')
    record('--count', './many:take by str(arg0)', '--rows', '100000', '--buffer', '256M', '--', './many').ok()
    table = report_json()['aggregations'][0]
    rows = {row['keys'][0]: row['count'] for row in table['rows']}
    check_equal((len(rows), rows['n0'], rows['n65535'], table['hits'], table['lost']),
                (65536, 2, 2, 2 * 65536, 2 * (70000 - 65536)), 'texts beyond 65,536 find no room')


WORDS = r'''
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
namespace shop {
__attribute__((noipa)) void step_one(int fd) { asm volatile("nopl 0x100(%rax)"); }
template<typename T> __attribute__((noipa)) void step_two(T fd) { asm volatile("nopl 0x100(%rax)"); }
}
static void work(int n)
{
	for (int i = 0; i < n; i++) {
		shop::step_one(i % 3);
		shop::step_two<int>(1);
	}
}
static void *run(void *data)
{
	work(300);
	return 0;
}
int main(int argc, char **argv)
{
	char name[32] = "first";
	int n;
	pthread_t thread;
	do {
		prctl(PR_SET_NAME, name);
		pthread_create(&thread, 0, run, 0);
		pthread_join(thread, 0);
		work(600);
		puts("done");
		fflush(stdout);
	} while (argc > 1 && scanf("%31s", name) == 1);
}
'''


@timeout(120)
def test_words_are_keys(tmp):
    build(tmp, 'words', WORDS, '-pthread', suffix='cc')
    result = record('--count', './words:shop::step_* by func', '--count', './words:shop::step_* by probe', '--count',
                    './words:shop::step_one by cpu, pid, tid', '-r', './words:shop::step_one', '--hist',
                    'duration by func', '--count', './words:shop::step_one by fd, comm', '--', './words').ok()
    by_function, by_probe, by_cpu, durations, by_comm = tables()
    check_equal(by_function, {('_ZN4shop8step_oneEi', ): 900, ('_ZN4shop8step_twoIiEEvT_', ): 900}, 'by function')
    check_equal(by_probe, {(f'words:{function}', ): count for (function, ), count in by_function.items()}, 'by probe')
    check_equal(durations, {('_ZN4shop8step_oneEi', ): 900}, 'calls by function')
    check_equal((sum(by_cpu.values()), len({keys[2] for keys in by_cpu}), len({keys[1] for keys in by_cpu})),
                (900, 2, 1), 'by CPU, process and thread')
    check_equal(by_comm, {(fd, 'first'): 300 for fd in range(3)}, 'by the name of the thread')
    check_matches(result.out, r'func +count\n +shop::step_one\(int\) +900', 'names in the table')
    check_matches(
        kymo('report', '--events').ok().out,
        r'(?m)^ +[0-9.]+ \[---\] count:\./words:shop::step_\* func="shop::step_one\(int\)" count=900$', 'a row')
    row = next(
        json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines() if '"func"' in line)
    check_equal((row['cpu'], row['tid'], row['args']['func'][:12]), (None, None, 'shop::step_o'), 'a row in JSON')
    check_equal(
        {tuple(row['keys']) for row in json.loads(kymo('report', '--json').ok().out)['aggregations'][0]['rows']},
        {('shop::step_one(int)', ), ('shop::step_two<int>(int)', )}, 'names in JSON')


@timeout(120)
@waits
def test_a_thread_is_counted_under_the_name_that_it_has_when_its_hits_are_read(tmp):
    build(tmp, 'words', WORDS, '-pthread', suffix='cc')
    program = start('./words', 'again')
    program.wait_for('done')
    top = start(KYMO, 'top', '--count', './words:shop::step_one by comm, tid', '--pid', program.pid)
    eventually(lambda: is_recorded(program.pid), 'it is recorded')
    for name in ('second', 'third', 'fourth'):
        program.send(f'{name}\n')
        top.wait_for(rf'^ +{name} +{program.pid} +600 ')
    for name in ('second', 'third', 'fourth'):  # of the table at the end
        check_matches(top.out.rpartition('count of')[2], rf'\n +{name} +{program.pid} +600 ', name)
    program.end().ok()


def test_names_of_functions_and_probes_are_no_numbers():
    for word in ('func', 'probe'):
        result = record('-p', f'libc:malloc /{word} > 0/', '--', 'true')
        check_equal((result.status, result.err.splitlines()[0]),
                    (2, 'kymo: column 14: a text is recorded, or compared with another: str(arg0) == "text"'), word)


def test_the_names_of_parameters_of_libc_are_keys(tmp):
    vars = kymo('list', '--vars', 'libc:write')
    if 'has no debug information' in vars.err:
        skip('the debug symbols of libc are not installed')
    record('--count', 'libc:write by fd, comm', '--', 'sh', '-c',
           'echo one; echo two; /usr/bin/python3 -c "import os; os.write(2, b\'x\')"').ok()
    check_equal(tables(), [{(1, 'sh'): 2, (2, 'python3'): 1}], 'writes of a shell and its child')


MANY_TEXTS = r'''
#include <stdio.h>
__attribute__((noinline)) int take(const char *text) { __asm__ volatile("" : "+r"(text)); return *text; }
int main(void)
{
	char text[16];
	int sum = 0;
	for (int i = 0; i < 70000; i++) {
		snprintf(text, sizeof(text), "t%d", i);
		sum += take(text);
	}
	return sum == 3;
}
'''


def test_texts_have_a_limit_that_is_told(tmp):
    build(tmp, 'texts', MANY_TEXTS)
    result = record('--rows', 100000, '--count', './texts:take by str(arg0)', '--', './texts').ok()
    check_matches(result.err, r'the tables have room for 65536 different texts in all: 4464 hits found none', 'the warning')
    check_matches(result.out, r'4,464 hits are in no row: there was no room for their keys', 'the table')
    result = record('--count', './texts:take by str(arg0)', '--', './texts').ok()
    check_matches(result.err, r'a table of 16384 rows was full: 53616 hits', 'the warning')
