"""Pads of conditions, and what comes in between: other debuggers, other code at the same address, the end of all."""
import os
import signal
import time

from debugging import Client, address_of, kill_hub, offer, state_of
from kymotest import check, check_equal, check_text_intact, eventually, kymo, program, run, timeout
from pads import (FALSE, RDI, TRUE, all_threads, build_hot, condition_at, equal, finish, has_pads, is_quiet, let_run,
                  mappings, memories, registers, served)


@timeout(240)
def test_a_detach_while_all_threads_hit(tmp):
    """Some have come to the trap, and their signals are on the way."""
    build_hot(tmp)
    for i in range(8):
        process, stub, client = served(6)
        hot, poke = address_of(process.pid, 'hot'), address_of(process.pid, 'poke')
        client.ask(f'Z0,{hot:x},1;{TRUE}')
        for _ in range(2 + i % 4):
            check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
            pads = mappings(process.pid)
            for thread in all_threads(client):
                pc = registers(client, thread)[16]
                check(not any(low <= pc < high for low, high in pads), 'no thread is in a pad', hex(pc))
        check(has_pads(process.pid), 'by pads')
        if i % 2:
            check_equal(client.ask(f'z0,{hot:x},1'), 'OK', 'removed')
            let_run(client)
            time.sleep(0.02)
            check_equal(client.interrupt()[:3], 'T02', 'removed, so nothing stops')
        finish(process, client, stub)


def test_a_detach_at_a_signal(tmp):
    build_hot(tmp, source=SIGNALS)
    process, stub, client = served(3)
    hot = address_of(process.pid, 'hot')
    client.ask(f'Z0,{hot:x},1;{FALSE}')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    os.kill(process.pid, signal.SIGUSR1)
    check_equal(client.reply()[:3], 'T1e', 'the signal')
    began = time.monotonic()
    client.ask('D')
    check(time.monotonic() - began < 60, 'it is not waited for')
    client.close()
    stub.end().ok()
    check(process.is_alive(), 'it runs on')
    check(not has_pads(process.pid), 'nothing is left')
    check_text_intact(process.pid)
    process.kill()


def test_another_debugger_has_a_breakpoint_there(tmp):
    build_hot(tmp)
    process, stub, client = served(2)
    hot = address_of(process.pid, 'hot')
    client.ask(f'Z0,{hot:x},1;{equal(RDI, 1 << 30)}')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    second, path = offer('--pid', process.pid)
    other = Client(path)
    other.begin()
    check_equal(client.interrupt()[:3], 'T02', 'the first is quiet')
    check_equal(other.ask(f'Z0,{hot:x},1'), 'OK', 'a breakpoint of the second one')
    for i in range(6):
        let_run(client)
        check_equal(other.ask('vCont;c')[:3], 'T05', 'a hit of the second')
        check_equal(registers(other)[16], hot, 'at the site')
        check_equal(client.interrupt()[:3], 'T02', 'the first is quiet')
        check_equal(client.ask(f'z0,{hot:x},1') + client.ask(f'Z0,{hot:x},1;{FALSE if i % 2 else equal(RDI, 1 << 30)}'),
                    'OKOK', 'inserted again')
    check_equal(other.ask(f'z0,{hot:x},1'), 'OK', 'removed')
    other.ask('D')
    other.close()
    second.end().ok()
    client.ask(f'z0,{hot:x},1')
    client.ask(f'Z0,{hot:x},1;{TRUE}')
    check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit of the first')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


def test_kymo_detach_ends_the_stub(tmp):
    """As it ends a recorder."""
    build_hot(tmp)
    process, stub, client = served(2)
    hot = address_of(process.pid, 'hot')
    client.ask(f'Z0,{hot:x},1;{FALSE}')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    kymo('detach', process.pid).ok()
    check(not has_pads(process.pid), 'nothing is left')
    check_text_intact(process.pid)
    stub.end()
    eventually(lambda: state_of(process.pid) in 'RS', 'it runs on')
    process.kill()


SIGNALS = r'''
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
volatile long go = 1, rounds, signals;
static void on_signal(int number) { __sync_fetch_and_add(&signals, 1); }
__attribute__((noipa)) long hot(long n, long who) { return n * 3 + who; }
static void *run(void *data) { while (go) { hot(1, 2); rounds++; } return NULL; }
int main(void)
{
	pthread_t threads[2];
	signal(SIGUSR1, on_signal);
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	puts("ready");
	fflush(stdout);
	run(NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("wrong 0\n");
	return 0;
}
'''

def test_the_next_stub_takes_out_what_a_killed_one_left(tmp):
    """At once, or where threads stood in those pads, when they have run and are let run again."""
    def is_gone():
        if not memories(process.pid) & left:
            return True
        check_equal(client.interrupt()[:3], 'T02', 'stopped')
        let_run(client)
        return not memories(process.pid) & left

    build_hot(tmp)
    process, stub, client = served(2)
    hot = address_of(process.pid, 'hot')
    client.ask(f'Z0,{hot:x},1;{FALSE}')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    kill_hub(stub)
    client.close()
    left = memories(process.pid)
    check(left, 'something is left')
    stub, path = offer('--pads', '--pid', process.pid)
    client = Client(path)
    client.begin()
    client.ask(f'Z0,{hot:x},1;{FALSE}')
    let_run(client)
    eventually(is_gone, 'what was left is gone')
    eventually(lambda: has_pads(process.pid), 'there are pads')
    check_equal(client.interrupt()[:3], 'T02', 'stopped')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


