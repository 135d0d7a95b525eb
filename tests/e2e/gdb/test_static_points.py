"""Static tracepoints: `strace` at SDT probes and kymo's own markers, as gdb drives them."""
import os
import re
import signal

from debugging import SERVER, Client, address_of, gdb, offer
from kymotest import check_equal, check_matches, eventually, program, run, start
from markers import INCLUDE
from pads import code_of, let_run
from tracing import RUN, status

# SDT probes as SystemTap's header makes them: one with a counter that turns it on, and one without.
SOURCE = r'''
#include <stdio.h>
#include <unistd.h>
#include <kymo/marker.h>
#define PROBE(name, counter, value) \
	__asm__ volatile(".ifndef _.stapsdt.base\n\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n" \
			 "\t.weak _.stapsdt.base\n\t.hidden _.stapsdt.base\n_.stapsdt.base:\t.space 1\n" \
			 "\t.size _.stapsdt.base, 1\n\t.popsection\n\t.endif\n" \
			 "990:\tnop\n" \
			 "\t.pushsection .note.stapsdt,\"\",\"note\"\n" \
			 "\t.balign 4\n\t.4byte 992f-991f, 994f-993f, 3\n991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n" \
			 "993:\t.8byte 990b\n\t.8byte _.stapsdt.base\n\t.8byte " counter "\n" \
			 "\t.asciz \"shop\"\n\t.asciz \"" name "\"\n\t.asciz \"-8@%0\"\n994:\t.balign 4\n\t.popsection" \
			 : : "r"((long)(value)))
volatile unsigned short __attribute__((section(".probes"))) sold_semaphore;
int total, made(int n);
__attribute__((noipa)) void leave(void) { total += 1; }
__attribute__((noipa)) void sell(int n)
{
	total += n;
	PROBE("always", "0", n);
	if (sold_semaphore)
		PROBE("sold", "sold_semaphore", total);
	MARK(packed, "n=%d", n);
}
int main(int argc, char **argv)
{
	if (argc > 1) {
		puts("ready");
		fflush(stdout);
	}
	for (int i = 0; i < 10 || argc > 1; i++) {
		sell(i % 10);
		if (argc > 1)
			usleep(1000);
	}
	leave();
	return made(0);
}
'''


def build_shop(tmp):
    (tmp / 'shop.c').write_text(SOURCE)
    (tmp / 'lib.c').write_text('#include <kymo/marker.h>\nint made(int n) { MARK(made, "n=%d", n); return n; }\n')
    words = program('gcc'), '-g', '-O1', '-I', INCLUDE
    run(*words, '-DKYMO_MARKER_PROVIDER=libshop', '-shared', '-fPIC', '-o', 'libshop.so', 'lib.c').ok()
    run(*words, '-DKYMO_MARKER_PROVIDER=shop', '-o', 'app', 'shop.c', './libshop.so').ok()


def traced(*commands):
    return gdb(f'target remote | {SERVER} --once stdio ./app', 'break leave', *commands).ok()


def test_markers_are_listed(tmp):
    """Those of the program, and those of its libraries once they are loaded."""
    build_shop(tmp)
    result = traced('info static-tracepoint-markers', 'continue', 'info static-tracepoint-markers', 'kill')
    before, after = result.out.split('Breakpoint 1, leave')
    for name in ('always', 'sold', 'packed'):
        check_matches(before, rf'shop:{name} +n +0x[0-9a-f]+ in sell at shop\.c:\d+')
    check_matches(after, r'libshop:made +n +0x[0-9a-f]+')
    check_matches(after, r'Data: "arg1:s64"')


def test_hits_of_markers(tmp):
    """One that is always on, one that its counter turns on, and one of kymo's; they are off again after that."""
    build_shop(tmp)
    result = traced('break main', 'continue', 'delete 2', 'strace -m shop:always', 'strace -m shop:sold',
                    'strace -m shop:packed', 'info tracepoints', 'tstart', 'print sold_semaphore', 'continue', 'tstop',
                    'tstatus', 'info tracepoints', 'print sold_semaphore', 'kill')
    check_matches(result.out, r'Static tracepoint 3 at 0x[0-9a-f]+')
    check_matches(result.out, r'(?s)\$1 = 1\n.*Collected 30 trace frames.*\$2 = 0\n')
    check_equal(len(re.findall('already hit 10 times', result.out)) >= 3, True, 'each was hit 10 times')


def test_what_is_collected_at_a_probe(tmp):
    build_shop(tmp)
    script = tmp / 'actions.gdb'
    script.write_text('strace -m shop:always\nactions 3\ncollect total\ncollect $_probe_arg0\nend\n')
    result = traced('break main', 'continue', f'source {script}', *RUN, 'tstop', 'tfind 4', 'print total',
                    'print $_probe_arg0', 'kill')
    check_matches(result.out, r'(?s)\$1 = 10\n\$2 = 4\n')


def test_what_is_no_marker(tmp):
    build_shop(tmp)
    result = gdb(f'target remote | {SERVER} --once stdio ./app', 'strace -m shop:none', 'kill')
    check_matches(result.out + result.err, 'No known static tracepoint marker named shop:none')


def running_shop(tmp):
    """A program with a run at its marker that is turned on by a counter."""
    build_shop(tmp)
    process = start('./app', 'loop')
    process.wait_for('^ready')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    found, reply = {}, client.ask('qTfSTM')
    while reply != 'l':
        for marker in reply[1:].split(','):
            address, name, _ = marker.split(':')
            found[bytes.fromhex(name).decode()] = int(address, 16)
        reply = client.ask('qTsSTM')
    sold = found['shop:sold']
    check_matches(client.ask(f'qTSTMat:{sold:x}'), f'^m{sold:x}:{b"shop:sold".hex()}:')
    check_equal(client.ask(f'qTSTMat:{sold - 1:x}'), 'l', 'none there')
    for text in ('QTBuffer:circular:1', f'QTDP:1:{sold:x}:E:0:0:S', 'QTStart'):
        check_equal(client.ask(text), 'OK', text)
    counter = address_of(process.pid, 'sold_semaphore')
    check_equal(code_of(process.pid, counter, 2), b'\1\0', 'it is counted')
    return process, stub, client, sold, counter


def has_hits(client):
    let_run(client)
    client.interrupt()
    return int(re.search('tcreated:([0-9a-f]+)', status(client)).group(1), 16) > 3


def test_counters_when_a_client_leaves(tmp):
    process, stub, client, _, counter = running_shop(tmp)
    eventually(lambda: has_hits(client), 'hits')
    client.close()
    stub.end().ok()
    check_equal(code_of(process.pid, counter, 2), b'\0\0', 'it is off')
    process.kill()


def test_counters_when_a_tracepoint_is_disabled(tmp):
    process, stub, client, sold, counter = running_shop(tmp)
    check_equal(client.ask(f'QTDisable:1:{sold:x}'), 'OK', 'disabled')
    check_equal(code_of(process.pid, counter, 2), b'\0\0', 'it is off')
    check_equal(client.ask(f'QTEnable:1:{sold:x}'), 'OK', 'enabled')
    check_equal(code_of(process.pid, counter, 2), b'\1\0', 'it is on')
    os.kill(stub.pid, signal.SIGTERM)
    client.close()
    stub.end()
    check_equal(code_of(process.pid, counter, 2), b'\0\0', 'it is off')
    process.kill()
