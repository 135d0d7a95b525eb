"""Non-stop, by a client that speaks the protocol by hand: each thread is stopped and resumed for itself."""
import os
import random
import re
import signal
import time
from pathlib import Path

from debugging import (Client, address_of, advances, build, kill_hub, listen, loop, offer, packet, send_to_thread,
                       state_of, thread_of, threads_of)
from kymotest import check, check_equal, check_text_intact, check_untraced, eventually, skip, timeout, waits
import debug_registers
import seeds

USR1, CHLD = '1e', '14'  # gdb's numbers of signals
FEATURES = 'multiprocess+;swbreak+;fork-events+;vfork-events+;exec-events+;no-resumed+'


class Workers(Client):
    """A client in non-stop, of ./app with a first thread and workers 1 to 3."""
    def __init__(self, where, pid, features=FEATURES):
        super().__init__(where)
        check('QNonStop+' in self.ask(f'qSupported:{features}'), 'non-stop is there')
        check_equal(self.ask('QNonStop:1'), 'OK', 'non-stop')
        self.pid = pid
        self.counts, self.go = address_of(pid, 'counts'), address_of(pid, 'go')
        self.tids = [pid] + threads_of(pid)

    def standing(self):
        """The stops that ? begins to tell."""
        told = [self.ask('?')]
        while told[-1] != 'OK':
            told.append(self.ask('vStopped'))
        return told[:-1]

    def all_standing(self):
        """The same, for the first time: the others are notified when the client looks at a thread."""
        told = self.standing()
        check(len(told) < 2, 'one thread is told at first', told)
        self.ask('Hg0')
        return told + (self.stops() if not self.is_quiet() else [])

    def id(self, i):
        return f'p{self.pid:x}.{self.tids[i]:x}'

    def run_all(self):
        check_equal(self.ask('vCont;c'), 'OK', 'all go on')

    def count(self, i):
        return self.word(self.counts + 8 * i)

    def moves(self, i):
        before = self.count(i)
        eventually(lambda: self.count(i) > before, f'thread {i} runs')

    def stays(self, i):
        before = self.count(i)
        time.sleep(0.05)
        check_equal(self.count(i), before, f'what thread {i} has counted')

    def tell(self, value):
        """What one of the workers is to do."""
        check_equal(self.ask(f'M{self.go:x},8:{value.to_bytes(8, "little").hex()}'), 'OK', 'a write while threads run')


def served(tmp, mode='workers', features=FEATURES):
    build(tmp)
    process = loop(tmp, mode)
    stub, path = offer('--pid', process.pid)
    client = Workers(path, process.pid, features)
    check_equal([thread_of(stop) for stop in client.standing()], [process.pid], 'what stands at first')
    client.run_all()
    return process, stub, client


def leave(process, stub, client):
    client.close()
    stub.end().ok()
    check_untraced(process.pid)
    advances(process)
    check_text_intact(process.pid)


def insert(client, name):
    check_equal(client.ask(f'Z0,{address_of(client.pid, name):x},1'), 'OK', f'a breakpoint at {name}')


def remove(client, name):
    check_equal(client.ask(f'z0,{address_of(client.pid, name):x},1'), 'OK', f'the breakpoint at {name} goes')


def test_one_thread_stops_at_a_breakpoint_and_the_others_run(tmp):
    process, stub, client = served(tmp)
    for _ in range(5):
        insert(client, 'special')
        told = client.stops()
        check_equal([(stop[:3], thread_of(stop)) for stop in told], [('T05', client.tids[2])], 'what stops')
        check('swbreak:;' in told[0], 'by the breakpoint', told)
        for i in (0, 1, 3):
            client.moves(i)
        client.stays(2)
        remove(client, 'special')
        check_equal(client.ask(f'vCont;c:{client.id(2)}'), 'OK', 'it goes on')
        client.moves(2)
    leave(process, stub, client)


