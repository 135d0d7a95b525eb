"""Other tools' uprobes on recorded functions, and pages of code that a program drops: the program runs on, the other
tool counts right, and what kymo has not recorded it says."""
import os
import re
import shutil
import signal
import socket
import time

import processes
from killing import NO_LEAKS
from kymotest import (KYMO, check, check_equal, check_matches, check_text_intact, eventually, kymo, need_uprobes,
                      program, report_json, run, skip, start, start_record, target_path, timeout)
from uprobers import BREAKPOINT, Bpftrace, Perf, address_of, build, text_at

# The entries are bytes that jumps of each kind are put on: a pun of one byte, a jump over one instruction.
PROGRAM = r'''
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <pthread.h>
#include <stdatomic.h>

long first(long n), whole(long n), beside(long n);

__asm__(".text\n"
	".macro begin name\n.globl \\name\n.type \\name, @function\n\\name:\n.endm\n"
	".macro finish name\n.size \\name, . - \\name\n.endm\n"
	".p2align 12\n"
	"begin first\n"
	/* The jump of a pun over the push would end in the bytes 48 89 fb 89: it leads to 2 GB below, where nothing ever is. */
	"push %rbx\nmov %rdi, %rbx\nmov %edi, %eax\nlea 1(%rbx), %rax\npop %rbx\nret\n"
	"finish first\n"
	".p2align 4\n"
	"begin whole\n"
	"mov $16, %eax\nadd %rdi, %rax\nret\n"
	"finish whole\n"
	".p2align 4\n"
	"begin beside\n"
	"lea 3(%rdi), %rax\nadd $0, %rax\nret\n"
	"finish beside\n"
	".p2align 12\n");

static void check(long is, long should)
{
	if (is != should)
		abort();
}

static atomic_int busy;

static void *work(void *unused)
{
	for (long i = 0; busy; i++)
		check(beside(i), i + 3);
	return unused;
}

int main(void)
{
	char line[100];
	pthread_t thread;

	setlinebuf(stdout);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		if (*line == 'd')
			madvise((void *)first, 4096, MADV_DONTNEED);
		if (*line == 'b' && !busy++)
			pthread_create(&thread, NULL, work, NULL);
		for (long i = 0, n = atol(line + 1); *line == 'c' && i < n; i++) {
			check(first(i), i + 1);
			check(whole(i), i + 16);
		}
		printf("done %s", line);
	}
	if (busy--)
		pthread_join(thread, NULL);
	return 0;
}
'''

# of the first instruction: another one may be evicted for its jump
FIRST_LENGTH = {'first': 1, 'whole': 5, 'beside': 4}


class Called:
    """The program, which is told how often to call its functions."""
    def __init__(self, tmp):
        self.path = build(tmp, 'called', PROGRAM)
        self.process = start(self.path)
        self.process.wait_for('^ready$')
        self.pid, self.asked = self.process.pid, 0

    def ask(self, words):
        self.asked += 1
        self.process.send(f'{words} {self.asked}\n')
        self.process.wait_for(f'^done {words} {self.asked}$')

    def call(self, n):
        self.ask(f'c{n}')

    def bytes(self, symbol):
        return text_at(self.pid, address_of(self.pid, self.path, symbol), FIRST_LENGTH[symbol])

    def end(self):
        check_text_intact(self.pid)
        self.process.end().ok()


def is_in(called, symbol, before):
    """Whether a jump of kymo's is at the function, which began with the bytes `before`."""
    now = called.bytes(symbol)
    return now != before and now[:1] != BREAKPOINT


def gaps(directory='kymo.data', **wanted):
    return [gap for gap in report_json(directory)['gaps'] if all(gap[key] == value for key, value in wanted.items())]


def probes(directory='kymo.data'):
    return {probe['name'].partition(':')[2]: probe['count'] for probe in report_json(directory)['probes']}


def check_a_tool(tmp, tool, symbol):
    need_uprobes()
    called = Called(tmp)
    before = called.bytes(symbol)
    recorder = start_record(called.pid, '-p', f'{called.path}:*')
    called.call(1000)
    for n in (100, 2000):
        other = tool(called.pid, called.path, symbol)
        called.call(n)
        recorder.wait_for('another tool has set a breakpoint there', which=1)
        eventually(lambda: called.bytes(symbol)[1:] == before[1:], 'the rest of the jump makes way')
        called.call(n)
        check_equal(other.end(), 2 * n, 'calls that the other tool counts')
        # of the file, or of a jump that is in again: on a busy machine the other tool takes long to end
        now = called.bytes(symbol)
        check(now[1:] == before[1:] or now[:1] not in (before[:1], BREAKPOINT),
              f'bytes behind the first: {now.hex()} instead of {before.hex()}')
        called.call(10)
        eventually(lambda: is_in(called, symbol, before), 'the probe is in again')
        called.call(500)
    result = recorder.end(signal.SIGINT).ok()
    check('another tool has set a breakpoint there' in result.err, 'it is told', result)
    check(gaps(cause='breakpoint', first=f'called:{symbol}', pid=called.pid), 'the trace tells it',
          report_json()['gaps'])
    check('not recorded: ' in run(KYMO, 'report').ok().out, 'the report tells it')
    counts = probes()
    check(2000 <= counts[symbol] <= 2020 + 4200, f'{symbol} is recorded where its probe is in: {counts[symbol]}')
    other_symbol = {'first': 'whole', 'whole': 'first'}[symbol]
    check_equal(counts[other_symbol], 1000 + 2 * 100 + 2 * 2000 + 2 * 510, f'calls of {other_symbol}')
    called.end()


