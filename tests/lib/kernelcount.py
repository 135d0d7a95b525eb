"""How often functions run, counted by the kernel's own uprobes: what kymo's counts are compared with.

Three ways, of which each proves the others. All define uprobe events in tracefs, named kymo_test_PID and removed at
the end of the test. PerfCounter lets perf count them, which puts breakpoints into the counted processes alone:
tests may run beside each other. SampleCounter does so too and takes a sample of each hit: for many sites, as the kernel
needs about 80 ms to remove one event, even one for hundreds of sites. TracefsCounter records each hit in a trace
instance, which puts breakpoints into every process that maps the file: tests that use it are @alone.
docs/internals/testing.md tells why not in another way.
"""
import collections
import contextlib
import ctypes
import errno
import itertools
import mmap
import os
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import kymotest
import processes

# ---- from names to file offsets ------------------------------------------------------------------


def readelf(*args):
    done = subprocess.run(['readelf', '-W', *args], capture_output=True, text=True, env={**os.environ, 'LC_ALL': 'C'})
    kymotest.check(done.returncode == 0, f'readelf {args}: {done.stderr}')
    return done.stdout


def function_offset(path, symbol):
    """Where in the file the function's first byte is. Of several versions the default one."""
    found = {}
    for line in readelf('--syms', '--dyn-syms', path).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] in ('FUNC', 'IFUNC') and fields[6] != 'UND':
            name, _, version = fields[7].partition('@')
            if name == symbol:
                kymotest.check(fields[3] == 'FUNC', f'{path}: {symbol} is an IFUNC; count one of its implementations')
                found.setdefault(int(fields[1], 16), version)
    default = [vaddr for vaddr, version in found.items() if not version or version.startswith('@')]
    kymotest.check(len(default) == 1, f'{path}: {symbol} names {len(default)} functions')
    for match in re.finditer(r'LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)', readelf('--segments', path)):
        offset, vaddr, size = (int(text, 16) for text in match.groups())
        if vaddr <= default[0] < vaddr + size:
            return default[0] - vaddr + offset
    kymotest.fail(f'{path}: {symbol} lies outside of what is loaded')


def library(name, of=sys.executable):
    """The file that program `of` loads for a library such as "libc.so.6"."""
    done = subprocess.run(['ldd', of], capture_output=True, text=True)
    match = re.search(rf'{re.escape(name)} => (\S+)', done.stdout)
    kymotest.check(match, f'{of} does not load {name}: {done.stdout}{done.stderr}')
    return os.path.realpath(match[1])


def resolve(sites):
    """{'malloc': (path, 'malloc' or offset)} with offsets for names."""
    return {
        name: (os.path.realpath(path), place if isinstance(place, int) else function_offset(path, place))
        for name, (path, place) in sites.items()
    }


# ---- events in tracefs ---------------------------------------------------------------------------

_tracefs = None


def tracefs():
    """Where tracefs is mounted; mounted for this test alone where it is not."""
    global _tracefs
    if _tracefs:
        return _tracefs
    _tracefs = Path('/sys/kernel/tracing')
    if not (_tracefs / 'dynamic_events').exists():
        _tracefs = Path(tempfile.mkdtemp(prefix='tracefs.', dir=Path(tempfile.gettempdir()).parent))
        kymotest.at_end(forget_tracefs)
        done = subprocess.run(['mount', '-t', 'tracefs', 'tracefs', str(_tracefs)], capture_output=True, text=True)
        if done.returncode:
            kymotest.skip(f'no tracefs: {done.stderr.strip()}')
    if not os.access(_tracefs / 'dynamic_events', os.W_OK):
        kymotest.skip('no permission to count with kernel uprobes')
    sweep()
    return _tracefs


def forget_tracefs():
    """Unmounted at the end of clean_up_after() too: the next caller gets one mounted again."""
    global _tracefs
    if os.path.ismount(_tracefs):
        subprocess.run(['umount', '-l', str(_tracefs)], check=True)
    os.rmdir(_tracefs)
    _tracefs = None


def append(path, text):
    """Python's own appending would seek, which files of tracefs refuse."""
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def sweep():
    """Remove what tests left that were killed: events and instances carry the pid of their maker."""
    for instance in (_tracefs / 'instances').glob('kymo_test_*'):
        if not processes.is_alive(int(instance.name.split('_')[2])):
            (instance / 'events/enable').write_text('0')
            instance.rmdir()
    lines = (_tracefs / 'dynamic_events').read_text().splitlines()
    stale = {
        match[1] for match in (re.match(r'p:(kymo_test_(\d+)_\d+/\S+)', line) for line in lines)
        if match and not processes.is_alive(int(match[2]))
    }
    for event in stale:
        with contextlib.suppress(FileNotFoundError):  # another test sweeps too
            append(_tracefs / 'dynamic_events', f'-:{event}\n')


_groups = itertools.count(1)


