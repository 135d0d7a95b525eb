"""Recording what another recorder follows: both change the process, in turn, and neither takes anything from the
other. And the end of the follower, with other recorders there."""
import itertools
import os
import signal
from pathlib import Path

import processes
import remains
from killing import NO_LEAKS
from kymotest import (KYMO, check, check_equal, check_matches, check_text_intact, check_untraced, event_counts,
                      eventually, kymo, probe_counts, program, record, record_some, report_json, run, start, target,
                      target_path, wait_for_records)
from test_followed import check_complete, counted, join, tree
from test_joined import (COUNTED, GETGID, GETUID, RECORD_CALLS, SELFCHECK, THREADS, all_record, checked, recorded_calls,
                         start_recorder, trace)

STAYS = r'^kymo: kymo process \d+ still traces what was recorded, through this one, which stays for it; Ctrl-C ends that, too$'
TOLD = 'what process .* did from here on is not shown: the kymo that traced it'
SOONEST_HELD = 12  # of its messages: the first thread makes remote calls then

WORK = r'''
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static __attribute__((noinline)) long work(long x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3 + 1;
}
'''

# Its children, which live as long as they like, do nothing but call work().
HOT = WORK + r'''
int main(void)
{
	char byte;

	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1) < 0)
		return 1;
	for (int i = 0; i < 3; i++)
		if (!fork())
			for (long k = 0;; k++)
				if (work(k) != k * 3 + 1)
					_exit(9);
	puts("hot");
	fflush(stdout);
	return read(0, &byte, 1) < 0;
}
'''

# It makes children without a pause, every other one of which executes a program.
FORKS = WORK + r'''
int main(void)
{
	char byte;

	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1) < 0)
		return 1;
	for (int i = 0; i < 600; i++) {
		int status;
		pid_t pid = fork();

		if (!pid && i % 2)
			execl("/bin/true", "true", NULL);
		if (!pid)
			_exit(work(i) != i * 3 + 1);
		if (waitpid(pid, &status, 0) != pid || status)
			return 2;
		if (i == 20) {
			puts("made some");
			fflush(stdout);
		}
	}
	puts("done");
	return 0;
}
'''

# It has a library open, and at a byte opens it ten times more, with CALLS calls each.
LOADS = r'''
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

static int use(const char *path, int n)
{
	void *library = dlopen(path, RTLD_NOW);
	int (*work)(int);
	char byte;

	if (!library)
		return 1;
	*(void **)&work = dlsym(library, "ctor_work");
	for (int i = 0; i < n; i++)
		if (work(5) != 16)
			return 1;
	if (n)
		return dlclose(library);
	puts("ready");
	fflush(stdout);
	return read(0, &byte, 1) < 0 || dlclose(library);
}

int main(int argc, char **argv)
{
	if (use(argv[1], 0))
		return 1;
	for (int i = 0; i < 10; i++)
		if (use(argv[1], 100))
			return 2;
	return 0;
}
'''
CALLS = 100


def compiled(tmp, source, name):
    path = tmp / f'{name}.c'
    path.write_text(source)
    run(program('gcc'), '-w', '-O2', '-pthread', '-o', tmp / name, path).ok()
    return tmp / name


def follow(*command, probes=RECORD_CALLS):
    """A command that a recorder follows, once it is ready: (recorder, process id)."""
    recorder = start(KYMO, 'record', '-q', *probes, '--', *command)
    recorder.wait_for('^ready$')
    return recorder, processes.children(recorder.pid)[0]


def leave(recorder, number=signal.SIGTERM):
    """It ends; what it has started goes on."""
    recorder.signal(number)
    recorder.popen.wait(60)
    return recorder.result()


def check_counted(directory):
    calls = recorded_calls(directory)
    check_equal((calls[GETUID], calls[GETGID]), (500 * THREADS, 300 * THREADS), f'recorded calls in {directory}')


def is_gone(pid):
    return not processes.is_alive(pid)


# ---- two recorders -------------------------------------------------------------------------------


