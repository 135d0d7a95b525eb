"""Several recorders of one process, threads where they work, children, and libraries that come and go: what each has
is its own and complete, and the process never notices."""
import os
import re
import shutil
import signal
import struct
from pathlib import Path

import killing
import places
import processes
import remains
import test_lies
from kymotest import (IS_WHOLE, KYMO, NOBODY, check, check_equal, check_text_intact, clean_up_after, event_counts,
                      eventually, kymo, program, run, sampled, skip, start, target, target_path, timeout)
from recorders import LATE, recorder, recordings, unless_late, watching_recorder

CALLS = 1000
CTOR_CALLS = 101  # of ctor_work, when the library is opened by reopener
OPEN_CALLS = 111  # and with its close
KILLS = 8
PWRITE64 = 18


def line(process, pattern):
    """Send a line; the match of the next line that the process writes then and that `pattern` is in."""
    already = len(re.findall(pattern, process.out, re.MULTILINE))
    process.send('\n')

    def found():
        matches = list(re.finditer(pattern, process.out, re.MULTILINE))
        check(process.is_alive(), 'the process goes on', process.result())
        return len(matches) > already and matches[already]

    return eventually(found, f'{process.command} writes /{pattern}/')


# ---- threads -------------------------------------------------------------------------------------


@sampled
@timeout(300)
def test_threads_on_refused_instructions_of_a_window_are_moved(tmp):
    """Which are refused depends on what is mapped where."""
    for i in range(5 if IS_WHOLE else 3):
        process = target('windows', 4)
        before = remains.lasting_mappings(process.pid)
        for _ in range(2):
            kymo('record', '-q', '-p', 'windows:spin:*', '-o', 'data', '--buffer', '1M', '--for', '0.01', '--pid',
                 process.pid).ok()
            check(process.is_alive(), f'program {i} runs on', process.result())
            check_text_intact(process.pid)
            shutil.rmtree(tmp / 'data')
        remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
        check(process.end(signal.SIGTERM).ok().json()['spin'] > 0, 'it worked')


@sampled
@timeout(300)
def test_two_recorders_end_at_once_while_threads_are_made():
    process = target('selfcheck', '-t', 4, '-p', 0)
    before = remains.lasting_mappings(process.pid)
    for i in range(10 if IS_WHOLE else 4):
        both = [
            recorder(process.pid, f'{name}.{i}', '--buffer', '1M', '-p', probes)
            for name, probes in (('one', 'selfcheck:work_*'), ('two', 'selfcheck:work_a:*'))
        ]
        for each in both if i % 2 else reversed(both):
            each.signal(signal.SIGINT)
        for each in both:
            each.end().ok()
        check(process.is_alive(), f'the program runs on after round {i}', process.result())
        check_text_intact(process.pid)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


# ---- recorders that die --------------------------------------------------------------------------


def test_a_recorder_that_is_killed_between_journal_and_text_spoils_nothing_of_the_others(tmp):
    process = target('lines', CALLS)
    probes = ['-p', 'lines:work_a', '-p', 'lines:work_b:*']
    stays = recorder(process.pid, 'stays', '--buffer', '1M', *probes, env=killing.NO_LEAKS)
    command = [
        KYMO, 'record', '-q', '-o',
        str(tmp / 'killed'), '--buffer', '1M', *probes, '--for', '0.01', '--pid',
        str(process.pid)
    ]
    rounds = 0
    for call, number in writes(tmp, command)[-KILLS:]:
        shutil.rmtree(tmp / 'killed', ignore_errors=True)
        run(program('strace'), '-qq', '-o', '/dev/null', '-e', f'trace={call}', '-e', 'signal=none', '-e',
            f'inject={call}:signal=KILL:when={number}', *command, env=killing.NO_LEAKS)
        line(process, r'^done \d+$')
        rounds += 1
        shutil.rmtree(tmp / 'killed', ignore_errors=True)
        run(*command).ok()
        check_equal(len(recordings(process.pid)), 1,
                    f'recordings after a kill at {call} number {number} and the next attach')
    line(process, r'^done \d+$')
    stays.end(signal.SIGINT).ok()
    counts = event_counts('stays')
    check_equal(counts['lines:work_a'], (rounds + 1) * CALLS, f'calls after {rounds} kills')
    process.end().ok()