def test_threads_are_stopped_and_resumed_one_by_one(tmp):
    process, stub, client = served(tmp)
    for i in (1, 0, 3, 2):
        check_equal(client.ask(f'vCont;t:{client.id(i)}'), 'OK', 'a stop')
        told = client.stops()
        check_equal([(stop[:3], thread_of(stop)) for stop in told], [('T00', client.tids[i])], 'what stops')
        check_equal(client.ask(f'vCont;t:{client.id(i)}'), 'OK', 'a stop of what stands')
        client.stays(i)
    check(client.is_quiet(), 'what stands is not told again')
    check_equal(client.ask(f'vCont;c:{client.id(1)};s:{client.id(3)}'), 'OK', 'one runs, one steps')
    told = client.stops()
    check_equal([(stop[:3], thread_of(stop)) for stop in told], [('T05', client.tids[3])], 'the step')
    client.moves(1)
    check_equal(client.ask('vCont;c'), 'OK', 'all go on')
    check_equal(client.ask(f'vCont;c:{client.id(1)};c'), 'OK', 'what runs goes on running')
    for i in range(4):
        client.moves(i)
    check_equal(client.ask(f'vCont;t:p{client.pid:x}.-1'), 'OK', 'all stop')
    check_equal(sorted(thread_of(stop) for stop in client.stops(4)), sorted(client.tids), 'what stops')
    leave(process, stub, client)


def test_a_thread_stops_although_a_condition_is_false(tmp):
    process, stub, client = served(tmp)
    at = address_of(process.pid, 'special')
    check_equal(client.ask(f'Z0,{at:x},1;X3,220027'), 'OK', 'a breakpoint with a condition that is false')
    for _ in range(50):
        client.moves(2)
        client.ask(f'vCont;t:{client.id(2)}')
        told = client.stops()
        check_equal([(stop[:3], thread_of(stop)) for stop in told], [('T00', client.tids[2])], 'what stops')
        client.moves(1)
        client.ask(f'vCont;c:{client.id(2)}')
    remove(client, 'special')
    leave(process, stub, client)


def test_registers_are_of_threads_that_stand(tmp):
    process, stub, client = served(tmp)
    client.ask(f'vCont;t:{client.id(1)}')
    client.stops()
    client.ask(f'Hg{client.id(1)}')
    image = client.ask('g')
    check_equal(client.ask('G' + image), 'OK', 'registers are written')
    check(client.ask('p10')[0] != 'E', 'the program counter')
    client.ask(f'Hg{client.id(2)}')
    for text in ('g', 'G' + image, 'p10', 'P10=0000000000000000'):
        check_equal(client.ask(text), 'E01', f'{text[:4]} of a thread that runs')
    client.moves(2)
    leave(process, stub, client)


def test_signals_stop_their_thread_alone(tmp):
    process, stub, client = served(tmp)
    counter = address_of(process.pid, 'counter')
    send_to_thread(process.pid, client.tids[3], signal.SIGUSR1)
    told = client.stops()
    check_equal([(stop[:3], thread_of(stop)) for stop in told], [('T' + USR1, client.tids[3])], 'what stops')
    client.moves(1)
    before = client.word(counter)
    check_equal(before, 0, 'signals that have arrived')
    client.ask(f'vCont;C{USR1}:{client.id(3)}')
    eventually(lambda: client.word(counter) >= 1000, 'the signal has arrived')
    client.moves(3)
    client.ask(f'QPassSignals:{USR1}')
    send_to_thread(process.pid, client.tids[3], signal.SIGUSR1)
    eventually(lambda: client.word(counter) >= 2000, 'a signal that passes')
    check(client.is_quiet(), 'nothing is told of it')
    leave(process, stub, client)


def test_an_interrupt_comes_to_one_thread(tmp):
    process, stub, client = served(tmp)
    check_equal(client.ask('vCtrlC'), 'OK', 'vCtrlC')
    first = client.stops()
    client.send(b'\x03')
    second = client.stops()
    check_equal([stop[:3] for stop in first + second], ['T02', 'T02'], 'what stops')
    check(thread_of(first[0]) != thread_of(second[0]), 'two threads', first + second)
    client.ask('vCont;t')
    client.stops(2)
    check_equal(client.ask('vCtrlC'), 'OK', 'vCtrlC without a thread that runs')
    check(client.is_quiet(), 'nothing is told')
    client.run_all()
    check(client.is_quiet(), 'nor later')
    leave(process, stub, client)


