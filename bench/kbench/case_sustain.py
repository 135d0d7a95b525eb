"""Case `sustain`: two producers and the recorder, on two cores: kept, lost, bytes.

Once the producers never pause, and once they make PACED_PER_S calls a second in all, which is to be kept without loss.
"""
import contextlib
import os

from . import kymo, procs
from .elf import Elf, Text
from .procs import BenchError, Target
from .results import Figure, Goal, Row

PRODUCERS = 2
FUNCTION = "hit_push2"
# Memory a CPU: LTTng's 8 sub-buffers of 4 MiB.
SUBBUF = "4M"
RING_MIB = 32
GOAL_PER_S = 20e6
PACED_PER_S = 20.5e6
GOAL_BYTES = 16.1  # a record, with its part of the headers of packets
# Room that a recording may need, for each second of it.
ROOM_PER_S = 1 << 30


class Kymo:
    def __init__(self, name, bench, options):
        self.name, self._bench, self._options = name, bench, options

    def measure(self, seconds, directory, pace):
        bench, program = self._bench, self._bench.builder.output + "/target"
        spec = f"{kymo.quote(program)}:{FUNCTION} a=%di:s32 b=%si:s64"
        output = f"{directory}/kymo"
        with Target([program, "sustain", seconds, PRODUCERS, "push", 2, pace]) as target, \
                Text(target.pid, Elf(program), [FUNCTION]) as text, \
                kymo.Recorder(bench.kymo, output, [spec], f"{RING_MIB}M", target.pid, *self._options) as recorder:
            recorder.wait_in_place(text)
            calls, elapsed = sustained(target, seconds)
            stop_s = recorder.stop(timeout=120)
            target.leave()
            totals = kymo.packet_totals(output)
            events, lost = kymo.report_totals(bench.kymo, output)
        if lost != totals["lost"]:
            raise BenchError(f"the report tells of {lost} lost events, the packets of {totals['lost']}")
        return {
            "calls": calls, "seconds": elapsed, "events": events, "lost": totals["lost"], "bytes": totals["bytes"],
            "missing": calls - events - totals["lost"], "stop_s": stop_s, "rss": recorder.max_rss
        }


class Lttng:
    name = "LTTng-UST"

    def __init__(self, program, daemon):
        """`daemon`: a function that gives the context of a running Daemon."""
        self._program, self._daemon = program, daemon

    def measure(self, seconds, directory, pace):
        with self._daemon() as daemon, daemon.session(f"{directory}/lttng", SUBBUF) as session, \
                Target([*daemon.prefix, self._program, "sustain", seconds, PRODUCERS, "tp", 2, pace],
                       daemon.env) as target:
            calls, elapsed = sustained(target, seconds)
            consumer = daemon.consumer_pid()
            totals = session.stop()
            rss = procs.vm_hwm_bytes(consumer) if consumer else 0
            target.leave()
        # It counts what it lost. What it kept is the rest.
        return {
            "calls": calls, "seconds": elapsed, "events": calls - totals["lost"], "lost": totals["lost"], "bytes":
            totals["bytes"], "missing": 0, "stop_s": totals["stop_s"], "rss": rss
        }


def sustained(target, seconds):
    for words in target.go(timeout=seconds + 60):
        if words[0] == "sustained":
            return int(words[1]), float(words[2])
    raise BenchError("the target did not say what it did")


def recorders(bench, case, variants, fresh_daemon=False):
    """The available tracers. `variants`: {name: options} of kymo."""
    found = []
    bench.builder.target()
    if bench.kymo_missing:
        bench.unavailable(case, "kymo", bench.kymo_missing)
    else:
        found += [Kymo(name, bench, options) for name, options in variants.items()]
    if not bench.wants(Lttng.name):
        return bench.select(found)
    try:
        program, daemon = bench.builder.lttng_target(), bench.lttng_daemon()
        shared = contextlib.nullcontext
        found.append(Lttng(program, bench.new_lttng_daemon if fresh_daemon else lambda: shared(daemon)))
    except BenchError as error:
        bench.unavailable(case, "LTTng-UST", str(error))
    return bench.select(found)


def check_room(directory, seconds):
    try:
        room = os.statvfs(directory)
    except OSError as error:
        raise BenchError(f"{directory}: {error.strerror}") from error
    if room.f_bavail * room.f_frsize < seconds * ROOM_PER_S:
        raise BenchError(f"{directory}: less than {seconds * ROOM_PER_S >> 30} GiB free")


def run(bench):
    seconds = bench.seconds or (1 if bench.quick else 10)
    variants = {"kymo": [], "kymo --no-rseq": ["--no-rseq"]}
    places = []
    for directory in dict.fromkeys([bench.output_dir, "/dev/shm"]):
        try:
            check_room(directory, seconds)
            places.append(directory)
        except BenchError as error:
            bench.unavailable("sustain", f"all, to {directory}", str(error))
    tracers = recorders(bench, "sustain", variants)
    ways = [(directory, pace) for directory in places for pace in (0, PACED_PER_S)]
    trials = {}

    def one(tracer):
        for directory, pace in ways:
            with procs.temporary_directory(directory, "sustain") as temporary:
                trials.setdefault((directory, pace, tracer.name), []).append(tracer.measure(seconds, temporary, pace))
            # What was removed needs no writing back; what is left shall not disturb the next.
            os.sync()

    bench.round_robin("sustain", tracers, one)
    bench.raw["sustain"] = {
        f"{tracer} to {directory}, pace {pace:.0f}": values for (directory, pace, tracer), values in trials.items()
    }
    names = [tracer.name for tracer in tracers]
    return [row for place, pace in ways for row in _rows(place, pace, names, trials, seconds)]


def _rows(directory, pace, names, trials, seconds):
    where = ("tmpfs" if directory == "/dev/shm" else "disk") + (f", of {pace / 1e6:g} M/s" if pace else ", no pause")
    kept, lost, size, rates = [], [], [], {}
    for name in names:
        values = trials.get((directory, pace, name))
        if values:
            rates[name] = Figure([v["events"] / v["seconds"] / 1e6 for v in values], "M events/s")
    own, peer = rates.get("kymo"), rates.get("LTTng-UST")
    for name, figure in rates.items():
        values = trials[directory, pace, name]
        ratio = figure.median / own.median if own and own.median else None
        goals = [Goal(">= 20 M/s", figure.median, GOAL_PER_S / 1e6, at_least=True)] if name == "kymo" and pace else []
        if name == "kymo" and peer:
            goals.append(Goal("> LTTng", figure.median, peer.median, at_least=True))
        missing = max(abs(v["missing"]) for v in values)
        note = f"kept + lost differ from the calls by up to {missing:,}" if missing else ""
        kept.append(Row(f"kept, {seconds} s to {where}", name, figure, ratio, goals, note))
        share = Figure([100 * v["lost"] / v["calls"] for v in values], "% lost")
        goals = [Goal("0 lost", max(v["lost"] for v in values), 0)] if name == "kymo" and pace else []
        lost.append(Row(f"lost, {seconds} s to {where}", name, share, None, goals))
        per_event = Figure([v["bytes"] / max(1, v["events"]) for v in values], "bytes/event")
        # Packet headers are some 80 bytes for megabytes of records.
        goals = [Goal(f"<= {GOAL_BYTES}", round(per_event.median, 1), GOAL_BYTES)] if name == "kymo" else []
        note = "thread id in it" if name.startswith("kymo") else "no thread id"
        size.append(Row(f"size, {seconds} s to {where}", name, per_event, None, goals, note))
    return kept + lost + size
