"""Case `event`: ns a hit, at function entries of three kinds, with 0, 2 and 6 arguments, on 1 and 2 threads."""
import contextlib
import os
import re
import shutil
import subprocess

from . import kymo, lttng, procs, tracefs
from .elf import Elf, Text
from .procs import BenchError, Target
from .results import Figure, Goal, Row

SHAPES = {"nop": "5-byte NOP", "push": "push %rbp", "step": "sub $0x18,%rsp"}
ARGS = (0, 2, 6)
THREADS = (1, 2)
REGISTERS = ["a=%di:s32", "b=%si:s64", "c=%dx:s64", "d=%cx:s64", "e=%r8:s64", "f=%r9:s64"]
PAUSE_US = 5000
FAST = 50_000
# Calls a round, so that a round stays within tens of milliseconds.
KERNEL = {"nop": 20_000, "push": 20_000, "step": 1_000}
# Memory a CPU, the same for all that have rings of a fixed size.
RING_MIB = 8
# The goals for kymo: ns, and the least that a kernel uprobe must be a multiple of it.
GOAL_NS = 30
GOAL_UPROBE = {"nop": 10, "push": 20, "step": 400}


def functions():
    return [f"hit_{shape}{n}" for shape in SHAPES for n in ARGS]


def arguments(function):
    return " ".join(REGISTERS[:int(function[-1])])


class Tracer:
    """Knows how to trace one trial.

    `shapes`: calls a round for each kind of loop; `base`: the tracer and shape whose figure is subtracted (None: the
    same shape).
    """

    def __init__(self, name, program, shapes, base=("none", None)):
        self.name, self.program, self.shapes, self.base = name, program, shapes, base

    prefix, env = (), {}
    only_args = ARGS

    @contextlib.contextmanager
    def session(self, _temporary):
        yield

    @contextlib.contextmanager
    def tracing(self, _target, _temporary):
        """The target is traced inside of this."""
        yield

    def finish(self, _calls, _temporary, _words):
        """{"lost": events, ...} after the trial; `_words`: what was written on stderr."""
        return {}


class Kymo(Tracer):
    def __init__(self, name, program, binary, options):
        super().__init__(name, program, dict.fromkeys(SHAPES, FAST))
        self._binary, self._options = binary, options

    @contextlib.contextmanager
    def tracing(self, target, temporary):
        specs = [f"{kymo.quote(self.program)}:{name} {arguments(name)}".strip() for name in functions()]
        recorder = kymo.Recorder(self._binary, f"{temporary}/kymo", specs, f"{RING_MIB}M", target.pid, *self._options)
        with Text(target.pid, Elf(self.program), functions()) as text, recorder:
            _, n = recorder.wait_in_place(text)
            if n != text.n_sites:
                raise BenchError(f"kymo record put in {n} of {text.n_sites} probes")
            yield
            recorder.stop()

    def finish(self, calls, temporary, _words):
        events, lost = kymo.report_totals(self._binary, f"{temporary}/kymo")
        return {"events": events, "lost": lost, "missing": calls - events - lost}


class Uprobes(Tracer):
    def __init__(self, program):
        super().__init__("kernel uprobe", program, KERNEL)
        self._recorded = 0

    @contextlib.contextmanager
    def tracing(self, _target, _temporary):
        elf = Elf(self.program)
        definitions = [(name, f"{self.program}:{elf.functions[name][0]:#x} {arguments(name)}") for name in functions()]
        with tracefs.Uprobes(definitions, RING_MIB * 1024) as uprobes:
            uprobes.define()
            uprobes.enable()
            yield
            uprobes.disable()
            self._recorded = uprobes.recorded()

    def finish(self, calls, _temporary, _words):
        return {"events": self._recorded, "lost": 0, "missing": calls - self._recorded}


