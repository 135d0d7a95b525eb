"""kymo record -m: which markers, in which processes, beside what else; and the program is as it was afterwards."""
import re
import shlex
import signal

import markers
import remains
from kymotest import (check, check_equal, check_matches, check_text_intact, event_counts, kymo, record, report_json,
                      start_record, target, target_path)
from passed import ALL, BABELTRACE, by_babeltrace, check_against_log, check_counts

# ---- counts --------------------------------------------------------------------------------------


def test_threads_signals_and_forked_children_are_counted_as_the_program_does():
    process = target('marked', '-t', '8', '-w', '1500')
    path, before = target_path('marked'), remains.lasting_mappings(process.pid)
    recorder = start_record(process.pid, *ALL)
    process.send('\n')
    process.wait_for('done')
    check(', none lost, in ' in recorder.end(signal.SIGINT).ok().err, 'nothing is lost', recorder.result())
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    markers.check_off(process.pid, path)
    said = process.end().ok().json()
    check_counts(said, event_counts())
    check_equal(said['evaluations'], 12000, 'evaluations')


def test_attach_leave_attach_again():
    process = target('marked', '-w', '100')
    path, before = target_path('marked'), remains.lasting_mappings(process.pid)
    for i in range(5):
        recorder = start_record(process.pid, *ALL, '-o', f'data{i}')
        check_equal({gate[2] for gate in markers.gates(process.pid, path)}, {1}, 'recordings that want it')
        process.send('\n')
        process.wait_for('(done\n){%d}' % (2 * i + 1))
        recorder.end(signal.SIGINT).ok()
        remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
        markers.check_off(process.pid, path)
        process.send('\n')
        process.wait_for('(done\n){%d}' % (2 * i + 2))
        check_equal(event_counts(f'data{i}')['marked:eight'], 100, f'records of recording {i}')
    check_equal(process.end().ok().json()['evaluations'], 500, 'evaluations')


def test_children_of_a_followed_program_are_recorded():
    result = record(*ALL, '--', target_path('marked'), '-n', '201', '-f', '2').ok()
    check_equal(event_counts()['marked:reals'], 201 + 6 * 10, 'records of the program and its six children')
    check_equal(result.json()['children'], 6, 'children')


def test_children_that_nobody_follows_run_on_and_can_be_restored():
    """Those have the jump, and a counter of 1, in memory of their own."""
    process = target('marked', '-w', '1', '-f', '2')
    recorder = start_record(process.pid, *ALL)
    for i in range(10):
        process.send('\n')
        process.wait_for('(done\n){%d}' % (i + 1))
    recorder.end(signal.SIGINT).ok()
    check_equal(event_counts()['marked:reals'], 10, 'records')
    check_equal(process.end().ok().json()['children'], 2, 'children')


def test_a_program_that_is_executed_is_recorded():
    command = f'{target_path("marked")} -n 10; exec {shlex.quote(target_path("marked"))} -n 30'
    record(*ALL, '--', '/bin/sh', '-c', command).ok()
    check_equal(event_counts()['marked:ints'], 40, 'records')


def test_the_report_merges_copies_and_counts_each():
    record(*ALL, '--', target_path('marked'), '-n', '100').ok()
    probes = [probe for probe in report_json()['probes'] if probe['name'] in ('marked:looped', 'marked:copies')]
    check_equal(sorted((probe['name'], probe['count']) for probe in probes), [('marked:copies', 250),
                                                                              ('marked:looped', 800)], 'in the report')
    check_equal(event_counts()['marked:looped'], 800, 'in the trace')


# ---- markers beside other probes -----------------------------------------------------------------


def test_probes_on_every_instruction_around_markers(tmp):
    """No jump relies on bytes that turn a marker on, and none is put there."""
    result = record(
        *ALL, *(word for name in ('mark_*', 'do_round', 'compute_*', 'on_usr1') for word in ('-p', f'marked:{name}:*')),
        '--buffer', '64M', '--', target_path('marked'), '-n', '320', '-l', 'log').ok()
    check(', none lost, in ' in result.err, 'nothing is lost', result)
    found = {name: records for name, records in by_babeltrace().items() if re.fullmatch(r'\w+', name)}
    check_against_log(found, tmp / 'log', BABELTRACE)


