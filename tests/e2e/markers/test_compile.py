"""include/kymo/marker.h with the compilers there are: what it costs, what it leaves, what it refuses."""
import re
import shutil

from hotpath import functions, hot_path
from kymotest import check, check_equal, check_same, program, run, sampled, share, timeout
from markednotes import Marked
from markerbuild import INCLUDE, TARGETS, build_forms, check_forms, compile_c, compiler_says, expected
from seeds import seed

LEVELS = ['-O1', '-O3', '-Os', '-Og']  # and -O0, -O2
WAYS = {
    'both': [
        '-O2 -fPIC', '-O2 -fno-pie -no-pie', '-O2 -static', '-O2 -pg', '-O2 -fsanitize=address,undefined',
        '-O0 -fsanitize=address,undefined -pg -fPIC', '-O1 -fsanitize=thread', '-O2 -DKYMO_MARKER_PORTABLE',
        '-O3 -funroll-loops', '-O2 -ffunction-sections -fdata-sections -Wl,--gc-sections', '-O2 -mcmodel=large -fPIC',
        '-O2 -fstack-protector-all -fcf-protection=full', '-O1 -finstrument-functions',
        '-O2 -fno-inline -fomit-frame-pointer'
    ], 'gcc': ['-O2 -flto', '-O2 -masm=intel', '-O2 -fuse-ld=gold', '-O2 -mcmodel=large -fno-pie -no-pie'], 'clang':
    ['-O2 -flto -fuse-ld=lld', '-O2 -flto=thin -fuse-ld=lld', '-O2 -fuse-ld=lld',
     '-O2 -fno-integrated-as'], 'c': ['-O2 -std=c99', '-O2 -std=c11', '-O2 -std=c17', '-O2 -std=gnu11'], 'cc':
    ['-O2 -std=c++11', '-O2 -std=c++14', '-O2 -std=c++17', '-O2 -std=c++20'],
}
# For the linker alone, or not for the linker.
LINKING = re.compile(r'^(-no-pie|-static|-Wl,.*|-fuse-ld=.*)$')


def markers_of(language):
    """Their names, from the source."""
    return set(
        re.findall(r'\bMARK\((\w+)', ''.join(
            (TARGETS / name).read_text() for name in (f'marker_forms.{language}', 'marker_forms.h'))))


def check_all(language, compiler):
    """Each with and without optimization, and a share of all other ways."""
    seed()
    kind = 'clang' if 'clang' in compiler else 'gcc'
    for way in ['-O0', '-O2', *share(LEVELS + WAYS['both'] + WAYS[kind] + WAYS[language], 4)]:
        if 'lld' in way and not shutil.which('ld.lld'):
            print(f'not {compiler} {way}: lld is not installed')
            continue
        words = way.split()
        link = [word for word in words if LINKING.match(word)]
        plain = [word for word in words if word in ('-fno-pie', '-fPIC')]
        options = [word for word in words if word not in link + plain]
        print(f'{compiler} {way}', flush=True)
        path = build_forms(language, compiler, *options, plain=plain, link=link)
        check_forms(path, language, modes=('off', 'on', 'record') if way in ('-O0', '-O2', '-O3') else ('off', 'on'))
        counts = Marked(path).check('PORTABLE' not in way).counts()
        check(all(n_sites and n_places for n_sites, n_places in counts.values()),
              f'{way}: sites have places and places sites', counts)
        check_same(sorted(counts), sorted(markers_of(language)), f'markers by {compiler} {way}')


@sampled
@timeout(500)
def test_c_by_gcc_in_all_ways(tmp):
    check_all('c', 'gcc')


@sampled
@timeout(500)
def test_c_by_clang_in_all_ways(tmp):
    check_all('c', 'clang')


@sampled
@timeout(800)
def test_cplusplus_by_gcc_in_all_ways(tmp):
    check_all('cc', 'g++')


@sampled
@timeout(800)
def test_cplusplus_by_clang_in_all_ways(tmp):
    check_all('cc', 'clang++')


