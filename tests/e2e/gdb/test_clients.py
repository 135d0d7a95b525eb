"""Several debuggers on one process, and debuggers beside other tracers: each has a stub of its own, and all of them the
hub of the first."""
import os
import re
import signal
import socket
import threading

from debugging import (Client, address_of, advances, build, end, gdb, go_past, kill_front, kill_hub, listen, loop,
                       offer, packet, start_batch, thread_of, threads_of)
from kymotest import (KYMO, KYMO_PLAIN, check, check_equal, check_matches, check_text_intact, check_untraced,
                      eventually, program, record_some, run, start, timeout)


def joined(tmp, mode='loop'):
    """A process, and two stubs with a client each."""
    build(tmp)
    process = loop(tmp, mode)
    stubs, clients = [], []
    for _ in range(2):
        stub, path = offer('--pid', process.pid)
        stubs.append(stub)
        clients.append(Client(path))
        check_equal(clients[-1].begin()[:3], 'T05', 'a client stops the process')
    return process, stubs, clients


def left(process, stubs):
    for stub in stubs:
        stub.end().ok()
    check_untraced(process.pid)
    check_text_intact(process.pid)
    advances(process)


def test_no_client_sees_breakpoints_of_another_one(tmp):
    process, stubs, (one, other) = joined(tmp)
    work = address_of(process.pid, 'work')
    code = one.ask(f'm{work:x},8')
    check_equal(one.ask(f'Z0,{work:x},1'), 'OK', 'a breakpoint')
    check_equal(other.ask(f'm{work:x},8'), code, 'code that the other client reads')
    check_equal(one.ask(f'm{work:x},8'), code, 'code that the client itself reads')
    other.send(packet('c'))  # both have stopped it, so it runs when both have let it go on
    check_matches(one.ask('c'), '^T05.*swbreak:')
    check_equal(one.ask('D;%x' % process.pid), 'OK', 'detach')
    check_matches(other.interrupt(), '^T02')
    check_equal(other.ask(f'm{work:x},8'), code, 'code without breakpoints')
    other.close()
    left(process, stubs)


def test_each_is_told_of_its_own_breakpoints(tmp):
    process, stubs, (one, other) = joined(tmp)
    work = address_of(process.pid, 'work')
    check_equal(other.ask(f'Z0,{work:x},1'), 'OK', 'a breakpoint of the client that has joined')
    one.send(packet('c'))
    for _ in range(3):
        check_matches(other.ask('c'), '^T05.*swbreak:')
    check_equal(other.ask(f'z0,{work:x},1'), 'OK', 'it is removed')
    check_equal(one.interrupt()[:3], 'T02', 'the first client was not told of anything')
    for client in (one, other):
        client.close()
    left(process, stubs)


def test_one_that_has_joined_has_a_hit_again_that_it_does_not_go_past(tmp):
    process, stubs, (one, other) = joined(tmp)
    work, counter = address_of(process.pid, 'work'), address_of(process.pid, 'counter')
    check_equal(other.ask(f'Z0,{work:x},1'), 'OK', 'a breakpoint of the client that has joined')
    one.send(packet('c'))
    check_matches(other.ask('c'), '^T05.*swbreak:')
    before = other.word(counter)
    for _ in range(3):
        check_matches(other.ask('c'), '^T05.*swbreak:')
        check_equal(other.word(counter), before, 'calls')
    check_equal(go_past(other, work)[:3], 'T05', 'a step')
    check_matches(other.ask('c'), '^T05.*swbreak:')
    check_equal(other.word(counter), before + 1, 'calls')
    check_equal(other.ask(f'z0,{work:x},1'), 'OK', 'it is removed')
    check_equal(one.interrupt()[:3], 'T02', 'the first client was not told of anything')
    for client in (one, other):
        client.close()
    left(process, stubs)


def test_the_first_stub_waits_for_those_that_have_joined(tmp):
    process, stubs, (one, other) = joined(tmp)
    work = address_of(process.pid, 'work')
    one.close()
    stubs[0].wait_for('other tracers have joined this one; it ends with the last of them', 1)
    check_equal(other.ask(f'Z0,{work:x},1'), 'OK', 'a breakpoint')
    check_matches(other.ask('c'), '^T05.*swbreak:')
    other.close()
    left(process, stubs)


