"""Case `filter`: ns a hit that a filter leaves out, one that it lets through, and one with a computed value, beside
bpftrace."""
from . import kymo, uprobes
from .elf import Text
from .loops import FAST, Kymo, Measured, Tracer, ratio
from .results import Goal, Row

FUNCTION = "hit_push2"
VALUES = "a=%di:s32 b=%si:s64"
NEVER = "arg1 == -77"
GOAL_FALSE_NS = 10
KERNEL = {"push2": 20_000}
SPECS = {
    "kymo": (VALUES, 1), "kymo, filter true": (f"/arg1 != -77/ {VALUES}", 1), "kymo, filter false":
    (f"/{NEVER}/ {VALUES}", 0), "kymo, filter of three conditions, false":
    (f"/arg0 >= 0 && (int)arg1 != 5 && arg1 % 4K == -77/ {VALUES}", 0), "kymo, one value computed":
    ("a=(arg0 * 3 + (arg1 >> 2)):s64 b=%si:s64", 1),
}


class Bpftrace(uprobes.Bpftrace):
    only_args = (2, )

    def __init__(self, name, program, predicate):
        super().__init__(name, program, KERNEL)
        self._predicate = predicate

    def script(self):
        return f"uprobe:{self.program}:{FUNCTION} {self._predicate} {{ @ = count(); }}"

    def text(self, pid, elf):
        return Text(pid, elf, [FUNCTION])


def _kymo(bench, name, program):
    words, events = SPECS[name]
    probe = f"{kymo.quote(program)}:{FUNCTION} {words}"
    return Kymo(name, program, {"push2": FAST}, bench.kymo, [probe], [FUNCTION], events_a_call=events)


def run(bench):
    target = bench.builder.target()
    tracers = [Tracer("none", target, {"push2": FAST})]
    if bench.kymo_missing:
        bench.unavailable("filter", "kymo", bench.kymo_missing)
    else:
        tracers += [_kymo(bench, name, target) for name in SPECS]
    uprobes.add(bench, "filter", tracers, Bpftrace("bpftrace, predicate false", target, f"/{NEVER}/"),
                Bpftrace("bpftrace, count", target, ""))
    measured = Measured(bench, "filter", tracers, (1, ))
    return _rows(measured)


def _rows(measured):
    rows, key = [], ("push", 2, 1)
    for name in measured.tracers:
        figure, goals = measured.net((name, *key)), []
        if name == "none" or figure is None:
            continue
        if name.startswith("kymo") and name.endswith("false"):
            goals = [Goal(f"<= {GOAL_FALSE_NS} ns", figure.median, GOAL_FALSE_NS, void=measured.void(name))]
        multiple = ratio(figure, measured.net(("kymo", *key)))
        rows.append(Row("entry push %rbp, 2 args, 1 thr", name, figure, multiple, goals, measured.note(name)))
    return rows
