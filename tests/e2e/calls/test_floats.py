"""Expressions of floating-point numbers give what the program itself computes, in filters and arguments, and leave its
state alone."""
import json
import struct

from kymotest import check_equal, kymo, program, record, run, timeout

PROGRAM = r'''
#define _GNU_SOURCE
#include <fenv.h>
#include <math.h>
#include <stdio.h>
struct point { double x; float y; double weights[3]; };
__attribute__((noipa)) double work(struct point *p, double d, float f, long n)
{
	return d * f + n;
}
int main(int argc, char **argv)
{
	static const double reals[] = { 0, -0.0, 1, -1.5, 0.1, 1e300, 5e-324, 123456.789, INFINITY, NAN };
	static const float singles[] = { 0, 1.5f, -0.1f, 3e38f, 1e-40f, 7, NAN };
	int flags = 0, traps;
	double sum = 0;

	if (argc > 1)
		feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
	for (int i = 0; i < 70; i++) {
		const double d = reals[i % 10];
		const float f = singles[i % 7];
		const long n = i * 1000003L - 20000000;
		struct point p = { d * 0.5, f, { d, f, i } };

		if (argc > 1 && (i % 10 > 4 || i % 7 > 2))
			continue;
		printf("%.17g %.9g %.17g %.17g %.17g %d %d %ld %d\n", d + f, f * 2, p.x / n, p.weights[1] - d * 1.5, (double)n * 0.1, d > f, d * 2 <= 1.5, isfinite(d) && fabs(d) < 1e18 ? (long)d : 0,
		       p.y != 0 ? 1 : 2);
		feclearexcept(FE_ALL_EXCEPT);
		work(&p, 1, 2, 3);
		flags |= fetestexcept(FE_ALL_EXCEPT);
		sum += work(&p, d, f, n);
	}
	traps = fegetexcept();
	fprintf(stderr, "flags %d traps %d\n", flags, traps);
	return 0;
}
'''
VALUES = 'a=(d + f) b=(f * 2) c=(p->x / n) e=(p->weights[1] - d * 1.5) g=((double)n * 0.1)'
WHOLES = 'd > f', 'd * 2 <= 1.5', '(long)d', 'p->y ? 1 : 2'


def build(tmp, *options):
    (tmp / 'floats.c').write_text(PROGRAM)
    run(program('gcc'), '-g', '-w', *options, '-o', 'floats', 'floats.c', '-lm', seconds=60).ok()


def rows(name):
    lines = [
        json.loads(line, parse_int=lambda text: -0.0 if text == '-0' else int(text))
        for line in kymo('report', '--events', '--json').ok().out.splitlines()
    ]
    return [list(line['args'].values()) for line in lines if line['name'] == name]


def written(row):
    """The values as text, in which -0 and nan are themselves; the second is a float."""
    return [
        repr(struct.unpack('f', struct.pack('f', float(value)))[0] if i == 1 else float(value))
        for i, value in enumerate(row)
    ]


@timeout(120)
def test_values_are_those_that_the_program_computes(tmp):
    for options in (('-O2', ), ('-O0', ), ('-O1', '-gdwarf-4')):
        build(tmp, *options)
        wholes = ' '.join(f'w{i}=({text})' for i, text in enumerate(WHOLES))
        result = record('-p', f'p:reals ./floats:work {VALUES}', '-p', f'p:wholes ./floats:work {wholes}', '--',
                        './floats').ok()
        told = [[float(word) for word in line.split()] for line in result.out.splitlines()]
        reals, numbers = rows('reals')[1::2], rows('wholes')[1::2]  # each line is of the second call
        for row, line in zip(reals, told, strict=True):
            check_equal(written(row), written(line[:5]), f'computed with {options}')
        check_equal([row[:2] + row[3:] for row in numbers],
                    [[int(value) for value in line[5:7] + line[8:]] for line in told], f'comparisons with {options}')
        finite = [(row[2], int(line[7])) for row, line in zip(numbers, told) if line[7]]
        check_equal([a for a, _ in finite], [b for _, b in finite], f'whole numbers with {options}')


@timeout(120)
def test_filters_compare_them(tmp):
    build(tmp, '-O2')
    record('-p', './floats:work d f', '--', './floats').ok()
    calls = [[float(value) for value in row] for row in rows('floats:work')]
    for words, is_true in (('d > 1.5', lambda d, f: d > 1.5), ('!(d < f)', lambda d, f: not d < f),
                           ('d == d && f != 7', lambda d, f: d == d and f != 7),
                           ('d - f > 0.5e0 || f * -2 >= 3', lambda d, f: d - f > 0.5 or f * -2 >= 3),
                           ('(int)f == 1', lambda d, f: f == f and abs(f) < 2**31 and int(f) == 1)):
        record('-p', f'./floats:work /{words}/ d f', '--', './floats').ok()
        check_equal([[str(float(value)) for value in row] for row in rows('floats:work')],
                    [[str(value) for value in call] for call in calls if is_true(*call)], f'filter {words}')


@timeout(120)
def test_the_flags_and_traps_of_the_program_stay_as_they_are(tmp):
    """A division by zero in a probe is no signal where the program asks for one, and no flag that it finds."""
    build(tmp, '-O2')
    untraced = run('./floats', 'traps').ok()
    result = record('-p', './floats:work a=(d / 0) b=(0.0 / (f - f)) c=(1e300 * 1e300 * d) /1 / (d - d) != 5/', '--',
                    './floats', 'traps').ok()
    check_equal((result.out, result.err.splitlines()[0]), (untraced.out, untraced.err.strip()), 'what the program says')
    check_equal(len(rows('floats:work')), len(untraced.out.splitlines()) * 2, 'records')
