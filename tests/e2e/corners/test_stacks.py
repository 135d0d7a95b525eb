"""Programs that survive the overflow of a thread's stack: the pad of a probe must not overflow it before they do."""
import re
import time
from pathlib import Path

from kymotest import (KYMO, check, check_equal, check_same, probe_counts, program, report_json, run, start,
                      start_record)

HERE = Path(__file__).parent
STARTS = 40  # overflows of each thread (overflow.c)
LOST = range(12, 14)  # calls of each that have less than 512 bytes, with 40 bytes a call


def compiled(tmp, *flags):
    run(program('gcc'), '-O1', '-pthread', *flags, '-o', tmp / 'overflow', HERE / 'overflow.c').ok()
    return tmp / 'overflow'


def bare(path, threads):
    """What it prints, and how many calls that makes."""
    out = run(path, threads, input='go\n').ok().out
    return out, sum(int(n) for n in re.findall(r'^thread \d+: (\d+):', out, re.MULTILINE))


def check_recorded(calls, overflows, name='overflow:deep'):
    """No call is missing without being counted, and nothing is lost that had room."""
    lost = report_json()['lost_events']
    check_equal(probe_counts()[name] + lost, calls, 'calls that are recorded or lost')
    check(LOST.start * overflows <= lost <= LOST[-1] * overflows, f'{lost} are lost in {overflows} overflows')


def overflow_recorded(path, threads, *args):
    """Attached to while its threads wait; what it prints."""
    process = start(path, threads)
    process.wait_for('^ready$', which=1)
    recorder = start_record(process.pid, '--buffer', '64M', *args)
    result = process.end(input='go\n').ok()
    recorder.end().ok()
    return result.out


def test_threads_overflow_their_stacks_where_they_would(tmp):
    """With sequences and with locks, and where more of the stack is wanted to read memory."""
    path = compiled(tmp)
    for threads, options in (3, []), (1, ['--no-rseq']), (2, []):
        out, calls = bare(path, threads)
        check_same(overflow_recorded(path, threads, *options, '-p', 'overflow:deep'), out, 'how deep it gets')
        check_recorded(calls, threads * STARTS)


def test_events_that_read_memory_are_lost_earlier(tmp):
    path = compiled(tmp)
    out, calls = bare(path, 2)
    check_same(overflow_recorded(path, 2, '-p', 'overflow:deep n=+0(%di):u64'), out, 'how deep it gets')
    lost = report_json()['lost_events']
    check_equal(probe_counts()['overflow:deep'] + lost, calls, 'calls that are recorded or lost')
    check(lost > LOST[-1] * 2 * STARTS, f'{lost} are lost')


def test_a_static_program_and_one_without_a_bound_for_its_first_stack(tmp):
    path = compiled(tmp, '-static')
    out, calls = bare(path, 2)
    check_same(overflow_recorded(path, 2, '-p', 'overflow:deep'), out, 'how deep it gets')
    check_recorded(calls, 2 * STARTS)
    path = compiled(tmp)
    out, calls = bare(path, 2)
    process = start('sh', '-c', f'ulimit -s unlimited && exec {path} 2')
    process.wait_for('^ready$', which=1)
    recorder = start_record(process.pid, '--buffer', '64M', '-p', 'overflow:deep')
    check_same(process.end(input='go\n').ok().out, out, 'how deep it gets')
    recorder.end().ok()
    check_recorded(calls, 2 * STARTS)


def test_a_launched_program_makes_its_threads_later(tmp):
    """Their stacks are found while they wait, within 50 ms on a machine that is idle."""
    path = compiled(tmp)
    out, calls = bare(path, 2)
    recorder = start(KYMO, 'record', '--buffer', '64M', '-p', f'{path}:deep', '--', path, 2)
    recorder.wait_for('^ready$', which=1)
    time.sleep(2)
    check_same(recorder.end(input='go\n').ok().out, out, 'how deep it gets')
    check_recorded(calls, 2 * STARTS)
