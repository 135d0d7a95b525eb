"""What a program that starts has in it until its files are mapped: a jump in its dynamic linker, and a stub in the
zeros after the linker's text. It must be out by then, also when the recorder is killed, and the program must not
notice."""
import os
import random
import shutil
import signal
import time
from pathlib import Path

import processes
from killing import NO_LEAKS
from kernelcount import count_command, library
from kymotest import (KYMO, check, check_equal, check_same, check_text_intact, event_counts, eventually, kymo, program,
                      record, run, sampled, share, skip, start, target_path)

MAGIC = b'\xf0kymorun'
COMMAND = [target_path('callmany'), '1000']
OUTPUT = 'work_a 1000\n'
OPENAT = '257 '
CALLS_OF_CTOR, CALLS_OF_DTOR = 100, 10  # libctor's

# Executes the rest of its arguments with these signals blocked, or ignored, or both, and one of each pending.
WITH_SIGNALS = '''
import os, signal, sys
blocked, ignored = ([getattr(signal, name) for name in words.split(',') if name] for words in sys.argv[1:3])
for number in ignored:
    signal.signal(number, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
for number in blocked:
    os.kill(os.getpid(), number)
os.execvp(sys.argv[3], sys.argv[3:])
'''

# Ends with SIGSYS for a signal to itself.
FILTERED = '''
import ctypes, os, sys
class Filter(ctypes.Structure):
    _fields_ = [('code', ctypes.c_ushort), ('jt', ctypes.c_ubyte), ('jf', ctypes.c_ubyte), ('k', ctypes.c_uint)]
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.POINTER(Filter))]
filters = (Filter * 4)(Filter(0x20, 0, 0, 0), Filter(0x15, 0, 1, 234), Filter(0x06, 0, 0, 0x80000000),
                       Filter(0x06, 0, 0, 0x7fff0000))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(4, filters))) == 0
os.execvp(sys.argv[1], sys.argv[1:])
'''

AUDIT = '''
#include <link.h>
#include <stdlib.h>
unsigned int la_version(unsigned int version) { free(malloc(10)); return version; }
'''

EXEC_BY_A_THREAD = '''
#include <pthread.h>
#include <unistd.h>
static char **words;
static void *run(void *data) { execv(words[1], words + 1); return data; }
int main(int argc, char **argv)
{
    pthread_t thread;
    words = argv;
    pthread_create(&thread, NULL, run, NULL);
    for (;;)
        pause();
}
'''


def linker_text(pid):
    texts = [each for each in processes.maps(pid) if 'ld-linux' in each.path and 'x' in each.permissions]
    return texts[0] if texts else None


def needs_stub():
    """Skips where programs inherit what forbids a stub."""
    try:
        label = Path('/proc/self/attr/current').read_text()
    except OSError:
        label = ''
    if processes.status(os.getpid())['Seccomp'] != '0' or label.strip('\0\n') not in ('', 'unconfined'):
        skip('programs have a seccomp filter, or a security module confines them')


def has_stub(pid):
    text = linker_text(pid)
    with open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory:
        memory.seek(text.end - processes.PAGE)
        return MAGIC in memory.read(processes.PAGE)


def compiled(tmp, name, source, *options):
    (tmp / f'{name}.c').write_text(source)
    run(program('gcc'), '-O1', '-o', tmp / name, tmp / f'{name}.c', *options).ok()
    return tmp / name


def check_counts(command, **options):
    """As the kernel counts them, and the program says what it says alone."""
    libc = library('libc.so.6')
    names = ('malloc', 'free', '__libc_early_init', '__libc_start_main')
    expected = count_command(command, {name: (libc, name) for name in names})[1]
    result = record(*[word for name in names for word in ('-p', f'libc:{name}')], '--', *command, **options).ok()
    counts = event_counts()
    check_equal({name: counts[f'libc:{name}'] for name in names}, expected, f'counts\n{result}')
    return result


# ---- a recorder that is killed ---------------------------------------------------------------------------------------


