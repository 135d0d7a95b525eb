"""kymo record without --backend: what the process refuses goes through the kernel, where the user has the right to."""
import re
import shutil
import signal
from pathlib import Path

import processes
import remains
from confined import CONFINED
from kymotest import (KYMO, NOBODY, alone, check, check_equal, check_text_intact, event_counts, events, need_uprobes,
                      record, run, start, target_path)

INSTEAD = 'recorded through the kernel instead, a microsecond and more an event'


def confined(**options):
    process = start('/usr/bin/python3', '-c', CONFINED, **options)
    process.wait_for('^ready$')
    check_equal(processes.status(process.pid)['Seccomp'], '2', 'Seccomp')
    return process


def refused_place():
    """A copy of corners for this test alone, as uprobes on the same file would be in each other's way. Also how to run
    it five times, and the place whose function has data in it."""
    shutil.copy(target_path('corners'), 'corners')
    return ['./corners', '-n', 5, 'tables'], './corners:corner_data_in_text'


def check_warned(result, sentence):
    """Once, and of nothing else."""
    lines = result.warnings()
    check(
        len(lines) == 1 and re.search(rf'^kymo: warning: .*{sentence}.*; {INSTEAD}$', lines[0]), 'one warning', result)


# ---- what is recorded through the kernel
# ------------------------------------------------------------------------------


def check_filtered(*args):
    need_uprobes()
    process = confined()
    before = remains.lasting_mappings(process.pid)
    recorder = start(KYMO, 'record', *args, '-p', 'libc:labs n=%di:s64', '--pid', process.pid)
    recorder.wait_for(r'^kymo: recording ', 1)
    check_equal(processes.tracer(process.pid), 0, 'tracer')
    process.send('go\n')
    process.wait_for('^done$')
    check_warned(recorder.end(signal.SIGTERM).ok(), 'a seccomp filter might kill it')
    check_text_intact(process.pid)
    check_equal([line for line in remains.lasting_mappings(process.pid) if '[uprobes]' not in line], before, 'mappings')
    process.end(input='\n').ok()
    check_equal([int(event['n']) for event in events()], [-i for i in range(25)], 'arguments')


def test_a_filtered_process_is_recorded_and_not_killed():
    check_filtered()


@alone  # followed ones have their breakpoints in every process
def test_a_filtered_process_that_is_followed_is_recorded_and_not_killed():
    check_filtered('--follow')


def test_a_place_that_the_process_refuses_is_recorded_in_a_command():
    need_uprobes()
    command, place = refused_place()
    for args in ([], ['--no-follow']):
        result = record(*args, '-p', f'{place} n=%edi:u32', '-p', './corners:corner_table', '--', *command).ok()
        check_warned(result, 'no probe can be put at corner_data_in_text')
        check_equal(result.json(), {'tables': 5}, 'output')
        check_equal(event_counts(), {'corners:corner_data_in_text': 5, 'corners:corner_table': 5}, 'events')


def test_a_command_that_is_begun_anew_has_its_input_its_status_and_one_beginning(tmp):
    """Two are started, of which the first has not run anything; both ignore what kymo's parent ignores."""
    need_uprobes()
    Path('awkward.c').write_text(r'''
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int awkward(void);
__asm__(".globl awkward\n.type awkward, @function\nawkward: mov $1, %eax\nret\n.byte 0x06, 0x06\n.size awkward, . - awkward");
__attribute__((constructor)) static void begin(void)
{
	FILE *file = fopen("began", "a");
	fputs("x", file);
	fclose(file);
}
int main(int argc, char **argv)
{
	char line[100];
	if (!fgets(line, sizeof(line), stdin))
		return 1;
	printf("%s%d\n", line, awkward());
	fflush(stdout);
	if (argc > 1 && !fgets(line, sizeof(line), stdin))
		return 2;
	return signal(SIGCHLD, SIG_DFL) == SIG_IGN ? 7 : 3;
}
''')
    run('gcc', '-O1', '-o', 'awkward', 'awkward.c').ok()
    record('--backend', 'inproc', '-p', './awkward:awkward', '--', './awkward').refused('no probe can be put')
    check(not Path('began').exists(), 'a command that is refused has not begun')
    for args, more in (([], []), (['--no-follow'], []), (['--for', '2'], ['twice']), (['--for', '2',
                                                                                       '--no-follow'], ['twice'])):
        recorder = start(KYMO, 'record', *args, '-p', './awkward:awkward', '--', './awkward', *more,
                         preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        recorder.send('some words\n')
        if more:
            recorder.wait_for(r'^kymo: waiting for \./awkward to end$', which=1)
        result = recorder.end(input='\n' if more else '').ended(7)
        check_equal(result.out, 'some words\n1\n', 'output')
        check_warned(result, 'no probe can be put at awkward')
        check_equal(event_counts(), {'awkward:awkward': 1}, 'events')
    check_equal(Path('began').read_text(), 'xxxx', 'beginnings')


def test_an_earlier_recording_is_kept():
    need_uprobes()
    command, place = refused_place()
    record('-p', './corners:corner_table', '--', *command).ok()
    process = confined()
    record('-p', 'libc:labs', '--pid', process.pid, '--for', '0.1').ok()
    process.end(input='\n\n').ok()
    check_equal(event_counts('kymo.data.old'), {'corners:corner_table': 5}, 'the earlier recording')
    check_equal(sorted(path.name for path in Path('.').glob('kymo.data*')), ['kymo.data', 'kymo.data.old'],
                'directories')


# ---- what is not ----------------------------------------------------------------------------------


def test_with_the_backend_given_the_refusal_stays():
    command, place = refused_place()
    result = record('--backend', 'inproc', '-p', place, '--', *command).refused('no probe can be put .* no instruction')
    check('kernel' not in result.err, 'no hint', result)
    check_equal(result.out, '', 'the command has not run')


def test_what_may_be_data_and_ifuncs_stay_refused():
    """A breakpoint would change the data; of some IFUNCs it is not known what they stand for."""
    command, place = refused_place()
    for spec, sentence in ((f'{place}+0x5', 'no instruction'), ('./corners:corner_jump_next+0xf', 'it may be data'),
                           ('libc:time', 'it is an IFUNC')):
        result = record('-p', spec, '--', *command).refused(sentence)
        check('kernel' not in result.err and not result.out, 'no hint, no run', result)
    record('--backend', 'kernel', '-p', f'{place}+0x5', '--', *command)
    check(not Path('kymo.data').exists(), 'nothing is made')


def test_returns_that_would_take_a_changed_return_address_stay_refused():
    command, place = refused_place()
    result = record('-r', place, '--', *command).refused('no probe can be put')
    check('kernel' not in result.err and not result.out, 'no hint, no run', result)


def test_a_user_without_rights_gets_a_hint(tmp):
    need_uprobes()
    command, place = refused_place()
    tmp.chmod(0o777)
    hint = r'\(as root kymo could record it through the kernel\)$'
    result = record('-p', place, '--', *command,
                    user=NOBODY).refused(f'no probe can be put at corner_data_in_text .* {hint}')
    check_equal(result.out, '', 'the command has not run')
    check(not Path('kymo.data').exists(), 'nothing is made')
    process = confined(user=NOBODY)
    record('-p', 'libc:labs', '--pid', process.pid, '--for', '0.1', user=NOBODY).refused(f'seccomp filter .* {hint}')
    check_text_intact(process.pid)
    process.end(input='\n\n').ok()
