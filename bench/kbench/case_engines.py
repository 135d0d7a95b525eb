"""Case `engines`: attaching to a program with many threads, leaving it, and the memory of its tracer."""
import os
import signal
import subprocess
import time

from . import procs
from .procs import BenchError
from .results import Figure, Goal, Row

THREADS = (1, 3000)
MOST_MS, MOST_KIB = 150, 2
PATIENCE = 60


class Tracer:
    """Attaches with `words` and the process id."""
    def __init__(self, name, words, missing=None):
        self.name, self.words, self.missing = name, words, missing


def tracers(bench):
    return [
        Tracer("kymo syscalls", [bench.kymo, "syscalls", "-f", "--pid"], bench.kymo_missing),
        Tracer("strace", ["strace", "-q", "-f", "-p"])
    ]


def _tracer_of(pid, tid):
    with open(f"/proc/{pid}/task/{tid}/status", encoding="ascii", errors="replace") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("TracerPid:"))


def _untraced(pid):
    return sum(not _tracer_of(pid, tid) for tid in os.listdir(f"/proc/{pid}/task"))


def measure(tracer, target, file):
    """{attach, detach: ms; memory: KiB}. Threads are taken in the order of their ids, so the last one is looked at."""
    last = max(map(int, os.listdir(f"/proc/{target.pid}/task")))
    begin = time.monotonic()
    process = procs.spawn([*tracer.words, target.pid, "-o", file], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        who = procs.wait_until(lambda: _tracer_of(target.pid, last), PATIENCE, 0.0005)
        attached = time.monotonic()
        if not who or _untraced(target.pid):
            raise BenchError(f"has not attached to all threads within {PATIENCE} s")
        time.sleep(0.3)  # what is put off until threads run is done
        memory = procs.vm_hwm_bytes(who)
        leaving = time.monotonic()
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE)
        left = time.monotonic()
        if _untraced(target.pid) != len(os.listdir(f"/proc/{target.pid}/task")):
            raise BenchError("has ended, and threads are still traced")
    finally:
        procs.end(process)
    return {"attach": (attached - begin) * 1e3, "detach": (left - leaving) * 1e3, "memory": memory / 1024}


def _rows(what, unit, per_tracer, goals):
    own = per_tracer.get("kymo syscalls")
    return [
        Row(what, name, Figure(values, unit),
            Figure(values, unit).median / Figure(own, unit).median if own else None,
            goals(Figure(values, unit)) if name == "kymo syscalls" else []) for name, values in per_tracer.items()
    ]


def _memory_of_a_thread(trials, names):
    few, many = THREADS
    return {
        name: [(b["memory"] - a["memory"]) / (many - few) for a, b in zip(trials[few, name], trials[many, name])]
        for name in names if (few, name) in trials and (many, name) in trials
    }


def run(bench):
    program = bench.builder.calls()
    chosen, trials = bench.select(tracers(bench)), {}

    def one(tracer):
        if tracer.missing:
            raise BenchError(tracer.missing)
        for threads in THREADS:
            with procs.temporary_directory(bench.output_dir, "engines") as temporary, procs.Target([program,
                                                                                                    threads]) as target:
                figures = measure(tracer, target, f"{temporary}/calls")
                trials.setdefault((threads, tracer.name), []).append(figures)
                target.leave()

    bench.round_robin("engines", chosen, one)
    bench.raw["engines"] = {f"{name}, {threads} threads": values for (threads, name), values in trials.items()}
    rows = []
    for threads in THREADS:
        of = {tracer.name: trials[threads, tracer.name] for tracer in chosen if (threads, tracer.name) in trials}
        for step, goal in (("attach", MOST_MS), ("detach", None)):

            def goals(figure, goal=goal):
                return [Goal(f"<= {goal} ms", figure.median, goal)] if goal and threads > 1 else []

            rows += _rows(f"{step}, {threads:,} threads", "ms",
                          {name: [value[step] for value in values] for name, values in of.items()}, goals)
    rows += _rows("memory of a thread", "KiB", _memory_of_a_thread(trials, [tracer.name for tracer in chosen]),
                  lambda figure: [Goal(f"<= {MOST_KIB} KiB", figure.median, MOST_KIB)])
    return rows
