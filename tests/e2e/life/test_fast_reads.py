"""--fast-reads: memory is read by plain loads where that is proven to work, and by system calls elsewhere. The values
are the same, and the program lives on, whatever it does with its memory."""
import re
import signal
import time
from pathlib import Path

import kernelcount
import processes
import remains
from kymotest import (KYMO, check, check_equal, check_matches, check_same, check_text_intact, events, eventually, fail,
                      program, record, run, skip, start, start_record)
from killing import NO_LEAKS

HERE = Path(__file__).parent
SPEC = ('./fast_reads:visit value=node->value name=str(node->name) next=node->next->value '
        'part=str(node->name, (node->value & 3) + 1)')
CALL = 'process_vm_readv'


class Target:
    """The program, whose system calls the kernel counts."""
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
        return kernelcount.count_calls(self.pid, CALL, lambda: self.do(line))

    def until_it_reads_in_place(self, line='walk'):
        """Once the recorder has seen what the reads of one walk want."""
        eventually(lambda: self.calls(line) == 0, 'a walk makes no calls', 60)

    def end(self):
        self.process.end().ok()


def plain_record(target, *args):
    """Without asking for fast reads."""
    return start_record(target.pid, '-p', SPEC, *args, env=NO_LEAKS)


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


def until_it_calls(target, line='walk'):
    eventually(lambda: target.calls(line) > 0, 'the kernel reads')


def check_it_goes_on_to_call(target):
    """For longer than it takes to look at a program."""
    for _ in range(4):
        time.sleep(0.5)
        check(target.calls() > 0, 'the kernel reads')


def test_it_is_the_default_once_recording_goes_on():
    target = Target()
    recorder = plain_record(target)
    target.until_it_reads_in_place()
    target.do('load libsqlite3.so.0')
    target.until_it_reads_in_place()
    result = recorder.end(signal.SIGINT).ok()
    check_equal(result.warnings(), [], 'warnings')
    check(check_values() >= 1000, 'all walks are recorded')
    check_text_intact(target.pid)
    target.end()


def test_where_it_does_not_work_nobody_is_told_who_has_not_asked():
    target = Target()
    recorder = plain_record(target)
    target.until_it_reads_in_place()
    target.do('keys')
    check(target.calls() > 0, 'the kernel reads')
    check_equal(recorder.end(signal.SIGINT).ok().warnings(), [], 'warnings')
    target.end()


def test_it_can_be_turned_off():
    target = Target()
    recorder = plain_record(target, '--no-fast-reads')
    check_it_goes_on_to_call(target)
    recorder.end(signal.SIGINT).ok()
    check_values()
    target.end()


def changed_by(target, spec, *args):
    """The lines of text that differ from their files once a recorder has had time."""
    recorder = start_record(target.pid, '-p', spec, *args, env=NO_LEAKS)
    target.do('walk')
    time.sleep(1)
    changed = [re.sub(', memory.*', '', line) for line in processes.changed_text(target.pid)]
    recorder.end(signal.SIGINT).ok()
    return changed


LARGE = """
	.text
	.globl small
	.type small, @function
small:	lea 1(%rdi), %rax
	ret
	.size small, . - small
	.type large, @function
large:	.fill LARGE_SIZE / 8, 8, 0x841f0f	# nopl 0(%rax, %rax)
	ret
	.size large, . - large
	.section .note.GNU-stack, "", @progbits
"""


def check_reads_in_place(target, *args):
    recorder = plain_record(target, *args)
    target.until_it_reads_in_place()
    check_equal(recorder.end(signal.SIGINT).ok().warnings(), [], f'warnings with {args}')


def build_with_library(n_bytes):
    """The program, with a library of so many bytes of code."""
    Path('large.s').write_text(LARGE.replace('LARGE_SIZE', str(n_bytes)))
    run('gcc', '-shared', '-nostdlib', '-o', 'liblarge.so', 'large.s').ok()
    return Target('-L.', '-Wl,--no-as-needed', '-llarge', '-Wl,-rpath,.')


def test_a_file_of_more_than_8_mib_of_code_is_looked_into_where_that_is_wanted():
    """By --fast-reads, or for a probe in it. Of one with less it is not asked."""
    target = build_with_library(9 << 20)
    recorder = plain_record(target)
    check_it_goes_on_to_call(target)
    check_equal(recorder.end(signal.SIGINT).ok().warnings(), [], 'warnings')
    check_reads_in_place(target, '--fast-reads')
    check_reads_in_place(target, '-p', './liblarge.so:small')
    check_text_intact(target.pid)
    target.end()
    target = build_with_library(7 << 20)
    check_reads_in_place(target)
    target.end()


