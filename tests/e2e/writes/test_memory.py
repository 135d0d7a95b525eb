"""Probes that write memory: the program goes on with what was written, and each write is told."""
import os
import signal
import time

from kymotest import (check, check_equal, check_matches, check_text_intact, events, eventually, kymo, record,
                      report_json, run, start, start_record, timeout)

ALLOW = '--allow-write'

APP = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
enum state { IDLE, BUSY, CLOSED };
struct conn {
	int flags;
	enum state state;
	short s;
	unsigned bits : 3;
	struct conn *next;
	char name[8];
	double rate;
	float share;
	_Bool ok;
	uint8_t byte;
};
const int fixed = 5;
long counter;
static struct conn first = { .flags = 40 };
__attribute__((noipa)) int handle(struct conn *c, int n) { return c->flags + n; }
static void show(const char *who, struct conn *c, int result)
{
	printf("%s %d: %d %d %d %d %s %s %g %g %d %d %ld %d\n", who, result, c->flags, c->state, c->s, c->bits,
	       c->next == &first ? "first" : c->next ? "other" : "none", c->name, c->rate, c->share, c->ok, c->byte,
	       counter, first.flags);
	fflush(stdout);
}
int main(int argc, char **argv)
{
	struct conn local = { .flags = 1, .name = "abc", .next = &first };
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (argc < 2) {
		show("it", &local, handle(&local, 2));
	} else if (!strcmp(argv[1], "read-only")) {
		local.next = (struct conn *)(pages + 4096);
		mprotect(pages, 4096, PROT_READ);
		munmap(pages + 4096, 4096);
		printf("%d %d\n", handle((struct conn *)pages, 0), handle(&local, 0));
	} else if (!strcmp(argv[1], "straddle")) {
		printf("%d\n", handle((struct conn *)(pages + 4094), 0));
	} else if (!strcmp(argv[1], "fork")) {
		if (!fork()) {
			show("child", &local, handle(&local, 2));
			_exit(0);
		}
		wait(NULL);
		show("parent", &local, handle(&local, 2));
	} else if (!strcmp(argv[1], "vfork")) {
		if (!vfork()) {
			handle(&local, 2);
			_exit(0);
		}
		show("parent", &local, 0);
	} else {
		char line[16];

		while (fgets(line, sizeof(line), stdin)) {
			local.flags = 1;
			printf("%d\n", handle(&local, 2));
			fflush(stdout);
		}
	}
	return 0;
}
"""


def build(tmp, *options):
    (tmp / 'app.c').write_text(APP)
    run('gcc', '-g', '-O1', '-o', 'app', 'app.c', *options).ok()


def says(*words, program=('./app', )):
    """What the program prints, and its records."""
    result = record(ALLOW, *words, '--', *program).ok()
    return result.out, events()


def written(event):
    return {name: written_as(event, name) for name in event.fields if name.startswith('set_')}


def written_as(event, name):
    return float(event.fields[name]) if name in ('set_rate', 'set_share') else event[name]


# ---- what is written -----------------------------------------------------------------------------


def test_members_of_each_type(tmp):
    build(tmp)
    unchanged = 'it 3: 1 0 0 0 first abc 0 0 0 0 0 40\n'
    check_equal(run('./app').ok().out, unchanged)
    for words, line, values in (
        ('set c->flags = 7', 'it 9: 7 0 0 0 first abc 0 0 0 0 0 40', {'set_flags': 7}),
        ('set c->flags=-1', 'it 1: -1 0 0 0 first abc 0 0 0 0 0 40', {'set_flags': -1}),
        ('set c->state = CLOSED', 'it 3: 1 2 0 0 first abc 0 0 0 0 0 40', {'set_state': 2}),
        ('set c->s = -2 set c->next = 0', 'it 3: 1 0 -2 0 none abc 0 0 0 0 0 40', {'set_s': -2, 'set_next': 0}),
        ("set c->name[1] = 'X'", 'it 3: 1 0 0 0 first aXc 0 0 0 0 0 40', {'set_name': 88}),
        ('set c->rate = 2.5 set c->share = n', 'it 3: 1 0 0 0 first abc 2.5 2 0 0 0 40',
         {'set_rate': 2.5, 'set_share': 2.0}),
        ('set c->ok = 17 set c->byte = 300', 'it 3: 1 0 0 0 first abc 0 0 1 44 0 40', {'set_ok': 1, 'set_byte': 44}),
        ('set counter = (counter - 5)', 'it 3: 1 0 0 0 first abc 0 0 0 0 -5 40', {'set_counter': -5}),
        ('set c->next->flags = c->flags|8', 'it 3: 1 0 0 0 first abc 0 0 0 0 0 9', {'set_flags': 9}),
        ('set *&c->flags = 4', 'it 6: 4 0 0 0 first abc 0 0 0 0 0 40', {'set_flags': 4}),
        ('set *(short *)(arg0 + 8) = 3', 'it 3: 1 0 3 0 first abc 0 0 0 0 0 40', {'set_memory': 3}),
        ('set ((struct conn *)arg0)->flags = 5', 'it 7: 5 0 0 0 first abc 0 0 0 0 0 40', {'set_flags': 5}),
        ('/n == 1/ set c->flags = 7', unchanged[:-1], None),
    ):
        out, records = says('-p', f'./app:handle {words}')
        check_equal(out, line + '\n', words)
        check_equal([written(event) for event in records], [values] if values else [], words)


def test_other_values_of_a_record_are_those_before_all_writes(tmp):
    build(tmp)
    out, records = says('-p', './app:handle set c->flags = 7 a=c->flags set c->name[0] = 0 n=str(c->name) stack=$stack0')
    check_equal(out, 'it 9: 7 0 0 0 first  0 0 0 0 0 40\n')
    check_equal([(event['a'], event.fields['n'], written(event)) for event in records],
                [(1, '"abc"', {'set_flags': 7, 'set_name': 0})])
    out, records = says('--no-rseq', '-p', './app:handle set c->flags = 7 set %si = 3 c->flags')
    check_equal(out, 'it 10: 7 0 0 0 first abc 0 0 0 0 0 40\n')
    check_equal([(event['flags'], event['set_si'], event['set_flags']) for event in records], [(1, 3, 7)])


def test_memory_is_written_beside_returns_and_aggregations(tmp):
    """These add values of their own to the record."""
    build(tmp)
    changed = 'it 9: 7 0 0 0 first abc 0 0 0 0 0 40\n'
    for words in (('-r', './app:handle retval'), ('-r', './app:handle entry(n) retval duration'),
                  ('--count', 'by c->flags, n'), ('--stack', ), ('--stack', '--frame-pointers')):
        out, _ = says('-p', './app:handle set c->flags = 7 n', *words)
        check_equal(out.splitlines()[0] + '\n', changed, words)
    record(ALLOW, '-p', './app:handle set c->flags = 7', '--count', 'by c->flags, n', '--', './app').ok()
    check_equal([row['keys'] for row in report_json()['aggregations'][0]['rows']], [[1, 2]], 'before the write')


def test_writes_of_one_name_are_numbered(tmp):
    build(tmp)
    out, records = says('-p', './app:handle set c->name[0] = 88 set c->name[1] = 89 set c->flags = 7 '
                        'set c->next->flags = 9')
    check_equal(out, 'it 9: 7 0 0 0 first XYc 0 0 0 0 0 9\n')
    check_equal([written(event) for event in records],
                [{'set_name': 88, 'set_name_2': 89, 'set_flags': 7, 'set_flags_2': 9}])


def test_a_function_that_returns_at_once_has_written_before(tmp):
    build(tmp)
    out, _ = says('-p', './app:handle set c->flags = 7 return 9')
    check_equal(out, 'it 9: 7 0 0 0 first abc 0 0 0 0 0 40\n')


def test_without_debug_information_on_a_program_of_debian(tmp):
    """What sleep(1) asks for is made shorter."""
    before = time.monotonic()
    record(ALLOW, '-p', 'libc:clock_nanosleep set *(long *)arg2 = 0', '--', 'sleep', '1000').ok()
    check(time.monotonic() - before < 500, 'it has slept')
    check_equal([written(event) for event in events()], [{'set_arg2': 0}])


# ---- what is not ---------------------------------------------------------------------------------


def test_memory_that_is_read_only_or_missing_stays(tmp):
    build(tmp)
    for words, line, faults in (('set c->flags = 7 c->flags', '0 7', [0b10, 0]),
                                ('set c->next->flags = 7', '0 1', [1, 1])):
        out, records = says('-p', f'./app:handle {words}', program=('./app', 'read-only'))
        check_equal((out, sorted(event['faults'] for event in records)), (line + '\n', sorted(faults)), words)
    out, records = says('-p', './app:handle set c->flags = -1', program=('./app', 'straddle'))
    check_equal((out, [event['faults'] for event in records]), ('0\n', [1]))
    out, records = says('-p', './app:handle set fixed = 9')
    check_equal([event['faults'] for event in records], [1])
    check_matches(kymo('report', '--events').ok().out, r' app:handle set_fixed=\(fault\)$')


def test_children_are_not_changed_unless_they_are_followed(tmp):
    build(tmp)
    out, records = says('--no-follow', '-p', './app:handle set c->flags = 7', program=('./app', 'fork'))
    check_equal(out, 'child 3: 1 0 0 0 first abc 0 0 0 0 0 40\nparent 9: 7 0 0 0 first abc 0 0 0 0 0 40\n')
    check_equal(len(records), 1)
    out, records = says('-p', './app:handle set c->flags = 7', program=('./app', 'fork'))
    check_equal(out, 'child 9: 7 0 0 0 first abc 0 0 0 0 0 40\nparent 9: 7 0 0 0 first abc 0 0 0 0 0 40\n')
    check_equal(len(records), 2)
    out, records = says('--no-follow', '-p', './app:handle set c->flags = 7', program=('./app', 'vfork'))
    changed = len(records)
    check_equal(out, f'parent 0: {7 if changed else 1} 0 0 0 first abc 0 0 0 0 0 40\n')


VFORKS = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static int flag;
__attribute__((noipa)) int work(int *flag, int n) { return *flag + n; }
static void *child(void *data) { if (!vfork()) { usleep(300000); _exit(0); } *(volatile int *)data = 1; return data; }
int main(void)
{
	volatile int is_over = 0;
	pthread_t thread;
	int n = 0, n_written = 0;

	pthread_create(&thread, NULL, child, (void *)&is_over);
	while (!is_over) {
		flag = 0;
		n_written += work(&flag, 0) == 7;
		n++;
		usleep(1000);
	}
	pthread_join(thread, NULL);
	printf("%d\n", n - n_written);
	return n < 10;
}
"""


