"""gdb's `record btrace` through kymo: what is recorded is what gdb steps through; signals, system calls, children and
threads in it; and going backwards."""
import os
import random
import re
import shlex
import signal
import time
from pathlib import Path

from debugging import (SERVER, SETTINGS, Client, address_of, advances, build, by_stdio, end, listen, loop, packet,
                       threads_of)
from kymotest import (check, check_equal, check_matches, check_untraced, eventually, program, run, skip, start, timeout,
                      waits)

HERE = Path(__file__).parent
STEPS = HERE.parent / 'branches' / 'steps.c'
HISTORY = ['set record instruction-history-size 0', 'set record function-call-history-size 0',
           'set record btrace bts buffer-size unlimited']
WITH_NAME = re.compile(r'^\d+\s+0x([0-9a-f]+) <(\w+)\+\d+>:\t(\S+)', re.MULTILINE)
ADDRESS = re.compile(r'^\d+\s+(?:=> )?0x0*([0-9a-f]+)(?: <[^>]*>)?:', re.MULTILINE)
BLOCK = re.compile(r'<block begin="0x([0-9a-f]+)" end="0x([0-9a-f]+)"/>')


def addresses(out):
    return [int(text, 16) for text in ADDRESS.findall(out)]


# ---- beside gdb ----------------------------------------------------------------------------------


def steps_of_gdb(app, *commands, seconds=120):
    """What gdb by itself steps through, up to $last."""
    words = [word for command in commands for word in ('-ex', command)]
    out = run(program('gdb'), '-nx', '-batch', '-ex', 'set width 0', '-ex', 'set breakpoint pending on', *words, '-x',
              HERE / 'btrace_steps.py', '--args', *app, env={'DEBUGINFOD_URLS': ''}, seconds=seconds).out
    return [int(line.split()[1], 16) for line in out.splitlines() if line.startswith('STEP ')]


def recorded(app, *commands, seconds=120):
    words = [word for command in (*SETTINGS, *HISTORY, f'target remote | {SERVER} --once stdio {shlex.join(app)}',
                                  *commands, 'info record', 'record goto begin',
                                  'record instruction-history 1,10000000') for word in ('-ex', command)]
    out = run(program('gdb'), '-nx', '-batch', *words, app[0], env={'DEBUGINFOD_URLS': ''}, seconds=seconds).out
    check_matches(out, r'^Recorded \d+ instructions in \d+ functions \(0 gaps\)')
    return addresses(out)


@timeout(240)
def test_each_instruction_as_gdb_steps(tmp):
    run(program('gcc'), '-g', '-O1', '-nostdlib', '-static', '-no-pie', '-fno-stack-protector', '-fcf-protection=none',
        '-o', 'steps', STEPS).ok()
    text = run('objdump', '-d', './steps').ok().out
    last = [line.split(':')[0].strip() for line in text.splitlines() if 'syscall' in line][-1]
    expected = steps_of_gdb(['./steps'], 'starti', f'set $last = 0x{last}')
    check(len(expected) > 3000, 'gdb has stepped it', len(expected))
    found = recorded(['./steps'], f'break *0x{last}', 'record btrace bts', 'continue')
    check_equal(found[:20], expected[:20], 'the first instructions')
    check_equal(found, expected, 'all instructions')


@timeout(240)
def test_a_function_of_a_packaged_program_as_gdb_steps(tmp):
    """Without symbols but those that libraries need, and with Debian's own flags."""
    app = ['/usr/bin/python3', '-S', '-c', 'print(repr(1234567))']
    if not os.path.exists(app[0]):
        skip(f'needs {app[0]}')
    expected = steps_of_gdb(app, 'break PyObject_Repr', 'run', 'set $last = *(long *)$rsp')
    check(len(expected) > 30, 'gdb has stepped it', len(expected))
    found = recorded(app, 'break PyObject_Repr', 'continue', 'record btrace', 'break **(long *)$rsp', 'continue')
    check_equal(found, expected, 'all instructions')


# ---- what gdb makes of it ------------------------------------------------------------------------


def test_going_backwards(tmp):
    build(tmp)
    out = by_stdio('./app', 'break work', 'continue', 'record btrace', 'info record', 'next', 'next', 'finish',
                   'record function-call-history /i 1,1', 'record instruction-history', 'reverse-step', 'reverse-next',
                   'reverse-stepi', 'reverse-continue', 'record goto end', 'print $_exitcode', 'stepi', 'next',
                   'info record', 'record goto begin', 'step', 'continue', 'record stop', 'info record', 'delete',
                   'continue').ok().out
    check_matches(out, r'^Active record target: record-btrace\nRecording format: Branch Trace Store\.\n'
                       r'Buffer size: 64kB\.\nRecorded 0 instructions in 0 functions')
    check_matches(out, r'^1\twork\tinst 1,57$')
    check_matches(out, r'^\d+\t +0x[0-9a-f]+ <work\+\d+>:\tret$')
    check_matches(out, r'^work \(n=<unavailable>, point=<unavailable>\) at app\.c:24\n24\t}\n23\t')  # backwards
    check_matches(out, r'^Breakpoint 1, work \(n=<unavailable>')
    check_matches(out, r'^No more reverse-execution history\.\nmain \(argc=1')  # forwards again, from the beginning
    check_matches(out, r'^Process record is stopped and all execution logs are deleted\.\nNo record')
    check_matches(out, r'exited with code 05')


