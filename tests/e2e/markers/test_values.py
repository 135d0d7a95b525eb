"""kymo record -m: each record of each marker is there, with what the program passed, however the program was made."""
import collections
import json
import signal

import markers
from kymotest import (check, check_equal, check_matches, check_same, event_counts, kymo, program, record, run,
                      start_record, target, target_path)
from passed import (ALL, BABELTRACE, EXACT, by_babeltrace, by_report, check_against_log, check_counts, check_values,
                    passed)


def test_every_argument_of_every_record_is_what_the_program_passed(tmp):
    """Of all types; strings of 0 to 300 bytes and NULL."""
    result = record(*ALL, '--', target_path('marked'), '-n', '700', '-l', 'log').ok()
    check(', none lost, in ' in result.err, 'nothing is lost', result)
    check_against_log(by_babeltrace(), tmp / 'log', BABELTRACE)
    check_against_log(by_report(), tmp / 'log', EXACT)
    check_counts(result.json(), event_counts())
    check_equal(result.json()['evaluations'], 700, 'evaluations of an argument with a side effect')


def test_programs_that_test_a_byte_are_recorded_as_those_with_a_nop(tmp):
    result = record('-m', 'marked-portable:*', '--', target_path('marked-portable'), '-n', '320', '-l', 'log').ok()
    check_against_log(by_babeltrace('marked-portable'), tmp / 'log', BABELTRACE)
    check_equal(result.json()['evaluations'], 320, 'evaluations')


def test_without_restartable_sequences(tmp):
    record(*ALL, '--no-rseq', '--', target_path('marked'), '-n', '310', '-l', 'log').ok()
    check_against_log(by_babeltrace(), tmp / 'log', BABELTRACE)


def test_two_recordings_have_the_same_values(tmp):
    """One's pad comes before the other's, and both copy strings."""
    process = target('marked', '-w', '310', '-l', tmp / 'log')
    for name, words in (('one', ALL), ('two', [*ALL,
                                               '--no-rseq']), ('three', ['-m', 'marked:*t*', '-p',
                                                                         'marked:mark_text'])):
        markers.recorder(process.pid, name, *words)
    process.send('\n')
    process.wait_for('done')
    kymo('detach', process.pid).ok()
    process.end().ok()
    log = passed(tmp / 'log')
    for name in ('one', 'two', 'three'):
        found = by_babeltrace(directory=name)
        for marker, want in log.items():
            if name != 'three' or 't' in marker:
                check_values(f'{marker} in {name}', found[marker], want, BABELTRACE)


def as_text(fields):
    return json.dumps({
        field: f'{float(value):.4e}' if isinstance(value, float) or field in ('d', 'f', 'huge', 'arg3') else value
        for field, value in fields.items()
    })


def test_threads_do_not_mix_their_values(tmp):
    """Each of them passes the same."""
    run(target_path('marked'), '-n', '300', '-l', 'log').ok()
    process = target('marked', '-t', '6', '-w', '300')
    recorder = start_record(process.pid, *ALL)
    process.send('\n')
    process.wait_for('done')
    check(', none lost, in ' in recorder.end(signal.SIGINT).ok().err, 'nothing is lost', recorder.result())
    process.end().ok()
    found = by_report()
    for name, want in passed(tmp / 'log').items():
        if name == 'pointers':  # those of another process
            continue
        expected = collections.Counter(as_text(fields) for fields in want for _ in range(6))
        got = collections.Counter(as_text(fields) for fields in found[name])
        check_same(sorted((got - expected).items()), [], f'records of {name} that nobody passed')
        check_same(sorted((expected - got).items()), [], f'records of {name} that are missing')


def test_small_buffers_that_are_overwritten_hold_whole_records():
    result = record(*ALL, '--overwrite', '--buffer', '64K', '--', target_path('marked'), '-n', '3000', '-p', '1').ok()
    found = by_report()
    check(found['mixed'] and found['text'] and result.json()['mixed'] == 3000, 'something is left', result)
    for fields in found['mixed']:
        i = fields['arg1']
        check(
            fields['arg3'] == i * 0.25 and fields['arg4'] == f'<{i}>' and fields['arg5'] == 3 * i and
            fields['arg7'] == 5 and fields['arg8'] == -i, 'a record is of one round', fields)


def check_variant(tmp, *words, **options):
    path = markers.compile(tmp / 'variant', markers.TARGETS / 'marked.c', *words, '-lpthread', **options)
    result = record('-m', 'variant:*', '--', path, '-n', '110', '-l', 'log').ok()
    check_against_log(by_babeltrace('variant'), tmp / 'log', BABELTRACE)
    check_counts(result.json(), event_counts(), 'variant')
    return result


