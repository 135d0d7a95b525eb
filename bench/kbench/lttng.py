"""LTTng-UST with a session daemon of the benchmark's own.

The daemon keeps its sockets in /run/lttng when root runs it and in $LTTNG_HOME/.lttng otherwise. So that no other LTTng
on the machine is touched, root's runs in a mount namespace of its own with an empty /run; everything that has to talk
to it enters there.
"""
import contextlib
import os
import shutil
import signal
import struct
import subprocess
import time

from . import procs
from .procs import BenchError

PROGRAMS = ("lttng", "lttng-sessiond")
# Packet header and context: magic, uuid, stream_id, stream_instance_id, timestamp_begin, timestamp_end, content_size,
# packet_size (bits), packet_seq_num, events_discarded (so far), cpu_id.
PACKET = struct.Struct("<I16sIQQQQQQQI")
MAGIC = 0xC1FC1FC1
# What programs that are traced leave behind: files of four bytes to wait on.
WAIT_FILES = ("/dev/shm/lttng-ust-wait-8", f"/dev/shm/lttng-ust-wait-8-{os.getuid()}")


def missing():
    for program in PROGRAMS:
        if not shutil.which(program):
            return f"{program} is not installed (Debian package lttng-tools)"
    return None


def _stream_totals(path):
    """(bytes, events lost) of a stream file. Its packets tell; what `lttng list` says was seen to be off by 2^63."""
    size, at, lost = os.path.getsize(path), 0, 0
    with open(path, "rb") as file:
        while at + PACKET.size <= size:
            file.seek(at)
            fields = PACKET.unpack(file.read(PACKET.size))
            packet_bytes, lost = fields[7] // 8, fields[9]
            if fields[0] != MAGIC or packet_bytes < PACKET.size:
                raise BenchError(f"{os.path.basename(path)}: no LTTng packet at offset {at}")
            at += packet_bytes
    return size, lost


class Daemon:
    """A context: leaving ends the daemon, its consumer and its files."""
    def __init__(self, temporary):
        self._home = os.path.join(temporary, "lttng-home")
        self._private = os.geteuid() == 0
        self._leftovers = [path for path in WAIT_FILES if not os.path.exists(path)]
        self._process = None
        self._n_sessions = 0
        self.env = {"LTTNG_HOME": self._home}

    def __enter__(self):
        os.makedirs(self._home, exist_ok=True)
        daemon = ["lttng-sessiond", "--no-kernel", "--quiet"]
        if self._private:
            daemon = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs kymo-bench /run && exec "$@"', "sh", *daemon]
        self._process = procs.spawn(daemon, signal.SIGTERM, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, env={**os.environ, **self.env})
        try:
            if not procs.wait_until(self._answers, 20, 0.1):
                raise BenchError("lttng-sessiond does not answer")
        except BaseException:
            self.close()
            raise
        return self

    def _answers(self):
        if self._process.poll() is not None:
            raise BenchError(f"lttng-sessiond ended with status {self._process.returncode}")
        # Until the namespace has its own /run, another user's root session daemon could answer.
        if self._private and os.stat(f"/proc/{self._process.pid}/root/run").st_dev == os.stat("/run").st_dev:
            return False
        with contextlib.suppress(BenchError):
            return self.lttng("list") is not None
        return False

    @property
    def prefix(self):
        """What a command begins with that shall find the daemon."""
        return ["nsenter", "--mount", "--target", str(self._process.pid), "--"] if self._private else []

    def lttng(self, *words):
        return procs.run([*self.prefix, "lttng", "--no-sessiond", *words], env={**os.environ, **self.env}).stdout

    def consumer_pid(self):
        """The process that writes the traces, or None."""
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{int(name)}/stat", encoding="ascii", errors="replace") as file:
                    text = file.read()
                parent = int(text[text.rindex(")") + 2:].split()[1])
                if self._is_ours(parent) and "lttng-consumerd" in text:
                    return int(name)
        return None

    def _is_ours(self, pid):
        """The daemon starts its consumer from a child that stays its parent."""
        for _ in range(3):
            if pid == self._process.pid:
                return True
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                text = file.read()
            pid = int(text[text.rindex(")") + 2:].split()[1])
        return False

    def session(self, output, subbuf, contexts=()):
        self._n_sessions += 1
        return Session(self, f"bench{self._n_sessions}", output, subbuf, contexts)

    def close(self):
        if self._process:
            # A child of the daemon's that outlived it would keep the temporary directory busy.
            consumer = self.consumer_pid() if self._process.poll() is None else None
            procs.end(self._process, signal.SIGTERM, 10)
            if consumer and not procs.wait_until(lambda: not os.path.exists(f"/proc/{consumer}"), 5, 0.05):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(consumer, signal.SIGKILL)
        for path in self._leftovers:
            with contextlib.suppress(OSError):
                os.unlink(path)

    def __exit__(self, *exception):
        self.close()


class Session:
    """A running recording of all events of lttng_target, in discard mode with 8 sub-buffers a CPU."""
    def __init__(self, daemon, name, output, subbuf, contexts):
        self._daemon = daemon
        self._name = name
        self._output = output
        self._subbuf = subbuf
        self._contexts = contexts
        self._alive = False

    def __enter__(self):
        lttng = self._daemon.lttng
        channel = ["--session", self._name, "--channel", "bench"]
        lttng("create", self._name, "--output", self._output)
        self._alive = True
        try:
            lttng("enable-channel", "--userspace", "--session", self._name, "--subbuf-size", self._subbuf,
                  "--num-subbuf", "8", "--discard", "--buffers-uid", "bench")
            lttng("enable-event", "--userspace", *channel, "kymo_bench:*")
            for context in self._contexts:
                lttng("add-context", "--userspace", *channel, "--type", context)
            lttng("start", self._name)
        except BaseException:
            self.close()
            raise
        return self

    def stop(self):
        """End it, once all is written: {"lost": events, "bytes": of all stream files, "stop_s": seconds}."""
        begin = time.monotonic()
        self._daemon.lttng("stop", self._name)
        totals = {"lost": 0, "bytes": 0, "stop_s": time.monotonic() - begin}
        for directory, _, files in os.walk(self._output):
            for name in files:
                if name.startswith("bench_") and not name.endswith(".idx"):
                    size, lost = _stream_totals(os.path.join(directory, name))
                    totals["bytes"] += size
                    totals["lost"] += lost
        return totals

    def close(self):
        if self._alive:
            self._alive = False
            with contextlib.suppress(BenchError):
                self._daemon.lttng("destroy", self._name)

    def __exit__(self, *exception):
        self.close()