class Orphan:
    """What a recorder has started that is killed at a system call of its own; it waits before it ends."""
    def __init__(self, tmp, call, number):
        self.what = f'killed at {call} {number}'
        self.output = tmp / 'output'
        reader, self.writer = os.pipe()
        shutil.rmtree(tmp / 'killed', ignore_errors=True)
        with open(self.output, 'w') as file:
            run(program('strace'), '-qq', '-o', '/dev/null', '-e', f'trace={call}', '-e', 'signal=none', '-e',
                f'inject={call}:signal=KILL:when={number}', KYMO, 'record', '-q', '-o', tmp / 'killed', '-p',
                'libc:malloc', '--', 'sh', '-c', f'exec {target_path("callmany")} -w 1000', env=NO_LEAKS, stdin=reader,
                stdout=file)
        os.close(reader)
        children = processes.children(os.getpid())
        self.pid = children[0] if children else None
        if self.pid:
            eventually(lambda: 'ready' in self.output.read_text() or not processes.is_alive(self.pid),
                       f'{self.pid} runs', 60)
            if not processes.is_alive(self.pid):
                check_equal(processes.status(self.pid)['Name'], 'kymo', f'the name of what has ended, {self.what}')
                os.waitpid(self.pid, 0)
                self.pid = None

    def end(self):
        if self.pid:
            os.write(self.writer, b'\n\n')
        os.close(self.writer)
        if self.pid:
            ended = os.waitpid(self.pid, 0)[1]
            check_equal(os.waitstatus_to_exitcode(ended), 0, f'status of the command, {self.what}')
            check_equal(self.output.read_text(), 'ready\n' + OUTPUT, f'output of the command, {self.what}')


def kill_at(tmp, call, number):
    """Whether a stub was left."""
    orphan = Orphan(tmp, call, number)
    left = orphan.pid is not None and has_stub(orphan.pid)
    if orphan.pid:
        result = kymo('detach', orphan.pid)
        check(result.status == 0 or 'has no kymo probes' in result.err, 'it is detached', result)
        check(not left or result.status == 0, 'the stub is something to be detached', result)
        check(not has_stub(orphan.pid), f'the stub is out of it, {orphan.what}')
        check_text_intact(orphan.pid)
    orphan.end()
    return left


@sampled
def test_a_recorder_that_is_killed_at_any_of_its_calls_leaves_what_detach_takes_out(tmp):
    needs_stub()
    points = [('pwrite64', n) for n in range(1, 40)] + [('ptrace', n) for n in range(10, 120, 2)]
    chosen = share(points, 8)
    was_left = [kill_at(tmp, *point) for point in chosen]
    others = (point for point in points if point not in chosen)
    check(any(was_left) or any(kill_at(tmp, *point) for point in others), 'some were killed when the stub was in')


@sampled
def test_a_program_whose_recorder_is_killed_at_any_instant_ends_as_it_would(tmp):
    for i in share(range(210), 5):
        shutil.rmtree(tmp / 'killed', ignore_errors=True)
        output = tmp / 'output'
        with open(output, 'w') as file:
            recorder = start(KYMO, 'record', '-q', '-o', tmp / 'killed', '-p', 'libc:malloc', '--', 'sh', '-c',
                             f'{COMMAND[0]} 1000; {COMMAND[0]} 1000; {COMMAND[0]} 1000; echo end', env=NO_LEAKS,
                             start_new_session=True)
            del file
        eventually(lambda: processes.children(recorder.pid) or not recorder.is_alive(), 'it has begun', 60)
        time.sleep(random.random() * 0.04)
        orphans = processes.children(recorder.pid)
        recorder.signal(signal.SIGKILL)
        result = recorder.end()
        for pid in orphans:
            while processes.is_alive(pid):
                try:
                    check_equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, 'status of the script')
                except ChildProcessError:
                    break
        check(recorder.out in ('', 3 * OUTPUT + 'end\n'), f'output of the script ({i})', result, recorder.out)


def test_another_recorder_takes_out_what_a_killed_one_has_left(tmp):
    needs_stub()
    for number in range(1, 40):
        orphan = Orphan(tmp, 'pwrite64', number)
        left = orphan.pid is not None and has_stub(orphan.pid)
        if left:
            result = kymo('record', '-p', 'libc:malloc', '--for', '0.1', '--pid', orphan.pid).ok()
            check(not has_stub(orphan.pid), 'the stub is out', result)
            check_text_intact(orphan.pid)
        orphan.end()
        if left:
            return
    check(False, 'a stub was left')


# ---- programs that it is not for -------------------------------------------------------------------------------------


