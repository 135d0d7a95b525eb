"""Filters and expressions of SDT probes: arg0 is the first argument of each location, wherever that has it."""
import json
import re
from pathlib import Path

from kymotest import (check, check_equal, check_matches, events, kymo, need_root, program, record, run, skip,
                      target_path, timeout)

PYTHON = Path('/usr/bin/python3')

PROGRAM = r'''
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sdt.h>
struct conn { int fd; const char *peer; };
static int total;
static const char *word;
__attribute__((noipa)) void query(const char *text, long size, int *counts, struct conn *conn, signed char small)
{
	volatile short near = small * 3;
	DTRACE_PROBE6(shop, query, text, size, counts[size & 3], conn, small, near);
	total += 77777; /* of more bytes than a jump has */
	counts[size & 3]++;
}
__attribute__((noipa)) void again(struct conn *conn, int a, const char *text, signed char b, int *counts, long size)
{
	total += (int)size;
	DTRACE_PROBE6(shop, query, text, size + a, counts[b & 3], conn, b, 7);
}
__attribute__((noipa)) void globals(const char *text)
{
	word = text;
	total++;
	DTRACE_PROBE2(shop, globals, total, word);
}
__attribute__((noipa)) void one(const char *text) { DTRACE_PROBE1(shop, one, text); }
int main(void)
{
	static const char *const words[] = { "select", "insert", "a text that is longer than eight bytes" };
	struct conn *conn = malloc(sizeof(*conn));
	int *counts = calloc(4, sizeof(*counts));

	*conn = (struct conn){ 5, strdup("peer-5") };
	for (int i = 0; i < 9; i++) {
		query(words[i % 3], i * 100, counts, conn, (signed char)-i);
		again(conn, i, words[2 - i % 3], (signed char)i, counts, 1000);
		globals(words[i % 2]);
		one(i ? words[0] : NULL);
	}
}
'''

WORDS = ['select', 'insert', 'a text that is longer than eight bytes']


def build(tmp, *flags, compiler='gcc'):
    if not any(Path(directory, 'sys/sdt.h').exists()
               for directory in ('/usr/include', '/usr/include/x86_64-linux-gnu')):
        skip('<sys/sdt.h> is not installed (systemtap-sdt-dev)')
    (tmp / 'shop.c').write_text(PROGRAM)
    run(program(compiler), *flags, '-w', '-o', 'shop', 'shop.c', seconds=60).ok()


def queries():
    """What is passed to shop:query, in order: text, size, count, small, near."""
    counts = [0] * 4
    for i in range(9):
        yield WORDS[i % 3], i * 100, counts[i * 100 & 3], -i, -i * 3
        counts[i * 100 & 3] += 1
        yield WORDS[2 - i % 3], 1000 + i, counts[i & 3], i, 7


def values(*names, name='shop:query'):
    return [tuple(event.fields[field] for field in names) for event in events() if event.name == name]


@timeout(120)
def test_arguments_are_those_of_each_location(tmp):
    for flags in (('-O2', ), ('-O0', ), ('-O1', '-no-pie'), ('-O1', '-static')):
        build(tmp, *flags)
        record('-m', 'shop:query str(arg0) size=arg1 count=$arg3:u32 peer=str(*(char **)(arg3+8)) fd=*(int *)arg3 '
               'sum=(arg4+arg5) func', '--', './shop').ok()
        check_equal(
            values('arg0', 'size', 'count', 'peer', 'fd', 'sum', 'func'),
            [(f'"{text}"', str(size), str(count), '"peer-5"', '5', str(small + near), '"again"' if i % 2 else '"query"')
             for i, (text, size, count, small, near) in enumerate(queries())], f'values with {flags}')
        record('-m', 'shop:globals n=arg0 word=str(arg1) first=*(char *)arg1', '--', './shop').ok()
        check_equal(values('n', 'word', name='shop:globals')[0][1], '"select"', f'a global with {flags}')
        check_equal(len(values('n', 'word', name='shop:globals')), 9, f'hits with {flags}')


def test_a_filter_leaves_the_fields_of_the_probe(tmp):
    build(tmp, '-O1')
    record('-m', 'shop:query /str(arg0) == "insert" && arg1 > 300/', '--', './shop').ok()
    check_equal(values('arg2', 'arg5', 'arg6'), [(str(size), str(small), str(near))
                                                 for text, size, _, small, near in queries()
                                                 if text == 'insert' and size > 300], 'what the filter lets through')
    record('-m', 'shop:* /str(arg0) == "select"/ (arg0 != 0)', '--', './shop').ok()
    counts = {}
    for event in events():
        counts[event.name] = counts.get(event.name, 0) + 1
    check_equal(counts, {'shop:query': 6, 'shop:one': 8}, 'events of several probes')


def test_probes_without_such_an_argument_are_left_out(tmp):
    build(tmp, '-O1')
    result = record('-m', 'shop:* text=arg1', '--', './shop').ok()
    check_matches(result.err, r'skipped 1 of \d markers .*shop:one: it has 1 argument, and no arg1', 'a warning')
    check_equal({event.name for event in events()}, {'shop:query', 'shop:globals'}, 'events')
    record('-m', 'shop:one arg2', '--', './shop').refused('it has 1 argument, and no arg2')


