"""Several recordings of one process, with probes at the same places: each has what is its own, whichever others come
and go.
"""
import itertools
import os
import random
import re
import signal

import debugging
import remains
from kymotest import (NOBODY, check, check_equal, check_text_intact, event_counts, events, eventually, kymo, start,
                      target, target_path)
from recorders import recorder, recordings

CALLS = 1000


def waiting():
    """callmany: CALLS calls of work_a for each line that it reads."""
    return target('callmany', '-w', str(CALLS))


def go(process):
    process.send('\n')
    process.wait_for(rf'^work_a {CALLS}$')


def counts(name):
    return event_counts(name).get('callmany:work_a', 0)


def test_two_recordings_of_one_place_are_both_complete():
    process = waiting()
    before = remains.lasting_mappings(process.pid)
    one = recorder(process.pid, 'one', '-p', 'callmany:work_a i=%di:s32')
    two = recorder(process.pid, 'two', '-p', 'callmany:work_a k=%si:s64', '-p', 'libc:write')
    go(process)
    for each in (one, two):
        each.end(signal.SIGINT).ok()
    check_equal((counts('one'), counts('two')), (CALLS, CALLS), 'calls in each')
    check_equal([event['i'] for event in events('one')][:3], [0, 1, 2], 'arguments of the first')
    check_equal([event['k'] for event in events('two') if event.name == 'callmany:work_a'][:3], [7, 10, 13],
                'of the other')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(input='\n').ok()


def test_they_may_leave_in_any_order():
    for order in itertools.permutations(range(3)):
        process = waiting()
        before = remains.lasting_mappings(process.pid)
        recorders = [recorder(process.pid, f'r{i}', '-p', 'callmany:work_a i=%di') for i in range(3)]
        for i in order[:2]:
            recorders[i].end(signal.SIGINT).ok()
        check_equal(counts(f'r{order[0]}'), 0, 'calls before any')
        go(process)
        recorders[order[2]].end(signal.SIGINT).ok()
        check_equal(counts(f'r{order[2]}'), CALLS, f'calls in the one that stays, of {order}')
        remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
        check_text_intact(process.pid)
        process.end(input='\n').ok()


def test_instructions_that_only_puns_reach_are_shared_as_well():
    process = target('callmany', '-w', str(CALLS), 'work_b')
    before = remains.lasting_mappings(process.pid)
    at = next(place for place in (f'work_b+{at:#x}' for at in range(1, 41))
              if re.search('^  tactic +pun:',
                           kymo('explain', target_path('callmany'), place).out, re.MULTILINE))
    one = recorder(process.pid, 'one', '-p', f'callmany:{at}')
    two = recorder(process.pid, 'two', '-p', f'callmany:{at}')
    check_equal([site['tactic'] for each in recordings(process.pid) for site in each['sites']], ['pun', 'pun'])
    process.send('\n')
    process.wait_for(rf'^work_b {CALLS}$')
    one.end(signal.SIGTERM).ok()
    two.end(signal.SIGTERM).ok()
    for name in ('one', 'two'):
        check(
            event_counts(name) == event_counts('one') and event_counts(name)[f'callmany:{at}'] >= CALLS,
            'both have all', name)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(input='\n').ok()


def test_a_pun_that_relies_on_a_jump_of_the_other_recording_alone_is_refused_or_outlives_it():
    process = waiting()
    before = remains.lasting_mappings(process.pid)
    one = recorder(process.pid, 'one', '-p', 'callmany:work_a:*')
    two = recorder(process.pid, 'two', '-p', 'callmany:work_a:*')
    one.end(signal.SIGTERM).ok()
    go(process)
    two.end(signal.SIGTERM).ok()
    counts = event_counts('two')
    check(counts and set(counts.values()) == {CALLS}, 'what is recorded is complete', counts)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(input='\n').ok()


def test_one_that_is_killed_is_taken_out_by_the_next_and_the_other_stays():
    process = waiting()
    before = remains.lasting_mappings(process.pid)
    stays = recorder(process.pid, 'stays', '-p', 'callmany:work_a')
    dies = recorder(process.pid, 'dies', '-p', 'callmany:work_a', '-p', 'libc:read')
    dies.signal(signal.SIGKILL)
    dies.end()
    comes = recorder(process.pid, 'comes', '-p', 'callmany:work_a')
    check_equal(len(recordings(process.pid)), 2, 'recordings in it')
    go(process)
    stays.end(signal.SIGINT).ok()
    comes.end(signal.SIGINT).ok()
    check_equal((counts('stays'), counts('comes')), (CALLS, CALLS), 'calls in each')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(input='\n').ok()


def test_detach_takes_all_of_them_out():
    process = waiting()
    before = remains.lasting_mappings(process.pid)
    live = recorder(process.pid, 'live', '-p', 'callmany:work_a')
    dead = recorder(process.pid, 'dead', '-p', 'callmany:work_a')
    dead.signal(signal.SIGKILL)
    dead.end()
    kymo('detach', process.pid).ok()
    live.end().ok()
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(input='\n\n').ok()


