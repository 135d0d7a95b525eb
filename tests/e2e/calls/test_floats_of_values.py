"""Values that are floating-point numbers are those of the program, in events, summaries and JSON."""
import json
import struct

from kymotest import check, check_equal, check_matches, events, kymo, program, record, report_json, run, timeout
from shown import lines

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
    check_equal(lines('arrays:take'), 2 * ['d={1.5, -1e+300} f={{0.1, 2}, {-0, inf}} piece={-1e+300}'], 'events')
    rows = [json.loads(line)['args'] for line in kymo('report', '--events', '--json').ok().out.splitlines()]
    check_equal(rows, 2 * [{'d': [1.5, -1e300], 'f': [[0.1, 2], [-0.0, 'inf']], 'piece': [-1e300]}], 'JSON')
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
