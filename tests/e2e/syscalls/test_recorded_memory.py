"""kymo record -s --backend kernel: calls with their memory in the trace, and lines of strace -f from it, but for what
each test lists. Signals and ends of processes are no calls."""
import json
import os
import re
import signal

from kymotest import (KYMO, NOBODY, SOURCE, babeltrace, check, check_equal, check_matches, check_untraced, eventually,
                      kymo, need_root, program, record, report_json, run, start, timeout, waits)
from recorded_lines import check_with_memory, shown
from recorders import kill_between_writes
from straced import (CALLS32, CHILDREN, PYTHON, PYTHON_ENV, Chance, Difference, build, build32, git_log,
                     names_and_results)

KERNEL = ('--backend', 'kernel')
SH = program('sh')

# Untouched memory cannot be copied while a call is refused that does not look at it either.
TOUCHED = '#include <sys/mman.h>\n__attribute__((constructor)) static void touch_all(void) { mlockall(1); }\n'
GETPPID = '#include <stdlib.h>\n#include <unistd.h>\nint main(int argc, char **argv) { for (long n = atol(argv[1]); n > 0; n--) getppid(); }\n'

KILLED = Difference(r'kill\(PID, SIGKILL\) = \?', 'kill(PID, SIGKILL) = 0',
                    'a call that ends its own thread returns like others')
RESTARTED = Chance(r'= \? ERESTART\w+ \(.*\)$', '= ?', 'a call that ends with its thread may return into its end')
HANDLED = Chance(r'^rt_sigreturn\(.*', '', 'the end of a child is told before or behind the call that waits for it')


def in_kernel(*words, **how):
    need_root()
    return record('-q', *KERNEL, *words, **how)


def check_lines(tmp, *command, **how):
    need_root()
    check_with_memory(tmp, 'kernel', *command, **how)


@timeout(300)
def test_calls_with_odd_arguments_look_as_in_strace(tmp):
    (tmp / 'touched.c').write_text(TOUCHED)
    check_lines(tmp, build(tmp, 'calls', tmp / 'touched.c'), differences=[KILLED], chances=[RESTARTED], at_least=450)


def test_sockets_look_as_in_strace(tmp):
    sockets = build(tmp, 'sockets')
    check_lines(tmp, sockets, 'addresses', at_least=2000)
    check_lines(tmp, sockets, 'control', at_least=2000)


@timeout(300)
def test_programs_look_as_in_strace(tmp):
    check_lines(tmp, program('ls'), '-lR', SOURCE / 'docs', at_least=100)
    check_lines(tmp, *git_log(tmp), at_least=100)


@timeout(300)
def test_python_looks_as_in_strace(tmp):
    check_lines(tmp, program('python3'), *PYTHON, at_least=300, env=PYTHON_ENV)


@timeout(300)
@waits
def test_threads_and_children_look_as_in_strace(tmp):
    check_lines(tmp, build(tmp, 'threads', '-pthread'), chances=[RESTARTED], at_least=40)
    check_lines(tmp, SH, '-c', CHILDREN, chances=[HANDLED], at_least=100)
    check_lines(tmp, SH, '-c', 'exec /bin/true', at_least=20)


def test_calls_of_32_bits_have_the_names_and_results_that_they_have_in_strace(tmp):
    need_root()
    for name in ('as32', 'in64'):
        command = build32(tmp, name)
        run(program('strace'), '-f', '-o', tmp / 'strace', '-e', CALLS32, command).ok()
        expected = names_and_results((tmp / 'strace').read_text())
        for backend in ('kernel', 'ptrace'):
            told = record('-q', '--backend', backend, '-s', CALLS32, '--', command).ok().err
            check_equal(told.count('32-bit calls are made: they are recorded under their names'), 1, 'warnings')
            check_equal(names_and_results(shown()), expected, f'{name} by {backend}')


def test_an_exec_by_another_thread_than_the_first_returns(tmp):
    in_kernel('-s', 'execve', '--', build(tmp, 'execs', '-pthread')).ok()
    lines = [re.sub(r' +=', ' =', line.partition(' ')[2]) for line in shown().splitlines()]
    check(len(lines) > 1 and all(line.endswith(') = 0') for line in lines), '\n'.join(lines))


