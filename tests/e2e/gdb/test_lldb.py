"""lldb does its work through the stub: it attaches, sets breakpoints, steps, calls functions, and leaves."""
import re

from debugging import ENVIRONMENT, advances, build, listen, loop, offer
from kymotest import check, check_equal, check_matches, check_text_intact, check_untraced, program, run, timeout


def lldb(*commands, seconds=150):
    words = [word for command in commands for word in ('--one-line', command)]
    return run(program('lldb'), '--no-lldbinit', '--batch', *words, './app', env=ENVIRONMENT, seconds=seconds)


@timeout(300)
def test_lldb_attaches_steps_and_leaves(tmp):
    program('lldb')
    build(tmp)
    process = loop(tmp)
    server, port = listen('--attach', ':0', process.pid)
    out = lldb(f'gdb-remote 127.0.0.1:{port}', 'expression work(4, &here)', 'breakpoint set --name work', 'continue',
               'thread backtrace', 'frame variable n', 'register read rip rdi', 'thread step-over', 'thread step-inst',
               'thread step-out', 'breakpoint delete 1', 'expression here.x = 8', 'register write r15 77',
               'register read r15', 'image list', 'process detach').out
    check_matches(out, r'^\(int\) \$0 = 34$')
    check_matches(out, r'stop reason = breakpoint 1\.1$')
    check_matches(out, r'frame #0: 0x[0-9a-f]+ app`work\(n=3, ')
    check_matches(out, r'frame #1: 0x[0-9a-f]+ app`main\(argc=2, ')
    check_matches(out, r'^\(int\) n = 3$')
    check_matches(out, r'^ +rip = 0x[0-9a-f]+ +app`work \+ ')
    for reason in ('step over', 'instruction step into', 'step out'):
        check_matches(out, rf'stop reason = {reason}$')
    check_matches(out, r'^ +r15 = 0x0*4d$')
    check_matches(out, r'\] [0-9A-F-]+ 0x[0-9a-f]+ .*libc\.so\.6')
    check_matches(out, rf'^Process {process.pid} detached$')
    check(not re.search(r'error:|warning: failed', out), 'nothing has failed', out)
    server.end().ok()
    check_untraced(process.pid)
    check_text_intact(process.pid)
    advances(process)


@timeout(300)
def test_lldb_lets_all_threads_run(tmp):
    program('lldb')
    build(tmp)
    process = loop(tmp, 'workers')
    stub, path = offer('--pid', process.pid)
    out = lldb(f'process connect --plugin gdb-remote unix-connect://{path}', 'breakpoint set --name special',
               'continue', 'thread list', 'thread step-out', 'continue', 'breakpoint delete 1', 'process detach').out
    check_equal(len(re.findall(r'^Process \d+ resuming$', out, re.MULTILINE)), 2, f'twice it went on: {out}')
    check_matches(out, r'^\* thread #\d: .* app`special .*stop reason = breakpoint 1\.1$')
    check_matches(out, r'frame #0: 0x[0-9a-f]+ app`worker\(')
    check_matches(out, rf'^Process {process.pid} detached$')
    stub.end().ok()
    check_untraced(process.pid)
    advances(process)


@timeout(300)
def test_lldb_kills_what_the_server_has_started(tmp):
    program('lldb')
    build(tmp)
    server, port = listen(':0', './app', 'loop')
    out = lldb(f'gdb-remote 127.0.0.1:{port}', 'breakpoint set --name work', 'continue', 'thread backtrace',
               'process kill').out
    check_matches(out, r'frame #0: 0x[0-9a-f]+ app`work\(n=5, ')
    check_matches(out, r'frame #1: 0x[0-9a-f]+ app`main\(argc=2, ')
    server.end().ok()
