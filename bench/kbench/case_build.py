"""Case `build`: a small Debian package, built with `make -j2`: hundreds of short programs, and compilers that have
much to do."""
import glob
import os
import shutil
import signal
import time

from . import procs
from .case_start import Starter
from .results import Figure, Goal, Row

PACKAGE = "hello"
MIRROR = "http://deb.debian.org/debian"
GOAL = 1.15
GOALS_FOR = ("kymo record -p", "kymo record -s")
LONGEST_S = 600
OWN_ROOMS = ("base", "wire", "ctf", "syscall")


def tracers_of(bench):
    cache = os.path.join(bench.output_dir, "cache")
    os.makedirs(cache, mode=0o700, exist_ok=True)
    record = (bench.kymo, "record", "--follow", "-o", "DIR/trace")
    everything = [
        Starter("none"),
        Starter("kymo record -p", *record, "-p", "libc:malloc", "--", env={"KYMO_CACHE": cache}),
        Starter("kymo record -s", *record, "-s", "%file", "--", env={"KYMO_CACHE": cache}),
        Starter("strace -f", "strace", "-f", "-e", "trace=%file", "-o", "DIR/lines"),
        Starter("perf trace", "perf", "trace", "-o", "DIR/lines"),
        Starter("uftrace", "uftrace", "record", "--force", "-d", "DIR/trace"),
    ]
    there = []
    for tracer in everything:
        if tracer.argv and not shutil.which(tracer.argv[0]):
            bench.unavailable("build", tracer.name, f"no {os.path.basename(tracer.argv[0])}")
        else:
            there.append(tracer)
    return bench.select(there)


# ---- what is built


def fetch(directory):
    """The package's sources, by a list of Debian's sources of our own: the machine's are left alone."""
    lists, parts = os.path.join(directory, "lists"), os.path.join(directory, "sources.list")
    os.makedirs(os.path.join(lists, "partial"), exist_ok=True)
    with open("/etc/os-release", encoding="utf-8") as release:
        names = dict(line.rstrip().split("=", 1) for line in release if "=" in line)
    with open(parts, "w", encoding="utf-8") as file:
        file.write(f"deb-src {MIRROR} {names.get('VERSION_CODENAME', 'stable')} main\n")
    apt = [
        "apt-get", "-qq", "-o", f"Dir::Etc::sourcelist={parts}", "-o", "Dir::Etc::sourceparts=-", "-o",
        f"Dir::State::lists={lists}", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=0", "-o",
        "Acquire::http::Timeout=20"
    ]
    procs.run([*apt, "update"], timeout=120)
    procs.run([*apt, "source", PACKAGE], timeout=120, cwd=directory)


def unpacked(directory):
    return next((path for path in glob.glob(os.path.join(directory, PACKAGE + "-*")) if os.path.isdir(path)), None)


def make_own(bench, directory):
    """Where nothing can be fetched: some rooms of kymo itself."""
    source = os.path.join(os.path.dirname(bench.builder.source), "src")
    files = sorted(file for room in OWN_ROOMS for file in glob.glob(os.path.join(source, room, "*.c")))
    objects = " ".join(os.path.relpath(file, source).replace("/", "-")[:-2] + ".o" for file in files)
    with open(os.path.join(directory, "Makefile"), "w", encoding="utf-8") as makefile:
        makefile.write(f"all: {objects}\nclean:\n\trm -f {objects}\n")
        for file, name in zip(files, objects.split()):
            makefile.write(
                f"{name}: {file}\n\tgcc -std=gnu17 -D_GNU_SOURCE -O2 -I{source} -I{os.path.dirname(source)}/include -c -o $@ $<\n"
            )


def prepare(bench):
    """A folder in which `make` builds it, and what it is called."""
    directory = os.path.join(bench.builder.output, "package")
    os.makedirs(directory, exist_ok=True)
    try:
        if not unpacked(directory):
            fetch(directory)
        package = unpacked(directory)
        if not os.path.exists(os.path.join(package, "Makefile")):
            procs.run(["./configure", "-q"], timeout=LONGEST_S, cwd=package)
        return package, os.path.basename(package)
    except procs.BenchError as error:
        bench.log(f"build: {PACKAGE} cannot be fetched and configured, so rooms of kymo are built: {error}")
    own = os.path.join(bench.builder.output, "own")
    os.makedirs(own, exist_ok=True)
    make_own(bench, own)
    return own, "rooms of kymo"


def seconds(tracer, bench, directory):
    procs.run(["make", "clean"], timeout=LONGEST_S, cwd=directory)
    with procs.temporary_directory(bench.output_dir, "build") as output:
        argv = [word.replace("DIR", output) for word in tracer.argv] + ["make", "-s", "-j2", "-C", directory]
        begin = time.monotonic()
        process = procs.spawn(argv, signal.SIGKILL, stdin=procs.subprocess.DEVNULL, stdout=procs.subprocess.DEVNULL,
                              stderr=procs.subprocess.PIPE, env={**os.environ, **(tracer.env or {})}, text=True)
        said = process.communicate(timeout=LONGEST_S)[1]
        taken = time.monotonic() - begin
    if process.returncode:
        raise procs.BenchError(f"{' '.join(argv[:4])}: {procs.last_words(said, process.returncode)}")
    return taken, lost_of(said)


def lost_of(said):
    """What a recorder has said of losses, but of those in vfork children, which are none of speed."""
    return next((line for line in said.splitlines() if "events lost" in line), "")


def run(bench):
    trials, said = {}, {}
    directory, name = prepare(bench)

    def trial(tracer):
        taken, lost = seconds(tracer, bench, directory)
        trials.setdefault(tracer.name, []).append(taken)
        said.setdefault(tracer.name, []).append(lost)

    tracers = tracers_of(bench)
    for tracer in tracers:  # files are in the page cache, and what kymo keeps of them is there
        if not tracer.argv or tracer.argv[0] == bench.kymo:
            begin = time.monotonic()
            seconds(tracer, bench, directory)
            bench.log(f"build: before the trials: {tracer.name}, {time.monotonic() - begin:.1f} s")
    bench.round_robin("build", tracers, trial)
    shutil.rmtree(os.path.join(bench.output_dir, "cache"), ignore_errors=True)
    bench.raw["build"] = {"package": name, "seconds": trials, "said": said}
    return rows_of(name, trials)


def rows_of(name, trials):
    rows, figures = [], {tracer: Figure(values, "s") for tracer, values in trials.items()}
    own, bare = figures.get("kymo record -p"), figures.get("none")
    for tracer, figure in figures.items():
        goals = []
        if bare and tracer in GOALS_FOR:
            goals.append(Goal(f"<= {GOAL} x bare", figure.median / bare.median, GOAL))
        rows.append(Row(f"make -j2, {name}", tracer, figure, figure.median / own.median if own else None, goals))
    return rows
