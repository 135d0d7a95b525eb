"""JIT code, in memory of no file: an address of one process."""
import base64
import os
import re
import signal
import time
from pathlib import Path

import comparing
import markers
import processes
import remains
from kymotest import (KYMO, at_end, check, check_equal, check_matches, check_same, event_counts, events, eventually,
                      kymo, record, record_some, report_json, run, start, start_record, target, target_path)

N = 1000
PUSH, MOV, ADD, POP = 0, 4, 9, 11  # of tests/targets/jitted.c's add()
CALL = 64  # its call_add(): endbr64, push, call
ADD_5 = '554889e5b80500000001f85dc3000000'
ADD_7 = '8d4707c3000000000000000000000000'


def jitted(*args):
    """The target and the address of its code. A perf map that it writes goes with the test."""
    process = target('jitted', *args)
    at_end(lambda: Path(f'/tmp/perf-{process.pid}.map').unlink(missing_ok=True))
    return process, int(process.wait_for(r'^code (0x[0-9a-f]+)$')[1], 16)


def tell(process, line, answer):
    """Have it obey; its answer, of which there must be none yet."""
    before = process.out.count(answer)
    process.send(line + '\n')
    deadline = time.monotonic() + 60
    while process.out.count(answer) == before or not process.out.endswith('\n'):
        check(process.is_alive() and time.monotonic() < deadline, f'{line}: no {answer}', process.out, process.err)
        time.sleep(0.005)
    return process.out.splitlines()[-1]


def call(process, n=N):
    return int(tell(process, f'call {n}', 'called').split()[1])


def memory(process):
    return tell(process, 'dump', 'dump').split()[1]


def end(process):
    process.end().ok()


def refused(process, address, pattern, *args, status=1):
    before = remains.mappings(process.pid)
    record('-p', f'{address:#x}', '--pid', process.pid, '--for', '0.1', *args).refused(pattern, status)
    check_same(remains.mappings(process.pid), before, 'mappings')


# ---- what is recorded ----------------------------------------------------------------------------


def test_each_pass_of_an_instruction_is_recorded_with_its_registers():
    process, code = jitted()
    recorder = start_record(process.pid, '-p', f'p:entered {code:#x} n=%edi:s32', '-p', f'{code + MOV:#x} n=%di')
    check_equal(call(process), N)
    recorder.end(signal.SIGTERM).ok()
    check_equal(event_counts(), {'entered': N, f'{code + MOV:#x}': N})
    check_equal([event['n'] for event in events() if event.name == 'entered'], [*range(N)], 'arguments')
    check_equal(memory(process), ADD_5, 'the code afterwards')
    check_equal(call(process), N)
    end(process)


def test_the_perf_map_of_the_process_names_the_place():
    process, code = jitted('-m')
    recorder = start_record(process.pid, '-p', f'{code:#x}', '-p', f'{code + MOV:#x}')
    call(process)
    recorder.end(signal.SIGTERM).ok()
    probes = {probe['name']: probe for probe in report_json()['probes']}
    check_equal(sorted(probes), ['made add', 'made add+0x4'])
    check_equal([probes[name]['count'] for name in sorted(probes)], [N, N])
    check_equal(probes['made add']['path'], '[anonymous]')
    check_matches(kymo('report').ok().out, rf'made add\+0x4 \[anonymous\]\+{code + MOV:#x}')
    end(process)


def test_names_out_of_a_perf_map_do_no_harm():
    process, code = jitted('-m')
    path = Path(f'/tmp/perf-{process.pid}.map')
    path.write_bytes(b'%x d \x1b[31mred\xff" }; event { \\n%s\n' % (code, b'x' * 100000))
    recorder = start_record(process.pid, '-p', f'{code:#x}')
    call(process)
    recorder.end(signal.SIGTERM).ok()
    probe, = report_json()['probes']
    check_equal(probe['count'], N)
    check(probe['name'].startswith('?[31mred?" }; event { \\n') and len(probe['name']) < 200, probe['name'])
    check('\x1b' not in kymo('report').ok().out, 'no escape reaches the terminal')
    end(process)


def test_a_perf_map_that_is_a_link_or_of_somebody_else_is_not_read(tmp):
    process, code = jitted('-m')
    path = Path(f'/tmp/perf-{process.pid}.map')
    (tmp / 'other').write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(tmp / 'other')
    check_matches(kymo('explain', process.pid, f'{code:#x}').ok().out, rf'\A{code:#x}$')
    if os.geteuid() == 0:
        path.unlink()
        path.write_bytes((tmp / 'other').read_bytes())
        os.chown(path, 65534, 65534)
        check_matches(kymo('explain', process.pid, f'{code:#x}').ok().out, rf'\A{code:#x}$')
    end(process)


