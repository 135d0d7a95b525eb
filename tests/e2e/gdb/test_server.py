"""kymo-gdbserver takes gdbserver's words and says its lines; kymo gdb prints what to type."""
import os
import re
import shutil
import signal
import stat
from pathlib import Path

from debugging import SERVER, advances, build, gdb, listen, loop, offer
from kymotest import (KYMO, check, check_equal, check_matches, check_text_intact, check_untraced, kymo,
                      run, run_on_terminal)


def test_tcp_is_on_loopback_and_lines_are_gdbservers(tmp):
    build(tmp)
    server, port = listen('localhost:0', './app')
    check_matches(server.err, r'^Process \./app created; pid = \d+$')
    addresses = [line.split()[1] for line in Path('/proc/net/tcp').read_text().splitlines()]
    check(f'0100007F:{port:04X}' in addresses, 'it listens on loopback', addresses)
    out = gdb(f'target remote :{port}', 'tbreak work', 'continue', 'continue').ok().out
    check_matches(out, r'exited with code 05')
    result = server.end().ok()
    check_matches(result.err, r'^Child exited with status 5$')


def test_attach_and_detach_leave_it_running(tmp):
    build(tmp)
    process = loop(tmp)
    server, port = listen('--attach', ':0', process.pid)
    check_matches(server.err, rf'^Attached; pid = {process.pid}$')
    out = gdb(f'target remote :{port}', 'break work', 'continue', 'continue', 'backtrace 1', 'detach').ok().out
    check_matches(out, r'^#0 +work \(n=3')
    server.end().ok()
    check_untraced(process.pid)
    advances(process)
    check_text_intact(process.pid)


def test_attach_is_a_word_after_the_address_too(tmp):
    build(tmp)
    process = loop(tmp)
    server, port = listen(':0', '--attach', process.pid)
    check_matches(server.err, rf'^Attached; pid = {process.pid}$')
    gdb(f'target remote :{port}', 'detach').ok()
    server.end().ok()
    advances(process)


def test_extended_mode_runs_and_attaches_again_and_again(tmp):
    build(tmp)
    process = loop(tmp)
    server, port = listen(':0', options=('--multi', '--once'))
    out = gdb(f'target extended-remote :{port}', 'set remote exec-file ./app', 'set environment KYMO_TEST yes',
              'set args threads', 'run', 'run', f'attach {process.pid}', 'break work', 'continue', 'detach',
              'monitor exit').ok().out
    check_equal(out.count('exited with code 05'), 2, f'runs in {out}')
    check_matches(out, r'Breakpoint 1, work \(n=3')
    server.end().ok()
    check_untraced(process.pid)
    advances(process)


def test_environment_directory_and_randomization_reach_the_program(tmp):
    build(tmp)
    (tmp / 'sub').mkdir()
    server, port = listen(':0', options=('--multi', '--once'))
    out = gdb(f'target extended-remote :{port}', f'set remote exec-file {tmp}/app', 'set environment KYMO_TEST yes',
              f'set cwd {tmp}/sub', 'break work', 'run', 'print (char *)getenv("KYMO_TEST")',
              'print (char *)getcwd(0, 0)', 'info symbol $pc', 'kill', 'monitor exit').ok().out
    check_matches(out, r'^\$1 = 0x[0-9a-f]+ "yes"$')
    check_matches(out, r'^\$2 = 0x[0-9a-f]+ ".*/sub"$')
    server.end().ok()


def test_wrapper_and_version_and_wrong_words(tmp):
    build(tmp)
    server, port = listen(':0', './app', options=('--once', '--wrapper', 'env', 'KYMO_TEST=wrapped', '--'))
    out = gdb(f'target remote :{port}', 'tbreak work', 'continue', 'print (char *)getenv("KYMO_TEST")', 'kill').ok().out
    check_matches(out, r'"wrapped"')
    server.end().ok()
    check_matches(run(SERVER, '--version').ok().out, r'^GNU gdbserver compatible: kymo-gdbserver \d')
    check_equal(run(SERVER).status, 1, 'status without words')
    check_equal(run(SERVER, ':0', './nosuch').status, 1, 'status without a program')


NAMES = '''Disableable packets:
  vCont       \tAll vCont packets
  qC          \tQuerying the current thread
  qfThreadInfo\tThread listing
  Tthread     \tPassing the thread specifier in the T stop reply packet
  threads     \tAll of the above
  T           \tAll 'T' packets
'''


