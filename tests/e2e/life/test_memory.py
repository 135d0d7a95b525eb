"""Whose memory is it: what a forked child without rights, and a process that lies, can do with what kymo has put into
them."""
import json
import os
import re
import signal
import struct
import time
from pathlib import Path

import processes
import remains
from kymotest import (check, check_equal, check_matches, event_counts, eventually, events, kymo, need_root, record,
                      skip, start, start_record)

N = 500

# What forked children are told to do, and what they say of it. `mine()` is all of kymo's that is mapped.
CHILD = r'''
import ctypes, json, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
NOBODY, RW, R = 65534, 3, 1

def maps():
    for line in open('/proc/self/maps'):
        parts = line.split(None, 5)
        low, high = (int(x, 16) for x in parts[0].split('-'))
        yield low, high, parts[1], parts[5].strip() if len(parts) > 5 else ''

def mine():
    """Mappings that are named so, and single pages between two of those."""
    all = list(maps())
    named = [i for i, one in enumerate(all) if '/memfd:kymo' in one[3]]
    live = [i for i, one in enumerate(all) if not one[3] and one[1] - one[0] == 4096 and i - 1 in named and i + 1 in named]
    return [all[i] for i in sorted(named + live)]

def drop_rights():
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)

def in_child(work):
    """What `work` says in a forked child without rights, and the child's status."""
    r, w = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            drop_rights()
            os.write(w, json.dumps(work()).encode())
        finally:
            os._exit(0)
    os.close(w)
    said = b''
    while more := os.read(r, 65536):
        said += more
    os.close(r)
    return json.loads(said or 'null'), os.waitpid(pid, 0)[1]
'''

ATTACKED = CHILD + r'''
N = int(sys.argv[1])

def make_writable():
    """Of each mapping whether it could be made writable, and whether it is shared with the parent."""
    said = []
    for low, high, permissions, path in mine():
        failed = libc.mprotect(low, high - low, RW)
        said.append([path, permissions, failed == 0])
    return said

def scribble():
    """Over all that can be written, or be made so. All calls are made before: libc has kymo's jumps."""
    n = 0
    for low, high, permissions, path in mine():
        if libc.mprotect(low, min(high - low, 1 << 16), RW):
            continue
        ctypes.memset(low, 0x4c, min(high - low, 1 << 16))
        n += 1
    return n

def calls():
    for _ in range(N):
        assert os.getppid() == parent
    return N

parent = os.getppid()
print('ready', flush=True)
sys.stdin.readline()
said = dict(calls=calls(), writable=in_child(make_writable)[0])
said['scribbled'] = in_child(scribble)[0]
said['calls'] += calls()
print(json.dumps(said))
'''


def attack(*options):
    process = start('/usr/bin/python3', '-c', ATTACKED, N)
    process.wait_for('^ready$')
    recorder = start_record(process.pid, *options)
    result = process.end(input='\n').ok()
    recorder.end().ok()
    return json.loads(result.out.splitlines()[-1])


def check_attack(said):
    check(len(said['writable']) > 4, 'kymo is mapped in the child', said)
    shared = [one for one in said['writable'] if one[1].endswith('s')]
    check(shared, 'some of it is shared with the parent', said)
    for path, permissions, could in shared:
        check(not could and 'w' not in permissions,
              f'{path} {permissions}: the child can not write what its parent has, too', said)
    check(said['scribbled'] > 0, 'it writes to its own copies', said)
    check_equal(event_counts().get('libc:getppid', 0), said['calls'], 'calls of the parent that are recorded')


def test_a_forked_child_without_rights_can_write_nothing_that_its_parent_has():
    need_root()
    check_attack(attack('-p', 'libc:getppid'))


def test_a_forked_child_without_rights_can_write_nothing_that_its_parent_has_with_locks():
    need_root()
    check_attack(attack('--no-rseq', '-p', 'libc:getppid', '-s', 'getuid'))


