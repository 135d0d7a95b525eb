"""Case `conditions`: a breakpoint whose condition is false, and a dprintf, with one thread and with 100."""
import os
import re
import shutil

from . import procs
from .procs import BenchError
from .results import Figure, Goal, Row

THREADS = (1, 100)
MOST_NS = 100
PATIENCE = 300
SETTINGS = ["set confirm off", "set pagination off", "set sysroot /", "set remotetimeout 60"]
IN_PADS, AT_STOPS, NONE = "kymo, in pads", "kymo, at stops", "none"
LOST = r"\((\d+) hits printed faster"


class Kind:
    """What is at the function. `fast` calls are made where nothing stops: a dprintf has a slot for each of them."""
    def __init__(self, name, command, fast, style=()):
        self.name, self.command, self.fast, self.style = name, command, fast, list(style)


class Tracer:
    """Runs gdb on a program; `begin` comes before the breakpoint."""
    def __init__(self, name, begin, is_fast, server=None, missing=None):
        self.name, self.begin, self.is_fast, self.server, self.missing = name, begin, is_fast, server, missing


def kinds(bench):
    many = 200000 if bench.quick else 20000000
    return [
        Kind("false, of a register", "break *hot if $rdi == -1", many),
        Kind("false, of memory", "break *hot if *(long *)$rsp == -1", many),
        Kind("dprintf of a register", 'dprintf *hot,"%ld\\n",$rdi', 20000, ["set dprintf-style agent"]),
    ]


def _missing(program):
    return None if shutil.which(program) else f"{program} is not installed"


def tracers(bench):
    server = os.path.join(os.path.dirname(bench.kymo), "kymo-gdbserver")
    begin = ["tbreak main", "continue"]
    gdb_missing = _missing("gdb")
    server_missing = None if os.access(server, os.X_OK) else f"{server} is not built"
    own_missing = bench.kymo_missing or gdb_missing or server_missing
    return [
        Tracer(NONE, None, True),
        Tracer(IN_PADS, ["monitor set pads 1", *begin], True, server, own_missing),
        Tracer(AT_STOPS, begin, False, server, own_missing),
        Tracer("gdbserver", begin, False, "gdbserver", gdb_missing or _missing("gdbserver")),
        Tracer("gdb", ["tbreak main", "run"], False, None, gdb_missing),
    ]


def calls_of(bench, tracer, kind, threads):
    slow = (100 if bench.quick else 500) if threads > 1 else (300 if bench.quick else 5000)
    return kind.fast if tracer.is_fast else slow


def measure(tracer, kind, program, threads, calls, file):
    """ns of a call: of processor time where nothing stops, else on the clock."""
    words = [program, str(threads), str(calls), file]
    if tracer.begin:
        connect = [f"target remote | {tracer.server} --once stdio {' '.join(words)}"] if tracer.server else []
        style = kind.style if tracer.server else []  # gdb alone prints by itself
        options = [word for command in (*SETTINGS, *style, *connect, *tracer.begin, kind.command, "continue")
                   for word in ("-ex", command)]
        words = ["gdb", "-nx", "-batch", *options, *([program] if tracer.server else ["--args", *words])]
    result = procs.run(words, timeout=PATIENCE, check=False, env={**os.environ, "DEBUGINFOD_URLS": ""})
    try:
        with open(file, encoding="ascii") as figures:
            figure = float(figures.read().split()[tracer.is_fast])
    except (FileNotFoundError, ValueError, IndexError) as error:
        raise BenchError(f"the program has not come to its end: {procs.last_words(str(result.stderr), '')}") from error
    if lost := re.search(LOST, f"{result.stdout}{result.stderr}"):
        raise BenchError(f"{lost[1]} texts are lost, so this is no cost of a text")
    return figure


def run(bench):
    program, trials, chosen = bench.builder.conditions(), {}, bench.select(tracers(bench))

    def one(tracer):
        if tracer.missing:
            raise BenchError(tracer.missing)
        for kind in kinds(bench):
            for threads in THREADS:
                with procs.temporary_directory(bench.output_dir, "conditions") as temporary:
                    calls = calls_of(bench, tracer, kind, threads)
                    figure = measure(tracer, kind, program, threads, calls, f"{temporary}/ns")
                    trials.setdefault((kind.name, threads, tracer.name), []).append(figure)

    bench.round_robin("conditions", chosen, one)
    bench.raw["conditions"] = {f"{kind}, {name}, {threads} threads": values
                               for (kind, threads, name), values in trials.items()}
    return [row for kind in kinds(bench) for threads in THREADS for row in rows_of(kind, threads, chosen, trials)]


def rows_of(kind, threads, chosen, trials):
    """ns of a hit: of a call, less one without a breakpoint."""
    of = {tracer.name: trials[kind.name, threads, tracer.name] for tracer in chosen
          if (kind.name, threads, tracer.name) in trials}
    without = Figure(of[NONE], "ns").median if NONE in of else 0
    hits = {name: Figure([value - (0 if name == NONE else without) for value in values], "ns")
            for name, values in of.items()}
    own = hits[IN_PADS].median if IN_PADS in hits else None
    for name, figure in hits.items():
        goals = [Goal(f"<= {MOST_NS} ns", figure.median, MOST_NS)] if name == IN_PADS else []
        ratio = figure.median / own if own and own > 0 and name != NONE else None
        what = f"{kind.name}, {threads} thread{'s' if threads > 1 else ''}"
        yield Row(f"{what}: a call" if name == NONE else what, name, figure, ratio, goals)
