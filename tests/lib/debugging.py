"""gdb in batch mode, on what kymo serves."""
import ctypes
import os
import re
import shutil
import select
import signal
import socket
from pathlib import Path

from kymotest import KYMO, at_end, check, check_equal, check_matches, eventually, program, run, start
from processes import children

SERVER = str(Path(KYMO).with_name('kymo-gdbserver'))
ENVIRONMENT = {'DEBUGINFOD_URLS': ''}
SOURCE = r'''
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
struct point { int x; double y; char name[8]; };
struct point here = { 7, 2.5, "origin" };
volatile long counter, watched;
static void on_signal(int number) { __sync_fetch_and_add(&counter, 1000); }
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
static void *sleeper(void *data)
{
	for (;;)
		usleep(500);
}
static void *forker(void *data)
{
	for (;;) {
		pid_t child = fork();
		if (!child)
			_exit(0);
		waitpid(child, NULL, 0);
		usleep(500);
	}
}
static void *spawner(void *data)
{
	posix_spawn_file_actions_t actions;
	char *words[] = { "true", NULL };
	pid_t child;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "fifo", O_RDONLY, 0);
	posix_spawn(&child, "/bin/true", &actions, NULL, words, environ);
	return data;
}
/* One thread of some. The debugger lets it do things, by writing to `go`: 10 + i, 20 + i, … */
volatile long counts[128], go, quiet[8];
__attribute__((noinline)) void special(void) { watched++; }
static void *worker(void *data)
{
	long i = (long)data;
	pthread_t thread;
	for (;;) {
		long what = __sync_val_compare_and_swap(&go, go / 10 * 10 + i, 0);
		counts[i]++;
		if (i == 2)
			special();
		if (i < 10 && what == 10 + i)
			return data;
		if (i < 10 && (what == 20 + i || what == 30 + i) && !(what < 30 ? fork() : vfork()))
			_exit(7);
		if (i < 10 && what == 40 + i)
			exit(3);
		if (i < 10 && what == 50 + i)
			execl("./app", "./app", "loop", (char *)NULL);
		if (i < 10 && what == 60 + i)
			pthread_create(&thread, NULL, worker, (void *)5);
		usleep(500);
	}
}
static void say_ready(void *what)
{
	printf("ready %p\n", what);
	fflush(stdout);
}
/* What goes on for ever. */
static void stay(const char *mode)
{
	void *what = NULL;
	pthread_t thread;
	counter = 0;
	if (!strcmp(mode, "crowd"))
		for (int i = 0; i < 2; i++)
			pthread_create(&thread, NULL, sleeper, NULL);
	if (!strcmp(mode, "forks"))
		pthread_create(&thread, NULL, forker, NULL);
	if (!strcmp(mode, "spawn")) {
		pthread_create(&thread, NULL, spawner, NULL);
		usleep(300000);
	}
	if (!strcmp(mode, "huge")) {
		what = mmap(NULL, 1ul << 44, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (what == MAP_FAILED)
			exit(77);
	}
	if (!strcmp(mode, "workers") || !strcmp(mode, "many"))
		for (long i = 1; i <= (mode[0] == 'm' ? 120 : 3); i++)
			pthread_create(&thread, NULL, worker, (void *)i);
	say_ready(what);
	if (!strcmp(mode, "workers") || !strcmp(mode, "many"))
		worker(NULL);
	for (;;) {
		if (strcmp(mode, "crowd"))
			work(3, &here);
		usleep(500);
	}
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
	if (!strcmp(mode, "slow vfork")) {
		if (!vfork()) {
			sleep(6);
			_exit(0);
		}
	}
	if (!strcmp(mode, "crowd") || !strcmp(mode, "forks") || !strcmp(mode, "spawn") || !strcmp(mode, "huge") ||
	    !strcmp(mode, "workers") || !strcmp(mode, "many"))
		stay(mode);
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


# Of each gdb. On a busy machine a stub may need more than gdb's two seconds for its first answer.
SETTINGS = ['set confirm off', 'set pagination off', 'set width 0', 'set sysroot /', 'set remotetimeout 60']


def words_of(commands):
    return [word for command in (*SETTINGS, *commands) for word in ('-ex', command)]


def gdb(*commands, seconds=90):
    """Its Result; a program that is served by stdio writes to `err`, as under gdbserver."""
    return run(program('gdb'), '-nx', '-batch', *words_of(commands), './app', env=ENVIRONMENT, seconds=seconds)


def by_stdio(app, *commands, options='--once', seconds=90):
    return gdb(f'target remote | {SERVER} {options} stdio {app}', *commands, seconds=seconds)


def start_batch(commands, *app):
    """As gdb(), which is waited for later; perhaps without a program's file."""
    return start(program('gdb'), '-nx', '-batch', *words_of(commands), *app, env=ENVIRONMENT)


def start_gdb(*commands):
    return start(program('gdb'), '-nx', '-q', *words_of(commands), './app', env=ENVIRONMENT)


def listen(*words, options=('--once', ), server=SERVER):
    """kymo-gdbserver, or another server, on a port of its own choice; the process, and the port."""
    server = start(server, *options, *words)
    return server, int(server.wait_for(r'^Listening on port (\d+)$', 1).group(1))


def hub_of(stub):
    """The process that traces, behind the one that was started."""
    return eventually(lambda: children(stub.pid), 'the stub has a hub')[0]


def kill_hub(stub):
    """What the keeper is for."""
    os.kill(hub_of(stub), signal.SIGKILL)
    check_matches(stub.end().ended(1).err, r'was ended by signal 9 \(Killed\): gdb has no connection any more$')


def kill_front(stub, kills_group=False):
    """What a user kills. The hub lets go of what it traces."""
    hub = hub_of(stub)
    if kills_group:
        os.killpg(stub.pid, signal.SIGKILL)
    stub.kill()
    eventually(lambda: state_of(hub) in ('gone', 'Z'), 'the hub has let go')


def loop(tmp, mode='loop'):
    process = start('./app', mode)
    process.wait_for('^ready')
    return process


def offer(*words, env=None, **options):
    """kymo gdb; the process, and the path of its socket."""
    stub = start(KYMO, 'gdb', *words, env=env, **options)
    path = stub.wait_for(r'^  target remote (\S+)$').group(1)
    at_end(shutil.rmtree, os.path.dirname(path), True)  # a killed stub leaves it
    return stub, path


def advances(process):
    """It is not stopped: its CPU time or its calls go on."""
    def count():
        text = Path(f'/proc/{process.pid}/status').read_text()
        return int(re.search(r'^voluntary_ctxt_switches:\s*(\d+)', text, re.MULTILINE).group(1))

    before = count()
    eventually(lambda: count() > before + 5, 'the program runs on')
    check(process.is_alive(), 'the program lives')


def end(process):
    os.kill(process.pid, signal.SIGTERM)


def packet(text):
    data = text.encode('latin-1')
    return b'$' + data + b'#%02x' % (sum(data) & 0xff)


class Client:
    """One that speaks the protocol by hand, at a path or a port."""
    def __init__(self, where):
        if isinstance(where, int):
            self.socket = socket.create_connection(('127.0.0.1', where))
        else:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(where)
        self.socket.settimeout(30)
        self.buffer = b''
        self.notifications = []

    def send(self, data):
        self.socket.sendall(data)

    def take(self):
        """The next packet ('$') or notification ('%'), and its data."""
        while not (found := re.search(rb'([$%])([^#]*)#..', self.buffer, re.DOTALL)):
            part = self.socket.recv(65536)
            check(part, 'the stub answers')
            self.buffer += part
        self.buffer = self.buffer[found.end():]
        data = re.sub(rb'(.)\*(.)', lambda run: run.group(1) * (run.group(2)[0] - 28), found.group(2), flags=re.DOTALL)
        return found.group(1).decode(), data.decode('latin-1')

    def acknowledge(self):
        """A stub that writes does not read meanwhile: where there is no room for the sign, it has more to say."""
        while not select.select([], [self.socket], [], 0)[1]:
            part = self.socket.recv(65536)
            check(part, 'the stub goes on')
            self.buffer += part
        self.send(b'+')

    def reply(self):
        while True:
            lead, data = self.take()
            if lead == '$':
                self.acknowledge()
                return data
            self.notifications.append(data)

    def notification(self):
        """The stop that the next one tells."""
        while not self.notifications:
            lead, data = self.take()
            check_equal(lead, '%', f'a notification, not {data}')
            self.notifications.append(data)
        text = self.notifications.pop(0)
        check_equal(text[:5], 'Stop:', 'what a notification is of')
        return text[5:]

    def stops(self, n=None):
        """What a notification tells, and all that vStopped gets after it; as many as are wanted."""
        told = []
        while n is None or len(told) < n:
            told.append(self.notification())
            while (reply := self.ask('vStopped')) != 'OK':
                told.append(reply)
            if n is None:
                break
        return told

    def is_quiet(self, seconds=0.3):
        """No notification comes for that long."""
        self.socket.settimeout(seconds)
        try:
            lead, data = self.take()
            check_equal(lead, '%', f'a notification, not {data}')
            self.notifications.append(data)
        except TimeoutError:
            pass
        finally:
            self.socket.settimeout(30)
        return not self.notifications

    def ask(self, text):
        self.send(packet(text))
        return self.reply()

    def begin(self, features='multiprocess+;swbreak+'):
        self.ask(f'qSupported:{features}')
        return self.ask('?')

    def interrupt(self):
        self.send(b'\x03')
        return self.reply()

    def word(self, address):
        return int.from_bytes(bytes.fromhex(self.ask(f'm{address:x},8')), 'little')

    def close(self):
        self.socket.close()


def go_past(client, site, condition=''):
    """As gdb goes on from a hit: the thread of the last stop makes a step without the breakpoint. With it the thread would
    have the hit again."""
    check_equal(client.ask(f'z0,{site:x},1'), 'OK', 'removed')
    reply = client.ask('vCont;s:' + client.ask('qC')[2:])
    check_equal(client.ask(f'Z0,{site:x},1{condition}'), 'OK', 'inserted again')
    return reply


def thread_of(reply):
    """The id of a thread, of a stop reply with multiprocess."""
    return int(re.search(r'thread:p[0-9a-f]+\.([0-9a-f]+);', reply).group(1), 16)


def address_of(pid, symbol):
    offset = next(
        int(line.split()[0], 16) for line in run('nm', './app').ok().out.splitlines() if line.split()[-1] == symbol)
    base = next(
        int(line.split('-')[0], 16) for line in Path(f'/proc/{pid}/maps').read_text().splitlines()
        if line.endswith('/app'))
    return base + offset


def threads_of(pid):
    """All but the first."""
    return sorted(int(name) for name in os.listdir(f'/proc/{pid}/task') if int(name) != pid)


def send_to_thread(pid, tid, number):
    check(ctypes.CDLL(None).syscall(234, pid, tid, number) == 0, f'thread {tid} gets signal {number}')


def state_of(pid):
    try:
        return Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return 'gone'
