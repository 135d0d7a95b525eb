"""Programs that people run, under strace and by each of kymo's ways: the same lines. What a way says otherwise is in
DIFFERENCES, with the reason, and nothing else may differ; a difference that is not seen any more fails, too. What
differs between any two runs, with any tracer, is beside each program, with the reason; straced.py has what is so
everywhere.

A way is a function that has a command traced and gives the lines as strace's `-f -o FILE` has them; of a recording
the report has them, without signals and ends, which are no calls.
"""
import os
import random
import re
import shutil
import signal
import socket
from pathlib import Path

import processes
from kymotest import KYMO, check, check_equal, check_same, eventually, need_root, program, run, start, timeout, waits
from recorded_lines import calls_of, shown
from straced import CHILDREN, PYTHON_ENV, Chance, Difference, build, check_compared, whole_lines

HERE = Path(__file__).parent
SH = program('sh')
PYTHON = '/usr/bin/python3'
SYS_PAUSE = 34

SIGCHLD = Chance(
    r'^--- SIGCHLD .*', '',
    'nobody handles it; the tracepoints tell one that has waited while signals were blocked, as around fork, and no other'
)
NOT_HANDLED = 'a signal that nobody handles is ignored, or ends the process: the kernel delivers nothing, and its tracepoints tell what is delivered'
LONG_NAME = Difference(r'(prctl\(PR_SET_NAME, "[^"]{15}")\.\.\.(\) = 0)', r'\1\2',
                       'a name of 15 bytes is whole; strace does not look at the NUL behind it')
MANY_ENTRIES = Difference(r'(getdents64\(\d+, ADDRESS) /\* \d+ entries \*/(, 32768\) = (?:1[7-9]|[23]\d)\d{3})',
                          r'\1\2', 'more than 16 KiB of entries are not copied')
DIFFERENCES = {
    'hub': {'long name': [LONG_NAME], }, 'recorded': {'long name': [LONG_NAME], 'many entries': [MANY_ENTRIES], },
    'kernel': {
        'long name': [LONG_NAME], 'children': [
            Difference(r'--- SIGCHLD \{.*\} ---', '', NOT_HANDLED,
                       unless=r'^rt_sigaction\(SIGCHLD, \{sa_handler=ADDRESS')
        ], 'death': [Difference(r'--- SIG(TERM|KILL) \{.*\} ---', '', NOT_HANDLED)], 'many entries': [MANY_ENTRIES],
        'end of all': [
            Difference(
                r'(pause\(\)) = \?', r'\1 = ? ERESTARTNOHAND (To be restarted if no handler)',
                'where exit_group of another thread ends it, the call returns into its end, and the tracepoint tells it'
            )
        ],
    },
}


def write_traced(tmp, name, tracer, command, **how):
    """Started; its lines are in the file that is returned."""
    (tmp / 'traces').mkdir(exist_ok=True)  # programs that look at their directory find the same there
    output = tmp / 'traces' / name
    # The layout of memory is the same for all, as it decides how often a program asks for more.
    follows = () if tracer[:2] == (KYMO, 'record') else ('-f', )
    return start(program('setarch'), '-R', *tracer, *follows, '-o', output, *command, **how), output


def strace():
    return program('strace'), '-q'


def hub():
    return KYMO, 'syscalls'


def kernel():
    need_root()
    return KYMO, 'syscalls', '--backend', 'kernel'


def recorded():
    return KYMO, 'record', '-q', '-s', 'all', '--backend', 'ptrace'


WAYS = {'hub': hub, 'kernel': kernel, 'recorded': recorded}


def lines_of(way, tracer, output):
    if tracer is recorded:
        return shown(directory=output)
    text = output.read_text(errors='backslashreplace')
    return calls_of(text) if way == 'recorded' else text


