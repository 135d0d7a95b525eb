"""Clients and stubs that die, talk nonsense, or belong to another user: the program runs on, with its text as in the
file.
"""
import os
import random
import re
import signal
import socket
import time
from pathlib import Path

from debugging import (SERVER, Client, address_of, advances, build, gdb, kill_front, kill_hub, listen, loop, offer,
                       packet, start_gdb, state_of, thread_of)
from kymotest import (KYMO, check, check_equal, check_matches, check_text_intact, check_untraced, eventually, need_root,
                      run, start, timeout)
from pads import FALSE, RSI, build_hot, equal, let_run
import seeds


def is_left_alone(process):
    eventually(lambda: 'TracerPid:\t0' in Path(f'/proc/{process.pid}/status').read_text(), 'nobody traces it')
    advances(process)
    check_text_intact(process.pid)


@timeout(180)
def test_a_client_that_leaves_in_the_middle(tmp):
    build(tmp)
    process = loop(tmp)
    work = address_of(process.pid, 'work')
    for leave in ([], ['?'], ['?', f'Z0,{work:x},1'], ['?', f'Z0,{work:x},1', 'vCont;c'], ['?', 'vCont;s'], [
            '?', f'Z0,{work:x},1', 'vCont;c', None, 'vCont;c'
    ]):
        stub, path = offer('--pid', process.pid)
        client = Client(path)
        for text in leave:
            if text and text.startswith('vCont'):
                client.send(packet(text))
            elif text:
                client.ask(text)
            else:
                client.reply()
        client.send(b'$half a pack')
        client.close()
        stub.end().ok()
        is_left_alone(process)


@timeout(180)
def test_nonsense_is_answered_and_hurts_nothing(tmp):
    build(tmp)
    process = loop(tmp)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    check_equal(client.ask('?')[:3], 'T05', 'why it stands')
    for text in ('vMustReplyEmpty', 'QAgent:1', 'qTNothing', 'Z9,0,1', 'nonsense'):
        check_equal(client.ask(text), '', f'answer to {text}')
    for text in ('m', 'mzz,1', 'm0,ffffffffffffffff', 'M0,8:00', 'Xffffffffffffffff,4:abcd', 'G00', 'P999=00', 'p-1',
                 'Hg', 'Hgp1.1', 'T0', 'Z0,0,1', 'Z2,0,0', 'Z2,1,ffff', 'vCont;x', 'vCont;c:p1', 'vCont;',
                 'qSearch:memory:0;1', 'QPassSignals:zz', 'QSetWorkingDir:0', 'vAttach;zz', 'vRun;', 'vKill;0',
                 'qCRC:0,ff', 'qXfer:auxv:read::x', 'D;0;0'):
        answer = client.ask(text)
        check(answer.startswith('E') or answer == '', f'answer to {text}', answer)
    for text in ('vFile:open:', 'vFile:pread:99,1,1', 'vFile:close:-1', 'vFile:pread:ffffffffffffffff,1,1'):
        check_equal(client.ask(text)[:3], 'F-1', f'answer to {text}')
    generator = random.Random(seeds.seed())
    for _ in range(300):
        head = generator.choice([
            'm', 'M', 'X', 'Z', 'z', 'H', 'P', 'p', 'T', 'qXfer:', 'qSupported:', 'vFile:', 'QCatchSyscalls:', 'q', 'Q',
            ''
        ])
        tail = ''.join(generator.choice('0123456789abcdef,;:=.-pxg~') for _ in range(generator.randrange(12)))
        if head + tail and not (head + tail)[0] in 'ckCsSDRv':
            client.ask(head + tail)
    client.send(b'$' + b'a' * 100000 + b'#00')
    client.send(b'\x03\x03+-+-#$$##')
    client.close()
    stub.end().ok()
    is_left_alone(process)


@timeout(300)
def test_a_gdb_that_is_killed_at_any_moment(tmp):
    build(tmp)
    process = loop(tmp)
    generator = random.Random(seeds.seed())
    for _ in range(6):
        stub, path = offer('--pid', process.pid)
        client = start_gdb(f'target remote {path}', 'break work', *['continue', 'next', 'stepi'] * 60)
        client.wait_for('^Remote debugging using')
        time.sleep(generator.uniform(0, 2.5))
        client.kill()
        stub.end().ok()
        is_left_alone(process)


def test_a_process_outlives_a_function_that_gdb_has_called(tmp):
    """The call ends in SIGSEGV where the stack is no code: gdb takes that for its breakpoint. It is not the program's."""
    build(tmp)
    process = loop(tmp)
    for stop in [], ['tbreak work', 'continue']:
        for leave in 'detach', 'disconnect', 'python gdb.flush(); os.kill(os.getpid(), 9)':
            stub, path = offer('--pid', process.pid)
            out = gdb(f'target remote {path}', *stop, 'python import os', 'print work(3, &here)', leave).out
            check_matches(out, r'^\$1 = 24$')
            stub.end().ok()
            is_left_alone(process)


def test_a_signal_that_was_told_outlives_a_function_that_gdb_has_called(tmp):
    build(tmp)
    process = loop(tmp)
    stub, path = offer('--pid', process.pid)
    out = gdb(f'target remote {path}', 'handle SIGUSR1 stop pass', f'python import os; os.kill({process.pid}, 10)',
              'continue', 'print work(3, &here)', 'print counter', 'detach').out
    check_matches(out, r'received signal SIGUSR1')
    before = int(re.search(r'^\$2 = (\d+)$', out, re.MULTILINE).group(1))
    stub.end().ok()
    is_left_alone(process)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    after = client.word(address_of(process.pid, 'counter'))
    check(after >= before + 1000, f'the handler ran: counter {before}, then {after}')
    client.close()
    stub.end().ok()


