"""kymo record -s: the calls that are made, as strace counts them; and a process from which it goes again."""
import collections
import re
import signal
from pathlib import Path

import remains
from kymotest import (KYMO, NOBODY, SOURCE, babeltrace, check, check_equal, check_matches, check_text_intact,
                      event_counts, kymo, program, record, report_json, run, start, start_record)

HERE = Path(__file__).parent
THREADS, CHILDREN, CALLS, FAILED = 4, 3, 200, 20  # recorded.c
WORKERS = THREADS + CHILDREN

# The first is made by the tracer's own child; the second's places are known by their bytes.
ELSEWHERE = {'execve', 'rt_sigreturn'}


def build(tmp, *options):
    run(program('gcc'), '-w', '-pthread', '-o', tmp / 'recorded', HERE / 'recorded.c', *options).ok()
    return tmp / 'recorded'


def straced(tmp, *command):
    """{name: (calls, errors)} by strace's lines."""
    run(program('strace'), '-f', '-o', tmp / 'strace', *command).ok()
    calls, errors = collections.Counter(), collections.Counter()
    for line in (tmp / 'strace').read_text().splitlines():
        begun, ended = re.match(r'\d+ +(\w+)\(', line), re.match(r'\d+ +(?:<\.\.\. )?(\w+)[ (].* = -1 E', line)
        if begun:
            calls[begun[1]] += 1
        if ended:
            errors[ended[1]] += 1
    return {name: (n, errors[name]) for name, n in calls.items()}


def counted(directory='kymo.data'):
    """{name: (calls, errors)} by the report."""
    report = report_json(directory)
    check_equal(report['lost_events'] - report['lost_in_vforks'], 0, 'lost events')
    errors = {call['name']: call['errors'] for call in report['calls']}
    return {
        probe['name'].removeprefix('syscall:'): (probe['count'], errors.get(probe['name'], 0))
        for probe in report['probes'] if probe['count'] and probe['kind'] == 'syscall'
    }


def not_recorded(result):
    """Calls that a warning names."""
    return {
        name for line in result.warnings() for names in re.findall(r'calls of (.*) by /', line)
        for name in names.split(', ')
    }


def check_like_strace(tmp, *command):
    result = record('-s', 'all', '--', *command).ok()
    expected = straced(tmp, *command)
    left_out = ELSEWHERE | not_recorded(result)
    actual = counted()
    names = sorted((actual.keys() | expected.keys()) - left_out)
    check_equal({name: actual.get(name) for name in names}, {name: expected.get(name) for name in names},
                'calls and errors')
    return actual


def test_calls_and_errors_of_ls_are_those_of_strace(tmp):
    actual = check_like_strace(tmp, program('ls'), '-lR', SOURCE / 'docs')
    check(len(actual) > 15, f'{len(actual)} calls have a name')


def test_tables_of_a_library_are_no_calls(tmp):
    """libcrypto has bytes like those of a call in tables between its functions."""
    counts = check_like_strace(tmp, program('openssl'), 'version')
    check(counts['openat'][0] > 3, str(counts))
    told = record('-s', 'all', '--', program('sh'), '-c', 'openssl version; openssl version').ok().err
    check('through the kernel' not in told and 'without probes' not in told and 'libcrypto' not in told, told)


def test_signal_returns_are_told_once_and_refused_nowhere(tmp):
    for calls, is_told in (('all', True), ('!rt_sigreturn', False), ('openat', False)):
        told = record('-s', calls, '--', program('sh'), '-c', 'ls / >/dev/null; ls / >/dev/null').ok().err
        check_equal(told.count('calls of rt_sigreturn are not recorded'), int(is_told), calls)
        check('cannot be probed safely' not in told, 'no place is refused', told)


def test_threads_children_and_signal_handlers_are_counted_exactly(tmp):
    for options in ((), ('--no-rseq', )):
        record(*options, '-s', 'getppid,close,getuid', '--', build(tmp)).ok()
        actual = counted()
        check_equal(actual['getppid'], (WORKERS * CALLS, 0), 'getppid')
        check_equal(actual['close'][1], WORKERS * FAILED, 'failed close')
        check_equal(actual['getuid'], (10, 0), 'getuid in a handler')


