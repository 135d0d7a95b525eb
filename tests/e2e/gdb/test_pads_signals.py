"""Hits of conditions in pads, and signals that come at the same instruction."""
import os
import signal

from debugging import address_of
from kymotest import check, check_equal, timeout
from pads import TRUE, build_hot, finish, has_pads, registers, served

# `hot` has another argument at each call; `same` is called with the same registers.
SOURCE = r'''
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
volatile long go = 1, rounds, signals;
static void on_signal(int number) { signals++; }
__attribute__((noipa)) long hot(long n) { return n * 3; }
__attribute__((noipa)) void same(void) { __asm__ volatile("nop; nop; nop; nop; nop; nop; nop; nop"); }
int main(int argc, char **argv)
{
	signal(SIGUSR1, on_signal);
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
