"""What `kymo syscalls` shows and how: live lines, sets, counts, JSON, processes that run already, signals and ends,
and what it says of wrong words."""
import json
import os
import re
import signal

import processes
from kymotest import (KYMO, check, check_equal, check_matches, check_same, eventually, kymo, program, run, start,
                      target)

SH = program('sh')


def lines(text):
    return [re.sub(r'\) += ', ') = ', line) for line in text.splitlines()]


def test_lines_go_to_stderr_and_the_status_is_the_commands(tmp):
    result = kymo('syscalls', '-e', 'exit_group', SH, '-c', 'echo out; exit 3').ended(3)
    check_equal(result.out, 'out\n')
    check_same(lines(result.err), ['exit_group(3) = ?', '+++ exited with 3 +++'])


def test_results_stand_in_a_column():
    err = kymo('syscalls', '-e', 'exit_group', program('true')).ok().err
    check_equal(err.splitlines()[0], 'exit_group(0)                           = ?')


def test_a_signal_and_the_death_by_it_are_shown():
    result = kymo('syscalls', '-e', 'kill', SH, '-c', 'kill -USR1 $$').ended(128 + signal.SIGUSR1)
    shown = lines(result.err)
    check_matches(shown[0], r'^kill\(\d+, SIGUSR1\) = 0$')
    check_matches(shown[1], r'^--- SIGUSR1 \{si_signo=SIGUSR1, si_code=SI_USER, si_pid=\d+, si_uid=\d+\} ---$')
    check_same(shown[2:], ['+++ killed by SIGUSR1 +++'])


def test_only_calls_that_succeed_or_fail_are_shown():
    command = [SH, '-c', 'cd /; cd /nonexistent; exit 0']
    good = lines(kymo('syscalls', '-z', '-e', 'chdir', *command).ok().err)
    check('chdir("/") = 0' in good and not any('nonexistent' in line and 'chdir' in line for line in good), str(good))
    failed = lines(kymo('syscalls', '-Z', '-e', 'chdir', *command).ok().err)
    check('chdir("/nonexistent") = -1 ENOENT (No such file or directory)' in failed and 'chdir("/") = 0' not in failed,
          str(failed))


def test_a_path_selects_calls_by_name_and_by_descriptor(tmp):
    (tmp / 'file').write_text('text')
    shown = lines(kymo('syscalls', '-P', tmp / 'file', program('head'), '-c', '2', tmp / 'file').ok().err)
    check_same([line.split('(')[0] for line in shown], ['openat', 'read', 'close', '+++ exited with 0 +++'])


def test_durations_times_and_paths_stand_in_their_places():
    shown = kymo('syscalls', '-T', '-t', '-y', '-e', 'close', program('true')).ok().err.splitlines()[0]
    check_matches(shown, r'^\d\d:\d\d:\d\d close\(3</\S+>\) += 0 <\d+\.\d{6}>$')


def test_counts_are_those_of_the_lines():
    command = [program('ls'), '/']
    names = [
        line.split('(')[0] for line in kymo('syscalls', *command).ok().err.splitlines() if not line.startswith('+++')
    ]
    table = kymo('syscalls', '-c', *command).ok().err.splitlines()
    check_equal(table[0], '% time     seconds  usecs/call     calls    errors syscall')
    counts = {row.split()[-1]: int(row.split()[3]) for row in table[2:-2]}
    expected = {name: names.count(name) for name in set(names)}
    del expected['exit_group']  # it never returns
    check_same([f'{name} {n}' for name, n in sorted(counts.items())],
               [f'{name} {n}' for name, n in sorted(expected.items())], 'counts')
    check_equal(int(table[-1].split()[3]), sum(counts.values()), 'total')
    as_json = json.loads(kymo('syscalls', '-c', '--json', *command).ok().err)
    check_equal({row['name']: row['calls'] for row in as_json}, counts)


