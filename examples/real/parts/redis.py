"""redis-server, marked at its command dispatch and its event loop; redis-benchmark over a socket of the file system."""
import csv
import os
import signal
import socket
import subprocess
import time

from .tree import Failed, on_cpu

TESTS = ("set", "get")
CLIENTS, PIPELINE = 20, 16


class Redis:
    name, package, glob = "redis", "redis", "redis_*"
    programs = ["src/redis-server", "src/redis-benchmark"]
    main = "redis-server"
    # What is timed, and by which tool.
    metrics = {
        "SET: redis-benchmark": "request", "GET: redis-benchmark": "request", "SET and GET: CPU time of the server":
        "request"
    }

    def __init__(self, quick):
        self.requests = 50_000 if quick else 400_000

    def make(self, flags):
        # The C library's malloc: jemalloc's own configuration would take longer than all of redis.
        return [
            "make", "-C", "src", "-j2", "redis-server", "redis-benchmark", "MALLOC=libc", "BUILD_TLS=no",
            "USE_SYSTEMD=no", f"REDIS_CFLAGS={flags}"
        ]

    def measure(self, binaries, plain_binaries, way, temporary, cpus):
        """({metric: ns}, requests that were made, what was recorded). The client is the plain one, whichever server
        runs."""
        path, directory = os.path.join(temporary, "socket"), os.path.join(temporary, "trace")
        server = subprocess.Popen([
            os.path.join(binaries, "redis-server"), "--port", "0", "--unixsocket", path, "--save", "", "--appendonly",
            "no", "--dir", temporary, "--logfile",
            os.path.join(temporary, "log")
        ], stdin=subprocess.DEVNULL, env={**os.environ, **way.environment(directory)}, start_new_session=True,
                                  preexec_fn=on_cpu(cpus[0]))
        recorder = None
        try:
            _wait_for(path, server)
            recorder = way.attach(server.pid, directory)
            before = _cpu_ns(server.pid)
            rates = self._benchmark(plain_binaries, path, cpus[-1])
            spent = _cpu_ns(server.pid) - before
            ending, recorder = recorder, None
            if ending:
                ending.end()
        finally:
            if recorder:
                recorder.end()
            server.send_signal(signal.SIGTERM)
            server.wait(30)
        made = self.requests * len(TESTS)
        times = {f"{test.upper()}: redis-benchmark": 1e9 / rates[test] for test in TESTS}
        times["SET and GET: CPU time of the server"] = spent / made
        return times, made, way.totals(directory)

    def _benchmark(self, binaries, path, cpu):
        """{test: requests a second}"""
        argv = [
            os.path.join(binaries, "redis-benchmark"), "-s", path, "-n",
            str(self.requests), "-c",
            str(CLIENTS), "-P",
            str(PIPELINE), "-t", ",".join(TESTS), "--csv"
        ]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, preexec_fn=on_cpu(cpu))
        rates = {}
        for row in csv.reader(done.stdout.splitlines()):
            if len(row) > 1 and row[0].lower() in TESTS:
                rates[row[0].lower()] = float(row[1])
        if done.returncode or len(rates) != len(TESTS):
            raise Failed(f"redis-benchmark: {done.stderr.strip() or 'its output is not understood'}")
        return rates


def _wait_for(path, server):
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise Failed(f"redis-server ended with status {server.returncode}")
        with socket.socket(socket.AF_UNIX) as client:
            try:
                client.connect(path)
                return
            except OSError:
                time.sleep(0.02)
    raise Failed("redis-server does not answer")


def _cpu_ns(pid):
    """CPU time of all threads of the process."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
            total += int(file.read().split()[0])
    return total
