"""IFUNCs: a name stands for all functions that its resolver chooses from, and each record says which one it was."""
import itertools
import re
import shutil
import signal

from comparing import compare, functions
from kymotest import (KYMO, check, check_equal, check_matches, check_text_intact, event_counts, events, kymo,
                      need_uprobes, probe_counts, program, record, report_json, run, sampled, share, start)
from seeds import seed

LIBRARY = r'''
static volatile int choice = CHOICE;

KIND int by_two(int x)
{
	return 2 * x;
}

KIND int by_three(int x)
{
	return 3 * x;
}

static int (*choose(void))(int)
{
	return choice == 2 ? by_two : by_three;
}

static int (*choose_again(void))(int)
{
	if (choice == 2)
		return by_three;
	return by_two;
}

static int (*choose_one(void))(int)
{
	return by_two;
}

int chosen(int x) __attribute__((ifunc("choose")));
int other(int x) __attribute__((ifunc("choose_again")));
int only(int x) __attribute__((ifunc("choose_one")));

static int (*const table[])(int) = { by_two, by_three };

static int (*look_up(void))(int)
{
	return table[choice & 1];
}

int looked_up(int x) __attribute__((ifunc("look_up")));

int chosen_inside(int x)
{
	return chosen(x);
}
'''

PROGRAM = r'''
#include <stdio.h>

int chosen(int x), other(int x), only(int x), chosen_inside(int x);

int main(int argc, char **argv)
{
	int sum = 0;

	for (int i = 1; i <= 5; i++)
		sum += chosen(i);
	sum += chosen_inside(1);
	for (int i = 1; i < argc; i++)
		sum += other(i) + only(i);
	printf("%d\n", sum);
	fflush(stdout);
	getchar();
	return 0;
}
'''


def compile_with(compiler, *args):
    return run(program(compiler), '-Wall', *args).ok()


def build(tmp, compiler='gcc', flags=('-O2', ), choice=3, kind='__attribute__((noinline))'):
    """./libchoice.so, which chooses by_three for `chosen` where `choice` is 3, and ./program, which calls that six
    times. For each word on its command line it calls `other` and `only`, which choose by_two."""
    (tmp / 'library.c').write_text(LIBRARY)
    (tmp / 'program.c').write_text(PROGRAM)
    compile_with(compiler, *flags, f'-DCHOICE={choice}', f'-DKIND={kind}', '-fPIC', '-shared', '-o', 'libchoice.so',
                 'library.c')
    compile_with(compiler, '-o', 'program', 'program.c', './libchoice.so')


def own_counts(counts):
    return {name.partition(':')[2]: count for name, count in counts.items()}


# ---- which one it was ----------------------------------------------------------------------------


@sampled
def test_the_function_that_was_chosen_is_counted_under_its_name(tmp):
    """Optimized or not, with functions that others may replace (by way of the GOT) or not, by both compilers."""
    seed()
    levels = (['-O0'], ['-O1'], ['-O2', '-fcf-protection'], ['-Os'])
    kinds = ('', '__attribute__((noinline,visibility("hidden")))')
    for compiler, flags, kind in share(itertools.product(filter(shutil.which, ('gcc', 'clang')), levels, kinds), 3):
        build(tmp, compiler, flags, kind=kind)
        record('-p', './libchoice.so:chosen', '--', './program').ok()
        check_equal(own_counts(event_counts()), {'chosen=by_three': 6}, f'{compiler} {flags} {kind}')
    build(tmp, choice=2)
    record('-p', './libchoice.so:chosen', '--', './program').ok()
    check_equal(own_counts(event_counts()), {'chosen=by_two': 6}, 'of the other choice')


