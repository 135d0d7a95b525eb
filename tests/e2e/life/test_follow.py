"""A command with all that it starts, and what a process makes from some moment on."""
import collections
import contextlib
import os
import re
import shutil
import signal
import time
from pathlib import Path

import processes
import remains
from kernelcount import TracefsCounter, function_offset, library
from killing import NO_LEAKS, spread
from kymotest import (KYMO, KYMO_PLAIN, NOBODY, SYS_CLOCK_NANOSLEEP, alone, check, check_equal, check_matches,
                      check_undisturbed, check_untraced, event_counts, events, eventually, kymo, need_32_bit_programs,
                      program, record, report_json, run, sampled, share, skip, start, start_record, target, target_path,
                      timeout)
from seeds import seed
from test_children import check_vforks

N = 500
SYS_NANOSLEEP_32 = 162


def streams():
    return [path.name for path in Path('kymo.data').glob('stream_*')]


def commands():
    """Of all processes of the recording, in the order in which they began to be what they are."""
    return [process['command'] for process in report_json()['processes']]


# ---- counts --------------------------------------------------------------------------------------

MAKEFILE = r'''
program: main.o a.o b.o c.o
	gcc -o $@ $^
%.o: %.c
	gcc -O1 -c -o $@ $<
'''


def make_project():
    for name in 'abc':
        Path(f'{name}.c').write_text(f'#include <stdio.h>\nint {name}(int x) {{ return printf("%d", x); }}\n')
    Path('main.c').write_text(
        'int a(int); int b(int); int c(int);\nint main(void) { return a(1) + b(2) + c(3) < 0; }\n')
    Path('Makefile').write_text(MAKEFILE)


def record_beside_kernel(command, spec, path, offset):
    """Record `spec` while the kernel counts `offset` of file `path` in the same processes: (kymo's count, the
    kernel's)."""
    waiting = ['sh', '-c', 'read go; exec "$@"', 'sh', *command]
    recorder = start(KYMO, 'record', '-q', '-p', spec, '--', *waiting)
    shell = eventually(lambda: processes.children(recorder.pid), 'the command is there')[0]
    eventually(
        lambda: processes.status(shell)['Name'] == 'sh' and Path(f'/proc/{shell}/syscall').read_text().startswith(
            '0 0x0 '), 'it reads its input')
    counter = TracefsCounter(shell, {'place': (path, offset)}, children=True, at_exec=True)
    recorder.end(input='go\n', seconds=100).ok()
    counts = [
        process['count'] for process in report_json()['processes'] if not process['command'].startswith('sh -c read go')
    ]
    check_equal(report_json()['lost_events'], report_json()['lost_in_vforks'], 'lost')
    return sum(counts), counter.counts()['place']


def once_in_malloc():
    """An instruction of malloc() that each call runs once and that kymo does not displace."""
    libc = library('libc.so.6')
    begin = function_offset(libc, 'malloc')
    done = run('objdump', '-d', f'--start-address={begin:#x}', f'--stop-address={begin + 40:#x}', libc)
    places = [(int(match[1], 16), match[2])
              for match in re.finditer(r'^\s+(\w+):\t[0-9a-f ]+\t(\w+)', done.out, re.MULTILINE)]
    straight = [
        place for place, name in places[:1 + next(i for i, (_, name) in enumerate(places) if name.startswith('j'))]
    ]
    behind = [place for place in straight if place >= begin + 9]
    return (libc, behind[0]) if behind else skip('malloc() of this libc begins in another way')


@alone
@timeout(240)
def test_make_with_two_jobs_is_recorded_as_the_kernel_counts_it(tmp):
    program('make')
    program('gcc')
    make_project()
    here, kernel = record_beside_kernel(['make', '-j2'], 'libc:malloc', *once_in_malloc())
    check_equal(here, kernel, 'calls of malloc()')
    check(run('./program').out == '123', 'what was made works')
    there = {command.split(' ')[0].split('/')[-1] for command in commands()}
    check({'make', 'gcc', 'cc1', 'as', 'ld'} <= there, 'all programs are in the table', there)