def test_memory_is_written_while_another_thread_waits_for_its_child(tmp):
    (tmp / 'vforks.c').write_text(VFORKS)
    run('gcc', '-g', '-O1', '-pthread', '-o', 'vforks', 'vforks.c').ok()
    for words in (), ('--no-rseq', ):
        out, records = says(*words, '-p', './vforks:work set *flag = 7', program=('./vforks', ))
        check_equal((out, {event['faults'] for event in records}), ('0\n', {0}), words)


@timeout(120)
def test_when_the_recorder_is_killed_writes_end(tmp):
    build(tmp)
    process = start('./app', 'asks')
    recorder = start_record(process.pid, ALLOW, '-p', './app:handle set c->flags = 7')

    def answers():
        process.send('\n')
        eventually(lambda: len(process.out.splitlines()) > answers.n, 'it answers')
        answers.n += 1
        return process.out.splitlines()[answers.n - 1]

    answers.n = 0
    check_equal(answers(), '9')
    os.kill(recorder.pid, signal.SIGKILL)
    eventually(lambda: answers() == '3', 'nothing is written any more')
    check_equal({answers() for _ in range(20)}, {'3'})
    kymo('detach', process.pid).ok()
    check_equal(answers(), '3')
    check_text_intact(process.pid)
    process.end().ok()


