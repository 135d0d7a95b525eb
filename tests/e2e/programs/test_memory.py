"""Memory at addresses that the program gives is recorded as it was there, or as a fault; the program does not notice.
"""
import contextlib
import itertools
import json
import os
import re
import sys
from pathlib import Path

import kernelcount
from kymotest import alone, at_end, check, check_equal, events, kymo, need_uprobes, program, record, run, skip

N = 64


def build(tmp, compiler='gcc', *options):
    path = tmp / 'memory'
    done = run(program(compiler), '-O1', *options, '-o', path, Path(__file__).with_name('memory.c'))
    if done.status and options:
        skip(f'{compiler} {options} makes no program: {done.err}')
    done.ok()
    return path


def name_of(i):
    return chr(ord('a') + i % 26) * (4 * i)


def shown(text, limit=128):
    return text if len(text) <= limit else text[:limit] + '…'


def strings(event, field):
    return json.loads(event.fields[field])


def records(directory='kymo.data'):
    return [json.loads(line) for line in kymo('report', '--events', '--json', directory).ok().out.splitlines()]


def test_values_strings_and_bytes_are_those_of_the_program(tmp):
    path = build(tmp)
    spec = ('p:look %s:look id=+0(%%di):u32 back=+4(%%di):s32 name=+0(+8(%%di)):string next=+0(+16(%%di)):u32 '
            'bytes=+24(%%di):x8[8] n=%%dx:u64' % path)
    check_equal(record('-p', spec, '--', path).ok().out, 'memory done\n', 'output')
    found = [line for line in records() if line['event'] == 'probe']
    check_equal(len(found), N, 'records')
    for i, line in enumerate(found):
        check_equal(
            line['args'], {
                'id': i, 'back': -i, 'name': shown(name_of(i)), 'next': None if i % 8 == 7 else
                (i + 1) % N, 'bytes': f'{i:02x}01020304050607', 'n': i
            }, f'record {i}')
    for i, event in enumerate(events()):  # babeltrace2 says no warning
        check_equal(strings(event, 'name'), shown(name_of(i)), f'string {i}')
        check_equal(event['faults'], 8 if i % 8 == 7 else 0, f'faults of {i}')
    text = kymo('report', '--events').ok().out
    check('next=(fault)' in text and 'bytes=07 01 02 03 04 05 06 07' in text, 'the report shows them', text[:2000])


