"""Probes and function clones in one recording: the program does what it does without them. Probes count what they count
without clones, and each record is where it was made among the branches of its thread."""
import collections
import os
import random
import re
import signal
import time
from pathlib import Path

from histories import CLONES, STEPS, anchors, build, check_are_records, is_clean, records, threads
from kymotest import (KYMO, babeltrace, check, check_equal, check_matches, check_text_intact, check_untraced,
                      events, eventually, kymo, probe_counts, record, run, start, timeout)

PROBES = ('-p', 'cloned:collatz', '-p', 'cloned:choose', '-p', 'cloned:in_child', '-p', 'libc:malloc', '-p',
          'libc:strlen')


def counts(directory='kymo.data'):
    return {name: n for name, n in probe_counts(directory).items() if n}


def find_target(recorder):
    def child():
        text = Path(f'/proc/{recorder.pid}/task/{recorder.pid}/children').read_text().split()
        return [int(pid) for pid in text if Path(f'/proc/{pid}/comm').read_text() == 'cloned\n']
    return eventually(child, 'the command runs')[0]


# ---- what probes count ---------------------------------------------------------------------------


@timeout(200)
def test_programs_do_what_they_do_and_probes_count_all(tmp):
    """Also in children, which have clones that no party reads."""
    build(tmp, 'cloned')
    for mode in 'work', 'threads', 'children', 'handler', 'faults', 'returns', 'exec', 'crash', 'abort', '_exit':
        bare = run('./cloned', mode)
        alone = record(*PROBES, '-o', 'alone', '--', './cloned', mode)
        both = record('-b', 'all', *CLONES, *PROBES, '-o', 'both', '--', './cloned', mode)
        want = bare.status if bare.status >= 0 else 128 - bare.status
        check_equal((both.status, both.out), (want, bare.out), mode)
        check_equal(counts('both'), counts('alone'), f'what is counted ({mode}): {alone.err} {both.err}')
        babeltrace('both')


SQL = """create table t(a, b);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 2000)
  insert into t select x, x * 7 % 100 from c;
select b, count(*), sum(a) from t group by b order by 3 desc limit 5;
"""
PYTHON = 'import json; print(json.dumps(sorted({str(n): n * n for n in range(200)}.items()))); 1 / 0'


@timeout(240)
def test_real_programs(tmp):
    """All functions of libc have probes, where the planner finds a way, and clones. Python seeds its hashes, and asks
    the time, so that its calls vary."""
    (tmp / 'names').write_text(''.join(f'{n * 7919 % 1009}\n' for n in range(1009)))
    for command, words, b, probes in (
            (('sort', '-n', 'names'), '', 'libc', ('libc:*',)), (('sort', 'names'), '', 'all', ('libc:malloc',)),
            (('sqlite3', ':memory:'), SQL, 'all', ('libsqlite3:sqlite3*', 'libc:mem*')),
            (('/usr/bin/python3', '-c', PYTHON), '', 'libc', ('libc:malloc', 'libc:free')),
            (('git', '--exec-path'), '', 'libc', ('libc:str*', 'libc:malloc'))):
        bare = run(*command, input=words)
        options = [word for probe in probes for word in ('-p', probe)]
        run(KYMO, 'record', '-q', '-o', 'alone', *options, '--', *command, input=words)
        both = run(KYMO, 'record', '-q', '-o', 'both', '-b', b, *CLONES, *options, '--', *command, input=words)
        check_equal((both.status, both.out), (bare.status, bare.out), command)
        if 'python3' not in command[0]:
            check_equal(counts('both'), counts('alone'), f'what is counted ({command})')


@timeout(120)
def test_probes_elsewhere_keep_functions_from_being_cloned(tmp):
    """Markers, returns, system calls: counted as without clones, and the user is told."""
    build(tmp, 'cloned')
    options = ('-p', 'cloned:work', '-r', 'cloned:choose', '-r', 'cloned:fib', '-s', 'write')
    alone = record(*options, '-o', 'alone', '--', './cloned', 'work').ok()
    both = record('-b', 'cloned', *CLONES, *options, '-o', 'both', '--', './cloned', 'work').ok()
    check_equal((both.out, counts('both')), (alone.out, counts('alone')), 'what is counted')
    check_matches(both.err, r'the branches of \d chosen functions are not recorded, as probes are in them')
    found = {branch['from'].get('function') for branch in threads('both')[0]['branches'] if 'from' in branch}
    check('work' in found and not found & {'choose', 'fib'}, 'what has clones', found)


# ---- anchors -------------------------------------------------------------------------------------


