"""Case `event`: ns a hit, at function entries of three kinds, with 0, 2 and 6 arguments, on 1 and 2 threads."""
import contextlib
import os
import re
import shutil

from . import kymo, uprobes
from .elf import Text
from .loops import FAST, RING_MIB, Kymo, Measured, Tracer, ratio
from .procs import BenchError
from .results import Figure, Goal, Row

SHAPES = {"nop": "5-byte NOP", "push": "push %rbp", "step": "sub $0x18,%rsp"}
ARGS = (0, 2, 6)
THREADS = (1, 2)
REGISTERS = ["a=%di:s32", "b=%si:s64", "c=%dx:s64", "d=%cx:s64", "e=%r8:s64", "f=%r9:s64"]
# Calls a round, so that a round stays within tens of milliseconds.
KERNEL = {"nop": 20_000, "push": 20_000, "step": 1_000}
# The goals for kymo: ns, and the least that a kernel uprobe must be a multiple of it.
GOAL_NS = 30
GOAL_UPROBE = {"nop": 10, "push": 20, "step": 400}


def functions():
    return [f"hit_{shape}{n}" for shape in SHAPES for n in ARGS]


def arguments(function):
    return " ".join(REGISTERS[:int(function[-1])])


def kymo_tracer(name, program, binary, words, shapes):
    probes = [f"{kymo.quote(program)}:{function} {arguments(function)}".strip() for function in functions()]
    return Kymo(name, program, shapes, binary, probes, functions(), words=words)


class Uprobes(uprobes.Uprobes):
    def __init__(self, program):
        super().__init__("kernel uprobe", program, KERNEL)

    def definitions(self, elf):
        return [(name, f"{self.program}:{elf.functions[name][0]:#x} {arguments(name)}") for name in functions()]


class Bpftrace(uprobes.Bpftrace):
    only_args = (2, )
    _names = [f"hit_{shape}2" for shape in SHAPES]

    def __init__(self, program):
        super().__init__("bpftrace, count", program, KERNEL)

    def script(self):
        return "".join(f"uprobe:{self.program}:{name} {{ @[\"{name}\"] = count(); }} " for name in self._names)

    def text(self, pid, elf):
        return Text(pid, elf, self._names)


class Lttng(Tracer):
    def __init__(self, name, program, shapes, daemon, contexts):
        super().__init__(name, program, shapes, (name, "empty"))
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

    only_args = (2, )

    def __init__(self, name, program, options):
        super().__init__(name, program, {"c": FAST}, ("none, C function", "c"))
        self._options = options

    @contextlib.contextmanager
    def session(self, temporary):
        self.prefix = ["uftrace", "record", "--no-pager", "--no-libcall", *self._options, "-d", f"{temporary}/uftrace"]
        yield

    def finish(self, calls, temporary, words):
        lost = sum(map(int, re.findall(r"LOST (\d+) records", words)))
        size = sum(
            os.path.getsize(f"{temporary}/uftrace/{name}") for name in os.listdir(f"{temporary}/uftrace")
            if name.endswith(".dat"))
        # 16 bytes an entry, and as many an exit.
        if size < calls * 16:
            raise BenchError(f"uftrace wrote {size} bytes for {calls} calls: it did not trace the function")
        return {"lost": lost, "bytes": size}


def _add_kymo(bench, tracers, program):
    if bench.kymo_missing:
        bench.unavailable("event", "kymo", bench.kymo_missing)
        return
    tracers.append(kymo_tracer("kymo", program, bench.kymo, [], dict.fromkeys(SHAPES, FAST)))
    tracers.append(kymo_tracer("kymo --no-rseq", program, bench.kymo, ["--no-rseq"], dict.fromkeys(SHAPES, FAST)))
    tracers.append(kymo_tracer("kymo --backend kernel", program, bench.kymo, ["--backend", "kernel"], KERNEL))


