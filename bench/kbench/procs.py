"""Child processes, and a promise that everything begun is taken down again."""
import contextlib
import ctypes
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

PR_SET_PDEATHSIG = 1
DIRECTORY_PREFIX = "kymo-bench-"
_libc = ctypes.CDLL(None, use_errno=True)


class BenchError(Exception):
    """Something that was to be measured could not be; the text says why."""


def _die_with(parent_pid, signal_number):
    def in_child():
        _libc.prctl(PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
        if os.getppid() != parent_pid:
            os._exit(127)

    return in_child


def spawn(argv, death_signal=signal.SIGKILL, **options):
    """Start `argv` in a session of its own, so that Ctrl-C reaches the benchmark alone; it dies with the benchmark."""
    try:
        return subprocess.Popen([str(word) for word in argv], start_new_session=True, preexec_fn=_die_with(
            os.getpid(), death_signal), **options)
    except OSError as error:
        raise BenchError(f"{argv[0]}: {error.strerror}") from error


def wait_to_the_moment(process, timeout):
    """Its status, as soon as it has ended: Popen.wait() with a timeout looks after pauses that double, up to 50 ms."""
    pidfd = os.pidfd_open(process.pid)
    try:
        if not select.select([pidfd], [], [], timeout)[0]:
            raise BenchError(f"{describe(process.args)} did not end within {timeout} s")
    finally:
        os.close(pidfd)
    return process.wait()


def run(argv, timeout=60, check=True, **options):
    """Run `argv` to its end; what it printed. BenchError with its last words when it fails or takes too long."""
    process = spawn(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                    **options)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{argv[0]} did not end within {timeout} s") from error
    finally:
        end(process)
    if check and process.returncode:
        raise BenchError(f"{describe(argv)}: {last_words(err or out, process.returncode)}")
    return subprocess.CompletedProcess(argv, process.returncode, out, err)


def describe(argv):
    return " ".join(os.path.basename(str(word)) for word in argv[:3])


def last_words(text, status):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit status {status}"


def end(process, first=signal.SIGTERM, patience=5):
    """Make sure that `process` is gone: ask, wait, kill."""
    if process.poll() is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(first)
    try:
        process.wait(patience)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()


def wait_until(condition, seconds, interval=0.002):
    """The first true value of condition() within `seconds`, or None."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            return None
        time.sleep(interval)


@contextlib.contextmanager
def temporary_directory(parent, name):
    if parent:
        os.makedirs(parent, exist_ok=True)
    path = tempfile.mkdtemp(prefix=f"{DIRECTORY_PREFIX}{os.getpid()}-{name}-", dir=parent)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def remove_leftovers(*parents):
    """Remove the temporary directories of this user's benchmarks that were killed."""
    for parent in parents:
        for name in os.listdir(parent) if os.path.isdir(parent) else ():
            path = os.path.join(parent, name)
            match = re.match(rf"{DIRECTORY_PREFIX}(\d+)-", name)
            if match and not os.path.exists(f"/proc/{match[1]}") and os.lstat(path).st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)


def vm_hwm_bytes(pid):
    """The most memory that process `pid` has had resident, or 0 when it is gone."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) * 1024
    return 0


class Target:
    """A program that speaks the protocol of harness.h: "ready PID", a byte, figures, "done", a byte."""
    def __init__(self, argv, env=None):
        self.argv = argv
        self._rest = b""
        self.process = spawn(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**os.environ, **(env or {})})
        try:
            word, pid = self.line(30).split()
            if word != "ready":
                raise BenchError(f"{describe(argv)}: said {word!r} instead of 'ready'")
            self.pid = int(pid)
        except BaseException:
            self.close()
            raise

    def line(self, timeout):
        """The next line that it prints."""
        deadline = time.monotonic() + timeout
        fd = self.process.stdout.fileno()
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([fd], [], [], left)[0]:
                raise BenchError(f"{describe(self.argv)}: silent for {timeout} s")
            data = os.read(fd, 65536)
            if not data:
                raise BenchError(f"{describe(self.argv)}: {self._obituary()}")
            self._rest += data
        line, self._rest = self._rest.split(b"\n", 1)
        return line.decode(errors="replace")

    def _obituary(self):
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        end(self.process)
        status = self.process.returncode
        if status < 0:
            return f"killed by {signal.Signals(-status).name}"
        words = self.process.stderr.read().decode(errors="replace")
        return f"ended with status {status}: {last_words(words, status)}"

    def say(self, byte=b"g"):
        try:
            self.process.stdin.write(byte)
            self.process.stdin.flush()
        except OSError as error:
            raise BenchError(f"{describe(self.argv)}: {self._obituary()}") from error

    def go(self, timeout):
        """Let it work; its lines up to "done", each split into words."""
        self.say()
        lines = []
        while True:
            words = self.line(timeout).split()
            if words == ["done"]:
                return lines
            lines.append(words)

    def leave(self, timeout=60):
        """Let it end; its exit status and what it, and what it runs under, wrote on stderr."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        # The pipe is read here and not by communicate(), which would flush the closed stdin.
        words = b""
        fd = self.process.stderr.fileno()
        deadline = time.monotonic() + timeout
        while select.select([fd], [], [], max(0, deadline - time.monotonic()))[0]:
            data = os.read(fd, 65536)
            if not data:
                break
            words += data
        try:
            self.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"{describe(self.argv)}: did not end") from error
        return self.process.returncode, words.decode(errors="replace")

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        # The group that spawn() made: what wraps the program, and the program.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdout, self.process.stderr):
            pipe.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
