"""Several recordings of the markers of one process, beside a program that turns them on and off itself: each is
complete, and the last one to leave turns them off."""
import itertools
import os
import re
import shutil
import signal

import kernelcount
import markers
import places
import remains
from killing import NO_LEAKS
from kymotest import (KYMO, NOBODY, check, check_equal, event_counts, eventually, kymo, program, run, skip, start,
                      target, target_path, timeout)
from markers import recorder
from recorders import unless_late

ROUNDS = 300


class Marked:
    """marked, which does ROUNDS rounds for each line that it reads."""
    def __init__(self, name='marked', *args, **options):
        self.name, self.path = name, target_path(name)
        self.process = target(name, '-w', ROUNDS, *args, **options)
        self.pid, self.times = self.process.pid, 0
        self.before = remains.lasting_mappings(self.pid)

    def go(self):
        self.times += 1
        self.process.send('\n')
        self.process.wait_for('(done\n){%d}' % self.times)

    def outside(self, *names):
        """How many recordings want each of these markers, by their counters."""
        gates = zip(markers.sites(self.path), markers.gates(self.pid, self.path))
        at = {markers.name_of(self.path, site): gate[2] for site, gate in gates}
        return [at[name] for name in names]

    def end(self):
        remains.check_nothing_left(self.pid, self.before, remains.lasting_mappings)
        markers.check_off(self.pid, self.path)
        return self.process.end().ok().json()


def leave(each, number=signal.SIGINT):
    each.end(number).ok()


def count(recording, name, stem='marked'):
    return event_counts(recording).get(f'{stem}:{name}', 0)


def test_a_recorder_that_can_not_wait_leaves_the_text_to_a_process_that_is_changing_it():
    marked = Marked()
    first = recorder(marked.pid, 'r0', '-m', 'marked:*')
    before = markers.texts(marked.pid, marked.path)
    markers.set_busy(marked.pid, marked.path, True)
    leave(first)
    check_equal(markers.texts(marked.pid, marked.path), before, 'text')
    check_equal({gate[2] for gate in markers.gates(marked.pid, marked.path)}, {0}, 'who wants them')
    marked.go()
    markers.set_busy(marked.pid, marked.path, False)
    leave(recorder(marked.pid, 'r1', '-m', 'marked:*'))
    marked.end()


# ---- coming and going ----------------------------------------------------------------------------


def test_two_recordings_of_the_same_markers_leave_in_any_order():
    for order in ((0, 1), (1, 0)):
        marked = Marked()
        recorders = [recorder(marked.pid, f'r{i}', '-m', 'marked:*') for i in range(2)]
        check_equal(marked.outside('text', 'eight'), [2, 2], 'who wants them')
        marked.go()
        leave(recorders[order[0]])
        check_equal(marked.outside('text', 'eight'), [1, 1], 'who wants them then')
        marked.go()
        leave(recorders[order[1]])
        check_equal([count(f'r{i}', name) for i in order for name in ('text', 'eight', 'costly')],
                    [ROUNDS] * 3 + [2 * ROUNDS] * 3, 'records')
        marked.go()
        check_equal(marked.end()['evaluations'], 2 * ROUNDS, 'evaluations')


@timeout(300)
def test_three_recordings_of_overlapping_markers_leave_in_any_order():
    globs = [['-m', 'marked:text', '-m', 'marked:eight'], ['-m', 'marked:*ext'],
             ['-m', 'marked:eight', '-p', 'marked:mark_text', '-m', 'marked:ints']]
    marked = Marked()
    for order in itertools.permutations(range(3)):
        recorders = [recorder(marked.pid, f'r{i}', *globs[i]) for i in range(3)]
        check_equal(marked.outside('text', 'eight', 'ints', 'reals', 'alive_text'), [2, 2, 1, 0, 1], 'who wants them')
        for n, i in enumerate(order):
            marked.go()
            leave(recorders[i])
            found = event_counts(f'r{i}')
            for name, of in (('text', (0, 1)), ('eight', (0, 2)), ('ints', (2, ))):
                check_equal(found.get(f'marked:{name}', 0), (n + 1) * ROUNDS if i in of else 0,
                            f'{name} of recording {i}, leaving in the order {order}')
        check_equal(set(markers.gates(marked.pid, marked.path)), {(0, 0, 0)}, 'gates')
    marked.end()


