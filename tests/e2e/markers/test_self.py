"""Programs that record their own markers in place: kymo_marker_record(), KYMO_MARKERS. The trace is what `kymo record
-m` would have made."""
import collections
import os
import re
import shutil
import signal

from kymotest import (Event, NOBODY, TARGETS, babeltrace, check, check_equal, check_matches, check_same, event_counts,
                      events, eventually, kymo, record, record_some, report_json, run, skip, start, target_path, waits)
from passed import BABELTRACE, EXACT, by_babeltrace, by_report, check_against_log, check_counts

LIBRARY = TARGETS.parents[1] / 'lib/libkymo-marker.so.1'
MODULE = TARGETS / 'markers/module.so'
NO_RSEQ = {'GLIBC_TUNABLES': 'glibc.pthread.rseq=0'}


def run_self(*args, env=None, status=0):
    return run(target_path('markers/self'), *args, env=env).ended(status)


def run_marked(*args, globs='*', directory='kymo.data', **more):
    environment = {'KYMO_MARKERS': globs, 'KYMO_MARKERS_DIR': directory, 'KYMO_MARKERS_BUFFER': '16M', **more}
    result = run(target_path('markers/marked-self'), *args, env=environment).ok()
    check_same(result.err, '', 'stderr')
    return result


def numbers(directory='kymo.data', name='self:self_number'):
    """The argument of each record."""
    return [event['i'] for event in events(directory) if event.name == name]


def counts_and_losses(directory='kymo.data'):
    report = report_json(directory)
    return sum(probe['count'] for probe in report['probes']), report['lost_events']


# ---- values --------------------------------------------------------------------------------------


def test_every_argument_of_every_record_is_what_the_program_passed(tmp):
    """Of all types; strings of 0 to 300 bytes and NULL."""
    result = run_marked('-n', '700', '-l', 'log')
    check_against_log(by_babeltrace('marked-self'), tmp / 'log', BABELTRACE)
    check_against_log(by_report('marked-self'), tmp / 'log', EXACT)
    check_counts(result.json(), event_counts(), 'marked-self')
    check_equal(result.json()['evaluations'], 700, 'evaluations of an argument with a side effect')


def test_without_restartable_sequences_it_is_the_same(tmp):
    result = run_marked('-n', '320', '-l', 'log', **NO_RSEQ)
    check_against_log(by_babeltrace('marked-self'), tmp / 'log', BABELTRACE)
    check_counts(result.json(), event_counts(), 'marked-self')


def test_programs_that_are_not_linked_to_it_can_be_preloaded(tmp):
    environment = {'LD_PRELOAD': str(LIBRARY), 'KYMO_MARKERS': '*'}
    for name in ('marked', 'marked-portable'):
        run(target_path(name), '-n', '40', '-l', 'log', env=environment).ok()
        check_against_log(by_babeltrace(name), tmp / 'log', BABELTRACE)


def test_globs_choose(tmp):
    result = run_marked('-n', '10', globs='text,co*,kymo:small,marked-self:ints,none').json()
    expected = {f'marked-self:{name}': result[name] for name in ('text', 'copies', 'costly', 'small', 'ints')}
    check_equal(dict(event_counts()), expected, 'events')


def metadata(directory):
    """Without what no two recordings have in common, and events in the order of their places. A recorder's only are its
    state, and packed records."""
    text = re.sub(r'\t(state = "ended"|kymo_format = \d);\n', '', (directory / 'metadata').read_text())
    text = re.sub(r'\tevent\.(header|context) := struct \{.*?\n\t\}[^\n]*;\n', '', text, flags=re.DOTALL)
    events = re.findall(r'event \{.*?\n\};\n', text, re.DOTALL)
    for event in events:
        text = text.replace(event, '')
    events = [event for event in events if '"kymo:thread"' not in event]
    events = sorted(re.sub(r'id = \d+;', 'id;', event, count=1) for event in events)
    text = re.sub(r'(uuid =|monotonic_offset_ns =|pid =|freq =|offset_s =|offset =) \S+', r'\1', text)
    text = re.sub(r'process_\d+_0_0_\d+', 'process', text)
    return re.sub(r'thread_\d+(_\d+)*', 'thread', text) + ''.join(events)