@alone
def test_a_script_with_pipelines_and_subshells_is_recorded_as_the_kernel_counts_it(tmp):
    script = 'x=$(echo a | tr a b | cat); (echo $x; (exit 3); echo $?) | sed s/b/c/; for i in 1 2 3; do (ls /) >/dev/null; done'
    here, kernel = record_beside_kernel([program('bash'), '-c', script], 'libc:malloc', *once_in_malloc())
    check_equal(here, kernel, 'calls of malloc()')


def test_all_kinds_of_children_record_under_their_own_ids(tmp):
    said = record('-p', 'forker:work_a n=%edi:s32', '--', target_path('forker'), N).ok().json()
    tids = collections.Counter(event['tid'] for event in events())
    expected = said['parent'] + said['fork'] + said['fork_exit'] + said['thread_fork'] + said['spawn'] + said['exec']
    check_vforks(sum(tids.values()), expected, said)
    check_equal(sorted(tids.values())[:5], [N] * 5, 'calls of each child')
    for thread in report_json()['threads']:
        check_equal(thread['pid'], thread['tid'], 'each is the first thread of its process')


def test_a_command_goes_on_recording_when_it_executes_another(tmp):
    said = record('-p', 'forker:work_a', '--', 'sh', '-c', 'exec "$@"', 'sh', target_path('forker'), '-e',
                  N).ok().json()
    expected = sum(said.values()) - said['vfork'] + N
    check_vforks(event_counts()['forker:work_a'], expected, said)


def check_family(status, *args):
    result = record('-p', 'family:work_a', '--', target_path('family'), *args).ended(status)
    check('warning' not in result.err, 'nothing was wrong', result)
    return result


def test_a_thread_that_executes_a_program_beside_others(tmp):
    result = check_family(7, 'exec', 12)
    check_equal(result.out, 'last\n', 'output')
    check_equal(event_counts()['family:work_a'], 12 * 5, 'records')
    check_equal(len(report_json()['processes']), 13, 'programs')


def test_threads_and_children_made_at_the_same_time_and_children_killed_at_once(tmp):
    said = check_family(3, 'storm').json()
    check_equal(event_counts()['family:work_a'], said['calls'], 'records')
    check_equal(report_json()['lost_events'], 0, 'lost')


def test_job_control_works_and_is_seen_by_the_parent(tmp):
    check_equal(event_counts()['family:work_a'] if check_family(0, 'stops') else 0, 20, 'records')


def test_ignored_signals_do_not_wake_up_anybody(tmp):
    check_family(0, 'wakes')


def test_a_daemon_is_recorded_to_its_end_and_the_status_is_the_commands(tmp):
    check_equal(check_family(5, 'daemon').out.splitlines()[0], 'left', 'output')
    check_equal(event_counts()['family:work_a'], 11, 'records')


# ---- commands run as they do alone ---------------------------------------------------------------

MULTIPROCESSING = r'''
import multiprocessing, subprocess, sys
def square(x): return x * x
if __name__ == '__main__':
    for method in 'fork', 'spawn':
        with multiprocessing.get_context(method).Pool(3) as pool:
            print(sum(pool.map(square, range(200))))
    print(subprocess.run(['sh', '-c', 'cat; exit 4'], input=b'', stdout=subprocess.PIPE).returncode)
    print(subprocess.check_output('echo a | tr a b', shell=True))
    sys.exit(6)
'''


@timeout(300)
def test_python_with_processes_of_all_kinds(tmp):
    Path('pool.py').write_text(MULTIPROCESSING)
    check_undisturbed(['/usr/bin/python3', 'pool.py'], ['-p', 'libc:malloc'])


@timeout(300)
def test_two_hundred_short_children_leave_nothing_behind(tmp):
    script = 'i=0; while [ $i -lt 200 ]; do /bin/true || exit 1; i=$((i + 1)); done; exit 3'
    check_undisturbed(['/bin/sh', '-c', script], ['-q', '-p', 'libc:malloc', '-p', 'libc:__libc_start_main'])
    check(len(streams()) <= 2 * 3 * os.cpu_count() + 8, 'stream files are used again', streams())
    check_equal(event_counts()['libc:__libc_start_main'], 201, 'programs')
    check_equal(processes.children(os.getpid()), [], 'children that nobody waits for')


