"""kymo threads: what it tells of threads is what /proc tells, of crowds, of those that end meanwhile and of others'
too; and the terminal is as it was whatever ends the live table."""
import collections
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios

import processes
from kymotest import (KYMO, KYMO_PLAIN, NOBODY, at_end, check, check_equal, check_matches, check_same, eventually, kymo,
                      need_root, program, run_on_terminal, sleeper, start, start_record, target, target_path, timeout)

HEAD = r'^    TID  NAME +STATE +CPU  IN +TRACER +ENGINES$'


def look(pid):
    return json.loads(kymo('threads', '--json', pid).ok().out)


def table(pid, **options):
    """{tid: words of its line}; a line's last column may be two words."""
    lines = kymo('threads', pid, **options).ok().out.splitlines()
    at = next(number for number, line in enumerate(lines) if re.search(HEAD, line))
    return lines[:at], {int(line.split()[0]): line.split() for line in lines[at + 1:]}


# ---- what is told --------------------------------------------------------------------------------


def test_three_thousand_threads_are_told_each_with_where_it_sleeps():
    process = target('threads1000', '-t', 3000)

    # 4 work; of the others a quarter each sleeps so, and a quarter in nanosleep, which wakes up now and then.
    asleep = {'futex': 749, 'read': 749, 'poll': 749}

    def are_asleep():
        places = collections.Counter(thread['syscall'] for thread in look(process.pid)['threads'])
        return {name: places[name] for name in asleep} == asleep

    eventually(are_asleep, f'threads sleep in {asleep}')
    head, rows = table(process.pid)
    check_matches(head[0], rf'^{process.pid} threads1000: 3,001 threads: .*sleeping')
    check_same(sorted(rows), processes.threads(process.pid), 'thread ids')
    check_equal(sum(words[4] == 'futex' for words in rows.values()), 749, 'lines with futex')


def test_states_and_tracers_are_those_of_proc():
    process = sleeper()
    thread, = look(process.pid)['threads']
    check_equal((thread['tid'], thread['comm'], thread['syscall'], thread['tracer']),
                (process.pid, 'sleep', 'clock_nanosleep', None), 'a sleeper')
    process.signal(signal.SIGSTOP)
    eventually(lambda: look(process.pid)['threads'][0]['state'] == 'stopped', 'it is stopped')
    process.signal(signal.SIGCONT)
    strace = start(program('strace'), '-qq', '-p', process.pid)
    eventually(lambda: processes.tracer(process.pid) == strace.pid, 'strace is there')
    tracer = look(process.pid)['threads'][0]['tracer']
    check_equal(tracer, {'tid': strace.pid, 'pid': strace.pid, 'comm': 'strace'}, 'tracer')
    check_same(table(process.pid)[1][process.pid][-3:], ['strace', f'({strace.pid})', '?'], 'words')
    check_equal(look(process.pid)['threads'][0]['engines'], None, 'engines that strace does not tell')


def owners(thread):
    """{process that has an engine: its events}"""
    return {engine['owner']: set(engine['events']) for engine in thread['engines'] or []}


def tracing(pid, kymo=KYMO):
    """A kymo syscalls of process `pid`, and the id of its process that traces: a child of that which was started."""
    started = start(kymo, 'syscalls', '-e', 'none', '--pid', pid)
    return started, *eventually(lambda: processes.children(started.pid), 'it has begun')