def add_lttng(bench, case, tracers, build, shapes, only_args=Tracer.only_args):
    """LTTng-UST, without and with the thread's id in each record, on the program that `build` gives."""
    if not bench.wants("LTTng-UST"):
        return
    try:
        daemon, program = bench.lttng_daemon(), build()
    except BenchError as error:
        bench.unavailable(case, "LTTng-UST", str(error))
        return
    for name, contexts in (("LTTng-UST", []), ("LTTng-UST, vtid", ["vtid"])):
        tracer = Lttng(name, program, shapes, daemon, contexts)
        tracer.only_args = only_args
        tracers.append(tracer)


def add_uftrace(bench, case, tracers):
    """uftrace in its kinds, and the C function without it; the plain program."""
    plain = bench.builder.plain("target_plain", [])
    tracers.append(Tracer("none, C function", plain, {"c": FAST}))
    if not shutil.which("uftrace"):
        bench.unavailable(case, "uftrace", "uftrace is not installed")
        return plain
    kinds = {
        "-pg": (["-pg"], []), "-fpatchable": (["-fpatchable-function-entry=5"], ["-P", "hit_c2"]), "-P, plain code":
        (None, ["-P", "hit_c2"])
    }
    for number, (name, (flags, options)) in enumerate(kinds.items()):
        try:
            program = bench.builder.plain(f"target_uftrace{number}", flags) if flags else plain
        except BenchError as error:
            bench.unavailable(case, f"uftrace {name}", str(error))
            continue
        tracers.append(Uftrace(f"uftrace {name}", program, options))
    return plain


def run(bench):
    target = bench.builder.target()
    tracers = [Tracer("none", target, dict.fromkeys(SHAPES, FAST))]
    _add_kymo(bench, tracers, target)
    uprobes.add(bench, "event", tracers, Uprobes(target), Bpftrace(target))
    add_lttng(bench, "event", tracers, bench.builder.lttng_target, {"empty": FAST, "tp": FAST})
    add_uftrace(bench, "event", tracers)
    return _rows(Measured(bench, "event", tracers, THREADS))


def _goals(name, shape, n_args, figure, multiple, void):
    """`void`: why kymo's times are not those of recording."""
    if n_args != 2:
        return []
    if name == "kymo":
        return [Goal(f"<= {GOAL_NS} ns", figure.median, GOAL_NS, void=void)]
    if name == "kernel uprobe" and multiple is not None:
        least = GOAL_UPROBE[shape]
        return [Goal(f"kymo <= 1/{least}", multiple, least, at_least=True, void=void)]
    return []


def _rows(measured):
    rows = []
    void = measured.void("kymo")

    def add(what, name, key, like):
        figure, own = measured.net((name, *key)), measured.net(("kymo", *like))
        if figure is None:
            return
        multiple = ratio(figure, own)
        goals = _goals(name, key[0], key[1], figure, multiple, void)
        rows.append(Row(what, name, figure, multiple, goals, measured.note(name)))

    for shape, words in SHAPES.items():
        base = measured.figures.get(("none", shape, 2, 1))
        if base:
            rows.append(Row(f"entry {words}, not traced: a call", "none", Figure(base, "ns")))
    for shape, words in SHAPES.items():
        for n_args in ARGS:
            for n_threads in THREADS:
                what = f"entry {words}, {n_args} args, {n_threads} thr"
                for name in ("kymo", "kymo --no-rseq", "kymo --backend kernel", "kernel uprobe", "bpftrace, count"):
                    add(what, name, (shape, n_args, n_threads), (shape, n_args, n_threads))
    for n_args in ARGS:
        for n_threads in THREADS:
            for name in ("LTTng-UST", "LTTng-UST, vtid"):
                add(f"tracepoint in the loop, {n_args} args, {n_threads} thr", name, ("tp", n_args, n_threads),
                    ("push", n_args, n_threads))
    for n_threads in THREADS:
        for name in measured.tracers:
            if name.startswith("uftrace"):
                add(f"entry + exit, no args, {n_threads} thr", name, ("c", 2, n_threads), ("push", 2, n_threads))
    return rows
