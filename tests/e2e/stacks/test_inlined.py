"""Inlined functions and lines of stacks: as gdb's backtrace has them at the same hits, of generated programs in C, C++
and Rust, and as addr2line has them; what traces and reports make of them, and what does without."""
import itertools
import json
import os
import random
import re
import shutil
import signal
from pathlib import Path

from kymotest import (babeltrace, check, check_equal, check_matches, eventually, kymo, program, record, run,
                      sampled, share, skip, start, start_record, timeout)
from seeds import seed

HERE = Path(__file__).parent
APP = HERE / 'inlined.c'
ADDR2LINE = next(filter(None, map(shutil.which, ['llvm-addr2line', 'llvm-addr2line-14'])), None)
HITS = 150  # that gdb is asked about


def stacks(directory='kymo.data', *options):
    """Of each record, in order."""
    lines = kymo('report', '--events', '--json', *options, directory).ok().out.splitlines()
    return [event['stack'] for event in map(json.loads, lines) if event['event'] == 'probe']


def plain(name):
    """Without parameters and template arguments, which debuggers write in ways of their own."""
    name = re.sub(r'\{\{closure\}\}|\{closure[^}]*\}|_\$u7b\$\$u7b\$closure\$u7d\$\$u7d\$', 'closure', name or '?')
    name, depth, out = name.replace('(anonymous namespace)', ''), 0, ''
    for letter in name:
        depth += letter in '<('
        out += letter if not depth else ''
        depth -= letter in '>)'
    out = out.split(' const')[0].split(' [clone')[0]
    return re.sub(r'::h[0-9a-f]{16}$', '', out.split()[-1] if out.split() else '?').split('::')[-1]


def bare(name):
    """Without what compilers add to names of clones."""
    return plain(re.sub(r'\.(part|constprop|isra|cold|llvm)[.0-9]*', '', name))


def of_kymo(stack, last):
    """[function, file, line, whether it is inlined], up to the function `last`."""
    found = []
    for frame in stack:
        found.append([bare(frame.get('function', '?')), os.path.basename(frame.get('source', '')), frame.get('line', 0),
                      'inlined' in frame])
        if found[-1][0] == last and not found[-1][3]:
            break
    return found


def of_gdb(app, asked, *args):
    Path('gdb.json').write_text(json.dumps({**asked, 'hits': HITS}))
    out = run('gdb', '-nx', '-batch', '-ex', 'set confirm off', '-ex', 'set width 0', '-x', HERE / 'gdb_inlined.py',
              '--args', app, *args, env={**os.environ, 'DEBUGINFOD_URLS': ''}, seconds=150).out
    lines = [json.loads(line) for line in re.findall('STACK (.*)', out)]
    check(lines, 'gdb has stacks', out)
    return [[[bare(name), *rest] for name, *rest in stack] for stack in lines]


