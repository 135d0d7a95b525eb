"""What `kymo report` shows of a recording: on pages of any width, of a part of it, by thread."""
import json
import os
import re
import shutil
from collections import Counter
from pathlib import Path

from kymotest import KYMO, check, check_equal, check_matches, program, record, run, skip

SHOP = Path(__file__).with_name('shop.cc')
ADDS = {
    '_ZN4shop4Cart3addEi': 7, '_ZN4shop4Cart3addERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEi': 5,
    '_ZN4shop4Cart3addERKSt6vectorINS_4ItemESaIS2_EE': 3
}


def shop(tmp):
    path = tmp / 'shop-of-a-long-name'
    run(program('g++'), '-O1', '-g', '-o', path, SHOP).ok()
    return path


def table(text, heading):
    """Rows of one table: the first column, and the others' words."""
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(heading + ' '))
    rows = []
    for line in lines[at + 1:]:
        match = re.match(r'(\S.*?)\s\s+([\d,]+)\s.*', line)
        if not match:
            break
        rows.append((match[1], int(match[2].replace(',', ''))))
    return rows


def test_a_pipe_gets_whole_names_and_a_narrow_page_names_that_differ(tmp):
    path = shop(tmp)
    record(*(word for name in ADDS for word in ('-p', f'{path}:{name}', '-r', f'{path}:{name}')), '--', path).ok()
    names = {f'{path.name}:{name}{end}': count for name, count in ADDS.items() for end in ('', '%return')}
    whole = run(KYMO, 'report', '--no-demangle').ok().out
    check_equal(dict(table(whole, 'PROBE')), names, 'rows in a pipe')
    check_equal(dict(table(whole, 'CALLS')), {name: n for name, n in names.items() if '%' not in name},
                'calls in a pipe')
    for width in (20, 40, 80, 100):
        for more in ([], ):
            text = run(KYMO, 'report', '-w', width, *more).ok().out
            rows = table(text, 'PROBE')
            check_equal(sorted(count for _, count in rows), [3, 3, 5, 5, 7, 7], f'counts at {width}')
            check_equal(len(set(name for name, _ in rows)), 6, f'different names at {width}: {rows}')
            check_equal(len(set(name for name, _ in table(text, 'CALLS'))), 3, f'different calls at {width}')


LONG = 'of_an_order_service_with_a_name_that_no_page_has_columns_for_' * 5


def test_names_of_300_columns_are_whole_in_a_pipe_and_differ_on_a_page(tmp):
    """Threads' probes and processes' commands, as well as probes."""
    names = [f'{before}_{LONG}{after}' for before in 'ab' for after in 'xy']
    (tmp / 'names.c').write_text('#include <unistd.h>\n' + ''.join(
        f'__attribute__((noinline)) void {name}(void) {{ __asm__ volatile("nop; nop; nop; nop; nop; nop"); }}\n'
        for name in names) + 'int main(int argc, char **argv) { ' + ''.join(
            f'for (int i = 0; i < {n}; i++) {name}(); ' for n, name in enumerate(names, 1)) + 'return argc > 9; }\n')
    run(program('gcc'), '-O1', '-o', 'names', 'names.c').ok()
    words = [f'{word}{LONG}' for word in ('one', 'two')]
    record('-p', './names:?_of*', '--', 'sh', '-c', './names "$@"; true', 'sh', *words).ok()
    out = run(KYMO, 'report', '--by-thread', '--all').ok().out
    for count, name in enumerate(names, 1):
        check(re.search(rf'^  names:{name} +{count} ', out, re.MULTILINE), f'{name} is whole: {out}')
    out = run(KYMO, 'report').ok().out
    check(re.search(rf'^\d+ \./names {words[0]} {words[1]}  +10 ', out, re.MULTILINE), f'the command is whole: {out}')
    for width in (40, 80, 100, 120, 200):
        for more in ([], ['--by-thread']):
            out = run(KYMO, 'report', '-w', width, *more).ok().out
            row = r'  (\S+) +\d+ ' if more else r'((?:names:)?[ab]\S+) +\d+ '
            shown = [match[1] for match in map(re.compile(row).match, out.splitlines()) if match]
            check_equal((len(shown), len(set(shown))), (4, 4), f'names at {width} {more}: {out}')