FOLLOWED = CHILD + r'''
N = int(sys.argv[1])
parent = os.getppid()

def inodes():
    return [int(line.split()[4]) for line in open('/proc/self/maps') if '/memfd:kymo-data' in line]

def scribble():
    """Over the positions of its rings."""
    said = inodes()
    for low, high, permissions, path in mine():
        for ring in range(4) if path.startswith('/memfd:kymo-data') else ():
            ctypes.memset(low + 4096 + 1024 * ring + 8, 0x5a, 16)
    return said

said = dict(here=inodes(), calls=0)
for _ in range(N):
    said['calls'] += os.getppid() == parent
said['there'], said['status'] = in_child(scribble)
for _ in range(N):
    said['calls'] += os.getppid() == parent
print(json.dumps(said))
'''


def test_a_followed_child_without_rights_spoils_no_records_of_its_parent():
    need_root()
    result = record('-p', 'libc:getppid', '--', '/usr/bin/python3', '-c', FOLLOWED, N).ok()
    said = json.loads(result.out.splitlines()[-1])
    check_equal((len(said['here']), len(said['there'])), (1, 1), 'mappings of rings')
    check(said['here'] != said['there'], 'the child has rings of its own', said)
    mine = [event for event in events() if event['tid'] == int(recorded_pid())]
    check_equal(len(mine), said['calls'] + 1, 'records of the parent')


def recorded_pid():
    return re.search(r'\bpid = "?(\d+)', open('kymo.data/metadata').read())[1]


# ---- JIT code ----------------------------------------------------------------------------------

# int add(int n) { return n + 5; }, as a JIT compiler writes it, and what its child would rather have there: xor
# %eax,%eax; ret; hlt; hlt.
ADD_5 = bytes.fromhex('554889e5b80500000001f85dc3000000')
EVIL_CODE = bytes.fromhex('31c0c3f4f4')
ORIGINAL = 72  # offset in struct kymo_wire_site, whose first member is the address

JITTED = CHILD + rf'''
import struct
evil = {EVIL_CODE!r}

def places():
    """Where journal entries of the code have its original bytes."""
    for low, high, permissions, path in mine():
        if 'r' in permissions:
            text = ctypes.string_at(low, high - low)
            at = text.find(struct.pack('<Q', code))
            while at >= 0:
                if text[at + {ORIGINAL}:at + {ORIGINAL} + 1] == {ADD_5[:1]!r}:
                    yield low, high, permissions, low + at + {ORIGINAL}
                at = text.find(struct.pack('<Q', code), at + 1)

def tries(work):
    try:
        return bool(work())
    except OSError:
        return False

def write_by_file(name, at):
    fd = os.open(name, os.O_RDWR)
    return os.pwrite(fd, evil, at) == len(evil)

def write_in_place(low, high, at):
    if libc.mprotect(low, high - low, RW):
        return False
    ctypes.memmove(at, evil, len(evil))
    return True

def spoil():
    """How often it has found them in memory that its parent has, too, and by what it has written to that."""
    found, by = 0, []
    for low, high, permissions, at in list(places()):
        if not permissions.endswith('s'):
            continue
        found += 1
        for how, work in [('map_files', lambda: write_by_file(f'/proc/self/map_files/{{low:x}}-{{high:x}}', at - low)),
                          ('mem', lambda: write_by_file('/proc/self/mem', at)),
                          ('parent', lambda: write_by_file(f'/proc/{{parent}}/mem', at)),
                          ('mprotect', lambda: write_in_place(low, high, at))]:
            if tries(work):
                by.append(how)
    return found, by

parent = os.getpid()
page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
page.write({ADD_5!r})
code = ctypes.addressof(ctypes.c_char.from_buffer(page))
assert libc.mprotect(code, 4096, 5) == 0
add = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(code)
print('code', code, flush=True)
for line in sys.stdin:
    if line == 'spoil\n':
        print('spoiled', json.dumps(in_child(spoil)), flush=True)
    else:
        print('said', add(2), ctypes.string_at(code, 16).hex(), flush=True)
'''