def writes(tmp, command):
    """(call, number) of what a recorder writes from its journal on, until it has left."""
    run(program('strace'), '-qq', '-o', tmp / 'calls', '-e', 'trace=fallocate,pwrite64,pwritev,process_vm_writev', '-e',
        'signal=none', *command, env=killing.NO_LEAKS).ok()
    seen, found = {}, []
    for text in (tmp / 'calls').read_text().splitlines():
        if match := re.match(r'(\w+)\(', text):
            seen[match[1]] = seen.get(match[1], 0) + 1
            found.append((match[1], seen[match[1]]))
    check(len(found) > 4, 'it writes', found)
    return found


# ---- what lies -----------------------------------------------------------------------------------

# Its memory looks like kymo's, with an accomplice that looks like its recorder if it is told so. sys.argv[1] is what
# the header says that is
# not so, sys.argv[2] the entries of the journal, as a function of their number.
HOSTILE = '''
import ctypes, json, mmap, os, struct, sys
size, libc = 4 << 20, ctypes.CDLL(None)
fd = os.memfd_create('kymo')
os.ftruncate(fd, size)
memory = mmap.mmap(fd, size)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
has_recorder = sys.argv[3] == 'accomplice'
recorder = os.fork()
if not recorder:
    os.close(0)
    while has_recorder:
        libc.pause()
    os._exit(0)
started = int(open(f'/proc/{recorder}/stat').read().rsplit(')', 1)[1].split()[19])
if not has_recorder:
    os.waitpid(recorder, 0)
said = dict(magic=0x316f6d796b, version=5, recorder=recorder, start=started, wall=0,
            address=address, size=size, journal=524288, capacity=1024, n_sites=64, generation=0, n_installed=64, runs=65536, n_runs=0, data=0, data_size=0,
            vforks=0, window=0, window_size=0, window_offset=0, n_rings=0, n_regions=0, target=os.getpid(), overwrite=0,
            recorded=0, lost=0)
said.update(eval(sys.argv[1]))
header = struct.pack('<QIIQQQQQQQQQQQQQQQQQIIIIQQ', *said.values())
ctypes.memmove(address, header, len(header))
work = ctypes.cast(libc.getppid, ctypes.c_void_p).value
def there(i):
    return ctypes.string_at(work + i, 24)
text = there(0)
# A jump to `entry`, which is no place of the text, but that is what a link says.
jump, entry = address + 3000000, address + 3000100
ctypes.memmove(jump, b'\\xe9' + struct.pack('<i', entry - jump - 5), 5)
top = 2 ** 64 - 1
libc_inode = os.stat([l.split()[5] for l in open('/proc/self/maps') if 'libc.so' in l][0]).st_ino
def site(address=top, link=top, pad=top, pad_size=2 ** 32 - 1, event=7, entry=top, inner=top, displaced=top, hop=top, next=top, original=b'x' * 24, patched=b'y' * 15,
         patch=255, window=255, lock=255, tactic=255, flags=255, inode=libc_inode, name=b'n' * 56):
    return struct.pack('<QQQIIQQQQQ24s15sBBBBBIQ56sQ', address, link, pad, pad_size, event, entry, inner, displaced, hop, next, original, patched, patch, window, lock,
                       tactic, flags, 0, inode, name, 0)
if said['journal'] + 192 * 64 <= size:
    for i in range(64):
        one = eval(sys.argv[2])
        assert len(one) == 192
        ctypes.memmove(address + said['journal'] + 192 * i, one, 192)
os.close(fd)
print('ready', flush=True)
for line in sys.stdin:
    for _ in range(100):
        assert os.getppid() > 0
    print('called', flush=True)
if has_recorder:
    os.kill(recorder, 9)
    os.waitpid(recorder, 0)
print('done')
'''