def test_calls_by_other_names_of_a_function_are_recorded_too_and_that_is_said(tmp):
    build(tmp)
    result = record('-p', './libchoice.so:chosen', '-p', './libchoice.so:only', '--', './program', 'x', 'y').ok()
    check_equal(own_counts(event_counts()), {'chosen=by_three': 6, 'chosen=by_two': 4, 'only=by_two': 4}, 'events')
    for name, others in (('chosen', 'only, other|other, only'), ('only', 'chosen, other|other, chosen')):
        check_matches(
            result.err,
            rf'^kymo: warning: \./libchoice\.so:{name} also records the calls of ({others}), which may lead to the same functions$'
        )


def test_arguments_and_returns(tmp):
    build(tmp)
    record('-p', './libchoice.so:chosen x=$arg1:s32', '-r', './libchoice.so:chosen y=$retval:s32', '--',
           './program').ok()
    found = events()
    check_equal([(event.name, event['x']) for event in found if 'x' in event.fields],
                [('libchoice.so:chosen=by_three', x) for x in (1, 2, 3, 4, 5, 1)], 'arguments')
    check_equal([(event.name, event['y']) for event in found if 'y' in event.fields],
                [('libchoice.so:chosen=by_three%return', 3 * x) for x in (1, 2, 3, 4, 5, 1)], 'returns')
    functions_of = [probe for probe in report_json()['probes'] if probe['count'] == 6]
    check_equal(len(functions_of), 2, 'the report has both')
    check_matches(kymo('report', '--graph').ok().out, r'chosen=by_three')


def test_each_instruction_of_each_function(tmp):
    build(tmp)
    record('-p', './libchoice.so:chosen:*', '--', './program').ok()
    counts = event_counts()
    check({name.partition(':')[2].partition('+')[0] for name in counts} == {'by_three'} and set(counts.values()) == {6},
          str(counts))


def test_a_name_of_ones_own_says_which_one_too(tmp):
    build(tmp)
    record('-p', 'p:mine/times ./libchoice.so:chosen', '--', './program').ok()
    check_equal(event_counts(), {'mine/times:chosen=by_three': 6}, 'events')


def test_a_function_without_a_symbol_is_named_by_its_place_in_the_file(tmp):
    build(tmp, kind='static __attribute__((noinline))')
    path = str(tmp / 'libchoice.so')
    where, = functions(path)['by_three']
    run('strip', '--strip-unneeded', path).ok()
    record('-p', './libchoice.so:chosen', '--', './program').ok()
    check_equal(event_counts(), {f'libchoice.so:chosen=0x{where:x}': 6}, 'events')
    record('-p', f'./libchoice.so:0x{where:x}', '--', './program').ok()
    check_equal(sum(event_counts().values()), 6, 'that name is one to record by')


def test_clones_for_processors(tmp):
    """target_clones: the compiler writes the resolver."""
    source = r'''
__attribute__((target_clones("avx2", "default"), noinline)) int cloned(const int *x, int n)
{
	int sum = 0;

	for (int i = 0; i < n; i++)
		sum += x[i] * x[i];
	return sum;
}

int main(int argc, char **argv)
{
	int some[3] = { argc, argc, argc };

	for (int i = 0; i < 4; i++)
		argc += cloned(some, 3);
	return argc == 0;
}
'''
    (tmp / 'clones.c').write_text(source)
    for flags in ([], ['-static'], ['-no-pie', '-fno-pie']):
        compile_with('gcc', '-O2', *flags, '-o', 'clones', 'clones.c')
        record('-p', './clones:cloned', '--', './clones').ok()
        counts = event_counts()
        check(list(counts.values()) == [4], f'{flags}: {counts}')
        check_matches(list(counts)[0], r'^clones:cloned=cloned\.(avx2|default)', 'name')


# ---- libc ----------------------------------------------------------------------------------------

COPIER = r'''
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int main(void)
{
	void *(*volatile copy)(void *, const void *, size_t) = memcpy;
	size_t (*volatile length)(const char *) = strlen;
	char from[100] = "some words", to[100];
	Dl_info info;

	for (int i = 0; i < 1000; i++)
		copy(to, from, length(from));
	if (!dladdr((void *)copy, &info))
		return 1;
	printf("%lx\n", (unsigned long)((char *)copy - (char *)info.dli_fbase));
	fflush(stdout);
	getchar();
	return 0;
}
'''


