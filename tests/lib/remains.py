"""What kymo may leave in a process that it was in: nothing."""
import os
import re
from pathlib import Path

import processes
from kymotest import check, check_same, check_text_intact, eventually

MEMFD = '/memfd:kymo'


def mappings(pid):
    """All lines of /proc/PID/maps, for programs that map nothing meanwhile themselves. Except the kernel's own page for
    uprobes, which stays when a tool's have left."""
    return [mapping.line for mapping in processes.maps(pid) if mapping.path != '[uprobes]']


def lasting_mappings(pid):
    """Those that a program with threads that come and go does not change itself: of files, executable ones, and single
    anonymous pages, which is what a page of kymo's that is left behind looks like."""
    return [
        mapping.line for mapping in processes.maps(pid)
        if mapping.path not in ('', '[heap]', '[stack]',
                                '[uprobes]') or ('x' in mapping.permissions and mapping.path != '[uprobes]') or
        (mapping.path == '' and mapping.end - mapping.start == processes.PAGE and 'w' in mapping.permissions)
    ]


def descriptors(pid):
    """What of kymo's the process has open."""
    found = []
    for entry in Path(f'/proc/{pid}/fd').iterdir():
        try:
            to = os.readlink(entry)
        except OSError:
            continue
        if to.startswith(MEMFD):
            found.append(f'{entry.name} -> {to}')
    return found


def are_there(pid):
    """Whether anything of kymo's is in the process."""
    return bool(descriptors(pid)) or any(mapping.path.startswith(MEMFD) for mapping in processes.maps(pid))


def check_running(pid):
    """No thread is stopped or traced."""
    check(processes.is_alive(pid), f'process {pid} lives', processes.status(pid))

    def held():
        states = [(tid, processes.status(tid)) for tid in processes.threads(pid)]
        return [
            f'{tid}: {status["State"]}, tracer {status["TracerPid"]}' for tid, status in states
            if status and (status['State'][0] in 'Tt' or status['TracerPid'] != '0')
        ]

    eventually(lambda: not held(), f'no thread of {pid} is held', 60)


def check_nothing_left(pid, before, now=mappings):
    """`before` is what `now(pid)` said when kymo had not come yet."""
    check_text_intact(pid)
    check_same(descriptors(pid), [], f'descriptors of {pid}')
    check_same(now(pid), before, f'/proc/{pid}/maps')
    check_running(pid)


def write_live_state(pid, state):
    """Into all live pages: 0 is what they have before the first probe is in, while pads are exchanged, and in a forked
    child."""
    code = [
        mapping for mapping in processes.maps(pid)
        if mapping.path.startswith('/memfd:kymo ') and 'x' in mapping.permissions
    ]
    pages = [
        mapping for mapping in processes.maps(pid)
        if not mapping.path and mapping.end - mapping.start == processes.PAGE and any(
            mapping.end == pad.start or mapping.start == pad.end for pad in code)
    ]
    check(pages, 'there are live pages')
    with open(f'/proc/{pid}/mem', 'r+b', buffering=0) as memory:
        for page in pages:
            memory.seek(page.start)
            memory.write(bytes([state]))


def layout_version():
    """That of the memory that kymo leaves in a process: for those that forge it."""
    header = Path(os.environ['KYMO_SOURCE'], 'src/wire/shared.h').read_text()
    return int(re.search(r'^#define KYMO_WIRE_VERSION (\d+)u$', header, re.MULTILINE)[1])