def define(sites):
    """Make an uprobe event of each site, in a new group; its name."""
    group = f'kymo_test_{os.getpid()}_{next(_groups)}'
    for name, (path, offset) in resolve(sites).items():
        append(tracefs() / 'dynamic_events', f'p:{group}/{name} {path}:0x{offset:x}\n')
        kymotest.at_end(append, tracefs() / 'dynamic_events', f'-:{group}/{name}\n')
    return group


def define_together(sites):
    """Make one uprobe event that all sites share, in a new group; its name. A hit tells by `site` which one it is, by
    number."""
    group = f'kymo_test_{os.getpid()}_{next(_groups)}'
    kymotest.at_end(append, tracefs() / 'dynamic_events', f'-:{group}/together\n')
    for number, (path, offset) in enumerate(resolve(sites).values()):
        append(tracefs() / 'dynamic_events', f'p:{group}/together {path}:0x{offset:x} site=\\{number}:u32\n')
    return group


# ---- counting with perf --------------------------------------------------------------------------

PERF_EVENT_OPEN = 298  # number of the system call on x86-64
PERF_TYPE_TRACEPOINT = 2
PERF_SAMPLE_RAW = 1 << 10
PERF_RECORD_LOST, PERF_RECORD_SAMPLE = 2, 9
PERF_EVENT_IOC_SET_OUTPUT = 0x2405
ATTR_SIZE = 112
DISABLED, INHERIT, ENABLE_ON_EXEC, INHERIT_THREAD = 1 << 0, 1 << 1, 1 << 12, 1 << 35
CLOEXEC = 8  # PERF_FLAG_FD_CLOEXEC

_libc = ctypes.CDLL(None, use_errno=True)


def perf_open(event, tid, flags, cpu=-1, sample=0):
    """A descriptor that counts the hits of one thread and, with INHERIT, of what it starts; with `sample`, each gives
    one."""
    attr = struct.pack('=IIQQQQQ', PERF_TYPE_TRACEPOINT, ATTR_SIZE, event, 1 if sample else 0, sample, 0, flags)
    fd = _libc.syscall(PERF_EVENT_OPEN, attr.ljust(ATTR_SIZE, b'\0'), tid, cpu, -1, ctypes.c_ulong(CLOEXEC))
    if fd < 0:
        error = ctypes.get_errno()
        if error in (errno.EPERM, errno.EACCES):
            kymotest.skip('no permission to count with perf events')
        raise OSError(error, f'perf_event_open of thread {tid}: {os.strerror(error)}')
    kymotest.at_end(os.close, fd)
    return fd


class PerfCounter:
    """Counts in process `pid` from now on: all of its threads, and those to come; with `children` also its descendants
    to come. With `at_exec`, from the moment that it executes another program."""
    def __init__(self, pid, sites, children=False, at_exec=False):
        group = define(sites)
        self.events = {name: int((tracefs() / 'events' / group / name / 'id').read_text()) for name in sites}
        self.fds = {name: [] for name in sites}
        self.flags = INHERIT | (0 if children else INHERIT_THREAD) | (DISABLED | ENABLE_ON_EXEC if at_exec else 0)
        with processes.stopped(pid):  # else a thread could be made by one that is not counted yet
            for tid in processes.threads(pid):
                self.add(tid)

    def add(self, tid):
        for name, event in self.events.items():
            self.fds[name].append(perf_open(event, tid, self.flags))

    def counts(self):
        return {name: sum(struct.unpack('Q', os.read(fd, 8))[0] for fd in fds) for name, fds in self.fds.items()}


class SampleCounter:
    """Counts as PerfCounter does, from a sample of each hit; a million of them fit. With `may_lose`, those that do not
    fit are just not counted: good for which sites are hit at all."""

    DATA_SIZE = 32 << 20  # of each CPU; the kernel wants a power of two

    def __init__(self, pid, sites, children=False, at_exec=False, may_lose=False):
        self.names, self.may_lose = list(sites), may_lose
        group = define_together(sites)
        event = int((tracefs() / 'events' / group / 'together/id').read_text())
        layout = (tracefs() / 'events' / group / 'together/format').read_text()
        # behind header and size of the data
        self.site_at = 12 + int(re.search(r'site;\s+offset:(\d+);\s+size:4;', layout)[1])
        flags = INHERIT | (0 if children else INHERIT_THREAD) | (DISABLED | ENABLE_ON_EXEC if at_exec else 0)
        self.buffers = []
        with processes.stopped(pid):
            for cpu in range(os.cpu_count()):
                fds = [perf_open(event, tid, flags, cpu, PERF_SAMPLE_RAW) for tid in processes.threads(pid)]
                self.buffers.append(mmap.mmap(fds[0], mmap.PAGESIZE + self.DATA_SIZE))
                kymotest.at_end(self.buffers[-1].close)
                for fd in fds[1:]:
                    kymotest.check(_libc.ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, fds[0]) == 0, 'PERF_EVENT_IOC_SET_OUTPUT')

    def counts(self):
        counts = collections.Counter(site for buffer in self.buffers for site in self.sites_in(buffer))
        return {name: counts[number] for number, name in enumerate(self.names)}

    def sites_in(self, buffer):
        head = struct.unpack_from('Q', buffer, 1024)[0]  # data_head of struct perf_event_mmap_page
        data, at = memoryview(buffer[mmap.PAGESIZE:mmap.PAGESIZE + head]), 0
        while at < head:
            kind, _, size = struct.unpack_from('IHH', data, at)
            kymotest.check(kind != PERF_RECORD_LOST or self.may_lose, 'the buffer for samples was too small')
            if kind == PERF_RECORD_SAMPLE:
                yield struct.unpack_from('I', data, at + self.site_at)[0]
            at += size


