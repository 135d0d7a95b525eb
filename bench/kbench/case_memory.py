"""Case `memory`: the most that the recorder has resident, over a short and a long recording."""
import os

from . import case_sustain, procs
from .results import Figure, Goal, Row

MIB = 1 << 20
GOAL_EXTRA_MIB = 32


def possible_cpus():
    """CPUs that the kernel reckons with: each has a ring."""
    try:
        with open("/sys/devices/system/cpu/possible", encoding="ascii") as file:
            return int(file.read().strip().split("-")[-1].split(",")[-1]) + 1
    except (OSError, ValueError):
        return os.cpu_count()


def run(bench):
    lengths = (1, 3) if bench.quick else (2, 10)
    case_sustain.check_room(bench.output_dir, max(lengths))
    tracers = case_sustain.recorders(bench, "memory", {"kymo": []}, fresh_daemon=True)
    trials = {}

    def one(tracer):
        for seconds in lengths:
            with procs.temporary_directory(bench.output_dir, "memory") as temporary:
                trials.setdefault((seconds, tracer.name), []).append(tracer.measure(seconds, temporary, 0))
            os.sync()

    bench.round_robin("memory", tracers, one)
    bench.raw["memory"] = {f"{tracer}, {seconds} s": values for (seconds, tracer), values in trials.items()}
    rings = case_sustain.RING_MIB * possible_cpus()
    rows = []
    for seconds in lengths:
        own = trials.get((seconds, "kymo"))
        for tracer in tracers:
            values = trials.get((seconds, tracer.name))
            if not values:
                continue
            figure = Figure([value["rss"] / MIB for value in values], "MiB")
            ratio = figure.median / Figure([v["rss"] / MIB for v in own], "MiB").median if own else None
            limit = rings + GOAL_EXTRA_MIB
            goals = [Goal(f"<= {limit} MiB", figure.median, limit)] if tracer.name == "kymo" else []
            rows.append(Row(f"most resident, {seconds} s", tracer.name, figure, ratio, goals, f"rings {rings} MiB"))
    return rows