def test_a_forked_child_without_rights_does_not_change_what_is_written_back_into_code_of_its_parent():
    """The journal has the only copy of the bytes: no file tells whether they are right."""
    need_root()
    process = start('/usr/bin/python3', '-c', JITTED)
    code = int(process.wait_for(r'^code (\d+)$')[1])
    recorder = start_record(process.pid, '-p', f'{code:#x}')
    process.send('spoil\n')
    (found, by), status = json.loads(process.wait_for(r'^spoiled (.*)$')[1])
    check(found > 0, 'the child finds the original bytes in memory that its parent has, too')
    check_equal((by, status), ([], 0), 'by what it has written there, and its status')
    recorder.end(signal.SIGKILL)
    kymo('detach', process.pid).ok()
    process.send('say\n')
    check_equal(process.wait_for(r'^said (.*)$')[1], f'7 {ADD_5.hex()}', 'what the code gives, and its bytes')
    process.end().ok()


# ---- what pads do in a child that has no rings ---------------------------------------------------

VISITS = CHILD + r'''
def visit():
    """Each kind of pad."""
    for _ in range(100):
        os.getppid(), os.getuid()
    ctypes.CDLL(sys.argv[1])
    status = os.posix_spawn('/bin/true', ['true'], os.environ)
    os.waitpid(status, 0)
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    import threading
    thread = threading.Thread(target=os.getppid)
    thread.start()
    thread.join()
    libc.prctl(26, 2, 0, 0, 0)  # PR_SET_TSC, PR_TSC_SIGSEGV
    for _ in range(100):
        os.getppid(), os.getuid()
    return 'done'

print('ready', flush=True)
sys.stdin.readline()
print(json.dumps(in_child(visit)))
'''


def visit(*options):
    process = start('/usr/bin/python3', '-c', VISITS, 'libz.so.1')
    process.wait_for('^ready$')
    recorder = start_record(process.pid, '-p', 'libc:getppid', '-p', 'libz:crc32', '-s', 'getuid,execve', *options)
    result = process.end(input='\n').ok()
    recorder.end().ok()
    check_equal(json.loads(result.out.splitlines()[-1]), ['done', 0],
                'what a child said that went through all pads, and its status')


def test_a_child_that_has_no_rings_goes_through_all_kinds_of_pads():
    need_root()
    visit()


def test_a_child_that_has_no_rings_goes_through_all_kinds_of_pads_with_locks():
    need_root()
    visit('--no-rseq')


# ---- lies ------------------------------------------------------------------------------------------------------------

# A journal whose recorder is gone, and whose text is as it says. sys.argv[1] makes the entry, sys.argv[2] is the
# version of the layout; `victim` is memory of the process's own that is not text.
LIAR = r'''
import ctypes, mmap, os, struct, sys
VERSION = int(sys.argv[2])
size, libc = 4 << 20, ctypes.CDLL(None)
libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
fd = os.memfd_create('kymo')
os.ftruncate(fd, size)
memory = mmap.mmap(fd, size)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
header = struct.pack('<QIIQQQQQQQQQQQQQQQQQQIIIIQQ', 0x316f6d796b, VERSION, 2 ** 22 + 1, 1, 0, 0, address, size, 524288, 1024, 1, 0, 1, 65536, 0, 0, 0, 0, 0, 0, 0,
                     0, 0, os.getpid(), 0, 0, 0)
ctypes.memmove(address, header, len(header))
os.close(fd)
page = mmap.mmap(-1, 8192, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
victim = ctypes.addressof(ctypes.c_char.from_buffer(page))
text = ctypes.cast(libc.getppid, ctypes.c_void_p).value
libc_inode = os.stat([l.split()[5] for l in open('/proc/self/maps') if 'libc.so' in l][0]).st_ino

def jump(at, to):
    return b'\xe9' + struct.pack('<i', to - at - 5)

def put_jump(at, to):
    libc.mprotect(at & ~4095, 8192, 7)
    ctypes.memmove(at, jump(at, to), 5)
    libc.mprotect(at & ~4095, 8192, 5 if at == text else 3)

def site(at, original, inode, flags=0, next=0, patch=5, state=0):
    # 2 GiB at the most from the place: the entry need not be in anything
    entry = at + 65536
    return struct.pack('<QQQIIQQQQQ24s15sBBBBBIQ56sQ', at, at, entry, 64, 7, entry, entry + 8, entry + 16, 0, next, original.ljust(24, b'\xcc'),
                       jump(at, entry).ljust(15, b'\0'), patch, patch, patch, 1, flags, state, inode, b'lie', 0)

before = ctypes.string_at(text, 5)
entry = eval(sys.argv[1])
ctypes.memmove(address + 524288, entry, len(entry))
libc.mprotect(address, size, mmap.PROT_READ)  # as a target has it
print('ready', flush=True)
for line in sys.stdin:
    print(ctypes.string_at(text, 5).hex(), ctypes.string_at(victim, 8).hex(), flush=True)
    ctypes.memmove(text, before, 5) if ctypes.string_at(text, 5) != before and not libc.mprotect(text & ~4095, 8192, 7) else None
'''
EVIL = b'\x90\x90\x90\x90\xc3'
REFUSED = 'cannot be trusted'


