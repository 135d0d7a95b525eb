"""What puts markers into the sources of real programs, and what compares their times. (Nothing is fetched or measured
here.)"""
import re
import sys

from kymotest import SOURCE, check_equal, check_matches, check_same, run

INSERT = SOURCE / 'examples/real/insert'

PROGRAM = '''\
#include <stdio.h>
#ifdef SPECIAL
#include <special.h>
#endif

/* int work(int n) { "not this one */
int work(int n);

int other(int n)
{
	return work(n) ? n : '{';
}

int
work(int n)
{
	int total = 0;	/* total += n; */

	while (n--)
		total += n;
	printf("total += %d; }\\n", total);
	return total;
}
'''
MARKERS = '''\
# A comment.

work.c work
	after int total = 0;
	MARK(work_begin, "n=%d", n);

work.c work
	before return
	MARK(work_end, "total=%d", total);
'''


def insert(tmp, markers, program=PROGRAM, options=()):
    (tmp / 'work.c').write_text(program)
    (tmp / 'markers').write_text(markers)
    return run(INSERT, *options, tmp / 'markers', tmp)


def test_markers_stand_where_they_are_asked_for(tmp):
    insert(tmp, MARKERS).ok()
    expected = PROGRAM.replace('<stdio.h>\n', '<stdio.h>\n#include <kymo/marker.h>\n')
    expected = expected.replace('total += n; */\n', 'total += n; */\n\tMARK(work_begin, "n=%d", n);\n')
    expected = expected.replace('\treturn total;', '\tMARK(work_end, "total=%d", total);\n\treturn total;')
    check_same((tmp / 'work.c').read_text(), expected, 'work.c')


def test_a_marked_program_compiles_and_has_its_markers_or_none(tmp):
    for options, names in ((), {'work_begin', 'work_end'}), (('--away', ), set()):
        insert(tmp, MARKERS, PROGRAM + '\nint main(void)\n{\n\treturn other(3) != 3;\n}\n', options).ok()
        run('gcc', '-O2', '-Wall', '-Werror', f'-I{SOURCE}/include', '-o', tmp / 'work', tmp / 'work.c').ok()
        check_equal(run(tmp / 'work').ok().out, 'total += 3; }\n', 'its output')
        notes = run('readelf', '-n', tmp / 'work').ok().out
        check_equal(set(re.findall(r'Name: (work_\w+)', notes)), names, 'markers')


def test_what_does_not_match_once_is_refused_and_nothing_changes(tmp):
    cases = [(MARKERS.replace('c work', 'c gone'), 'work.c: 0 functions are called gone, and it has to be one'),
             (MARKERS.replace('before return',
                              'before n'), r'work.c: /n/ matches \d+ times in work\(\), and it has to be once'),
             (MARKERS.replace('before return',
                              'before %d'), r'work.c: /%d/ matches 0 times in work\(\), and it has to be once'),
             (MARKERS.replace('before return', 'beside return'), 'not a marker: '),
             (MARKERS.replace('before return', 'before ('), 'is no regular expression'),
             (MARKERS.replace('work.c', 'none.c'), 'No such file or directory: .*none.c'), ]
    for markers, reason in cases:
        result = insert(tmp, markers).ended(1)
        check_matches(result.err, reason)
        check_same((tmp / 'work.c').read_text(), PROGRAM, 'work.c')
    marked = PROGRAM.replace('<stdio.h>', '<stdio.h>\n#include <kymo/marker.h>')
    check_matches(insert(tmp, MARKERS, marked).ended(1).err, 'work.c: is marked already')
    check_matches(
        insert(tmp, MARKERS, PROGRAM.replace('while (n--)', 'while (n--) {')).ended(1).err,
        r'the end of work\(\) is not where its braces say')


def test_the_interval_of_a_median_is_that_of_the_order_of_the_values():
    sys.path.insert(0, str(SOURCE / 'examples/real'))
    from parts.compare import Difference, interval
    # From tables of the sign test: the 6th of 20 has 95.86 %, the 2nd of 9 has 96.09 %, the 1st of 5 has 93.75 %.
    for n, low, high, coverage in ((20, 6, 15, 95.86), (9, 2, 8, 96.09), (5, 1, 5, 93.75), (1, 1, 1, 0)):
        got = interval(range(n, 0, -1))
        check_equal((*got[:2], round(100 * got[2], 2)), (low, high, coverage), f'interval of {n}')
    plain = [100.0] * 9
    check_equal(Difference(plain, [99, 101, 102, 98, 100, 100.5, 99.5, 103, 97]).verdict(), 'not measurable')
    check_equal(Difference(plain, [101, 102, 101.5, 101, 102, 103, 101, 99, 102]).verdict(), 'slower')
    check_equal(Difference(plain, [99, 98, 97, 99, 98, 97, 99, 98, 101]).verdict(), 'faster')
