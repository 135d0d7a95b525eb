"""gdb's "info os": what a stub says of the machine, beside what /proc and gdbserver say."""
import os
import pwd
import re
import shutil
import signal
import xml.etree.ElementTree
from pathlib import Path

from debugging import SERVER, Client, build, by_stdio, listen, loop, packet, threads_of
from kymotest import (NOBODY, alone, at_end, check, check_equal, check_matches, eventually, need_root, program, run,
                      skip, start)

STRANGE = 'a) <b> &"c"'
# Reads of a FUSE file get no answer. A child of the user argv[2] has a page of the file locked by a read, and maps the
# file then: the kernel
# takes the lock of its memory, and waits for that page.
HELD = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>
static void *reader(void *data)
{
	char byte;
	read(open("file", O_RDONLY), &byte, 1);
	return data;
}
static void be_held(const char *mount, int start, int user)
{
	pthread_t thread;
	char byte;
	prctl(PR_SET_NAME, "held");
	if (chdir(mount) || setresgid(user, user, user) || setresuid(user, user, user))
		_exit(1);
	pthread_create(&thread, NULL, reader, NULL);
	read(start, &byte, 1); /* a page is locked */
	mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, open("file", O_RDONLY), 0);
	_exit(1);
}
static void answer(int fd, unsigned long id, int error, const void *data, size_t size)
{
	struct fuse_out_header head = { .len = sizeof(head) + size, .error = -error, .unique = id };
	struct iovec parts[] = { { &head, sizeof(head) }, { (void *)data, size } };
	writev(fd, parts, 2);
}
static int maps(int pid)
{
	char name[64], text[8] = "";
	snprintf(name, sizeof(name), "/proc/%d/syscall", pid);
	int fd = open(name, O_RDONLY);
	read(fd, text, sizeof(text) - 1);
	close(fd);
	return !strncmp(text, "9 ", 2);
}
int main(int argc, char **argv)
{
	static char buffer[1 << 20];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC), start[2], opens = 0, pid;
	struct fuse_attr file = { .ino = 2, .size = 4096, .mode = 0100644, .nlink = 1 }, root = { .ino = 1, .mode = 040755, .nlink = 2 };
	char options[128];
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", fd);
	alarm(100);
	if (fd < 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("held", argv[1], "fuse", MS_NOSUID | MS_NODEV, options) || pipe(start))
		return 77;
	if (!(pid = fork())) {
		close(fd);
		be_held(argv[1], start[0], atoi(argv[2]));
	}
	while (read(fd, buffer, sizeof(buffer)) > 0) {
		struct fuse_in_header *in = (void *)buffer;
		struct fuse_init_in *hello = (void *)(in + 1);
		struct fuse_init_out init = { .major = 7, .minor = 31, .max_readahead = 4096, .max_write = 4096 };
		struct fuse_entry_out entry = { .nodeid = 2, .attr = file, .entry_valid = 1000, .attr_valid = 1000 };
		struct fuse_attr_out attributes = { .attr_valid = 1000, .attr = in->nodeid == 1 ? root : file };
		struct fuse_open_out opened = { .open_flags = FOPEN_KEEP_CACHE | (opens ? FOPEN_DIRECT_IO : 0) };
		if (in->opcode == FUSE_INIT)
			answer(fd, in->unique, 0, &init, sizeof(init));
		else if (in->opcode == FUSE_LOOKUP)
			answer(fd, in->unique, 0, &entry, sizeof(entry));
		else if (in->opcode == FUSE_GETATTR)
			answer(fd, in->unique, 0, &attributes, sizeof(attributes));
		else if (in->opcode == FUSE_READ)
			write(start[1], "", 1);
		else if (in->opcode == FUSE_OPEN) {
			answer(fd, in->unique, 0, &opened, sizeof(opened));
			if (opens++)
				break;
		} else if (in->opcode == FUSE_ACCESS)
			answer(fd, in->unique, ENOSYS, NULL, 0);
	}
	while (!maps(pid))
		usleep(1000);
	printf("ready %d\n", pid);
	fflush(stdout);
	pause();
}
"""


def read(client, type, size=0x1000):
    """An object in parts, as gdb reads it."""
    document, reply = '', 'm'
    while reply[0] == 'm':
        reply = client.ask(f'qXfer:osdata:read:{type}:{len(document):x},{size:x}')
        check(reply[0] in 'ml', 'an object', reply)
        document += re.sub(r'\}(.)', lambda escape: chr(ord(escape[1]) ^ 0x20), reply[1:], flags=re.DOTALL)
    return document


def rows(client, type):
    root = xml.etree.ElementTree.fromstring(read(client, type))
    return [{column.get('name'): column.text for column in item} for item in root]


def of(rows, pid):
    return [row for row in rows if row['pid'] == str(pid)]


def test_lists_of_processes_threads_and_files(tmp):
    build(tmp)
    shutil.copy('app', STRANGE)
    process = start('./' + STRANGE, 'crowd')
    process.wait_for('^ready')
    server, port = listen(':0', './app')
    client = Client(port)
    check('qXfer:osdata:read+' in client.ask('qSupported:'), 'osdata is offered')
    cpus = {str(cpu) for cpu in range(os.cpu_count())}
    (row, ) = of(rows(client, 'processes'), process.pid)
    check(set(row.pop('cores').split(',')) <= cpus, 'its CPUs')
    user = pwd.getpwuid(os.geteuid()).pw_name
    check_equal(row, {'pid': str(process.pid), 'user': user, 'command': f'./{STRANGE} crowd '}, 'the process')
    threads = of(rows(client, 'threads'), process.pid)
    check(all(thread.pop('core') in cpus for thread in threads), 'their CPUs')
    check_equal(threads, [{'pid': str(process.pid), 'command': STRANGE, 'tid': str(tid)}
                          for tid in [process.pid, *threads_of(process.pid)]], 'its threads')
    files = of(rows(client, 'files'), process.pid)
    check_equal({file['file descriptor']: file['name'] for file in files},
                {fd: os.readlink(f'/proc/{process.pid}/fd/{fd}') for fd in os.listdir(f'/proc/{process.pid}/fd')},
                'its files')
    groups = rows(client, 'procgroups')
    check_equal([int(row['pgid']) for row in groups], sorted(int(row['pgid']) for row in groups), 'groups, in order')
    (row, ) = of(groups, process.pid)
    group = os.getpgid(process.pid)
    check_equal(
        row, {
            'pgid': str(group), 'leader command': Path(f'/proc/{group}/comm').read_text().strip(), 'pid': str(
                process.pid), 'command line': f'./{STRANGE} crowd '
        }, 'its group')
    client.close()
    server.end()


def test_types_are_listed_and_others_are_empty(tmp):
    build(tmp)
    server, port = listen(':0', './app')
    client = Client(port)
    client.begin()
    types = rows(client, 'types')
    check_equal(read(client, ''), read(client, 'types'), 'what no type means')
    for row in types:
        check_equal(set(row), {'Type', 'Description', 'Title'}, 'columns')
        check(read(client, row['Type'], 0x4000).startswith('<osdata type="'), f'there are {row["Type"]}')
    check(len(types) >= 4, 'types', types)
    for type in ('nosuch', 'processe', 'processes2', 'types;'):
        check_equal(read(client, type), '', f'the list of {type}')
    for text in ('read:', 'read:types', 'read:types:0', 'read:types:0,', 'read:types:0,10;', 'read:types:x,10'):
        check_equal(client.ask('qXfer:osdata:' + text)[:1], 'E', f'answer to {text}')
    check_equal(client.ask('qXfer:osdata:write:types:0:00'), '', 'writing')
    client.close()
    server.end()


def test_gdb_shows_them(tmp):
    build(tmp)
    process = loop(tmp)
    out = by_stdio('./app', 'info os', 'info os processes', 'info os threads', 'kill').ok().out
    check_matches(out, r'^processes +Listing of all processes *$')
    check_matches(out, rf'^{process.pid} +\S+ +\./app loop +[\d,]+ *$')
    check_matches(out, rf'^{process.pid} +app +{process.pid} +\d+ *$')


def test_cpus_have_what_the_kernel_says(tmp):
    build(tmp)
    server, port = listen('localhost:0', './app')
    client = Client(port)
    client.begin()
    theirs = [
        dict((part.strip() for part in line.split(':', 1)) for line in cpu.splitlines())
        for cpu in Path('/proc/cpuinfo').read_text().strip().split('\n\n')
    ]
    ours = [{name: value or '' for name, value in cpu.items()} for cpu in rows(client, 'cpus')]
    for cpu in theirs + ours:
        cpu.pop('cpu MHz', None)
    check_equal(ours, theirs, 'CPUs')
    client.close()
    server.end()


def test_lists_are_those_of_gdbserver(tmp):
    """Of a process that stays; which CPUs its threads have run on, and how fast, is another matter each time."""
    theirs = shutil.which('gdbserver')
    if not theirs:
        skip('gdbserver is not installed')
    build(tmp)
    process = loop(tmp, 'crowd')
    lists = []
    for name in (SERVER, theirs):
        server, port = listen('localhost:0', './app', server=name)
        client = Client(port)
        client.begin()
        lists.append([of(rows(client, type), process.pid) for type in ('processes', 'threads', 'files', 'procgroups')])
        lists[-1].append([{name: (value or '').strip() for name, value in cpu.items()} for cpu in rows(client, 'cpus')])
        client.send(packet('k'))
        client.close()
        server.end()
    for row in (row for list in lists for rows_of_type in list for row in rows_of_type):
        row.pop('core', None), row.pop('cores', None), row.pop('cpu MHz', None)
    check_equal(lists[0], lists[1], 'lists')


def test_a_long_command_line_has_its_beginning(tmp):
    build(tmp)
    process = start('./app', 'crowd', 'x' * 100000)
    process.wait_for('^ready')
    server, port = listen('localhost:0', './app')
    client = Client(port)
    client.begin()
    for type, column in (('processes', 'command'), ('procgroups', 'command line')):
        (row, ) = of(rows(client, type), process.pid)
        check(row[column] == './app crowd '.ljust(4096, 'x'), f'4 KiB of its words, and not {len(row[column])}')
    client.close()
    server.end()


@alone
def test_a_process_of_another_user_that_holds_its_memory_holds_no_stub(tmp):
    """A read of its command line would wait for its file system."""
    need_root()
    build(tmp)
    (tmp / 'held.c').write_text(HELD)
    run(program('gcc'), '-O1', '-w', '-pthread', '-o', 'held', 'held.c', seconds=60).ok()
    (tmp / 'mount').mkdir()
    (tmp / 'mount').chmod(0o755)
    server = start('./held', tmp / 'mount', NOBODY)
    eventually(lambda: server.out or not server.is_alive(), 'it is ready')
    if server.popen.poll() == 77:
        skip('no FUSE here')
    held = int(server.wait_for(r'^ready (\d+)$').group(1))
    process = loop(tmp)
    stub, port = listen('localhost:0', './app')
    client = Client(port)
    client.begin()
    for type, column in (('processes', 'command'), ('procgroups', 'command line')):
        list = rows(client, type)
        check_equal([row[column] for row in of(list, held)], ['[held]'], 'its name')
        check_equal([row[column] for row in of(list, process.pid)], ['./app loop '], 'the words of a process of ours')
    check_equal({row['command'] for row in of(rows(client, 'threads'), held)}, {'held'}, 'its threads')
    check_equal({row['command'] for row in of(rows(client, 'files'), held)}, {'held'}, 'its files')
    client.send(packet('k'))
    client.close()
    stub.end()


MADE = r"""
#include <stdio.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>
int main(void)
{
	int shm = shmget(IPC_PRIVATE, 4096, 0640), sem = semget(IPC_PRIVATE, 3, 0600), msg = msgget(IPC_PRIVATE, 0666);
	struct { long type; char text[5]; } message = { 1, "text" };
	shmdt(shmat(shm, NULL, 0));
	msgsnd(msg, &message, sizeof(message.text), 0);
	printf("ready %d %d %d\n", shm, sem, msg);
	fflush(stdout);
	read(0, message.text, 1);
	shmctl(shm, IPC_RMID, NULL);
	semctl(sem, 0, IPC_RMID);
	msgctl(msg, IPC_RMID, NULL);
	return 0;
}
"""


@alone
def test_what_is_no_processes_is_listed_as_by_gdbserver(tmp):
    """Shared memory, semaphores, queues, modules and sockets."""
    build(tmp)
    (tmp / 'made.c').write_text(MADE)
    run('gcc', '-w', '-o', tmp / 'made', tmp / 'made.c').ok()
    made = start('./made')
    at_end(made.end)
    ids = made.wait_for(r'^ready (\d+) (\d+) (\d+)$').groups()
    texts = {}
    for name in 'ours', 'theirs':
        server, port = listen('localhost:0', './app', server=SERVER if name == 'ours' else program('gdbserver'))
        client = Client(port)
        client.begin('xmlRegisters=i386')
        texts[name] = {type: rows(client, type) for type in ('shm', 'semaphores', 'msg', 'modules', 'sockets')}
        client.close()
        server.end(signal.SIGTERM)
    made.end().ended(0)
    for type, key, id in zip(('shm', 'semaphores', 'msg'), ('shmid', 'semid', 'msqid'), ids):
        ours, theirs = ([{column: (value or '').strip() for column, value in row.items()} for row in texts[name][type]
                         if row[key] == id] for name in ('ours', 'theirs'))  # its times end with a newline
        check_equal(ours, theirs, type)
        check_equal(len(ours), 1, f'items of {type}')
    check_equal(texts['ours']['modules'], texts['theirs']['modules'], 'modules')
    listening = [[row for row in texts[name]['sockets'] if row['state'] == 'LISTEN'] for name in ('ours', 'theirs')]
    for row in listening[1]:
        check(row in listening[0] or row['local address'] == '127.0.0.1', 'a socket that listens', row, listening[0])
