"""Case `returns`: ns for entry and return of a C function together, with two arguments and the value returned."""
from . import kymo, uprobes
from .case_event import add_uftrace
from .elf import Text
from .loops import FAST, Kymo, Measured, ratio
from .results import Goal, Row

FUNCTION = "hit_c2"
SHAPES = {"c": FAST}
KERNEL_SHAPES = {"c": 10_000}
THREADS = (1, 2)
BASE = ("none, C function", "c")
GOAL_NS = 55
GOAL_UFTRACE = 2
GOAL_DURATION_NS = 10
BY_DURATION = "kymo, calls of over 1 s"


class Uprobes(uprobes.Uprobes):
    """A uprobe and a uretprobe, which puts an address of its own on the stack."""

    events_a_call = 2

    def __init__(self, program):
        super().__init__("kernel uprobe + uretprobe", program, KERNEL_SHAPES, BASE)

    def definitions(self, elf):
        place = f"{self.program}:{elf.functions[FUNCTION][0]:#x}"
        return [("entry", f"{place} a=%di:s32 b=%si:s64"), ("return_c2", f"{place} value=$retval:s64")]


class Bpftrace(uprobes.Bpftrace):
    def __init__(self, program):
        super().__init__("bpftrace, count both", program, KERNEL_SHAPES, BASE)

    def script(self):
        place = f"{self.program}:{FUNCTION}"
        return f"uprobe:{place} {{ @entries = count(); }} uretprobe:{place} {{ @returns = count(); }}"

    def text(self, pid, elf):
        return Text(pid, elf, [FUNCTION])


def _kymo(bench, name, program, shapes, *words):
    place = f"{kymo.quote(program)}:{FUNCTION}"
    probes = [f"{place} a=%di:s32 b=%si:s64", ("-r", f"{place} value=$retval:s64")]
    return Kymo(name, program, shapes, bench.kymo, probes, [FUNCTION], base=BASE, events_a_call=2, words=list(words))


def _by_duration(bench, program):
    place = f"{kymo.quote(program)}:{FUNCTION}"
    probe = f"{place} /duration > 1s/ entry((int)arg0) entry((long)arg1) value=$retval:s64"
    return Kymo(BY_DURATION, program, {"c": 20_000}, bench.kymo, [("-r", probe)], [FUNCTION], base=BASE,
                events_a_call=0)


def run(bench):
    tracers = []
    plain = add_uftrace(bench, "returns", tracers)
    if bench.kymo_missing:
        bench.unavailable("returns", "kymo", bench.kymo_missing)
    else:
        tracers.insert(1, _kymo(bench, "kymo", plain, SHAPES))
        tracers.insert(2, _kymo(bench, "kymo --no-rseq", plain, SHAPES, "--no-rseq"))
        tracers.insert(3, _by_duration(bench, plain))
        tracers.insert(4, _kymo(bench, "kymo --backend kernel", plain, KERNEL_SHAPES, "--backend", "kernel"))
    uprobes.add(bench, "returns", tracers, Uprobes(plain), Bpftrace(plain))
    return _rows(Measured(bench, "returns", tracers, THREADS))


def _rows(measured):
    rows = []
    void = measured.void("kymo")
    uftraces = [name for name in measured.tracers if name.startswith("uftrace")]
    for n_threads in THREADS:
        key = ("c", 2, n_threads)
        own = measured.net(("kymo", *key))
        fastest = min((figure.median for figure in (measured.net((name, *key)) for name in uftraces) if figure),
                      default=None)
        for name in measured.tracers:
            figure, goals = measured.net((name, *key)), []
            if figure is None or name.startswith("none"):
                continue
            if name == "kymo":
                goals.append(Goal(f"<= {GOAL_NS} ns", figure.median, GOAL_NS, void=void))
                if fastest is not None:
                    goals.append(
                        Goal(f"<= 1/{GOAL_UFTRACE} of uftrace's best", GOAL_UFTRACE * figure.median, fastest,
                             void=void))
            if name == BY_DURATION and own:
                limit = own.median + GOAL_DURATION_NS
                goals.append(Goal(f"<= kymo + {GOAL_DURATION_NS} ns", figure.median, limit))
            what = f"entry + return, {'no' if name.startswith(('uftrace', 'bpftrace')) else '2'} args, {n_threads} thr"
            rows.append(Row(what, name, figure, ratio(figure, own), goals, measured.note(name)))
    return sorted(rows, key=lambda row: (row.what[-5:], row.what.split(",")[1] != " 2 args"))
