"""Values are shown as the source has them: by the names of enumerations, as truth values, characters, text and arrays.
"""
import json
import re

from kymotest import (check, check_equal, check_matches, events, kymo, program, record, report_json, run,
                      timeout)
from shown import lines

PROGRAM = r'''
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
enum color { RED, GREEN, BLUE, CRIMSON = RED };
enum level { LOW = -5, HIGH = 7 };
enum access { NONE, READ = 1, WRITE = 2, EXECUTE = 4 };
enum size { SMALL, LARGE = 4000000000u };
typedef enum { A_BYTE = 200, ANOTHER = 201 } __attribute__((packed)) narrow_t;
struct thing {
	char kind; enum color color; _Bool is_open; char name[8]; int table[2][2]; uint8_t bytes[3]; short s[3];
	enum color colors[3]; _Bool bits[2]; const char *names[2]; enum level level : 5; narrow_t narrow; signed char numbers[2];
};
__attribute__((noipa)) enum level paint(struct thing *t, enum color color, enum access access, enum size size, _Bool ok, char c)
{
	return t->color + color + access > 3 ? HIGH : LOW;
}
__attribute__((noipa)) int far(int *at, long *words, char *text) { return at != 0; }
int main(void)
{
	struct thing t = { 'k', GREEN, 1, "thing", { { 1, -2 }, { 3, 4 } }, { 200, 1, 0 }, { 7, 8, -9 }, { BLUE, RED, 9 }, { 1, 0 },
			   { (char *)0x10, (char *)0x20 }, LOW, A_BYTE, { -1, 5 } };
	char *pages = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < 10; i++)
		paint(&t, i % 4, i, i & 1 ? LARGE : SMALL, i & 1, "ab\n'\0\xff"[i % 6]);
	__builtin_memset(pages, 'x', 4096);
	munmap(pages + 4096, 4096);
	/* a hole behind 2 and a half numbers, behind one and a bit, behind 3 characters */
	far((int *)(pages + 4096 - 10), (long *)(pages + 4096 - 9), pages + 4096 - 3);
	far((int *)(pages + 4096), (long *)(pages + 4096), pages + 4096);
}
'''

COLORS, LEVELS = ['RED', 'GREEN', 'BLUE', '3'], {-5: 'LOW', 7: 'HIGH'}


def build(tmp, compiler='gcc', *options):
    (tmp / 'things.c').write_text(PROGRAM)
    run(program(compiler), '-g', '-O1', '-w', *options, '-o', 'things', 'things.c', seconds=60).ok()


def access_of(value):
    return ' | '.join(name for bit, name in ((1, 'READ'), (2, 'WRITE'),
                                             (4, 'EXECUTE')) if value & bit) or 'NONE' if value < 8 else str(value)


@timeout(120)
def test_enumerations_and_truth_values_are_shown_by_name(tmp):
    for compiler in (('gcc', ), ('gcc', '-gdwarf-4'), ('clang', '-O0')):
        build(tmp, *compiler)
        record('-p', './things:paint t->color t->is_open t->level t->narrow access size ok', '-p',
               'p:plain ./things:paint color:u32 number=(color+0)', '-r', './things:paint retval', '--',
               './things').ok()
        check_equal(lines('things:paint'), [
            f'color=GREEN is_open=true level=LOW narrow=A_BYTE access={access_of(i)} size={"LARGE" if i & 1 else "SMALL"} ok={"true" if i & 1 else "false"}'
            for i in range(10)
        ], f'events with {compiler}')
        check_equal(lines('plain'), [f'color={i % 4} number={i % 4}' for i in range(10)], 'types of the user\'s own')
        check_equal(set(lines('things:paint%return')), {'retval=HIGH', 'retval=LOW'}, 'returns')
        # CTF has enumerations: other readers show the names as well
        made = [event for event in events() if event.name == 'things:paint']
        check_equal([(event.named('color'), event.named('level'), event['level'], event.named('ok'), event['size'])
                     for event in made], [('GREEN', 'LOW', -5, 'true' if i & 1 else 'false', 4000000000 * (i & 1))
                                          for i in range(10)], 'by babeltrace2')
        rows = [json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()]
        row = next(row for row in rows if row['name'] == 'things:paint%return')
        check_equal((row['args'], row['names']), ({'retval': -5}, {'retval': 'LOW'}), 'JSON of a return')
        check('names' not in next(row for row in rows if row['name'] == 'plain'), 'no names of numbers')
        values = next(probe for probe in report_json()['probes']
                      if probe['name'] == 'things:paint%return')['arguments'][0]['values']
        check_equal({value['name']: value['value'] for value in values}, {'HIGH': 7, 'LOW': -5}, 'names in the summary')
        check_matches(kymo('report').ok().out, r'retval .*\n +HIGH \d+ █+', 'a panel of the summary')