def check_by_addr2line(app, found):
    """Each address of the file, once: its functions and lines are those that addr2line finds. That of LLVM, for the one
    of binutils 2.40 takes files of one unit, and functions within each other, for others."""
    groups = {}
    for stack in found:
        of_app = [frame for frame in stack if os.path.basename(frame.get('file', '')) == os.path.basename(app)]
        for frame in of_app:
            address = int(frame['address'], 16) - (frame['address'] != stack[0]['address'])
            group = groups.setdefault(address, [])
            if 'source' in frame or 'inlined' in frame:
                group.append([bare(frame['function']), os.path.basename(frame.get('source', '')), frame.get('line', 0)])
    # an address that several stacks have comes as often
    ends = {address: group[:len(group) // group.count(group[-1])] for address, group in groups.items() if group}
    out = run(ADDR2LINE, '-a', '-i', '-f', '-C', '-e', app, *map(hex, ends)).ok().out
    for text in re.split(r'^0x', out, flags=re.M)[1:]:
        address, *lines = text.splitlines()
        expected = []
        for name, where in zip(lines[::2], lines[1::2]):
            file, line = re.match(r'(.*):(\d+|\?)', where).groups()
            line = 0 if line == '?' else int(line)
            expected.append([bare(name), os.path.basename(file) if line else '', line])
        check_equal(ends[int(address, 16)], expected, f'what addr2line has at 0x{address} of {app}')


def compare(app, last='main', at='*leaf'):
    """gdb leaves out rows without a line, and takes a statement's row before others of one address, so that a line may
    differ: then the one here is addr2line's."""
    if not shutil.which('gdb'):
        skip('needs gdb')
    record('--stack', '--stack-size', '16K', '-p', f'{app}:leaf', '--', app).ok()
    whole = stacks()[:HITS]
    if ADDR2LINE:
        check_by_addr2line(app, whole)
    found, expected = [of_kymo(stack, last) for stack in whole], of_gdb(app, {'at': at, 'last': last})
    check_equal(len(found), len(expected), 'stacks')
    n, n_lines = 0, 0
    for i, pair in enumerate(zip(found, expected)):
        found_names, expected_names = [[[frame[0], frame[3]] for frame in stack] for stack in pair]
        check_equal(found_names, expected_names, f'stack {i} of {app}')
        n += len(pair[0])
        # where gdb has passed the beginning of leaf() its line is another
        n_lines += sum(a != b for a, b in list(zip(*pair))[at[0] != '*':])
    check(n_lines <= n // 8, 'lines are those of gdb but for a few', n_lines, n)
    return found


# ---- generated programs --------------------------------------------------------------------------

WAYS = {
    'c': ['static inline __attribute__((always_inline)) ', 'static inline ', 'static ', 'static __attribute__((noinline)) '],
    'cc': ['static inline __attribute__((always_inline)) ', 'inline ', 'static ', '__attribute__((noinline)) '],
}


def generate(name, language):
    """Functions that call later ones, some of them in a header; the last ones call leaf(), of another unit."""
    choose = random.Random(name)
    n = 14
    header, body = ['#pragma once', 'extern "C" void leaf(int n);' if language == 'cc' else 'void leaf(int n);'], []
    for i in reversed(range(n)):
        lines = body if choose.random() < 0.6 else header
        way = choose.choice(WAYS[language][:3] if lines is header else WAYS[language])
        where = choose.choice(['', 'space', 'Class']) if language == 'cc' else ''
        if where == 'space':
            lines.append(f'namespace shop {{ namespace cart{i} {{')
        elif where == 'Class':
            lines.append(f'struct Cart{i} {{ int rest; Cart{i}(int n) : rest(n) {{ }}')
            way = way.replace('static ', '')
        lines += [f'{way}int f{i}(int n)', '{', '\tint sum = n;']
        for _ in range(choose.randint(1, 2)):
            later = choose.randint(i + 1, n)
            call = f'leaf(sum + {choose.randint(1, 9)})' if later >= n else f'sum += CALL_{later}(sum % {choose.randint(2, 9)})'
            kind = choose.randint(0, 2)
            if kind == 0:
                lines += ['\tif (n >= 0)', f'\t\t{call};']
            elif kind == 1:
                lines += [f'\tfor (int i = 0; i < {choose.randint(1, 2)}; i++) {{', f'\t\t{call};', '\t}']
            else:
                lines += ['\t{', f'\t\t{call};', '\t\tsum ^= n;', '\t}']
        lines += ['\treturn sum;', '}']
        if where == 'space':
            lines += ['} }', f'#define CALL_{i} shop::cart{i}::f{i}']
        elif where == 'Class':
            lines += ['};', f'#define CALL_{i}(n) Cart{i}(n).f{i}(n)']
        else:
            lines += [f'#define CALL_{i} f{i}']
    # what is in the header calls what comes later there, and nothing of the body
    known = set()
    for lines in (header, body):
        for k, line in enumerate(lines):
            for later in re.findall(r'CALL_(\d+)\(sum', line):
                if later not in known:
                    lines[k] = line.replace(f'sum += CALL_{later}', 'leaf')
            known.update(re.findall(r'#define CALL_(\d+)', line))
    body += ['int main(int argc, char **argv)', '{', '\tint sum = CALL_0(argc);', '\tsum += CALL_1(sum);',
             '\treturn sum == 12345 && argv;', '}']
    Path(f'app.{language}').write_text('#include "app.h"\n' + '\n'.join(body) + '\n')
    Path('app.h').write_text('\n'.join(header) + '\n')
    Path(f'leaf.{language}').write_text('#include "app.h"\n__attribute__((noinline)) void leaf(int n)\n{\n'
                                        '\tasm volatile(".fill 8, 1, 0x90" :: "r"(n));\n}\n')


def compare_generated(language, compiler):
    seed()
    ways = share(itertools.product(('-O0', '-O2', '-O3'), (4, 5)), 2)
    n_inlined = 0
    for level, standard in ways:
        generate(f'{language}{level}{standard}0', language)
        run(program(compiler), level, '-g', f'-gdwarf-{standard}', '-o', 'app', f'app.{language}', f'leaf.{language}',
            seconds=60).ok()
        n_inlined += sum(frame[3] for stack in compare('./app') for frame in stack)
    check(n_inlined > 5 * len(ways), 'functions were inlined', n_inlined)


@sampled
@timeout(600)
def test_c_of_gcc_as_gdb_has_it(tmp):
    compare_generated('c', 'gcc')


@sampled
@timeout(600)
def test_c_of_clang_as_gdb_has_it(tmp):
    compare_generated('c', 'clang')


@sampled
@timeout(600)
def test_cxx_of_gcc_as_gdb_has_it(tmp):
    compare_generated('cc', 'g++')


@sampled
@timeout(600)
def test_cxx_of_clang_as_gdb_has_it(tmp):
    compare_generated('cc', 'clang++')


# ---- Rust ----------------------------------------------------------------------------------------

RUST = """
#[inline(never)]
#[no_mangle]
pub extern "C" fn leaf(n: i32) -> i32 {
    unsafe { std::arch::asm!("nop") };
    std::hint::black_box(n)
}

mod shop {
    pub struct Cart {
        pub n: i32,
    }

    impl Cart {
        #[inline(always)]
        pub fn add(&self, more: i32) -> i32 {
            super::leaf(self.n + more) + 1
        }
    }
}

#[inline(always)]
fn twice<T: Fn(i32) -> i32>(run: T) -> i32 {
    let first = run(1);
    first + run(2)
}

#[inline(never)]
fn work(n: i32) -> i32 {
    let cart = shop::Cart { n };
    twice(|i| cart.add(i)) + 1
}

fn main() {
    std::process::exit(if work(3) == 12345 { 1 } else { 0 });
}
"""


@timeout(200)
def test_rust_as_gdb_has_it(tmp):
    if not shutil.which('rustc'):
        skip('needs rustc')
    Path('app.rs').write_text(RUST)
    for level in ('0', '2', '3'):
        run('rustc', '-g', '-C', f'opt-level={level}', '-C', 'codegen-units=1', '-o', 'app', 'app.rs', seconds=90).ok()
        found = compare('./app', 'work', 'leaf')
        check_equal(len(found), 2, 'calls')
        check(any(frame[0] == 'add' and frame[3] for frame in found[0]) or level == '0', 'it is inlined', found)


# ---- programs of Debian --------------------------------------------------------------------------

PROGRAMS = (('/usr/bin/git', 'config', '--list', '--show-origin'),
            ('/usr/bin/sqlite3', ':memory:', 'create table t(x); insert into t values (1), (2); select sum(x) from t;'),
            ('/usr/bin/python3', '-S', '-c', 'print(sorted([3, 1, 2]), open("/dev/null").read())'))


@timeout(300)
def test_libc_as_gdb_has_it(tmp):
    """Frames of the C library, whose debug information is in libc6-dbg, in stacks of other programs."""
    if not shutil.which('gdb'):
        skip('needs gdb')
    symbols = run(program('nm'), '-D', '/usr/lib/x86_64-linux-gnu/libc.so.6').ok().out
    n, n_lines, n_inlined = 0, 0, 0
    for command in PROGRAMS:
        program(command[0])
        for function in ('mmap', 'write', 'brk'):
            status = record('--stack', '--stack-size', '16K', '--no-follow', '-p', f'libc:{function}', '--', *command)
            whole = stacks()[:HITS] if not status.status else []
            found = [of_kymo([frame for frame in stack if 'source' in frame], None) for stack in whole]
            if not found:
                continue  # it does not call that
            if not any(found):
                skip('needs libc6-dbg')
            offset = int(re.search(rf'^([0-9a-f]+) . {function}@@', symbols, re.M).group(1), 16)
            expected = of_gdb(command[0], {'offset': offset, 'last': None}, *command[1:])
            # gdb begins where the program does: the library may have called it before
            check(len(expected) <= len(found) < HITS, 'stacks', len(found), len(expected))
            for stack, ours, theirs in zip(whole[::-1], found[::-1], expected[::-1]):
                # nothing that is inlined there is called yet at the first address of a function
                theirs = theirs[next(k for k, frame in enumerate(theirs) if not frame[3]):]
                if 'cut_at' in stack[-1]:
                    theirs = theirs[:len(ours)]
                # gdb has other aliases of functions that are not inlined
                check_equal([frame[0] if frame[3] else '' for frame in ours],
                            [frame[0] if frame[3] else '' for frame in theirs], f'{function} of {command[0]}')
                n += len(ours)
                n_lines += sum(a[1:] != b[1:] for a, b in zip(ours, theirs))
                n_inlined += sum(frame[3] for frame in ours)
    check(n > 100 and n_inlined > 5, 'frames', n, n_inlined)
    check(n_lines <= n // 8, 'lines are those of gdb but where an address has several', n_lines, n)


# ---- what reports make of it ---------------------------------------------------------------------

INLINED = """\
        leaf ({app}) at inlined.c:6
        parse_number (inlined) ({app}) at inlined.c:11
        parse (inlined) ({app}) at inlined.c:18
        outer+{} ({app}) at inlined.c:25
        main+{} ({app}) at inlined.c:32
"""
FRAMES = ['leaf', 'outer', 'main']


def compile_it(*options):
    run(program('gcc'), '-O2', '-g', *options, '-o', 'inlined', APP, seconds=60).ok()


def check_inlined(directory='kymo.data'):
    for stack in stacks(directory):
        check_equal([(frame['function'], frame.get('inlined', False), frame.get('line')) for frame in stack[:4]],
                    [('leaf', False, 6), ('parse_number', True, 11), ('parse', True, 18), ('outer', False, 25)],
                    'a stack')
        check(stack[4]['function'] == 'main' and stack[4]['line'] in (32, 35), 'main', stack[4])
        check_equal({frame['source'] for frame in stack[:5]}, {str(APP)}, 'the file')
        check_equal(len({frame['address'] for frame in stack[1:4]}), 1, 'addresses of what is inlined')


def check_none(directory='kymo.data'):
    for stack in stacks(directory):
        check_equal([frame['function'] for frame in stack if frame.get('function') in FRAMES], FRAMES, 'a stack')
        check(not any({'inlined', 'source', 'line'} & set(frame) for frame in stack), 'no sources', stack)


def test_reports(tmp):
    compile_it()
    record('--stack', '-p', './inlined:leaf', '--', './inlined').ok()
    check_inlined()
    check_equal(len(stacks()), 2, 'records')
    app = re.escape(f'{tmp}/inlined')
    text = re.escape(INLINED).replace(r'\{app\}', app).replace(r'\{\}', '0x[0-9a-f]+')
    check_matches(kymo('report', '--events').ok().out, text, 'a stack')
    check_matches(kymo('report', '--folded').ok().out, r'main;outer;parse \(inlined\);parse_number \(inlined\);leaf 2\n')
    check_matches(kymo('report', '--flame').ok().out, r'data-n="parse_number \(inlined\)"')
    check_matches(kymo('report', '--callers', 'parse_number').ok().out,
                  r'2 100.0%  parse_number \(inlined\)\n.*  parse \(inlined\)\n.*  outer\n.*  main\n', 'callers')
    check_matches(kymo('report', '--callees', 'parse_n*').ok().out, r'  parse_number \(inlined\)\n.*  leaf\n', 'callees')
    babeltrace()
    check_matches(run('babeltrace2', 'kymo.data').ok().out,
                  r'kymo:source: .*inlined = 1, function = "parse_number", file = ".*inlined.c", line = 11 ')
    check_matches(kymo('report').ok().out, '1 probe,', 'sources are no probes')


def test_tables_by_stack(tmp):
    compile_it()
    result = record('--count', './inlined:leaf by stack', '--', './inlined').ok()
    check_matches(result.out + result.err, r'parse_number \(inlined\) .* at inlined.c:11\n', 'a table at the end')
    check_matches(kymo('report', '--json').ok().out, r'"function": "parse_number", "inlined": true', 'JSON')


def test_without(tmp):
    compile_it()
    record('--stack', '--no-inline', '-p', './inlined:leaf', '--', './inlined').ok()
    check_none()
    check('kymo:source' not in babeltrace(), 'no sources')
    check_equal(kymo('record', '--no-inline', '-p', 'libc:write', '--', 'true').status, 2, 'without --stack')
    run(program('strip'), '--strip-debug', 'inlined').ok()
    record('--stack', '-p', './inlined:leaf', '--', './inlined').ok()
    for stack in stacks():
        check_equal([frame['function'] for frame in stack if frame.get('function') in FRAMES], FRAMES, 'a stack')


def test_where_debug_information_is_elsewhere(tmp):
    for standard in ('4', '5'):
        compile_it(f'-gdwarf-{standard}', '-gsplit-dwarf')
        record('--stack', '-p', './inlined:leaf', '--', './inlined').ok()
        check_inlined()
        compile_it(f'-gdwarf-{standard}')
        run(program('objcopy'), '--only-keep-debug', 'inlined', 'inlined.debug').ok()
        run(program('objcopy'), '--strip-unneeded', '--add-gnu-debuglink=inlined.debug', 'inlined').ok()
        record('--stack', '-p', './inlined:leaf', '--', './inlined').ok()
        check_inlined()


def test_what_is_kept_or_overwritten(tmp):
    compile_it()
    for words in (('--keep', '8M'), ('--overwrite', )):
        record('--stack', '-p', './inlined:leaf', *words, '--', './inlined').ok()
        check_equal(len(stacks()), 2, 'records')
        check_inlined()


def test_snapshots_of_a_file_that_has_another_name(tmp):
    compile_it()
    for words in (('--keep', '8M'), ('--overwrite', )):
        process = start('./inlined', 'forever')
        eventually(lambda: os.path.exists(f'/proc/{process.pid}/exe'), 'it runs')
        recorder = start_record(process.pid, '-o', 'live', '--stack', '-p', './inlined:leaf', *words)
        os.rename('inlined', 'other')
        recorder.popen.send_signal(signal.SIGUSR1)
        recorder.wait_for('snapshot in', which=1)
        process.popen.kill()
        recorder.end().ok()
        for directory in ('live.1', 'live'):
            check(stacks(directory), 'records', directory)
            check_inlined(directory)
            babeltrace(directory)
            shutil.rmtree(directory)
        os.rename('other', 'inlined')
