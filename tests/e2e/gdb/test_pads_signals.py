"""Hits of conditions in pads, and signals that come at the same instruction."""
import os
import signal

from debugging import address_of, go_past, packet
from kymotest import check, check_equal, eventually, timeout
from pads import (FALSE, TRUE, build_hot, code_of, come_to_a_handler_that_stays, come_twice, finish, has_pads,
                  is_quiet, let_run, memories, put, registers, served, word_of)

# `hot` has another argument at each call; `same` is called with the same registers. The handler can stay for a while:
# as if it had interrupted a pad, or to call `hot`.
SOURCE = r'''
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
volatile long go = 1, rounds, signals;
volatile long fake, hold, holds, calls, uses_file;
__attribute__((noipa)) long hot(long n) { return n * 3; }
static void on_signal(int number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	signals++;
	for (long n = 1l << 40; calls; n++) {
		hot(n);
		holds = 1;
	}
	if (!hold)
		return;
	context->uc_mcontext.gregs[REG_RIP] = fake;
	for (holds = 1; hold;)
		;
}
void calling(long n, void **table), called(void);
__asm__(".globl calling, from, called\n.balign 64\ncalling: sub $8, %rsp\nfrom: call *256(%rsi)\nadd $8, %rsp\nret\n"
	".type calling, @function\n.size calling, . - calling\n.balign 64\ncalled: ret\n");
__attribute__((noipa)) void same(void) { __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop"); }
int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	sigaction(SIGUSR1, &action, NULL);
	void *table[64] = { [32] = called };
	void **in_file = mmap(NULL, 4096, PROT_READ, MAP_SHARED, open("table", O_RDWR | O_CREAT, 0600), 0);
	puts("ready");
	fflush(stdout);
	for (long n = 0; go && argc > 1; n++) {
		hot(n);
		void **from = uses_file ? in_file : table;
		uses_file = 0;
		calling(n, from);
	}
	while (go) {
		__asm__ volatile("incq %0; xor %%eax, %%eax" : "+m"(rounds) : : "rax", "cc");
		same();
	}
	printf("wrong 0\n");
	return 0;
}
'''


def next_hit(client, packet, argument):
    check_equal(client.ask(packet)[:3], 'T05', 'a hit')
    check_equal(registers(client)[5], argument, 'no hit is missed, and none is told twice')


@timeout(120)
def test_a_signal_that_waits_at_a_hit(tmp):
    """It comes before the instruction. With the breakpoint in, the hit is told again. Without it the thread goes past it,
    with a handler of the signal or without one."""
    build_hot(tmp, source=SOURCE)
    process, stub, client = served('hot')
    hot, signals = address_of(process.pid, 'hot'), address_of(process.pid, 'signals')
    client.ask(f'Z0,{hot:x},1;{TRUE}')
    come_twice(client, hot)
    check(has_pads(process.pid), 'by pads')
    for i in range(6):
        at = registers(client)[5]
        os.kill(process.pid, signal.SIGUSR1)
        check_equal(client.ask('vCont;c')[:3], 'T1e', 'the signal')
        check_equal((registers(client)[16], registers(client)[5]), (hot, at), 'before the instruction')
        next_hit(client, 'vCont;C1e' if i % 2 else 'vCont;c', at)
        check_equal(go_past(client, hot, f';{TRUE}')[:3], 'T05', 'a step')
        next_hit(client, 'vCont;c', at + 1)
    check_equal(client.word(signals), 3, 'what its handler has got')
    at = registers(client)[5]
    os.kill(process.pid, signal.SIGUSR1)
    check_equal(go_past(client, hot, f';{TRUE}')[:3], 'T1e', 'the signal in place of a step')
    check_equal(go_past(client, hot, f';{TRUE}')[:3], 'T05', 'a step')
    check(registers(client)[16] != hot, 'it was made')
    next_hit(client, 'vCont;c', at + 1)
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


def test_hits_with_the_same_registers(tmp):
    build_hot(tmp, source=SOURCE)
    process, stub, client = served()
    same, rounds = address_of(process.pid, 'same'), address_of(process.pid, 'rounds')
    client.ask(f'Z0,{same:x},1;{TRUE}')
    come_twice(client, same)
    check(has_pads(process.pid), 'by pads')
    before, was = client.word(rounds), registers(client)
    for i in range(20):
        check_equal(go_past(client, same, f';{TRUE}')[:3], 'T05', 'a step')
        check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
        check_equal((client.word(rounds), registers(client)), (before + i + 1, was), 'no hit is missed')
    client.ask(f'z0,{same:x},1')
    finish(process, client, stub)


