"""Threads and signals: threads that come and go, and threads in handlers."""
import signal

import processes
import remains
from kymotest import (check, check_equal, event_counts, events, eventually, record, report_json, start_record, target,
                      target_path, wait_for_records)

WORK = ('work_a', 'work_b', 'work_redzone', 'work_signal')


def probe_counts(directory='kymo.data'):
    return {probe['name'].partition(':')[2]: probe['count'] for probe in report_json(directory)['probes']}


def check_exact(program, said, directory='kymo.data'):
    """Nothing was lost, and each function has as many records as the program counted calls, by both readers."""
    check_equal(report_json(directory)['lost_events'], 0, 'lost events')
    counted = probe_counts(directory)
    by_babeltrace = event_counts(directory)
    for name, calls in said.items():
        if name.startswith('work_'):
            check_equal(counted.get(name, 0), calls, name)
            check_equal(by_babeltrace[f'{program}:{name}'], calls, f'{name} by babeltrace2')


def test_threads_that_come_and_go_are_recorded_from_their_first_call():
    result = record('--buffer', '64M', '-p', 'selfcheck:work_*', '--', target_path('selfcheck'), '-t', '16', '-n',
                    '300').ok()
    said = result.json()
    check_exact('selfcheck', said)
    tids = {event['tid'] for event in events() if event.name == 'selfcheck:work_a'}
    check_equal(len(tids), 16 + said['threads'], 'threads that called work_a')


def test_a_thousand_threads():
    process = target('threads1000')
    before = remains.mappings(process.pid)
    recorder = start_record(process.pid, '--buffer', '64M', '-p', 'threads1000:work_a', '-p', 'libc:nanosleep')
    # work_a() is called 64 times as often as its caller sleeps; some hundred threads sleep five times a second
    wait_for_records(n=20000)
    recorder.end(signal.SIGTERM).ok()
    remains.check_nothing_left(process.pid, before)
    report = report_json()
    check(probe_counts()['work_a'] > 100, 'calls are recorded', report)
    check_equal(report['lost_events'], 0, 'lost')
    process.end(signal.SIGTERM).ok()


def test_handlers_that_interrupt_pads_lose_nothing():
    for option in ((), ('-a', )):
        result = record('--buffer', '64M', '-p', 'sigrate:work_*', '--', target_path('sigrate'), *option, '-n',
                        '100000').ok()
        said = result.json()
        check(said['work_signal'] > 10, 'signals came', result)
        check_exact('sigrate', said)


def test_attaching_and_detaching_while_signals_come_at_a_high_rate():
    for option in ((), ('-a', )):
        process = target('sigrate', *option)
        before = remains.mappings(process.pid)
        for _ in range(8):
            record('-q', '--buffer', '1M', '-p', 'sigrate:work_*', '--pid', process.pid, '--for', '0.05').ok()
            remains.check_nothing_left(process.pid, before)
        process.end(signal.SIGTERM).ok()


def switches(tid):
    """How often it has waited for something; more than ever when it has ended."""
    return float(processes.status(tid).get('voluntary_ctxt_switches', 'inf'))


def test_handlers_are_recorded_in_the_thread_in_which_they_run():
    process = target('selfcheck', '-t', '8')
    recorder = start_record(process.pid, '-p', 'selfcheck:work_signal', '-p', 'selfcheck:work_b')
    before = {tid: switches(tid) for tid in processes.threads(process.pid)}
    # without those that have ended since they were listed
    before = {tid: n for tid, n in before.items() if n < float('inf')}
    eventually(lambda: all(switches(tid) > n + 50 for tid, n in before.items()),
               'signals are sent, and each thread that stays has gone around', 60)
    wait_for_records()
    recorder.end(signal.SIGTERM).ok()
    process.end(signal.SIGTERM).ok()
    tids = {
        name: {event['tid'] for event in events() if event.name == f'selfcheck:{name}'}
        for name in ('work_signal', 'work_b')
    }
    check(tids['work_signal'], 'handlers were recorded')
    check(tids['work_signal'] <= tids['work_b'], f'{tids["work_signal"]} are among {tids["work_b"]}')
