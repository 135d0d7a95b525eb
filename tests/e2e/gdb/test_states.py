"""No event is lost, and no thread is stopped without a reason: by a client that speaks the protocol by hand."""
import os
import re
import shutil
import signal
import time
from pathlib import Path

from debugging import (Client, address_of, advances, build, by_stdio, gdb, listen, loop, offer, packet,
                       send_to_thread, state_of, thread_of, threads_of)
from kymotest import check, check_equal, check_matches, check_untraced, eventually, skip, timeout, waits
from held_files import HeldFile
import debug_registers

USR1 = '1e'  # gdb's number of SIGUSR1


def launched(server):
    return int(re.search(r'^Process \./app created; pid = (\d+)$', server.err, re.MULTILINE).group(1))


@timeout(180)
def stop_when(client, address, value, what):
    """Stop the process, which runs, with that value there; a busy machine gets time for it."""
    for wait in (0.05, 0.1, 0.2, 0.5, 1, 2, 5):
        time.sleep(wait)
        check_equal(client.interrupt()[:3], 'T02', 'what ^C makes')
        if client.word(address) == value:
            return
        client.send(packet('vCont;c'))
    client.interrupt()
    check_equal(client.word(address), value, what)


def test_a_signal_arrives_although_another_event_is_told_first(tmp):
    build(tmp)
    process = loop(tmp, 'crowd')
    counter = address_of(process.pid, 'counter')
    threads = threads_of(process.pid)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    for round in range(1, 21):
        for tid in threads:
            send_to_thread(process.pid, tid, signal.SIGUSR1)
        told = []
        reply = client.ask('vCont;c')
        while len(told) < 2:
            check_equal(reply[:3], 'T' + USR1, 'what is told')
            told.append(thread_of(reply))
            client.send(packet(f'vCont;C{USR1}:p{process.pid:x}.{told[-1]:x};c'))
            if len(told) < 2:
                reply = client.reply()
        check_equal(sorted(told), threads, 'threads that are told')
        stop_when(client, counter, 2000 * round, f'signals that have arrived after {round} rounds')
    client.close()
    stub.end().ok()
    advances(process)


def test_without_a_client_nothing_stops(tmp):
    build(tmp)
    first, second = loop(tmp), loop(tmp)
    server, port = listen(':0', options=('--multi', ))
    client = Client(port)
    client.begin()
    client.ask('!')
    for process in (first, second):
        check_equal(client.ask(f'vAttach;{process.pid:x}')[0], 'T', f'attach to {process.pid}')
    client.close()
    server.wait_for('GDBserver will reopen the connection', 1)
    first.kill()
    time.sleep(0.2)
    advances(second)
    server.end(signal.SIGTERM)
    check_untraced(second.pid)
    advances(second)


@timeout(180)
def test_an_interrupt_is_told_although_a_step_is_done_first(tmp):
    build(tmp)
    stub, path = offer('--', './app', 'spin')
    client = Client(path)
    pid = thread_of(client.begin())
    at = address_of(pid, 'spin_at')
    check_equal(client.ask(f'Z0,{at:x},1'), 'OK', 'a breakpoint')
    check('swbreak' in client.ask('vCont;c'), 'the breakpoint is hit')
    client.ask(f'z0,{at:x},1')
    for _ in range(20):
        client.send(packet(f'vCont;r{at:x},{at + 16:x}:p{pid:x}.{pid:x}'))
        time.sleep(0.01)
        check_equal(client.interrupt()[:3], 'T02', 'what ^C makes')
    client.send(packet('k'))
    stub.end().ok()


