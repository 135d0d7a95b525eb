"""Which clients may talk to a stub, and what is left without one."""
import os
import signal
import tempfile
from pathlib import Path

from debugging import SERVER, Client, advances, build, listen, loop, offer, packet
from kymotest import (KYMO, check, check_equal, check_matches, check_untraced, eventually, need_32_bit_programs,
                      need_root, run, start, target_path)


def is_closed(client):
    try:
        while client.socket.recv(1000):
            pass
        return True
    except ConnectionResetError:
        return True


def test_what_is_no_client_stops_nothing_and_runs_nothing(tmp):
    build(tmp)
    process = loop(tmp)
    server, port = listen('--attach', ':0', process.pid, options=())
    silent = Client(port)
    advances(process)
    silent.close()
    browser = Client(port)
    words = ';'.join(word.encode().hex() for word in ('/usr/bin/touch', str(tmp / 'made')))
    browser.send(b'POST / HTTP/1.1\r\nHost: localhost\r\n\r\n' + packet('!') + packet(f'vRun;{words}'))
    check(is_closed(browser), 'the connection is closed')
    advances(process)
    check(not (tmp / 'made').exists(), 'nothing is run')
    check_equal(Client(port).ask('?')[:3], 'T05', 'a client is served afterwards')
    server.end(signal.SIGTERM)
    check_untraced(process.pid)


def test_programs_are_begun_only_by_who_may(tmp):
    build(tmp)
    process = loop(tmp)
    words = ';'.join(word.encode().hex() for word in ('/usr/bin/touch', str(tmp / 'made')))
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    client.ask('!')
    for text in (f'vRun;{words}', f'vAttach;{os.getpid():x}'):
        check_equal(client.ask(text), 'E01', f'answer to {text}')
    client.close()
    stub.end().ok()
    server, port = listen('--attach', ':0', process.pid)
    client = Client(port)
    client.begin()
    check_equal(client.ask(f'vRun;{words}'), 'E01', 'vRun without !')
    client.close()
    server.end().ok()
    check(not (tmp / 'made').exists(), 'nothing is run')
    advances(process)


def test_a_runtime_directory_of_somebody_else_is_not_used(tmp):
    build(tmp)
    process = loop(tmp)
    for mode, owner in ((0o700, os.geteuid()), (0o770, os.geteuid()), (0o700, 65534)):
        if owner != os.geteuid():
            need_root()
        with tempfile.TemporaryDirectory(dir='/tmp', prefix='kt-') as directory:
            os.chmod(directory, mode)
            os.chown(directory, owner, -1)
            stub, path = offer('--pid', process.pid, env={'XDG_RUNTIME_DIR': directory})
            is_used = path.startswith(directory)
            stub.end(signal.SIGTERM).ok()
            check_equal(is_used, mode == 0o700 and owner == os.geteuid(), f'use of {mode:o} of {owner}, by {path}')


def test_a_stub_ends_with_a_gdb_that_never_comes(tmp):
    build(tmp)
    process = loop(tmp)
    (tmp / 'bin').mkdir()
    (tmp / 'none').mkdir()
    (tmp / 'bin/gdb').write_text('#!/bin/sh\nexit 3\n')
    (tmp / 'bin/gdb').chmod(0o755)
    for name, status in (('none', 1), ('bin', 3)):
        with tempfile.TemporaryDirectory(dir='/tmp', prefix='kt-') as directory:
            result = run(KYMO, 'gdb', '--exec-gdb', '--pid', process.pid,
                         env={'PATH': str(tmp / name), 'XDG_RUNTIME_DIR': directory})
            check_equal(result.status, status, f'status with {name}: {result.err}')
            hubs = Path(directory, 'kymo')
            eventually(lambda: set(os.listdir(directory)) <= {hubs.name} and not list(hubs.glob('*')),
                       'the directory of the socket is gone')
        eventually(lambda: 'TracerPid:\t0' in Path(f'/proc/{process.pid}/status').read_text(), 'nobody traces it')
        advances(process)


def test_the_kernel_looks_whether_a_client_is_there(tmp):
    build(tmp)
    server, port = listen('localhost:0', './app')
    client = Client(port)
    client.begin()

    def timers():
        lines = [line.split() for line in Path('/proc/net/tcp').read_text().splitlines()[1:]]
        return [line[5][:2] for line in lines if line[1] == f'0100007F:{port:04X}' and line[3] == '01']

    # another one runs while data is on its way
    eventually(lambda: timers() == ['02'], lambda: f'a keepalive timer, {timers()}')
    client.send(packet('k'))
    server.end().ok()


def test_a_client_that_does_not_read_holds_nobody_up(tmp):
    build(tmp)
    process = loop(tmp)
    from_us, to_us = os.pipe(), os.pipe()
    server = start(SERVER, '--once', '--attach', 'stdio', process.pid, stdin=from_us[0], stdout=to_us[1])
    os.close(from_us[0])
    os.close(to_us[1])
    text = next(
        int(line.split('-')[0], 16) for line in Path(f'/proc/{process.pid}/maps').read_text().splitlines()
        if 'r-xp' in line and 'libc' in line)
    os.write(from_us[1], packet('?') + packet(f'm{text:x},7000') * 10)
    server.wait_for('Remote debugging using stdio', 1)
    eventually(lambda: Path(f'/proc/{process.pid}/stat').read_text().rpartition(')')[2].split()[0] == 't', 'it stands')
    server.signal(signal.SIGTERM)
    server.popen.wait(20)
    os.close(from_us[1])
    os.close(to_us[0])
    check_untraced(process.pid)
    advances(process)


def test_32_bit_programs_are_refused(tmp):
    need_32_bit_programs()
    process = start(target_path('tiny32'))
    check_matches(run(KYMO, 'gdb', '--pid', process.pid).ended(1).err, 'is a 32-bit program')
    check_matches(run(KYMO, 'gdb', '--', target_path('tiny32')).ended(1).err, 'is a 32-bit program')
    check_untraced(process.pid)
