"""Clients of a hub - `kymo syscalls --pid` - on tests/targets/numbered, whose calls have numbers: none may be missing,
and which was the last is known."""
import os
import re
import signal

import processes
from kymotest import KYMO, check, check_equal, eventually, start

THREAD, BRIEF, CHILD, CHILD_CALLS = 10**9, 12 * 10**8, 15 * 10**8, 5

# with what is behind the number: a killed process may leave half a line
CALL = re.compile(r'^(\d+) +getpgid\((\d+)[) ]', re.MULTILINE)
FIRST, LAST = (BRIEF + 1, CHILD + 1), (BRIEF + CHILD_CALLS, CHILD + CHILD_CALLS)


def numbers_in(text):
    """[(thread, the numbers of its calls in order)]. Ids are given anew: behind the last call of a brief thread or a
    child, the first one belongs to another thread."""
    found, now = [], {}
    for tid, number in ((int(tid), int(number)) for tid, number in CALL.findall(text)):
        if tid not in now or number in FIRST and now[tid][-1] in LAST:
            now[tid] = []
            found.append((tid, now[tid]))
        now[tid].append(number)
    return found


class Client:
    """A `kymo syscalls --pid` of its own, from when it sees the process on."""
    def __init__(self, pid, path, *options, threads=3, waits=True):
        self.path, self.threads = path, threads
        self.front = start(KYMO, 'syscalls', '-f', '-e', 'getpgid', *options, '-o', path, '--pid', pid)
        if waits:
            self.until_it_sees()

    def until_it_sees(self):
        """Each thread that lasts has made more calls, and this one has seen them."""
        before = self.n_lines()
        eventually(lambda: self.n_threads(before) == self.threads or not self.front.is_alive(),
                   f'{self.front.command} sees calls', 90)
        check(self.front.is_alive(), 'it goes on', self.front.result())

    def n_lines(self):
        return self.path.read_bytes().count(b'\n') if self.path.exists() else 0

    def n_threads(self, before):
        text = '\n'.join(self.path.read_text().splitlines()[before:]) if self.path.exists() else ''
        return len({tid for tid, number in CALL.findall(text) if int(number) < BRIEF})

    def worker(self):
        """The process that does the work, or None."""
        found = [
            pid for pid in processes.children(self.front.pid)
            if processes.status(pid).get('Name', '').startswith('kymo')
        ]
        return found[0] if found else None

    def kill(self, *, worker=False):
        """SIGKILL to the front, and to the worker first or last."""
        pid = self.worker() if worker else None
        self.front.signal(signal.SIGKILL)
        if pid:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.front.end()

    def lines_of(self, tid):
        return [line for line in self.path.read_text().splitlines() if line.startswith(f'{tid} ') or f' {tid}' in line]

    def check_whole(self, last=None):
        """From the first call that it saw on, none is missing; with `last`, { thread: number }, to the very last ones.
        Brief threads and children are there to their ends."""
        found = numbers_in(self.path.read_text())
        for tid, numbers in found:
            check_equal(numbers, list(range(numbers[0], numbers[0] + len(numbers))),
                        f'calls of {tid} in {self.path.name}:\n' + '\n'.join(self.lines_of(tid)[:20]) + '\n')
            base = CHILD if numbers[0] > CHILD else BRIEF if numbers[0] > BRIEF else THREAD
            if last is not None and base != THREAD:
                check_equal(numbers[-1] - base, CHILD_CALLS, f'the last call of {tid}')
            if base == CHILD:
                check_equal(numbers[0] - base, 1, f'the first call of child {tid}')
        if last is not None:
            check_equal({tid: numbers[-1] - THREAD for tid, numbers in found if numbers[0] < BRIEF}, last,
                        f'last calls in {self.path.name}')


def hub_of(pid):
    """The process that traces, or 0."""
    tracer = processes.tracer(pid)
    return int(processes.status(tracer).get('Tgid', '0')) if tracer else 0


def workers_left():
    """Processes of kymo's below this one that are alive; orphans come to us."""
    found, todo = [], [os.getpid()]
    while todo:
        for pid in processes.children(todo.pop()):
            todo.append(pid)
            if processes.status(pid).get('Name', '').startswith('kymo') and processes.is_alive(pid):
                found.append(pid)
    return found


def end(process):
    """{ thread: its last number }, when the program has ended well."""
    return {int(tid): number for tid, number in process.end().ok().json().items()}