def test_a_string_without_its_end_is_a_fault_and_bytes_are_as_many_as_there_are(tmp):
    path = build(tmp)
    record('-p', f'p:look {path}:look text=+0(%si):string bytes=+0(%si):x8[8] n=%dx:u64', '--', path).ok()
    for i, line in enumerate(records()):
        text = [f'on the stack {i}', None, None, shown(name_of(i))][i % 4]
        args = line['args']
        check_equal(args['text'], text, f'string {i}')
        check_equal(args['bytes'] and bytes.fromhex(args['bytes'])[:3], [b'on ', None, b'ppp',
                                                                         name_of(i)[:3].encode()][i % 4], f'bytes {i}')
        check_equal(args['bytes'] and len(args['bytes']) // 2, [8, None, 3, 8][i % 4], f'number of bytes {i}')
    text = kymo('report', '--events').ok().out
    check('bytes=70 70 70 (fault)' in text and 'text=(fault) bytes=(fault)' in text, 'the report tells faults',
          text[:2000])


def test_locks_do_it_as_sequences_do(tmp):
    path = build(tmp)
    record('--no-rseq', '-p', f'p:look {path}:look id=+0(%di):u32 name=+0(+8(%di)):string', '--', path).ok()
    check_equal([(event['id'], strings(event, 'name')) for event in events()],
                [(i, shown(name_of(i))) for i in range(N)], 'records')


def check_things(path):
    record('-p', f'p:look {path}:look id=+0(%di):u32 name=+0(+8(%di)):string', '--', path).ok()
    check_equal([(event['id'], strings(event, 'name')) for event in events()],
                [(i, shown(name_of(i))) for i in range(N)], 'records')


def test_a_static_program_is_read(tmp):
    check_things(build(tmp, 'gcc', '-static'))


def test_a_program_with_musl_is_read(tmp):
    check_things(build(tmp, 'musl-gcc', '-static'))


def test_what_readline_returns_are_the_lines_that_bash_gets(tmp):
    lines = [f'echo line {i}' for i in range(20)] + ['exit']
    command = [
        'env', '-u', 'PROMPT_COMMAND', 'HOME=' + str(tmp), 'script', '-q', '-e', '-c', 'bash --norc --noprofile -i',
        '/dev/null'
    ]
    record('-r', 'r:line /bin/bash:readline text=+0($retval):string', '--', *command,
           input='\n'.join(lines) + '\n').ok()
    check_equal([strings(event, 'text') for event in events() if event.name == 'line'], lines, 'lines')


def test_names_that_bash_looks_up_are_read():
    record('-p', 'p:looked /bin/bash:find_variable name=+0(%di):string', '--', '/bin/bash', '-c',
           'for i in 1 2 3; do first=$i; echo "$first$second"; done').ok()
    names = [strings(event, 'name') for event in events() if event.name == 'looked']
    check(names.count('second') >= 3 and 'first' in names, 'variables of the script', names)


def test_a_process_that_limits_its_calls_is_not_read_any_more(tmp):
    path = build(tmp)
    result = record('-p', f'p:look {path}:look id=+0(%di):u32 text=+0(%si):string n=%dx:u64', '--', path, 'limit')
    check_equal(result.ok().out, 'memory done\n', 'output')
    for i, event in enumerate(events()):
        early = i < N // 2
        check_equal((event['faults'] & 1, event['id'], event['n']), (0, i, i) if early else (1, 0, i), f'record {i}')
        if i % 4 == 0:  # what is certain needs no call
            check_equal(strings(event, 'text'), f'on the stack {i}', f'string {i}')


def test_paths_of_programs_that_are_there(tmp):
    """What python3 opens is what strace-like records of its calls say."""
    (tmp / 'one').write_text('')
    code = f'for i in range(30):\n open({str(tmp / "one")!r}).close()\n'
    record('-p', 'p:opened libc:open64 path=+0(%di):string', '--', sys.executable, '-c', code).ok()
    paths = [strings(event, 'path') for event in events() if event.name == 'opened']
    check_equal(paths.count(str(tmp / 'one')), 30, 'opened')


# ---- the same words, given to the kernel ---------------------------------------------------------

_numbers = itertools.count()


@contextlib.contextmanager
def traced_by_kernel(definition, path, symbol):
    """An instance of tracefs with that event alone."""
    group = f'kymo_test_{os.getpid()}_{next(_numbers)}'
    offset = kernelcount.function_offset(path, symbol)
    tracefs = kernelcount.tracefs()
    kernelcount.append(tracefs / 'dynamic_events', f'p:{group}/look {path}:0x{offset:x} {definition}\n')
    at_end(kernelcount.append, tracefs / 'dynamic_events', f'-:{group}/look\n')
    instance = tracefs / 'instances' / group
    instance.mkdir()
    at_end(instance.rmdir)
    (instance / f'events/{group}/look/enable').write_text('1')
    yield instance
    (instance / f'events/{group}/look/enable').write_text('0')


def kernels_values(text, names):
    """A list of {name: text} of the trace."""
    found = []
    for line in text.splitlines():
        match = re.search(r': look: \(0x[0-9a-f]+\) (.*)$', line)
        if match:
            values = re.findall(r'(\w+)=("[^"]*"|\{[^}]*\}|\(fault\)|\S+)', match[1])
            found.append({name: value for name, value in values if name in names})
    return found


def own_values(names):
    found = []
    for line in records():
        if line['event'] != 'probe':
            continue
        found.append({name: line['args'][name] for name in names})
    return found


def as_number(text):
    if text == '(fault)':
        return None
    return int(text, 0)


DEFINITIONS = [
    'a=+0(%di):u32 b=+4(%di):s32 c=+0(%di):u8 d=+0(%di):u16 e=+0(%di):x64 f=-0(%di):s8 g=+4(%di):s16',
    'a=+0(+16(%di)):u32 b=+4(+16(%di)):s32 c=+0(+16(+16(%di))):u64 d=+u0(%di):u32 e=+24(%di):x64',
    'a=+0($stack):x64 b=+8($stack):u32 d=$stack0 e=+0($stack1):u8',
    'a=+0(%si):u8 b=+0(%si):u16 c=+0(%si):u32 d=+0(%si):u64 e=+1(%si):s8',
]
STRINGS = 'a=+0(+8(%di)):string b=+0(%si):string c=+u0(+8(%di)):ustring d=+0(%di):u32'


@alone
def test_the_kernel_records_the_same_values_for_the_same_words(tmp):
    need_uprobes()
    path = build(tmp)
    run(program('setarch'), '-R', path).ok()
    for definition in DEFINITIONS:
        names = re.findall(r'(\w+)=', definition)
        with traced_by_kernel(definition, path, 'look') as instance:
            run(program('setarch'), '-R', path).ok()
        expected = [{name: as_number(value) for name, value in line.items()}
                    for line in kernels_values((instance / 'trace').read_text(), names)]
        record('-p', f'p:look {path}:look {definition}', '--', program('setarch'), '-R', path).ok()
        got = own_values(names)
        check_equal(len(expected), N, 'records of the kernel')
        for i, (own, kernels) in enumerate(zip(got, expected)):
            check_equal(own, {name: kernels[name] if own[name] is not None else None for name in own},
                        f'record {i} of {definition}')  # the kernel records nothing in particular for a fault
            check(
                sum(value is not None for value in own.values()) > len(own) - 3 or own['a'] is None, 'most are there',
                own)
        check_equal(len(got), N, 'records')


@alone
def test_the_kernel_records_the_same_strings_for_the_same_words(tmp):
    need_uprobes()
    path = build(tmp)
    with traced_by_kernel(STRINGS, path, 'look') as instance:
        run(path).ok()
    expected = kernels_values((instance / 'trace').read_text(), 'abcd')
    record('-p', f'p:look {path}:look {STRINGS}', '--', path).ok()
    got = own_values('abcd')
    check_equal(len(expected), N, 'records of the kernel')
    for i, (own, kernels) in enumerate(zip(got, expected)):
        for name in 'abc':
            text = None if kernels[name] == '(fault)' else kernels[name].strip('"')
            check_equal(own[name], text if text is None else shown(text), f'{name} of record {i}')
        check_equal(own['d'], int(kernels['d']), f'd of record {i}')
