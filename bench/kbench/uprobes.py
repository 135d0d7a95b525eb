"""Tracers that go through the kernel's uprobes: tracefs, and bpftrace."""
import contextlib
import shutil
import subprocess

from . import procs, tracefs
from .elf import Elf
from .loops import RING_MIB, Tracer
from .procs import BenchError


class Uprobes(Tracer):
    """Recorded into the ring buffers of tracefs. What comes from this gives the definitions."""

    events_a_call = 1
    _recorded = 0

    def definitions(self, elf):
        """[(name, "PATH:OFFSET ARGUMENTS")]"""
        raise NotImplementedError

    @contextlib.contextmanager
    def tracing(self, _target, _temporary):
        with tracefs.Uprobes(self.definitions(Elf(self.program)), RING_MIB * 1024) as uprobes:
            uprobes.define()
            uprobes.enable()
            yield
            uprobes.disable()
            self._recorded = uprobes.recorded()

    def finish(self, calls, _temporary, _words):
        return {"events": self._recorded, "lost": 0, "missing": self.events_a_call * calls - self._recorded}


class Bpftrace(Tracer):
    """Counts, and records nothing. What comes from this gives the script and where it will be seen."""
    def script(self):
        raise NotImplementedError

    def text(self, pid, elf):
        """The Text of all places that the script changes."""
        raise NotImplementedError

    @contextlib.contextmanager
    def tracing(self, target, _temporary):
        with self.text(target.pid, Elf(self.program)) as text:
            process = procs.spawn(["bpftrace", "-e", self.script()], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            try:
                placed = procs.wait_until(lambda: text.changed() == text.n_sites or process.poll() is not None, 30,
                                          0.02)
                if not placed or process.poll() is not None:
                    procs.end(process)
                    raise BenchError("bpftrace: " + procs.last_words(process.stdout.read(), process.returncode))
                yield
            finally:
                procs.end(process)
                process.stdout.close()


def add(bench, case, tracers, kernel, bpftrace):
    """Those of the two tracers that can run here; of the others, why not."""
    reason = tracefs.missing()
    if reason:
        bench.unavailable(case, kernel.name, reason)
    else:
        tracers.append(kernel)
    add_bpftrace(bench, case, tracers, bpftrace)


def add_bpftrace(bench, case, tracers, bpftrace):
    """It, if it can run here; else why not."""
    reason = tracefs.missing()
    if reason or not shutil.which("bpftrace"):
        bench.unavailable(case, bpftrace.name, reason or "bpftrace is not installed (optional)")
    else:
        tracers.append(bpftrace)
