"""zstd, marked at its block loops; `zstd -b` on the sample that it makes itself."""
import os
import re
import subprocess

from .tree import Failed

# Words for the table, options, bytes a block.
MODES = {"level 1, blocks of 1 KiB": (["-b1", "-B1KB"], 1024), "level 3, blocks of 128 KiB": (["-b3"], 128 * 1024)}
# One round of the first mode, which is the same work each time: for CPU time, which other processes disturb less.
ROUND, ROUND_BLOCKS, ROUNDS = ["-b1", "-B1KB", "-i0"], 9766, 5
CPU_TIME = "both, level 1, blocks of 1 KiB: CPU time of one round"
RESULT = re.compile(r"\(x?[\d.]+\)\s*,\s*([\d.]+) MB/s\s*,\s*([\d.]+) MB/s")


class Zstd:
    name, package, glob = "zstd", "libzstd", "zstd_*"
    programs = ["programs/zstd"]
    main = "zstd"
    metrics = {**{f"{way}, {mode}": "block" for mode in MODES for way in ("compress", "decompress")}, CPU_TIME: "block"}

    def __init__(self, quick):
        self.seconds = 0 if quick else 1

    def make(self, flags):
        return [
            "make", "-C", "programs", "-j2", "zstd", "HAVE_ZLIB=0", "HAVE_LZMA=0", "HAVE_LZ4=0", f"MOREFLAGS={flags}"
        ]

    def measure(self, binaries, _plain_binaries, way, temporary, _cpus):
        """({metric: ns}, None for how many blocks there were, what was recorded)"""
        times, recorded = {}, []
        for number, (mode, (options, size)) in enumerate(MODES.items()):
            directory = os.path.join(temporary, f"trace{number}")
            command = [os.path.join(binaries, "zstd"), *options, f"-i{self.seconds}", "--single-thread"]
            done = subprocess.run([*way.prefix(directory), *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace", check=False,
                                  env={**os.environ, **way.environment(directory)})
            results = RESULT.findall(done.stdout)
            if done.returncode or not results:
                raise Failed(f"{' '.join(command)}: {done.stdout.strip() or done.returncode}")
            for words, rate in zip(("compress", "decompress"), results[-1]):
                times[f"{words}, {mode}"] = size / float(rate) * 1e3
            recorded.append(way.totals(directory))
        if not all(recorded):
            # Of zstd alone: the recorder would be counted too.
            times[CPU_TIME] = min(_round_ns(os.path.join(binaries, "zstd")) for _ in range(ROUNDS)) / ROUND_BLOCKS
        return times, None, [sum(numbers) for numbers in zip(*recorded)] if all(recorded) else None


def _round_ns(program):
    """CPU time of the process for one round, its start included."""
    process = subprocess.Popen([program, *ROUND, "--single-thread"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise Failed(f"zstd {' '.join(ROUND)}: exit status {process.returncode}")
    return (usage.ru_utime + usage.ru_stime) * 1e9
