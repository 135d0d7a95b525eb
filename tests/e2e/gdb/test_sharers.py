"""Processes that share the memory of their maker are threads of it, as for gdb without a stub."""
import os
import re
import signal

from debugging import Client, address_of, offer, packet, state_of, thread_of
from kymotest import check, check_equal, check_text_intact, check_untraced, eventually, program, run

SOURCE = r'''
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int waits, goes_on, child;
__attribute__((noipa)) void hit(void) { }
static int share(void *mode)
{
	while (waits && !goes_on)
		usleep(1000);
	hit();
	if (!strcmp(mode, "exec"))
		execl("/bin/sleep", "sleep", "0.3", (char *)NULL);
	for (; !strcmp(mode, "stay"); usleep(1000))
		hit();
	_exit(7);
}
int main(int argc, char **argv)
{
	static char stack[65536];
	int status = 0;
	waits = !strcmp(argv[1], "first");
	child = clone(share, stack + sizeof(stack), CLONE_VM | CLONE_FILES, argv[1]);
	if (!waits)
		waitpid(child, &status, __WALL);
	_exit(status ? 5 : 6);
}
'''


def build(tmp):
    (tmp / 'app.c').write_text(SOURCE)
    run(program('gcc'), '-g', '-o', tmp / 'app', tmp / 'app.c').ok()


def at_hit(mode):
    """The client has been told of the breakpoint that the child has hit."""
    stub, path = offer('--', './app', mode)
    client = Client(path)
    pid = thread_of(client.begin('multiprocess+;swbreak+;fork-events+;exec-events+'))
    client.ask('QPassSignals:14')  # SIGCHLD, of one that executes a program
    hit, goes_on = (address_of(pid, name) for name in ('hit', 'goes_on'))
    check_equal(client.ask(f'Z0,{hit:x},1'), 'OK', 'a breakpoint')
    if mode == 'first':
        client.send(packet('vCont;c'))
        eventually(lambda: state_of(pid) in ('gone', 'Z'), 'the first one has ended')
        check_equal(client.interrupt()[:3], 'T02', 'the other one is stopped')
        client.ask(f'M{goes_on:x},4:01000000')
        told = client.ask('vCont;c')
    else:
        told = client.ask('vCont;c')
    check('swbreak' in told, 'the child has hit it', told)
    check(f'thread:p{pid:x}.' in told and thread_of(told) != pid, 'as a thread of its maker', told)
    return stub, client, hit, pid, thread_of(told)


def threads(client):
    return sorted(int(tid, 16) for tid in re.findall(r'id="p[0-9a-f]+\.([0-9a-f]+)"',
                                                     client.ask('qXfer:threads:read::0,1000')))


def remove(client, hit):
    check_equal(client.ask(f'z0,{hit:x},1'), 'OK', 'the breakpoint goes')


def test_its_end_is_that_of_a_thread(tmp):
    build(tmp)
    stub, client, hit, pid, child = at_hit('end')
    check_equal(threads(client), [pid, child], 'threads')
    remove(client, hit)
    check_equal(client.ask('vCont;c'), f'W05;process:{pid:x}', 'the end of the process')
    stub.end().ok()


def test_one_that_executes_a_program_is_no_thread_any_more(tmp):
    build(tmp)
    stub, client, hit, pid, _ = at_hit('exec')
    remove(client, hit)
    check_equal(client.ask('vCont;c'), f'W06;process:{pid:x}', 'the end of the process, and no exec')
    stub.end().ok()


def test_the_process_ends_with_the_last_of_them(tmp):
    build(tmp)
    stub, client, hit, pid, child = at_hit('first')
    check_equal(threads(client), [child], 'threads')
    remove(client, hit)
    check_equal(client.ask('vCont;c'), f'W06;process:{pid:x}', 'the status of the first one')
    stub.end().ok()


def test_all_are_killed(tmp):
    build(tmp)
    stub, client, _, pid, child = at_hit('stay')
    check_equal(client.ask(f'vKill;{pid:x}'), 'OK', 'a kill')
    eventually(lambda: state_of(pid) in ('gone', 'Z') and state_of(child) in ('gone', 'Z'), 'both have ended')
    client.close()
    stub.end().ok()


def test_all_are_let_go(tmp):
    build(tmp)
    stub, client, _, pid, child = at_hit('stay')
    check_equal(client.ask(f'D;{pid:x}'), 'OK', 'a detach')
    client.close()
    stub.end().ok()
    for one in pid, child:
        check_untraced(one)
        check_text_intact(one)
        check(state_of(one) in 'SR', 'it runs on', state_of(one))
    for one in child, pid:
        os.kill(one, signal.SIGKILL)