def test_a_recording_that_comes_while_others_run_is_complete_from_then_on():
    marked = Marked('marked', '-t', '3')
    first = recorder(marked.pid, 'first', '-m', 'marked:[mnl]*g*', '-m', 'marked:mixed')
    for i in range(5):
        marked.go()
        other = recorder(marked.pid, 'other', '-m', 'marked:mixed', '-m', 'marked:nothing')
        marked.go()
        leave(other)
        check_equal([count('other', name) for name in ('mixed', 'nothing')], [3 * ROUNDS] * 2,
                    f'records of the other, time {i}')
    leave(first)
    check_equal([count('first', name) for name in ('mixed', 'nothing', 'longs')], [30 * ROUNDS] * 3,
                'records of the first')
    marked.end()


def test_a_user_and_root_record_the_markers_of_a_process_of_the_users():
    marked = Marked(user=NOBODY)
    os.chmod('.', 0o777)
    root = recorder(marked.pid, 'root', '-m', 'marked:*')
    user = recorder(marked.pid, 'user', '-m', 'marked:*', user=NOBODY)
    marked.go()
    result = kymo('detach', marked.pid, user=NOBODY)
    check(result.status == 1 and 'cannot be told to stop' in result.err,
          "a user's detach does not end root's recording", result)
    check_equal(marked.outside('text', 'eight'), [1, 1], 'who wants them')
    marked.go()
    leave(root)
    user.end().ok()
    check_equal((count('root', 'text'), count('user', 'text')), (2 * ROUNDS, ROUNDS), 'records')
    marked.end()


def test_detach_takes_all_of_them_out_the_dead_too():
    marked = Marked()
    live = recorder(marked.pid, 'live', '-m', 'marked:*')
    dead = recorder(marked.pid, 'dead', '-m', 'marked:*')
    dead.end(signal.SIGKILL)
    check_equal(marked.outside('ints', 'text'), [2, 2], 'who wants them')
    marked.go()
    kymo('detach', marked.pid).ok()
    live.end().ok()
    check_equal(count('live', 'ints'), ROUNDS, 'records')
    marked.end()


def test_one_that_is_killed_is_taken_out_by_the_next_and_the_other_stays():
    marked = Marked()
    stays = recorder(marked.pid, 'stays', '-m', 'marked:*')
    recorder(marked.pid, 'dies', '-m', 'marked:*').end(signal.SIGKILL)
    comes = recorder(marked.pid, 'comes', '-m', 'marked:eight')
    check_equal(marked.outside('eight', 'ints'), [2, 1], 'who wants them')
    marked.go()
    leave(comes)
    marked.go()
    leave(stays)
    check_equal((count('stays', 'eight'), count('comes', 'eight')), (2 * ROUNDS, ROUNDS), 'records')
    marked.end()


@timeout(300)
def test_one_that_is_killed_at_any_write_while_two_others_count_leaves_them_complete():
    """What it had done to a counter is told by its journal, however the counter changes after its death."""
    marked = Marked()
    stays = recorder(marked.pid, 'stays', '-m', 'marked:ints', '-m', 'marked:small', '--overwrite')
    dying = [
        KYMO, 'record', '-q', '-o', 'dies', '-m', 'marked:ints', '-m', 'marked:small', '--for', '0.05', '--pid',
        marked.pid
    ]
    run(program('strace'), '-qq', '-o', 'writes', '-e', 'trace=pwrite64', '-e', 'signal=none', *dying,
        env=NO_LEAKS).ok()
    lines = open('writes').read().splitlines()
    # Two bytes are a counter, four the state of one; and the calls around them.
    near = {n + more for n, line in enumerate(lines, 1) if re.search(r', [24], \d+\)', line) for more in (0, 1)}
    check(len(near) >= 6, 'it counts twice up and twice down', '\n'.join(lines))
    for n in sorted(near):
        leaves = recorder(marked.pid, 'leaves', '-m', 'marked:ints', '-m', 'marked:small', '--overwrite')
        run(program('strace'), '-qq', '-o', '/dev/null', '-e', 'trace=pwrite64', '-e', 'signal=none', '-e',
            f'inject=pwrite64:signal=KILL:when={n}', *dying, env=NO_LEAKS)
        leave(leaves)
        run(KYMO, 'record', '-q', '-o', 'next', '-m', 'marked:longs', '--for', '0.01', '--pid', marked.pid).ok()
        check_equal(marked.outside('ints', 'small', 'longs'), [1, 1, 0],
                    f'who wants them when one was killed at write {n}, {lines[n - 1] if n <= len(lines) else ""}')
    leave(stays)
    marked.end()


