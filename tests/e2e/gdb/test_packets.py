"""Packets that do all or nothing, and those that other clients than gdb send."""
import os
import re
import signal
import time
from pathlib import Path

from debugging import (Client, address_of, advances, build, hub_of, loop, offer, packet, send_to_thread, start_batch,
                       thread_of, threads_of)
from kymotest import check, check_equal, check_matches, eventually, need_root, run, skip, start, timeout
import processes

RIP, MXCSR = 16 * 8, 532  # offsets in the reply to g


def served(tmp, mode='loop'):
    build(tmp)
    process = loop(tmp, mode)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    return process, stub, client


def test_registers_are_written_all_or_none(tmp):
    process, stub, client = served(tmp)
    before = client.ask('g')
    image = bytearray.fromhex(before.replace('x', '0'))
    image[RIP:RIP + 8] = (int.from_bytes(image[RIP:RIP + 8], 'little') + 1).to_bytes(8, 'little')
    image[MXCSR:MXCSR + 4] = b'\xff' * 4
    check_equal(client.ask('G' + image.hex()), 'E01', 'a value of mxcsr that there is not')
    check_equal(client.ask('g'), before, 'the registers')
    check_equal(client.ask('G' + before + '00'), 'E01', 'more than there are')
    check_equal(client.ask('G' + before), 'OK', 'all of them')
    client.close()
    stub.end().ok()
    advances(process)


def test_memory_is_read_in_binary(tmp):
    process, stub, client = served(tmp)
    check('binary-upload+' in client.ask('qSupported:multiprocess+').split(';'), 'it is offered')
    work, sp = address_of(process.pid, 'work'), int.from_bytes(bytes.fromhex(client.ask('p7')), 'little')
    for at, size in (work, 64), (work, 1), (sp, 4096), (sp & -4096, 65536):
        data = client.ask(f'x{at:x},{size:x}').encode('latin-1')
        check_equal(data[:1], b'b', 'binary')
        data = re.sub(rb'}(.)', lambda found: bytes([found.group(1)[0] ^ 0x20]), data[1:], flags=re.DOTALL)
        found = bytes.fromhex(client.ask(f'm{at:x},{len(data):x}'))
        check(data and data.startswith(found), f'the same as in digits, of {size} bytes', (data[:64], found[:64]))
        check(len(data) in (size, len(found)) or size > 4096, 'all of them', len(data))
    check_equal(client.ask(f'x{work:x},0'), 'b', 'no bytes')
    for wrong in ('x0,10', f'x{work:x}', f'x{work:x},', f'x{work:x},4;', 'x'):
        check_equal(client.ask(wrong), 'E01', f'answer to {wrong}')
    client.close()
    stub.end().ok()


def test_siginfo_without_a_signal_is_zero(tmp):
    process, stub, client = served(tmp)
    data = client.ask('qXfer:siginfo:read::0,200').encode('latin-1')
    check_equal(data, b'l' + bytes(128), 'the record')
    check_equal(client.ask('qXfer:siginfo:write::0:' + chr(5)), 'E01', 'there is none to change')
    client.close()
    stub.end().ok()


def test_monitor_help_lists_what_there_is(tmp):
    process, stub, client = served(tmp)
    text = bytes.fromhex(client.ask('qRcmd,' + b'help'.hex())).decode()
    for command in ('help', 'exit', 'set pads', 'set debug ', 'set remote-debug', 'set debug-format',
                    'set libthread-db-search-path'):
        check(f'\n  {command}' in text, f'{command} is listed', text)
    check('Quit GDBserver' in text, 'words by which tools know gdbserver', text)
    for command in 'set debug 1', 'set remote-debug 0', 'set debug-format none', 'set libthread-db-search-path /x':
        check(client.ask('qRcmd,' + command.encode().hex())[:1] not in 'EO', f'{command} is taken')
    client.close()
    stub.end().ok()


