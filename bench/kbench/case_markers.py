"""Case `markers`: ns that a marker adds to a loop, off; and on, with (int, long), and with a string of 16 bytes."""
import contextlib

from . import kymo, uprobes
from .case_event import add_lttng
from .elf import Text
from .loops import FAST, RING_MIB, Kymo, Measured, Tracer, ratio
from .procs import BenchError
from .results import Figure, Goal, Row

# Calls a round: of loops of a few instructions, and of those that enter the kernel.
OFF = 4_000_000
KERNEL = 20_000
THREADS = (1, 2)
BASE = ("none", "empty")
# Loops of markers/ that are measured without a recorder, in the words of the table.
OFF_LOOPS = {
    "kymo": ("kymo: NOP of 5 bytes", 2), "short": ("kymo, were it a short jump over 3 bytes", 2), "portable":
    ("kymo, portable: a test of its gate", 2), "sdt": ("sys/sdt.h: NOP", 2), "semaphore": ("sys/sdt.h, semaphore", 2)
}
LTTNG_OFF = "LTTng-UST, no session"
GOAL_OFF_NS = 0.3
# Differences below are those of where loops lie: the figures of one loop, copied, differ by as much.
RESOLUTION_NS = 0.05
GOAL_ON_NS, GOAL_ON_LTTNG = 15, 6
GOAL_TEXT_NS = 450
# The form in which markers should be fastest; and the one that needs no library.
IN_PLACE, OUTSIDE = "kymo in place", "kymo record -m"
# All figures of a trial are taken, whatever their number of arguments.
ANY_ARGS = (1, 2)


class OnlyThese(Tracer):
    """Takes all figures of a trial, whatever their number of arguments."""

    only_args = ANY_ARGS


class InPlace(OnlyThese):
    """The program records itself, into the directory that its environment names."""
    def __init__(self, program, binary):
        super().__init__(IN_PLACE, program, {"kymo": FAST, "kymotext": FAST}, BASE)
        self._binary = binary

    @contextlib.contextmanager
    def session(self, temporary):
        self.env = {
            "KYMO_MARKERS": "bench_ints,bench_text", "KYMO_MARKERS_DIR": f"{temporary}/kymo", "KYMO_MARKERS_BUFFER":
            f"{RING_MIB}M"
        }
        yield

    def finish(self, calls, temporary, _words):
        events, lost = kymo.report_totals(self._binary, f"{temporary}/kymo")
        return {"events": events, "lost": lost, "missing": calls - events - lost}


class Uprobes(uprobes.Uprobes):
    """On the NOPs of <sys/sdt.h>, with the arguments that their notes tell."""

    only_args = ANY_ARGS
    _events = {"sdt_ints": ("a=%{}:s32", "b=%{}:s64"), "sdt_text": ("text=+0(%{}):string", )}

    def __init__(self, program):
        super().__init__("sys/sdt.h, kernel uprobe", program, {"sdt": KERNEL, "sdttext": KERNEL}, BASE)

    def _definition(self, elf, name):
        offset, words = elf.probes[name]
        registers = [_register(word) for word in words]
        return f"{self.program}:{offset:#x} " + " ".join(map(str.format, self._events[name], registers))

    def definitions(self, elf):
        return [(name, self._definition(elf, name)) for name in self._events]


def _register(word):
    """"bx" of "-4@%ebx": what tracefs calls the register of an operand."""
    name = word.partition("@%")[2]
    if not name.isalnum():
        raise BenchError(f"the compiler has put an argument of <sys/sdt.h> into {word}, not into a register")
    return name.rstrip("dwb") if name[1:2].isdigit() else name.lstrip("er")


class Bpftrace(uprobes.Bpftrace):
    only_args = ANY_ARGS

    def __init__(self, program):
        super().__init__("sys/sdt.h, bpftrace, count", program, {"sdt": KERNEL}, BASE)

    def script(self):
        return f"usdt:{self.program}:bench:sdt_ints {{ @ = count(); }}"

    def text(self, pid, elf):
        return Text(pid, elf, (), sites=[elf.probes["sdt_ints"][0]])


def _off_tracers(bench):
    name = "kymo and sys/sdt.h, off"
    tracer = OnlyThese(name, bench.builder.markers_off(), dict.fromkeys(["empty", *OFF_LOOPS], OFF), (name, "empty"))
    tracers = [tracer]
    try:
        tracers.append(
            OnlyThese(LTTNG_OFF, bench.builder.lttng_markers(), {"empty": OFF, "tp2": OFF}, (LTTNG_OFF, "empty")))
    except BenchError as error:
        bench.unavailable("markers", LTTNG_OFF, str(error))
    return tracers


def _outside(bench, name, program, loops, markers, watched):
    """A recording of `markers`, which is in when the places that `watched` gives have changed."""
    words = [("-m", marker) for marker in markers]
    return Kymo(name, program, dict.fromkeys(loops, FAST), bench.kymo, words, watched, base=BASE, only_args=(1, 2))