def test_a_stub_whose_hub_is_killed_says_so_and_the_process_runs_on(tmp):
    for kill in kill_hub, kill_front:
        process, stubs, (one, other) = joined(tmp)
        work = address_of(process.pid, 'work')
        check_equal(other.ask(f'Z0,{work:x},1'), 'OK', 'a breakpoint')
        kill(stubs[0])
        result = stubs[1].end().ended(1)
        check_matches(result.err, '^kymo: the process that traced it for this stub has ended')
        eventually(lambda: not re.search(r'TracerPid:\t[1-9]', open(f'/proc/{process.pid}/status').read()), 'untraced')
        check_text_intact(process.pid)
        advances(process)
        process.kill()


def test_a_stub_that_has_joined_may_be_killed(tmp):
    for kill in kill_hub, kill_front:
        process, stubs, (one, other) = joined(tmp)
        work = address_of(process.pid, 'work')
        check_equal(one.ask(f'Z0,{work:x},1'), 'OK', 'a breakpoint')
        check_equal(other.ask(f'Z0,{work + 4:x},1'), 'OK', 'another one')
        one.send(packet('c'))
        kill(stubs[1])
        check_matches(one.reply(), '^T05.*swbreak:')
        one.close()
        left(process, stubs[:1])
        process.kill()


