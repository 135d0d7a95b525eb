"""The duration of a call among the values and in the filter of a probe at its return: what the program measures itself,
and what is not known."""
import os
import re
from pathlib import Path

from kymotest import SOURCE, check, check_equal, events, kymo, record, report_json, run, start, start_record

PYTHON = '/usr/bin/python3'
SLOW_NS = 20_000_000

# Reads of 77 bytes: each third waits for half a second, the others find what they read.
READER = r"""
import os, threading
a, b = os.pipe()
for i in range(9):
    if i % 3:
        os.write(b, b'x' * 77)
    else:
        threading.Timer(.5, os.write, (b, b'x' * 77)).start()
    os.read(a, 77)
"""


def unwinding(tmp):
    path = tmp / 'unwinding'
    run('g++', '-O1', '-g', '-fno-optimize-sibling-calls', '-o', path, SOURCE / 'tests/e2e/calls/unwinding.cc',
        '-pthread').ok()
    return path


def is_known(event):
    return not event['faults'] & 1


def test_durations_are_those_that_the_program_measures(tmp):
    """Also of what exceptions, longjmp and coroutines leave, and of calls within calls of the same function."""
    path = unwinding(tmp)
    for way, n in ('throw', 100), ('twice', 2), ('longjmp', 50), ('setcontext', 50), ('coroutines', 6):
        result = record('-r', f'{path}:w_* duration', '--', path, way, n).ok()
        truth = {}
        for name, *numbers in (line.split() for line in result.out.splitlines() if line.startswith('w_')):
            sums = truth.setdefault(name.split('>')[-1], [0, 0, 0, 0])
            truth[name.split('>')[-1]] = [a + int(b) for a, b in zip(sums, numbers)]
        check(truth, f'{way}: the program says something')
        for name, (count, _, inner, outer) in truth.items():
            mine = [event for event in events() if event.name == f'unwinding:{name}%return']
            check_equal((len(mine), all(map(is_known, mine))), (count, True), f'{way}: returns of {name}')
            total = sum(event['duration'] for event in mine)
            check(inner * 0.99 - 1000 <= total <= outer * 1.01 + 1000 or not count,
                  f'{way}: {name} took {total} ns; it says {inner} to {outer}')


def test_the_duration_is_the_time_between_both_records():
    """In one run with a probe at the entry, which pads pass before or after that of the duration."""
    record('-p', 'libc:malloc', '-r', 'libc:malloc took=duration', '--', PYTHON, '-c', 'import json').ok()
    report = report_json()
    calls, = report['calls']
    check_equal((calls['count'], calls['without_entry']), (report['probes'][0]['count'], 0), 'pairs')
    mine = [event['took'] for event in events() if event.name == 'libc:malloc%return']
    check_equal(len(mine), calls['count'], 'returns')
    mean = sum(mine) / len(mine)
    check(abs(mean - calls['duration_ns']['mean']) < 2000, f'mean {mean} and {calls["duration_ns"]["mean"]}')


def test_a_filter_of_durations_keeps_those_calls_alone():
    record('-r', 'r:slow libc:read /retval == 77 && duration > 20ms/ duration retval', '-r',
           'r:fast libc:read duration retval if duration <= 20ms', '-r', 'r:all libc:read duration retval', '--count',
           'libc:read /retval == 77 && duration > 20ms/', '--', PYTHON, '-c', READER).ok()
    of = {name: [event for event in events() if event.name == name] for name in ('slow', 'fast', 'all')}
    check_equal([event['retval'] for event in of['slow']], [77] * 3, 'slow reads')
    check(all(event['duration'] > SLOW_NS for event in of['slow']), 'are slow')
    check(all(event['duration'] <= SLOW_NS for event in of['fast']), 'fast ones are fast')
    slow = [event for event in of['all'] if event['duration'] > SLOW_NS and event['retval'] == 77]
    check_equal(len(slow), 3, 'of all reads')
    table, = report_json()['aggregations']
    check_equal(table['rows'][0]['count'], 3, 'counted')
    check(all(map(is_known, of['all'])), 'all durations are known')
    check_equal({probe['name']: probe['count'] for probe in report_json()['probes']},
                {name: len(found) for name, found in of.items()}, 'the report')