def test_three_recorders_of_a_followed_command_are_each_complete(tmp):
    first, pid = counted(tmp)
    others = [start_recorder(pid, *RECORD_CALLS, where=f'data{i}') for i in range(2)]
    check_equal(processes.tracer(pid), first.pid, 'tracer')
    first.end(input='x').ok()
    for i, recorder in enumerate(others):
        recorder.end().ok()
        check_counted(f'data{i}')
    check_counted('kymo.data')


def test_whoever_leaves_a_followed_process_those_that_stay_are_complete(tmp):
    path = compiled(tmp, COUNTED.read_text(), 'counted')
    for order in ((1, 0, 2), (0, 1, 2), (2, 0, 1)):
        process = start(path)
        process.wait_for('^ready$')
        recorders = [
            start_recorder(process.pid, *RECORD_CALLS, *(['--follow'] if i == 1 else []), where=f'data{i}')
            for i in range(3)
        ]
        for i in order[:2]:
            recorders[i].end(signal.SIGTERM).ok()
        check_equal(processes.tracer(process.pid), recorders[1].pid if order[2] == 1 else 0, 'tracer')
        process.end(input='x').ok()
        recorders[order[2]].end().ok()
        check_counted(f'data{order[2]}')
        run('rm', '-r', *(f'data{i}' for i in range(3))).ok()


def test_nothing_is_left_of_recorders_that_come_to_a_followed_process(tmp):
    process, before = checked()
    follower = start_recorder(process.pid, '--follow', *SELFCHECK)
    all_record([start(KYMO, 'record', '-o', f'data{i}', *SELFCHECK, '--pid', process.pid) for i in range(3)])
    check_equal(processes.tracer(process.pid), follower.pid, 'tracer')
    wait_for_records()
    follower.end(signal.SIGTERM).ok()
    check(sum(probe_counts().values()) > 100, 'hits are recorded')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def come_and_go(pid, goes_on):
    """Recorders of the process, one after the other, each ended in another way and at another time, as long as
    `goes_on()`."""
    for i, how in enumerate(itertools.cycle((signal.SIGTERM, signal.SIGKILL))):
        if not goes_on():
            return i
        recorder = start(KYMO, 'record', '-q', '-o', f'second{i}', *RECORD_CALLS, '-p', 'libc:fork', '--pid', pid,
                         env=NO_LEAKS)
        if i % 3:
            eventually(lambda: not recorder.is_alive() or Path(f'second{i}').exists() or not goes_on(),
                       'it records, or came too late', 60)
        recorder.signal(how)
        recorder.popen.wait(60)
    return 0


def test_recorders_come_and_go_and_nothing_is_missing_in_what_follows_a_tree(tmp):
    recorder, pid = tree(tmp)
    recorder.send('x')
    check(come_and_go(pid, recorder.is_alive) > 0, 'some came')
    recorder.end().ok()
    check_complete(recorder)


def test_recorders_come_and_go_while_threads_and_children_are_made_and_killed(tmp):
    recorder = start(KYMO, 'record', '-q', '-p', 'family:work_a', '--', target_path('family'), 'storm')
    pid = eventually(lambda: processes.children(recorder.pid), 'the command is there', 60)[0]
    check(come_and_go(pid, recorder.is_alive) > 0, 'some came')
    said = recorder.end().ended(3).json()
    check_equal(event_counts()['family:work_a'], said['calls'], 'records')
    check_equal(report_json()['lost_events'], 0, 'lost')


def test_recorders_come_and_go_while_a_followed_process_executes_one_program_after_the_other(tmp):
    recorder = start(KYMO, 'record', '-q', '-p', 'family:work_a', '--', target_path('family'), 'exec', 24)
    pid = eventually(lambda: processes.children(recorder.pid), 'the command is there', 60)[0]
    check(come_and_go(pid, recorder.is_alive) > 0, 'some came')
    check_equal(recorder.end().ended(7).out, 'last\n', 'output')
    check_equal(event_counts()['family:work_a'], 24 * 5, 'records')
    check_equal(len(report_json()['processes']), 25, 'programs')