def test_bpftrace_counts_a_recorded_function(tmp):
    check_a_tool(tmp, Bpftrace, 'first')


def test_bpftrace_counts_a_function_that_begins_with_a_long_instruction(tmp):
    check_a_tool(tmp, Bpftrace, 'whole')


def test_perf_counts_a_recorded_function(tmp):
    check_a_tool(tmp, Perf, 'first')


def test_perf_counts_a_function_that_begins_with_a_long_instruction(tmp):
    check_a_tool(tmp, Perf, 'whole')


def test_detach_under_a_breakpoint_leaves_it_working(tmp):
    """The recorder is killed while another tool has its uprobe on its places, or before it is set."""
    need_uprobes()
    called = Called(tmp)
    before = {symbol: called.bytes(symbol) for symbol in ('first', 'whole')}
    for symbol in before:
        for is_early in (True, False):
            recorder = start_record(called.pid, '-p', f'{called.path}:*', '-o', f'{symbol}.{is_early}')
            called.call(10)
            if is_early:
                recorder.end(signal.SIGKILL)
            other = Bpftrace(called.pid, called.path, symbol)
            if not is_early:
                eventually(lambda: called.bytes(symbol)[1:] == before[symbol][1:], 'the rest of the jump makes way')
                recorder.end(signal.SIGKILL)
            kymo('detach', called.pid).ok()
            check_equal(called.bytes(symbol), BREAKPOINT + before[symbol][1:], 'a breakpoint and the file')
            called.call(100)
            check_equal(other.end(), 100, 'calls that the other tool counts')
            check_equal(called.bytes(symbol), before[symbol], 'the bytes of the file')
    called.call(10)
    called.end()


def test_a_recorder_ends_under_a_breakpoint(tmp):
    need_uprobes()
    called = Called(tmp)
    before = called.bytes('whole')
    recorder = start_record(called.pid, '-p', f'{called.path}:*')
    other = Bpftrace(called.pid, called.path, 'whole')
    called.call(100)
    recorder.end(signal.SIGINT).ok()
    check_equal(called.bytes('whole'), BREAKPOINT + before[1:], 'a breakpoint and the file')
    called.call(100)
    check_equal(other.end(), 200, 'calls that the other tool counts')
    called.end()


def test_two_recorders_and_a_breakpoint(tmp):
    """Both have the place; the other tool counts right, and both are clean in the end."""
    need_uprobes()
    called = Called(tmp)
    before = called.bytes('whole')
    recorders = [start_record(called.pid, '-p', f'{called.path}:*', '-o', 'one')]
    recorders.append(start(KYMO, 'record', '-p', f'{called.path}:*', '-o', 'two', '--pid', called.pid))
    recorders[1].wait_for('recording process', 1)
    called.call(100)
    for _ in range(2):
        other = Bpftrace(called.pid, called.path, 'whole')
        called.call(100)
        eventually(lambda: called.bytes('whole')[1:] == before[1:], 'the rest of the jump makes way')
        check_equal(other.end(), 100, 'calls that the other tool counts')
        eventually(lambda: is_in(called, 'whole', before), 'a probe is in again')
        called.call(100)
    for recorder in recorders:
        recorder.end(signal.SIGINT).ok()
    for directory in ('one', 'two'):
        check(probes(directory)['whole'] >= 100, f'calls of whole in {directory}')
        check(gaps(directory), f'gaps in {directory}')
    called.end()


def test_a_page_of_code_that_the_program_drops(tmp):
    """MADV_DONTNEED gives back the file's bytes: the probes are put in again, and the trace says for how long they
    were out."""
    called = Called(tmp)
    before = {symbol: called.bytes(symbol) for symbol in ('first', 'whole')}
    recorder = start_record(called.pid, '-p', f'{called.path}:first', '-p', f'{called.path}:whole')
    called.call(100)
    for _ in range(2):
        called.ask('d')
        eventually(lambda: all(is_in(called, symbol, before[symbol]) for symbol in before), 'the probes are in again')
        called.call(1000)
    result = recorder.end(signal.SIGINT).ok()
    check("the file's own bytes are there" in result.err, 'it is told', result)
    found = gaps(cause='dropped', pid=called.pid)
    check(found and sum(gap['probes'] for gap in found) >= 2, 'gaps', found)
    # the first has no begin where a busy machine drops the page before the recorder has looked at it
    known = [gap for gap in found if gap['begin_ns']]
    check(known, 'gaps that begin after a look', found)
    check(all(gap['begin_ns'] < (gap['end_ns'] or gap['begin_ns'] + 1) for gap in known), 'times', found)
    check_equal(probes(), {'first': 2100, 'whole': 2100}, 'calls')
    called.end()