def events(*options):
    """Records, without losses, of the recording in the test's directory."""
    lines = run(KYMO, 'report', '--events', '--raw', '--json', *options).ok().out.splitlines()
    return [event for event in map(json.loads, lines) if event['event'] == 'probe']


def numbers(*options):
    return json.loads(run(KYMO, 'report', '--json', *options).ok().out)


def counts(of):
    """Records by probe; returns of system calls are not known by one."""
    return dict(Counter(event['name'] for event in of if event['name'] != 'syscall:return'))


def hit(summary):
    return {
        probe['name']: probe['count'] for probe in summary['probes']
        if probe['count'] and probe['name'] != 'syscall:return'
    }


def program_of(event, processes):
    """The name of the program that its process ran then: a child is its parent's until it executes another."""
    ran = [
        process for process in processes
        if process['pid'] == event['pid'] and (process['begin_ns'] or 0) <= event['time_ns']
    ]
    return max(ran, key=lambda process: process['begin_ns'] or 0)['command'].split()[0]


def record_a_tree():
    record('-p', 'libc:malloc', '-r', 'libc:malloc', '-p', 'libc:read', '-s', '%file', '--', 'sh', '-c',
           'ls /; cat /etc/passwd | head -3').ok()


def test_a_part_of_a_recording_is_what_the_whole_says_of_it(tmp):
    record_a_tree()
    whole = events()
    summary = numbers()
    first = min(event['time_ns'] for event in whole)
    ls, = {process['pid'] for process in summary['processes'] if process['command'] == 'ls /'}
    third = (max(event['time_ns'] for event in whole) - first) // 3
    within = [event for event in whole if third <= event['time_ns'] - first <= 2 * third]
    parts = [(['--process', ls], [event for event in whole if event['pid'] == ls]),
             (['--process', 'ls'], [event for event in whole if event['pid'] == ls]),
             (['--thread', ls], [event for event in whole if event['tid'] == ls]),
             (['--probe', 'libc:malloc'], [event for event in whole if event['name'].startswith('libc:malloc')]),
             (['--probe', 'openat', '--probe',
               'read'], [event for event in whole if event['name'] in ('syscall:openat', 'libc:read')]),
             (['--from', f'{third}ns', '--to', f'{2 * third}ns'], within),
             (['--from', f'{third}ns', '--to', f'{2 * third}ns', '--process', 'ls,cat', '--probe', 'libc:*'], [
                 event for event in within
                 if program_of(event, summary['processes']) in ('ls', 'cat') and event['name'].startswith('libc:')
             ]), ]
    for options, part in parts:
        check(0 < len(part) < len(whole) or options[0] == '--from', f'{options} is a part of the recording')
        check_equal(counts(events(*options)), counts(part), f'records with {options}')
        check_equal(hit(numbers(*options)), counts(part), f'probes with {options}')
    malloc, = (call for call in numbers('--probe', 'libc:malloc', '--process', 'ls')['calls'] if call['count'])
    entries = sum(event['name'] == 'libc:malloc' for event in parts[0][1])
    check_equal((malloc['name'], malloc['count']), ('libc:malloc', entries), 'its calls')


def test_a_title_with_a_colon_names_its_program(tmp):
    """As "nginx: worker process" does."""
    record('-p', 'libc:malloc', '--', program('bash'), '-c', "(exec -a 'mill: worker process' ls /); true").ok()
    commands = [process['command'] for process in numbers()['processes']]
    check('mill: worker process /' in commands, 'the title is there', commands)
    check_equal(counts(events('--process', 'mill')), counts(events('--process', 'mill:*')), 'its events')
    check(events('--process', 'mill'), 'there are some')


