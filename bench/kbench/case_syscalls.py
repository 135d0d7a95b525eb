"""Case `syscalls`: ns of a system call that is shown, of one that is not wanted, and a real load: sqlite3."""
import contextlib
import os
import re
import shutil
import time

from . import procs, tracefs
from .procs import BenchError
from .results import Figure, Goal, Row

CALLS = ("getppid", "read", "write")
THREADS = (1, 3000)
OTHER = "openat"  # a set in which none of the calls is that are timed
WARM_UP = 100  # in calls.c, beside those that are timed
FAST = 200_000  # calls a trial, of what takes well below a microsecond
SLOW = 5_000
WITH_STACKS = 1_000
INSERTS = 2_000
MOST_OF_STRACE = 1.0
MOST_MORE = {"kymo record -s": 60, "kymo syscalls, BPF": 250}  # ns above a bare call
MOST_OF_ONE_THREAD = 1.2


class Tracer:
    """Shows calls of the command that is put behind `words`; in a file, if `file` says how that is said."""
    def __init__(self, name, words, n_calls=SLOW, file=None, missing=None, counts=None):
        self.name, self.words, self.n_calls, self.file = name, list(words), n_calls, file
        self._missing, self._counts = missing, counts

    def check(self):
        if self._missing:
            raise BenchError(self._missing)
        if self.words and not shutil.which(self.words[0]):
            raise BenchError(f"{self.words[0]} is not installed")

    def command(self, temporary, argv):
        output = [*self.file, f"{temporary}/calls"] if self.file else []
        return [*self.words, *output, *argv]

    def seen(self, temporary, out):
        """{call: how often it was shown}; None where the tracer does not tell."""
        if self._counts:
            return self._counts(out)
        if not self.file:
            return None
        # "123 read(", "123 <... read resumed>" is of a line that was begun before, perf: "0.1 ( 0.0 ms): calls/123
        # read("
        with open(f"{temporary}/calls", encoding="utf-8", errors="replace") as file:
            text = file.read()
        return {call: len(re.findall(rf"(?<![\w.]){call}\(", text)) for call in CALLS}


def _bpftrace_counts(out):
    numbers = {"0": "read", "1": "write", "110": "getppid"}
    return {numbers[number]: int(count) for number, count in re.findall(r"@n\[(0|1|110)\]: (\d+)", out)}


class Recorded(Tracer):
    """Calls go into a trace, from pads; no thread is stopped."""
    def command(self, temporary, argv):
        return [*self.words, "-o", f"{temporary}/trace", "--", *argv]


class Bpftrace(Tracer):
    """Counts by number of the call, of the process that it starts itself; takes one word for a command."""

    SCRIPT = "tracepoint:raw_syscalls:sys_enter /pid == cpid/ { @n[args->id] = count(); } tracepoint:raw_syscalls:sys_exit /pid == cpid/ { @r = count(); }"

    def command(self, _temporary, argv):
        return ["bpftrace", "-e", self.SCRIPT, "-c", " ".join(argv)]


def shown(bench):
    """Tracers that show every call; bpftrace counts them."""
    no_tracepoints = tracefs.missing()
    return [
        Tracer("none", [], FAST),
        Tracer("kymo syscalls", [bench.kymo, "syscalls", "-f"], file=["-o"], missing=bench.kymo_missing),
        Tracer("kymo syscalls --seccomp-bpf", [bench.kymo, "syscalls", "-f", "--seccomp-bpf", "-e", ",".join(CALLS)],
               file=["-o"], missing=bench.kymo_missing),
        Recorded("kymo record -s", [bench.kymo, "record", "-q", "-s", ",".join(CALLS)], FAST,
                 missing=bench.kymo_missing),
        Tracer("kymo syscalls, BPF", [bench.kymo, "syscalls", "-f", "--backend", "kernel", "-e", ",".join(CALLS)],
               file=["-o"], missing=bench.kymo_missing),
        Tracer("strace", ["strace", "-f"], file=["-o"]),
        Tracer("strace --seccomp-bpf", ["strace", "-f", "--seccomp-bpf", "-e", f"trace={','.join(CALLS)}"],
               file=["-o"]),
        Tracer("perf trace", ["perf", "trace"], file=["-o"], missing=no_tracepoints),
        Bpftrace("bpftrace, count", ["bpftrace"], FAST, missing=no_tracepoints, counts=_bpftrace_counts),
    ]


