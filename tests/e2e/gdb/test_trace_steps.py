"""Steps that tracepoints ask for (`while-stepping`) do not show in the program, whenever they end."""
import os
import re
import signal

from debugging import Client, address_of, advances, end, listen, offer
from kymotest import check_equal, check_matches, check_untraced, eventually, program, run, start
from pads import let_run
from tracing import status

# It pushes flags, pops them some instructions later, and looks at what a system call leaves in R11.
SOURCE = r'''
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	puts("ready");
	fflush(stdout);
	for (long round = 0;; round++) {
		unsigned long flags, r11;
		__asm__ volatile(".globl first\nfirst:\n\tnop\n\tpushfq\n\tmov (%%rsp), %0\n\tnop\n\tnop\n\tnop\n"
				 "\tpopfq\n\tpushfq\n\tpopfq\n\tnop\n" : "=r"(flags) : : "cc", "memory");
		__asm__ volatile("mov $39, %%eax\n\tsyscall\n\tmov %%r11, %0\n\tnop\n.globl last\nlast:\n\tnop"
				 : "=r"(r11) : : "rax", "rcx", "r11", "memory");
		if ((flags | r11) & 0x100)
			return 9;
		if (round % 100 == 0)
			usleep(1000);
	}
}
'''


def flags_app(tmp):
    (tmp / 'flags.c').write_text(SOURCE)
    run(program('gcc'), '-g', '-O1', '-o', 'app', 'flags.c').ok()
    process = start('./app')
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


def define(client, where, steps):
    for packet in ('QTinit', 'QTBuffer:circular:1', f'QTDP:1:{where:x}:E:{steps:x}:0', 'QTStart'):
        check_equal(client.ask(packet), 'OK', packet)


def test_flags_do_not_show_steps(tmp):
    """The last step is before, in and behind what pushes and pops flags, and behind the system call."""
    process = flags_app(tmp)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    first = address_of(process.pid, 'first')
    for steps in range(1, 16):
        define(client, first, steps)
        eventually(lambda n=steps: runs_on(client, process) > 10 * n, 'frames')
        check_equal(client.ask('QTStop'), 'OK', 'stopped')
    client.close()
    stub.end().ok()
    check_untraced(process.pid)
    advances(process)
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
    let_run(client)
    eventually(lambda: advances(process) or True, 'it runs')
    client.interrupt()
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


def test_however_the_run_ends(tmp):
    """By a client that goes, by detaching, or by the end of the stub, with and without a client."""
    process = flags_app(tmp)
    for way in ('close', 'detach', 'end', 'disconnected') * 5:
        server, port = listen('--attach', ':0', str(process.pid))
        client = Client(port)
        client.begin()
        client.ask(f'QTDisconnected:{int(way == "disconnected")}')
        define(client, address_of(process.pid, 'first'), 3)
        let_run(client)
        advances(process)
        if way == 'detach':
            client.interrupt()
            check_equal(client.ask(f'D;{process.pid:x}'), 'OK', 'the stub lets go')
        if way != 'end':
            client.close()
        if way == 'disconnected':
            advances(process)
        if way in ('end', 'disconnected'):
            os.kill(server.pid, signal.SIGTERM)
        client.close()
        server.end()
        check_untraced(process.pid)
        advances(process)
    end(process)