class Bpftrace(Tracer):
    """Counts, and records nothing."""

    only_args = (2,)

    def __init__(self, program):
        super().__init__("bpftrace, count", program, KERNEL)

    @contextlib.contextmanager
    def tracing(self, target, _temporary):
        names = [f"hit_{shape}2" for shape in SHAPES]
        script = "".join(f"uprobe:{self.program}:{name} {{ @[\"{name}\"] = count(); }} " for name in names)
        with Text(target.pid, Elf(self.program), names) as text:
            process = procs.spawn(["bpftrace", "-e", script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            try:
                placed = procs.wait_until(lambda: text.changed() == len(names) or process.poll() is not None, 30, 0.02)
                if not placed or process.poll() is not None:
                    procs.end(process)
                    raise BenchError("bpftrace: " + procs.last_words(process.stdout.read(), process.returncode))
                yield
            finally:
                procs.end(process)
                process.stdout.close()


class Lttng(Tracer):
    def __init__(self, name, program, daemon, contexts):
        super().__init__(name, program, {"empty": FAST, "tp": FAST}, (name, "empty"))
        self._daemon, self._contexts = daemon, contexts
        self.prefix, self.env = daemon.prefix, daemon.env
        self._session, self._totals = None, {}

    @contextlib.contextmanager
    def session(self, temporary):
        with self._daemon.session(f"{temporary}/lttng", f"{RING_MIB // 8}M", self._contexts) as session:
            self._session = session
            yield

    @contextlib.contextmanager
    def tracing(self, _target, _temporary):
        yield
        self._totals = self._session.stop()

    def finish(self, _calls, _temporary, _words):
        return self._totals


class Uftrace(Tracer):
    """Entry and exit of a C function, without arguments. It starts the program itself, and traces from its begin."""

    only_args = (2,)

    def __init__(self, name, program, options):
        super().__init__(name, program, {"c": FAST}, ("none, C function", "c"))
        self._options = options

    @contextlib.contextmanager
    def session(self, temporary):
        self.prefix = ["uftrace", "record", "--no-pager", "--no-libcall", *self._options, "-d", f"{temporary}/uftrace"]
        yield

    def finish(self, calls, temporary, words):
        lost = sum(map(int, re.findall(r"LOST (\d+) records", words)))
        size = sum(os.path.getsize(f"{temporary}/uftrace/{name}") for name in os.listdir(f"{temporary}/uftrace")
                   if name.endswith(".dat"))
        # 16 bytes an entry, and as many an exit.
        if size < calls * 16:
            raise BenchError(f"uftrace wrote {size} bytes for {calls} calls: it did not trace the function")
        return {"lost": lost, "bytes": size}


def _add_kymo(bench, tracers, program):
    if bench.kymo_missing:
        bench.unavailable("event", "kymo", bench.kymo_missing)
        return
    tracers.append(Kymo("kymo", program, bench.kymo, []))
    tracers.append(Kymo("kymo --no-rseq", program, bench.kymo, ["--no-rseq"]))


def _add_kernel(bench, tracers, program):
    reason = tracefs.missing()
    if reason:
        bench.unavailable("event", "kernel uprobe", reason)
    else:
        tracers.append(Uprobes(program))
    if not shutil.which("bpftrace"):
        bench.unavailable("event", "bpftrace, count", "bpftrace is not installed (optional)")
    elif reason:
        bench.unavailable("event", "bpftrace, count", reason)
    else:
        tracers.append(Bpftrace(program))


def _add_lttng(bench, tracers):
    if not bench.wants("LTTng-UST"):
        return
    try:
        daemon, program = bench.lttng_daemon(), bench.builder.lttng_target()
    except BenchError as error:
        bench.unavailable("event", "LTTng-UST", str(error))
        return
    tracers.append(Lttng("LTTng-UST", program, daemon, []))
    tracers.append(Lttng("LTTng-UST, vtid", program, daemon, ["vtid"]))


def _add_uftrace(bench, tracers):
    if not shutil.which("uftrace"):
        bench.unavailable("event", "uftrace", "uftrace is not installed")
        return
    plain = bench.builder.plain("target_plain", [])
    kinds = {"-pg": (["-pg"], []), "-fpatchable": (["-fpatchable-function-entry=5"], ["-P", "hit_c2"]),
             "-P, plain code": (None, ["-P", "hit_c2"])}
    tracers.append(Tracer("none, C function", plain, {"c": FAST}))
    for number, (name, (flags, options)) in enumerate(kinds.items()):
        try:
            program = bench.builder.plain(f"target_uftrace{number}", flags) if flags else plain
        except BenchError as error:
            bench.unavailable("event", f"uftrace {name}", str(error))
            continue
        tracers.append(Uftrace(f"uftrace {name}", program, options))


def _trial(bench, tracer, rounds):
    """{(shape, args, threads): ns of a call}, and what became of the events."""
    shapes = [f"{shape}={calls}" for shape, calls in tracer.shapes.items()]
    with procs.temporary_directory(bench.output_dir, "event") as temporary, tracer.session(temporary):
        argv = [*tracer.prefix, tracer.program, "event", rounds, PAUSE_US, ",".join(map(str, THREADS)), *shapes]
        with Target(argv, tracer.env) as target:
            with tracer.tracing(target, temporary):
                lines = target.go(timeout=120)
            status, words = target.leave()
            if status:
                raise BenchError(f"{procs.describe(argv)}: {procs.last_words(words, status)}")
        samples, calls = {}, 0
        for line in lines:
            if line[0] == "calls":
                calls += int(line[1])
            elif line[0] == "sample":
                calls += int(line[4])
                if int(line[2]) in tracer.only_args:
                    samples[line[1], int(line[2]), int(line[3])] = float(line[5])
        return samples, tracer.finish(calls, temporary, words)


def run(bench):
    target = bench.builder.target()
    tracers = [Tracer("none", target, dict.fromkeys(SHAPES, FAST))]
    _add_kymo(bench, tracers, target)
    _add_kernel(bench, tracers, target)
    _add_lttng(bench, tracers)
    _add_uftrace(bench, tracers)
    tracers = bench.select(tracers)
    bases = {tracer.base[0] for tracer in tracers if not tracer.name.startswith("none")}
    tracers = [tracer for tracer in tracers if tracer.name in bases or not tracer.name.startswith("none")]
    rounds = 5 if bench.quick else 16
    figures, outcomes = {}, {}

    def one(tracer):
        samples, outcome = _trial(bench, tracer, rounds)
        for key, ns in samples.items():
            figures.setdefault((tracer.name, *key), []).append(ns)
        outcomes.setdefault(tracer.name, []).append(outcome)

    bench.round_robin("event", tracers, one)
    bench.raw["event"] = {"ns": {" ".join(map(str, key)): values for key, values in figures.items()},
                          "outcomes": outcomes}
    return _rows({tracer.name: tracer for tracer in tracers}, figures, outcomes)


def _net(tracers, figures, key):
    """The figure of `key` (tracer, shape, args, threads) without its baseline, or None."""
    values = figures.get(key)
    if not values:
        return None
    tracer, shape, n_args, n_threads = key
    base_tracer, base_shape = tracers[tracer].base
    # LTTng's empty loop is one for all numbers of arguments.
    base = figures.get((base_tracer, base_shape or shape, 2 if base_shape else n_args, n_threads))
    return Figure(values, "ns").minus(Figure(base, "ns").median) if base else None


def _note(outcomes, tracer):
    lost = max((outcome.get("lost", 0) for outcome in outcomes.get(tracer, [])), default=0)
    missing = max((abs(outcome.get("missing", 0)) for outcome in outcomes.get(tracer, [])), default=0)
    notes = [f"lost up to {lost:,} events a trial"] if lost else []
    notes += [f"count differs from the calls by up to {missing:,}"] if missing else []
    return ", ".join(notes)


def _goals(name, shape, n_args, figure, ratio, void):
    """`void`: why kymo's times are not those of recording. An event that was lost cost less than one that was kept."""
    if n_args != 2:
        return []
    if name == "kymo":
        return [Goal(f"<= {GOAL_NS} ns", figure.median, GOAL_NS, void=void)]
    if name == "kernel uprobe" and ratio is not None:
        least = GOAL_UPROBE[shape]
        return [Goal(f"kymo <= 1/{least}", ratio, least, at_least=True, void=void)]
    return []


def _rows(tracers, figures, outcomes):
    rows = []
    void = "kymo's counts are not whole" if _note(outcomes, "kymo") else ""

    def add(what, name, key, like):
        figure, own = _net(tracers, figures, (name, *key)), _net(tracers, figures, ("kymo", *like))
        if figure is None:
            return
        ratio = figure.median / own.median if own and own.median > 0 and not name.startswith("none") else None
        goals = _goals(name, key[0], key[1], figure, ratio, void)
        rows.append(Row(what, name, figure, ratio, goals, _note(outcomes, name)))

    for shape, words in SHAPES.items():
        base = figures.get(("none", shape, 2, 1))
        if base:
            rows.append(Row(f"entry {words}, not traced: a call", "none", Figure(base, "ns")))
    for shape, words in SHAPES.items():
        for n_args in ARGS:
            for n_threads in THREADS:
                what = f"entry {words}, {n_args} args, {n_threads} thr"
                for name in ("kymo", "kymo --no-rseq", "kernel uprobe", "bpftrace, count"):
                    add(what, name, (shape, n_args, n_threads), (shape, n_args, n_threads))
    for n_args in ARGS:
        for n_threads in THREADS:
            for name in ("LTTng-UST", "LTTng-UST, vtid"):
                add(f"tracepoint in the loop, {n_args} args, {n_threads} thr", name, ("tp", n_args, n_threads),
                    ("push", n_args, n_threads))
    for n_threads in THREADS:
        for name in tracers:
            if name.startswith("uftrace"):
                add(f"entry + exit, no args, {n_threads} thr", name, ("c", 2, n_threads), ("push", 2, n_threads))
    return rows
