"""Debug information beside gdb: variables are where gdb says that they are, lines begin where it says, and lines of
source are probed."""
import json
import re

from kymotest import check, check_equal, check_matches, event_counts, events, kymo, program, record, run, timeout

SOURCE = r'''
#include <stdio.h>
#include <string.h>
struct pair { int first; struct { unsigned low : 3, high : 9; }; struct pair *next; char name[8]; };
typedef struct pair pair_t;
enum kind { ONE = 1, TWO };
static int counter;
int table[3][4];
static inline __attribute__((always_inline)) long twice(long value)
{
	long doubled = value * 2;
	return doubled + counter;
}
__attribute__((noinline)) long work(pair_t *pair, const int count, enum kind kind, unsigned char flag)
{
	long total = 0;
	static int calls;
	calls++;
	for (int i = 0; i < count; i++) {
		long step = twice(i + kind);
		total += step + pair->first + table[1][i % 3];
		printf("%ld\n", total);
	}

	return total + flag;
}
int main(int argc, char **argv)
{
	pair_t pair = { .first = argc };
	counter = (int)strlen(argv[0]);
	return (work(&pair, 4, TWO, 3) + twice(argc)) > 1000;
}
'''
REGISTERS = {
    'rax': 'ax', 'rbx': 'bx', 'rcx': 'cx', 'rdx': 'dx', 'rsi': 'si', 'rdi': 'di', 'rbp': 'bp', 'rsp': 'sp', 'eax': 'ax',
    'ebx': 'bx', 'ecx': 'cx', 'edx': 'dx', 'esi': 'si', 'edi': 'di'
}
WAYS = [('gcc', '-O0', '-gdwarf-5'), ('gcc', '-O2', '-gdwarf-4'), ('gcc', '-O2', '-gdwarf-5'),
        ('gcc', '-O3', '-gdwarf-5'), ('clang', '-O0', '-gdwarf-4'), ('clang', '-O2', '-gdwarf-5')]


def build(tmp, *compiler):
    (tmp / 'app.c').write_text(SOURCE)
    run(program(compiler[0]), *compiler[1:], '-w', '-o', 'app', 'app.c', seconds=60).ok()


def line_of(text):
    return next(number for number, line in enumerate(SOURCE.splitlines(), 1) if text in line)


def gdb(*commands):
    words = [word for command in commands for word in ('-ex', command)]
    return run(program('gdb'), '-nx', '-batch', *words, './app', seconds=60, env={'DEBUGINFOD_URLS': ''}).out


def gdb_ranges(name, scope):
    """What gdb tells of a variable with a location list: (start, end, words)."""
    return [(int(start, 16), int(end, 16), words)
            for start, end, words in re.findall(r'Range (0x[0-9a-f]+)-(0x[0-9a-f]+): (.*)', scope.get(name, ''))]


