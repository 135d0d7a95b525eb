"""Histories of branches in traces, recordings by function clones, and programs that have clones."""
import json
import os
from collections import Counter
from pathlib import Path

from kymotest import (SOURCE, check, check_equal, check_matches, check_text_intact, check_untraced, eventually, kymo,
                      run, start)

CLONES = ('--branch-source', 'clones')
STEPS = ('--branch-source', 'steps')
STEADY = ('setarch', '-R')  # addresses are the same each time


def threads(directory='kymo.data'):
    return json.loads(kymo('branches', '--json', directory).ok().out)['threads']


def functions(thread):
    return Counter(branch.get('to', {}).get('function') for branch in thread['branches'])


def jumps(thread, file, named):
    """Within each of the functions of the file that are `named`."""
    def is_there(place):
        return os.path.basename(place.get('file', '')) == file and place.get('function') in named

    return [(branch['from']['linked'], branch['to']['linked']) for branch in thread['branches']
            if branch['kind'] == 'jump' and is_there(branch['from']) and is_there(branch['to'])
            and branch['from']['function'] == branch['to']['function']]


def is_clean(pid):
    return '/memfd:kymo' not in Path(f'/proc/{pid}/maps').read_text()


# ---- records among branches ----------------------------------------------------------------------


def anchors(thread):
    return [(item['event'], item['time_ns']) for item in thread['branches'] if item['kind'] == 'event']


def records(directory, tid):
    lines = kymo('report', '--events', '--json', directory).ok().out.splitlines()
    return [(event['name'], event['time_ns']) for event in map(json.loads, lines) if event.get('tid') == tid]


def check_are_records(found, thread, directory='kymo.data'):
    """Some of the thread, in their order."""
    made = records(directory, thread['tid'])
    at = made.index(found[0])
    check_equal(found, made[at:at + len(found)], 'records among branches')


# ---- programs ------------------------------------------------------------------------------------


def build(directory, name, *options, to=''):
    """tests/e2e/branches/NAME.c, as a program in the directory, which is called as its source or as `to` says."""
    source = SOURCE / 'tests/e2e/branches' / f'{name}.c'
    run('gcc', '-g', '-O1', '-pthread', *options, '-o', directory / (to or name), source).ok()


def begin(directory, *words):
    """It computes until its input ends; see running.c."""
    build(directory, 'running')
    target = start('./running', *words)
    target.wait_for('ready')
    return target


def finish(target):
    detach(target.pid)
    check_untraced(target.pid)
    check_text_intact(target.pid)
    check_matches(target.end(seconds=60).ok().out, r'^all is right$')


def detach(pid):
    """Handlers may keep threads in clones for a while."""
    def is_detached():
        result = kymo('detach', pid)
        check(result.status == 0 or 'no kymo probes' in result.err, 'taken out', result)
        return is_clean(pid)
    eventually(is_detached, 'all is out', 60)