def check_way(way, tmp, command, differences=(), chances=(), at_least=1, options=(), each_once=False, is_ok=True,
              meanwhile=None, **how):
    """The program under strace and by this way. `meanwhile(process)` is what others do while it runs. It ends alike,
    and well if `is_ok`."""
    texts, statuses = [], []
    for tracer in (strace, WAYS[way]):
        process, output = write_traced(tmp, tracer.__name__, (*tracer(), *options),
                                       command() if callable(command) else command, **how)
        if meanwhile:
            meanwhile(process)
        result = process.end(seconds=110)
        statuses.append(result.status if result.status >= 0 else 128 - result.status)
        check(not is_ok or result.status == 0, 'it ends well', result)
        texts.append(lines_of(way, tracer, output))
    check_equal(statuses[1], statuses[0], 'exit status')
    listed = [difference for name in differences for difference in DIFFERENCES[way].get(name, ())]
    check_compared(*texts, differences=listed, chances=chances, at_least=at_least, each_once=each_once)


# ---- ls ------------------------------------------------------------------------------------------


def some_documents(n):
    """The first directories of /usr/share/doc, with one that has more entries than one call gives."""
    names = sorted(path for path in Path('/usr/share/doc').iterdir() if path.is_dir() and not path.is_symlink())
    return names[:n]


def big_directory(tmp):
    (tmp / 'big').mkdir()
    for i in range(700):
        (tmp / 'big' / f'a-file-with-a-name-{i:04}').touch()
    return tmp / 'big'


def check_ls(way, tmp):
    check_way(way, tmp, [program('ls'), '-lR', big_directory(tmp), *some_documents(20)], ['many entries'],
              at_least=2200)


def test_ls_by_the_tracer(tmp):
    check_ls('hub', tmp)


def test_ls_by_the_kernel(tmp):
    check_ls('kernel', tmp)


def test_ls_recorded_by_tracing(tmp):
    check_ls('recorded', tmp)


# ---- git -----------------------------------------------------------------------------------------


def repository(tmp):
    """With some text, branches, a merge, a rename and a pack."""
    git = [program('git'), '-C', tmp / 'repository', '-c', 'user.name=x', '-c', 'user.email=x@localhost']
    place, dice = tmp / 'repository', random.Random(1)
    place.mkdir()
    run(*git, 'init', '-q', '-b', 'main').ok()
    for i in range(8):
        for name in ('one', 'two', 'three'):
            (place / name).write_text(''.join(f'{name} {dice.randrange(9)}\n' for _ in range(200)))
        run(*git, 'add', '.').ok()
        run(*git, 'commit', '-q', '-m', f'number {i}').ok()
    run(*git, 'gc', '-q').ok()
    run(*git, 'checkout', '-q', '-b', 'other').ok()
    run(*git, 'mv', 'one', 'uno').ok()
    run(*git, 'commit', '-q', '-m', 'rename').ok()
    run(*git, 'checkout', '-q', 'main').ok()
    run(*git, 'merge', '-q', '--no-ff', '-m', 'merge', 'other').ok()
    return git


def check_git(way, tmp):
    git = repository(tmp)
    check_way(way, tmp, [*git, 'log', '-p', '--stat', '-M', '--all'], at_least=150)
    by_chance = way == 'kernel'
    check_way(way, tmp, [*git, 'fsck', '--no-progress'], [] if by_chance else ['children'],
              chances=[SIGCHLD] if by_chance else [], at_least=150)


def test_git_by_the_tracer(tmp):
    check_git('hub', tmp)


def test_git_by_the_kernel(tmp):
    check_git('kernel', tmp)


def test_git_recorded_by_tracing(tmp):
    check_git('recorded', tmp)


# ---- python --------------------------------------------------------------------------------------

