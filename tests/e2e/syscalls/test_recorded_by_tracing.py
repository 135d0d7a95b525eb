"""kymo record -s --backend ptrace: no call is missing, each has its memory, and the program runs on, whichever process
dies.
test_programs.py compares programs that people use with strace."""
import os
import random
import re
import resource
import signal
import time

import confined
import golang
import processes
from killing import NO_LEAKS
from kymotest import (KYMO, NOBODY, SOURCE, babeltrace, check, check_equal, check_matches, check_untraced, eventually,
                      has_joined, kymo, program, record, record_some, report_json, run, start, target, timeout)
from numbered import BRIEF, CHILD, CHILD_CALLS, THREAD, end, numbers_in
from recorded_lines import check_with_memory, shown
from recorders import announcing, kill_between_writes
from straced import CHILDREN, Chance, build, git_log

TRACED = ('--backend', 'ptrace')
SH = program('sh')
PYTHON = '/usr/bin/python3'
THREADS_OF_PYTHON = """
import os, sys, threading
go = threading.Event()
def work():
    go.wait()
    os.getpgid(0)
old = threading.Thread(target=work)
old.start()
print('ready', flush=True)
sys.stdin.readline()
go.set()
new = threading.Thread(target=work)
new.start()
old.join()
new.join()
os.getpgid(0)
"""
RESTARTED = Chance(r'= \? ERESTART\w+ \(.*\)$', '= ?', 'a call that ends with its thread may return into its end')


def trace(*words, **how):
    return record('-q', *TRACED, *words, **how)


def compile_c(tmp, text, *options):
    (tmp / 'program.c').write_text(text)
    run(*options or (program('gcc'), '-O1', '-pthread'), '-o', tmp / 'program', tmp / 'program.c').ok()
    return tmp / 'program'


def counts(directory='kymo.data'):
    """{name: (calls, errors)} by the report."""
    report = report_json(directory)
    check_equal(report['lost_events'], 0, 'lost events')
    return {row['name'].partition(':')[2]: (row['count'] + row['open'], row['errors']) for row in report['calls']}


def strace_counts(*command):
    text = run(program('strace'), '-f', '-c', *command).ok().err
    rows = re.findall(r'^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(\d*) +(\w+)$', text, re.MULTILINE)
    return {name: (int(calls), int(errors or 0)) for calls, errors, name in rows if name != 'total'}


def numbers(directory='kymo.data'):
    """[(thread, numbers of its getpgid() in order)], of tests/targets/numbered."""
    return numbers_in(shown(directory=directory))


def begin(directory, pid, *words, **how):
    """A recorder that has recorded calls of the process by now."""
    recorder = start(KYMO, 'record', *TRACED, '-o', directory, *words, '--pid', pid, **how)
    recorder.wait_for('recording process', 1)
    eventually(lambda: any(path.stat().st_size > 1000 for path in directory.glob('calls_*')), 'packets', 60)
    return recorder


# ---- lines ---------------------------------------------------------------------------------------


@timeout(300)
def test_calls_with_odd_arguments_look_as_in_strace(tmp):
    check_with_memory(tmp, 'ptrace', build(tmp, 'calls'), chances=[RESTARTED], at_least=450)


def test_an_exec_by_another_thread_than_the_first_returns(tmp):
    trace('-s', 'execve', '--', build(tmp, 'execs', '-pthread')).ok()
    lines = [re.sub(r' +=', ' =', line.partition(' ')[2]) for line in shown().splitlines()]
    check(len(lines) > 1 and all(line.endswith(') = 0') for line in lines), '\n'.join(lines))


def names(directory='kymo.data'):
    """[(thread, its name, call)] in order."""
    return re.findall(r'^ *[\d.]+ \[\d+\] +(\S+) +(\S+) (\w+)\(',
                      run(KYMO, 'report', '--events', directory).ok().out, re.MULTILINE)


