"""Histories of branches by function clones in a process: the program does what it does without them, its branches are
those of single steps, and clones go out, whichever side dies."""
import json
import os
import random
import re
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

from histories import CLONES, STEADY, STEPS, functions, is_clean, jumps, threads
from kymotest import (KYMO, babeltrace, check, check_equal, check_matches, check_text_intact, check_untraced,
                      eventually, kymo, record, run, skip, start, timeout)

HERE = Path(__file__).parent


def build(tmp):
    run('gcc', '-g', '-O1', '-pthread', '-o', tmp / 'cloned', HERE / 'cloned.c').ok()


# ---- what the program does -----------------------------------------------------------------------

MODES = ('work', 'threads', 'children', 'handler', 'faults', 'returns', 'cancel', 'exec', 'crash', 'abort', '_exit',
         'kill')


@timeout(120)
def test_programs_do_what_they_do(tmp):
    build(tmp)
    for mode in MODES:
        bare = run('./cloned', mode)
        result = record('-b', 'all', *CLONES, '-o', mode, '--', './cloned', mode)
        want = bare.status if bare.status >= 0 else 128 - bare.status
        check_equal((result.status, result.out), (want, bare.out), mode)
        babeltrace(mode)
    check_matches(result.err, r'\d branches', 'what is told')


@timeout(120)
def test_faults_are_told_where_they_are(tmp):
    """A handler finds the program's own address; so does what is told of a crash."""
    build(tmp)
    result = record('-b', 'cloned', *CLONES, '--', './cloned', 'faults').ok()
    check_matches(result.out, r'^faults 20$')
    record('-b', 'cloned', *CLONES, '--', './cloned', 'crash').ended(128 + signal.SIGSEGV)
    text = kymo('report', '--crash').ok().out
    check_matches(text, r'then SIGSEGV at cloned:fault', 'where it was')
    check_matches(text, r'by function clones; not seen: the kernel, child processes', 'the source')


@timeout(120)
def test_a_handler_of_faults_ends_it(tmp):
    """It would find the address of a clone if the recorder were killed."""
    build(tmp)
    result = start(KYMO, 'record', '-b', 'cloned', *CLONES, '--', './cloned', 'handler stays')
    target = find_target(result)
    result.wait_for('its clones were taken out', 1)
    eventually(lambda: is_clean(target), 'clones are out')
    check_text_intact(target)
    ended = result.end().ok()
    check_matches(ended.out, r'^faults 20$')
    check(functions(threads()[0])['fib'] > 30, 'what it did before')


@timeout(120)
def test_what_was_overwritten_is_told(tmp):
    """How much that was is not known; where nothing was, all branches are counted."""
    build(tmp)
    for tail, warns in ('100', False), ('100000', True):
        result = record('-b', 'all', *CLONES, '--tail', tail, '-o', tail, '--', 'seq', '20000').ok()
        check_matches(result.err, r'the newest [\d,]+ branches \(earlier ones were overwritten\) in ')
        check_equal('--tail 100000 is more than clones keep: the newest 16383 blocks' in result.err, warns, tail)
        check_matches(kymo('branches', tail).ok().out, r'seq: the last [\d,]+ branches; earlier ones were overwritten')
        thread = threads(tail)[0]
        check_equal((thread['taken'], thread['overwritten']), (None, True), tail)
        check_equal(thread['kept'], len(thread['branches']), tail)
    record('-b', 'cloned:choose', *CLONES, '--tail', '20', '--', './cloned', 'work').ok()
    thread = threads()[0]
    check(thread['taken'] > 20 and 'overwritten' not in thread, 'all are counted', thread['taken'])


@timeout(120)
def test_handlers_leave_their_branches(tmp):
    """Where a loop holds the position in a register, it sees that a handler has moved it. A handler that comes within
    the four instructions of a store may lose its own."""
    build(tmp)
    for _ in range(20):
        record('-b', 'cloned', *CLONES, '--', './cloned', 'alarm').ended(7)
        found = functions(threads()[0])
        if found['on_alarm'] > 45 and found['choose'] > 45:
            return
    check(False, 'the branches of the handler', found)


# ---- beside single steps -------------------------------------------------------------------------

CHOSEN = ('collatz', 'fib', 'choose', 'compare', 'leap', 'work')


@timeout(240)
def test_each_jump_as_single_steps_see_it(tmp):
    build(tmp)
    run(*STEADY, KYMO, 'record', '-b', 'all', *STEPS, '--tail', '1000000', '-o', 'steps', '--', './cloned', 'work',
        seconds=200).ok()
    run(*STEADY, KYMO, 'record', '-b', 'cloned', *CLONES, '--tail', '16000', '-o', 'clones', '--', './cloned',
        'work').ok()
    expected = jumps(threads('steps')[0], 'cloned', CHOSEN)
    check(len(expected) > 500, 'there are some', len(expected))
    check_equal(jumps(threads('clones')[0], 'cloned', CHOSEN), expected, 'all jumps')


