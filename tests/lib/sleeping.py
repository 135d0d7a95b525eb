"""Threads that sleep in system calls while recorders of them are killed: no call ends before its time, and none fails.
"""
import errno
import random
import re
import shutil
import signal
import time

import processes
import remains
from killing import CALLS, NO_LEAKS
from kymotest import KYMO_PLAIN, check, check_equal, eventually, kymo, program, run, start, target

# Result and errno of the ways of the target `blocked` that the kernel itself restarts after a stop. The first ones are
# woken; the last
# ones have a limit, and sleep with a restart block.
WOKEN = {
    'read': (1, 0), 'poll': (1, 0), 'select': (1, 0), 'futex': (0, 0), 'accept': (0, 0), 'msg': (1, 0), 'wait': (0, 0),
    'select_timeout': (0, 0), 'until_timeout': (0, 0)
}
WITH_BLOCK = {'poll_timeout': (0, 0), 'futex_timeout': (-1, errno.ETIMEDOUT), 'nanosleep_timeout': (0, 0)}
SLACK_MS = 1500


class Sleepers:
    """Some `ways` that sleep for `limit_ms`, the last of them in the first thread, beside `busy` threads that never
    sleep."""
    def __init__(self, directory, ways, busy, limit_ms=6000):
        self.directory, self.ways, self.limit_ms = directory, ways, limit_ms
        self.expected = {way: {**WOKEN, **WITH_BLOCK}[way] for way in ways}
        self.begin = time.monotonic()
        self.beside = target('blocked', '-m', limit_ms, *WITH_BLOCK)
        self.process = target('blocked', '-m', limit_ms, '-b', busy, *ways)
        self.pid, self.kills, self.recorded_s = self.process.pid, 0, 0
        eventually(lambda: len(processes.threads(self.pid)) == len(ways) + busy, 'all threads are there')

    def recorder(self, seconds=0.02):
        return [
            KYMO_PLAIN, 'record', '-q', '-o',
            str(self.directory / 'killed'), '--buffer', '64K', '--no-rseq', '-p', 'libc:nanosleep', '-p', 'libc:malloc',
            '--for',
            str(seconds), '--pid',
            str(self.pid)
        ]

    def calls(self):
        """(call, which of them from 1) that a recorder makes, first those that run a thread for calls of its recorder
        or change its registers. None: a busy machine took so long that the program has ended."""
        trace = self.directory / 'calls'
        result = run(program('strace'), '-qq', '-o', trace, '-e', f'trace={CALLS}', '-e', 'signal=none',
                     *self.recorder(), env=NO_LEAKS)
        if not self.has_time():
            return None
        result.ok()
        seen, close, others = {}, [], []
        for line in trace.read_text().splitlines():
            call = re.match(r'(\w+)\(', line)
            if not call:
                continue
            seen[call[1]] = seen.get(call[1], 0) + 1
            borrows = re.match(r'ptrace\(PTRACE_(SYSCALL|SETREG|SETSIGMASK)', line)
            (close if borrows else others).append((call[1], seen[call[1]]))
        check(close, 'a recorder makes system calls in the name of a thread')
        return close, others

    def has_time(self):
        return (time.monotonic() - self.begin) * 1000 < self.limit_ms * 0.7

    def is_over(self):
        return (time.monotonic() - self.begin) * 1000 >= self.limit_ms

    def kill_at(self, call, number):
        begin = time.monotonic()
        result = run(program('strace'), '-qq', '-o', '/dev/null', '-e', f'trace={call}', '-e', 'signal=none', '-e',
                     f'inject={call}:signal=KILL:when={number}', *self.recorder(), env=NO_LEAKS)
        self.recorded_s += time.monotonic() - begin
        self.after(f'at {call} number {number}', result.status in (-signal.SIGKILL, 128 + signal.SIGKILL))

    def kill_after(self, delay):
        begin = time.monotonic()
        recorder = start(*self.recorder(), env=NO_LEAKS)
        time.sleep(delay)
        recorder.signal(signal.SIGKILL)
        recorder.end()
        self.recorded_s += time.monotonic() - begin
        self.after(f'{delay:.4f} s after its start', True)

    def after(self, where, was_killed):
        self.kills += was_killed
        shutil.rmtree(self.directory / 'killed', ignore_errors=True)
        if self.is_over():  # end() looks at how
            return
        check(self.process.is_alive(), f'the program runs on, its recorder killed {where}', self.process.result())
        remains.check_running(self.pid)

    def kill_for_a_while(self, most, close_share=0.7):
        """Until most of the time that they sleep is over. On a machine that is too busy for a recording or two in that
        time no recorder is killed."""
        found = self.calls()
        begin = time.monotonic()
        if found:
            result = run(*self.recorder())
            check(result.status == 0 or self.is_over(), 'a recording that nobody kills ends well', result)
        whole = time.monotonic() - begin
        while found and self.has_time() and self.kills < most:
            close, others = found
            if random.random() < close_share:
                self.kill_at(*random.choice(close))
            elif random.random() < 0.5:
                self.kill_at(*random.choice(others))
            else:
                self.kill_after(random.random() * whole)
        kymo('detach', '-q', self.pid)

    def end(self, may_begin_anew=False):
        """How many recorders were killed."""
        seconds = self.limit_ms / 1000 + 60
        late_ms = max(took_ms
                      for _, _, took_ms in self.beside.end(seconds=seconds).ok().json().values()) - self.limit_ms
        for way, (result, error, took_ms) in self.process.end(seconds=seconds).ok().json().items():
            check_equal((result, error), self.expected[way],
                        f'result and errno of {way} after {took_ms} ms and {self.kills} kills')
            latest = self.limit_ms + late_ms + SLACK_MS + (self.limit_ms if may_begin_anew else 0)
            if way == 'select_timeout':  # keeps the time that is left, not the end: what it was stopped comes on top
                latest += self.recorded_s * 1000
            check(self.limit_ms - 50 <= took_ms <= latest,
                  f'{way} took {took_ms} ms instead of {self.limit_ms}, and others {late_ms} ms more')
        return self.kills