def test_who_becomes_another_program_has_its_name_whatever_is_recorded(tmp):
    trace('-s', 'write', '--', SH, '-c', 'echo a; exec /bin/echo b').ok()
    check_equal([(name, call) for _, name, call in names()], [('sh', 'write'), ('echo', 'write')], 'names and calls')


def test_the_id_of_any_thread_stands_for_its_process(tmp):
    process = start(PYTHON, '-c', THREADS_OF_PYTHON)
    process.wait_for('^ready$')
    other, = set(processes.threads(process.pid)) - {process.pid}  # ids begin anew at some number
    recorder = start(KYMO, 'record', *TRACED, '-s', 'getpgid', '-o', tmp / 'data', '--pid', other)
    recorder.wait_for('recording process', 1)
    process.send('\n')
    process.end().ok()
    recorder.end().ok()
    check_equal(len({thread for thread, _, call in names(tmp / 'data') if call == 'getpgid'}), 3,
                'threads: two that were there, and one that is new')


def test_counts_are_those_of_strace(tmp):
    for command in ([program('ls'), '-lR', SOURCE / 'docs'], git_log(tmp), [SH, '-c', CHILDREN]):
        trace('-s', 'all', '--', *command).ok()
        ours, theirs = counts(), strace_counts(*command)
        # where the heap begins, and when a child ends, are chance; strace counts what returns
        for name in 'brk', 'rt_sigreturn', 'exit', 'exit_group':
            ours.pop(name, None), theirs.pop(name, None)
        check_equal(ours, theirs, f'calls and errors of {command}')


def test_strings_are_as_long_as_is_asked_for():
    text = 'x' * 6000
    for words, n in (((), 32), (('-S', '3'), 3), (('--string-size', '5K'), None), (('-S', '4096'), 4096), (('-S', '0'),
                                                                                                           0)):
        result = trace('-s', 'write', *words, '--', PYTHON, '-c', f'import os; os.write(1, b"x" * {len(text)})')
        if n is None:
            result.refused('--string-size takes a number of bytes up to 4096', 2)
        else:
            check_matches(shown(), rf'write\(1, "{"x" * n}"\.\.\., 6000\) += 6000$')


def test_other_readers_have_memory_as_sequences():
    trace('-s', 'write', '--', SH, '-c', 'echo 12345').ok()
    entry, leave = babeltrace()
    check_matches(
        entry,
        r'syscall:write: .*arg1 = 0x1, .*arg3 = 0x6, .*memory_length = \d+, memory = \[.*0x31, \[\d+\] = 0x32, \[\d+\] = 0x33'
    )
    check_matches(leave, r'syscall:return: .*result = 6, number = 1, memory_length = 0')


# ---- programs of all kinds -----------------------------------------------------------------------

JIT = r'''
#include <string.h>
#include <sys/mman.h>
static const unsigned char code[] = { 0xb8, 110, 0, 0, 0, 0x0f, 0x05, 0xc3 };	/* mov $getppid, %eax; syscall; ret */
int main(void)
{
	void *page = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memcpy(page, code, sizeof(code));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	for (int i = 0; i < 500; i++)
		((long (*)(void))page)();
}
'''


def test_code_that_the_program_has_made_is_seen(tmp):
    jitted = compile_c(tmp, JIT)
    trace('-s', 'getppid', '--', jitted).ok()
    check_equal(counts(), {'getppid': (500, 0)})
    warned = record('-s', 'getppid', '--', jitted).ok()
    check_equal(counts().get('getppid', (0, 0))[0], 0, 'calls that code in the process sees')
    check_matches(
        kymo('report').ok().out, r"^calls +by code in the process, without memory; those of JIT code are not covered",
        warned.err)


GETPPID = '#include <unistd.h>\nint main(void) { for (int i = 0; i < 300; i++) getppid(); return access("/no/such/file", R_OK) != -1; }\n'


