"""What kymo list shows of markers and SDT probes, held against the source and against other tools."""
import json
import os
import re
import struct
import sys
from pathlib import Path

from kymotest import SOURCE, check, check_equal, check_matches, check_same, kymo, program, run, skip, start

HERE = Path(__file__).parent
BUILDS = [[compiler, *options] for compiler in ('gcc', 'clang')
          for options in (['-O0'], ['-O2'], ['-O2', '-fPIC', '-shared'], ['-O2', '-no-pie', '-fno-pie'], ['-O2', '-s'])]


def build(tmp, source, command=('gcc', '-O2'), name='built'):
    """Compile HERE/source to tmp/name."""
    path = tmp / name
    run(program(command[0]), *command[1:], '-I', SOURCE / 'include', HERE / source, '-o', path).ok()
    return path


def needs_sdt():
    if not any(
            Path(directory, 'sys/sdt.h').exists() for directory in ('/usr/include', '/usr/include/x86_64-linux-gnu')):
        skip('<sys/sdt.h> is not installed (systemtap-sdt-dev)')


def rows(path, *glob):
    """The JSON rows of markers and probes."""
    return [row for row in json.loads(kymo('list', '--json', path, *glob).ok().out) if 'kind' in row]


# ---- markers -------------------------------------------------------------------------------------

LISTED = '''\
marker  kymo:begin     {source}:17
marker  kymo:settings  flags=0x%x %ld ratio=%f where=%p  {source}:21
marker  kymo:step      %d  {source}:22
marker  kymo:step      i=%d what=%s  {source}:8  (3 locations)
'''


def test_markers_have_format_source_and_places(tmp):
    for command in (['gcc', '-O2'], ['gcc', '-O0'], ['clang', '-O2'], ['gcc', '-O2', '-no-pie', '-fno-pie'], [
            'gcc', '-O2', '-DKYMO_MARKER_PORTABLE'
    ], ['gcc', '-O2', '-s']):
        path = build(tmp, 'listed.c', command)
        check_same(
            kymo('list', path, 'kymo:*').ok().out, LISTED.format(source=HERE / 'listed.c'), f'the list of {command}')


def test_markers_stand_behind_the_functions(tmp):
    lines = kymo('list', build(tmp, 'listed.c')).ok().out.splitlines()
    check_equal([line.split()[0] for line in lines[-4:]], ['marker'] * 4, 'the last words')
    check(all(line.startswith('0x') for line in lines[:-4]), 'functions come first', '\n'.join(lines))
    check_matches('\n'.join(lines), r':main$')


def test_globs_mean_names_providers_and_files(tmp):
    path = build(tmp, 'listed.c')

    def names(glob):
        return [line.split()[1] for line in kymo('list', path, glob).ok().out.splitlines() if not line.startswith('0x')]

    check_equal(names('step'), ['kymo:step'] * 2, 'step')
    check_equal(names('s*'), ['kymo:settings', 'kymo:step', 'kymo:step'], 's*')
    check_equal(names('kymo:begin'), ['kymo:begin'], 'kymo:begin')
    check_equal(names('k*:[ab]*'), ['kymo:begin'], 'k*:[ab]*')
    check_equal(names('built:begin'), ['kymo:begin'], 'built:begin')
    kymo('list', path, 'other:begin').refused(r"no function in \S+ is called 'begin'")
    kymo('list', path, 'nothing_like*').refused('nothing_like')


def test_markers_as_json(tmp):
    found = rows(build(tmp, 'listed.c', ['gcc', '-O0']))
    check_equal([(row['kind'], row['provider'], row['name'], row['format']) for row in found],
                [('marker', 'kymo', 'begin', ' '), ('marker', 'kymo', 'settings', 'flags=0x%x %ld ratio=%f where=%p'),
                 ('marker', 'kymo', 'step', '%d'), ('marker', 'kymo', 'step', 'i=%d what=%s')], 'rows')
    check_equal([[(field['name'], field['type']) for field in row['fields']] for row in found],
                [[], [('flags', 'x32'), ('arg2', 's64'), ('ratio', 'f64'),
                      ('where', 'x64')], [('arg1', 's32')], [('i', 's32'), ('what', 'string')]], 'fields')
    check_equal([[place['line'] for place in row['places']] for row in found], [[17], [21], [22], [8, 8, 8]], 'lines')
    check(all(place['why_not'] is None for row in found for place in row['places']), 'all can be recorded', found)
    check_equal(len({place['vaddr'] for row in found for place in row['places']}), 6, 'addresses')


