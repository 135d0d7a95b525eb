"""Which process records another one: numbers of processes, PID namespaces and files that lie do not decide that."""
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import processes
import remains
from kymotest import (KYMO, NOBODY, check, check_equal, check_matches, eventually, kymo, need_root, program, run, skip,
                      start, start_record, timeout)

GETPPID = ('-p', 'libc:getppid')
LIVE = 0x4c  # KYMO_PAD_LIVE of arch/pad.h
INODES = 3000000  # so many files are made and removed in some ten seconds

# ---- a number that means another process ---------------------------------------------------------

# Forks a child with the number that it reads, and says how that ended. The child calls getppid until it is told to
# exit.
PARENT = """
import os, sys
print('ready', flush=True)
wanted = int(sys.stdin.readline())
with open('/proc/sys/kernel/ns_last_pid', 'w') as last:
    last.write(str(wanted - 1))
told, teller = os.pipe()
os.set_blocking(told, False)
child = os.fork()
if not child:
    while True:
        os.getppid()
        try:
            os.read(told, 1)
            os._exit(0)
        except BlockingIOError:
            pass
print('child', child, flush=True)
sys.stdin.readline()
os.write(teller, b'x')
print('ended', os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
# In a PID namespace of its own, where no other process takes the number: the shell starts none meanwhile. Arguments:
# Python, kymo, kymo's words.
SCRIPT = """
mkfifo to from
"$1" parent.py < to > from & parent=$!
kymo=$2
shift 2
exec 9> to 8< from
read -r -u 8
"$kymo" record -q -p libc:getppid -o first --pid $parent 8<&- 9>&- & recorder=$!
until "$kymo" status $parent 2>&1 | grep -q libc:getppid; do sleep 0.05; done
kill -KILL $recorder
wait $recorder
echo $recorder >&9
read -r -u 8
echo "$REPLY"
echo "recorder $recorder"
"$kymo" "$@" $recorder 8<&- 9>&- > said 2>&1
echo "status $?"
cat said
sleep 0.2
echo >&9
read -r -u 8
echo "$REPLY"
"""


def check_child_with_the_number(tmp, *words):
    need_root()
    (tmp / 'parent.py').write_text(PARENT)
    result = run(program('unshare'), '-pf', '--mount-proc', '--kill-child', 'bash', '-c', SCRIPT, 'bash',
                 sys.executable, KYMO, *words)
    text = result.out + result.err
    check_matches(text, r'^child (\d+)\nrecorder \1$', 'the numbers')
    check_matches(text, '^status 0$', f'what became of kymo {words}')
    check_matches(text, '^ended 0$', 'what became of the child')


@timeout(120)
def test_a_child_with_the_number_of_the_dead_recorder_is_cleaned(tmp):
    check_child_with_the_number(tmp, 'detach')


@timeout(120)
def test_a_child_with_the_number_of_the_dead_recorder_is_recorded(tmp):
    check_child_with_the_number(tmp, 'record', '-q', '-p', 'libc:getpid', '--for', '0.3', '--pid')


# ---- a recorder that is not seen -----------------------------------------------------------------


@timeout(120)
def test_a_recorder_outside_of_the_pid_namespace_is_not_taken_for_gone(tmp):
    """A container is recorded from its host, and kymo runs in the container, too. The target is process 2 there."""
    need_root()
    code = 'import os, signal, time\nsignal.signal(signal.SIGUSR1, lambda *_: os.fork() or time.sleep(1000))\nwhile True:\n    os.getppid()\n'
    inside = start(
        program('unshare'), '-pf', '--mount-proc', '--kill-child', 'bash', '-c',
        '"$0" -c "$1" & echo ready; while read -r line; do eval "$line" > said 2>&1; echo "status $?" >> said; mv said answer; done',
        sys.executable, code)
    inside.wait_for('^ready$')

    def target():
        shells = processes.children(inside.pid)
        return next((pid for shell in shells for pid in processes.children(shell)), None)

    pid = eventually(target, 'it runs')
    recorder = start_record(pid, *GETPPID)

    def say(words):
        Path('answer').unlink(missing_ok=True)
        inside.send(f'{KYMO} {words}\n')
        return eventually(lambda: Path('answer').exists() and Path('answer').read_text(),
                          f'there is an answer to {words}')

    check_matches(say('status 2'), '^ +2  python.*; recorded since .* from another PID namespace$')
    check_equal(
        say('detach 2'),
        "kymo: process 2 is recorded from another PID namespace; end that recorder, or run 'kymo detach' there or on the host\n"
        'status 1\n', 'the answer to detach')
    check_matches(say('record -q -o inner -p libc:getpid --for 0.2 --pid 2'), '^status 0$', 'of another recording')
    check(processes.changed_text(pid), 'the probe is in')
    os.kill(pid, signal.SIGUSR1)
    child = eventually(lambda: next(iter(processes.children(pid)), None), 'it has a child, which is not recorded')
    number = re.search(r'^NSpid:.*\t(\d+)$', Path(f'/proc/{child}/status').read_text(), re.MULTILINE)[1]
    check_matches(say(f'detach {number}'), '^status 0$', 'of a detach from the child')
    check(not processes.changed_text(child), 'the probe is out of the child')
    result = recorder.end(signal.SIGINT).ok()
    check('another program' not in result.err and 'too long' not in result.err, 'no warning', result)
    check(not processes.changed_text(pid), 'the probe is out')


@timeout(120)
def test_a_recorder_of_another_user_below_is_not_taken_for_gone(tmp):
    """Root in a container records a process of another user, and that user asks on the host."""
    need_root()
    tmp.chmod(0o755)
    inside = start(
        program('unshare'), '-pf', '--mount-proc', '--kill-child', 'bash', '-c',
        '"$0" --reuid=65534 --regid=65534 --clear-groups sleep 1000 & sleep 0.3; "$1" record -q -p libc:nanosleep -p libc:clock_nanosleep -o it --pid $!',
        program('setpriv'), KYMO)

    def target():
        return next((pid for shell in processes.children(inside.pid)
                     for pid in processes.children(shell) if 'memfd:kymo' in Path(f'/proc/{pid}/maps').read_text() and
                     os.readlink(f'/proc/{pid}/exe').endswith('/sleep')), None)

    pid = eventually(target, 'it is recorded')
    eventually(lambda: Path('it/metadata').exists(), 'there are metadata')
    recorder, = processes.children(inside.pid)  # the shell has become it
    check_matches(kymo('status', pid, user=NOBODY).ok().out, rf'^ *{pid}  sleep: .* by process {recorder}$')
    kymo('detach', pid, user=NOBODY).refused(
        f'process {pid} is being recorded by kymo process {recorder}, which cannot be told to stop')
    check(processes.changed_text(pid), 'the probes are in')
    os.kill(recorder, signal.SIGINT)
    inside.end()


# ---- files that look like kymo's -----------------------------------------------------------------

# In a mount namespace of its own this process has a file /memfd:kymo. It has the inode of the recorder's memory, and
# the header of that in it.
LIAR = """
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None, use_errno=True)
wanted, limit = int(sys.argv[1]), int(sys.argv[2])
header = open(sys.argv[3], 'rb').read()
def do(result):
    if result:
        print('cannot', os.strerror(ctypes.get_errno()), flush=True)
        sys.exit(1)
