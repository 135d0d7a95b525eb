"""Steps that tracepoints ask for (`while-stepping`) do not show in the program, whenever they end."""
import os
import random
import re
import signal
import threading
import time
from contextlib import contextmanager, nullcontext

from debugging import Client, address_of, advances, end, listen, offer
from kymotest import check, check_equal, check_matches, check_untraced, eventually, program, run, start
from pads import all_threads, let_run
from tracing import status

# It pushes flags, pops them some instructions later, and looks at what a system call leaves in R11. With threads these
# have one processor, so that most of them wait for it where a debugger stops them.
SOURCE = r'''
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
static int signals;
static void on_signal(int number, siginfo_t *info, void *context)
{
	unsigned long flags;
	__asm__ volatile("pushfq\n\tnop\n\tmov (%%rsp), %0\n\tpopfq" : "=r"(flags) : : "cc", "memory");
	if ((flags | ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL]) & 0x100)
		_exit(8);
}
static __attribute__((noipa)) void once(void)
{
	unsigned long flags, r11;
	__asm__ volatile(".globl first\nfirst:\n\tnop\n.globl push\npush:\n\tpushfq\n\tmov (%%rsp), %0\n\tnop\n\tnop\n\tnop\n"
			 ".globl pop\npop:\n\tpopfq\n\tpushfq\n\tpopfq\n\tnop\n" : "=r"(flags) : : "cc", "memory");
	__asm__ volatile("mov $39, %%eax\n.globl call\ncall:\n\tsyscall\n\tmov %%r11, %0\n\tnop\n.globl last\nlast:\n\tnop"
			 : "=r"(r11) : : "rax", "rcx", "r11", "memory");
	if ((flags | r11) & 0x100)
		_exit(9);
}
static void *loop(void *data)
{
	for (long round = 1;; round++) {
		once();
		if (signals && round % 16 == 0)
			syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1);
		if (round % 100 == 0)
			usleep(1000);
	}
	return data;
}
int main(int argc, char **argv)
{
	const int n = argc > 1 ? atoi(argv[1]) : 1;
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	cpu_set_t one;
	pthread_t thread;
	signals = argc > 2;
	sigaction(SIGUSR1, &action, NULL);
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (n > 1)
		sched_setaffinity(0, sizeof(one), &one);
	for (int i = 1; i < n; i++)
		pthread_create(&thread, NULL, loop, NULL);
	puts("ready");
	fflush(stdout);
	loop(NULL);
}
'''


def flags_app(tmp, *words):
    (tmp / 'flags.c').write_text(SOURCE)
    run(program('gcc'), '-g', '-O1', '-pthread', '-o', 'app', 'flags.c').ok()
    process = start('./app', *words)
    process.wait_for('^ready')
    return process


def created(client):
    return int(re.search('tcreated:([0-9a-f]+)', status(client)).group(1), 16)


def runs_on(client, process):
    let_run(client)
    advances(process)
    client.interrupt()
    check_matches(status(client), '^T1')
    return created(client)


def define(client, *points):
    """A run with tracepoints: where they are, and how many steps each has."""
    packets = [f'QTDP:{i + 1}:{where:x}:E:{steps:x}:0' for i, (where, steps) in enumerate(points)]
    for text in ('QTinit', 'QTBuffer:circular:1', *packets, 'QTStart'):
        check_equal(client.ask(text), 'OK', text)


def test_flags_do_not_show_steps(tmp):
    """The last step is before, in and behind what pushes and pops flags, and behind the system call."""
    process = flags_app(tmp)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    first = address_of(process.pid, 'first')
    for steps in range(1, 16):
        define(client, (first, steps))
        eventually(lambda n=steps: runs_on(client, process) > 10 * n, 'frames')
        check_equal(client.ask('QTStop'), 'OK', 'stopped')
    client.close()
    stub.end().ok()
    check_untraced(process.pid)
    advances(process)
    end(process)


PLACES = ('first', 'push', 'pop', 'call', 'last')
PASSED = 'QPassSignals:11;13;1e'  # SIGSTOP, SIGCONT, SIGUSR1


@contextmanager
def stopped_and_continued(process):
    """All the time, by another process."""
    is_over = threading.Event()

    def run_on():
        while not is_over.is_set():
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(random.uniform(0, 0.0005))
            os.kill(process.pid, signal.SIGCONT)
            time.sleep(random.uniform(0, 0.005))

    thread = threading.Thread(target=run_on)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def runs_for(client, seconds):
    """It is not stopped by anything but the client; at first by a signal that came before the client could pass it."""
    let_run(client)
    time.sleep(seconds)
    return client.interrupt()[:3]


def stop_amid_steps(tmp, n_rounds, *words, stops=False):
    """Runs that end while most threads wait for the processor with a step to make."""
    process = flags_app(tmp, *words)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    client.ask(PASSED)
    eventually(lambda: runs_for(client, 0.01) == 'T02', 'signals that are passed')
    places = [address_of(process.pid, name) for name in PLACES]
    with stopped_and_continued(process) if stops else nullcontext():
        for _ in range(n_rounds):
            points = random.sample(places, random.randrange(1, 4))
            define(client, *((where, random.randrange(1, 16)) for where in points))
            check_equal(runs_for(client, random.uniform(0.002, 0.03)), 'T02', 'no other stop')
            check_equal(client.ask('QTStop'), 'OK', 'stopped')
            check_equal(runs_for(client, random.uniform(0, 0.005)), 'T02', 'no other stop of what runs freely')
    client.ask('D')
    client.close()
    stub.end().ok()
    check_untraced(process.pid)
    time.sleep(0.1)
    check(process.is_alive(), 'the program lives')
    end(process)