@timeout(300)
def test_a_stub_that_is_killed_at_any_moment_while_threads_stand(tmp):
    """With breakpoints in, and all threads held: the hub has taken the bytes out of memory."""
    build(tmp)
    process = loop(tmp)
    work = address_of(process.pid, 'work')
    for n_hits in (0, 1, 2, 3, 5):
        stub, path = offer('--pid', process.pid, env={'XDG_RUNTIME_DIR': str(tmp)})  # a killed stub leaves its socket
        client = Client(path)
        client.ask('qSupported:multiprocess+;swbreak+')
        client.ask('?')
        check_equal(client.ask(f'Z0,{work:x},1'), 'OK', 'a breakpoint')
        for _ in range(n_hits):
            client.ask('vCont;c')
        kill_hub(stub)
        client.close()
        is_left_alone(process)


@timeout(180)
def test_a_stub_that_is_killed_at_any_moment_while_threads_hit(tmp):
    """What the user has started is not what traces: that lets go, with its breakpoints out, when the other is killed. All
    threads come by the breakpoints all the time, and the hub evaluates their conditions."""
    build_hot(tmp)
    process = start('./app', 3)
    process.wait_for('^ready')
    sites = [address_of(process.pid, name) for name in ('hot', 'poke')]
    for i in range(20):
        if i % 3:
            stub, where = offer('--pid', process.pid, env={'XDG_RUNTIME_DIR': str(tmp)}, start_new_session=True)
        else:
            stub, where = listen('--attach', ':0', process.pid)
        client = Client(where)
        client.begin()
        for site in sites:
            check_equal(client.ask(f'Z0,{site:x},1;{FALSE if i % 2 else equal(RSI, 7)}'), 'OK', 'a breakpoint')
        let_run(client)
        time.sleep(0.01 * (i % 7))
        kill_front(stub, kills_group=i % 3 == 2)
        client.close()
        check(process.is_alive(), f'it runs on after kill {i}', process.result())
        check_untraced(process.pid)
        check_text_intact(process.pid)
    process.kill()


@timeout(60)
def test_the_front_passes_on_what_ends_the_stub(tmp):
    build(tmp)
    process = loop(tmp)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        stub, path = offer('--pid', process.pid)
        stub.end(number).ok()
        check(not os.path.exists(path), 'the socket is gone')
        is_left_alone(process)
    stub, path = offer('--pid', process.pid, env={'XDG_RUNTIME_DIR': str(tmp)})
    kill_hub(stub)
    is_left_alone(process)
    stub = run(SERVER, ':0', './nosuch', env={'LC_ALL': 'C'})
    check_equal(stub.status, 1, 'status')


@timeout(60)
def test_what_was_launched_runs_on_when_the_stub_is_killed(tmp):
    """It is in the group of the stub, as it may read the terminal."""
    build(tmp)
    for words in ([KYMO, 'gdb', '--', './app', 'loop'], [SERVER, ':0', './app', 'loop']):
        stub = start(*words, start_new_session=True)
        where = stub.wait_for(r'target remote (\S+)$|Listening on port (\d+)$', words[0] == SERVER)
        client = Client(where.group(1) or int(where.group(2)))
        client.begin()
        pid = int(re.search(r'QCp([0-9a-f]+)\.', client.ask('qC')).group(1), 16)
        check_equal(os.getpgid(pid), stub.pid, 'its group')
        check_equal(client.ask(f'Z0,{address_of(pid, "main"):x},1'), 'OK', 'a breakpoint')
        check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
        kill_front(stub)
        client.close()
        eventually(lambda: state_of(pid) in 'RS', 'it runs on')
        check_untraced(pid)
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: state_of(pid) in ('gone', 'Z'), 'it has ended')


def test_what_was_launched_dies_with_the_stub_where_that_was_asked_for(tmp):
    build(tmp)
    endings = ((kill_front, True), (kill_hub, True), (lambda stub: stub.end(signal.SIGTERM), False),
               (lambda stub: client.close(), False))
    for ending, kills in endings:
        stub, path = offer('--exit-kill', '--', './app', 'loop')
        client = Client(path)
        pid = thread_of(client.begin())
        client.ask(f'Z0,{address_of(pid, "main"):x},1')
        check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
        client.send(packet('vCont;c'))
        ending(stub)
        if kills:
            eventually(lambda: state_of(pid) in ('gone', 'Z'), 'the program is killed')
            continue
        stub.end()
        check_untraced(pid)
        check(state_of(pid) in 'SR', 'it runs on', state_of(pid))
        os.kill(pid, signal.SIGKILL)
    process = loop(tmp)
    run(KYMO, 'gdb', '--exit-kill', '--pid', process.pid).wrong_words(
        f'--exit-kill requires a command: process {process.pid} was not started by kymo')


def test_a_client_that_comes_again(tmp):
    build(tmp)
    server, port = listen('localhost:0', './app', options=())
    for _ in range(3):
        client = socket.create_connection(('127.0.0.1', port))
        client.sendall(packet('?'))
        client.recv(100)
        client.close()
        server.wait_for('GDBserver will reopen the connection', 1)
    server.end(signal.SIGTERM)


def test_another_user_is_kept_out(tmp):
    need_root()
    build(tmp)
    process = loop(tmp)
    stub, path = offer('--pid', process.pid)
    code = f'import socket; socket.socket(socket.AF_UNIX).connect({path!r})'
    result = run('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', 'python3', '-c', code)
    check('PermissionError' in result.err, 'another user may not connect', result)
    check_equal(os.stat(path).st_uid, os.geteuid(), 'owner of the socket')
    stub.end(signal.SIGTERM).ok()
    check_untraced(process.pid)