def fields_of(directory):
    return [(event.name, {
        name: value for name, value in event.fields.items() if name not in ('tid', 'cpu_id', 'p', 's')
    }) for event in events(directory)]


def test_the_trace_is_that_of_a_recording_from_outside(tmp):
    run_marked('-n', '50', directory='inside.data')
    record('-o', 'outside.data', '-m', 'marked-self:*', '--', target_path('markers/marked-self'), '-n', '50').ok()
    check_same(metadata(tmp / 'inside.data'), metadata(tmp / 'outside.data'))
    inside, outside = fields_of('inside.data'), fields_of('outside.data')
    check_same([str(event) for event in inside], [str(event) for event in outside])


def test_both_can_be_at_once(tmp):
    environment = {'KYMO_MARKERS': '*', 'KYMO_MARKERS_DIR': 'inside.data'}
    result = record('-o', 'outside.data', '-m', 'marked-self:*', '--', target_path('markers/marked-self'), '-n', '500',
                    '-t', '2', env=environment).ok()
    for directory in ('inside.data', 'outside.data'):
        counts = event_counts(directory)
        for name in ('nothing', 'text', 'looped', 'copies', 'handled'):
            check_equal(counts[f'marked-self:{name}'], result.json()[name], f'{name} in {directory}')


def test_from_outside_it_may_come_and_go(tmp):
    program = start(target_path('markers/marked-self'), '-p', '1000',
                    env={'KYMO_MARKERS': 'text', 'KYMO_MARKERS_DIR': 'inside.data'})
    program.wait_for('^ready$')
    for i in range(2):
        record_some(f'outside{i}', program.pid, '-m', 'marked-self:text', n=1)
    result = program.end(signal.SIGTERM).ok()
    check_equal(event_counts('inside.data')['marked-self:text'], result.json()['text'], 'records inside')


# ---- threads, signals ----------------------------------------------------------------------------


def check_all_counted(result):
    said = result.json()
    written, lost = counts_and_losses()
    check_equal(lost, said['lost'], 'losses in the trace')
    check_equal(written + lost, said['passed'], 'records written and lost')
    return lost


def test_records_of_eight_threads_are_written_or_counted(tmp):
    for environment in ({}, NO_RSEQ):
        check_all_counted(run_self('threads', 8, 20000, env=environment))


def test_losses_are_counted_exactly(tmp):
    for environment in ({}, NO_RSEQ):
        lost = check_all_counted(run_self('threads', 8, 20000, env={'KYMO_MARKERS_BUFFER': '64K', **environment}))
        check(lost > 0, 'some were lost in buffers of 64 KiB')


def test_each_thread_has_its_records_in_order_and_its_id(tmp):
    run_self('threads', 4, 5000, env={'KYMO_MARKERS_BUFFER': '64M'})
    threads = {}
    for event in events():
        if event.name == 'self:self_number':
            threads.setdefault(event['tid'], []).append(event['i'])
    check_equal(len(threads), 4, 'threads')
    for tid, found in threads.items():
        check_equal(found, list(range(found[0], found[0] + 5000)), f'records of thread {tid}')


def test_signal_handlers_record_below_records(tmp):
    for environment in ({}, NO_RSEQ):
        result = run_self('signals', 200000, env={'KYMO_MARKERS_BUFFER': '64M', **environment})
        check_all_counted(result)
        check(result.json()['handled'] > 0, 'signals came', result)


# ---- begin and end -------------------------------------------------------------------------------


def test_what_can_not_be_is_refused(tmp):
    run_self('errors')
    check_equal(numbers(), [1], 'records')
    check_same(sorted(path.name for path in tmp.iterdir() if path.name != 'full'), ['kymo.data'])


