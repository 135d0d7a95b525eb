"""A flight recorder: the newest records are kept, until a condition holds, and as often as it does."""
import os
import re
import shutil
import signal
import time
from pathlib import Path

from kymotest import (babeltrace, check, check_equal, check_matches, check_text_intact, events, is_recorded, kymo,
                      need_uprobes, record, report_json, run, skip, start, start_record, target, target_path, timeout,
                      waits)

FLIGHT = target_path('flight')
STEPS = ['-p', f'{FLIGHT}:step n=%di:s64']


def steps(directory='kymo.data'):
    return [event['n'] for event in events(directory) if event.name.endswith(':step')]


def check_is_the_end(numbers, last, what):
    """Consecutive numbers up to the last one."""
    check_equal(numbers, list(range(last + 1 - len(numbers), last + 1)), what)


# ---- what is kept --------------------------------------------------------------------------------


@timeout(300)
def test_the_newest_records_are_kept(tmp):
    result = record(*STEPS, '--keep', '8M', '--', FLIGHT, 900000, 1000000).ok()
    check_equal(result.out, '{"steps": 900000}\n', 'what the program says')
    size = sum(path.stat().st_size for path in Path('kymo.data').glob('stream_*'))
    check((4 << 20) < size <= (8 << 20), 'about so much is on the disk', size)
    numbers = [int(number) for number in re.findall(r' n=(\d+)$', kymo('report', '--events').ok().out, re.MULTILINE)]
    check(numbers == sorted(set(numbers)), 'each is there once')
    if 'none lost' in result.err:  # those of a CPU that had little to do go back further than all are there
        gaps = [i for i in range(1, len(numbers)) if numbers[i] != numbers[i - 1] + 1]
        check_equal(numbers[-1], 899999, 'the newest')
        check(len(numbers) - max(gaps, default=0) > 100000, 'and what led to it', gaps, len(numbers))
    check_equal(report_json()['events'], len(numbers), "the report's number")
    check_matches(result.err, r'events \([\d.]+ MiB\)', 'the summary tells of what is there')


def test_all_is_kept_where_it_fits(tmp):
    record(*STEPS, '--keep', '8M', '--', FLIGHT, 5000, 10000).ok()
    check_is_the_end(steps(), 4999, 'all')
    check_equal(len(steps()), 5000, 'all')
    babeltrace()


def test_children_and_markers_are_kept_too(tmp):
    record('-p', 'libc:exit', '-m', '*', '--keep', '8M', '-o', 'kept', '--', 'sh', '-c',
           f'{target_path("marked")} -n 200; /bin/true; /bin/true').ok()
    record('-p', 'libc:exit', '-m', '*', '-o', 'all', '--', 'sh', '-c',
           f'{target_path("marked")} -n 200; /bin/true; /bin/true').ok()
    kept, everything = ({probe['name']: probe['count'] for probe in report_json(name)['probes']}
                        for name in ('kept', 'all'))
    check_equal(kept, everything, 'counts')
    check(sum(kept.values()) > 0, 'there are some', kept)


def test_the_kernels_records_are_kept_too(tmp):
    need_uprobes()
    # other tests record the program itself meanwhile, and the kernel has a file's processes all
    shutil.copy(FLIGHT, 'flight')
    record('-p', './flight:step n=%di:s64', '--backend', 'kernel', '--keep', '8M', '--', './flight', 3000, 10000).ok()
    check_is_the_end(steps(), 2999, 'all')
    check_equal(len(steps()), 3000, 'all')


@timeout(300)
def test_one_cpu_may_use_all_that_the_kernels_records_may_take(tmp):
    """The memory is one for all CPUs: a program that runs on one of them has more than a share of it."""
    need_uprobes()
    shutil.copy(FLIGHT, 'flight')
    cpu = min(os.sched_getaffinity(0))
    record('-p', './flight:step n=%di:s64', '--backend', 'kernel', '--keep', '8M', '--', 'taskset', '-c', cpu,
           './flight', 450000, 1000000).ok()
    kept = sum(path.stat().st_size for path in Path('kymo.data').glob('kernel_*'))
    check(kept > 5 << 20, 'more than a share is there', kept)
    check(kept <= 9 << 20, 'and not more than all', kept)
    check_matches(kymo('report', '--events').ok().out, r' n=449999\n\Z')


