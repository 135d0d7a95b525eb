"""One recording, two ways: what the process refuses goes through the kernel, the rest does not; counts are those of
the kernel alone."""
import signal
from pathlib import Path

import processes
import remains
from kymotest import (KYMO, NOBODY, check, check_equal, check_same, check_text_intact, event_counts, events, eventually,
                      kymo, need_uprobes, record, report_json, run, start)

INSTEAD = 'recorded through the kernel instead, a microsecond and more an event'
CALLS = 300

PROGRAM = r'''
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

long plain(long n), awkward(long n), paired(long n), beside(long n), behind(long n), reader(long n);

/*
 * awkward has bytes that are no instruction; behind it begins right where beside ends, and has them too; paired returns near what looks like a system call at which
 * threads are canceled, which is known by its address; reader looks at one of its own bytes.
 */
__asm__(".text\n"
	".macro begin name\n.globl \\name\n.type \\name, @function\n\\name:\n.endm\n"
	".macro finish name\n.size \\name, . - \\name\n.endm\n"
	"begin plain\n"
	"lea 1(%rdi), %rax\nadd $1, %rax\nret\n"
	"finish plain\n"
	".p2align 6\n"
	"begin awkward\n"
	"lea 2(%rdi), %rax\nadd $2, %rax\nret\n.byte 0x06, 0x06\n"
	"finish awkward\n"
	".p2align 6\n"
	"begin paired\n"
	"lea 3(%rdi), %rax\nadd $3, %rax\n.nops 70\nret\n"
	"mov 8(%rsp), %r8\nmov 16(%rsp), %r9\nsyscall\nret\n"
	"finish paired\n"
	".p2align 4\n"
	"begin beside\n"
	"lea 4(%rdi), %rax\ninc %rax\nret\n"
	"finish beside\n"
	"begin behind\n"
	"push %rdi\npop %rax\nret\n.byte 0x06, 0x06\n"
	"finish behind\n"
	".p2align 4\n"
	"begin reader\n"
	"movzbl 1f(%rip), %eax\n1: ret\n"
	"finish reader\n");

static void check(long is, long should)
{
	if (is != should)
		abort();
}

int main(int argc, char **argv)
{
	long calls = atol(argv[1]);
	char line[100] = "";

	setlinebuf(stdout);
	if (argc > 2)
		puts("ready");
	do {
		if (argc > 2 && (!fgets(line, sizeof(line), stdin) || *line == 'e'))
			break;
		if (*line == 'x')
			execl(argv[0], argv[0], argv[1], (char *)NULL);
		for (long i = 0; i < calls; i++) {
			check(plain(i), i + 2);
			check(awkward(i), i + 4);
			check(paired(i), i + 6);
			check(beside(i), i + 5);
			check(behind(i), i);
			check(reader(i), 0xc3);
		}
		puts("called");
	} while (argc > 2);
	return 0;
}
'''

# Exactly named: what the process takes, and what it does not.
TAKEN = [
    '-p', './mix:plain n=%di:s64', '-r', './mix:plain ret=$retval:s64', '-p', './mix:paired n=%di:s64', '-p',
    './mix:beside n=%di:s64'
]
REFUSED = ['-p', './mix:awkward n=%di:s64', '-r', './mix:paired ret=$retval:s64', '-p', './mix:behind n=%di:s64']
NAMES = ['plain', 'plain%return', 'paired', 'beside', 'awkward', 'paired%return', 'behind']


def build():
    need_uprobes()
    Path('mix.c').write_text(PROGRAM)
    run('gcc', '-O1', '-o', 'mix', 'mix.c').ok()


def running(calls=CALLS, **options):
    build()
    process = start('./mix', calls, 'wait', **options)
    process.wait_for('^ready$')
    return process


def start_recorder(*args, **options):
    recorder = start(KYMO, 'record', *args, **options)
    recorder.wait_for(r'^kymo: recording ', 1)
    return recorder


def call(process, times=1):
    """The functions are called, and it has come back from them."""
    before = process.out.count('called')
    process.send('go\n' * times)
    eventually(lambda: process.out.count('called') == before + times, 'the functions are called')


def check_halves(n, directory='kymo.data'):
    """Each way has made so many kinds of events: by what they are made of, files of the one and of the other."""
    found = {True: set(), False: set()}
    for path in Path(directory).iterdir():
        if path.name != 'metadata':
            found[path.name.startswith('kernel_')].add(path)
    counts = []
    for way in (True, False):
        aside = Path('half')
        aside.mkdir()
        for path in [*found[way], Path(directory, 'metadata')]:
            (aside / path.name).write_bytes(path.read_bytes())
        counts.append(len(event_counts(aside)))
        for path in aside.iterdir():
            path.unlink()
        aside.rmdir()
    check_equal(counts, n, f'kinds of events through the kernel, in the process')


