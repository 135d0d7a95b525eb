"""Conditions of breakpoints that are evaluated in pads, in the threads themselves."""
import os
import re
import signal
import time

from debugging import SERVER, Client, address_of, by_stdio, gdb, kill_hub, offer, state_of
from kymotest import KYMO, check, check_equal, check_matches, check_text_intact, eventually, kymo, run, start, timeout
from pads import (FALSE, ON, RDI, RSI, SOURCE, TRUE, all_threads, build_hot, condition_at, equal, finish, halt,
                  has_pads, is_quiet, let_run, mappings, registers, served, symbol_of)

KILLS = int(os.environ.get('KYMO_KILLS', 10))


def test_a_false_one_stops_nobody_and_a_true_one_does(tmp):
    build_hot(tmp)
    process, stub, client = served(2)
    hot = address_of(process.pid, 'hot')
    check_equal(client.ask(f'Z0,{hot:x},1;{FALSE}'), 'OK', 'inserted')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    time.sleep(0.2)
    check_equal(client.interrupt()[:3], 'T02', 'nothing but ^C stops it')
    before = client.word(address_of(process.pid, 'rounds'))
    let_run(client)
    time.sleep(0.5)
    client.interrupt()
    check(client.word(address_of(process.pid, 'rounds')) - before > 20000, 'no thread is stopped for it')
    check_equal(client.ask(f'Z0,{hot:x},1;{TRUE}'), 'OK', 'another condition')
    for _ in range(20):
        reply = client.ask('vCont;c')
        check_equal(reply[:3], 'T05', 'a hit')
        check_equal(registers(client)[16], hot, 'at the site')
    check_equal(client.ask(f'z0,{hot:x},1'), 'OK', 'removed')
    finish(process, client, stub)
    check_equal(has_pads(process.pid) if process.is_alive() else False, False, 'pads are gone')


def both(app, *commands, **options):
    """What gdb says with pads and without."""
    out = [by_stdio(app, setting, *commands, **options).ok().out for setting in (ON, 'monitor set pads 0')]
    # Flags that the program does not read any more are the pad's.
    return [re.sub(r'^(?:Conditions|eflags|\[Inferior) .*\n', '', text, flags=re.MULTILINE) for text in out]


LOOK = ['info registers', 'x/8xb $pc', 'x/4i $pc', 'bt', 'info args']


def test_a_stop_is_as_with_int3(tmp):
    for optimize in '-O0', '-O1', '-O2':
        build_hot(tmp, optimize)
        with_pads, with_int3 = both('./app', 'break over', 'break hot if n % 50 == 27', 'continue', *LOOK, 'continue',
                                    *LOOK, 'stepi', *LOOK, 'stepi', *LOOK, 'next', 'next', *LOOK, 'kill')
        check_equal(with_pads, with_int3, f'what is shown with {optimize}')
        with_pads, with_int3 = both('./app', 'break hot if n % 50 == 7', 'continue', 'finish', 'info registers rip rsp',
                                    'continue', 'step', 'step', 'step', 'info registers', 'continue', 'tbreak poke',
                                    'continue', *LOOK, 'kill')
        check_equal(with_pads, with_int3, f'what follows with {optimize}')


@timeout(180)
def test_interrupts_find_no_thread_in_a_pad(tmp):
    build_hot(tmp)
    process, stub, client = served(4)
    hot, poke = address_of(process.pid, 'hot'), address_of(process.pid, 'poke')
    for site in hot, poke:
        check_equal(client.ask(f'Z0,{site:x},1;{FALSE}'), 'OK', 'inserted')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    pads = mappings(process.pid)
    for i in range(int(os.environ.get('KYMO_INTERRUPTS', 150))):
        check_equal(client.interrupt()[:3], 'T02', 'stopped')
        for thread in all_threads(client):
            pc = registers(client, thread)[16]
            check(not any(low <= pc < high for low, high in pads), 'no thread is in a pad', hex(pc))
        if i % 3 == 0:
            client.ask(f'z0,{hot:x},1')
            client.ask(f'Z0,{hot:x},1;{FALSE}')
        if i % 5 == 0:
            thread = all_threads(client)[i % 4]
            for _ in range(4):
                client.ask(f'vCont;s:{thread}')
        let_run(client)
    client.interrupt()
    finish(process, client, stub)


