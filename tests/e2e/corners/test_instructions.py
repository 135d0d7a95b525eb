"""Probes on every instruction of code that is as awkward as code can be: it does what it did, and counts are the
kernel's.

The code is in tests/targets/corners*.S, which checks itself. Each function takes them all at once, and one after
the other.
"""
import json
import os
import re
import signal

import comparing
import places
import processes
from kymotest import (KYMO_PLAIN, check, check_equal, check_same, check_text_intact, events, record, report_json, run,
                      sampled, share, skip, start, start_record, target_path, timeout)
from seeds import seed

ROUNDS = '20'

# What the cases of corners.c call.
CASES = {
    'short': [
        'corner_ret_a', 'corner_ret_b', 'corner_ret_c', 'corner_same', 'corner_zero', 'corner_seven', 'corner_lea_ret'
    ], 'branches': [
        'corner_jump_next', 'corner_jcc_back', 'corner_jcc_inside', 'corner_loop', 'corner_jrcxz', 'corner_conditions',
        'corner_hot', 'corner_hot.cold'
    ], 'switch': ['corner_switch', 'corner_lea_ret'], 'compiled': ['corner_compiled'], 'tables':
    ['corner_table', 'corner_data_in_text'], 'lines': ['corner_line', 'corner_page'], 'stack': [
        'corner_call_stack', 'corner_call_below', 'corner_return_address', 'corner_redzone', 'corner_frames'
    ], 'flags': ['corner_flags',
                 'corner_carry'], 'strings': ['corner_strings'], 'locks': ['corner_lock', 'corner_lock16'], 'indirect':
    ['corner_endbr', 'corner_indirect'], 'syscall': ['corner_syscall'], 'rip': [
        'corner_add_one', 'corner_rip_integer', 'corner_rip_exchange', 'corner_rip_branch', 'corner_rip_sse',
        'corner_rip_x87'
    ], 'avx': ['corner_rip_avx', 'corner_gather'], 'ymm-live': ['corner_ymm_live'], 'evex':
    ['corner_rip_evex', 'corner_gather_evex'], 'zmm-live': ['corner_zmm_live'],
}

# Places whose jump can lead to the first 64 MiB of the heap alone, which is not there yet when the program starts.
IN_THE_HEAP = 2


def lacks(case):
    for line in run(target_path('corners'), '-l').ok().out.splitlines():
        name, _, missing = line.partition(' ')
        if name == case and missing:
            skip(f'the processor has no {missing}')


def places_of(case, functions=None):
    path = target_path('corners')
    return [(path, offset) for name in functions or CASES[case] if name in places.symbols(path)
            for offset in places.instructions_of(path, name)]


def told(case, refusals, n):
    print(f'{case}:', places.tell(refusals, n))
    return sum(map(len, refusals.values()))


def check_at_once(case, most_refused=0):
    """Every instruction of the case's functions has a probe; what has no place is few, and is told. Where the kernel
    has put the program's memory decides of each pun whether its address is free: of a hundred places two may have
    none in one layout or another."""
    lacks(case)
    refusals, wanted = {}, places_of(case)
    counts = places.compare_places([target_path('corners'), '-n', ROUNDS, case], wanted, refusals)
    check(
        told(case, refusals, len(wanted)) <= most_refused + len(wanted) // 50, 'few have no place',
        places.tell(refusals, len(wanted)))
    check(sum(counts.values()) > 0, 'they ran')


def check_one_by_one(case, most_refused=0):
    """Hundreds of recordings: by kymo without sanitizers, as those at once are by kymo with them. Two of three write
    by locks: sequences, as those at once have, take guards, and those the decoding of all of libc. Which one does
    not is the clock's or KYMO_SEED's choice; none does with make torture."""
    lacks(case)
    seed()
    comparing.fix_addresses()
    command, refusals, counts = [target_path('corners'), '-n', ROUNDS, case], {}, {}
    bare = run(*command).ok()
    one_by_one = dict.fromkeys(places_of(case))
    by_sequences = set(share(one_by_one, 3))
    for place in one_by_one:
        words = ['-q', '--buffer', '256K', *([] if place in by_sequences else ['--no-rseq'])]
        result, left = places.without_refused(
            [place], lambda left: run(KYMO_PLAIN, 'record', *words, *places.specs(left), '--', *command), refusals)
        if left:
            check_same(result.ok().out, bare.out, f'stdout with a probe at 0x{place[1]:x}')
            report = json.loads(run(KYMO_PLAIN, 'report', '--json', 'kymo.data').ok().out)
            check_equal(report['lost_events'], 0, 'lost events')
            counts[os.path.realpath(place[0]), place[1]] = report['events']
    places.check_sample(command, counts, len(counts), {})
    check(told(case, refusals, len(counts)) <= most_refused, 'few have no place', places.tell(refusals, len(counts)))