def test_json_has_an_object_a_line(tmp):
    kymo('syscalls', '--json', '-f', '-o', tmp / 'json', SH, '-c', 'cd /nonexistent; /bin/true; exit 3').ended(3)
    events = [json.loads(line) for line in (tmp / 'json').read_text().splitlines()]
    failed = next(event for event in events if event.get('args') == ['"/nonexistent"'])
    check_equal((failed['name'], failed['result'], failed['error'], failed['shown']),
                ('chdir', -2, 'ENOENT', '-1 ENOENT (No such file or directory)'))
    execs = [event for event in events if event.get('name') == 'execve']
    check_equal(execs[0]['args'][1], f'["{SH}", "-c", "cd /nonexistent; /bin/true; exit"...]')
    check_same(sorted(event['status'] for event in events if event['event'] == 'end'), [0, 3])
    check_equal([event['result'] for event in events if event.get('name') == 'exit_group'], [None, None])


def test_a_running_process_is_seen_and_left_as_it_was():
    process = target('selfcheck', '-t', '4')
    tracer = start(KYMO, 'syscalls', '-f', '--pid', process.pid)
    eventually(lambda: tracer.output(1).count('\n') > 3, 'lines of the process', 30)
    os.kill(tracer.pid, signal.SIGINT)
    tracer.end().ok()
    check_equal(re.search(r'^TracerPid:\t(\d+)$', open(f'/proc/{process.pid}/status').read(), re.MULTILINE)[1], '0')
    check(process.is_alive(), 'the process runs on')


def test_a_process_outlives_a_killed_tracer():
    process = target('selfcheck', '-t', '4')
    tracer = start(KYMO, 'syscalls', '-f', '--pid', process.pid)
    eventually(lambda: tracer.output(1).count('\n') > 3, 'lines of the process', 30)
    tracer.kill()
    eventually(lambda: 'TracerPid:\t0' in open(f'/proc/{process.pid}/status').read(), 'nobody traces it', 30)
    check(process.is_alive(), 'the process runs on')


def test_a_call_that_waits_can_be_seen(tmp):
    waiting = start(KYMO, 'syscalls', '-e', 'read', program('cat'))
    eventually(lambda: waiting.output(1).endswith('read(0, '), 'the line of a call that waits', 30)
    waiting.end(input='x').ok()


def test_followed_children_are_told_apart_and_others_are_not_shown(tmp):
    command = [SH, '-c', '/bin/true; exit 0']
    check_equal(kymo('syscalls', '-e', 'exit_group', *command).ok().err.count('exit_group'), 1)
    followed = kymo('syscalls', '-f', '-e', 'exit_group', *command).ok().err
    check_equal(followed.count('exit_group(0)'), 2)
    check_matches(followed, r'^\[pid +\d+\] exit_group\(0\)')


def begun_lines(path):
    """What stands before the calls in the file, up to now."""
    return {line.split()[0] for line in path.read_text().splitlines() if 'getpgid(' in line} if path.exists() else set()


def check_numbered(path, *options):
    process = target('numbered', '-t', 2)
    tids = {str(tid) for tid in processes.threads(process.pid)}
    tracer = start(KYMO, 'syscalls', *options, '-o', path, '--pid', process.pid)
    eventually(lambda: len(begun_lines(path) & tids) == 2, 'lines of both threads', 30)
    process.end().ok()
    tracer.end().ok()
    odd = [line for line in path.read_text().splitlines() if not re.match(rf'({"|".join(tids)}) +\S', line)]
    check_same(odd, [], f'lines without a number with {options}')
    check_matches(path.read_text(), rf'^{process.pid} +\+\+\+ exited with 0 \+\+\+$')


def test_lines_of_a_process_with_threads_have_numbers_in_a_file_to_its_end(tmp):
    check_numbered(tmp / 'alone')
    check_numbered(tmp / 'followed', '-f')
    if not os.geteuid():
        check_numbered(tmp / 'kernel', '--backend', 'kernel', '--buffer', '256M')


def test_lines_of_who_joins_a_tracer_have_numbers_in_a_file(tmp):
    process = target('numbered', '-t', 2)
    tracers = []
    for path in (tmp / 'first', tmp / 'second'):
        tracers.append(start(KYMO, 'syscalls', '-o', path, '--pid', process.pid))
        eventually(lambda: len(begun_lines(path)) == 2, 'lines of both threads', 30)
    process.end().ok()
    for tracer, path in zip(tracers, (tmp / 'first', tmp / 'second')):
        tracer.end().ok()
        check_same([line for line in path.read_text().splitlines() if not re.match(r'\d+ +\S', line)], [],
                   f'lines without a number in {path.name}')