def test_a_static_program_is_recorded_too(tmp):
    record('-s', 'getppid', '--', build(tmp, '-static')).ok()
    check_equal(counted(), {'getppid': (WORKERS * CALLS, 0)}, 'calls')


def test_only_the_set_is_recorded_and_other_tools_read_it(tmp):
    record('-s', '%clock,getppid,!gettimeofday', '-s', 'getuid', '--', build(tmp)).ok()
    counts = event_counts()
    check_equal(
        set(counts) - {'syscall:clock_gettime'}, {'syscall:getppid', 'syscall:getuid', 'syscall:return'}, 'events')
    check_equal(counts['syscall:getppid'], WORKERS * CALLS, 'getppid')
    check_equal(counts['syscall:return'], sum(counts.values()) // 2, 'returns')


def test_arguments_and_results_are_what_was_passed(tmp):
    record('-s', 'write', '--', program('sh'), '-c', 'echo 12345').ok()
    lines = [line for line in babeltrace() if 'syscall:' in line]
    check_matches(lines[0], r'syscall:write: .* arg1 = 0x1, .* arg3 = 0x6,')
    check_matches(lines[1], r'syscall:return: .* result = 6 ')


def sleeper(tmp, **how):
    process = start(build(tmp), 'sleep', **how)
    process.wait_for('^ready$')
    return process


def test_threads_that_sleep_in_recorded_calls_are_not_disturbed(tmp):
    process = sleeper(tmp)
    before = remains.lasting_mappings(process.pid)
    for _ in range(3):  # each finds them in the text again
        record('-q', '-s', 'all', '--pid', process.pid, '--for', '0.05').ok()
        remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
        check_text_intact(process.pid)
    process.send('\n')
    check_matches(process.end(input='\n').ok().out, '^4 woken$')


def test_a_process_that_runs_is_recorded_until_it_is_let_go(tmp):
    process = sleeper(tmp)
    recorder = start_record(process.pid, '-s', 'getppid')
    process.send('\n')
    process.wait_for('^called$')
    recorder.end(signal.SIGINT).ok()
    check_text_intact(process.pid)
    check_equal(counted(), {'getppid': (10, 0)}, 'calls')
    check_matches(process.end(input='\n').ok().out, '^4 woken$')


def test_a_killed_recorder_leaves_a_process_that_runs_on(tmp):
    process = sleeper(tmp)
    start_record(process.pid, '-s', 'all').end(signal.SIGKILL)
    process.send('\n')
    process.wait_for('^called$')
    kymo('detach', process.pid).ok()
    check_text_intact(process.pid)
    check_matches(process.end(input='\n').ok().out, '^4 woken$')


def test_nobody_special_may_do_it(tmp):
    tmp.chmod(0o777)
    run(KYMO, 'record', '-q', '-s', 'write', '--', program('sh'), '-c', 'echo 12345', user=NOBODY).ok()
    check_equal(counted()['write'], (1, 0), 'write')


def test_a_second_recording_of_the_same_calls_goes_through_the_kernel_or_is_refused_with_the_reason(tmp):
    process = sleeper(tmp)
    first = start_record(process.pid, '-s', 'write', '-o', tmp / 'first')
    why = 'another recording has a probe here'
    record('--backend', 'inproc', '-s', 'write', '-o', tmp / 'second', '--pid', process.pid).refused(why)
    result = record('-s', 'write', '-o', tmp / 'second', '--pid', process.pid, '--for', '0.1').ok()
    check_matches(result.err, f'^kymo: warning: .*{why}.*; recorded through the kernel')
    first.end(signal.SIGINT).ok()
    check_text_intact(process.pid)


def test_a_second_recording_without_rights_does_not_trace_unasked(tmp):
    process = sleeper(tmp, user=NOBODY)
    tmp.chmod(0o777)
    first = start_record(process.pid, '-s', 'write', '-o', tmp / 'first', user=NOBODY)
    record('-s', 'write', '-o', tmp / 'second', '--pid', process.pid,
           user=NOBODY).refused(r'another recording has a probe here.*as root kymo could record it through the kernel')
    first.end(signal.SIGINT).ok()
    check_text_intact(process.pid)


def test_words_that_are_no_set_and_ways_that_can_not_be_are_refused(tmp):
    record('-s', 'opnat', '--', 'true').refused("no system call 'opnat'; near are open", 2)