SCRIPT = '''
import json, subprocess, threading, socket, os, select, signal, mmap, time
gate = threading.Barrier(4)
def work(n):
    os.getpgid(os.getpid())
    gate.wait()
threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
for thread in threads:
    thread.start()
gate.wait()
for thread in threads:
    thread.join()
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 3600)
signal.pause()
signal.setitimer(signal.ITIMER_REAL, 0)
print(subprocess.run(["/bin/cat", "-"], input=b"hello", stdout=subprocess.PIPE, preexec_fn=os.getppid).stdout)
subprocess.check_call("exit 0", shell=True)
os.mkdir("d"); open("d/x", "w").write("x" * 100); os.listdir("d"); os.rename("d/x", "d/y"); os.symlink("y", "d/z"); os.readlink("d/z"); os.chmod("d/y", 0o600)
os.utime("d/y", (1, 2)); os.truncate("d/y", 5); os.link("d/y", "d/l"); os.statvfs("/proc"); os.listxattr("d/y")
for name in ("l", "y", "z"):
    os.unlink("d/" + name)
os.rmdir("d")
a, b = socket.socketpair(); a.send(b"x"); b.recv(5); a.shutdown(socket.SHUT_WR); select.select([b], [], [], 1); a.close(); b.close()
poll = select.epoll(); r, w = os.pipe(); poll.register(r, select.EPOLLIN); os.write(w, b"12345"); poll.poll(1); os.readv(r, [bytearray(2), bytearray(9)]); poll.close()
s = socket.socket(socket.AF_INET6, socket.SOCK_STREAM); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.getsockopt(socket.SOL_SOCKET, socket.SO_TYPE); s.bind(("::1", 0)); s.close()
m = mmap.mmap(-1, 8192); m.madvise(mmap.MADV_DONTNEED); m.close()
pid = os.fork()
if not pid:
    os.setsid(); os.umask(0o22); os.nice(1); os.sched_getaffinity(0); os._exit(3)
print(os.waitpid(pid, 0)[1], os.sched_getscheduler(0), os.uname().sysname)
'''

PYTHON_CHANCES = [
    Chance(r'^poll\(.*', '', 'whether the child has closed its end already'), SIGCHLD,
    Chance(r'^futex\(.*', '', 'who waits for whom, and whether at all, depends on who is faster'),
    Chance(r'^restart_syscall\(.*', '', 'as above'),
    Chance(
        r'^(mmap\(NULL, (8392704|134217728|67108864), PROT_NONE|mprotect\(ADDRESS, 8388608|munmap\(ADDRESS, \d+\)|madvise\(ADDRESS, \d+, MADV_DONTNEED\)).*',
        '', 'the stack of a thread that has ended just now may be had again; where arenas begin is chance'),
    Chance(r'^brk\(.*', '', 'memory is asked for by who needs it first'),
]


def descendants(pid):
    return [each for child in processes.children(pid) for each in (child, *descendants(child))]


def end_its_pause(tracer):
    """By the signal of its clock, which might come before the pause."""
    def pauses(pid):
        """And is no process of kymo's, one of which pauses, too."""
        return processes.call(pid) == SYS_PAUSE and (
            status := processes.status(pid)).get('Name') == Path(PYTHON).name and status['State'][0] == 'S'

    pid, = eventually(lambda: [pid for pid in descendants(tracer.pid) if pauses(pid)], 'the program pauses', 60)
    os.kill(pid, signal.SIGALRM)


def check_python(way, tmp):
    check_way(way, tmp, [PYTHON, '-c', SCRIPT], chances=PYTHON_CHANCES, at_least=600, meanwhile=end_its_pause,
              env=PYTHON_ENV)


def test_python_by_the_tracer(tmp):
    check_python('hub', tmp)


def test_python_by_the_kernel(tmp):
    check_python('kernel', tmp)


def test_python_recorded_by_tracing(tmp):
    check_python('recorded', tmp)


# ---- servers -------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as one:
        one.bind(('127.0.0.1', 0))
        return one.getsockname()[1]


def remove(*paths):
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def says(path, text):
    return lambda: path.exists() and text in path.read_text()


REDIS_CHANCES = [
    Chance(r'"\d+:[MC] .*"\.\.\., \d+\) = \d+$', '"LINE OF THE LOG"',
           'its lines have the time and the process in them'),
    Chance(r'^(write\(\d+, )".*"\.\.\., \d+\) = \d+$', r'\1"LOGO OR REPLY"', 'the process stands in it'),
    Chance(r'^read\(\d+, "\d+ \(redis-server\) .*', 'read(STAT)', 'its own /proc/self/stat'),
    Chance(r'^read\(\d+, ".*"\.\.\., 4096\) = 4096', 'read(RANDOM)', '/dev/urandom'),
    Chance(
        r'^((openat|newfstatat|close|lseek|accept4|epoll_ctl|fcntl|setsockopt|getpeername|read|write)\(.*?)\b\d+\b',
        r'\1N',
        'it opens /proc/self/stat ten times a second, so which number a descriptor gets depends on when a client comes'
    ),
    Chance(r'^(close|newfstatat|lseek|fcntl|setsockopt|accept4)(\(.*) = \d+$', r'\1\2 = N', 'descriptors, as above'),
    Chance(r'^openat\((.*)\) = \d+$', r'openat(\1) = N', 'descriptors, as above'),
    Chance(r'epoll_(wait|ctl)\(.*', r'epoll_\1(…)', 'it waits for what is left of a tenth of a second; descriptors'),
    Chance(r'^futex\(.*', '', 'who waits for whom depends on who is faster'),
    Chance(r'st_size=\d+', 'st_size=SIZE', 'of the log'),
    Chance(r'^(madvise|munmap|mmap)\(.*', '', 'its allocator gives memory back by time'),
]