@timeout(300)
def test_a_hundred_threads(tmp):
    build_hot(tmp)
    process, stub, client = served(100)
    client.socket.settimeout(150)  # the threads are busy, and are stopped and let go several times
    hot = address_of(process.pid, 'hot')
    for who in range(0, 100, 24):
        check_equal(client.ask(f'Z0,{hot:x},1;{equal(RSI, who)}'), 'OK', 'inserted')
        check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
        found = registers(client)
        check_equal([found[16], found[4]], [hot, who], 'of the thread that is meant')
    check(has_pads(process.pid), 'by pads')
    check_equal(client.ask(f'z0,{hot:x},1'), 'OK', 'removed')
    finish(process, client, stub)


def test_the_text_is_the_files_afterward(tmp):
    build_hot(tmp)
    process, stub, client = served(3)
    hot, poke = address_of(process.pid, 'hot'), address_of(process.pid, 'poke')
    original = client.ask(f'm{hot:x},10')
    for site in hot, poke:
        check_equal(client.ask(f'Z0,{site:x},1;{FALSE}'), 'OK', 'inserted')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    client.interrupt()
    check_equal(client.ask(f'm{hot:x},10'), original, 'what the client reads')
    check_equal(client.ask(f'M{hot:x},1:90')[:1], 'E', 'a write to the instruction that a pad has copied')
    check_equal(client.ask(f'z0,{poke:x},1'), 'OK', 'one removed')
    let_run(client)
    time.sleep(0.2)
    client.interrupt()
    check(has_pads(process.pid), 'the other stays')
    check_equal(client.ask(f'z0,{hot:x},1'), 'OK', 'both removed')
    let_run(client)
    eventually(lambda: not has_pads(process.pid), 'pads are out')
    check_text_intact(process.pid)
    client.interrupt()
    check_equal(client.ask(f'Z0,{hot:x},1;{FALSE}'), 'OK', 'in again')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads again')
    client.close()
    stub.end().ok()
    eventually(lambda: not has_pads(process.pid), 'they go with the client')
    check_text_intact(process.pid)
    process.kill()


def test_the_user_may_want_none(tmp):
    build_hot(tmp)
    process, stub, client = served(2)
    hot = address_of(process.pid, 'hot')
    client.ask(f'Z0,{hot:x},1;{FALSE}')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    client.interrupt()
    check_matches(bytes.fromhex(client.ask('qRcmd,' + 'set pads 0'.encode().hex())).decode(), '^Conditions')
    let_run(client)
    eventually(lambda: not has_pads(process.pid), 'they are out')
    check_equal(client.interrupt()[:3], 'T02', 'the condition is false still')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


@timeout(240)
def test_the_stub_is_killed_while_threads_hit(tmp):
    """Each thread comes by all the time. Conditions are false, and true for a thread that is not there."""
    build_hot(tmp)
    for i in range(KILLS):
        process, stub, client = served(4)
        hot = address_of(process.pid, 'hot')
        client.ask(f'Z0,{hot:x},1;{FALSE if i % 2 else equal(RSI, 7)}')
        let_run(client)
        eventually(lambda: has_pads(process.pid), 'there are pads')
        time.sleep(0.01 * (i % 5))
        kill_hub(stub)
        client.close()
        time.sleep(0.05)
        check(process.is_alive(), f'it runs on after kill {i}')
        kymo('detach', process.pid).ok()
        check_text_intact(process.pid)
        process.kill()