def test_engines_are_those_of_everybody_who_traces():
    process = target('threads1000', '-t', 4)
    n = len(look(process.pid)['threads'])
    check_equal([thread['engines'] for thread in look(process.pid)['threads']], [[]] * n, 'engines before')
    tracers, pids = [], []
    for _ in range(2):
        tracer, pid = tracing(process.pid)
        tracers.append(tracer)
        pids.append(pid)
        eventually(
            lambda: all('syscall_entry' in owners(thread).get(pid, ()) for thread in look(process.pid)['threads']),
            'each thread has an engine, and its mask')
    for thread in look(process.pid)['threads']:
        check_equal(owners(thread).keys(), set(pids), 'owners')
        for events in owners(thread).values():
            check({'syscall_entry', 'syscall_exit', 'clone', 'reap'} <= events and 'quiesce' not in events,
                  f'events: {events}')
        check_equal([engine['wants'] for engine in thread['engines']], ['resume', 'resume'], 'wishes')
    for words in table(process.pid)[1].values():
        check_equal(sorted(word.partition(':')[0] for word in words[-2:]), sorted(map(str, pids)), 'words')
        check('calls' in words[-1] and 'signals' in words[-1], 'the mask is shown', words)
    tracers[1].end(signal.SIGINT).ok()
    eventually(lambda: all(owners(thread).keys() == {pids[0]} for thread in look(process.pid)['threads']),
               'the second one has gone')
    tracers[0].end(signal.SIGINT).ok()
    eventually(lambda: all(thread['engines'] == [] for thread in look(process.pid)['threads']), 'there are none')


@timeout(300)
def test_engines_of_two_thousand_threads_are_told():
    """More than a message holds."""
    process = target('threads1000', '-t', 2000)
    tracer, pid = tracing(process.pid, KYMO_PLAIN)
    eventually(lambda: sum(pid in owners(thread) for thread in look(process.pid)['threads']) == 2001,
               'each thread has an engine', 200)
    tracer.end(signal.SIGINT).ok()


def test_a_hub_that_does_not_answer_is_not_waited_for_long():
    process = sleeper()
    tracer, pid = tracing(process.pid)
    eventually(lambda: pid in owners(look(process.pid)['threads'][0]), 'the thread has an engine')
    with processes.stopped(pid):
        thread, = look(process.pid)['threads']
        check_equal((thread['engines'], thread['tracer']['pid']), (None, pid), 'engines and tracer')
    eventually(lambda: pid in owners(look(process.pid)['threads'][0]), 'it answers again')
    tracer.end(signal.SIGINT).ok()


def test_recordings_are_told(tmp):
    process = target('threads1000', '-t', 4)
    recorder = start_record(process.pid, '-p', f'{target_path("threads1000")}:work_a', '-o', tmp / 'some.data')
    recordings = eventually(lambda: look(process.pid)['recordings'], 'the recording is told')
    check_equal(recordings, [{'recorder': recorder.pid, 'directory': str(tmp / 'some.data'), 'sites': 1}], 'recordings')
    check_same(
        table(process.pid)[0][1:], [f"1 site of kymo's, recorded into {tmp}/some.data by process {recorder.pid}"],
        'lines above the table')
    recorder.end(signal.SIGINT).ok()
    check_equal(look(process.pid)['recordings'], [], 'recordings at the end')


def test_of_others_processes_is_told_what_everybody_may_know():
    need_root()
    process = sleeper()
    head, rows = table(process.pid, user=NOBODY)
    check_matches(head[1], '^only a user who may trace the process sees .*, and whether they are recorded$')
    check_equal(rows[process.pid][4], '?', 'where it sleeps')
    told = json.loads(kymo('threads', '--json', process.pid, user=NOBODY).ok().out)
    check_equal((told['recordings'], told['threads'][0]['may_look'], told['threads'][0]['syscall']),
                (None, False, None), 'JSON')


def test_names_cannot_speak_to_the_terminal():
    process = start('python3', '-c',
                    'open("/proc/self/comm", "w").write("a\\x1b[2J\\n)b"); print("ready", flush=True); input()')
    process.wait_for('ready')
    result = kymo('threads', process.pid).ok()
    check('\x1b' not in result.out, 'no escape', result)
    check_matches(result.out, r' a\?\[2J\?\)b ')
    check_equal(look(process.pid)['comm'], 'a\x1b[2J\n)b', 'name in JSON')


def test_a_process_that_ends_meanwhile_is_told_or_gone():
    process = target('threads1000', '-t', 500)
    process.signal(signal.SIGTERM)
    while True:
        result = kymo('threads', process.pid)
        if result.status or not processes.is_alive(process.pid):
            break
        check_matches(result.ok().out, HEAD)
    process.end().ok()
    kymo('threads', process.pid).refused(f'there is no process {process.pid}')


