"""Goroutines' stacks are small, and some functions use them to the end: probes go only where there is room for a pad.
"""
from pathlib import Path

import comparing
import golang
import places
from kymotest import check, check_equal, check_matches, probe_counts, record, report_json, run, timeout

GOROUTINES = 400  # that stacks.go starts


def compiled(tmp):
    """stacks.go, which ends with "ok" when no stack was written to, as ./stacks."""
    golang.build(tmp, 'stacks', Path(__file__).parent / 'stacks.go')
    check(run('./stacks').ok().err.endswith('ok\n'), 'it runs')
    return tmp / 'stacks'


def runs_well(*args):
    # all of it: a busy machine's recorder may come late
    result = record('--backend', 'inproc', '--buffer', '128M', *args, seconds=200).ok()
    check(result.err.find('\nok\n') >= 0, 'no stack was written to', result)
    check_equal(report_json()['lost_events'], 0, 'lost')
    return result


@timeout(400)
def test_functions_that_use_stacks_to_the_end(tmp):
    compiled(tmp)
    result = runs_well('-p', './stacks:main.*', '-p', './stacks:main.middle:*', '-p', './stacks:main.top:*', '--',
                       './stacks')
    check_matches(
        result.err,
        r"skipped 1 of 7 functions that match ./stacks:main.\* and cannot be probed safely \(main.leaf: the function at 0x\w+ and what calls it "
        r"may leave \d+ bytes of a goroutine's stack, and a pad takes \d+\)\n", 'the warning')
    counts = probe_counts()
    check_equal(counts['stacks:main.check'], GOROUTINES, 'calls of what goroutines run')
    check(counts['stacks:main.deep'] > 100000, 'they go deep', counts)
    check_equal(counts['stacks:main.middle'], counts['stacks:main.top'], 'calls')


@timeout(400)
def test_a_function_with_no_room_left_is_refused(tmp):
    compiled(tmp)
    result = record('--backend', 'inproc', '-p', './stacks:main.leaf:*', '--', './stacks').ended(1)
    check_matches(result.err, r"none of the \d+ instructions that match ./stacks:main.leaf:\* can be probed safely",
                  'the reason')
    check('goroutine' in result.err, 'it is the stack', result)


@timeout(400)
def test_every_function_of_a_go_program(tmp):
    compiled(tmp)
    runs_well('-p', './stacks:*', '--', './stacks')
    counts = probe_counts()
    check(sum(count > 0 for count in counts.values()) > 100, 'functions run', counts)


@timeout(400)
def test_where_goroutines_return_to(tmp):
    """One byte behind the start of a function that nothing calls."""
    path = compiled(tmp)
    name = next(name for name in ('runtime.goexit.abi0', 'runtime.goexit') if name in places.symbols(str(path)))
    runs_well('-p', f'./stacks:{name}:*', '--', './stacks')
    check_equal(probe_counts()[f'stacks:{name}+0x1'], GOROUTINES, 'goroutines that ended')
    offset = comparing.functions(str(path))[name].pop()
    run('strip', '-o', 'stripped', 'stacks').ok()
    result = record('--backend', 'inproc', '-p', f'./stripped:0x{offset:x}', '--', './stripped', seconds=200).ok()
    check(result.err.find('ok\n') >= 0, 'it runs', result)