def not_wanted(bench):
    return [
        Tracer("none", [], FAST),
        Tracer("kymo syscalls", [bench.kymo, "syscalls", "-f", "-e", OTHER], file=["-o"], missing=bench.kymo_missing),
        Tracer("kymo syscalls --seccomp-bpf", [bench.kymo, "syscalls", "-f", "--seccomp-bpf", "-e", OTHER], FAST,
               file=["-o"], missing=bench.kymo_missing),
        Recorded("kymo record -s", [bench.kymo, "record", "-q", "-s", OTHER], FAST, missing=bench.kymo_missing),
        Tracer("strace", ["strace", "-f", "-e", f"trace={OTHER}"], file=["-o"]),
        Tracer("strace --seccomp-bpf", ["strace", "-f", "--seccomp-bpf", "-e", f"trace={OTHER}"], FAST, file=["-o"]),
    ]


def with_stacks(bench):
    return [
        Tracer("none", [], FAST),
        Tracer("kymo syscalls", [bench.kymo, "syscalls", "-f", "-k"], WITH_STACKS, file=["-o"],
               missing=bench.kymo_missing),
        Tracer("strace", ["strace", "-f", "-k"], WITH_STACKS, file=["-o"]),
    ]


def _divide(bench, n):
    return max(n // 10, 500) if bench.quick else n


def _read_figures(out):
    figures = {name: float(ns) for name, ns in re.findall(r"^(\w+) ([\d.]+)$", out, re.MULTILINE) if name in CALLS}
    if set(figures) != set(CALLS):
        raise BenchError(f"not understood: {out[:200]!r}")
    return figures


def _short_of(tracer, seen, n):
    """How many calls of the timed ones were not seen, at most, of one name."""
    return 0 if seen is None else max(n + WARM_UP - seen.get(call, 0) for call in CALLS)


class Measured:
    """{(tracer, threads): {call: [ns]}}, and what was missed."""
    def __init__(self, bench, title, tracers, program, threads=THREADS):
        self.tracers, self.figures, self.missed, self.threads = bench.select(tracers), {}, {}, threads

        def one(tracer):
            tracer.check()
            for threads in self.threads:
                self._one(bench, tracer, threads, program, "not wanted" not in title)

        bench.round_robin(title, self.tracers, one)
        bench.raw[title] = {f"{name}, {threads} threads": values for (name, threads), values in self.figures.items()}

    def _one(self, bench, tracer, threads, program, is_shown):
        n = _divide(bench, tracer.n_calls)
        with procs.temporary_directory(bench.output_dir, "syscalls") as temporary:
            argv = [program, str(threads), *(f"{call}={n}" for call in CALLS)]
            out = procs.run(tracer.command(temporary, argv), timeout=300).stdout
            seen = tracer.seen(temporary, out)
        for call, ns in _read_figures(out).items():
            self.figures.setdefault((tracer.name, threads), {}).setdefault(call, []).append(ns)
        if is_shown:
            self.missed[tracer.name] = max(self.missed.get(tracer.name, 0), _short_of(tracer, seen, n))

    def figure(self, tracer, threads, call):
        values = self.figures.get((tracer, threads), {}).get(call)
        return Figure(values, "ns") if values else None

    def rows(self, what):
        rows = []
        for call in CALLS:
            for threads in self.threads:
                own = self.figure("kymo syscalls", threads, call)
                for tracer in self.tracers:
                    figure = self.figure(tracer.name, threads, call)
                    if not figure:
                        continue
                    missed = self.missed.get(tracer.name, 0)
                    rows.append(
                        Row(f"{call}, {what}, {threads:,} thread{'s' * (threads > 1)}", tracer.name,
                            figure, figure.median / own.median if own else None, self._goals(
                                tracer.name, threads, call), f"{missed:,} calls not shown" if missed > 0 else ""))
        return rows

    def _goals(self, tracer, threads, call):
        own, strace, bare, this = (self.figure(name, threads, call)
                                   for name in ("kymo syscalls", "strace", "none", tracer))
        if tracer in MOST_MORE and bare:
            return [Goal(f"<= bare + {MOST_MORE[tracer]} ns", this.median, bare.median + MOST_MORE[tracer])]
        one = self.figure(tracer, self.threads[0], call)
        if tracer != "kymo syscalls" or not own:
            return []
        void = "lines are missing" if self.missed.get(tracer, 0) > 0 else ""
        goals = [Goal("<= strace", own.median, strace.median * MOST_OF_STRACE, void=void)] if strace else []
        if threads != self.threads[0] and one:
            goals.append(
                Goal(f"<= {MOST_OF_ONE_THREAD} of 1 thread", own.median, one.median * MOST_OF_ONE_THREAD, void=void))
        return goals


def _sqlite(bench, temporary):
    """A script of many small transactions in a file, and the command that runs it."""
    script = os.path.join(temporary, "script.sql")
    with open(script, "w", encoding="ascii") as file:
        file.write("PRAGMA synchronous=OFF; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT);\n")
        for number in range(_divide(bench, INSERTS)):
            file.write(f"INSERT INTO t VALUES({number}, 'row {number}');\n")
        file.write("SELECT count(*) FROM t;\n")
    return ["sqlite3", os.path.join(temporary, "database"), f".read {script}"]


def _load(bench):
    """Milliseconds of sqlite3, from its start to its end, the tracer's own included."""
    if not shutil.which("sqlite3"):
        raise BenchError("sqlite3 is not installed")
    times, lines = {}, {}
    tracers = [tracer for tracer in shown(bench) if not isinstance(tracer, Bpftrace)]
    tracers = bench.select(tracers)

    def one(tracer):
        tracer.check()
        with procs.temporary_directory(bench.output_dir, "syscalls") as temporary:
            command = tracer.command(temporary, _sqlite(bench, temporary))
            begin = time.monotonic()
            out = procs.run(command, timeout=300).stdout
            times.setdefault(tracer.name, []).append((time.monotonic() - begin) * 1e3)
            if str(_divide(bench, INSERTS)) not in out.split():
                raise BenchError(f"sqlite3 has not counted its rows: {out[:200]!r}")
            if tracer.file:
                with contextlib.suppress(OSError), open(f"{temporary}/calls", "rb") as file:
                    lines[tracer.name] = sum(1 for _ in file)

    bench.round_robin("syscalls: sqlite3", tracers, one)
    bench.raw["syscalls: sqlite3"] = times
    own = Figure(times["kymo syscalls"], "ms") if "kymo syscalls" in times else None
    rows = []
    for tracer in tracers:
        if tracer.name not in times:
            continue
        figure = Figure(times[tracer.name], "ms")
        strace = Figure(times["strace"], "ms") if tracer.name == "kymo syscalls" and "strace" in times else None
        rows.append(
            Row(f"sqlite3, {_divide(bench, INSERTS):,} transactions", tracer.name, figure,
                figure.median / own.median if own else None,
                [Goal("<= strace", figure.median, strace.median * MOST_OF_STRACE)] if strace else [],
                f"{lines[tracer.name]:,} lines" if tracer.name in lines else ""))
    return rows


def run(bench):
    program = bench.builder.calls()
    rows = Measured(bench, "syscalls", shown(bench), program).rows("shown")
    rows += Measured(bench, "syscalls: not wanted", not_wanted(bench), program).rows("not wanted")
    rows += Measured(bench, "syscalls: stacks", with_stacks(bench), program, THREADS[:1]).rows("with its stack (-k)")
    with contextlib.suppress(BenchError):
        rows += _load(bench)
    return rows
