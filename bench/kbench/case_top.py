"""Case `top`: what a live view of a million hits a second takes of a CPU, in the process that shows it."""
import os
import re

from . import procs
from .results import Figure, Goal, Row

ASKED = {
    "count by a key": ("--count", "{}:hit by (int)arg0"),
    "histogram": ("--hist", "{}:hit arg1"),
}
GOAL_PART = 5


def _measure(bench, program, option, words, seconds):
    """CPU time of the process that looks, as a part of one CPU; hits that it says were lost."""
    target = procs.spawn([program, str(seconds + 30)], stdin=procs.subprocess.DEVNULL, stdout=procs.subprocess.DEVNULL)
    argv = [bench.kymo, "top", "--for", str(seconds), option, words.format(program), "--pid", str(target.pid)]
    process = procs.spawn(argv, stdin=procs.subprocess.DEVNULL, stdout=procs.subprocess.PIPE,
                          stderr=procs.subprocess.STDOUT, text=True)
    try:
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    finally:
        procs.end(process)
        procs.end(target)
    hits = re.findall(r"([\d,]+) hits", out)
    if process.returncode or not hits:
        raise procs.BenchError(f"{procs.describe(argv)}: {procs.last_words(out, process.returncode)}")
    lost = re.search(r"^kymo: ([\d,]+) hits? (was|were) lost", out, re.M)
    return 100 * (usage.ru_utime + usage.ru_stime) / seconds, lost[1] if lost else "none"


def run(bench):
    if bench.kymo_missing:
        bench.unavailable("top", "kymo", bench.kymo_missing)
        return []
    program, seconds = bench.builder.paced(), 3 if bench.quick else 10
    rows = []
    for what, (option, words) in ASKED.items():
        trials = [_measure(bench, program, option, words, seconds) for _ in range(bench.trials)]
        figure = Figure([part for part, _ in trials], "% of a CPU")
        lost = ", ".join(sorted({lost for _, lost in trials}))
        rows.append(Row(f"{what}, 1 M hits/s", "kymo top", figure, None,
                        [Goal(f"<= {GOAL_PART} %", figure.median, GOAL_PART)], f"lost: {lost}"))
    return rows
