"""Case `many`: ns a hit while few or many other probes, and few or many other threads, are in the process."""
from . import kymo
from .loops import FAST, Kymo, Measured, Tracer
from .results import Goal, Row

FUNCTION, SHAPE = "hit_push2", "push"
LOOPS = {"push2": FAST}
THREADS = (1, 2)
# Words, functions of the library beside the one that is called, idle threads.
SCENES = [("1 probe, no idle threads", None, 0), ("100 probes", "hundred_*", 0), ("10,000 probes", "tenk_*", 0),
          ("1 probe, 100 idle threads", None, 100), ("10,000 probes, 100 idle threads", "tenk_*", 100)]
# Independent: what runs in a trial and what in the next differ by more than this.
GOAL_OF_ONE = 1.15
ARGUMENTS = "a=%di:s32 b=%si:s64"


def _name(words):
    return f"kymo, {words}"


def run(bench):
    program, library = bench.builder.target(), bench.builder.many()
    env = {"LD_PRELOAD": library}
    bare = Tracer("none", program, LOOPS)
    bare.env = env
    tracers = [bare]
    if bench.kymo_missing:
        bench.unavailable("many", "kymo", bench.kymo_missing)
    else:
        for words, pattern, n_idle in SCENES:
            probes = [f"{kymo.quote(program)}:{FUNCTION} {ARGUMENTS}"]
            probes += [f"{kymo.quote(library)}:{pattern} {ARGUMENTS}"] if pattern else []
            tracers.append(
                Kymo(_name(words), program, LOOPS, bench.kymo, probes, [FUNCTION], env=env, idle_threads=n_idle))
    return _rows(Measured(bench, "many", tracers, THREADS))


def _rows(measured):
    rows = []
    for n_threads in THREADS:
        key = (SHAPE, 2, n_threads)
        one = measured.net((_name(SCENES[0][0]), *key))
        for words, *_ in SCENES:
            name = _name(words)
            figure, goals, note = measured.net((name, *key)), [], measured.note(name)
            if not figure:
                continue
            if one and one.median > 0 and words != SCENES[0][0]:
                multiple = figure.median / one.median
                void = measured.void(name) or measured.void(_name(SCENES[0][0]))
                goals = [Goal(f"<= {GOAL_OF_ONE} x the first", multiple, GOAL_OF_ONE, void=void)]
                note = ", ".join(filter(None, [f"{multiple:.2f} x", note]))
            rows.append(Row(f"entry push %rbp, 2 args, {n_threads} thr", name, figure, None, goals, note))
    return rows
