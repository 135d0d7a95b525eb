"""Where glibc registers threads, records are made by restartable sequences: the first streams are theirs, one a CPU."""
import os
import pathlib
import shutil

from kymotest import check, event_counts, record, start_record, target, target_path

OF_SEQUENCES = {f'stream_{cpu}' for cpu in range(os.sysconf('SC_NPROCESSORS_CONF'))}


def check_sequences():
    """A record that comes while a sub-buffer is being changed goes elsewhere: a few of 100,000 may."""
    others = {path.name for path in pathlib.Path('kymo.data').glob('stream_*')} - OF_SEQUENCES
    if not others:
        return
    shutil.copytree('kymo.data', 'others.data', ignore=lambda *_: OF_SEQUENCES)
    counts = event_counts('others.data')
    check(sum(counts.values()) <= 100, 'the records are in the streams of sequences', others, counts)


def test_a_command_uses_them():
    record('-p', 'callmany:work_a', '--', target_path('callmany'), '100000').ok()
    check_sequences()


def test_a_process_uses_them():
    process = target('callmany', '-w', '100000')
    recorder = start_record(process.pid, '-p', 'callmany:work_a')
    process.end(input='\n').ok()
    recorder.end().ok()
    check(event_counts()['callmany:work_a'] == 100000, 'all calls are recorded')
    check_sequences()


def test_without_them_locks_serve():
    record('--no-rseq', '-p', 'callmany:work_a', '--', target_path('callmany'), '100000').ok()
    check(event_counts()['callmany:work_a'] == 100000, 'all calls are recorded')
