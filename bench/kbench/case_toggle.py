"""Case `toggle`: us a site to turn markers on and off, one and 1,000: in the process, and with its threads stopped."""
from . import kymo, procs
from .case_attach import held
from .elf import Elf, Text
from .procs import BenchError, Target
from .results import Figure, Row

NAMES = ("toggle_one", "toggle_many")
RUNNERS = 1
THREADS = 4
ROUNDS, QUICK_ROUNDS = 50, 5


class InProcess:
    """libkymo-marker connects an empty probe and disconnects it while a thread runs through all sites."""

    name = "kymo_marker_set_probe, _disable_probe"

    def __init__(self, program, rounds):
        self._program, self._rounds = program, rounds

    def measure(self, library, n_sites, _temporary):
        with Target([self._program, library, RUNNERS, self._rounds]) as target:
            lines = target.go(timeout=300)
            status, words = target.leave()
            if status:
                raise BenchError(f"toggle: {procs.last_words(words, status)}")
        times = {line[1]: (int(line[2]), int(line[3])) for line in lines if line[0] == "toggled"}
        return {
            name: {"on": times[name][0] / n_sites[name] / 1e3, "off": times[name][1] / n_sites[name] / 1e3}
            for name in NAMES
        }


class Outside:
    """`kymo record -m` of a process with some threads: from its start to the last change, and as long as they are
    stopped."""

    name = "kymo record -m"

    def __init__(self, program, binary):
        self._program, self._binary = program, binary

    def measure(self, library, n_sites, temporary):
        return {name: self._measure(library, name, n_sites[name], f"{temporary}/{name}") for name in NAMES}

    def _measure(self, library, name, n, directory):
        elf = Elf(library)
        with Target([self._program, library, THREADS]) as target, \
                Text(target.pid, elf, (), sites=elf.sites[name]) as text:
            with held(target) as baseline:
                procs.wait_until(lambda: False, 1, 0.1)
            with kymo.Recorder(self._binary, directory, [("-m", name)], "1M", target.pid) as recorder:
                with held(target) as on_gaps:
                    on_s, changed = recorder.wait_in_place(text)
                if changed != n:
                    raise BenchError(f"kymo record -m has turned on {changed} of {n} sites")
                with held(target) as off_gaps:
                    off_s = recorder.stop()
            if text.changed():
                raise BenchError("sites are not as they were after kymo has ended")
            status, words = target.leave()
            if status:
                raise BenchError(f"the program that was recorded failed: {procs.last_words(words, status)}")
        stopped = [max(0, gaps["blocked"] - baseline["blocked"]) / 1e3 / n for gaps in (on_gaps, off_gaps)]
        return {"on": on_s * 1e6 / n, "off": off_s * 1e6 / n, "on, stopped": stopped[0], "off, stopped": stopped[1]}


def run(bench):
    library = bench.builder.toggled()
    elf = Elf(library)
    n_sites = {name: len(elf.sites[name]) for name in NAMES}
    tracers, trials = [], {}
    if bench.kymo_missing:
        bench.unavailable("toggle", "kymo", bench.kymo_missing)
        return []
    try:
        tracers.append(InProcess(bench.builder.toggle(bench.kymo), QUICK_ROUNDS if bench.quick else ROUNDS))
    except BenchError as error:
        bench.unavailable("toggle", InProcess.name, str(error))
    tracers.append(Outside(bench.builder.attach_target(), bench.kymo))

    def one(tracer):
        with procs.temporary_directory(bench.output_dir, "toggle") as temporary:
            trials.setdefault(tracer.name, []).append(tracer.measure(library, n_sites, temporary))

    bench.round_robin("toggle", tracers, one)
    bench.raw["toggle"] = trials
    return _rows(trials, n_sites)


def _rows(trials, n_sites):
    rows = []
    for name in NAMES:
        n = n_sites[name]
        for way in ("on", "off"):
            what = f"{n:,} site{'s' if n > 1 else ''} {way}, a site"
            own = None
            for tracer, values in trials.items():
                for kind, words in ((way, tracer), (f"{way}, stopped", f"{tracer}: threads stopped")):
                    if kind not in values[0][name]:
                        continue
                    figure = Figure([value[name][kind] for value in values], "us")
                    own = own or figure
                    rows.append(Row(what, words, figure, figure.median / own.median if own.median else None))
    return rows