def test_of_processes_that_end_or_execute_nobody_is_told_that_their_code_was_changed(tmp):
    """What cannot be read any more, when the recorder looks at its probes for the first time, is no change."""
    script = tmp / 'tree.sh'
    script.write_text(
        'for k in 1 2 3 4; do\n  for i in 1 2 3 4 5; do\n'
        '    bash -c \'x=$(echo hi | cat); y=$(bash -c "echo \\$(date)"); exec bash -c "exec bash -c :"\'\n  done &\ndone\nwait\n'
    )
    said = record('-s', 'all', '--', 'bash', script).ok().err
    check('records nothing' not in said and 'out of its code' not in said, 'nobody has changed anything', said)
    check('not recorded:' not in run(KYMO, 'report').ok().out, 'and the report knows of no gap')


def test_exit_statuses_and_signals_are_those_of_the_command(tmp):
    check_undisturbed(['timeout', '0.5', 'sleep', '50'], ['-q', '-p', 'libc:malloc'])
    check_undisturbed(['sh', '-c', 'sh -c "kill -SEGV \\$\\$"; echo $?; kill -TERM $$'], ['-q', '-p', 'libc:malloc'])
    check_undisturbed(['sh', '-c', 'trap "echo caught; exit 9" USR1; kill -USR1 $$; sleep 1'],
                      ['-q', '-p', 'libc:malloc'])


def test_commands_have_the_signals_that_kymo_was_started_with(tmp):
    """Also that which kymo has a handler for itself."""
    def signals(*words):
        def prepare():
            for i, number in enumerate(numbers):
                signal.signal(number, signal.SIG_IGN if i % 2 else signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_BLOCK, numbers[1:3])

        numbers = range(signal.SIGRTMAX - first, signal.SIGRTMAX - first - 4, -1)
        return run(*words, 'grep', '-E', '^Sig[^Q]', '/proc/self/status', preexec_fn=prepare).ok().out

    for first in (0, 1, 2):
        bare = signals()
        check_equal(signals(KYMO, 'record', '-q', '-p', 'libc:malloc', '--'), bare, 'of a followed one')
        check_equal(signals(KYMO, 'record', '-q', '--no-follow', '-p', 'libc:malloc', '--'), bare, 'of another')
        check_equal(signals(KYMO, 'syscalls', '-o', 'lines', '--'), bare, 'of a traced one')


def test_signal_masks_and_ignored_signals_are_inherited_as_without(tmp):
    check_undisturbed(['sh', '-c', 'trap "" USR2; sh -c "grep -E \'^Sig[^Q]|^Shd\' /proc/self/status"'],
                      ['-q', '-p', 'libc:malloc'])
    check_undisturbed([
        '/usr/bin/python3', '-c', r'''
import os, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD, signal.SIGUSR1])
if not os.fork(): os._exit(3)
try: os.wait()
except ChildProcessError: print('collected by the kernel')
print(signal.sigpending(), signal.getsignal(signal.SIGCHLD))
'''
    ], ['-q', '-p', 'libc:malloc'])


# ---- what specs mean -----------------------------------------------------------------------------


def test_a_file_that_only_children_have(tmp):
    script = f'{target_path("callmany")} 100; {target_path("callmany")} 200; exit 3'
    result = record('-p', 'callmany:work_a', '--', 'sh', '-c', script).ended(3)
    check('warning' not in result.err, 'it was met', result)
    check_equal(event_counts()['callmany:work_a'], 300, 'records')


def test_a_file_that_nobody_has_is_told_at_the_end(tmp):
    result = record('-p', 'libc:malloc', '-p', 'nosuch:function', '--late', '--', 'sh', '-c', 'exit 4').ended(4)
    check_matches(result.err, r"^kymo: warning: no process loaded a file called nosuch \('nosuch:function'\)\.$")
    result = record('-p', 'libcc:malloc', '--late', '--', 'true').ok()
    check_matches(result.err,
                  r"^kymo: warning: no process loaded a file called libcc \('libcc:malloc'\)\. Did you mean libc\?$")
    result = record('-p', 'libcrypto:RAND_bytes', '--late', '--', 'true').ok()
    check_matches(result.err,
                  r"^kymo: warning: no process loaded a file called libcrypto \('libcrypto:RAND_bytes'\)\.$")


