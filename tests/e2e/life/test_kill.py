"""Recorders that are killed; tests/torture/test_kill.py does it more often."""
import random

from killing import Victim, kill_often
from kymotest import timeout


def test_a_killed_recorder_leaves_a_program_that_runs_on_and_can_be_restored(tmp):
    random.seed(4711)
    kill_often(Victim(tmp), 40, 0.6)