def test_left_overs_are_refused(tmp):
    process, stub, client = served(tmp)
    tid = f'p{process.pid:x}.{process.pid:x}'
    check_equal(client.ask(f'T{tid}'), 'OK', 'the thread lives')
    for text in (f'T{tid};junk', f'qThreadExtraInfo,{tid}xyz', 'qAttached:1junk', 'QCatchSyscalls:1;zz'):
        check_equal(client.ask(text)[:1], 'E', f'answer to {text}')
    name = b'/etc/passwd'.hex()
    for text in ('vFile:setfs:0junk', f'vFile:open:{name},0,0junk', f'vFile:readlink:{name};',
                 f'vFile:unlink:{b"nosuch".hex()},1'):
        check_equal(client.ask(text), 'F-1,16', f'answer to {text}')
    check_equal(client.ask(f'vFile:open:{name},0,0'), 'F0', 'a file')
    for text in ('vFile:fstat:0junk', 'vFile:pread:0,1,0junk', 'vFile:close:0junk'):
        check_equal(client.ask(text), 'F-1,16', f'answer to {text}')
    check_equal(client.ask('vFile:close:0'), 'F0', 'the file is closed')
    client.close()
    stub.end().ok()
    advances(process)


@timeout(180)
def test_a_search_without_end_ends_with_its_client_and_with_the_stub(tmp):
    build(tmp)
    for ends_stub in (False, True):
        process = start('./app', 'huge')
        if process.popen.poll() == 77:
            skip('no such mapping here')
        address = int(process.wait_for(r'^ready (0x\w+)$').group(1), 16)
        stub, path = offer('--pid', process.pid)
        client = Client(path)
        client.begin()
        client.send(b'$' + (body := f'qSearch:memory:{address:x};{1 << 43:x};abc'.encode()) + b'#%02x' %
                    (sum(body) & 255))
        client.socket.recv(1)
        if ends_stub:
            stub.end(signal.SIGTERM, seconds=10).ok()
        else:
            client.close()
            stub.end(seconds=10).ok()
        advances(process)
        process.kill()


def test_files_of_another_root_are_not_ours(tmp):
    need_root()
    process, stub, client = served(tmp)
    root = tmp / 'root'
    root.mkdir()
    (root / 'link').symlink_to('/etc/passwd')
    (root / 'file').write_text('inside')
    (root / 'inner').symlink_to('/file')
    other = start('python3', '-c',
                  f'import os, time; os.chroot({str(root)!r}); print("ready", flush=True); time.sleep(100)')
    other.wait_for('^ready$')
    check_equal(client.ask(f'vFile:setfs:{other.pid:x}'), 'F0', 'its root')
    for name, answer in (('/link', 'F-1,2'), ('/inner', 'F0'), ('/../../etc/passwd', 'F-1,2')):
        check_equal(client.ask(f'vFile:open:{name.encode().hex()},0,0'), answer, f'open {name}')
    check_equal(client.ask('vFile:pread:0,20,0'), 'F6;inside', 'its file')
    check_equal(client.ask(f'vFile:readlink:{b"/link".hex()}'), 'Fb;/etc/passwd', 'a link')
    check_equal(client.ask(f'vFile:unlink:{b"/inner".hex()}'), 'F0', 'a link is removed')
    check(not os.path.lexists(root / 'inner') and os.path.exists('/etc/passwd'), 'that one alone')
    client.close()
    stub.end().ok()
    advances(process)


def number_of(client, name):
    """Of a register."""
    return int(re.search(rf'name="{name}"[^>]* regnum="(\d+)"', client.ask('qXfer:features:read:target.xml:0,fffe'))[1])


def test_a_thread_that_is_moved_out_of_a_call_does_not_start_it_again(tmp):
    """The kernel would set it back by two bytes, into the middle of what is before the new address."""
    process, stub, client = served(tmp)
    call, work = number_of(client, 'orig_rax'), address_of(process.pid, 'work')
    for _ in range(200):
        if client.ask(f'p{call:x}') == f'{230:02x}' + '00' * 7:  # clock_nanosleep
            break
        client.send(b'$vCont;c#a8')
        client.interrupt()
    before = client.ask('g')
    check_equal(client.ask('P10=' + work.to_bytes(8, 'little').hex()), 'OK', 'it is moved')
    check_matches(client.ask('vCont;s'), '^T05')
    pc = int.from_bytes(bytes.fromhex(client.ask('p10')), 'little')
    check(work < pc <= work + 8, 'one instruction of the function was executed', hex(pc - work))
    check_equal(client.ask('G' + before), 'OK', 'it is where it was')
    check_equal(client.ask('D'), 'OK', 'detached')
    client.close()
    stub.end().ok()
    advances(process)