def test_an_offset_beyond_its_function_is_an_error_before_the_command_begins(tmp):
    result = record('-p', 'libc:malloc+0x99999', '--', 'touch', 'run')
    check_equal(result.status, 1, 'exit status')
    check_matches(result.err, r'malloc of \S+ has \d+ bytes: \+0x99999 is beyond its end')
    check(not (tmp / 'run').exists(), 'the command was run')


def test_explain_refuses_an_offset_beyond_its_function():
    run(KYMO, 'explain', 'libc', 'malloc+0x99999').refused(r'malloc of \S+ has \d+ bytes: \+0x99999 is beyond its end')
    size = int(re.search(r'has (\d+) bytes', run(KYMO, 'explain', 'libc', 'malloc+0x99999').err)[1])
    run(KYMO, 'explain', 'libc', f'malloc+{size}').refused('is beyond its end')


def test_a_mistyped_file_is_an_error_before_the_command_begins(tmp):
    for spec, words in (('libcc:malloc',
                         r'there is no file called libcc, and touch was not run\. Did you mean libc\? Write --late'),
                        ('./nosuch.so:f',
                         r'there is no file called \./nosuch\.so, and touch was not run\. Write --late')):
        result = record('-p', spec, '--', 'touch', 'run')
        check_equal(result.status, 1, 'exit status')
        check_matches(result.err, words)
        check(not (tmp / 'run').exists(), 'the command was run')
    for spec in ('libc.so.6:malloc', 'libcrypto:RAND_bytes', 'sh:main', 'ld-linux-x86-64:_dl_open'):
        check('there is no file' not in record('-p', spec, '--', 'touch', 'run').err, spec)
    library = target_path('libctor.so')
    check('there is no file' not in record('-p', 'libctor:ctor_work', '--', target_path('ctor')).ok().err,
          'it is linked with it')
    check('there is no file' not in record('-p', f'{library}:ctor_work', '--', target_path('ctor')).ok().err, 'a path')


def check_is_refused_before(tmp, words, *options):
    result = record(*options, '--', 'sh', '-c', "bash -c 'touch run'")
    check_equal(result.status, 1, 'exit status')
    check_matches(result.err, words)
    check(not (tmp / 'run').exists(), 'the command was run')


def test_a_function_that_a_childs_file_does_not_have_is_an_error_before_the_command_begins(tmp):
    bash = program('bash')
    check_is_refused_before(tmp, r'/bash has no function execute_comand, and sh was not run; the nearest names are '
                            r'.*execute_command.* Write --late', '-p', 'bash:execute_comand')
    check_is_refused_before(tmp, r'/bash has no function nosuch\*, and sh was not run. Write --late', '-r',
                            f'{bash}:nosuch*')
    record('-p', 'bash:execute_command', '--', 'sh', '-c', "bash -c 'touch run'").ok()
    check((tmp / 'run').exists(), 'the command was run')


def test_mistyped_files_of_branches_and_markers_are_errors_before_the_command_begins(tmp):
    check_is_refused_before(tmp, r'there is no file called \./nix, and sh was not run\. Write --late', '-b', './nix')
    check_is_refused_before(tmp, r'there is no file called libcc, .*Did you mean libc\?', '-b', 'libcc:mem*')
    check_is_refused_before(tmp, r'there is no file called \./nix, and sh was not run', '-m', './nix:*')


def test_a_function_that_a_child_does_not_have_leaves_it_the_other_probes(tmp):
    path = target_path('callmany')
    result = record('--late', '-p', f'{path}:nosuch', '-p', f'{path}:work_a+0x99999', '-p', f'{path}:work_b', '--',
                    'sh', '-c', f'{path} 300 work_b; {path} 400 work_b; true').ok()
    counts = {name: n for name, n in event_counts().items() if n}
    check_equal(counts, {'callmany:work_b': 700}, 'events')
    for spec, reason in (('nosuch', 'has no function nosuch'), (r'work_a\+0x99999', 'is beyond its end')):
        check_equal(
            len(re.findall(rf"warning: '\S+:{spec}' is not recorded where a process of the tree has that file: .*{reason}",
                           result.err)), 1, f'warnings of {spec}: {result.err}')
    check('without probes' not in result.err and 'no process loaded' not in result.err, result.err)


