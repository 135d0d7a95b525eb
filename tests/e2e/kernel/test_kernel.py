"""kymo record --backend kernel and --all: the same events with the same arguments, from the kernel's own uprobes.

Probes on files that other processes map too (libc) are bound to one process here; those without a bound are on
tests/targets, so that tests may run beside each other.
"""
import collections
import os
import re
import shutil
import signal
import time
from pathlib import Path

import kernelcount
import processes
import remains
from confined import CONFINED
from kymotest import (KYMO, NOBODY, babeltrace, check, check_equal, check_matches, check_same, check_text_intact,
                      event_counts, events, eventually, need_uprobes, program, record, report_json, run, start, target,
                      target_path)
from recorders import announcing, kill_between_writes

M64 = (1 << 64) - 1


def own_path(name):
    """A copy of the target: breakpoints of the kernel come into every process that maps the file, and other tests run
    the target, too."""
    return os.path.abspath(shutil.copy(target_path(name), name))


def by_kernel(*args, **options):
    need_uprobes()
    return record('--backend', 'kernel', *args, **options)


def start_by_kernel(*args, **options):
    """A recorder that runs, once its probes are in."""
    need_uprobes()
    recorder = start(KYMO, 'record', '--backend', 'kernel', *args, **options)
    recorder.wait_for(r'^kymo: recording ', 1)
    return recorder


def fields(name):
    """What the events of that name have recorded, in the order of time, without thread ids."""
    return [{key: value for key, value in event.fields.items() if key not in ('tid', 'cpu_id')} for event in events()
            if event.name == name]


def kinds(result):
    """forker's numbers of calls."""
    return result.json()


# ---- the same as in the process --------------------------------------------------------------------------------------


def compare_backends(specs, *command):
    """The events of both backends are the same but for time, CPU, thread, and where the stack is."""
    words = [word for spec in specs for word in spec]
    found = []
    for backend in ('inproc', 'kernel'):
        need_uprobes()
        record('--backend', backend, *words, '--', *command).ok()
        found.append(
            [(event.name, {key: value for key, value in event.fields.items() if key not in ('tid', 'cpu_id', 'sp')})
             for event in events()])
    check_same([str(item) for item in found[1]], [str(item) for item in found[0]], 'events')
    check(found[0], 'there are events')


def test_arguments_are_those_that_the_process_itself_records():
    path = own_path('callmany')
    compare_backends(
        [('-p', 'callmany:work_eight $arg1:s32 $arg2:s64 $arg3:s32 $arg4 $arg5:u8 $arg6:u16 $arg7:s32 $arg8:s64'),
         ('-p', r'p:more callmany:work_eight s1=$stack1:s32 s2=$stack2 low=%dil number=\42:u16')], path, 300,
        'work_eight')


def test_every_type_of_a_register_is_cut_as_in_the_process():
    kinds_of_type = [f'{kind}{bits}' for kind in 'usx' for bits in (8, 16, 32, 64)]
    compare_backends([('-p', f'p:{group} callmany:work_six ' + ' '.join(f'{name}=%si:{name}' for name in names))
                      for group, names in (('first', kinds_of_type[:6]), ('second', kinds_of_type[6:]))],
                     own_path('callmany'), 200, 'work_six')


def test_returns_and_what_they_return_are_those_of_the_process():
    compare_backends([('-r', 'callmany:work_redzone ret=$retval:s64'), ('-p', 'callmany:work_redzone x=%di:s64')],
                     own_path('callmany'), 100, 'work_redzone')
    check_equal([int(event['ret']) for event in fields('callmany:work_redzone%return')],
                [3 * i + 10 for i in range(100)], 'values')


def test_each_instruction_of_a_function_is_recorded_as_in_the_process():
    compare_backends([('-p', 'callmany:work_six:* ax=%ax cx=%cx ip=%ip:x8')], own_path('callmany'), 20, 'work_six')


