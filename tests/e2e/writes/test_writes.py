"""Probes that write: registers and results of functions are changed while a recorder lives, and each write is told."""
import json
import os
import re
import signal
from pathlib import Path

from kymotest import (KYMO, check, check_equal, check_matches, check_text_intact, events, eventually, kymo, program,
                      record, report_json, run, skip, start, start_record, timeout)

ASKS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) long answer(long n, long m) { return 2 * n + m; }
int main(void)
{
	char line[64];

	while (fgets(line, sizeof(line), stdin)) {
		if (*line == 'f' && !fork()) {
			printf("child %ld\n", answer(atol(line + 1), 0));
			fflush(stdout);
			_exit(0);
		}
		if (*line == 'f')
			wait(NULL);
		else
			printf("%ld\n", answer(atol(line), 0));
		fflush(stdout);
	}
	return 0;
}
"""
ALLOW = '--allow-write'
SEVEN = (ALLOW, '-p', './asks:answer n=arg0 return 7')


def build(tmp):
    (tmp / 'asks.c').write_text(ASKS)
    run('gcc', '-O1', '-o', 'asks', 'asks.c').ok()


def asks(*options, lines):
    """What the program says to each of the lines, while it is recorded."""
    result = record(ALLOW, *options, '--', './asks', input=''.join(f'{line}\n' for line in lines)).ok()
    return result.out.split()


def start_recorder(pid, *options):
    """Once its probes are in; it may trace the process, and others may have changed its text."""
    recorder = start(KYMO, 'record', *options, '--pid', pid)
    recorder.wait_for('recording', 1)
    return recorder


class Asked:
    """The program, asked a line at a time."""
    def __init__(self):
        self.process, self.n = start('./asks'), 0
        self.pid = self.process.pid

    def answer(self, line):
        self.process.send(f'{line}\n')
        self.n += 1
        eventually(lambda: len(self.process.out.splitlines()) >= self.n, 'it answers')
        return self.process.out.splitlines()[self.n - 1]

    def until(self, line, wanted):
        """Ask until the answer is that, a second apart at most; how often it was another one."""
        others = []

        def is_it():
            got = self.answer(line)
            if got != wanted:
                others.append(got)
            return got == wanted

        eventually(is_it, f'the answer to {line} is {wanted}')
        return len(others)


def is_written(event, bit):
    return not event['faults'] >> bit & 1


# ---- what is written -----------------------------------------------------------------------------


def test_a_function_returns_at_once(tmp):
    build(tmp)
    for words in ((), ('--no-rseq', )):
        check_equal(asks(*words, '-p', './asks:answer /arg0 > 10/ n=arg0 return (arg0 * 3)', lines=range(8, 14)),
                    ['16', '18', '20', '33', '36', '39'])
        check_equal([(event['n'], event['returned']) for event in events()], [(11, 33), (12, 36), (13, 39)])


def test_registers_get_values_before_the_instruction(tmp):
    build(tmp)
    check_equal(asks('-p', './asks:answer set %di=21', lines=[1, 2]), ['42', '42'])
    check_equal([event['set_di'] for event in events()], [21, 21])
    check_equal(asks('-p', './asks:answer set %di = %si set %si = %di', lines=[5, 6]), ['5', '6'])
    check_equal([(event['set_di'], event['set_si']) for event in events()], [(0, 5), (0, 6)])
    check_equal(asks('-p', './asks:answer set %edi = -1', lines=[5]), [str(2 * 0xffffffff)])
    check_equal(asks('-p', 'writer ./asks:answer return -1'.replace('writer', 'p:writer'), lines=[5]), ['-1'])
    check_equal([(event.name, event['returned']) for event in events()], [('writer', -1)])


def test_a_sample_decides_which_hits_are_changed(tmp):
    build(tmp)
    check_equal(asks('-p', './asks:answer first 2 return 0', lines=[1, 2, 3, 4]), ['0', '0', '6', '8'])


def test_other_probes_of_the_location_record_what_was_there(tmp):
    build(tmp)
    check_equal(asks('-p', './asks:answer set %di = 100', '-p', './asks:answer n=arg0', lines=[1, 2]), ['200', '200'])
    check_equal([event['n'] for event in events() if 'n' in event.fields], [1, 2])
    check_equal(asks('-p', './asks:answer return 3', '-p', 'p:other ./asks:answer n=arg0', lines=[1]), ['3'])
    check_equal(sorted(event.name for event in events()), ['asks:answer', 'other'])


def test_reports_say_that_the_program_was_changed(tmp):
    build(tmp)
    asks('-p', './asks:answer return 3', '-p', './asks:main', lines=[1])
    for words in ((), ('--events', )):
        check_equal(re.findall('^written: .*', kymo('report', *words).ok().out, re.M),
                    ['written: asks:answer: hits change what the program does (return), but not '
                     'those with (fault)'])
    check_equal([probe.get('writes') for probe in report_json()['probes']], ['return', None])
    lines = [json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()]
    check_equal([line for line in lines if line.get('event') == 'written'],
                [{'event': 'written', 'name': 'asks:answer', 'what': 'return'}])


def test_real_programs_meet_failures(tmp):
    result = record(ALLOW, '-p', 'libc:malloc /arg0 > 100M/ size=arg0 return 0', '--', program('python3'), '-c',
                    'bytearray(200 << 20)').ended(1)
    check_matches(result.err, 'MemoryError')
    check_equal([(event['size'] > 200 << 20, event['returned']) for event in events()], [(True, 0)])
    result = record(ALLOW, '-p', 'libc:getpid return 4242', '--', program('python3'), '-c',
                    'import os; print(os.getpid())').ok()
    check_equal(result.out, '4242\n')
    result = record(ALLOW, '-p', 'libc:opendir return 0', '--', '/bin/ls', tmp).ended(2)
    check_matches(result.err, 'cannot open directory')
    if not Path('/usr/bin/sqlite3').exists():
        skip('sqlite3 is not installed')
    result = record(ALLOW, '-p', 'libc:malloc /arg0 > 1M/ return 0', '--', '/usr/bin/sqlite3', ':memory:',
                    'select length(randomblob(3000000));')
    check_matches(result.err, 'out of memory')


# Threads that check each result: of a call that is run, or of one that returns at once.
MANY = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((noipa)) long answer(long n, long m) { return 2 * n + m; }
static void *go(void *data)
{
	long returned = 0;

	for (long i = 0; i < (long)data; i++) {
		long got = answer(i, 5);

		if (got != 2 * i + 5 && got != -7)
			abort();
		returned += got == -7;
	}
	return (void *)returned;
}
int main(int argc, char **argv)
{
	pthread_t threads[4];
	long returned = 0;
	void *more;

	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, go, (void *)atol(argv[1]));
	for (int i = 0; i < 4; i++, returned += (long)more)
		pthread_join(threads[i], &more);
	printf("%ld\n", returned);
	return 0;
}
"""


