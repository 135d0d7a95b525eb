"""gdb does its work through kymo-gdbserver: everything that one does in a session with a program that it starts."""
import re

from debugging import build, by_stdio
from kymotest import check, check_equal, check_matches, skip, timeout
import debug_registers


def test_break_print_step_and_finish(tmp):
    build(tmp)
    out = by_stdio('./app', 'break work', 'continue', 'backtrace', 'print *point', 'print point->y * 2', 'next',
                   'print total', 'step', 'stepi', 'delete', 'finish', 'print $_exitcode', 'continue').ok().out
    check_matches(out, r'^Breakpoint 1, work \(n=5, point=0x[0-9a-f]+ <here>\) at app\.c:')
    check_matches(out, r'^#1 .* in main \(argc=1, ')
    check_matches(out, r'^\$1 = \{x = 7, y = 2\.5, name = "origin\\000"\}$')
    check_matches(out, r'^\$2 = 5$')
    check_matches(out, r'^\$3 = 0$')
    check_matches(out, r'^Value returned is \$4 = 45$')
    check_matches(out, r'^\[Inferior 1 \(process \d+\) exited with code 05\]$')


def test_values_are_changed_and_functions_called(tmp):
    build(tmp)
    out = by_stdio('./app', 'break work', 'continue', 'set var point->x = 100', 'set var n = 2', 'print work(3, &here)',
                   'delete', 'set var $xmm3.uint128 = 77', 'print $xmm3.uint128', 'print $eflags',
                   'print (int)getpid() > 1', 'continue').ok().out
    check_matches(
        out, r'^The program being debugged stopped while in a function called from GDB\.|^Breakpoint 1, work \(n=3')
    check_matches(out, r'^\$\d = 77$')
    check_matches(out, r'^\$\d = 1$')


def test_inferior_calls_return(tmp):
    build(tmp)
    out = by_stdio('./app', 'tbreak work', 'continue', 'print work(3, &here)', 'print counter', 'continue').ok().out
    check_matches(out, r'^\$1 = 24$')
    check_matches(out, r'^\$2 = 1$')
    check_matches(out, r'exited with code 05')


def test_a_thread_that_begins_anew_at_a_breakpoint_has_a_hit(tmp):
    """By a call or a jump to the address at which it stands. gdb does not write the program counter then, as it has that
    value already."""
    build(tmp)
    for mode in 'off', 'on':
        out = by_stdio('./app', f'set breakpoint always-inserted {mode}', 'break *work', 'continue',
                       'print work(3, &here)', 'info breakpoints', 'print $rdi', 'print counter', 'jump *$pc',
                       'info breakpoints', 'break *work+4', 'continue', 'jump *$pc', 'info breakpoints', 'kill').ok()
        check_matches(out.err, r'^The program being debugged stopped while in a function called from GDB\.')
        check_equal(re.findall(r'already hit (\d+) times?', out.out), ['2', '3', '3', '2'], f'hits in {out.out}')
        check_matches(out.out, r'^\$1 = 3$')
        check_matches(out.out, r'^\$2 = 0$')


def test_a_false_condition_is_passed_where_a_thread_begins_anew(tmp):
    build(tmp)
    out = by_stdio('./app', 'break work if n == 5', 'continue', 'condition 1 n == 9', 'break main', 'jump *$pc',
                   'info breakpoints').ok().out
    check_matches(out, r'exited with code 05')
    check_equal(re.findall(r'already hit (\d+) times?', out), ['1'], f'hits in {out}')


def test_vector_registers_are_described(tmp):
    build(tmp)
    out = by_stdio('./app', 'tbreak work', 'continue', 'info registers xmm0 mxcsr fctrl ftag', 'set var $st0 = 1.5',
                   'print $st0', 'print sizeof($xmm15)', 'print $fs_base != 0', 'print $orig_rax', 'kill').ok().out
    check_matches(out, r'^mxcsr +0x1f80 ')
    check_matches(out, r'^fctrl +0x37f ')
    check_matches(out, r'^\$1 = 1\.5$')
    check_matches(out, r'^\$2 = 16$')
    check_matches(out, r'^\$3 = 1$')


def test_memory_has_no_breakpoints_in_it(tmp):
    build(tmp)
    out = by_stdio('./app', 'x/4xb work', 'break *work', 'set breakpoint always-inserted on', 'continue', 'x/4xb work',
                   'kill').ok().out
    lines = [line.split(':')[1] for line in out.splitlines() if '<work>:' in line]
    check_equal(len(set(lines)), 1, f'bytes of work in {out}')


def test_a_loop_with_the_same_registers_stops_each_time(tmp):
    """The instruction was executed between two hits, although nothing tells them apart."""
    build(tmp)
    out = by_stdio('./app spin', 'break *&spin_at', 'continue', 'continue', 'continue', 'info breakpoints',
                   'set var counter = 1', 'delete', 'continue', seconds=60).ok().out
    check_matches(out, r'already hit 3 times')
    check_matches(out, r'exited with code 05')


