"""kymo syscalls --for: tracing ends in time, and what was traced runs on."""
import json
import re
import signal
import time

import processes
from kymotest import (KYMO, KYMO_PLAIN, check, check_equal, check_matches, eventually, kymo, need_root, program, run,
                      start, target, waits)

SH = program('sh')
SLEEPS = ['-e', 'clock_nanosleep,nanosleep']
# It says what it does before and after the tracing.
SCRIPT = 'for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.1; done; echo done; exit 7'


def check_command(tmp, *way):
    tracer = start(KYMO, 'syscalls', *way, '-f', *SLEEPS, '-o', tmp / 'lines', '--for', '0.35', SH, '-c', SCRIPT)
    result = tracer.end()
    check_equal((result.status, result.out), (7, 'done\n'), 'the command has its end')
    lines = (tmp / 'lines').read_text()
    calls = re.findall(r'nanosleep\(', lines)
    check(1 <= len(calls) < 10, 'calls of the first moments', lines)
    check_matches(lines, r'nanosleep\(.* (= 0|<detached \.\.\.>)$')


def test_a_command_runs_on_and_kymo_ends_with_its_status(tmp):
    check_command(tmp)


def test_a_command_runs_on_through_the_kernel(tmp):
    need_root()
    check_command(tmp, '--backend', 'kernel')


@waits
def test_nothing_traces_the_command_any_more(tmp):
    tracer = start(KYMO, 'syscalls', '-f', *SLEEPS, '-o', tmp / 'lines', '--for', '0.2', program('sleep'), '3')
    eventually(lambda: 'detached' in (tmp / 'lines').read_text()
               if (tmp / 'lines').exists() else False, 'the time is up')
    pid = int((tmp / 'lines').read_text().split()[0])
    eventually(lambda: processes.tracer(pid) == 0, 'it has no tracer')
    check(tracer.is_alive(), 'kymo waits for the command')
    check_equal(tracer.end().ok().status, 0)


@waits
def test_counts_are_shown_when_time_is_up(tmp):
    tracer = start(KYMO, 'syscalls', '-c', '-o', tmp / 'table', '--for', '0.3', program('sleep'), '4')
    eventually(lambda: (tmp / 'table').exists() and '100.00' in (tmp / 'table').read_text(), 'the table')
    check(tracer.is_alive(), 'before the command ends')
    tracer.end().ok()


def test_a_process_runs_on(tmp):
    need_root()
    for way in ([], ['--backend', 'kernel']):
        process = start(program('sleep'), '60')
        kymo('syscalls', *way, '--for', '0.2', '--pid', process.pid).ok()
        check(process.is_alive() and processes.tracer(process.pid) == 0, 'it runs on')
        process.end(signal.SIGTERM)


@waits
def test_a_signal_ends_the_wait_for_the_command(tmp):
    need_root()
    for way in ([], ['--backend', 'kernel']):
        tracer = start(KYMO, 'syscalls', *way, '-c', '-o', tmp / 'table', '--for', '0.1', program('sleep'), '5')
        eventually(lambda: (tmp / 'table').exists() and '100.00' in (tmp / 'table').read_text(), 'the table')
        begin = time.monotonic()
        check_equal(tracer.end(signal.SIGTERM).status, 128 + signal.SIGTERM)
        check(time.monotonic() - begin < 4, 'it does not wait')
        (tmp / 'table').unlink()


@waits
def test_another_client_goes_on_when_the_first_ones_time_is_up(tmp):
    first = start(KYMO, 'syscalls', '-f', *SLEEPS, '-o', tmp / 'first', '--for', '1.5', SH, '-c',
                  'echo $$; for i in 1 2 3; do sleep 1; done; exit 5')
    eventually(lambda: first.out.strip(), 'it runs')
    pid = int(first.out)
    other = start(KYMO_PLAIN, 'syscalls', '-f', *SLEEPS, '-o', tmp / 'other', '--pid', pid)
    result = other.end().ok()
    lines = (tmp / 'other').read_text()
    check(
        len(re.findall('nanosleep', lines)) >= 2 and 'exited with 5' in lines, 'the other one sees the end', lines,
        result)
    check_equal(first.end().status, 5)


def test_what_can_not_be(tmp):
    kymo('syscalls', '--for', 'x', 'true').refused(r"--for 'x' is no number of seconds; write 5 or 0.5", 2)
    kymo('syscalls', '-f', '--seccomp-bpf', '--for', '1', 'true').refused(
        r'after --for the command runs on without a tracer, and with --seccomp-bpf it cannot', 2)


def test_lines_of_all_processes_name_them(tmp):
    need_root()
    tracer = start(KYMO, 'syscalls', '--all', '-e', 'chdir', '--for', '1.5', '-o', tmp / 'lines')
    objects = start(KYMO, 'syscalls', '--all', '-e', 'chdir', '--for', '1.5', '--json', '-o', tmp / 'objects')
    while tracer.is_alive() or objects.is_alive():
        run(SH, '-c', 'cd /usr/share; sleep 0.05')
    tracer.end().ok()
    objects.end().ok()
    check_matches((tmp / 'lines').read_text(), r'^\d+ +(sh|dash) chdir\("/usr/share"\) += 0$')
    seen = [json.loads(line) for line in (tmp / 'objects').read_text().splitlines()]
    check({"sh", "dash"} & {event["comm"] for event in seen}, "the name", seen[:3])
    ends = [line for line in (tmp / 'lines').read_text().splitlines() if '+++' in line or '---' in line]
    check(ends, 'there are ends and signals')
    check_equal([line for line in ends if not re.match(r'\d+ +\S.* (\+\+\+|---) ', line)], [], 'ends without a name')
