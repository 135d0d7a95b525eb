"""The yardstick itself: kernel uprobes count what the programs say they did, by both ways, and what they count does
not vary."""
import signal
import sys

from kernelcount import PerfCounter, count_command, library
from kymotest import alone, check_equal, eventually, target, target_path

JSON_IMPORT = ['setarch', '-R', sys.executable, '-S', '-c', 'import json']
FIXED = {'PYTHONHASHSEED': '0', 'PYTHONDONTWRITEBYTECODE': '1'}


def test_a_known_number_of_calls_is_counted_exactly():
    path = target_path('callmany')
    for n in (0, 1, 12345):
        result, counts = count_command([path, n], {'work_a': (path, 'work_a'), 'work_b': (path, 'work_b')})
        check_equal(result.ok().out, f'work_a {n}\n')
        check_equal(counts, {'work_a': n, 'work_b': 0})


def test_the_same_run_gives_the_same_counts():
    sites = {name: (library('libc.so.6'), name) for name in ('malloc', 'free', 'read')}
    results = [count_command(JSON_IMPORT, sites, env=FIXED)[1] for _ in range(2)]
    check_equal(results[1], results[0])
    check_equal(results[0]['malloc'] > 1000, True, 'mallocs of an import')


def test_children_count_when_asked_for():
    path = target_path('forker')
    for children in (False, True):
        result, counts = count_command([path, 100], {'work_a': (path, 'work_a')}, children=children)
        said = result.ok().json()
        check_equal(counts['work_a'], sum(said.values()) if children else said['parent'])


def test_threads_that_come_and_go_are_counted():
    path = target_path('selfcheck')
    result, counts = count_command([path, '-n', '300', '-t', '8'],
                                   {name: (path, name) for name in ('work_a', 'work_b', 'work_deep')})
    said = result.ok().json()
    check_equal(counts, {name: said[name] for name in counts})


def test_a_running_process_is_counted_in_all_threads():
    process = target('callmany', '-w', '1000')
    counter = PerfCounter(process.pid, {'work_a': (target_path('callmany'), 'work_a')})
    process.end(input='\n\n').ok()
    check_equal(counter.counts(), {'work_a': 1000})


def test_attaching_to_threads_that_come_and_go_loses_none():
    process = target('selfcheck', '-t', '8', '-p', '1000')
    path = target_path('selfcheck')
    sites = {name: (path, name) for name in ('work_a', 'work_b', 'work_c', 'work_redzone')}
    counter = PerfCounter(process.pid, sites)
    eventually(lambda: counter.counts()['work_b'] > 10000, 'calls are counted')
    said = process.end(signal.SIGTERM).ok().json()
    counts = counter.counts()
    missed = {said[name] - counts[name] for name in ('work_b', 'work_c', 'work_redzone')}
    # What was called before is missing, by the same number but for one round that each thread was in.
    check_equal(max(missed) - min(missed) <= 8, True, f'{counts} of {said}')


@alone
def test_perf_and_tracefs_agree():
    sites = {name: (library('libc.so.6'), name) for name in ('malloc', 'free', 'read')}
    perf = count_command(JSON_IMPORT, sites, env=FIXED)[1]
    check_equal(count_command(JSON_IMPORT, sites, env=FIXED, tracefs_records=True)[1], perf)
    path = target_path('forker')
    for children in (False, True):
        result, counts = count_command([path, 100], {'work_a': (path, 'work_a')}, children=children,
                                       tracefs_records=True)
        said = result.ok().json()
        check_equal(counts['work_a'], sum(said.values()) if children else said['parent'])


def test_samples_of_many_sites_agree_with_counts():
    libc = library('libc.so.6')
    names = ('malloc', 'free', 'read', 'calloc', 'realloc', 'open64', 'close')
    sites = {name: (libc, name) for name in names}
    counted = count_command(JSON_IMPORT, sites, env=FIXED)[1]
    check_equal(count_command(JSON_IMPORT, sites, env=FIXED, many=True)[1], counted)
    path = target_path('forker')
    for children in (False, True):
        result, counts = count_command([path, 100], {'work_a': (path, 'work_a')}, children=children, many=True)
        said = result.ok().json()
        check_equal(counts['work_a'], sum(said.values()) if children else said['parent'])
    path = target_path('selfcheck')
    result, counts = count_command([path, '-n', '300', '-t', '8'],
                                   {name: (path, name) for name in ('work_a', 'work_b', 'work_deep')}, many=True)
    said = result.ok().json()
    check_equal(counts, {name: said[name] for name in counts})
