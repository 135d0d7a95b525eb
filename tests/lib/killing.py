"""Recorders that are killed: at the end of the kill nothing may be wrong with the program, and everything must come
out again.

Two ways. At an instant of its own choosing, spread over a whole short recording; and at each of its system calls in
turn, where strace delivers the signal: the call is not made then. The second meets each step, however short.
"""
import os
import random
import re
import shutil
import signal
import time

import markers
import processes
import remains
from kymotest import KYMO, check, check_equal, kymo, program, report_json, run, start, start_record, target, target_path

ENTRIES = ['-p', 'selfcheck:work_*', '-p', 'libc:nanosleep a=%di', '-p', 'libc:write n=%dx']
# What a recorder may have in a process, by name.
PROBES = {
    'entries':
    ENTRIES,
    # Every instruction: jumps made of other instructions' bytes, instructions that make room for others.
    'puns': [
        '-p', 'selfcheck:work_a:*', '-p', 'selfcheck:work_b:*', '-p', 'selfcheck:work_redzone:*', '-p',
        'libc:nanosleep:*'
    ],
    # Of `marked`; those among probes have jumps all around that rely on each other.
    'markers': ['-m', 'marked:*', '-p', 'libc:nanosleep'], 'markers among probes':
    ['-m', 'marked:*t*', '-p', 'marked:mark_*:*', '-p', 'marked:do_round:*'],
    # Of `packed`; another instruction makes room for each.
    'evicted': ['-p', 'packed:add_*'], 'returns': [
        '-p', 'selfcheck:work_*', '-r', 'selfcheck:work_a $retval', '-r', 'selfcheck:work_deep', '-r',
        'libc:write n=$retval'
    ],
}
PATIENCE_S = 600  # a recorder with sanitizers under strace, on a busy machine
CALLS = 'ptrace,pwrite64,pwritev,pidfd_open,pidfd_getfd,ftruncate,fallocate,mmap,mremap,munmap,mkdir,renameat,rename'

# Leaks cannot be looked for under strace, and not in a process that is killed while it looks.
NO_LEAKS = {'ASAN_OPTIONS': os.environ.get('ASAN_OPTIONS', '') + ':detect_leaks=0'}


