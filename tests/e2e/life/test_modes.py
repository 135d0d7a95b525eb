"""Small buffers: what is lost is counted, and what is to be kept is kept."""
import os
import pathlib
import re
import signal
import struct

import markers
from kymotest import (KYMO, KYMO_PLAIN, Event, check, check_equal, check_same, event_lines, events, program, record,
                      report_json, run, start, start_record, target, target_path, timeout)

N = 1_000_000
LATE = 150_000
PROBE = ['-p', 'callmany:work_a n=%edi:s32 x=%si']


def lines_with_losses():
    """Lines of babeltrace2, with what it says about losses: [(number, 'event' or 'packet')]."""
    done = run(program('babeltrace2'), 'kymo.data', seconds=300).ok()
    said = [re.match(r'WARNING: Tracer discarded (\d+) (\w+?)s? between ', line) for line in done.err.splitlines()]
    check(all(said), 'babeltrace2 warns of losses only', done.err)
    return event_lines(done.out), [(int(match[1]), match[2]) for match in said]


def check_accounts(n):
    """Recorded and lost events are all that there were; the report and babeltrace2 agree."""
    report = report_json()
    lines, losses = lines_with_losses()
    check_equal(report['events'], len(lines), 'events by the report and by babeltrace2')
    check_equal(report['lost_events'], sum(number for number, what in losses if what == 'event'), 'losses by both')
    check_equal(report['events'] + report['lost_events'], n,
                f'{report["events"]} recorded and {report["lost_events"]} lost')
    return report


def test_recorded_and_lost_events_are_all_of_a_command():
    result = record('--buffer', '64K', *PROBE, '--', target_path('callmany'), N).ok()
    check(check_accounts(N)['lost_events'] > 0, 'so small a buffer loses')
    check_equal(result.err.splitlines()[-1], 'kymo: a larger --buffer than 64.0 KiB a CPU loses less')


def test_recorded_and_lost_events_are_all_of_a_process():
    process = target('callmany', '-w', N)
    recorder = start_record(process.pid, '--buffer', '64K', *PROBE)
    process.send('\n')
    process.wait_for(rf'^work_a {N}$')
    recorder.end(signal.SIGTERM).ok()
    process.end(input='\n').ok()
    check(check_accounts(N)['lost_events'] > 0, 'so small a buffer loses')


def test_without_sequences_the_accounts_are_exact_too():
    record('--no-rseq', '--buffer', '64K', *PROBE, '--', target_path('callmany'), N).ok()
    check_accounts(N)


@timeout(600)
def test_threads_on_all_processors_lose_and_record_all_that_there_was():
    said = record('--buffer', '64K', '-p', 'selfcheck:work_*', '--', target_path('selfcheck'), '-p', '0', '-n',
                  '1500').ok().json()
    check_accounts(sum(calls for name, calls in said.items() if name.startswith('work_')))


def lost_while_the_recorder_sleeps(*options):
    """Of 3.6 MB that are written before the recorder has looked at the rings once more."""
    recorder = start(KYMO, 'record', *options, *PROBE, '--', target_path('callmany'), '-w', LATE)
    recorder.wait_for(r'^ready$')
    recorder.signal(signal.SIGSTOP)
    recorder.send('\n')
    recorder.wait_for(rf'^work_a {LATE}$')
    recorder.signal(signal.SIGCONT)
    recorder.end(input='\n').ok()
    return check_accounts(LATE)['lost_events']


def test_what_a_buffer_begins_with_is_enough_for_a_recorder_that_comes_late():
    check_equal(lost_while_the_recorder_sleeps(), 0, 'lost events')


def test_what_a_buffer_begins_with_is_there_where_a_probe_takes_the_place_of_a_guard():
    """Threads then use no restartable sequences, and the rings with locks have the work."""
    check_equal(lost_while_the_recorder_sleeps('-p', 'libc:vfork'), 0, 'lost events')


def test_losses_that_no_larger_buffer_avoids_are_not_put_down_to_it():
    """Children without thread pointers of their own write by locks; where all are taken a record is lost, and counted.
    """
    result = record('--buffer', '64M', '-p', 'sharer:work_a', '--', target_path('sharer'), '4', '50000').ok()
    lost = check_accounts(result.json()['calls'])['lost_events']
    said = [line for line in result.err.splitlines() if 'buffer' in line]
    in_use = "kymo: no CPU's buffer was full: what was lost found them in use by other threads, no packet that it fits into, or a stack that was nearly full"
    # on a machine that is busy with others
    grows = 'kymo: a process filled a buffer before kymo had given it all of its memory, which a buffer gets with use'
    check(said in ([in_use], [grows]) if lost else not said, 'what is said of buffers', lost, result)


