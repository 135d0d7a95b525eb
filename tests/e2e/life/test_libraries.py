"""Several recorders of one process and libraries that come and go: what each has is its own and complete, and the
process never notices."""
import os
import re
import shutil
import signal
import struct
from pathlib import Path

import places
import processes
from kymotest import (check, check_equal, check_text_intact, event_counts, eventually, kymo, program, start, target,
                      target_path, waits)
from recorders import LATE, next_line, unless_late, watching_recorder

CTOR_CALLS = 101  # of ctor_work, when the library is opened by reopener
OPEN_CALLS = 111  # and with its close
PWRITE64 = 18


def opened(process):
    """Close the library and open it again: where its function is, the longest times that took in microseconds, and of
    the processor, calls so far."""
    match = next_line(process, r'^open (0x[0-9a-f]+) (\d+) (\d+) (\d+)$')
    return int(match[1], 16), int(match[2]), int(match[3]), int(match[4])


def put_library(path, name, keep=''):
    """Another file at `path`, as a build or a package manager puts it there. With `keep` the old one stays under that
    name, or else a later one may get its inode."""
    shutil.copy(target_path(name), f'{path}.new')
    if keep:
        os.link(path, path.with_name(keep))
    os.rename(f'{path}.new', path)


def count(directory):
    return sum(n for name, n in event_counts(directory).items() if name.endswith(':ctor_work'))


def check_counts(recorders, results, directory, expected):
    for i in range(len(recorders)):
        n = count(directory / f'r{i}')
        check(n == expected, f'{n} calls recorded of {expected} in r{i}', *results)


def reopen_rebuilt(tmp, n, keep):
    """A library is replaced and opened again, several times, and `n` recorders have all of its calls."""
    library, addresses = tmp / 'libgrown.so', []
    put_library(library, 'libctor.so')
    process = target('reopener', library)
    addresses.append(opened(process)[0])
    recorders = [watching_recorder(process.pid, tmp / f'r{i}', '-p', 'libgrown:ctor_work') for i in range(n)]
    for i, name in enumerate(('libctor.so', 'libctor-rebuilt.so', 'libctor-rebuilt.so', 'libctor.so')):
        put_library(library, name, f'old.{i}' if keep else '')
        addresses.append(opened(process)[0])
    said = process.end().ok().json()['ctor_work']
    results = [each.end().ok() for each in recorders]
    check(len(set(addresses)) < len(addresses), 'some of them came to the same address', *map(hex, addresses))
    check_counts(recorders, results, tmp, said - CTOR_CALLS)


def test_a_library_that_is_rebuilt_and_opened_again_is_recorded(tmp):
    unless_late(reopen_rebuilt, 1, True)


def test_a_library_that_is_rebuilt_in_the_same_inode_is_recorded(tmp):
    unless_late(reopen_rebuilt, 1, False)


def test_two_recorders_of_a_library_that_is_rebuilt(tmp):
    unless_late(reopen_rebuilt, 2, True)


def reopen_twice_recorded(tmp):
    process = target('reopener', target_path('libctor.so'))
    opened(process)
    recorders = [watching_recorder(process.pid, tmp / f'r{i}', '-p', 'libctor:ctor_work') for i in range(2)]
    for _ in range(10):
        opened(process)
    said = process.end().ok().json()['ctor_work']
    check_counts(recorders, [each.end().ok() for each in recorders], tmp, said - CTOR_CALLS)


def test_two_recorders_of_a_library_that_is_opened_again(tmp):
    unless_late(reopen_twice_recorded)


def reopen_often(tmp):
    process = target('reopener', target_path('libctor.so'), 30)
    opened(process)
    recorders = [watching_recorder(process.pid, tmp / 'r0', '-p', 'libctor:ctor_work')]
    n_maps = []
    for _ in range(10):
        opened(process)
        n_maps.append(len(processes.maps(process.pid)))
    said = process.end().ok().json()['ctor_work']
    results = [each.end().ok() for each in recorders]
    check(max(n_maps) <= n_maps[0] + 4, 'mappings do not get more and more', n_maps)
    check_counts(recorders, results, tmp, said - 29 * OPEN_CALLS - CTOR_CALLS)


def test_a_library_that_comes_and_goes_is_recorded_each_time_and_leaves_nothing(tmp):
    unless_late(reopen_often)