def test_a_handler_is_between_two_instructions(tmp):
    """The one that follows the call by which the signal is sent is executed once, after the handler."""
    build(tmp)
    out = by_stdio('./app signal', *HISTORY, 'handle SIGUSR1 nostop noprint pass', 'break raise', 'continue',
                   'record btrace', 'finish', 'info record', 'record instruction-history 1,100000', 'record stop',
                   'continue').ok()
    check_matches(out.err, r'^result 45 counter 1001$')
    lines = WITH_NAME.findall(out.out)
    handler = [i for i, line in enumerate(lines) if line[1] == 'on_signal']
    check(handler, 'the handler is there', out.out[-3000:])
    before, after = lines[handler[0] - 1], lines[handler[-1] + 1:]
    check_equal(before[2], 'syscall', 'what is before the handler')
    back = next(i for i, line in enumerate(after) if line[1] == before[1])
    check_equal((int(after[back][0], 16), after[back - 1][2]), (int(before[0], 16) + 2, 'syscall'), 'what is after it')
    check_equal([line[0] for line in lines].count(after[back][0]), 1, 'how often that is executed')


def test_a_signal_that_gdb_gives(tmp):
    build(tmp)
    out = by_stdio('./app signal', *HISTORY, 'break work', 'continue', 'record btrace', 'delete', 'continue',
                   'break on_signal', 'continue', 'backtrace', 'info record', 'reverse-stepi 4', 'record goto end',
                   'delete', 'continue').ok()
    check_matches(out.out, r'received signal SIGUSR1')
    check_matches(out.out, r'^Breakpoint 2, on_signal')
    check_matches(out.out, r'^0x[0-9a-f]+\s+.*kill')
    check_matches(out.err, r'^result 45 counter 1001$')


def test_inferior_calls_and_moved_threads(tmp):
    build(tmp)
    out = by_stdio('./app', 'break work', 'continue', 'record btrace', 'next', 'delete', 'print work(3, &here)', 'next',
                   'info record', 'set $pc = $pc', 'set $here = $pc', 'stepi', 'set $pc = $here', 'info record', 'next',
                   'info record', 'record function-call-history', 'record stop', 'continue').ok().out
    check_matches(out, r'^\$1 = 24$')
    check_equal(len(re.findall(r'^Recorded \d+ instructions in \d+ functions \(0 gaps\)', out, re.MULTILINE)), 3,
                'recordings without gaps')
    check_matches(out, r'exited with code 05')


def test_programs_are_the_same(tmp):
    """With threads, children and other programs; what they write, and how they end."""
    build(tmp)
    for mode in ('', 'signal', 'threads', 'fork', 'vfork', 'exec'):
        bare = run('./app', *mode.split())
        out = by_stdio(f'./app {mode}', 'handle SIGUSR1 nostop noprint pass', 'break main', 'continue', 'delete',
                       'record btrace', 'continue', seconds=200).ok()
        lines = [line for line in out.err.splitlines() if line.startswith(('result', 'child'))]
        check_equal(sorted(lines), sorted(bare.out.splitlines()), f'what it writes: {mode}')
        check_matches(out.out, r'exited with code 05', f'how it ends: {mode}')


def test_threads_that_come_are_traced_from_the_next_stop(tmp):
    build(tmp)
    out = by_stdio('./app threads', 'tbreak work if n == 4', 'record btrace', 'continue', 'info record', 'next',
                   'next', 'info record', 'thread apply all info record', 'continue', seconds=200).ok().out
    check_matches(out, r'^Recorded 0 instructions in 0 functions \(0 gaps\) for thread [2-4]')
    check_matches(out, r'^Recorded [1-9]\d* instructions in \d+ functions \(0 gaps\) for thread [2-4]')
    check_matches(out, r'^Recorded \d{3}\d* instructions in \d+ functions \(0 gaps\) for thread 1')
    check_matches(out, r'exited with code 05')


def test_another_program_is_traced_on(tmp):
    build(tmp)
    out = by_stdio('./app exec', 'break main', 'continue', 'record btrace', 'catch exec', 'continue', 'info record',
                   'stepi 5', 'info record', 'continue', 'next', 'info record', 'delete', 'continue').out
    check_matches(out, r'^Catchpoint 2 \(exec')
    check_matches(out, r'exited with code 05')


