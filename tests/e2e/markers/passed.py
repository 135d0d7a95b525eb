"""What `marked` says that it passed, held against what was recorded."""
import collections
import json
import math
import re

import markers
from kymotest import check, check_equal, events, kymo

# A recorder that waits for its turn on a busy machine must not lose what a program does in one go.
ALL = ['-m', 'marked:*', '--buffer', '64M']


def passed(log):
    """What `marked -l` says that it passed, by marker: lists of {field: value}."""
    found = collections.defaultdict(list)
    for line in log.read_text().splitlines():
        fields = json.loads(line)
        found[fields.pop('name')].append(fields)
    return found


BABELTRACE, EXACT = 5, 15  # digits of reals


def is_same(got, want, digits):
    """babeltrace2 2.0 prints of an empty string what the one before had at the same place in its memory."""
    if want == '' and digits == BABELTRACE:
        return isinstance(got, str)
    if isinstance(want, float) or isinstance(got, float):
        return math.isclose(float(got), float(want), rel_tol=10.0**-digits)
    return got == want


def check_values(name, got, want, digits):
    check_equal(len(got), len(want), f'records of {name}')
    for i, (one, other) in enumerate(zip(got, want)):
        check(one.keys() == other.keys() and all(is_same(one[field], other[field], digits) for field in other),
              f'record {i} of {name}: expected {other}, got {one}')


def check_against_log(found, log, digits):
    """`found`: marker's name to its records."""
    said = passed(log)
    check_equal(set(said) - set(found), set(), 'markers that are missing')
    for name, want in said.items():
        check_values(name, found[name], want, digits)


def by_babeltrace(stem='marked', directory='kymo.data'):
    found = collections.defaultdict(list)
    for event in events(directory):
        found[event.name.removeprefix(f'{stem}:')].append(markers.values(event))
    return found


def by_report(stem='marked'):
    """The same of `kymo report --events`."""
    found = collections.defaultdict(list)
    for line in kymo('report', '--events').ok().out.splitlines():
        if '--- overwritten' in line:
            continue
        match = re.match(rf'\s*[\d.]+ \[\d+\]\s+\d+ (?:\S+ )?{stem}:(\w+)(.*)$', line)
        check(match, f'a line of the report: {line}')
        fields = re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)', match[2])
        found[match[1]].append({field: markers.value(text) for field, text in fields})
    return found


def check_counts(program_said, counts, stem='marked'):
    """Of the program's last line and babeltrace2's."""
    for name, n in program_said.items():
        if name not in ('evaluations', 'children'):
            check_equal(counts[f'{stem}:{name}'], n, f'records of {name}')