def _add_kymo(bench, tracers, program):
    if bench.kymo_missing:
        bench.unavailable("markers", "kymo", bench.kymo_missing)
        return
    tracers += [
        _outside(bench, OUTSIDE, program, ["kymo", "kymotext"], ["bench_ints", "bench_text"],
                 lambda elf: elf.sites["bench_ints"] + elf.sites["bench_text"]),
        _outside(bench, f"{OUTSIDE}, portable", program, ["portable"], ["bench_portable"],
                 lambda elf: elf.locations["bench_portable"]),
        _outside(bench, f"sys/sdt.h, {OUTSIDE}", program, ["sdt"], ["bench:sdt_ints"],
                 lambda elf: [elf.probes["sdt_ints"][0]])
    ]
    try:
        linked = bench.builder.markers_library(bench.kymo)
    except BenchError as error:
        bench.unavailable("markers", "kymo in place and kymo call", str(error))
        return
    tracers.append(InPlace(linked, bench.kymo))
    tracers.append(OnlyThese("kymo call, an empty probe", linked, {"call": FAST}, BASE))


def run(bench):
    off = Measured(bench, "markers, off", _off_tracers(bench), (1, ))
    program = bench.builder.markers()
    tracers = [OnlyThese("none", program, {"empty": FAST})]
    _add_kymo(bench, tracers, program)
    uprobes.add(bench, "markers", tracers, Uprobes(program), Bpftrace(program))
    lttng_shapes = dict.fromkeys(["empty", "tp2", "text"], FAST)
    add_lttng(bench, "markers", tracers, bench.builder.lttng_markers, lttng_shapes, ANY_ARGS)
    on = Measured(bench, "markers, on", tracers, THREADS)
    return _off_rows(off) + _on_rows(on)


def _added(measured, tracer, shape, n_args):
    """What a loop takes more than the empty one of the same program, in the same trial."""
    loop, empty = (measured.figures.get((tracer, *key, 1), []) for key in ((shape, n_args), ("empty", 2)))
    return Figure([a - b for a, b in zip(loop, empty)], "ns") if loop and empty else None


def _off_rows(measured):
    first = next((name for name in measured.tracers if name != LTTNG_OFF), None)
    lttng = _added(measured, LTTNG_OFF, "tp", 2)
    rows = []
    base = measured.figures.get((first, "empty", 2, 1))
    if base:
        rows.append(Row("the loop without a marker", "none", Figure(base, "ns")))
    for shape, (words, n_args) in OFF_LOOPS.items():
        figure, goals = _added(measured, first, shape, n_args), []
        if figure and shape == "kymo":
            goals.append(Goal(f"<= {GOAL_OFF_NS} ns", figure.median, GOAL_OFF_NS))
            if lttng:
                goals.append(Goal("<= LTTng-UST off", figure.median, max(lttng.median, 0) + RESOLUTION_NS))
        if figure:
            rows.append(Row("a marker, off", words, figure, None, goals))
    if lttng:
        rows.append(Row("a marker, off", LTTNG_OFF, lttng))
    return rows


# What is recorded: the words for it, and which loop of which tracer has it.
ON = [("on, (int, long)", {
    IN_PLACE: ("kymo", 2), OUTSIDE: ("kymo", 2), f"{OUTSIDE}, portable": ("portable", 2), "kymo call, an empty probe":
    ("call", 2), f"sys/sdt.h, {OUTSIDE}": ("sdt", 2), "sys/sdt.h, kernel uprobe": ("sdt", 2),
    "sys/sdt.h, bpftrace, count": ("sdt", 2), "LTTng-UST": ("tp", 2), "LTTng-UST, vtid": ("tp", 2)
}),
      ("on, string of 16 bytes", {
          IN_PLACE: ("kymotext", 1), OUTSIDE: ("kymotext", 1), "sys/sdt.h, kernel uprobe": ("sdttext", 1), "LTTng-UST":
          ("text", 1), "LTTng-UST, vtid": ("text", 1)
      })]


def _on_rows(measured):
    rows = []
    for what, tracers in ON:
        for n_threads in THREADS:
            nets = {name: measured.net((name, *loop, n_threads)) for name, loop in tracers.items()}
            own = nets[IN_PLACE] or nets[OUTSIDE]
            for name, figure in nets.items():
                if figure:
                    void = measured.void(name)
                    rows.append(
                        Row(f"a marker, {what}, {n_threads} thr", name, figure, ratio(figure, own),
                            _on_goals(what, name, figure, nets, void), measured.note(name)))
    return rows


def _on_goals(what, name, figure, nets, void):
    if name not in (IN_PLACE, OUTSIDE):
        return []
    goals, lttng, kernel = [], nets["LTTng-UST"], nets["sys/sdt.h, kernel uprobe"]
    if "string" in what:
        goals.append(Goal(f"<= {GOAL_TEXT_NS} ns", figure.median, GOAL_TEXT_NS, void=void))
        if kernel:
            goals.append(Goal("<= the kernel's", figure.median, kernel.median, void=void))
        return goals
    goals.append(Goal(f"<= {GOAL_ON_NS} ns", figure.median, GOAL_ON_NS, void=void))
    if lttng:
        goals.append(Goal(f"<= 1/{GOAL_ON_LTTNG} of LTTng-UST", GOAL_ON_LTTNG * figure.median, lttng.median, void=void))
    return goals
