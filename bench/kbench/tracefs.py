"""Kernel uprobes through tracefs, in a trace instance of the benchmark's own."""
import contextlib
import os
import re
import time

from . import procs
from .procs import BenchError

ROOTS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")
PREFIX = "kymo_bench_"


def root():
    for path in ROOTS:
        if os.path.exists(f"{path}/uprobe_events"):
            return path
    return None


@contextlib.contextmanager
def mounted():
    """tracefs is mounted where it was not, for as long as this lasts; for bpftrace, too."""
    if root() or os.geteuid() or not os.path.isdir(ROOTS[0]):
        yield
        return
    if procs.run(["mount", "-t", "tracefs", "nodev", ROOTS[0]], check=False).returncode:
        yield
        return
    try:
        yield
    finally:
        procs.run(["umount", "-l", ROOTS[0]], check=False)


def missing():
    """Why there are no kernel uprobes here, or None."""
    path = root()
    if not path:
        return "no tracefs with uprobe_events at " + " or ".join(ROOTS)
    if not os.access(f"{path}/uprobe_events", os.W_OK):
        return f"{path}/uprobe_events cannot be written by this user"
    return None


def _write(path, text):
    """One write to a control file. To append matters: to truncate uprobe_events is to remove the probes of all
    tools."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            os.write(file, text.encode())
        finally:
            os.close(file)
    except OSError as error:
        raise BenchError(f"{path}: {error.strerror}") from error


def _remove(tracefs, group):
    """Take out whatever `group` has; a half-made one too."""
    instance = f"{tracefs}/instances/{group}"
    with contextlib.suppress(BenchError):
        _write(f"{instance}/events/{group}/enable", "0")
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(instance)
    with open(f"{tracefs}/uprobe_events", encoding="ascii", errors="replace") as file:
        names = list(dict.fromkeys(re.findall(rf"^[pr]:({group}/\S+)", file.read(), re.M)))
    # Whole lines, little enough for one write each: the kernel takes them in one by one.
    for at in range(0, len(names), 100):
        _write(f"{tracefs}/uprobe_events", "".join(f"-:{name}\n" for name in names[at:at + 100]))


def remove_leftovers():
    """Take out what benchmarks left that were killed: groups named after processes that are gone. Their number."""
    tracefs, removed = root(), 0
    if missing():
        return 0
    with open(f"{tracefs}/uprobe_events", encoding="ascii", errors="replace") as file:
        groups = set(re.findall(rf"^[pr]:({PREFIX}\d+)/", file.read(), re.M))
    groups |= {name for name in os.listdir(f"{tracefs}/instances") if re.fullmatch(rf"{PREFIX}\d+", name)}
    for group in groups:
        if not os.path.exists(f"/proc/{group[len(PREFIX):]}"):
            _remove(tracefs, group)
            removed += 1
    return removed


class Uprobes:
    """Probes (event's name, "PATH:0xOFFSET ARGS"), in an overwriting buffer. define() and enable() put them in.

    A name that begins with "return_" is a return probe's.

    Several may have one event, if their arguments are the same. The kernel waits for a grace period for each event that
    it disables, some 50 ms. So one event of many probes is gone long before many events. A context: leaving takes them
    out.
    """
    def __init__(self, definitions, buffer_kib):
        self._definitions = definitions
        self._buffer_kib = buffer_kib
        self._tracefs = root()
        self.group = f"{PREFIX}{os.getpid()}"
        self.instance = f"{self._tracefs}/instances/{self.group}"

    def __enter__(self):
        try:
            os.mkdir(self.instance)
            _write(f"{self.instance}/buffer_size_kb", str(self._buffer_kib))
            _write(f"{self.instance}/options/overwrite", "1")
        except OSError as error:
            self.close()
            raise BenchError(f"{self.instance}: {error.strerror}") from error
        except BaseException:
            self.close()
            raise
        return self

    def define(self):
        lines = [
            f"{'r' if name.startswith('return_') else 'p'}:{self.group}/{name} {definition}\n"
            for name, definition in self._definitions
        ]
        for at in range(0, len(lines), 20):
            _write(f"{self._tracefs}/uprobe_events", "".join(lines[at:at + 20]))

    def enable(self):
        _write(f"{self.instance}/events/{self.group}/enable", "1")

    def disable(self):
        """Take them out of the programs; seconds."""
        begin = time.monotonic()
        _write(f"{self.instance}/events/{self.group}/enable", "0")
        return time.monotonic() - begin

    def recorded(self):
        """Events written so far, those that newer ones have overwritten included."""
        total = 0
        for cpu in os.listdir(f"{self.instance}/per_cpu"):
            with open(f"{self.instance}/per_cpu/{cpu}/stats", encoding="ascii") as file:
                fields = dict(re.findall(r"^(entries|overrun): (\d+)", file.read(), re.M))
            total += sum(map(int, fields.values()))
        return total

    def close(self):
        _remove(self._tracefs, self.group)

    def __exit__(self, *exception):
        self.close()