@timeout(180)
def test_what_is_lost_is_not_written(tmp):
    (tmp / 'many.c').write_text(MANY)
    run('gcc', '-O1', '-pthread', '-o', 'many', 'many.c').ok()
    for words in ((), ('--no-rseq', )):
        result = record(ALLOW, *words, '--buffer', '64K', '-p', './many:answer /arg0 & 1/ return -7', '--', './many',
                        200000).ok()
        report = report_json()
        check_equal(report['events'] + report['lost_events'], 400000, 'hits')
        check_equal(int(result.out), report['events'], f'as many calls returned at once as there are records {words}')


# ---- recorders that die or stop, and others beside them ------------------------------------------


@timeout(180)
def test_nothing_is_written_when_the_recorder_is_dead(tmp):
    build(tmp)
    for words in ((), ('--no-rseq', )):
        asked = Asked()
        recorder = start_record(asked.pid, *words, *SEVEN)
        asked.until(5, '7')
        recorder.signal(signal.SIGKILL)
        recorder.end()
        asked.until(5, '10')
        for _ in range(20):
            check_equal(asked.answer(5), '10')
        kymo('detach', asked.pid).ok()
        check_text_intact(asked.pid)
        check_equal(asked.answer(5), '10')
        asked.process.end().ok()


@timeout(180)
def test_a_stopped_recorder_stops_the_writes_and_the_records_say_so(tmp):
    build(tmp)
    asked = Asked()
    recorder = start_record(asked.pid, *SEVEN)
    asked.until(5, '7')
    recorder.signal(signal.SIGSTOP)
    asked.until(5, '10')
    check_equal(asked.answer(5), '10')
    recorder.signal(signal.SIGCONT)
    asked.until(5, '7')
    recorder.end(signal.SIGINT).ok()
    check_equal(asked.answer(5), '10')
    answers = asked.process.out.splitlines()
    recorded = events()
    check_equal(len(recorded), asked.n - 1, 'all but the last were recorded')
    check_equal(['7' if is_written(event, 1) else '10' for event in recorded], answers[:-1])
    check_text_intact(asked.pid)


def test_a_forked_child_is_changed_if_it_is_followed(tmp):
    build(tmp)
    for words, wanted in (((), 'child 10'), (('--follow', ), 'child 7')):
        asked = Asked()
        recorder = start_recorder(asked.pid, *words, *SEVEN)
        check_equal(asked.answer('f5'), wanted, str(words))
        check_equal(asked.answer('f6'), wanted.replace('10', '12'), str(words))
        check_equal(asked.answer(5), '7')
        recorder.end(signal.SIGINT).ok()
        asked.process.end().ok()


