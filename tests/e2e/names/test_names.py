"""Names of C++ and Rust: probes take them as their sources have them, and all that shows a name shows it so."""
import json
import re
from pathlib import Path

from kymotest import KYMO, KYMO_PLAIN, SOURCE, check, check_equal, check_matches, need_root, program, record, run

SHOP = SOURCE / 'tests/e2e/report/shop.cc'
RUST = Path(__file__).with_name('rust.c')
STRING = 'std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >'
ADDS = {
    'shop::Cart::add(int)': 7, f'shop::Cart::add({STRING} const&, int)': 5,
    'shop::Cart::add(std::vector<shop::Item, std::allocator<shop::Item> > const&)': 3
}


def shop(tmp):
    path = tmp / 'shop'
    run(program('g++'), '-O1', '-g', '-o', path, SHOP).ok()
    return path


def rust(tmp):
    path = tmp / 'rust'
    run(program('gcc'), '-O1', '-o', path, RUST).ok()
    return path


def probe_counts():
    """{name: count} as users see the names."""
    return {probe['name']: probe['count'] for probe in json.loads(run(KYMO, 'report', '--json').ok().out)['probes']}


def counts(*words):
    """Of the probes that are recorded so, without the file's name."""
    record(*words).ok()
    return {re.sub(r'^[a-z+]*:', '', name): n for name, n in probe_counts().items()}


def test_a_name_without_parameters_means_all_overloads_and_says_so(tmp):
    path = shop(tmp)
    result = record('-p', f'{path}:shop::Cart::add', '--', path).ok()
    check_matches(result.err, r'shop::Cart::add means 3 functions, and all are recorded; .*: shop::Cart::add\(int\), ')
    check_equal(probe_counts(), {f'shop:{name}': n for name, n in ADDS.items()})


LAST = """
extern "C" int puts(const char *);
namespace shop { void put(int); void put(char); }
__asm__(".text; .globl _ZN4shop3putEi; .type _ZN4shop3putEi, @function; _ZN4shop3putEi: nop; nop; nop; nop; nop; nop;"
        "ret; nop; nop; nop; nop; nop; .size _ZN4shop3putEi, 7;"
        ".section .text.last,\\"ax\\",@progbits; .globl _ZN4shop3putEc; .type _ZN4shop3putEc, @function;"
        "_ZN4shop3putEc: ret; .size _ZN4shop3putEc, 1; .text");
int main() { for (int i = 0; i < 5; i++) { shop::put(i); shop::put((char)i); } }
"""


def test_an_overload_that_cannot_be_probed_is_left_out(tmp):
    """The text ends after its one byte, where no jump has room."""
    (tmp / 'last.cc').write_text(LAST)
    run(program('g++'), '-O1', '-o', 'last', 'last.cc').ok()
    result = record('--backend', 'inproc', '-p', './last:shop::put', '-r', './last:shop::put', '--', './last').ok()
    check_equal({name: n for name, n in probe_counts().items() if n}, {
        'last:shop::put(int)': 5, 'last:shop::put(int)%return': 5
    }, 'the other one')
    check_matches(result.err, r"skipped 1 of 2 functions that match \./last:shop::put and cannot be probed safely "
                  r"\(shop::put\(char\): jump: [^;]*; … \('kymo explain' tells the rest\)\)")
    record('--backend', 'inproc', '-p', './last:shop::put(char)', '--', './last').refused('no probe can be put at')


def test_parameters_choose_one_overload(tmp):
    path = shop(tmp)
    for spec, name in (('shop::Cart::add(int) price=%si:s32', 'shop::Cart::add(int)'), ('::shop::Cart::add( int )',
                                                                                        'shop::Cart::add(int)'),
                       ('shop::Cart::add(const std::string &, int)', f'shop::Cart::add({STRING} const&, int)')):
        result = record('-p', f'{path}:{spec}', '--', path).ok()
        check('means' not in result.err, result.err)
        check_equal(probe_counts(), {f'shop:{name}': ADDS[name]}, spec)
    check_equal(counts('-p', f'{path}:shop::Cart::add(int)+4', '--', path), {'shop::Cart::add(int)+0x4': 7})
    check_equal(counts('-p', f'p:added {path}:shop::Cart::add(int)', '--', path), {'added': 7})
    check_equal(counts('-r', f'{path}:shop::Cart::total() const $retval:s32', '--', path),
                {'shop::Cart::total() const%return': 1})


def test_globs_templates_operators_and_mangled_names_are_found(tmp):
    path = shop(tmp)
    both = {'shop::twice<int>(int)': 1, 'shop::twice<double>(double)': 1}
    plus = {'shop::Cart::operator+=(shop::Item const&)': 2}
    hidden = {'shop::(anonymous namespace)::hidden(int)': 1}
    total = {'shop::Cart::total() const': 1}
    ends = {'shop::Cart::Cart()': 1, 'shop::Cart::~Cart()': 1}
    for spec, expected in (('shop::twice', both), ('shop::twice<int>', {
            'shop::twice<int>(int)': 1
    }), ('shop::Cart::operator+=', plus), ('shop::hidden', hidden), ('shop::(anonymous namespace)::hidden', hidden),
                           ('shop::Cart::t*', total), ('shop::Cart::total() const', total), ('shop::*(int)', {
                               'shop::Cart::add(int)': 7, 'shop::twice<int>(int)': 1, **hidden
                           }), ('_ZN4shop4Cart3addEi', {'shop::Cart::add(int)': 7}), ('*4shop4Cart5total*', total),
                           ('shop::*', {**ADDS, **both, **plus, **hidden, **total, **ends})):
        check_equal(counts('-p', f'{path}:{spec}', '--', path), expected, spec)