def test_a_large_buffer_loses_nothing():
    n = 200_000
    record('--buffer', '64M', *PROBE, '--', target_path('callmany'), n).ok()
    check_equal(check_accounts(n)['lost_events'], 0, 'lost')
    check([event['n'] for event in events()] == list(range(n)), 'each call is there, once, in order, with its argument')


def check_newest(n):
    lines, losses = lines_with_losses()
    check('event' not in {what for _, what in losses}, 'packets are overwritten, events are not lost')
    values = [Event(line)['n'] for line in lines]
    check(1000 < len(values) < n, f'{len(values)} events are kept')
    check_equal(values[-1], n - 1, 'the last call')
    check(values == list(range(n - len(values), n)), 'the kept events are the last ones, all of them')


def on_one_processor():
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def test_overwriting_keeps_the_newest_of_a_process():
    process = target('callmany', '-w', N, preexec_fn=on_one_processor)
    recorder = start_record(process.pid, '--overwrite', '--buffer', '256K', *PROBE)
    process.send('\n')
    process.wait_for(rf'^work_a {N}$')
    recorder.end(signal.SIGTERM).ok()
    process.end(input='\n').ok()
    check_newest(N)
    check(report_json()['overwritten_packets'] > 0, 'the report tells that there was more')


def test_overwriting_keeps_the_newest_of_a_process_that_is_killed():
    process = target('crasher', '-w', N, 'kill', preexec_fn=on_one_processor)
    recorder = start_record(process.pid, '--overwrite', '--buffer', '256K', '-p', 'crasher:work_a n=%edi:s32')
    process.end(input='\n')
    recorder.end().ok()
    check_newest(N)


def first_records():
    """The kind of the first record of each packet that has any, in all streams (src/wire/event.h)."""
    for stream in pathlib.Path('kymo.data').glob('stream_*'):
        packets = stream.read_bytes()
        while packets:
            content, size = struct.unpack_from('<QQ', packets, 24)
            if content // 8 > 76:
                yield packets[76] & 31
            packets = packets[size // 8:]


def test_each_packet_begins_with_a_thread():
    for options in (), ('--overwrite',), ('--no-rseq',), ('--stack', '--buffer', '512K'):
        run('rm', '-rf', 'kymo.data')
        record('--buffer', '64K', *options, '-p', 'selfcheck:work_*', '--', target_path('selfcheck'), '-p', '0', '-n',
               '300').ok()
        kinds = list(first_records())
        check(len(kinds) > 1 and not any(kinds), f'each packet begins with one: {options}', kinds)


# Later memory of a ring: what a buffer begins with lies in smaller pieces.
FULL = r'''
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int posix_fallocate64(int fd, off64_t offset, off64_t size)
{
	int (*real)(int, off64_t, off64_t) = (int (*)(int, off64_t, off64_t))dlsym(RTLD_NEXT, "posix_fallocate64");

	return access("full", F_OK) || size < 1 << 20 ? real(fd, offset, size) : ENOMEM;
}

int posix_fallocate(int fd, off_t offset, off_t size) __attribute__((alias("posix_fallocate64")));
'''


def test_a_buffer_that_gets_no_more_memory_is_told_of_and_losses_are_counted(tmp):
    environment = {'LD_PRELOAD': str(markers.compile(tmp / 'full.so', FULL, '-shared', '-fPIC', '-ldl'))}
    recorder = start(KYMO_PLAIN, 'record', *PROBE, '--', target_path('callmany'), '-w', N, env=environment)
    recorder.wait_for(r'^ready$')
    (tmp / 'full').touch()
    recorder.send('\n')
    recorder.wait_for(rf'^work_a {N}$')
    said = recorder.end(input='\n').ok().err
    told = re.findall(r'the rings of process [0-9]+ do not get all of their memory \(Cannot allocate memory\)', said)
    check_equal(len(told), 1, f'warnings in {said}')
    check(check_accounts(N)['lost_events'] > 0, 'what does not fit is lost')