@timeout(300)
def test_markers_in_shared_objects(tmp):
    for language, compilers in (('c', ('gcc', 'clang')), ('cc', ('g++', 'clang++'))):
        for compiler in compilers:
            compile_c(compiler, '-O2', '-fPIC', '-shared', '-Wall', *INCLUDE, TARGETS / f'marker_forms.{language}',
                      '-o', 'libforms.so')
            compile_c(compiler, '-O2', *INCLUDE, '-x', 'c', TARGETS / 'marker_by_hand.c', '-x', 'none', 'libforms.so',
                      '-Wl,-rpath,$ORIGIN', '-o', 'forms')
            check_forms('./forms', language, modes=('off', 'on', 'record', 'slow'))
            Marked('libforms.so').check()
            check(not Marked('forms').sites, 'the program itself has no marker')


def test_each_copy_of_an_unrolled_loop_has_its_note(tmp):
    counts = {}
    for level in '-O0', '-O2':
        counts[level] = Marked(build_forms('c', 'gcc', level)).check().counts()
    check_equal((counts['-O0']['unrolled'], counts['-O2']['unrolled']), ((1, 1), (4, 4)),
                'copies of a marker in a loop that is unrolled four times')
    at_o0 = {name: sites for name, (sites, _) in counts['-O0'].items()}
    check_equal(at_o0, dict.fromkeys(at_o0, 1), 'without optimization each marker is there once')
    check(counts['-O2']['static_inline'][0] >= 2, 'a function that is inlined in two places has its marker twice',
          counts['-O2'])


# ---- what the hot path is ------------------------------------------------------------------------

STUBS = '''int other(int x) { return x; } long another(long a, long b) { return a + b; } void done(void *p) { (void)p; }
void _start(void) { }'''

# The same instructions in the same order, and one NOP.
SAME = {'leaf': 1, 'nothing': 1, 'number_and_string': 1, 'loop': 1, 'four': 1, 'live': 1, 'address': 1}
# As many. In some other order: a marker ends a basic block, and gcc and clang schedule, and fold loads, within those.
# In other registers: what is given to
# a marker is alive until it.
AS_MANY = {'while_loop': 1, 'live_with_calls': 1, 'live_floats': 1, 'early': 1, 'inlined': 2}
# With five values or more to hand over, gcc keeps one in another register before.
ALMOST = {'eight': 1}


def hot_paths(compiler):
    """{function: (its instructions without markers, with)}; jumps over cold blocks at the end of a loop are left out.
    """
    with open('stubs.c', 'w') as file:
        file.write(STUBS)
    compile_c(compiler, '-O2', '-fno-pie', '-c', 'stubs.c', '-o', 'stubs.o')
    code = {}
    for name, options in ('off', ['-DKYMO_NO_MARKERS']), ('on', []):
        compile_c(compiler, '-O2', '-fno-pie', *options, *INCLUDE, '-c', TARGETS / 'marker_hot.c', '-o', name + '.o')
        compile_c('gcc', '-no-pie', '-nostdlib', '-static', name + '.o', 'stubs.o', '-o', name)
        code[name] = functions(name)
    marks = {site.code for site in Marked('on').check().sites}
    return {
        function: (hot_path(code['off'][function],
                            set()), hot_path(code['on'][function], marks & code['on'][function].keys()))
        for function in {**SAME, **AS_MANY, **ALMOST}
    }


def without_detours(path):
    """clang puts the cold block of a loop at the end of the loop, and a jump over it where the loop is left. Such a
    jump leads to the next hot instruction; it is none of the loop's."""
    path = [line for line in path if line != 'MARKER']
    for i in reversed(range(len(path))):
        if path[i] == f'jmp {i + 1}':
            del path[i]
            path = [
                re.sub(r'^(j\w+|loop\w*) (\d+)$', lambda match: f'{match[1]} {int(match[2]) - (int(match[2]) > i)}',
                       line) for line in path
            ]
    return path