@timeout(180)
def test_an_interrupt_is_not_lost_where_breakpoints_are_hit(tmp):
    process, stub, client = served(tmp, 'loop')
    insert(client, 'work')
    for _ in range(30):
        check_equal(client.ask('vCtrlC'), 'OK', 'vCtrlC')
        while not (told := client.stops())[0].startswith('T02'):
            check('swbreak' in told[0], 'a breakpoint', told)
            client.run_all()
        client.run_all()
    client.close()
    stub.end().ok()
    advances(process)


def test_a_notification_waits_for_the_client(tmp):
    process, stub, client = served(tmp)
    client.ask('vCont;t')
    first = client.notification()
    check(client.is_quiet(), 'one notification until it is acknowledged')
    client.run_all()
    for i in range(4):
        client.stays(i)
    told = [first]
    while (reply := client.ask('vStopped')) != 'OK':
        told.append(reply)
    check_equal(sorted(thread_of(stop) for stop in told), sorted(client.tids), 'what stops')
    check_equal(client.ask('vStopped'), 'OK', 'vStopped without a notification')
    check_equal(client.ask(f'vCont;c:{client.id(1)}'), 'OK', 'one goes on')
    client.moves(1)
    client.stays(0)
    leave(process, stub, client)


def test_the_question_begins_anew(tmp):
    process, stub, client = served(tmp)
    send_to_thread(process.pid, client.tids[3], signal.SIGUSR1)
    client.notification()
    told = client.standing()
    check_equal([(stop[:3], thread_of(stop)) for stop in told], [('T' + USR1, client.tids[3])], 'what stands')
    check_equal(client.standing(), told, 'what is told again')
    client.ask(f'vCont;t:{client.id(1)}')
    client.stops()
    check_equal(sorted((thread_of(stop), stop[:3]) for stop in client.standing()),
                sorted([(client.tids[1], 'T00'), (client.tids[3], 'T' + USR1)]), 'what stands')
    client.ask(f'vCont;C{USR1}:{client.id(3)};c')
    check_equal(client.ask('?'), 'OK', 'nothing stands')
    leave(process, stub, client)


def test_ends_of_threads_and_processes_are_told(tmp):
    process, stub, client = served(tmp)
    check_equal(client.ask('QThreadEvents:1'), 'OK', 'events of threads')
    client.tell(63)
    told = client.stops()
    check('create:;' in told[0], 'a thread is made', told)
    new = thread_of(told[0])
    check_equal(client.count(5), 0, 'what the new thread has counted')
    client.moves(3)
    client.ask(f'vCont;c:p{client.pid:x}.{new:x}')
    client.moves(5)
    client.tell(15)
    check_equal(client.stops(), [f'w00;p{client.pid:x}.{new:x}'], 'the end of the thread')
    client.moves(1)
    client.tell(41)
    told = client.stops()
    while told[-1][0] != 'W':
        told += client.stops()
    check_equal(told[-1], f'W03;process:{client.pid:x}', 'the end of the process')
    check_equal({stop[0] for stop in told[:-1]}, {'w'} if told[:-1] else set(), 'what is told before')
    client.close()
    stub.end().ok()


def test_the_end_of_the_last_thread_that_ran_is_told(tmp):
    process, stub, client = served(tmp)
    client.ask(f'vCont;t:{client.id(0)};t:{client.id(1)};t:{client.id(2)}')
    client.stops(3)
    client.moves(3)
    client.tell(13)
    check_equal(client.stops(), ['N'], 'what is told')
    client.run_all()
    client.moves(1)
    os.kill(process.pid, signal.SIGKILL)
    check_equal(client.stops()[-1], f'X09;process:{client.pid:x}', 'the end of the process')
    client.close()
    stub.end().ok()