@timeout(240)
def test_the_stub_is_killed_while_all_stand(tmp):
    build_hot(tmp)
    for _ in range(KILLS):
        process, stub, client = served(4)
        hot = address_of(process.pid, 'hot')
        client.ask(f'Z0,{hot:x},1;{TRUE}')
        for _ in range(3):
            check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
        check(has_pads(process.pid), 'by pads')
        kill_hub(stub)
        client.close()
        time.sleep(0.05)
        check(process.is_alive() and state_of(process.pid) in 'RS', 'it runs on')
        kymo('detach', process.pid).ok()
        check_text_intact(process.pid)
        process.kill()


# The site is right after a system call, in which threads are.
CALLS = r'''
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
volatile long go = 1, wrong, rounds;
static void on_signal(int number) { }
/* %r12 is -1 until the call has returned: the condition is of what it has returned. */
__asm__(".globl sleeping, behind\n.type sleeping, @function\nsleeping: mov %rdi, %r8\nmov $35, %eax\nmov %r8, %rdi\n"
	"xor %esi, %esi\nsyscall\nbehind: movabs $0x123456789, %rcx\nret\n.size sleeping, . - sleeping\n");
long sleeping(const struct timespec *time);
static void *run(void *data)
{
	struct timespec time = { 0, 3000000 };
	while (go) {
		long got = sleeping(&time);
		if (got && got != -EINTR)
			wrong++;
		__sync_fetch_and_add(&rounds, 1);
	}
	return NULL;
}
int main(void)
{
	pthread_t threads[4];
	signal(SIGUSR1, on_signal);
	for (long i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	puts("ready");
	fflush(stdout);
	for (long i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	printf("wrong %ld\n", wrong);
	return wrong != 0;
}
'''


@timeout(120)
def test_right_after_a_system_call(tmp):
    """A thread that sleeps in the call has the site for its program counter, and goes back from there."""
    build_hot(tmp, source=CALLS)
    process, stub, client = served()
    client.ask('QPassSignals:1e')
    behind = address_of(process.pid, 'behind')
    for condition in FALSE, TRUE:
        client.ask(f'Z0,{behind:x},1;{condition}')
        for i in range(60):
            let_run(client)
            time.sleep(0.002 * (i % 4))
            if condition == FALSE:
                check_equal(client.interrupt()[:3], 'T02', 'stopped')
            else:
                check_equal(client.reply()[:3], 'T05', 'a hit')
            if i % 4 == 0:
                os.kill(process.pid, signal.SIGUSR1)
            if i % 7 == 0:
                client.ask(f'vCont;s:{all_threads(client)[1 + i % 4]}')
    check(has_pads(process.pid), 'by pads')
    client.ask(f'z0,{behind:x},1')
    finish(process, client, stub)


# Threads begin and end all the time, and the first one has ended.
ENDING = r'''
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
volatile long go = 1, rounds;
__attribute__((noipa)) long hot(long n, long who) { return n * 3 + who; }
static void *brief(void *data) { hot(1, 2); return NULL; }
static void *maker(void *data)
{
	pthread_t thread;
	while (go) {
		if (!pthread_create(&thread, NULL, brief, NULL))
			pthread_join(thread, NULL);
		rounds++;
	}
	printf("wrong 0\n");
	fflush(stdout);
	_exit(0);
}
int main(void)
{
	pthread_t thread;
	pthread_create(&thread, NULL, maker, NULL);
	pthread_create(&thread, NULL, maker, NULL);
	puts("ready");
	fflush(stdout);
	pthread_exit(NULL);
}
'''


def test_threads_that_end_are_not_waited_for(tmp):
    build_hot(tmp, source=ENDING)
    process, stub, client = served()
    hot = symbol_of(process.pid, 'hot')
    for i in range(10):
        client.ask(f'Z0,{hot:x},1;{equal(RDI, 100 + i)}')
        eventually(lambda: is_quiet(client) and has_pads(process.pid), 'there are pads')
        client.ask(f'z0,{hot:x},1')
        eventually(lambda: is_quiet(client) and not has_pads(process.pid), 'they are out')
    finish(process, client, stub)