def signals_of(blocked, ignored, recorded):
    shown = ['grep', '^S[ih][gd][PBIC]', '/proc/self/status']
    command = ['/usr/bin/python3', '-c', WITH_SIGNALS, blocked, ignored, *shown]
    return (record('-p', 'libc:malloc', '--', *command) if recorded else run(*command)).ok().out


def test_signals_that_are_blocked_ignored_or_waiting_stay_so():
    cases = [('', ''), ('SIGURG', ''), ('', 'SIGURG'), ('SIGURG,SIGWINCH', ''), ('SIGURG', 'SIGWINCH')]
    for blocked, ignored in cases:
        check_same(signals_of(blocked, ignored, True), signals_of(blocked, ignored, False), f'{blocked} {ignored}')
        check(event_counts()['libc:malloc'] > 100, 'calls are recorded')
        check_counts(['/usr/bin/python3', '-S', '-c', WITH_SIGNALS, blocked, ignored, *COMMAND])


def test_a_filter_that_kills_for_a_signal(tmp):
    result = record('-p', 'libc:malloc', '--', '/usr/bin/python3', '-c', FILTERED, *COMMAND).ok()
    check_equal(result.out, OUTPUT)


def test_an_auditor_of_the_linker_and_a_preloaded_library(tmp):
    auditor = compiled(tmp, 'auditor.so', AUDIT, '-shared', '-fPIC')
    script = f'LD_AUDIT={auditor} {target_path("callmany")} 1000; LD_PRELOAD={target_path("libctor.so")} ' \
             f'{target_path("callmany")} 1000'
    result = record('-p', 'libc:__libc_start_main', '-p', 'libctor:ctor_work', '--', 'sh', '-c', script).ok()
    check_equal(result.out, 2 * OUTPUT)
    counts = event_counts()
    check_equal(counts['libc:__libc_start_main'], 3, str(result))
    check(counts['libctor:ctor_work'] > 0, 'constructors of a preloaded library')


def test_programs_of_another_linker_and_of_none(tmp):
    (tmp / 'one.c').write_text('#include <stdio.h>\nint main(void) { puts("one"); return 0; }\n')
    for name, words in ('musl', ('musl-gcc', )), ('static', ('gcc', '-static')):
        run(program(words[0]), *words[1:], '-o', tmp / name, tmp / 'one.c').ok()
        result = record('-p', f'./{name}:main', '--', 'sh', '-c', f'./{name}; ./{name}', cwd=tmp).ok()
        check_equal(result.out, 'one\none\n')
        check_equal(event_counts(tmp / 'kymo.data')[f'{name}:main'], 2, str(result))


def test_a_thread_that_executes_a_program(tmp):
    thread = compiled(tmp, 'thread', EXEC_BY_A_THREAD, '-pthread')
    result = record('-p', 'callmany:work_a', '--', thread, *COMMAND).ok()
    check_equal(result.out, OUTPUT)
    check_equal(event_counts()['callmany:work_a'], 1000, str(result))


def test_a_linker_that_is_run_as_a_program():
    loader = os.path.realpath('/lib64/ld-linux-x86-64.so.2')
    result = record('-p', 'callmany:work_a', '--', 'sh', '-c', f'{loader} {COMMAND[0]} 1000').ok()
    check_equal(result.out, OUTPUT)


# ---- other tracers ---------------------------------------------------------------------------------------------------


def test_other_tracers_see_no_signal_and_no_call_of_it(tmp):
    """Those that trace the shell before it starts programs, and those that come at any time."""
    process = start('sh', '-c', f'read line; for i in $(seq 30); do {COMMAND[0]} 10; done')
    recorder = start(KYMO, 'record', '--follow', '-p', 'libc:malloc', '--pid', process.pid, '-o', tmp / 'data')
    eventually(lambda: processes.tracer(process.pid), 'it is followed', 60)
    tracer = start(KYMO, 'syscalls', '-f', '-o', tmp / 'calls', '--pid', process.pid)
    eventually(lambda: (tmp / 'calls').exists() or not tracer.is_alive(), 'it is traced', 60)
    time.sleep(0.3)
    check_equal(process.end(input='\n').status, 0)
    check_equal(tracer.end().status, 0, tracer.err)
    recorder.end()
    seen = (tmp / 'calls').read_text()
    check('execve(' in seen, 'programs are seen', seen[:2000])
    check('SIGURG' not in seen and 'tgkill(' not in seen, 'nothing of the stub is seen',
          [line for line in seen.splitlines() if 'SIGURG' in line or 'tgkill' in line][:3])


