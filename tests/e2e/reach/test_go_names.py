"""Stripped Go programs have no symbols, but the table that Go's runtime walks stacks with has the names."""
import collections
import json
import re
from pathlib import Path

import comparing
import golang
import places
from kymotest import check, check_equal, check_same, events, kymo, record, report_json, run, timeout

PACKAGE = 'package yaml\n\nimport "strconv"\n\n//go:noinline\nfunc Parse(s string) int {\n\tn, _ := strconv.Atoi(s)\n\treturn n\n}\n'

# What names.go is made to do, and how a shell is told.
CALLS = {
    'main.main': 1, 'main.pair.sumThrice': 3, 'main.(*list[...]).pushFiveTimes': 5, 'main.(*counter).next': 2,
    'main.(*otherCounter).next': 1, 'main.main.func1': 5, 'main.main.func2': 2, 'main.takesWords': 1,
    'example.org/go-2fa/yaml%2ev3.Parse': 4
}

# Not of Go's: marks of the linker's around the text, and the build id that lies there.
NO_FUNCTIONS = {'runtime.text', 'runtime.etext', 'go.buildid', 'go:buildid'}


def build(tmp, output, *flags, **environ):
    package = tmp / 'gopath/src/example.org/go-2fa/yaml.v3'
    package.mkdir(parents=True, exist_ok=True)
    (package / 'yaml.go').write_text(PACKAGE)
    return golang.build(tmp, output, Path(__file__).parent / 'names.go', *flags, **environ)


def known_to_go(tmp, path):
    """{(address, name)} by go tool nm, of a program with symbols. Those of its own assembler, and arguments of types,
    are only in symbols."""
    lines = run(golang.find(), 'tool', 'nm', path, env=golang.environment(tmp)).ok().out.splitlines()
    found = (re.fullmatch(r' *([0-9a-f]+) [Tt] (.*)', line) for line in lines)
    named = {(int(match[1], 16), re.sub(r'\.abi(0|internal)$', '', re.sub(r'\[.*\]', '[...]', match[2])))
             for match in found if match}
    return {(address, name) for address, name in named if name not in NO_FUNCTIONS}


def known_to_kymo(path, *glob):
    return {(row['vaddr'], row['name']): row for row in json.loads(kymo('list', '--json', path, *glob).ok().out)
            if 'vaddr' in row}


def check_same_functions(tmp, whole, stripped):
    """The program with symbols and the one without have the same functions."""
    mine, theirs = known_to_kymo(stripped), known_to_go(tmp, whole)
    check(len(theirs) > 1000, 'go knows functions', len(theirs))
    check_same(sorted(map(str, set(mine) - theirs)), [], 'what only kymo knows')
    check_same(sorted(map(str, theirs - set(mine))), [], 'what only go knows')
    sizes = collections.Counter()
    for (vaddr, _), row in known_to_kymo(whole).items():
        sizes[vaddr] = max(sizes[vaddr], row['size'])  # marks of the linker's have none
    check_same([name for (vaddr, name), row in mine.items() if row['size'] > sizes[vaddr]], [],
               'longer than its symbol says')
    check_same(
        [name for (vaddr, name), row in mine.items() if name.startswith('main.') and row['size'] != sizes[vaddr]], [],
        'of another size')


@timeout(400)
def test_names_and_addresses_are_those_of_symbols(tmp):
    check_same_functions(tmp, build(tmp, 'whole'), build(tmp, 'stripped', '-ldflags=-s -w'))


@timeout(500)
def test_names_of_position_independent_programs(tmp):
    check_same_functions(tmp, build(tmp, 'whole', '-buildmode=pie'),
                         build(tmp, 'stripped', '-buildmode=pie', '-ldflags=-s -w'))


@timeout(600)
def test_names_where_ld_made_the_program(tmp):
    """There is code of C's before Go's, and no section has the name of the table's."""
    build(tmp, 'whole', '-buildmode=pie', '-ldflags=-linkmode=external', CGO_ENABLED='1')
    run('strip', '-o', 'stripped', 'whole').ok()
    check('gopclntab' not in run('readelf', '-SW', 'stripped').ok().out, 'no such section')
    mine, theirs = known_to_kymo('./stripped'), known_to_go(tmp, './whole')
    ours = {(vaddr, name) for vaddr, name in theirs if re.match(r'main\.|runtime\.|strconv\.|example', name)}
    check(len(ours) > 1000, 'go knows functions', len(ours))
    check_same(sorted(map(str, ours - set(mine))), [], 'what only go knows')
    check_counts(tmp, 'stripped')
    bare = bytearray(Path('stripped').read_bytes())
    bare[40:48], bare[60:64] = bytes(8), bytes(4)  # no section headers
    Path('bare').write_bytes(bare)
    check({key for key in known_to_kymo('./bare') if key[1]} >= {key for key in mine if key[1] and '.' in key[1]},
          'the same without section headers')


