"""--fast-reads: memory is read by plain loads where that is proven to work, and by system calls elsewhere. The values
are the same, and the program lives on, whatever it does with its memory."""
import re
import signal
from pathlib import Path

import remains
from kymotest import (KYMO, check, check_equal, check_matches, check_text_intact, events, eventually, fail, program,
                      record, run, skip, start, start_record)
from killing import NO_LEAKS

HERE = Path(__file__).parent
SPEC = ('./fast_reads:visit value=node->value name=str(node->name) next=node->next->value '
        'part=str(node->name, (node->value & 3) + 1)')
CALL = 'process_vm_readv'


class Target:
    """The program, whose system calls strace counts."""
    def __init__(self, *options):
        run('gcc', '-O1', '-g', *options, '-o', 'fast_reads', HERE / 'fast_reads.c', '-ldl').ok()
        self.process = start('./fast_reads')
        self.pid, self.n = self.process.pid, 0
        self.process.wait_for('^ready$')

    def do(self, *lines):
        for line in lines:
            self.process.send(line + '\n')
            self.process.wait_for(f'^did {self.n}$')
            self.n += 1

    def calls(self, line='walk'):
        """How often it asks the kernel to read memory meanwhile."""
        tracer = start(program('strace'), '-q', '-e', f'trace={CALL}', '-p', self.pid)
        eventually(lambda: run('grep', 'TracerPid', f'/proc/{self.pid}/status').out.split()[1] != '0', 'it is traced')
        self.do(line)
        return tracer.end(signal.SIGINT).err.count(CALL)

    def until_it_reads_in_place(self, line='walk'):
        """Once the recorder has seen what the reads of one walk want."""
        eventually(lambda: self.calls(line) == 0, 'a walk makes no calls', 60)

    def end(self):
        self.process.end().ok()


def fast_record(target, *args):
    return start_record(target.pid, '--fast-reads', '-p', SPEC, *args, env=NO_LEAKS)


def fields(event):
    return {name: event.fields[name] for name in ('value', 'name', 'next', 'part', 'faults')}


NODES = [{
    'value': str(100 + i),
    'name': f'"node {i}"',
    'next': str(100 + (i + 1) % 10),
    'part': '"%s"' % 'node'[:i % 4 + 1],
    'faults': '0x0'
} for i in range(10)]


def check_values(directory='kymo.data'):
    """Each record of a node has its values."""
    known = {node['value']: node for node in NODES}
    n = 0
    for event in events(directory):
        if event.fields['value'] in known:
            check_equal(fields(event), known[event.fields['value']], 'values of a node')
            n += 1
    return n


def test_no_system_call_reads_what_was_read_before():
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place()
    recorder.end(signal.SIGINT).ok()
    check(check_values() >= 1000, 'all walks are recorded')
    check_text_intact(target.pid)
    target.end()


def test_memory_that_goes_is_a_fault_and_comes_again():
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place('lonely')
    target.do('protect', 'lonely', 'back', 'lonely')
    target.until_it_reads_in_place('lonely')
    target.do('drop', 'lonely')
    recorder.end(signal.SIGINT).ok()
    values = [event.fields['value'] for event in events()]
    check_equal(set(values), {'0', '7'}, 'values')
    faults = [event['faults'] & 1 for event in events()]
    check_equal(sum(faults), 1000, 'faults')
    check_equal(faults[-500:], [1] * 500, 'the last ones')
    target.end()


def test_the_kernels_way_to_read_a_number_and_a_range():
    """Its lower half alone counts; and PROT_GROWSDOWN reaches down to where the mapping begins."""
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place('lonely')
    target.do('drop widely', 'lonely', 'below')
    recorder.end(signal.SIGINT).ok()
    found = [(event.fields['value'], event['faults'] & 1) for event in events()]
    check_equal(found[-1001:-501], [('0', 1)] * 500, 'after the munmap')
    check_equal(found[-501:], [('7', 0)] * 500 + [('0', 1)], 'below')
    target.end()


def test_threads_that_are_not_the_librarys_read_by_calls():
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place()
    target.do('strange', 'walk')
    recorder.end(signal.SIGINT).ok()
    check_values()
    target.end()


def test_a_process_that_limits_its_calls_makes_none_of_kymos():
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place('lonely')
    target.do('limit', 'protect', 'lonely', 'back', 'drop', 'lonely', 'walk')
    recorder.end(signal.SIGINT).refused('a seccomp filter might kill it')
    check_equal([event['faults'] & 1 for event in events()][-1000:], [1] * 1000, 'faults')
    target.end()