def test_signals_go_to_one_that_has_joined_and_are_its_to_give(tmp):
    process, stubs, (one, other) = joined(tmp)
    counter = address_of(process.pid, 'counter')
    one.close()
    for reply, gain in (('C1e', 1000), ('c', 0)):
        other.send(packet('c'))
        os.kill(process.pid, signal.SIGUSR1)
        check_matches(other.reply(), '^T1e')
        before = other.word(counter)
        other.send(packet(reply))
        advances(process)
        check_equal(other.interrupt()[:3], 'T02', '^C')
        check_equal((other.word(counter) - before) // 1000, gain // 1000, f'handlers that {reply} has run')
    other.close()
    left(process, stubs)


def test_registers_are_written_by_one_that_has_joined(tmp):
    process, stubs, (one, other) = joined(tmp)
    before = other.ask('g')
    check_equal(one.ask('g'), before, 'registers of both')
    check_equal(other.ask('G' + before), 'OK', 'all of them')
    check_equal(one.ask('g'), before, 'registers afterwards')
    for client in (one, other):
        client.close()
    left(process, stubs)


@timeout(300)
def test_two_gdbs_do_their_work_beside_each_other(tmp):
    build(tmp)
    process = loop(tmp, 'workers')
    stubs = [offer('--pid', process.pid) for _ in range(2)]
    commands = ('break special', 'continue', 'continue', 'backtrace 1', 'print counts[2] > 0', 'step', 'finish',
                'info threads', 'detach')
    gdbs = [start_batch((f'target remote {path}', *commands), './app') for _, path in stubs]
    for each in gdbs:
        out = each.end().ok().out
        check_equal(len(re.findall(r'hit Breakpoint 1(?:\.1)?, special', out)) >= 2, True, f'hits in {out}')
        check_matches(out, r'^\$1 = 1$')
        check_matches(out, r'Inferior 1 \(process \d+\) detached')
    left(process, [stub for stub, _ in stubs])


def test_programs_can_be_started_after_a_session_on_another_hub(tmp):
    """A connection cannot launch, so the stub gets a hub of its own again."""
    build(tmp)
    process = loop(tmp)
    first, path = offer('--pid', process.pid)
    server, port = listen(':0', options=('--multi', ))
    out = gdb(f'target extended-remote :{port}', f'attach {process.pid}', 'print counter >= 0', 'detach',
              'set remote exec-file ./app', 'file ./app', 'break work', 'run', 'backtrace 1', 'kill').ok().out
    check_matches(out, r'^\$1 = 1$')
    check_matches(out, r'Breakpoint 1, work \(n=5')
    server.end(signal.SIGTERM)
    Client(path).close()
    end(first)
    left(process, [first])


def attach(client, pid):
    return client.ask(f'vAttach;{pid:x}')


def test_a_stub_keeps_its_hub_while_others_trace_by_it(tmp):
    build(tmp)
    process, second = loop(tmp), loop(tmp)
    owner, _ = offer('--pid', second.pid)
    server, port = listen('127.0.0.1:0', options=('--multi', ))
    client = Client(port)
    client.ask('qSupported:multiprocess+;swbreak+')
    client.ask('!')
    check_matches(attach(client, process.pid), '^T')
    client.send(packet('vCont;c'))
    tracer = start(KYMO, 'syscalls', '-o', 'calls', '--pid', process.pid)
    eventually(lambda: (tmp / 'calls').exists() and (tmp / 'calls').read_text().count('\n') > 0, 'it has joined')
    check_matches(client.interrupt(), '^T02')
    check_equal(client.ask(f'D;{process.pid:x}'), 'OK', 'detach')
    check_matches(attach(client, second.pid), '^E')
    for each in process, second:
        advances(each)
    before = (tmp / 'calls').read_text().count('\n')
    eventually(lambda: (tmp / 'calls').read_text().count('\n') > before + 5, 'calls are still shown')
    tracer.end(signal.SIGTERM)
    eventually(lambda: attach(client, second.pid)[:1] == 'T', 'it joins when nothing traces by it')
    check_equal(client.ask(f'D;{second.pid:x}'), 'OK', 'detach')
    client.close()
    server.end(signal.SIGTERM)
    end(second)
    owner.end(signal.SIGTERM)


def test_a_stub_that_cannot_join_keeps_its_own_hub(tmp):
    build(tmp)
    process, traced = loop(tmp), loop(tmp)
    tracer = start(program('strace'), '-o', 'calls', '-p', traced.pid)
    eventually(lambda: (tmp / 'calls').exists() and (tmp / 'calls').read_text(), 'strace traces it')
    server, port = listen('127.0.0.1:0', options=('--multi', ))
    client = Client(port)
    client.ask('qSupported:multiprocess+;swbreak+')
    client.ask('!')
    for _ in range(3):
        check_matches(attach(client, traced.pid), '^E')
        check_matches(attach(client, process.pid), '^T')
        check_equal(client.ask(f'D;{process.pid:x}'), 'OK', 'detach')
    client.close()
    server.end(signal.SIGTERM)
    tracer.end(signal.SIGTERM)
    check_untraced(process.pid)
    for each in process, traced:
        advances(each)


def test_a_debugger_joins_who_traces_system_calls(tmp):
    build(tmp)
    process = loop(tmp)
    tracer = start(KYMO, 'syscalls', '-o', 'calls', '--pid', process.pid)
    eventually(lambda: (tmp / 'calls').exists() and (tmp / 'calls').read_text().count('\n') > 5, 'calls are shown')
    stub, path = offer('--pid', process.pid)
    out = gdb(f'target remote {path}', 'break work', 'continue', 'continue', 'print n', 'detach').ok().out
    check_equal(len(re.findall('Breakpoint 1, work', out)), 2, f'hits in {out}')
    stub.end().ok()
    before = (tmp / 'calls').read_text().count('\n')
    eventually(lambda: (tmp / 'calls').read_text().count('\n') > before + 5, 'calls are still shown')
    end(tracer)
    tracer.end()
    check_untraced(process.pid)
    check_text_intact(process.pid)


def test_system_calls_are_shown_of_what_is_debugged(tmp):
    build(tmp)
    process = loop(tmp)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    client.send(packet('c'))
    run(KYMO, 'syscalls', '-o', 'calls', '--for', '1', '--pid', process.pid).ok()
    check((tmp / 'calls').read_text().count('clock_nanosleep') > 5, 'calls are shown', (tmp / 'calls').read_text())
    check_equal(client.interrupt()[:3], 'T02', '^C')
    client.close()
    left(process, [stub])


def test_what_is_debugged_is_recorded(tmp):
    build(tmp)
    process = loop(tmp)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    client.send(packet('c'))
    record_some(tmp / 'trace', process.pid, '-p', './app:work n=%di:s32')
    check_matches(run(KYMO_PLAIN, 'report', tmp / 'trace').ok().out, r'app:work')
    check_equal(client.interrupt()[:3], 'T02', '^C')
    client.close()
    left(process, [stub])


def test_registers_of_a_thread_that_makes_calls_for_a_recording_are_its_own(tmp):
    """A recording that comes or goes has the first thread make system calls, while a client looks at it."""
    build(tmp)
    process = loop(tmp)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    before = client.ask('g')
    check('x' not in before, 'all registers are known', before)
    for i in range(5):
        recorder = start(KYMO, 'record', '-q', '-o', f'trace{i}', '-p', './app:work', '--for', '0.2', '--pid',
                         process.pid)
        while recorder.is_alive():
            now = client.ask('g')
            check(now == before, 'registers', now[:64])
        recorder.end().ok()
    check_equal(client.ask('G' + before), 'OK', 'they are written')
    client.close()
    left(process, [stub])


def test_what_had_a_breakpoint_is_recorded(tmp):
    """The hub knows of a breakpoint for a while after it was removed."""
    build(tmp)
    process = loop(tmp)
    work = address_of(process.pid, 'work')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    check_equal(client.ask(f'Z0,{work:x},1'), 'OK', 'a breakpoint')
    check_matches(client.ask('c'), '^T05.*swbreak:')
    check_equal(client.ask(f'z0,{work:x},1'), 'OK', 'it is removed')
    client.send(packet('c'))
    run(KYMO, 'record', '-q', '-o', 'trace', '--for', '1', '-p', './app:work n=%di:s32', '--pid', process.pid).ok()
    check_matches(run(KYMO_PLAIN, 'report', tmp / 'trace').ok().out, r'app:work')
    check_equal(client.interrupt()[:3], 'T02', '^C')
    client.close()
    left(process, [stub])


@timeout(300)
def test_a_crowd_is_joined(tmp):
    process, stubs, (one, other) = joined(tmp, 'many')
    special = address_of(process.pid, 'special')
    check_equal(other.ask(f'Z0,{special:x},1'), 'OK', 'a breakpoint')
    one.send(packet('vCont;c'))
    check_equal(thread_of(other.ask('vCont;c')), threads_of(process.pid)[1], 'the thread that comes by')
    check_equal(other.ask(f'z0,{special:x},1'), 'OK', 'it is removed')
    for client in (one, other):
        client.close()
    left(process, stubs)


class Load(threading.Thread):
    """Has redis count, and looks at each answer."""
    def __init__(self, path):
        super().__init__(daemon=True)
        self.connection = socket.socket(socket.AF_UNIX)
        self.connection.connect(str(path))
        self.file = self.connection.makefile('rb')
        self.is_over, self.n, self.wrong = False, 0, []
        self.start()

    def run(self):
        while not self.is_over:
            self.connection.sendall(b'INCR counter\r\n')
            self.n += 1
            answer = self.file.readline()
            if answer != b':%d\r\n' % self.n:
                self.wrong.append(answer)

    def end(self):
        before = self.n
        eventually(lambda: self.n > before + 10, 'redis goes on')
        self.is_over = True
        self.join(30)
        check_equal(self.wrong[:3], [], 'answers of redis that are wrong')


@timeout(300)
def test_redis_answers_all_with_two_debuggers_and_two_recordings_on_it(tmp):
    server = start(program('redis-server'), '--port', '0', '--unixsocket', tmp / 'redis.sock', '--save', '',
                   '--appendonly', 'no')
    cli = (program('redis-cli'), '-s', tmp / 'redis.sock')
    eventually(lambda: run(*cli, 'ping').out == 'PONG\n', 'redis answers')
    load = Load(tmp / 'redis.sock')
    stubs = [offer('--pid', server.pid) for _ in range(2)]
    calls = start(KYMO, 'syscalls', '-o', 'calls', '--for', '2', '--pid', server.pid)
    recorder = start(KYMO, 'record', '-q', '-o', 'trace', '-p', 'redis-server:processCommand', '--pid', server.pid)
    gdbs = [start_batch((f'target remote {path}', 'break processCommand', 'continue', 'delete', 'detach'))
            for _, path in stubs]
    for each in gdbs:
        check_matches(each.end().ok().out, 'Breakpoint 1, .*processCommand')
    calls.end().ok()
    recorder.end(signal.SIGTERM).ok()
    load.end()
    for stub, _ in stubs:
        stub.end().ok()
    check_untraced(server.pid)
    check_text_intact(server.pid)
    end(server)