def check_counts(tmp, name):
    """Each name as kymo prints it, with a backslash where the grammar wants one."""
    def counts():
        return {probe['name'].partition(':')[2]: probe['count'] for probe in report_json()['probes']}

    (tmp / name).chmod(0o755)
    wanted = run(f'./{name}').ok().out
    typed = {call: f'./{name}:{call}'.replace('-2', r'\-2') for call in CALLS}
    result = record('--backend', 'inproc', '--displace-faulting',
                    *(word for spec in typed.values() for word in ('-p', spec)), '--', f'./{name}', seconds=200).ok()
    check_equal(result.out, wanted, 'output')
    check(
        set(counts()) == set(CALLS) and all(counts()[call] >= n for call, n in CALLS.items()),
        'calls, and entries again', counts())
    starts = {row['name']: row['offset'] for row in known_to_kymo(f'./{name}').values()}
    behind = {call: f'+0x{golang.size_of_check(name, starts[call]):x}' for call in CALLS}
    result = record('--backend', 'inproc', '--displace-faulting',
                    *(word for call, spec in typed.items() for word in ('-p', spec + behind[call])), '--', f'./{name}',
                    seconds=200).ok()
    check_equal(result.out, wanted, 'output')
    check_equal(counts(), {(call + behind[call]).removesuffix('+0x0'): n for call, n in CALLS.items()}, 'calls')


@timeout(400)
def test_each_kind_of_name_can_be_typed(tmp):
    build(tmp, 'stripped', '-ldflags=-s -w')
    check_counts(tmp, 'stripped')


@timeout(400)
def test_patterns_offsets_and_instructions(tmp):
    build(tmp, 'stripped', '-ldflags=-s -w')
    check_equal({name for _, name in known_to_kymo('./stripped', 'main.(*counter).next')}, {'main.(*counter).next'},
                'exactly')
    check_equal({name for _, name in known_to_kymo('./stripped', 'main.(*).next')},
                {'main.(*counter).next', 'main.(*otherCounter).next'}, 'a pattern')
    (vaddr, _), row = known_to_kymo('./stripped', 'main.takesWords').popitem()
    record('--backend', 'inproc', '--displace-faulting', '-p', './stripped:main.takesWords:*', '--', './stripped').ok()
    check_same([probe['offset'] - row['offset'] + vaddr for probe in report_json()['probes']],
               places.disassemble(str(tmp / 'stripped'), vaddr, vaddr + row['size']), 'instructions')
    explained = kymo('explain', './stripped', 'main.(*list[...]).pushFiveTimes').ok()
    check('main.(*list[...]).pushFiveTimes' in explained.out, 'explained', explained)


@timeout(400)
def test_integer_arguments_are_in_go_s_registers(tmp):
    """ax, bx, cx, di, si: a number, a string of five bytes, three numbers of a slice."""
    build(tmp, 'stripped', '-ldflags=-s -w')
    record('--backend', 'inproc', '--displace-faulting', '-p',
           './stripped:main.takesWords number=%ax:u64 length=%cx:u64 rest=%si:u64', '-r',
           './stripped:main.takesWords sum=$retval:u64', '--', './stripped').ok()
    call, *_, done = events()  # it may be entered again
    check_equal([call[name] for name in ('number', 'length', 'rest')], [42, 5, 3], 'arguments')
    check_equal(done['sum'], 50, 'result')


def test_the_start_of_the_text_is_from_moduledata_where_the_table_lacks_it(tmp):
    """As Go 1.26 leaves it, in a program that ld made: .text begins with code of C's."""
    path = comparing.installed('gron')
    at = re.search(r'\.gopclntab +PROGBITS +\w+ (\w+)', run('readelf', '-SW', path).ok().out)
    check(at, 'gron has a table')
    program, at = bytearray(Path(path).read_bytes()), int(at[1], 16)
    text = int.from_bytes(program[at + 24:at + 32], 'little')
    check(text and program[at:at + 8] == bytes.fromhex('f0ffffff00000108'), 'the form of Go 1.18', program[at:at + 32])
    program[at:at + 4], program[at + 24:at + 32] = bytes.fromhex('f1ffffff'), bytes(8)
    Path('later').write_bytes(program)
    check_same(sorted(map(str, known_to_kymo('./later'))), sorted(map(str, known_to_kymo(path))), 'functions')
    Path('unknown').write_bytes(program.replace(text.to_bytes(8, 'little'), bytes(8)))
    Path('unknown').chmod(0o755)
    result = kymo('list', './unknown').ended(1)
    check('nothing says where the text starts' in result.err, 'it is not guessed', result)
    result = record('-p', './unknown:0x261180', '--', './unknown').ended(1)
    check('nothing says where the text starts' in result.err, 'nothing is probed', result)


@timeout(300)
def test_functions_of_a_packaged_program_run_as_often_as_the_kernel_counts(tmp):
    path = comparing.installed('gron')
    check('gopclntab' in run('readelf', '-SW', path).ok().out and '.symtab' not in run('readelf', '-SW', path).ok().out,
          'Go without symbols')
    # not two keys: Go takes them in any order
    (tmp / 'in.json').write_text(json.dumps([[i, 'x' * i, {'key': i}] for i in range(30)]))
    one = {'GOMAXPROCS': '1', 'GOGC': 'off'}
    functions = known_to_kymo(path, 'main.*')
    specs = [f'{path}:{name}+0x{golang.size_of_check(path, row["offset"]):x}' for (_, name), row in functions.items()]
    compared = comparing.compare([path, 'in.json'], specs, env=one)
    check_equal(compared.count('gron:main.main+*'), 1, 'calls of main')
    check(compared.count('gron:main.*') > 100, 'it does something', compared.counts)
    record('-p', 'gron:main.*', '--', path, 'in.json', env=one).ok()
    check_same(sorted(probe['name'] for probe in report_json()['probes']),
               sorted(f'gron:{name}' for _, name in functions), 'all by a pattern')
