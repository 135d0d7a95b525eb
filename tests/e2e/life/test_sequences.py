"""Where glibc registers threads, records are made by restartable sequences: the first streams are theirs, one a CPU."""
import os
import pathlib

from kymotest import check, event_counts, record, start_record, target, target_path

OF_SEQUENCES = {f'stream_{cpu}' for cpu in range(os.sysconf('SC_NPROCESSORS_CONF'))}


def streams():
    return {path.name for path in pathlib.Path('kymo.data').glob('stream_*')}


def test_a_command_uses_them():
    record('-p', 'callmany:work_a', '--', target_path('callmany'), '100000').ok()
    check(streams() <= OF_SEQUENCES, 'all records are in the streams of sequences', streams())


def test_a_process_uses_them():
    process = target('callmany', '-w', '100000')
    recorder = start_record(process.pid, '-p', 'callmany:work_a')
    process.end(input='\n').ok()
    recorder.end().ok()
    check(event_counts()['callmany:work_a'] == 100000, 'all calls are recorded')
    check(streams() <= OF_SEQUENCES, 'all records are in the streams of sequences', streams())


def test_without_them_locks_serve():
    record('--no-rseq', '-p', 'callmany:work_a', '--', target_path('callmany'), '100000').ok()
    check(event_counts()['callmany:work_a'] == 100000, 'all calls are recorded')
