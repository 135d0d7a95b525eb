"""Recorders of a process that a test goes on beside."""
import contextlib
import json
import os
import re
import select
import signal
from pathlib import Path

import processes
from kymotest import KYMO, KYMO_PLAIN, Failure, check, clean_up_after, eventually, fail, run, skip, start

LATE = 'had to wait too long'  # what kymo says of a library whose first calls may be missing

_started = []


def recordings(pid, kymo=KYMO):
    """What kymo status tells of the process."""
    return json.loads(run(kymo, 'status', '--json', pid).out or '[]')


def recorder(pid, name, *args, **options):
    """kymo record into `name`, once its probes are in and the process is no longer traced."""
    started = start(KYMO, 'record', '-q', '-o', name, *args, '--pid', pid, **options)
    _started.append(started)

    def is_recording():
        if not started.is_alive():
            fail(f'the recorder ended before its probes were in\n{started.result()}')
        # Asked again and again, so by the kymo that is quick.
        return processes.tracer(pid) == 0 and processes.has_trace(started.pid) and any(
            each['recorder'] == started.pid and each['sites'] for each in recordings(pid, KYMO_PLAIN))

    eventually(is_recording, f'{started.command} has put its probes in', 60)
    return started


def watching_recorder(pid, name, *args, **options):
    """The same, once it looks for libraries that are loaded, which is a moment later. It says so."""
    started = start(KYMO, 'record', '-o', name, *args, '--pid', pid, **options)
    _started.append(started)
    started.wait_for(r'^kymo: recording process', which=1)
    return started


@contextlib.contextmanager
def announcing(*words):
    """kymo record WORDS, which is about to say that it records: nothing reads what it writes to stderr meanwhile. Given
    are the recorder and a function that reads on."""
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    try:
        while os.write(writer, bytes(select.PIPE_BUF)):
            pass
    except BlockingIOError:
        os.set_blocking(writer, True)
    recorder = start(KYMO, 'record', *words, stderr=writer)
    os.close(writer)

    def is_writing():
        check(recorder.is_alive(), 'the recorder says that it records')
        return any(processes.writes_to(pid) == 2 for pid in (recorder.pid, *processes.children(recorder.pid)))

    def read_on():
        text = b''
        while b'kymo: recording' not in text:
            select.select([reader], [], [])
            text += os.read(reader, 1 << 20)

    eventually(is_writing, 'the recorder waits until it may write')
    yield recorder, read_on
    os.close(reader)


def next_line(process, pattern):
    """Send a line; the match of the next line that the process writes then and that `pattern` is in."""
    already = len(re.findall(pattern, process.out, re.MULTILINE))
    process.send('\n')

    def found():
        matches = list(re.finditer(pattern, process.out, re.MULTILINE))
        check(process.is_alive(), 'the process goes on', process.result())
        return len(matches) > already and matches[already]

    return eventually(found, f'{process.command} writes /{pattern}/')


def kill_between_writes(recorder):
    """By SIGKILL, which would leave half of what is being written: a stop lets that be whole."""
    recorder.signal(signal.SIGSTOP)
    eventually(
        lambda: all(processes.status(tid).get('State', '?')[0] == 'T' for tid in processes.threads(recorder.pid)),
        'it is stopped')
    recorder.end(signal.SIGKILL)


def _were_late():
    """Whether one of the recorders says so, at its end at the latest."""
    for each in _started:
        if each.is_alive():
            each.end(signal.SIGINT)
    return any(LATE in each.err for each in _started)


def unless_late(attempt, *args):
    """Call attempt(DIRECTORY, ...) there, again if it fails and a recorder has said why: programs wait 50 to 500 ms
    for probes in a library, and a loaded machine may not give a recorder its turn in that."""
    home = Path.cwd()
    for i in range(5):
        directory = home / f'attempt.{i}'
        directory.mkdir()
        os.chdir(directory)
        _started.clear()
        with clean_up_after():
            try:
                return attempt(directory, *args)
            except Failure:
                if not _were_late():
                    raise
            finally:
                os.chdir(home)
    return skip('on this machine, as loaded as it is, recorders do not get their turn in time')