def test_threads_that_run_there_meanwhile_are_not_disturbed():
    process, code = jitted('-t', '4')
    tell(process, 'loop', 'looping')
    for tactic in (PUSH, MOV):
        for i in range(2):
            record_some(f'data{tactic}.{i}', process.pid, '-q', '-p', f'{code + tactic:#x} n=%edi:s32', n=1)
    tell(process, 'halt', 'halted')
    check_equal(memory(process), ADD_5, 'the code afterwards')
    end(process)


NAMELESS = r'''
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* It has its only thread forget its id, and spends its time in code that it has made: mov $1000000, %ecx; 1: mov $5, %eax; dec %ecx; jne 1b; ret. */
int main(void)
{
	static const unsigned char spin[] = { 0xb9, 0x40, 0x42, 0x0f, 0, 0xb8, 5, 0, 0, 0, 0xff, 0xc9, 0x75, 0xf7, 0xc3 };
	void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct pollfd in = { .events = POLLIN };
	int *block = (int *)pthread_self();

	for (int i = 0; i < 512; i++)
		block[i] = block[i] == getpid() ? 0 : block[i];
	memcpy(code, spin, sizeof(spin));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	printf("code %p\n", code);
	fflush(stdout);
	while (!poll(&in, 1, 0))
		((int (*)(void))code)();
	return 0;
}
'''


def test_a_thread_without_an_id_may_stand_there(tmp):
    """Its id is looked for, and whose code it stands in tells where."""
    (tmp / 'nameless.c').write_text(NAMELESS)
    run('gcc', '-O1', '-o', 'nameless', 'nameless.c').ok()
    process = start('./nameless')
    code = int(process.wait_for('^code (0x[0-9a-f]+)$')[1], 16)
    result = record_some('kymo.data', process.pid, '-p', f'{code + 5:#x}', n=1)
    check('all records carry the process id' in result.err, 'warning', result)
    process.end().ok()


def test_two_recordings_of_one_place_have_their_own_events():
    process, code = jitted()
    for address in (code + PUSH, code + MOV):
        first = start_record(process.pid, '-p', f'{address:#x} n=%di', '-o', 'first')
        second = start(KYMO, 'record', '-p', f'{address:#x}', '-o', 'second', '--pid', process.pid)
        second.wait_for('^kymo: recording process', 1)
        call(process)
        first.end(signal.SIGTERM).ok()
        call(process)
        second.end(signal.SIGTERM).ok()
        check_equal(event_counts('first'), {f'{address:#x}': N})
        check_equal(event_counts('second'), {f'{address:#x}': 2 * N})
        check_equal(memory(process), ADD_5, 'the code afterwards')
    end(process)


def test_a_forked_child_runs_on_and_is_recorded_when_followed():
    process, code = jitted()
    recorder = start_record(process.pid, '-p', f'{code + MOV:#x}')
    check_equal(tell(process, f'fork {N}', 'forked'), 'forked 0')
    recorder.end(signal.SIGTERM).ok()
    check_equal(sum(event_counts().values()), 0)
    recorder = start(KYMO, 'record', '--follow', '-p', f'{code + MOV:#x}', '--pid', process.pid)
    recorder.wait_for('^kymo: recording process', 1)
    check_equal(tell(process, f'fork {N}', 'forked'), 'forked 0')
    recorder.end(signal.SIGTERM).ok()
    check_equal(event_counts(), {f'{code + MOV:#x}': N})
    end(process)


EXECS = r'''
import ctypes, mmap, os, sys
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
at = libc.mmap(None, 4096, 3, 0x22, -1, 0)
ctypes.memmove(at, bytes.fromhex("b80500000001f8c3"), 8)
libc.mprotect(ctypes.c_void_p(at), 4096, 5)
print("code", hex(at), flush=True)
f = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(at)
sys.stdin.readline()
for i in range(100): assert f(i) == i + 5
os.execv(sys.argv[1], sys.argv[1:])
'''


