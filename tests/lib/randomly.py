"""Random instructions of code that a workload runs: with probes on them, one at a time and a thousand at a time, the
workload computes what it did.

    Lane(kind)          a process that does the same again and again, recorded with one probe after the other
    Workload(...)       a command that is run once for each thousand of probes
"""
import collections
import os
import random
import signal
import sys
import time
from pathlib import Path

import comparing
import places
import processes
import remains
from kernelcount import library
from kymotest import KYMO, check, check_equal, clean_up_after, run, start

PYTHON = '/usr/bin/python3'
WORKLOAD = Path(__file__).parent / 'workload.py'
FIXED = {**comparing.FIXED}
A_TURN = 20  # probes of one lane, before another's turn


def file_of(kind):
    """Which file a kind of workload is about."""
    if kind == 'python':
        return os.path.realpath(PYTHON)
    names = {
        'sqlite': 'libsqlite3.so.0', 'zstd': 'libzstd.so.1', 'lzma': 'liblzma.so.5', 'zlib': 'libz.so.1', 'libc':
        'libc.so.6'
    }
    process = start(PYTHON, WORKLOAD, kind, env=FIXED)
    process.wait_for(r'^\w{64}$')
    found = [
        mapping.path for mapping in processes.maps(process.pid)
        if Path(mapping.path).name.startswith(names[kind].split('.so')[0] +
                                              '.so') or Path(mapping.path).name.startswith(names[kind].split('.so')[0] +
                                                                                           '-')
    ]
    process.end(signal.SIGKILL)
    check(found, f'the workload {kind} loads {names[kind]}')
    return os.path.realpath(found[0])


class Tally:
    """What was done, and what was refused with which reason."""
    def __init__(self):
        self.done, self.hit, self.refusals = 0, 0, {}

    def tell(self):
        n = self.done + sum(map(len, self.refusals.values()))
        return f'{self.done} instructions probed, {self.hit} of them run; ' + places.tell(self.refusals, n)

    def check(self, share=0.99):
        n = self.done + sum(map(len, self.refusals.values()))
        check(self.done >= share * n - 3, f'at least {share:.0%} have a place', self.tell())


def run_places(path, command, **options):
    """Every instruction of every function of `path` that `command` runs."""
    with clean_up_after():
        functions = places.functions_run_by(path, command, **options)
    found = places.instructions_in(path, functions)
    check(len(found) > 500, f'{command} runs code of {path}', f'{len(functions)} functions, {len(found)} instructions')
    return [(path, offset) for offset in found]


# ---- one at a time -------------------------------------------------------------------------------


class Lane:
    """One process that works, and recorders that come and go."""
    def __init__(self, kind):
        self.kind, self.path = kind, file_of(kind)
        self.places = run_places(self.path, [PYTHON, WORKLOAD, kind, '2'])
        self.process = start(PYTHON, WORKLOAD, kind, env=FIXED)
        self.process.wait_for(r'^(\w{64}\n){3}')
        self.expected = self.process.out.splitlines()[0]
        self.before = remains.lasting_mappings(self.process.pid)
        self.read, self.spent, self.turns = 0, 0.0, 0
        self.process.signal(signal.SIGSTOP)

    def lines(self):
        """How many rounds it has done since the last time; all are right."""
        with open(f'/proc/self/fd/{self.process.files[0].fileno()}') as file:
            file.seek(self.read)
            text = file.read()
        whole = text[:text.rfind('\n') + 1]
        self.read += len(whole)
        wrong = [line for line in whole.splitlines() if line != self.expected]
        check(not wrong, f'{len(wrong)} rounds of {self.kind} went wrong: {wrong[:3]}')
        return whole.count('\n')

    def turn(self, tally, directory):
        """Some places. In between it is stopped, for whose turn it is."""
        begin = time.monotonic()
        self.process.signal(signal.SIGCONT)
        for _ in range(A_TURN):
            self.probe(random.choice(self.places), tally, directory)
        self.process.signal(signal.SIGSTOP)
        self.spent += time.monotonic() - begin
        self.turns += A_TURN

    def probe(self, place, tally, directory):
        """Record it for as long as a round takes, at least. Mostly by locks: sequences take guards, and those the
        decoding of all of libc."""
        path, offset = place
        way = ['--no-rseq'] if random.random() < 0.8 else []
        with clean_up_after():
            recorder = start(KYMO, 'record', '-q', '-o', directory, '--buffer', '256K', '-p', f'{path}:0x{offset:x}',
                             *way, '--pid', self.process.pid, '--for', '0.03')
            result = recorder.end(seconds=60)
        check(self.process.is_alive(), f'the workload goes on with a probe at 0x{offset:x}', self.process.result())
        self.lines()
        if result.status and 'no probe can be put' in result.err:
            refused, reason = places.refused_place(result, [place])
            tally.refusals.setdefault(reason, []).append(refused)
            return
        check(result.status == 0, f'a probe at 0x{offset:x} of {path} is recorded', result)
        tally.done += 1
        tally.hit += has_records(directory)
        self.check_page(path, offset)

    def check_page(self, path, offset):
        """The text around is what the file has."""
        low = max(0, (offset - 64) & ~0xfff)
        with open(path, 'rb') as file, open(f'/proc/{self.process.pid}/mem', 'rb', buffering=0) as memory:
            file.seek(low)
            expected = file.read(8192)
            for mapping in processes.maps(self.process.pid):
                if os.path.realpath(mapping.path) == path and 'x' in mapping.permissions and \
                        mapping.offset <= offset < mapping.offset + mapping.end - mapping.start:
                    begin = max(low, mapping.offset)
                    size = min(low + len(expected), mapping.offset + mapping.end - mapping.start) - begin
                    memory.seek(mapping.start + begin - mapping.offset)
                    check(
                        memory.read(size) == expected[begin - low:begin - low + size],
                        f'text around 0x{offset:x} is restored')
                    return
        check(False, f'{path} is mapped at 0x{offset:x}')

    def end(self):
        self.process.signal(signal.SIGCONT)
        remains.check_nothing_left(self.process.pid, self.before, remains.lasting_mappings)
        self.process.signal(signal.SIGTERM)
        result = self.process.end().ok()
        check_equal(set(result.out.splitlines()), {self.expected}, 'checksums')