def test_more_than_4_gib_of_memory_are_looked_at_where_that_is_wanted():
    """By --fast-reads; else once they are gone."""
    target = Target()
    target.do('much')
    resident = int(Path(f'/proc/{target.pid}/statm').read_text().split()[1])
    check(resident > 1 << 20, f'{resident} pages in memory')
    check_reads_in_place(target, '--fast-reads')
    recorder = plain_record(target)
    check_it_goes_on_to_call(target)
    target.do('little')
    target.until_it_reads_in_place()
    check_equal(recorder.end(signal.SIGINT).ok().warnings(), [], 'warnings')
    check_text_intact(target.pid)
    target.end()


def test_what_reads_no_memory_pays_nothing():
    target = Target()
    reads_none = './fast_reads:visit a=%di:u64 b=+8($stack):u64 c=$stack1 comm nsecs'
    off = changed_by(target, reads_none, '--no-fast-reads')
    check_same(changed_by(target, reads_none), off, 'text that is changed')
    check(len(changed_by(target, SPEC)) > len(off), 'what reads memory has pads at system calls')
    check_text_intact(target.pid)
    target.end()


def test_a_program_that_may_call_as_32_bit_programs_do_is_read_by_calls():
    target = Target('-DOTHER_CALL')
    recorder = fast_record(target)
    recorder.wait_for(r'one of its files may call the kernel as 32-bit programs do', 1)
    check(target.calls() > 0, 'the kernel reads')
    recorder.end(signal.SIGINT).ok()
    check_values()
    target.end()


def test_code_that_can_be_written_is_read_by_calls():
    target = Target()
    target.do('soften')
    recorder = start_record(target.pid, "--fast-reads", "-p", "./fast_reads:walk a=+0(%di):u64", env=NO_LEAKS)
    recorder.wait_for('it has code that may change', 1)
    recorder.end(signal.SIGINT).ok()
    target.end()


def test_a_system_call_that_the_program_has_written_into_its_text_is_seen():
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place()
    target.do('patch')
    check(target.calls() > 0, 'the kernel reads')
    recorder.wait_for('its code has been changed since it was loaded', 1)
    check(target.calls() > 0, 'the kernel reads')
    recorder.end(signal.SIGINT).ok()
    check_values()
    target.end()


def test_code_that_grows_closes_the_table_and_data_does_not():
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place()
    time.sleep(1)  # the table is opened twice a second at most
    target.do('grow data')
    check_equal(target.calls(), 0, 'calls')
    target.do('grow code')
    check(target.calls() > 0, 'the kernel reads')
    target.until_it_reads_in_place()
    recorder.end(signal.SIGINT).ok()
    check_values()
    target.end()


def test_a_userfaultfd_of_the_device_ends_it_for_good():
    target = Target()
    recorder = fast_record(target)
    target.until_it_reads_in_place()
    target.do('handle faults')
    check(target.calls() > 0, 'the kernel reads')
    recorder.wait_for('it uses protection keys, userfaultfd, io_uring or the like', 1)
    recorder.end(signal.SIGINT).ok()
    target.end()


def test_beside_a_tracer_the_kernel_reads():
    target = Target()
    recorder = plain_record(target)
    target.until_it_reads_in_place()
    tracer = start(program('strace'), '-q', '-e', 'trace=none', '-p', target.pid)
    eventually(lambda: processes.tracer(target.pid) == tracer.pid, 'it is traced')
    until_it_calls(target)
    time.sleep(1)
    check(target.calls() > 0, 'the kernel reads')
    tracer.end(signal.SIGINT)
    target.until_it_reads_in_place()
    recorder.end(signal.SIGINT).ok()
    check_values()
    target.end()


def test_a_child_that_executes_a_program_has_it_when_it_has_lived_a_while():
    target = Target()
    target.end()
    recorder = start(KYMO, 'record', '-p', SPEC, '--', 'sh', '-c', './fast_reads; true', env=NO_LEAKS)
    recorder.wait_for('^ready$')
    target.process, target.n = recorder, 0
    target.pid = next(pid for shell in processes.children(recorder.pid) for pid in processes.children(shell))
    target.until_it_reads_in_place()
    target.do('fork', 'walk')
    recorder.end(input='').ok()
    check_values()
