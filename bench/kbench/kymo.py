"""`kymo record --pid`, from the outside.

When its probes are in is seen in the target's text, and what it kept in the packets that it wrote.
"""
import json
import os
import signal
import struct
import subprocess
import time

from . import procs
from .procs import BenchError

# Packet header and context of kymo's CTF: magic, uuid, stream_id, content_size, packet_size (bits), timestamp_begin,
# timestamp_end, events_discarded (so far), packet_seq_num, cpu_id.
PACKET = struct.Struct("<I16sIQQQQQQI")
MAGIC = 0xC1FC1FC1
# Ends a recording whose benchmark was killed.
LONGEST_S = 900


def quote(path):
    """`path` as FILE of a probe specification."""
    return str(path).replace("\\", "\\\\").replace(" ", "\\ ")


class Recorder:
    """A running `kymo record --pid`. A context: leaving ends it.

    `specs`: of probes; a pair of ("-r", SPEC) is a return probe.
    """
    def __init__(self, kymo, directory, specs, buffer, pid, *options):
        probes = [word for spec in specs for word in (("-p", spec) if isinstance(spec, str) else spec)]
        self.argv = [
            kymo, "record", "-o", directory, "--buffer", buffer, *options, *probes, "--pid",
            str(pid), "--for",
            str(LONGEST_S)
        ]
        self._messages = f"{directory}.messages"
        self.begin = None
        self.max_rss = 0
        self.process = None

    def __enter__(self):
        with open(self._messages, "wb") as messages:
            self.begin = time.monotonic()
            self.process = procs.spawn(self.argv, signal.SIGINT, stdin=subprocess.DEVNULL, stdout=messages,
                                       stderr=messages)
        return self

    def check(self):
        """BenchError when it has ended without being asked to."""
        if self.process.poll() is not None:
            with open(self._messages, encoding="utf-8", errors="replace") as file:
                raise BenchError("kymo record: " + procs.last_words(file.read(), self.process.returncode))

    def wait_in_place(self, text, timeout=60, interval=0.002, quiet=0.3):
        """Wait until the sites of `text` are changed, all or as many as will be.

        (seconds from the start to the last change, number of sites changed)
        """
        deadline = self.begin + timeout
        last, last_time, n = text.read(), None, 0
        while True:
            now = time.monotonic()
            content = text.read()
            if content != last:
                last, last_time, n = content, now, text.changed(content)
            if last_time and (now - last_time > quiet):
                return last_time - self.begin, n
            self.check()
            if now > deadline:
                raise BenchError(f"kymo record has put in no probe for {timeout} s")
            time.sleep(interval)

    def wait_until_it_records(self, timeout=60):
        """Wait until it says so. Beside another recording it may leave the text as it is: a pun leads to one address."""
        while True:
            with open(self._messages, encoding="utf-8", errors="replace") as file:
                if "recording process" in file.read():
                    return
            self.check()
            if time.monotonic() > self.begin + timeout:
                raise BenchError(f"kymo record has not begun within {timeout} s")
            time.sleep(0.002)

    def note_memory(self):
        self.max_rss = max(self.max_rss, procs.vm_hwm_bytes(self.process.pid))

    def stop(self, timeout=60):
        """Ctrl-C; seconds until it has ended."""
        self.check()
        self.note_memory()
        begin = time.monotonic()
        self.process.send_signal(signal.SIGINT)
        while self.process.poll() is None:
            self.note_memory()
            if time.monotonic() - begin > timeout:
                raise BenchError(f"kymo record did not end within {timeout} s of SIGINT")
            time.sleep(0.005)
        if self.process.returncode:
            self.begin = None
            self.check()
        return time.monotonic() - begin

    def close(self):
        if self.process:
            procs.end(self.process, signal.SIGINT, 10)

    def __exit__(self, *exception):
        self.close()


def _packets(path):
    """(content bytes, events_discarded) of each packet of a stream file."""
    size, at = os.path.getsize(path), 0
    with open(path, "rb") as file:
        while at + PACKET.size <= size:
            file.seek(at)
            magic, _, _, content, packet, _, _, discarded, _, _ = PACKET.unpack(file.read(PACKET.size))
            if magic != MAGIC or packet < PACKET.size * 8 or content > packet:
                raise BenchError(f"{os.path.basename(path)}: no packet at offset {at}")
            yield content // 8 - PACKET.size, discarded
            at += packet // 8


def packet_totals(directory):
    """{"records": bytes of all records, "bytes": of all stream files, "lost": events} of a recording."""
    totals = {"records": 0, "bytes": 0, "lost": 0}
    for name in sorted(os.listdir(directory)):
        path = os.path.join(directory, name)
        if name == "metadata" or not os.path.isfile(path):
            continue
        with open(path, "rb") as file:
            if file.read(4) != struct.pack("<I", MAGIC):
                continue
        discarded = 0
        for content, discarded in _packets(path):
            totals["records"] += content
        totals["lost"] += discarded
        totals["bytes"] += os.path.getsize(path)
    return totals


def report_totals(kymo, directory):
    """(events, lost) as `kymo report --json` tells them."""
    out = procs.run([kymo, "report", "--json", directory], timeout=300).stdout
    try:
        report = json.loads(out)
        return int(report["events"]), int(report["lost_events"])
    except (ValueError, KeyError, TypeError) as error:
        raise BenchError(f"kymo report --json: not understood ({error!r})") from error
