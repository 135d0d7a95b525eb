"""Options that users of strace type do what they do there: the same lines of the same program. Times, addresses and
ids differ from run to run, and are made equal."""
import os
import re
import signal
import time
from pathlib import Path

from kymotest import (KYMO, NOBODY, check, check_equal, check_matches, check_same, kymo, program, run, skip, start,
                      timeout)
from straced import build, check_like_strace

SMALL = r'''
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static void handle(int number) {}

int main(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t size = sizeof(address);
	struct utsname name;
	struct rlimit limit;
	struct stat file;
	char bytes[4096];
	int fds[2], fd;

	signal(SIGUSR1, handle);
	raise(SIGUSR1);
	open("/nonexistent/file", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	fstat(open("/etc/passwd", O_RDONLY), &file);
	stat("/dev/null", &file);
	getdents64(open("/proc/self/task", O_RDONLY | O_DIRECTORY), bytes, sizeof(bytes));
	getrlimit(RLIMIT_NOFILE, &limit);
	uname(&name);
	write(open("/dev/null", O_WRONLY), "some text\n\1\377", 12);
	write(-1, "text alone", 10);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	bind(fd, (struct sockaddr *)&address, sizeof(address));
	listen(fd, 1);
	getsockname(fd, (struct sockaddr *)&address, &size);
	connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, size);
	write(accept(fd, NULL, NULL), "x", 1);
	socketpair(AF_UNIX, SOCK_STREAM, 0, fds);
	write(fds[0], "y", 1);
	close(socket(AF_UNIX, SOCK_DGRAM, 0));
	close(syscall(SYS_pidfd_open, getpid(), 0));
	if (!syscall(SYS_clone, 0, 0, 0, 0, 0))	/* its end is no signal, which may come before or after the wait */
		_exit(3);
	waitpid(-1, NULL, __WALL);
	kill(getpid(), 0);
	return 4;
}
'''

CHANGES = ((r'0x[0-9a-f]{5,}', 'ADDRESS'), (r'st_[amc]time(_nsec)?=\d+( /\*.*?\*/)?', 'TIME'),
           (r'(htons\(|127\.0\.0\.1:)\d+', r'\1PORT'), (r'\bd_(ino|off)=-?\d+', 'NUMBER'),
           # An id may have a digit more than that of the other run, and so an entry a word more.
           (r'd_reclen=\d+, (d_type=[^,]+, )d_name="\d+"', r'\1ID'),
           (r'UNIX-STREAM:\[\d+->\d+', 'UNIX-STREAM:[INODE->INODE'), (r'UNIX:\[\d+', 'UNIX:[INODE'),
           (r'\[\d{4,}\]', '[INODE]'), (r'"(\\x[0-9a-f]{2}){8}"', 'RANDOM'), (r'/proc/\d+/', '/proc/ID/'),
           (r'tv_u?sec=\d+', 'TIME'), (r'<pid:\d+', '<pid:ID'),
           )

# A PID namespace of its own; root needs no user namespace for that, which no process in a chroot may make.
NEW_PIDS = ['-pf'] if os.geteuid() == 0 else ['-Urpf']


def small(tmp):
    Path('small.c').write_text(SMALL)
    run(program('gcc'), '-w', '-o', tmp / 'small', 'small.c').ok()
    return tmp / 'small'


def plain(text, *more):
    for pattern, instead in (*CHANGES, *more):
        text = re.sub(pattern, instead, text)
    text = re.sub(r'(?<![\w./:-])\d{3,7}(?=[),}\s<]|$)', 'ID', text, flags=re.MULTILINE)
    text = re.sub(r'(getdents64\(.*\)) += \d+', r'\1 = SIZE', text)  # names of threads may have a digit more
    text = re.sub(r'\b(si_utime|si_stime)=\d+( /\* [\d.]+ s \*/)?', r'\1=TIME', text)
    return re.sub(r'(\bID\b.*\)) += ', r'\1 = ', text)  # ids of one tracer may have a digit more


