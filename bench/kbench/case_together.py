"""Case `together`: ns a hit of a function's entry that several recordings have at once."""
from . import kymo
from .loops import FAST, Kymo, Measured, Tracer
from .results import Goal, Row

FUNCTION, SHAPE = "hit_push2", "push"
LOOPS = {"push2": FAST}
THREADS = (1, 2)
# Recordings at the place.
NUMBERS = (1, 2, 3)
# Two of them cost at most so much of one.
GOAL_OF_ONE = 1.8


def _name(number, words):
    return " ".join([f"kymo, {number} recording{'s' if number > 1 else ''}", *words])


def run(bench):
    program = bench.builder.target()
    tracers = [Tracer("none", program, LOOPS)]
    if bench.kymo_missing:
        bench.unavailable("together", "kymo", bench.kymo_missing)
    else:
        probe = f"{kymo.quote(program)}:{FUNCTION} a=%di:s32 b=%si:s64"
        tracers += [
            Kymo(_name(number, words), program, LOOPS, bench.kymo, [probe], [FUNCTION], recordings=number, words=words)
            for words in ([], ["--no-rseq"]) for number in NUMBERS
        ]
    return _rows(Measured(bench, "together", tracers, THREADS))


def _rows(measured):
    rows = []
    for n_threads in THREADS:
        key = (SHAPE, 2, n_threads)
        for words in ([], ["--no-rseq"]):
            one = measured.net((_name(1, words), *key))
            for number in NUMBERS:
                name = _name(number, words)
                figure, goals, note = measured.net((name, *key)), [], measured.note(name)
                if not figure:
                    continue
                multiple = figure.median / one.median if one and one.median > 0 else None
                if number > 1 and multiple:
                    void = measured.void(name) or measured.void(_name(1, words))
                    note = ", ".join(filter(None, [f"{multiple:.2f} x one", note]))
                    if number == 2:
                        goals = [Goal(f"<= {GOAL_OF_ONE} x one", multiple, GOAL_OF_ONE, void=void)]
                rows.append(Row(f"entry push %rbp, 2 args, {n_threads} thr", name, figure, None, goals, note))
    return rows