def test_forks_are_told_and_children_stand(tmp):
    process, stub, client = served(tmp)
    client.ask(f'QPassSignals:{CHLD}')
    for what, value in (('fork', 21), ('vfork', 33)):
        client.tell(value)
        told = client.notification()
        child = int(re.search(what + r':p([0-9a-f]+)\.', told).group(1), 16)
        client.run_all()
        check_equal(state_of(child), 't', f'the child before its {what} is acknowledged')
        check_equal(client.ask('vStopped'), 'OK', 'no more')
        client.moves(2)
        check_equal(state_of(child), 't', 'the child')
        check_equal(client.ask(f'D;{child:x}'), 'OK', 'the child is let go of')
        client.ask(f'vCont;c:p{client.pid:x}.{thread_of(told):x}')
        if what == 'vfork':
            check('vforkdone:;' in client.stops()[0], 'the end of the vfork')
            client.run_all()
        client.moves(value % 10)
    client.tell(22)
    child = int(re.search(r'fork:p([0-9a-f]+)\.', client.stops()[0]).group(1), 16)
    client.run_all()
    check_equal(client.stops(), [f'W07;process:{child:x}'], 'the end of the child')
    client.moves(2)
    leave(process, stub, client)


def test_an_exec_is_told(tmp):
    process, stub, client = served(tmp)
    client.ask(f'vCont;t:{client.id(1)}')
    client.stops()
    client.tell(52)
    told = [stop for stop in client.stops() if stop[0] == 'T']
    check_equal([thread_of(stop) for stop in told], [client.pid], 'the thread that is left')
    check('exec:' in told[0], 'an exec', told)
    check_equal(len(client.standing()), 1, 'threads that stand')
    client.run_all()
    process.wait_for('^ready$')
    leave(process, stub, client)


def test_all_stop_again_stops_all(tmp):
    process, stub, client = served(tmp)
    insert(client, 'special')
    client.notification()
    check_equal(client.ask('QNonStop:0'), 'OK', 'all-stop')
    for i in range(4):
        client.stays(i)
    check_equal(client.ask('?')[0], 'T', 'why they stand')
    told = client.ask('vCont;c')
    check('swbreak' in told and thread_of(told) == client.tids[2], 'the breakpoint is told', told)
    remove(client, 'special')
    client.send(packet('vCont;c'))
    time.sleep(0.05)
    check_equal(client.interrupt()[:3], 'T02', 'what ^C makes')
    for i in range(4):
        client.stays(i)
    check_equal(client.ask('QNonStop:1'), 'OK', 'non-stop')
    for i in range(4):
        client.stays(i)
    check_equal(len(client.standing()), 1, 'threads that stand')
    client.moves(1)
    check_equal(client.ask('QNonStop:2'), 'E01', 'neither')
    leave(process, stub, client)


def test_kill_and_detach_while_threads_run(tmp):
    build(tmp)
    first, second = loop(tmp, 'workers'), loop(tmp, 'workers')
    server, port = listen(':0', options=('--multi', ))
    client = Workers(port, first.pid)
    client.ask('!')
    check_equal(client.ask('?'), 'OK', 'nothing stands')
    check_equal(client.ask(f'vAttach;{first.pid:x}'), 'OK', 'an attach')
    check(client.is_quiet(), 'nothing is told of an attach, as gdb knows no registers yet')
    check('<architecture>i386:x86-64' in client.ask('qXfer:features:read:target.xml:0,1000'), 'registers are known')
    client.moves(0)
    client.moves(1)
    check_equal(client.ask(f'vCont;t:{client.id(0)}'), 'OK', 'a stop')
    check_equal([(stop[:3], thread_of(stop)) for stop in client.stops()], [('T00', first.pid)], 'what stops')
    client.moves(1)
    client.run_all()
    client.moves(0)
    check_equal(client.ask(f'vAttach;{second.pid:x}'), 'OK', 'another attach')
    client.ask(f'Hg{client.id(0)}')
    client.moves(3)
    insert(client, 'special')
    client.notification()
    check_equal(client.ask(f'D;{first.pid:x}'), 'OK', 'a detach while threads run')
    check_equal(client.ask('vStopped'), 'OK', 'what was queued has gone')
    check_untraced(first.pid)
    advances(first)
    check_text_intact(first.pid)
    client.ask(f'vCont;c:p{second.pid:x}.-1')
    check_equal(client.ask(f'vKill;{second.pid:x}'), 'OK', 'a kill while threads run')
    eventually(lambda: state_of(second.pid) in ('gone', 'Z'), 'it has ended')
    check(client.is_quiet(), 'nothing is told of it')
    server.end(signal.SIGTERM)