def test_a_directory_that_may_not_be_written_is_refused(tmp):
    if os.getuid():
        skip('needs root, to become somebody else')
    for path in (target_path('markers/marked-self'), LIBRARY):
        shutil.copy(path, tmp)
    tmp.chmod(0o755)
    environment = {'LD_LIBRARY_PATH': str(tmp), 'KYMO_MARKERS': '*'}
    result = run(tmp / 'marked-self', '-n', '1', env=environment, user=NOBODY).ok()
    check_same(result.err, 'kymo: markers are not recorded: cannot record into kymo.data: Permission denied\n')


def test_a_second_recording_has_its_own(tmp):
    run_self('again')
    check_equal(dict(event_counts('one.data')), {'self:self_number': 1}, 'one')
    check_equal(numbers('one.data'), [2], 'the first')
    check_equal(numbers('two.data', 'self:self_text'), [4], 'the second')
    check_equal(dict(event_counts('two.data')), {'self:self_text': 1}, 'two')


def test_inline_connections_add_to_a_recording(tmp):
    run_self('inline')
    check_equal([(event.name, event['i']) for event in events()], [('self:self_number', 1), ('self:self_text', 3),
                                                                   ('self:self_number', 4)], 'records')


def test_recordings_begin_and_end_under_load(tmp):
    said = run_self('toggle', 2).json()
    check(said['recordings'] > 3, 'there were some', said)
    check_equal(numbers(), [42], 'the last one')
    check(counts_and_losses('kymo.data.old')[0] > 0, 'the one before')


def test_an_earlier_trace_is_kept(tmp):
    run_marked('-n', '1')
    run_marked('-n', '2')
    check_equal(event_counts()['marked-self:nothing'], 2, 'the new one')
    check_equal(event_counts('kymo.data.old')['marked-self:nothing'], 1, 'the old one')


# ---- the end of the process ----------------------------------------------------------------------


def test_exit_completes_the_trace_wherever_it_is_called(tmp):
    run_self('thread-exit')
    by_thread = collections.defaultdict(list)
    for event in map(Event, babeltrace(may_be_lost='lost_events')):  # of the others, while the process ends
        by_thread[event['tid']] += [event['i']] if event.name == 'self:self_number' else []
    check(list(range(100)) in by_thread.values(), 'all of the thread that called exit()', by_thread.keys())
    run_self('handler')
    check_equal([event['i'] for event in events()], [1, 2], 'records')


def test_the_writer_does_not_keep_a_process_alive(tmp):
    run_self('last-thread')
    check_equal(numbers(), [1, 2], 'records')


@waits
def test_dying_loses_a_second_at_most(tmp):
    for how, status in (('_exit', 0), ('kill', -signal.SIGKILL)):
        run_self(how, status=status)
        check(set(range(1000)) <= set(numbers()), f'records before {how}')
        check_equal(numbers(name='self:self_text'), [1000], 'the string')


@waits
def test_exec_loses_a_second_at_most(tmp):
    run_self('exec')
    check_equal(numbers()[0], 1, 'the first record')


def test_children_do_not_touch_the_trace(tmp):
    run_self('fork')
    check_equal([(event.name, event['i']) for event in events()], [('self:self_number', i) for i in (1, 2, 4)],
                'records')
    check_equal(numbers('child.data'), [3], 'records of the child that records')


def test_forks_disturb_nobody(tmp):
    run_self('many-forks', 30, env={'KYMO_MARKERS_BUFFER': '256K'})
    check(counts_and_losses()[0] > 0, 'the parent is recorded')


# ---- modules -------------------------------------------------------------------------------------


def test_modules_that_are_loaded_later_are_recorded(tmp):
    run_self('modules', MODULE, 20)
    check_equal([event['value'] for event in events() if event.name == 'module:module_event'], list(range(20)),
                'records')
    check_equal(event_counts()['module:module_other'], 20, 'records with a string')


