"""Case `start`: time until a small program has run and is recorded.

And what one more program costs in a tree that is followed, and how long a library takes to load."""
import os
import shutil
import signal
import time

from . import procs
from .results import Figure, Goal, Row

N_PROGRAMS = 100
SCRIPT = f"i=0; while [ $i -lt {N_PROGRAMS} ]; do /bin/true; i=$((i+1)); done"
GOAL_WARM_MS, GOAL_COLD_MS = 10, 40
LIBRARY, GOAL_LIBRARY_MS = "libz.so.1", 2
IN_LIBRARY = "kymo record -p, in it"
GOAL_EACH_MS = {"-p": 1.5, "-s": 2, "syscalls -f": 1.1}


class Starter:
    """A tracer and its command line; `DIR` in it is a directory that is there for the call alone."""
    def __init__(self, name, *argv, env=None, missing=None):
        self.name, self.argv, self.env, self.missing = name, argv, env, missing

    def run(self, command, bench, stdout=procs.subprocess.DEVNULL):
        """How many milliseconds it takes, and what it writes."""
        with procs.temporary_directory(bench.output_dir, "start") as directory:
            argv = [word.replace("DIR", directory) for word in self.argv] + command
            env = {**os.environ, **{key: value.replace("DIR", directory) for key, value in (self.env or {}).items()}}
            told = os.path.join(directory, "took")
            process = procs.spawn([bench.builder.took, told, *argv], signal.SIGKILL, stdin=procs.subprocess.DEVNULL,
                                  stdout=stdout, stderr=procs.subprocess.DEVNULL, env=env)
            try:
                output = process.stdout.read() if process.stdout else b""
                status = procs.wait_to_the_moment(process, 120)
            finally:
                procs.end(process)
            if status:
                raise procs.BenchError(f"{' '.join(argv[:4])} ended with status {status}")
            with open(told, encoding="ascii") as file:
                return float(file.read()), output

    def milliseconds(self, command, bench):
        return self.run(command, bench)[0]

    def told_ms(self, command, bench):
        """What the command says of itself."""
        return float(self.run(command, bench, procs.subprocess.PIPE)[1])


def tracers_of(bench):
    warm = {"KYMO_CACHE": os.path.join(bench.output_dir, "cache")}
    os.makedirs(warm["KYMO_CACHE"], mode=0o700, exist_ok=True)
    record = (bench.kymo, "record", "-o", "DIR/trace")
    everything = [
        Starter("none"),
        Starter("kymo record -p", *record, "-p", "libc:malloc", "--", env=warm),
        Starter("kymo record -p, cold", *record, "-p", "libc:malloc", "--", env={"KYMO_CACHE": "DIR/cache"}),
        Starter("kymo record -s", *record, "-s", "%file", "--", env=warm),
        Starter("kymo syscalls -f", bench.kymo, "syscalls", "-f", "-o", "DIR/lines", "--", env=warm),
        Starter("strace -f", "strace", "-f", "-o", "DIR/lines"),
        Starter(IN_LIBRARY, *record, "--late", "-p", "libz:crc32", "--", env=warm),
        Starter("uftrace", "uftrace", "record", "--force", "-d", "DIR/trace"),
        Starter("perf trace", "perf", "trace", "-o", "DIR/lines"),
    ]
    there = []
    for tracer in everything:
        program = tracer.argv[0] if tracer.argv else None
        if program == bench.kymo and bench.kymo_missing:
            bench.unavailable("start", tracer.name, bench.kymo_missing)
        elif program and not shutil.which(program):
            bench.unavailable("start", tracer.name, f"no {program}")
        else:
            there.append(tracer)
    return bench.select(there)


def run(bench):
    one, many, late = {}, {}, {}
    program = bench.builder.late()

    def trial(tracer):
        if not tracer.name.endswith("cold"):
            late.setdefault(tracer.name, []).append(tracer.told_ms([program, LIBRARY], bench))
        if tracer.name == IN_LIBRARY:
            return
        one.setdefault(tracer.name, []).append(tracer.milliseconds(["/bin/ls"], bench))
        if not tracer.name.endswith("cold"):
            many.setdefault(tracer.name, []).append(tracer.milliseconds(["/bin/sh", "-c", SCRIPT], bench))

    tracers = tracers_of(bench)
    for tracer in tracers:
        if tracer.env and "DIR" not in tracer.env["KYMO_CACHE"]:
            for command in ["/bin/ls"], [program, LIBRARY]:
                tracer.milliseconds(command, bench)  # what is kept is there
    bench.round_robin("start", tracers, trial)
    bench.raw["start"] = {"ls": one, "programs": many, "library": late}
    shutil.rmtree(os.path.join(bench.output_dir, "cache"), ignore_errors=True)
    return (rows_of("a program, ls", one, 1) +
            rows_of(f"one more program of {N_PROGRAMS}, above none", many, N_PROGRAMS) +
            rows_of(f"{LIBRARY}, loaded later", late, 1, {IN_LIBRARY: GOAL_LIBRARY_MS}))


def rows_of(what, trials, n, limits=None):
    rows = []
    own = trials.get("kymo record -p")
    bare = Figure(trials["none"], "ms").median if n > 1 and "none" in trials else 0
    figures = {name: Figure([(value - bare) / n for value in values], "ms") for name, values in trials.items()}
    for name, figure in figures.items():
        if n > 1 and name == "none":
            continue
        ratio = figure.median / figures["kymo record -p"].median if own else None
        rows.append(Row(what, name, figure, ratio, goals_of(name, figure, n, limits)))
    return rows


def goals_of(name, figure, n, limits):
    if limits is not None:
        limit = limits.get(name)
    elif n == 1:
        limit = {"kymo record -p": GOAL_WARM_MS, "kymo record -p, cold": GOAL_COLD_MS}.get(name)
    else:
        limit = next(
            (limit
             for words, limit in GOAL_EACH_MS.items() if name == f"kymo record {words}" or name == f"kymo {words}"),
            None)
    return [Goal(f"<= {limit} ms", figure.median, limit)] if limit else []