def test_a_call_that_ends_behind_the_time_has_its_duration(tmp):
    """A call counts by when it begins, and is whole."""
    record('-p', 'libc:nanosleep', '-r', 'libc:nanosleep', '-p', 'libc:clock_nanosleep', '-r', 'libc:clock_nanosleep',
           '--', 'sleep', '0.2').ok()
    call, = (call for call in numbers('--to', '100ms')['calls'] if call['count'] and 'clock' in call['name'])
    check(call['count'] == 1 and call['duration_ns']['min'] >= 200_000_000, f'it is whole: {call}')
    check_equal([call for call in numbers('--from', '100ms')['calls'] if call['count']], [], 'no call begins later')


def test_counts_by_thread_and_probe_are_those_of_the_records(tmp):
    record_a_tree()
    expected = {}
    for event in events():
        if event['name'] != 'syscall:return':
            expected.setdefault((event['pid'], event['tid'], event['name']), []).append(event)
    summary = numbers('--by-thread')
    names = {probe['id']: probe['name'] for probe in summary['probes']}
    counted = Counter()
    for thread in summary['threads']:  # a child before and after its exec is two
        for probe in thread['probes']:
            counted[thread['pid'], thread['tid'], names[probe['id']]] += probe['count']
    check_equal(dict(counted), {key: len(found) for key, found in expected.items()}, 'counts by thread and probe')
    text = run(KYMO, 'report', '--by-thread', '--all').ok().out
    at = text.splitlines().index(next(line for line in text.splitlines() if line.startswith('THREAD, PROBE ')))
    rows = [line for line in text.splitlines()[at + 1:] if line.startswith('  ')]
    check(len(rows) >= len(expected), 'a row for each', text)


def test_returns_of_system_calls_are_no_probe(tmp):
    record_a_tree()
    check('syscall:return' not in run(KYMO, 'report', '--all').ok().out, 'it is none in the summary')


def test_a_part_that_cannot_be_is_refused(tmp):
    record_a_tree()
    refused = {
        ('--probe', 'nothing'):
        (1, "kymo: kymo.data: no probe of this recording matches 'nothing': 'kymo report --all' names them all\n"),
        ('--thread', 'nob*dy'):
        (1, "kymo: kymo.data: no thread of this recording has the name 'nob*dy': 'kymo report --all' shows all\n"),
        ('--events', '--thread', '1'): (1, "kymo: kymo.data: this recording has no record of thread 1: 'kymo report "
                                        "--by-thread --all' shows all\n"),
        ('--process', '1'):
        (1,
         "kymo: kymo.data: no process of this recording has the id or the program '1': 'kymo report --all' shows all\n"
         ), ('--from', 'soon'):
        (2, "kymo: --from takes a time since the first event, as 1.5, 1.5s, 20ms, 7us or 300ns: 'soon' is none\n"),
        ('--from', '2', '--to', '1'): (2, 'kymo: --from is later than --to: nothing is between them\n'),
        ('--thread', ','): (2, "kymo: ',' names no thread\n"), ('--events', '--by-thread'):
        (2, 'kymo: --by-thread is for the summary and --json only\n'),
    }
    for options, (status, sentence) in refused.items():
        result = run(KYMO, 'report', *options)
        check_equal((result.status, result.err.replace("try 'kymo help report'\n", '')), (status, sentence),
                    f'{options}')


