"""kymo syscalls --backend kernel and --all: the lines of the tracer, and of strace, from the kernel's tracepoints."""
import json
import os
import re
import signal

from kymotest import (KYMO, NOBODY, SOURCE, check, check_equal, check_matches, check_same, check_untraced, eventually,
                      kymo, need_root, program, run, start, target)
from straced import CALLS32, build, build32, check_like_strace, names_and_results, trace

SH = program('sh')
KERNEL = ('--backend', 'kernel')

# What the tracepoints see otherwise: signals without a handler are no events, and a call that ends its own thread
# does return.
CHANGES = ((r'^--- SIG.*\n?', ''), (r'= \? ERESTART\w+ \(.*\)$', '= ?'), (r'^kill\(PID, SIGKILL\) = 0$',
                                                                          'kill(PID, SIGKILL) = ?'), (r'\n+$', ''),
           )

# Untouched memory cannot be copied while a call is refused that does not look at it either.
TOUCHED = '#include <sys/mman.h>\n__attribute__((constructor)) static void touch_all(void) { mlockall(1); }\n'

# Processes whose four threads are ended at once, one after the other.
ENDED = '''
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static void *spin(void *unused)
{
	for (;;)
		;
	return unused;
}
int main(int argc, char **argv)
{
	for (int i = atoi(argv[1]); i > 0; i--) {
		pthread_t thread;
		if (!fork()) {
			for (int k = 0; k < 3; k++)
				pthread_create(&thread, NULL, spin, NULL);
			usleep(500);
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}
'''

GETPPID = '#include <stdlib.h>\n#include <unistd.h>\nint main(int argc, char **argv) { for (long n = atol(argv[1]); n > 0; n--) getppid(); }\n'

# Threads that each write 1, 2, 3, ... at once, in seven digits.
WRITERS = '''
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static int null, calls;
static void *work(void *unused)
{
	char text[16];

	for (int i = 1; i <= calls; i++)
		if (write(null, text, sprintf(text, "%07d", i)) != 7)
			abort();
	return unused;
}
int main(int argc, char **argv)
{
	pthread_t threads[4];

	null = open("/dev/null", O_WRONLY);
	calls = atoi(argv[1]);
	for (int i = 0; i < 4; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			abort();
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
'''


def in_kernel(*words, **options):
    need_root()
    return kymo('syscalls', *KERNEL, *words, **options)


def check_by_kernel(tmp, *command, changes=(), **how):
    need_root()
    check_like_strace(tmp, *command, backend=KERNEL, changes=(*CHANGES[:-1], *changes, CHANGES[-1]), **how)


def lines(text):
    return [re.sub(r'\) += ', ') = ', line) for line in text.splitlines()]


def test_calls_with_odd_arguments_look_as_in_strace(tmp):
    (tmp / 'touched.c').write_text(TOUCHED)
    check_by_kernel(tmp, build(tmp, 'calls', tmp / 'touched.c'), at_least=450)


def test_short_strings_look_as_in_strace(tmp):
    check_by_kernel(tmp, program('ls'), '-l', SOURCE / 'docs', options=['-s', '7', '-e', '%file,read'], at_least=20)


def test_calls_of_32_bits_have_the_names_and_results_that_they_have_in_strace(tmp):
    need_root()
    for name in ('as32', 'in64'):
        texts = trace(tmp, ['-e', CALLS32], [build32(tmp, name)], backend=KERNEL)
        check_equal(*map(names_and_results, texts), name)
    err = in_kernel('-e', 'getuid', tmp / 'as32').ok().err
    check_matches(err,
                  r'^\[ Process PID=\d+ runs in 32 bit mode. \]\ngetuid\(\) += \d+\n\+\+\+ exited with 0 \+\+\+\n$')
    check_equal(
        in_kernel('-e', 'sched_yield,lstat,writev', tmp / 'as32').ok().err, '+++ exited with 0 +++\n',
        'what has these numbers with 64 bits')
    calls = [json.loads(line) for line in in_kernel('--json', '-e', 'unlink', tmp / 'in64').ok().err.splitlines()]
    check_equal([calls[0][key] for key in ('number', 'arch', 'name', 'error')], [10, 'i386', 'unlink', 'ENOENT'])


def test_without_follow_only_the_first_thread_is_shown():
    shown = in_kernel('-e', 'exit_group', SH, '-c', '/bin/true; exit 3').ended(3).err
    check_same([line for line in lines(shown) if not line.startswith('--- SIGCHLD')],
               ['exit_group(3) = ?', '+++ exited with 3 +++'])


def test_a_signal_that_is_handled_and_a_death_are_shown(tmp):
    script = 'import os, signal; signal.signal(signal.SIGUSR1, lambda *_: None); os.kill(os.getpid(), signal.SIGUSR1); os.abort()'
    result = in_kernel('-e', 'kill,rt_sigreturn', '-T', '-t', program('python3'), '-c',
                       script).ended(128 + signal.SIGABRT)
    shown = [line for line in lines(result.err) if 'SIG' in line or 'rt_sigreturn' in line]
    check_matches(shown[0], r'^\d\d:\d\d:\d\d kill\(\d+, SIGUSR1\) = 0 <\d+\.\d{6}>$')
    check_matches(shown[1],
                  r'^\d\d:\d\d:\d\d --- SIGUSR1 \{si_signo=SIGUSR1, si_code=SI_USER, si_pid=\d+, si_uid=\d+\} ---$')
    check_matches(shown[2], r'^\d\d:\d\d:\d\d rt_sigreturn\(\{mask=\[.*\]\}\) = 0 <\d+\.\d{6}>$')
    check_matches(shown[-1], r'^\d\d:\d\d:\d\d \+\+\+ killed by SIGABRT .*\+\+\+$')