def test_a_killed_recorder_leaves_nothing_and_the_program_alone(tmp):
    program = target('selfcheck')
    recorder = start_record(program.pid, '-p', 'selfcheck:work_*', '--keep', '8M')
    recorder.kill()
    kymo('detach', program.pid).ok()
    check_text_intact(program.pid)
    check(not is_recorded(program.pid), 'no probes')
    check_equal(report_json()['events'], 0, 'what is on the disk')
    program.end(signal.SIGTERM).ok()


# ---- until ---------------------------------------------------------------------------------------


def check_ran_to_its_end(result, n):
    result.ok()
    check_equal(result.out, f'{{"steps": {n}}}\n', 'what the program says')


@timeout(300)
def test_a_filter_that_holds_ends_the_recording(tmp):
    result = record(*STEPS, '--keep', '8M', '--until', f'{FLIGHT}:step /arg0 == 3000/', '--', FLIGHT, 4000, 3001)
    check_ran_to_its_end(result, 4000)
    check_matches(result.err, rf"'{FLIGHT}:step /arg0 == 3000/' held at \d\d:\d\d:\d\d\.\d\d\d in thread \d+\n",
                  'what is told')
    check_is_the_end(steps(), 3000, 'what led to it')


@timeout(300)
@waits
def test_a_call_that_takes_long_ends_the_recording(tmp):
    """Without --keep, too: then all is there up to it."""
    for keep in (['--keep', '8M'], []):
        result = record(*STEPS, *keep, '--until', f'{FLIGHT}:serve /duration > 1s/', '--', FLIGHT, 9000, 3000)
        check_ran_to_its_end(result, 9000)
        check_matches(result.err, r"serve /duration > 1s/' held at ", 'what is told')
        check_equal(steps(), list(range(6000)), 'up to the next long call: the recording ended in it')


MARKED = """
#include <stdio.h>
#include <stdlib.h>
#include <sys/sdt.h>
#include <unistd.h>
static void query(int n, int us)
{
	DTRACE_PROBE1(app, query__start, n);
	if (n % 7 == 3) query(-1, 10);
	usleep(us);
	DTRACE_PROBE1(app, query__done, n);
}
int main(int argc, char **argv)
{
	int last = atoi(argv[1]), slow = atoi(argv[2]);
	for (int i = 0; i < last; i++) {
		DTRACE_PROBE(app, loop__entry);
		query(i, i == slow ? 300000 : 300);
		DTRACE_PROBE1(app, step, i);
		DTRACE_PROBE(app, loop__return);
	}
	puts("done");
	return 0;
}
"""


def compile_marked(tmp):
    if not Path('/usr/include/x86_64-linux-gnu/sys/sdt.h').exists() and not Path('/usr/include/sys/sdt.h').exists():
        skip('needs <sys/sdt.h>')
    (tmp / 'query.c').write_text(MARKED)
    run('gcc', '-O1', '-o', 'query', 'query.c').ok()


@timeout(120)
@waits
def test_markers_are_conditions(tmp):
    compile_marked(tmp)
    result = record('-m', 'app:step', '--keep', '8M', '--until', 'm app:query__done /duration > 200ms/', '--',
                    './query', 3000, 500).ok()
    check_matches(result.err, "'m app:query__done /duration > 200ms/' held at", 'it is told')
    numbers = [event['arg1'] for event in events() if event.name == 'app:step']
    check_is_the_end(numbers, numbers[-1], 'without a gap')
    check(499 <= numbers[-1] < 2999, 'the end', numbers[-1])
    record('-m', 'app:step', '--until', 'm app:query__start', '--', './query', 3000, -1).ok()
    check(len(events()) < 3000, 'a marker alone')


@timeout(120)
def test_durations_between_markers_are_aggregated(tmp):
    compile_marked(tmp)
    record('--hist', 'm app:query__done duration', '--count', 'm app:query__done /duration > 200ms/ by comm', '--max',
           'm app:loop__return duration', '-m', 'app:query__*', '--count', 'by probe', '--hist',
           'm app:*__done duration by probe', '--', './query', 350, 100).ok()
    queries, slow, loops, by_name, by_glob = report_json()['aggregations']
    check_equal((queries['hits'], queries['without_entry']), (400, 0), 'those within another, too')
    check_equal([(row['keys'], row['count']) for row in slow['rows']], [(['query'], 1)], 'the slow one')
    check(loops['hits'] == 350 and loops['rows'][0]['max'] > 300e6, 'others have names of their own', loops)
    check_equal(sorted((row['keys'][0], row['count']) for row in by_name['rows']), [('app:query__done', 400),
                                                                                    ('app:query__start', 400)],
                'without durations')
    check_equal([(row['keys'][0], row['count']) for row in by_glob['rows']], [('app:query__done', 400)], 'by a glob')