def both(tmp, options, command, name='log'):
    """What strace and kymo write to a file of these options."""
    texts = []
    for tracer in ([program('strace')], None):
        Path(name).unlink(missing_ok=True)
        words = [*options, '-o', name, *map(str, command)]
        result = run(*tracer, *words) if tracer else kymo('syscalls', *words)
        texts.append((result.status, Path(name).read_text(errors='backslashreplace')))
    return texts


def check_same_lines(tmp, options, *more):
    (status, theirs), (our_status, ours) = both(tmp, options, [small(tmp)])
    check_equal((status, our_status), (4, 4), 'exit status')
    check_same(plain(ours, *more), plain(theirs, *more), f'lines of {" ".join(options)}')


def test_times_before_lines(tmp):
    for options in (['-t'], ['-tt'], ['-ttt'], ['-r'], ['-t', '-r'], ['-tt', '-r', '-n'], ['--relative-timestamps=ms'],
                    ['--absolute-timestamps=format:unix,precision:ns']):
        check_same_lines(tmp, options, (r'\d\d:\d\d:\d\d(\.\d{6})?', 'TIME'), (r'(?m)^\d+\.\d+', 'N'),
                         (r' *\b\d+\.\d{3,}', ' N'), (r' +=', ' ='))


def test_times_are_those_of_the_clock(tmp):
    begin = time.time()
    err = kymo('syscalls', '-ttt', '-e', 'clock_nanosleep', program('sleep'), '0.2').ok().err
    sleep, end = (float(line.split()[0]) for line in err.splitlines())
    check(begin < sleep < end - 0.19 and end < time.time(), 'times in order', err)
    err = kymo('syscalls', '-r', '-e', 'clock_nanosleep,exit_group', program('sleep'), '0.2').ok().err
    check(0.2 <= float(err.splitlines()[1].split()[0]) < 5, 'the line behind the sleep', err)


def test_numbers_addresses_and_columns(tmp):
    check_same_lines(tmp, ['-n'])
    check_same_lines(tmp, ['-i'], (r'\[00[0-9a-f]{14}\]', '[IP]'))
    check_same_lines(tmp, ['-a', '70'])
    check_same_lines(tmp, ['-a0'])


def test_durations_with_another_precision(tmp):
    for precision in ('s', 'ms', 'us', 'ns'):
        check_same_lines(tmp, [f'--syscall-times={precision}'], (r'<\d+>', '<N>'),
                         (r'<\d+(\.\d+)>', lambda match: f'<N.{len(match[1])}>'))


NO_ADDRESSES = ['-e', 'trace=!bind,connect,getsockname']


def test_constants_as_numbers_and_both(tmp):
    check_same_lines(tmp, ['-X', 'raw', *NO_ADDRESSES])
    check_same_lines(tmp, ['-X', 'verbose', *NO_ADDRESSES])
    check_same_lines(tmp, ['-Xabbrev'])


def test_strings_in_hex(tmp):
    for option in ('-x', '-xx', '--strings-in-hex', '--strings-in-hex=non-ascii'):
        check_same_lines(tmp, [option, *NO_ADDRESSES], (r'd_name=.*', ''), (r'\\x2f\\x70\\x72\\x6f\\x63\S*', ''))


def test_structures_whole(tmp):
    check_same_lines(tmp, ['-v', '-e', '!execve'])
    check_same_lines(tmp, ['-e', 'abbrev=none', '-e', 'trace=!execve'])
    check_same_lines(tmp, ['-e', 'abbrev=newfstatat', '-e', 'trace=!execve'])
    check_same_lines(tmp, ['-v', '-X', 'verbose', '-e', '!execve,bind,connect,getsockname'])