def test_lines_of_a_process_with_one_thread_have_no_numbers_in_a_file(tmp):
    process = start(SH, '-c', 'echo ready; read word; exit 0')
    process.wait_for('^ready$')
    tracer = start(KYMO, 'syscalls', '-e', 'read,exit_group', '-o', tmp / 'lines', '--pid', process.pid)
    eventually(lambda: 'read(0, ' in (tmp / 'lines').read_text()
               if (tmp / 'lines').exists() else False, 'the call that is made again', 30)
    process.end(input='word\n').ok()
    tracer.end().ok()
    check_equal(lines((tmp / 'lines').read_text())[-2:], ['exit_group(0) = ?', '+++ exited with 0 +++'])


def test_wrong_words_are_answered_with_a_sentence(tmp):
    kymo('syscalls').refused('nothing to trace: give a command, --pid PID, --name NAME, or --all', 2)
    kymo('syscalls', '--pid', 1, 'true').refused(r"a command or --pid, not both: 'true' is too much", 2)
    kymo('syscalls', '-e', 'opnat', 'true').refused(r"there is no system call 'opnat'; near are openat", 2)
    kymo('syscalls', '-z', '-Z', 'true').refused(r'together they show none', 2)
    kymo('syscalls', '-c', '-T', 'true').refused(r'have no meaning beside it', 2)
    kymo('syscalls', '--json', '-t', 'true').refused(r'leave -T, -t, -r, -n and -i out', 2)
    kymo('syscalls', '-s', 'x', 'true').refused(r"-s takes a number of bytes up to 1M, not 'x'", 2)
    kymo('syscalls', '-P', '', 'true').refused(r"-P takes the path of a file, and '' is none", 2)
    kymo('syscalls', '-o', tmp / 'no/file', 'true').refused(r'cannot write \S+no/file: No such file or directory')
    kymo('syscalls', '/nonexistent/program').refused(r'cannot run /nonexistent/program: No such file or directory')
    kymo('syscalls', '--pid', 4194303).refused(r'there is no process 4194303')


def test_who_traces_already_is_named():
    process = target('selfcheck', '-t', '2')
    strace = start(program('strace'), '-f', '-q', '-o', '/dev/null', '-p', process.pid)
    eventually(lambda: f'TracerPid:\t{strace.pid}' in open(f'/proc/{process.pid}/status').read(), 'strace traces', 30)
    kymo('syscalls', '--pid', process.pid).refused(rf'cannot trace process {process.pid}: .*{strace.pid} \(strace\)')
    check(process.is_alive(), 'the process runs on')


def test_output_that_does_not_arrive_is_told():
    for options in ([], ['-c'], ['--json'], ['-c', '--json']):
        kymo('syscalls', *options, '-o', '/dev/full',
             program('true')).refused(r'cannot write /dev/full: the output is not whole \(No space left on device\)')


def test_counts_are_shown_when_a_signal_ends_the_tracing(tmp):
    tracer = start(KYMO, 'syscalls', '-c', SH, '-c', ': > begun; read word; exit 5', cwd=tmp)
    eventually((tmp / 'begun').exists, 'the command has begun', 30)
    tracer.signal(signal.SIGTERM)
    eventually(lambda: not tracer.is_alive(), 'it ends, before its command reads the end of its input')
    check_matches(tracer.end().ended(128 + signal.SIGTERM).err,
                  r'^% time .*\n(.*\n)+ *\d+\.\d+ .* execve\n(.*\n)*100\.00 .* total\n$')
    process = target('selfcheck', '-t', '2')
    tracer = start(KYMO, 'syscalls', '-c', '--pid', process.pid)
    eventually(lambda: 'TracerPid:\t0' not in open(f'/proc/{process.pid}/status').read(), 'it is traced', 30)
    check_matches(tracer.end(signal.SIGTERM).ok().err, r'^% time .*\n(.*\n)*100\.00 .* total\n$')
    check(process.is_alive(), 'the process runs on')