def test_watchpoints_go_with_their_client(tmp):
    if not debug_registers.work():
        skip('debug registers of this machine do nothing')
    build(tmp)
    process = loop(tmp)
    here, counter = address_of(process.pid, 'here'), address_of(process.pid, 'counter')
    server, port = listen('--attach', ':0', process.pid, options=())
    for _ in range(5):
        client = Client(port)
        client.begin()
        for address in (here, counter):
            check_equal(client.ask(f'Z2,{address:x},4'), 'OK', 'a watchpoint')
        client.send(packet('vCont;c'))
        client.close()
    client = Client(port)
    client.begin()
    client.send(packet('vCont;c'))
    time.sleep(0.3)
    check_equal(client.interrupt()[:3], 'T02', 'what ^C makes')
    client.close()
    server.end(signal.SIGTERM)
    advances(process)


def test_threads_and_children_made_while_all_registers_watch_have_registers(tmp):
    if not debug_registers.work():
        skip('debug registers of this machine do nothing')
    build(tmp)
    process = loop(tmp, 'workers')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin('multiprocess+;swbreak+;fork-events+')
    go, code = address_of(process.pid, 'go'), address_of(process.pid, 'special') & ~0xfff
    watches = [f'2,{code + 16 * i:x},8' for i in range(4)]  # no instruction writes there
    n = len(threads_of(process.pid))
    client.ask(f'M{go:x},8:{(61).to_bytes(8, "little").hex()}')  # a worker makes a thread
    check_equal([client.ask('Z' + watch) for watch in watches], ['OK'] * 4, 'watchpoints')
    client.send(packet('vCont;c'))
    eventually(lambda: len(threads_of(process.pid)) > n, 'there is a new thread')
    check_equal(client.interrupt()[:3], 'T02', 'what ^C makes')
    check_equal([client.ask('z' + watch) for watch in watches], ['OK'] * 4, 'they go')
    check_equal([client.ask('Z' + watch) for watch in watches], ['OK'] * 4, 'they come, in the new thread, too')
    client.ask(f'M{go:x},8:{(21).to_bytes(8, "little").hex()}')  # a worker forks
    told = client.ask('vCont;c')
    child = int(re.search(r'fork:p([0-9a-f]+)\.', told).group(1), 16)
    check_equal(client.ask(f'Hgp{child:x}.{child:x}'), 'OK', 'the child')
    check_equal([client.ask('Z' + watch) for watch in watches], ['OK'] * 4, 'watchpoints of the child')
    client.close()
    stub.end().ok()
    advances(process)


def test_an_interrupt_is_told_although_breakpoints_are_hit(tmp):
    build(tmp)
    process = loop(tmp)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    check_equal(client.ask(f'Z0,{address_of(process.pid, "work"):x},1'), 'OK', 'a breakpoint')
    for _ in range(20):
        client.send(packet('vCont;c') + b'\x03')
        replies = [client.reply()]
        if not replies[0].startswith('T02'):
            replies.append(client.ask('vCont;c'))
        check_equal(replies[-1][:3], 'T02', f'what is told at last, {replies}')
    client.close()
    stub.end().ok()
    advances(process)


def test_an_interrupt_that_comes_while_nothing_runs_waits(tmp):
    """The client sends it while a stop is on its way. The threads that go on next stop by it, once."""
    build(tmp)
    process = loop(tmp)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    counter = address_of(process.pid, 'counter')
    client.send(b'\x03\x03')
    before = client.word(counter)
    check_equal(client.ask('vCont;c')[:3], 'T02', 'what is told')
    check_equal(client.word(counter), before, 'what the program counts, which has not run')
    client.send(packet('vCont;c'))
    advances(process)
    check_equal(client.interrupt()[:3], 'T02', 'what ^C makes')
    client.send(b'\x03')
    client.close()
    stub.end().ok()
    advances(process)


def test_the_id_of_any_thread_attaches_to_its_process(tmp):
    build(tmp)
    process = loop(tmp, 'crowd')
    server, port = listen(':0', options=('--multi', ))
    client = Client(port)
    client.begin()
    client.ask('!')
    reply = client.ask(f'vAttach;{threads_of(process.pid)[0]:x}')
    check_equal(reply[0], 'T', f'answer to vAttach, {reply}')
    check(f'thread:p{process.pid:x}.' in reply, 'the process is told', reply)
    check_equal(client.ask(f'D;{process.pid:x}'), 'OK', 'a detach')
    check_untraced(process.pid)
    advances(process)
    server.end(signal.SIGTERM)