def test_at_any_optimization(tmp):
    for words in (['-O0'], ['-O1', '-fomit-frame-pointer'], ['-O3', '-flto',
                                                             '-march=native'], ['-Os', '-fcf-protection=full']):
        check_variant(tmp, *words)


def test_static_and_position_dependent_programs(tmp):
    for words in (['-static'], ['-static-pie', '-fPIE'], ['-no-pie',
                                                          '-fno-pie'], ['-mcmodel=large', '-no-pie', '-fno-pie']):
        check_variant(tmp, *words)


def test_programs_of_clang(tmp):
    for words in (['-O0'], ['-O2'], ['-O3', '-fPIE']):
        check_variant(tmp, *words, compiler='clang')


def test_stripped_programs(tmp):
    check_variant(tmp, '-s')
    # Without unwind tables, too, nothing tells where functions are.
    path = markers.compile(tmp / 'bare', markers.TARGETS / 'marked.c', '-s', '-fno-asynchronous-unwind-tables',
                           '-lpthread')
    record('-m', 'bare:*', '--', path, '-n', '110').refused('no.* known')


CXX = '''
#include <kymo/marker.h>
#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

template <typename T> static T twice(T x)
{
	MARK(doubled, "size=%zu", sizeof(x));
	return x + x;
}

struct guard {
	int n;
	~guard() { MARK(destroyed, "n=%d", n); }
};

static int deep(int n)
{
	guard g{n};
	MARK(before, "n=%d", n);
	if (n > 3)
		throw std::runtime_error("deep");
	return deep(n + 1) + 1;
}

int main(int argc, char **argv)
{
	int caught = 0;
	std::vector<std::string> words{"one", "two", "three"};
	for (int i = 0; i < 100; i++) {
		auto f = [&](int k) { MARK(inside, "k=%d word=%s", k, words[(size_t)k % 3].c_str()); return k; };
		f(i);
		twice(i), twice((double)i), twice((short)i);
		try { deep(0); } catch (const std::exception &e) { MARK(caught, "%s", e.what()); caught++; }
	}
	printf("%d\\n", caught);
	return caught != 100;
}
'''


def test_cxx_templates_lambdas_and_exceptions(tmp):
    (tmp / 'cxx.cc').write_text(CXX)
    run(program('g++'), '-O2', '-I', markers.INCLUDE, '-o', tmp / 'cxx', tmp / 'cxx.cc').ok()
    check_equal(record('-m', 'cxx:*', '--', tmp / 'cxx').ok().out, '100\n', 'output')
    found = by_babeltrace('cxx')
    check_values('doubled', found['doubled'], [{'size': size} for _ in range(100) for size in (4, 8, 2)], BABELTRACE)
    check_values('inside', found['inside'], [{'k': k, 'word': ['one', 'two', 'three'][k % 3]} for k in range(100)],
                 BABELTRACE)
    check_values('destroyed', found['destroyed'], [{'n': n} for _ in range(100) for n in (4, 3, 2, 1, 0)], BABELTRACE)
    check_values('caught', found['caught'], [{'arg1': 'deep'}] * 100, BABELTRACE)


HARD = r'''
#include <kymo/marker.h>
int main(void)
{
	MARK(keywords, "int=%d struct=%d string=%s align=%d tid=%d", 1, 2, "3", 4, 5);
	MARK(twins, "a=%d a=%d arg1=%d %d", 1, 2, 3, 4);
	MARK(odd_format, "\"quoted\" {a} \\ %%d \t a=%-5d;b:%5.2f|%+ld", 7, 0.5, 8L);
	MARK(odd_text, "s=%s", "quote \" back \\ tab \t line \n brace } bell \a");
	MARK(a_name_that_is_longer_than_most_names_of_markers_are_and_still_an_identifier, "x=%d", 1);
	return 0;
}
'''


def test_names_formats_and_strings_that_are_hard_to_write(tmp):
    path = markers.compile(tmp / 'hard', HARD)
    record('-m', 'hard:*', '--', path).ok()
    found = by_babeltrace('hard')
    check_equal(found['keywords'], [{'int': 1, 'struct': 2, 'string': '3', 'align': 4, 'tid': 5}]
                if 'tid' in found['keywords'][0] else [{'int': 1, 'struct': 2, 'string': '3', 'align': 4}],
                'fields with names of the language')
    check_equal([list(fields.values()) for fields in found['twins']], [[1, 2, 3, 4]], 'fields of one name')
    check_equal([list(fields.values()) for fields in found['odd_format']], [[7, 0.5, 8]], 'a format of all sorts')
    check_equal(len(found['odd_text']), 1, 'records')
    check_matches(
        kymo('report', '--events').ok().out,
        r'hard:odd_text s="quote \\" back \\\\ tab \\t line \\n brace } bell \\(a|x07|007)"$', 'report')