def test_children_run_on_when_their_maker_is_gone_and_the_one_who_followed_leaves(tmp):
    """The pads of recorders of their maker alone are in them, too, and go on to those that are taken out."""
    path = compiled(tmp, HOT, 'hot')
    for _ in range(4):
        follower, pid = follow(path, probes=['--overwrite', '-p', 'hot:work x=%di'])
        other = start_recorder(pid, '--overwrite', '-p', 'hot:work', where='second')
        follower.send('x')
        follower.wait_for('^hot$')
        children = processes.children(pid)
        os.kill(pid, signal.SIGKILL)
        other.end().ok()
        leave(follower)
        check_equal([processes.is_alive(child) for child in children], [True] * 3, 'children that live')
        for child in children:
            check_untraced(child)
            kymo('detach', child).ok()
            check_text_intact(child)
            os.kill(child, signal.SIGKILL)
        run('rm', '-r', 'second', 'kymo.data').ok()


def test_a_child_of_a_followed_process_is_recorded_by_another_one(tmp):
    path = compiled(tmp, HOT, 'hot')
    follower, pid = follow(path, probes=['--overwrite', '-p', 'hot:work x=%di'])
    follower.send('x')
    follower.wait_for('^hot$')
    children = processes.children(pid)
    other = start_recorder(children[0], '--overwrite', '-p', 'hot:work', where='second')
    begin = processes.time_on_cpu(children[0])
    eventually(lambda: processes.time_on_cpu(children[0]) > begin + 10**6, 'it has run for 1 ms')
    other.end(signal.SIGTERM).ok()
    check(probe_counts('second')['hot:work'] > 100, 'hits are recorded')
    leave(follower)
    for child in children:
        check_untraced(child)
        check_text_intact(child)
        os.kill(child, signal.SIGKILL)
    follower.popen.stdin.close()
    eventually(lambda: is_gone(pid), 'it ends')


def test_detaching_takes_out_what_a_killed_recorder_of_a_followed_process_left(tmp):
    process, before = checked()
    follower = start_recorder(process.pid, '--follow', *SELFCHECK)
    other = start_recorder(process.pid, *SELFCHECK, where='second')
    other.kill()
    check_matches(
        kymo('detach', process.pid).ok().out,
        f'^recorder {follower.pid} has ended its recording of process {process.pid}')
    follower.end().ok()
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_a_thousand_threads_are_held_for_both(tmp):
    process = target('threads1000')
    follower = start_recorder(process.pid, '--follow', '-p', 'libc:clock_nanosleep')
    record_some('second', process.pid, '-p', 'libc:clock_nanosleep', n=1)
    check(event_counts('second')['libc:clock_nanosleep'] > 0, 'hits are recorded')
    follower.end(signal.SIGTERM).ok()
    check(event_counts()['libc:clock_nanosleep'] > 0, 'hits are recorded')
    check_text_intact(process.pid)
    check_untraced(process.pid)


def test_a_library_that_is_loaded_again_and_again_is_probed_by_both(tmp):
    follower, pid = follow(compiled(tmp, LOADS, 'loads'), target_path('libctor.so'), probes=['-p', 'libctor:ctor_work'])
    other = start_recorder(pid, '-p', 'libctor:ctor_work', where='second')
    follower.end(input='x').ok()
    other.end().ok()
    for recorder, directory in ((follower, 'kymo.data'), (other, 'second')):
        hits = event_counts(directory)['libctor:ctor_work']
        check(hits >= 10 * CALLS or 'warning' in recorder.err,
              'all calls are there, or it is told that a busy machine was too late', hits, recorder.err)


# ---- one of them is slow, or dies ----------------------------------------------------------------


def slow_recorder(tmp, pid, how):
    """One that does `how` (strace) when it holds a thread. strace is apart from it, and may be killed: then it goes on
    at once."""
    recorder = start(program('strace'), '-D', '-qq', '-o', tmp / 'messages', '-e',
                     f'inject=sendmsg:{how}:when={SOONEST_HELD}', '-e', 'trace=sendmsg', '-e', 'signal=none', KYMO,
                     'record', '-o', 'second', *SELFCHECK, '--for', '0.1', '--pid', pid, env=NO_LEAKS)
    eventually(lambda: (tmp / 'messages').exists() and (tmp / 'messages').read_text().count('sendmsg') >= SOONEST_HELD,
               'it sleeps', 60)
    return recorder