def test_a_signal_that_a_client_left_behind_is_told_to_the_next(tmp):
    build(tmp)
    server, port = listen('localhost:0', './app', 'crowd', options=())
    pid = launched(server)
    client = Client(port)
    client.begin()
    client.send(packet('vCont;c'))
    server.wait_for('^ready')
    tid = threads_of(pid)[1]
    send_to_thread(pid, tid, signal.SIGUSR1)
    check_equal(thread_of(client.reply()), tid, 'the thread with the signal')
    client.close()
    server.wait_for('GDBserver will reopen the connection', 1)
    client = Client(port)
    reply = client.begin()
    check_equal((reply[:3], thread_of(reply)), ('T' + USR1, tid), 'what the next client is told')
    client.send(packet(f'vCont;C{USR1}:p{pid:x}.{tid:x};c'))
    stop_when(client, address_of(pid, 'counter'), 1000, 'the signal has arrived')
    client.send(packet('k'))
    server.end().ok()


def test_a_forked_child_of_what_was_launched_waits_with_it(tmp):
    build(tmp)
    server, port = listen('localhost:0', './app', 'fork', options=())
    pid = launched(server)
    client = Client(port)
    client.begin('multiprocess+;fork-events+')
    reply = client.ask('vCont;c')
    child = int(re.search(r'fork:p([0-9a-f]+)\.', reply).group(1), 16)
    check_equal(client.ask(f'qAttached:{child:x}'), '0', 'how the child came')
    client.close()
    server.wait_for('GDBserver will reopen the connection', 1)
    check_equal((state_of(pid), state_of(child)), ('t', 't'), 'states without a client')
    client = Client(port)
    client.begin('multiprocess+;fork-events+')
    listed = client.ask('qfThreadInfo')
    check(f'p{pid:x}.' in listed and f'p{child:x}.' in listed, 'the next client sees both', listed)
    client.send(packet('k'))
    server.end().ok()


@timeout(180)
def test_a_forked_child_is_hidden_until_it_is_told(tmp):
    build(tmp)
    process = loop(tmp, 'forks')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin('multiprocess+;fork-events+;swbreak+')
    client.ask(f'Z0,{address_of(process.pid, "work"):x},1')
    for _ in range(60):
        reply = client.ask('vCont;c')
        fork = re.search(r'fork:p([0-9a-f]+)\.', reply)
        listed = set(re.findall(r'p([0-9a-f]+)\.', client.ask('qfThreadInfo')))
        check_equal(listed, {f'{process.pid:x}'} | ({fork.group(1)} if fork else set()), f'processes after {reply}')
        if fork:
            check_equal(client.ask(f'D;{fork.group(1)}'), 'OK', 'the child is let go of')
    check_equal(client.ask(f'D;{process.pid:x}'), 'OK', 'the parent is let go of')
    stub.end().ok()
    advances(process)
    children = Path(f'/proc/{process.pid}/task').glob('*/children')
    stopped = [pid for file in children for pid in file.read_text().split() if state_of(pid) in 'tT']
    check_equal(stopped, [], 'children that stand')


@waits
def test_a_parent_in_vfork_counts_as_standing(tmp):
    build(tmp)
    stub, path = offer('--', './app', 'slow vfork')
    client = Client(path)
    client.begin('multiprocess+;vfork-events+')
    check('vfork:' in client.ask('vCont;c'), 'vfork is told')
    client.send(packet('vCont;c'))
    time.sleep(0.3)
    before = time.monotonic()
    check_equal(client.interrupt()[:3], 'T02', 'what ^C makes')
    check(time.monotonic() - before < 4, 'it is told before the child has ended')
    client.send(packet('k'))
    stub.end().ok()