def test_a_function_whose_exits_can_not_be_told_is_recorded_where_it_comes_back():
    need_uprobes()
    Path('jumper.c').write_text('''
#include <stdio.h>
__attribute__((noinline)) long jumper(long n)
{
	void *to = n & 1 ? &&odd : &&even;

	__asm__ volatile("" : "+r"(to));
	goto *to;
even:
	return n + 1;
odd:
	return n + 2;
}
int main(void)
{
	long sum = 0;

	for (long i = 0; i < 20; i++)
		sum += jumper(i);
	printf("%ld\\n", sum);
}
''')
    run('gcc', '-O1', '-o', 'jumper', 'jumper.c').ok()
    result = by_kernel('-r', './jumper:jumper ret=$retval:s64 to=$stack0', '--', './jumper').ok()
    check_equal(result.out, '220\n', 'output')
    check(
        re.search(r'kymo cannot tell every location where jumper returns .* an exception .* ends the program',
                  result.err), 'it warns', result)
    check_equal([int(event['ret']) for event in fields('jumper:jumper%return')], [i + 1 + i % 2 for i in range(20)],
                'values')
    check_equal(len({event['to'] for event in fields('jumper:jumper%return')}), 1, 'addresses that it returns to')


def test_counts_are_those_of_an_independent_counter():
    need_uprobes()
    command = ('bash', '--norc', '-c', 'for i in 1 2 3 4 5; do x=$(echo $i); y=${x}a; done')
    libc = kernelcount.library('libc.so.6', program('bash'))
    _, expected = kernelcount.count_command(command, {name: (libc, name) for name in ('malloc', 'free', 'getenv')})
    by_kernel('--no-follow', '-p', 'libc:malloc', '-p', 'libc:free', '-p', 'libc:getenv', '--', *command).ok()
    counts = event_counts()
    check_equal({name: counts[f'libc:{name}'] for name in expected}, expected, 'counts')


def test_names_of_threads_and_processes_are_in_the_report():
    by_kernel('-p', 'callmany:work_a', '--', own_path('callmany'), 10).ok()
    metadata = Path('kymo.data/metadata').read_text()
    check(re.search(r'^\tthread_\d+_?\d* = "callmany";$', metadata, re.MULTILINE), 'the thread has a name', metadata)
    check(re.search(r'^\tprocess_\d+_\S+ = "\S+/callmany 10";$', metadata, re.MULTILINE), 'the process has a command',
          metadata)


# ---- processes -------------------------------------------------------------------------------------------------------


def test_a_running_process_is_recorded_with_all_its_threads():
    need_uprobes()
    process = target('threads1000', '-t', 40, '-w', 8)
    recorder = start_by_kernel('-p', 'threads1000:work_a', '--pid', process.pid)
    check_equal(processes.tracer(process.pid), 0, 'tracer')
    eventually(
        lambda: Path('kymo.data').exists() and sum(path.stat().st_size
                                                   for path in Path('kymo.data').glob('kernel_*')) > 10000,
        'records come')
    check(recorder.end(signal.SIGTERM).status in (0, 128 + signal.SIGTERM), 'it ends')
    seen = {event['tid'] for event in events()}
    check(seen <= set(processes.threads(process.pid)), 'records carry ids of its threads')
    check(len(seen) > 1, 'several of its threads are recorded')
    check_text_intact(process.pid)
    process.end(signal.SIGTERM).ok()


def test_a_process_whose_first_thread_has_ended_is_recorded():
    need_uprobes()
    Path('orphans.c').write_text('''
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) int work(int n) { __asm__ volatile("" : "+r"(n)); return n; }
static void *thread(void *arg)
{
	char c;
	sleep(0);
	puts("ready");
	fflush(stdout);
	if (read(0, &c, 1) == 1)
		for (int i = 0; i < 40; i++)
			work(i);
	puts("done");
	exit(0);
}
int main(void)
{
	pthread_t id;
	pthread_create(&id, NULL, thread, NULL);
	pthread_exit(NULL);
}
''')
    run('gcc', '-O1', '-o', 'orphans', 'orphans.c', '-lpthread').ok()
    process = start('./orphans')
    process.wait_for('^ready$')
    eventually(lambda: processes.status(process.pid)['State'].startswith('Z'), 'the first thread has ended')
    recorder = start_by_kernel('-p', './orphans:work n=%di:s32', '--pid', process.pid)
    process.send('go\n')
    process.wait_for('^done$')
    recorder.end(signal.SIGTERM)
    check_equal([int(event['n']) for event in fields('orphans:work')], list(range(40)), 'arguments')


