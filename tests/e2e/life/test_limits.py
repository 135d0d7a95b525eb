"""A program that forbids itself to read the time stamp counter, or allows itself filters of system calls: no pad of any
recording does what would end it then, whichever guards are in its text."""
import re
import signal

import remains
from kymotest import check_equal, check_matches, check_text_intact, event_counts, events, program, run, start
from recorders import recorder

PROGRAM = '''
import ctypes, sys
libc = ctypes.CDLL(None)
print('ready', flush=True)
for n, line in enumerate(sys.stdin):
    name, *arguments = line.split()
    for _ in range(50 if name == 'atoi' else 1):
        getattr(libc, name)(*(int(word) if name == 'prctl' else word.encode() for word in arguments))
    print('did', n, flush=True)
'''
TSC_FAULTS = 'prctl 26 2 0 0 0'  # PR_SET_TSC, PR_TSC_SIGSEGV
NO_NEW_PRIVS = 'prctl 38 1 0 0 0'
N_CALLS = 50
LIBC = '/lib/x86_64-linux-gnu/libc.so.6'
SAID = 'has made reading the time stamp counter a fault'


def limited():
    process = start('/usr/bin/python3', '-c', PROGRAM)
    process.wait_for('^ready$')
    return process, remains.lasting_mappings(process.pid)


def do(process, *lines):
    for n, line in enumerate(lines):
        process.send(line + '\n')
        process.wait_for(f'^did {n}$')


def check_muted(process, recorders, before):
    """Each has the calls before, and none after."""
    do(process, 'atoi 123', TSC_FAULTS, 'atoi 123')
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
    do(process, 'atoi 123', NO_NEW_PRIVS, 'atoi 123')
    for name, each in recorders.items():
        each.end(signal.SIGINT).ok()
        check_equal([event.fields['text'] for event in events(name)], ['"123"'] * N_CALLS + ['""'] * N_CALLS,
                    f'what {name} has read')
    check_text_intact(process.pid)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end().ok()
