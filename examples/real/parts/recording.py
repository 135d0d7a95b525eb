"""With markers on: `kymo record -m` from outside, and libkymo-marker in the process."""
import json
import os
import shutil
import signal
import subprocess
import time

from .tree import Failed

BUFFER = "16M"
LONGEST_S = 600


def find_library(kymo):
    """libkymo-marker.so of the build that `kymo` is of, or None."""
    for folder in ("lib", "lib/marker", "."):
        path = os.path.join(os.path.dirname(kymo), folder, "libkymo-marker.so")
        if os.path.exists(path):
            return path
    return None


def _totals(kymo, directory):
    """(events, lost) of a recording."""
    done = subprocess.run([kymo, "report", "--json", directory], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, check=False)
    try:
        report = json.loads(done.stdout)
        return int(report["events"]), int(report["lost_events"])
    except (ValueError, KeyError, TypeError) as error:
        raise Failed(f"kymo report: {done.stderr.strip() or error}") from error


class Off:
    """Without a recorder. What a way of recording gives: words before a command, its environment, and the totals."""

    name = "off"

    def prefix(self, _directory):
        return []

    def environment(self, _directory):
        return {}

    def attach(self, _pid, _directory):
        """Begin to record a process that runs; gives something with .end()."""
        return None

    def totals(self, _directory):
        return None


class InPlace(Off):
    """The program was not linked with the library: preloading it is enough."""

    name = "on, in place"

    def __init__(self, kymo, library, glob):
        self._kymo, self._library, self._glob = kymo, library, glob

    def environment(self, directory):
        return {
            "LD_PRELOAD": self._library, "KYMO_MARKERS": self._glob, "KYMO_MARKERS_DIR": directory,
            "KYMO_MARKERS_BUFFER": BUFFER
        }

    def totals(self, directory):
        return _totals(self._kymo, directory)


class Recorder:
    def __init__(self, kymo, glob, pid, directory):
        self._messages = f"{directory}.messages"
        with open(self._messages, "wb") as messages:
            self._process = subprocess.Popen([
                kymo, "record", "-o", directory, "--buffer", BUFFER, "-m", glob, "--pid",
                str(pid), "--for",
                str(LONGEST_S)
            ], stdin=subprocess.DEVNULL, stdout=messages, stderr=messages, start_new_session=True)
        try:
            self._wait(kymo, pid)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def _wait(self, kymo, pid):
        """Until `kymo status` knows of probes, and a moment more: sites are turned on last."""
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise Failed(f"kymo record: {self._words()}")
            status = subprocess.run([kymo, "status", "--json", str(pid)], stdout=subprocess.PIPE,
                                    stderr=subprocess.DEVNULL, text=True, check=False)
            try:
                if any(entry["sites"] for entry in json.loads(status.stdout)):
                    time.sleep(0.3)
                    return
            except (ValueError, KeyError, TypeError):
                pass
            time.sleep(0.05)
        raise Failed("kymo record has put in no probe for 30 s")

    def _words(self):
        with open(self._messages, encoding="utf-8", errors="replace") as file:
            return file.read().strip() or f"exit status {self._process.returncode}"

    def end(self):
        self._process.send_signal(signal.SIGINT)
        try:
            if self._process.wait(60):
                raise Failed(f"kymo record: {self._words()}")
        except subprocess.TimeoutExpired as error:
            self._process.kill()
            raise Failed("kymo record did not end within 60 s of SIGINT") from error


class Outside(Off):
    name = "on, kymo record -m"

    def __init__(self, kymo, glob):
        self._kymo, self._glob = kymo, glob

    def prefix(self, directory):
        return [self._kymo, "record", "-o", directory, "--buffer", BUFFER, "-m", self._glob, "--"]

    def attach(self, pid, directory):
        return Recorder(self._kymo, self._glob, pid, directory)

    def totals(self, directory):
        return _totals(self._kymo, directory)


def ways(kymo, program, example, temporary, say):
    """The ways of recording that work here, tried on the program `example`."""
    found = []
    library = find_library(kymo)
    if not os.access(kymo, os.X_OK):
        say(f"markers on: left out: {kymo} is not built")
        return found
    outside = Outside(kymo, program.glob)
    directory = os.path.join(temporary, "trial")
    tried = subprocess.run([*outside.prefix(directory), example, "--version"], stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True, check=False)
    if tried.returncode:
        say(f"{outside.name}: left out: {(tried.stderr.strip().splitlines() or ['it failed'])[-1]}")
    else:
        found.append(outside)
    shutil.rmtree(directory, ignore_errors=True)
    if library:
        found.append(InPlace(kymo, library, program.glob))
    else:
        say("on, in place: left out: libkymo-marker.so is not built")
    return found
