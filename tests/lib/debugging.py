"""gdb in batch mode, on what kymo serves."""
import os
import re
import signal
from pathlib import Path

from kymotest import KYMO, check, eventually, program, run, start

SERVER = str(Path(KYMO).with_name('kymo-gdbserver'))
ENVIRONMENT = {'DEBUGINFOD_URLS': ''}
SOURCE = r'''
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
struct point { int x; double y; char name[8]; };
struct point here = { 7, 2.5, "origin" };
volatile long counter, watched;
static void on_signal(int number) { counter += 1000; }
__attribute__((noinline)) int work(int n, struct point *point)
{
	int total = 0;
	for (int i = 0; i < n; i++)
		total += i + point->x;
	counter++;
	return total;
}
static void *thread(void *data)
{
	for (int i = 0; i < 10; i++) {
		work(i, &here);
		usleep(1000);
	}
	return data;
}
static void spin(void)
{
	int left = 100000000;
	__asm__ volatile("spin_at: cmpl $0, %1\n\tje spin_at" : : "r"(0), "m"(counter));
	(void)left;
}
int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	pthread_t threads[3];
	signal(SIGUSR1, on_signal);
	int result = work(5, &here);
	watched = result;
	if (!strcmp(mode, "signal"))
		raise(SIGUSR1);
	if (!strcmp(mode, "threads")) {
		for (long i = 0; i < 3; i++)
			pthread_create(&threads[i], NULL, thread, (void *)i);
		for (int i = 0; i < 3; i++)
			pthread_join(threads[i], NULL);
	}
	if (!strcmp(mode, "fork") || !strcmp(mode, "vfork")) {
		pid_t child = mode[0] == 'v' ? vfork() : fork();
		if (!child) {
			if (mode[0] == 'v')
				execl(argv[0], argv[0], (char *)NULL);
			_exit(work(2, &here));
		}
		int status;
		waitpid(child, &status, 0);
		printf("child %d\n", WEXITSTATUS(status));
	}
	if (!strcmp(mode, "exec"))
		execl(argv[0], argv[0], "again", (char *)NULL);
	if (!strcmp(mode, "spin")) {
		counter = 0;
		spin();
	}
	if (!strcmp(mode, "loop")) {
		puts("ready");
		fflush(stdout);
		for (;;) {
			work(3, &here);
			usleep(500);
		}
	}
	printf("result %d counter %ld\n", result, counter);
	return 5;
}
'''


def build(tmp):
    """./app in the test's directory."""
    (tmp / 'app.c').write_text(SOURCE)
    run(program('gcc'), '-g', '-O0', '-w', '-pthread', '-o', 'app', 'app.c', seconds=60).ok()


def words_of(commands):
    settings = ['set confirm off', 'set pagination off', 'set width 0', 'set sysroot /']
    return [word for command in (*settings, *commands) for word in ('-ex', command)]


def gdb(*commands, seconds=90):
    """Its Result; a program that is served by stdio writes to `err`, as under gdbserver."""
    return run(program('gdb'), '-nx', '-batch', *words_of(commands), './app', env=ENVIRONMENT, seconds=seconds)


def by_stdio(app, *commands, options='--once', seconds=90):
    return gdb(f'target remote | {SERVER} {options} stdio {app}', *commands, seconds=seconds)


def start_gdb(*commands):
    return start(program('gdb'), '-nx', '-q', *words_of(commands), './app', env=ENVIRONMENT)


def listen(*words, options=('--once',)):
    """kymo-gdbserver on a port of its own choice; the process, and the port."""
    server = start(SERVER, *options, *words)
    return server, int(server.wait_for(r'^Listening on port (\d+)$', 1).group(1))


def loop(tmp):
    process = start('./app', 'loop')
    process.wait_for('^ready$')
    return process


def offer(*words):
    """kymo gdb; the process, and the path of its socket."""
    stub = start(KYMO, 'gdb', *words)
    return stub, stub.wait_for(r'^  target remote (\S+)$').group(1)


def advances(process):
    """It does not stand still: its CPU time or its calls go on."""
    def count():
        text = Path(f'/proc/{process.pid}/status').read_text()
        return int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', text, re.MULTILINE).group(1))
    before = count()
    eventually(lambda: count() > before + 5, 'the program runs on')
    check(process.is_alive(), 'the program lives')


def end(process):
    os.kill(process.pid, signal.SIGTERM)