def test_a_signal_that_is_passed_is_told_during_a_step(tmp):
    """The step would end in its handler, if it has one."""
    build(tmp)
    stub, path = offer('--', './app', 'spin')
    client = Client(path)
    pid = thread_of(client.begin())
    at = address_of(pid, 'spin_at')
    check_equal(client.ask(f'Z0,{at:x},1'), 'OK', 'a breakpoint')
    check('swbreak' in client.ask('vCont;c'), 'the breakpoint is hit')
    client.ask(f'z0,{at:x},1')
    check_equal(client.ask(f'QPassSignals:{USR1}'), 'OK', 'signals are passed')
    for step in 's', f'r{at:x},{at + 16:x}':
        send_to_thread(pid, pid, signal.SIGUSR1)
        check_equal(client.ask(f'vCont;{step}:p{pid:x}.{pid:x}')[:3], f'T{USR1}', 'what the step meets')
    client.send(packet(f'vCont;C{USR1}'))
    check_equal(client.reply()[:3], 'W05', 'the program has a handler')
    stub.end().ok()


def test_the_return_of_vfork_is_told_after_its_end(tmp):
    build(tmp)
    for goes_on in 'c', 's':
        stub, path = offer('--', './app', 'vfork')
        client = Client(path)
        client.begin('multiprocess+;vfork-events+')
        check_equal(client.ask('QCatchSyscalls:1;3a'), 'OK', 'vfork is caught')
        check('syscall_entry:3a;' in client.ask('vCont;c'), 'the call')
        told = client.ask('vCont;c')
        child = int(re.search(r'vfork:p([0-9a-f]+)\.', told).group(1), 16)
        check_equal(client.ask(f'D;{child:x}'), 'OK', 'the child is let go of')
        check('vforkdone:;' in client.ask('vCont;c'), 'the end of the vfork')
        check('syscall_return:3a;' in client.ask(f'vCont;{goes_on}'), 'its return')
        check_equal(client.ask('QCatchSyscalls:0'), 'OK', 'nothing is caught')
        client.ask('QPassSignals:14')
        check_equal(client.ask('vCont;c')[:3], 'W05', 'the program goes on')
        stub.end().ok()


def test_a_step_over_vfork_ends_behind_its_call(tmp):
    build(tmp)
    stub, path = offer('--', './app', 'vfork')
    client = Client(path)
    pid = thread_of(client.begin('multiprocess+;vfork-events+'))
    check_equal(client.ask('QCatchSyscalls:1;3a'), 'OK', 'vfork is caught, to find its call')
    at = client.ask('vCont;c')
    check('syscall_entry:3a;' in at, 'the call', at)
    pc = int.from_bytes(bytes.fromhex(re.search(';10:([0-9a-f]+);', at).group(1)), 'little')
    check_equal(client.ask('QCatchSyscalls:0'), 'OK', 'nothing is caught')
    told = client.ask(f'vCont;s:p{pid:x}.{pid:x}')
    child = int(re.search(r'vfork:p([0-9a-f]+)\.', told).group(1), 16)
    check_equal(client.ask(f'D;{child:x}'), 'OK', 'the child is let go of')
    check('vforkdone:;' in client.ask('vCont;c'), 'the end of the vfork')
    for n, behind in (1, 0), (2, 1):  # push %rdi
        told = client.ask(f'vCont;s:p{pid:x}.{pid:x}')
        if told.startswith('T14'):  # SIGCHLD comes first
            told = client.ask(f'vCont;s:p{pid:x}.{pid:x}')
        check(f';10:{(pc + behind).to_bytes(8, "little").hex()};' in told, f'step {n}', told)
    client.send(packet('k'))
    stub.end().ok()


