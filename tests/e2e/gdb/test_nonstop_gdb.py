"""gdb in non-stop, and in all-stop above a non-stop target, on real programs."""
import random
import re
import signal
import socket
import time

from debugging import ENVIRONMENT, SETTINGS, advances, build, gdb, listen, loop, offer, threads_of
from kymotest import (Skip, check, check_equal, check_matches, check_text_intact, check_untraced, eventually, program,
                      start, target, target_path, timeout)
import seeds
import test_native


class Mi:
    """gdb/MI, as IDEs drive it."""
    def __init__(self, *commands):
        self.gdb, self.n = start(program('gdb'), '-nx', '-q', '-i=mi3', env=ENVIRONMENT), 0
        for command in ('set confirm off', 'set pagination off', 'set sysroot /', 'set mi-async on', *commands):
            self.ask(f'-interpreter-exec console "{command}"')

    def ask(self, text, answer='done|running|connected|exit'):
        """What gdb prints up to the result of a command."""
        before = len(self.gdb.out)
        self.n += 1
        self.gdb.send(f'{self.n}{text}\n')
        self.gdb.wait_for(rf'^{self.n}\^(\w+)')
        printed = self.gdb.out[before:]
        check(re.search(rf'^{self.n}\^({answer})', printed, re.MULTILINE), f'answer to {text}', printed)
        return printed

    def count(self, pattern):
        return len(re.findall(pattern, self.gdb.out))

    def states(self):
        return re.findall(r'state="(\w+)"', self.ask('-thread-info'))

    def quit(self):
        self.gdb.end(input='-gdb-exit\n')


def test_a_breakpoint_stops_its_thread(tmp):
    build(tmp)
    for setting in ('set non-stop on', 'maint set target-non-stop on'):
        server, port = listen(':0', './app', 'threads')
        out = gdb(setting, f'target remote :{port}', 'break work if n == 4', 'continue', 'info threads', 'delete',
                  'continue -a' if 'on-stop on' in setting and 'maint' not in setting else 'continue').ok().out
        check_matches(out, r'hit Breakpoint 1, work \(n=4')
        check_equal(out.count('(running)') == 3, 'maint' not in setting, f'threads that run, of {setting}')
        check_matches(out, r'exited with code 05')
        server.end().ok()


def test_forks_execs_and_steps_above_a_non_stop_target(tmp):
    build(tmp)
    for setting in ('set non-stop on', 'maint set target-non-stop on'):
        def run(mode, *commands):
            server, port = listen(':0', './app', mode)
            out = gdb(setting, f'target extended-remote :{port}', *commands).ok().out
            server.end().ok()
            return out

        out = run('fork', 'set follow-fork-mode child', 'tbreak work', 'continue', 'break work if n == 2', 'continue',
                  'inferior 2', 'next', 'delete', 'continue', 'monitor exit')
        check_matches(out, r'hit Breakpoint 2, work \(n=2')
        check_matches(out, r'exited with code 017')
        out = run('fork', 'set detach-on-fork off', 'catch fork', 'continue', 'next', 'inferior 2', 'continue',
                  'inferior 1', 'continue', 'monitor exit')
        check_matches(out, r'Inferior 2 .* exited with code 017')
        check_matches(out, r'Inferior 1 .* exited with code 05')
        if setting == 'set non-stop on':
            continue  # gdb 13 does not let a parent go on after it has let go of the child of its vfork
        out = run('vfork', 'catch vfork', 'continue', 'break work', 'continue', 'monitor exit')
        check_matches(out, r'^Catchpoint 1 \(vforked process \d+\)')
        check_matches(out, r'exited with code 05')
        out = run('exec', 'catch exec', 'continue', 'break work', 'continue', 'stepi', 'next', 'finish', 'delete',
                  'continue', 'monitor exit')
        check_matches(out, r"^Catchpoint 1 \(exec'd .*/app\)")
        check_matches(out, r'^Value returned is \$1 = 45$')
        check_matches(out, r'exited with code 05')