@timeout(300)
def test_sixteen_recordings_at_most_have_markers_on():
    marked = Marked()
    recorders = [recorder(marked.pid, f'r{i}', '-m', 'marked:small', '--buffer', '64K') for i in range(16)]
    check_equal(marked.outside('small', 'ints'), [16, 0], 'who wants them')
    kymo('record', '-m', 'marked:ints', '--pid', marked.pid, '--for', '0.1').refused('there can be no more')
    leave(recorders.pop(5))
    other = recorder(marked.pid, 'other', '-m', 'marked:ints', '-m', 'marked:small')
    marked.go()
    for each in (*recorders, other):
        leave(each)
    check_equal([count(f'r{i}', 'small')
                 for i in (0, 4, 6, 15)] + [count('other', 'small'), count('other', 'ints')], [ROUNDS] * 6, 'records')
    marked.end()


# ---- libraries -----------------------------------------------------------------------------------


class Library:
    """reopener, which closes and opens libmarked.so for each line that it reads."""
    def __init__(self, times=1):
        self.path = target_path('libmarked.so')
        self.process = target('reopener', self.path, times)
        self.pid, self.n, self.times = self.process.pid, 0, times

    def reopen(self):
        self.n += 1
        self.process.send('o')
        self.process.wait_for('(open .*\n){%d}' % self.n)

    def gates(self):
        return set(markers.gates(self.pid, self.path))


WORK, GONE = 101, 10  # calls of ctor_work() by an open, and by a close


def reopen_between(_):
    library = Library(5)
    library.reopen()
    one = recorder(library.pid, 'one', '-m', 'libmarked:*')
    for _ in range(4):
        library.reopen()
    check_equal(library.gates(), {(0, 0, 1)}, 'gates')
    two = recorder(library.pid, 'two', '-m', 'lib_work')
    library.reopen()
    leave(one)
    check_equal(library.gates(), {(0, 0, 0), (0, 0, 1)}, 'gates')
    library.reopen()
    leave(two)
    markers.check_off(library.pid, library.path)
    check_equal([count('one', name, 'libmarked') for name in ('lib_comes', 'lib_work', 'lib_goes')],
                [25 * 100, 25 * (WORK + GONE), 25], 'records')
    check_equal(count('two', 'lib_work', 'libmarked'), 10 * (WORK + GONE), 'records of the other')
    library.process.end().ok()


def test_markers_of_a_library_that_is_closed_and_opened_again():
    unless_late(reopen_between)


def test_a_library_that_is_linked_to_a_launched_program():
    """Its data is mapped after its text."""
    result = kymo('record', '-m', 'libmarked:*', '--', target_path('marked-ctor')).ok()
    check_equal([count('kymo.data', name, 'libmarked') for name in ('lib_comes', 'lib_goes')], [100, 1], 'records')
    check_equal(count('kymo.data', 'lib_work', 'libmarked'), result.json()['ctor_work'], 'records of its work')


def reopen_beside_a_dead_one(_):
    library = Library()
    library.reopen()
    stays = recorder(library.pid, 'stays', '-m', 'libmarked:*')
    recorder(library.pid, 'dies', '-m', 'libmarked:*').end(signal.SIGKILL)
    library.reopen()
    leave(recorder(library.pid, 'next', '-m', 'libmarked:*'))
    check_equal(library.gates(), {(0, 0, 1)}, 'gates when the dead one has been taken out')
    library.reopen()
    leave(stays)
    check_equal([count('stays', name, 'libmarked') for name in ('lib_comes', 'lib_work', 'lib_goes')],
                [200, 2 * (WORK + GONE), 2], 'records')
    markers.check_off(library.pid, library.path)
    library.process.end().ok()


def test_a_recording_that_died_before_a_library_was_opened_again_does_not_count_for_others():
    unless_late(reopen_beside_a_dead_one)


LATER = """
import ctypes, sys
for line in sys.stdin:
    library = ctypes.CDLL(line.strip())
    for i in range(100):
        library.ctor_work(i)
    print('done', flush=True)
"""

OTHER = """
#include <kymo/marker.h>
int ctor_work(int n)
{
	MARK(other, "n=%d", n);
	return n;
}
"""