def test_short_functions_side_by_side():
    """Of functions of one byte in a row, each jump would be made of the others' first bytes: not all can have one."""
    check_at_once('short', 3)


@sampled
def test_short_functions_side_by_side_one_by_one():
    check_one_by_one('short')


def test_branches_into_windows():
    """One instruction is led to by nothing."""
    check_at_once('branches', 3)


@timeout(300)
@sampled
def test_branches_into_windows_one_by_one():
    check_one_by_one('branches', 3)


def test_tables_and_data_in_text():
    """The function with data in it may be refused as a whole."""
    check_at_once('tables', 8)
    check_at_once('switch')


@timeout(300)
@sampled
def test_tables_and_data_in_text_one_by_one():
    check_one_by_one('tables', 8)
    check_one_by_one('switch')


def test_compiled_code():
    check_at_once('compiled', IN_THE_HEAP)


@timeout(300)
@sampled
def test_compiled_code_one_by_one():
    check_one_by_one('compiled')


def test_lines_and_pages_are_straddled():
    """What lies across two pages cannot be written in one go."""
    check_at_once('lines', 6)


@timeout(300)
@sampled
def test_lines_and_pages_are_straddled_one_by_one():
    functions = places_of('lines')
    check(len(functions) > 20, 'sites', functions)
    check_one_by_one('lines', 3)


def test_calls_through_the_stack_and_red_zones():
    check_at_once('stack', IN_THE_HEAP)


@timeout(300)
@sampled
def test_calls_through_the_stack_and_red_zones_one_by_one():
    check_one_by_one('stack')


@sampled
def test_flags_are_live():
    check_at_once('flags', IN_THE_HEAP)
    check_one_by_one('flags')


@sampled
def test_string_instructions_with_rep():
    check_at_once('strings')
    check_one_by_one('strings')


@sampled
def test_locked_instructions():
    check_at_once('locks')
    check_one_by_one('locks')


@sampled
def test_endbr64_and_indirect_branches():
    check_at_once('indirect')
    check_one_by_one('indirect')


@sampled
def test_system_calls():
    check_at_once('syscall')
    check_one_by_one('syscall')


def test_operands_relative_to_the_program_counter():
    check_at_once('rip')


@timeout(300)
@sampled
def test_operands_relative_to_the_program_counter_one_by_one():
    check_one_by_one('rip')


@sampled
def test_vectors_and_gathers():
    check_at_once('avx')
    check_one_by_one('avx')


@sampled
def test_vectors_and_gathers_of_512_bits():
    check_at_once('evex')
    check_one_by_one('evex')


@sampled
def test_vector_registers_are_live():
    check_at_once('ymm-live', IN_THE_HEAP)
    check_one_by_one('ymm-live')


@timeout(300)
@sampled
def test_vector_and_mask_registers_of_512_bits_are_live():
    check_at_once('zmm-live')
    check_one_by_one('zmm-live')


def test_a_jump_to_itself():
    """How often it goes round does not matter; the signal that ends it must find it."""
    path = target_path('corners')
    result, left = places.without_refused(
        places_of('spin', ['corner_spin']),
        lambda left: record('--buffer', '64K', *places.specs(left), '--', path, '-n', '10', 'spin'), {})
    check(left, 'a jump to itself can be probed', result)
    check_equal(result.ok().json(), {'spin': 10})
    check(report_json()['events'] + report_json()['lost_events'] > 10, 'it went round')


def test_every_case_at_once(tmp):
    path = target_path('corners')
    refusals, wanted = {}, list(dict.fromkeys(place for case in CASES for place in places_of(case)))
    places.compare_places([path, '-n', ROUNDS, *CASES], wanted, refusals)
    n_refused = told('all', refusals, len(wanted))
    check(n_refused <= len(wanted) / 40, 'nearly all have a place', places.tell(refusals, len(wanted)))


def test_a_glob_of_instructions_is_each_instruction():
    path = target_path('corners')
    for function in ('corner_same', 'corner_rip_integer', 'corner_compiled'):
        record('-p', f'{path}:{function}:*', '--', path, '-n', '1', 'short').ok()
        named = sorted(probe['offset'] for probe in report_json()['probes'])
        check_equal(named, sorted(places.instructions_of(path, function)), f'instructions of {function}')