def objects(text):
    """Calls as objects, without what differs from run to run."""
    found = [json.loads(line) for line in text.splitlines()]
    return [{
        key: value for key, value in item.items() if key in ('number', 'name', 'args', 'result', 'error', 'shown')
    } for item in found if item['event'] == 'syscall']


def test_json_has_the_calls_that_kymo_syscalls_has(tmp):
    need_root()
    command = [
        program('setarch'), '-R', KYMO, 'syscalls', *KERNEL, '-e', '%file', '--json', '-o', tmp / 'live',
        program('ls'), SOURCE / 'docs'
    ]
    run(*command).ok()
    run(program('setarch'), '-R', KYMO, 'record', '-q', '-s', '%file', *KERNEL, '-o', tmp / 'trace', '--',
        program('ls'), SOURCE / 'docs').ok()
    out = kymo('report', '--events', '--json', tmp / 'trace').ok().out
    live, recorded = objects((tmp / 'live').read_text()), objects(out)
    for item in live + recorded:  # stacks begin elsewhere for another kymo
        item['args'] = [re.sub(r'0x7f\w+', 'ADDRESS', text) for text in item['args']]
    check_equal(recorded, live, 'objects')
    check(len(live) > 10 and any(item.get('error') == 'ENOENT' for item in live), f'{len(live)} calls')
    first = json.loads(out.splitlines()[0])
    check(first['time_ns'] > 1.7e18 and first['duration_ns'] > 0 and first['pid'] == first['tid'], f'{first}')


def test_the_summary_has_counts_errors_and_times(tmp):
    command = [program('ls'), '-l', SOURCE / 'docs']
    in_kernel('-s', 'all', '--', *command).ok()
    counts = {
        row['name'].partition(':')[2]: (row['count'] + row['open'], row['errors']) for row in report_json()['calls']
    }
    rows = json.loads(kymo('syscalls', '-c', '--json', *command).ok().err)
    check_equal({name: counts.get(name) for name in ('execve', 'openat', 'statx', 'getdents64', 'mmap', 'close')}, {
        row['name']: (row['calls'], row['errors'])
        for row in rows if row['name'] in ('execve', 'openat', 'statx', 'getdents64', 'mmap', 'close')
    }, 'calls')
    check_matches(kymo('report').ok().out, r'syscall:openat +\d+ ')


def test_babeltrace_reads_memory_as_sequences():
    in_kernel('-s', 'write', '--', SH, '-c', 'echo 12345').ok()
    entry, leave = babeltrace()
    check_matches(
        entry,
        r'syscall:write: .*arg1 = 0x1, .*arg3 = 0x6, .*memory_length = \d+, memory = \[.*0x31, \[\d+\] = 0x32, \[\d+\] = 0x33'
    )
    check_matches(leave, r'syscall:return: .*result = 6, number = 1, memory_length = 0')


def test_calls_and_probes_are_in_one_trace_on_one_clock():
    # no breakpoints in other processes
    in_kernel('-s', 'write', '-p', 'libc:write n=%dx:u64', '--no-follow', '--', SH, '-c', 'echo 12345').ok()
    check_matches(kymo('report', '--events').ok().out, r' sh libc:write n=6\n.* sh write\(1, "12345\\n", 6\) += 6 <')
    names = [(item['event'], item['name']) for item in map(json.loads,
                                                           kymo('report', '--events', '--json').ok().out.splitlines())]
    check_equal(names, [('probe', 'libc:write'), ('syscall', 'write')], 'objects')


def begin_to_record(directory, pid):
    """Once it has written packets."""
    recorder = start(KYMO, 'record', '-s', 'access', *KERNEL, '--pid', pid, '-o', directory)
    recorder.wait_for('recording process', 1)
    eventually(lambda: any(path.stat().st_size > 1000 for path in directory.glob('calls_*')), 'packets', 60)
    return recorder