def test_children_of_a_command_are_recorded_whatever_made_them():
    """vfork children run in their parent's memory, and have records of their own all the same."""
    numbers = kinds(by_kernel('-p', 'forker:work_a', '--', own_path('forker'), 50).ok())
    check_equal(event_counts()['forker:work_a'], sum(numbers.values()), f'calls in all processes, {numbers}')
    by_process = collections.Counter(event['tid'] for event in events())
    check(len(by_process) >= 6, 'each process has an id of its own', by_process)


def test_without_following_the_first_process_alone_is_recorded():
    numbers = kinds(by_kernel('--no-follow', '-p', 'forker:work_a', '--', target_path('forker'), 50).ok())
    check_equal(event_counts()['forker:work_a'], numbers['parent'], f'calls in the first process, {numbers}')


def test_what_a_process_becomes_by_exec_is_recorded_too():
    numbers = kinds(by_kernel('--no-follow', '-p', 'forker:work_a', '--', target_path('forker'), '-e', 50).ok())
    check_equal(event_counts()['forker:work_a'], numbers['parent'] + 50, f'calls in the first process, {numbers}')


def test_the_recording_goes_on_for_what_the_command_leaves_behind():
    path = own_path('callmany')
    by_kernel('-p', f'{path}:work_a', '--', 'sh', '-c', f'{{ sleep 0.5; {path} 30; }} & {path} 12').ok()
    check_equal(event_counts()['callmany:work_a'], 42, 'calls')


def test_every_process_is_recorded_and_those_that_start_later():
    need_uprobes()
    path = own_path('callmany')
    early = start(path, '-w', 70)
    early.wait_for('^ready$')
    recorder = start_by_kernel('--all', '-p', f'{path}:work_a n=%di:s32')
    early.send('go\n')
    early.wait_for('^work_a 70$')
    late = run(path, 30).ok()
    recorder.end(signal.SIGTERM)
    found = collections.Counter(event['tid'] for event in events())
    check_equal(found.pop(early.pid, 0), 70, 'calls of the process that ran already')
    check_equal(list(found.values()), [30], f'calls of the one that began later, {late}')
    eventually(lambda: not processes.changed_text(early.pid), 'the kernel has taken its breakpoints out')
    early.end(input='\n').ok()


def test_a_library_that_is_opened_later_is_recorded():
    need_uprobes()
    library = str(Path(target_path('ctor')).parent / 'libctor.so')
    result = by_kernel('--no-follow', '-p', f'{library}:ctor_work', '--', target_path('dlopener'), library, 4).ok()
    check(re.search('has not mapped .*libctor.so; it is recorded from when it does', result.err), 'it says so', result)
    check_equal(event_counts()['libctor.so:ctor_work'], result.json()['ctor_work'], 'calls')


def test_constructors_of_a_library_are_recorded():
    result = by_kernel('--no-follow', '-p', 'libctor:ctor_work', '--', target_path('ctor'))
    check_equal(event_counts()['libctor:ctor_work'], result.ok().json()['ctor_work'], 'calls')


