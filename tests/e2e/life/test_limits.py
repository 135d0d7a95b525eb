"""A program that forbids itself to read the time stamp counter, or allows itself filters of system calls: no pad of any
recording does what would end it then, whichever guards are in its text."""
import re
import signal
from pathlib import Path

import remains
from kymotest import check_equal, check_matches, check_text_intact, event_counts, events, program, record, run, start
from recorders import recorder

HERE = Path(__file__).parent
TSC_FAULTS = 'prctl 26 2 0 0 0'  # PR_SET_TSC, PR_TSC_SIGSEGV
NO_NEW_PRIVS = 'prctl 38 1 0 0 0'
N_CALLS = 50
LIBC = '/lib/x86_64-linux-gnu/libc.so.6'
SAID = 'has made reading the time stamp counter a fault'


def limited():
    run('gcc', '-O1', '-fno-builtin', '-o', 'limited', HERE / 'limited.c').ok()
    process = start('./limited')
    process.wait_for('^ready$')
    return process, remains.lasting_mappings(process.pid)


def do(process, *lines):
    for n, line in enumerate(lines):
        process.send(line + '\n')
        process.wait_for(f'^did {n}$')


def check_muted(process, recorders, before, *then):
    """Each has the calls before, and none after."""
    do(process, 'atoi', TSC_FAULTS, *then, 'atoi')
    for name, each in recorders.items():
        check_matches(each.end(signal.SIGINT).ok().err, SAID)
        check_equal(event_counts(name).get('libc:atoi', 0), N_CALLS, f'calls in {name}')
    check_text_intact(process.pid)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end().ok()


def test_each_of_several_recordings_stops_reading_the_counter():
    process, before = limited()
    check_muted(process, {name: recorder(process.pid, name, '-p', 'libc:atoi') for name in ('one', 'two', 'three')},
                before)


def test_it_does_whichever_of_them_has_left_before():
    for leaver in ('one', 'two'):
        process, before = limited()
        recorders = {name: recorder(process.pid, name, '-p', 'libc:atoi') for name in ('one', 'two', 'three')}
        recorders.pop(leaver).end(signal.SIGINT).ok()
        check_muted(process, recorders, before)


def test_it_does_without_guards():
    """They are not there with locks, nor where probes are in their place, here at each instruction of prctl."""
    for words in (['--no-rseq'], ['-p', 'libc:prctl:*'], ['-p', 'libc:prctl', '--no-rseq']):
        process, before = limited()
        check_muted(process, {'one': recorder(process.pid, 'one', '-p', 'libc:atoi', *words)}, before)


def test_it_does_with_locks_and_no_probe_in_libc():
    """Which is looked at for the sake of prctl alone."""
    process, before = limited()
    each = recorder(process.pid, 'one', '--no-rseq', '-p', './limited:obey')
    do(process, 'atoi', TSC_FAULTS, 'atoi')
    check_matches(each.end(signal.SIGINT).ok().err, SAID)
    check_text_intact(process.pid)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end().ok()


def test_it_does_after_probes_were_exchanged_for_a_handler():
    """Once the counter is forbidden, the program gets a handler of SIGSEGV: kymo changes probes, and pads stay off."""
    process, before = limited()
    check_muted(process, {'one': recorder(process.pid, 'one', '-p', 'libc:atoi', '-p', 'libc:str*')}, before,
                'handle')


def test_what_such_a_program_executes_is_not_recorded():
    """The kernel keeps the limit over fork and exec. glibc's dynamic linker reads the counter, and would end them."""
    run('gcc', '-O1', '-fno-builtin', '-o', 'limited', HERE / 'limited.c').ok()
    Path('said.c').write_text('#include <unistd.h>\nint main(void) { return write(1, "done\\n", 5) != 5; }')
    for name in ('one', 'other'):
        run('musl-gcc', '-static', '-o', name, 'said.c').ok()
    result = record('-p', 'libc:atoi', '-p', 'libc:setlocale', '--', './limited', './one', './other').ok()
    check_equal(result.out, 'done\n' * 2, 'what they say')
    for name in ('one', 'other'):
        check_matches(result.err, f'{name} is not recorded: reading the time stamp counter is a fault in it')


def test_it_does_where_another_recordings_probe_is_in_the_place_of_a_guard():
    shown = run(program('objdump'), '-d', '--disassemble=prctl', '--no-show-raw-insn', LIBC).ok().out
    entry, call = (int(re.search(rf'^ *([0-9a-f]+){what}', shown, re.MULTILINE)[1], 16)
                   for what in (' <prctl', r':\s+mov +\$0x9d,%eax'))
    process, before = limited()
    check_muted(
        process, {
            'one': recorder(process.pid, 'one', '-p', 'libc:atoi', '-p', f'libc:prctl+{call - entry}'),
            'two': recorder(process.pid, 'two', '-p', 'libc:atoi'),
        }, before)


def test_no_recording_reads_memory_by_a_call_once_filters_may_come():
    process, before = limited()
    recorders = {
        name: recorder(process.pid, name, '-p', 'libc:atoi text=+0(%di):string', *words)
        for name, words in (('one', []), ('two', []), ('three', ['--no-rseq']))
    }
    do(process, 'atoi', NO_NEW_PRIVS, 'atoi')
    for name, each in recorders.items():
        each.end(signal.SIGINT).ok()
        check_equal([event['faults'] for event in events(name)], [0] * N_CALLS + [1] * N_CALLS,
                    f'what {name} has read')
    check_text_intact(process.pid)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end().ok()


def test_a_probe_that_writes_at_prctl_comes_before_what_kymo_wants_there():
    process, before = limited()
    one = recorder(process.pid, 'one', '-p', 'libc:atoi')
    two = recorder(process.pid, 'two', '--allow-write', '-p', 'libc:prctl return 0')
    do(process, TSC_FAULTS)
    check_matches(two.end(signal.SIGINT).ok().err, 'must not forbid itself to read the time stamp counter')
    check_equal(event_counts('two'), {'libc:prctl': 1}, 'calls that were made to return at once')
    one.end(signal.SIGINT).ok()
    check_text_intact(process.pid)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end().ok()
