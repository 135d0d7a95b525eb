"""What the kernel says about processes: families, maps, text."""
import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

PAGE = 4096
PR_SET_CHILD_SUBREAPER = 36
SYS_WRITE = '1'


def adopt_orphans():
    """From now on, descendants whose parents end become children of this process: they can be waited for and ended."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), 'prctl')


def children(pid):
    found = []
    try:
        tasks = list(Path(f'/proc/{pid}/task').glob('*/children'))
    except OSError:  # it has just ended
        tasks = []
    for task in tasks:
        try:
            found += [int(word) for word in task.read_text().split()]
        except OSError:
            pass
    return found


def threads(pid):
    return sorted(int(name) for name in os.listdir(f'/proc/{pid}/task'))


def status(pid):
    """/proc/PID/status as a dict of strings; {} when there is no such process."""
    try:
        lines = Path(f'/proc/{pid}/status').read_text().splitlines()
    except OSError:
        return {}
    return {key: value.strip() for key, _, value in (line.partition(':') for line in lines)}


def time_on_cpu(tid):
    """ns."""
    return int(Path(f'/proc/{tid}/schedstat').read_text().split()[0])


def voluntary_switches(tid):
    """How often it has waited for something."""
    return int(status(tid)['voluntary_ctxt_switches'])


def is_alive(pid):
    return status(pid).get('State', 'X')[0] not in 'XZ'


def call(tid):
    """The number of the system call that the thread sleeps in, or None."""
    try:
        word = Path(f'/proc/{tid}/syscall').read_text().split()[0]
    except OSError:
        return None
    return int(word) if word.isdigit() else None


def writes_to(tid):
    """The descriptor to which the thread sleeps in write(), or None."""
    try:
        words = Path(f'/proc/{tid}/syscall').read_text().split()
    except OSError:
        return None
    return int(words[1], 16) if words[0] == SYS_WRITE else None


@contextlib.contextmanager
def stopped(pid):
    """All threads of the process are stopped meanwhile (by SIGSTOP)."""
    os.kill(pid, signal.SIGSTOP)
    try:
        while not all(status(tid).get('State', 'T')[0] in 'TtXZ' for tid in threads(pid)):
            time.sleep(0.001)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def tracer(pid):
    """The tracer of the process, or 0."""
    return int(status(pid).get('TracerPid', '0'))


def reap():
    """Wait for every child that has ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def end_descendants(grace=10.0):
    """Give children `grace` seconds to end by themselves, then kill them, and those that come up from below in turn.
    Returns what was still alive."""
    deadline = time.monotonic() + grace
    reap()
    while any(is_alive(pid) for pid in children(os.getpid())) and time.monotonic() < deadline:
        time.sleep(0.02)
        reap()
    left = []
    while pids := children(os.getpid()):
        for pid in pids:
            if is_alive(pid):
                name = status(pid).get('Name', '?')
                left.append(f'{pid} {name}')
                os.kill(pid, signal.SIGKILL)
            try:
                os.waitpid(pid, 0)
            except ChildProcessError:
                pass
    return left


class Mapping:
    """One line of /proc/PID/maps."""
    def __init__(self, line):
        fields = line.split(maxsplit=5)
        self.line = line
        self.start, self.end = (int(part, 16) for part in fields[0].split('-'))
        self.permissions = fields[1]
        self.offset, self.inode = int(fields[2], 16), int(fields[4])
        self.path = fields[5] if len(fields) > 5 else ''


def maps(pid):
    return [Mapping(line) for line in Path(f'/proc/{pid}/maps').read_text().splitlines()]


def file_of_mapping(pid, mapping):
    """Path under which the mapped file itself can be opened, also when it was deleted or replaced."""
    exact = f'/proc/{pid}/map_files/{mapping.start:x}-{mapping.end:x}'
    return exact if os.access(exact, os.R_OK) else f'/proc/{pid}/root{mapping.path}'


def has_trace(pid):
    """Whether a recorder has made its directory, and described there what it records."""
    try:
        return any(os.path.exists(f'/proc/{pid}/fd/{fd}/metadata') for fd in os.listdir(f'/proc/{pid}/fd'))
    except FileNotFoundError:
        return False


def changed_text(pid):
    """Compare each executable mapping of a file, byte for byte, with that file. Returns a line for each run of bytes
    that differs. Files that live in memory only (memfds) are not looked at."""
    changes = []
    with open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory:
        for mapping in maps(pid):
            if 'x' not in mapping.permissions or mapping.inode == 0 or mapping.path.startswith('/memfd:'):
                continue
            with open(file_of_mapping(pid, mapping), 'rb') as file:
                file.seek(mapping.offset)
                expected = file.read(mapping.end - mapping.start)
            expected = expected.ljust(-(-len(expected) // PAGE) * PAGE, b'\0')
            actual = b''
            memory.seek(mapping.start)
            while len(actual) < len(expected) and (part := memory.read(len(expected) - len(actual))):
                actual += part
            changes += differences(mapping, expected, actual)
    return changes


def differences(mapping, expected, actual):
    if actual == expected:
        return []
    changes = []
    at = 0
    size = len(expected)
    while at < size:
        if expected[at:at + PAGE] == actual[at:at + PAGE]:
            at += PAGE - at % PAGE
            continue
        if expected[at:at + 1] == actual[at:at + 1]:
            at += 1
            continue
        end = at + 1
        while end < size and expected[end:end + 1] != actual[end:end + 1]:
            end += 1
        changes.append(f'{mapping.path}+0x{mapping.offset + at:x} (at 0x{mapping.start + at:x}): '
                       f'file {expected[at:end].hex(" ")}, memory {actual[at:end].hex(" ") or "nothing"}')
        at = end
    return changes