def test_a_filtered_process_is_recorded_and_not_killed():
    """Its filter kills for every call that a Python program that reads a line does not make."""
    need_uprobes()
    process = start('/usr/bin/python3', '-c', CONFINED)
    process.wait_for('^ready$')
    check_equal(processes.status(process.pid)['Seccomp'], '2', 'Seccomp')
    recorder = start_by_kernel('-p', 'libc:labs n=%di:s64', '-r', 'libc:labs ret=$retval:s64', '--pid', process.pid)
    process.send('go\n')
    process.wait_for('^done$')
    recorder.end(signal.SIGTERM)
    process.end(input='\n').ok()
    check_equal([int(event['n']) for event in fields('libc:labs')], [-i for i in range(25)], 'arguments')
    check_equal([int(event['ret']) for event in fields('libc:labs%return')], list(range(25)), 'return values')


def test_a_recording_that_says_so_has_begun():
    """Its user may go on before the recorder gets the CPU again."""
    need_uprobes()
    process = start(own_path('callmany'), '-w', 200)
    process.wait_for('^ready$')
    words = ('--backend', 'kernel', '-p', 'callmany:work_a', '-s', 'write', '--pid', process.pid)
    with announcing(*words) as (recorder, read_on):
        process.send('go\n')
        process.wait_for('^work_a 200$')
        read_on()
        recorder.end(signal.SIGTERM)
    check_equal(event_counts()['callmany:work_a'], 200, 'calls')
    process.end(input='\n').ok()


def test_exceptions_pass_through_functions_whose_return_is_recorded():
    need_uprobes()
    Path('thrower.cc').write_text('''
#include <cstdio>
extern "C" __attribute__((noinline)) int leaf(int i) { if (i % 2) throw i; return i; }
extern "C" __attribute__((noinline)) int middle(int i) { return leaf(i) + 1; }
int main()
{
	int n = 0;
	for (int i = 0; i < 10; i++)
		try { n += middle(i); } catch (int x) { n -= x; }
	printf("%d\\n", n);
}
''')
    run(program('g++'), '-O1', '-o', 'thrower', 'thrower.cc').ok()
    result = by_kernel('-r', './thrower:middle ret=$retval:s32', '-r', './thrower:leaf ret=$retval:s32', '--',
                       './thrower').ok()
    check_equal(result.out, '0\n', 'output')
    check_equal([int(event['ret']) for event in fields('thrower:middle%return')], [1, 3, 5, 7, 9],
                'values of returns that happened')


# ---- losses, order, the flight recorder ------------------------------------------------------------------------------


def test_losses_are_counted_exactly():
    """Nothing reads while the recorder is stopped."""
    need_uprobes()
    process = start(target_path('callmany'), '-w', 30000)
    process.wait_for('^ready$')
    recorder = start_by_kernel('--buffer', '64K', '-p', 'callmany:work_a n=%di:s32', '--pid', process.pid)
    recorder.signal(signal.SIGSTOP)
    process.send('go\n')
    process.wait_for('^work_a 30000$')
    recorder.signal(signal.SIGCONT)
    recorder.end(signal.SIGTERM)
    report = report_json()
    check(report['lost_events'] > 0, 'there are losses')
    check_equal(report['events'] + report['lost_events'], 30000, 'records and losses')
    check(report['losses'], 'losses have a place in time')
    process.end(input='\n').ok()


def test_records_of_a_thread_keep_their_order():
    by_kernel('--no-follow', '-p', 'callmany:work_six n=%di:s64', '--', target_path('callmany'), 20000, 'work_six').ok()
    check_equal([int(event['n']) for event in fields('callmany:work_six')], list(range(20000)), 'arguments')


def test_the_flight_recorder_keeps_the_newest():
    result = by_kernel('--no-follow', '--overwrite', '--buffer', '64K', '-p', 'callmany:work_six n=%di:s64', '--',
                       own_path('callmany'), 20000, 'work_six').ok()
    numbers = [
        int(re.search(r'n = (-?\d+)', line)[1]) for line in run(program('babeltrace2'), 'kymo.data').out.splitlines()
    ]
    check(0 < len(numbers) < 20000, 'old records are gone', result)
    check_equal(numbers[-1], 19999, 'the newest record')
    check(report_json()['overwritten_packets'] > 0, 'and that is told')