def test_branches_are_traced(tmp):
    """A thread that is stepped does not go through pads, which make room for that."""
    build_hot(tmp)
    process, stub, client = served(2)
    hot = address_of(process.pid, 'hot')
    client.ask(f'Z0,{hot:x},1;{equal(RDI, 1 << 30)}')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    client.interrupt()
    check_equal(client.ask('Qbtrace:bts'), 'OK', 'begun')
    check(not has_pads(process.pid), 'pads are out')
    client.ask(f'Z0,{hot:x},1;{FALSE}')
    let_run(client)
    time.sleep(0.2)
    check_equal(client.interrupt()[:3], 'T02', 'it is false')
    check(not has_pads(process.pid), 'they stay out')
    check_equal(client.ask('Qbtrace:off'), 'OK', 'ended')
    eventually(lambda: is_quiet(client) and has_pads(process.pid), 'they are in again')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


# It unloads the library that has `hot`, and loads another one at the same address.
CLOSING = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
volatile long go = 1, rounds, what, wrong, at;
static long (*hot)(long, long);
static void *load(const char *name)
{
	void *library = dlopen(name, RTLD_NOW);
	hot = (long (*)(long, long))dlsym(library, "hot");
	at = (long)hot;
	return library;
}
int main(void)
{
	void *library = load("./one.so");
	puts("ready");
	fflush(stdout);
	for (long n = 0; go; n++) {
		if (what == 1) {
			dlclose(library);
			library = load("./two.so");
			what = 2;
		}
		if (hot(n, 1) != n * 3 + 1)
			wrong++;
		rounds++;
	}
	printf("wrong %ld\n", wrong);
	return wrong != 0;
}
"""
CODE = '.globl hot\n.type hot, @function\n.balign 64\nhot: .byte %s\n.size hot, . - hot\n.fill 64, 1, 0x90\n'
ONE = bytes.fromhex('488d847f00000000' '4801f0' 'c3')  # lea 0(%rdi,%rdi,2), %rax; add %rsi, %rax; ret
TWO = bytes.fromhex('4889f8' '4801f8' '4801f8' '4801f0' 'c3')  # mov %rdi, %rax; add %rdi, %rax; …


@timeout(120)
def test_other_code_is_there(tmp):
    build_hot(tmp, source=CLOSING)
    for name, code in ('one', ONE), ('two', TWO):
        (tmp / f'{name}.s').write_text(CODE % ', '.join(f'{byte}' for byte in code))
        run(program('gcc'), '-shared', '-nostdlib', '-o', f'{name}.so', f'{name}.s').ok()
    process, stub, client = served()
    at, what = address_of(process.pid, 'at'), address_of(process.pid, 'what')
    hot = client.word(at)
    check_equal(client.ask(f'Z0,{hot:x},1;{FALSE}'), 'OK', 'inserted')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    client.interrupt()
    client.ask(f'M{what:x},8:0100000000000000')
    let_run(client)
    time.sleep(0.2)
    client.interrupt()
    check_equal([client.word(what), client.word(at)], [2, hot], 'the other one is at the same address')
    check_equal(client.ask(f'm{hot:x},d'), TWO.hex(), 'the code that is there')
    check_equal(client.ask(f'M{hot:x},1:48'), 'OK', 'it can be written')
    check_equal(client.ask(f'z0,{hot:x},1'), 'OK', 'removed')
    for site in hot + 3, hot, hot + 6:
        check_equal(client.ask(f'Z0,{site:x},1'), 'OK', 'one in the new code')
        check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
        check_equal(registers(client)[16], site, 'at the site')
        check_equal(client.ask(f'z0,{site:x},1'), 'OK', 'removed')
    check_equal(client.ask(f'Z0,{hot + 3:x},1;{FALSE}'), 'OK', 'a condition in the new code')
    let_run(client)
    time.sleep(0.1)
    check_equal(client.interrupt()[:3], 'T02', 'it is false')
    print('pads', has_pads(process.pid))
    client.ask(f'z0,{hot + 3:x},1')
    finish(process, client, stub)


def test_a_fault_when_all_are_stopped(tmp):
    build_hot(tmp)
    process, stub, client = served(8)
    hot, where = address_of(process.pid, 'hot'), address_of(process.pid, 'where')
    client.ask(f'Z0,{hot:x},1;{condition_at(where)}')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    client.interrupt()
    pads = mappings(process.pid)
    client.ask(f'M{where:x},8:' + (8).to_bytes(8, 'little').hex())
    for _ in range(30):
        check_equal(client.ask('vCont;c')[:3], 'T05', 'memory that is not there stops it')
        for thread in all_threads(client):
            pc = registers(client, thread)[16]
            check(not any(low <= pc < high for low, high in pads), 'no thread is in a pad', hex(pc))
    finish(process, client, stub)
