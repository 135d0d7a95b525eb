"""What a probe computes: expressions have the values that gcc gives them, and filters let through what they say, in
each thread."""
import random
import re
import signal

from comparing import installed
from kymotest import (check, check_equal, check_same, event_counts, events, kymo, program, record, report_json, run,
                      start, start_record, timeout)

# ---- expressions beside gcc ----------------------------------------------------------------------

N_FUNCTIONS, PER_PROBE, N_CALLS = 55, 8, 12
EDGES = [
    '0', '1', '-1', '2', '7', '255', '-128', '65535', '2147483647', '-2147483647-1', '4294967295',
    '9223372036854775807', '-9223372036854775807-1', '1234567890123'
]
CASTS = [
    '(int)', '(unsigned)', '(signed char)', '(unsigned char)', '(short)', '(unsigned short)', '(long)',
    '(unsigned long)'
]
LITERALS = ['0', '1', '3', '10', '0x7f', '0xffffffff', '4096', '2147483648', '7u', '9ul', "'a'"]

PROGRAM = r'''
#include <stdio.h>
%s
static const long values[][4] = { %s };
int main(void)
{
	for (unsigned i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		const long *v = values[i];
		%s
	}
}
'''


def expression(rng, depth):
    """One of C's that kymo has too, without what C leaves undefined: shifts are by few bits, and divisions by no zero
    and no -1."""
    if depth == 0 or rng.random() < 0.1:
        return rng.choice([*['arg0', 'arg1', 'arg2', 'arg3'] * 2, rng.choice(LITERALS)])
    one, two = (expression(rng, depth - 1) for _ in range(2))
    kind = rng.randrange(10)
    if kind == 0:
        # gcc makes -(a / b) a / -b, which faults for the least a and b 1
        return f'{rng.choice("~!" if "/" in one else "-~!")}({one})'
    if kind == 1:
        return f'{rng.choice(CASTS)}({one})'
    if kind == 2:
        return f'({one} {rng.choice(["<<", ">>"])} ({two} & 7))'
    if kind == 3:
        return f'({one} {rng.choice("/%")} (({two} & 15) + 1))'
    if kind == 4:
        return f'({one} ? {two} : {expression(rng, depth - 1)})'
    if kind in (5, 6):
        return f'({one} {rng.choice(["==", "!=", "<", "<=", ">", ">=", "&&", "||"])} {two})'
    return f'({one} {rng.choice(["+", "-", "*", "&", "|", "^"])} {two})'


def small_expression(rng, depth):
    while True:
        text = expression(rng, depth)
        if len(re.findall(r'\w+|<<|>>|&&|\|\||[-+*/%&|^<>=!~?]', text)) <= 40 and len(re.findall('[/%]', text)) <= 7:
            return text


@timeout(120)
def test_expressions_have_the_values_that_gcc_gives_them(tmp):
    rng = random.Random(2)
    probes = [[f'({small_expression(rng, 1 + i % 4)})' for _ in range(PER_PROBE)] for i in range(N_FUNCTIONS)]
    values = [[rng.choice([*EDGES, str(rng.getrandbits(62))]) for _ in range(4)] for _ in range(N_CALLS)]
    functions, calls = [], []
    for i, texts in enumerate(probes):
        shown = ' '.join(f'printf("f{i} %d %ld\\n", {k}, (long){text});' for k, text in enumerate(texts))
        functions.append(f'__attribute__((noipa)) void f{i}(long arg0, long arg1, long arg2, long arg3) {{ {shown} }}')
        calls.append(f'f{i}(v[0], v[1], v[2], v[3]);')
    (tmp / 'p.c').write_text(
        PROGRAM % ('\n'.join(functions), ', '.join('{ %s }' % ', '.join(row) for row in values), '\n'.join(calls)))
    run(program('gcc'), '-w', '-O1', '-fwrapv', '-o', 'p', 'p.c', seconds=60).ok()
    words = [
        word for i, texts in enumerate(probes)
        for word in ('-p', f'./p:f{i} ' + ' '.join(f'v{k}={text}:s64' for k, text in enumerate(texts)))
    ]
    result = record('--backend', 'inproc', *words, '--', './p').ok()
    expected = {}
    for name, k, value in re.findall(r'^(f\d+) (\d+) (-?\d+)$', result.out, re.MULTILINE):
        expected.setdefault(name, {}).setdefault(int(k), []).append(int(value))
    found = {}
    for event in events():
        for k in range(PER_PROBE):
            found.setdefault(event.name.partition(':')[2], {}).setdefault(k, []).append(event[f'v{k}'])
    check_equal(sum(len(row) for by_probe in found.values() for row in by_probe.values()),
                N_FUNCTIONS * PER_PROBE * N_CALLS, 'values')
    for i, texts in enumerate(probes):
        for k, text in enumerate(texts):
            check_equal(found[f'f{i}'][k], expected[f'f{i}'][k], f'values of {text}')


