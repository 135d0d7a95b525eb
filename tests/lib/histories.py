"""Histories of branches in traces, and recordings by function clones."""
import json
import os
from collections import Counter
from pathlib import Path

from kymotest import kymo

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
