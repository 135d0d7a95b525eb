"""Fetching, marking and building: FOLDER/source, FOLDER/bin/VARIANT."""
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
INCLUDE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "include")

# All functions begin at a cache line, so that what a marker adds to one does not move the others within theirs: that
# alone makes some loops slower, and others faster, by a few percent.
FLAGS = f"-I{INCLUDE} -falign-functions=64"


class Failed(Exception):
    """A sentence why it can't go on."""


def on_cpu(cpu):
    """For preexec_fn: the process runs on this CPU. (taskset would be a program of its own, which could record itself.)
    """
    return lambda: os.sched_setaffinity(0, {cpu})


def run(argv, log=None, **options):
    """Run it to its end. What it prints goes to the file `log`, the end of which is told where it fails."""
    try:
        done = subprocess.run([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", check=False, **options)
    except OSError as error:
        raise Failed(f"{argv[0]}: {error.strerror}") from error
    if log:
        with open(log, "w", encoding="utf-8") as file:
            file.write(done.stdout)
    if done.returncode:
        last = "\n".join(done.stdout.splitlines()[-15:])
        raise Failed(f"{' '.join(map(str, argv[:4]))}: exit status {done.returncode}\n{last}")
    return done.stdout


def fetch(package, folder):
    source = os.path.join(folder, "source")
    if not os.path.exists(source):
        status = subprocess.run([os.path.join(HERE, "fetch"), package, source], check=False).returncode
        if status:
            raise Failed(f"the source of {package} could not be fetched")
    return source


def version(folder):
    """"redis 5:7.0.15-1~deb12u7", from the first line of Debian's change log."""
    with open(os.path.join(folder, "source", "debian", "changelog"), encoding="utf-8", errors="replace") as file:
        return " ".join(file.readline().split()[:2]).replace("(", "").replace(")", "")


def _newest(paths):
    return max(os.path.getmtime(path) for path in paths)


def _marked_files(markers):
    """The files that the markers go into: the first word of each marker's first line."""
    with open(markers, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.strip() and not line[0].isspace() and line[0] != "#"]
    return sorted({words[0] for words in lines})


def build(program, folder, say):
    """{variant: folder of its programs}: plain; compiled away (marked, but for nothing); marked.

    All are built in one place, one after the other, with the same flags. So what is not marked is the same object in
    all. Then the tree is removed. What is there already and newer than the markers is kept.
    """
    headers = [os.path.join(INCLUDE, "kymo", name) for name in os.listdir(os.path.join(INCLUDE, "kymo"))]
    markers = os.path.join(HERE, f"{program.name}.markers")
    source, tree = fetch(program.package, folder), os.path.join(folder, "tree")
    variants = {"plain": None, "compiled away": ["--away"], "marked": []}
    built = {variant: os.path.join(folder, "bin", variant.replace(" ", "-")) for variant in variants}
    made = [os.path.join(path, os.path.basename(name)) for path in built.values() for name in program.programs]
    if all(map(os.path.exists, made)) and min(map(os.path.getmtime, made)) > _newest([markers, *headers]):
        return built
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(source, tree, symlinks=True)
    for variant, options in variants.items():
        say(f"building {program.name}, {variant}")
        for name in _marked_files(markers):
            shutil.copyfile(os.path.join(source, name), os.path.join(tree, name))
        if options is not None:
            run([os.path.join(HERE, "insert"), *options, markers, tree])
        run(program.make(FLAGS), os.path.join(folder, f"build-{variant.replace(' ', '-')}.log"), cwd=tree,
            env={**os.environ, "SOURCE_DATE_EPOCH": "1700000000"})
        os.makedirs(built[variant], exist_ok=True)
        for name in program.programs:
            copy = os.path.join(built[variant], os.path.basename(name))
            shutil.copyfile(os.path.join(tree, name), copy)
            os.chmod(copy, 0o755)
    shutil.rmtree(tree, ignore_errors=True)
    return built
