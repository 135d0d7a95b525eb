"""Pads that cannot be taken out at once: code that cannot be written, and attempts that fail."""
import signal

from debugging import Client, address_of, kill_hub, offer, packet
from kymotest import check, check_equal, eventually, timeout
from pads import (FALSE, build_hot, code_of, come_to_a_handler_that_stays, finish, has_pads, is_quiet, let_run,
                  memories, put, served, word_of)

SIZE = 5  # of a jump

# It changes its code in two steps, as programs do that may not have what can be written and executed.
WRITING = r'''
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
volatile long go = 1, rounds, what, wrong;
__attribute__((noipa, section(".changed"), aligned(4096))) long hot(long n) { return n * 3 + 100000; }
int main(void)
{
	puts("ready");
	fflush(stdout);
	for (long n = 0; go; n++) {
		if (what == 1) {
			mprotect((void *)hot, 4096, PROT_READ | PROT_WRITE);
			for (what = 2; what == 2;)
				usleep(100);
			mprotect((void *)hot, 4096, PROT_READ | PROT_EXEC);
		}
		wrong += hot(n) != n * 3 + 100000;
		rounds++;
	}
	printf("wrong %ld\n", wrong);
	return wrong != 0;
}
'''


@timeout(120)
def test_code_that_cannot_be_executed(tmp):
    """Its jumps stay until it is code again, and no client sees them."""
    build_hot(tmp, source=WRITING)
    process, stub, client = served()
    hot, what = address_of(process.pid, 'hot'), address_of(process.pid, 'what')
    code = client.ask(f'm{hot:x},{SIZE:x}')
    check_equal(client.ask(f'Z0,{hot:x},1;{FALSE}'), 'OK', 'inserted')
    check(is_quiet(client), 'it is false')
    jump = code_of(process.pid, hot, SIZE)
    check_equal(jump[:1], b'\xe9', 'by a pad')
    put(client, what, 1)
    let_run(client)
    eventually(lambda: word_of(process.pid, what) == 2, 'it cannot be executed')
    check_equal(client.interrupt()[:3], 'T02', 'stopped')
    check_equal(client.ask(f'z0,{hot:x},1'), 'OK', 'it is not wanted any more')
    old = memories(process.pid)
    for _ in range(2):
        check(is_quiet(client), 'nothing stops it')
        check_equal(code_of(process.pid, hot, SIZE), jump, 'the jump is there')
        check_equal(memories(process.pid), old, 'and so is its pad')
        check_equal(client.ask(f'm{hot:x},{SIZE:x}'), code, 'what a client reads')
    put(client, what, 3)
    eventually(lambda: is_quiet(client) and not has_pads(process.pid), 'it is gone')
    check_equal(code_of(process.pid, hot, SIZE).hex(), code, 'what is there')
    finish(process, client, stub)


# A handler stays for a while, as if it had interrupted a pad.
HOLDING = r'''
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
volatile long go = 1, fake, hold, holds;
static void on_signal(int number, siginfo_t *info, void *data)
{
	((ucontext_t *)data)->uc_mcontext.gregs[REG_RIP] = fake;
	for (holds = 1; hold;)
		;
}
__attribute__((noipa)) long hot(long n) { return n * 3 + 100000; }
int main(void)
{
	struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO };
	sigaction(SIGUSR1, &action, NULL);
	puts("ready");
	fflush(stdout);
	for (long n = 0; go; n++)
		hot(n);
	printf("wrong 0\n");
	return 0;
}
'''


@timeout(120)
def test_an_attempt_that_fails(tmp):
    """A thread may return into a pad, and other bytes are at its site for a while. It is tried again."""
    build_hot(tmp, source=HOLDING)
    process, stub, client = served()
    hot, hold, holds = (address_of(process.pid, name) for name in ('hot', 'hold', 'holds'))
    code = bytes.fromhex(client.ask(f'm{hot:x},{SIZE:x}'))
    old = come_to_a_handler_that_stays(process, client)
    client.ask(f'z0,{hot:x},1')
    client.send(packet('vCont;C1e'))
    eventually(lambda: word_of(process.pid, holds) == 1, 'the handler runs')
    check_equal(client.interrupt()[:3], 'T02', 'stopped')
    check(is_quiet(client), 'nothing stops it')
    check_equal(code_of(process.pid, hot, SIZE), code, 'the jump is gone')
    check_equal(memories(process.pid), old, 'the pad is not')
    with open(f'/proc/{process.pid}/mem', 'r+b', buffering=0) as memory:
        for others in b'\x0f\x0b' * 2 + b'\x90', code:
            memory.seek(hot)
            memory.write(others)
            check(is_quiet(client), 'nothing stops it')
            check_equal(code_of(process.pid, hot, SIZE), others, 'what is there stays')
            check_equal(memories(process.pid), old, 'and so does the pad')
    put(client, hold, 0)
    client.ask(f'Z0,{hot:x},1;{FALSE}')
    eventually(lambda: is_quiet(client) and not memories(process.pid) & old and has_pads(process.pid),
               'it is gone, and there is another one')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


@timeout(120)
def test_what_a_dead_stub_has_left_is_not_written_over_the_next_ones_jumps(tmp):
    """Its pad stays, as a thread may return into it. The trampoline there still leads to it, and the text does not."""
    build_hot(tmp, source=HOLDING.replace('100000', 'again').replace('hot(long n)', 'hot(long n, long again)').replace(
        'hot(n)', 'hot(n, 1)'))
    process, stub, client = served()
    hot, hold, holds = (address_of(process.pid, name) for name in ('hot', 'hold', 'holds'))
    code = bytes.fromhex(client.ask(f'm{hot:x},{SIZE:x}'))
    old = come_to_a_handler_that_stays(process, client)
    check_equal(code_of(process.pid, hot, SIZE), b'\xe9' + code[1:], 'a jump that has changed one byte')
    client.send(packet('vCont;C1e'))
    eventually(lambda: word_of(process.pid, holds) == 1, 'the handler runs')
    kill_hub(stub)
    client.close()
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    client.ask('qRcmd,' + 'set pads 1'.encode().hex())
    client.ask(f'Z0,{hot:x},1;{FALSE}')
    check(is_quiet(client), 'nothing stops it')
    check(old < memories(process.pid), 'the old pad is there, and a new one')
    jump = code_of(process.pid, hot, SIZE)
    check(jump[:1] == b'\xe9' and jump[1:] != code[1:], 'a jump of more bytes', jump)
    for _ in range(3):
        check(is_quiet(client), 'nothing stops it')
        check_equal(code_of(process.pid, hot, SIZE), jump, 'the new jump')
    put(client, hold, 0)
    eventually(lambda: is_quiet(client) and not memories(process.pid) & old, 'the old pad is gone')
    check_equal(code_of(process.pid, hot, SIZE), jump, 'the new jump')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)
