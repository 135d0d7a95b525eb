"""Other tools' uprobes that come and go on recorded functions, and on those of recorders that are killed: no program
breaks, and the other tools count right.

ROUNDS=N asks for so many of each program and tool; 200 if nothing is said, and two where there are seconds only.
"""
import os
import random
import shutil
import signal
import subprocess
import time

import kernelcount
import remains
from kymotest import (KYMO, TORTURE_SECONDS, check, check_equal, eventually, kymo, need_uprobes, program, run, start,
                      start_record, timeout)
from seeds import seed
from uprobers import BREAKPOINT, Bpftrace, Perf, address_of, build, text_at

IS_SHORT = TORTURE_SECONDS <= 10
ROUNDS = int(os.environ.get('ROUNDS') or (2 if IS_SHORT else 200))
KILLS = int(os.environ.get('KILLS') or (4 if IS_SHORT else 500))

# Functions that begin as compilers have it, called by threads that check what comes back.
PROGRAM = r'''
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static atomic_long counted;
#define NOINLINE __attribute__((noinline, noclone, noipa))

NOINLINE long pushed(long a) { char text[40]; snprintf(text, sizeof(text), "%ld", a); return atol(text) + 1; }
NOINLINE long saved(long a, long b) { long sum = 0; for (long i = 0; i < 4; i++) sum += pushed(a + i) * (b + 1); return sum; }
NOINLINE long asked(long a) { return pushed(a) + 1; }

static void check(long is, long should)
{
	if (is != should)
		abort();
}

static void *work(void *unused)
{
	for (long i = 0;; i++)
		check(saved(i % 1000, 1), 2 * (4 * (i % 1000) + 10));
	return unused;
}

static void *sleep_on(void *unused)
{
	for (;;)
		check(syscall(SYS_nanosleep, &(struct timespec){ .tv_sec = 20 }, NULL), 0);
	return unused;
}

/* THREADS that call, and as many that sleep and are not to be woken. */
int main(int argc, char **argv)
{
	char line[100];
	pthread_t thread;

	setlinebuf(stdout);
	for (int i = 0; i < (argc > 1 ? atoi(argv[1]) : 0); i++)
		pthread_create(&thread, NULL, work, NULL), pthread_create(&thread, NULL, sleep_on, NULL);
	puts("ready");
	while (fgets(line, sizeof(line), stdin)) {
		for (long i = 0, n = atol(line); i < n; i++)
			check(asked(i), i + 2);
		printf("done %s", line);
	}
	return 0;
}
'''


class Own:
    symbols = ['pushed', 'saved', 'asked']
    counted = 'asked'

    def __init__(self, tmp, threads=2):
        self.path = build(tmp, 'worker', PROGRAM)
        self.process = start(self.path, threads)
        self.process.wait_for('^ready$')
        self.pid, self.asked = self.process.pid, 0

    def ask(self, n):
        self.asked += 1
        before = self.process.out.count('done')
        self.process.send(f'{n}\n')
        eventually(lambda: self.process.out.count('done') > before or not self.process.is_alive(), 'it has called')
        check(self.process.is_alive(), 'the program runs on', self.process.result)

    def end(self):
        check(self.process.is_alive(), 'the program runs on', self.process.result)
        self.process.end().ok()


class Python(Own):
    symbols = ['PyLong_FromString', 'PyNumber_Divmod', 'PyObject_GetIter']
    counted = 'PyLong_FromString'
    SCRIPT = 'import sys\nprint("ready", flush=True)\nfor line in sys.stdin:\n' \
             '    n = float(line)\n    while n > 0:\n        n -= 1\n        int("12")\n        divmod(7, 2)\n    print("done", flush=True)\n'

    def __init__(self, tmp):
        self.path = tmp / 'python'
        shutil.copy(program('/usr/bin/python3.11'), self.path)
        self.process = start(self.path, '-S', '-c', self.SCRIPT, env={'PYTHONHOME': '/usr'})
        self.process.wait_for('^ready$')
        self.pid, self.asked = self.process.pid, 0


class Redis:
    symbols = ['pingCommand', 'addReply', 'processCommand', 'lookupCommand']
    counted = 'pingCommand'

    def __init__(self, tmp):
        self.path, self.socket = tmp / 'redis', tmp / 'socket'
        shutil.copy(program('redis-server'), self.path)
        self.process = start(self.path, '--port', 0, '--unixsocket', self.socket, '--save', '', '--dir', tmp)
        eventually(self.socket.exists, 'it listens')
        self.pid = self.process.pid

    def ask(self, n):
        result = run(program('redis-cli'), '-s', self.socket, '-r', n, 'PING').ok()
        check_equal(result.out, 'PONG\n' * n, 'answers')

    def end(self):
        check(self.process.is_alive(), 'the program runs on', self.process.result)
        self.process.end(signal.SIGTERM)


