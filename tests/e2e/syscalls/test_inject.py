"""`kymo syscalls --inject`: calls fail, return, are delayed and bring signals as with strace's own option, line for
line, and the program behaves as there."""
import json

from kymotest import check, check_equal, check_same, kymo, program
from straced import check_like_strace

SH = program('sh')
FIVE = 'for d in 1 2 3 4 5; do cd / || echo $d fails; done; exit 0'


def test_errors_and_results_look_as_in_strace(tmp):
    for what in ('chdir:error=ENOENT', 'chdir:error=5', 'chdir:error=ERESTARTSYS', '%file:error=EACCES:when=50+',
                 'getpid,getppid:retval=0x12345', 'chdir,dup2:retval=7'):
        check_like_strace(tmp, SH, '-c', 'cd /; cd /nonexistent; echo $?; exit 0', options=[f'--inject={what}'],
                          at_least=20)


def test_a_call_that_would_not_return_does_and_a_child_is_not_made(tmp):
    for what in ('exit_group:retval=0:when=1', 'exit_group:error=EPERM:when=1'):
        check_like_strace(tmp, SH, '-c', 'exit 0', options=[f'--inject={what}'], at_least=20)
    check_like_strace(tmp, SH, '-c', '/bin/true & exit 0', options=['--inject=clone,vfork,fork:retval=4194303'],
                      at_least=20)


def test_which_ones_are_as_in_strace(tmp):
    for when in ('1', '3', '2+', '2+2', '2..3', '1..5+3', '2..4+'):
        check_like_strace(tmp, SH, '-c', FIVE, options=['-e', 'chdir', f'--inject=chdir:error=ENOENT:when={when}'],
                          at_least=6)


def test_each_thread_and_each_call_is_counted_by_itself(tmp):
    check_like_strace(tmp, SH, '-c', '(cd /; cd /); cd /; cd /; exit 0',
                      options=['-e', 'chdir,umask', '--inject=chdir,umask:error=EPERM:when=2'], at_least=6)


def test_the_last_one_counts_that_has_the_call(tmp):
    check_like_strace(
        tmp, SH, '-c', FIVE, options=[
            '-e', 'chdir', '--inject=chdir:error=EPERM', '--inject=chdir:error=EIO:when=2', '--inject=umask:error=EIO'
        ], at_least=6)


def test_signals_look_as_in_strace(tmp):
    for what in ('chdir:signal=USR1', 'chdir:signal=SIGUSR1:error=EACCES:when=2', 'chdir:signal=10:when=2+2'):
        check_like_strace(tmp, SH, '-c', 'trap "echo trapped" USR1; ' + FIVE, options=[f'--inject={what}'], at_least=20)


def test_a_signal_that_kills_looks_as_in_strace(tmp):
    check_like_strace(tmp, SH, '-c', '(cd /tmp); exit 0', options=['-e', 'chdir', '--inject=chdir:signal=KILL'],
                      at_least=4)
    check_like_strace(tmp, SH, '-c', '(cd /tmp); exit 0', options=['-e', 'chdir', '--inject=chdir:signal=TERM'],
                      at_least=4)


def test_delays_look_as_in_strace(tmp):
    for what in ('chdir:delay_enter=1000', 'chdir:delay_exit=3ms:when=2..4',
                 'chdir:delay_enter=1:delay_exit=5us:error=EIO'):
        check_like_strace(tmp, SH, '-c', FIVE, options=['-e', 'chdir', f'--inject={what}'], at_least=6)


def test_a_delay_is_in_the_duration_and_in_json():
    one = next(event for event in map(
        json.loads,
        kymo('syscalls', '--json', '-e', 'chdir', '--inject=chdir:delay_enter=200ms:retval=0', SH, '-c',
             'cd /').ok().err.splitlines()))
    check_equal((one['injected'], one['delayed'], one['result']), (True, True, 0))
    check(one['duration_ns'] >= 200_000_000, str(one))


def test_others_run_on_while_one_is_delayed_and_may_kill_it(tmp):
    script = '(: > begun; cd /tmp) & until test -e begun; do :; done; sleep 0.1; kill -9 $!; wait $!; exit 0'
    err = kymo('syscalls', '-f', '-e', 'chdir', '--inject=chdir:delay_enter=600s', SH, '-c', script, cwd=tmp).ok().err
    check('+++ killed by SIGKILL +++' in err, err)


def test_a_path_selects_what_is_injected_into(tmp):
    check_like_strace(tmp, SH, '-c', 'cd /; cd /tmp; cd /; exit 0',
                      options=['-P', '/', '--inject=chdir:error=EPERM:when=2'], at_least=3)


def test_calls_that_are_not_shown_are_injected_into(tmp):
    check_same(
        kymo('syscalls', '-e', 'none', '--inject=chdir:error=EPERM', SH, '-c',
             'cd / 2>/dev/null || exit 4').ended(4).err.splitlines(), ['+++ exited with 4 +++'])


def test_the_command_itself_is_begun(tmp):
    check_like_strace(tmp, program('env'), SH, '-c', 'exit 0',
                      options=['-e', 'execve', '--inject=execve:error=ENOENT:when=2+'], at_least=3)


def test_wrong_words_are_answered_with_their_column():
    for what, sentence in (
        ('chdir', r'column 6: what is to be injected\? add :error=ERRNO'),
        ('chdi:error=1', r"column 1: there is no system call 'chdi'; near are chdir"),
        ('chdir:error=EFOO',
         r"column 13: there is no error 'EFOO'; write a name such as ENOENT, or a number from 1 to 4095\n  chdir:error=EFOO\n              \^"
         ), ('chdir:error=0', r"column 13: there is no error '0'"), ('chdir:error=4096',
                                                                     r"column 13: there is no error '4096'"),
        ('chdir:eror=3', r"column 7: 'eror=3' is not error=, retval=, signal=, when=, delay_enter= or delay_exit="),
        ('chdir:retval=-1', r'column 14: a call that returns -1 has failed: write error=1'),
        ('chdir:retval=0x10000000000000000', r"column 14: '0x10000000000000000' is no number of 64 bits to return"),
        ('chdir:retval=1:error=1',
         r'column 22: a call has one result'), ('chdir:signal=99',
                                                r"column 14: there is no signal '99'; write a name such as SIGUSR1"),
        ('chdir:signal=1:signal=2',
         r'column 23: there is a signal= before'), ('chdir:error=1:when=0',
                                                    r'column 20: when= takes FIRST'), ('chdir:error=1:when=5..2',
                                                                                       r'column 20: when= takes FIRST'),
        ('chdir:error=1:when=1+65536',
         r'column 20: when= takes FIRST'), ('chdir:delay_exit=3m',
                                            r"column 19: there is no unit 'm'; write ns, us, ms or s"),
        ('chdir:delay_enter=x',
         r"column 19: 'x' is no time"), ('chdir:delay_enter=1000001s',
                                         r'column 19: a call is delayed by 1000000 seconds at most'),
        ('chdir:error=' + 'E' * 50, r'column 13: .* is too long'), (':error=1',
                                                                    r"column 1: the set '' has no system call")):
        kymo('syscalls', '--inject', what, 'true').refused(sentence, 2)
