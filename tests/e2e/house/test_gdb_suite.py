"""tools/gdb-suite says where kymo-gdbserver does worse, with servers whose results are known."""
import os

from kymotest import SOURCE, check, check_equal, check_same, run

RUNTEST = """#!/usr/bin/env python3
import os, pathlib, sys
words = dict(word.split('=', 1) for word in sys.argv if '=' in word)
server, test = os.path.basename(words['GDBSERVER']), sys.argv[-1]
with open('{log}', 'a') as log:
    print(server, test, file=log)
(pathlib.Path(words['--outdir']) / 'gdb.sum').write_text((pathlib.Path('{said}') / server / test).read_text())
"""
SAID = {  # by gdbserver, and by kymo-gdbserver
    'gdb.server/alike.exp': ('PASS: a\nFAIL: b (timeout)\n', 'PASS: a\nFAIL: b\n'),
    'gdb.server/better.exp': ('FAIL: a\n', 'PASS: a\n'),
    'gdb.server/left.exp': ('PASS: a\nPASS: b\n', 'PASS: a\nUNSUPPORTED: b\n'),
    'gdb.server/worse.exp': ('PASS: a\nPASS: b\n', 'PASS: a\nFAIL: b\n'),
}
WORSE = '''native-gdbserver gdb.server/left.exp:
        no PASS: b
native-gdbserver gdb.server/worse.exp:
        FAIL: b
'''
HEAD = '''| directory, board | tests | gdbserver: PASS | FAIL | kymo: PASS | FAIL | tests that do worse |
|---|---|---|---|---|---|---|
'''
ALONE = '''
| by kymo only: directory, board | tests | PASS | FAIL |
|---|---|---|---|
'''


def write_script(path, text='#!/bin/sh\n'):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def suite(tmp, *options):
    """Run it. What it printed, and what it ran: (server, test)."""
    (tmp / 'log').write_text('')
    result = run(SOURCE / 'tools/gdb-suite', '--build', tmp / 'build', '--kymo', tmp / 'bin/kymo-gdbserver', '--board',
                 'native-gdbserver', '--only', 'gdb.server', *options,
                 env={'PATH': f'{tmp}/bin:{os.environ["PATH"]}'}).ended(1)
    check_equal(result.err, '', 'what went wrong')
    return result.out, [line.split() for line in (tmp / 'log').read_text().splitlines()]


def prepare(tmp):
    tree = tmp / 'build/gdb-0/gdb/testsuite'
    write_script(tree / 'configure', '#!/bin/sh\nprintf "site.exp:\\n\\ttouch site.exp\\n" >Makefile\n')
    for name in 'gdb', 'gdbserver', 'kymo-gdbserver':
        write_script(tmp / 'bin' / name)
    write_script(tmp / 'bin/runtest', RUNTEST.format(log=tmp / 'log', said=tmp / 'said'))
    for test, texts in SAID.items():
        for server, text in zip(('gdbserver', 'kymo-gdbserver'), texts):
            for path in tree / test, tmp / 'said' / server / test:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)


def runs_of(ran, server):
    return [test.removeprefix('gdb.server/').removesuffix('.exp') for who, test in ran if who == server]


def test_both_servers_run_all_and_what_is_worse_twice(tmp):
    prepare(tmp)
    out, ran = suite(tmp)
    check_same(out, f'{WORSE}{HEAD}| gdb.server, native | 4 | 5 | 2 | 4 | 2 | 2 |\n', 'the first run')
    for server in 'gdbserver', 'kymo-gdbserver':
        check_equal(runs_of(ran, server), ['alike', 'better', 'left', 'left', 'worse', 'worse'], server)
    out, ran = suite(tmp, '--keep', 'all')
    check_equal(ran, [], 'what runs where all is there')
    check(out.startswith(WORSE), 'it is told again', out)
    check_equal(suite(tmp, '--table'), (f'{HEAD}| gdb.server, native | 4 | 5 | 2 | 4 | 2 | 2 |\n', []), 'the table')


def test_gdbserver_runs_only_what_kymo_does_not_pass(tmp):
    prepare(tmp)
    out, ran = suite(tmp, '--quick')
    check_same(out, f'{WORSE}{HEAD}| gdb.server, native | 3 of 4 | 5 | 1 | 3 | 2 | 2 |\n'
               f'{ALONE}| gdb.server, native | 1 of 4 | 1 | 0 |\n', 'the tables')
    check_equal(runs_of(ran, 'kymo-gdbserver'), ['alike', 'better', 'left', 'left', 'worse', 'worse'], 'by kymo')
    check_equal(runs_of(ran, 'gdbserver'), ['alike', 'left', 'worse'], 'by gdbserver')
    (tmp / 'said/kymo-gdbserver/gdb.server/worse.exp').write_text('PASS: a\nPASS: b\n')
    out, ran = suite(tmp, '--quick', '--keep', 'gdbserver')
    check_equal(runs_of(ran, 'gdbserver'), [], 'results that are kept')
    check('worse.exp' not in out, 'what was mended is not told', out)
