"""Probes and function clones in one recording of a process that runs: it does what it did. Each hit is counted, and
each record is among the branches of its thread."""
import os
import random
import signal
import time
from pathlib import Path

from histories import (CLONES, anchors, begin, build, check_are_records, detach, finish, functions, is_clean, jumps,
                       threads)
from kymotest import (KYMO, babeltrace, check, check_equal, check_matches, check_text_intact,
                      event_counts, eventually, kymo, record, run, sampled, sleeper, start, timeout)

# Hot ones, of whose hits few are recorded: what reads all takes its time.
PROBES = ('-p', 'running:fib sample 1/500', '-p', 'running:spin sample 1/500', '-r', 'running:compare sample 1/500',
          '-p', 'running:leap sample 1/500', '-p', 'running:short_thread', '-p', 'libc:malloc sample 1/500')

# Checks sums by libz for as many lines as it is told to, again and again.
SUMS = """
import sys, zlib
for line in sys.stdin:
    for i in range(int(line)):
        zlib.crc32(b'abc%d' % i)
    print('done', flush=True)
"""

# Makes children, which stay, until it gets a line.
FORKS = """
import os, select, sys, time
print('ready', flush=True)
made = []
while not select.select([0], [], [], 0.03)[0]:
    pid = os.fork() if len(made) < 150 else 0
    if pid:
        made.append(pid)
    elif len(made) < 150:
        time.sleep(600)
print('made', *made, flush=True)
"""


@sampled
@timeout(600)
def test_they_come_and_go(tmp):
    """Threads loop, recurse, leap, sort, wait, handle signals, and come and go, in functions with hot probes."""
    target = begin(tmp, 'forks', 'signals')
    for _ in range(8):
        record('-q', '-b', 'running', *CLONES, *PROBES, '--pid', target.pid, '--for', '0.1').ok()
        detach(target.pid)
        check_text_intact(target.pid)
    record('-q', '-b', 'running', '--tail', '64', *CLONES, *PROBES, '--pid', target.pid, '--for', '1').ok()
    finish(target)
    babeltrace('kymo.data')
    found = {name for thread in threads() for name in functions(thread)}
    check({'fib', 'choose', 'leap', 'spin'} <= found, 'what they did', found)
    counts = event_counts()
    check(all(counts.get(f'running:{name}') for name in ('fib', 'spin', 'leap', 'short_thread')), 'hits', counts)


@timeout(240)
def test_each_hit_is_counted_and_is_among_the_branches(tmp):
    """Of a library that a program as it is shipped has loaded."""
    target = start('/usr/bin/python3', '-c', SUMS)

    def work(n):
        told = target.out.count('done')
        target.send(f'{n}\n')
        eventually(lambda: target.out.count('done') > told, 'it is done')

    work(1)
    for source in CLONES, ():
        recorder = start(KYMO, 'record', '-b', 'libz', '--tail', '16000', *source, '-p', 'libz:crc32', '--pid',
                         target.pid)
        recorder.wait_for('recording process', 1, seconds=120)
        work(700)
        work(300)
        recorder.end(signal.SIGINT).ok()
        check_equal(event_counts()['libz:crc32'], 1000, f'all hits: {recorder.err}')
        thread, = [each for each in threads() if each['tid'] == target.pid]
        found = anchors(thread)
        check_equal(len(found), 1000, 'all are among the branches')
        check_are_records(found, thread)
        detach(target.pid)
        check_text_intact(target.pid)
        work(5)
    target.end().ok()


@timeout(120)
def test_a_probe_that_is_a_plain_jump_has_a_clone_behind_it(tmp):
    """Where the first instruction has room for it, as with landing pads of indirect calls (CET)."""
    build(tmp, 'running', '-fcf-protection', to='guarded')
    target = start('./guarded')
    target.wait_for('ready')
    check_matches(kymo('explain', './guarded', 'choose').ok().out, r'^  tactic +(jump|group)')
    recorded = record('-b', 'guarded:choose', '--tail', '256', *CLONES, '-p', 'guarded:choose sample 1/500', '--pid',
                      target.pid, '--for', '0.3').ok()
    check('stay as they are' not in recorded.err, 'it has a clone', recorded)
    found = [jump for thread in threads() for jump in jumps(thread, 'guarded', {'choose'})]
    check(found, 'its jumps', recorded)
    finish(target)


