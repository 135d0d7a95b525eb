"""Loops of calls, timed with each tracer and without one: what the cases share that measure the cost of an event."""
import contextlib
import json

from . import kymo, procs
from .elf import Elf, Text
from .procs import BenchError, Target
from .results import Figure

PAUSE_US = 5000
# Calls a round, so that a round stays within tens of milliseconds: for tracers in the process.
FAST = 50_000
# Memory a CPU, the same for all that have rings of a fixed size.
RING_MIB = 8


class Tracer:
    """Knows how to trace one trial; this one does not trace.

    `shapes`: calls a round for each kind of loop ("push2": with 2 arguments only); `base`: the tracer and shape whose
    figure is subtracted (shape None: the same shape).
    """
    def __init__(self, name, program, shapes, base=("none", None)):
        self.name, self.program, self.shapes, self.base = name, program, shapes, base

    prefix, env = (), {}
    only_args = (0, 2, 6)
    idle_threads = 0

    @contextlib.contextmanager
    def session(self, _temporary):
        yield

    @contextlib.contextmanager
    def tracing(self, _target, _temporary):
        """The target is traced inside of this."""
        yield

    def finish(self, _calls, _temporary, _words):
        """{"lost": events, ...} after the trial; `_words`: what was written on stderr."""
        return {}

    def shows(self, _shape, _outcome):
        """Whether the trial has measured what its loop of this shape is for."""
        return True


class Kymo(Tracer):
    """`recordings` recorders one after the other, each with all of `probes`: (option, specification).

    `sites`: names of functions, all of which have changed at `offset` when the probes are in; or what gives, from an
    Elf, the offsets in the file that have. `events_a_call`: of one recording.
    """
    def __init__(self, name, program, shapes, binary, probes, sites, **options):
        super().__init__(name, program, shapes, options.pop("base", ("none", None)))
        self._binary, self._probes, self._sites = binary, probes, sites
        self._words = options.pop("words", [])
        self._offset = options.pop("offset", 0)
        self._events_a_call = options.pop("events_a_call", 1)
        self._recordings = options.pop("recordings", 1)
        self.tactics = {}
        for key, value in options.items():
            setattr(self, key, value)

    @contextlib.contextmanager
    def tracing(self, target, temporary):
        recorders = []
        with contextlib.ExitStack() as stack:
            text = stack.enter_context(self._text(target.pid, Elf(self.program)))
            for number in range(self._recordings):
                recorder = kymo.Recorder(self._binary, f"{temporary}/kymo{number}", self._probes, f"{RING_MIB}M",
                                         target.pid, *self._words)
                recorders.append(stack.enter_context(recorder))
                if number:
                    recorder.wait_until_it_records()
                    continue
                _, n = recorder.wait_in_place(text)
                if n != text.n_sites:
                    raise BenchError(f"kymo record put in {n} of {text.n_sites} probes")
            self.tactics = self.read_tactics(target.pid)
            yield
            for recorder in recorders:
                recorder.stop()

    def _text(self, pid, elf):
        if callable(self._sites):
            return Text(pid, elf, (), sites=self._sites(elf))
        return Text(pid, elf, self._sites, self._offset)

    def read_tactics(self, _pid):
        return {}

    def finish(self, calls, temporary, _words):
        totals = [kymo.report_totals(self._binary, f"{temporary}/kymo{n}") for n in range(self._recordings)]
        events, lost = sum(total[0] for total in totals), sum(total[1] for total in totals)
        expected = calls * self._events_a_call * self._recordings
        return {"events": events, "lost": lost, "missing": expected - events - lost, "tactics": self.tactics}


def tactics_of(binary, pid):
    """{name of the probe's event: tactic} of all sites that kymo has in process `pid`."""
    out = procs.run([binary, "status", "--json", pid]).stdout
    try:
        return {site["name"]: site["tactic"] for status in json.loads(out) for site in status["sites"]}
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"kymo status --json: not understood ({error!r})") from error


def trial(bench, tracer, rounds, threads):
    """{(shape, args, threads): ns of a call}, and what became of the events."""
    shapes = [f"{shape}={calls}" for shape, calls in tracer.shapes.items()]
    if tracer.idle_threads:
        shapes.append(f"idle={tracer.idle_threads}")
    with procs.temporary_directory(bench.output_dir, "event") as temporary, tracer.session(temporary):
        argv = [*tracer.prefix, tracer.program, "event", rounds, PAUSE_US, ",".join(map(str, threads)), *shapes]
        with Target(argv, tracer.env) as target:
            with tracer.tracing(target, temporary):
                lines = target.go(timeout=120)
            status, words = target.leave()
            if status:
                raise BenchError(f"{procs.describe(argv)}: {procs.last_words(words, status)}")
        samples, calls = {}, 0
        for line in lines:
            if line[0] == "calls":
                calls += int(line[1])
            elif line[0] == "sample":
                calls += int(line[4])
                if int(line[2]) in tracer.only_args:
                    samples[line[1], int(line[2]), int(line[3])] = float(line[5])
        return samples, tracer.finish(calls, temporary, words)


class Measured:
    """What the trials of a case have given: `tracers` by name."""
    def __init__(self, bench, case, tracers, threads):
        """Run them all, in turn."""
        tracers = bench.select(tracers)
        bases = {tracer.base[0] for tracer in tracers if not tracer.name.startswith("none")}
        tracers = [tracer for tracer in tracers if tracer.name in bases or not tracer.name.startswith("none")]
        self.tracers = {tracer.name: tracer for tracer in tracers}
        self.figures, self.outcomes = {}, {}
        rounds = 5 if bench.quick else 16

        def one(tracer):
            samples, outcome = trial(bench, tracer, rounds, threads)
            for key, ns in samples.items():
                if tracer.shows(key[0], outcome):
                    self.figures.setdefault((tracer.name, *key), []).append(ns)
            self.outcomes.setdefault(tracer.name, []).append(outcome)

        bench.round_robin(case, tracers, one)
        bench.raw[case] = {
            "ns": {" ".join(map(str, key)): values for key, values in self.figures.items()}, "outcomes": self.outcomes
        }

    def net(self, key):
        """The figure of `key` (tracer, shape, args, threads) without its baseline, or None."""
        values = self.figures.get(key)
        if not values:
            return None
        tracer, shape, n_args, n_threads = key
        base_tracer, base_shape = self.tracers[tracer].base
        # LTTng's empty loop is one for all numbers of arguments.
        base = self.figures.get((base_tracer, base_shape or shape, 2 if base_shape else n_args, n_threads))
        return Figure(values, "ns").minus(Figure(base, "ns").median) if base else None

    def note(self, tracer):
        """What was lost or not counted, in words."""
        lost = max((outcome.get("lost", 0) for outcome in self.outcomes.get(tracer, [])), default=0)
        missing = max((abs(outcome.get("missing", 0)) for outcome in self.outcomes.get(tracer, [])), default=0)
        notes = [f"lost up to {lost:,} events a trial"] if lost else []
        notes += [f"count differs from the calls by up to {missing:,}"] if missing else []
        return ", ".join(notes)

    def void(self, tracer):
        """Why `tracer`'s times are not those of recording, if so. A lost event costs less than one that is kept."""
        return "counts are not whole" if self.note(tracer) else ""


def ratio(figure, own):
    """How often `own` fits into `figure`; None where that says nothing."""
    return figure.median / own.median if figure and own and own.median > 0 else None