def test_the_older_packets_mean_all_threads_unless_one_is_named(tmp):
    process, stub, client = served(tmp, 'workers')
    counts = address_of(process.pid, 'counts')

    def count(i):
        return client.word(counts + 8 * i)

    for named, runs in (None, (1, 3)), (process.pid, (0, )):
        if named:
            check_equal(client.ask(f'Hcp{named:x}.{named:x}'), 'OK', 'one is named')
        before = [count(i) for i in range(4)]
        for _ in range(100):
            client.send(b'$c#63')
            client.interrupt()
            if all(count(i) > before[i] for i in runs):
                break
        after = [count(i) for i in range(4)]
        check(all(after[i] > before[i] for i in runs), f'threads {runs} have run', before, after)
    check_equal(after[1:], before[1:], 'what the others have counted')
    client.close()
    stub.end().ok()
    advances(process)


def test_an_event_of_a_thread_that_was_not_let_go_waits(tmp):
    """As with `set scheduler-locking on`: the client knows that the thread stands."""
    process, stub, client = served(tmp, 'workers')
    *both, third = threads_of(process.pid)
    for tid in both:
        send_to_thread(process.pid, tid, signal.SIGUSR1)
    told = client.ask('vCont;c')
    first = thread_of(told)
    check(first in both and told.startswith('T1e'), 'the signal of one is told', told)
    send_to_thread(process.pid, third, signal.SIGUSR1)
    told = client.ask(f'vCont;c:p{process.pid:x}.{third:x}')
    check_equal((told[:3], thread_of(told)), ('T1e', third), 'the signal of the one that runs')
    told = client.ask('vCont;c')
    check_equal((told[:3], thread_of(told)), ('T1e', sum(both) - first), 'the signal that has waited')
    client.close()
    stub.end().ok()
    advances(process)


def test_the_end_of_a_process_is_told_while_its_other_threads_are_stopped(tmp):
    process, stub, client = served(tmp, 'workers')
    thread = threads_of(process.pid)[0]
    check_equal(client.ask(f'M{address_of(process.pid, "go"):x},1:29'), 'OK', 'thread 1 is to call exit')
    check_equal(client.ask(f'vCont;c:p{process.pid:x}.{thread:x}'), f'W03;process:{process.pid:x}', 'the stop')
    client.close()
    stub.end().ok()


def test_each_thread_says_why_it_stands(tmp):
    process, stub, client = served(tmp, 'workers')
    ids = [process.pid, *threads_of(process.pid)]
    check_equal(client.ask(f'Z0,{address_of(process.pid, "special"):x},1'), 'OK', 'a breakpoint')
    check_equal(thread_of(client.ask('vCont;c')), ids[2], 'the thread that comes there')
    told = [client.ask(f'qThreadStopInfo{tid:x}') for tid in ids]
    check_equal([thread_of(text) for text in told], ids, 'the threads')
    check_equal([text[:3] for text in told], ['T00', 'T00', 'T05', 'T00'], 'their signals')
    check_matches(told[2], 'swbreak:;')
    check_equal(client.ask('qThreadStopInfo1'), 'E01', 'a thread that there is not')
    client.close()
    stub.end().ok()
    advances(process)


def test_the_list_of_libraries_is_found_by_its_place_in_the_program(tmp):
    process, stub, client = served(tmp)
    listed = client.ask('qXfer:libraries-svr4:read::0,fffe')
    place = int(client.ask('qShlibInfoAddr'), 16)
    check_equal(f'main-lm="0x{client.word(client.word(place) + 8):x}"', re.search('main-lm="[^"]*"', listed)[0],
                'the first library')
    client.close()
    stub.end().ok()
    advances(process)


