"""Hits of vfork children before their exec: such a child cannot be told from its parent, so nothing is recorded of it;
but each hit is counted, and told."""
import platform

from comparing import babeltrace_with_losses
from kernelcount import count_command
from kymotest import check, check_equal, check_matches, kymo, record, report_json, skip, target, target_path
from recorders import recorder

N = 700


def skip_without_guards():
    """There are none where glibc does not register threads for restartable sequences."""
    if tuple(map(int, platform.libc_ver()[1].split('.'))) < (2, 35):
        skip('vfork children are recorded as their parents here')


def check_told(directory, n_lost):
    """The report tells of them in all its forms, and so does babeltrace2."""
    report = report_json(directory)
    check_equal((report['lost_events'], report['lost_in_vforks']), (n_lost, n_lost),
                'lost events, those of vfork children')
    check_equal(sum(loss['events'] for loss in report['losses'] if loss['cpu'] is None), n_lost, 'losses of no CPU')
    check_equal(babeltrace_with_losses(directory), (report['events'], n_lost), 'events and lost ones by babeltrace2')
    check_matches(
        kymo('report', directory).ok().out, rf'^lost {n_lost} events \(.*\), all in vfork children before their exec: ')
    check_matches(
        kymo('report', '--events', directory).ok().out, rf'\[---\] --- lost {n_lost} events in vfork children within ')
    return report


def test_each_hit_is_recorded_or_counted_as_the_kernel_counts_it(tmp):
    skip_without_guards()
    command = [target_path('forker'), N]
    expected = count_command(command, {'work_a': (command[0], 'work_a')}, children=True)[1]['work_a']
    result = record('-p', 'forker:work_a', '--', *command).ok()
    report = check_told('kymo.data', result.json()['vfork'])
    check_equal(report['events'] + report['lost_events'], expected, 'hits')
    check_matches(result.err,
                  rf'^kymo: lost in vfork children before their exec, whose hits are counted and not recorded: {N}$')
    check('buffer' not in result.err, 'buffers have nothing to do with it', result)


def test_each_of_several_recordings_counts_its_own(tmp):
    skip_without_guards()
    process = target('forker', '-w', N)
    first = recorder(process.pid, 'first', '-p', 'forker:work_a')
    second = recorder(process.pid, 'second', '-p', 'forker:work_a n=%edi:s32')
    said = process.end(input='\n').ok().json()
    first.end().ok()
    second.end().ok()
    for directory in ('first', 'second'):
        report = report_json(directory)
        check_equal(report['lost_events'], report['lost_in_vforks'], 'lost')
        check_equal(report['events'] + report['lost_events'], said['parent'] + said['vfork'], 'hits')


def test_calls_that_last_while_a_vfork_child_runs_have_their_durations(tmp):
    record('--no-follow', '-p', 'forker:vfork_child', '-r', 'forker:vfork_child', '-p', 'forker:work_a', '--',
           target_path('forker'), N).ok()
    function = report_json()['calls'][0]
    check_equal((function['count'], function['over_losses']), (1, 0), 'the call around it')
