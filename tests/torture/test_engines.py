"""Engines of a hub that do anything at random, for long, in the hub's process and through its socket; and hubs and
clients that are killed meanwhile."""
import os
import random
import time
from pathlib import Path

import processes
from kymotest import (SOURCE, TARGETS, TORTURE_SECONDS, Process, check, check_equal, clean_up_after, eventually, skip,
                      start, timeout)
from seeds import seed

RANDOM = SOURCE / 'build/tests/unit/unit-hub-random'
THROUGH_SOCKET = SOURCE / 'build/tests/unit/unit-hub-random_socket'

# What each thing that tests/targets/family does ends with, if it has found nothing wrong.
ENDS = {'exec': 7, 'storm': 3, 'stops': 0}


def begin(events, program=RANDOM, **env):
    if not program.exists():
        skip('built without tests')
    return start(
        program, env={
            'KYMO_TARGETS': str(TARGETS), 'KYMO_HUB_EVENTS': str(events), 'KYMO_SEED': str(random.getrandbits(31)),
            **env
        })


def run_for_long(seconds, events, program):
    """At least once. What it says has the seed in it."""
    seed()
    end = time.monotonic() + seconds
    while True:
        with clean_up_after():
            begin(events, program).end(seconds=1200).ok()
        if time.monotonic() > end:
            return


@timeout(7200)
def test_engines_get_one_last_callback_each_and_programs_run_right(tmp):
    # what a few seconds have room for, with sanitizers beside
    run_for_long(TORTURE_SECONDS / 2, 100_000 if TORTURE_SECONDS > 10 else 10_000, RANDOM)


@timeout(1800)
def test_clients_and_hubs_are_killed_and_who_lives_is_told_the_end_once(tmp):
    run_for_long(TORTURE_SECONDS / 2, 100_000 if TORTURE_SECONDS > 10 else 2_000, THROUGH_SOCKET)


def commands_of(hub):
    """Programs that it has launched: { pid: what they do }."""
    found = {}
    for pid in processes.children(hub.pid):
        try:
            words = Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
        except OSError:
            continue
        if len(words) > 1 and words[0].endswith(b'/family'):
            found[pid] = words[1].decode()
    return found


def status_of(pid):
    """Of an orphan that is ours now, when it has ended."""
    def ended():
        got, status = os.waitpid(pid, os.WNOHANG)
        return got and [status]

    return eventually(ended, f'process {pid} ends without a hub', 60)[0]


@timeout(7200)
def test_programs_run_right_when_their_hub_is_killed(tmp):
    seed()
    end, n = time.monotonic() + TORTURE_SECONDS / 2, 0
    while n < 10 or time.monotonic() < end:
        with clean_up_after():
            hub: Process = begin(10_000_000, KYMO_HUB_NO_STEPS='1')
            eventually(lambda: commands_of(hub) or not hub.is_alive(), 'the hub launches something')
            time.sleep(random.random() * 0.3)
            commands = commands_of(hub)
            hub.kill()
            # but for those that the hub has still waited for
            for pid in commands.keys() & processes.children(os.getpid()):
                thing, status = commands[pid], status_of(pid)
                check(os.WIFEXITED(status), f'{thing} ended by signal {status & 0x7f}')
                check_equal(os.WEXITSTATUS(status), ENDS[thing], f'exit status of {thing}')
            n += bool(commands)