FLAGS = '''
#include <math.h>
enum flags { NONE, A = 1, B = 2, C = 4, D = 8 };
enum many { ZERO, LAST = 50 };
__attribute__((noipa)) void take(enum flags flags, enum many many, double number, const float *pair) { }
int main(void)
{
	for (int i = 0; i < 48; i++)
		take(i % 12, i % 40, (double[]){ NAN, INFINITY, -INFINITY, 1.5 }[i % 4], (float[]){ -INFINITY, i });
}
'''


@timeout(120)
def test_flags_have_names_in_the_summary_and_numbers_that_are_not_finite_are_strings(tmp):
    (tmp / 'flags.c').write_text(FLAGS)
    run(program('gcc'), '-g', '-O1', '-o', 'flags', 'flags.c', seconds=60).ok()
    record('-p', './flags:take flags many number pair[0..1]', '--', './flags').ok()
    summary = kymo('report').ok().out
    for i in range(12):
        name = ' | '.join(letter for bit, letter in enumerate('ABCD') if i & 1 << bit) or 'NONE'
        check_matches(summary, rf' {re.escape(name)} 4 █', f'the flags {i} in the summary')
    check_matches(summary, r' ZERO 2 █', 'a value with a name among many')
    check_matches(summary, r' \(others\) 8 █', 'what is beyond 32 of them')
    arguments = {argument['name']: argument for argument in report_json()['probes'][0]['arguments']}
    check_equal({value['value']: value['name'] for value in arguments['flags']['values']}[9], 'A | D',
                'flags in the JSON of the summary')
    check_equal((arguments['many']['values'], arguments['number']['not_finite']), (None, 36), 'what is too much for it')
    rows = [json.loads(line)['args'] for line in kymo('report', '--events', '--json').ok().out.splitlines()]
    check_equal([(row['number'], row['pair']) for row in rows[:4]], [('nan', ['-inf', 0]), ('inf', ['-inf', 1]),
                                                                     ('-inf', ['-inf', 2]), (1.5, ['-inf', 3])],
                'JSON of events')


@timeout(120)
def test_keys_of_aggregations_have_names(tmp):
    build(tmp)
    result = record('--count', './things:paint by color, ok', '--count', './things:paint by retval', '--',
                    './things').ok()
    check_matches(result.err + result.out, r'color +ok +count\n(.*\n)* +RED +false +3 ', 'the table')
    colors, levels = report_json()['aggregations']
    check_equal({tuple(row['keys']): (row['names'], row['count']) for row in colors['rows']},
                {(0, 0): (['RED', 'false'], 3), (1, 1): (['GREEN', 'true'], 3), (2, 0): (['BLUE', 'false'], 2), (3, 1):
                 ([None, 'true'], 2)}, 'rows')
    check_equal({row['names'][0] for row in levels['rows']}, set(LEVELS.values()), 'what is returned')
    check_equal(
        {(event.named('color'), event['count'])
         for event in events() if event.name == 'count:./things:paint' and 'color' in event.fields}, {('RED', 3),
                                                                                                      ('GREEN', 3),
                                                                                                      ('BLUE', 2),
                                                                                                      ('<unknown>', 2)},
        'rows by babeltrace2')