def test_an_exec_ends_it():
    process = start('/usr/bin/python3', '-c', EXECS, target_path('callmany'), '10')
    code = int(process.wait_for(r'^code (0x\w+)$')[1], 16)
    recorder = start(KYMO, 'record', '--follow', '-p', f'{code:#x} n=%edi:s32', '-p', 'callmany:work_a', '--pid',
                     process.pid)
    recorder.wait_for('^kymo: recording process', 1)
    process.end(input='\n').ok()
    recorder.end().ok()
    check_equal(event_counts(), {f'{code:#x}': 100, 'callmany:work_a': 10})


# ---- what happens to the code meanwhile ----------------------------------------------------------


def test_code_that_the_program_has_put_in_its_place_stays():
    for word, answer in ('rewrite', 'rewritten'), ('renew', 'renewed'):
        process, code = jitted()
        recorder = start_record(process.pid, '-p', f'{code:#x}')
        call(process)
        tell(process, word, answer)
        call(process)
        result = recorder.end(signal.SIGTERM).ok()
        check_matches(result.err, 'kymo: warning: 1 probed location in code that the program has made is gone')
        check_equal(event_counts(), {f'{code:#x}': N}, word)
        check_equal(memory(process), ADD_7, word)
        call(process)
        check(not remains.are_there(process.pid), 'nothing of kymo is left')
        end(process)


def test_code_that_is_unmapped_is_gone():
    process, code = jitted()
    recorder = start_record(process.pid, '-p', f'{code + MOV:#x}')
    call(process)
    tell(process, 'unmap', 'unmapped')
    result = recorder.end(signal.SIGTERM).ok()
    check_matches(result.err, 'kymo: warning: 1 probed location in code that the program has made is gone')
    check_equal(event_counts(), {f'{code + MOV:#x}': N})
    check(not remains.are_there(process.pid), 'nothing of kymo is left')
    end(process)


def test_code_that_is_changed_in_part_is_left_as_it_is_with_an_error():
    process, code = jitted()
    recorder = start_record(process.pid, '-p', f'{code + MOV:#x}')
    call(process)
    tell(process, 'touch', 'touched')
    changed = memory(process)
    recorder.end(signal.SIGTERM).refused(
        rf'1 location in the code of process {process.pid} \({code + MOV:#x}\) holds bytes that neither kymo nor')
    check_equal(memory(process), changed)
    check_equal(event_counts(), {f'{code + MOV:#x}': N})
    end(process)


def test_a_program_that_is_about_to_write_there_is_waited_for():
    process, code = jitted()
    recorder = start_record(process.pid, '-p', f'{code:#x}')
    tell(process, 'open', 'opened')
    recorder.signal(signal.SIGTERM)
    time.sleep(0.1)
    tell(process, 'shut', 'shut')
    recorder.end().ok()
    check_equal(memory(process), ADD_5)
    end(process)


def test_probes_go_out_of_memory_that_stays_writable_too():
    process, code = jitted()
    recorder = start_record(process.pid, '-p', f'{code:#x}', '-p', f'{code + MOV:#x}')
    tell(process, 'data', 'data')
    recorder.end(signal.SIGTERM).ok()
    check_equal(memory(process), ADD_5)
    end(process)


def test_detach_takes_out_what_a_killed_recorder_left():
    process, code = jitted('-m')
    before = remains.lasting_mappings(process.pid)
    recorder = start_record(process.pid, '-p', f'{code:#x}', '-p', f'{code + MOV:#x}')
    call(process)
    recorder.signal(signal.SIGKILL)
    recorder.end()
    check_matches(kymo('status', process.pid).ok().out, r'made add\+0x4')
    call(process)
    kymo('detach', process.pid).ok()
    check_equal(memory(process), ADD_5)
    call(process)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    end(process)


def test_detach_leaves_code_that_came_after_a_killed_recorder():
    process, code = jitted()
    recorder = start_record(process.pid, '-p', f'{code:#x}')
    recorder.signal(signal.SIGKILL)
    recorder.end()
    tell(process, 'renew', 'renewed')
    check_matches(
        kymo('detach', process.pid).ok().err, 'warning: 1 probed location in code that the program has made is gone')
    check_equal(memory(process), ADD_7)
    call(process)
    check(not remains.are_there(process.pid), 'nothing of kymo is left')
    end(process)


# ---- what is refused -----------------------------------------------------------------------------


def test_what_can_not_be_changed_safely_is_refused():
    process, code = jitted('-m')
    refused(process, code + ADD, r'a jump would rely on 0x\w+, after the end of the flow')
    refused(process, code + CALL + 5, 'is of a kind that programs change in code that they have made')
    refused(process, code + CALL, rf'the endbr64 at {code + CALL:#x} has to stay.* write {code + CALL + 4:#x}')
    refused(process, code + MOV + 1,
            rf'no instruction begins at {code + MOV + 1:#x}.* {code + MOV:#x} and {code + ADD:#x}')
    check_equal(memory(process), ADD_5)
    check_equal(call(process), N)
    end(process)


