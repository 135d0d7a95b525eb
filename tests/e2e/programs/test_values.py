"""Recorded values are those that the program had there, in every type and from every place; and the program keeps them.
"""
import re
from pathlib import Path

from comparing import babeltrace_with_losses
from kymotest import check, check_equal, check_same, events, kymo, program, record, report_json, run, target_path

M64 = (1 << 64) - 1
TYPES = [f'{kind}{bits}' for kind in 'usx' for bits in (8, 16, 32, 64)]
REGISTERS = ['ax', 'cx', 'dx', 'bx', 'sp', 'bp', 'si', 'di', *(f'r{n}' for n in range(8, 16))]


def as_type(value, name):
    """What of a 64-bit value a type keeps. Hexadecimal ones are unsigned."""
    bits = int(name[1:])
    value &= (1 << bits) - 1
    return value - (1 << bits) if name[0] == 's' and value >> (bits - 1) else value


def check_values(name, expected):
    """`expected` is a list of {field: value}, in the order of the events called `name`."""
    found = [{field: event[field] for field in want}
             for event, want in zip((event for event in events() if event.name == name), expected)]
    check_equal(len(found), len(expected), f'events {name}')
    for i, (got, want) in enumerate(zip(found, expected)):
        check(got == want, f'event {i} of {name}: expected {want}, got {got}')


def callmany(n, function, *specs):
    path = target_path('callmany')
    result = record(*(word for spec in specs for word in ('-p', spec)), '--', path, n, function)
    check_equal(result.ok().out, f'{function} {n}\n', 'output')


# ---- callmany ------------------------------------------------------------------------------------


def test_every_integer_type_cuts_and_extends_as_its_name_says():
    """work_six(i, -i, i << 32, 4, 5, 6)"""
    half = len(TYPES) // 2
    specs = [
        f'p:{group} callmany:work_six n=%edi:s32 ' + ' '.join(f'{name}=%si:{name}' for name in names)
        for group, names in (('first', TYPES[:half]), ('second', TYPES[half:]))
    ]
    callmany(300, 'work_six', *specs)
    for group, names in (('first', TYPES[:half]), ('second', TYPES[half:])):
        check_values(group, [{'n': i, **{name: as_type(-i, name) for name in names}} for i in range(300)])


def test_types_may_be_narrower_than_the_register_that_is_named():
    callmany(40, 'work_six',
             'p:one callmany:work_six a=%rsi:s64 b=%esi:s32 c=%sil:s8 d=%rdx e=%edx f=%r8b:u8 g=%r9d h=%r9w')
    check_values('one', [{'a': -i, 'b': -i, 'c': as_type(-i, 's8'), 'd': i << 32, 'e': 0, 'f': 5, 'g': 6, 'h': 6}
                         for i in range(40)])


def test_arguments_are_found_in_registers_and_on_the_stack():
    """work_eight(-i, i, 3, 4, 5, 6, i + 7, -8)"""
    callmany(500, 'work_eight', 'p:low callmany:work_eight $arg1:s32 $arg2:s64 $arg3:s32 $arg4:s64 $arg5:u8 $arg6:u16',
             'p:high callmany:work_eight $arg7:s32 $arg8:s64 s1=$stack1:s32 s2=$stack2 wide=$arg7:u8 $arg1:x32')
    check_values('low', [{'arg1': -i, 'arg2': i, 'arg3': 3, 'arg4': 4, 'arg5': 5, 'arg6': 6} for i in range(500)])
    check_values('high', [{
        'arg1': i + 7, 'arg2': -8, 's1': i + 7, 's2': -8 & M64, 'wide': i + 7 & 255, 'arg6': as_type(-i, 'x32'),
        'faults': 0
    } for i in range(500)])


def test_immediates_are_what_was_written():
    callmany(
        3, 'work_a',
        r'p:one callmany:work_a \42 \-5 \0x7fffffffffffffff \-9223372036854775808 \-1:s8 \255:u8 \0xffff:x16 \010:s32')
    check_values('one', [{
        'arg1': 42, 'arg2': -5, 'arg3':
        (1 << 63) - 1, 'arg4': -(1 << 63), 'arg5': -1, 'arg6': 255, 'arg7': 0xffff, 'arg8': 8
    }] * 3)


def test_values_are_the_same_in_programs_that_are_static_or_cannot_move():
    """work_b(i, 5)"""
    for variant in ('callmany-static', 'callmany-nopie'):
        result = record('-p', f'p:one {variant}:work_b x=$arg1:s64 rounds=$arg2:s32', '--', target_path(variant), 200,
                        'work_b')
        check_equal(result.ok().out, 'work_b 200\n', 'output')
        check_values('one', [{'x': i, 'rounds': 5} for i in range(200)])


def test_the_report_shows_the_same_values():
    callmany(100, 'work_six', 'callmany:work_six n=%edi:s32 minus=%si:s64 high=%dx:u64 hex=%si:x16')
    lines = kymo('report', '--events').ok().out.splitlines()
    shown = [re.search(r'(n=.*)', line)[1] for line in lines]
    check_same(shown, [f'n={i} minus={-i} high={i << 32} hex={hex(-i & 0xffff)}' for i in range(100)], 'values')