def test_a_function_that_its_file_does_not_have_is_an_error_before_the_command_begins(tmp):
    record('-p', 'libc:nosuch', '--', 'sh', '-c', 'echo run').refused('no function nosuch')
    record('--no-follow', '-p', 'nosuch:function', '--', 'sh', '-c', 'echo run').refused('nosuch')


def end_sleeper(recorder):
    """Ends the tiny32 below the recorder, once it sleeps."""
    def sleepers():
        below = [pid for child in processes.children(recorder.pid) for pid in processes.children(child)]
        return [
            pid for pid in below
            if processes.status(pid).get('Name') == 'tiny32' and processes.call(pid) == SYS_NANOSLEEP_32
        ]

    n = recorder.out.count('\n')
    os.kill(eventually(sleepers, 'it sleeps', 60)[0], signal.SIGTERM)
    eventually(lambda: recorder.out.count('\n') > n, 'its end is told')


def test_programs_that_are_not_recorded_run_on_and_are_told_once(tmp):
    path = target_path('tiny32')  # a 32-bit program, which sleeps for a minute
    need_32_bit_programs()
    recorder = start(KYMO, 'record', '-p', 'libc:malloc', '--', 'sh', '-c',
                     f'{path}; echo $?; {path}; echo $?; ls / >/dev/null; exit 6')
    for _ in range(2):
        end_sleeper(recorder)
    result = recorder.end().ended(6)
    check_equal(result.out, f'{128 + signal.SIGTERM}\n' * 2, 'output')
    check_equal(result.err.count('is not recorded'), 1, f'warnings\n{result}')
    check(any(command.startswith('ls') for command in commands()), 'others are recorded', commands())


def test_a_program_that_may_not_be_read_runs_on(tmp):
    if os.getuid():
        skip('needs a second user')
    shutil.copy('/bin/echo', tmp / 'secret')
    (tmp / 'secret').chmod(0o111)
    tmp.chmod(0o777)
    result = record('-p', 'libc:malloc', '--', 'sh', '-c', f'{tmp}/secret said; {tmp}/secret again; ls / >/dev/null',
                    user=NOBODY).ok()
    check_equal(result.out, 'said\nagain\n', 'output')
    check_equal(result.err.count('is not recorded'), 1, f'warnings\n{result}')


def test_a_set_uid_program_is_told_to_have_lost_its_rights(tmp):
    if os.getuid():
        skip('needs a second user')
    shutil.copy('/usr/bin/id', tmp / 'id')
    (tmp / 'id').chmod(0o4755)
    tmp.chmod(0o777)
    command = ['sh', '-c', f'{tmp}/id -u; exit 4']
    if run(*command, user=NOBODY).out != '0\n':
        skip('set-uid programs have no effect here')
    result = record('-p', 'libc:malloc', '--', *command, user=NOBODY).ended(4)
    check_equal(result.out, f'{NOBODY}\n', 'output')
    check_matches(result.err, '^kymo: warning: id is set-uid, and runs without')
    check_undisturbed(command, ['-q', '--no-follow', '-p', 'libc:malloc'], user=NOBODY)


# ---- attaching, leaving --------------------------------------------------------------------------

LOOP = r'''
import os, subprocess, sys, time
print("ready", flush=True)
sys.stdin.readline()
child = os.fork()
if not child:
    print("child", os.getpid(), flush=True)
    while True:
        os.getppid()
        time.sleep(0.001)
sleeper = subprocess.Popen(['/usr/bin/python3', '-c', 'import os, time\nwhile True: os.getppid(); time.sleep(0.001)'])
print("sleeper", sleeper.pid, flush=True)
sys.stdin.readline()
for pid in child, sleeper.pid:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
print("end", flush=True)
'''
SLEEPS = (SYS_CLOCK_NANOSLEEP, 270, 23)  # pselect6, select: as other versions of Python do it


