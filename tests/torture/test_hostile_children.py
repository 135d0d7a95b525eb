"""Forked children without rights write over all of kymo's memory that they can write, while their parent is recorded,
followed, killed and detached: it notices nothing.

tests/targets/nasty.c is both; it names each breach that a child finds. Seeded by the clock; KYMO_SEED=N repeats a
run.
"""
import json
import random
import re
import shutil
import signal
import time

from kymotest import (KYMO, TORTURE_SECONDS, check, check_equal, check_text_intact, eventually, need_root, run, start,
                      target, timeout)
from killing import NO_LEAKS
from seeds import seed

PROBES = [
    '-p', 'nasty:work_a', '-p', 'nasty:work_b:*', '-p', 'nasty:work_deep', '-p', 'libc:write', '-p', 'libc:setresuid'
]


def breaches(process):
    """Each kind once, with the number of times."""
    found = {}
    for kind in re.findall(r'^breach: (.*?) \(', process.err, re.MULTILINE):
        found[kind] = found.get(kind, 0) + 1
    return ''.join(f'\n  {kind}: {n} times' for kind, n in found.items())


def check_unharmed(process):
    found = breaches(process)
    check(process.is_alive(), f'the parent runs on, but: status {process.popen.returncode}; breaches: {found}')
    check(not found, f'a child finds no way to its parent, but: {found}')


def record_a_while(process, directory, *args):
    recording = start(KYMO, 'record', '-q', '-o', directory, *PROBES, *args, '--pid', process.pid, env=NO_LEAKS)
    # before it has made its directory it has no handler for Ctrl-C yet
    eventually(lambda: directory.exists() or not recording.is_alive(), 'it begins')
    time.sleep(0.4 + random.random())
    if random.random() < 0.5 and recording.is_alive():
        recording.end(signal.SIGKILL)
        if random.random() < 0.5:
            run(KYMO, 'detach', process.pid, env=NO_LEAKS)
    else:
        result = recording.end(signal.SIGINT)
        # A followed child may have damaged its own text, which is left alone and reported.
        is_childs = '--follow' in args and re.search(r'^kymo: .*process (?!%d\b)\d+' % process.pid, result.err,
                                                     re.MULTILINE)
        check(result.status == 0 or is_childs, f'the recorder ends in order: {result.err}', result.status)
    shutil.rmtree(directory, ignore_errors=True)


def attack(tmp, *args):
    need_root()
    seed()
    process, n, end = target('nasty'), 0, time.monotonic() + TORTURE_SECONDS / 2
    while n < 4 or time.monotonic() < end:
        record_a_while(process, tmp / 'nasty', *args)
        check_unharmed(process)
        n += 1
    left = run(KYMO, 'detach', process.pid, env=NO_LEAKS)
    check(left.status == 0 or 'has no kymo probes' in left.err,
          f'what killed recorders have left is taken out: {left.err}', left.status)
    check_text_intact(process.pid)
    check_unharmed(process)
    result = process.end(signal.SIGTERM)
    check_equal(result.status, 0, f'status of the parent: {result.err}')
    counts = json.loads(result.out.splitlines()[-1])
    check(counts['rounds'] > 0 and counts['children'] > 4, 'the parent has looked, and had children', result)


@timeout(7200)
def test_children_without_rights_do_their_parent_no_harm(tmp):
    attack(tmp)


@timeout(7200)
def test_followed_children_without_rights_do_their_parent_no_harm(tmp):
    attack(tmp, '--follow')