def check_counts(n, names=NAMES, directory='kymo.data'):
    check_equal(dict(event_counts(directory)), {f'mix:{name}': n for name in names}, 'events')


def values(directory):
    return sorted(f'{event.name} {sorted(item for item in event.fields.items() if item[0] not in ("tid", "cpu_id"))}'
                  for event in events(directory))


# ---- which process gets which backend --------------------------------------------------------------------------


def test_a_process_is_recorded_both_ways_and_counts_and_arguments_are_those_of_the_kernel_alone():
    process = running()
    before = remains.mappings(process.pid)
    for directory, args in (('alone', ['--backend', 'kernel']), ('mixed', [])):
        recorder = start_recorder('-o', directory, *args, *TAKEN, *REFUSED, '--pid', process.pid)
        check_equal(processes.tracer(process.pid), 0, 'tracer')
        call(process)
        result = recorder.end(signal.SIGTERM).ok()
        check_counts(CALLS, directory=directory)
        remains.check_nothing_left(process.pid, before)
    told = result.warnings()
    check_equal([line.endswith(INSTEAD) for line in told], [True] * 3, 'warnings')
    for line, place in zip(told, ('awkward', 'paired%return', 'behind')):
        check(f'no probe can be put at {place} of ' in line, 'what is refused, in the order of the words', result)
    check_same(values('mixed'), values('alone'), 'events')
    check_halves([3, 4], 'mixed')
    process.end(input='end\n').ok()


THREADS = 3
ALWAYS = r'''
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

long plain(long n), awkward(long n), paired(long n);
__asm__(%s);

static void *work(void *unused)
{
	for (long i = 0;; i++) {
		plain(i);
		paired(i);
		awkward(i);
		usleep(50);
	}
}

int main(void)
{
	pthread_t thread;

	for (int i = 0; i < %d; i++)
		pthread_create(&thread, NULL, work, NULL);
	puts("ready");
	fflush(stdout);
	getchar();
	return 0;
}
'''


def test_all_places_begin_and_end_at_one_moment():
    """Each thread calls the functions in turn, all the time: so counts differ by what threads are within at both ends,
    however long breakpoints take to come and go."""
    need_uprobes()
    Path('always.c').write_text(ALWAYS % (PROGRAM.split('__asm__(')[1].split(');')[0], THREADS))
    run('gcc', '-O1', '-pthread', '-o', 'always', 'always.c').ok()
    process = start('./always')
    process.wait_for('^ready$')
    specs = [
        '-p', './always:plain', '-r', './always:plain', '-p', './always:paired', '-r', './always:paired', '-p',
        './always:awkward'
    ]
    for way in ([], ['--backend', 'kernel']) * 3:
        result = record('--for', '0.2', *way, *specs, '--pid', process.pid).ok()
        counts = event_counts()
        check_equal((report_json()['lost_events'], len(counts)), (0, 5), 'losses, and events')
        check(
            max(counts.values()) - min(counts.values()) <= 2 * THREADS, f'counts {way} are those of one interval',
            dict(counts))
    process.end(input='\n').ok()


def test_a_command_that_is_not_followed_is_recorded_both_ways():
    build()
    result = record('--no-follow', *REFUSED, *TAKEN, '--', './mix', CALLS).ok()
    check_equal(result.out, 'called\n', 'output')
    check_equal(len(result.warnings()), 3, 'warnings')
    check_counts(CALLS)
    check_halves([3, 4])


def test_filters_go_with_their_probes_through_the_kernel():
    build()
    probes = ['-p', './mix:awkward arg0 /arg0 % 3 == 0/', '-p', './mix:plain (arg0 * 2) /arg0 > 4/']
    result = record('--no-follow', *probes, '--', './mix', CALLS).ok()
    check_equal(len(result.warnings()), 1, 'warnings')
    check_halves([1, 1])
    check_equal([event['arg0'] for event in events() if event.name == 'mix:awkward'], list(range(0, CALLS, 3)),
                'those of the kernel')
    check_equal([event['value1'] for event in events() if event.name == 'mix:plain'],
                [2 * n for n in range(5, CALLS)], 'those of the process')


def test_a_command_that_is_followed_goes_through_the_kernel_as_a_whole():
    build()
    record(*REFUSED, *TAKEN, '--', './mix', CALLS).ok()
    check_counts(CALLS)
    check_halves([7, 0])