def test_a_running_process_is_recorded_and_outlives_a_killed_recorder(tmp):
    need_root()
    process = start(
        program('python3'), '-c',
        'import os, time\nprint("begun", flush=True)\nwhile not os.access("/an-end", 0): time.sleep(0.001)')
    process.wait_for('begun')
    begin_to_record(tmp / 'ended', process.pid).end(signal.SIGINT).ok()
    recorder = begin_to_record(tmp / 'killed', process.pid)
    check_untraced(process.pid)
    kill_between_writes(recorder)
    check(process.is_alive(), 'the process runs on')
    for name in ('ended', 'killed'):
        check_matches(kymo('report', '--events', tmp / name).ok().out, r'access\("/an-end", F_OK\) += -1 ENOENT')
        check(len(list(babeltrace(tmp / name))) > 10, 'records for others')
    in_kernel('-s', 'access', '--pid', process.pid, '--for', '0.1').ok()
    process.kill()


def test_a_killed_recorder_leaves_a_command_that_runs_on(tmp):
    need_root()
    recorder = start(KYMO, 'record', '-s', 'all', *KERNEL, '-o', tmp / 'trace', '--', SH, '-c',
                     f'echo begun; read line; echo $line > {tmp}/ended')
    recorder.wait_for('begun')
    recorder.signal(signal.SIGKILL)
    recorder.send('done\n')
    eventually(lambda: (tmp / 'ended').exists() and (tmp / 'ended').read_text() == 'done\n',
               'the command ends by itself', 60)


def test_losses_are_counted_and_shown(tmp):
    need_root()
    (tmp / 'many.c').write_text(GETPPID)
    run(program('gcc'), '-O1', '-o', tmp / 'many', tmp / 'many.c').ok()
    calls = 50000
    recorder = start(KYMO, 'record', '-s', 'getppid', *KERNEL, '--buffer', '64K', '--', SH, '-c',
                     f'echo begun; read line; {tmp}/many {calls}; touch {tmp}/done')
    recorder.wait_for('begun')
    recorder.signal(signal.SIGSTOP)  # no reader empties the buffer
    recorder.send('\n')
    eventually((tmp / 'done').exists, 'the calls are made', 60)
    recorder.signal(signal.SIGCONT)
    told = recorder.end().ok().err
    report = report_json()
    lost = report['lost_events']
    begun = sum(probe['count'] for probe in report['probes'] if probe['name'] == 'syscall:getppid')
    check(lost > 0 and begun <= calls <= begun + lost, f'{begun} calls and {lost} losses of {calls} calls')
    check_matches(told, rf', {lost:,} lost, in ')
    check_matches(kymo('report', '--events').ok().out, r'--- lost [\d,]+ events')
    items = map(json.loads, kymo('report', '--events', '--json').ok().out.splitlines())
    check_equal(sum(item['count'] for item in items if item['event'] == 'lost'), lost, 'losses in JSON')


def test_returns_from_signal_handlers_that_are_not_wanted_fill_no_buffer(tmp):
    need_root()
    signals = 20000
    script = (
        'import os, signal, sys\nsignal.signal(signal.SIGUSR1, lambda *_: None)\nprint("begun", flush=True)\nsys.stdin.readline()\n'
        f'for _ in range({signals}): signal.raise_signal(signal.SIGUSR1)\nos.chdir("/")\nopen("{tmp}/done", "w")')
    for wanted, fills in (('chdir', False), ('chdir,rt_sigreturn', True)):
        recorder = start(KYMO, 'record', '-s', wanted, *KERNEL, '--buffer', '64K', '--', program('python3'), '-c',
                         script)
        recorder.wait_for('begun')
        recorder.signal(signal.SIGSTOP)  # no reader empties the buffer
        recorder.send('\n')
        eventually((tmp / 'done').exists, 'the signals are handled', 60)
        recorder.signal(signal.SIGCONT)
        recorder.end().ok()
        (tmp / 'done').unlink()
        counts = {probe['name']: probe['count'] for probe in report_json()['probes']}
        check_equal((report_json()['lost_events'] > 0, counts['syscall:chdir']), (fills, 0 if fills else 1),
                    f'losses, and the last call, with -s {wanted}')


