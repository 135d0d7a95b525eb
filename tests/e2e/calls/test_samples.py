"""Of which hits a record is made: one in so many, the first ones, a rate; exact on many threads, and told by each
report."""
import collections
import json
import re

from kymotest import (babeltrace, check, check_equal, check_matches, event_counts, events, kymo, record, report_json,
                      run, target_path, timeout)

MANY = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline, noclone)) int hit(long n, long thread) { __asm__ volatile("" : "+r"(n)); return (int)n; }
static long n, pause_us;
static void *go(void *data) { for (long i = 0; i < n; i++) { hit(i, (long)data); if (pause_us) usleep(pause_us); } return NULL; }
int main(int argc, char **argv)
{
	pthread_t threads[64];
	int m = atoi(argv[1]), forks = argc > 4 ? atoi(argv[4]) : 0;
	n = atol(argv[2]);
	pause_us = argc > 3 ? atol(argv[3]) : 0;
	for (int i = 0; i < forks; i++) if (!fork()) { go((void *)99L); _exit(0); }
	for (int i = 0; i < forks; i++) wait(NULL);
	for (long i = 0; i < m; i++) pthread_create(&threads[i], NULL, go, (void *)i);
	for (int i = 0; i < m; i++) pthread_join(threads[i], NULL);
	return 0;
}
"""


def compile_it(tmp):
    (tmp / 'many.c').write_text(MANY)
    run('gcc', '-O1', '-pthread', '-o', 'many', 'many.c').ok()


def hits(name='many:hit'):
    return [event for event in events() if event.name == name]


# ---- which hits ----------------------------------------------------------------------------------


def test_one_in_so_many_of_one_thread(tmp):
    compile_it(tmp)
    for every in (1, 2, 7, 64, 1000):
        record('-p', f'./many:hit n=arg0 sample 1/{every}', '--', './many', 1, 2000).ok()
        check_equal([event['n'] for event in hits()], list(range(0, 2000, every)), f'one in {every}')


@timeout(120)
def test_one_in_so_many_of_many_threads(tmp):
    compile_it(tmp)
    for words in ((), ('--no-rseq', )):
        for every in (10, 64):
            record(*words, '-p', f'./many:hit sample 1/{every}', '--', './many', 8, 50000).ok()
            lost = report_json()['lost_events']
            check_equal(event_counts()['many:hit'] + lost, 400000 // every, f'one in {every}')


@timeout(120)
def test_the_first_ones_are_exactly_so_many(tmp):
    compile_it(tmp)
    for words in ((), ('--no-rseq', )):
        for n in (1, 10, 1000):
            for _ in range(3):
                record(*words, '-p', f'./many:hit first {n}', '--', './many', 16, 5000).ok()
                check_equal(len(hits()), n, f'first {n}')
    record('-p', './many:hit first 1000000', '--', './many', 4, 500).ok()
    check_equal(len(hits()), 2000, 'there are fewer')


def test_a_filter_comes_before_it(tmp):
    compile_it(tmp)
    for probe in ('./many:hit /arg0 % 3 == 2/ n=arg0 sample 1/10', './many:hit sample 1/10 /arg0 % 3 == 2/ n=arg0',
                  './many:hit sample 1/10 n=arg0 if arg0 % 3 == 2'):
        record('-p', probe, '--', './many', 1, 300).ok()
        check_equal([event['n'] for event in hits()], list(range(2, 300, 30)), probe)
    record('-p', './many:hit n=arg0 first 5 /arg0 >= 100/', '--', './many', 1, 300).ok()
    check_equal([event['n'] for event in hits()], list(range(100, 105)), 'the first of those')


def test_a_rate_is_kept(tmp):
    compile_it(tmp)
    record('-p', './many:hit sample 100/s', '--', './many', 4, 5000, 100).ok()
    times = [
        line['time_ns'] for line in map(json.loads,
                                        kymo('report', '--events', '--json').ok().out.splitlines())
        if line['event'] == 'probe'
    ]
    span = (times[-1] - times[0]) / 1e9
    check(span > 0.4, 'it took a while', span)
    # A tenth of a second's tokens are there at first, then one comes each 10 ms.
    check(0.5 * 100 * span <= len(times) <= 100 * span + 12, 'records', len(times), span)
    check(all(j - i <= 10 + (times[j] - times[i]) / 1e7 + 0.1 for i in range(len(times)) for j in range(i, len(times))),
          'a bucket of ten', times)


def test_a_rate_above_that_of_the_hits_leaves_none_out(tmp):
    compile_it(tmp)
    record('-p', './many:hit sample 1000000/s', '--', './many', 1, 500, 100).ok()
    check_equal(len(hits()), 500, 'all')


# ---- what a probe has several of -----------------------------------------------------------------


def test_all_exits_and_all_functions_of_a_probe_share_it(tmp):
    (tmp / 'exits.c').write_text("""