@timeout(120)
def test_each_record_is_among_the_branches(tmp):
    """With the time of the record, where the function was entered."""
    build(tmp, 'cloned')
    record('-b', 'cloned', *CLONES, '-p', 'cloned:collatz', '-p', 'cloned:leap', '--tail', '16000', '--', './cloned',
           'work').ok()
    thread, = threads()
    check_equal(anchors(thread), records('kymo.data', thread['tid']), 'all records')
    check_equal(len(anchors(thread)), 29 + 5, 'how many there are')
    items = thread['branches']
    for i, item in enumerate(items):
        if item['kind'] != 'event':
            continue
        name = item['event'].split(':')[1]
        check_equal((items[i - 1]['kind'], items[i - 1]['to'].get('function'), items[i - 1]['to'].get('offset')),
                    ('call', name, 0), 'the branch before a record')
        check_equal(items[i + 1]['from']['function'], name, 'the branch after it')
    times = [item['time_ns'] for item in items]
    check_equal(times, sorted(times), 'times go forward')
    check_equal(thread['taken'], len(items) - 34, 'what was taken')
    check_equal(thread['kept'], len(items) - 34, 'what is kept')


@timeout(120)
def test_anchors_in_what_is_left_of_a_ring(tmp):
    """It has gone round many times: the newest records are those in it."""
    build(tmp, 'cloned')
    record('-b', 'libc', *CLONES, '-p', 'libc:malloc', '-p', 'libc:free', '--tail', '16000', '--', 'sort',
           '--parallel=1', '/etc/services', '/etc/passwd').ok()
    thread, = threads()
    found, all_of_them = anchors(thread), records('kymo.data', thread['tid'])
    check(thread['overwritten'] and 3 < len(found) < len(all_of_them), 'some are left', len(found), len(all_of_them))
    check_equal(found, all_of_them[-len(found):], 'the newest')
    check_equal(thread['kept'] + len(found), len(thread['branches']), 'kept are branches')


@timeout(120)
def test_anchors_of_threads(tmp):
    build(tmp, 'cloned')
    record('-b', 'cloned', *CLONES, '-p', 'cloned:collatz', '-p', 'cloned:choose', '--', './cloned', 'threads').ok()
    _, one, other = threads()
    for thread, name in (one, 'cloned:collatz'), (other, 'cloned:choose'):
        check_equal(anchors(thread), records('kymo.data', thread['tid']), 'its records')
        check_equal([event for event, _ in anchors(thread)], [name], 'one')


@timeout(120)
def test_before_an_event(tmp):
    build(tmp, 'cloned')
    record('-b', 'cloned', *CLONES, '-p', 'cloned:leap', '-p', 'cloned:collatz', '--tail', '16000', '--', './cloned',
           'work').ok()
    for pattern in 'cloned:leap', 'leap', 'l*':
        text = kymo('branches', '--before', pattern, '--last', '3').ok().out
        lines = text.splitlines()
        check_matches(text, r'thread \d+ cloned: 3 branches before its last cloned:leap; ended with status 0')
        check_matches(lines[-1], r' cloned:leap  at \d\.\d{9} (to \d\.\d{9} )?s( .*)?$', 'the record comes last')
        check_matches(lines[-2], r'call +cloned:leap', 'how it came there')
    kymo('branches', '--before', 'fib').refused("no history in kymo.data has a record of 'fib'")
    kymo('branches', '--before', 'leap', '--json').refused('leave --before out', 2)
    kymo('branches', '--before', 'leap', '--diff', 'kymo.data', 'kymo.data').refused('leave --before out', 2)
    text = kymo('branches').ok().out
    check_matches(text, r'cloned:collatz  at \d\.\d+ s\n', 'among all branches')
    check_matches(kymo('branches', '--diff', 'kymo.data', 'kymo.data').ok().out, 'the same', 'times are not compared')


@timeout(120)
def test_until_a_condition_holds(tmp):
    """What it is of is recorded, too, and so is among the branches."""
    build(tmp, 'cloned')
    result = record('-b', 'cloned', *CLONES, '--until', 'cloned:collatz /arg0 == 27/', '--', './cloned', 'work').ok()
    check_matches(result.err, r"'cloned:collatz /arg0 == 27/' held at [\d:.]+ in thread \d+\n")
    text = kymo('branches', '--before', 'cloned:collatz').ok().out
    check_matches(text, r'call +cloned:collatz[^\n]*\n.* cloned:collatz  at \d\.\d{9} s( .*)?$', 'how it came there')
    made = [event for event in events() if event.name == 'cloned:collatz']
    check(made, 'it is recorded')
    result = record('-b', 'cloned', *CLONES, '--until', 'cloned:fib /duration > 3600s/', '--', './cloned', 'work').ok()
    check_matches(result.err, 'the condition of --until never held: kymo.data has the records up to the end')
    names = collections.Counter(event.name for event in events())
    check(names['cloned:fib'] > 0, 'each call is recorded', names)
    check_equal(names['cloned:fib'], names['cloned:fib%return'], 'and each return')