def test_static_programs_are_seen(tmp):
    for options in ((program('gcc'), '-O1', '-static'), (program('musl-gcc'), '-O1'), (program('musl-gcc'), '-O1',
                                                                                       '-static')):
        compiled = compile_c(tmp, GETPPID, *options)
        trace('-s', 'getppid,access', '--', compiled).ok()
        check_equal(counts()['getppid'], (300, 0), f'{options}')
        check_matches(shown(), r'access\("/no/such/file", R_OK\) += -1 ENOENT')


GO = '''
package main

import ("os"; "sync")

func main() {
	var all sync.WaitGroup
	for i := 0; i < 20; i++ {
		all.Add(1)
		go func() {
			for j := 0; j < 10; j++ {
				os.Chdir("/no/such/directory")
			}
			all.Done()
		}()
	}
	all.Wait()
}
'''


def test_go_programs_are_seen(tmp):
    (tmp / 'main.go').write_text(GO)
    trace('-s', 'chdir', '--', golang.build(tmp, 'main', tmp / 'main.go')).ok()
    check_equal(counts(), {'chdir': (200, 200)})
    check_equal(set(re.findall(r' (chdir\("[^"]*")', shown())), {'chdir("/no/such/directory"'})


def test_node_is_seen():
    trace('-s', 'openat,execve', '--', program('node'), '-e', 'require("fs").readFileSync("/etc/hostname")',
          seconds=120).ok()
    check_matches(shown(), r'openat\(AT_FDCWD, "/etc/hostname", O_RDONLY\|O_CLOEXEC\) += \d')


CROWD = r'''
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static pthread_barrier_t barrier;
static void *work(void *argument)
{
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 10; i++)
		getppid();
	pthread_barrier_wait(&barrier);
	return NULL;
}
int main(void)
{
	enum { N = 1000 };
	pthread_t threads[N];
	pthread_attr_t small;
	char byte;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 65536);
	pthread_barrier_init(&barrier, NULL, N + 1);
	for (int i = 0; i < N; i++)
		if (pthread_create(&threads[i], &small, work, NULL))
			return 1;
	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1) < 0)
		return 1;
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < N; i++)
		pthread_join(threads[i], NULL);
}
'''


@timeout(300)
def test_a_thousand_threads_are_seen(tmp):
    crowd = compile_c(tmp, CROWD)
    trace('-s', 'getppid', '--', crowd, seconds=200).ok()
    check_equal(counts(), {'getppid': (10000, 0)}, 'of a command')
    process = start(crowd)
    process.wait_for('ready')
    recorder = start(KYMO, 'record', *TRACED, '-s', 'getppid', '-o', tmp / 'attached', '--pid', process.pid)
    recorder.wait_for('recording process', 1, seconds=200)
    process.end(input='\n', seconds=200).ok()
    recorder.end(seconds=200).ok()
    check_equal(counts(tmp / 'attached'), {'getppid': (10000, 0)}, 'of a process')
    check_equal(len({line.split()[0] for line in shown(directory=tmp / 'attached').splitlines()}), 1000, 'threads')


# ---- which way -----------------------------------------------------------------------------------


def report_way(directory='kymo.data'):
    return report_json(directory)['environment']['system_calls']


def test_a_process_under_a_filter_is_recorded_from_outside(tmp):
    tmp.chmod(0o777)
    for user, way, pattern in ((None, 'kernel', 'recorded through the kernel instead'),
                               (NOBODY, 'ptrace', 'its system calls are recorded by tracing it instead')):
        how = {'user': user} if user else {}
        process = start(PYTHON, '-c', confined.CONFINED, **how)
        process.wait_for('ready')
        recorder = start(KYMO, 'record', '-s', 'write', '-o', tmp / way, '--pid', process.pid, **how)
        recorder.wait_for('recording process', 1)
        process.send('\n')
        process.wait_for('done')
        process.end(input='\n').ok()
        result = recorder.end().ok()
        check_matches(result.err, rf'process {process.pid} .*seccomp.*; {pattern}')
        check_equal(report_way(tmp / way), way)
        events = shown(directory=tmp / way)
        check(re.search(r'write\(1, "done\\n", 5\) += 5', events), 'the call is recorded', way, events, result)