def clean_up(process, before):
    if remains.are_there(process.pid):
        kymo('detach', process.pid).ok()
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_who_ends_waits_for_another_one_that_has_the_process(tmp):
    process, before = checked()
    follower = start_recorder(process.pid, '--follow', *SELFCHECK)
    wait_for_records()
    other = slow_recorder(tmp, process.pid, 'delay_enter=2s')
    follower.end(signal.SIGTERM).ok()
    check(sum(probe_counts().values()) > 100, 'hits are recorded')
    other.end().ok()
    check(sum(probe_counts('second').values()) > 0, 'hits are recorded')
    clean_up(process, before)


def test_one_that_sleeps_too_long_has_lost_its_hold_and_the_one_who_follows_goes_on(tmp):
    process, before = checked()
    follower = start_recorder(process.pid, '--follow', *SELFCHECK)
    other = slow_recorder(tmp, process.pid, 'delay_enter=600s')
    follower.end(signal.SIGTERM).ok()
    check_equal((tmp / 'messages').read_text().count('sendmsg'), SOONEST_HELD, 'messages: it sleeps still')
    check_untraced(process.pid)
    os.kill(processes.tracer(other.pid), signal.SIGKILL)
    result = other.end()
    check(result.status in (0, 1), 'it ends well, as it can try again, or with a sentence', result)
    clean_up(process, before)


def test_one_that_is_killed_with_a_thread_borrowed_gives_it_back(tmp):
    process, before = checked()
    follower = start_recorder(process.pid, '--follow', *SELFCHECK)
    wait_for_records()
    run(program('strace'), '-qq', '-o', '/dev/null', '-e', f'inject=sendmsg:signal=KILL:when={SOONEST_HELD}', '-e',
        'trace=sendmsg', '-e', 'signal=none', KYMO, 'record', '-o', 'second', *SELFCHECK, '--for', '0.1', '--pid',
        process.pid, env=NO_LEAKS)
    start_recorder(process.pid, *SELFCHECK, where='third').end(signal.SIGTERM).ok()
    follower.end(signal.SIGTERM).ok()
    check(sum(probe_counts().values()) > 100, 'hits are recorded')
    clean_up(process, before)


def test_the_one_who_follows_is_killed_while_another_one_has_the_process(tmp):
    process, before = checked()
    follower = start_recorder(process.pid, '--follow', *SELFCHECK)
    other = slow_recorder(tmp, process.pid, 'delay_enter=5s')
    follower.kill()
    check_untraced(process.pid)
    result = other.end()
    check(result.status in (0, 1), 'it ends well, as it can try again, or with a sentence', result)
    clean_up(process, before)


# ---- the end of the follower ----------------------------------------------------------------------


def left_with_tracer(process, *options):
    """A recorder that has ended its recording, and stays for a tracer that has joined: (recorder, tracer)."""
    recorder = start_recorder(process.pid, '--follow', '-p', 'selfcheck:work_*')
    tracer = trace(process.pid, *options)
    wait_for_records()
    recorder.signal(signal.SIGTERM)
    recorder.wait_for(STAYS, which=1)
    return recorder, tracer


def sees_more(tracer):
    seen = len(tracer.output(1))
    eventually(lambda: len(tracer.output(1)) > seen + 100, 'it sees more', 60)