@timeout(240)
def test_sessions_above_a_non_stop_target(tmp):
    SETTINGS.append('maint set target-non-stop on')
    for session in (test_native.test_system_calls_are_caught, test_native.test_forks_are_followed_either_way,
                    test_native.test_one_thread_runs_while_others_are_locked,
                    test_native.test_signals_are_stopped_for_passed_and_dropped,
                    test_native.test_values_are_changed_and_functions_called,
                    test_native.test_a_loop_with_the_same_registers_stops_each_time, test_native.test_watchpoints):
        try:
            session(tmp)
        except Skip:
            pass


def test_an_ide_stops_and_resumes_threads(tmp):
    build(tmp)
    process = loop(tmp, 'workers')
    stub, path = offer('--pid', process.pid)
    ide = Mi('file ./app', 'set non-stop on')
    ide.ask(f'-target-select remote {path}')
    eventually(lambda: sorted(ide.states()) == ['running'] * 3 + ['stopped'], 'one thread stands at first')
    ide.ask('-exec-continue --all')
    eventually(lambda: ide.states() == ['running'] * 4, 'all threads run')
    ide.ask('-break-insert special')
    eventually(lambda: ide.states().count('stopped') == 1, 'one thread stands at the breakpoint')
    check_equal(ide.count('reason="breakpoint-hit"'), 1, 'hits')
    first = re.search(r'~"\$\d+ = (\d+)', ide.ask('-interpreter-exec console "print counts[1]"'))
    check(first, 'memory while threads run', ide.gdb.out[-500:])
    for _ in range(3):
        hits = ide.count('reason="breakpoint-hit"')
        stopped = re.search(r'\{id="(\d+)"(?:(?!\{id=).)*state="stopped"', ide.ask('-thread-info')).group(1)
        ide.ask(f'-exec-next --thread {stopped}')
        eventually(lambda: ide.count('reason="end-stepping-range"') + ide.count('reason="breakpoint-hit"') > hits,
                   'the step is done')
        eventually(lambda: ide.states().count('stopped') == 1, 'the others run')
        ide.ask(f'-exec-continue --thread {stopped}')
        eventually(lambda: ide.count('reason="breakpoint-hit"') > hits, 'the next hit')
    ide.ask('-exec-interrupt --all')
    eventually(lambda: ide.states() == ['stopped'] * 4, 'all threads stand')
    printed = ide.ask('-interpreter-exec console "thread apply all backtrace 1"')
    check_equal(len(re.findall(r'~"#0 ', printed)), 4, f'backtraces in {printed}')
    ide.ask('-break-delete 1')
    ide.ask('-exec-continue --all')
    eventually(lambda: ide.states() == ['running'] * 4, 'all threads run')
    ide.ask('-target-detach')
    ide.quit()
    stub.end().ok()
    check_untraced(process.pid)
    advances(process)
    check_text_intact(process.pid)


@timeout(180)
def test_a_gdb_that_is_killed_in_non_stop(tmp):
    """It does not step over breakpoints by a copy of the instruction, in which it would leave a thread."""
    build(tmp)
    process = loop(tmp, 'workers')
    generator = random.Random(seeds.seed())
    for n in range(8):
        wait = generator.uniform(0, 1)
        stub, path = offer('--pid', process.pid)
        ide = Mi('file ./app', 'set non-stop on', 'set displaced-stepping off')
        ide.ask(f'-target-select remote {path}')
        ide.ask('-break-insert ' + ('-c counts[2]==0 ' if n % 2 else '') + 'special')
        ide.gdb.send('-exec-continue --all\n')
        time.sleep(wait)
        ide.gdb.kill()
        stub.end().ok()
        check_untraced(process.pid)
        advances(process)
        check_text_intact(process.pid)


