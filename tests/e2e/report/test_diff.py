"""What `kymo report --diff` shows of two recordings beside each other."""
import json
import re
from collections import Counter

from kymotest import KYMO, check, check_equal, kymo, record, run

PROBES = ['-p', 'libc:malloc', '-r', 'libc:malloc', '-p', 'libc:free', '-s', '%file']


def two_recordings():
    """Of programs with other counts; one probe is in the first alone, one in the second, and one is hit in the second
    alone."""
    record('-o', 'before', *PROBES, '-p', 'libc:fopen', '-p', 'libc:opendir', '--', 'cat', '/etc/hostname').ok()
    record('-o', 'after', *PROBES, '-p', 'libc:fclose', '-p', 'libc:opendir', '--', 'ls', '/').ok()


def counted(directory):
    """Records by probe, one after the other."""
    lines = kymo('report', '--events', '--raw', '--json', directory).ok().out.splitlines()
    return Counter(event['name'] for event in map(json.loads, lines)
                   if event['event'] == 'probe' and event['name'] != 'syscall:return')


def probes_of(directory):
    return {probe['name']
            for probe in json.loads(kymo('report', '--json', directory).ok().out)['probes']} - {'syscall:return'}


def test_numbers_are_those_of_each_recording(tmp):
    two_recordings()
    diff = json.loads(kymo('report', '--diff', 'before', '--json', 'after').ok().out)
    for side, directory in (('a', 'before'), ('b', 'after')):
        alone = json.loads(kymo('report', '--json', directory).ok().out)
        check_equal({key: diff[side][key] for key in ('directory', 'events', 'duration_ns', 'lost_events')},
                    {key: alone[key] for key in ('directory', 'events', 'duration_ns', 'lost_events')},
                    f'all of {directory}')
        counts, probes = counted(directory), probes_of(directory)
        for row in diff['probes']:
            check_equal(row[side], {'count': counts[row['name']]} if row['name'] in probes else None,
                        f"{row['name']} of {directory}")
        calls = {call['name']: call for call in alone['calls'] if call['count']}
        for row in diff['calls']:
            call = calls.get(row['name'])
            ns = call and call['duration_ns']
            check_equal(
                row[side], ns and {
                    'count': call['count'], 'total_ns': ns['sum'], 'min_ns': ns['min'], 'p50_ns': ns['p50'], 'p90_ns':
                    ns['p90'], 'p99_ns': ns['p99'], 'max_ns': ns['max']
                }, f"{row['name']} of {directory}")
    check_equal({row['name'] for row in diff['probes']},
                set(counted('before')) | set(counted('after')), 'what was hit in one of them')
    check({'libc:malloc', 'syscall:openat'} <= {row['name'] for row in diff['calls']}, 'calls of both kinds',
          diff['calls'])


def rows_of(text, heading):
    """{name: words} of one table, in its order."""
    lines = iter(text.splitlines())
    next(line for line in lines if line.startswith(heading + ' '))
    found = {}
    for line in lines:
        if not line.strip():
            break
        name, *words = re.split(r'\s{2,}', line.strip())
        found[name] = words
    return found


def expected_change(a, b):
    if a == b:
        return '='
    if not a:
        return 'new'
    percent = (b - a) * 100 / a
    if percent >= 900:
        return f'x{b / a:.0f}'
    return f'{percent:+.1f}%' if abs(percent) < 9.95 else f'{percent:+.0f}%'


def test_a_change_is_shown_and_the_largest_comes_first(tmp):
    two_recordings()
    before, after = counted('before'), counted('after')
    rows = rows_of(run(KYMO, 'report', '--diff', 'before', '--all', 'after', env={'LC_ALL': 'C'}).ok().out, 'PROBE')
    expected = {}
    for name in before | after:
        here, there = name in probes_of('before'), name in probes_of('after')
        change = expected_change(before[name], after[name]) if here and there else 'gone' if here else 'new'
        expected[name] = [f'{before[name]:,}' if here else '-', f'{after[name]:,}' if there else '-', change]
    check_equal({name: words[:3] for name, words in rows.items()}, expected, 'rows')
    changes = [abs(after[name] - before[name]) for name in rows]
    check_equal(changes, sorted(changes, reverse=True), 'the order')
    check_equal(expected['libc:opendir'][::2], ['0', 'new'], 'recorded in both, hit in one')


def test_a_recording_beside_itself_has_no_change(tmp):
    two_recordings()
    text = run(KYMO, 'report', '--diff', 'after', 'after', env={'LC_ALL': 'C'}).ok().out
    for heading, n in (('PROBE', 2), ('CALLS', 3)):
        for name, words in rows_of(text, heading).items():
            check_equal(words[2::3], ['='] * n, f'changes of {name}')
            check_equal(words[0::3], words[1::3], f'numbers of {name}')


def test_no_page_is_too_narrow(tmp):
    two_recordings()
    for width in (20, 60, 80):
        text = run(KYMO, 'report', '--diff', 'before', '-w', width, 'after', env={'LC_ALL': 'C'}).ok().out
        check('CHANGE' in text, 'the first numbers are there', text)
        if width >= 60:
            check_equal([line for line in text.splitlines() if len(line) > width], [], f'lines wider than {width}')


def test_of_a_part_both_are_shown(tmp):
    two_recordings()
    diff = json.loads(kymo('report', '--diff', 'before', '--probe', 'malloc', '--json', 'after').ok().out)
    check_equal([row['name'] for row in diff['probes']], ['libc:malloc', 'libc:malloc%return'], 'probes')


def test_what_cannot_be_compared_is_refused(tmp):
    two_recordings()
    refused = {
        ('--diff', 'nowhere', 'after'): (1, "kymo: cannot open the trace nowhere: No such file or directory\n"),
        ('--diff', 'before', 'nowhere'): (1, "kymo: cannot open the trace nowhere: No such file or directory\n"),
        ('--diff', 'before', '--events', 'after'):
        (2, 'kymo: --diff compares summaries: it may be combined with --json, not with --events\n'),
        ('--diff', 'before', '--by-thread', 'after'):
        (2, 'kymo: --diff compares summaries: it may be combined with --json, not with --by-thread\n'),
        ('before', 'after'): (2, "kymo: one directory at a time: 'after' is too much; --diff A B compares two\n"),
        ('--diff', 'before', '--probe', 'fclose', 'after'):
        (1, "kymo: before: no probe of this recording matches 'fclose': 'kymo report --all' names them all\n"),
    }
    for options, (status, sentence) in refused.items():
        result = run(KYMO, 'report', *options)
        check_equal((result.status, result.err.replace("try 'kymo help report'\n", '')), (status, sentence),
                    f'{options}')
