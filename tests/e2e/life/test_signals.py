"""Every signal from outside that would end kymo ends what it does in order; SIGUSR1 takes a snapshot of a flight
recorder."""
import contextlib
import os
import re
import signal
import time
from pathlib import Path

import processes
import remains
from kymotest import (KYMO, KYMO_PLAIN, check, check_equal, check_matches, event_lines, eventually, need_uprobes,
                      report_json, run, sampled, share, start, target)
from seeds import seed

NAMES = ['HUP', 'INT', 'QUIT', 'USR1', 'USR2', 'ALRM', 'TERM', 'STKFLT', 'XCPU', 'XFSZ', 'VTALRM', 'PROF', 'IO', 'PWR']
ENDINGS = [getattr(signal, f'SIG{name}') for name in NAMES] + [signal.SIGRTMIN, signal.SIGRTMIN + 15, signal.SIGRTMAX]
NOT_A_SNAPSHOT = [number for number in ENDINGS if number != signal.SIGUSR1]
RECORD = [KYMO_PLAIN, 'record', '--buffer', '256K', '-o', 'ended', '-p', 'selfcheck:work_*']
SYSCALLS = [KYMO_PLAIN, 'syscalls', '-e', 'nanosleep,clock_nanosleep']


class Program:
    def __init__(self):
        self.process = target('selfcheck', '-t', '2')
        self.pid = self.process.pid
        time.sleep(0.2)  # its threads have been through everything once
        self.before = remains.lasting_mappings(self.pid)

    def switches(self):
        """How often its threads have stopped running."""
        number = 0
        for tid in processes.threads(self.pid):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # some are short-lived
                text = Path(f'/proc/{self.pid}/task/{tid}/status').read_text()
                number += sum(map(int, re.findall(r'^\w*voluntary_ctxt_switches:\s+(\d+)$', text, re.MULTILINE)))
        return number

    def goes_by(self):
        """Its threads come by their probes, on a busy machine too: each rests between its rounds."""
        begin = self.switches()
        eventually(lambda: self.switches() >= begin + 20, 'the program runs')

    def check_untouched(self):
        eventually(lambda: all(processes.tracer(tid) == 0 for tid in processes.threads(self.pid)),
                   'nobody is its tracer')
        remains.check_nothing_left(self.pid, self.before, remains.lasting_mappings)

    def end(self):
        self.process.end(signal.SIGTERM).ok()


def ended(recorder, number, status=0):
    result = recorder.end(number)
    check_equal(result.status, status, f'exit status by signal {number}: {result}')
    return result


def end_recorders(numbers, *options):
    program = Program()
    for number in numbers:
        recorder = start(*RECORD, *options, '--pid', program.pid)
        recorder.wait_for(r'^kymo: recording process', which=1)
        program.goes_by()
        check_matches(
            ended(recorder, number).err, r'^kymo: .* events .*lost.*, in ended; ', f'summary, by signal {number}')
        check(report_json('ended')['events'] > 0, f'records, by signal {number}')
        program.check_untouched()
    program.end()


def test_each_signal_ends_a_recording_in_order(tmp):
    end_recorders(ENDINGS)


@sampled
def test_each_signal_ends_a_flight_recorder_in_order(tmp):
    seed()
    end_recorders(share(NOT_A_SNAPSHOT, 4), '--overwrite')


@sampled
def test_each_signal_ends_a_recording_that_follows_in_order(tmp):
    seed()
    end_recorders(share(ENDINGS, 4), '--follow')


@sampled
def test_each_signal_ends_a_recording_by_the_kernel_in_order(tmp):
    seed()
    need_uprobes()
    end_recorders(share(ENDINGS, 6), '--backend', 'kernel')


@sampled
def test_each_signal_ends_a_recording_by_tracing_in_order(tmp):
    seed()
    program = Program()
    for number in share(ENDINGS, 6):
        recorder = start(KYMO_PLAIN, 'record', '-o', 'ended', '-s', 'all', '--backend', 'ptrace', '--pid', program.pid)
        recorder.wait_for(r'^kymo: recording process', which=1)
        time.sleep(0.1)
        ended(recorder, number)
        check(report_json('ended')['events'] > 0, f'records, by signal {number}')
        program.check_untouched()
    program.end()


@sampled
def test_each_signal_ends_the_recording_of_a_command_that_runs_on(tmp):
    seed()
    for number in share(ENDINGS, 4):
        recorder = start(KYMO_PLAIN, 'record', '-q', '-o', 'ended', '-p', 'libc:clock_nanosleep', '--', 'sleep', 1000)
        eventually(lambda: any(processes.call(pid) == 230 for pid in processes.children(recorder.pid)),
                   'the command sleeps')
        pid, = processes.children(recorder.pid)
        ended(recorder, number, 128 + number)
        check_equal(processes.tracer(pid), 0, 'tracer')
        remains.check_running(pid)
        os.kill(pid, signal.SIGKILL)
        check(report_json('ended')['events'] > 0, f'records, by signal {number}')


@sampled
def test_each_signal_ends_what_shows_system_calls(tmp):
    seed()
    program = Program()
    for number in share(ENDINGS, 4):
        shown = start(*SYSCALLS, '--pid', program.pid)
        shown.wait_for('nanosleep', which=1)
        ended(shown, number)
        program.check_untouched()
    program.end()


def dispositions(*words):
    """What a command finds of signals: blocked, ignored and caught ones."""
    result = start(*words, 'grep', '-E', '^Sig(Blk|Ign|Cgt):', '/proc/self/status').end().ok()
    return result.out