def load_two(tmp):
    if not markers.semaphores('/usr/bin/python3'):
        skip('/usr/bin/python3 has no SDT probes')
    (tmp / 'later.py').write_text(LATER)
    markers.compile(tmp / 'libother.so', OTHER, '-fPIC', '-shared')
    process = start('/usr/bin/python3', '-I', '-S', 'later.py')
    pid, path, times = process.pid, target_path('libmarked.so'), itertools.count(1)

    def load(library):
        process.send(f'{library}\n')
        process.wait_for('(done\n){%d}' % next(times))

    first = recorder(pid, 'first', '-m', '*_*r*')
    load(tmp / 'libother.so')
    second = recorder(pid, 'second', '-m', '[lo][it][bh]*')
    load(path)
    check_equal(set(markers.gates(pid, path)), {(0, 0, 1), (0, 0, 2)}, 'gates')
    leave(second)
    check_equal(set(markers.gates(pid, path)), {(0, 0, 0), (0, 0, 1)}, 'gates')
    load(path)
    process.end().ok()
    first.end().ok()
    check_equal(count('first', 'lib_work', 'libmarked'), 100 + 200 + 10, 'records')


def test_a_recording_that_has_semaphores_first_and_gates_later():
    """Which is its own of a gate's bits, the other one knows."""
    unless_late(load_two)


def test_a_journal_does_not_grow_with_each_time_that_a_library_is_opened():
    library = Library(30)
    library.reopen()
    one = recorder(library.pid, 'one', '-m', 'libmarked:*')
    entries = markers.journal_entries(library.pid)
    library.reopen()
    once = markers.journal_entries(library.pid)
    library.reopen()
    check(
        markers.journal_entries(library.pid) <= max(once, 2 * entries), 'entries of the journal', entries, once,
        markers.journal_entries(library.pid))
    leave(one)
    library.process.end().ok()


# ---- a program that turns them on itself ---------------------------------------------------------


@timeout(300)
def test_a_program_that_turns_its_markers_on_and_off_all_the_time():
    """Each round of it is recorded whole, and its own probes get what they must."""
    marked = Marked('marked-toggling', '-s', '-t', '2')
    for i in range(6):
        each = markers.patient_recorder(marked.pid, 'data', '-m', 'marked-toggling:*e*t*')
        marked.go()
        leave(each)
        check_equal([count('data', name, 'marked-toggling') for name in ('eight', 'text', 'alive_text')],
                    [2 * ROUNDS, 2 * ROUNDS, 6 * ROUNDS], f'records, time {i}')
    marked.go()
    check_equal(marked.process.end().ok().json()['eight'], 14 * ROUNDS, 'rounds')


def test_a_marker_that_the_program_has_on_stays_on_and_nobody_is_warned(tmp):
    path = markers.compile(tmp / 'toggled', markers.TARGETS / 'hostile.c', '-DHOSTILE=TOGGLED', '-lpthread')
    process = start(path)
    process.wait_for('ready')
    each = start(KYMO, 'record', '-m', 'toggled:*', '-o', 'data', '--pid', process.pid)
    each.wait_for('recording process', 1)
    eventually(lambda: markers.gates(process.pid, path) == [(1, 0, 1)], 'it is counted')
    said = each.end(signal.SIGINT).ok().err
    check_equal(markers.gates(process.pid, path), [(1, 0, 0)], 'gate')
    check(markers.texts(process.pid, path)[0][0] == 0xe9, 'the site still jumps', markers.texts(process.pid, path))
    check('warning' not in said, 'kymo says nothing of text that the program has changed', said)
    process.end(input='\n').ok()


# ---- tools of others -----------------------------------------------------------------------------


def test_a_uprobe_on_a_marker_that_is_on_and_that_outlives_the_recording(tmp):
    """The kernel puts the file's first byte back, whatever is behind it by then."""
    path = shutil.copy(target_path('marked'), tmp / 'probed')
    process = start(path, '-w', '10')
    process.wait_for('ready')
    each = recorder(process.pid, 'data', '-m', 'probed:ints')
    on = markers.texts(process.pid, path)
    at = [
        places.to_offset(str(path))(site.code) for site in markers.sites(path) if markers.name_of(path, site) == 'ints'
    ]
    uprobe = kernelcount.PerfCounter(process.pid, {f's{i}': (str(path), offset) for i, offset in enumerate(at)})
    eventually(lambda: markers.texts(process.pid, path) != on, 'the breakpoint is in')
    each.end(signal.SIGINT)
    with open(os.devnull) as nothing:  # in the place of the kernel's probe, which is closed with that
        for fd in (fd for fds in uprobe.fds.values() for fd in fds):
            os.dup2(nothing.fileno(), fd)
    eventually(lambda: set(markers.texts(process.pid, path)) == {markers.NOP}, 'all sites are NOPs again', 60)
    process.send('\n')
    process.wait_for('done')
    process.end().ok()
