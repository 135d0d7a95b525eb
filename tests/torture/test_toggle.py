"""Probes that come and go under load. Seeded by the clock; KYMO_SEED=N repeats a run."""
import toggling
from kymotest import TORTURE_SECONDS, timeout
from seeds import seed


@timeout(7200)
def test_eight_probes_on_sixteen_threads(tmp):
    seed()
    toggling.toggle_for(TORTURE_SECONDS, tmp)


@timeout(7200)
def test_recorders_that_start_and_stop_in_any_order(tmp):
    seed()
    toggling.two_recorders_for(TORTURE_SECONDS, tmp)


@timeout(7200)
def test_a_recorder_that_stays_misses_nothing_while_others_come_and_go(tmp):
    seed()
    toggling.check_one_that_stays(TORTURE_SECONDS, tmp)
