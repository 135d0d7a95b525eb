"""Case `branches`: how much slower code is whose branches are recorded, by function clones and by the compiler."""
import math
import os

from . import procs
from .procs import BenchError
from .results import Figure, Goal, Row

GOAL = 1.5
CLONES = "kymo, function clones"
MEAN = "geometric mean"


class Tracer:
    """A program, and what is in front of its command line; `DIR` is a directory that is there for one trial."""
    def __init__(self, name, program, argv=(), missing=None):
        self.name, self.program, self.argv, self.missing = name, program, argv, missing


def tracers(bench):
    plain, traced = bench.builder.branches()
    record = (bench.kymo, "record", "-q", "-b", "all", "--branch-source", "clones", "-o", "DIR/trace", "--")
    return [
        Tracer("none", plain),
        Tracer(CLONES, plain, record, bench.kymo_missing),
        Tracer("gcc, -fsanitize-coverage=trace-pc", traced),
    ]


def measure(tracer, bench):
    """ns of a call, by kernel."""
    with procs.temporary_directory(bench.output_dir, "branches") as directory:
        file = os.path.join(directory, "ns")
        argv = [word.replace("DIR", directory) for word in tracer.argv]
        procs.run([*argv, tracer.program, file, "5" if bench.quick else "31"], timeout=120)
        with open(file, encoding="ascii") as lines:
            return {name: float(ns) for name, ns in (line.rstrip("\n").split("\t") for line in lines)}


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def run(bench):
    bare, trials, chosen = [], {}, bench.select(tracers(bench))

    def one(tracer):
        if tracer.missing:
            raise BenchError(tracer.missing)
        found = measure(tracer, bench)
        if tracer.name == "none":
            bare.append(found)
            return
        slower = {kernel: found[kernel] / bare[-1][kernel] for kernel in found}
        for kernel, value in {**slower, MEAN: geometric_mean(slower.values())}.items():
            trials.setdefault(kernel, {}).setdefault(tracer.name, []).append(value)

    bench.round_robin("branches", chosen, one)
    bench.raw["branches"] = {"none, ns": bare, "slower": trials}
    rows = []
    for kernel, by_tracer in trials.items():
        own = Figure(by_tracer[CLONES], "x").median if CLONES in by_tracer else None
        for name, values in by_tracer.items():
            figure = Figure(values, "x")
            goals = [Goal(f"<= {GOAL}", figure.median, GOAL)] if (kernel, name) == (MEAN, CLONES) else []
            rows.append(Row(kernel, name, figure, figure.median / own if own else None, goals))
    return rows