def test_a_recorder_that_stands_still_holds_no_program_up(tmp):
    """The library is there when it stops, and at the process' end, which it sees or not."""
    for has_ended in (False, True):
        process = target('reopener', target_path('libctor.so'))
        opened(process)
        recording = watching_recorder(process.pid, tmp / f'data.{has_ended}', '-p', 'libctor:ctor_work')
        recording.signal(signal.SIGSTOP)
        took_us, busy_us = zip(*(opened(process)[1:3] for _ in range(6)))
        check(max(busy_us) < 1000000, 'no load takes a second: threads wait without a system call', busy_us)
        check(min(took_us[1:]) < 150000, 'later loads do not wait', took_us)
        if has_ended:
            process.end().ok()
        recording.signal(signal.SIGCONT)
        process.end().ok()
        result = recording.end().ok()
        check(LATE in result.err, 'what is missing is told', has_ended, result)


def test_a_library_that_comes_and_goes_while_the_recorder_stands_still_is_not_missed_in_silence(tmp):
    """Nothing of it is there when the recorder looks again, nor of the process, if that has ended."""
    for has_ended in (False, True):
        process = target('reopener', target_path('libctor.so'))
        opened(process)
        recording = watching_recorder(process.pid, tmp / f'data.{has_ended}', '-p', 'libctor:ctor_work')
        process.send('c')
        process.wait_for('^closed$')
        recording.signal(signal.SIGSTOP)
        opened(process)
        process.send('c')
        process.wait_for(r'closed\n.*\nclosed\n')
        if has_ended:
            process.end().ok()
        recording.signal(signal.SIGCONT)
        if not has_ended:
            eventually(lambda: LATE in recording.err, 'what is missing is told while it is recorded')
            process.end().ok()
        result = recording.end().ok()
        check(LATE in result.err and 'not probed' not in result.err, 'what is missing is told', has_ended, result)


def is_changed(process, name):
    return any(name in change for change in processes.changed_text(process.pid))


def test_a_library_that_was_opened_while_the_recorder_stood_still_is_recorded_from_when_it_looks_again():
    process = target('reopener', target_path('libctor.so'))
    opened(process)
    recording = watching_recorder(process.pid, 'data', '-p', 'libctor:ctor_work')
    recording.signal(signal.SIGSTOP)
    opened(process)
    opened(process)
    check(not is_changed(process, 'libctor'), 'the library has no probe')
    recording.signal(signal.SIGCONT)
    eventually(lambda: is_changed(process, 'libctor'), 'the library that is open has its probe', 60)
    process.end().ok()
    result = recording.end().ok()
    check(LATE in result.err, 'what is missing is told', result)
    check_equal(count('data'), 2 * (OPEN_CALLS - CTOR_CALLS), 'calls: of the first close, and of the last')


def test_a_process_that_ends_with_one_library_that_nobody_wants_is_told_of_nothing():
    """All that is wanted was there, and is gone with the process only."""
    process = target('reopener', target_path('libctor.so'))
    recording = watching_recorder(process.pid, 'data', '-p', 'libc:getppid')
    recording.signal(signal.SIGSTOP)
    opened(process)
    process.end(signal.SIGKILL).ended(-signal.SIGKILL)
    recording.signal(signal.SIGCONT)
    check_equal(recording.end().ok().warnings(), [], 'warnings')


def is_recorded_again(process, asleep, calls):
    """It goes on, tells that it was late, has all calls of what is opened then, and leaves. `calls` are those before.
    """
    asleep.signal(signal.SIGCONT)
    eventually(lambda: LATE in asleep.err, 'what is missing is told', 60)
    for _ in range(2):
        opened(process)
    result = asleep.end(signal.SIGINT).ok()
    check(len(result.warnings()) == 1, 'there is nothing else to tell', result)
    check_equal(count('asleep'), calls + 2 * OPEN_CALLS, 'calls: before it stood still, and from when it looked again')