def come_and_go(tmp, kind, tool):
    need_uprobes()
    seed()
    victim = kind(tmp)
    # redis handles SIGSEGV: what may fault there would be recorded by another uprobe, of kymo's
    bound = [] if IS_SHORT else ['--overwrite']  # an hour's events would fill a disk
    recorder = start_record(victim.pid, *bound, '--displace-faulting',
                            *(word for symbol in victim.symbols for word in ('-p', f'{victim.path}:{symbol}')))
    end = time.monotonic() + (3600 if not IS_SHORT else 60)
    for _ in range(ROUNDS):
        check(time.monotonic() < end, 'in time')
        other = tool(victim.pid, victim.path, victim.counted)
        n = random.randint(10, 300)
        victim.ask(n)
        time.sleep(random.choice([0.1, 0.3]))
        victim.ask(n)
        check_equal(other.end(), 2 * n, 'calls that the other tool counts')
        victim.ask(10)
        time.sleep(random.choice([0, 0.1, 1.2]))
    result = recorder.end(signal.SIGINT).ok()
    check('breakpoint' in result.err or 'own bytes' in result.err, 'it is told', result)
    victim.end()


@timeout(7200)
def test_bpftrace_on_an_own_program(tmp):
    come_and_go(tmp, Own, Bpftrace)


@timeout(7200)
def test_perf_on_an_own_program(tmp):
    come_and_go(tmp, Own, Perf)


@timeout(7200)
def test_bpftrace_on_python(tmp):
    come_and_go(tmp, Python, Bpftrace)


@timeout(7200)
def test_perf_on_python(tmp):
    come_and_go(tmp, Python, Perf)


@timeout(7200)
def test_bpftrace_on_redis(tmp):
    come_and_go(tmp, Redis, Bpftrace)


@timeout(7200)
def test_perf_on_redis(tmp):
    come_and_go(tmp, Redis, Perf)


@timeout(7200)
def test_killed_recorders_with_uprobes_coming_and_going(tmp):
    """Threads are in the functions all the time; their entries are puns of one byte, so no recorder has to look after
    them.
    """
    need_uprobes()
    seed()
    victim = Own(tmp, threads=4)
    before = remains.lasting_mappings(victim.pid)
    script = '; '.join(f'uprobe:{victim.path}:{symbol} {{ @ = count(); }}' for symbol in victim.symbols).replace(
        ';', ' ')
    command = [
        KYMO, 'record', '-q', '-o', tmp / 'killed', '--buffer', '1M', '--for', 5, '--pid', victim.pid,
        *(word for symbol in victim.symbols for word in ('-p', f'{victim.path}:{symbol}'))
    ]
    begin, kills, other = time.monotonic(), 0, None
    for kill in range(KILLS):
        if time.monotonic() - begin > (20 if IS_SHORT else 3600):
            break
        shutil.rmtree(tmp / 'killed', ignore_errors=True)
        if kill % 3 == 0:
            other = start(program('bpftrace'), '-e', script)
        recorder = start(*command, env={'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + ':detect_leaks=0'})
        time.sleep(random.uniform(0, 1.5))
        recorder.end(signal.SIGKILL)
        kills += 1
        if kill % 3 == 1:
            end_tool(other)
        victim.ask(10)
        if random.random() < 0.5:
            kymo('detach', victim.pid)
    seconds = time.monotonic() - begin
    if other.is_alive():
        end_tool(other)
    kymo('detach', victim.pid)
    check(not remains.are_there(victim.pid), 'nothing of kymo is there')
    eventually(
        lambda: all(
            text_at(victim.pid, address_of(victim.pid, victim.path, symbol)) != BREAKPOINT
            for symbol in victim.symbols), 'breakpoints are gone')
    remains.check_nothing_left(victim.pid, before, remains.lasting_mappings)
    victim.end()
    check(kills == KILLS or (IS_SHORT and kills),
          f'{kills} of {KILLS} recorders were killed within {seconds:.0f} s, and nothing broke')


def end_tool(other):
    def has_ended():
        if other.is_alive():
            other.signal(signal.SIGINT)
        return not other.is_alive()

    eventually(has_ended, 'bpftrace ends')
    other.end()