def test_what_is_a_marker_is_known_by_the_marker_before(tmp):
    """Of the same name, or what it ends; else it is a function."""
    compile_marked(tmp)
    result = record('-m', 'app:query__start', '--until', 'app:query__done /duration > 200ms/', '--', './query', 350,
                    100).ok()
    check_matches(result.err, r"'m app:query__done /duration > 200ms/' held at", 'the one that it ends')
    record('-m', 'app:query__done', '--count', 'app:query__done by tid', '--', './query', 350, 10).ok()
    check_equal([table['hits'] for table in report_json()['aggregations']], [400], 'the same one')
    result = record('-m', 'app:query__done', '--count', 'app:query__start by tid', '--', './query', 350, 10).ok()
    check_matches(result.err, r"no process loaded a file called app \('app:query__start'\)", 'another one')


PAIRED = """
#include <sys/sdt.h>
#include <unistd.h>
int main(void)
{
	for (int i = 0; i < 300; i++) {
		DTRACE_PROBE(app, request__begin);
		DTRACE_PROBE(app, query__start); /* is never done */
		DTRACE_PROBE(app, visit__enter);
		usleep(1000);
		DTRACE_PROBE(app, visit__exit);
		DTRACE_PROBE(app, request__end);
	}
	return 0;
}
"""


@timeout(120)
def test_markers_are_paired_as_reports_pair_them(tmp):
    compile_marked(tmp)
    (tmp / 'paired.c').write_text(PAIRED)
    run('gcc', '-O1', '-o', 'paired', 'paired.c').ok()
    record('-m', 'app:*', '--', './paired').ok()
    calls = {call['name']: call['count'] for call in report_json()['calls']}
    check_equal((calls['app:request__begin'], calls['app:visit__enter']), (300, 300), 'as reports have them')
    record('--hist', 'm app:request__end duration', '--max', 'm app:visit__exit duration', '--hist',
           'm app:*__end duration', '--', './paired').ok()
    for aggregation in report_json()['aggregations']:
        check_equal((aggregation['hits'], aggregation['without_entry']), (300, 0), 'as aggregations have them')
        check(aggregation['rows'][0].get('max', 1e6) >= 1e6, 'since the beginning', aggregation)


@timeout(300)
def test_recording_goes_on_for_so_long_after_it(tmp):
    record(*STEPS, '--until', f'{FLIGHT}:step /arg0 == 100/', '--after', '1', '--', FLIGHT, 3000, 300, 200).ok()
    numbers = steps()
    check_is_the_end(numbers, numbers[-1], 'without a gap')
    # Each 300 steps take 200 ms.
    check(numbers[-1] >= 299 + 3 * 300, 'more than what was before', numbers[-1])
    check(numbers[-1] < 2999, 'and not all', numbers[-1])


@timeout(300)
@waits
def test_each_time_that_it_holds_a_snapshot_is_taken(tmp):
    result = record(*STEPS, '--keep', '8M', '--snapshots', '3', '--until', f'{FLIGHT}:step /arg0 % 1000 == 999/', '--',
                    FLIGHT, 4000, 1000, 2000)
    check_ran_to_its_end(result, 4000)
    check_equal(sorted(path.name for path in Path().glob('kymo.data*')),
                ['kymo.data', 'kymo.data.1', 'kymo.data.2', 'kymo.data.3'], 'directories')
    for number in (1, 2, 3):
        check_is_the_end(steps(f'kymo.data.{number}'), number * 1000 - 1, f'what led to hit {number}')
        babeltrace(f'kymo.data.{number}')
    check_matches(result.err, r'(?s)held at .*snapshot in .*\.1, .*held at .*\.2, .*held at .*\.3, ', 'what is told')