LAST = """
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) int last(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
int main(int argc, char **argv)
{
	int sum = 0;

	puts("ready");
	fflush(stdout);
	getchar();
	for (int i = 0; i < atoi(argv[1]); i++)
		sum = last(sum);
	printf("%d\\n", sum);
	fflush(stdout);
	getchar();
	return argc - 2;
}
"""


HEAP_TO_GROW = 32 << 20  # kymo leaves so much room to a heap


def start_with_its_heap_away(program, offset):
    """The kernel puts a heap anywhere within a gigabyte after the program, and so also where a jump leads."""
    while True:
        process = start(program, 300)
        process.wait_for('^ready$')
        mapped = processes.maps(process.pid)
        wanted = mapped[0].start + offset
        heaps = [map for map in mapped if map.path == '[heap]']
        if not any(map.start <= wanted + 4096 and wanted < map.end + HEAP_TO_GROW for map in heaps):
            return process
        process.end(input='\n\n')


def test_a_last_function_that_is_shorter_than_a_jump(tmp):
    """Small programs end in one: the jump's last byte is the first of the section that follows, which stays."""
    (tmp / 'last.c').write_text(LAST)
    run('gcc', '-O2', '-o', 'last', 'last.c').ok()
    function = re.search(r'^0*([0-9a-f]+) 0*4 . last$', run('nm', '-S', 'last').ok().out, re.M)
    text = re.search(r' \.text +PROGBITS +0*([0-9a-f]+) [0-9a-f]+ 0*([0-9a-f]+)', run('readelf', '-SW', 'last').ok().out)
    check(function and text, 'last() has four bytes')
    end = int(function[1], 16) + 4
    check_equal(end, int(text[1], 16) + int(text[2], 16), 'its end is that of .text')
    following = open('last', 'rb').read()[end:end + 4]  # .text is at its address in the file
    process = start_with_its_heap_away('./last', end + 4 + int.from_bytes(following, 'little', signed=True))
    recorder = start_record(process.pid, '--backend', 'inproc', '-p', './last:last n=%edi:s32', '-r', './last:last')
    process.send('\n')
    process.wait_for('^300$')
    recorder.end(signal.SIGINT).ok()
    check_equal([event['n'] for event in events() if not event.name.endswith('%return')], list(range(300)), 'arguments')
    check_equal(report_json()['calls'][0]['count'], 300, 'calls with a duration')
    check_text_intact(process.pid)
    process.end(input='\n').ok()


EDGE = r"""
	.section .text, "ax", @progbits
	.globl	_start
_start:	mov	$50, %%ebx
1:	%s
	call	leaf
	mov	$0x80000, %%ecx
2:	dec	%%ecx
	jnz	2b
	dec	%%ebx
	jnz	1b
	mov	$60, %%eax
	xor	%%edi, %%edi
	syscall
other:	syscall
	ret
	mov	$15, %%rax
	syscall
	.skip	4096 - 3 - (. - _start), 0xcc
	.globl	leaf
	.type	leaf, @function
leaf:	xchg	%%ax, %%ax
	ret
	.size	leaf, . - leaf
	.section .next, "%s", @progbits
	.globl	next
next:	.byte	0x00, 0x10, 0x00, 0x90, 0xc3
	.fill	64, 1, 0x90
"""


def test_a_jump_does_not_end_in_what_is_not_executed_or_is_written(tmp):
    """The section that follows is of a segment of its own, whatever its flags say."""
    for name, instruction, flags, segment in (('data', 'nop', 'ax', 4), ('written', 'incb next(%rip)', 'awx', 7)):
        (tmp / f'{name}.s').write_text(EDGE % (instruction, flags))
        (tmp / f'{name}.ld').write_text(f'PHDRS {{ t PT_LOAD FLAGS(5); n PT_LOAD FLAGS({segment}); }}\n'
                                        'SECTIONS { . = 0x401000; .text : { *(.text) } :t .next : { *(.next) } :n }\n')
        run('as', '-o', f'{name}.o', f'{name}.s').ok()
        run('ld', '-T', f'{name}.ld', '-o', name, f'{name}.o').ok()
        run(f'./{name}').ok()
        result = record('--backend', 'inproc', '-p', f'./{name}:leaf', '--', f'./{name}').ended(1)
        check('the text ends at 0x402000' in result.err, 'the jump is refused', result)
