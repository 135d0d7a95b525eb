"""Compiles the benchmark's programs into the build folder."""
import functools
import os
import shlex
import shutil
import sys

from . import procs
from .procs import BenchError

WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter"]
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-pthread", *WARNINGS]

# Loops of a few instructions differ by where they lie.
ALIGNED = ["-falign-loops=64"]
MARKER_LOOPS = ["markers/loops.c", "markers/portable.c", "markers/short_jump.c", "markers/semaphore.c", "harness.c"]


def find_marker_library(kymo):
    """The folder of libkymo-marker.so in the build that the program `kymo` is of."""
    for folder in ("lib", "lib/marker", "."):
        path = os.path.join(os.path.dirname(kymo), folder)
        if os.path.exists(os.path.join(path, "libkymo-marker.so")):
            return os.path.realpath(path)
    raise BenchError("libkymo-marker.so is not built")


class Builder:
    def __init__(self, source, output):
        self.source = source
        self.output = output
        # The path in the kernel's list of mappings, which is how probes name it.
        os.makedirs(output, exist_ok=True)
        self.output = os.path.realpath(output)
        self.compiler = shlex.split(os.environ.get("CC", "gcc"))
        if not shutil.which(self.compiler[0]):
            raise BenchError(f"no compiler {self.compiler[0]}")

    def _program(self, name, sources, flags=(), libraries=()):
        program = os.path.join(self.output, name)
        files = [os.path.join(self.source, file) for file in sources]
        procs.run([*self.compiler, *FLAGS, f"-I{self.source}", *flags, "-o", program, *files, *libraries], timeout=120)
        return program

    def target(self):
        return self._program("target", ["target.c", "harness.c"])

    def calls(self):
        return self._program("calls", ["calls.c"])

    @functools.cached_property
    def took(self):
        return self._program("took", ["took.c"])

    def paced(self):
        return self._program("paced", ["paced.c"])

    def late(self):
        return self._program("late", ["late.c"])

    def conditions(self):
        return self._program("conditions", ["conditions.c"])

    def branches(self):
        """The kernels as they are, and calling what records each block."""
        kernels = os.path.join(os.path.dirname(self.source), "tests", "targets", "kernels.c")
        object_file = os.path.join(self.output, "kernels_trace_pc.o")
        flags = [*FLAGS, *ALIGNED]
        procs.run([*self.compiler, *flags, "-fsanitize-coverage=trace-pc", "-c", "-o", object_file, kernels])
        return (self._program("branches", ["branches.c", kernels], ALIGNED),
                self._program("branches_trace_pc", ["branches.c", object_file], ["-DBENCH_TRACE_PC"]))

    def sites(self):
        return self._program("sites", ["sites.c", "harness.c"])

    def plain(self, name, flags):
        """target.c with its C function built with `flags`, the harness without."""
        object_file = os.path.join(self.output, "harness.o")
        procs.run([*self.compiler, *FLAGS, "-c", "-o", object_file, os.path.join(self.source, "harness.c")])
        program = os.path.join(self.output, name)
        # Linked with the flags too: -pg brings mcount.
        procs.run([
            *self.compiler, *FLAGS, "-DBENCH_PLAIN", *flags, f"-I{self.source}", "-o", program,
            os.path.join(self.source, "target.c"), object_file
        ])
        return program

    def lttng_target(self):
        return self._lttng("lttng_target")

    def _lttng(self, name, flags=()):
        try:
            return self._program(name, ["lttng_target.c", "harness.c"], flags, ["-llttng-ust", "-ldl"])
        except BenchError as error:
            raise BenchError(f"LTTng-UST's headers (Debian package liblttng-ust-dev)? {error}") from error

    def _markers(self, name, sources, flags=(), libraries=()):
        include = os.path.join(os.path.dirname(self.source), "include")
        try:
            return self._program(name, sources, [*ALIGNED, f"-I{include}", *flags], libraries)
        except BenchError as error:
            raise BenchError(f"<sys/sdt.h> (Debian package systemtap-sdt-dev)? {error}") from error

    def markers(self):
        return self._markers("markers", MARKER_LOOPS)

    def markers_off(self):
        """With loops that are only measured without a recorder."""
        return self._markers("markers_off", MARKER_LOOPS, ["-DBENCH_OFF"])

    def _linked(self, name, sources, kymo, flags=()):
        folder = find_marker_library(kymo)
        return self._markers(name, sources, flags, [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lkymo-marker", "-ldl"])

    def markers_library(self, kymo):
        """Linked to libkymo-marker, of the build that the program `kymo` is of."""
        return self._linked("markers_library", MARKER_LOOPS, kymo, ["-DBENCH_LIBRARY"])

    def toggle(self, kymo):
        return self._linked("toggle", ["markers/toggle.c"], kymo)

    def toggled(self):
        """The library of 1,001 markers."""
        return self._markers("libtoggled.so", ["markers/toggled.c"], ["-fPIC", "-shared"])

    def lttng_markers(self):
        return self._lttng("lttng_markers", ALIGNED)

    def attach_target(self):
        return self._program("attach_target", ["attach_target.c"], libraries=["-ldl"])

    def _generated(self, name, flags):
        """A library of gen_many.py's; kept from an earlier run, since it takes some ten seconds."""
        generator = os.path.join(self.source, "gen_many.py")
        library = os.path.join(self.output, f"lib{name}.so")
        code = os.path.join(self.output, f"{name}.c")
        if os.path.exists(library) and os.path.getmtime(library) > os.path.getmtime(generator):
            return library
        procs.run([sys.executable, generator, *flags, code])
        unfinished = f"{library}.new"
        procs.run([*self.compiler, "-std=gnu17", "-O1", "-g", "-fPIC", "-shared", "-o", unfinished, code], timeout=600)
        os.replace(unfinished, library)
        return library

    def many(self):
        """The library of 12,000 functions."""
        return self._generated("many", [])

    def puns(self):
        """The library of 10,000 functions whose first instruction takes a pun."""
        return self._generated("puns", ["--puns"])