#include <stdlib.h>
__attribute__((noinline, noclone)) int odd(int n) { if (n % 3 == 0) return n + 1; if (n % 3 == 1) { __asm__ volatile("" ::: "memory"); return n * 7; } return -n; }
__attribute__((noinline, noclone)) int other(int n) { __asm__ volatile("" : "+r"(n)); return n; }
int main(void) { int sum = 0; for (int i = 0; i < 300; i++) sum += odd(i) + other(i); return sum == 0; }
""")
    run('gcc', '-O1', '-o', 'exits', 'exits.c').ok()
    record('-r', './exits:odd first 10', '-p', './exits:odd sample 1/50', '--', './exits').ok()
    check_equal(event_counts(), {'exits:odd%return': 10, 'exits:odd': 6}, 'of a function')
    record('-p', './exits:o[dt]* first 10', '--', './exits').ok()
    check_equal(sum(event_counts().values()), 10, 'of two functions together')
    record('-p', './exits:odd first 10', '-p', './exits:other first 20', '-p', './exits:other', '--', './exits').ok()
    check_equal(sorted(event_counts().values()), [10, 320], 'each probe has its own')


def test_all_locations_of_a_line_share_it(tmp):
    (tmp /
     'lines.c').write_text('static volatile int sink;\n'
                           'static inline __attribute__((always_inline)) void small(int n)\n{\n\tsink = n * 3;\n}\n' +
                           ''.join(f'__attribute__((noipa)) void f{i}(int n) {{ small(n + {i}); }}\n'
                                   for i in range(40)) + 'int main(void)\n{\n\tfor (int i = 0; i < 10; i++) {\n' +
                           ''.join(f'\t\tf{i}(sink);\n' for i in range(40)) + '\t}\n\treturn 0;\n}\n')
    run('gcc', '-g', '-O1', '-o', 'lines', 'lines.c').ok()
    record('-p', './lines:lines.c:4', '--', './lines').ok()
    all_hits = len(events())
    check(all_hits >= 400, 'the line is at many locations', all_hits)
    record('-p', './lines:lines.c:4 first 10', '--', './lines').ok()
    check_equal(len(events()), 10, 'first 10')
    record('-p', './lines:lines.c:4 sample 1/10', '-p', './lines:main first 3', '--', './lines').ok()
    check_equal(len(hits('lines:main')), 1, 'a probe behind it')
    check_equal(len(events()) - 1, (all_hits + 9) // 10, 'one in 10')


def test_each_process_has_its_own(tmp):
    compile_it(tmp)
    record('-p', './many:hit first 10', '--', '/bin/sh', '-c', './many 2 1000; ./many 1 1000; ./many 1 3').ok()
    check_equal(len(hits()), 23, 'programs')
    record('-p', './many:hit first 10', '--', './many', 1, 1000, 0, 3).ok()
    check_equal(sorted(collections.Counter(event['tid'] for event in hits()).values()), [10] * 4, 'forked children')


@timeout(240)
def test_many_processes_of_few_hits_have_their_share(tmp):
    compile_it(tmp)
    record('-p', './many:hit sample 1/20', '--', './many', 0, 1, 0, 600).ok()
    check(5 <= len(hits()) <= 80, 'one in 20 hits of 600 children of one', len(hits()))
    record('-p', './many:hit sample 1/10', '--', '/bin/sh', '-c', 'for i in $(seq 100); do ./many 1 1; done').ok()
    check(1 <= len(hits()) <= 35, 'one in 10 hits of 100 programs', len(hits()))
    record('-p', './many:hit sample 10/s', '--', '/bin/sh', '-c', 'for i in $(seq 30); do ./many 1 100; done').ok()
    check(len(hits()) < 30, 'a rate has no bucket that is full at first', len(hits()))


def test_aggregations_are_of_samples(tmp):
    compile_it(tmp)
    record('--count', './many:hit sample 1/10 by arg1', '--hist', './many:hit /arg0 < 100/ sample 1/7 arg0', '-r',
           './many:hit sample 1/5', '--hist', 'duration', '--count', './many:hit /duration < 1000s/ sample 1/4',
           '--hist', './many:hit sample 1/7 /arg0 < 100/ arg0', '--count', './many:hit sample 1/4 /duration < 1000s/',
           '--', './many', 1, 1000).ok()
    by_thread, values, calls, short, turned, turned_short = report_json()['aggregations']
    check_equal((turned['rows'][0]['count'], turned['rows'][0]['sum'], turned_short['hits']),
                (15, sum(range(0, 100, 7)), 250), 'the sample before the filter')
    check_equal([(row['keys'], row['count']) for row in by_thread['rows']], [[[0], 100]] and [([0], 100)], 'counts')
    check_equal((values['rows'][0]['count'], values['rows'][0]['sum']), (15, sum(range(0, 100, 7))), 'values')
    check_equal((calls['hits'], calls['without_entry']), (200, 0), 'of the returns one in five, each with its entry')
    check_equal((short['hits'], short['probe']), (250, './many:hit /duration < 1000s/ sample 1/4'),
                'before the duration is known')
    check_matches(kymo('report').ok().out, r'count of \./many:hit sample 1/10 by arg1  100 hits', 'the heading says so')


# ---- reports -------------------------------------------------------------------------------------


def test_each_report_says_that_hits_were_left_out(tmp):
    compile_it(tmp)
    record('--stack', '-p', './many:hit sample 1/100', '-p', 'libc:exit first 3', '-r', './many:hit sample 50/s', '--',
           './many', 1, 1000).ok()
    sentences = {
        'sampled: many:hit: one in 100 hits is recorded, counted in each process',
        'sampled: libc:exit: the first 3 hits of each process are recorded',
        'sampled: many:hit%return: at most 50 hits a second of each process are recorded, on the average'
    }
    for words in ((), ('--events', ), ('--graph', ), ('--tree', ), ('--callers', 'hit'), ('--callees', 'go')):
        out = kymo('report', *words).ok().out
        check_equal(set(line for line in out.splitlines() if line.startswith('sampled')), sentences, f'report {words}')
    check_matches(
        kymo('report', '--flame').ok().out, r'records with a stack; not all hits are recorded', 'a flame graph')
    check_equal({probe['name']: probe.get('sample') for probe in report_json()['probes']},
                {'many:hit': '1/100', 'libc:exit': 'first 3', 'many:hit%return': '50/s'}, 'JSON')
    last = [json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()]
    check_equal({event['name']: event['sample'] for event in last if event['event'] == 'sampled'},
                {'many:hit': '1/100', 'libc:exit': 'first 3', 'many:hit%return': '50/s'}, 'lines of JSON')
    babeltrace()
    record('-p', './many:hit', '--', './many', 1, 10).ok()
    check('sampled' not in kymo('report').ok().out and 'sample' not in report_json()['probes'][0],
          'nothing is said where all are there')


PACED = """
#include <unistd.h>
__attribute__((noinline, noclone)) int paced(int n) { usleep(100); return n; }
int main(void) { int sum = 0; for (int i = 0; i < 60; i++) { sum += paced(i); usleep(5000); } return sum == 0; }
"""


def test_where_entries_and_returns_are_left_out_there_are_no_durations(tmp):
    (tmp / 'paced.c').write_text(PACED)
    run('gcc', '-O1', '-o', 'paced', 'paced.c').ok()
    sentence = 'no durations of 1 function: that takes all entries, or all returns, without a sample or a filter'
    for entry, leave in ((' sample 1/2', ' sample 1/3'), (' /arg0 % 2 == 0/', ' /retval % 3 == 0/'),
                         (' first 20', ' /retval % 3 == 0/')):
        record('-p', f'./paced:paced{entry}', '-r', f'./paced:paced{leave}', '--', './paced').ok()
        check_equal(report_json()['calls'], [], f'pairs of {entry} and {leave}')
        check(sentence in kymo('report').ok().out.splitlines(), 'the report says why', entry, leave)
    for entry, leave, n in ((' sample 1/2', '', 30), ('', ' sample 1/3', 20), (' first 20', '', 20),
                            (' /arg0 % 2 == 0/', '', 30)):
        record('-p', f'./paced:paced{entry}', '-r', f'./paced:paced{leave}', '--', './paced').ok()
        call, = report_json()['calls']
        check_equal(call['duration_ns']['count'], n, f'calls of {entry} and {leave}')
        # A machine with more to do than it has processors makes one or two calls as long; wrong pairs would all be.
        paused = sum(bucket['count'] for bucket in call['duration_ns']['histogram'] if bucket['low'] >= 4000000)
        check(paused <= n / 4, 'calls do not last as long as the pause', call['duration_ns'])
    record('-p', './paced:paced sample 1/2', '-p', './paced:paced', '-r', './paced:paced sample 1/3', '--',
           './paced').ok()
    check_equal(report_json()['calls'][0]['duration_ns']['count'], 20, 'all entries of another probe do')


# ---- words ---------------------------------------------------------------------------------------


def test_variables_may_have_these_names(tmp):
    (tmp / 'named.c').write_text(
        '__attribute__((noinline, noclone)) int f(int first, int sample) { __asm__ volatile("" ::: "memory"); return first + sample; }\n'
        'int main(void) { int sum = 0; for (int i = 0; i < 9; i++) sum += f(i, 2 * i); return sum == 0; }\n')
    run('gcc', '-g', '-O1', '-o', 'named', 'named.c').ok()
    record('-p', './named:f first sample first 4', '--', './named').ok()
    check_equal([(event['first'], event['sample']) for event in hits('named:f')], [(n, 2 * n) for n in range(4)],
                'values')
    record('--sum', './named:f first 4 first by sample', '--', './named').ok()
    check_equal(sorted((row['keys'], row['sum']) for row in report_json()['aggregations'][0]['rows']),
                [([2 * n], n) for n in range(4)], 'an aggregation')


def test_bad_words_are_told_with_their_column():
    path = target_path('callmany')
    at = len(path) + len(':work_a ') + 1
    for words, sentence in [
        (('-p', f'{path}:work_a sample 2/3'), f'column {at + 7}: expected one in so many hits'),
        (('-p', f'{path}:work_a sample 1/0'), f'column {at + 7}: expected one in so many hits'),
        (('-p', f'{path}:work_a sample 1/2x'), f'column {at + 7}: expected one in so many hits'),
        (('-p', f'{path}:work_a sample 10'), f'column {at + 7}: expected one in so many hits'),
        (('-p', f'{path}:work_a sample 10/m'), f'column {at + 7}: expected one in so many hits'),
        (('-p', f'{path}:work_a sample 99999999999/s'), f'column {at + 7}: expected one in so many hits'),
        (('-p', f'{path}:work_a first 0'), f'column {at + 6}: expected a number of records'),
        (('-p', f'{path}:work_a first 3x'), f'column {at + 6}: expected a number of records'),
        (('-p', f'{path}:work_a first 18446744073709551617'), f'column {at + 6}: expected a number of records'),
        (('-p', f'{path}:work_a first 3 sample 1/2'), f"column {at + 8}: a probe has one of 'sample' and 'first'"),
        (('--until', f'{path}:work_a first 3', '-p', 'libc:malloc'), "leave 'sample' and 'first' out"),
        (('--backend', 'kernel', '-p', f'{path}:work_a sample 1/3'), 'hits are sampled in the process itself'),
        ([word for _ in range(33) for word in ('-p', f'{path}:work_a first 3')],
         "33 probes have 'sample' or 'first', and a recording has room for 32")
    ]:
        record(*words, '--', 'true').refused(re.escape(sentence), status=2)
    record(*[word for n in range(32) for word in ('-p', f'{path}:work_a n{n}=arg0 first {n + 1}')][:12], '--', path,
           100, 'work_a').ok()
    check_equal(report_json()['events'], sum(range(1, 7)), 'six probes of one location')