def test_arrays_whole(tmp):
    words = [f'word{i}' for i in range(40)]
    environment = ['env', '-i', *(f'NAME{i}={i}' for i in range(40))]
    for option in ('-v', '-s5', '-s0'):
        theirs, ours = (run(*environment, *tracer, option, '-e', 'execve', program('true'), *words).ok().err
                        for tracer in ((program('strace'), ), (KYMO, 'syscalls')))
        check_same(re.sub('0x[0-9a-f]+', 'ADDRESS', ours), re.sub('0x[0-9a-f]+', 'ADDRESS', theirs), option)


def test_descriptors_and_processes(tmp):
    check_same_lines(tmp, ['-yy', '-e', 'trace=!getdents64,listen'])
    check_same_lines(tmp, ['--decode-fds=socket', '-e', 'trace=write,close,socket,openat,newfstatat'])
    check_same_lines(tmp, ['--decode-fds=dev', '-e', 'trace=write,openat,newfstatat'])
    check_same_lines(tmp, ['-Y'])
    check_same_lines(tmp, ['-f', '-Y', '-e', 'trace=exit_group,getpid,kill'], (r'^\w+<', 'ID<'))


@timeout(60)
def test_ids_of_another_pid_namespace(tmp):
    command = [program('unshare'), *NEW_PIDS, '--kill-child', small(tmp)]
    texts = [
        re.sub(r'(?m)^\d+ ', '', plain(text)) for _, text in both(
            tmp, ['-f', '--decode-pids=pidns', '-e', 'trace=getpid,kill,tgkill', '-e', 'signal=none'], command)
    ]
    check_matches(texts[1], r"kill\(1 /\* ID in strace's PID NS \*/, 0\) += 0", 'an id and what it is here')
    check_same(texts[1], texts[0], 'lines')


def test_as_the_first_process_of_a_container_it_reaps_orphans(tmp):
    count = "(true &); i=0; while [ $i -lt 100 ] && grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null; do sleep 0.1; i=$((i+1)); done; echo waited $i"
    result = run(program('unshare'), *NEW_PIDS, '--mount-proc', KYMO, 'syscalls', '-f', '-o', 'log', '-e', 'none',
                 program('sh'), '-c', count).ok()
    check(int(re.search(r'waited (\d+)', result.out)[1]) < 100, 'no zombie stays', result.out)


def test_which_calls_signals_and_results(tmp):
    for options in (['-e', 'signal=none'], ['-e', 'signal=!usr1'], ['-e', 'signal=SIGCHLD'], ['-e', 'status=failed'], [
            '-e', 'status=unfinished'
    ], ['-e', 'status=successful,failed'], ['-e', 'trace=?nosuchcall,write'], ['--trace=%net'], [
            '-e', 'trace=write@64'
    ], ['-e', 't=%%stat'], ['-e', 'quiet=exit'], ['-qq'], ['-q'], ['-P', '/etc/passwd', '-P', '/dev/null'], [
            '-e', 'raw=write,openat', '-e', 'write,openat'
    ]):
        check_same_lines(tmp, options)


def test_a_path_selects_calls_that_wait_for_its_descriptor(tmp):
    script = 'import select; f = open("/dev/null"); p = select.poll(); p.register(f); p.poll(0); select.select([f], [], [], 0); select.select([], [], [], 0)'
    (status, theirs), (our_status, ours) = both(tmp, ['-P', '/dev/null', '-e', 'poll,select,pselect6'],
                                                [program('python3'), '-c', script])
    check_equal((status, our_status), (0, 0), 'exit status')
    check_equal(theirs.count('['), 4, 'sets and arrays in the lines of strace')
    check_same(plain(ours), plain(theirs), 'lines')


def test_commas_without_a_name_between_them(tmp):
    for calls in (',write', 'write,', 'write,,openat', '!,write'):
        check_same_lines(tmp, ['-e', calls])


def test_faults(tmp):
    check_same_lines(tmp, ['-e', 'fault=uname', '-e', 'trace=uname'])
    check_same_lines(tmp, ['-e', 'inject=uname:error=EFAULT', '-e', 'trace=uname'])