def test_a_library_that_was_rebuilt_in_its_inode_while_the_recorder_stood_still_is_recorded_again(tmp):
    """It comes to the address where the old one was, with other code."""
    library = tmp / 'libgrown.so'
    put_library(library, 'libctor.so')
    process = target('reopener', library)
    address = opened(process)[0]
    asleep = watching_recorder(process.pid, 'asleep', '-p', 'libgrown:ctor_work')
    asleep.signal(signal.SIGSTOP)
    process.send('c')
    process.wait_for('^closed$')
    shutil.copyfile(target_path('libctor-rebuilt.so'), library)
    check(address < opened(process)[0] < address + 4096, 'the new one is where the old one was')
    is_recorded_again(process, asleep, OPEN_CALLS - CTOR_CALLS)
    check_text_intact(process.pid)
    process.end().ok()


def test_a_recorder_leaves_a_library_that_was_rebuilt_in_its_inode(tmp):
    library = tmp / 'libgrown.so'
    put_library(library, 'libctor.so')
    process = target('reopener', library)
    addresses = [opened(process)[0]]
    leaves = watching_recorder(process.pid, 'leaves', '-p', 'libgrown:ctor_work')
    for name in ('libctor-rebuilt.so', 'libctor.so', 'libctor-rebuilt.so'):
        process.send('c')
        eventually(lambda: process.out.count('closed') == len(addresses), 'it is closed')
        shutil.copyfile(target_path(name), library)
        addresses.append(opened(process)[0])
    check(len({address & -4096 for address in addresses}) == 1, 'each is where the old one was', *map(hex, addresses))
    result = leaves.end(signal.SIGINT).ok()
    check(result.warnings() == [] or LATE in result.err, 'there is nothing to tell', result)
    check_text_intact(process.pid)
    opened(process)
    process.end().ok()


def test_a_library_that_only_another_recorder_has_since_this_one_stood_still_is_recorded_again_by_both(tmp):
    process = target('reopener', target_path('libctor.so'))
    opened(process)
    recorders = [watching_recorder(process.pid, name, '-p', 'libctor:ctor_work') for name in ('asleep', 'awake')]
    recorders[0].signal(signal.SIGSTOP)
    opened(process)
    check(is_changed(process, 'libctor'), 'the other one has its probe in')
    is_recorded_again(process, recorders[0], OPEN_CALLS - CTOR_CALLS)
    opened(process)
    result = recorders[1].end(signal.SIGINT).ok()
    check(LATE in result.err or count('awake') == 4 * OPEN_CALLS, 'the other one has all', result)
    check_text_intact(process.pid)
    process.end().ok()


BZ2 = '''
import _ctypes, ctypes, sys
out, size = ctypes.create_string_buffer(1000), ctypes.c_uint()
for line in sys.stdin:
    if line == 'open\\n':
        library = ctypes.CDLL('libbz2.so.1.0')
    elif line == 'close\\n':
        _ctypes.dlclose(library._handle)
    else:
        size.value = len(out)
        assert library.BZ2_bzBuffToBuffCompress(out, ctypes.byref(size), bytes(100), 100, 9, 0, 0) == 0
    print(line.strip(), flush=True)
'''


def test_a_recorder_that_leaves_while_a_library_is_closed_leaves_those_of_others_there(tmp):
    """Trampolines stay when a library goes: those of the one led to the other's pads."""
    process = start('/usr/bin/python3', '-S', '-c', BZ2)

    def tell(word):
        n = process.out.count(word)
        process.send(f'{word}\n')
        eventually(lambda: process.out.count(word) > n or not process.is_alive(), word)
        check(process.is_alive(), f'the program lives: {word}', process.result())

    tell('open')
    path = next(mapping.path for mapping in processes.maps(process.pid) if 'libbz2' in mapping.path)
    puns = re.findall(r'^  site +(0x[0-9a-f]+),(?:(?!^  site)[^\0])*?^  tactic +pun',
                      kymo('explain', path, 'BZ2_bzBuffToBuffCompress:*').ok().out, re.MULTILINE)
    recorders = [
        watching_recorder(process.pid, name, *places.specs((path, int(offset, 16)) for offset in puns))
        for name in ('stays', 'leaves')
    ]
    for _ in range(2):
        tell('call')
        tell('close')
        tell('open')
    tell('close')
    check(not any('libbz2' in mapping.path for mapping in processes.maps(process.pid)), 'the library is gone')
    recorders[1].end(signal.SIGINT).ok()
    tell('open')
    tell('call')
    result = recorders[0].end(signal.SIGINT).ok()
    check_text_intact(process.pid)
    process.end().ok()
    counts = {name: number for name, number in event_counts('stays').items() if number}
    check(LATE in result.err or counts and set(counts.values()) == {3}, 'each instruction that ran, each time', counts,
          result)
    check_equal({name: number for name, number in event_counts('leaves').items() if number}, dict.fromkeys(counts, 2),
                'each of them, while it was there')


