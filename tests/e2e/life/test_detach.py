"""Taking probes out: what a process looks like afterwards, and what status and detach say before, meanwhile and
afterwards."""
import json
import re
import signal
import time

import processes
import remains
from kymotest import (KYMO, KYMO_PLAIN, NOBODY, check, check_equal, check_matches, eventually, kymo, record,
                      report_json, run, start, start_record, target, target_path, wait_for_records)

PROBES = ['-p', 'callmany:work_*', '-p', 'libc:read fd=%di', '-p', 'libc:write']


def quiet_target(*args):
    """callmany that waits for a line: it maps nothing meanwhile."""
    return target('callmany', '-w', *(args or ('1000', )))


def go_on(process):
    process.send('\n')


def kill_recorder(recorder):
    recorder.signal(signal.SIGKILL)
    recorder.end()


def test_what_a_process_maps_is_as_before():
    process = quiet_target()
    before = remains.mappings(process.pid)
    for _ in range(3):
        recorder = start_record(process.pid, *PROBES)
        check(remains.mappings(process.pid) != before, 'something is mapped while it is recorded')
        check_equal(remains.descriptors(process.pid), [], 'descriptors')
        check_equal(recorder.end(signal.SIGTERM).status, 0)
        remains.check_nothing_left(process.pid, before)
    process.end(input='\n\n').ok()


def test_each_way_to_end_a_recorder_takes_everything_out():
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        process = quiet_target()
        before = remains.lasting_mappings(process.pid)
        recorder = start_record(process.pid, *PROBES)
        go_on(process)
        process.wait_for(r'^work_a 1000$')
        check_equal(recorder.end(number).status, 0, str(number))
        remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
        check_equal(report_json()['events'] >= 1000, True, 'events')
        process.end(input='\n').ok()


def test_after_the_time_that_for_gives_everything_is_out():
    process = quiet_target()
    before = remains.mappings(process.pid)
    begin = time.monotonic()
    record('--pid', process.pid, '--for', '0.3', *PROBES).ok()
    check(time.monotonic() - begin >= 0.3, 'it lasted so long')
    remains.check_nothing_left(process.pid, before)
    process.end(input='\n\n').ok()


def test_a_recorder_that_ends_before_its_command_leaves_nothing_in_it():
    recorder = start(KYMO, 'record', '-p', 'callmany:work_a', '-p', 'libc:read', '--for', '0.5', '--',
                     target_path('callmany'), '-w', '10')
    recorder.wait_for(r'^ready$')
    pid = eventually(lambda: processes.children(recorder.pid), 'the command runs')[0]
    recorder.wait_for(r'waiting for', 1)
    check(not remains.are_there(pid), 'nothing is in the command any more')
    recorder.end(input='\n\n').ok()


def test_detach_asks_a_live_recorder_to_end():
    process = quiet_target()
    before = remains.mappings(process.pid)
    recorder = start_record(process.pid, *PROBES)
    result = kymo('detach', process.pid).ok()
    check_equal(result.out,
                f'recorder {recorder.pid} has ended its recording of process {process.pid} and taken its probes out\n')
    check_equal(recorder.end().status, 0, 'the recorder ended well')
    remains.check_nothing_left(process.pid, before)
    process.end(input='\n\n').ok()


def test_detach_cleans_up_after_a_dead_recorder():
    process = quiet_target()
    before = remains.lasting_mappings(process.pid)
    kill_recorder(start_record(process.pid, *PROBES))
    check(remains.are_there(process.pid), 'the dead recorder left something')
    go_on(process)  # no recorder reads the rings
    process.wait_for(r'^work_a 1000$')
    result = kymo('detach', process.pid).ok()
    check_matches(result.out,
                  rf'^process {process.pid}: [1-9]\d* sites? restored.* [1-9]\d* text pages? equal to the file')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(input='\n').ok()