# ---- other tools, other recordings -----------------------------------------------------------------------------------


def test_a_place_that_a_recording_in_the_process_has_is_refused():
    """A breakpoint on top of a jump, or in the midst of one, would break the program."""
    need_uprobes()
    process = start(target_path('callmany'), '-w', 200, 'work_six')
    process.wait_for('^ready$')
    inside = start(KYMO, 'record', '--backend', 'inproc', '-o', 'inside', '-p', 'callmany:work_six n=%di:s64', '--pid',
                   process.pid)
    inside.wait_for(r'^kymo: recording ', 1)
    for place in ('work_six', 'work_six+4'):
        result = by_kernel('-p', f'callmany:{place}', '--pid', process.pid, '--for', '0.1')
        result.refused(r'no probe can be put at work_six.*(has other code at it|inside of an instruction)')
    by_kernel('-p', 'callmany:work_*', '--pid', process.pid, '--for', '0.1').ok()
    beside = start_by_kernel('-o', 'beside', '-p', 'callmany:work_redzone', '--pid', process.pid)
    process.send('go\n')
    process.wait_for('^work_six 200$')
    beside.end(signal.SIGTERM)
    inside.end(signal.SIGTERM)
    check_equal(event_counts('inside')['callmany:work_six'], 200, 'the first recording misses nothing')
    check_text_intact(process.pid)
    process.end(input='\n').ok()


def test_a_recording_in_a_process_with_uprobes_does_no_harm():
    need_uprobes()
    process = start(target_path('callmany'), '-w', 200, 'work_six')
    process.wait_for('^ready$')
    kernel = start_by_kernel('-p', 'callmany:work_six n=%di:s64', '--pid', process.pid)
    record('--backend', 'inproc', '-o', 'inside', '-p', 'callmany:work_six', '--pid', process.pid, '--for',
           '0.1').refused('work_six')
    process.send('go\n')
    process.wait_for('^work_six 200$')
    kernel.end(signal.SIGTERM)
    check_equal(event_counts()['callmany:work_six'], 200, 'calls')
    check_text_intact(process.pid)
    process.end(input='\n').ok()


def test_two_recordings_of_one_place_see_all_calls():
    need_uprobes()
    process = start(target_path('callmany'), '-w', 200, 'work_six')
    process.wait_for('^ready$')
    recorders = [
        start_by_kernel('-o', name, '-p', 'callmany:work_six n=%di:s64', '--pid', process.pid)
        for name in ('one', 'two')
    ]
    process.send('go\n')
    process.wait_for('^work_six 200$')
    for recorder in recorders:
        recorder.end(signal.SIGTERM)
    check_equal([event_counts(name)['callmany:work_six'] for name in ('one', 'two')], [200, 200], 'calls')
    process.end(input='\n').ok()


def bpf_programs(pid):
    """Ids of the programs that links of the process keep."""
    found = set()
    for path in Path(f'/proc/{pid}/fdinfo').iterdir():
        try:
            found |= {int(number) for number in re.findall(r'^prog_id:\s*(\d+)$', path.read_text(), re.MULTILINE)}
        except FileNotFoundError:  # closed just now
            pass
    return found


def is_loaded(program_id):
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    attr = (ctypes.c_uint * 30)(program_id)
    fd = libc.syscall(321, 13, attr, ctypes.sizeof(attr))  # bpf, BPF_PROG_GET_FD_BY_ID
    if fd >= 0:
        os.close(fd)
    return fd >= 0