@timeout(120)
def test_a_handler_that_returns_into_a_pad(tmp):
    """It stays there as long as the handler runs, and the hub knows it. Then it goes."""
    build_hot(tmp, source=SOURCE)
    process, stub, client = served('hot')
    hot, hold, holds = (address_of(process.pid, name) for name in ('hot', 'hold', 'holds'))
    old = come_to_a_handler_that_stays(process, client)
    client.ask(f'z0,{hot:x},1')
    check_equal(client.ask(f'Z0,{hot:x},1;{FALSE}'), 'OK', 'another condition')
    client.send(packet('vCont;C1e'))
    eventually(lambda: word_of(process.pid, holds) == 1, 'the handler runs')
    check_equal(client.interrupt()[:3], 'T02', 'stopped')
    let_run(client)
    check_equal(memories(process.pid), old, 'the pads stay, and there are no others')
    check_equal(client.interrupt()[:3], 'T02', 'stopped')
    put(client, hold, 0)
    eventually(lambda: is_quiet(client) and not memories(process.pid) & old and has_pads(process.pid),
               'they are gone, and there are others')
    check_equal(code_of(process.pid, hot, 1), b'\xe9', 'the condition is in a pad')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


def interrupt_a_handler(process, client, hot):
    """Whether it stood at the beginning of `hot`, which nothing has told of. Then that is a hit."""
    calls, holds = address_of(process.pid, 'calls'), address_of(process.pid, 'holds')
    put(client, calls, 1)
    put(client, holds, 0)
    os.kill(process.pid, signal.SIGUSR1)
    check_equal(client.ask('vCont;c')[:3], 'T1e', 'the signal')
    client.ask(f'z0,{hot:x},1')
    client.send(packet('vCont;C1e'))
    eventually(lambda: word_of(process.pid, holds) == 1, 'the handler runs')
    check_equal(client.interrupt()[:3], 'T02', 'stopped')
    now = registers(client)
    client.ask(f'Z0,{hot:x},1;{TRUE}')
    if now[16] == hot:
        next_hit(client, 'vCont;c', now[5])
    put(client, calls, 0)
    for _ in range(9):
        if registers(client)[16] == hot:
            check_equal(go_past(client, hot, f';{TRUE}')[:3], 'T05', 'a step')
        check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
        if registers(client)[5] < 1 << 40:
            break
    check(has_pads(process.pid), 'by pads')
    return now[16] == hot


@timeout(120)
def test_a_handler_that_comes_to_the_same_pad(tmp):
    build_hot(tmp, source=SOURCE)
    process, stub, client = served('hot')
    hot = address_of(process.pid, 'hot')
    client.ask(f'Z0,{hot:x},1;{TRUE}')
    come_twice(client, hot)
    eventually(lambda: interrupt_a_handler(process, client, hot), 'it is interrupted there')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


@timeout(120)
def test_a_call_that_faults(tmp):
    """Its pad takes it apart: it has pushed the return address when it finds that it cannot read where to go."""
    build_hot(tmp, source=SOURCE)
    process, stub, client = served('hot')
    site, called = address_of(process.pid, 'from'), address_of(process.pid, 'called')
    client.ask(f'Z0,{site:x},1;{TRUE}')
    come_twice(client, site)
    check_equal(code_of(process.pid, site, 1), b'\xe9', 'by a pad')
    for _ in range(3):
        put(client, address_of(process.pid, 'uses_file'), 1)
        at = registers(client)[5]
        check_equal(go_past(client, site, f';{TRUE}')[:3], 'T05', 'a step')
        next_hit(client, 'vCont;c', at + 1)
        now = registers(client)
        for _ in range(2):
            check_equal(go_past(client, site, f';{TRUE}')[:3], 'T0a', 'a fault')
            check_equal(registers(client), now, 'it has yet to be made')
        (tmp / 'table').write_bytes(bytes(256) + called.to_bytes(8, 'little'))
        check_equal(go_past(client, site, f';{TRUE}')[:3], 'T05', 'a step')
        next_hit(client, 'vCont;c', now[5] + 1)
        os.truncate(tmp / 'table', 0)
    client.ask(f'z0,{site:x},1')
    finish(process, client, stub)