def test_a_gap_without_a_begin_has_none_in_reports(tmp):
    """It began before the first look at its process."""
    kymo('record', '-q', '-o', 'begun', '-p', 'libc:getpid', '-p', 'libc:malloc', '--', 'ls').ok()
    metadata = tmp / 'begun/metadata'
    metadata.write_text(re.sub(r'^env \{$', r'env {\n\tgap_42_17_0 = "dropped 2 0 0 first";', metadata.read_text(),
                               count=1, flags=re.M))
    check_equal(gaps('begun'), [{'pid': 42, 'cause': 'dropped', 'probes': 2, 'first': 'first', 'begin_ns': None,
                                 'end_ns': None}], 'gaps')
    check_matches(kymo('report', 'begun').ok().out, '^not recorded: 2 probes of process 42 .first …., 0 s to the end: ')


def test_a_forked_child_bears_a_breakpoint(tmp):
    """A child that is followed has the text of its parent, with its own pages."""
    need_uprobes()
    script = 'import os, sys\nfor line in sys.stdin:\n    [int("12") for _ in range(int(line))]\n    print("done", line, end="", flush=True)\n'
    python = shutil.which('python3.11', path='/usr/bin') or skip('python3.11 is not installed')
    shutil.copy(python, tmp / 'python')
    code = f'import os\nif os.fork() == 0:\n    exec({script!r})\nelse:\n    print("ready", flush=True)\n    os.wait()\n'
    recorder = start(KYMO, 'record', '-p', f'{tmp}/python:PyLong_FromString', '--', tmp / 'python', '-S', '-c', code,
                     env={'PYTHONHOME': '/usr'})
    recorder.wait_for('^ready$')
    recorder.send('100\n')
    recorder.wait_for('^done 100$')
    child = max(pid for pid in processes.children(processes.children(recorder.pid)[0]))
    other = Bpftrace(child, tmp / 'python', 'PyLong_FromString')
    recorder.send('50\n')  # and one call for the number itself
    recorder.wait_for('^done 50$')
    check_equal(other.end(), 51, 'calls that the other tool counts')
    recorder.send('70\n')
    recorder.wait_for('^done 70$')
    result = recorder.end().ok()
    check('another tool has set a breakpoint' in result.err, 'it is told', result)


def looks_at_memory(called, trace):
    """How often a recorder lists the memory of the process before it writes into its text."""
    trace, page = trace / 'looks', address_of(called.pid, called.path, 'first') & ~4095
    run(program('strace'), '-qq', '-o', trace, '-P', f'/proc/{called.pid}/maps', '-P', f'/proc/{called.pid}/mem', '-e',
        'trace=openat,pwrite64', '-e', 'signal=none', KYMO, 'record', '-q', '-p', f'{called.path}:*', '--for', '0.01',
        '--pid', called.pid, env=NO_LEAKS).ok()
    looks = 0
    for line in trace.read_text().splitlines():
        write = re.match(r'pwrite64\(.*, (\d+)\) += ', line)
        if write and page <= int(write[1]) < page + 4096:
            return looks
        looks += '/maps"' in line
    check(False, 'the recorder writes into the text', trace.read_text())


def test_a_breakpoint_that_is_set_while_the_recorder_looks_at_stacks_is_not_written_over(tmp):
    """The last look at the memory of the process comes right before the stacks are read. strace makes it long."""
    need_uprobes()
    called = Called(tmp)
    before = called.bytes('first')
    n = looks_at_memory(called, tmp)
    recorder = start(program('strace'), '-qq', '-o', tmp / 'calls', '-P', f'/proc/{called.pid}/maps', '-e',
                     'trace=openat', '-e', 'signal=none', '-e', f'inject=openat:delay_exit=4000000:when={n}', KYMO,
                     'record', '-q', '-p', f'{called.path}:*', '--pid', called.pid, env=NO_LEAKS)
    since = time.monotonic()

    def is_held():
        nonlocal since
        if processes.status(called.pid)['State'][0] != 't':
            since = time.monotonic()
        return time.monotonic() - since > 0.5 or not recorder.is_alive()

    eventually(is_held, 'the process is stopped')
    other = Perf(called.pid, called.path, 'whole')
    check_equal(called.bytes('first'), before, 'text that is not written yet')
    eventually(lambda: is_in(called, 'first', before) and processes.tracer(called.pid) == 0, 'the probes are in')
    called.call(500)
    check_equal(other.end(), 500, 'calls that the other tool counts')
    for pid in processes.children(recorder.pid):
        os.kill(pid, signal.SIGINT)
    recorder.end().ok()
    called.end()