def test_a_process_under_a_filter_is_refused_with_backend_inproc(tmp):
    process = start(PYTHON, '-c', confined.CONFINED)
    process.wait_for('ready')
    record('--backend', 'inproc', '-s', 'write', '--pid', process.pid).refused('seccomp')
    record('-s', 'write', '-p', '0x1000', '--pid', process.pid).ended(1)
    process.end(input='\n\n').ok()


def test_complete_takes_the_kernel_where_it_may_and_traces_where_not(tmp):
    tmp.chmod(0o777)
    for how, way, text in (({}, 'kernel', 'through the kernel, with memory'), ({'user': NOBODY}, 'ptrace',
                                                                               r'by tracing \(ptrace\), with memory')):
        if way == 'kernel' and os.geteuid():
            continue
        record('-q', '-s', '%file', '--complete', '-o', tmp / way, '--', SH, '-c',
               'cd /no/such/directory 2>/dev/null; exit 3', **how).ended(3)
        check_equal(report_way(tmp / way), way)
        check_matches(kymo('report', tmp / way).ok().out, rf'(?m)^calls +{text}$')
        check_matches(shown(directory=tmp / way), r'chdir\("/no/such/directory"\) += -1 ENOENT')
    record('-s', 'read', '--complete', '-p', 'libc:malloc', '--', 'true',
           user=NOBODY).refused('leave the probes out, or --complete')


def test_wrong_words_are_answered_with_a_sentence():
    for words, sentence in (((*TRACED, '-s', 'open', '-p', 'libc:malloc', '--', 'true'),
                             '--backend ptrace is for system calls alone'),
                            ((*TRACED, '-p', 'libc:malloc', '--', 'true'),
                             '--backend ptrace is for system calls alone'), ((*TRACED, '-s', 'open', '--all'),
                                                                             'leave --backend ptrace out'),
                            (('--complete', '-p', 'libc:malloc', '--', 'true'),
                             '--complete is for system calls: name them with -s'),
                            (('--complete', '--backend', 'inproc', '-s', 'open', '--', 'true'),
                             'leave --backend inproc out, or --complete'),
                            (('-s', 'open', '-S', '100', '--', 'true'),
                             '--string-size is for system calls with their memory'),
                            (('-p', 'libc:malloc', *TRACED[:1], 'kernel', '-S', '100', '--', 'true'),
                             '--string-size is for system calls with their memory'), (('-s', 'open', *TRACED, '-S',
                                                                                       'many', '--', 'true'),
                                                                                      "up to 4096, not 'many'")):
        record(*words).refused(sentence, 2)
    record(*TRACED, '-s', 'open', '--', '/no/such/program').refused('cannot run /no/such/program: No such file')
    record(*TRACED, '-s', 'open', '--pid', 4194303).refused('4194303')


def test_who_may_not_trace_a_process_is_told(tmp):
    tmp.chmod(0o777)
    process = start('sleep', 1000)
    record(*TRACED, '-s', 'open', '-o', tmp / 'refused', '--pid', process.pid,
           user=NOBODY).refused(f'process {process.pid} does not let you trace it')
    check(not (tmp / 'refused').exists(), 'nothing was recorded')
    process.kill()


# ---- beside others, and when a side dies -----------------------------------------------------------------


def check_whole(found, last=None):
    """No number is missing between the first and the last that was seen."""
    check(found, 'calls were seen')
    for tid, seen in found:
        check_equal(seen, list(range(seen[0], seen[0] + len(seen))), f'numbers of thread {tid}')
        check(last is None or seen[0] >= BRIEF or seen[-1] == last[tid],
              f'the last number of thread {tid} is {seen[-1]}')


def last_numbers(process):
    return {tid: THREAD + n for tid, n in end(process).items()}


