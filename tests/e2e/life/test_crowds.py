"""Several recorders of one process, threads where they work, and children: what each has is its own and complete, and
the process never notices."""
import re
import shutil
import signal

import killing
import processes
import remains
import test_lies
from kymotest import (IS_WHOLE, KYMO, NOBODY, check, check_equal, check_text_intact, event_counts, eventually, kymo,
                      program, run, sampled, start, target, timeout)
from recorders import next_line, recorder, recordings

CALLS = 1000
KILLS = 8


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
        next_line(process, r'^done \d+$')
        rounds += 1
        shutil.rmtree(tmp / 'killed', ignore_errors=True)
        run(*command).ok()
        check_equal(len(recordings(process.pid)), 1,
                    f'recordings after a kill at {call} number {number} and the next attach')
    next_line(process, r'^done \d+$')
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
# the header says that is not so, sys.argv[2] the entries of the journal, as a function of their number. sys.argv[4] is
# the version of the layout.
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
said = dict(magic=0x316f6d796b, version=int(sys.argv[4]), recorder=recorder, start=started, pidns=0, wall=0,
            address=address, size=size, journal=524288, capacity=1024, n_sites=64, generation=0, n_installed=64, runs=65536, n_runs=0, data=0, data_size=0,
            vforks=0, window=0, window_size=0, window_offset=0, n_rings=0, n_regions=0, target=os.getpid(), overwrite=0,
            recorded=0, lost=0)
said.update(eval(sys.argv[1]))
header = struct.pack('<QIIQQQQQQQQQQQQQQQQQQIIIIQQ', *said.values())
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
    process = start('/usr/bin/python3', '-c', HOSTILE, *LIES[lie], 'accomplice' if accomplice else 'nobody',
                    remains.layout_version())
    process.wait_for('^ready$')
    for command in (['status', process.pid], [
            'record', '-q', '-o', 'data', '--buffer', '1M', '-p', 'libc:getppid', '-p', 'libc:getppid:*', '--for',
            '0.01', '--pid', process.pid
    ], ['status', '--json', process.pid], ['detach', process.pid]):
        result = kymo(*command)
        check(result.status in (0, 1), f'{lie}: it ends by itself', result)
        check('another version' not in result.err, f'{lie}: it is read', result)
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
    child = int(next_line(process, r'^child (\d+)\n(?=done)')[1])
    eventually(lambda: f'done {CALLS}\n' in process.out, 'the first calls are made')
    result = kymo('detach', child)
    check(processes.is_alive(child), 'the child lives', result, process.result())
    for rounds, i in ((2, 1), (3, 0), (4, 2)):
        next_line(process, r'^done \d+$')
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


# ---- which process a header may name ----------------------------------------------------------------------

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
    process = start('/usr/bin/python3', '-c', test_lies.PROGRAM, bystander.pid, remains.layout_version(),
                    user=NOBODY)
    process.wait_for('ready')
    result = kymo('detach', process.pid, user=NOBODY)
    check(bystander.is_alive(), 'the process that the header names runs on', result)
    check('done' in bystander.end(input='\n').ok().out, 'and ends by itself')
    process.end(input='\n').ok()