def follow_a_family():
    """A process, recorded with --follow, and the pids of a forked child and of an executed one."""
    process = start('/usr/bin/python3', '-c', LOOP)
    process.wait_for('^ready$')
    before = remains.mappings(process.pid)
    recorder = start(KYMO, 'record', '--follow', '-p', 'libc:getppid', '--pid', process.pid)
    recorder.wait_for('recording process', 1)
    process.send('\n')
    pids = [int(process.wait_for(rf'^{name} (\d+)$')[1]) for name in ('child', 'sleeper')]
    for pid in pids:
        eventually(lambda: processes.changed_text(pid), f'probes are in {pid}')
        eventually(lambda: processes.call(pid) in SLEEPS, f'{pid} sleeps, so it has called getppid()')
    return process, before, recorder, pids


def check_family_is_clean(process, before, pids):
    for pid in pids:
        check_equal(processes.changed_text(pid), [], f'text of {pid}')
        check(not remains.are_there(pid), f'nothing is left in {pid}')
    for pid in [process.pid, *pids]:
        check_untraced(pid)
        remains.check_running(pid)
    check_equal([mapping for mapping in before if remains.MEMFD in mapping], [], 'mappings before')
    check(not remains.are_there(process.pid), 'nothing is left in the parent')
    check_matches(process.end(input='\n').ok().out, '^end$')


def test_an_attached_process_and_its_children_to_come(tmp):
    process, before, recorder, pids = follow_a_family()
    recorder.end(signal.SIGINT).ok()
    check_family_is_clean(process, before, pids)
    tids = {event['tid'] for event in events()}
    check_equal(tids, set(pids), 'threads that called it')


BUSY_PARENT = r'''
import os, sys
print("ready", flush=True)
for i in range(400):
    child = os.fork()
    if not child:
        for k in range(20): os.getppid()
        os._exit(k)
    assert os.waitpid(child, 0)[1] == 19 << 8
print("end", flush=True)
'''


def test_children_born_while_probes_go_in_are_recorded_from_their_birth_or_not_at_all(tmp):
    process = start('/usr/bin/python3', '-c', BUSY_PARENT)
    process.wait_for('^ready$')
    recorder = start(KYMO, 'record', '-q', '--follow', '-p', 'libc:getppid', '--pid', process.pid)
    check_equal(process.end().ok().out, 'ready\nend\n', 'output')
    result = recorder.end()
    if result.status == 0:
        check_equal(result.err, '', 'warnings')
        check_equal(
            set(collections.Counter(event['tid'] for event in events()).values()) - {20}, set(), 'calls of a child')


def test_after_a_kill_all_run_on_and_each_can_be_cleaned(tmp):
    process, before, recorder, pids = follow_a_family()
    recorder.end(signal.SIGKILL)
    for pid in [process.pid, *pids]:
        remains.check_running(pid)
        kymo('detach', pid).ok()
    check_family_is_clean(process, before, pids)
    kymo('report').ok()


def test_the_time_is_up_while_children_are_born(tmp):
    script = 'while :; do /bin/true; (:); done'
    recorder = start(KYMO, 'record', '-p', 'libc:malloc', '--for', '1.5', '--', 'sh', '-c', script)
    shell = eventually(lambda: processes.children(recorder.pid), 'the command is there')[0]
    recorder.wait_for('waiting for sh', 1)
    check_untraced(shell)
    with processes.stopped(shell):
        check_equal(processes.changed_text(shell), [], 'text')
        check(not remains.are_there(shell), 'nothing is left')
    time.sleep(0.2)
    check(processes.is_alive(shell), 'it runs on')
    os.kill(shell, signal.SIGTERM)
    recorder.end().ended(128 + signal.SIGTERM)