def check_redis(way, tmp):
    port = free_port()
    server = [
        program('redis-server'), '--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir',
        tmp, '--logfile', tmp / 'log'
    ]
    cli = [program('redis-cli'), '-p', port]

    def use(process):
        eventually(lambda: says(tmp / 'log', 'Ready to accept connections')() or not process.is_alive(), 'it serves',
                   60)
        for words in (['set', 'a', '1'], ['get', 'a'], ['lpush', 'list', 'x', 'y'], ['incr',
                                                                                     'a'], ['shutdown', 'nosave']):
            run(*cli, *words).ok()
        eventually(lambda: not process.is_alive(), 'it ends', 60)
        remove(tmp / 'log')

    check_way(way, tmp, server, ['long name'], chances=REDIS_CHANCES, at_least=150, each_once=True, meanwhile=use)


def check_redis_client(way, tmp):
    port = free_port()
    server = start(program('redis-server'), '--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no',
                   '--dir', tmp)
    server.wait_for('Ready to accept connections')
    check_way(way, tmp, [program('redis-cli'), '-p', port, 'set', 'key', 'value'], at_least=60)
    check_way(way, tmp, [program('redis-cli'), '-p', port, '--eval', '/dev/null'], at_least=60)
    server.end(signal.SIGTERM).ok()


def test_redis_by_the_tracer(tmp):
    check_redis('hub', tmp)
    check_redis_client('hub', tmp)


def test_redis_by_the_kernel(tmp):
    check_redis('kernel', tmp)
    check_redis_client('kernel', tmp)


def test_redis_recorded_by_tracing(tmp):
    check_redis('recorded', tmp)
    check_redis_client('recorded', tmp)


NGINX = '''
daemon off; worker_processes 1; error_log {tmp}/log notice; pid {tmp}/pid;
events {{ worker_connections 16; }}
http {{
	access_log off; client_body_temp_path {tmp}/b; proxy_temp_path {tmp}/p; fastcgi_temp_path {tmp}/f; uwsgi_temp_path {tmp}/u; scgi_temp_path {tmp}/s;
	server {{ listen 127.0.0.1:{port}; root {tmp}/html; sendfile on; }}
}}
'''
NGINX_CHANCES = [
    Chance(r'^write\(3, "\d{4}/\d\d/\d\d .*', 'write(LOG)', 'its lines have the time and processes in them'),
    Chance(r'^pwrite64\(\d+, "\d+\\n", \d+, 0\) = \d+', 'pwrite64(PID)', 'of the first process'),
    Chance(r'^fcntl\(\d+, F_SETOWN, \d+\)', 'fcntl(F_SETOWN)', 'the same'),
    Chance(r'(HTTP/1.1 200 OK.*?)"\.\.\., iov_len=\d+', r'\1"', 'the date'),
    Chance(r'(epoll_wait\(.*, )\d+(\) = )', r'\1TIME\2', 'what is left of a time limit'),
    Chance(r'\bdata=\{u32=\d+, u64=\d+\}', 'data=ADDRESS', 'of a connection'),
    Chance(r'^(recvfrom|recvmsg)\(.* = -1 EAGAIN .*', '', 'whether the client was faster'),
    Chance(r'^rt_sigsuspend\(.*|^wait4\(-1, .*|^gettid\(.*|^rt_sigreturn\(.*', '',
           'the end of the worker may come with the next signal'),
]