def test_counts_are_those_of_the_tracer():
    need_root()
    command = [program('ls'), '/']
    counts = [
        sorted((row['name'], row['calls'], row['errors'])
               for row in json.loads(kymo('syscalls', *way, '-c', '--json', *command).ok().err)) for way in (KERNEL, ())
    ]
    check_equal(*counts)


def test_all_sees_calls_of_unrelated_processes(tmp):
    need_root()
    name = tmp / 'a-name-that-nobody-else-has'
    watcher = start(KYMO, 'syscalls', '--all', '-e', 'chdir', '-o', tmp / 'all')

    def is_seen():
        run(SH, '-c', f'cd {name} 2>/dev/null; exit 0').ok()
        return f'chdir("{name}")' in (tmp / 'all').read_text()

    eventually(lambda: (tmp / 'all').exists() and is_seen(), 'the call of another process', 60)
    os.kill(watcher.pid, signal.SIGINT)
    watcher.end().ok()


def test_a_running_process_is_seen_and_outlives_a_killed_kymo():
    need_root()
    process = target('selfcheck', '-t', '4')
    watcher = start(KYMO, 'syscalls', *KERNEL, '-f', '--pid', process.pid)
    eventually(lambda: watcher.output(1).count('\n') > 3, 'lines of the process', 60)
    check_untraced(process.pid)
    watcher.kill()
    check(process.is_alive(), 'the process runs on')


def test_each_call_of_threads_that_make_them_at_once_is_shown_whole_and_in_order(tmp):
    need_root()
    (tmp / 'writers.c').write_text(WRITERS)
    run(program('gcc'), '-O1', '-pthread', '-o', tmp / 'writers', tmp / 'writers.c').ok()
    calls = 8000
    in_kernel('-f', '-e', 'write', '--buffer', '64M', '-o', tmp / 'lines', tmp / 'writers', calls).ok()
    numbers = {}
    for tid, number in re.findall(r'^(\d+) +write\(3, "(\d{7})", 7', (tmp / 'lines').read_text(), re.MULTILINE):
        numbers.setdefault(tid, []).append(int(number))
    check_equal(len(numbers), 4, 'threads')
    for seen in numbers.values():
        check(seen == list(range(1, calls + 1)), f'{len(seen)} of {calls} calls, in order')


def test_the_end_of_each_thread_is_shown_where_threads_end_at_once(tmp):
    """The last one that the kernel counts may be seen before another one."""
    need_root()
    (tmp / 'ended.c').write_text(ENDED)
    run(program('gcc'), '-O1', '-pthread', '-o', tmp / 'ended', tmp / 'ended.c').ok()
    n = 600
    in_kernel('-f', '-e', 'getppid', '-o', tmp / 'lines', tmp / 'ended', n).ok()
    check_equal((tmp / 'lines').read_text().count('+++ exited with 0 +++'), 4 * n + 1, 'ends')


def test_losses_are_counted_and_shown(tmp):
    need_root()
    (tmp / 'many.c').write_text(GETPPID)
    run(program('gcc'), '-O1', '-o', tmp / 'many', tmp / 'many.c').ok()
    calls = 300000
    result = in_kernel('-e', 'getppid', '--buffer', '64K', '-o', tmp / 'lines', tmp / 'many', calls).ok()
    text = (tmp / 'lines').read_text()
    lost = sum(int(n) for n in re.findall(r'^--- (\d+) lost: the buffer was full ---$', text, re.MULTILINE))
    begun = text.count('getppid(')
    check(lost > 0 and begun <= calls <= begun + lost, f'{begun} lines and {lost} losses of {calls} calls')
    check_equal(
        re.search(r'warning: ([\d,]+) beginnings and ends of calls were lost', result.err)[1].replace(',', ''),
        str(lost), 'losses told')
    in_kernel('-e', 'getppid', '--json', '--buffer', '64K', '-o', tmp / 'json', tmp / 'many', calls).ok()
    events = [json.loads(line) for line in (tmp / 'json').read_text().splitlines()]
    check(sum(event['count'] for event in events if event['event'] == 'lost') > 0, 'JSON has losses')


def test_a_user_without_rights_is_told_which_are_missing():
    for words in ((*KERNEL, 'true'), ('--all', )):
        kymo('syscalls', *words, user=NOBODY).refused('takes root, or the capabilities CAP_BPF and CAP_PERFMON')


def test_wrong_words_are_answered_with_a_sentence():
    kymo('syscalls', *KERNEL, '-y', 'true').refused(r'-y, -Y and -P need a stopped thread', 2)
    kymo('syscalls', '--all', 'true').refused(r'--all has the calls of every process: leave the command or --pid out',
                                              2)
    kymo('syscalls', '--all', '--backend', 'hub').refused(r'--all is done through the kernel', 2)
    kymo('syscalls', '--backend', 'uprobe', 'true').refused(r"there is no backend 'uprobe'; write hub or kernel", 2)
    kymo('syscalls', '--buffer', '1M', 'true').refused(r'--buffer is for --backend kernel and --all', 2)
    kymo('syscalls', *KERNEL, '-s', '5000', 'true').refused(r'-s takes at most 4096 bytes', 2)
    kymo('syscalls', *KERNEL, '--pid', 4194303).refused(r'there is no process 4194303')


def test_tracing_ends_when_nothing_can_be_written_any_more():
    need_root()
    process = target('numbered')
    for words in (KERNEL, (*KERNEL, '--json')):
        kymo('syscalls', *words, '-o', '/dev/full', '--pid',
             process.pid).refused(r'cannot write /dev/full: the output is not whole \(No space left on device\)')
        check(process.is_alive(), 'the process runs on')
    process.end()