# ---- filters -------------------------------------------------------------------------------------

THREADS = r'''
#include <pthread.h>
#include <stdio.h>
__attribute__((noipa)) long called(long i, long thread) { long sum = 0; for (int k = 0; k < 3; k++) sum += i ^ thread; return sum + (i % 5 ? i : -1); }
static void *work(void *thread) { for (long i = 0; i < 5000; i++) called(i, (long)thread); return 0; }
int main(void)
{
	pthread_t threads[8];

	for (long i = 0; i < 8; i++) pthread_create(&threads[i], 0, work, (void *)i);
	for (int i = 0; i < 8; i++) pthread_join(threads[i], 0);
}
'''


def build(tmp):
    (tmp / 'threads.c').write_text(THREADS)
    run(program('gcc'), '-O2', '-pthread', '-o', 'threads', 'threads.c', seconds=60).ok()


@timeout(120)
def test_a_filter_lets_through_what_it_says_in_each_thread(tmp):
    build(tmp)
    for more in (['--buffer', '64M'], ['--buffer', '64M', '--no-rseq'], ['--buffer', '64M', '--overwrite']):
        record(*more, '-p', 'p:all ./threads:called', '-p',
               'p:some ./threads:called /arg0 >= 4990 && arg1 != 3/ arg0 arg1', '-p',
               'p:none ./threads:called if arg0 < 0', '-p', 'p:odd ./threads:called /%edi % 2/', '--',
               './threads').ok()
        check_equal(event_counts(), {'all': 8 * 5000, 'some': 7 * 10, 'odd': 8 * 2500}, f'counts with {more}')
        found = {(event['arg0'], event['arg1']) for event in events() if event.name == 'some'}
        check_equal(found, {(i, thread) for i in range(4990, 5000) for thread in range(8) if thread != 3},
                    'what was let through')


@timeout(120)
def test_a_filter_of_what_a_function_returns(tmp):
    build(tmp)
    record('--buffer', '64M', '-r', 'r:negative ./threads:called /retval < 0/ retval', '-r',
           'r:all ./threads:called x=(retval & 1)', '--', './threads').ok()
    counts = event_counts()
    check_equal(counts['all'], 8 * 5000, 'returns')
    negative = sum(3 * (i ^ thread) + (i if i % 5 else -1) < 0 for i in range(5000) for thread in range(8))
    check_equal(counts.get('negative', 0), negative, 'negative ones')


@timeout(60)
def test_entries_that_a_filter_left_out_spoil_no_durations(tmp):
    build(tmp)
    record('--buffer', '64M', '-p', './threads:called /arg0 % 100 == 7/', '-r', './threads:called', '--',
           './threads').ok()
    check_equal(event_counts(), {'threads:called': 8 * 50, 'threads:called%return': 8 * 5000}, 'events')
    calls = [(call['name'], call['count'], call['duration_ns']['count'], call['unwound'])
             for call in report_json()['calls']]
    check_equal(calls, [('threads:called', 8 * 50, 8 * 50, 0)], 'calls that are paired')


