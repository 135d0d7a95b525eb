"""Clients and stubs that die, talk nonsense, or belong to another user: the program runs on, with its text as in the
file.
"""
import os
import random
import signal
import socket
import time
from pathlib import Path

from debugging import Client, address_of, advances, build, listen, loop, offer, packet, start_gdb
from kymotest import check, check_equal, check_text_intact, check_untraced, eventually, need_root, run, timeout
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
        stub.kill()
        client.close()
        is_left_alone(process)


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
