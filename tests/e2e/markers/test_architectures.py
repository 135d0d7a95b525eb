"""Markers on other architectures than the one that kymo runs on: i386, where they are patched, aarch64, and
architectures without a port."""
from kymotest import SOURCE, check, check_equal, need_32_bit_programs, program, run, sampled, share, skip, timeout
from markednotes import Marked
from markerbuild import INCLUDE, TARGETS, build_forms, check_forms, compile_c
from seeds import seed

# Where the headers of the kernel are that the package with i386's libraries does not have.
I386 = ['-m32', '-idirafter', '/usr/include/x86_64-linux-gnu']


def can_build(compiler, *options):
    with open('hello.c', 'w') as file:
        file.write('#include <stdio.h>\n#include <unistd.h>\nint main(void) { return puts("hello") < 0; }\n')
    return run(*compiler.split(), *options, 'hello.c', '-o', 'hello').status == 0


def check_i386(c, cplusplus):
    if not can_build(program(c), *I386):
        skip(f'{c} makes no programs for i386: libc6-dev-i386, lib32gcc-12-dev')
    need_32_bit_programs()
    languages = [('c', c)]
    if can_build(program(cplusplus) + ' -x c++', *I386):
        languages.append(('cc', cplusplus))
    seed()
    ways = (['-O0'], []), (['-O2',
                            '-fPIC'], []), (['-O2',
                                             '-fno-pie'], ['-no-pie']), (['-Os',
                                                                          '-fPIE'], ['-pie']), (['-O2'], ['-static'])
    for language, compiler in languages:
        for options, link, portable in share(
            ((*way, portable) for way in ways for portable in ([], ['-DKYMO_MARKER_PORTABLE'])), 2):
            print(compiler, *options, *link, *portable, flush=True)
            path = build_forms(language, compiler, *portable, plain=I386 + options, link=link)
            check_forms(path, language)
            marked = Marked(path).check(not portable)
            check(not any(place.code or place.third for place in marked.places),
                  'nothing can be recorded at places of i386')


@sampled
@timeout(300)
def test_i386_by_gcc(tmp):
    check_i386('gcc', 'g++')


@sampled
@timeout(300)
def test_i386_by_clang(tmp):
    check_i386('clang', 'clang++')


@sampled
@timeout(300)
def test_aarch64_under_qemu(tmp):
    runner, ways = [program('qemu-aarch64')], (['-O0'], ['-O2'], ['-O3', '-fPIC'], ['-O2', '-DKYMO_MARKER_PORTABLE'],
                                               ['-O2', '-fno-pie'])
    seed()
    for language, compiler in ('c', 'aarch64-linux-gnu-gcc'), ('cc', 'aarch64-linux-gnu-g++'):
        program(compiler)
        for options in share(ways, 2):
            path = build_forms(language, compiler, *options, link=['-static'])
            check_forms(path, language, runner)
            marked = Marked(path).check(patched=False)
            listing = run(program('readelf'), '-n', path).ok().out
            check_equal(listing.count('  kymo  '), len(marked.sites) + len(marked.places), 'notes that readelf sees')
            check_equal(listing.count('    Provider: kymo'), len(marked.sites), 'SDT probes that readelf sees')


def check_library(compiler, *options, runner=()):
    """libkymo-marker, compiled for that architecture together with a program that connects probes."""
    sources = [
        SOURCE / 'lib/marker' / f'{name}.c' for name in ('calls', 'connect', 'dispatch', 'lock', 'modules', 'notes',
                                                         'readers', 'registry', 'toggle', 'update', 'record_none')
    ]
    compile_c(compiler, *options, '-O2', '-std=gnu17', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Wno-unused-parameter',
              '-Werror', *INCLUDE, '-I', SOURCE / 'src', '-idirafter', '/usr/include/x86_64-linux-gnu',
              TARGETS / 'marker_library.c', *sources, '-pthread', '-o', 'library')
    check_equal(run(*runner, './library', 100).ok().out, '100 turns\n', f'{compiler} {" ".join(options)}')


@sampled
def test_the_library_on_i386(tmp):
    if not can_build(program('gcc'), *I386):
        skip('gcc makes no programs for i386: libc6-dev-i386, lib32gcc-12-dev')
    need_32_bit_programs()
    seed()
    for options in share(([], ['-fno-pie', '-no-pie'], ['-static'], ['-DKYMO_MARKER_PORTABLE']), 2):
        check_library('gcc', '-m32', *options)


@timeout(300)
def test_the_library_on_aarch64_under_qemu(tmp):
    check_library(program('aarch64-linux-gnu-gcc'), '-static', runner=[program('qemu-aarch64')])


def test_architectures_that_nobody_has_ported_compile(tmp):
    clang = program('clang')
    for target in 'riscv64', 'armv7', 'powerpc64le', 's390x', 'mips64el', 'x86_64':
        triple = target + ('-linux-gnux32'
                           if target == 'x86_64' else '-linux-gnueabihf' if target == 'armv7' else '-linux-gnu')
        for options in ['-O0'], ['-O2'], ['-O2', '-fPIC']:
            result = run(clang, f'--target={triple}', '-ffreestanding', '-Wall', '-Wextra', '-Wno-override-module',
                         *options, *INCLUDE, '-c', TARGETS / 'marker_hot.c', '-o', 'hot.o')
            if 'No available targets' in result.err or 'unable to create target' in result.err:
                print(f'clang here does not know {target}')
                continue
            check(not result.ok().err, f'{target} {options}', result)
            listing = run(program('readelf'), '-SW', 'hot.o').ok().out
            check('.note.kymo' in listing and '.note.stapsdt' in listing, f'{target} has notes', listing)


def test_the_portable_form_is_the_same_program(tmp):
    """Same source, same markers, same notes but for the instruction that there is none of."""
    for language, compilers in ('c', ('gcc', 'clang')), ('cc', ('g++', 'clang++')):
        for compiler in compilers:
            path = build_forms(language, compiler, '-O2', output='patched')
            portable = build_forms(language, compiler, '-O2', '-DKYMO_MARKER_PORTABLE', output='portable')
            check_forms(portable, language, modes=('off', 'on', 'record', 'slow'))
            told = []
            for marked in Marked(path).check(), Marked(portable).check(patched=False):
                told.append({(note.name, note.format, note.file, note.line, note.provider, *note.types)
                             for note in marked.sites + marked.places})
            check_equal(told[0], told[1], f'what notes of {compiler} tell')