def test_a_user_and_root_record_a_process_of_the_users():
    process = target('callmany', '-w', str(CALLS), user=NOBODY)
    before = remains.lasting_mappings(process.pid)
    os.chmod('.', 0o777)
    root = recorder(process.pid, 'root', '-p', 'callmany:work_a')
    user = recorder(process.pid, 'user', '-p', 'callmany:work_a', user=NOBODY)
    go(process)
    result = kymo('detach', process.pid, user=NOBODY)
    check(result.status == 1 and 'cannot be told to stop' in result.err,
          "a user's detach does not end root's recording", result)
    root.end(signal.SIGINT).ok()
    user.end().ok()
    check_equal((counts('root'), counts('user')), (CALLS, CALLS), 'calls in each')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(input='\n').ok()


def test_threads_come_and_go_while_recordings_do():
    process = target('selfcheck', '-t', '4', '-p', '0')
    before = remains.lasting_mappings(process.pid)
    choose = random.Random(7)
    running = []
    for i in range(24):
        if running and (len(running) == 3 or choose.random() < 0.4):
            leaving = running.pop(choose.randrange(len(running)))
            leaving.signal(choose.choice([signal.SIGINT, signal.SIGKILL]))
            leaving.end()
        else:
            args = choose.choice([['-p', 'selfcheck:work_*'], ['-p', 'selfcheck:work_a:*'],
                                  ['-p', 'libc:malloc', '--no-rseq']])
            running.append(recorder(process.pid, f'data.{i}', '--buffer', '1M', *args))
    for each in running:
        each.end(signal.SIGINT).ok()
    kymo('detach', process.pid)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_jumps_by_an_evicted_neighbor_go_while_another_recording_stays():
    """A short jump is all that stands in their places."""
    path = os.path.realpath('/usr/bin/python3')
    told = ''.join(kymo('explain', path, name).ok().out for name in ('PyErr_*:*', '_PyArg_*:*'))
    offsets = re.findall(
        r'^  site +0x[0-9a-f]+, (0x[0-9a-f]+) in the file(?:(?!^  site)[^\0])*?^  tactic +evicted neighbor', told,
        re.MULTILINE)
    check(offsets, 'there are some', path)
    process = start(
        path, '-S', '-c',
        'import sys, warnings\nwarnings.simplefilter("ignore")\nfor line in sys.stdin: warnings.warn("w"); print("done", flush=True)'
    )
    leaves = recorder(process.pid, 'leaves', *(word for offset in offsets for word in ('-p', f'{path}:{offset}')))
    stays = recorder(process.pid, 'stays', '-p', 'libc:getppid')
    for i in range(2):
        process.send('\n')
        eventually(lambda: process.out.count('done') > i, 'it runs')
        if not i:
            leaves.end(signal.SIGINT).ok()
    stays.end(signal.SIGINT).ok()
    check_text_intact(process.pid)
    process.end().ok()


# gdb: step to the instruction of a pad that looks at the list of vforks, by the address in r10, which it has loaded.
STEP_TO_THE_LOOK = r"""
process = gdb.selected_inferior()
for _ in range(1000):
    gdb.execute('stepi', to_string=True)
    if bytes(process.read_memory(gdb.selected_frame().pc(), 4)) == b'\x41\x83\x3a\x00': # cmpl $0,(%r10)
        print('it is there')
        break
"""


def look_at_a_list_that_goes(tmp, *at_the_look):
    """The list is that of the recording that came first, and the pad is the other one's."""
    debugging.build(tmp)
    process = debugging.loop(tmp)
    before = remains.lasting_mappings(process.pid)
    first = recorder(process.pid, 'first', '-p', 'libc:write')
    second = recorder(process.pid, 'second', '-p', 'libc:usleep')
    (tmp / 'look.py').write_text(STEP_TO_THE_LOOK)
    result = debugging.gdb(f'attach {process.pid}', 'break work', 'continue', 'delete', 'source look.py', *at_the_look,
                           f'shell kill -STOP {process.pid}', 'detach')
    check('it is there' in result.out, 'the thread comes to the look', result)
    first.end(signal.SIGINT)
    os.kill(process.pid, signal.SIGCONT)
    debugging.advances(process)
    second.end(signal.SIGINT).ok()
    kymo('detach', process.pid)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    check_text_intact(process.pid)
    process.kill()


def test_a_list_of_vforks_that_a_thread_is_about_to_look_at_stays(tmp):
    look_at_a_list_that_goes(tmp)


def test_a_list_of_vforks_that_a_thread_looks_at_after_its_signal_handler_stays(tmp):
    look_at_a_list_that_goes(tmp, 'handle SIGUSR1 nostop', 'break on_signal', 'signal SIGUSR1', 'delete')