@timeout(240)
def test_the_jumps_of_a_real_program(tmp):
    """The newest of libc's in ls, until it has ended."""
    (tmp / 'dir').mkdir()
    for i in range(3):
        (tmp / 'dir' / f'file{i}').write_text('')
    run(*STEADY, KYMO, 'record', '-b', 'all', *STEPS, '--tail', '1000000', '-o', 'steps', '--', 'ls', 'dir',
        seconds=200).ok()
    run(*STEADY, KYMO, 'record', '-b', 'libc', *CLONES, '--tail', '16000', '-o', 'clones', '--', 'ls', 'dir').ok()
    file = os.path.basename(threads('clones')[0]['branches'][-1]['to']['file'])
    cloned = {branch['from']['function'] for branch in threads('clones')[0]['branches']
              if branch['kind'] == 'jump' and branch['from'].get('function') == branch['to'].get('function', '')}
    found = jumps(threads('clones')[0], file, cloned)
    check(len(found) > 3000, 'there are some', len(found))
    check_equal(found, jumps(threads('steps')[0], file, cloned)[-len(found):], 'the newest jumps')


COPIES = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
static char a[4000], b[4000];
int main(void)
{
	char *(*volatile copy_on)(void *, const void *, size_t) = (void *)mempcpy;
	void *(*volatile copy)(void *, const void *, size_t) = memcpy;
	void *(*volatile move)(void *, const void *, size_t) = memmove;
	void *(*volatile set)(void *, int, size_t) = memset;
	long sum = 0;

	for (int i = 0; i < 3000; i += 13) {
		set(b, i, i);
		sum += copy_on(a, b, i) - a;
		copy(b, a, i);
		move(b + i % 100, b, i);
		for (int k = 0; k < i; k++) sum = sum * 3 + b[k];
	}
	printf("%ld\\n", sum);
}
"""


@timeout(240)
def test_functions_that_others_jump_into(tmp):
    """mempcpy jumps into the middle of memcpy: that is where threads come back into its clone, too."""
    (tmp / 'copies.c').write_text(COPIES)
    run('gcc', '-O1', '-fno-builtin', '-o', 'copies', 'copies.c').ok()
    bare = run(*STEADY, './copies').ok()
    found = {}
    for source in 'steps', 'clones':
        result = run(*STEADY, KYMO, 'record', '-b', 'libc:mem*cpy', '-b', 'libc:memmove', '-b', 'libc:memset',
                     '--branch-source', source, '--tail', '16000', '-o', source, '--', './copies', seconds=200).ok()
        check_equal(result.out, bare.out, source)
        found[source] = [(branch['from']['linked'], branch['to']['linked'])
                         for branch in threads(source)[0]['branches'] if branch['kind'] == 'jump'
                         and all(branch[end].get('function', '').startswith('__mem') for end in ('from', 'to'))]
    check(len(found['clones']) > 1000, 'there are some', len(found['clones']))
    check_equal(found['clones'], found['steps'][-len(found['clones']):], 'all jumps')


# ---- threads and children ------------------------------------------------------------------------


@timeout(120)
def test_each_thread_has_its_own_ring(tmp):
    """The second thread has the stack of the first, and the word that it has left there."""
    build(tmp)
    record('-b', 'cloned', *CLONES, '--', './cloned', 'threads').ok()
    _, one, other = threads()
    check_equal(set(functions(one)), {'one', 'collatz'}, 'the first thread')
    check_equal(set(functions(other)), {'other', 'choose'}, 'the second thread')


@timeout(120)
def test_sixty_four_threads_after_sigkill(tmp):
    build(tmp)
    record('-b', 'cloned', *CLONES, '--', './cloned', 'many').ended(128 + signal.SIGKILL)
    found = threads()
    check_equal(len(found), 65, 'threads')
    for thread in found[1:]:
        check(functions(thread)['fib'] > 30, 'each has its history', thread)


@timeout(120)
def test_children_write_elsewhere(tmp):
    build(tmp)
    for mode in ('children', 'handler'):
        record('-b', 'cloned', *CLONES, '--', './cloned', mode).ok()
        found = threads()
        check_equal(len(found), 1, 'threads')
        check_equal(functions(found[0])['in_child'], 0, f'what the child has done ({mode})')


@timeout(120)
def test_exec_ends_it(tmp):
    build(tmp)
    result = record('-b', 'cloned', *CLONES, '--', './cloned', 'exec').ok()
    check_equal(result.out.count('work'), 2, 'both programs')
    check_matches(result.err, r'has executed another program \(cloned\), which is not recorded')
    check(functions(threads()[0])['fib'] > 30, 'what it did before')


# ---- taking out ----------------------------------------------------------------------------------


def find_target(recorder):
    def child():
        text = Path(f'/proc/{recorder.pid}/task/{recorder.pid}/children').read_text().split()
        return [int(pid) for pid in text if Path(f'/proc/{pid}/comm').read_text() == 'cloned\n']
    return eventually(child, 'the command runs')[0]


@timeout(120)
def test_a_thread_that_loops_is_sent_home(tmp):
    """It calls nothing, and would never leave its clone."""
    build(tmp)
    result = start(KYMO, 'record', '-b', 'all', *CLONES, '--for', '1', '--', './cloned', 'loop')
    target = find_target(result)
    eventually(lambda: Path('kymo.data').exists() and is_clean(target), 'it is out')
    check_text_intact(target)
    eventually(lambda: re.search(r'^TracerPid:\t0$', Path(f'/proc/{target}/status').read_text(), re.M), 'untraced')
    os.kill(target, signal.SIGKILL)
    result.end()


@timeout(240)
def test_recorder_killed_at_any_instant(tmp):
    build(tmp)
    chance = random.Random(7)
    expected = '11851'
    for i in range(20):
        recorder = start(KYMO, 'record', '-q', '-b', 'all', *CLONES, '--', './cloned', 'run')
        target = find_target(recorder)
        time.sleep(chance.random() * (0.3 if i % 2 else 2))
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
        check(computed <= {expected}, 'what it computes', computed)


# ---- what is refused -----------------------------------------------------------------------------


@timeout(120)
def test_what_can_have_no_clones(tmp):
    build(tmp)
    run('gcc', '-static', '-O1', '-pthread', '-o', tmp / 'static', HERE / 'cloned.c').ok()
    record('-b', 'all', *CLONES, '--', './static', 'work').refused('and this is none: --branch-source steps records it')
    record('-b', 'cloned:nothing', *CLONES, '--', './cloned', 'work').refused('no such function')
    record('-b', 'all', *CLONES, '--follow', '--', './cloned', 'work').refused('leave --follow out', 2)
    record('-b', 'all', '--branch-source', 'clone', '--', './cloned', 'work').refused('lbr, clones or steps, not', 2)
    record('-p', 'libc:malloc', *CLONES, '--', './cloned', 'work').refused('--branch-source is for branches', 2)
    check(not Path('kymo.data').exists(), 'no recording is made')


@timeout(120)
def test_no_probes_beside_clones(tmp):
    build(tmp)
    recorder = start(KYMO, 'record', '-b', 'all', *CLONES, '--', './cloned', 'run')
    target = find_target(recorder)
    eventually(lambda: 'kymo-arena' in Path(f'/proc/{target}/maps').read_text(), 'clones are in')
    record('-p', 'libc:malloc', '--pid', target, '--for', '1', '-o', 'other').refused('runs clones of its functions')
    check_matches(kymo('status', target).ok().out, r'cloned: function clones, [\d,]+ catches, [\d.]+ KiB of rings, in ')
    status, = json.loads(kymo('status', '--json', target).ok().out)
    check(status['catches'] > 1000 and status['ring_bytes'] % 65536 == 0 < status['ring_bytes'], 'as JSON', status)
    os.kill(recorder.pid, signal.SIGTERM)
    eventually(lambda: is_clean(target), 'clones are out')
    os.kill(target, signal.SIGKILL)
    recorder.end()


# ---- real programs -------------------------------------------------------------------------------

SQL = """create table t(a, b);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 5000)
  insert into t select x, x * 7 % 100 from c;
select b, count(*), sum(a) from t group by b order by 3 desc limit 5;
"""
PYTHON = 'import json; print(json.dumps(sorted({str(n): n * n for n in range(200)}.items()))); 1 / 0'


@timeout(240)
def test_real_programs(tmp):
    (tmp / 'names').write_text(''.join(f'{n * 7919 % 1009}\n' for n in range(1009)))
    for command, words in ((('ls', '-l', '/usr/bin'), ''), (('sort', '-n', 'names'), ''),
                           (('sqlite3', ':memory:'), SQL), (('/usr/bin/python3', '-c', PYTHON), '')):
        if not shutil.which(command[0]):
            skip(f'needs {command[0]}')
        bare = run(*command, input=words)
        result = record('-q', '-b', 'all', *CLONES, '--', *command, input=words)
        check_equal((result.status, result.out), (bare.status, bare.out), command[0])
        check(len(threads()[0]['branches']) > 1000, 'a history', command[0])