def test_a_condition_that_never_holds_is_told(tmp):
    result = record(*STEPS, '--keep', '8M', '--until', f'{FLIGHT}:step /arg0 > 5000/', '--', FLIGHT, 5000, 10000).ok()
    check_matches(
        result.err,
        r'^kymo: warning: the condition of --until never held: kymo\.data has the newest records up to the end$',
        'what is told')
    check_is_the_end(steps(), 4999, 'the newest')
    never = ['--until', f'{FLIGHT}:step /arg0 > 5000/']
    told = 'kymo: warning: the condition of --until never held: '
    result = record('-q', *STEPS, *never, '-o', 'all', '--', FLIGHT, 5, 10).ok()
    check_equal(result.err, f'{told}all has the records up to the end\n', 'a warning, also with -q')
    result = record('-q', *STEPS, '--keep', '8M', '--snapshots', 2, *never, '-o', 'some', '--', 'sh', '-c',
                    f'{FLIGHT} 5 10; exit 7').ended(7)
    check_equal(result.err, f'{told}no snapshot was taken, and some has the newest records up to the end\n',
                'of snapshots; the status is the command\'s')
    result = record('-q', *STEPS, *never, '--until', f'{FLIGHT}:step /arg0 > 6000/', '--', FLIGHT, 5, 10).ok()
    check_equal(result.err,
                'kymo: warning: no condition of --until ever held: kymo.data has the records up to the end\n',
                'of two conditions')


@timeout(300)
def test_a_running_python_is_recorded_until_it_asks_for_much(tmp):
    program = start(
        '/usr/bin/python3', '-c',
        'import sys\nprint("ready", flush=True)\nwhile True:\n    x = bytearray(1000)\n    if sys.stdin.readline() == "big\\n":'
        '\n        y = "x" * (5000000 + len(sys.argv))\n    print("done", flush=True)')
    program.wait_for('ready')
    recorder = start_record(program.pid, '-p', 'libc:malloc size=%di:u64', '--keep', '16M', '--until',
                            'libc:malloc /arg0 > 4M/')
    program.send('small\n')
    program.wait_for('done')
    check(recorder.is_alive(), 'it goes on')
    program.send('big\n')
    recorder.end().ok()
    program.wait_for('done')
    check_text_intact(program.pid)
    check(max(event['size'] for event in events()) > 5000000, 'the call itself is there')
    program.kill()


def test_durations_are_filters_of_aggregations_too(tmp):
    record('--count', f'{FLIGHT}:serve /duration > 100ms/', '--count', f'{FLIGHT}:serve /duration < 100ms/', '--max',
           f'{FLIGHT}:serve /duration < 100ms/ duration', '--', FLIGHT, 2000, 500, 300).ok()
    slow, fast, most = report_json()['aggregations']
    check_equal(slow['rows'][0]['count'], 4, 'slow calls')
    check_equal(fast['rows'][0]['count'], 1996, 'fast calls')
    check(most['rows'][0]['max'] < 100000000, 'the slowest of the fast ones')


# ---- bad input -----------------------------------------------------------------------------------


def test_bad_input_gets_a_sentence():
    until = ['--until', 'libc:malloc /arg0 > 1M/']
    probe = ['-p', 'libc:free']
    for options, sentence in ((['--keep', '1M', *probe], '--keep takes a size from 8M to 64G'), ([
            '--keep', 'much', *probe
    ], "--keep takes a size from 8M to 64G, not 'much'"), ([
            '--keep', '8M', '--overwrite', *probe
    ], '--keep has the newest records in the recorder'), ([
            '--keep', '8M', '--buffer', '8M', *probe
    ], '--buffer is half of --keep at most'), ([
            '--keep', '8M', '--count', 'libc:free'
    ], '--keep keeps the newest records, and aggregations have all'), ([
            '--overwrite', *probe, *until
    ], 'write --keep SIZE in place of --overwrite'), (until, '--until says when to end, and nothing is recorded'), ([
            *probe, '--after', '1'
    ], '--after belongs to --until'), ([*probe, '--snapshots', '2'], '--snapshots belongs to --until'), ([
            *probe, *until, '--snapshots', '2'
    ], '--snapshots are of what --keep SIZE has'), ([*probe, *until, '--keep', '8M', '--snapshots',
                                                     '0'], "--snapshots takes a number up to 1000000, not '0'"), ([
                                                         *probe, *until, '--after', 'soon'
                                                     ], "--after 'soon' is no number of seconds"), ([
                                                         *probe, '--until', 'arg0 > 5'
                                                     ], '--until takes a probe and a filter alone'), ([
                                                         *probe, '--until', ''
                                                     ], 'until what? Begin with FILE:FUNCTION'), ([
                                                         *probe, '--until', 'libc:read /duration == 5/'
                                                     ], 'the duration of a call is compared with a number'), ([
                                                         *probe, *until, '--backend', 'kernel'
                                                     ], 'the condition of --until is of probes in the process itself'),
                              ):
        result = record(*options, '--', '/bin/true').ended(2)
        check(sentence in result.err, f'{options}', result.err)
    check(not Path('kymo.data').exists(), 'nothing was recorded')