NEAR = 'site(address=work + i, link=jump, pad=entry, pad_size=64, entry=entry, inner=entry, displaced=entry, hop=0, next=0, original=there(i), patched=there(i)[:15]'
LIES = {
    'addresses': ('{}', 'site()'), 'addresses that begin well':
    ('{}',
     'site(address=[work, 4096, 2 ** 47 - 4096, 2 ** 63, top - 5, 0][i % 6], patch=i % 17, window=i % 30, lock=i * 4)'),
    'a chain of evictions': ('{}',
                             f'{NEAR}, patch=5, window=7, lock=7, tactic=5, flags=i & 1)'), 'all tactics and flags':
    ('{}', f'{NEAR}, patch=i % 16, window=i % 25, lock=i, tactic=i % 9, flags=i)'), 'chains that end nowhere':
    ('{}',
     'site(address=work, link=jump, entry=entry, inner=entry + i, next=entry + (i + 1) % 64, displaced=top, patch=5, window=7, lock=7,'
     ' tactic=1, flags=0, original=text, patched=text[:15])'), 'a huge journal':
    ('dict(capacity=2 ** 60, n_sites=2 ** 60)',
     'site()'), 'a journal that wraps': ('dict(capacity=(2 ** 64) // 192, n_sites=2 ** 40, journal=size - 1)',
                                         'site()'), 'more sites than the journal has': ('dict(n_sites=1025)', 'site()'),
    'more of all': ('dict(n_regions=2 ** 32 - 1, n_runs=2 ** 64 - 1, n_installed=2 ** 64 - 1)',
                    'site()'), 'regions and lists anywhere':
    ('dict(n_regions=1024, n_runs=16384, vforks=2 ** 64 - 1, window=2 ** 64 - 4096, window_size=8192)', 'site()'),
}


def meet(lie, accomplice):
    """All commands meet a process that lies: each ends by itself, and the process lives."""
    process = start('/usr/bin/python3', '-c', HOSTILE, *LIES[lie], 'accomplice' if accomplice else 'nobody')
    process.wait_for('^ready$')
    for command in (['status', process.pid], [
            'record', '-q', '-o', 'data', '--buffer', '1M', '-p', 'libc:getppid', '-p', 'libc:getppid:*', '--for',
            '0.01', '--pid', process.pid
    ], ['status', '--json', process.pid], ['detach', process.pid]):
        result = kymo(*command)
        check(result.status in (0, 1), f'{lie}: it ends by itself', result)
        check(processes.is_alive(process.pid), f'{lie}: the process lives', result, process.result())
    check('called' in process.end(input='\n').ok().out, f'{lie}: the process works')


def test_journals_that_lie_spoil_nothing():
    for lie in LIES:
        meet(lie, False)


def test_journals_that_lie_and_have_a_recorder_spoil_nothing():
    for lie in LIES:
        meet(lie, True)


# ---- children ------------------------------------------------------------------------------------


def detach_child_between(probes, names):
    """Recordings of the same places, a child, its detach, and one recording after the other that leaves. Each of the
    recordings has all that was called while it was there."""
    process = target('lines', '-f', CALLS)
    before = remains.lasting_mappings(process.pid)
    all_of_them = [recorder(process.pid, f'r{i}', *probes) for i in range(3)]
    child = int(line(process, r'^child (\d+)\n(?=done)')[1])
    eventually(lambda: f'done {CALLS}\n' in process.out, 'the first calls are made')
    result = kymo('detach', child)
    check(processes.is_alive(child), 'the child lives', result, process.result())
    for rounds, i in ((2, 1), (3, 0), (4, 2)):
        line(process, r'^done \d+$')
        all_of_them[i].end(signal.SIGINT).ok()
        counts = event_counts(f'r{i}')
        check_equal({name: counts.get(name, 0) for name in names}, {name: rounds * CALLS for name in names},
                    f'calls in r{i}')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    check(processes.is_alive(child), 'the child lives')
    kymo('detach', child)
    check_text_intact(child)
    check(not remains.are_there(child), 'nothing is left in the child')
    process.end().ok()
    return result


def test_a_detached_child_leaves_its_parents_recordings_complete():
    names = ['lines:work_a', 'lines:work_b']
    detach_child_between(['-p', 'lines:work_a', '-p', 'lines:work_b'], names)


def test_a_detached_child_leaves_its_parents_recordings_of_every_instruction_complete():
    detach_child_between(['-p', 'lines:work_a:*'], ['lines:work_a'])