def test_a_process_tells_the_file_of_each(tmp):
    (tmp / 'main.c').write_text('#include <kymo/marker.h>\n#include <unistd.h>\n'
                                'int main(void) { MARK(tick, "n=%d", getpid()); return pause(); }\n')
    run(program('gcc'), '-O2', '-I', SOURCE / 'include', 'main.c', '-o', 'main', cwd=tmp).ok()
    process = start(tmp / 'main')
    check_same(kymo('list', process.pid, 'tick').ok().out, f'marker  kymo:tick  n=%d  main.c:3  {tmp}/main\n')
    check_same(kymo('list', process.pid, 'main:tick').ok().out, f'marker  kymo:tick  n=%d  main.c:3  {tmp}/main\n')


# ---- SDT probes ----------------------------------------------------------------------------------


def probes_of_readelf(path):
    """[(provider, name, place, semaphore or 0, arguments)] by readelf -n."""
    found, probe = [], None
    for line in run(program('readelf'), '-n', path, env={'LC_ALL': 'C'}).ok().out.splitlines():
        if match := re.match(r'\s+Provider: (.*)$', line):
            probe = [match[1]]
        elif match := re.match(r'\s+Name: (.*)$', line):
            probe.append(match[1])
        elif match := re.match(r'\s+Location: (\w+), Base: \w+, Semaphore: (\w+)', line):
            probe += [int(match[1], 16), int(match[2], 16)]
        elif match := re.match(r'\s+Arguments: ?(.*)$', line):
            found.append((*probe, match[1]))
    return found


def type_of(operand):
    """What kymo calls the type of "-4@%eax". Nothing that it does not record has to have one."""
    match = re.match(r'(-?)(\d+)(f?)@', operand)
    return {'8': 'f64', '4': 'f32'}[match[2]] if match[3] else f'{"s" if match[1] else "u"}{8 * int(match[2])}'


def check_as_readelf(path, at_least):
    theirs = sorted((provider, name, place, semaphore, [type_of(operand) for operand in arguments.split()][:8])
                    for provider, name, place, semaphore, arguments in probes_of_readelf(path))
    ours = sorted((row['provider'], row['name'], place['vaddr'], place.get('semaphore', 0),
                   [field['type'] for field in row['fields']]) for row in rows(path) if row['kind'] == 'sdt'
                  for place in row['places'])
    check_same(ours, theirs, f'the probes of {path}')
    check(len(ours) >= at_least, f'{len(ours)} probes in {path}')


def test_sdt_probes_are_those_of_readelf(tmp):
    needs_sdt()
    for command in BUILDS:
        check_as_readelf(build(tmp, 'probes.c', command), 5)


def test_sdt_probes_of_installed_files_are_those_of_readelf():
    """libc has some in other distributions than Debian 12."""
    for name in ('/usr/bin/python3', 'libstdc++.so.6', 'libc.so.6'):
        lines = run('/sbin/ldconfig', '-p').ok().out
        path = name if name.startswith('/') else re.search(rf'^\s{re.escape(name)} .*x86-64.* => (\S+)$', lines,
                                                           re.MULTILINE)[1]
        check_as_readelf(os.path.realpath(path), 0)


PROBED = '''\
sdt     probes:floats   arg1:f64 arg2:f32  (cannot be recorded: its 1st argument WHERE is of no kind that kymo records)
sdt     probes:guarded  arg1:s32
sdt     probes:places   arg1:s32 arg2:s32 arg3:u64 arg4:s8 arg5:s8 arg6:s64 arg7:s16 arg8:s32
sdt     probes:plain
sdt     probes:sizes    arg1:s8 arg2:u8 arg3:s16 arg4:u16 arg5:s32 arg6:u32 arg7:s64 arg8:u64
'''


def test_sdt_probes_have_the_types_of_their_arguments(tmp):
    needs_sdt()
    for command in (['gcc', '-O0'], ['gcc', '-O2'], ['clang', '-O2']):
        out = kymo('list', build(tmp, 'probes.c', command), 'probes:*').ok().out
        check_same(re.sub(r"argument '[^']*'", 'argument WHERE', out), PROBED, f'the list of {command}')