def test_a_command_has_the_dispositions_that_kymo_was_started_with(tmp):
    record = [KYMO_PLAIN, 'record', '-q', '-o', 'started', '--overwrite', '-p', 'libc:malloc']
    for begin in ([], ['env', '--ignore-signal=USR1,ALRM,QUIT'], ['env', '--block-signal=USR2,RTMIN']):
        expected = dispositions(*begin)
        check_equal(dispositions(*begin, *record, '--'), expected, f'of a recorded command, {begin}')
        check_equal(dispositions(*begin, *record, '--no-follow', '--'), expected,
                    f'of one that is not followed, {begin}')
        check_equal(dispositions(*begin, KYMO_PLAIN, 'syscalls', '-o', 'lines', '--'), expected,
                    f'of a traced command, {begin}')


def test_an_ignored_signal_stays_ignored(tmp):
    program = Program()
    recorder = start('env', '--ignore-signal=USR1,ALRM,HUP', *RECORD, '--pid', program.pid)
    recorder.wait_for(r'^kymo: recording process', which=1)
    for number in (signal.SIGUSR1, signal.SIGALRM, signal.SIGHUP):
        recorder.signal(number)
    time.sleep(0.2)
    check(recorder.is_alive(), 'it goes on')
    recorder.end(signal.SIGTERM).ok()
    program.check_untouched()
    program.end()


# ---- snapshots -----------------------------------------------------------------------------------


def take_snapshots(recorder, n):
    for number in range(1, n + 1):
        recorder.signal(signal.SIGUSR1)
        recorder.wait_for(rf'^kymo: snapshot in .*flight\.{number}, \d+ bytes', which=1)
        time.sleep(0.1)


def check_snapshots(n):
    last = []
    for number in range(1, n + 1):
        said = report_json(f'flight.{number}')
        check(said['events'] > 0, f'snapshot {number} has records', said)
        read = run('babeltrace2', f'flight.{number}').ok()
        check(len(event_lines(read.out)) == said['events'], 'babeltrace2 reads all of them')
        wrong = [
            line for line in read.err.splitlines()
            if not re.match('WARNING: Tracer discarded [0-9]+ packets? between', line)
        ]
        check(not wrong, 'and tells only of what was overwritten', *wrong)
        last.append(said)
        check_equal((Path(f'flight.{number}/metadata').stat().st_mode & 0o111), 0, 'mode')
    uuids = [
        re.search('uuid = "(.*)"',
                  Path(name, 'metadata').read_text(errors='replace'))[1]
        for name in ['flight', *(f'flight.{number}' for number in range(1, n + 1))]
    ]
    check_equal(len(set(uuids)), n + 1, f'different uuids: {uuids}')


FLIGHT = ['--overwrite', '--buffer', '256K', '-o', 'flight', '-p', 'selfcheck:work_*']
KEEPING = ['--keep', '8M', '-o', 'flight', '-p', 'selfcheck:work_*']


def test_sigusr1_takes_a_snapshot_and_recording_goes_on(tmp):
    check_snapshots_of(FLIGHT)


def test_sigusr1_takes_a_snapshot_of_what_is_kept(tmp):
    check_snapshots_of(KEEPING)


def check_snapshots_of(options):
    program = Program()
    recorder = start(KYMO, 'record', *options, '--pid', program.pid)
    recorder.wait_for(r'^kymo: recording process', which=1)
    time.sleep(0.2)
    take_snapshots(recorder, 3)
    recorder.end(signal.SIGTERM).ok()
    check_snapshots(3)
    check(report_json('flight')['events'] > 0, 'the recording itself is whole')
    program.check_untouched()
    program.end()


def test_snapshots_under_load_hold_whole_records_in_order(tmp):
    """Producers run over what is copied: what they may have damaged is left out, so no packet is torn."""
    program = target('selfcheck', '-t', '2', '-p', '0')
    recorder = start(KYMO, 'record', *FLIGHT, '--buffer', '64K', '--pid', program.pid)
    recorder.wait_for(r'^kymo: recording process', which=1)
    time.sleep(0.2)
    take_snapshots(recorder, 8)
    recorder.end(signal.SIGTERM).ok()
    check_snapshots(8)
    program.end(signal.SIGTERM).ok()


def test_snapshots_through_the_kernel(tmp):
    need_uprobes()
    program = Program()
    recorder = start(KYMO, 'record', *FLIGHT, '--backend', 'kernel', '--pid', program.pid)
    recorder.wait_for(r'^kymo: recording process', which=1)
    time.sleep(0.2)
    take_snapshots(recorder, 2)
    recorder.end(signal.SIGTERM).ok()
    check_snapshots(2)
    program.end()


def test_snapshots_of_a_tree_and_of_a_second_run_take_free_names(tmp):
    Path('flight.1').mkdir()
    program = Program()
    recorder = start(KYMO, 'record', *FLIGHT, '--follow', '--pid', program.pid)
    recorder.wait_for(r'^kymo: recording process', which=1)
    time.sleep(0.2)
    recorder.signal(signal.SIGUSR1)
    recorder.wait_for(r'^kymo: snapshot in .*flight\.2, ', which=1)
    recorder.end(signal.SIGTERM).ok()
    check_equal(os.listdir('flight.1'), [], 'what was there')
    check(report_json('flight.2')['events'] > 0, 'records')
    program.end()


def test_tracing_has_no_snapshots_and_says_so(tmp):
    program = Program()
    recorder = start(KYMO, 'record', '--overwrite', '-o', 'flight', '-s', 'all', '--backend', 'ptrace', '--pid',
                     program.pid)
    recorder.wait_for(r'^kymo: recording process', which=1)
    recorder.signal(signal.SIGUSR1)
    recorder.wait_for('recorded by tracing have no snapshots; recording goes on', which=1)
    recorder.end(signal.SIGTERM).ok()
    program.end()