def test_text_that_is_mapped_afresh_has_no_pads_and_no_table():
    """The jumps are gone, and the table was closed before. So are the guards, and it is not opened any more."""
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place('lonely')
    target.do('text', 'protect', 'lonely', 'back')
    eventually(lambda: target.calls('lonely') > 0, 'the kernel reads')
    target.do('drop', 'lonely')
    recorder.end(signal.SIGINT).ok()
    check_equal([event['faults'] & 1 for event in events()][-500:], [1] * 500, 'faults')
    target.end()


def test_with_all_system_calls_recorded_memory_is_read_in_place_too():
    target = Target()
    recorder = fast_record(target, '-s', 'all')
    target.until_it_reads_in_place()
    result = recorder.end(signal.SIGINT).ok()
    check_equal([line for line in result.warnings() if 'plain loads' in line], [], 'warnings')
    target.end()


def test_a_library_that_is_loaded_later_has_its_calls_watched_before():
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place()
    target.do('load libsqlite3.so.0', 'load libz.so.1')
    target.until_it_reads_in_place()
    result = recorder.end(signal.SIGINT).ok()
    check_equal(result.warnings(), [], 'warnings')
    check_values()
    check_text_intact(target.pid)
    target.end()


def test_code_of_no_file_is_told_and_memory_read_by_calls():
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place()
    target.do('code')
    check(target.calls() > 0, 'the kernel reads')
    recorder.wait_for('is read by system calls, a microsecond each, and not by plain loads: '
                      'it has code in memory of no file', 1)
    check(target.calls() > 0, 'the kernel reads')
    recorder.end(signal.SIGINT).ok()
    check_values()
    target.end()


def test_protection_keys_end_it_for_good():
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place()
    target.do('keys')
    check(target.calls() > 0, 'the kernel reads')
    recorder.wait_for('it uses protection keys, userfaultfd, io_uring or the like', 1)
    recorder.end(signal.SIGINT).ok()
    target.end()


def test_a_forked_child_lives_on():
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place()
    target.do('fork', 'walk')
    recorder.end(signal.SIGINT).ok()
    check_values()
    target.end()


def test_calls_that_take_memory_away_are_recorded_as_ever():
    target = Target()
    recorder = fast_record(target, '-s', 'munmap,mprotect,pkey_alloc')
    target.until_it_reads_in_place()
    target.do('protect', 'back', 'drop', 'keys', 'walk')
    recorder.end(signal.SIGINT).ok()
    lines = [line for line in run(KYMO, 'report', '--events', '--strace').out.splitlines() if 'visit' not in line]
    found = [event.name for event in events() if event.name.startswith('syscall:')]
    check_equal([name for name in found if name != 'syscall:return'][-4:],
                ['syscall:mprotect', 'syscall:mprotect', 'syscall:munmap', 'syscall:pkey_alloc'], f'calls {lines}')
    check_equal(found.count('syscall:return'), len(found) // 2, 'returns')
    target.end()


def test_a_killed_recorder_leaves_a_program_that_goes_on():
    target = Target()
    before = remains.lasting_mappings(target.pid)
    recorder = fast_record(target)
    target.until_it_reads_in_place('lonely')
    recorder.end(signal.SIGKILL)
    target.do('walk', 'protect', 'lonely', 'drop', 'lonely', 'load libz.so.1', 'walk', 'fork')
    run(KYMO, 'detach', target.pid).ok()
    target.do('walk', 'lonely')
    check_text_intact(target.pid)
    remains.check_nothing_left(target.pid, before, remains.lasting_mappings)
    target.end()


def test_a_launched_program_has_it_from_its_start():
    Target().end()
    result = record('--fast-reads', '-p', SPEC, '--', './fast_reads').ok()
    check_equal(result.warnings(), [], 'warnings')
    process = start(KYMO, 'record', '-o', 'other', '--fast-reads', '-p', SPEC, '--', './fast_reads')
    process.wait_for('^ready$')
    for i in range(5):
        process.send('walk\n')
        process.wait_for(f'^did {i}$')
    process.end().ok()
    check_equal(check_values('other'), 2500, 'visits')


def test_where_no_sequences_are_the_kernel_reads():
    target = Target('-static')
    recorder = fast_record(target)
    check(target.calls() > 0, 'the kernel reads')
    recorder.end(signal.SIGINT).ok()
    check_values()
    target.end()