def test_words_of_gdbserver_that_are_lists_or_wrong(tmp):
    build(tmp)
    check_equal(run(SERVER, '--disable-packet').ok().out, NAMES, 'packets that can be disabled')
    result = run(SERVER, '--disable-packet=vCont,bogus', ':0', './app').ended(1)
    check_equal(result.err, f'Don\'t know how to disable "bogus".\n\n{NAMES}', 'what is said')
    result = run(SERVER, '--debug-format=all,bogus', ':0', './app').ended(1)
    check_equal(result.err, 'Unknown debug-format argument: "bogus"\n', 'what is said')
    result = run(SERVER, '--attach', ':0', '3999999').ended(1)
    check_equal(result.err, 'Cannot attach to process 3999999: No such process (3)\nExiting\n', 'what is said')
    check_matches(run(SERVER, '--attach', ':0', 'xyz').ended(1).err, '^Usage:')
    server, port = listen(':0', './app', options=('--once', '--event-loop-debug', '--debug-format=all,timestamp',
                                                  '--disable-packet=vCont,T'))
    gdb(f'target remote :{port}', 'kill').ok()
    check_matches(server.end().ok().err, r'^Remote debugging from host 127\.0\.0\.1, port \d+$')


def test_by_stdio_it_says_what_gdbserver_says(tmp):
    build(tmp)
    for server in SERVER, shutil.which('gdbserver'):
        for command, end in ('continue', 'result 45 counter 1\n'), ('kill', ''):
            if not server:
                continue
            gdb(f'target remote | {server} --once stdio ./app 2>said', command).ok()
            said = re.sub(r'pid = \d+', 'pid = N', (tmp / 'said').read_text())
            check_equal(said, 'stdin/stdout redirected\nProcess ./app created; pid = N\n'
                        f'Remote debugging using stdio\n{end}', f'what {server} says')


def test_a_number_is_a_process(tmp):
    build(tmp)
    process = loop(tmp)
    for words in [process.pid], ['--pads', process.pid], [process.pid, '--no-pads']:
        stub, path = offer(*words)
        gdb(f'target remote {path}', 'break work', 'continue', 'detach').ok()
        stub.end().ok()
        check_untraced(process.pid)
    kymo('gdb', process.pid, '2').ended(2)
    kymo('gdb', '--pid', process.pid, process.pid).ended(2)
    check_matches(kymo('gdb', '--', process.pid).ended(1).err, f'cannot run {process.pid}')
    check_text_intact(process.pid)


def test_a_private_socket(tmp):
    build(tmp)
    process = loop(tmp)
    stub, path = offer('--pid', process.pid)
    check_equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, 'mode of the socket')
    check_equal(stat.S_IMODE(os.stat(Path(path).parent).st_mode), 0o700, 'mode of its directory')
    gdb(f'target remote {path}', 'break work', 'continue', 'detach').ok()
    stub.end().ok()
    check(not Path(path).parent.exists(), 'the directory is gone')
    check_untraced(process.pid)
    advances(process)
    check_text_intact(process.pid)


def test_kymo_gdb_executes_gdb(tmp):
    build(tmp)
    process = loop(tmp)
    result = run(KYMO, 'gdb', '--exec-gdb', '--pid', process.pid,
                 input='break work\ncontinue\nbacktrace 1\ndetach\nquit\n', env={'DEBUGINFOD_URLS': ''}).ok()
    check_matches(result.out, r'#0 +work \(n=3')
    advances(process)
    check_untraced(process.pid)


def test_a_stub_that_is_ended_by_a_signal_lets_go(tmp):
    build(tmp)
    process = loop(tmp)
    stub, path = offer('--pid', process.pid)
    stub.end(signal.SIGTERM).ok()
    check_untraced(process.pid)
    advances(process)
    check(not Path(path).exists(), 'the socket is gone')


def test_wrong_words_are_refused(tmp):
    kymo('gdb').ended(2)
    kymo('gdb', '--pid', 'x').ended(2)
    kymo('gdb', '--pid', '1', 'ls').ended(2)
    check_matches(kymo('gdb', '--', './nosuch').ended(1).err, r'cannot run \./nosuch')


def test_addresses_that_do_not_serve_are_told_in_gdbservers_words(tmp):
    build(tmp)
    result = run(SERVER, '--once', 'tcp8:123:2345', './app').ended(1)
    check_matches(result.err, r'^kymo: tcp8:123:2345: cannot resolve name: ')
    check_matches(result.err, "^try 'kymo-gdbserver --help'$")
    check('not found' not in result.err, 'the program is there', result.err)
    server, port = listen(':0', './app')
    words = [f'kymo: cannot listen at localhost:{port}.', "Can't bind address: Address already in use.", 'Exiting']
    command = [SERVER, '--once', f'localhost:{port}', './app']
    check_equal(run(*command).ended(1).err.splitlines()[-3:], words, 'what a pipe gets')
    result = run_on_terminal(*command, columns=50).ended(1)
    check_equal(result.out.splitlines()[-3:], words, 'what a narrow terminal gets')
    gdb(f'target remote :{port}', 'kill').ok()
    server.end().ok()