def test_a_monitor_command_that_is_unknown_is_an_error(tmp):
    process, stub, client = served(tmp)
    for command in ('', 'nonsense'):
        told = client.ask('qRcmd,' + command.encode().hex())
        check_equal(told[0], 'O', 'text for the user')
        check_matches(bytes.fromhex(told[1:]).decode(), '^Unknown monitor command')
        check_equal(client.reply(), 'E01', 'the reply')
    told = client.ask('qRcmd,' + b'set libthread-db-search-path /a/b'.hex())
    check_matches(bytes.fromhex(told).decode(), "^libthread-db-search-path set to `/a/b'$")
    client.close()
    stub.end().ok()
    advances(process)


READER = r"""
#include <stdio.h>
#include <errno.h>
#include <unistd.h>
int main(void)
{
	char byte;
	puts("ready");
	fflush(stdout);
	long n = read(0, &byte, 1);
	printf("%ld %d\n", n, n < 0 ? errno : 0);
	return 0;
}
"""


def test_a_call_that_a_thread_slept_in_goes_on_after_a_function_was_called(tmp):
    """gdb gives the number of the call back, register by register; it has the last word."""
    (tmp / 'reader.c').write_text(READER)
    run('gcc', '-g', '-o', tmp / 'reader', tmp / 'reader.c').ok()
    process = start('./reader')
    process.wait_for('^ready')
    stub, path = offer('--pid', process.pid)
    debugger = start_batch((f'target remote {path}', 'print (int)getpid() > 1', 'continue'), './reader')
    debugger.wait_for(r'^\$1 = 1$')
    check_equal(process.end(input='x').ok().out, 'ready\n1 0\n', 'what the program has read')
    check_matches(debugger.end().ok().out, 'exited normally')
    stub.end().ok()


