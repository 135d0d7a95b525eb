"""Services that clients use while probes go into them and out of them, again and again: every answer is right, and
what was recorded is what was asked for."""
import os
import shutil
import signal
import socket
import threading

import processes
import remains
from kymotest import (KYMO, babeltrace, check, check_equal, check_same, check_text_intact, check_untraced, eventually,
                      program, report_json, skip, start)

ROUNDS = 5
SYS_EPOLL_WAIT = 232


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def is_listening(port):
    try:
        socket.create_connection(('127.0.0.1', port), 5).close()
        return True
    except OSError:
        return False


class Load:
    """Threads that call work(number, i) for i = 0, 1, … until the end. What goes wrong in one is told by stop()."""
    def __init__(self, n_threads, work):
        self.work, self.ending, self.errors = work, False, []
        self.done = [0] * n_threads
        self.threads = [threading.Thread(target=self.run, args=[number], daemon=True) for number in range(n_threads)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        try:
            while not self.ending:
                self.work(number, self.done[number])
                self.done[number] += 1
        except Exception as error:
            self.errors.append(f'client {number}, request {self.done[number]}: {type(error).__name__}: {error}')

    def progress(self, more):
        """Let each client make so many requests more."""
        goals = [done + more for done in self.done]
        eventually(lambda: self.errors or all(map(int.__ge__, self.done, goals)), 'clients get answers')

    def stop(self):
        self.ending = True
        for thread in self.threads:
            thread.join(30)
        check_equal(self.errors, [], 'what clients complain about')
        return sum(self.done)


class Recorders:
    """One recorder for each of the processes, all at once."""
    def __init__(self, name, pids, *specs):
        self.directories = [f'{name}.{pid}' for pid in pids]
        self.recorders = [
            start(KYMO, 'record', '-o', directory, *(word for spec in specs for word in ('-p', spec)), '--pid', pid)
            for directory, pid in zip(self.directories, pids)
        ]
        for recorder in self.recorders:
            recorder.wait_for(r'^kymo: recording process', 1)

    def end(self):
        for recorder in self.recorders:
            recorder.signal(signal.SIGINT)
        for recorder in self.recorders:
            check_equal(recorder.end().status, 0, f'exit status of {recorder.command}\n{recorder.err}')
        return [report_json(directory) for directory in self.directories]


def check_complete(reports):
    for report in reports:
        check_equal(report['lost_events'], 0, 'lost events')
        check_equal(sum(1 for _ in babeltrace(report['directory'])), report['events'], 'events by babeltrace2')


def count(reports, name):
    return sum(probe['count'] for report in reports for probe in report['probes'] if probe['name'] == name)


def mapped(pid):
    """What executable files and what of kymo's a process has mapped; a heap may grow meanwhile."""
    return [
        mapping.line for mapping in processes.maps(pid)
        if 'x' in mapping.permissions or mapping.path.startswith(remains.MEMFD)
    ]


def exercise(pids, specs, load, ask, counted, settle=lambda: None):
    """Rounds of recording under load; in between, of `ask(n)` alone, which passes the probe `counted` n times exactly,
    after `settle()`."""
    ask(20)  # a server that has answered has loaded what it loads late
    before = [mapped(pid) for pid in pids]
    for i in range(ROUNDS):
        clients = Load(4, load)
        clients.progress(20)
        recorders = Recorders(f'busy{i}', pids, *specs)
        clients.progress(50)
        check_complete(recorders.end())
        clients.progress(20)
        check(clients.stop() >= 4 * 90, 'clients got answers')
        settle()
        recorders = Recorders(f'asked{i}', pids, *specs)
        ask(100 + i)
        reports = recorders.end()
        check_complete(reports)
        check_equal(count(reports, counted), 100 + i, f'hits of {counted}')
    for pid, maps in zip(pids, before):
        check_untraced(pid)
        check_text_intact(pid)
        check_same(mapped(pid), maps, f'executable mappings of {pid}')


# ---- redis ---------------------------------------------------------------------------------------


class Redis:
    def __init__(self, port):
        self.socket = socket.create_connection(('127.0.0.1', port), 30)
        self.file = self.socket.makefile('rwb')

    def __call__(self, *words):
        words = [word.encode() if isinstance(word, str) else word for word in words]
        self.file.write(b'*%d\r\n' % len(words) + b''.join(b'$%d\r\n%s\r\n' % (len(word), word) for word in words))
        self.file.flush()
        return self.answer()

    def answer(self):
        line = self.file.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b'$':
            return None if rest == b'-1' else self.file.read(int(rest) + 2)[:-2]
        if kind == b'*':
            return [self.answer() for _ in range(int(rest))]
        check(kind in b'+:' and kind, 'redis says no', line)
        return int(rest) if kind == b':' else rest

    def close(self):
        self.file.close()
        self.socket.close()


def test_redis_answers_rightly_while_recordings_begin_and_end(tmp):
    port = free_port()
    server = start(program('redis-server'), '--port', port, '--bind', '127.0.0.1', '--dir', tmp, '--save', '')
    eventually(lambda: is_listening(port), 'redis listens')
    clients = [Redis(port) for _ in range(5)]

    def load(number, i):
        redis, key, value = clients[number], f'key{number}.{i % 100}', os.urandom(i * 37 % 5000)
        check_equal(redis('SET', key, value), b'OK')
        check_equal(redis('GET', key), value)
        check_equal(redis('INCR', f'counter{number}'), counters[number] + 1)
        counters[number] += 1
        check_equal(redis('LPUSH', f'list{number}', 'a', 'b', 'c'), 3)
        check_equal(redis('LRANGE', f'list{number}', '0', '-1'), [b'c', b'b', b'a'])
        check_equal(redis('DEL', f'list{number}'), 1)

    def ask(n):
        clients[4]('SET', 'asked', '0')
        for i in range(n - 3):
            check_equal(clients[4]('INCR', 'asked'), i + 1)
        clients[4]('BGSAVE')  # a child that writes all while it is recorded
        clients[4]('PING')

    def settle():
        """While it saves it refuses to begin that anew."""
        eventually(lambda: b'rdb_bgsave_in_progress:0' in clients[4]('INFO', 'persistence'), 'the child ends')

    counters = [0] * 4
    exercise([server.pid], [
        'redis-server:processCommand', 'redis-server:call', 'libc:read fd=%di:s32 n=%dx:u64', 'libc:write',
        'libc:epoll_wait'
    ], load, ask, 'redis-server:processCommand', settle)
    settle()
    check(b'rdb_last_bgsave_status:ok' in clients[4]('INFO', 'persistence'), 'the child did well')
    check((tmp / 'dump.rdb').stat().st_size > 100, 'dump.rdb')
    for client in clients:
        client.close()
    check_equal(server.end(signal.SIGTERM).status, 0, 'exit status')


# ---- nginx ---------------------------------------------------------------------------------------

NGINX = '''
daemon off;
{user}
worker_processes 2;
pid {tmp}/nginx.pid;
error_log stderr;
events {{ worker_connections 64; }}
http {{
	access_log off;
	client_body_temp_path {tmp}/body;
	proxy_temp_path {tmp}/proxy;
	fastcgi_temp_path {tmp}/fastcgi;
	uwsgi_temp_path {tmp}/uwsgi;
	scgi_temp_path {tmp}/scgi;
	gzip on;
	gzip_types *;
	server {{
		listen 127.0.0.1:{port};
		root {tmp}/files;
	}}
}}
'''


def get(port, name, headers=''):
    """Status and body of a request on a connection of its own."""
    with socket.create_connection(('127.0.0.1', port), 30) as connection:
        connection.sendall(f'GET /{name} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n{headers}\r\n'.encode())
        data = b''
        while part := connection.recv(65536):
            data += part
    head, _, body = data.partition(b'\r\n\r\n')
    return int(head.split()[1]), body


def test_nginx_answers_rightly_while_recordings_begin_and_end(tmp):
    nginx = shutil.which('nginx', path=os.environ['PATH'] + ':/usr/sbin') or skip('nginx is not installed')
    files = {f'file{n}.txt': os.urandom(n * 1001) for n in range(1, 30)}
    (tmp / 'files').mkdir()
    for name, content in files.items():
        (tmp / 'files' / name).write_bytes(content)
    port = free_port()
    (tmp / 'conf').write_text(NGINX.format(tmp=tmp, port=port, user='' if os.getuid() else 'user root root;'))
    server = start(nginx, '-c', tmp / 'conf', '-p', tmp)
    eventually(lambda: not server.is_alive() or is_listening(port), 'nginx listens')
    if not server.is_alive():
        skip(f'nginx does not start: {server.err.strip().splitlines()[-1]}')
    eventually(lambda: [processes.call(pid) for pid in processes.children(server.pid)] == [SYS_EPOLL_WAIT] * 2,
               'two workers wait for requests')
    names = list(files)

    def load(number, i):
        name = names[(i * 5 + number) % len(names)]
        check_equal(get(port, name), (200, files[name]))
        check_equal(get(port, 'nothing')[0], 404)

    def ask(n):
        for i in range(n):
            name = names[i % len(names)]
            check_equal(get(port, name), (200, files[name]))

    exercise(
        sorted(processes.children(server.pid)),
        ['nginx:ngx_http_process_request', 'nginx:ngx_http_finalize_*', 'libc:recv', 'libc:sendfile*', 'libc:writev'],
        load, ask, 'nginx:ngx_http_process_request')
    check_equal(server.end(signal.SIGQUIT).status, 0, 'exit status')