def test_memory_that_is_no_private_code_is_refused():
    process, code = jitted()
    maps = processes.maps(process.pid)
    refused(process, 0x1000, 'has nothing mapped at 0x1000')
    stack = next(mapping for mapping in maps if mapping.path == '[stack]')
    refused(process, stack.start, 'is not executable: no code runs there now')
    vdso = next(mapping for mapping in maps if mapping.path == '[vdso]')
    refused(process, vdso.start, r'is \[vdso\], which is the kernel')
    text = next(mapping for mapping in maps if 'x' in mapping.permissions and mapping.path == target_path('jitted'))
    refused(process, text.start + 16, rf'is in a file; write {target_path("jitted")}:0x[0-9a-f]+', status=2)
    tell(process, 'open', 'opened')
    refused(process, code, 'is writable and executable at once')
    end(process)


SHARED = r'''
import mmap, os, sys
fd = os.memfd_create("double")
os.ftruncate(fd, 4096)
writable = mmap.mmap(fd, 4096)
kept = [mmap.mmap(fd, 4096, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_EXEC), mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC),
        mmap.mmap(-1, 4096, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_EXEC)]
print("ready", flush=True)
sys.stdin.readline()
'''


def test_memory_that_is_mapped_twice_is_refused():
    process = start('/usr/bin/python3', '-c', SHARED)
    process.wait_for('^ready$')
    found = [
        mapping for mapping in processes.maps(process.pid)
        if 'x' in mapping.permissions and mapping.path.startswith(('/memfd:double', '/dev/zero'))
    ]
    check_equal(len(found), 3, 'mappings')
    for mapping in found:
        refused(process, mapping.start,
                r'is memory of /.*it may be mapped elsewhere too, and be written to there at any time')
    process.end(input='\n').ok()


def test_an_address_is_of_one_process_that_runs():
    process, code = jitted()
    address = f'{code:#x}'
    kymo('record', '-p', address, '--', 'true').refused(
        "an address is of a process that runs, and 'true' has no code there yet", 2)
    kymo('record', '-p', address, '--all', '--for', '0.1').refused('an address is of one process.* leave --all out', 2)
    kymo('record', '-p', address, '--backend', 'kernel', '--pid', process.pid, '--for', '0.1').refused(
        'leave --backend kernel out', 2)
    kymo('record', '-r', address, '--pid', process.pid).refused('a return probe is for a whole function', 2)
    check(not Path('kymo.data').exists(), 'nothing was recorded')
    end(process)


def test_explain_tells_what_is_proven_and_what_is_believed():
    process, code = jitted('-m')
    said = kymo('explain', process.pid, f'{code + MOV:#x}').ok().out
    for pattern in (r'\Amade add\+0x4$',
                    rf'site +{code + MOV:#x}, in memory of no file; its function begins at {code:#x}$',
                    'tactic +jump: 1 instruction, 5 bytes',
                    rf'believed +an instruction begins there: all from {code:#x} on decodes'):
        check_matches(said, pattern)
    check_matches(kymo('explain', process.pid, f'{code:#x}').ok().out, 'tactic +pun: 1 instruction, 1 byte')
    result = kymo('explain', process.pid, f'{code + POP:#x}').ended(1)
    check_matches(result.out, 'tactic +none: a probe here is refused')
    check_matches(result.out, 'pun: a jump would rely on')
    end(process)


# ---- programs that do this for a living ----------------------------------------------------------

NODE = '''
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
for (let i = 0; i < 200; i++) fib(18);
console.log('ready');
require('readline').createInterface({input: process.stdin}).on('line', line => console.log('fib', fib(+line)));
'''


def optimized(pid, name):
    """Where the perf map has it last: start and name."""
    found = re.findall(rf'^([0-9a-f]+) [0-9a-f]+ (\S*\*{name} .*)$',
                       Path(f'/tmp/perf-{pid}.map').read_text(), re.MULTILINE)
    return (int(found[-1][0], 16), found[-1][1]) if found else None


def permissions_at(pid, address):
    return next(mapping.permissions for mapping in processes.maps(pid) if mapping.start <= address < mapping.end)