@timeout(180)
def test_python_with_threads(tmp):
    build(tmp)
    (tmp / 'threads.py').write_text('import threading, time\n'
                                    'def work():\n'
                                    '    while True: time.sleep(0.001)\n'
                                    'for _ in range(8): threading.Thread(target=work, daemon=True).start()\n'
                                    'print("ready", flush=True)\n'
                                    'work()\n')
    for setting in ('set non-stop on', 'maint set target-non-stop on'):
        process = start('python3', 'threads.py')
        process.wait_for('^ready$')
        stub, path = offer('--pid', process.pid)
        ide = Mi(setting)
        ide.ask(f'-target-select remote {path}')
        eventually(lambda: ide.states().count('stopped') == (9 if 'maint' in setting else 1), 'threads that stand')
        ide.ask('-break-insert clock_nanosleep')
        ide.ask('-exec-continue --all' if 'maint' not in setting else '-exec-continue')
        if 'maint' in setting:
            for n in range(1, 30):
                eventually(lambda: ide.count('reason="breakpoint-hit"') >= n, f'hit {n}')
                ide.ask('-exec-continue')
        else:
            eventually(lambda: ide.states().count('stopped') == 9, 'each thread comes by')
        ide.ask('-exec-interrupt --all' if 'maint' not in setting else '-exec-interrupt')
        eventually(lambda: ide.states() == ['stopped'] * 9, 'all threads stand')
        ide.ask('-target-detach')
        ide.quit()
        stub.end().ok()
        advances(process)
        check_text_intact(process.pid)
        process.kill()


def pings(path, n):
    """As many as are answered."""
    answer = b''
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(20)
        connection.connect(str(path))
        connection.sendall(b'PING\r\n' * n)
        while len(answer) < len(b'+PONG\r\n' * n):
            answer += connection.recv(65536)
    return answer.count(b'+PONG\r\n')


@timeout(180)
def test_redis_answers_while_one_thread_stands(tmp):
    path = tmp / 'redis'
    server = start(program('redis-server'), '--port', 0, '--unixsocket', path, '--save', '', '--appendonly', 'no')
    eventually(path.exists, 'redis is ready')
    stub, where = offer('--pid', server.pid)
    n = 1 + len(threads_of(server.pid))
    ide = Mi('set non-stop on')
    ide.ask(f'-target-select remote {where}')
    eventually(lambda: ide.states().count('stopped') == 1, 'one thread stands')
    ide.ask('-exec-continue --all')
    eventually(lambda: ide.states() == ['running'] * n, 'all threads run')
    check_equal(pings(path, 1000), 1000, 'answers')
    for thread in range(2, n + 1):
        ide.ask(f'-exec-interrupt --thread {thread}')
    eventually(lambda: ide.states().count('stopped') == n - 1, 'all but the first stand')
    check_equal(pings(path, 1000), 1000, 'answers while threads stand')
    ide.ask('-exec-continue --all')
    ide.ask('-target-detach')
    ide.quit()
    stub.end().ok()
    check_equal(pings(path, 100), 100, 'answers afterwards')
    check_text_intact(server.pid)
    server.end(signal.SIGTERM)


@timeout(240)
def test_a_hundred_threads(tmp):
    process = target('threads1000', '-t', 120, '-w', 4)
    for setting in ('set non-stop on', 'maint set target-non-stop on'):
        stub, path = offer('--pid', process.pid)
        n = 1 + len(threads_of(process.pid))
        ide = Mi(f'file {target_path("threads1000")}', setting)
        ide.ask(f'-target-select remote {path}')
        eventually(lambda: ide.states().count('stopped') == (n if 'maint' in setting else 1), 'threads that stand')
        ide.ask('-break-insert work_a')
        if 'maint' in setting:
            for hit in range(1, 6):
                ide.ask('-exec-continue')
                eventually(lambda: ide.count('reason="breakpoint-hit"') >= hit, f'hit {hit}')
                eventually(lambda: ide.states() == ['stopped'] * n, 'all threads stand')
        else:
            eventually(lambda: ide.states().count('stopped') == 5, 'each worker stands')
            ide.ask('-exec-continue --all')
            eventually(lambda: ide.count('reason="breakpoint-hit"') == 8, 'each worker stands again')
            eventually(lambda: ide.states().count('stopped') == 4, 'the others run')
            ide.ask('-exec-interrupt --all')
            eventually(lambda: ide.states() == ['stopped'] * n, 'all threads stand')
        ide.ask('-break-delete 1')
        ide.ask('-target-detach')
        ide.quit()
        stub.end().ok()
        check_untraced(process.pid)
        check_text_intact(process.pid)
    process.end(signal.SIGTERM).ok()
