"""What the tests of conditions in pads share."""
import os
import signal
import time
from pathlib import Path

from debugging import Client, address_of, go_past, offer, packet
from kymotest import check, check_equal, check_matches, eventually, program, run, start

ON = 'monitor set pads 1'

# Threads call `hot`, and look whether all is as it should be.
SOURCE = r'''
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
volatile long go = 1, wrong, rounds[128], faults, none;
volatile long *volatile where = &none;
static void on_fault(int number) { __sync_fetch_and_add(&faults, 1); _exit(9); }
__attribute__((noipa)) long hot(long n, long who) { return n * 3 + who; }
__attribute__((noipa)) void over(void) { go = 0; }
__attribute__((noipa)) void poke(void) { wrong += 0; }
static void *run(void *data)
{
	long who = (long)data, a = who, b = ~who;
	for (long n = 0; go; n++) {
		register long c __asm__("r12") = a ^ n;
		register long d __asm__("r10") = b + n;
		__asm__ volatile("" : "+r"(c), "+r"(d));
		if (hot(n, who) != n * 3 + who || c != (a ^ n))
			wrong++;
		rounds[who]++;
		if (who == 0 && n % 64 == 0)
			poke();
	}
	return NULL;
}
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 1;
	pthread_t threads[128];
	if (argc > 2 && argv[2][0] == 'h')
		signal(SIGSEGV, on_fault);
	if (argc > 2 && argv[2][0] == 'i')
		signal(SIGSEGV, SIG_IGN);
	for (long i = 1; i < n; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	puts("ready");
	fflush(stdout);
	run(NULL);
	for (long i = 1; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("wrong %ld\n", wrong);
	return wrong != 0;
}
'''


def build_hot(tmp, optimize='-O1', source=SOURCE):
    (tmp / 'app.c').write_text(source)
    run(program('gcc'), '-g', optimize, '-w', '-pthread', '-o', 'app', 'app.c').ok()


def maps_of(pid):
    """Also where the first thread has ended before the others."""
    for thread in os.listdir(f'/proc/{pid}/task'):
        try:
            if text := Path(f'/proc/{pid}/task/{thread}/maps').read_text():
                return text
        except (FileNotFoundError, ProcessLookupError):
            continue
    return ''


def has_pads(pid):
    return 'memfd:kymo' in maps_of(pid)


def served(*words, **features):
    """A program, what serves it, and a client that has pads on."""
    process = start('./app', *words)
    process.wait_for('^ready')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin(**features)
    client.ask('qRcmd,' + 'set pads 1'.encode().hex())
    return process, stub, client


def equal(register, value):
    """$register == value, as gdb writes it."""
    return f'Xa,26{register:04x}24{value & 0xffffffff:08x}1327'


def condition_at(address):
    """**(long **)address, as gdb writes it."""
    code = f'25{address:016x}1a1a27'
    return f'X{len(code) // 2:x},{code}'


RDI, RSI = 5, 4
FALSE = 'X3,220027'
TRUE = 'X3,220127'


def let_run(client):
    client.send(packet('vCont;c'))


def halt(client):
    """Whether ^C alone has stopped it. Where a hit comes first ^C waits, and is taken, too."""
    is_stopped_by_it = client.interrupt()[:3] == 'T02'
    if not is_stopped_by_it:
        while client.ask('vCont;c')[:3] != 'T02':
            pass
    return is_stopped_by_it


def is_quiet(client):
    let_run(client)
    time.sleep(0.1)
    return halt(client)


def mappings(pid):
    """Where pads are."""
    found = []
    for line in maps_of(pid).splitlines():
        if 'memfd:kymo' in line and 'x' in line.split()[1]:
            found.append([int(part, 16) for part in line.split()[0].split('-')])
    return found


def memories(pid):
    """The inodes of what pads are in."""
    return {line.split()[4] for line in maps_of(pid).splitlines() if 'memfd:kymo' in line}


def code_of(pid, address, size):
    """What is in memory, which no client sees."""
    with open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory:
        memory.seek(address)
        return memory.read(size)


def word_of(pid, address):
    return int.from_bytes(code_of(pid, address, 8), 'little')


def put(client, address, value):
    check_equal(client.ask(f'M{address:x},8:{value.to_bytes(8, "little").hex()}'), 'OK', 'written')


def trap_of(pid, site):
    """The address of the trap in the pad that the jump at the site leads to: an int3 before a jump."""
    at = site
    while (jump := code_of(pid, at, 5))[0] == 0xe9:
        at += 5 + int.from_bytes(jump[1:], 'little', signed=True)
    check(at != site, 'a jump is at the site')
    return at + code_of(pid, at, 400).index(b'\xcc\xe9')


def registers(client, thread=None):
    """As 64-bit words: rax, rbx, …, rip."""
    if thread:
        client.ask(f'Hg{thread}')
    data = bytes.fromhex(client.ask('g').replace('x', '0')[:17 * 16])
    return [int.from_bytes(data[i * 8:i * 8 + 8], 'little') for i in range(17)]


def all_threads(client):
    reply, found = client.ask('qfThreadInfo'), []
    while reply.startswith('m'):
        found += reply[1:].split(',')
        reply = client.ask('qsThreadInfo')
    return found


def come_twice(client, site):
    """To a breakpoint that has the condition TRUE, the second time by a pad."""
    check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
    check_equal(go_past(client, site, f';{TRUE}')[:3], 'T05', 'a step')
    check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')


def come_to_a_handler_that_stays(process, client):
    """Two hits at `hot`, and the signal whose handler waits while `hold` is set; `fake` is the trap to which it seems to
    return. Where the pads are."""
    hot, hold, fake = (address_of(process.pid, name) for name in ('hot', 'hold', 'fake'))
    client.ask(f'Z0,{hot:x},1;{TRUE}')
    come_twice(client, hot)
    old = memories(process.pid)
    check(old, 'by pads')
    put(client, fake, trap_of(process.pid, hot))
    put(client, hold, 1)
    os.kill(process.pid, signal.SIGUSR1)
    check_equal(client.ask('vCont;c')[:3], 'T1e', 'the signal')
    return old


def symbol_of(pid, name):
    offset = next(line.split()[0] for line in run('nm', './app').ok().out.splitlines() if line.split()[-1] == name)
    base = next(line.split('-')[0] for line in maps_of(pid).splitlines() if line.endswith('/app'))
    return int(base, 16) + int(offset, 16)


def finish(process, client, stub):
    """The program ends well when its debugger has gone."""
    over = symbol_of(process.pid, 'go')
    client.ask(f'M{over:x},8:' + '00' * 8)
    client.ask('D')
    client.close()
    stub.end().ok()
    check_matches(process.end().ok().out, '^wrong 0$')
