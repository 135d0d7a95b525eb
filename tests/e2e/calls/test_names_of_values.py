"""Values are shown as the source has them: by the names of enumerations, as truth values, characters, text and arrays.
"""
import json
import re
import struct

from kymotest import (check, check_equal, check_matches, check_same, events, kymo, program, record, report_json, run,
                      timeout)

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


def lines(name):
    """What `kymo report --events` shows of each event of that name, behind its name."""
    return [
        line.partition(f'{name} ')[2] for line in kymo('report', '--events').ok().out.splitlines()
        if f' {name} ' in line
    ]


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
        f'kind=\'k\' c={shown[i % 6]} name="thing" piece="hin" table={{1, -2, 3, 4}} s={{8, -9}} bytes=c8 01 00 numbers={{-1, 5}}'
        for i in range(10)
    ], 'events')
    check_equal(set(line.partition(' c2')[0] for line in lines('more')),
                {'colors={BLUE, RED, 9} bits={true, false} names={0x10, 0x20}'}, 'other arrays')
    row, more = (json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()[:2])
    check_equal(more['names'], {'colors': ['BLUE', 'RED', None], 'bits': ['true', 'false']}, 'names in JSON')
    check('names' not in row, 'no names of characters and numbers', row)
    check_equal(
        row['args'], {
            'kind': 107, 'c': 97, 'name': 'thing', 'piece': 'hin', 'table': [1, -2, 3, 4], 's': [8, -9], 'bytes':
            'c80100', 'numbers': [-1, 5]
        }, 'JSON')
    first = events()[0].line
    for words in ('name = "thing"', 'piece = "hin"', 'table = [ [0] = 1, [1] = -2, [2] = 3, [3] = 4 ]',
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


FLOATS = r'''
#include <stdio.h>
struct pair { float x, y; };
struct thing { float x; double z; long double l; };
double total; static volatile float part;
__attribute__((noinline, noipa)) double mix(double d, float f, int n, struct thing *t, float g, double h, float i, double j, float k, double l, float m)
{
	total += d, part = f;
	return d * f + n + t->x + g + h + i + j + k + l + m;
}
__attribute__((noinline, noipa)) float half(float f) { return f / 2; }
__attribute__((noinline, noipa)) float same(float f) { return half(f * 2); }
__attribute__((noinline, noipa)) float later(struct pair p, float f) { return p.x - p.y + f; }
int main(void)
{
	struct thing t = { 0.1f, 1e300, 3 };
	double results[6];
	float halves[6], n = 0;

	for (int i = 0; i < 6; i++) {
		t.x = -t.x;
		printf("%.17g %.9g %d %.9g %.17g %.9g %.17g %.9g %.17g %.9g %.17g %.9g\n", i * 0.3, i * 0.7f, i, t.x, t.z, -1.5f * i, 1e-310 * i, 2.0f, 1 / 3.0, 0.0f, -0.0, 1e38f * i);
		results[i] = mix(i * 0.3, i * 0.7f, i, &t, -1.5f * i, 1e-310 * i, 2.0f, 1 / 3.0, 0.0f, -0.0, 1e38f * i);
		halves[i] = same(i * 0.1f);
		n += later((struct pair){ 1, 2 }, i);
	}
	for (int i = 0; i < 6; i++)
		printf("%.17g %.9g\n", results[i], halves[i]);
	return n > 1e9;
}
'''


def single(value):
    """The float that is nearest, as C converts; of JSON, what is not finite is a string."""
    return float('inf') if float(value) > 3.5e38 else struct.unpack('f', struct.pack('f', float(value)))[0]


def by_types(values, singles):
    return [single(value) if k in singles else value for k, value in enumerate(values)]


@timeout(120)
def test_floating_point_numbers_are_those_of_the_program(tmp):
    names = ['d', 'f', 'n', 'x', 'z', 'g', 'h', 'i']
    for compiler in (('gcc', '-O0'), ('gcc', '-O2'), ('gcc', '-O2', '-gdwarf-4'), ('clang', '-O0')):
        (tmp / 'floats.c').write_text(FLOATS)
        run(program(compiler[0]), *compiler[1:], '-g', '-w', '-o', 'floats', 'floats.c', seconds=60).ok()
        result = record('-p', './floats:mix d f n t->x t->z g h i', '-p', 'p:rest ./floats:mix j k l m total part',
                        '-r', './floats:mix retval', '-r', './floats:half retval', '--', './floats').ok()
        told = [[float(word) for word in line.split()] for line in result.out.splitlines()]
        rows = [json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()]

        def values(name):
            return [list(row['args'].values()) for row in rows if row['name'] == name]

        check_equal([list(row['args']) for row in rows if row['name'] == 'floats:mix'], 6 * [names], 'names')
        check_equal([by_types(row, (1, 3, 5, 7)) for row in values('floats:mix')],
                    [by_types(line[:8], (1, 3, 5, 7)) for line in told[:6]], f'parameters with {compiler}')
        check_equal([by_types(row[:4], (1, 3)) for row in values('rest')],
                    [by_types(line[8:12], (1, 3)) for line in told[:6]], f'the other parameters with {compiler}')
        check_equal([single(row[5]) for row in values('rest')], [0.0] + [single(line[1]) for line in told[:5]],
                    f'a static one with {compiler}')
        check_equal([float(row[0]) for row in values('floats:mix%return')], [line[0] for line in told[6:]],
                    f'what mix returns with {compiler}')
        check_equal([single(row[0]) for row in values('floats:half%return')], [single(line[1]) for line in told[6:]],
                    f'what half returns with {compiler}')
        by_name = {
            argument['name']: argument for argument in next(probe for probe in report_json()['probes']
                                                            if probe['name'] == 'floats:mix')['arguments']
        }
        check_equal([(by_name[name]['min'], by_name[name]['max']) for name in ('x', 'z', 'g')], [(-0.1, 0.1),
                                                                                                 (1e300, 1e300),
                                                                                                 (-7.5, 0)],
                    'range in JSON')
        check_matches(kymo('report').ok().out, r'\bx  -0\.1 … 0\.1, mean', 'range in the summary')
        first = events()[0].line
        check('f = 0, ' in first and 'x = -0.1, ' in first, 'by babeltrace2', first)


ARRAYS = r'''
struct thing { double d[2]; float f[2][2]; };
__attribute__((noinline, noipa)) int take(struct thing *t, double *p, int i) { return i; }
int main(void)
{
	struct thing t = { { 1.5, -1e300 }, { { 0.1f, 2 }, { -0.0f, 1 / 0.0f } } };
	for (int i = 0; i < 2; i++)
		take(&t, t.d, i);
}
'''


@timeout(120)
def test_arrays_of_floating_point_numbers_are_shown_as_such(tmp):
    (tmp / 'arrays.c').write_text(ARRAYS)
    run(program('gcc'), '-O1', '-g', '-w', '-o', 'arrays', 'arrays.c', seconds=60).ok()
    record('-p', './arrays:take t->d t->f piece=p[1..1]', '--', './arrays').ok()
    check_equal(lines('arrays:take'), 2 * ['d={1.5, -1e+300} f={0.1, 2, -0, inf} piece={-1e+300}'], 'events')
    rows = [json.loads(line)['args'] for line in kymo('report', '--events', '--json').ok().out.splitlines()]
    check_equal(rows, 2 * [{'d': [1.5, -1e300], 'f': [0.1, 2, -0.0, 'inf'], 'piece': [-1e300]}], 'JSON')
    check('d = [ [0] = 1.5, [1] = -1e+300 ]' in events()[0].line, 'by babeltrace2', events()[0].line)
    kymo('report').ok()


OLD_STYLE = '''
__attribute__((noinline, noipa)) float old(x, n, y) float x; int n; double y;
{
	return x + n + y;
}
int main(void)
{
	float sum = 0;
	for (int i = 1; i < 4; i++)
		sum += old(i * 0.5f, i, i * 0.25);
	return sum < 0;
}
'''


@timeout(120)
def test_a_float_that_is_passed_as_a_double_is_refused(tmp):
    (tmp / 'old.c').write_text(OLD_STYLE)
    for compiler in (('gcc', '-O0'), ('gcc', '-O2'), ('clang', '-O0')):
        run(program(compiler[0]), *compiler[1:], '-std=gnu99', '-g', '-w', '-o', 'old', 'old.c', seconds=60).ok()
        result = record('-p', './old:old x', '--', './old')
        check_equal((result.status, result.err.splitlines()[0]),
                    (2, "kymo: column 11: 'x' is passed as a double here: its function is defined without a prototype"),
                    f'sentence with {compiler}')
        record('-p', './old:old n y', '--', './old').ok()
        check_equal(lines('old:old'), [f'n={i} y={i * 0.25:g}' for i in (1, 2, 3)], f'the others with {compiler}')


RETURNS = r'''
#define NOT_INLINE __attribute__((noinline, noipa))
struct floats { float x, y; };
struct number { double d; };
struct mixed { int a; float b; };
struct nested { struct { float x[1]; } in[1]; union { float y; float z; }; };
union either { double d; long l; };
struct bits { int low : 4; float f; };
struct packed { char c; float f; } __attribute__((packed));
struct three { float x, y, z; };
struct large { long a[3]; };
NOT_INLINE struct floats floats(int i) { return (struct floats){ i * 0.5f, -i }; }
NOT_INLINE struct number number(int i) { return (struct number){ i * 0.25 }; }
NOT_INLINE struct mixed mixed(int i) { return (struct mixed){ i, i * 0.5f }; }
NOT_INLINE struct nested nested(int i) { struct nested n = { { { { i } } }, { i * 2 } }; return n; }
NOT_INLINE union either either(int i) { union either e = { .l = i }; return e; }
NOT_INLINE struct bits bits(int i) { return (struct bits){ i, i * 3 }; }
NOT_INLINE struct packed packed(int i) { return (struct packed){ i, i }; }
NOT_INLINE struct three three(int i) { return (struct three){ i, i, i }; }
NOT_INLINE struct large large(int i) { return (struct large){ { i } }; }
int main(void)
{
	double sum = 0;
	for (int i = 1; i < 4; i++)
		sum += floats(i).x + number(i).d + mixed(i).b + nested(i).y + either(i).l + bits(i).f + packed(i).f + three(i).x + large(i).a[0];
	return sum < 0;
}
'''


@timeout(120)
def test_small_structures_are_read_from_the_register_that_returns_them(tmp):
    (tmp / 'returns.c').write_text(RETURNS)
    probes = [('floats', 'retval.x retval.y', [[i * 0.5, -i] for i in (1, 2, 3)]),
              ('number', 'retval.d', [[i * 0.25] for i in (1, 2, 3)]),
              ('mixed', 'retval.a retval.b', [[i, i * 0.5] for i in (1, 2, 3)]),
              ('nested', 'y=retval.y', [[i * 2] for i in (1, 2, 3)]), ('either', 'retval.l', [[i] for i in (1, 2, 3)]),
              ('bits', 'retval.low retval.f', [[i, i * 3] for i in (1, 2, 3)])]
    for compiler in (('gcc', '-O2'), ('gcc', '-O0', '-gdwarf-4'), ('clang', '-O1')):
        run(program(compiler[0]), *compiler[1:], '-g', '-w', '-o', 'returns', 'returns.c', seconds=60).ok()
        record(*(word for name, values, _ in probes for word in ('-r', f'./returns:{name} {values}')), '--',
               './returns').ok()
        rows = [json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()]
        for name, _, expected in probes:
            check_equal([list(row['args'].values()) for row in rows if row['name'] == f'returns:{name}%return'],
                        expected, f'what {name} returns with {compiler}')
    for name, member, sentence in (
        ('packed', 'c',
         "the function returns a 'struct packed' in memory; %ax has its address, so write a member as in ((struct packed *)%ax)->x"
         ),
        ('large', 'a',
         "the function returns a 'struct large' in memory; %ax has its address, so write a member as in ((struct large *)%ax)->x"
         ), ('three', 'x',
             "the function returns a 'struct three' of more than 8 bytes, which one register does not have")):
        result = record('-r', f'./returns:{name} retval.{member}', '--', './returns')
        check_equal((result.status, result.err.splitlines()[0]), (2, f'kymo: column {12 + len(name)}: {sentence}'),
                    f'sentence about {name}')
    record('-r', './returns:large a=((struct large *)%ax)->a[0]', '--', './returns').ok()
    check_equal(lines('returns:large%return'), ['a=1', 'a=2', 'a=3'], 'by the address')


NO_INTEGERS = r'''
#define NOT_INLINE __attribute__((noinline, noipa))
struct two { double x, y; };
struct pair { int a, b; };
NOT_INLINE double real(int i) { return i + 0.25; }
NOT_INLINE long double extended(int i) { return i; }
NOT_INLINE _Complex double complex(int i) { return i; }
NOT_INLINE __int128 wide(int i) { return i; }
NOT_INLINE struct two two(int i) { return (struct two){ i, i }; }
NOT_INLINE struct pair pair(int i) { return (struct pair){ i, -1 }; }
NOT_INLINE long integer(int i) { return i; }
NOT_INLINE void nothing(int i) { }
int main(void)
{
	double sum = 0;
	for (int i = 1; i < 4; i++) {
		sum += real(i) + extended(i) + (double)complex(i) + wide(i) + two(i).x + pair(i).a + integer(i);
		nothing(i);
	}
	return sum < 0;
}
'''


@timeout(120)
def test_a_return_value_that_is_no_integer_is_not_taken_from_the_register_of_integers(tmp):
    (tmp / 'no.c').write_text(NO_INTEGERS)
    run(program('gcc'), '-O1', '-g', '-w', '-o', 'no', 'no.c', seconds=60).ok()
    for spec, column, sentence in (
        ('real retval /retval % 2/', 26,
         "'%' is for whole numbers, and this has a floating-point number; convert it: (long)x"),
        ('extended (retval)', 16, "the function returns a 'long double', which is not supported; float and double are"),
        ('complex retval', 14,
         "values of type 'complex double' are not supported"), ('wide retval', 11,
                                                                "values of type '__int128' are not supported"),
        ('two retval', 10,
         "the function returns a 'struct two' of more than 8 bytes, which one register does not have"),
        ('pair retval', 11, "this 'struct pair' is in registers, and not recorded as a whole; write its members")):
        result = record('-r', f'./no:{spec}', '--', './no')
        check_equal((result.status, result.err.splitlines()[0]), (2, f'kymo: column {column}: {sentence}'),
                    f'sentence about {spec}')
    record('-r', './no:real /retval > 1.5/ retval double=($retval * 2) whole=(int)retval', '--', './no').ok()
    check_equal(lines('no:real%return'), ['retval=2.25 double=4.5 whole=2', 'retval=3.25 double=6.5 whole=3'],
                'a double is computed with')
    record('-r', './no:integer /retval > 1/ retval', '-r', './no:nothing (retval & 0)', '-r', './no:pair retval.b',
           '--', './no').ok()
    check_equal(lines('no:integer%return'), ['retval=2', 'retval=3'], 'integers')
    check_equal(lines('no:pair%return'), 3 * ['b=-1'], 'a member')


@timeout(120)
def test_a_register_of_integers_is_not_taken_for_what_it_does_not_have(tmp):
    (tmp / 'no.c').write_text(NO_INTEGERS)
    run(program('gcc'), '-O1', '-g', '-w', '-o', 'no', 'no.c', seconds=60).ok()
    sentence = "'{}' returns a '{}', which the register of integers does not have; {}"
    for spec, words in (('real $retval', ('real', 'double', 'write ($retval)')),
                        ('real x=$retval:s32',
                         ('real', 'double', 'write ($retval)')), ('extended $retval', ('extended', 'long double',
                                                                                       'write %ax for that register')),
                        ('complex $retval', ('complex', 'complex double', 'write %ax for that register')),
                        ('two +0($retval)', ('two', 'struct two', 'write %ax for that register')),
                        ('wide $retval', ('wide', '__int128', 'write %ax for that register')),
                        ('rea[l] ($retval)', ('real', 'double', 'write ($retval)')), ('rea* /retval > 0/',
                                                                                      ('real', 'double',
                                                                                       'write ($retval)')),
                        ('[ir]*[rl] (retval)', ('real', 'double', 'name it alone, and write ($retval)'))):
        result = record('-r', f'./no:{spec}', '--', './no')
        check_equal((result.status, result.err.splitlines()[0]), (2, f'kymo: {sentence.format(*words)}'),
                    f'sentence about {spec}')
    result = record('-r', './no:[ir]*[rl] $retval', '--', './no').ok()
    check_matches(
        result.err,
        "^kymo: warning: of 2 functions of '\\[ir\\]\\*\\[rl\\]', \\$retval is not what 1 returns \\(first: 'real' returns a 'double', ",
        'a warning about a pattern')
    result = record('--sum', './no:rea* retval', '--', './no')
    check_equal((result.status, result.err.splitlines()[0]),
                (2, f'kymo: {sentence.format("real", "double", "write ($retval)")}'), 'an aggregation')
    record('-r', './no:inte* retval', '-r', 'r:pair ./no:pair $retval:s32', '-r', './no:real %ax', '-r',
           './no:noth* $retval', '--', './no').ok()
    check_equal(lines('no:integer%return'), ['retval=1', 'retval=2', 'retval=3'], 'integers of a glob')
    check_equal(lines('pair'), ['arg1=1', 'arg1=2', 'arg1=3'], 'half a structure')
    (tmp / 'stub.s').write_text(
        '.globl main\n.type main, @function\nmain: mov $7, %eax\nnopl 0x100(%rax)\nret\n.fill 16, 1, 0x90\n.size main, . - main\n.section .note.GNU-stack, "", @progbits\n'
    )
    run(program('gcc'), '-Wa,--gdwarf-5', '-no-pie', '-o', 'stub', 'stub.s', seconds=60).ok()
    record('-r', './stub:main $retval:u32 retval', '--', './stub').ended(7)
    check_equal(lines('stub:main%return'), ['arg1=7 retval=7'], 'a function of an assembler, whose type is left open')


CLASSES = r'''
#define NOT_INLINE __attribute__((noinline, noipa))
template<typename T> struct holder { T x; holder(T x) : x(x) {} holder(const holder &other) : x(other.x) {} };
struct plain { int x; plain(int x) : x(x) {} bool is(const plain &other) const { return x == other.x; } };
struct real : plain { float y; real(int x) : plain(x), y(x * 0.5f) {} };
struct empty {};
struct floats : empty { float x; };
struct ended { int x; ~ended() { x = 0; } };
struct copied { int x; copied(int x) : x(x) {} copied(const copied &other) : x(other.x) {} };
struct within { copied c; };
struct table { virtual int get() { return 1; } };
extern "C" {
NOT_INLINE plain get_plain(int i) { return plain(i); }
NOT_INLINE real get_real(int i) { return real(i); }
NOT_INLINE floats get_floats(int i) { floats f; f.x = i * 0.5f; return f; }
NOT_INLINE ended get_ended(int i) { return ended{ i }; }
NOT_INLINE copied get_copied(int i) { return copied(i); }
NOT_INLINE within get_within(int i) { return within{ copied(i) }; }
NOT_INLINE holder<int> get_holder(int i) { return holder<int>(i); }
NOT_INLINE table get_table(int) { return table(); }
}
int main()
{
	int sum = 0;
	for (int i = 1; i < 4; i++)
		sum += get_plain(i).is(plain(i)) + get_real(i).y + get_floats(i).x + get_ended(i).x + get_copied(i).x + get_within(i).c.x + get_holder(i).x + get_table(i).get();
	return sum < 0;
}
'''


@timeout(180)
def test_objects_that_return_in_memory_are_not_taken_from_a_register(tmp):
    (tmp / 'classes.cc').write_text(CLASSES)
    for compiler in (('g++', '-O1'), ('g++', '-O0', '-gdwarf-4'), ('clang++', '-O1')):
        run(program(compiler[0]), *compiler[1:], '-g', '-w', '-o', 'classes', 'classes.cc', seconds=60).ok()
        record('-r', './classes:get_plain retval.x', '-r', './classes:get_real retval.x retval.y', '-r',
               './classes:get_floats retval.x', '--', './classes').ok()
        check_equal([lines(f'classes:get_{name}%return') for name in ('plain', 'real', 'floats')],
                    [['x=1', 'x=2', 'x=3'], ['x=1 y=0.5', 'x=2 y=1', 'x=3 y=1.5'], ['x=0.5', 'x=1', 'x=1.5']],
                    f'what is in registers with {compiler}')
        for name in ('ended', 'copied', 'within', 'holder', 'table'):
            result = record('-r', f'./classes:get_{name} retval.x', '--', './classes')
            check_equal(result.status, 2, f'status of {name} with {compiler}')
            check_matches(
                result.err,
                rf"^kymo: column {16 + len(name)}: the function returns a '[^']*{name}.*(has its address, so write|it is not certain in which register)",
                f'sentence about {name}')


def test_what_cannot_be_done_with_a_floating_point_number_is_told(tmp):
    (tmp / 'floats.c').write_text(FLOATS)
    run(program('gcc'), '-g', '-w', '-o', 'floats', 'floats.c', seconds=60).ok()
    for spec, sentence in (
        ('./floats:mix /f/',
         "column 15: a filter is a number or a comparison, such as /arg0 > 4K/ or /str(arg0) == \"x\"/"),
        ('./floats:mix (f & 1)',
         "column 17: '&' is for whole numbers, and this has a floating-point number; convert it: (long)x"),
        ('./floats:later f', "column 16: 'f' comes after a structure that is passed by value"),
        ('./floats:mix t->l', "column 15: this is a 'long double', which is not supported; float and double are")):
        result = record('-p', spec, '--', './floats')
        check_equal((result.status, result.err.splitlines()[0]), (2, f'kymo: {sentence}'), f'sentence about {spec}')


def test_values_of_aggregations_that_are_no_integers_are_named_as_they_are_written(tmp):
    (tmp / 'floats.c').write_text(FLOATS)
    run(program('gcc'), '-g', '-w', '-o', 'floats', 'floats.c', seconds=60).ok()
    what = 'is a text, bytes or a floating-point number'
    for words, sentence in ((('--count', './floats:mix by n, d'),
                             "column 20: keys are integers and texts, and 'd' is bytes or a floating-point number"),
                            (('--sum', './floats:mix t->x by n'),
                             f"column 14: aggregations are of integers, and 't->x' {what}"),
                            (('--hist', './floats:half retval'),
                             f"column 15: aggregations are of integers, and 'retval' {what}")):
        result = record(*words, '--', './floats')
        check_equal((result.status, result.err.splitlines()[0]), (2, f'kymo: {sentence}'), f'sentence about {words}')


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
        result = record('-p', spec, '--', './things')
        check_equal(result.status, 2, f'status of {spec}')
        check_same(result.err.splitlines()[0], f'kymo: {sentence}', f'sentence about {spec}')


@timeout(120)
def test_an_array_of_floats_may_be_the_last_of_eight_arguments(tmp):
    (tmp / 'eight.c').write_text(
        'float pair[2] = { 0.5f, 1.5f };\n__attribute__((noipa)) void f(int a) { }\nint main(void) { f(7); return 0; }\n'
    )
    run(program('gcc'), '-O1', '-g', '-o', 'eight', 'eight.c', seconds=60).ok()
    numbers = ' '.join(f'n{i}=a' for i in range(7))
    for words in (f'{numbers} pair', f'pair {numbers}'):
        record('-p', f'./eight:f {words}', '--', './eight').ok()
        check_equal(len(lines('eight:f')), 1, f'records of {words}')
        check_matches(lines('eight:f')[0], r'\{ ?0\.5, 1\.5 ?\}|\[0\.5, 1\.5\]', f'the array among {words}')
