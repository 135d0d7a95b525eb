"""Tracing what a recording follows: kymo syscalls joins the hub that the recorder has, and neither takes anything from
the other."""
import re
import signal

import processes
from kymotest import (KYMO, check, check_equal, check_matches, check_text_intact, eventually, has_joined, kymo, program,
                      report_json, run, start)
from test_joined import COUNTED, GETGID, GETUID, RECORD_CALLS, THREADS, recorded_calls, trace

GETPPID = 110
CHILDREN, CALLS = 40, 25

# A tree like that of make -j2: two at a time, each a new program that makes calls whose number is known, by a thread of
# its own as well.
TREE = r'''
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static void *call(void *argument)
{
	for (int i = 0; i < CALLS; i++)
		syscall(SYS_getppid);
	return argument;
}

static int be_child(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, call, NULL))
		return 1;
	call(NULL);
	return pthread_join(thread, NULL);
}

static pid_t make_child(const char *path, int i)
{
	char *argv[] = { (char *)path, "child", NULL };
	pid_t pid;

	if (i % 2)
		return posix_spawn(&pid, path, NULL, NULL, argv, environ) ? -1 : pid;
	pid = fork();
	if (!pid) {
		call(NULL);
		if (i % 4)
			_exit(0);
		execv(path, argv);
		_exit(9);
	}
	return pid;
}

int main(int argc, char **argv)
{
	int status, n = 0;
	char byte;

	if (argc > 1)
		return be_child();
	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1) < 0)
		return 1;
	for (int i = 0; i < CHILDREN; i++) {
		if (i >= 2)
			n += wait(&status) > 0 && !status;
		if (make_child(argv[0], i) < 0)
			return 1;
	}
	while (wait(&status) > 0)
		n += !status;
	return n == CHILDREN ? 0 : 3;
}
'''
# Of four children one makes its calls and ends. One makes them and executes something that makes twice as many, and two
# are spawned with that.
EXPECTED = CHILDREN // 4 * CALLS * (1 + 3 + 2 + 2)


def followed(tmp, source, name, *options):
    """A program that a recorder follows, when it is ready: (recorder, process id)."""
    path = tmp / f'{name}.c'
    path.write_text(source)
    run(program('gcc'), '-w', '-pthread', f'-DCHILDREN={CHILDREN}', f'-DCALLS={CALLS}', '-o', tmp / name, path).ok()
    recorder = start(KYMO, 'record', '-q', *RECORD_CALLS, *options, '--', tmp / name)
    recorder.wait_for('^ready$')
    return recorder, processes.children(recorder.pid)[0]


def counted(tmp, *options):
    return followed(tmp, COUNTED.read_text(), 'counted', *options)


def tree(tmp, *options):
    return followed(tmp, TREE, 'tree', *options)


def join(pid, *options):
    """A tracer that has an engine there."""
    tracer = start(KYMO, 'syscalls', *options, '--pid', pid)
    eventually(
        lambda: re.search(rf'\b{tracer.pid}\b',
                          kymo('threads', pid).out) or has_joined(pid, tracer) or not tracer.is_alive(),
        'it has joined', 60)
    check(tracer.is_alive(), 'the tracer goes on', tracer.result())
    return tracer


def check_complete(recorder, expected=EXPECTED):
    check_equal(report_json()['lost_events'], report_json()['lost_in_vforks'], 'lost')
    check_equal(recorded_calls()[GETPPID], expected, 'recorded calls')


def test_two_tracers_that_come_to_a_followed_command_and_its_recorder_are_each_complete(tmp):
    recorder, pid = counted(tmp)
    first = trace(pid, '-e', 'getpgid,getuid')
    second = trace(pid, '-e', 'getsid,getgid')
    recorder.end(input='x').ok()
    check_equal(first.end().ok().err.count(' getuid('), 500 * THREADS, 'getuid of the first')
    check_equal(second.end().ok().err.count(' getgid('), 300 * THREADS, 'getgid of the second')
    calls = recorded_calls()
    check_equal((calls[GETUID], calls[GETGID]), (500 * THREADS, 300 * THREADS), 'recorded calls')


def test_a_tree_is_followed_by_a_recorder_and_a_tracer_and_both_are_complete(tmp):
    recorder, pid = tree(tmp)
    tracer = join(pid, '-f', '-e', 'getppid')
    recorder.end(input='x').ok()
    check_equal(tracer.end().ok().err.count('getppid('), EXPECTED, 'calls shown')
    check_complete(recorder)


def test_tracers_come_and_go_and_nothing_is_missing_in_the_recording(tmp):
    recorder, pid = tree(tmp)
    for how in (signal.SIGTERM, signal.SIGKILL) * 2:
        tracer = join(pid, '-f', '-e', 'getppid')
        tracer.signal(how)
        tracer.popen.wait(60)
    recorder.send('x')
    for _ in range(3):
        tracer = start(KYMO, 'syscalls', '-f', '-c', '--pid', pid)
        eventually(lambda: tracer.popen.poll() is not None or has_joined(pid, tracer),
                   'it has joined, or come too late', 60)
        tracer.signal(signal.SIGTERM)
        tracer.popen.wait(60)
    recorder.end().ok()
    check_complete(recorder)


def test_a_program_runs_on_when_its_recorder_is_killed_and_a_tracer_has_joined(tmp):
    recorder, pid = counted(tmp)
    tracer = trace(pid, '-e', 'getpgid')
    recorder.signal(signal.SIGKILL)
    recorder.popen.wait(60)
    check_matches(tracer.end().ended(1).err, 'what process .* did from here on is not shown: the kymo that traced it')
    eventually(lambda: not processes.tracer(pid), 'nobody traces it')
    kymo('detach', pid).ok()
    check_text_intact(pid)
    recorder.popen.stdin.close()
    eventually(lambda: not processes.is_alive(pid), 'it ends')


def test_tracers_of_other_makes_are_refused(tmp):
    recorder, pid = counted(tmp)
    result = run(program('strace'), '-p', pid)
    check(result.status != 0, 'strace finds its place taken', result)
    recorder.end(input='x').ok()