def test_a_recording_ends_and_the_hub_stays_until_the_last_tracer_has_gone(tmp):
    process, before = checked()
    recorder, first = left_with_tracer(process, '-e', 'tgkill')
    check(sum(probe['count'] for probe in report_json()['probes']) > 100, 'hits are recorded')
    check_text_intact(process.pid)
    check(not remains.are_there(process.pid), 'nothing of the recording is in it')
    second = trace(process.pid, '-e', 'tgkill')
    first.end(signal.SIGTERM)
    sees_more(second)
    record('-o', 'second', *SELFCHECK, '--for', '0.1', '--pid', process.pid).ok()
    check(recorder.is_alive(), 'it stays', recorder.result())
    second.end(signal.SIGTERM)
    recorder.end().ok()
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_a_second_signal_ends_that_and_who_has_joined_is_told(tmp):
    process, before = checked()
    recorder, tracer = left_with_tracer(process, '-e', 'tgkill')
    recorder.end(signal.SIGTERM).ok()
    check_matches(tracer.end().ended(1).err, TOLD)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_one_that_stays_for_others_is_killed_and_the_program_runs_on(tmp):
    process, before = checked()
    recorder, tracer = left_with_tracer(process, '-e', 'tgkill')
    recorder.kill()
    check_matches(tracer.end().ended(1).err, TOLD)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_one_that_stays_for_others_ends_with_the_process(tmp):
    process, _ = checked()
    recorder, tracer = left_with_tracer(process, '-e', 'tgkill')
    process.end(signal.SIGTERM).ok()
    tracer.end().ok()
    recorder.end().ok()


def test_detaching_ends_the_recording_and_leaves_the_tracers(tmp):
    process, before = checked()
    recorder = start_recorder(process.pid, '--follow', '-p', 'selfcheck:work_*')
    tracer = trace(process.pid, '-e', 'tgkill')
    check_matches(
        kymo('detach', process.pid).ok().out,
        f'^recorder {recorder.pid} has ended its recording of process {process.pid}')
    check_text_intact(process.pid)
    sees_more(tracer)
    tracer.end(signal.SIGTERM)
    recorder.end().ok()
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


def test_time_is_up_and_the_status_is_the_commands_who_ends_when_others_have_traced_its_child(tmp):
    path = compiled(tmp, COUNTED.read_text(), 'counted')
    recorder = start(KYMO, 'record', '--for', '10', *RECORD_CALLS, '--', 'sh', '-c', f'{path}; exit 5')
    recorder.wait_for('^ready$')
    shell = processes.children(recorder.pid)[0]
    tracer = trace(processes.children(shell)[0], '-e', 'getpgid,getuid')
    # the latter if the machine was too busy to join in time
    recorder.wait_for(rf'{STAYS}|^kymo: waiting for sh to end$', which=1)
    recorder.send('x')
    check_equal(tracer.end().ok().err.count(' getuid('), 500 * THREADS, 'getuid')
    recorder.end().ended(5)


def test_a_command_ends_while_others_trace_it_and_the_recording_is_over(tmp):
    path = compiled(tmp, COUNTED.read_text().replace('return 0;\n}', 'return 6;\n}'), 'counted')
    recorder, pid = follow(path)
    tracer = trace(pid, '-e', 'getpgid,getuid')
    recorder.signal(signal.SIGTERM)
    recorder.wait_for(STAYS, which=1)
    recorder.send('x')
    check_equal(tracer.end().ok().err.count(' getuid('), 500 * THREADS, 'getuid')
    recorder.end().ended(6)


def test_children_that_are_made_while_a_recording_ends_run_on_while_others_trace(tmp):
    path = compiled(tmp, FORKS, 'forks')
    for _ in range(3):
        recorder = start(KYMO, 'record', '-p', 'forks:work', '--', 'sh', '-c', f'sleep 600 & {path}; exit 5')
        recorder.wait_for('^ready$')
        shell = processes.children(recorder.pid)[0]
        asleep, = eventually(
            lambda: [pid for pid in processes.children(shell) if processes.status(pid).get('Name') == 'sleep'],
            'it is executed')
        tracer = join(asleep, '-e', 'getpid')  # the others are let go
        recorder.send('x')
        recorder.wait_for('^made some$')
        recorder.signal(signal.SIGTERM)
        recorder.wait_for('^done$')
        eventually(lambda: not processes.is_alive(shell),
                   'the command ends before what is traced does: its status is returned')
        os.kill(asleep, signal.SIGKILL)
        recorder.end().ended(5)
        tracer.end()
        run('rm', '-r', 'kymo.data').ok()
