"""Case `flood`: what recordings that do more keep of producers that never pause.

No producer waits: the calls a second of all rows are alike. What is not kept is counted: kept, lost and left out are
the calls.
"""
import json

from . import kymo, procs
from .case_sustain import FUNCTION, PRODUCERS, RING_MIB, check_room, sustained
from .elf import Elf, Text
from .results import Figure, Goal, Row

VALUES = "a=%di:s32 b=%si:s64"
# The words after FILE:FUNCTION, or of an aggregation; the part of the calls that is wanted.
ASKED = {
    "kymo": (["-p"], f" {VALUES}", 1),
    "kymo, filter, a quarter true": (["-p"], f" /arg0 % 4 == 0/ {VALUES}", 1 / 4),
    "kymo, filter, none true": (["-p"], f" /arg1 == -77/ {VALUES}", 0),
    "kymo, count by a key": (["--count"], " by (int)arg0 & 1023", 1),
    "kymo, histogram": (["--hist"], " arg1", 1),
    "kymo, 512 bytes of the stack": (["--stack-size", "512", "--stack", "-p"], "", 1),
    "kymo, 16 frames by frame pointers": (["--frame-pointers", "--stack=16", "-p"], "", 1),
}


def _kept(bench, directory):
    """(events or hits, lost), as the report tells them."""
    report = json.loads(procs.run([bench.kymo, "report", "--json", directory], timeout=300).stdout)
    tables = report["aggregations"]
    hits = tables[0]["hits"] + tables[0]["lost"] if tables else int(report["events"])
    return hits, int(report["lost_events"])


def _measure(bench, name, seconds, directory):
    program, output = bench.builder.output + "/target", f"{directory}/kymo"
    options, words, part = ASKED[name]
    specs = [[*options, f"{kymo.quote(program)}:{FUNCTION}{words}"]]
    with procs.Target([program, "sustain", seconds, PRODUCERS, "push", 2, 0]) as target, \
            Text(target.pid, Elf(program), [FUNCTION]) as text, \
            kymo.Recorder(bench.kymo, output, specs, f"{RING_MIB}M", target.pid) as recorder:
        recorder.wait_in_place(text)
        calls, elapsed = sustained(target, seconds)
        recorder.stop(timeout=120)
        target.leave()
    kept, lost = _kept(bench, output)
    return {"calls": calls, "seconds": elapsed, "kept": kept, "lost": lost, "missing": calls * part - kept - lost}


def run(bench):
    if bench.kymo_missing:
        bench.unavailable("flood", "kymo", bench.kymo_missing)
        return []
    seconds = bench.seconds or (1 if bench.quick else 4)
    bench.builder.target()
    check_room(bench.output_dir, seconds)
    trials = {}
    for _ in range(bench.trials):
        for name in ASKED:
            with procs.temporary_directory(bench.output_dir, "flood") as temporary:
                trials.setdefault(name, []).append(_measure(bench, name, seconds, temporary))
    bench.raw["flood"] = trials
    return [row for name, values in trials.items() for row in _rows(name, values, seconds)]


def _rows(name, values, seconds):
    what = f"{seconds} s without a pause"
    missing = max(abs(value["missing"]) for value in values)
    return [
        Row(f"calls, {what}", name, Figure([v["calls"] / v["seconds"] / 1e6 for v in values], "M calls/s"), None,
            [Goal("all kept, lost or left out", missing, 0)]),
        Row(f"kept, {what}", name, Figure([v["kept"] / v["seconds"] / 1e6 for v in values], "M/s")),
        Row(f"lost, {what}", name, Figure([100 * v["lost"] / v["calls"] for v in values], "% of the calls")),
    ]