def test_a_place_inside_of_a_function_sees_registers_as_they_are_there():
    """work_deep(n) calls itself with n - 1; behind its start, at an offset that objdump finds, n is still in a
    register."""
    path = target_path('callmany')
    listing = run(program('objdump'), '-d', '--no-show-raw-insn', '--disassemble=work_eight', path).ok().out
    places = [(int(match[1], 16), match[2]) for match in re.finditer(r'^ *(\w+):\t(.*)$', listing, re.MULTILINE)]
    start = places[0][0]
    probed = []
    for address, _ in places[1:]:
        if 'why safe' in kymo('explain', path, f'work_eight+{address - start:#x}').out:
            probed.append(address - start)
    check(probed, 'no instruction of work_eight can be probed behind its start', listing)
    callmany(50, 'work_eight', f'p:one callmany:work_eight+{probed[0]:#x} ip=%ip sp=%sp h=$stack2:s64')
    found = events()
    check_equal(len(found), 50, 'events')
    check_equal({event['ip'] & 0xfff for event in found}, {start + probed[0] & 0xfff}, 'page offsets of the place')
    check_equal({event['h'] for event in found}, {-8}, 'eighth argument')


# ---- every register, word of the stack and flag --------------------------------------------------


def build_registers(tmp):
    run(program('gcc'), '-O2', '-o', tmp / 'registers', Path(__file__).with_name('registers.c'), '-lpthread').ok()
    return tmp / 'registers'


def expected_registers(i):
    return {name: 0x0123456789abcdef * (n + 1) + i * 0x1111111111111111 & M64 for n, name in enumerate(REGISTERS)}


def expected_flags(i):
    return 0x202 | i * 0x9e5 & 0x8d5 | (0x400 if i & 1 else 0)


def test_all_registers_and_flags_are_recorded_and_kept(tmp):
    path = build_registers(tmp)
    groups = [REGISTERS[:8], REGISTERS[8:]]
    specs = [f'p:g{n} {path}:probed ' + ' '.join(f'{name}=%{name}' for name in names) for n, names in enumerate(groups)]
    specs.append(f'p:rest {path}:probed flags=%flags low=%eflags ip=%ip sp=$stack back=$stack0')
    where = record(*(word for spec in specs for word in ('-p', spec)), '--', path, 400).ok().json()
    for n, names in enumerate(groups):
        expected = [{name: expected_registers(i)[name] for name in names} for i in range(400)]
        for want in expected:
            if 'sp' in want:
                want['sp'] = where['stack']
        check_values(f'g{n}', expected)
    check_values('rest', [{
        'flags': expected_flags(i), 'low': expected_flags(i), 'ip': where['probed'], 'sp': where['stack'], 'back':
        where['returns']
    } for i in range(400)])


def test_all_words_of_the_initial_stack_are_recorded(tmp):
    path = build_registers(tmp)
    numbers = [1, 2, 3, 50, 100, 200, 254, 255]
    record('-p', f'p:one {path}:probed ' + ' '.join(f's{n}=$stack{n}' for n in numbers), '--', path, 100).ok()
    check_values('one', [{f's{n}': 0xabcd000000000000 + n - 1 for n in numbers} | {'faults': 0}] * 100)


def test_words_of_another_threads_stack_are_right_or_a_fault(tmp):
    """Nothing but the page of the stack pointer is sure to be there."""
    path = build_registers(tmp)
    numbers = [0, 1, 2, 60, 125, 190, 254, 255]
    spec = f'p:one {path}:probed ' + ' '.join(f's{n}=$stack{n}' for n in numbers)
    where = record('-p', spec, '--', path, 100, '-t').ok().json()
    expected, faults = {}, 0
    for bit, n in enumerate(numbers):
        same_page = (where['stack'] + 8 * n + 7) // 4096 == where['stack'] // 4096
        faults |= 0 if same_page else 1 << bit
        expected[f's{n}'] = (0xabcd000000000000 + n - 1 if n else where['returns']) if same_page else 0
    check_values('one', [expected | {'faults': faults}] * 100)
    lines = kymo('report', '--events').ok().out.splitlines()
    check_equal(sum(line.count('(fault)') for line in lines), 100 * faults.bit_count(), 'faults that the report shows')


def test_registers_are_kept_while_packets_change_and_events_are_lost(tmp):
    """16 probes at one place and small buffers: the pad's slow half runs often, and runs out of room."""
    path = build_registers(tmp)
    specs = [
        f'p:e{n} {path}:probed ' + ' '.join(f'a{k}=%{name}' for k, name in enumerate(REGISTERS[n % 8:][:8]))
        for n in range(16)
    ]
    for options in ([], ['--overwrite']):
        result = record('--buffer', '64K', *options, *(word for spec in specs for word in ('-p', spec)), '--', path,
                        20000)
        result.ok().json()
        check_losses(16 * 20000, bool(options))


def check_losses(hits, overwrite):
    """What is not recorded is counted, and babeltrace2 says the same."""
    report = report_json()
    check_equal(report['warnings'], [], 'warnings of the report')
    check_equal((report['events'], report['lost_events']), babeltrace_with_losses(),
                'events and lost ones, by babeltrace2')
    check(report['overwritten_packets' if overwrite else 'lost_events'] > 0, 'nothing was lost', report['events'])
    if not overwrite:
        check_equal(report['events'] + report['lost_events'], hits, 'hits')