# ---- kymo snapshot -------------------------------------------------------------------------------


def test_a_flight_recorder_is_asked_for_snapshots(tmp):
    for words in (('--keep', '8M'), ('--overwrite', )):
        process = start(FLIGHT, 1000000, 1000, 100)
        recorder = start_record(process.pid, *STEPS, '-o', 'flight', *words)
        last = []
        for number, pid in ((1, recorder.pid), (2, process.pid)):
            time.sleep(0.2)
            check_equal(kymo('snapshot', pid).ok().out, f'snapshot in {tmp}/flight.{number}\n', 'where it is')
            last.append(steps(f'flight.{number}'))
            check_is_the_end(last[-1], last[-1][-1], 'a recording of its own')
            babeltrace(f'flight.{number}')
        check(last[0][-1] < last[1][-1], 'it went on', last[0][-1], last[1][-1])
        check_equal(kymo('snapshot', '-q', process.pid).ok().out, '', 'quiet')
        check(Path('flight.3/metadata').exists(), 'and there it is')
        time.sleep(0.2)  # the program sleeps for half of that, each time
        recorder.end(signal.SIGINT).ok()
        check(steps('flight')[-1] > last[1][-1], 'recording went on')
        process.kill()
        for name in ('flight', 'flight.1', 'flight.2', 'flight.3'):
            shutil.rmtree(name)


CALLS = '''
import os
print('ready', flush=True)
input()
for i in range(1000):
    os.getppid()
print('done', flush=True)
input()
'''


def test_a_snapshot_has_what_a_recorder_that_came_late_has_not_looked_at(tmp):
    """Rings begin with a part of their memory. The recorder gets no time between the first record and the request."""
    for words in (('--keep', '128M', '--buffer', '64M'), ('--overwrite', '--buffer', '64M')):
        process = start('python3', '-c', CALLS)
        process.wait_for('ready')
        recorder = start_record(process.pid, '-p', 'libc:getppid', '-o', 'late', *words)
        recorder.signal(signal.SIGSTOP)
        process.send('go\n')
        process.wait_for('done')
        recorder.signal(signal.SIGUSR1)
        recorder.signal(signal.SIGCONT)
        recorder.wait_for('snapshot in', which=1)
        check_equal(len(events('late.1')), 1000, f'the snapshot with {words}')
        process.end(input='\n')
        recorder.end().ok()
        check_equal(len(events('late')), 1000, f'the recording with {words}')
        for name in ('late', 'late.1'):
            shutil.rmtree(name)


@timeout(120)
@waits
def test_each_failure_of_a_snapshot_has_a_sentence(tmp):
    process = start(FLIGHT, 1000000, 1000, 100)
    kymo('snapshot',
         process.pid).refused(f'process {process.pid} has no kymo probes; if it is recorded through the kernel, name')
    kymo('snapshot', 4194303).refused('there is no process 4194303')
    recorder = start_record(process.pid, *STEPS, '-o', 'all')
    for pid in (process.pid, recorder.pid):
        kymo('snapshot', pid).refused(
            f"kymo process {recorder.pid}.* is no flight recorder: only 'kymo record' with --keep or --overwrite has snapshots"
        )
    check(recorder.is_alive(), 'it got no signal')
    recorder.end(signal.SIGINT).ok()
    recorder = start_record(process.pid, *STEPS, '-o', 'kept', '--keep', '8M')
    recorder.signal(signal.SIGSTOP)
    kymo('snapshot', process.pid).refused(
        'has written no snapshot to .*/kept.1 within 10 seconds; its own messages say why, or it is stopped')
    recorder.signal(signal.SIGCONT)
    recorder.wait_for('snapshot in', which=1)
    if os.geteuid() == 0:
        result = kymo('snapshot', recorder.pid, user=65534)
        check(result.status == 1 and 'another user' in result.err, 'of another user', result)
        check(recorder.is_alive(), 'it got no signal')
    recorder.signal(signal.SIGKILL)
    recorder.end()
    kymo('snapshot',
         process.pid).refused(f"the recorder of process {process.pid} is gone; 'kymo detach {process.pid}' cleans up")
    kymo('detach', process.pid).ok()
    check(process.is_alive(), 'the program runs on')
    process.kill()
    kymo('snapshot').refused('of which process', status=2)
    kymo('snapshot', 'x').refused("'x' is no process id", status=2)
    kymo('snapshot', '1', '2').refused('2', status=2)