def test_markers_come_and_go_while_every_instruction_around_them_is_probed():
    process = target('marked', '-t', '4', '-w', '200')
    path, before = target_path('marked'), remains.lasting_mappings(process.pid)
    probes = markers.recorder(process.pid, 'probes', '--overwrite', '-p', 'marked:mark_*:*', '-p', 'marked:compute_*:*')
    for i in range(4):
        marks = markers.recorder(process.pid, 'marks', *ALL)
        process.send('\n')
        process.wait_for('(done\n){%d}' % (i + 1))
        marks.end(signal.SIGINT).ok()
        check_equal(set(markers.gates(process.pid, path)), {(0, 0, 0)}, 'gates')
        counts = event_counts('marks')
        for name in ('nothing', 'small', 'ints', 'longs', 'pointers', 'reals', 'eight', 'costly'):
            n = counts[f'marked:{name}']
            check(n == 800 or (n == 0 and 'cannot be probed safely' in marks.err),
                  f'{name} is recorded whole, or was left out', counts, marks.err)
    probes.end(signal.SIGINT).ok()
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    markers.check_off(process.pid, path)
    process.end().ok()


def test_functions_and_returns_of_functions_with_markers():
    record(*ALL, '-p', 'marked:mark_ints', '-r', 'marked:mark_costly $retval:s32', '-r', 'marked:mark_text', '--',
           target_path('marked'), '-n', '50').ok()
    counts = event_counts()
    check_equal([
        counts[name]
        for name in ('marked:mark_ints', 'marked:mark_costly%return', 'marked:mark_text%return', 'marked:text')
    ], [50] * 4, 'records')


# ---- names ---------------------------------------------------------------------------------------


def names_of(*globs):
    record(*(word for glob in globs for word in ('-m', glob)), '--', target_path('marked'), '-n', '10').ok()
    return {name.removeprefix('marked:') for name in event_counts() if name.startswith('marked:')}


def test_a_marker_is_named_by_a_glob_a_provider_or_a_file():
    check_equal(names_of('reals'), {'reals'}, 'by its name')
    check_equal(names_of('real[s]', 'alive*'), {'reals', 'alive', 'alive_text'}, 'by globs')
    check_equal(names_of('kymo:te?t'), {'text'}, 'by its provider')
    check_equal(names_of('marked:*s'), {'ints', 'longs', 'pointers', 'reals', 'copies'}, 'by its file')
    check_equal(names_of(f'{target_path("marked")}:small'), {'small'}, 'by a path')


def test_an_unknown_name_is_an_error_that_says_which_there_are():
    process = target('marked', '-w', '1')
    result = kymo('record', '-m', 'realz', '--pid', process.pid).refused('has no marker')
    check_matches(
        result.err,
        rf"process {process.pid} has no marker 'realz'; it has (\w+:\w+, )+… \('kymo list {process.pid}' shows all\)",
        'the error')
    kymo('record', '-m', 'reals', '-m', 'nobody:*', '--pid', process.pid).refused("has no marker 'nobody:\\*'")
    kymo('record', '-m', '', '--pid', process.pid).refused('names no marker', 2)
    kymo('record', '-m', 'kymo:', '--pid', process.pid).refused('names no marker', 2)
    check_text_intact(process.pid)
    markers.check_off(process.pid, target_path('marked'))
    process.end().ok()


def test_a_launched_command_that_never_has_the_marker_runs_and_kymo_says_so():
    result = record('-m', 'marked:nobody', '--', target_path('marked'), '-n', '3')
    check('nobody' in result.err and '"nothing": 3' in result.out, 'the command ran, and the name is told', result)


def test_the_kernel_backend_refuses_markers():
    process = target('marked', '-w', '1')
    for words in (['--backend', 'kernel', '--pid', process.pid], ['--all'], ['--backend', 'kernel', '--', 'true']):
        result = kymo('record', *ALL, *words)
        check(result.status in (1, 2) and re.search('marker', result.err), 'refused', result)
        print(result)
    process.end().ok()