def test_memory_that_is_not_there_is_a_fault(tmp):
    build(tmp, '-O1')
    record('-m', 'shop:one str(arg0)', '--', './shop').ok()
    lines = kymo('report', '--events').ok().out.splitlines()
    check_equal([line.rpartition('=')[2] for line in lines if 'shop:one' in line], ['(fault)'] + ['"select"'] * 8,
                'values')


@timeout(120)
def test_words_are_refused_where_they_are_wrong(tmp):
    for words, sentence in (
        ('shop:query size', "column 12: variables by name ('size') are not known at markers; write arg0 for the first "
         'argument of an SDT probe'), ('shop:query arg8', 'column 12: arguments of an SDT probe are numbered arg0 to arg7'),
        ('shop:query +0($arg1):string',
         'column 15: arguments of SDT probes are known to expressions: write str(arg0) or *(int *)(arg0 + 8)'),
        ('shop:query /arg0 >/', 'column 19: expected a value, such as arg0, %di or 42'),
        ('shop:query retval', "column 12: 'retval' is known at a function's return only; write -r or %return"),
        ('shop:query sample 1/10', "column 12: markers are not sampled: leave 'sample 1/10' out")):
        record('-m', words, '--', 'true').wrong_words(sentence)
    record('-m', 'marked:* arg0', '--', target_path('marked'), '-n', '2').refused(
        "it is one of kymo's own, whose fields are recorded as they are")


GDB = r'''
import gdb, json
rows = []

class Look(gdb.Breakpoint):
    def stop(self):
        rows.append([self.argument(i) for i in (1, 2, 4, 5)])
        return False

    def argument(self, i):
        try:
            return str(int(gdb.parse_and_eval(f'$_probe_arg{i}')))
        except gdb.error:  # gdb 13 knows no %r8b
            return None

Look('-probe-stap shop:query')
gdb.execute('run')
json.dump(rows, open('found.json', 'w'))
'''


@timeout(120)
def test_gdb_has_the_same_arguments(tmp):
    (tmp / 'look.py').write_text(GDB)
    for compiler in ('gcc', 'clang'):
        for level in ('-O0', '-O2', '-O3'):
            build(tmp, level, compiler=compiler)
            run(program('gdb'), '-nx', '-batch', '-iex', 'set debuginfod enabled off', '-x', 'look.py', './shop',
                seconds=60).ok()
            told = json.loads((tmp / 'found.json').read_text())
            record('-m', 'shop:query arg1 arg2 arg4 arg5', '--', './shop').ok()
            found = values('arg1', 'arg2', 'arg4', 'arg5')
            check_equal((len(told), len(found)), (18, 18), f'hits with {compiler} {level}')
            known = [(mine, theirs) for mine, theirs in zip(sum(found, ()), sum(told, [])) if theirs is not None]
            check(len(known) >= 50, f'what gdb knows with {compiler} {level}', told)
            check_equal(*zip(*known), f'arguments with {compiler} {level}')


def python_has_probes():
    return b'import__find__load__start' in PYTHON.resolve().read_bytes()


@timeout(120)
def test_a_real_program_tells_its_texts():
    if not python_has_probes():
        skip('this python3 has no SDT probes')
    command = PYTHON, '-c', 'import json'
    record('-m', 'python:import__find__load__start str(arg0)', '-m',
           'python:function__entry /str(arg1) == "_coro" && arg2 < 1000/ line=arg2 str(arg0)', '--', *command).ok()
    imported = [event.fields['arg0'] for event in events() if event.name == 'python:import__find__load__start']
    check({'"json"', '"json.decoder"', '"re"'} <= set(imported), 'what is imported', imported)
    entries = [event.fields['arg0'] for event in events() if event.name == 'python:function__entry']
    check(entries and set(entries) == {'"<frozen _collections_abc>"'}, 'calls of a function of that name', entries)


@timeout(120)
def test_bpftrace_says_the_same(tmp):
    need_root()
    if not python_has_probes():
        skip('this python3 has no SDT probes')
    path, program_text = PYTHON.resolve(), tmp / 'imports.py'
    program_text.write_text('import json, ast\n')
    script = f'usdt:{path}:python:import__find__load__start {{ printf("found %s\\n", str(arg0)); }}'
    other = run(program('bpftrace'), '-e', script, '-c', f'{path} {program_text}', seconds=60)
    theirs = re.findall(r'^found (.*)$', other.out, re.MULTILINE)
    if not theirs:
        skip(f'bpftrace cannot run here: {other.err.strip()[:300]}')
    record('-m', 'python:import__find__load__start name=str(arg0)', '--', path, program_text)
    mine = [event.fields['name'].strip('"') for event in events()]
    check_equal(mine, theirs, 'modules that are looked for')


@timeout(120)
def test_there_is_room_for_many_narrow_arguments(tmp):
    build(tmp, '-O0')
    words = ' '.join(f'v{i}=(arg4*arg2+arg5*arg4-arg2*{i}-(arg4^arg5)+(arg2&arg4))' for i in range(8))
    record('-m', f'shop:query /arg4+arg5+arg2 != 12345/ {words}', '--', './shop').ok()
    found = values(*(f'v{i}' for i in range(8)))
    expected = [
        tuple(str(small * count + near * small - count * i - (small ^ near) + (count & small)) for i in range(8))
        for _, _, count, small, near in queries()
    ]
    check_equal(found, expected, 'values')