# Two threads that hit a breakpoint at once, and a first one that never does.
HITTING = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
volatile long counts[2];
__attribute__((noinline)) void hit(long i) { counts[i]++; }
static void *go_on(void *data)
{
	for (;;)
		hit((long)data);
}
int main(void)
{
	pthread_t threads[2];
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, go_on, (void *)i);
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
"""


def test_an_interrupt_takes_the_place_of_no_event_that_waits(tmp):
    """The thread that packets are about has an event which the client was not told yet, and did not go on."""
    (tmp / 'app.c').write_text(HITTING)
    run('gcc', '-g', '-pthread', '-o', tmp / 'app', tmp / 'app.c').ok()
    process = start('./app')
    process.wait_for('^ready')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    hit, counts = (address_of(process.pid, name) for name in ('hit', 'counts'))
    check_equal(client.ask(f'Z0,{hit:x},1'), 'OK', 'a breakpoint')
    threads = threads_of(process.pid)
    first = [client.word(counts + 8 * i) for i in range(2)]
    told = {thread: 0 for thread in threads}
    for _ in range(20):
        at = thread_of(client.ask('vCont;c'))
        told[at] += 1
        other = next(thread for thread in threads if thread != at)
        check_equal(client.ask(f'Hgp{process.pid:x}.{other:x}'), 'OK', 'the other thread')
        client.send(packet(f'vCont;c:p{process.pid:x}.{process.pid:x}'))
        reply = client.interrupt()
        check_equal((reply[:3], thread_of(reply)), ('T02', process.pid), 'what ^C has stopped')
    for i, thread in enumerate(threads):
        made = client.word(counts + 8 * i) - first[i]
        check(made <= told[thread] + 1, f'thread {i}: each call was told, but for one that had begun', made, told)
    client.close()
    stub.end().ok()


BREAKING = r"""
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int hit(int n);
__asm__(".p2align 12; .globl hit; .type hit, @function; hit: nop; lea 1(%rdi), %eax; ret; .size hit, . - hit");
__attribute__((noinline, aligned(4096))) void take_away(void) { munmap(hit, 4096); }
volatile int count, takes;
int main(void)
{
	puts("ready");
	fflush(stdout);
	for (;; usleep(1000)) {
		if (takes)
			take_away();
		else
			count = hit(count);
	}
}
"""


def test_what_a_client_writes_where_a_breakpoint_was_is_the_programs(tmp):
    (tmp / 'app.c').write_text(BREAKING)
    run('gcc', '-o', tmp / 'app', tmp / 'app.c').ok()
    process = start('./app')
    process.wait_for('^ready')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    hit = address_of(process.pid, 'hit')
    check_equal(client.ask(f'Z0,{hit:x},1'), 'OK', 'a breakpoint')
    check('swbreak:;' in client.ask('vCont;c'), 'it is hit')
    check_equal(client.ask(f'z0,{hit:x},1'), 'OK', 'it goes')
    before = client.ask(f'm{hit:x},1')
    check_equal(client.ask(f'M{hit:x},1:cc'), 'OK', 'another one, as a write')
    told = client.ask('vCont;c')
    check_equal(told[:3], 'T05', 'the signal of the instruction')
    check('swbreak' not in told, 'it is not of a breakpoint of the client', told)
    check_equal(client.ask(f'm{hit:x},1'), 'cc', 'what is there')
    check_equal(client.ask(f'P10={hit.to_bytes(8, "little").hex()}'), 'OK', 'the thread is moved back')
    never = f'Z0,{hit:x},1;X3,220027'  # 0, and the end
    check_equal(client.ask(never), 'OK', 'a breakpoint whose condition never holds')
    client.send(packet('vCont;c'))
    time.sleep(0.1)
    check_equal(client.interrupt()[:3], 'T02', 'the instruction was passed')
    check_equal(client.ask(f'z0,{hit:x},1'), 'OK', 'it goes')
    check_equal(client.ask('vCont;c')[:3], 'T05', 'the signal of the instruction')
    client.ask(f'M{hit:x},1:{before}')
    client.ask(f'P10={hit.to_bytes(8, "little").hex()}')
    client.close()
    stub.end().ok()
    advances(process)


def test_a_breakpoint_whose_code_has_gone_is_removed_with_an_error(tmp):
    """gdb warns of that."""
    (tmp / 'app.c').write_text(BREAKING)
    run('gcc', '-o', tmp / 'app', tmp / 'app.c').ok()
    process = start('./app')
    process.wait_for('^ready')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    hit, takes = (address_of(process.pid, name) for name in ('hit', 'takes'))
    check_equal(client.ask(f'Z0,{hit:x},1'), 'OK', 'a breakpoint')
    check_equal(client.ask(f'M{takes:x},4:01000000'), 'OK', 'its page is to go')
    client.send(packet('vCont;c'))
    eventually(lambda: not any(mapping.start <= hit < mapping.end for mapping in processes.maps(process.pid)),
               'the page has gone')
    check_equal(client.interrupt()[:3], 'T02', 'what ^C makes')
    check_equal(client.ask(f'z0,{hit:x},1'), 'E01', 'it goes')
    check_equal(client.ask(f'z0,{hit:x},1'), 'OK', 'nothing is there')
    client.close()
    stub.end().ok()
    advances(process)


def test_a_breakpoint_in_data_costs_one_look_at_the_mappings(tmp):
    """gdb sets one on the stack for each function that it calls, and goes on without an answer after two seconds."""
    process, stub, client = served(tmp, 'many')
    check(len(threads_of(process.pid)) > 100, 'it has many threads')
    hub, here = hub_of(stub), address_of(process.pid, 'here')

    def n_read():
        return int(re.search(r'^rchar: (\d+)', Path(f'/proc/{hub}/io').read_text(), re.MULTILINE).group(1))

    mappings = len(Path(f'/proc/{process.pid}/maps').read_text())
    for _ in range(2):
        before = n_read()
        check_equal(client.ask(f'Z0,{here:x},1'), 'OK', 'inserted')
        check(n_read() - before < 8 * mappings, 'bytes read, of which the mappings are', n_read() - before, mappings)
    check_equal(client.ask(f'z0,{here:x},1'), 'OK', 'removed')
    client.close()
    stub.end().ok()