def test_nothing_is_missing_of_a_running_process_and_its_children(tmp):
    process = target('numbered', '-f')
    recorder = begin(tmp / 'trace', process.pid, '-s', 'getpgid', '--follow')
    eventually(lambda: sum(path.stat().st_size for path in (tmp / 'trace').glob('calls_*')) > 100000, 'packets', 60)
    process.signal(signal.SIGSTOP)
    eventually(
        lambda: processes.status(process.pid)['State'].startswith('T') or processes.status(process.pid)['State'].
        startswith('t'), 'it stops')
    process.signal(signal.SIGCONT)
    last = last_numbers(process)
    recorder.end().ok()
    found = numbers(tmp / 'trace')
    check_whole(found, last)
    check_equal({tid for tid, seen in found if seen[0] < BRIEF}, set(last), 'threads that last')
    brief = [seen for _, seen in found if seen[0] >= BRIEF]
    check(
        len(brief) > 5 and all(seen[-1] % BRIEF % (CHILD - BRIEF) == CHILD_CALLS for seen in brief),
        f'children and brief threads: {brief}')
    check(
        sum(len(seen) < CHILD_CALLS for seen in brief) <= len(last),
        f'only those that were there before are not whole: {brief}')


def test_a_recording_that_says_so_has_begun(tmp):
    """Its user may go on before the recorder gets the CPU again."""
    process = start(PYTHON, '-c', THREADS_OF_PYTHON)
    process.wait_for('^ready$')
    with announcing(*TRACED, '-s', 'getpgid', '-o', tmp / 'data', '--pid', process.pid) as (recorder, read_on):
        process.end(input='\n').ok()
        read_on()
        recorder.end().ok()
    check_equal(counts(tmp / 'data'), {'getpgid': (3, 0)}, 'calls')


def test_it_is_joined_and_joins(tmp):
    process = target('numbered')
    first = begin(tmp / 'first', process.pid, '-s', 'getpgid')
    second = begin(tmp / 'second', process.pid, '-s', 'getpgid')
    third = start(KYMO, 'syscalls', '-e', 'getpgid', '-o', tmp / 'third', '--pid', process.pid)
    eventually(lambda: (tmp / 'third').exists() and (tmp / 'third').read_bytes().count(b'\n') > 20,
               'the third sees calls', 60)
    record_some(tmp / 'probes', process.pid, '-q', '-p', 'libc:syscall', n=1)
    second.end(signal.SIGINT).ok()
    check_whole(numbers(tmp / 'second'))
    last = last_numbers(process)
    first.end().ok()
    third.end().ok()
    check_whole(numbers(tmp / 'first'), last)


def test_who_has_joined_is_told_that_the_hub_has_ended(tmp):
    process = target('numbered')
    first = begin(tmp / 'first', process.pid, '-s', 'getpgid')
    second = begin(tmp / 'second', process.pid, '-s', 'getpgid')
    first.signal(signal.SIGKILL)
    second.end().refused(
        rf'what process {process.pid} did from here on is not recorded: the kymo that traced it, and let this one in, has ended'
    )
    check_whole(numbers(tmp / 'second'))
    eventually(lambda: processes.tracer(process.pid) == 0, 'nobody traces it')
    process.end().ok()


def test_a_process_that_somebody_else_traces_is_refused(tmp):
    process = start('sleep', 1000)
    other = start(program('strace'), '-o', tmp / 'strace', '-p', process.pid)
    eventually(lambda: processes.tracer(process.pid), 'it is traced')
    record(*TRACED, '-s', 'all', '--pid',
           process.pid).refused(rf'process {process.pid} is being traced by process {other.pid} \(strace\)')
    other.kill()
    process.kill()


STAYS = r'^kymo: kymo process \d+ still traces what was recorded, through this one, which stays for it; Ctrl-C ends that, too$'