def test_detach_tells_of_recorders_alive_and_dead():
    process = quiet_target()
    before = remains.lasting_mappings(process.pid)
    alive = start_record(process.pid, '-p', 'callmany:work_a', '-o', 'alive.data')
    dead = start(KYMO, 'record', '-p', 'callmany:work_b', '-o', 'dead.data', '--pid', process.pid)
    dead.wait_for('^kymo: recording process', 1)
    kill_recorder(dead)
    result = kymo('detach', process.pid).ok()
    check_matches(
        result.out,
        rf'\Arecorder {alive.pid} has ended its recording of process {process.pid} and taken its probes out\n'
        rf'process {process.pid}: \d+ sites? restored, (\d+ had the original bytes already, )?\d+ text pages? equal to the file, '
        r'\d+ mappings? removed\n\Z')
    alive.end().ok()
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(input='\n\n').ok()


def test_the_next_recording_cleans_up_after_a_dead_recorder():
    process = quiet_target()
    before = remains.lasting_mappings(process.pid)
    kill_recorder(start_record(process.pid, *PROBES))
    recorder = start(KYMO, 'record', '-p', 'callmany:work_a', '--pid', process.pid)
    recorder.wait_for('^kymo: recording process', 1)
    go_on(process)
    process.wait_for(r'^work_a 1000$')
    recorder.end(signal.SIGTERM).ok()
    check_equal(report_json()['events'], 1000, 'events of the second recording')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(input='\n').ok()


NO_END = 'the recorder has not ended this recording: it was killed, has failed, or still records; what it had not written is missing after the last event'


def test_what_a_dead_recorder_had_written_can_be_read():
    process = target('callmany', '-w', '2000000', 'work_a')
    recorder = start_record(process.pid, '-p', 'callmany:work_a', '--buffer', '64K')
    go_on(process)
    process.wait_for(r'^work_a 2000000$')
    wait_for_records(n=10)
    kill_recorder(recorder)
    check(report_json()['events'] > 0, 'packets that were written count')
    check_equal(report_json()['warnings'], [NO_END], 'warnings')
    check_matches(kymo('report').ok().out, f'^no end: {NO_END}$', 'the report')
    check_equal(
        kymo('report', '--events').ok().out.splitlines()[-1], f'--- no end: {NO_END} ---',
        'the last line of the events')
    check_equal(json.loads(kymo('report', '--events', '--json').ok().out.splitlines()[-1]),
                {'event': 'unended', 'what': NO_END}, 'that of JSON')
    kymo('detach', process.pid).ok()
    process.end(input='\n').ok()


def test_a_recording_and_its_snapshots_have_an_end():
    process = target('callmany', '-w', '20000', 'work_a')
    recorder = start_record(process.pid, '-p', 'callmany:work_a', '--overwrite')
    kymo('snapshot', process.pid).ok()
    check_equal(report_json()['warnings'], [NO_END], 'warnings while it records')
    recorder.end(signal.SIGINT).ok()
    check_equal([report_json(directory)['warnings'] for directory in ('kymo.data', 'kymo.data.1')], [[], []],
                'warnings')
    process.end(input='\n\n').ok()


def test_nothing_is_there():
    process = quiet_target()
    kymo('detach', process.pid).refused(rf"^kymo: process {process.pid} has no kymo probes$")
    kymo('status', process.pid).refused(rf"^kymo: process {process.pid} has no kymo probes$")
    process.end(input='\n\n').ok()


def status(pid):
    return json.loads(kymo('status', '--json', pid).ok().out)[0]