def test_the_recording_that_writes_comes_first(tmp):
    build(tmp)
    asked = Asked()
    first = start_record(asked.pid, '-o', 'first', *SEVEN)
    second = start_recorder(asked.pid, '-o', 'second', '-p', './asks:answer n=arg0')
    check_equal(asked.answer(5), '7')
    record(*SEVEN, '-o', 'third', '--pid', asked.pid).refused('another recording has a probe here')
    first.end(signal.SIGINT).ok()
    check_equal(asked.answer(5), '10')
    record(*SEVEN, '-o', 'third', '--pid', asked.pid).refused('another recording has a probe here')
    second.end(signal.SIGINT).ok()
    check_equal([event['n'] for event in events('second')], [5, 5])
    check_equal([event['returned'] for event in events('first')], [7])
    check_text_intact(asked.pid)


# ---- what is refused -----------------------------------------------------------------------------


def test_nothing_is_written_unless_that_is_allowed(tmp):
    build(tmp)
    for spec in ('./asks:answer return 7', './asks:answer set %di = 1'):
        record('-p', spec, '--', './asks').refused(f"'{re.escape(spec)}' changes what the program does: add "
                                                   '--allow-write', 2)
    check(not os.path.exists('kymo.data'), 'nothing was recorded')


def test_options_that_may_drop_the_record(tmp):
    build(tmp)
    spec = './asks:answer return 7'
    for options, sentence in ((('--overwrite', ), '--overwrite may drop'), (('--keep', '8M'), '--keep may drop'),
                              (('--until', spec), 'a filter alone'), (('--count', spec), 'takes no value'),
                              (('--backend', 'kernel'), "leave --backend kernel out, or 'set' and 'return'")):
        record(ALLOW, '-p', spec, *options, '--', './asks').refused(sentence, 2)
    record(ALLOW, '-p', spec, '--all').refused("leave --all out, or 'set' and 'return'", 2)
    kymo('top', ALLOW, '--count', spec, '--', './asks').refused('takes no value', 2)


def test_words_that_are_refused(tmp):
    build(tmp)
    for words, sentence in (
        ('answer set %di =', 'expected the value'), ('answer+4 return 1', 'at|entry of a function'),
        ('answer:* return 1', 'entry of a function'), ('a* return 1', 'one function, not for a glob'),
        ('answer%return set %ax = 1', 'a return probe writes nothing'),
        ('answer set %sp = 1', 'without the stack pointer'),
        ('answer set %flags = 1', 'only general registers'), ('answer set %al = 1', 'a part of a register'),
        ('answer set %xmm0 = 1', 'no register'), ('answer set x->y = 1', "'x' is not known"),
        ('answer set arg0 = 1', 'column 19: this is not in memory here'),
        ('answer return *(int *)arg0', 'no memory, no stack'),
        ('answer return $stack0', 'no memory, no stack'), ('answer return (1 / arg0)', 'no division by a register'),
        ('answer return tid', 'constants and registers'), ('answer return str(arg0)', 'a register gets a number'),
        ('answer return 1 set %ax = 2', 'writes a register once'), ('answer set %di = 1 set %edi = 2', 'register once'),
        ('answer set_di=arg0 set %di = 1', "recorded as 'set_di'"),
        ('answer returned=arg0 return', "column 29: what is written is recorded as 'returned'"),
        ('answer set %r8 = 1 set %r9 = 1 set %di = 1 set %si = 1 set %dx = 1', 'at most 4 registers'),
    ):
        record(ALLOW, '-p', f'./asks:{words}', '--', './asks').refused(sentence, 2)
    record(ALLOW, '-m', 'python:function__entry return 1', '--', './asks').refused('markers write nothing', 2)


def test_locations_that_are_refused(tmp):
    build(tmp)
    record(ALLOW, '-p', './asks:_start return 1', '--', './asks').refused('it is not entered by a call')
    record(ALLOW, '-p', 'libc:__restore_rt return 1', '--', './asks').refused('no probe can be put')
    (tmp / 'bare.S').write_text('.globl bare\n.type bare, @function\nbare: lea 1(%rdi), %rax\nnop\nret\n'
                                '.size bare, .-bare\n.section .note.GNU-stack,"",@progbits\n')
    (tmp / 'main.c').write_text('long bare(long n);\nint main(void) { return (int)bare(4) - 5; }\n')
    run('gcc', '-O1', '-o', 'bare', 'bare.S', 'main.c').ok()
    record(ALLOW, '-p', './bare:bare return 1', '--', './bare').refused('no call frame information')
    record(ALLOW, '-p', './bare:bare set %di = 6', '--', './bare').ended(2)
    record(ALLOW, '-p', './asks:answer return 1', '-p', './asks:answer set %di = 1', '--',
           './asks').refused('another probe writes here')