# A process of its own runs in the same memory.
SHARING = SOURCE.replace('int main(', r'''
#define _GNU_SOURCE
#include <sched.h>
#include <sys/prctl.h>
static char stack[65536];
static int other(void *data) { prctl(PR_SET_PDEATHSIG, SIGKILL); for (;;) usleep(1000); }
int main(''').replace('puts("ready");', 'clone(other, stack + 65000, 0x100, NULL); puts("ready");')


def test_what_shares_its_memory_is_not_waited_for_again(tmp):
    build_hot(tmp, source='#define _GNU_SOURCE\n' + SHARING)
    process = start('./app', 1)
    process.wait_for('^ready')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    client.ask('qRcmd,' + 'set pads 1'.encode().hex())
    hot = address_of(process.pid, 'hot')
    if client.ask(f'Z0,{hot:x},1;{equal(RDI, 5)}') != 'OK':
        return  # as without pads: no breakpoint is possible
    for _ in range(20):
        let_run(client)
        client.interrupt()
        client.ask(f'z0,{hot:x},1')
        client.ask(f'Z0,{hot:x},1;{equal(RDI, 5)}')
    check(not has_pads(process.pid), 'it has no pads')
    client.close()
    stub.end().ok()


def test_a_fault_of_a_condition_is_no_signal_of_the_program(tmp):
    for how in 'handles', 'by default', 'ignores':
        build_hot(tmp)
        process, stub, client = served(3, how)
        hot = address_of(process.pid, 'hot')
        where, none = address_of(process.pid, 'where'), address_of(process.pid, 'none')
        client.ask(f'Z0,{hot:x},1;{condition_at(where)}')
        let_run(client)
        if how != 'ignores':
            eventually(lambda: has_pads(process.pid), 'there are pads')
        time.sleep(0.1)
        check_equal(client.interrupt()[:3], 'T02', 'the word is 0')
        check_equal(has_pads(process.pid), how != 'ignores', f'pads where it {how}')
        client.ask(f'M{where:x},8:' + (8).to_bytes(8, 'little').hex())
        for _ in range(10):
            check_equal(client.ask('vCont;c')[:3], 'T05', 'memory that is not there stops it')
            check_equal(registers(client)[16], hot, 'at the site')
        client.ask(f'M{where:x},8:' + none.to_bytes(8, 'little').hex())
        eventually(lambda: is_quiet(client), 'it is false again, when hits of before were told')
        client.ask(f'z0,{hot:x},1')
        finish(process, client, stub)


def test_a_breakpoint_behind_one_that_has_a_pad(tmp):
    """The jump of the first may rely on the bytes of the second."""
    build_hot(tmp, '-O0')
    lines = run('objdump', '-d', '--no-show-raw-insn', './app').ok().out
    offsets = [int(found, 16) for found in re.findall(
        r'^ +([0-9a-f]+):', lines.split('<hot>:\n')[1].split('\n\n')[0], re.MULTILINE)]
    process, stub, client = served(2)
    base = address_of(process.pid, 'hot') - offsets[0]
    sites, n_pads = [base + offset for offset in offsets], 0
    for site in sites[1:-1]:
        check_equal(client.ask(f'Z0,{site:x},1;{FALSE}'), 'OK', 'one with a condition')
        eventually(lambda: is_quiet(client), 'it is false, when hits of before were told')
        n_pads += has_pads(process.pid)
        for other in sites:
            if other != site:
                check_equal(client.ask(f'Z0,{other:x},1'), 'OK', 'one without')
        for _ in range(len(sites) * 3):
            check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
            check(registers(client)[16] in sites and registers(client)[16] != site, 'of the others')
        for other in sites:
            client.ask(f'z0,{other:x},1')
    check(n_pads > 2, 'some had pads', n_pads, len(sites), stub.err)
    finish(process, client, stub)