def test_a_file_for_each_process(tmp):
    command = [program('sh'), '-c', '/bin/true; exit 3']
    found = []
    for words in ([program('strace')], None):
        options = ['-ff', '-o', 'apart', '-e', 'trace=exit_group,execve']
        result = run(*words, *options, *command) if words else kymo('syscalls', *options, *command)
        check_equal(result.status, 3, 'exit status')
        files = sorted(tmp.glob('apart.*'))
        found.append([plain(file.read_text()) for file in files])
        for file in files:
            check_equal(file.stat().st_mode & 0o777, 0o600 if not words else file.stat().st_mode & 0o777, 'mode')
            file.unlink()
    check_equal(len(found[1]), 2, 'files')
    check_same('\n'.join(found[1]), '\n'.join(found[0]), 'lines of the files')
    check_matches(
        kymo('syscalls', '-ff', *command).err, r'^kymo: warning: -ff has no effect without -o FILE', 'without a file')


def test_a_file_is_appended_to(tmp):
    Path('log').write_text('before\n')
    kymo('syscalls', '-A', '-o', 'log', '-e', 'uname', '-e', 'signal=none', small(tmp))
    check_matches(Path('log').read_text(), r'^before\nuname\(', 'the file')


def test_lines_go_to_a_command(tmp):
    for sign in '|!':
        result = kymo('syscalls', '-o', f'{sign}cat > log; sleep 0.2; echo done >> log', '-e', 'uname', '-e',
                      'signal=none', small(tmp))
        check_equal((result.status, result.err), (4, ''), 'status and messages')
        check_matches(Path('log').read_text(), r'^uname\((.*\n)+done\n$', 'what it was given, before kymo ended')


def test_a_table_with_other_columns(tmp):
    for options in (['-U', 'calls,name,errors'], ['-S', 'name', '-U',
                                                  'name,calls'], ['-S', 'calls', '-U', 'errors,calls']):
        (_, theirs), (_, ours) = both(tmp, ['-c', '-w', *options], [small(tmp)])
        if 'name' not in options:
            theirs, ours = ('\n'.join(sorted(text.splitlines())) for text in (theirs, ours))
        check_same(ours, theirs, f'table of {" ".join(options)}')
    titles = [
        text.splitlines()[0] for _, text in
        both(tmp, ['-c', '-w', '-U', 'name,min-time,max-time,avg-time,total-time,time-percent,calls,errors'],
             [small(tmp)])
    ]
    check_equal(titles[1], titles[0], 'titles')


def test_lines_and_a_table(tmp):
    err = kymo('syscalls', '-C', '-e', 'uname,write', small(tmp)).err
    check_matches(err,
                  r'^write\((.*\n)+\+\+\+ exited with 4 \+\+\+\n% time +seconds +usecs/call +calls +errors syscall\n',
                  'both')


def test_environment_of_the_command(tmp):
    result = kymo('syscalls', '-E', 'NEW=value=1', '--env=PATH', '-e', 'none', '/usr/bin/env',
                  env={'PATH': '/usr/bin', 'OTHER': '2'})
    check_matches(result.out, r'^OTHER=2$', 'another')
    check_matches(result.out, r'^NEW=value=1$', 'a new one')
    check(not re.search('^PATH=', result.out, re.MULTILINE), 'one that was left out', result.out)


def test_several_processes(tmp):
    sleepers = [start(program('sleep'), '100') for _ in range(3)]
    first, second, third = (sleeper.pid for sleeper in sleepers)
    for words in (['-p', f'{first},{second}', '-p',
                   third], ['--pid', first, '--attach',
                            f'{second},{third}'], ['-p', first, '-p', second, '-p', third, '-p', first],
                  ['-p', f'{first} {second}\n{third}\n'],
                  ['-p', f' {first} , {second},{third} ']):
        tracer = start(program('timeout'), '60', *kymo.words('syscalls', *words)) if hasattr(kymo, 'words') else None
        result = kymo('syscalls', '--for', '0.5', '-o', 'log', *words).ok()
        ids = set(re.findall(r'^(\d+) ', Path('log').read_text(), re.MULTILINE))
        check_equal(ids, {str(first), str(second), str(third)}, f'who is in the lines of {words}')
        check_equal((tracer, result.err), (None, ''), 'messages')
    for sleeper in sleepers:
        sleeper.end(signal.SIGTERM)
    kymo('syscalls', '-p', '1,999999999').refused("'999999999' is no process id", 2)
    kymo('syscalls', '-p', '1,,1').refused("'' is no process id", 2)
    kymo('syscalls', '-p', ' ').refused("'' is no process id", 2)