def check_hot_paths(compiler):
    paths = hot_paths(compiler)
    for function, n in {**SAME, **AS_MANY, **ALMOST}.items():
        off, on = paths[function]
        check_equal(on.count('MARKER'), n, f'markers in the hot path of {function}')
        on = without_detours(on)
        if function in SAME:
            check_same(on, off, f'the hot path of {function} by {compiler}, without its marker,')
        else:
            check(
                len(on) <= len(off) + (function in ALMOST),
                f'the hot path of {function} by {compiler} has as many instructions as without its marker', '\n'.join(
                    ['off:', *off, 'on:', *on]))
    check(any(line.startswith('j') for line in paths['loop'][0]), 'the loop is one')


def test_off_a_marker_is_one_nop_and_nothing_else_by_gcc(tmp):
    check_hot_paths('gcc')


def test_off_a_marker_is_one_nop_and_nothing_else_by_clang(tmp):
    check_hot_paths('clang')


def test_no_markers_leaves_nothing(tmp):
    """Notes, symbols, data: none; and the code is what it would be had the source no MARK() at all."""
    for compiler in 'gcc', 'clang', 'g++ -x c++', 'clang++ -x c++':
        for level in '-O0', '-O2':
            source = TARGETS / 'marker_hot.c'
            compile_c(compiler, level, '-DKYMO_NO_MARKERS', *INCLUDE, '-c', source, '-o', 'none.o')
            compile_c(compiler, level, '-DKYMO_NO_MARKERS', '-DKYMO_NO_MARK', '-DMARK(...)=((void)0)', *INCLUDE, '-c',
                      source, '-o', 'bare.o')
            listing = run(program('readelf'), '-SsW', 'none.o').ok().out
            check(not re.search('kymo_|note.kymo|stapsdt|data.kymo|init_array', listing),
                  f'{compiler} {level} leaves nothing', listing)
            code = [
                re.sub('^.*file format.*$', '',
                       run(program('objdump'), '-dr', name).ok().out, flags=re.MULTILINE)
                for name in ('none.o', 'bare.o')
            ]
            check_same(*code, f'code by {compiler} {level}')
    path = build_forms('c', 'gcc', '-O2', '-DKYMO_NO_MARKERS')
    check_same(run(path, 'on').ok().out, expected('c', 'off'), 'a program without markers')


# ---- what the compiler says ----------------------------------------------------------------------

WRONG = '''#include <kymo/marker.h>
void f(int a, const char *s, long l)
{
	MARK(wrong, "%d %s", s, a);
	MARK(too_few, "%d %ld", a);
	MARK(too_many, "%d", a, l);
	MARK(none, "%d");
	MARK(right, "%d %s %ld", a, s, l);
}
'''
GCC_SAYS = '''\
wrong.c:4:21: warning: format '%d' expects argument of type 'int', but argument 2 has type 'const char *' [-Wformat=]
wrong.c:4:21: warning: format '%s' expects argument of type 'char *', but argument 3 has type 'int' [-Wformat=]
wrong.c:5:23: warning: format '%ld' expects a matching 'long int' argument [-Wformat=]
wrong.c:6:24: warning: too many arguments for format [-Wformat-extra-args]
wrong.c:7:20: warning: format '%d' expects a matching 'int' argument [-Wformat=]
'''
CLANG_SAYS = '''\
wrong.c:4:23: warning: format specifies type 'int' but the argument has type 'const char *' [-Wformat]
wrong.c:4:26: warning: format specifies type 'char *' but the argument has type 'int' [-Wformat]
wrong.c:5:22: warning: more '%' conversions than data arguments [-Wformat-insufficient-args]
wrong.c:6:26: warning: data argument not used by format string [-Wformat-extra-args]
wrong.c:7:15: warning: more '%' conversions than data arguments [-Wformat-insufficient-args]
'''


def source(text, name='wrong.c'):
    with open(name, 'w') as file:
        file.write(text)
    return name