def test_programs_are_run_beside_one_that_runs(tmp):
    build(tmp)
    process = loop(tmp, 'workers')
    server, port = listen(':0', options=('--multi', ))
    client = Workers(port, process.pid)
    client.ask('!')
    client.ask(f'vAttach;{process.pid:x}')
    before = client.count(1)
    for _ in range(3):
        told = client.ask('vRun;' + b'./app'.hex())
        check_equal(told[:3], 'T05', 'a program begins')
        pid = int(re.search(r'thread:p([0-9a-f]+)\.', told).group(1), 16)
        check_equal(client.ask(f'vCont;c:p{pid:x}.-1'), 'OK', 'it goes on')
        check_equal(client.stops(), [f'W05;process:{pid:x}'], 'its end')
    client.ask(f'Hg{client.id(1)}')
    check(client.count(1) > before, 'the other one has run meanwhile')
    check_equal(client.ask(f'D;{process.pid:x}'), 'OK', 'a detach')
    advances(process)
    server.end(signal.SIGTERM)


def test_a_launched_program_ends_and_so_does_the_server(tmp):
    build(tmp)
    server, port = listen(':0', './app')
    client = Client(port)
    client.ask(f'qSupported:{FEATURES}')
    client.ask('QNonStop:1')
    check_equal(client.ask('?')[:3], 'T05', 'where it stands')
    check_equal(client.ask('vStopped'), 'OK', 'no more')
    check_equal(client.ask('vCont;c'), 'OK', 'it goes on')
    check_equal(client.notification()[:3], 'W05', 'its end')
    check_equal(client.ask('vStopped'), 'OK', 'no more')
    client.close()
    server.end().ok()


@waits
def test_a_launched_program_waits_only_if_all_its_threads_stand(tmp):
    build(tmp)
    server, port = listen('localhost:0', './app', 'workers', options=())
    pid = int(re.search(r'; pid = (\d+)$', server.err, re.MULTILINE).group(1))
    client = Workers(port, pid)
    client.standing()
    client.run_all()
    server.wait_for('^ready')
    client.ask('vCont;t')
    client.stops(4)
    client.close()
    server.wait_for('GDBserver will reopen the connection', 1)
    check_equal(state_of(pid), 't', 'its state without a client')
    client = Workers(port, pid)
    told = client.all_standing()
    check_equal({stop[:3] for stop in told}, {'T00'}, 'what stands')
    check_equal(sorted(thread_of(stop) for stop in told), sorted(client.tids), 'threads')
    client.run_all()
    insert(client, 'special')
    client.stops()
    client.close()
    eventually(lambda: server.err.count('GDBserver will reopen the connection') == 2, 'the server is ready again')
    eventually(lambda: 't' not in [state_of(tid) for tid in [pid] + threads_of(pid)], 'all threads run')
    check_text_intact(pid)
    client = Client(port)
    check_equal(client.begin()[:3], 'T05', 'the next client has all-stop')
    check_equal(client.ask('vCont;t'), 'E01', 'a stop is no resumption there')
    client.send(packet('k'))
    server.end().ok()