def lie(entry):
    """What the text and the victim hold when root has detached."""
    process = start('/usr/bin/python3', '-c', LIAR, entry, remains.layout_version())
    process.wait_for('^ready$')
    result = kymo('detach', process.pid)
    process.send('\n')
    eventually(lambda: len(process.out.splitlines()) > 1, 'it says what it has')
    text, victim = process.out.splitlines()[1].split()
    process.end().ok()
    return result, bytes.fromhex(text), bytes.fromhex(victim)


def check_refused(result):
    check_equal(result.status, 1, 'status of kymo detach')
    check_matches(result.err, REFUSED, 'what it says')


def test_original_bytes_that_the_file_does_not_have_are_not_written():
    result, text, _ = lie(f'(put_jump(text, text + 65536), site(text, {EVIL!r}, libc_inode))[1]')
    check(text != EVIL, 'the journal\'s bytes are not in the text', text, result)
    check_refused(result)


def test_what_is_no_text_is_not_written():
    result, _, victim = lie(f'(put_jump(victim, victim + 65536), site(victim, {EVIL!r}, 0))[1]')
    check(victim[:5] != EVIL, 'the journal\'s bytes are not in the data', victim, result)
    check_refused(result)


def test_a_counter_that_no_marker_has_is_not_counted():
    count = struct.pack('<H', 7)
    result, _, victim = lie(
        f'(ctypes.memmove(victim, {count!r}, 2), site(text, before, libc_inode, flags=16, next=victim, patch=0, state=2))[1]'
    )
    check_equal(victim[:2], count, 'the word')
    check_refused(result)
    result, _, victim = lie(
        f'(ctypes.memmove(victim, {count!r}, 2), site(text, before, libc_inode, flags=48, next=victim, patch=0, state=7))[1]'
    )
    check_equal(victim[:2], count, 'the gate')


RACE_SECONDS = 30

# A process with the same descriptors, which puts another file in the place of each new one as fast as it can.
SWITCHER = r'''
import ctypes, os, sys
libc = ctypes.CDLL(None)
evil = os.open(sys.argv[1], os.O_RDWR)
free = os.dup(evil)
os.close(free)
CLONE_FILES, SIGCHLD, SYS_clone = 0x400, 17, 56
parent = os.getpid()
if not libc.syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0):
    while os.getppid() == parent:
        for fd in (free, free + 1):
            try:
                os.fstat(fd)
                if os.fstat(fd).st_ino != os.fstat(evil).st_ino:
                    os.dup2(evil, fd)
            except OSError:
                pass
    os._exit(0)
print('ready', flush=True)
for line in sys.stdin:
    os.getppid()
'''


def test_a_descriptor_that_is_another_file_is_not_written(tmp):
    evil = tmp / 'evil'
    evil.write_bytes(b'x' * 100)
    process = start('/usr/bin/python3', '-c', SWITCHER, evil)
    process.wait_for('^ready$')
    said, tries, end = '', 0, time.monotonic() + RACE_SECONDS
    while 'descriptor' not in said and time.monotonic() < end:
        result = kymo('record', '-q', '-o', 'data', '-p', 'libc:getppid', '--for', '0.01', '--pid', process.pid)
        check(result.status in (0, 1), 'it ends by itself', result)
        check(processes.is_alive(process.pid), 'the process lives', result, process.result())
        said += result.err
        tries += 1
    check_equal(evil.read_bytes(), b'x' * 100, 'the file that took the place of kymo\'s memory')
    process.end().ok()
    if 'descriptor' not in said:
        skip(f'in {tries} tries of {RACE_SECONDS} s no descriptor was exchanged in time')