def test_counts_of_returns_from_signal_handlers_are_those_of_strace(tmp):
    need_root()
    script = 'import signal; signal.signal(signal.SIGUSR1, lambda *_: None)\nfor _ in range(2000): signal.raise_signal(signal.SIGUSR1)'
    command = (program('python3'), '-c', script)
    run(program('strace'), '-f', '-o', tmp / 'strace', '-e', 'trace=rt_sigreturn,tgkill', *command).ok()
    text = (tmp / 'strace').read_text()
    in_kernel('-s', 'rt_sigreturn,tgkill', '--buffer', '16M', '--', *command).ok()
    report = report_json()
    counts = {probe['name']: probe['count'] for probe in report['probes']}
    expected = {f'syscall:{name}': text.count(f'{name}(') for name in ('rt_sigreturn', 'tgkill')}
    check_equal(counts, {**expected, 'syscall:return': sum(expected.values())}, 'counts')
    check_equal(report['lost_events'], 0, 'losses')


def test_all_processes_are_recorded(tmp):
    need_root()
    name = tmp / 'a-name-that-nobody-else-has'
    recorder = start(KYMO, 'record', '--all', '-s', 'chdir', '-o', tmp / 'all')
    recorder.wait_for('recording every process', 1)
    run(SH, '-c', f'cd {name} 2>/dev/null; exit 0').ok()
    os.kill(recorder.pid, signal.SIGINT)
    recorder.end().ok()
    check_matches(kymo('report', '--events', tmp / 'all').ok().out, rf'chdir\("{name}"\) += -1 ENOENT')


def test_the_newest_calls_are_kept_by_overwrite():
    """On each CPU: so all but the beginning is on one."""
    one_cpu = program('taskset'), '-c', min(os.sched_getaffinity(0))
    in_kernel('-s', 'all', '--overwrite', '--buffer', '64K', '--', *one_cpu, SH, '-c', 'exec ls -lR /usr/include').ok()
    out = kymo('report', '--events').ok().out
    check_matches(out, r'exit_group\(0\) +')
    check(not re.search(r'execve\("[^"]*/ls"', out), 'the oldest are gone')


MANY_CALLS = '''
import os, sys
print('ready', flush=True)
sys.stdin.readline()
for _ in range(100_000):
    os.getppid()
print('done', flush=True)
sys.stdin.readline()
'''


def test_the_newest_calls_are_kept_while_the_recorder_sleeps():
    """What comes meanwhile is ten times what the kernel's buffer holds."""
    need_root()
    recorder = start(KYMO, 'record', *KERNEL, '-s', 'all', '--overwrite', '--buffer', '64K', '--', program('python3'),
                     '-c', MANY_CALLS)
    recorder.wait_for('^ready$')
    recorder.signal(signal.SIGSTOP)
    recorder.send('\n')
    recorder.wait_for('^done$')
    recorder.signal(signal.SIGCONT)
    recorder.end(input='\n').ok()
    check_equal(report_json()['lost_events'], 0, 'lost events')
    check(report_json()['overwritten_packets'] > 0, 'what was overwritten is told')
    lines = kymo('report', '--events').ok().out.splitlines()
    check_matches(lines[-1], r'exit_group\(0\) +')
    (at, ) = [i for i, line in enumerate(lines) if 'write(1, "done' in line]
    check(all('getppid()' in line for line in lines[at - 100:at]), 'the calls right before are there',
          *lines[at - 100:at])


def test_a_user_without_rights_is_told_which_are_missing(tmp):
    tmp.chmod(0o777)
    for words in ((*KERNEL, '-s', '%file', '--', 'true'), ('--all', '-s', '%file')):
        record(*words, user=NOBODY).refused('takes root, or the capabilities CAP_BPF and CAP_PERFMON')


def test_wrong_words_are_answered_with_a_sentence():
    record(*KERNEL, '-s', 'open', '-m', '*', '--', 'true').refused('leave --backend kernel out, or --marker', 2)
    record(*KERNEL, '-s', 'open', '--', '/no/such/program').refused('cannot run /no/such/program: No such file')
    record(*KERNEL, '-s', 'open', '--pid', 4194303).refused('no process 4194303')
    kymo('report', '--events', '--json', '--wall').refused('--wall is for lines', 2)
    kymo('report', '--events', '--json', '--graph').refused("exclude each other", 2)