class Victim:
    """A program that checks itself, and recorders of it that die. With `companion`, another recorder is there all the
    time, on the same places, and nothing may happen to it."""
    def __init__(self, directory, threads=16, args=(), probes='entries', companion=False, name='selfcheck'):
        self.directory, self.probes, self.name = directory, PROBES[probes], name
        self.kills = self.left = 0
        self.begin(threads, args)
        if companion:
            self.companion = start_record(self.pid, '-q', '-o', self.directory / 'companion', '--overwrite',
                                          *self.probes, env=NO_LEAKS)

    def begin(self, threads, args):
        self.program = target(self.name, '-t', threads, *args)
        self.pid = self.program.pid
        time.sleep(0.3)  # its threads have all been through everything once: what they map lazily is there
        self.before = remains.lasting_mappings(self.pid)
        self.companion = None

    def recorder(self, seconds):
        return [
            KYMO, 'record', '-q', '-o',
            str(self.directory / 'killed'), '--buffer', '1M', *self.probes, '--for',
            str(seconds), '--pid',
            str(self.pid)
        ]

    def calls(self, seconds=0.05):
        """How many of CALLS a recording makes that is not killed."""
        trace = self.directory / 'calls'
        run(program('strace'), '-qq', '-o', trace, '-e', f'trace={CALLS}', '-e', 'signal=none', *self.recorder(seconds),
            env=NO_LEAKS, seconds=PATIENCE_S).ok()
        self.check_clean()
        return [re.match(r'\w+', line)[0] for line in trace.read_text().splitlines() if re.match(r'\w+\(', line)]

    def kill_after(self, delay, seconds=0.05):
        process = start(*self.recorder(seconds), env=NO_LEAKS)
        time.sleep(delay)
        process.signal(signal.SIGKILL)
        process.end()
        self.after_kill(f'{delay:.4f} s after its start')

    def kill_while_recording(self):
        """When all probes are in. What it leaves is there afterwards."""
        process = start_record(self.pid, '-q', '-o', self.directory / 'killed', '--buffer', '1M', *self.probes, '--for',
                               '600', env=NO_LEAKS)
        process.signal(signal.SIGKILL)
        process.end()
        check(remains.are_there(self.pid), 'the killed recorder left something')

    def strace(self, call, number, command):
        """Run `command` to its `number`th call, from 1, of `call`: it is killed there."""
        result = run(program('strace'), '-qq', '-o', '/dev/null', '-e', f'trace={call}', '-e', 'signal=none', '-e',
                     f'inject={call}:signal=KILL:when={number}', *command, env=NO_LEAKS, seconds=PATIENCE_S)
        check(result.status in (0, -signal.SIGKILL, 128 + signal.SIGKILL), 'ended well, or was killed', result)
        return result.status != 0

    def kill_detach_at(self, call, number):
        """Two in a row: a recorder in the middle of its work, and then the process that cleans up after it."""
        self.kill_while_recording()
        killed = self.strace(call, number, [KYMO, 'detach', '-q', str(self.pid)])
        self.after_kill(f'while it detached, at {call} number {number}', killed)

    def kill_at(self, call, number, seconds=0.05):
        """Before the `number`th, from 1, of its calls of `call`. A recording that makes fewer this time ends well."""
        self.after_kill(f'at {call} number {number}', self.strace(call, number, self.recorder(seconds)))

    def after_kill(self, where, killed=True):
        self.kills += killed
        try:
            self.program.is_alive() or check(False, 'the program runs on', self.program.result())
            remains.check_running(self.pid)
            self.left += remains.are_there(self.pid)
            if not self.companion and random.random() < 0.5:
                self.detach()
            else:  # the next recording takes out what the one before has left
                shutil.rmtree(self.directory / 'killed', ignore_errors=True)
                run(*self.recorder(0.001)).ok()
            self.check_clean()
        except Exception as error:
            error.args = (f'killed {where} (kill {self.kills}): {error.args[0] if error.args else ""}', *error.args[1:])
            raise

    def detach(self):
        there = remains.are_there(self.pid)
        result = kymo('detach', self.pid)
        if result.status:  # a thread that was borrowed may have made its last system call since the look above
            result.refused('has no kymo probes')
            check(not remains.are_there(self.pid), 'nothing is there', result)
        elif not there:
            check(': 0 sites restored' in result.out, 'nothing was in the text', result)

    def check_markers(self):
        """They are on as long as a party wants them."""
        path, wanted = target_path(self.name), int(self.companion is not None)
        check_equal(set(markers.gates(self.pid, path)), {(0, 0, wanted)}, 'gates')
        check_equal({text == markers.NOP for text in markers.texts(self.pid, path)}, {not wanted},
                    'sites that are NOPs')

    def check_clean(self):
        if self.name == 'marked':
            self.check_markers()
        if self.companion:
            check(self.companion.is_alive(), 'the other recorder goes on', self.companion.result())
            return
        remains.check_nothing_left(self.pid, self.before, remains.lasting_mappings)

    def end(self):
        """It says itself that all was right; all of its threads must still be able to end."""
        if self.companion:
            self.companion.end(signal.SIGTERM).ok()
            check(report_json(self.directory / 'companion')['events'] > 0, 'the other recorder has recorded')
            self.companion = None
            self.check_clean()
        said = self.program.end(signal.SIGTERM).ok().json()
        check(min(n for kind, n in said.items() if kind != 'children') > 0, 'it did all kinds of work', said)
        check(self.left > 0, 'some kills came when something of kymo was in the process')


def duration(victim, seconds=0.05):
    """How long a recording takes from its start to its end."""
    begin = time.monotonic()
    run(*victim.recorder(seconds)).ok()
    return time.monotonic() - begin


def spread(calls, n):
    """`n` pairs (call, number), or all if there are fewer, evenly over everything that a recording does."""
    numbered, seen = [], {}
    for call in calls:
        seen[call] = seen.get(call, 0) + 1
        numbered.append((call, seen[call]))
    return numbered if n >= len(numbered) else [numbered[i * len(numbered) // n] for i in range(n)]


def kill_often(victim, n, at_calls):
    """`n` kills in all, a share of them at calls and the others at random instants."""
    points = spread(victim.calls(), int(n * at_calls))
    for call, number in points:
        victim.kill_at(call, number)
    whole = duration(victim)
    while victim.kills < n:
        victim.kill_after(random.random() * whole)
    check_equal(processes.tracer(victim.pid), 0, 'tracer')
    victim.end()
