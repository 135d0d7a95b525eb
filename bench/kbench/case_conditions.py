"""Case `conditions`: a breakpoint whose condition is false, with one thread and with 100."""
import os
import shutil

from . import procs
from .procs import BenchError
from .results import Figure, Goal, Row

THREADS = (1, 100)
MOST_NS = 100
PATIENCE = 300
SETTINGS = ["set confirm off", "set pagination off", "set sysroot /", "set remotetimeout 60"]
BREAK = "break *hot if $rdi == -1"


class Tracer:
    """Runs gdb with these commands on a program; `calls` for one thread, and for many."""
    def __init__(self, name, commands, calls, server=None, missing=None):
        self.name, self.commands, self.calls, self.server, self.missing = name, commands, calls, server, missing


def _missing(program):
    return None if shutil.which(program) else f"{program} is not installed"


def tracers(bench):
    server = os.path.join(os.path.dirname(bench.kymo), "kymo-gdbserver")
    fast, slow = (200000, 200000) if bench.quick else (20000000, 20000000), (300, 100) if bench.quick else (5000, 500)
    begin = ["tbreak main", "continue", BREAK, "continue"]
    own_missing, gdb_missing = bench.kymo_missing or _missing("gdb"), _missing("gdb")
    return [
        Tracer("none", None, fast),
        Tracer("kymo, in pads", ["monitor set pads 1", *begin], fast, server, own_missing),
        Tracer("kymo, at stops", begin, slow, server, own_missing),
        Tracer("gdbserver", begin, slow, "gdbserver", gdb_missing or _missing("gdbserver")),
        Tracer("gdb", ["tbreak main", "run", BREAK, "continue"], slow, None, gdb_missing),
    ]


def measure(tracer, program, threads, file):
    """ns of a call."""
    words = [program, str(threads), str(tracer.calls[threads > 1]), file]
    if tracer.commands:
        connect = [f"target remote | {tracer.server} --once stdio {' '.join(words)}"] if tracer.server else []
        options = [word for command in (*SETTINGS, *connect, *tracer.commands) for word in ("-ex", command)]
        words = ["gdb", "-nx", "-batch", *options, *([program] if tracer.server else ["--args", *words])]
    result = procs.run(words, timeout=PATIENCE, check=False, env={**os.environ, "DEBUGINFOD_URLS": ""})
    try:
        with open(file, encoding="ascii") as figures:
            return float(figures.read())
    except (FileNotFoundError, ValueError) as error:
        raise BenchError(f"the program has not come to its end: {procs.last_words(str(result.stderr), '')}") from error


def run(bench):
    program, trials, chosen = bench.builder.conditions(), {}, bench.select(tracers(bench))

    def one(tracer):
        if tracer.missing:
            raise BenchError(tracer.missing)
        for threads in THREADS:
            with procs.temporary_directory(bench.output_dir, "conditions") as temporary:
                figure = measure(tracer, program, threads, f"{temporary}/ns")
                trials.setdefault((threads, tracer.name), []).append(figure)

    bench.round_robin("conditions", chosen, one)
    bench.raw["conditions"] = {f"{name}, {threads} threads": values for (threads, name), values in trials.items()}
    rows = []
    for threads in THREADS:
        of = {tracer.name: trials[threads, tracer.name] for tracer in chosen if (threads, tracer.name) in trials}
        own = Figure(of["kymo, in pads"], "ns").median if "kymo, in pads" in of else None
        for name, values in of.items():
            figure = Figure(values, "ns")
            goals = [Goal(f"<= {MOST_NS} ns", figure.median, MOST_NS)] if name == "kymo, in pads" else []
            ratio = figure.median / own if own and name != "none" else None
            rows.append(Row(f"a call, {threads} thread{'s' if threads > 1 else ''}", name, figure, ratio, goals))
    return rows