def test_names_that_nobody_has_yet_may_come(tmp):
    run(target_path('markers/modules'), 'comings', MODULE, 5, env={'KYMO_MARKERS': 'module_*'}).ok()
    check(event_counts()['module:module_event'] >= 5, 'records')


# ---- the environment -----------------------------------------------------------------------------


def test_bad_values_are_told_and_the_program_runs_on(tmp):
    (tmp / 'full/of').mkdir(parents=True)
    for environment, sentence in (({'KYMO_MARKERS': 'a,,b'}, 'KYMO_MARKERS has an empty name between its commas'), ({
            'KYMO_MARKERS':
            '*', 'KYMO_MARKERS_BUFFER':
            '1K'
    }, 'KYMO_MARKERS_BUFFER is no size from 64K to 4G'), ({'KYMO_MARKERS': '*', 'KYMO_MARKERS_BUFFER':
                                                           'much'}, 'KYMO_MARKERS_BUFFER is no size from 64K to 4G'),
                                  ({'KYMO_MARKERS': '*', 'KYMO_MARKERS_DIR':
                                    'no/such/place'}, 'cannot record into no/such/place: No such file or directory'), ({
                                        'KYMO_MARKERS':
                                        '*', 'KYMO_MARKERS_DIR':
                                        'full'
                                    }, 'cannot record into full: File exists')):
        result = run(target_path('markers/marked-self'), '-n', '3', env=environment).ok()
        check_same(result.err, f'kymo: markers are not recorded: {sentence}\n')
        check_equal(result.json()['nothing'], 3, 'rounds')
    check_same([path.name for path in tmp.iterdir()], ['full'])


def test_programs_with_more_rights_ignore_it(tmp):
    """AT_SECURE is what setuid gives. Such a program does not look for libraries beside itself, so this one has it in.
    """
    if os.getuid():
        skip('needs root, to make a setuid program')
    program = shutil.copy(target_path('markers/self-static'), tmp)
    tmp.chmod(0o777)
    run(program, 'errors', env={'KYMO_MARKERS': 'self_*'}).ended(3)
    shutil.rmtree(tmp / 'kymo.data')
    os.chmod(program, 0o4755)
    process = start(program, 'quiet', env={'KYMO_MARKERS': '*'}, user=NOBODY)
    process.wait_for('^ready$')
    process.end(signal.SIGTERM).ok()
    check(not (tmp / 'kymo.data').exists(), 'nothing is recorded')


def test_static_programs_record_themselves(tmp):
    process = start(target_path('markers/self-static'), 'quiet', env={'KYMO_MARKERS': '*'})
    process.wait_for('^ready$')
    process.end(signal.SIGTERM).ok()
    check_equal(numbers(name='self-static:self_number'), [1, 2], 'records')


def test_what_the_program_runs_does_not_record_over_it(tmp):
    script = f'{target_path("markers/marked-self")} -n 3 >/dev/null'
    run(target_path('markers/marked-self'), '-n', '1', env={'KYMO_MARKERS': '*'}).ok()
    run('sh', '-c', script, env={'KYMO_MARKERS': '*'}).ok()
    check_equal(event_counts()['marked-self:nothing'], 3, 'a shell passes it on')


def test_a_running_program_can_be_read_meanwhile(tmp):
    process = start(target_path('markers/self'), 'quiet', env={'KYMO_MARKERS': '*'})
    process.wait_for('^ready$')
    eventually(lambda: (tmp / 'kymo.data/metadata').exists() and counts_and_losses()[0] == 1,
               'the record is on the disk')
    names = {
        open(f'/proc/{process.pid}/task/{tid}/comm').read().strip() for tid in os.listdir(f'/proc/{process.pid}/task')
    }
    check_equal(names, {'self', 'kymo-marker'}, 'threads')
    process.end(signal.SIGTERM).ok()
    check_equal(numbers(), [1, 2], 'records')
    check_matches(kymo('report').ok().out, r'self quiet, pid \d+')