@timeout(120)
def test_a_running_process_is_filtered(tmp):
    python = installed('python3')
    process = start(
        python, '-c',
        'import sys\nfor line in sys.stdin:\n    x = [b\'x\' * (3000 + i) for i in range(1000)]; print("done", flush=True)'
    )
    recorder = start_record(process.pid, '-p', 'p:all libc:malloc size=%di:u64', '-p',
                            'p:large libc:malloc /arg0 > 2K/')
    for i in range(5):
        process.send('again\n')
        process.wait_for(r'(done\s+){%d}' % (i + 1))
    recorder.end(signal.SIGINT).ok()
    counts = event_counts()
    sizes = [event['size'] for event in events() if event.name == 'all']
    check(counts['large'] >= 5 * 1000, 'large ones', counts)
    check_equal(counts['large'], sum(size > 2048 for size in sizes), 'large ones of all')
    process.end()


# ---- names of the source -------------------------------------------------------------------------

NAMED = r"""
#include <stdio.h>
#include <unistd.h>
enum color { RED, GREEN, BLUE };
typedef unsigned short port_t;
__attribute__((noinline, noipa)) long plain(int count, const char *name, port_t port, enum color color, long long total, signed char sign, int seventh)
{
	return printf("plain %d %ld %d %d %lld %d\n", count, (long)name, port, color, total, sign) + seventh;
}
__attribute__((noinline, noipa)) long floats(double d, int after, float f, unsigned char c)
{
	return printf("floats %d %d\n", after, c) + (long)(d + f);
}
int main(int argc, char **argv)
{
	for (int i = 0; i < 20; i++) {
		plain(i - 10, "x", (port_t)(i * 5000), i % 3, (long long)i << 33, (signed char)(100 + 10 * i), i);
		floats(i, -i, 2.0f, (unsigned char)(i * 20));
	}
	fflush(stdout);
	if (argc > 1)
		for (;;) { sleep(1); plain(1, "x", 2, 1, 3, 4, 5); }
}
"""


def build_named(tmp, *compiler):
    (tmp / 'named.c').write_text(NAMED)
    run(program(compiler[0]), *compiler[1:], '-g', '-w', '-o', 'named', 'named.c', seconds=60).ok()


@timeout(120)
def test_parameters_have_the_values_that_the_program_has(tmp):
    for compiler in (('gcc', '-O0'), ('gcc', '-O2'), ('gcc', '-O2', '-gdwarf-4'), ('clang', '-O0'), ('clang', '-O1',
                                                                                                     '-gdwarf-4')):
        build_named(tmp, *compiler)
        result = record('-p', './named:plain count name port color total sign', '-p',
                        './named:floats /after < -5 && c != 200/ after c', '--', './named').ok()
        found = [(event.name.partition(':')[2], *(event[name]
                                                  for name in (('count', 'name', 'port', 'color', 'total',
                                                                'sign') if 'plain' in event.name else ('after', 'c'))))
                 for event in events()]
        told = [(words[0], *map(int, words[1:])) for words in map(str.split, result.out.splitlines())]
        pointers = 2**64
        expected = [row for row in told if row[0] == 'plain' or (row[1] < -5 and row[2] != 200)]
        check_equal([tuple(value % pointers if isinstance(value, int) else value for value in row) for row in found],
                    [tuple(value % pointers if isinstance(value, int) else value for value in row) for row in expected],
                    f'values with {compiler}')


