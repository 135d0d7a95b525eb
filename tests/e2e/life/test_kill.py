"""Recorders that are killed; tests/torture/test_kill.py does it more often."""
import random

from killing import Victim, kill_often


def test_a_killed_recorder_leaves_a_program_that_runs_on_and_can_be_restored(tmp):
    random.seed(4711)
    kill_often(Victim(tmp), 40, 0.6)


def test_a_killed_detach_can_be_repeated(tmp):
    random.seed(4711)
    victim = Victim(tmp, threads=4)
    for number in (1, 10, 20, 26, 29, 32, 35, 38, 41, 44, 50):
        victim.kill_detach_at('ptrace', number)
    for number in (1, 3, 5, 7, 9, 11):
        victim.kill_detach_at('pwrite64', number)
    victim.end()