def test_watchpoints_are_given_to_threads_that_run(tmp):
    if not debug_registers.work():
        skip('debug registers of this machine do nothing')
    process, stub, client = served(tmp)
    watched = address_of(process.pid, 'quiet')
    for _ in range(3):
        for n in range(4):
            check_equal(client.ask(f'Z2,{watched + 8 * n:x},8'), 'OK', 'a watchpoint')
        check_equal(client.ask(f'Z2,{watched + 64:x},8'), 'E01', 'a fifth one')
        for i in range(4):
            client.moves(i)
        for n in range(4):
            check_equal(client.ask(f'z2,{watched + 8 * n:x},8'), 'OK', 'it goes')
    check_equal(client.ask(f'Z2,{client.counts + 24:x},8'), 'OK', 'a watchpoint')
    told = client.stops()
    check_equal([(thread_of(stop), f'watch:{client.counts + 24:x};' in stop) for stop in told],
                [(client.tids[3], True)], 'what stops')
    client.moves(1)
    client.stays(3)
    check_equal(client.ask(f'z2,{client.counts + 24:x},8'), 'OK', 'it goes')
    client.run_all()
    client.moves(3)
    leave(process, stub, client)


@timeout(300)
def test_a_client_that_leaves_at_any_moment(tmp):
    build(tmp)
    process = loop(tmp, 'workers')
    generator = random.Random(seeds.seed())
    work = address_of(process.pid, 'special')
    texts = [
        'QNonStop:1', '?', 'vStopped', 'vCont;c', f'Z0,{work:x},1', 'vCont;t', 'vStopped', 'vCont;c', 'vCtrlC',
        'vCont;s', 'QThreadEvents:1', f'z0,{work:x},1', f'Z0,{work:x},1', 'vCont;c', 'QNonStop:0', 'vCont;c'
    ]
    for n in range(2, len(texts) + 1):
        stub, path = offer('--pid', process.pid)
        client = Client(path)
        client.ask(f'qSupported:{FEATURES}')
        for text in texts[:n - 1]:
            client.ask(text)
        client.send(packet(texts[n - 1]))
        time.sleep(generator.choice([0, 0, 0.001, 0.01]))
        client.close()
        stub.end().ok()
        check_untraced(process.pid)
        advances(process)
        check_text_intact(process.pid)


@timeout(300)
def test_a_stub_that_is_killed_while_some_threads_stand(tmp):
    """A breakpoint where no thread comes by, so that it is the keeper that takes it out."""
    build(tmp)
    process = loop(tmp, 'workers')
    for n in range(6):
        stub, path = offer('--pid', process.pid, env={'XDG_RUNTIME_DIR': str(tmp)})
        client = Workers(path, process.pid)
        client.standing()
        client.run_all()
        insert(client, 'work')
        if n % 2:
            client.ask(f'vCont;t:{client.id(1)}')
            client.stops()
        kill_hub(stub)
        client.close()
        eventually(lambda: 'TracerPid:\t0' in Path(f'/proc/{process.pid}/status').read_text(), 'nobody traces it')
        check_text_intact(process.pid)
        advances(process)


@timeout(180)
def test_many_threads_that_hit_and_a_slow_client(tmp):
    process, stub, client = served(tmp, 'many')
    n = len(client.tids)
    check_equal(n, 121, 'threads')
    client.ask('vCont;t')
    time.sleep(1)
    check_equal(sorted(thread_of(stop) for stop in client.stops(n)), sorted(client.tids), 'what stops')
    client.run_all()
    insert(client, 'special')
    for _ in range(50):
        told = client.stops()
        check_equal([thread_of(stop) for stop in told], [client.tids[2]], 'what stops')
        client.ask(f'vCont;c:{client.id(2)}')
    remove(client, 'special')
    client.stops()
    client.run_all()
    for action in ('t', 'c'):
        words = ';'.join(f'{action}:{client.id(i)}' for i in range(n))
        check_equal(client.ask('vCont;' + words), 'OK', 'an action for each thread')
        if action == 't':
            check_equal(len(client.stops(n)), n, 'stops')
    for i in range(n):
        client.moves(i)
    leave(process, stub, client)