def test_a_thread_that_spawns_is_recorded_on_when_the_recorder_with_the_guards_leaves():
    process = target('spawner')
    leaves = recorder(process.pid, 'leaves', '-p', 'spawner:work_a')
    stays = recorder(process.pid, 'stays', '-p', 'spawner:work_a', '-p', 'libc:posix_spawn')
    process.send('\n')
    eventually(lambda: recorded(process, stays) > 0, 'what it does is recorded')
    leaves.end(signal.SIGINT).ok()
    comes = recorder(process.pid, 'comes', '-p', 'spawner:work_a')
    comes.end(signal.SIGINT).ok()
    said = process.end(input='\n').ok().json()['work_a']
    stays.end().ok()
    check_equal(event_counts('stays'), {'spawner:work_a': said, 'libc:posix_spawn': said}, 'calls')
    check(event_counts('comes')['spawner:work_a'] <= said, 'calls while the third was there')


def recorded(process, recorder):
    return sum(each.get('bytes', 0) for each in recordings(process.pid) if each['recorder'] == recorder.pid)


# ---- libraries -----------------------------------------------------------------------------------


def opened(process):
    """Close the library and open it again: where its function is, the longest times that took in microseconds, and of
    the processor, calls so far."""
    match = line(process, r'^open (0x[0-9a-f]+) (\d+) (\d+) (\d+)$')
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


def test_a_library_that_went_before_its_probes_were_in_is_in_nobodys_way(tmp):
    """A recorder whose first writes take three seconds: it plans for a library that is closed meanwhile. Another
    version of it is recorded."""
    library = tmp / 'libgrown.so'
    put_library(library, 'libctor.so')
    process = target('reopener', library)
    opened(process)
    recording = watching_recorder(process.pid, 'data', '-p', 'libgrown:ctor_work')
    delay = start(program('strace'), '-o', tmp / 'writes', '-e', 'trace=fallocate', '-e', 'signal=none', '-e',
                  'inject=fallocate:delay_enter=3000000:when=1..2', '-p', recording.pid)
    eventually(lambda: f'Process {recording.pid} attached' in delay.err, 'strace is attached to the recorder')
    put_library(library, 'libctor.so', 'old.0')
    opened(process)  # nobody waits longer for the recorder, which is about to write
    eventually(lambda: 'fallocate(' in (tmp / 'writes').read_text(), 'the recorder is about to write')
    process.send('c')
    process.wait_for('^closed$')
    eventually(lambda: 'is not probed' in recording.err, 'the recorder has not found the library any more')
    delay.end(signal.SIGTERM)
    put_library(library, 'libctor-rebuilt.so', 'old.1')
    opened(process)
    eventually(lambda: is_changed(process, 'libgrown'), 'the library that is open has its probe')
    process.end().ok()
    recording.end().ok()


# ---- whom a header may name ----------------------------------------------------------------------

SECRETIVE = '''
import ctypes, signal, sys
ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: nobody may look at it
print('ready', flush=True)
sys.stdin.readline()
print('done')
'''


def test_a_process_that_may_not_be_looked_at_is_not_ended_because_a_header_names_it():
    bystander = start('/usr/bin/python3', '-c', SECRETIVE, user=NOBODY)
    bystander.wait_for('^ready$')
    process = start('/usr/bin/python3', '-c', test_lies.PROGRAM, bystander.pid, user=NOBODY)
    process.wait_for('ready')
    result = kymo('detach', process.pid, user=NOBODY)
    check(bystander.is_alive(), 'the process that the header names runs on', result)
    check('done' in bystander.end(input='\n').ok().out, 'and ends by itself')
    process.end(input='\n').ok()


def test_a_recording_that_was_asleep_when_a_library_came_back_leaves_others_their_places(tmp):
    """One's jump may be made of bytes that the other one's would change: whoever comes back to a library plans anew
    where somebody else is."""
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


def test_others_are_told_when_the_places_of_a_library_are_in_its_code_again(tmp):
    """Entries were in the journal before. Who reads it while the library is new, and its code the file's, takes them
    for nothing that is in the way."""
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