def test_names_of_rust_are_written_without_hashes(tmp):
    path = rust(tmp)
    for spec, expected in (('app::shop::Cart::add', {'<app::shop::Cart>::add': 7}), ('<app::shop::Cart>::total', {
            '<app::shop::Cart>::total': 1
    }), ('app::store::load', {'app::store::load':
                              5}), ('app::main::{closure#1}', {'app::main::{closure#1}': 3}), ('app::gen', {
                                  'app::gen::<i32>': 5, 'app::gen::<(i8,)>': 3
                              }), ('app::gen::<(i8,)>', {'app::gen::<(i8,)>':
                                                         3}), ('app::sto*', {'app::store::load': 5})):
        check_equal(counts('-p', f'{path}:{spec}', '--', path), expected, spec)


def test_functions_that_rust_has_made_of_one_are_told_apart_by_their_hashes(tmp):
    path = rust(tmp)
    both = {'app::Stack<T>::push::h0123456789abcdef': 9, 'app::Stack<T>::push::hfedcba9876543210': 4}
    result = record('-p', f'{path}:app::Stack::push', '-r', f'{path}:app::Stack::push', '--', path).ok()
    for name in both:
        check(f' {name}' in result.err, f'the warning names {name}', result.err)
    check_equal(probe_counts(), {f'rust:{name}{end}': n for name, n in both.items() for end in ('', '%return')},
                'probes')
    for words in ([], ['--by-thread'], ['-w', '80']):
        out = run(KYMO, 'report', *words).ok().out
        for name in both:
            check(name[-16:] in out, f'report {words} tells {name}', out)
    for name, n in both.items():
        check_equal(counts('-p', f'{path}:{name}', '--', path), {'app::Stack<T>::push': n}, f'the one of {name}')


def test_variables_are_listed_below_demangled_names(tmp):
    out = run(KYMO, 'list', '--vars', f'{shop(tmp)}:shop::Cart::add(int)').ok().out
    check_matches(out, r'\A\S+/shop:shop::Cart::add\(int\)  0x')


def test_what_is_not_there_is_told_with_the_nearest_demangled_names(tmp):
    path = shop(tmp)
    for spec, near in (('shop::Cart::ad', 'shop::Cart::add'), ('Cart::total', 'shop::Cart::total'),
                       ('shop::Crat::total', 'shop::Cart::total'), ('shop::Cart::add(long)', 'shop::Cart::add(int)')):
        result = record('-p', f'{path}:{spec}', '--', path)
        check_equal(result.status, 1, spec)
        check(f'has no function {spec}; the nearest names are ' in result.err and near in result.err, result.err)
    result = record('-p', f'{path}:shop::Cart::add+4', '--', path)
    check_equal(result.status, 1)
    check_matches(result.err, r'shop::Cart::add means 3 functions, and the offset may be in any of them')
    result = record('-p', 'shop::Cart::add', '--', path)
    check_equal(result.status, 2)
    check_matches(result.err,
                  r"expected the file before the function, such as ./app:shop::Cart::add; .*\n  shop::Cart::add\n  \^")
    result = record('-p', f'{path}:shop::Cart::add(int, long) x=%dj', '--', path)
    lines = result.err.splitlines()
    check_equal(lines[2].index('^'), lines[1].index('%dj'), 'the column of the caret')


def test_messages_of_several_lines_have_demangled_names(tmp):
    """But for what quotes the user: a caret marks a column of it."""
    path = shop(tmp)
    result = record('-p', f'{path}:_ZN4shop4Cart3addEi x=%dj', '--', path)
    check_equal(result.status, 2, 'exit status')
    check('_ZN4shop4Cart3addEi x=%dj' in result.err.splitlines()[1], 'what the user wrote', result.err)
    result = record('-p', f'{path}:_ZN4shop4Cart3addEi', '-p', f'{path}:_ZN4shop4Cart3addEi+1', '--', path)
    check('_ZN' not in result.err, 'names of functions', result.err)