def test_markers_that_begin_and_end_something_have_durations(tmp):
    """Python's own clock around each of its collections is never below what lies between the two markers."""
    python = Path('/usr/bin/python3')
    if 'gc__start' not in run(KYMO, 'list', python, 'python:gc__*').ok().out:
        skip('this Python has no SDT probes')
    script = tmp / 'collect.py'
    script.write_text(
        'import gc, time\ngc.disable()\nfor i in range(17):\n    begin = time.monotonic_ns()\n    gc.collect()\n'
        '    print(time.monotonic_ns() - begin)\n')
    took = [
        int(line) for line in record('-m', 'python:gc__*', '--', python, '-S', script).ok().out.splitlines()
        if line.isdigit()
    ]
    marks = events()
    call, = numbers()['calls']
    check_equal((call['name'], call['count'], call['open'], call['without_entry']),
                ('python:gc__start', sum(mark['name'] == 'python:gc__done' for mark in marks), 0, 0), 'pairs')
    starts = [mark['time_ns'] for mark in marks if mark['name'] == 'python:gc__start']
    ends = [mark['time_ns'] for mark in marks if mark['name'] == 'python:gc__done']
    between = [end - start for start, end in zip(starts, ends)]
    check_equal(len(took), 17, 'collections that the program timed')
    check(any(all(own >= ns for own, ns in zip(took, between[at:])) for at in range(len(between) - 16)),
          f'within {took}: {between}')
    check(
        abs(call['duration_ns']['sum'] - sum(between)) <= len(between),
        f"{call['duration_ns']['sum']} ns are {between}")


def test_a_graph_has_system_calls_as_the_events_have_them(tmp):
    backends = ['ptrace'] if os.geteuid() else ['ptrace', 'kernel']
    for backend in backends:
        record('-s', '%file,read,fstat,mmap,exit_group', '--backend', backend, '--', 'cat', '/etc/hostname').ok()
        lines = [re.search(r' cat (\w+\(.*)$', line) for line in run(KYMO, 'report', '--events').ok().out.splitlines()]
        calls = [re.sub(r'\s+= ', ' = ', re.sub(r' <[\d.]+>$', '', line[1])) for line in lines if line]
        graph = [
            line.split('│ ', 1)[1]
            for line in run(KYMO, 'report', '--graph', env={'LC_ALL': 'C.UTF-8'}).ok().out.splitlines() if '│ ' in line
        ]
        check(
            len(calls) > 10 and any('openat(AT_FDCWD, ' in call for call in calls), f'{backend}: there are calls',
            calls)
        check_equal([call for call in graph if not call.startswith('exit_group')],
                    [call for call in calls if not call.startswith('exit_group')], f'calls recorded by {backend}')
        check(graph[-1].startswith('exit_group(0)'), 'the last one', graph[-1])


def test_the_activity_of_a_part_stands_in_its_place(tmp):
    """One process at the beginning, one at the end: the line is of the whole time."""
    record('-p', 'libc:malloc', '--', 'sh', '-c', 'ls / > listed; sleep 0.4; cat /etc/hostname > listed').ok()

    def activity(process):
        text = run(KYMO, 'report', '-w', 80, '--process', process, env={'LC_ALL': 'C'}).ok().out
        line, = (line for line in text.splitlines() if line.startswith('activity'))
        columns = line[len('activity  '):].ljust(70)
        return {half: bool(columns[at:at + 35].strip()) for half, at in (('first', 0), ('second', 35))}

    check_equal(activity('ls'), {'first': True, 'second': False}, 'of the first')
    check_equal(activity('cat'), {'first': False, 'second': True}, 'of the last')


def test_a_tree_of_some_probes_has_no_others(tmp):
    """Each call of the selected functions is in it, and a call between two of them is passed over."""
    record_a_tree()
    text = run(KYMO, 'report', '--tree', '--all', '--probe', 'openat', '--process', 'ls').ok().out
    rows = [line.split() for line in text.splitlines()[1:] if 'syscall:' in line or 'malloc' in line]
    opens = sum(event['name'] == 'syscall:openat' for event in events('--process', 'ls'))
    check_equal([(row[2], row[3]) for row in rows], [(str(opens), 'syscall:openat')], text)


IDLE = r'''
#define _GNU_SOURCE
#include <sched.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

__attribute__((noinline)) void hot(void)
{
	__asm__ volatile("nop; nop; nop; nop; nop");
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		_exit(1);
}

int main(void)
{
	run_on(1);
	hot();
	run_on(0);
	sleep(1);
	for (int i = 0; i < 20000; i++)
		hot();
	return 0;
}
'''