def test_all_threads_stop_and_are_told(tmp):
    build(tmp)
    out = by_stdio('./app threads', 'break work if n == 4', 'continue', 'info threads', 'thread apply all backtrace 1',
                   'next', 'continue', 'continue', 'delete', 'continue').ok().out
    check_matches(out, r'hit Breakpoint 1, work \(n=4')
    check(out.count('Thread ') >= 8, 'four threads, twice', out)
    check_matches(out, r'exited with code 05')


def test_one_thread_runs_while_others_are_locked(tmp):
    build(tmp)
    out = by_stdio('./app threads', 'break work if n == 4', 'continue', 'set scheduler-locking on', 'delete',
                   'continue', 'set scheduler-locking off', 'continue').out
    check_matches(out, r'^No unwaited-for children left\.$')


def test_signals_are_stopped_for_passed_and_dropped(tmp):
    build(tmp)
    stops = by_stdio('./app signal', 'handle SIGUSR1 stop print pass', 'continue', 'print $_siginfo.si_signo',
                     'continue').ok()
    check_matches(stops.out, r'received signal SIGUSR1')
    check_matches(stops.out, r'^\$1 = 10$')
    check_matches(stops.err, r'^result 45 counter 1001$')
    dropped = by_stdio('./app signal', 'handle SIGUSR1 stop print nopass', 'continue', 'continue').ok()
    check_matches(dropped.err, r'^result 45 counter 1$')
    silent = by_stdio('./app signal', 'handle SIGUSR1 nostop noprint pass', 'continue').ok()
    check_matches(silent.err, r'^result 45 counter 1001$')
    sent = by_stdio('./app', 'tbreak work', 'continue', 'signal SIGUSR1').ok()
    check_matches(sent.err, r'^result 45 counter 1001$')


def test_forks_are_followed_either_way(tmp):
    build(tmp)
    parent = by_stdio('./app fork', 'break work', 'continue', 'continue').ok().err
    check_matches(parent, r'^child 15$')
    child = by_stdio('./app fork', 'set follow-fork-mode child', 'tbreak work', 'continue', 'break work if n == 2',
                     'continue', 'backtrace 1', 'continue').ok().out
    check_matches(child, r'hit Breakpoint 2, work \(n=2')
    check_matches(child, r'exited with code 017')
    both = by_stdio('./app fork', 'set detach-on-fork off', 'catch fork', 'continue', 'next', 'inferior 2', 'continue',
                    'inferior 1', 'continue').ok().out
    check_matches(both, r'Inferior 2 .* exited with code 017')
    check_matches(both, r'Inferior 1 .* exited with code 05')


def test_vfork_and_exec_are_told(tmp):
    build(tmp)
    vfork = by_stdio('./app vfork', 'catch vfork', 'continue', 'break work', 'continue').ok()
    check_matches(vfork.out, r'^Catchpoint 1 \(vforked process \d+\)')
    check_matches(vfork.err, r'^child 5$')
    executed = by_stdio('./app exec', 'catch exec', 'continue', 'break work', 'continue', 'backtrace', 'delete',
                        'continue').ok().out
    check_matches(executed, r"^Catchpoint 1 \(exec'd .*/app\)")
    check_matches(executed, r'Breakpoint 2, work \(n=5')
    check_matches(executed, r'exited with code 05')


@timeout(180)
def test_an_exec_is_told_before_the_first_instruction(tmp):
    """However busy the machine is."""
    build(tmp)
    for _ in range(10):
        out = by_stdio('./app exec', 'print $pc', 'catch exec', 'continue', 'print $pc', 'kill').ok().out
        first, second = re.findall(r'^\$\d = (.*)$', out, re.MULTILINE)
        check_equal(second, first, 'where it stands')


def test_system_calls_are_caught(tmp):
    build(tmp)
    out = by_stdio('./app', 'catch syscall write', 'continue', 'continue', 'continue').ok().out
    check_matches(out, r'^Catchpoint 1 \(call to syscall write\)')
    check_matches(out, r'^Catchpoint 1 \(returned from syscall write\)')


def test_kill_ends_it(tmp):
    build(tmp)
    out = by_stdio('./app loop', 'tbreak work', 'continue', 'kill').ok().out
    check_matches(out, r'^\[Inferior 1 \(process \d+\) killed\]$')


def test_watchpoints(tmp):
    if not debug_registers.work():
        skip('debug registers of this machine do nothing')
    build(tmp)
    out = by_stdio('./app', 'watch watched', 'continue', 'rwatch counter', 'delete', 'continue').ok().out
    check_matches(out, r'^Hardware watchpoint 1: watched$')
    check_matches(out, r'^New value = 45$')


def test_memory_is_searched(tmp):
    build(tmp)
    out = by_stdio('./app', 'tbreak work', 'continue', 'find &here, +sizeof(here), \'o\', \'r\', \'i\'',
                   'kill').ok().out
    check_matches(out, r'^1 pattern found\.$')