def test_every_view_shows_the_source_names_and_raw_ones_if_wanted(tmp):
    path = shop(tmp)
    record('-p', f'{path}:shop::*', '-r', f'{path}:shop::*', '--', path).ok()
    for view in ((), ('--events', ), ('--graph', ), ('--tree', ), ('--diff', 'kymo.data'), ('--json', ),
                 ('--events', '--json'), ('--diff', 'kymo.data', '--json')):
        shown, raw = (run(KYMO, 'report', *view, *more).ok().out for more in ((), ('--no-demangle', )))
        check('shop::Cart::add(int)' in shown, view, shown)
        check('_ZN' not in shown.replace('"mangled": "_ZN', ''), view, shown)
        check('_ZN4shop4Cart3addEi' in raw and 'shop::' not in raw, view, raw)
    names = {
        probe['symbol']: probe.get('mangled') for probe in json.loads(run(KYMO, 'report', '--json').ok().out)['probes']
    }
    check_equal(names['shop::Cart::add(int)'], '_ZN4shop4Cart3addEi', 'the mangled name in JSON')
    check('_ZN4shop4Cart3addEi' in Path('kymo.data/metadata').read_text(errors='replace'), 'the trace has the raw name')


def test_filters_take_both_kinds_of_names(tmp):
    path = shop(tmp)
    record('-p', f'{path}:shop::*', '--', path).ok()
    for glob, n in (('shop::Cart::add', 15), ('shop::Cart::add(int)', 7), ('_ZN4shop4Cart3addEi', 7),
                    ('shop::twice', 2), ('shop:shop::Cart::add(int)', 7)):
        lines = run(KYMO, 'report', '--events', '--probe', glob).ok().out.splitlines()
        check_equal(len(lines), n, glob)
    graph = run(KYMO, 'report', '--graph', '--function', 'shop::Cart::total').ok().out
    check('shop::Cart::total() const' in graph and 'add' not in graph, graph)


def test_list_and_explain_take_and_show_them(tmp):
    path = shop(tmp)
    rows = run(KYMO, 'list', path, 'shop::Cart::add').ok().out.splitlines()
    check_equal(sorted(re.sub(r'^.*/shop:', '', row) for row in rows), sorted(ADDS))
    rows = json.loads(run(KYMO, 'list', '--json', path, 'shop::Cart::add(int)').ok().out)
    check_equal([(row['name'], row['mangled']) for row in rows], [('shop::Cart::add(int)', '_ZN4shop4Cart3addEi')])
    check('_ZN4shop4Cart3addEi' in run(KYMO, 'list', '--no-demangle', path, 'shop::Cart::add').ok().out)
    check_matches(run(KYMO, 'explain', path, 'shop::Cart::add(int)').ok().out, r'^\S*/shop:shop::Cart::add\(int\)\n')
    check_matches(run(KYMO, 'list', path, 'shop::Cart::ad').err, r'near are .*shop::Cart::add')


def test_names_for_completion_are_words_that_a_spec_takes(tmp):
    path = shop(tmp)
    names = run(KYMO, 'list', '--names', path, 'shop::Cart::*').ok().out.splitlines()
    check_equal(
        sorted(names),
        ['shop::Cart::Cart', 'shop::Cart::add', 'shop::Cart::operator+=', 'shop::Cart::total', 'shop::Cart::~Cart'])
    script = f'''. {SOURCE}/completions/kymo.bash
COMP_LINE="kymo record -p {path}:shop::Cart::a" COMP_POINT=${{#COMP_LINE}} COMP_WORDBREAKS=:
COMP_POINT=${{#COMP_LINE}}; _kymo 2>/dev/null; printf '%s\\n' "${{COMPREPLY[@]}}"'''
    out = run(program('bash'), '-c', script, env={'PATH': f'{Path(KYMO_PLAIN).parent}:/usr/bin:/bin'}).out
    check_equal(out.split(), ['add'], 'what bash offers behind the last colon')


def test_functions_of_a_real_library_are_recorded(tmp):
    program('ninja')
    record('-p', 'libstdc++:operator new(unsigned long) size=%di:u64', '-p', 'libstdc++:operator delete(void*)', '--',
           'ninja', '--version').ok()
    found = probe_counts()
    check(set(found) <= {'libstdc++:operator new(unsigned long)', 'libstdc++:operator delete(void*)'}, found)
    check(found.get('libstdc++:operator new(unsigned long)', 0) > 10, found)


def test_the_kernel_records_the_same_names(tmp):
    need_root()
    path = shop(tmp)
    result = record('--backend', 'kernel', '-p', f'{path}:shop::Cart::add', '--', path).ok()
    check_matches(result.err, r'shop::Cart::add means 3 functions')
    check_equal(probe_counts(), {f'shop:{name}': n for name, n in ADDS.items()})


def test_stacks_of_system_calls_name_functions_as_the_source_does(tmp):
    path = tmp / 'writes'
    (tmp / 'writes.cc').write_text(
        '#include <unistd.h>\nnamespace shop { struct Cart { __attribute__((noinline)) long show(int n) '
        '{ return write(1, "shown\\n", 6) + n; } }; }\nint main(int n, char **) { return shop::Cart().show(n) != 7; }\n'
    )
    run(program('g++'), '-O1', '-fno-optimize-sibling-calls', '-o', path, tmp / 'writes.cc').ok()
    for more, name in (((), 'shop::Cart::show(int)'), (('--no-demangle', ), '_ZN4shop4Cart4showEi')):
        err = run(KYMO, 'syscalls', '-k', '-e', 'write', *more, '--', path).ok().err
        check_matches(err, r'/writes\(' + re.escape(name) + r'\+0x[0-9a-f]+\) ')
