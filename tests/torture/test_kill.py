"""SIGKILL of the recorder. The program never fails, and what was in it comes out, each time.

Seeded by the clock; KYMO_SEED=N repeats a run. KILLS=N asks for so many; 500 if nothing is said.
"""
import os
import random
import time

from killing import Victim, kill_often
from kymotest import TORTURE_SECONDS, timeout

KILLS = int(os.environ.get('KILLS') or 500)


def seed():
    number = int(os.environ.get('KYMO_SEED') or time.time_ns() & 0xffffffff)
    print(f'KYMO_SEED={number}')
    random.seed(number)


@timeout(3600)
def test_a_killed_recorder_leaves_a_program_that_runs_on_and_can_be_restored(tmp):
    seed()
    kill_often(Victim(tmp), KILLS, 0.7)


@timeout(3600)
def test_a_killed_detach_can_be_repeated(tmp):
    seed()
    victim = Victim(tmp)
    for number in range(1, 300, 3):
        victim.kill_detach_at('ptrace', number)
    for number in range(1, 30):
        victim.kill_detach_at('pwrite64', number)
    victim.end()


@timeout(3600)
def test_a_recorder_that_is_killed_again_and_again_while_it_works_under_load(tmp):
    """For as long as asked, with threads that never sleep: probed code is where they always are."""
    seed()
    end = time.monotonic() + TORTURE_SECONDS
    victim = Victim(tmp, threads=4, args=('-p', '0'))
    calls = victim.calls()
    while time.monotonic() < end:
        call = random.choice(calls)
        victim.kill_at(call, random.randint(1, calls.count(call)))
    victim.end()