@timeout(120)
def test_characters_texts_and_arrays_are_shown_as_such(tmp):
    build(tmp)
    record('-p', "./things:paint t->kind c t->name piece=t->name[1..3] t->table t->s[1..2] t->bytes t->numbers", '-p',
           'p:more ./things:paint t->colors t->bits t->names c2=c:u8', '--', './things').ok()
    shown = ["'a'", "'b'", r"'\n'", r"'\''", r"'\0'", r"'\xff'"]
    check_equal(lines('things:paint'), [
        f'kind=\'k\' c={shown[i % 6]} name="thing" piece="hin" table={{{{1, -2}}, {{3, 4}}}} s={{8, -9}} bytes=c8 01 00 numbers={{-1, 5}}'
        for i in range(10)
    ], 'events')
    check_equal(set(line.partition(' c2')[0] for line in lines('more')),
                {'colors={BLUE, RED, 9} bits={true, false} names={0x10, 0x20}'}, 'other arrays')
    row, more = (json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()[:2])
    check_equal(more['names'], {'colors': ['BLUE', 'RED', None], 'bits': ['true', 'false']}, 'names in JSON')
    check('names' not in row, 'no names of characters and numbers', row)
    check_equal(
        row['args'], {
            'kind': 107, 'c': 97, 'name': 'thing', 'piece': 'hin', 'table': [[1, -2], [3, 4]], 's': [8, -9], 'bytes':
            'c80100', 'numbers': [-1, 5]
        }, 'JSON')
    first = events()[0].line
    for words in ('name = "thing"', 'piece = "hin"', 'table = [ [0] = { anonymous1 = [ [0] = 1, [1] = -2 ] }, [1] =',
                  's = [ [0] = 8, [1] = -9 ]'):
        check(words in first, f'{words} by babeltrace2', first)


@timeout(120)
def test_arrays_end_before_memory_that_is_not_there(tmp):
    build(tmp)
    record('-p', './things:far four=at[0..3] words[0..1] text[0..7]', '-p',
           'p:kernels ./things:far four=+0(%di):u32[4] words=+0(%si):s64[2] text=+0(%dx):char[8]', '--',
           './things').ok()
    x4, x8 = 0x78787878, 0x7878787878787878
    for name in ('things:far', 'kernels'):
        check_equal(lines(name), [
            f'four={{{x4}, {x4}}} (fault) words={{{x8}}} (fault) text="xxx" (fault)',
            'four=(fault) words=(fault) text=(fault)'
        ], f'events of {name}')
    rows = [json.loads(line)['args'] for line in kymo('report', '--events', '--json').ok().out.splitlines()]
    check_equal(rows[2:], 2 * [{'four': None, 'words': None, 'text': None}], 'JSON of what is not there')


def test_arrays_and_characters_of_programs_as_they_are_installed():
    """The kernel's grammar needs no debug information."""
    record(
        '-p',
        'libc:write n=$arg3:s64 text=+0(%si):char[8] codes=+0(%si):u8[4] wide=+0(%si):u16[2] first=+0(%si):char whole=+0(%si):string',
        '--', program('bash'), '-c', 'printf "hello there\\n"; exec redis-cli -v').ok()
    found = lines('libc:write')
    check(
        any(
            line.startswith(
                'n=12 text="hello th" codes={104, 101, 108, 108} wide={25960, 27756} first=\'h\' whole="hello there\\n')
            for line in found), 'of bash', found)
    check(
        any(
            re.search(r'text="redis-cl" codes=\{114, 101, 100, 105\} wide=\{25970, 26980\} first=\'r\'', line)
            for line in found), 'of redis-cli', found)


def test_python_and_sqlite_by_types_that_the_user_names(tmp):
    record('-p', 'libsqlite3:sqlite3_prepare_v2 sql=+0(%si):char[10] codes=+0(%si):s8[3]', '--', program('sqlite3'),
           ':memory:', 'SELECT 40+2;').ok()
    check_matches('\n'.join(lines('libsqlite3:sqlite3_prepare_v2')), r'sql="SELECT 40\+" codes=\{83, 69, 76\}',
                  'sqlite3')
    record('-p', 'libc:getenv name=+0(%di):char[6] first=+0(%di):char', '--', '/usr/bin/python3', '-c', 'pass').ok()
    check_matches('\n'.join(lines('libc:getenv')), r"name=\"PYTHON\" first='P'", 'python3')


@timeout(120)
def test_words_are_refused_where_they_are_wrong(tmp):
    build(tmp)
    for spec, sentence in (
        ('./things:paint t->table:u32',
         'column 25: memory as a whole has no type; leave it out, or write one of its parts'),
        ('./things:paint %di:char[4]',
         'column 24: an array is in memory; write +0(%di):char[4] for the one that it points to'),
        ('./things:paint +0(%di):char[513]',
         "column 24: no array 'char[513]'; write an integer type or char and how many, such as u32[4], of 512 bytes at most"
         ),
        ('./things:paint t->table[0..600]',
         'column 16: this has 4808 bytes, and at most 512 are recorded of it; write members or a piece, such as buf(p, 512)'
         )):
        record('-p', spec, '--', './things').wrong_words(sentence)
