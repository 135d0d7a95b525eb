"""Calls that are left by exceptions, longjmp, setcontext, coroutines, signal handlers and threads that end: durations
and trees are those that the program itself measures."""
import json
import re
import shutil
from collections import Counter
from pathlib import Path

from kymotest import (NOBODY, babeltrace, check, check_equal, check_matches, check_same, events, kymo, need_uprobes,
                      record, report_json, run)

HERE = Path(__file__).parent


def compile_it(tmp):
    program = tmp / 'unwinding'
    run('g++', '-O1', '-g', '-fno-optimize-sibling-calls', '-o', program, HERE / 'unwinding.cc', '-pthread')
    return program


def truth_of(output):
    """(calls that returned, calls that did not, ns inside, ns outside) by path."""
    return {
        line.split()[0]: tuple(int(number) for number in line.split()[1:]) for line in output.splitlines()
        if line.startswith('w_')
    }


def tree_of(text):
    """Calls that returned, by path, as --tree shows them."""
    result, path = {}, []
    for line in text.splitlines():
        match = re.match(r'\s*\S+(?: ?[a-zµ]+)?\s+\S+(?: ?[a-zµ]+)?\s+([\d,]+)  ( *)\S*?(w_\w+)$', line)
        if match:
            path[len(match[2]) // 2:] = [match[3]]
            result['>'.join(path)] = int(match[1].replace(',', ''))
    return result


def sums_of(truth):
    result = {}
    for path, numbers in truth.items():
        name = path.split('>')[-1]
        result[name] = tuple(a + b for a, b in zip(result.get(name, (0, 0, 0, 0)), numbers))
    return result


def compare(truth, ends_open=False):
    calls = {item['symbol']: item for item in report_json()['calls']}
    sums = sums_of(truth)
    check_same(sorted(name for name in calls), sorted(sums), 'functions')
    for name, (count, unwound, inner, outer) in sums.items():
        call = calls[name]
        check_equal(call['count'], count, f'calls of {name} that returned')
        check_equal(call['without_entry'] + call['too_deep'] + call['over_losses'], 0,
                    f'calls of {name} that could not be paired')
        left = call['unwound'] + (call['without_return'] + call['open'] if ends_open else 0)
        check_equal(left, unwound, f'calls of {name} that were left')
        if count:
            total = call['duration_ns']['mean'] * count
            check(inner * 0.99 - 1000 <= total <= outer * 1.01 + 1000,
                  f'{name} took {total} ns; it says {inner} to {outer}')


def compare_tree(truth):
    tree = tree_of(kymo('report', '--tree', '--all').out)
    check_same('\n'.join(f'{path} {count}' for path, count in sorted(tree.items())),
               '\n'.join(f'{path} {numbers[0]}' for path, numbers in sorted(truth.items())), 'tree')


def compare_graph(truth):
    """Calls by their level, whether they returned or not: threads of lines that take turns have no path."""
    expected, shown = Counter(), Counter()
    for path, (count, unwound, *_) in truth.items():
        expected[path.count('>'), path.split('>')[-1]] += count + unwound
    for line in kymo('report', '--graph').out.splitlines():
        match = re.search(r'│ ( *)(w_\w+)\(', line)
        if match:
            shown[len(match[1]) // 2, match[2]] += 1
    check_equal(sorted(shown.items()), sorted(expected.items()), 'calls by level')


def show(tmp, way, n, *options, ends_open=False):
    truth = truth_of(
        record('-p', './unwinding:w_*', '-r', './unwinding:w_*', *options, '--', compile_it(tmp), way, n).out)
    check(truth, 'the program said nothing')
    compare(truth, ends_open)
    compare_tree(truth)
    return truth


def test_exceptions(tmp):
    show(tmp, 'throw', 200)


def test_a_call_within_one_of_its_own_that_throws(tmp):
    show(tmp, 'twice', 3)
    check(report_json()['calls'][0]['duration_ns']['min'] >= 50_000_000, 'less than it slept')


def test_longjmp(tmp):
    show(tmp, 'longjmp', 100)


def test_setcontext(tmp):
    show(tmp, 'setcontext', 100)


def test_coroutines(tmp):
    show(tmp, 'coroutines', 6)


def test_coroutines_that_go_on_to_each_other(tmp):
    show(tmp, 'ring', 6)


def test_coroutines_on_stacks_in_a_frame(tmp):
    """As the example of makecontext(3) has them."""
    compare_graph(show(tmp, 'coroutines-in-frame', 6))


def test_coroutines_in_a_frame_that_go_on_to_each_other(tmp):
    compare_graph(show(tmp, 'ring-in-frame', 6))


HANDED_ON = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <ucontext.h>

static ucontext_t back[2], coroutine;
static int which, done, turn;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

__attribute__((noinline)) int inner(int i) { __asm__ volatile("nop; nop; nop; nop; nop; nop"); return i + 1; }

__attribute__((noinline)) int job(int i)
{
	i = inner(i);
	swapcontext(&coroutine, &back[which]);
	return inner(i);
}

static void body(void)
{
	for (int i = 0; i < 100; i++)
		job(i);
	done = 1;
	swapcontext(&coroutine, &back[which]);
}

static void *run(void *arg)
{
	int me = (long)arg, is_over = 0;

	while (!is_over) {
		pthread_mutex_lock(&mutex);
		while (turn != me)
			pthread_cond_wait(&changed, &mutex);
		which = me;
		if (!done)
			swapcontext(&back[me], &coroutine);
		turn = !me;
		is_over = done;
		pthread_cond_signal(&changed);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	getcontext(&coroutine);
	coroutine.uc_stack.ss_size = 1 << 18;
	coroutine.uc_stack.ss_sp = malloc(1 << 18);
	makecontext(&coroutine, body, 0);
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}
"""


def test_a_coroutine_that_goes_on_in_another_thread(tmp):
    """Each call of job() begins in one thread, and returns in the other: a return is no earlier call's."""
    (tmp / 'handed.c').write_text(HANDED_ON)
    run('gcc', '-O1', '-o', 'handed', 'handed.c', '-pthread').ok()
    record('-p', './handed:job', '-r', './handed:job', '-p', './handed:inner', '-r', './handed:inner', '--',
           './handed').ok()
    calls = {item['symbol']: item for item in report_json()['calls']}
    for name, n in (('job', 100), ('inner', 200)):
        check_equal((calls[name]['count'], calls[name]['without_entry'], calls[name]['open'], calls[name]['unwound']),
                    (n, 0, 0, 0), f'calls of {name}')
    for view in ('--graph', '--tree'):
        kymo('report', view, '--all').ok()


def test_handlers_on_a_stack_for_signals(tmp):
    show(tmp, 'signals', 40)
    compare_graph(show(tmp, 'signals-in-frame', 40))


def test_threads_that_end_in_calls(tmp):
    show(tmp, 'threads', 8, ends_open=True)


ONE_AFTER_THE_OTHER = r"""
#include <pthread.h>
#include <unistd.h>

static volatile int go = 1;
__attribute__((noinline)) void leaf(long i) { usleep(100 + !i); }
__attribute__((noinline)) void ends(long i) { leaf(i); if (i % 2) pthread_exit(0); leaf(i); }
__attribute__((noinline)) void waits(long i) { leaf(i); while (go) pause(); }
static void *one(void *i) { ends((long)i); return 0; }
static void *two(void *i) { waits((long)i); return 0; }

int main(void)
{
	pthread_t thread;

	for (long i = 0; i < 50; i++) {
		pthread_create(&thread, 0, one, (void *)i);
		pthread_join(thread, 0);
	}
	for (long i = 0; i < 10; i++) {
		pthread_create(&thread, 0, two, (void *)i);
		usleep(1000);
		pthread_cancel(thread);
		pthread_join(thread, 0);
	}
	return 0;
}
"""


def test_a_thread_that_gets_the_stack_of_one_that_has_ended_shows_its_calls_over(tmp):
    """Nothing tells whether the call of the last one goes on."""
    (tmp / 'ended.c').write_text(ONE_AFTER_THE_OTHER)
    run('gcc', '-O1', '-o', tmp / 'ended', 'ended.c', '-pthread').ok()
    specs = [word for name in ('ends', 'waits') for way in ('-p', '-r') for word in (way, f'./ended:{name}')]
    record(*specs, '--', './ended').ok()
    calls = {item['symbol']: (item['count'], item['unwound'], item['open']) for item in report_json()['calls']}
    check_equal(calls, {'ends': (25, 25, 0), 'waits': (0, 9, 1)}, 'calls that returned, were left, are open')
    check_matches(kymo('report').out, r'^34 calls were left by ')


def test_through_the_kernel(tmp):
    need_uprobes()
    show(tmp, 'throw', 50, '--backend', 'kernel')
    show(tmp, 'coroutines', 2, '--backend', 'kernel')


def test_many_exceptions(tmp):
    n = 50_000
    record('-p', './unwinding:w_bare', '-r', './unwinding:w_bare', '--buffer', '16M', '--', compile_it(tmp), 'many', n)
    call, = report_json()['calls']
    check_equal((call['count'], call['unwound'], call['too_deep'], call['without_return'], call['open']),
                (0, 9 * n - 9, 0, 0, 9), 'calls that were left')
    text = kymo('report').out
    check('too many calls were nested' not in text, text)
    check(f'{9 * n - 9:,} calls were left by an exception' in text, text)


def test_the_stack_pointer_is_a_field(tmp):
    record('-p', './unwinding:w_leaf n=%di:u64', '-r', './unwinding:w_leaf', '--', compile_it(tmp), 'throw', 8)
    names = {name: fields for name, fields in ((event.name, event.fields) for event in events())}
    check(all('sp' in fields for fields in names.values()), f'no _sp: {names}')
    check('_sp' not in kymo('report', '--events').out, 'shown without --raw')
    check('_sp' not in kymo('report').out, 'shown in the summary')
    check(re.search(r' n=\d+ _sp=0x7f', kymo('report', '--events', '--raw').out), 'not shown with --raw')
    line = json.loads(kymo('report', '--events', '--raw', '--json').out.splitlines()[0])
    check(line['args']['_sp'] > 1 << 40, str(line))
    check('stack pointer' in Path('kymo.data/metadata').read_text(), 'the schema does not say what it is')


def test_only_pairs_have_it(tmp):
    program = compile_it(tmp)
    record('-p', './unwinding:w_leaf', '--', program, 'throw', 2)
    check(not any('_sp' in line for line in babeltrace()), 'entries alone have it')
    result = record('-p', './unwinding:w_leaf _sp=%di', '--', program, 'throw', 2)
    check("'_sp' is the name of a value that kymo records by itself" in result.err, result.err)


def test_a_glob_of_returns_leaves_out_what_has_none(tmp):
    program = compile_it(tmp)
    for who in ({}, {'user': NOBODY}):
        tmp.chmod(0o777)
        shutil.rmtree('kymo.data', ignore_errors=True)  # each has one of their own
        result = record('-p', './unwinding:w_*', '-r', './unwinding:*', '--', program, 'throw', 40, **who).ok()
        check(' and cannot be probed safely (first: _init: the file does not say where it ends; ' in result.err,
              result.err)
        check('through the kernel' not in result.err, result.err)
        compare(truth_of(result.out))