def test_an_exec_is_let_go_of(tmp):
    command = [program('sh'), '-c', '/bin/true; exit 3']
    (status, theirs), (our_status, ours) = both(tmp, ['-f', '-b', 'execve', '-e', 'trace=execve,exit_group'], command)
    check_equal((status, our_status), (3, 3), 'exit status')
    check_equal(len(re.findall(r'execve\(', ours)), 2, 'programs')
    check_equal(len(re.findall(r'exit_group', ours)), 1, 'ends: not that of the program that was executed')


def test_a_command_runs_as_the_user_that_is_asked_for(tmp):
    if os.geteuid():
        skip('only root becomes another user')
    command = [program('sh'), '-c', 'id -u; id -g; id -G; id -ru']
    theirs = run('strace', '-f', '-o', '/dev/null', '-u', 'man', *command).ok()
    for way in ['-q'], ['-f', '--seccomp-bpf'], ['-c'], ['-f', '-u', 'nobody'], ['--backend', 'kernel']:
        ours = kymo('syscalls', *way, '-o', tmp / 'lines', '-u', 'man', *command).ok()
        check_equal(ours.out, theirs.out, f'ids with {way}')
        first = (tmp / 'lines').read_text().splitlines()[0]
        check('-c' in way or re.match(r'([0-9]+ +)?execve', first),
              f'the first call is the one that executes the command: {first}')


def test_a_user_is_for_commands_and_takes_root(tmp):
    kymo('syscalls', '-u', 'nobody', '-p', str(os.getpid())).refused('-u is for a command that kymo starts', 2)
    if not os.geteuid():
        kymo('syscalls', '-u', 'man', '/bin/true', user=NOBODY).refused('-u takes root', 2)
        for way in [], ['--backend', 'kernel']:
            run('setpriv', '--bounding-set=-setuid,-setgid', KYMO, 'syscalls', *way, '-u', 'man',
                '/bin/true').refused('cannot run /bin/true: Operation not permitted', 1)


def test_what_kymo_has_not_is_refused_with_what_to_write(tmp):
    for words, sentence in ((['-D'], 'in the background instead'), ([
            '-u', 'nobody-at-all'
    ], "there is no user 'nobody-at-all'"), (['-I', '2'], 'can be interrupted at any time'), ([
            '-O', '1'
    ], 'the times of -c'), (['-d'], "kymo threads PID"), (['-V'], "'kymo --version'"), (['--secontext'], 'SELinux'),
                            (['-e', 'read=3'], '-s SIZE'), ([
            '-e', 'verbose=all'
    ], '-s SIZE'), (['-X', 'odd'], 'raw, abbrev or verbose'), (['-S', 'odd'], '-S takes time'), ([
            '-U', 'calls,calls'
    ], 'each once'), (['-a', 'x'], '-a takes a column'), (['-b', 'fork'], '-b takes execve'),
                            (['-E', '=x'], '-E takes NAME=VALUE'), (['-e', 'signal=odd'], "no signal 'odd'"), ([
                                '-e', 'status=odd'
                            ], "no 'odd'"), (['-e', 'trace=write@32'], "leave '@32' out"), ([
                                '--absolute-timestamps=odd'
                            ], 'takes format:time'), (['-o', '|'], 'needs the command'), ([
                                '-o', ''
                            ], '-o needs a file'), (['-A'], 'there is none')):
        kymo('syscalls', *words, '/bin/true').refused(re.escape(sentence), 2)
