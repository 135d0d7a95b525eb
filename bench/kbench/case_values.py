"""Case `values`: ns a hit that reads memory, texts, the stack, or is aggregated by a key, beside bpftrace and perf."""
import contextlib
import shutil
import signal
import subprocess

from . import kymo, procs, tracefs, uprobes
from .case_filter import KERNEL
from .elf import Elf, Text
from .loops import FAST, Kymo, Measured, Tracer, ratio
from .results import Row

FUNCTION = "hit_push2"
SLOW = 10_000  # calls a round
FEW = 4_000  # so that the recorder, which names each frame, keeps up
STACK = "the stack"
CHAIN = "the stack, 16 frames by frame pointers"
# (what is asked, kymo's option and words, events of a call, calls a round, bpftrace's action)
ASKED = [
    ("two registers", "-p", "{} a=%di:s32 b=%si:s64", 1, FAST, "@ = count()"),
    ("a word of the stack", "-p", "{} a=%di:s32 b=+8($stack):s64", 1, FAST, "@ = sum(*(int64 *)(reg(\"sp\") + 8))"),
    ("a word elsewhere, by a call", "--no-fast-reads -p", "{} a=%di:s32 b=@+16:x64", 1, SLOW, None),
    ("a text elsewhere, by a call", "--no-fast-reads -p", "{} a=%di:s32 b=@+1:string", 1, SLOW, None),
    ("a word elsewhere, fast reads", "--fast-reads -p", "{} a=%di:s32 b=@+16:x64", 1, FAST, None),
    ("a text elsewhere, fast reads", "--fast-reads -p", "{} a=%di:s32 b=@+1:string", 1, FAST, None),
    ("the function's name", "-p", "{} a=%di:s32 func", 1, FAST, "@[func] = count()"),
    ("the thread's name", "-p", "{} a=%di:s32 comm", 1, SLOW, "@[comm] = count()"),
    ("count by a key", "--count", "{} by arg1 % 16", 0, FAST, "@[arg1 % 16] = count()"),
    ("histogram", "--hist", "{} arg1", 0, FAST, "@ = hist(arg1)"),
    (STACK, "--stack -p", "{}", 1, SLOW, "@[ustack(16)] = count()"),
    (CHAIN, "--frame-pointers --stack=16 -p", "{}", 1, FEW, "@[ustack(16)] = count()"),
]


class Bpftrace(uprobes.Bpftrace):
    only_args = (2, )

    def __init__(self, name, program, shape, action):
        super().__init__(name, program, {f"{shape}2": KERNEL["push2"]})
        self._action = action

    def script(self):
        return f"uprobe:{self.program}:{FUNCTION} {{ {self._action}; }}"

    def text(self, pid, elf):
        return Text(pid, elf, [FUNCTION])


class Perf(Tracer):
    """A uprobe with 4 KiB of the stack copied, which perf unwinds later."""
    only_args = (2, )

    def __init__(self, program):
        super().__init__(f"perf record, {STACK}", program, {"push2": KERNEL["push2"]})

    @contextlib.contextmanager
    def tracing(self, target, temporary):
        elf = Elf(self.program)
        probe = "stack", f"{self.program}:{elf.functions[FUNCTION][0]:#x}"
        with tracefs.Uprobes([probe], 64) as probes, Text(target.pid, elf, [FUNCTION]) as text:
            probes.define()
            process = procs.spawn([
                "perf", "record", "-q", "-e", f"{probes.group}:stack", "--call-graph", "dwarf,4096", "-m", "8M", "-o",
                f"{temporary}/perf.data", "-p", target.pid
            ], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                if not procs.wait_until(lambda: text.changed() or process.poll() is not None, 30, 0.02) or \
                        process.poll() is not None:
                    raise procs.BenchError("perf record has put in no probe")
                yield
            finally:
                procs.end(process, signal.SIGINT)


def _add_perf(bench, tracers, program):
    tracer = Perf(program)
    reason = tracefs.missing() or (None if shutil.which("perf") else "perf is not installed (optional)")
    if reason:
        bench.unavailable("values", tracer.name, reason)
    else:
        tracers.append(tracer)


def _shape(what):
    """What is called: below many functions where these are to be found."""
    return "deep" if what == CHAIN else "push"


def _kymo(bench, program, asked):
    what, option, words, events, calls, _ = asked
    *options, option = option.split()
    probe = option, words.format(f"{kymo.quote(program)}:{FUNCTION}")
    return Kymo(f"kymo, {what}", program, {f"{_shape(what)}2": calls}, bench.kymo, [probe], [FUNCTION],
                events_a_call=events, words=options)


def run(bench):
    target = bench.builder.target()
    tracers = [Tracer("none", target, {"push2": FAST, "deep2": FAST})]
    if bench.kymo_missing:
        bench.unavailable("values", "kymo", bench.kymo_missing)
    else:
        tracers += [_kymo(bench, target, asked) for asked in ASKED]
    for what, *_, action in ASKED:
        if action:
            uprobes.add_bpftrace(bench, "values", tracers, Bpftrace(f"bpftrace, {what}", target, _shape(what), action))
    _add_perf(bench, tracers, target)
    return _rows(Measured(bench, "values", tracers, (1, )))


def _rows(measured):
    rows = []
    for what, *_ in ASKED:
        key = _shape(what), 2, 1
        own = measured.net((f"kymo, {what}", *key))
        for name in (f"kymo, {what}", f"bpftrace, {what}", f"perf record, {what}"):
            figure = measured.net((name, *key)) if name in measured.tracers else None
            if figure is not None:
                rows.append(Row("entry push %rbp, 2 args, 1 thr", name, figure, ratio(figure, own), [],
                                measured.note(name)))
    return rows