def build_copier(tmp):
    (tmp / 'copier.c').write_text(COPIER)
    compile_with('gcc', '-O1', '-fno-builtin', '-o', 'copier', 'copier.c')


def test_libc_counts_are_the_kernels(tmp):
    """At the very function to which the program's own pointer leads."""
    build_copier(tmp)
    compared = compare(['./copier'], ['libc:memcpy', 'libc:strlen', 'libc:strchr*'])
    hit = [probe for probe in compared.report['probes'] if probe['name'].startswith('libc:memcpy=') and probe['count']]
    check_equal([f'{probe["offset"]:x}' for probe in hit], [compared.result.out.strip()], 'functions that ran')
    check(hit[0]['count'] >= 1000 and compared.count('libc:strlen=*') >= 1000, 'calls', str(compared.counts))
    check_matches(compared.result.err, r'warning: libc:memcpy also records the calls of (\w+, )*memmove(, \w+)*, which')


def test_a_function_of_several_names_is_probed_once_by_a_glob(tmp):
    build_copier(tmp)
    record('-p', 'libc:mem*', '--', './copier').ok()
    places = [(probe['path'], probe['offset']) for probe in report_json()['probes']]
    check_equal(len(places), len(set(places)), 'places')
    names = list(probe_counts())
    check(any(name.startswith('libc:memcpy,memmove=') for name in names), 'memcpy and memmove are named together',
          *names)
    check(not any(re.match(r'libc:(memcpy|memmove)=', name) for name in names), 'neither alone', *names)


def test_a_symbol_of_its_own_comes_before_the_ifuncs(tmp):
    build(tmp)
    record('-p', './libchoice.so:*', '--', './program', 'x').ok()
    counts = own_counts(probe_counts())
    check_equal({name: counts[name] for name in counts if name.startswith(('by_', 'chosen', 'other', 'only'))},
                {'by_two': 2, 'by_three': 6, 'chosen_inside': 1}, 'events')


def test_static_programs(tmp):
    """Their IFUNCs are resolved by the program itself, before main."""
    (tmp / 'library.c').write_text(LIBRARY)
    (tmp / 'program.c').write_text(
        PROGRAM.replace('printf(', 'char words[100];\n\tmemcpy(words, "%d\\n", argc + 3);\n\tprintf(words, ',
                        1).replace('"%d\\n", sum', 'sum').replace('#include <stdio.h>',
                                                                  '#include <stdio.h>\n#include <string.h>'))
    for flags in (['-static'], ['-static-pie', '-fPIE'], ['-static', '-fno-pie', '-no-pie']):
        compile_with('gcc', '-O2', '-fno-builtin', *flags, '-DCHOICE=3', '-DKIND=__attribute__((noinline))', '-o',
                     'whole', 'library.c', 'program.c')
        compared = compare(['./whole'], ['./whole:chosen', './whole:memcpy', './whole:memset'])
        check_equal(compared.counts['whole:chosen=by_three'], 6, f'{flags}')
        check(compared.count('whole:memcpy=*') >= 1, 'memcpy has run', str(compared.counts))


# ---- through the kernel --------------------------------------------------------------------------


def test_the_kernel_counts_the_same(tmp):
    need_uprobes()
    build(tmp)
    record('--backend', 'kernel', '-p', './libchoice.so:chosen x=$arg1:s32', '-r',
           './libchoice.so:chosen y=$retval:s32', '--', './program').ok()
    check_equal(own_counts(event_counts()), {'chosen=by_three': 6, 'chosen=by_three%return': 6}, 'events')
    recorder = start(KYMO, 'record', '--all', '-p', './libchoice.so:chosen', cwd=tmp)
    recorder.wait_for(r'^kymo: recording ', 1)
    for _ in range(2):
        run('./program').ok()
    recorder.end(signal.SIGINT).ok()
    check_equal(own_counts(event_counts()), {'chosen=by_three': 12}, 'events of two processes')
    record('--backend', 'kernel', '-p', './libchoice.so:looked_up', '--',
           './program').refused('it is an IFUNC, and its resolver does not tell')
    record('--backend', 'kernel', '-p', './libchoice.so:chosen+0x1', '--', './program').refused('any of 2 functions')