def check_nginx(way, tmp):
    port = free_port()
    (tmp / 'html').mkdir()
    (tmp / 'html/page').write_text('text ' * 1000)
    for path in (tmp / 'html', tmp / 'html/page'):
        path.chmod(0o755)
    (tmp / 'conf').write_text(NGINX.format(tmp=tmp, port=port))
    curl = program('curl')

    def use(process):
        eventually(lambda: says(tmp / 'log', 'start worker process ')() or not process.is_alive(), 'it serves', 60)
        for page in ('page', 'nothing', 'page'):
            # The server closes first, so the end of one connection never meets the start of the next in one wait.
            run(curl, '-s', '-H', 'Connection: close', f'http://127.0.0.1:{port}/{page}').ok()
        os.kill(int((tmp / 'pid').read_text()), signal.SIGQUIT)
        eventually(lambda: not process.is_alive(), 'it ends', 60)
        remove(tmp / 'log', *(tmp / name for name in 'bpfus'))

    check_way(way, tmp, [program('nginx'), '-c', tmp / 'conf'], chances=NGINX_CHANCES, at_least=200, meanwhile=use)


def test_nginx_by_the_tracer(tmp):
    check_nginx('hub', tmp)


def test_nginx_by_the_kernel(tmp):
    check_nginx('kernel', tmp)


def test_a_server_and_its_client_by_the_tracer(tmp):
    check_way('hub', tmp, [build(tmp, 'loopback')], ['children'], at_least=40)


def test_a_server_and_its_client_by_the_kernel(tmp):
    check_way('kernel', tmp, [build(tmp, 'loopback')], ['children'], at_least=40)


# ---- make ----------------------------------------------------------------------------------------

MAKEFILE = 'all: a.o b.o c.o\n\tgcc -o program a.o b.o c.o\n\t./program\n%.o: %.c common.h\n\tgcc -O1 -c $<\nclean:\n\trm -f program *.o\n'
SOURCES = {
    'common.h': 'int f(int);\nint g(int);\n', 'a.c':
    '#include "common.h"\n#include <stdio.h>\nint main(void) { printf("%d\\n", f(g(3))); }\n', 'b.c':
    '#include "common.h"\nint f(int x) { return x * 7; }\n', 'c.c':
    '#include "common.h"\nint g(int x) { return x + 1; }\n',
}
MAKE_CHANCES = [
    Chance(r'^(wait4|waitid|pselect6|rt_sigreturn)\(.*', '',
           'make asks again and again whether any child has ended, or waits for it'),
    Chance(r'^(read|write)\(\d+, "\+", 1\).*', '', 'tokens of the job server'),
    Chance(r'^dup2\(\d+, 0\) = 0', '', 'of two jobs at a time, one has the input of make'),
    Chance(r'^(stat\(".*\.o"), .*', r'\1',
           'an object file may be there already when make looks for it, as it may have been made'),
    Chance(r'^brk\(.*', '', 'names of temporary files are where others are'),
    Chance(r'^--- SIGCHLD .*', '',
           'make gets it only while it waits for a token: where a child ends before that, it never waits',
           where=r'^rt_sigaction\(SIGCHLD, \{sa_handler=ADDRESS'),
]


def check_make(way, tmp):
    project = tmp / 'project'
    project.mkdir()
    (project / 'Makefile').write_text(MAKEFILE)
    for name, text in SOURCES.items():
        (project / name).write_text(text)

    def command():
        run(program('make'), '-s', '-C', project, 'clean').ok()
        return [program('make'), '-s', '-j2', '-C', project, 'all']

    run(program('make'), '-s', '-C', project, 'all').ok()
    check_way(way, tmp, command, ['children'], chances=MAKE_CHANCES, at_least=1000, each_once=True,
              env={'TMPDIR': '/tmp'})


@timeout(300)
def test_make_by_the_tracer(tmp):
    check_make('hub', tmp)


@timeout(300)
def test_make_by_the_kernel(tmp):
    check_make('kernel', tmp)


@timeout(300)
def test_make_recorded_by_tracing(tmp):
    check_make('recorded', tmp)


# ---- threads and children ------------------------------------------------------------------------

SHELL_CHANCES = [Chance(r'^rt_sigreturn\(.*', '', 'the end of a child may come before its parent waits for it')]