def test_what_is_refused_altogether_leaves_no_half_in_the_process():
    process = running()
    before = remains.mappings(process.pid)
    recorder = start_recorder(*REFUSED, '--pid', process.pid)
    check_same(remains.mappings(process.pid), before, 'mappings')
    call(process)
    check_equal(len(recorder.end(signal.SIGTERM).ok().warnings()), 3, 'warnings')
    check_counts(CALLS, ['awkward', 'paired%return', 'behind'])
    process.end(input='end\n').ok()


def test_a_glob_goes_through_the_kernel_where_all_that_it_means_is_refused():
    process = running()
    recorder = start_recorder('-p', './mix:awkwar*', '-p', './mix:plain', '--pid', process.pid)
    call(process)
    result = recorder.end(signal.SIGTERM).ok()
    check_equal(['the only function that matches ./mix:awkwar* ' in line for line in result.warnings()], [True],
                'warnings')
    check_counts(CALLS, ['awkward', 'plain'])
    check_halves([1, 1])
    process.end(input='end\n').ok()


def test_entries_of_one_way_are_paired_with_returns_of_the_other():
    process = running()
    recorder = start_recorder('-p', './mix:paired', '-r', './mix:paired', '--pid', process.pid)
    call(process)
    recorder.end(signal.SIGTERM).ok()
    check_halves([1, 1])
    names = [event.name for event in events()]
    check_equal(names, ['mix:paired', 'mix:paired%return'] * CALLS, 'order')
    calls = report_json()['calls']
    check_equal([(item['count'], item['without_return'], item['without_entry'], item['open']) for item in calls],
                [(CALLS, 0, 0, 0)], 'pairs')
    process.end(input='end\n').ok()


def test_what_finds_no_place_beside_the_kernels_goes_through_the_kernel_too():
    """The ret of beside is one byte: a jump would have to rely on the bytes of behind."""
    process = running()
    recorder = start_recorder('-r', './mix:beside ret=$retval:s64', '-p', './mix:beside', '-p', './mix:behind', '--pid',
                              process.pid)
    call(process)
    check_equal(len(recorder.end(signal.SIGTERM).ok().warnings()), 2, 'warnings')
    check_counts(CALLS, ['beside', 'beside%return', 'behind'])
    check_halves([2, 1])
    check_equal([event['ret'] for event in events() if event.name == 'mix:beside%return'],
                [i + 5 for i in range(CALLS)], 'values')
    check_text_intact(process.pid)
    process.end(input='end\n').ok()


# ---- side by side --------------------------------------------------------------------------------


def test_probes_on_every_instruction_keep_away_from_the_kernels_places():
    """Those that find no place beside them any more are left out, or go the same way; what is recorded is exact."""
    process = running()
    recorder = start_recorder('-p', './mix:*:*', '-r', './mix:paired', '-p', './mix:behind', '--pid', process.pid)
    changed = processes.changed_text(process.pid)
    call(process)
    recorder.end(signal.SIGTERM).ok()
    counts = {
        name: n for name, n in event_counts().items()
        if n != CALLS and name.split(':')[1].split('+')[0] in ('plain', 'paired', 'beside', 'behind', 'awkward')
    }
    check_equal(counts, {}, 'events that have another count than there were calls')
    check(len(changed) > 10, 'there were many probes', changed)
    check_text_intact(process.pid)
    process.end(input='end\n').ok()


def test_two_recordings_end_in_either_order():
    process = running()
    before = remains.mappings(process.pid)
    specs, names = ['-p', './mix:plain', '-p', './mix:paired', '-r', './mix:paired', '-p',
                    './mix:awkward'], ['plain', 'paired', 'paired%return', 'awkward']
    for order in ((0, 1), (1, 0)):
        recorders = [start_recorder('-o', name, *specs, '--pid', process.pid) for name in ('first', 'second')]
        call(process)
        recorders[order[0]].end(signal.SIGTERM).ok()
        call(process)
        recorders[order[1]].end(signal.SIGTERM).ok()
        for n, which in zip((CALLS, 2 * CALLS), order):
            check_counts(n, names, ('first', 'second')[which])
        remains.check_nothing_left(process.pid, before)
    process.end(input='end\n').ok()


def test_a_place_in_another_recordings_jump_is_refused():
    process = running()
    other = start_recorder('-o', 'other', '-p', './mix:beside:*', '--pid', process.pid)
    record('-p', './mix:behind', '-p', './mix:plain', '--pid', process.pid, '--for',
           '0.1').refused('no probe can be put at behind ')
    call(process)
    other.end(signal.SIGTERM).ok()
    check_equal(set(event_counts('other').values()), {CALLS}, 'the other recording misses nothing')
    check_text_intact(process.pid)
    process.end(input='end\n').ok()