def test_status_tells_who_records_what_and_where(tmp):
    process = quiet_target('1000000')
    recorder = start_record(process.pid, *PROBES, '-o', 'my.data')
    now = status(process.pid)
    check_equal((now['pid'], now['comm'], now['recorder']), (process.pid, 'callmany', recorder.pid))
    check_equal(now['directory'], str(tmp.resolve() / 'my.data'))
    check({'callmany:work_a', 'libc:read', 'libc:write'} <= {site['name'] for site in now['sites']},
          'its sites are listed', now)
    go_on(process)
    eventually(lambda: status(process.pid)['bytes'] > 10**6, 'bytes are counted')
    everything = kymo('status').ok()
    check_matches(everything.out, rf'^ *{process.pid}  callmany: .* by process {recorder.pid}$')
    check(
        str(recorder.pid) not in everything.err, 'the recorder itself is not taken for a recorded process', everything)
    check_equal(len(re.findall(rf'^ *{recorder.pid}  ', everything.out, re.MULTILINE)), 0, 'lines about the recorder')
    kill_recorder(recorder)
    check_equal(status(process.pid)['recorder'], 0)
    check_matches(kymo('status').ok().out, rf"by a process that is gone; 'kymo detach {process.pid}' cleans up$")
    kymo('detach', process.pid).ok()
    check_equal(re.findall(rf'^ *{process.pid}  ', kymo('status').ok().out, re.MULTILINE), [], 'lines about it')
    process.end(input='\n').ok()


def test_recorders_that_begin_at_the_same_moment_all_record():
    process = quiet_target()
    before = remains.mappings(process.pid)
    for _ in range(5):
        both = [
            start(KYMO, 'record', '-q', '-o', f'data.{i}', *PROBES, '--for', '0.3', '--pid', process.pid)
            for i in range(3)
        ]
        for recorder in both:
            recorder.end().ok()
        remains.check_nothing_left(process.pid, before)
    process.end(input='\n\n').ok()


def test_starting_and_stopping_fifty_times_under_load():
    process = target('selfcheck', '-t', '4', '-p', '0')
    time.sleep(0.2)
    before = remains.lasting_mappings(process.pid)
    for i in range(50):
        run(KYMO_PLAIN, 'record', '-q', '-p', 'selfcheck:work_*', '-p', 'libc:read', '--buffer', '1M', '--for', '0.01',
            '--pid', process.pid).ok()
        if i % 10 == 9:
            remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(signal.SIGTERM).ok()


LIBRARY_HOLDER = r'''
import ctypes, mmap, os, sys, _ctypes
library = ctypes.CDLL(sys.argv[1])
library.ctor_work(1)
where = ctypes.cast(library.ctor_work, ctypes.c_void_p).value & ~4095
print("ready", flush=True)
sys.stdin.readline()
library.ctor_work(2)
_ctypes.dlclose(library._handle)
if len(sys.argv) > 2:  # another file's code at the same address
    fd = os.open(sys.argv[2], os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    at = libc.mmap(ctypes.c_void_p(where), ctypes.c_size_t(4096), 5, 0x12, fd, ctypes.c_size_t(4096))
    assert at == where, ctypes.get_errno()
print("closed", flush=True)
sys.stdin.readline()
'''


def hold_library(*args):
    process = start('/usr/bin/python3', '-c', LIBRARY_HOLDER, target_path('libctor.so'), *args)
    process.wait_for('^ready$')
    return process


def check_library_may_go(process):
    recorder = start_record(process.pid, '-p', 'libctor:ctor_work', '-p', 'libc:read')
    process.send('\n')
    process.wait_for('^closed$')
    recorder.end(signal.SIGTERM).ok()
    check(not remains.are_there(process.pid), 'nothing is left')
    check_equal(processes.changed_text(process.pid), [])
    check_equal(sum(probe['count'] for probe in report_json()['probes'] if probe['name'].endswith('ctor_work')), 11,
                'calls')
    process.end(input='\n').ok()


def test_a_probed_library_may_be_closed():
    check_library_may_go(hold_library())


def test_the_address_of_a_closed_library_may_hold_another_one():
    check_library_may_go(hold_library(target_path('callmany')))


def test_detach_needs_the_rights_of_a_tracer(tmp):
    process = quiet_target()
    kill_recorder(start_record(process.pid, *PROBES))
    kymo('detach', process.pid, user=NOBODY).refused('does not let you')
    kymo('detach', process.pid).ok()
    process.end(input='\n\n').ok()