def test_nothing_is_left_of_a_recorder_that_was_killed():
    need_uprobes()
    path = own_path('callmany')
    process = start(path, '-w', 500)
    process.wait_for('^ready$')
    before = remains.lasting_mappings(process.pid)
    recorder = start_by_kernel('-p', 'callmany:work_a', '-r', 'callmany:work_b', '--pid', process.pid)
    programs = bpf_programs(recorder.pid)
    check(programs and all(is_loaded(number) for number in programs), 'its programs are known', programs)
    check(processes.changed_text(process.pid), 'there are breakpoints')
    recorder.end(signal.SIGKILL)
    eventually(lambda: not any(is_loaded(number) for number in programs), 'the programs go')
    eventually(lambda: not processes.changed_text(process.pid), 'the breakpoints go')
    process.send('go\n')
    process.wait_for('^work_a 500$')
    # One page of the kernel's own stays in each process that ran into a uprobe.
    check_same([line for line in remains.lasting_mappings(process.pid) if '[uprobes]' not in line], before, 'mappings')
    process.end(input='\n').ok()
    check(path not in (kernelcount.tracefs() / 'uprobe_events').read_text(), 'nothing is defined in tracefs')


def has_whole_packets(directory):
    """The kernel writes a packet page by page: one that is being written is none."""
    def sizes():
        return [path.stat().st_size for path in Path(directory).glob('kernel_*')]

    before = sizes()
    time.sleep(0.02)
    return sum(before) > 1000 and sizes() == before


def test_the_trace_of_a_killed_recorder_can_be_read():
    need_uprobes()
    process = start(target_path('callmany'), '-u', 100, 1000000)
    recorder = start_by_kernel('-p', 'callmany:work_a', '--pid', process.pid)
    eventually(lambda: has_whole_packets('kymo.data'), 'packets are written')
    kill_between_writes(recorder)
    check(list(babeltrace()), 'records are there')
    process.signal(signal.SIGKILL)


# ---- what is refused -------------------------------------------------------------------------------------------------


def test_a_user_without_rights_is_told_which_are_missing(tmp):
    need_uprobes()
    os.chmod('.', 0o777)
    result = record('--backend', 'kernel', '-p', 'libc:malloc', '--', 'true', user=NOBODY)
    result.refused('takes root, or the capabilities CAP_BPF and CAP_PERFMON')
    check(not Path('kymo.data').exists(), 'nothing is made')


def test_places_that_can_not_be_are_refused_as_in_a_process():
    path = target_path('callmany')
    by_kernel('-p', f'{path}:work_aa', '--', path, 1).refused(r'has no function work_aa; the nearest names are work_a')
    by_kernel('-p', f'{path}:work_six+1', '--', path, 1).refused('no probe can be put .* inside of an instruction')
    by_kernel('-p', 'libc:time', '--', path, 1).refused('it is an IFUNC')
    by_kernel('-p', 'nosuchfile:main', '--', path, 1).refused('there is no file called nosuchfile')
    check(not Path('kymo.data').exists(), 'nothing is made')


def test_words_that_do_not_go_together_are_refused():
    record('--all', '-p', 'libc:malloc', '--', 'true').refused('--all records every process; leave the command out', 2)
    record('--all', '-p', 'libc:malloc', '--pid', 1).refused('--all records every process; leave --pid out', 2)
    record('--all', '--backend', 'inproc', '-p', 'libc:malloc').refused('--all is done through the kernel', 2)
    record('--backend', 'ptrace', '-p', 'libc:malloc', '--', 'true').refused(
        '--backend ptrace is for system calls alone', 2)
    record('--backend', 'uprobes', '-p', 'libc:malloc', '--', 'true').refused(
        "no backend 'uprobes'; write auto, inproc, kernel or ptrace", 2)


def test_the_status_of_the_command_is_the_recordings():
    path = own_path('callmany')
    check_equal(by_kernel('-p', f'{path}:work_a', '--', 'sh', '-c', f'{path} 3; exit 7').status, 7, 'exit status')
    check_equal(event_counts()['callmany:work_a'], 3, 'calls')


def test_many_breakpoints_are_told_of_before_they_are_set():
    need_uprobes()
    result = record('--backend', 'kernel', '--no-follow', '-p', 'libc:[k-s]*', '--', 'true').ok()
    check_matches(
        result.warnings()[0],
        r'the kernel sets breakpoints at \d+ locations, (about 1|some 50) ms each, before anything is recorded; ask for fewer, or wait$'
    )