def has_records(directory):
    """Whether the trace has any packet: streams are empty where nothing was recorded."""
    return any(file.stat().st_size for file in Path(directory).iterdir() if file.name not in ('metadata', 'index'))


def one_at_a_time(kinds, seconds, directory, at_least=0):
    """Until the time is over, and at least so many. Each kind gets as much time: large files take longer to be looked
    at."""
    lanes, tally, end = [Lane(kind) for kind in kinds], Tally(), time.monotonic() + seconds
    while time.monotonic() < end or tally.done < at_least:
        min(lanes, key=lambda lane: lane.spent).turn(tally, directory / 'one')
    print(', '.join(f'{lane.turns} of {lane.kind}' for lane in lanes))
    for lane in lanes:
        lane.end()
    print(tally.tell())
    tally.check()
    return tally


# ---- a thousand at a time ------------------------------------------------------------------------

Workload = collections.namedtuple('Workload', 'command path outputs env')


def prepare(tmp):
    """Commands that end, with what they are about."""
    found = [
        Workload([PYTHON, WORKLOAD, kind, '2'], file_of(kind), (), {})
        for kind in ('sqlite', 'zstd', 'lzma', 'zlib', 'python', 'libc')
    ]
    (tmp / 'text').write_bytes(b''.join(b'line %d of %d\n' % (i, i * i % 977) for i in range(900)))
    zstd, xz, git = comparing.installed('zstd'), comparing.installed('xz'), comparing.installed('git')
    found.append(
        Workload([zstd, '-q', '--single-thread', '-f', '-9', tmp / 'text', '-o', tmp / 'text.zst'], zstd,
                 (tmp / 'text.zst', ), {}))
    run(zstd, '-q', '-f', tmp / 'text', '-o', tmp / 'packed.zst').ok()
    found.append(
        Workload([zstd, '-q', '--single-thread', '-f', '-d', tmp / 'packed.zst', '-o', tmp / 'unpacked'], zstd,
                 (tmp / 'unpacked', ), {}))
    found.append(
        Workload([xz, '-T1', '-1', '-k', '-f', tmp / 'text'], library('liblzma.so.5', xz), (tmp / 'text.xz', ), {}))
    repository = make_repository(git, tmp / 'repository')
    environment = {'GIT_CONFIG_GLOBAL': '/dev/null', 'GIT_PAGER': 'cat'}
    found.append(Workload([git, '--no-pager', '-C', repository, 'log', '-p', '--stat'], git, (), environment))
    found.append(Workload([git, '-C', repository, 'fsck', '--no-progress', '--full'], git, (), environment))
    return found


def make_repository(git, directory):
    environment = {
        'GIT_CONFIG_GLOBAL': '/dev/null', 'GIT_AUTHOR_NAME': 'A', 'GIT_AUTHOR_EMAIL': 'a@b', 'GIT_COMMITTER_NAME': 'A',
        'GIT_COMMITTER_EMAIL': 'a@b', 'GIT_AUTHOR_DATE': '1700000000 +0000', 'GIT_COMMITTER_DATE': '1700000000 +0000'
    }
    run(git, 'init', '-q', directory, env=environment).ok()
    for i in range(6):
        for name in ('one.txt', 'two.txt'):
            (directory / name).write_text(''.join(f'{name} {k * (i + 1) % 17}\n' for k in range(60)))
        run(git, '-C', directory, 'add', '.', env=environment).ok()
        run(git, '-C', directory, 'commit', '-q', '-m', f'number {i}', env=environment).ok()
    return directory


def many_at_once(workloads, seconds, n=1000, n_counted=500, at_least=0, rounds=None):
    """Thousands after thousands, of one workload after the other."""
    tally, end, turn = Tally(), time.monotonic() + seconds, 0
    while time.monotonic() < end or tally.done < at_least or (rounds and turn < rounds):
        workload = workloads[turn % len(workloads)]
        turn += 1
        known = all_places(workload)
        wanted = random.sample(known, min(n, len(known)))
        with clean_up_after():
            refusals = {}
            counts = places.compare_places(workload.command, wanted, refusals, outputs=workload.outputs,
                                           env=workload.env, n_counted=n_counted)
        # of what was recorded: nothing is known of the others
        for reason, refused in refusals.items() if counts else ():
            tally.refusals.setdefault(reason, []).extend(refused)
        tally.done += len(counts)
        tally.hit += sum(count > 0 for count in counts.values())
        print(f'{Path(workload.path).name}: {len(counts)} probes, {sum(counts.values())} hits', file=sys.stderr,
              flush=True)
    print(tally.tell())
    tally.check()
    check(places.compared['equal'] >= places.compared['not'], 'most rounds are compared with the kernel',
          places.compared)
    return tally


_known = {}


def all_places(workload):
    key = tuple(map(str, workload.command))
    if key not in _known:
        _known[key] = run_places(workload.path, workload.command, env=workload.env)
    return _known[key]


__all__ = ['Lane', 'Workload', 'Tally', 'one_at_a_time', 'many_at_once', 'prepare', 'all_places']