# ---- packets -------------------------------------------------------------------------------------


class Tracer(Client):
    """A client of ./app that runs; its third thread is the one that is traced."""
    def __init__(self, tmp, mode='workers', features='multiprocess+;swbreak+;fork-events+;exec-events+'):
        build(tmp)
        self.process = loop(tmp, mode)
        self.pid = self.process.pid
        self.server, port = listen('--attach', ':0', str(self.pid))
        super().__init__(port)
        self.features = self.ask(f'qSupported:{features}').split(';')
        self.tid = threads_of(self.pid)[1]
        self.counter = address_of(self.pid, 'counts') + 16

    def select(self, tid=None):
        check_equal(self.ask(f'Hgp{self.pid:x}.{tid or self.tid:x}'), 'OK', 'a thread')

    def pc(self):
        return int.from_bytes(bytes.fromhex(self.ask('p10')), 'little')

    def read(self, part):
        """Its blocks, as pairs; or the error."""
        text, offset = '', 0
        while True:
            reply = self.ask(f'qXfer:btrace:read:{part}:{offset:x},400')
            if reply[0] == 'E':
                return reply
            text += reply[1:]
            offset += len(reply) - 1
            if reply[0] == 'l':
                return [tuple(int(word, 16) for word in block) for block in BLOCK.findall(text)]

    def run_for(self, rounds):
        """Until the thread has made as many rounds of its loop."""
        before = self.word(self.counter)
        while self.word(self.counter) < before + rounds:
            self.send(packet('vCont;c'))
            time.sleep(0.1)
            self.interrupt()
        self.select()

    def leave(self):
        self.close()
        self.server.end().ok()
        advances(self.process)
        end(self.process)


def test_what_is_refused(tmp):
    client = Tracer(tmp)
    for name in ('Qbtrace:bts+', 'Qbtrace:off+', 'qXfer:btrace:read+', 'qXfer:btrace-conf:read+',
                 'Qbtrace-conf:bts:size+'):
        check(name in client.features, name, client.features)
    client.ask('?')
    client.select()
    check_equal(client.ask('Qbtrace:off')[:2], 'E.', 'off where it is not on')
    check_equal(client.read('all'), 'E01', 'nothing is read')
    for wrong in ('bts:size=', 'bts:size=0x', 'bts:size=10g', 'bts:size', 'pt:size=1000', ''):
        check_equal(client.ask(f'Qbtrace-conf:{wrong}')[:2], 'E.', f'a configuration: {wrong}')
    check_equal(client.ask('Qbtrace-conf:bts:size=0x1800'), 'OK', 'the size')
    for wrong in ('pt', 'bt', 'bts1', ''):
        check_equal(client.ask(f'Qbtrace:{wrong}')[:2], 'E.', f'a format: {wrong}')
    check_equal(client.ask('Qbtrace:bts'), 'OK', 'it begins')
    check_equal(client.ask('Qbtrace:bts')[:2], 'E.', 'it has begun')
    check_matches(client.ask('qXfer:btrace-conf:read::0,fff'), '<bts size="0x1800"/>', 'how it is traced')
    for wrong in ('qXfer:btrace:read::0,fff', 'qXfer:btrace:read:alll:0,fff', 'qXfer:btrace-conf:read:a:0,fff'):
        check_equal(client.ask(wrong)[0], 'E', wrong)
    client.select(client.pid)
    check_equal(client.read('all'), 'E01', 'of another thread')
    client.select()
    check_equal(client.ask('Qbtrace:off'), 'OK', 'it ends')
    check_equal(client.read('all'), 'E01', 'what is read then')
    for size, told in (('1', '0x1000'), ('ffffffff', '0x400000')):
        check_equal(client.ask(f'Qbtrace-conf:bts:size={size}'), 'OK', 'a size')
        check_equal(client.ask('Qbtrace:bts'), 'OK', 'it begins again')
        check_matches(client.ask('qXfer:btrace-conf:read::0,fff'), f'<bts size="{told}"/>', 'the limits of sizes')
        check_equal(client.ask('Qbtrace:off'), 'OK', 'it ends again')
    client.leave()