def test_no_loss_is_shown_before_the_first_record(tmp):
    """dash starts a command by vfork(), and hits before its exec are lost: how many is known, and hardly when."""
    record('-p', 'libc:malloc', '--', 'sh', '-c', '/bin/true; true').ok()
    out = run(KYMO, 'report').ok().out
    lost = re.search(r'^lost .*in vfork children before their exec: (.*)$', out, re.MULTILINE)
    if not lost:
        skip('this sh makes no vfork child that allocates')
    check_matches(lost[1], r'\A\d+\.\d+ to \d+\.\d+ s\Z')
    line, = (line for line in run(KYMO, 'report', '--events').ok().out.splitlines() if 'in vfork children' in line)
    check_matches(line, r'\A\s*\d+\.\d{9} \[---\] --- lost ')


def test_rates_of_a_flight_recorder_leave_out_what_only_an_idle_cpu_still_has(tmp):
    """The first call was on a CPU whose ring is never full; of the others the newest are left."""
    if len(os.sched_getaffinity(0)) < 2 or not os.sched_getaffinity(0) >= {0, 1}:
        skip('one CPU')
    (tmp / 'idle.c').write_text(IDLE)
    run(program('gcc'), '-O1', '-o', tmp / 'idle', tmp / 'idle.c').ok()
    record('--overwrite', '--buffer', '64K', '-p', f'{tmp}/idle:hot', '--', tmp / 'idle').ok()
    times = [event['time_ns'] for event in events()]
    times = [time - times[0] for time in times]
    said = numbers()
    check(said['duration_ns'] > 10**9 and said['cpus'] == 2, 'the first call is there', said)
    since = said['since_ns'] - said['first_ns']
    check_equal(said['events_since'], len(times) - 1, 'events since every CPU has all')
    check(0 < since <= times[1], 'since the first of the busy CPU', since, times[1])
    check_equal([probe['count_since'] for probe in said['probes']], [len(times) - 1], 'of the probe')
    text = run(KYMO, 'report').ok().out
    rate = (len(times) - 1) / (said['duration_ns'] - since) * 1e9
    shown = re.search(r' events, ([\d.]+)([kM]?)/s since (1\.\d+) s; 1 probe', text)
    check(shown, 'the header', text)
    check(abs(float(shown[1]) * {'': 1, 'k': 1e3, 'M': 1e6}[shown[2]] / rate - 1) < 0.01, f'{rate:.0f}/s', text)
    check_equal(len(re.findall(rf' +{shown[1]}{shown[2]}  100.0%', text)), 2, 'rates of the probe and of the thread')
    check_matches(text, r'packets overwritten: before 1\.\d+ s', 'losses')
    later = numbers('--from', '0.5')
    check_equal(later['events'], len(times) - 1, 'of a part')
    run(KYMO, 'report', '--diff', 'kymo.data', 'kymo.data').ok()


def test_shares_add_up_where_system_calls_have_two_records(tmp):
    """A call that returned is one row, and one of the counts that shares are of."""
    record('-p', 'libc:malloc', '-s', 'openat,close', '--', 'ls', tmp).ok()
    out = run(KYMO, 'report', '--by-thread').ok().out
    for heading, rows in ('PROBE', r'\S+'), ('THREAD, PROBE', r'  \S+'):
        after = out[out.index(f'\n{heading} '):].split('\n\n')[0]
        found = re.findall(rf'^{rows} +([\d,]+) .*? ([\d.]+)%', after, re.MULTILINE)
        counts = [int(count.replace(',', '')) for count, _ in found]
        check_equal(len(found), 3, f'rows below {heading}: {after}')
        check_equal([share for _, share in found], [f'{count * 100 / sum(counts):.1f}' for count in counts], 'shares')