def test_variables_in_registers_are_values(tmp):
    build(tmp)
    (tmp / 'sums.c').write_text('struct pair { long a; };\n'
                                '__attribute__((noipa)) long f(int n, struct pair *pair) { return n + pair->a; }\n'
                                'int main(void) { struct pair pair = { 2 }; return (int)f(3, &pair); }\n')
    run('gcc', '-g', '-O1', '-o', 'sums', 'sums.c').ok()
    record(ALLOW, '-p', './sums:f n return (n * 4)', '--', './sums').ended(12)
    check_equal([(event['n'], event['returned']) for event in events()], [(3, 12)])
    record(ALLOW, '-p', './sums:f set %di = (n << 2)', '--', './sums').ended(14)
    record(ALLOW, '-p', './sums:f return pair->a', '--', './sums').refused('no memory, no stack', 2)
    record(ALLOW, '-p', './sums:f return nn', '--', './sums').refused("'nn'", 2)


def test_a_variable_may_be_called_set(tmp):
    (tmp / 'set.c').write_text('__attribute__((noipa)) long f(long set) { return set; }\n'
                               'int main(void) { return (int)f(3) - 3; }\n')
    run('gcc', '-g', '-O1', '-o', 'set', 'set.c').ok()
    record('-p', './set:f set %di set==3', '--', './set').ok()
    check_equal([event['set'] for event in events()], [3])


RESULTS = r"""
#include <cmath>
#include <cstdio>
#include <cstdlib>
struct big { long a[8]; };
static int calls;
extern "C" __attribute__((noipa)) void poke() { calls++; }
extern "C" int triple(int n);
/* As compilers do where they know what registers a function changes (-fipa-ra). */
asm(".type triple, @function\ntriple: lea (%rdi,%rdi,2), %eax\ncall poke\nret\n.size triple, .-triple\n");
__attribute__((noipa)) double half(double n) { return n / 2; }
__attribute__((noipa)) big many(long n) { return {{n}}; }
__attribute__((noipa)) int twice(int n) { return n * 2; }
__attribute__((noipa)) int twice(long n) { return n * 2; }
__attribute__((noipa, noreturn)) void leave(int n) { exit(n); }
int main()
{
	printf("%d %g %ld %d\n", triple(4), half(3), many(5).a[0], twice(6) + twice(7L));
	if (calls > 100)
		leave(3);
}
"""


def build_results(tmp, *options):
    (tmp / 'results.cc').write_text(RESULTS)
    run(program('g++'), '-O2', '-o', 'results', 'results.cc', *options, seconds=60).ok()


def test_a_return_without_a_value_changes_no_register(tmp):
    """The caller of a void function may keep a value in %ax: it does here."""
    for options in (), ('-g', ):
        build_results(tmp, *options)
        result = record(ALLOW, '-p', './results:poke return', '--', './results').ok()
        check_equal(result.out, '12 1.5 5 26\n', 'what it says')
        check_equal([event['returned'] for event in events()], [12], 'what was in %ax')


def test_what_callers_cannot_go_on_with_is_refused(tmp):
    build_results(tmp, '-g')
    refused = {
        'poke return 0': "returns nothing, and its caller may rely on %ax: write 'return' without a value",
        'half return 1': 'returns its result in a vector register, which kymo does not write',
        'many return 0': 'returns its result in memory, which kymo does not write',
        'leave return': 'never returns, so its callers have no code to go on with; let its caller return',
    }
    for spec, sentence in refused.items():
        result = record(ALLOW, '-p', f'./results:{spec}', '--', './results')
        check_equal((result.status, result.out), (2, ''), spec)
        check_matches(result.err, rf"^kymo: './results:{spec}': '[^']*' {re.escape(sentence)}$")
    check_matches(
        record(ALLOW, '-p', './results:twice return 1', '--', './results').err,
        r"^kymo: './results:twice return 1' means 2 functions, and 'return' is for one: write its parameters")
    result = record(ALLOW, '-p', './results:twice(int) return 1', '--', './results').ok()
    check_equal(result.out, '12 1.5 5 15\n', 'one of them')
    for name in 'abort', 'exit', '__assert_fail', '__stack_chk_fail', 'pthread_exit':
        check_matches(
            record(ALLOW, '-p', f'libc:{name} return 0', '--', './results').err,
            rf"^kymo: 'libc:{name} return 0': '{name}' never returns, ")
    check_matches(
        record(ALLOW, '-p', './results:half return', '-r', './results:half', '--', './results').err,
        r"^kymo: './results:half return' and -r './results:half' are of one function: a call that 'return' "
        r'ends has no return; leave -r out$')
