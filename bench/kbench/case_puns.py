"""Case `puns`: ns a hit of an instruction, by the tactic that its probe takes."""
from . import kymo
from .loops import FAST, Kymo, Measured, Tracer, ratio, tactics_of
from .results import Goal, Row

# The shapes of sites.c, and what `kymo status` calls the tactic.
TACTICS = {"jump": "jump", "group": "group", "pun": "pun", "prefixed": "prefixed pun", "evicted": "evicted successor"}
THREADS = (1, 2)
SITE_OFFSET = 10
ARGUMENTS = "a=%di:s32 b=%si:s64"
# A pun goes through one jump more, to the trampoline and to the pad.
GOAL_OF_JUMP = 1.2
GOAL_NS = 30


class Sites(Kymo):
    def __init__(self, bench, name, program, words):
        place = f"{kymo.quote(program)}:hit_"
        probes = [f"{place}{shape}+{SITE_OFFSET} {ARGUMENTS}" for shape in TACTICS]
        super().__init__(name, program, dict.fromkeys(TACTICS, FAST), bench.kymo, probes,
                         [f"hit_{shape}" for shape in TACTICS], offset=SITE_OFFSET, words=words)

    def read_tactics(self, pid):
        return tactics_of(self._binary, pid)

    def shows(self, shape, outcome):
        return _tactic(shape, outcome) == TACTICS[shape]


def run(bench):
    program = bench.builder.sites()
    tracers = [Tracer("none", program, dict.fromkeys(TACTICS, FAST))]
    if bench.kymo_missing:
        bench.unavailable("puns", "kymo", bench.kymo_missing)
    else:
        tracers += [Sites(bench, "kymo", program, []), Sites(bench, "kymo --no-rseq", program, ["--no-rseq"])]
    measured = Measured(bench, "puns", tracers, THREADS)
    for name, outcomes in measured.outcomes.items():
        for shape in TACTICS if outcomes[0] else ():
            if (name, shape, 2, THREADS[0]) not in measured.figures:
                bench.unavailable("puns", f"{name}, {TACTICS[shape]}", _note(measured, name, shape))
    return _rows(measured)


def _tactic(shape, outcome):
    """What the probe of this shape took in a trial."""
    return next((tactic for name, tactic in outcome["tactics"].items() if f"hit_{shape}+" in name), None)


def _note(measured, name, shape):
    """Trials are left out in which something lay where the pun would have led."""
    others = [_tactic(shape, outcome) for outcome in measured.outcomes[name]]
    others = [tactic or "nothing" for tactic in others if tactic != TACTICS[shape]]
    left_out = f"{len(others)} trials took {' or '.join(sorted(set(others)))}" if others else ""
    return ", ".join(filter(None, [left_out, measured.note(name)]))


def _rows(measured):
    rows = []
    for name in ("kymo", "kymo --no-rseq"):
        void = measured.void(name)
        for n_threads in THREADS:
            jump = measured.net((name, "jump", 2, n_threads))
            for shape, tactic in TACTICS.items():
                figure = measured.net((name, shape, 2, n_threads))
                if not figure:
                    continue
                goals = []
                if name == "kymo":
                    goals.append(Goal(f"<= {GOAL_NS} ns", figure.median, GOAL_NS, void=void))
                if shape == "pun" and jump:
                    goals.append(Goal(f"<= {GOAL_OF_JUMP} x jump", figure.median / jump.median, GOAL_OF_JUMP,
                                      void=void))
                own = measured.net(("kymo", shape, 2, n_threads))
                rows.append(
                    Row(f"an instruction by {tactic}, 2 args, {n_threads} thr", name, figure, ratio(figure, own), goals,
                        _note(measured, name, shape)))
    return sorted(rows, key=lambda row: (row.what[-5:], list(TACTICS.values()).index(row.what[18:].split(",")[0])))