def test_wrong_words_are_refused():
    kymo('threads').refused('which process. give a PID', status=2)
    kymo('threads', 'x').refused("'x' is no process id", status=2)
    kymo('threads', 1, 2).refused("'2' is too much", status=2)


# ---- the live table ------------------------------------------------------------------------------


class Terminal:
    """A shell with a terminal of its own, where kymo threads runs as a user starts it."""

    SCRIPT = 'trap : INT; "$0" threads "$1"; echo "ended with $?"; read line'

    def __init__(self, pid, rows=30):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack('HHHH', rows, 100, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.shell = subprocess.Popen(['sh', '-c', self.SCRIPT, KYMO, str(pid)], stdin=self.slave, stdout=self.slave,
                                      stderr=self.slave, env={**os.environ, 'TERM':
                                                              'xterm'}, preexec_fn=self.take_terminal)
        at_end(self.end)
        self.text = ''

    @staticmethod
    def take_terminal():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    def end(self):
        self.shell.kill()
        self.shell.wait()
        os.close(self.master)
        os.close(self.slave)

    def read(self):
        while select.select([self.master], [], [], 0)[0]:
            self.text += os.read(self.master, 65536).decode(errors='replace')
        return self.text

    def wait_for(self, pattern):
        eventually(lambda: re.search(pattern, self.read()), f'the terminal shows /{pattern}/')

    def type(self, keys):
        os.write(self.master, keys.encode())

    def kymo_pid(self):
        child, = (pid for pid in processes.children(self.shell.pid))
        return child

    def check_given_back(self, status):
        """Keys and cursor are as before, and the old screen is there, before anything else is written."""
        self.wait_for(r'\x1b\[\?25h\x1b\[\?1049l')
        self.wait_for(rf'ended with {status}\b')
        eventually(lambda: termios.tcgetattr(self.slave) == self.before, 'the terminal is as it was')


def test_the_table_is_drawn_again_until_q():
    terminal = Terminal(sleeper().pid)
    terminal.wait_for(r'SHARE')  # is known from the second look on
    check(terminal.text.startswith('\x1b[?1049h\x1b[?25l\x1b[H'), 'the screen is taken', repr(terminal.text))
    check(terminal.text.count('\x1b[H') >= 2, 'it was drawn again', repr(terminal.text))
    terminal.type('xq')
    terminal.check_given_back(0)


def test_an_interrupt_gives_the_terminal_back():
    terminal = Terminal(sleeper().pid)
    terminal.wait_for('TRACER')
    terminal.type('\x03')
    terminal.check_given_back(0)


def test_any_signal_gives_the_terminal_back():
    process = sleeper()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGUSR1):
        terminal = Terminal(process.pid)
        terminal.wait_for('TRACER')
        os.kill(terminal.kymo_pid(), number)
        terminal.check_given_back(128 + number)


def test_the_end_of_the_process_gives_the_terminal_back():
    process = sleeper()
    terminal = Terminal(process.pid)
    terminal.wait_for('TRACER')
    process.kill()
    terminal.check_given_back(0)
    terminal.wait_for(f'kymo: process {process.pid} has ended')


def test_a_small_screen_has_what_fits():
    process = target('threads1000', '-t', 50)
    terminal = Terminal(process.pid, rows=9)
    terminal.wait_for('SHARE')
    terminal.type('q')
    terminal.check_given_back(0)
    frames = terminal.text.split('\x1b[?25h')[0].split('\x1b[H')[1:]
    for frame in frames:
        lines = frame.replace('\x1b[K', '').replace('\x1b[J', '').split('\r\n')
        check_equal(len(lines), 9, f'lines of {frame!r}')
        check(max(map(len, lines)) < 100, 'they fit', frame)
        check_equal(lines[-1], '… and 45 more', 'the last line')


def test_what_is_no_terminal_gets_plain_text_once():
    process = sleeper()
    result = run_on_terminal(KYMO, 'threads', process.pid, env={'TERM': 'dumb'})
    result.ok()
    for out in (result.out, kymo('threads', process.pid).ok().out):
        check_same(re.findall(r'[\x00-\x09\x0b-\x1f\x7f]', out), [], 'control codes')
        check_equal(len(out.splitlines()), 3, 'lines')