def joined_and_over(tmp, pid, *words, **how):
    """A recorder whose time is over, and a peer that has joined it: (recorder, tracer)."""
    recorder = start(KYMO, 'record', *TRACED, '-s', 'getpgid,read', '-o', tmp / 'trace', *words, **how)
    if not pid:
        recorder.wait_for('^begun$')
        pid = next(child for child in processes.children(recorder.pid) if processes.status(child)['Name'] == 'sh')
    eventually((tmp / 'trace/metadata').exists, 'it records', 60)
    tracer = start(KYMO, 'syscalls', '-e', 'getpgid,read', '-o', tmp / 'lines', '--pid', pid)
    eventually(lambda: has_joined(pid, tracer), 'it has joined', 60)
    recorder.signal(signal.SIGTERM)
    recorder.wait_for(STAYS, which=1)
    return recorder, tracer


def test_it_stays_for_who_has_joined_when_the_recording_is_over(tmp):
    process = target('numbered')
    recorder, tracer = joined_and_over(tmp, process.pid, '--pid', process.pid)
    check_whole(numbers(tmp / 'trace'))
    seen = (tmp / 'lines').stat().st_size
    eventually(lambda: (tmp / 'lines').stat().st_size > seen + 10000, 'it sees more', 60)
    check(recorder.is_alive(), 'it stays', recorder.result())
    tracer.end(signal.SIGTERM)
    recorder.end().ok()
    check_untraced(process.pid)
    process.end().ok()


def test_a_second_signal_ends_that_and_who_has_joined_is_told(tmp):
    process = target('numbered')
    recorder, tracer = joined_and_over(tmp, process.pid, '--pid', process.pid)
    recorder.end(signal.SIGTERM).ok()
    check_matches(tracer.end().ended(1).err, 'what process .* did from here on is not shown: the kymo that traced it')
    check_untraced(process.pid)
    process.end().ok()


def test_a_command_ends_while_others_trace_it_and_the_recording_is_over(tmp):
    recorder, tracer = joined_and_over(tmp, None, '--', SH, '-c', 'echo begun; read line; exit 5')
    recorder.send('x\n')
    tracer.end().ok()
    recorder.end().ended(5)
    check_matches((tmp / 'lines').read_text(), r'exited with 5')


def recorder_of(directory, pid, seconds):
    return [
        KYMO, 'record', '-q', *TRACED, '-s', 'getpgid,clone3,wait4', '--follow', '-o',
        str(directory), '--for',
        str(seconds), '--pid',
        str(pid)
    ]


@timeout(300)
def test_a_process_runs_on_wherever_its_recorder_is_killed(tmp):
    """At ptrace requests, from the first on, and at any instant; also while it lets go."""
    process = target('numbered', '-f')
    begun = time.monotonic()
    run(*recorder_of(tmp / 'killed', process.pid, 0.05)).ok()
    whole = time.monotonic() - begun
    for number in (1, 2, 3, 4, 5, 6, 8, 10, 13, 20, 40, 100):
        run(program('strace'), '-f', '-qq', '-o', '/dev/null', '-e', 'trace=ptrace', '-e', 'signal=none', '-e',
            f'inject=ptrace:signal=KILL:when={number}', *recorder_of(tmp / 'killed', process.pid, 0.05), env=NO_LEAKS)
        check(process.is_alive(), f'it runs on, killed at request {number}')
        eventually(lambda: processes.tracer(process.pid) == 0, 'nobody traces it')
    for _ in range(15):
        recorder = start(*recorder_of(tmp / 'killed', process.pid, 0.05), env=NO_LEAKS)
        time.sleep(random.random() * whole)
        recorder.signal(signal.SIGKILL)
        recorder.end()
        check(process.is_alive(), 'it runs on')
        eventually(lambda: processes.tracer(process.pid) == 0, 'nobody traces it')
    process.end().ok()


