"""What `kymo report` shows of a recording: on pages of any width, of a part of it, by thread, and two beside each other."""
import re
import shutil
from pathlib import Path

from kymotest import KYMO, check, check_equal, check_matches, program, record, run, skip

SHOP = Path(__file__).with_name('shop.cc')
ADDS = {'_ZN4shop4Cart3addEi': 7, '_ZN4shop4Cart3addERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEi': 5,
        '_ZN4shop4Cart3addERKSt6vectorINS_4ItemESaIS2_EE': 3}


def shop(tmp):
    path = tmp / 'shop-of-a-long-name'
    run(program('g++'), '-O1', '-g', '-o', path, SHOP).ok()
    return path


def table(text, heading):
    """Rows of one table: the first column, and the others' words."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(heading + ' '))
    rows = []
    for line in lines[at + 1:]:
        match = re.match(r'(\S.*?)\s\s+([\d,]+)\s.*', line)
        if not match:
            break
        rows.append((match[1], int(match[2].replace(',', ''))))
    return rows


def test_a_pipe_gets_whole_names_and_a_narrow_page_names_that_differ(tmp):
    path = shop(tmp)
    record(*(word for name in ADDS for word in ('-p', f'{path}:{name}', '-r', f'{path}:{name}')), '--', path).ok()
    names = {f'{path.name}:{name}{end}': count for name, count in ADDS.items() for end in ('', '%return')}
    whole = run(KYMO, 'report').ok().out
    check_equal(dict(table(whole, 'PROBE')), names, 'rows in a pipe')
    check_equal(dict(table(whole, 'CALLS')), {name: n for name, n in names.items() if '%' not in name}, 'calls in a pipe')
    for width in (20, 40, 80, 100):
        for more in ([],):
            text = run(KYMO, 'report', '-w', width, *more).ok().out
            rows = table(text, 'PROBE')
            check_equal(sorted(count for _, count in rows), [3, 3, 5, 5, 7, 7], f'counts at {width}')
            check_equal(len(set(name for name, _ in rows)), 6, f'different names at {width}: {rows}')
            check_equal(len(set(name for name, _ in table(text, 'CALLS'))), 3, f'different calls at {width}')