@timeout(120)
def test_the_records_before_a_crash(tmp):
    build(tmp, 'cloned')
    record('-b', 'cloned', *CLONES, '-p', 'cloned:fault', '-p', 'cloned:choose', '--', './cloned',
           'crash').ended(128 + signal.SIGSEGV)
    text = kymo('report', '--crash').ok().out
    check_matches(text, r'then SIGSEGV at cloned:fault', 'where it was')
    check_matches(text, r'call +cloned:fault .*\n    cloned:fault  at \d\.\d+ s\n', 'the record that came last')


# ---- coming and going ----------------------------------------------------------------------------


@timeout(120)
def test_a_handler_of_faults_ends_branches_alone(tmp):
    build(tmp, 'cloned')
    result = start(KYMO, 'record', '-b', 'cloned', *CLONES, '-p', 'cloned:fib', '-p', 'cloned:fault', '-p',
                   'libc:printf', '--', './cloned', 'handler stays')
    target = find_target(result)
    result.wait_for('its clones were taken out, and later branches are not recorded', 1)
    eventually(lambda: 'kymo-arena' not in Path(f'/proc/{target}/maps').read_text(), 'clones are out')
    ended = result.end().ok()
    check_matches(ended.out, r'^faults 20$')
    check_matches(ended.err, r'1 probes that displaced an instruction which may fault, .* were taken out', 'as ever')
    check_equal((counts()['cloned:fib'], counts()['libc:printf']), (109, 2), 'what came then is counted, too')
    check(any(event == 'cloned:fib' for event, _ in anchors(threads()[0])), 'what it did before')


@timeout(120)
def test_all_goes_out_of_a_program_that_runs_on(tmp):
    build(tmp, 'cloned')
    result = start(KYMO, 'record', '-b', 'cloned', *CLONES, '-p', 'cloned:fib sample 1/100', '-p', 'libc:printf', '-p',
                   'cloned:work', '--for', '1', '--', './cloned', 'run')
    target = find_target(result)
    eventually(lambda: 'kymo-arena' in Path(f'/proc/{target}/maps').read_text(), 'clones are in')
    result.wait_for('waiting for ./cloned to end', 1, seconds=120)
    if not is_clean(target):  # a thread may still return into a clone, which is told
        eventually(lambda: kymo('detach', target) and is_clean(target), 'it is out', 90)
    check_text_intact(target)
    eventually(lambda: re.search(r'^TracerPid:\t0$', Path(f'/proc/{target}/status').read_text(), re.M), 'untraced')
    os.kill(target, signal.SIGKILL)
    computed = set(result.end().out.split('\n')[1:-2])
    check(computed <= {'11851'}, 'what it computes', computed)
    thread = threads()[0]
    found = anchors(thread)
    check_are_records(found, thread)


@timeout(240)
def test_recorder_killed_at_any_instant(tmp):
    build(tmp, 'cloned')
    chance = random.Random(11)
    for i in range(20):
        recorder = start(KYMO, 'record', '-q', '-b', 'all', *CLONES, *PROBES, '--', './cloned', 'run')
        target = find_target(recorder)
        time.sleep(chance.random() * (0.4 if i % 2 else 2))
        os.kill(recorder.pid, signal.SIGKILL)
        eventually(lambda: not recorder.is_alive(), 'it is gone')
        os.kill(target, 0)
        detached = kymo('detach', target)
        check(detached.status == 0 or 'no kymo probes' in detached.err, 'taken out', detached)
        check(is_clean(target), 'nothing is left', Path(f'/proc/{target}/maps').read_text())
        check_text_intact(target)
        check_untraced(target)
        os.kill(target, signal.SIGKILL)
        computed = set(recorder.end().out.split('\n')[1:-2])
        check(computed <= {'11851'}, 'what it computes', computed)


# ---- what is refused -----------------------------------------------------------------------------


@timeout(120)
def test_what_is_refused(tmp):
    build(tmp, 'cloned')
    build(tmp, 'cloned', '-static', to='static')
    both = ('-b', 'all', '-p', 'libc:malloc')
    record(*both, *STEPS, '--', './cloned', 'work').refused('leave -p, -r and -m out, or record by clones', 2)
    record(*both, *CLONES, '--no-follow', '--', './cloned', 'work').refused('leave --no-follow out', 2)
    record(*both, *CLONES, '--overwrite', '--', './cloned', 'work').refused('leave --overwrite out', 2)
    record(*both, *CLONES, '--count', 'libc:free', '--', './cloned').refused('leave --count and the like out', 2)
    record('-b', 'all', *CLONES, '-r', 'cloned:fib /duration > 1ms/', '--',
           './cloned').refused(r'leave durations and entry\(\) of -r out', 2)
    record('-b', 'all', *STEPS, '--until', 'libc:free', '--',
           './cloned').refused('leave --until out, or record by clones', 2)
    record('-b', 'all', *CLONES, '--until', 'libc:free', '--keep', '8M', '--snapshots', '2', '--',
           './cloned').refused('leave --snapshots out', 2)
    record('-b', 'all', *CLONES, '-p', 'static:work', '--', './static', 'work').refused('and this is none')
    check(not Path('kymo.data').exists(), 'no recording is made')