@waits
def test_threads_by_the_tracer(tmp):
    check_way('hub', tmp, [build(tmp, 'threads', '-pthread')], ['end of all'], at_least=40)


@waits
def test_threads_by_the_kernel(tmp):
    check_way('kernel', tmp, [build(tmp, 'threads', '-pthread')], ['end of all'], at_least=40)


@waits
def test_threads_recorded_by_tracing(tmp):
    check_way('recorded', tmp, [build(tmp, 'threads', '-pthread')], ['end of all'], at_least=40)


def test_calls_of_threads_that_end_the_process_at_once_are_taken_up(tmp):
    """The kernel does not stop a thread at its end while another one ends the process, and strace leaves it out."""
    command = [build(tmp, 'together', '-pthread')]
    for way in ('hub', 'recorded'):
        for _ in range(10):
            process, output = write_traced(tmp, way, WAYS[way](), command)
            process.end().ok()
            n_calls = 0
            for lines in whole_lines(lines_of(way, WAYS[way], output)).values():
                calls = [re.sub(' +', ' ', line) for line in lines if line.startswith('exit_group(')]
                check(calls in ([], ['exit_group(0) = ?']), 'a thread has one call, with its end', lines)
                n_calls += len(calls)
            check(n_calls, 'there are calls')


def test_children_by_the_tracer(tmp):
    check_way('hub', tmp, [SH, '-c', CHILDREN], ['death'], chances=SHELL_CHANCES, at_least=100)


def test_children_by_the_kernel(tmp):
    check_way('kernel', tmp, [SH, '-c', CHILDREN], ['death'], chances=SHELL_CHANCES, at_least=100)


def test_children_recorded_by_tracing(tmp):
    check_way('recorded', tmp, [SH, '-c', CHILDREN], ['death'], chances=SHELL_CHANCES, at_least=100)


# ---- less of it ----------------------------------------------------------------------------------


def check_selected(way, tmp, *options):
    """Of git, which asks for much that is not there. What is in no line at all cannot be seen to differ, so there are
    to be some."""
    git = repository(tmp)
    for words in options:
        check_way(way, tmp, [*git, 'log', '--stat', '-3'], options=words, at_least=3)


def test_lines_that_are_selected_by_the_tracer(tmp):
    check_selected('hub', tmp, ['-z'], ['-Z'], ['-y'], ['-y', '-e', '%file,close'],
                   ['-P', tmp / 'repository/.git/config'], ['-z', '-e', 'openat,access'])


def test_lines_that_are_selected_by_the_kernel(tmp):
    check_selected('kernel', tmp, ['-z'], ['-Z'], ['-Z', '-e', 'openat,access'], ['-s', '3'])


def test_calls_that_fail_as_wanted(tmp):
    git = repository(tmp)
    for what in ('openat:error=ENOENT:when=60+', 'read:error=EIO:when=12', 'newfstatat,lstat:error=EACCES:when=3+2',
                 'mmap:error=ENOMEM:when=40+', 'write:signal=USR1:when=1'):
        check_way('hub', tmp, [*git, 'log', '-p', '-2'], options=[f'--inject={what}'], at_least=20, is_ok=False)


def counts(text):
    """{call: (calls, errors)} of the table that both print."""
    rows = re.findall(r'^ *[\d.]+ +[\d.]+ +\d+ +(\d+) +(\d*) +(\w+)$', text, re.MULTILINE)
    return {name: (int(calls), int(errors or 0)) for calls, errors, name in rows}


def check_counts(way, tmp):
    git = repository(tmp)
    for command in ([program('ls'), '-lR', '/usr/share/doc/git'], [*git, 'log', '-p', '--stat'], [SH, '-c', CHILDREN]):
        theirs, ours = (counts(run(program('setarch'), '-R', *tracer(), '-f', '-c', *command).ok().err)
                        for tracer in (strace, WAYS[way]))
        check(len(theirs) > 10, 'calls are counted', theirs)
        names = sorted({*theirs, *ours})
        check_same([f'{name} {ours.get(name)}' for name in names], [f'{name} {theirs.get(name)}' for name in names],
                   'calls and errors')


def test_counts_by_the_tracer(tmp):
    check_counts('hub', tmp)


def test_counts_by_the_kernel(tmp):
    check_counts('kernel', tmp)