os.mkdir('root')
do(libc.mount(b'none', b'root', b'tmpfs', 0, None))
os.chdir('root')
os.mkdir('old')
do(libc.syscall(155, b'.', b'old'))
os.chdir('/')
for i in range(limit):
    fd = os.open('/it', os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    inode = os.fstat(fd).st_ino
    if inode >= wanted:
        break
    os.close(fd)
    os.unlink('/it')
if inode != wanted:
    print('has', inode, flush=True)
    sys.exit(1)
os.rename('/it', '/memfd:kymo')
os.ftruncate(fd, 1 << 20)
libc.mmap.restype = ctypes.c_void_p
address = libc.mmap(None, 1 << 20, 3, 1, fd, 0)
ctypes.memmove(address, header, len(header))
ctypes.c_uint64.from_address(address + int(sys.argv[4])).value = address
ctypes.c_uint32.from_address(address + int(sys.argv[5])).value = os.getpid()
libc.mprotect(ctypes.c_void_p(address), 1 << 20, 1)
os.unlink('/memfd:kymo')
os.close(fd)
print('ready', flush=True)
sys.stdin.readline()
"""


def offset_of(field):
    """In struct kymo_wire_header, by the compiler."""
    run(
        'cc', '-I', f'{os.environ["KYMO_SOURCE"]}/src', '-xc', '-o', 'offset', '-', input=
        f'#include <stdio.h>\n#include "wire/shared.h"\nint main(void) {{ printf("%zu", offsetof(struct kymo_wire_header, {field})); }}\n'
    ).ok()
    return int(run('./offset').ok().out)


@timeout(120)
def test_a_file_that_looks_like_the_memory_of_a_recorder_ends_no_recorder(tmp):
    need_root()
    python = shutil.which('python3',
                          path='/usr/bin') or skip('there is no /usr/bin/python3, which another user may run')
    victim = start(sys.executable, '-c', 'import os\nwhile True:\n    os.getppid()\n')
    eventually(lambda: any('libc' in mapping.path for mapping in processes.maps(victim.pid)), 'it runs')
    recorder = start_record(victim.pid, *GETPPID)
    memory = next(mapping for mapping in processes.maps(victim.pid)
                  if mapping.path.startswith('/memfd:kymo ') and mapping.offset == 0 and 'x' not in mapping.permissions)
    if memory.inode > INODES:
        skip(f'no such file can be made soon: inode {memory.inode} is wanted')
    with open(f'/proc/{victim.pid}/mem', 'rb', buffering=0) as file:
        file.seek(memory.start)
        (tmp / 'header').write_bytes(file.read(4096))
    tmp.chmod(0o777)
    liar = start(program('unshare'), '-Urm', python, '-c', LIAR, memory.inode, INODES, tmp / 'header',
                 offset_of('address'), offset_of('target_pid'), user=NOBODY)
    eventually(lambda: not liar.is_alive() or 'ready' in liar.out, 'it has the file', 90)
    if not liar.is_alive():
        skip(f'no such file could be made: inode {memory.inode} is wanted; {liar.out}{liar.err}'.replace('\n', ' '))
    check_matches(
        Path(f'/proc/{liar.pid}/maps').read_text(), rf'{memory.inode} +/memfd:kymo',
        'the mappings of the other process')
    kymo('status', liar.pid).refused(f'process {liar.pid} has no kymo probes')
    kymo('detach', liar.pid).refused(f'process {liar.pid} has no kymo probes')
    check(recorder.is_alive(), 'the recorder records', recorder.result())
    recorder.end(signal.SIGINT).ok()


@timeout(120)
def test_a_child_that_calls_itself_recorded_does_not_end_the_recorder_of_its_parent(tmp):
    code = 'import os, sys, time\nsys.stdin.readline()\nif not os.fork():\n    time.sleep(100)\nwhile True:\n    os.getppid()\n'
    parent = start(sys.executable, '-c', code)
    eventually(lambda: any('libc' in mapping.path for mapping in processes.maps(parent.pid)), 'it runs')
    recorder = start(KYMO, 'record', *GETPPID, '--pid', parent.pid)
    recorder.wait_for('^kymo: recording process', which=1)
    parent.send('\n')
    child = eventually(lambda: next(iter(processes.children(parent.pid)), None), 'it has a child')
    remains.write_live_state(child, LIVE)
    kymo('detach', child).ok()
    check(recorder.is_alive(), 'the recorder records', recorder.result())
    recorder.end(signal.SIGINT).ok()
    os.kill(child, signal.SIGKILL)