def test_the_return_of_a_vfork_that_was_not_caught_is_told_as_its_own(tmp):
    build(tmp)
    stub, path = offer('--', './app', 'vfork')
    client = Client(path)
    client.begin('multiprocess+;vfork-events+')
    child = int(re.search(r'vfork:p([0-9a-f]+)\.', client.ask('vCont;c')).group(1), 16)
    check_equal(client.ask(f'D;{child:x}'), 'OK', 'the child is let go of')
    check_equal(client.ask('QCatchSyscalls:1'), 'OK', 'all calls are caught')
    client.ask('QPassSignals:14')
    check('vforkdone:;' in client.ask('vCont;c'), 'the end of the vfork')
    check('syscall_return:3a;' in client.ask('vCont;c'), 'its return')
    check('syscall_entry:' in client.ask('vCont;c'), 'the next call')
    client.send(packet('k'))
    stub.end().ok()


def test_a_fault_at_a_breakpoint_is_told_although_its_signal_is_passed(tmp):
    """gdb calls functions so that they return to a breakpoint on the stack."""
    build(tmp)
    out = by_stdio('./app', 'break work', 'continue', 'delete', 'handle SIGSEGV nostop noprint pass',
                   'print (int)work(40, &here) + 1', 'continue').ok().out
    check_matches(out, r'^\$1 = ')
    check_matches(out, 'exited with code 05')


def test_a_stub_ends_although_a_thread_sleeps_in_the_kernel(tmp):
    build(tmp)
    os.mkfifo(tmp / 'fifo')
    process = loop(tmp, 'spawn')
    stub, _ = offer('--pid', process.pid)
    stub.end(signal.SIGTERM, seconds=20)
    check_untraced(process.pid)
    advances(process)
    os.close(os.open(tmp / 'fifo', os.O_WRONLY))
    eventually(lambda: len(threads_of(process.pid)) == 0, 'the thread has come back')
    advances(process)


@timeout(180)
@waits
def test_descriptors_do_not_grow_with_runs(tmp):
    server, port = listen(':0', options=('--multi', ))
    client = Client(port)
    client.begin()
    client.ask('!')
    counts = []
    for _ in range(30):
        check_equal(client.ask('vRun;' + b'/bin/true'.hex())[0], 'T', 'a run')
        check_equal(client.ask('vCont;c')[:3], 'W00', 'its end')
        counts.append(len(os.listdir(f'/proc/{server.pid}/fd')))
    # The connection of a visitor, such as another test's kymo, is closed when the next one comes.
    check(counts[-1] <= counts[4] + 1, f'descriptors: {counts}')
    server.end(signal.SIGTERM)


def test_gdb_runs_the_program_of_the_command_line_again(tmp):
    build(tmp)
    server, port = listen(':0', './app', options=('--multi', '--once'))
    out = gdb(f'target extended-remote :{port}', 'run', 'run', 'monitor exit').ok().out
    check_equal(out.count('exited with code 05'), 2, f'runs in {out}')
    server.end().ok()


def test_the_file_of_a_program_is_not_opened(tmp):
    """Its file system may not answer: the hub has other processes, too."""
    build(tmp)
    shutil.copy('app', 'again')
    server, port = listen(':0', '/bin/sh', '-c', 'exec ./again loop')
    launched_pid = int(re.search(r'; pid = (\d+)$', server.err, re.MULTILINE).group(1))
    held = HeldFile('again', lambda pid: pid != launched_pid)
    client = Client(port)
    client.begin()
    client.send(packet('vCont;c'))
    server.wait_for('^ready$')
    check_equal(client.interrupt()[:3], 'T02', 'what ^C makes')
    client.send(packet('k'))
    client.close()
    server.end()
    process = loop(tmp)
    held_too = HeldFile('app', lambda pid: True)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    check_equal(client.begin()[:3], 'T05', 'why it stands')
    client.close()
    stub.end().ok()
    check_equal(held.opened_by + held_too.opened_by, [], 'processes that have opened a file')
    advances(process)