def test_nothing_is_left_in_a_program_that_has_started(tmp):
    for follow in ([], ['--no-follow']):
        recorder = start(KYMO, 'record', *follow, '-o', tmp / f'data{len(follow)}', '-p', 'callmany:work_a', '--',
                         target_path('callmany'), '-w', '1000')
        recorder.wait_for('ready')
        child = processes.children(recorder.pid)[0]
        check(Path(f'/proc/{child}').exists() and not has_stub(child), 'the stub is out')
        check_equal(recorder.end(input='\n\n').status, 0)


# ---- a program that waits while its files are mapped -----------------------------------------------------------------


class Waiting:
    """A recorded program whose dynamic linker waits in open(2), with the stub in, until it is let go."""
    def __init__(self, tmp, *command):
        self.fifo = tmp / 'fifo'
        self.fifo.unlink(missing_ok=True)
        os.mkfifo(self.fifo)
        self.data = tmp / 'waiting'
        shutil.rmtree(self.data, ignore_errors=True)
        preloaded = f'{self.fifo} {target_path("libctor.so")}'
        self.recorder = start(KYMO, 'record', '-o', self.data, '-p', 'libctor:ctor_work', '-p',
                              'ld-linux-x86-64:_dl_catch_exception', '--', 'env', f'LD_PRELOAD={preloaded}', *command)
        self.pid = None
        eventually(lambda: self.find() or not self.recorder.is_alive(), 'the linker waits for the file', 60)
        check(self.pid, 'the program waits', self.recorder.err)
        time.sleep(0.1)

    def find(self):
        for pid in processes.children(self.recorder.pid):
            if processes.status(pid)['Name'] != 'env' and self.is_waiting(pid):
                self.pid = pid
        return self.pid

    @staticmethod
    def is_waiting(pid):
        return Path(f'/proc/{pid}/syscall').read_text().startswith(OPENAT)

    def let_go(self):
        os.close(os.open(self.fifo, os.O_WRONLY))

    def check_recorded(self, output, n_calls):
        result = self.recorder.end().ok()
        check(output in result.out, 'what the program prints', result)
        counts = event_counts(self.data)
        check_equal(counts['libctor:ctor_work'], n_calls, f'calls of the library that is preloaded\n{result}')
        check(counts['ld-linux-x86-64:_dl_catch_exception'] > 2, 'calls of the linker', counts)


def test_a_program_without_a_place_for_debuggers_that_waits(tmp):
    libc = library('libc.so.6')
    check('(DEBUG)' not in run(program('readelf'), '-d', libc).ok().out, 'it has no DT_DEBUG')
    waiting = Waiting(tmp, libc)
    check(not has_stub(waiting.pid), 'it has no stub')
    waiting.let_go()
    waiting.check_recorded('GNU C Library', CALLS_OF_CTOR)


def test_a_program_that_waits_or_is_stopped(tmp):
    needs_stub()
    for is_stopped in (False, True):
        waiting = Waiting(tmp, *COMMAND)
        pid = waiting.pid
        check(has_stub(pid), 'the stub is in')
        if is_stopped:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.1)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.1)
        waiting.let_go()
        waiting.check_recorded(OUTPUT, CALLS_OF_CTOR + CALLS_OF_DTOR)


def test_a_recorder_that_is_interrupted_takes_the_stub_out(tmp):
    needs_stub()
    waiting = Waiting(tmp, *COMMAND)
    pid = waiting.pid
    check(has_stub(pid), 'the stub is in')
    waiting.recorder.signal(signal.SIGINT)
    eventually(lambda: not has_stub(pid), 'the stub is out', 60)
    check_text_intact(pid)
    waiting.let_go()
    waiting.recorder.end()  # the program runs on
    eventually(lambda: OUTPUT in waiting.recorder.out, 'the program prints what it does', 60)


def test_system_calls_of_the_kernel_have_none_of_the_stub(tmp):
    result = record('--backend', 'kernel', '-p', 'libc:__libc_start_main', '-s', 'tgkill,exit_group', '--',
                    *COMMAND).ok()
    check_equal(result.out, OUTPUT)
    counts = event_counts()
    check(not [name for name in counts if 'tgkill' in name], 'no call of the stub', counts)
    check([name for name in counts if 'exit_group' in name], 'calls are recorded', counts)
