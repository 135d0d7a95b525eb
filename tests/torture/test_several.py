"""A recorder of several processes that is killed, and processes that die while it attaches to the others."""
import os
import random
import shutil
import signal
import time

import remains
from killing import ENTRIES, NO_LEAKS
from kymotest import (KYMO, TORTURE_SECONDS, check, clean_up_after, eventually, kymo, probe_counts, run, start, target,
                      timeout)
from seeds import seed

N = 3
KILLS = int(os.environ.get('KILLS') or (6 if TORTURE_SECONDS <= 10 else 200))


def victims():
    """Programs that check themselves, and what they have mapped."""
    programs = [target('selfcheck', '-t', 4) for _ in range(N)]
    time.sleep(0.3)  # what they map lazily is there
    return programs, [remains.lasting_mappings(program.pid) for program in programs]


def recorder(programs, seconds, *options):
    return [
        KYMO, 'record', '-q', '--buffer', '1M', *options, *ENTRIES, '--for', seconds, '--pid', ','.join(
            str(program.pid) for program in programs)
    ]


def restore(program, before):
    there = remains.are_there(program.pid)
    result = kymo('detach', program.pid)
    check(not result.status or not remains.are_there(program.pid), f'what was there ({there}) is taken out', result)
    remains.check_nothing_left(program.pid, before, remains.lasting_mappings)


def check_said(program):
    said = program.end(signal.SIGTERM).ok().json()
    check(min(n for kind, n in said.items() if kind != 'children') > 0, 'it did all kinds of work', said)


@timeout(7200)
def test_a_killed_recorder_of_several_leaves_each_to_be_restored(tmp):
    seed()
    programs, before = victims()
    begin = time.monotonic()
    run(*recorder(programs, 0.05), env=NO_LEAKS).ok()
    whole, left = time.monotonic() - begin, []
    for i in range(KILLS):
        process = start(*recorder(programs, 0.05 if i else 600, *random.choice([(), ('--follow', )])), env=NO_LEAKS)
        if i:
            time.sleep(random.random() * whole)
        else:  # the first one at a known place
            eventually(lambda: remains.are_there(programs[0].pid), 'the recorder has come to a program', 60)
        process.end(signal.SIGKILL)
        shutil.rmtree('kymo.data', ignore_errors=True)
        left.append([remains.are_there(program.pid) for program in programs])
        for program, mappings in zip(programs, before):
            check(program.is_alive(), 'the program runs on', program.result())
            restore(program, mappings)
    check(any(any(each) for each in left), 'some kills came when something of kymo was in a process', left)
    for program in programs:
        check_said(program)


@timeout(7200)
def test_one_of_several_dies_at_any_instant_and_the_others_are_recorded(tmp):
    seed()
    end, n = time.monotonic() + TORTURE_SECONDS / 2, 0
    while n < 4 or time.monotonic() < end:
        n += 1
        with clean_up_after():
            programs, before = victims()
            victim = programs.pop(random.randrange(N))
            mappings = [remains.lasting_mappings(program.pid) for program in programs]
            process = start(*recorder([victim, *programs], 1.5), env=NO_LEAKS)
            time.sleep(random.random() * 0.5)
            victim.signal(signal.SIGKILL)
            result = process.end()
            check(result.status == 0 or f'there is no process {victim.pid}' in result.err,
                  'the recording ends in order', result)
            if not result.status:
                check(all(probe_counts().get(f'selfcheck:{name}', 0) for name in ('work_a', 'work_b')),
                      'the others were recorded', result)
            for program, mapped in zip(programs, mappings):
                remains.check_nothing_left(program.pid, mapped, remains.lasting_mappings)
                check_said(program)
            shutil.rmtree('kymo.data', ignore_errors=True)
