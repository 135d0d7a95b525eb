"""Arguments of SDT probes are keys and values of aggregations."""
from kymotest import check_equal, check_matches, program, record, report_json, run

PROGRAM = r'''
#include <sys/sdt.h>
#include <string.h>
#include <unistd.h>
static const char *names[] = { "in", "out", "idle" };
static long long wide;
__attribute__((noinline)) static void first(int i, long size) { DTRACE_PROBE3(app, step, i % 3, size, names[i % 3]); }
/* The same probe, with operands elsewhere and of another width. */
__attribute__((noinline)) static void second(long i)
{
	wide = i % 3;
	DTRACE_PROBE3(app, step, wide, 100, names[2]);
}
__attribute__((noinline)) static void work(int i)
{
	DTRACE_PROBE2(app, job__start, i & 1, names[i & 1]);
	usleep(100);
	DTRACE_PROBE1(app, job__done, i);
}
int main(void)
{
	for (int i = 0; i < 12; i++) {
		first(i, 10 * i);
		second(i);
		work(i);
	}
	return 0;
}
'''


def build(tmp):
    (tmp / 'app.c').write_text(PROGRAM)
    run(program('gcc'), '-O1', '-o', 'app', 'app.c', seconds=60).ok()


def rows(i=0):
    return {tuple(row['keys']): row for row in report_json()['aggregations'][i]['rows']}


def test_arguments_are_keys_and_values(tmp):
    build(tmp)
    result = record('--count', 'm app:step by arg0, str(arg2)', '--sum', 'm app:step arg1 by arg0', '--hist',
                    'm app:step arg1', '--', './app').ok()
    check_equal({keys: row['count'] for keys, row in rows(0).items()},
                {(0, 'in'): 4, (1, 'out'): 4, (2, 'idle'): 8, (0, 'idle'): 4, (1, 'idle'): 4}, 'counts')
    check_equal({keys: row['sum'] for keys, row in rows(1).items()},
                {(i, ): 400 + sum(10 * k for k in range(i, 12, 3)) for i in range(3)}, 'sums')
    check_matches(result.err + result.out, r'arg0 +str\(arg2\) +count', 'the table')


def test_of_the_marker_that_begins_a_pair(tmp):
    build(tmp)
    record('--hist', 'm app:job__done duration by arg0, str(arg1)', '--', './app').ok()
    check_equal({keys: row['count'] for keys, row in rows().items()}, {(0, 'in'): 6, (1, 'out'): 6}, 'durations')


def test_a_probe_with_fewer_arguments_is_left_out(tmp):
    build(tmp)
    result = record('--count', 'm app:* by arg2', '--', './app').ok()
    check_equal({keys[0] != 0: row['count'] for keys, row in rows().items()}[True] > 0, True, 'what has three')
    check_matches(result.err, r'it has \d arguments?, and no arg2', 'what has fewer')