@timeout(120)
def test_a_recording_joins_and_leaves(tmp):
    build_hot(tmp)
    process, stub, client = served(2)
    hot, poke = address_of(process.pid, 'hot'), address_of(process.pid, 'poke')
    client.ask(f'Z0,{hot:x},1;{equal(RDI, 1 << 30)}')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    halt(client)
    for location in './app:poke', './app:hot':
        recorder = start_joining(process.pid, location)
        let_run(client)
        time.sleep(0.2)
        halt(client)
        check_equal(client.ask(f'z0,{hot:x},1') + client.ask(f'Z0,{hot:x},1;{TRUE}'), 'OKOK', 'inserted')
        for _ in range(5):
            check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
            check_equal(registers(client)[16], hot, 'at the site')
        recorder.end(signal.SIGINT).ok()
        for _ in range(5):
            check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit after it has left')
        check_equal(client.ask(f'z0,{hot:x},1') + client.ask(f'Z0,{hot:x},1;{FALSE}'), 'OKOK', 'inserted')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


def start_joining(pid, location):
    recorder = start(KYMO, 'record', '-o', 'trace', '-p', location, '--pid', pid)
    recorder.wait_for('recording|Recording', 1)
    return recorder


FORKING = SOURCE.replace('over(void) { go = 0; }', 'over(void) { go = 0; }\n#include <sys/wait.h>').replace(
    'poke(void) { wrong += 0; }', r'''poke(void)
{
	static int n;
	int status = 0;
	if (n++ % 64)
		return;
	pid_t child = n % 3 ? fork() : vfork();
	if (!child)
		_exit(hot(5, 6) == 21 ? 0 : 1);
	waitpid(child, &status, 0);
	wrong += status != 0;
}''')


def test_children_run_on(tmp):
    """Whatever their pads' words are at the moment: a forked child has none, and a vfork child is its maker's."""
    build_hot(tmp, source=FORKING)
    process, stub, client = served(2)
    hot = address_of(process.pid, 'hot')
    client.ask(f'Z0,{hot:x},1;{equal(RSI, 77)}')
    for _ in range(8):
        let_run(client)
        time.sleep(0.1)
        reply = client.interrupt()
        check_equal(reply[:1], 'T', 'stopped')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


def test_which_ones_are_in_pads(tmp):
    """By the command line, and by the client."""
    build_hot(tmp)
    process = start('./app', 2)
    process.wait_for('^ready')
    hot = address_of(process.pid, 'hot')
    reads = condition_at(address_of(process.pid, 'where'))
    none, auto, both = [False, False], [True, False], [True, True]
    for options, setting, expected in (((), None, none), ((), 'auto', auto), (['--pads'], None, both),
                                       (['--no-pads'], None, none), (['--pads'], 'auto', auto),
                                       (['--no-pads'], '1', both), ((), '0', none)):
        stub, path = offer(*options, '--pid', process.pid)
        client = Client(path)
        client.begin()
        if setting:
            reply = client.ask('qRcmd,' + f'set pads {setting}'.encode().hex())
            check_matches(bytes.fromhex(reply).decode(), '^Conditions .*evaluated')
        found = []
        for condition in FALSE, reads:
            client.ask(f'Z0,{hot:x},1;{condition}')
            check(is_quiet(client), 'it is false')
            found.append(has_pads(process.pid))
        check_equal(found, expected, f'pads of a constant, and of a read, with {options} and {setting}')
        client.ask('D')
        client.close()
        stub.end().ok()
    check_equal(has_pads(process.pid), False, 'nothing is left')
    process.kill()


def test_in_non_stop(tmp):
    build_hot(tmp)
    result = gdb('set non-stop on', f'target remote | {SERVER} --once stdio ./app 4', ON, 'break hot if n == 5000',
                 'break over', 'continue -a', 'kill', seconds=60)
    check_matches(result.out + result.err, r'hit Breakpoint 1, hot \(n=(n@entry=)?5000')