# ---- what is told --------------------------------------------------------------------------------


def test_the_trace_says_what_was_written(tmp):
    build(tmp)
    says('-p', './app:handle set c->flags = 7 set %si = 3')
    check_matches(kymo('report').ok().out, r'^written: app:handle: hits change what the program does '
                  r'\(set %si, set c->flags\), but not those with \(fault\)$')
    check_equal(report_json()['probes'][0]['writes'], 'set %si, set c->flags')


def test_what_cannot_be_written_is_refused(tmp):
    build(tmp)
    for words, sentence in (
        ('set c->bits = 1', 'column 19: kymo writes whole bytes, and this is a bit-field'),
        ('set n = 1', 'column 18: this is not in memory here, so it is not written'),
        ('set c->flag = 1', "column 21: 'struct conn' has no member 'flag'; it has: "),
        ('set *c = *c', "column 18: this is a whole 'struct conn'; write one of its members"),
        ('set c->name = 1', 'column 19: an array is not written as a whole; write one of its elements'),
        ('set c->flags =', 'expected the value'),
        ('set c->flags = str(c->name)', 'a text is recorded, or compared'),
        ('set c->s = 1 set c->flags = 2 set c->ok = 1 set c->byte = 1 set c->state = 1',
         'at most 4 registers and values in memory'),
    ):
        record(ALLOW, '-p', f'./app:handle {words}', '--', './app').refused(sentence, 2)
    record('-p', './app:handle set c->flags = 1', '--', './app').refused('add --allow-write', 2)
    record(ALLOW, '-r', './app:handle set c->flags = 1', '--', './app').refused('a return probe writes nothing', 2)
    record(ALLOW, '-p', './app:handle set c->flags = 1', '--backend', 'kernel', '--', './app').refused("'set'", 2)