def test_limits_are_not_joined_to_alternatives():
    """'||' binds less than '&&', so a limit is not the other side of all of it."""
    for spec in ('libc:read /retval < 0 || retval > 100 && duration > 5ms/', 'libc:read /duration > 5ms || retval < 0/',
                 'libc:read /retval ? retval > 5 : 0 && duration > 5ms/'):
        result = kymo('record', '-r', spec, '--', 'true').ended(2)
        check('the duration of a call is compared with a number, and that is joined to the rest by' in result.err, spec,
              result.err)
    record('-r', 'libc:read /(retval < 0 || retval > 100) && duration >= 0/', '--', 'true').ok()


def test_a_flight_recorder_has_stacks_or_durations():
    result = kymo('record', '--keep', '8M', '--stack', '-r', 'libc:read duration', '--', 'true').ended(2)
    check('with --keep a probe has --stack or the duration or entry() of its calls' in result.err, 'refused', result.err)


def test_records_have_their_thread_cpu_and_stack():
    script = 'import threading\nfor i in range(4): threading.Thread(target=len, args=("",)).start()'
    record('--stack', '--buffer', '64M', '-r', 'libc:malloc /duration >= 0/ duration retval', '-p', 'libc:free', '--', PYTHON, '-c',
           script).ok()
    found = events()
    mine = [event for event in found if event.name == 'libc:malloc%return']
    check(len(mine) > 1000, 'there are records')
    check({event['cpu_id'] for event in mine} <= set(range(os.cpu_count())), 'CPUs')
    others = [event for event in found if event.name == 'libc:free']
    check({event['tid'] for event in mine} <= {event['tid'] for event in others}, 'threads')
    check(' in malloc' in kymo('report', '--events').ok().out or 'malloc' in kymo('report', '--folded').ok().out,
          'stacks')


def test_what_began_before_is_not_guessed():
    for words, is_kept in ('libc:read duration retval', True), ('libc:read /duration > 0/ retval', False):
        process = start(PYTHON, '-c', 'import os; print("up", flush=True); os.read(0, 5); os.read(0, 6)')
        process.wait_for('up')
        recorder = start_record(process.pid, '-r', words)
        process.send('hello')
        process.end(input='again!').ok()
        result = recorder.end().ok()
        mine = {event['retval']: event for event in events() if event['retval'] in (5, 6)}
        check_equal(set(mine), {5, 6} if is_kept else {6}, words)
        check_equal('1 call had no entry in the recording' in result.err, not is_kept, result.err)
        if is_kept:
            check_equal([is_known(mine[5]), is_known(mine[6])], [False, True], words)
            check('duration=(unknown) retval=5' in kymo('report', '--events').ok().out, 'the report')


def test_it_goes_with_a_flight_recorder():
    record('--keep', '8M', '--until', 'libc:read /retval == 77 && duration > 20ms/', '-r',
           'libc:read /duration > 20ms && retval == 77/ duration', '-p', 'libc:malloc', '--', PYTHON, '-c', READER).ok()
    check(any(event.name == 'libc:read%return' for event in events()), 'what ended it is among what is kept')


def test_children_have_their_own():
    record('-r', 'libc:read /retval == 77 && duration > 20ms/ duration', '--', '/bin/sh', '-c',
           f'{PYTHON} -c "$0" & {PYTHON} -c "$0"; wait', READER).ok()
    mine = [event for event in events() if event.name == 'libc:read%return']
    check_equal((len(mine), len({event['tid'] for event in mine})), (6, 2), 'reads of both')


def test_refusals():
    for option, words, sentence in (
        ('-r', 'libc:read /duration > 5ms || retval/', "joined to the rest by '&&'"),
        ('-r', 'libc:read /duration > 5ms', "expected '/' at the end of the filter"),
        ('-r', 'libc:read x=duration/1000', 'a pad does not know the duration of its call: record it alone'),
        ('-r', 'libc:read x=duration:u8', 'a whole number of nanoseconds; leave the type out'),
        ('-r', 'libc:read duration x=duration', 'the duration of a call is recorded once'),
        ('-r', 'libc:read /duration < 0/', 'no call has such a duration'),
        ('-p', 'libc:read duration', "'duration' is known where the function returns; write -r in place of -p"),
        ('-p', 'libc:read /duration > 5ms/', 'write -r in place of -p'),
    ):
        record(option, words, '--', '/bin/true').refused(re.escape(sentence), 2)
    for options, sentence in (
        (('--backend', 'kernel'), 'durations of calls, and entry(), are of probes in the process itself: leave --backend out'),
        (('--overwrite', ), 'write --keep SIZE in place of --overwrite'),
        (('--hist', 'duration'), 'the probe before it records the duration of its calls'),
    ):
        record('-r', 'libc:read duration', *options, '--', '/bin/true').refused(re.escape(sentence), 2)