def gdb_scope(address):
    """Of each variable of the function at an address, what 'info scope' says."""
    text = gdb(f'info scope *{address:#x}')
    parts = re.split(r'^(?:Symbol|Scope for [^\n]*\nSymbol) (\w+) is ', text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def check_register(name, words, where, at):
    found = re.fullmatch(r'a variable in \$(\w+)', words.strip())
    if not found:
        return False
    register = REGISTERS.get(found[1], found[1])
    check_equal(where, f'register, %{register}', f'{name} at {at}')
    return True


def addresses():
    listing = run('objdump', '-d', '--no-show-raw-insn', '--disassemble=work', './app', seconds=60).ok().out
    return [int(found, 16) for found in re.findall(r'^ +([0-9a-f]+):\t', listing, re.MULTILINE)]


@timeout(300)
def test_variables_are_where_gdb_says(tmp):
    for way in WAYS:
        build(tmp, *way)
        code = addresses()
        scope = gdb_scope(code[0])
        n_same = 0
        for at in code[::3]:
            listed = json.loads(kymo('list', '--json', '--vars', f'./app:work+{at - code[0]:#x}').ok().out)
            check_equal(len(listed), 1, f'{at:#x}')
            for variable in listed[0]['variables']:
                for start, end, words in gdb_ranges(variable['name'], scope):
                    if start <= at < end and not variable['inlined']:
                        n_same += check_register(variable['name'], words, variable['where'], f'{at:#x} of {way}')
        check('-O0' in way or n_same > 20, f'{n_same} variables in registers of {way}')


@timeout(120)
def test_types_are_spelled_as_gdb_does(tmp):
    for way in WAYS[::3]:
        build(tmp, *way)
        at = addresses()[0]
        for variable in json.loads(kymo('list', '--json', '--vars', './app:work').ok().out)[0]['variables']:
            if variable['depth'] == 0:
                told = re.search(
                    r'^type = (.*)$',
                    gdb(f'list work', f'info scope *{at:#x}', f"whatis work::{variable['name']}") if variable['static']
                    else gdb('break work', 'run', f"whatis {variable['name']}", 'kill'), re.MULTILINE)
                check(told, f"gdb knows no {variable['name']}")
                check_equal(variable['type'], told[1], str(way))


@timeout(120)
def test_lines_begin_where_gdb_says(tmp):
    build(tmp, 'gcc', '-O0', '-g')
    lines = {
        row['line']: row['vaddr']
        for row in reversed(json.loads(kymo('list', '--json', '--lines', './app:work').ok().out)) if not row['inlined']
    }
    check(len(lines) > 6, str(lines))
    for line, vaddr in lines.items():
        told = re.search(r'starts at address (0x[0-9a-f]+)', gdb(f'info line app.c:{line}'))
        check_equal(vaddr, int(told[1], 16), f'line {line}')


@timeout(120)
def test_what_is_listed(tmp):
    build(tmp, 'gcc', '-O0', '-g')
    step = line_of('total += step')
    result = kymo('list', '--vars', f'./app:app.c:{step}').ok()
    check_matches(
        result.out,
        rf'\A\./app:work\+0x[0-9a-f]+  0x[0-9a-f]+  app\.c:{step}\n  step +long +stack, at %bp-0x[0-9a-f]+\n  i +int +stack'
    )
    for words in (r'pair +pair_t \*', r'count +const int', r'kind +enum kind', r'flag +unsigned char',
                  r'calls +int +static, at 0x[0-9a-f]+'):
        check(re.search(rf'^  {words}', result.out, re.MULTILINE), f'{words} in {result.out}')
    check_matches(
        kymo('list', '--vars', './app:work').ok().out,
        r'\A\./app:work  0x.*\n  pair +pair_t \* +register, %di\n  count +const int +register, %si\n')
    result = kymo('list', '--lines', './app:work').ok()
    check(re.search(rf'^ +{step}  0x[0-9a-f]+ +total \+= step', result.out, re.MULTILINE), result.out)
    empty = line_of('return total + flag') - 1
    result = kymo('list', '--vars', f'./app:app.c:{empty}').ok()
    check_equal(result.err, f'kymo: warning: app.c:{empty} has no code; line {empty + 1} is taken\n')


@timeout(120)
def test_inlined_functions_have_their_instances(tmp):
    build(tmp, 'gcc', '-O2', '-g')
    result = kymo('list', '--json', '--vars', './app:twice').ok()
    check_equal(len(json.loads(result.out)), 2, result.out)


@timeout(120)
def test_lines_are_probed(tmp):
    for way in (('gcc', '-O0', '-g'), ('clang', '-O0', '-g')):
        build(tmp, *way)
        step = line_of('total += step')
        record('-p', f'./app:app.c:{step}', '-p', f'p:named ./app:app.c:{step + 1} %di', '-p', './app:work:4', '--',
               './app').ok()
        counts = event_counts()
        check_equal((counts[f'app:app.c:{step}'], counts['named'], counts[f"app:app.c:{line_of('for (int i')}"]),
                    (4, 4, 1), str(way))
        check_matches(kymo('explain', './app', f'app.c:{step}').ok().out, r'\A\./app:work\+0x')


@timeout(120)
def test_a_line_is_named_by_what_is_in_it(tmp):
    build(tmp, 'gcc', '-O0', '-g')
    step = line_of('total += step')
    record('-p', 'p:step ./app:app.c:/total \\+= step/ /i > 0/ i total', '-p', './app:app.c:/long step = .*kind/', '--',
           './app').ok()
    counts = event_counts()
    check_equal((counts['step'], counts[f'app:app.c:{step - 1}']), (3, 4), 'events')
    check_matches(
        kymo('list', '--vars', './app:app.c:/total \\+= step/').ok().out,
        rf'\A\./app:work\+0x[0-9a-f]+  0x[0-9a-f]+  app\.c:{step}\n')
    check_matches(kymo('explain', './app', 'app.c:/total \\+= step/').ok().out, r'\A\./app:work\+0x')
    result = kymo('list', '--vars', './app:app.c:/^}$/ x')
    check_equal(result.status, 2, f'more behind it: {result}')
    for pattern, sentence in (('nothing like it', r'no line of app\.c matches /nothing like it/'),
                              ('return total', None), ('total', r'/total/ is in \d lines of app\.c that have code \(\d+, '),
                              ('a(', r'/a\(/ is no regular expression: Unmatched \( or \\\('),
                              ('struct pair \\{', r'warning: app\.c:4 has no code; line \d+ is taken')):
        result = kymo('list', '--vars', f'./app:app.c:/{pattern}/')
        if sentence:
            check_matches(result.err, rf'\Akymo: {sentence}')
        else:
            check_equal((result.status, result.err), (0, ''), pattern)
    (tmp / 'app.c').unlink()
    check_matches(
        kymo('list', '--vars', './app:app.c:/step/').err,
        r"\Akymo: the source .*/app\.c cannot be read \(No such file or directory\); write the line's number: app\.c:120")


@timeout(120)
def test_sources_in_a_directory_are_found_from_where_they_were_compiled(tmp):
    """DWARF 5 has 'src/app.c' in the line table, and where that is from elsewhere."""
    (tmp / 'src').mkdir()
    (tmp / 'elsewhere').mkdir()
    (tmp / 'src/app.c').write_text(SOURCE)
    step = line_of('total += step')
    for way in (('gcc', '-gdwarf-5'), ('gcc', '-gdwarf-4'), ('clang', '-gdwarf-5')):
        run(program(way[0]), way[1], '-O0', '-w', '-o', 'app', 'src/app.c', seconds=60).ok()
        for file in ('app.c', 'src/app.c', f'{tmp.name}/src/app.c', f'{tmp}/src/app.c', './src/app.c'):
            for line in (str(step), '/total \\+= step/'):
                shown = kymo('list', '--vars', f'{tmp}/app:{file}:{line}', cwd=tmp / 'elsewhere').ok().out
                check_matches(shown, rf'\A\S*/app:work\+0x[0-9a-f]+  0x[0-9a-f]+  app\.c:{step}\n', f'{way} {file}')
        for file in ('other/src/app.c', f'x{tmp.name}/src/app.c', f'/src/app.c/{tmp.name}'):
            kymo('list', '--vars', f'./app:{file}:{step}').refused('has no source file')
        shown = kymo('list', '--lines', f'{tmp}/app:work', cwd=tmp / 'elsewhere').ok().out
        check_equal(shown.splitlines()[0], f'{tmp}/src/app.c:', str(way))
        check_matches(shown, rf'(?m)^ +{step}  0x[0-9a-f]+ +total \+= step', str(way))
        check_matches(kymo('list', '--vars', './app:work:2').ok().out, r'  app\.c:\d+$')


@timeout(60)
def test_of_two_sources_of_one_name_neither_is_taken(tmp):
    for name, function in (('src', 'main'), ('lib', 'other')):
        (tmp / name).mkdir()
        (tmp / name / 'app.c').write_text(f'int {function}(void)\n{{\n\treturn 0; /* in {name} */\n}}\n')
    run(program('gcc'), '-g', '-o', 'app', 'src/app.c', 'lib/app.c').ok()
    kymo('list', '--vars', './app:app.c:/return 0/').wrong_words(
        f'app.c may be {tmp}/src/app.c or {tmp}/lib/app.c; write more of the path before the text')
    for name, function in (('src', 'main'), ('lib', 'other')):
        shown = kymo('list', '--vars', f'./app:{name}/app.c:/return 0/').ok().out
        check_matches(shown, rf'\A\./app:{function}\+0x[0-9a-f]+  0x[0-9a-f]+  app\.c:3\n')
    kymo('list', '--vars', './app:lib/app.c:/in src/').refused('no line of lib/app.c matches /in src/', status=1)


@timeout(60)
def test_what_is_not_there_is_told(tmp):
    build(tmp, 'gcc', '-O0', '-g')
    for location, sentence in (('./app:ap.c:12',
                                r'the debug information of \./app has no source file ap\.c; near are app\.c'),
                               ('./app:app.c:9999', r'\./app has no code of app\.c at line 9999 or after it'),
                               ('./app:wrk', r'\./app has no function wrk; the nearest names are work'),
                               ('./app:work:400', r'.*(has no code of|is after the end of work).*')):
        for words in (('list', '--vars', location), ('list', '--lines', location)):
            result = kymo(*words)
            check_equal(result.status, 1, str(result))
            check_matches(result.err, rf'\Akymo: {sentence}')
    run('strip', '-o', 'bare', 'app').ok()
    check_matches(
        kymo('list', '--vars', './bare:0x1000').err,
        r'\Akymo: \./bare has no debug information; install the debug symbols of its package \(bare-dbgsym on Debian\)')
    run(program('gcc'), '-O1', '-g', '-w', '-o', 'other', 'app.c', seconds=60).ok()
    check_matches(
        kymo('list', '--vars', '--debug-file', 'other', './app:work').err,
        r'\Akymo: other is of another build than \./app: its build-id is [0-9a-f]{40}, the program\'s is [0-9a-f]{40}')
    check_matches(
        record('-r', './app:app.c:18', '--', './app').err,
        r'\Akymo: a return probe is for a whole function; record a line of source with -p')


@timeout(60)
def test_mistakes_are_marked_in_what_was_typed(tmp):
    build(tmp, 'gcc', '-O0', '-g')
    step = line_of('total += step')
    where = f'./app:app.c:{step}'
    for spec, word in ((f'{where} total totl', 'totl'), (f'p:e {where} /totl > 1/', 'totl'), (f'{where} %foo', '%foo')):
        check_matches(
            record('-p', spec, '--', './app').err, rf'\Akymo: column {spec.index(word) + 1}: .*{word}.*\n'
            rf'  {re.escape(spec)}\n {{{spec.index(word) + 2}}}\^\n', spec)
    record('-p', where, '--sum', 'total', '--', './app').ok()
    check_matches(kymo('report').ok().out, rf'(?m)^sum of total at {re.escape(where)} ', 'the name of a table')


@timeout(60)
def test_a_file_of_split_debug_information_that_is_missing_is_named(tmp):
    for standard in '4', '5':
        build(tmp, 'gcc', '-O1', '-g', f'-gdwarf-{standard}', '-gsplit-dwarf')
        part, = tmp.glob('*.dwo')
        work = ('-p', './app:work count', '--', './app')
        record(*work).ok()
        part.unlink()
        check_matches(
            record(*work).err, rf"\Akymo: column 12: 'count' is not known: {re.escape(part.name)}, which has the debug "
            r'information of this code, is missing \(kymo reads no \.dwp\)$')
        check_matches(
            kymo('list', '--vars', './app:work').err, r'\Akymo: the debug information of \./app is split, and '
            rf'{re.escape(part.name)}, which has that of 0x[0-9a-f]+, is missing \(kymo reads no \.dwp\)$')
        record('-p', './app:work arg0', '--', './app').ok()


@timeout(120)
def test_debug_files_are_those_of_their_build(tmp):
    build(tmp, 'gcc', '-O0', '-g')
    step = line_of('total += step')
    (tmp / 'shared.c').write_text(
        '__attribute__((noinline)) int share(int part) { return part; }\nint main(void) { return share(7) - 7; }\n')
    run(program('gcc'), '-O0', '-g', '-o', 'shared', 'shared.c', seconds=60).ok()
    run(program('gcc'), '-O1', '-g', '-w', '-o', 'other', 'app.c', seconds=60).ok()
    for name in ('app', 'shared', 'other'):
        run('objcopy', '--only-keep-debug', name, f'{name}.dbg').ok()
        run('strip', '--strip-debug', name).ok()
    refused = r"^kymo: other\.dbg is of another build than \./app: its build-id is [0-9a-f]{40}, the program's is [0-9a-f]{40}"
    words = ('-p', './app:work count', '-p', f'./app:app.c:{step}')
    check_matches(
        record(*words, '--', './app').err, r'\./app has no debug information; .* or name the file with --debug-file')
    record(*words, '-p', './shared:share part', '--debug-file', 'shared.dbg', '--debug-file=app.dbg', '--',
           './app').ok()
    check_equal(event_counts()[f'app:app.c:{step}'], 4, 'lines by the file')
    check_equal(next(event for event in events() if event.name == 'app:work')['count'], 4, 'a variable by the file')
    for debug_files in (('other.dbg', ), ('app.dbg', 'other.dbg'), ('other.dbg', 'app.dbg')):
        result = record(*words, *(word for name in debug_files for word in ('--debug-file', name)), '--', './app')
        check_equal(result.status, 2, f'status with {debug_files}')
        check_matches(result.err, refused, f'sentence about {debug_files}')
    # a program without any names: those of its functions are in the debug information
    run('strip', '-o', 'bare', 'app').ok()
    record('--debug-file', 'app.dbg', '-p', './bare:work count', '--', './bare').ok()
    for spec in ('./bare:work count', './bare:work'):
        result = record('--debug-file', 'other.dbg', '-p', spec, '--', './bare').ended(2)
        check_matches(result.err, refused.replace('app', 'bare'), f'sentence about {spec}')
    (tmp / 'options').write_text(f'--debug-file app.dbg\n-p ./app:app.c:{step} total\n')
    record('--config', 'options', '--', './app').ok()
    check_equal(event_counts(), {f'app:app.c:{step}': 4}, 'by a file of options')
    check_matches(
        record('--debug-file', 'nowhere', *words, '--', './app').err,
        r'^kymo: (--debug-file )?nowhere: No such file or directory', 'a file that is not there')
    check_matches(
        kymo('explain', '-e', 'count + 1', './app', 'work', '--debug-file', 'app.dbg').ok().out, 'count', 'explain')
    check_matches(
        kymo('explain', './app', f'app.c:{step}', '--debug-file', 'app.dbg').ok().out, r'\A\./app:work\+0x',
        'explain of a line')
    # the file that the program names itself, of another build
    run('objcopy', '--add-gnu-debuglink=app.dbg', 'app').ok()
    record(*words, '--', './app').ok()
    (tmp / 'app.dbg').write_bytes((tmp / 'other.dbg').read_bytes())
    sentence = (r'\./app has no debug information but \S+/app\.dbg, which is of another build: its build-id is [0-9a-f]{40}, '
                r"the program's is [0-9a-f]{40}; name the right one with --debug-file")
    check_matches(record('-p', './app:work count', '--', './app').err, sentence, 'another build by its link')
    check_matches(kymo('list', '--vars', './app:work').err, sentence, 'the same, listed')
    for command in (('explain', '-e', 'count + 1', './app', 'work'), ('explain', './app', f'app.c:{step}'),
                    ('list', '--vars', './app:work')):
        result = kymo(*command, '--debug-file', 'other.dbg')
        check_equal(result.out, '', f'nothing is shown by {command}')
        check_matches(result.err, refused, f'sentence of {command}')


INLINED = r'''
static volatile int sink;
static int helper(int a)
{
	int t = a * 3;
	sink = t;
	if (t > 10)
		sink = t + a;
	return t;
}
__attribute__((noipa)) int one(int x) { sink = 1; return helper(x) + 1; }
__attribute__((noipa)) int two(int y) { sink = 2; return helper(y + 5) + 2; }
int main(void) { one(1); two(2); return helper(9); }
'''


def test_a_function_that_is_inlined_everywhere_is_recorded_where_it_is(tmp):
    """At each of its instances; those where its variables are not are left out, and told."""
    (tmp / 'app.c').write_text(INLINED)
    run(program('gcc'), '-O2', '-g', '-o', 'app', 'app.c').ok()
    check_equal(record('-p', './app:helper', '--', './app').status, 27, 'exit status')
    check_equal(event_counts(), {'app:helper': 3}, 'instances')
    result = record('-p', './app:helper a', '--', './app').ended(27)
    check_equal(result.warnings(), [
        "kymo: warning: 1 of 3 locations of helper is left out: column 14: there is no variable 'a' here; "
        'the function has none with a name'
    ], 'warnings')
    check_equal([event['a'] for event in events()], [1, 7], 'values')
    line = INLINED.splitlines().index('\tint t = a * 3;') + 1
    record('-p', f'./app:app.c:{line} a', '--', './app').ended(27)
    check_equal([event['a'] for event in events()], [1, 7], 'values by line')
    record('-p', './app:helper b', '--', './app').refused("there is no variable 'b' here", 2)