def test_runs_that_end_amid_steps(tmp):
    stop_amid_steps(tmp, 60, 32)


def test_runs_that_end_amid_steps_and_signals(tmp):
    """Threads are in handlers, which push and pop flags, too."""
    stop_amid_steps(tmp, 60, 32, 'signals')


def test_runs_that_end_amid_steps_and_stops(tmp):
    """The process is stopped and continued meanwhile."""
    stop_amid_steps(tmp, 40, 16, stops=True)


def test_branches_that_end_amid_steps(tmp):
    """Threads whose branches were traced until a stop: what pushes flags then is seen, too."""
    process = flags_app(tmp, 32)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    threads = all_threads(client)
    for _ in range(40):
        for what in ('bts', 'off'):
            for thread in threads:
                client.ask(f'Hg{thread}')
                check_equal(client.ask(f'Qbtrace:{what}'), 'OK', what)
            check_equal(runs_for(client, 0.02), 'T02', f'no other stop: {what}')
    client.ask('D')
    client.close()
    stub.end().ok()
    time.sleep(0.1)
    check(process.is_alive(), 'the program lives')
    end(process)


def test_each_step_is_one_frame(tmp):
    """Instructions that are not left to steps, and system calls, are steps as others are."""
    process = flags_app(tmp)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    first, last = address_of(process.pid, 'first'), address_of(process.pid, 'last')
    client.ask('QTinit')
    check_equal(client.ask(f'QTDP:1:{first:x}:E:e:0'), 'OK', 'a tracepoint with 14 steps')
    check_equal(client.ask(f'QTDP:2:{last:x}:E:0:1'), 'OK', 'the next one ends the run')
    check_equal(client.ask('QTStart'), 'OK', 'started')

    def is_over():
        let_run(client)
        time.sleep(0.05)
        client.interrupt()
        return status(client).startswith('T0;')

    eventually(is_over, 'the run ends')
    check_matches(status(client), r'^T0;tpasscount:2;tframes:')
    places, frame = [], 0
    while client.ask(f'QTFrame:{frame:x}').startswith('F' + f'{frame:x}'):
        places.append(int.from_bytes(bytes.fromhex(client.ask('p10')), 'little'))
        frame += 1
    places = places[places.index(first):]
    check_equal(len(places), 1 + 14 + 1, 'a frame a step')
    check_equal(places[:-1], sorted(set(places)), 'no instruction twice')
    check_equal(places[-2:], [last, last], 'the last step leads to the other one')
    client.close()
    stub.end().ok()
    end(process)


def end_of_run(tmp, n_rounds, *words, stops=False):
    """By a client that goes, by detaching, or by the end of the stub, with and without a client."""
    process = flags_app(tmp, *words)
    places = [address_of(process.pid, name) for name in PLACES]
    with stopped_and_continued(process) if stops else nullcontext():
        for way in ('close', 'detach', 'end', 'disconnected') * n_rounds:
            server, port = listen('--attach', ':0', str(process.pid))
            client = Client(port)
            client.begin()
            client.ask(PASSED)
            client.ask(f'QTDisconnected:{int(way == "disconnected")}')
            define(client, (random.choice(places), random.randrange(1, 16)))
            let_run(client)
            time.sleep(random.uniform(0.01, 0.03))
            if way == 'detach':
                client.interrupt()
                check_equal(client.ask(f'D;{process.pid:x}'), 'OK', 'the stub lets go')
            if way != 'end':
                client.close()
            if way == 'disconnected':
                time.sleep(0.02)
            if way in ('end', 'disconnected'):
                os.kill(server.pid, signal.SIGTERM)
            client.close()
            server.end()
            check_untraced(process.pid)
            time.sleep(0.02)
            check(process.is_alive(), f'the program lives after {way}')
    end(process)


def test_however_the_run_ends(tmp):
    end_of_run(tmp, 5)


def test_however_the_run_ends_with_threads_and_signals(tmp):
    end_of_run(tmp, 5, 16, 'signals')


def test_however_the_run_ends_with_stops(tmp):
    end_of_run(tmp, 5, 8, 'signals', stops=True)


def test_a_step_over_a_breakpoint_at_a_push(tmp):
    """The hub's own step over it, while the process is stopped and continued. What it pushes is the program's flags."""
    process = flags_app(tmp, 8)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    client.ask(PASSED)
    define(client, (address_of(process.pid, 'push'), 0))
    let_run(client)
    with stopped_and_continued(process):
        time.sleep(3)
    check_equal(client.interrupt()[:3], 'T02', 'no other stop')
    client.ask('D')
    client.close()
    stub.end().ok()
    time.sleep(0.1)
    check(process.is_alive(), 'the program lives')
    end(process)


def test_clients_that_leave_a_run_amid_steps(tmp):
    """The run goes on, and each thread makes the steps that it has to make, and no other."""
    process = flags_app(tmp, 32)
    stub, path = offer('--pid', process.pid)
    for i in range(40):
        client = Client(path)
        client.begin()
        client.ask('QTDisconnected:1')
        if i == 0:
            define(client, (address_of(process.pid, 'first'), 1), (address_of(process.pid, 'pop'), 3))
        let_run(client)
        time.sleep(random.uniform(0, 0.02))
        client.close()
        time.sleep(random.uniform(0, 0.02))
        check(process.is_alive(), 'the program lives')
    client = Client(path)
    client.begin()
    check_equal(client.ask('QTStop'), 'OK', 'stopped')
    client.close()
    stub.end().ok()
    time.sleep(0.1)
    check(process.is_alive(), 'the program lives')
    end(process)
