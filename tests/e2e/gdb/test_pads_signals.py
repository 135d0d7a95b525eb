"""Hits of conditions in pads, and signals that come at the same instruction."""
import os
import signal
import time

from debugging import address_of, packet
from kymotest import check, check_equal, eventually, timeout
from pads import (FALSE, TRUE, build_hot, code_of, finish, has_pads, let_run, mappings, memories, put, registers,
                  served, trap_of, word_of)

# `hot` has another argument at each call; `same` is called with the same registers.
SOURCE = r'''
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
#include <unistd.h>
volatile long go = 1, rounds, signals;
volatile long fake, hold, holds;
static void on_signal(int number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	signals++;
	if (!hold)
		return;
	context->uc_mcontext.gregs[REG_RIP] = fake;
	for (holds = 1; hold;)
		;
}
__attribute__((noipa)) long hot(long n) { return n * 3; }
__attribute__((noipa)) void same(void) { __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop"); }
int main(int argc, char **argv)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	sigaction(SIGUSR1, &action, NULL);
	puts("ready");
	fflush(stdout);
	for (long n = 0; go && argc > 1; n++)
		hot(n);
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
    check_equal(registers(client)[5], argument, 'each hit is told once')


@timeout(120)
def test_a_signal_that_waits_at_a_hit(tmp):
    """It comes before the instruction. The hit is not told again, with a handler of the signal or without one."""
    build_hot(tmp, source=SOURCE)
    process, stub, client = served('hot')
    hot, signals = address_of(process.pid, 'hot'), address_of(process.pid, 'signals')
    client.ask(f'Z0,{hot:x},1;{TRUE}')
    check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
    check(has_pads(process.pid), 'by pads')
    check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
    for i in range(6):
        at = registers(client)[5]
        os.kill(process.pid, signal.SIGUSR1)
        check_equal(client.ask('vCont;c')[:3], 'T1e', 'the signal')
        check_equal((registers(client)[16], registers(client)[5]), (hot, at), 'before the instruction')
        next_hit(client, 'vCont;C1e' if i % 2 else 'vCont;c', at + 1)
    check_equal(client.word(signals), 3, 'what its handler has got')
    at = registers(client)[5]
    os.kill(process.pid, signal.SIGUSR1)
    check_equal(client.ask('vCont;s')[:3], 'T1e', 'the signal in place of a step')
    check_equal(client.ask('vCont;s')[:3], 'T05', 'a step')
    check(registers(client)[16] != hot, 'it was made')
    next_hit(client, 'vCont;c', at + 1)
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


def test_hits_with_the_same_registers(tmp):
    build_hot(tmp, source=SOURCE)
    process, stub, client = served()
    same, rounds = address_of(process.pid, 'same'), address_of(process.pid, 'rounds')
    client.ask(f'Z0,{same:x},1;{TRUE}')
    check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
    check(has_pads(process.pid), 'by pads')
    check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
    before, was = client.word(rounds), registers(client)
    for i in range(20):
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
    client.ask(f'Z0,{hot:x},1;{TRUE}')
    for _ in range(2):
        check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
    old = memories(process.pid)
    check(old, 'by pads')
    put(client, address_of(process.pid, 'fake'), trap_of(process.pid, hot))
    put(client, hold, 1)
    os.kill(process.pid, signal.SIGUSR1)
    check_equal(client.ask('vCont;c')[:3], 'T1e', 'the signal')
    client.ask(f'z0,{hot:x},1')
    check_equal(client.ask(f'Z0,{hot:x},1;{FALSE}'), 'OK', 'another condition')
    client.send(packet('vCont;C1e'))
    eventually(lambda: word_of(process.pid, holds) == 1, 'the handler runs')
    for _ in range(3):
        check_equal(client.interrupt()[:3], 'T02', 'stopped')
        let_run(client)
    check_equal(memories(process.pid), old, 'the pads stay, and there are no others')
    check_equal(client.interrupt()[:3], 'T02', 'stopped')
    put(client, hold, 0)
    for _ in range(3):
        let_run(client)
        time.sleep(0.1)
        check_equal(client.interrupt()[:3], 'T02', 'nothing but ^C stops it')
        check(not any(low <= registers(client)[16] < high for low, high in mappings(process.pid)), 'it is in no pad')
    check(not memories(process.pid) & old, 'they are gone')
    check(has_pads(process.pid), 'there are others')
    check_equal(code_of(process.pid, hot, 1), b'\xe9', 'the condition is in a pad')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)