def test_a_command_runs_on_when_its_recorder_is_killed(tmp):
    for i in range(10):
        script = f'echo > {tmp}/begun-{i}; i=0; while [ $i -lt 300 ]; do i=$((i + 1)); /bin/true; done; echo > {tmp}/ended-{i}'
        recorder = start(KYMO, 'record', '-q', *TRACED, '-s', 'all', '-o', tmp / 'killed', '--', SH, '-c', script,
                         env=NO_LEAKS)
        if i % 2:
            eventually((tmp / f'begun-{i}').exists, 'it has begun', 60)
        time.sleep(random.random() * 0.05)
        recorder.signal(signal.SIGKILL)
        recorder.end()
        if (tmp / f'begun-{i}').exists():
            eventually((tmp / f'ended-{i}').exists, 'the command ends by itself', 60)


def test_a_killed_recorder_leaves_a_trace_that_can_be_read(tmp):
    process = target('numbered')
    recorder = begin(tmp / 'killed', process.pid, '-s', 'getpgid')
    kill_between_writes(recorder)
    check_matches(kymo('report', '--events', tmp / 'killed').ok().out, r'getpgid\(\d+\) += -1 ESRCH')
    check(len(list(babeltrace(tmp / 'killed'))) > 10, 'records for others')
    process.end().ok()


def test_a_full_disk_ends_the_recording_and_the_process_runs_on(tmp):
    process = target('numbered')
    recorder = start(KYMO, 'record', '-q', *TRACED, '-s', 'getpgid', '-o', tmp / 'full', '--pid', process.pid,
                     env=NO_LEAKS)
    eventually((tmp / 'full/metadata').exists, 'it records', 60)
    resource.prlimit(recorder.pid, resource.RLIMIT_FSIZE, (20000, 20000))
    recorder.end(seconds=90).refused("cannot write the stream calls_0: File too large")
    eventually(lambda: processes.tracer(process.pid) == 0, 'nobody traces it')
    check(process.is_alive(), 'it runs on')
    process.end().ok()


def test_a_recording_ends_by_time_or_interrupt_and_the_command_runs_on(tmp):
    script = f'echo begun; read line; echo $line > {tmp}/ended; exit 5'
    recorder = start(KYMO, 'record', *TRACED, '-s', 'all', '--for', '0.3', '-o', tmp / 'trace', '--', SH, '-c', script)
    recorder.wait_for('waiting for', 1)
    recorder.end(input='done\n').ended(5)
    check_equal((tmp / 'ended').read_text(), 'done\n')
    os.mkfifo(tmp / 'pipe')
    recorder = start(KYMO, 'record', *TRACED, '-s', 'all', '-o', tmp / 'trace', '--', SH, '-c',
                     f'echo begun; read line < {tmp}/pipe; echo again > {tmp}/ended')
    recorder.wait_for('begun')
    recorder.end(signal.SIGTERM).ended(128 + signal.SIGTERM)
    (tmp / 'pipe').write_text('x\n')
    eventually(lambda: (tmp / 'ended').read_text() == 'again\n', 'the command ends by itself', 60)


def test_children_are_left_out_where_nobody_is_followed(tmp):
    trace('-s', 'chdir', '--no-follow', '--', SH, '-c', 'cd /; (cd /tmp); sh -c "cd /usr"; exec sh -c "cd /etc"').ok()
    check_equal(re.findall(r'chdir\("(.*)"\)', shown()), ['/', '/etc'])


def test_the_newest_calls_are_kept_by_overwrite():
    trace('-s', 'all', '--overwrite', '--buffer', '64K', '--', SH, '-c', 'exec ls -lR /usr/include').ok()
    out = kymo('report', '--events').ok().out
    check_matches(out, r'exit_group\(0\) +')
    check('execve(' not in out, 'the oldest are gone')


def test_commands_are_as_without_it(tmp):
    for script in ('kill -USR1 $$', 'trap "echo caught; exit 4" TERM; kill -TERM $$',
                   '(kill -STOP $$; kill -CONT $$) & wait; exit 7', 'ulimit -n; umask; nice; exit 2'):
        bare = run(SH, '-c', script)
        traced = trace('-s', 'all', '--', SH, '-c', script)
        check_equal((traced.status, traced.out), (bare.status if bare.status >= 0 else 128 - bare.status, bare.out),
                    script)