@timeout(180)
@waits
def test_parts_that_are_read(tmp):
    client = Tracer(tmp)
    client.ask('?')
    client.select()
    client.ask('Qbtrace-conf:bts:size=0x1800')  # 256 blocks
    client.ask('Qbtrace:bts')
    pc = client.pc()
    check_equal(client.read('all'), [(pc, pc)], 'nothing is executed yet')
    check_equal((client.read('new'), client.read('delta')), ([], [(0, pc)]), 'nothing is new')
    client.run_for(60)
    check_equal(client.read('delta'), 'E01', 'more was executed than the ring has')
    blocks = client.read('new')
    check_equal((len(blocks), blocks[0][1]), (257, client.pc()), 'as many as it has, up to where the thread stands')
    check(all(0 < first <= last for first, last in blocks), 'each begins before it ends', blocks)
    check_equal((client.read('new'), client.read('delta')), ([], [(0, blocks[0][1])]), 'nothing is new')
    for _ in range(30):
        client.ask(f'vCont;s:p{client.pid:x}.{client.tid:x}')
    steps = client.read('delta')
    check_equal((steps[-1][0], steps[0][1]), (0, client.pc()), 'from where the client knows, to where the thread stands')
    after = client.read('all')
    check_equal(after[:len(steps) - 1], steps[:-1], 'these are the newest ones')
    check_equal(after[len(steps) - 1], (blocks[0][0], steps[-1][1]), 'the one that went on')
    check_equal(after[len(steps):], blocks[1:len(after) - len(steps) + 1], 'older ones')
    client.ask(f'P10={(client.pc()).to_bytes(8, "little").hex()}')
    check_equal(client.read('new'), [], 'the thread was not moved')
    client.ask(f'P10={address_of(client.pid, "special").to_bytes(8, "little").hex()}')
    check_equal(client.read('delta'), 'E01', 'the thread was moved')
    check_equal(client.read('new')[0], (client.pc(), client.pc()), 'where it is now')
    client.ask(f'P10={after[0][1].to_bytes(8, "little").hex()}')
    client.leave()


def test_one_thread_of_several_in_non_stop(tmp):
    client = Tracer(tmp)
    client.ask('QNonStop:1')
    told = client.ask('?')
    while told != 'OK':
        told = client.ask('vStopped')
    check_equal(client.ask('vCont;c'), 'OK', 'all run')
    client.select()
    check_equal(client.ask('Qbtrace:bts'), 'OK', 'a thread that runs')
    word = client.word(client.counter)
    eventually(lambda: client.word(client.counter) > word + 5, 'it runs on')
    check_equal(client.ask(f'vCont;t:p{client.pid:x}.{client.tid:x}'), 'OK', 'a stop')
    client.stops()
    client.select()
    blocks = client.read('all')
    check(len(blocks) > 20 and blocks[0][1] == client.pc(), 'what it has executed', blocks)
    check_equal(client.ask('vCont;c'), 'OK', 'it goes on')
    check_equal(client.ask(f'D;{client.pid:x}'), 'OK', 'the stub lets go while it is stepped')
    client.leave()


def flags_app(tmp):
    """It pushes flags, looks at them, and pops them, for ever: a flag of the kernel's would end it."""
    (tmp / 'flags.c').write_text(r"""
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	puts("ready");
	fflush(stdout);
	for (long round = 0;; round++) {
		unsigned long flags, r11;
		__asm__ volatile("pushfq\n\tmov (%%rsp), %0\n\tpopfq\n\tpushfq\n\tpopfq\n\tnop" : "=r"(flags) : : "cc", "memory");
		__asm__ volatile("mov $39, %%eax\n\tsyscall\n\tmov %%r11, %0" : "=r"(r11) : : "rax", "rcx", "r11", "memory");
		if ((flags | r11) & 0x100)
			return 9;
		if (round % 100 == 0)
			usleep(1000);
	}
}
""")
    run(program('gcc'), '-g', '-O1', '-o', 'app', 'flags.c').ok()
    process = start('./app')
    process.wait_for('^ready')
    return process


@waits
def test_flags_do_not_show_steps(tmp):
    """However the trace ends: at a stop, by a client that goes, or by the end of the stub."""
    process = flags_app(tmp)
    for way in ('off', 'close', 'detach', 'end', 'step') * 3:
        server, port = listen('--attach', ':0', str(process.pid))
        client = Client(port)
        client.begin()
        check_equal(client.ask('Qbtrace:bts'), 'OK', 'it begins')
        client.send(packet('vCont;c'))
        time.sleep(random.uniform(0.02, 0.1))
        if way in ('off', 'detach', 'step'):
            client.interrupt()
        for _ in range(60 if way == 'step' else 0):
            check_equal(client.ask('vCont;s')[:3], 'T05', 'a step')
        if way in ('off', 'step'):
            check_equal(client.ask('Qbtrace:off'), 'OK', 'it ends')
        if way in ('off', 'step', 'detach'):
            check_equal(client.ask(f'D;{process.pid:x}'), 'OK', 'the stub lets go')
        if way == 'end':
            os.kill(server.pid, signal.SIGTERM)
        client.close()
        server.end()
        check_untraced(process.pid)
        advances(process)
    end(process)