def test_operands_that_only_symbols_explain_need_the_symbols(tmp):
    """gcc has `counter` and the like as counter(%rip)."""
    needs_sdt()
    path = build(tmp, 'probes.c', ['gcc', '-O2', '-s'])
    if not re.search(r'\w+\(%rip\)', ''.join(probe[4] for probe in probes_of_readelf(path) if probe[1] == 'places')):
        skip('this gcc has no operand with a symbol')
    check_matches(
        kymo('list', path, 'places').ok().out,
        r"\(cannot be recorded: its \dth argument '\S+\(%rip\)' names a symbol that the file does not have\)$")


def test_bpftrace_lists_the_same(tmp):
    needs_sdt()
    bpftrace = program('bpftrace')
    if os.geteuid():
        skip('bpftrace needs root')
    path = build(tmp, 'probes.c')
    theirs = {tuple(line.split(':')[2:4]) for line in run(bpftrace, '-l', f'usdt:{path}:*').ok().out.splitlines()}
    check_equal({(row['provider'], row['name']) for row in rows(path)}, theirs, 'probes')
    path = build(tmp, 'listed.c')
    theirs = {tuple(line.split(':')[2:4]) for line in run(bpftrace, '-l', f'usdt:{path}:*').ok().out.splitlines()}
    check_equal({(row['provider'], row['name']) for row in rows(path)}, theirs, 'markers')


# ---- damage --------------------------------------------------------------------------------------


def section(path, name):
    """(offset, size) of a section in the file."""
    lines = run(program('readelf'), '-SW', path).ok().out
    match = re.search(rf'\] {re.escape(name)} +\S+ +\w+ (\w+) (\w+) ', lines)
    check(match, f'{path} has no section {name}', lines)
    return int(match[1], 16), int(match[2], 16)


def check_damage(path, offset, bytes_there, sentence):
    """With these bytes there the functions are listed still, then comes the sentence."""
    whole = path.read_bytes()
    damaged = path.with_name('damaged')
    damaged.write_bytes(whole[:offset] + bytes_there + whole[offset + len(bytes_there):])
    result = kymo('list', damaged).ended(1)
    check_matches(result.err, rf'\Akymo: {re.escape(str(damaged))}: {sentence}\n\Z', 'stderr')
    check_matches(result.out, r':main$', 'stdout')
    check('marker  ' not in result.out and 'sdt  ' not in result.out, 'no marker is listed', result)
    result = kymo('list', '--json', damaged).ended(1)
    check(any(row['name'] == 'main' for row in json.loads(result.out)), 'main is in the JSON', result)


def test_damaged_notes_are_told_with_their_place(tmp):
    path = build(tmp, 'listed.c')
    offset, _ = section(path, '.note.kymo')
    at = offset + 20  # behind the header and the owner
    where = rf"marker '\w+' \(note at offset {offset:#x}\)"
    check_damage(path, at, struct.pack('<i', 0x7fffffff), where + r": its site 0x\w+ is not in the program's text")
    check_damage(path, at + 8, struct.pack('<i', -1), where + r": its gate 0x\w+ is not in the program's data")
    check_damage(
        path, at + 16, struct.pack('<i', 0x7fffffff),
        rf'a marker \(note at offset {offset:#x}\): its name at 0x\w+ is not in the file, or longer than 255 bytes')


def test_damaged_sdt_notes_are_told_with_their_place(tmp):
    needs_sdt()
    path = build(tmp, 'probes.c')
    offset, size = section(path, '.note.stapsdt')
    at = offset + 20
    where = rf"marker '\w+' \(note at offset {offset:#x}\)"
    check_damage(path, at, struct.pack('<Q', 0xffffffffffff),
                 where + r": its location 0x\w+ is not in the program's text")
    check_damage(path, at + 16, struct.pack('<Q', 8), where + r": its semaphore 0x8 is not in the program's data")
    check_damage(path, offset + 4, struct.pack('<I', size), rf'the note at offset {offset:#x} runs out of its section')


def test_a_process_with_a_damaged_file_has_the_others_listed(tmp):
    path = build(tmp, 'listed.c', ['gcc', '-O2', '-shared', '-fPIC'], 'library')
    offset, _ = section(path, '.note.kymo')
    whole = bytearray(path.read_bytes())
    whole[offset + 20:offset + 24] = struct.pack('<i', 0x7fffffff)
    path.write_bytes(whole)
    process = start(sys.executable, '-c',
                    f'import ctypes, time; ctypes.CDLL("{path}"); print("ready", flush=True); time.sleep(60)')
    process.wait_for('^ready$')
    result = kymo('list', process.pid, 'malloc').ok()
    check_matches(result.err, r'\Akymo: warning: \S+/library: marker')
    check_matches(result.out, r'libc\S*:malloc$')
