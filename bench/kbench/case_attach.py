"""Case `attach`: time to put probes into a running program, and for how long its threads are held meanwhile."""
import collections
import time

from . import kymo, procs, tracefs
from .elf import Elf, Text
from .loops import tactics_of
from .procs import BenchError, Target
from .results import Figure, Goal, Row

# What is attached to: words, functions (those of "pun_" have a library of their own), threads.
SCENES = [("1 probe", "one_", 4), ("100 probes", "hundred_", 4), ("10,000 probes", "tenk_", 4),
          ("10,000 puns", "pun_", 4), ("1,000 threads, 1 probe", "one_", 1000)]
BASELINE_S = 1.0
# A peer that would take longer to put its probes in and take them out again is left out.
PATIENCE_S = 60
GOAL_ATTACH_MS = 1000
GOAL_HELD_MS = 50


class Kymo:
    name = "kymo"

    def __init__(self, binary):
        self._binary = binary

    def refuses(self, _n):
        return None

    def measure(self, target, text, elf, names, temporary):
        spec = f"{kymo.quote(elf.path)}:{names[0].rsplit('_', 1)[0]}_* a=%di b=%si"
        n_mappings = _n_mappings(target.pid)
        with kymo.Recorder(self._binary, f"{temporary}/kymo", [spec], "1M", target.pid) as recorder:
            with held(target) as attach_gaps:
                attach_s, n = recorder.wait_in_place(text)
            n_mappings = _n_mappings(target.pid) - n_mappings
            tactics = collections.Counter(tactics_of(self._binary, target.pid).values())
            with held(target) as detach_gaps:
                detach_s = recorder.stop()
        left = text.changed()
        if left:
            raise BenchError(f"{left} sites are not as they were after kymo has ended")
        return {
            "attach_s": attach_s, "detach_s": detach_s, "sites": n, "attach": attach_gaps, "detach": detach_gaps,
            "mappings": n_mappings, "tactics": tactics
        }


class Uprobes:
    name = "kernel uprobe"

    def __init__(self):
        self._seconds_each = 0.0

    def refuses(self, n):
        """Why `n` probes are too many, or None."""
        expected = n * self._seconds_each
        if expected <= PATIENCE_S:
            return None
        return f"{n:,} would take {expected:.0f} s to put in and take out: one takes {1000 * self._seconds_each:.0f} ms"

    def measure(self, target, text, elf, names, _temporary):
        definitions = [("many", f"{elf.path}:{elf.functions[name][0]:#x} a=%di:s32 b=%si:s64") for name in names]
        with tracefs.Uprobes(definitions, 1024) as uprobes:
            with held(target) as attach_gaps:
                begin = time.monotonic()
                uprobes.define()
                uprobes.enable()
                attach_s = time.monotonic() - begin
            sites = text.changed()
            with held(target) as detach_gaps:
                detach_s = uprobes.disable()
        if len(names) > 1:
            self._seconds_each = (attach_s + detach_s) / len(names)
        return {
            "attach_s": attach_s, "detach_s": detach_s, "sites": sites, "attach": attach_gaps, "detach": detach_gaps
        }


def _n_mappings(pid):
    with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
        return sum(1 for _ in maps)


class held:
    """The gaps that the target's watching threads see inside of this, ns: {"largest", "blocked", "sum"}."""
    def __init__(self, target):
        self._target = target
        self._gaps = {}

    def __enter__(self):
        self._target.say(b"b")
        if self._target.line(30) != "begun":
            raise BenchError("the target does not measure")
        return self._gaps

    def __exit__(self, kind, *exception):
        if kind:
            return
        self._target.say(b"e")
        words = self._target.line(30).split()
        if words[0] != "gaps":
            raise BenchError(f"the target said {words[0]!r} instead of 'gaps'")
        self._gaps.update(zip(("largest", "blocked", "sum"), map(int, words[1:])))


def _trial(bench, tracer, program, elf, prefix, n_threads):
    names = [name for name in elf.functions if name.startswith(prefix)]
    reason = tracer.refuses(len(names))
    if reason:
        return reason
    with procs.temporary_directory(bench.output_dir, "attach") as temporary, \
            Target([program, elf.path, n_threads]) as target, Text(target.pid, elf, names) as text:
        with held(target) as baseline:
            time.sleep(BASELINE_S)
        values = tracer.measure(target, text, elf, names, temporary)
        values["baseline"] = baseline
        status, words = target.leave()
        if status:
            raise BenchError(f"the program that was traced failed: {procs.last_words(words, status)}")
        return values


def run(bench):
    program, many, puns = bench.builder.attach_target(), Elf(bench.builder.many()), Elf(bench.builder.puns())
    tracers = []
    if bench.kymo_missing:
        bench.unavailable("attach", "kymo", bench.kymo_missing)
    else:
        tracers.append(Kymo(bench.kymo))
    reason = tracefs.missing()
    if reason:
        bench.unavailable("attach", "kernel uprobe", reason)
    else:
        tracers.append(Uprobes())
    tracers = bench.select(tracers)
    trials = {}

    def one(tracer):
        for words, prefix, n_threads in SCENES:
            values = _trial(bench, tracer, program, puns if prefix == "pun_" else many, prefix, n_threads)
            if isinstance(values, str):
                bench.unavailable("attach", f"{tracer.name}, {words}", values)
            else:
                trials.setdefault((words, tracer.name), []).append(values)

    bench.round_robin("attach", tracers, one)
    bench.raw["attach"] = {f"{words}, {tracer}": values for (words, tracer), values in trials.items()}
    return [row for words, *_ in SCENES for row in _rows(words, [tracer.name for tracer in tracers], trials)]


def _milliseconds(values, kind):
    if kind in ("attach_s", "detach_s"):
        return Figure([1000 * value[kind] for value in values], "ms")
    return Figure([max(0, value[kind]["blocked"] - value["baseline"]["blocked"]) / 1e6 for value in values], "ms")


def _sites(values):
    """How many, and of kymo's the tactics that ten and more have (the rest are guards and exceptions)."""
    tactics = values[0].get("tactics", {})
    parts = [f"{n:,} {tactic}" for tactic, n in sorted(tactics.items(), key=lambda item: -item[1]) if n >= 10]
    sites = f"{min(value['sites'] for value in values):,} sites"
    return f"{sites}: {', '.join(parts)}" if parts else sites


def _rows(words, names, trials):
    kinds = {
        "attach_s": "put in within", "attach": "held meanwhile", "detach_s": "taken out within", "detach":
        "held meanwhile"
    }
    rows = []
    own = trials.get((words, "kymo"))
    for kind, label in kinds.items():
        for name in names:
            values = trials.get((words, name))
            if not values:
                continue
            figure, goals = _milliseconds(values, kind), []
            if name == "kymo" and kind == "attach_s" and words.startswith("10,000"):
                goals = [Goal(f"<= {GOAL_ATTACH_MS} ms", figure.median, GOAL_ATTACH_MS)]
            if name == "kymo" and kind == "attach" and "000" in words:
                goals = [Goal(f"<= {GOAL_HELD_MS} ms", figure.median, GOAL_HELD_MS)]
            own_median = _milliseconds(own, kind).median if own else 0
            ratio = figure.median / own_median if own_median else None
            note = _sites(values) if kind == "attach_s" else ""
            rows.append(Row(f"{words}: {label}", name, figure, ratio, goals, note))
    if own and any(value["mappings"] for value in own):
        rows.append(Row(f"{words}: mappings added", "kymo", Figure([value["mappings"] for value in own], "")))
    return rows