def test_without_following_nobody_is_the_tracer(tmp):
    recorder = start(KYMO, 'record', '--no-follow', '-p', 'libc:getppid', '--', '/usr/bin/python3', '-c', LOOP)
    recorder.wait_for('^ready$')
    command = processes.children(recorder.pid)[0]
    eventually(lambda: processes.tracer(command) == 0, 'it is let go')
    recorder.send('\n')
    child = int(recorder.wait_for(r'^child (\d+)$')[1])
    check_untraced(child)
    recorder.end(input='\n').ok()
    check_equal(event_counts()['libc:getppid'], 0, 'records of children')


# ---- what a program costs ------------------------------------------------------------------------

# the machine's other work decides how many waitid() and poll() are, and to some extent pread64()
COUNTED = 'ptrace,openat,pread64,pwrite64,fallocate,getdents64,wait4'
MOST_A_PROGRAM = {
    'ptrace': 230, 'openat': 45, 'pread64': 150, 'pwrite64': 60, 'fallocate': 20, 'getdents64': 9, 'wait4': 90
}
MOST_WITH_CALLS = {
    'ptrace': 370, 'openat': 50, 'pread64': 500, 'pwrite64': 200, 'fallocate': 25, 'getdents64': 9, 'wait4': 150
}


def calls_a_program(*what):
    """System calls that the recorder makes for one more program of a tree."""
    counts = []
    for n in (10, 30):
        script = f'i=0; while [ $i -lt {n} ]; do /bin/true; i=$((i+1)); done'
        run(program('strace'), '-qq', '-o', 'calls', '-e', f'trace={COUNTED}', '-e', 'signal=none', KYMO_PLAIN,
            'record', '-q', '-o', 'counted', *what, '--', 'sh', '-c', script).ok()
        counts.append(collections.Counter(re.findall(r'^(\w+)\(', Path('calls').read_text(), re.MULTILINE)))
    return {call: (counts[1][call] - counts[0][call]) / 20 for call in COUNTED.split(',')}


@timeout(100)
def test_a_program_of_a_tree_takes_few_calls_of_the_recorder(tmp):
    # what is kept of libc is there
    run(KYMO_PLAIN, 'record', '-q', '-o', 'counted', '-p', 'libc:malloc', '-s', '%file', '--', '/bin/true').ok()
    for what, most in ((['-p', 'libc:malloc'], MOST_A_PROGRAM), (['-s', '%file'], MOST_WITH_CALLS)):
        calls = calls_a_program(*what)
        check(all(calls[call] <= limit for call, limit in most.items()), f'{what[0]}: no more calls than {most}', calls)


# ---- kills at each step --------------------------------------------------------------------------

CALLS = 'ptrace,pwrite64,wait4,waitid,poll,pidfd_open,pidfd_getfd,mmap,munmap,rename'


@sampled
@timeout(400)
def test_a_recorder_killed_at_each_step_leaves_a_whole_tree_that_runs_on(tmp):
    forker = target_path('forker')
    shell = ['sh', '-c', '"$@" > out; echo $? > status', 'sh', forker, '50']
    command = [KYMO, 'record', '-q', '-o', 'killed', '-p', 'forker:work_a', '-p', 'libc:malloc', '--', *shell]
    run(program('strace'), '-qq', '-o', 'calls', '-e', f'trace={CALLS}', '-e', 'signal=none', *command,
        env=NO_LEAKS).ok()
    calls = [re.match(r'\w+', line)[0] for line in Path('calls').read_text().splitlines() if re.match(r'\w+\(', line)]
    expected = Path('out').read_text()
    before = collections.Counter(calls[:calls.index('ptrace')])  # there is no command yet
    points = [(call, number) for call, number in spread(calls, 40) if number > before[call]]
    seed()
    for call, number in share(points, 2):
        for name in ('out', 'status'):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)
        run(program('strace'), '-qq', '-o', '/dev/null', '-e', f'trace={call}', '-e', 'signal=none', '-e',
            f'inject={call}:signal=KILL:when={number}', *command, env=NO_LEAKS)
        eventually(lambda: Path('status').exists() and Path('status').read_text(),
                   f'the command ends, killed at {call} {number}', 60)
        check_equal((Path('status').read_text(), Path('out').read_text()), ('0\n', expected),
                    f'killed at {call} {number}')
    check(len(points) > 20, 'it was killed at many steps', points)