@waits
def test_a_library_that_went_before_its_probes_were_in_is_in_nobodys_way(tmp):
    """A recorder that takes three seconds for each piece of memory: it plans for a library that is closed meanwhile.
    Another version of it is recorded."""
    library = tmp / 'libgrown.so'
    put_library(library, 'libctor.so')
    process = target('reopener', library)
    opened(process)
    recording = watching_recorder(process.pid, 'data', '-p', 'libgrown:ctor_work')
    delay = start(program('strace'), '-o', tmp / 'calls', '-e', 'trace=openat,fallocate', '-e', 'signal=none', '-e',
                  'inject=fallocate:delay_enter=3000000', '-p', recording.pid)
    eventually(lambda: f'Process {recording.pid} attached' in delay.err, 'strace is attached to the recorder')
    put_library(library, 'libctor.so', 'old.0')
    opened(process)  # no thread waits longer for the recorder, which is about to write
    # Rings get memory, too: what counts is what comes after the library's file has been read.
    eventually(lambda: re.search(r'/map_files/[^\0]*fallocate\(', (tmp / 'calls').read_text()),
               'the recorder is about to write')
    process.send('c')
    process.wait_for('^closed$')
    eventually(lambda: 'is not probed' in recording.err, 'the recorder has not found the library any more')
    delay.end(signal.SIGTERM)
    put_library(library, 'libctor-rebuilt.so', 'old.1')
    opened(process)
    eventually(lambda: is_changed(process, 'libgrown'), 'the library that is open has its probe')
    process.end().ok()
    recording.end().ok()


def test_a_recording_that_was_asleep_when_a_library_came_back_leaves_others_their_places(tmp):
    """One's jump may be made of bytes that the other one's would change. A recorder that comes back to a library plans
    again where another one is."""
    path = target_path('libctor.so')
    code = places.instructions_of(path, 'ctor_work')
    process = target('reopener', path)
    opened(process)
    asleep = watching_recorder(process.pid, 'asleep', *places.specs((path, offset) for offset in code[1::2]))
    asleep.signal(signal.SIGSTOP)
    opened(process)
    comes = watching_recorder(process.pid, 'comes', *places.specs((path, offset) for offset in code[::2]))
    asleep.signal(signal.SIGCONT)
    for _ in range(3):
        opened(process)
    result = process.end().ok()
    check(result.json()['ctor_work'] > 0, 'it has called the function', result)
    for each in (asleep, comes):
        each.end()


def generation(pid):
    """Of the journal of the only recording: src/wire/shared.h, struct kymo_wire_header."""
    for text in Path(f'/proc/{pid}/maps').read_text().splitlines():
        if text.endswith('/memfd:kymo (deleted)'):
            with open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory:
                return struct.unpack('<Q', os.pread(memory.fileno(), 8, int(text.partition('-')[0], 16) + 80))[0]
    return check(False, 'a recording is mapped')


@waits
def test_others_are_told_when_the_places_of_a_library_are_in_its_code_again(tmp):
    """Entries were in the journal before. A recorder that reads it while the library is new, and its code the file's,
    does not take them for obstacles."""
    path = target_path('libctor.so')
    process = target('reopener', path)
    opened(process)
    recording = watching_recorder(process.pid, 'data', '--backend', 'inproc', '-p', 'libctor.so:ctor_work')
    slow = start(program('strace'), '-o', tmp / 'calls', '-p', recording.pid, '-e', 'trace=pwrite64', '-e',
                 'signal=none', '-e', 'inject=pwrite64:delay_enter=300000')
    slow.wait_for('attached', which=1)
    process.send('\n')
    eventually(lambda: Path(f'/proc/{recording.pid}/syscall').read_text().startswith(f'{PWRITE64} '),
               'it is about to write')
    before = generation(process.pid)
    process.wait_for(r'^open .*\n(?:.*\n)*?open ')
    check(generation(process.pid) > before, 'the generation has gone up behind the code')
    slow.end(signal.SIGINT)
    process.end().ok()
    recording.end().ok()
