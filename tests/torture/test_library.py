"""libkymo-marker under load: objects of probes that are unloaded, sites that are toggled. No seeds: what happens when
is the scheduler's."""
from kymotest import TARGETS, TORTURE_SECONDS, check, check_equal, run, target_path, timeout


@timeout(7200)
def test_the_object_of_a_probe_is_unloaded_right_after_it_was_disconnected(tmp):
    said = run(target_path('markers/modules'), 'unload', TARGETS / 'markers/probe-object.so', TORTURE_SECONDS,
               seconds=TORTURE_SECONDS + 120).ok().json()
    check(said['unloads'] > 0 and said['calls'] > said['unloads'], 'it was done often', said)


@timeout(7200)
def test_a_thousand_sites_are_toggled_all_the_time(tmp):
    said = run(target_path('markers/storm'), TORTURE_SECONDS, 8, seconds=TORTURE_SECONDS + 120).ok().json()
    wrong = {key: said[key] for key in ('wrong', 'late', 'broken', 'failed')}
    check_equal(wrong, {'wrong': 0, 'late': 0, 'broken': 0, 'failed': 0}, 'what went wrong')
    check(said['calls'] and said['toggles'], 'it was done', said)
