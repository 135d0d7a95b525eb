"""Compiles the benchmark's programs into the build folder."""
import os
import shlex
import shutil
import sys

from . import procs
from .procs import BenchError

WARNINGS = ["-Wall", "-Wextra", "-Wno-unused-parameter"]
FLAGS = ["-std=gnu17", "-D_GNU_SOURCE", "-O2", "-g", "-pthread", *WARNINGS]


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

    def plain(self, name, flags):
        """target.c with its C function built with `flags`, the harness without."""
        object_file = os.path.join(self.output, "harness.o")
        procs.run([*self.compiler, *FLAGS, "-c", "-o", object_file, os.path.join(self.source, "harness.c")])
        program = os.path.join(self.output, name)
        # Linked with the flags too: -pg brings mcount.
        procs.run([*self.compiler, *FLAGS, "-DBENCH_PLAIN", *flags, f"-I{self.source}", "-o", program,
                   os.path.join(self.source, "target.c"), object_file])
        return program

    def lttng_target(self):
        try:
            return self._program("lttng_target", ["lttng_target.c", "harness.c"], libraries=["-llttng-ust", "-ldl"])
        except BenchError as error:
            raise BenchError(f"LTTng-UST's headers (Debian package liblttng-ust-dev)? {error}") from error

    def attach_target(self):
        return self._program("attach_target", ["attach_target.c"], libraries=["-ldl"])

    def many(self):
        """The library of 12,000 functions; kept from an earlier run, since it takes some ten seconds."""
        generator = os.path.join(self.source, "gen_many.py")
        library = os.path.join(self.output, "libmany.so")
        code = os.path.join(self.output, "many.c")
        if os.path.exists(library) and os.path.getmtime(library) > os.path.getmtime(generator):
            return library
        procs.run([sys.executable, generator, code])
        unfinished = f"{library}.new"
        procs.run([*self.compiler, "-std=gnu17", "-O1", "-g", "-fPIC", "-shared", "-o", unfinished, code], timeout=600)
        os.replace(unfinished, library)
        return library