def begins_with_a_load(pid, address):
    """Of a field of an object: mov OFFSET(REGISTER), REGISTER."""
    return markers.read(
        pid, address, 3) in [bytes([0x48, 0x8b, 0x40 | to << 3 | by]) for to in range(8) for by in range(8) if by != 4]


def test_node_is_recorded_or_refused_and_runs_on(tmp):
    """V8's code is writable and executable at once on some machines, and not on others; that of some versions begins
    with what may fault."""
    (tmp / 'fib.js').write_text(NODE)
    process = start(comparing.installed('node'), '--perf-basic-prof', tmp / 'fib.js')
    at_end(lambda: Path(f'/tmp/perf-{process.pid}.map').unlink(missing_ok=True))
    process.wait_for('^ready$', seconds=120)

    def is_optimized():
        tell(process, '18', 'fib')  # code that another thread has compiled is taken when something runs
        return optimized(process.pid, 'fib')

    start_of_fib, name = eventually(is_optimized, 'fib is optimized', 60)
    for _ in range(3):
        if 'w' in permissions_at(process.pid, start_of_fib):
            record('-p', f'{start_of_fib:#x}', '--pid', process.pid, '--for',
                   '0.1').refused('is writable and executable at once')
        elif begins_with_a_load(process.pid, start_of_fib):
            record('-p', f'{start_of_fib:#x}', '--pid', process.pid, '--for', '0.1').refused('may fault')
        else:
            recorder = start_record(process.pid, '-p', f'{start_of_fib:#x}')
            check_equal(tell(process, '15', 'fib'), 'fib 610')
            recorder.end(signal.SIGTERM).ok()
            probe, = report_json()['probes']
            check_equal(probe['name'], name[:199])
        check_equal(tell(process, '15', 'fib'), 'fib 610')
    process.end().ok()


LUA = '''
local function turns(n, s) for i = 1, n do s = bit.bxor(s + i, i) end return s end
turns(1000, 0)
print('ready'); io.stdout:flush()
for line in io.lines() do print('turns ' .. turns(tonumber(line), 1)); io.stdout:flush() end
'''


def test_the_loop_of_a_luajit_program_is_counted(tmp):
    """Its code is made executable when it is complete. The dump that LuaJIT makes of it tells where the loop's
    instructions are."""
    (tmp / 'turns.lua').write_text(LUA)
    process = start(comparing.installed('luajit'), '-jdump=+m,dump', tmp / 'turns.lua')
    process.wait_for('^ready$', seconds=120)
    before = remains.mappings(process.pid)
    expected = tell(process, str(N), 'turns')
    loop = eventually(
        lambda: re.search(r'^->LOOP:\n(.*?)^[0-9a-f]+ +j\w+ ', (tmp / 'dump').read_text(), re.MULTILINE | re.DOTALL),
        'the loop in the dump')[1]
    counts = {}
    for address, instruction in re.findall(r'^([0-9a-f]+) +(.*)', loop, re.MULTILINE):
        recorder = start(KYMO, 'record', '-p', f'p:turn 0x{address}', '--pid', process.pid)
        if eventually(lambda: re.search('^kymo: (recording|no probe can be put)', recorder.err, re.MULTILINE),
                      'an answer')[1] == 'no probe can be put':
            recorder.end().refused('no probe can be put')
            continue
        check_equal(tell(process, str(N), 'turns'), expected,
                    f'what the program computes with a probe at {instruction}')
        recorder.end(signal.SIGTERM).ok()
        counts[instruction] = report_json()['probes'][0]['count']
    check(counts, 'some instruction of the loop is recorded', loop)
    check_equal(set(counts.values()), {N - 1}, 'turns: the first is made before the loop')  # LuaJIT peels it off
    check_same(remains.mappings(process.pid), before, 'mappings afterwards')
    process.end().ok()


def test_the_code_of_a_jvm_is_refused(tmp):
    """It is writable and executable at once, and patched in place."""
    (tmp / 'Loop.class').write_bytes(base64.b64decode((Path(__file__).parent / 'Loop.class.base64').read_text()))
    process = start(comparing.installed('java'), '-Xmx64m', '-cp', tmp, 'Loop')
    process.wait_for('^ready$', seconds=120)
    made = next(
        mapping for mapping in processes.maps(process.pid) if mapping.path == '' and mapping.permissions == 'rwxp')
    record('-p', f'{made.start + 64:#x}', '--pid', process.pid, '--for',
           '0.1').refused('is writable and executable at once')
    process.end().ok()