@timeout(120)
def test_names_that_are_not_known_are_refused_and_it_is_said_which_are(tmp):
    build_named(tmp, 'gcc', '-O2')
    for spec, sentence in (
        ('./named:plain cuont',
         "column 15: there is no variable 'cuont' here; visible are: count, name, port, color, total, sign, seventh"),
        ('./named:floats (d|1)',
         "column 18: '|' is for whole numbers, and this has a floating-point number; convert it: (long)x"),
        ('./named:pl* count',
         "column 13: variables by name ('count') are known at one location of a file; write arg0, retval, %REGISTER or $stack0"
         )):
        record('-p', spec, '--', './named').wrong_words(sentence)
    run(program('strip'), '-g', 'named').ok()
    record('-p', './named:plain count', '--', './named').refused(
        r"column 15: 'count' is not known: .*/named has no debug information.*; write arg0, arg1 \.\.\. for parameters",
        status=2)


@timeout(120)
def test_names_of_another_build_are_refused(tmp):
    build_named(tmp, 'gcc', '-O2', '-Wl,--build-id')
    process = start('./named', 'stays')
    process.wait_for('floats -19')
    (tmp / 'named').rename(tmp / 'earlier')
    (tmp / 'named.c').write_text(
        NAMED.replace('int count, const char *name', 'const char *name, int count').replace(
            'plain(i - 10, "x"', 'plain("x", i - 10').replace('plain(1, "x"', 'plain("x", 1'))
    run(program('gcc'), '-O2', '-Wl,--build-id', '-g', '-w', '-o', 'named', 'named.c', seconds=60).ok()
    result = record('--backend', 'inproc', '-p', f'{tmp}/named:plain count', '--pid', process.pid, '--for', '1')
    check(result.status != 0, 'no recording by the wrong names', result)
    process.kill()


# ---- what is refused -----------------------------------------------------------------------------


def test_what_becomes_of_an_expression_is_shown():
    check_same(
        kymo('explain', '-e', '(int)arg0 > 4K || %al').ok().out, """Types:
  ||: int
    >: int
      cast: int
        arg0: long
      4096: int
    %al: signed char

Operations, on a stack of 64-bit values:
   0  value 4096
   1  register %di
   2  extend s32
   3  less signed
   4  jump-if-zero 7
   5  value 1
   6  jump 10
   7  register %ax
   8  extend s8
   9  truth
""", 'stdout')
    kymo('explain', '-e', 'arg0 >').refused(r'column 7: expected a value, such as arg0, %di or 42', status=2)


def test_words_are_refused_where_they_are_wrong():
    for spec, sentence in (
        ('libc:malloc /arg0 > 5', "column 13: expected '/' at the end of the filter, as in /arg0 > 4K/"),
        ('libc:malloc arg0 / 2', "column 18: expected '/' at the end of the filter, as in /arg0 > 4K/; an expression "
         'with blanks stands in brackets, as in (a / b)'),
        ('libc:malloc arg0 + 2', 'column 19: expected an offset of at most 31 bits and what it is from, such as '
         '+8(%di); an expression with blanks stands in brackets, as in (a + b)'),
        ('libc:malloc arg0 == 2', 'column 18: expected what to record: arg0, %REGISTER, $stackN, \\NUMBER or '
         '(EXPRESSION); an expression with blanks stands in brackets, as in (a + b)'),
        ('libc:malloc /1/ /2/', 'column 18: a probe has one filter; join two conditions with &&'),
        ('libc:malloc if', 'column 15: expected a value, such as arg0, %di or 42'),
        ('libc:malloc /retval/', "column 14: 'retval' is known at a function's return only; write -r or %return"),
        ('libc:malloc+4 /arg0/',
         "column 16: 'arg0' is known at the first instruction of a function only; write a register, such as %di"),
        ('libc:malloc (arg0 / 0)', 'column 19: this is a division by zero'),
        ('libc:malloc arg0->x',
         "column 17: '->' is for structures and unions, and this is a 'long'; convert it, as in ((struct conn *)arg0)->fd"
         ), ('libc:malloc /str(arg0) == "a/', "column 27: expected '\"' at the end of the text"),
        ('libc:malloc /str(arg0)/',
         'column 14: a filter is a number or a comparison, such as /arg0 > 4K/ or /str(arg0) == "x"/')):
        record('-p', spec, '--', 'true').wrong_words(sentence)