# ---- what is said of them ------------------------------------------------------------------------


def test_an_offset_is_taken_where_one_function_alone_is_meant(tmp):
    build(tmp)
    starts = [
        int(line.split()[0], 16)
        for line in re.findall(r'^  > (0x.*)$',
                               kymo('explain', './libchoice.so', 'by_two:*').ok().out, re.MULTILINE)
    ]
    offset = sorted(set(starts))[-1] - min(starts)
    record('-p', f'./libchoice.so:only+0x{offset:x}', '--', './program', 'x').ok()
    check_equal(own_counts(event_counts()), {f'only=by_two+0x{offset:x}': 2}, 'events')
    record('-p', './libchoice.so:chosen+0x1', '--', './program').refused(
        r'no probe can be put at chosen\+0x1 of \S+: it is an IFUNC, and the offset may be in any of 2 functions; '
        r"'kymo explain \./libchoice\.so chosen' lists them, name one")


def test_a_resolver_that_is_not_understood_is_refused(tmp):
    build(tmp)
    sentence = (
        r'no probe can be put at {} of \S+: it is an IFUNC, and its resolver does not tell which functions it chooses from '
        r'\(what it returns at 0x\w+ is not for certain a function of this file\); name the chosen one or its file offset'
    )
    for flag in '-p', '-r':
        record(flag, './libchoice.so:looked_up', '--', './program').refused(sentence.format('looked_up(%return)?'))
    record('-p', 'libc:time', '--', 'true').refused(sentence.format('time'))
    explained = kymo('explain', './libchoice.so', 'looked_up').ended(1)
    check_matches(explained.out,
                  r'its resolver at 0x\w+\n +does not tell which functions it chooses from: what it returns')
    result = record('-p', './libchoice.so:[blc]*_*', '--', './program').ok()
    check_matches(
        result.err,
        r'warning: skipped 1 of 6 functions that match \./libchoice\.so:\[blc\]\*_\* and cannot be probed safely \(looked_up: it is an IFUNC, and'
    )


def test_explain_names_the_functions_and_the_one_that_a_process_has_chosen(tmp):
    build(tmp)
    text = kymo('explain', './libchoice.so', 'chosen').ok().out
    check_matches(text, r'^  ifunc      an indirect function: its resolver at 0x\w+ chooses one of 2 functions')
    check_equal(sorted(re.findall(r'^ +0x\w+  (by_\w+)$', text, re.MULTILINE)), ['by_three', 'by_two'], 'functions')
    check_equal(len(re.findall('^  why safe', text, re.MULTILINE)), 2, 'plans')
    check_matches(text,
                  r'^  shared     some of them with (only, other|other, only): a probe there records its calls too$')
    check('bound' not in text, 'nothing is bound in a file', text)
    check_matches(
        kymo('explain', './libchoice.so', 'chosen+0x1').ended(1).out,
        r'^  site       none: the offset may be in any of them')
    process = start('./program')
    process.wait_for(r'^\d+$')
    check_matches(
        kymo('explain', process.pid, 'libchoice:chosen').ok().out,
        rf'^  bound      process {process.pid} has chosen by_three$')
    build_copier(tmp)
    copier = start('./copier')
    where = copier.wait_for(r'^[0-9a-f]+$')[0]
    text = kymo('explain', copier.pid, 'libc:memcpy').ok().out
    name = re.search(rf'^  bound      process {copier.pid} has chosen (\S+)$', text, re.MULTILINE)
    check(name, 'bound', text)
    check_matches(text, rf'^ +0x{where}  {re.escape(name[1])}$')
    check_text_intact(copier.pid)