# ---- losses, the flight recorder -----------------------------------------------------------------


def test_losses_of_each_way_are_counted_exactly():
    """Nothing reads while the recorder is stopped."""
    process = running(30000)
    recorder = start_recorder('--buffer', '64K', '-p', './mix:plain n=%di:s32', '-p', './mix:awkward n=%di:s32',
                              '--pid', process.pid)
    recorder.signal(signal.SIGSTOP)
    call(process)
    recorder.signal(signal.SIGCONT)
    recorder.end(signal.SIGTERM)
    report = report_json()
    counts = [probe['count'] for probe in report['probes']]
    check(all(0 < n < 30000 for n in counts) and len(counts) == 2, 'both lose', counts)
    check_equal(report['events'] + report['lost_events'], 60000, 'records and losses')
    process.end(input='end\n').ok()


def test_the_flight_recorder_keeps_the_newest_of_each_way():
    build()
    record('--no-follow', '--overwrite', '--buffer', '64K', '-p', './mix:plain n=%di:s32', '-p',
           './mix:awkward n=%di:s32', '--', './mix', 20000).ok()
    # Overwritten packets are a warning of babeltrace2's.
    lines = run('babeltrace2', 'kymo.data').out.splitlines()
    for name in ('plain', 'awkward'):
        own = [line for line in lines if f'mix:{name}:' in line]
        check(0 < len(own) < 20000 and 'n = 19999' in own[-1], f'the newest of {name}', len(own))


# ---- the end of the recorder, and of the process -------------------------------------------------


def test_of_a_recorder_that_was_killed_only_what_detach_takes_out_is_left():
    process = running()
    before = remains.mappings(process.pid)
    recorder = start_recorder(*TAKEN, *REFUSED, '--pid', process.pid)
    both = len(processes.changed_text(process.pid))
    recorder.end(signal.SIGKILL)
    eventually(lambda: len(processes.changed_text(process.pid)) <= both - len(REFUSED) // 2,
               'the breakpoints go, each of them')
    call(process)
    kymo('detach', process.pid).ok()
    remains.check_nothing_left(process.pid, before)
    call(process)
    process.end(input='end\n').ok()


def test_a_process_that_ends_while_it_is_recorded_both_ways():
    process = running()
    recorder = start_recorder(*TAKEN, *REFUSED, '--pid', process.pid)
    call(process)
    process.signal(signal.SIGKILL)
    recorder.end().ok()
    check_counts(CALLS)


def test_of_another_program_in_the_process_no_more_is_recorded_than_the_warning_says():
    process = running()
    recorder = start_recorder('-p', './mix:plain', '-p', './mix:awkward', '--pid', process.pid)
    call(process)
    process.end(input='x\n').ok()
    result = recorder.end().ok()
    counts = event_counts()
    check_equal(counts['mix:plain'], CALLS, 'calls in the process')
    check(CALLS <= counts['mix:awkward'] <= 2 * CALLS, 'calls through the kernel', counts)
    check(
        len(result.warnings()) == 1 or
        'but for a moment what goes through the kernel; what it did before is' in result.err, 'warnings', result)


# ---- what stays refused --------------------------------------------------------------------------


def test_one_place_that_the_kernel_must_not_have_refuses_all():
    build()
    result = record('--no-follow', *TAKEN, *REFUSED, '-r', './mix:awkward', '--', './mix',
                    CALLS).refused('no probe can be put at awkward%return ')
    check('kernel' not in result.err and not result.out, 'no hint, no run', result)
    record('--no-follow', *TAKEN, '-p', './mix:reader+0x7', '--', './mix',
           CALLS).refused('no probe can be put at reader.* is read as data')
    record('--no-follow', '--backend', 'inproc', *TAKEN, *REFUSED, '--', './mix',
           CALLS).refused('no probe can be put at awkward ')
    check(not Path('kymo.data').exists(), 'nothing is made')


def test_a_user_without_rights_gets_a_hint(tmp):
    build()
    tmp.chmod(0o777)
    result = record('--no-follow', *TAKEN, *REFUSED, '--', './mix', CALLS, user=NOBODY)
    result.refused(r'(?s)no probe can be put at awkward .* \(as root kymo could record it through the kernel\)$')
    check(not result.out and not Path('kymo.data').exists(), 'nothing has run, nothing is made', result)