def test_a_format_that_does_not_match_is_a_warning_at_the_marker(tmp):
    source(WRONG)
    for options in [], ['-DKYMO_NO_MARKERS'], ['-DKYMO_MARKER_PORTABLE']:
        for compiler, text in ('gcc', GCC_SAYS), ('g++ -x c++', GCC_SAYS.replace(
                'char *', 'char*')), ('clang', CLANG_SAYS), ('clang++ -x c++', CLANG_SAYS):
            lines, _ = compiler_says(compiler, '-Wall', *options, *INCLUDE, '-c', 'wrong.c', '-o', 'wrong.o')
            check_same(lines, text, f'what {compiler} {" ".join(options)} says')


def marker(name, *arguments):
    return f'#include <kymo/marker.h>\nvoid f(int a)\n{{\n\tMARK({", ".join([name, *arguments])});\n\t(void)a;\n}}\n'


def test_nine_arguments_are_refused_in_words(tmp):
    for n in range(1, 17):
        source(marker('many', '"' + '%d' * n + '"', *['a'] * n))
        for compiler in 'gcc', 'g++ -x c++', 'clang', 'clang++ -x c++':
            for options in [], ['-DKYMO_NO_MARKERS']:
                lines, result = compiler_says(compiler, *options, *INCLUDE, '-c', 'wrong.c', '-o', 'wrong.o')
                if n <= 8:
                    check(result.status == 0 and not lines, f'{compiler} takes {n} arguments', result)
                else:
                    check(
                        len(lines) == 1 and 'MARK() takes at most 8 arguments after its format' in lines[0],
                        f'{compiler} refuses {n} arguments', result)


def test_a_name_that_is_no_identifier_is_refused(tmp):
    for compiler in 'gcc', 'g++ -x c++', 'clang', 'clang++ -x c++':
        for options in [], ['-DKYMO_NO_MARKERS']:
            for name in '1abc', '1', 'a-b', 'a.b', 'a b', '"a"', '':
                source(marker(name, '"%d"', 'a'))
                lines, result = compiler_says(compiler, *options, *INCLUDE, '-c', 'wrong.c', '-o', 'wrong.o')
                check(result.status != 0 and ' error: ' in '\n'.join(lines), f'{compiler} refuses {name!r}', result)
            for name in 'a1', '_', 'int', 'and', 'new', 'errno', 'NULL':
                source('#include <errno.h>\n' + marker(name, '"%d"', 'a'))
                compile_c(compiler, *options, *INCLUDE, '-c', 'wrong.c', '-o', 'wrong.o')


def test_a_marker_is_an_expression_with_and_without_markers(tmp):
    source('''#include <kymo/marker.h>
void f(int a)
{
	if (a)
		MARK(one, "%d", a);
	else
		MARK(two, "%d", a);
	a ? MARK(three, "%d", a) : (void)0;
	for (; a; MARK(four, "%d", a), a--)
		;
}
''')
    for compiler in 'gcc', 'g++ -x c++', 'clang', 'clang++ -x c++':
        for options in [], ['-DKYMO_NO_MARKERS'], ['-DKYMO_MARKER_PORTABLE']:
            compile_c(compiler, *options, '-Wall', '-Wextra', *INCLUDE, '-c', 'wrong.c', '-o', 'wrong.o')


def test_other_names_for_the_macro_and_the_provider(tmp):
    source('''#include <kymo/marker.h>
#ifdef MARK
#error MARK
#endif
int main(void)
{
	KYMO_MARK(one, "%d", 1);
	KYMO_MARK(two, KYMO_MARK_NOARGS);
	return 0;
}
''')
    compile_c('gcc', '-DKYMO_NO_MARK', '-DKYMO_MARKER_PROVIDER=mine', *INCLUDE, 'wrong.c', '-o', 'named')
    marked = Marked('named')
    check_equal({(note.provider, note.name, note.format, note.file, note.line)
                 for note in marked.sites + marked.places}, {('mine', 'one', '%d', 'wrong.c', 7),
                                                             ('mine', 'two', ' ', 'wrong.c', 8)}, 'notes')
    check_equal({(probe.provider, probe.name) for probe in marked.sdt}, {('mine', 'one'), ('mine', 'two')},
                'SDT probes')