# ---- counting records of a trace instance --------------------------------------------------------

CLONE_THREAD = 0x10000


class TracefsCounter:
    """Counts as PerfCounter does, from a record of each hit, of each thread made and of each exec."""
    def __init__(self, pid, sites, children=False, at_exec=False):
        if os.readlink('/proc/self/ns/pid') != 'pid:[4026531836]':
            kymotest.skip('tracefs tells thread ids of the machine, and this is a container')
        self.pid, self.children, self.at_exec, self.names = pid, children, at_exec, list(sites)
        self.threads = set(processes.threads(pid))
        self.group = define(sites)
        self.instance = tracefs() / 'instances' / self.group
        self.instance.mkdir()
        kymotest.at_end(self.instance.rmdir)
        (self.instance / 'buffer_size_kb').write_text('32768')
        (self.instance / 'options/event-fork').write_text('1')
        (self.instance / 'set_event_pid').write_text(' '.join(map(str, sorted(self.threads))))
        for event in ('task/task_newtask', 'sched/sched_process_exec', self.group):
            enable = self.instance / 'events' / event / 'enable'
            enable.write_text('1')
            kymotest.at_end(enable.write_text, '0')

    def counts(self):
        """Hits of the process's threads, and with `children` of all that descend from them."""
        for stats in self.instance.glob('per_cpu/*/stats'):
            text = stats.read_text()
            kymotest.check('\noverrun: 0\n' in text and '\ndropped events: 0\n' in text,
                           'the trace buffer was too small', text)
        members = set(self.threads)
        counts, counting = dict.fromkeys(self.names, 0), not self.at_exec
        for line in (self.instance / 'trace').read_text().splitlines():
            match = re.match(r'.*?-(\d+)\s+\[\d+\] \S+\s+[\d.]+: (\S+): (.*)', line)
            if not match or int(match[1]) not in members:
                continue
            if match[2] == 'task_newtask':
                made, flags = re.match(r'pid=(\d+) .*clone_flags=(\w+)', match[3]).groups()
                if self.children or int(flags, 16) & CLONE_THREAD:
                    members.add(int(made))
            elif match[2] == 'sched_process_exec':
                counting = counting or int(match[1]) == self.pid
            elif counting:
                counts[match[2]] += 1
        return counts


# ---- system calls --------------------------------------------------------------------------------


def count_calls(pid, name, act):
    """How often threads of the process make the system call while act() runs. Unlike strace it traces nothing."""
    if os.readlink('/proc/self/ns/pid') != 'pid:[4026531836]':
        kymotest.skip('tracefs tells thread ids of the machine, and this is a container')
    instance = tracefs() / 'instances' / f'kymo_test_{os.getpid()}_{next(_groups)}'
    instance.mkdir()
    try:
        (instance / 'options/event-fork').write_text('1')
        (instance / 'set_event_pid').write_text(' '.join(map(str, processes.threads(pid))))
        enable = instance / f'events/syscalls/sys_enter_{name}/enable'
        enable.write_text('1')
        act()
        enable.write_text('0')
        return (instance / 'trace').read_text().count(f' sys_{name}(')
    finally:
        instance.rmdir()


# ---- whole commands ------------------------------------------------------------------------------

# Waits for the word to go on, so that its pid is known and counted before the command begins. Signals that Python
# ignores would
# stay ignored.
_LAUNCHER = '''
import os, signal, sys
os.read(int(sys.argv[1]), 1)
os.close(int(sys.argv[1]))
for number in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(number, signal.SIG_DFL)
os.execvp(sys.argv[2], sys.argv[2:])
'''


def count_command(command, sites, children=False, tracefs_records=False, many=False, may_lose=False, **options):
    """Run `command` and return (its Result, {name: hits}), from its exec to its end. Without `children` only the
    process itself counts, with all of its threads. `sites` is {name: (path, symbol or offset)}; `many`: by a
    SampleCounter."""
    here, there = os.pipe()
    process = kymotest.start(sys.executable, '-c', _LAUNCHER, here, *command, pass_fds=[here], **options)
    os.close(here)
    kind = TracefsCounter if tracefs_records else SampleCounter if many else PerfCounter
    counter = kind(process.pid, sites, children, at_exec=True, **({'may_lose': may_lose} if many else {}))
    os.write(there, b'x')
    os.close(there)
    result = process.end(seconds=900)
    result.command = kymotest.command_text(command)
    return result, counter.counts()