@timeout(120)
def test_children_that_were_made_while_clones_were_planned_have_nothing_of_a_recording_that_was_given_up(tmp):
    target = start('/usr/bin/python3', '-c', FORKS)
    target.wait_for('ready')
    for delay in 0.2, 0.5, 0.9:
        recorder = start(KYMO, 'record', '-b', 'libc', '-b', 'python3', *CLONES, '-p', 'libc:malloc', '-p', 'libc:read',
                         '--pid', target.pid)
        eventually(lambda: not is_clean(target.pid), 'its probes are in')
        time.sleep(delay)
        recorder.end(signal.SIGINT)
        check(is_clean(target.pid), 'nothing is in', recorder.err)
        check_text_intact(target.pid)
    target.send('\n')
    made = [int(pid) for pid in target.wait_for(r'^made (.*)$')[1].split()]
    for pid in made:
        check(is_clean(pid), 'nothing is in a child', pid, Path(f'/proc/{pid}/maps').read_text())
        check_text_intact(pid)
        os.kill(pid, signal.SIGKILL)
    target.end().ok()


@timeout(120)
def test_until_a_condition_holds(tmp):
    target = start('/usr/bin/python3', '-c', SUMS)
    target.send('1\n')
    target.wait_for('done')
    recorder = start(KYMO, 'record', '-b', 'libz', *CLONES, '--until', 'libz:crc32 /arg2 == 6/', '--pid', target.pid)
    recorder.wait_for('recording process', 1, seconds=120)
    target.send('500\n')
    result = recorder.end().ok()
    check_matches(result.err, r"'libz:crc32 /arg2 == 6/' held at [\d:.]+ in thread \d+\n")
    text = kymo('branches', '--before', 'libz:crc32').ok().out
    check_matches(text, r' libz:crc32  at \d\.\d{9} s( .*)?$', 'the record comes last')
    check(is_clean(target.pid), 'it is out')
    check_text_intact(target.pid)
    target.end().ok()


@timeout(300)
def test_recorder_killed_at_any_instant(tmp):
    target = begin(tmp, 'forks', 'killed')
    chance = random.Random(11)
    for _ in range(15):
        recorder = start(KYMO, 'record', '-q', '-b', 'running', *CLONES, *PROBES, '--pid', target.pid, '--for', '0.3')
        time.sleep(chance.random() * 1.5)
        recorder.end(signal.SIGKILL)
        detach(target.pid)
        check_text_intact(target.pid)
    finish(target)


@timeout(120)
def test_what_is_refused_leaves_nothing(tmp):
    """No probe is in, and no recording is made."""
    build(tmp, 'cloned', '-static', to='static')
    both = ('-b', 'all', *CLONES)
    process = sleeper()
    record(*both, '-p', 'libc:malloc', '--no-follow', '--pid', process.pid).refused('leave --no-follow out', 2)
    record('-b', 'sleep:nosuch', '-p', 'libc:malloc', '--pid', process.pid).refused('nosuch')
    record(*both, '-p', 'libc:malloc', '--pid', f'{process.pid},{os.getpid()}').refused('-b records one process', 2)
    check(is_clean(process.pid), 'nothing is in')
    check_text_intact(process.pid)
    handler = ('/usr/bin/python3', '-X', 'faulthandler', '-c', 'print("ready", flush=True); input()')
    for command, probe, why in ((('./static', 'run'), 'static:fib', 'and this is none'),
                                (handler, 'libc:malloc', 'handles faults')):
        target = start(*command)
        if 'python3' in command[0]:
            target.wait_for('ready')
        record(*both, '-p', probe, '--pid', target.pid).refused(why)
        check(is_clean(target.pid), 'nothing is in')
        check_text_intact(target.pid)
        target.kill()
    check(not Path('kymo.data').exists(), 'no recording is made')
