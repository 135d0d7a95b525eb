"""Compiling programs with markers, for tests/e2e/markers."""
import functools

from kymotest import SOURCE, check, check_same, program, run

TARGETS = SOURCE / 'tests/targets'
WARNINGS = ['-Wall', '-Wextra', '-Wshadow', '-Wconversion', '-Wpedantic', '-Werror']
INCLUDE = ['-I', SOURCE / 'include']

# What marker_forms.c and marker_forms.cc print of their markers, all of them turned on.
FORMS_C = '''\
begin
integers -1 200 -300 60000 -5 4000000000 1 7
longs -6 4000000000 -7000000000 81985529216486895 8
floats 0.5 3.25 6.5 1.5
strings "text" "own" "text" "event" 5
one_string "name"
temporary "brief"
quoted "text"
no_string 3 NULL 4
pointers 0x1234 0x0
bits 5 -3
live 0 1 1.5
live 1 3 1.75
live 2 8 2.5
leaf 7 12
eight 3 2 3 4 5 6 7 8
mixed 1 "b" 0.125 -4 "e" 6 "g" 0x8
unrolled 0
unrolled 1
unrolled 2
unrolled 3
recursive 3
recursive 2
recursive 1
recursive 0
variable_array 3
inner_array 3
inner_array 4
inner_array 5
variadic 10
variadic 20
scope 3
scope_zero
scope_other 1
begins 40
static_inline 120 "then"
begins 41
static_inline 123 "else"
inline_function 41
begins 42
inline_function 42
begins 43
inline_function 3
effects 1 2
end 3875335123
'''
FORMS_CC = '''\
begin
integers -1 200 -300 60000 1 7 1
longs -6 4000000000 -7000000000 81985529216486895 1
floats 0.5 1e+09
bits 5 -3
strings "text" "own" "temporary"
pointers 0x1234 0x0
effects 1 2
thing_made 3 "xxx"
thing_copied 4
thing_value 3 "xxx"
thing_called 5 4
lambda_of_thing 2 4
lambda_of_thing 3 4
thing_gone 4
thing_gone 3
thing_count 3
lambda 3 139382
twice 4 "yy"
twice 1 "yy"
twice 8 "yy"
of_type -5 "int"
of_type 7 "long long"
counted 3 3
counted 2 4
counted 1 5
pack 3 1
pack 3 98
pack 3 3
thing_made 3 "xxx"
thing_made 4 "xxxx"
will_throw 3
thing_gone 4
caught "reason"
thing_value 3 "xxx"
thing_gone 3
thing_made 3 "xxx"
other_value 3
thing_value 3 "xxx"
scope_zero ""
scope_other "z"
thing_gone 3
live 0 1 1.5
live 1 3 1.75
live 2 8 2.5
static_inline 3 "static"
inline_function 3
end 2193796277
'''


def compile_c(compiler, *args, **options):
    """Run a compiler; any word of it is a failure. `compiler` may have options behind it."""
    words = compiler.split() if isinstance(compiler, str) else [*compiler]
    result = run(program(words[0]), *words[1:], *args, env={'LC_ALL': 'C'}, seconds=200, **options).ok()
    check(not result.err and not result.out, 'the compiler has nothing to say', result)


def compiler_says(compiler, *args):
    """The lines of a compiler's diagnostics that begin with a place: errors and warnings, no notes."""
    words = compiler.split()
    result = run(program(words[0]), *words[1:], *args, env={'LC_ALL': 'C'})
    return [line for line in result.err.splitlines() if ' warning: ' in line or ' error: ' in line], result


def expected(language, mode):
    """What a program of build_forms() prints, given this argument."""
    result = {'c': 3875335123, 'cc': 2193796277}[language]
    text = {'c': FORMS_C, 'cc': FORMS_CC}[language] if mode != 'off' else ''
    if mode in ('record', 'slow'):
        text = text.replace('NULL', '"(null)"')  # strings are copied then
    text += f'result {result}, {0 if mode == "off" else 2} arguments evaluated\n'
    if language == 'cc' and mode in ('on', 'slow'):
        text += 'after_main\n'  # in a ring it is not printed
    return text


def build_forms(language, compiler, *options, plain=(), link=(), output='forms'):
    """marker_forms.c or .cc with main(), which is C and without sanitizers and the like; `plain` are options for both.
    """
    by_hand = compile_by_hand(compiler.replace('clang++', 'clang').replace('g++', 'gcc'), *plain)
    compile_c(compiler, *WARNINGS, '-Wno-vla', *plain, *options, *INCLUDE, '-c', TARGETS / f'marker_forms.{language}',
              '-o', 'forms.o')
    compile_c(compiler, *plain, *options, *link, 'forms.o', by_hand, '-o', output)
    return './' + output


@functools.cache
def compile_by_hand(c, *plain):
    """Once for each way in a test."""
    output = f'by_hand.{compile_by_hand.cache_info().misses}.o'
    compile_c(c, *plain, '-O1', '-std=gnu17', '-Wall', '-Wextra', '-Werror', *INCLUDE, '-c',
              TARGETS / 'marker_by_hand.c', '-o', output)
    return output


def check_forms(path, language, runner=(), modes=('off', 'on')):
    """It prints what it must, with markers off and on; returns its notes, checked."""
    for mode in modes:
        out = run(*runner, path, mode).ok().out
        check_same(out, expected(language, mode), f'{path} {mode}')
