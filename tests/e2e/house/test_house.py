"""The tree around the program: what is installed, the manual, and that the tests' own tools see what they are there to
see."""
import re
import shlex
import shutil

import processes
from kymotest import (KYMO_PLAIN, SOURCE, alone, check, check_equal, check_matches, check_same, kymo, program, run,
                      target, target_path, waits)

COMMANDS = [
    'record', 'top', 'report', 'branches', 'syscalls', 'threads', 'gdb', 'list', 'explain', 'status', 'snapshot',
    'detach'
]


@alone
def test_install_puts_the_program_and_its_manual_under_the_prefix(tmp):
    run('make', '-s', '-C', SOURCE, 'install', f'DESTDIR={tmp}/dest', 'PREFIX=/opt/kymo', seconds=300).ok()
    root = tmp / 'dest/opt/kymo'
    check_matches(run(root / 'bin/kymo', '--version').ok().out, r'\d+\.\d+\.\d+')
    pages = sorted(path.name for path in (root / 'share/man/man1').iterdir())
    check_same(pages, sorted(['kymo.1', *(f'kymo-{command}.1' for command in COMMANDS)]), 'man pages')
    for page in 'kymo-engine.3', 'kymo-marker.3':
        check((root / 'share/man/man3' / page).exists(), f'{page} is there')
    outside = [path for path in (tmp / 'dest').rglob('*') if path.is_file() and root not in path.parents]
    check_same(outside, [], 'files outside of the prefix')
    for path in 'bash-completion/completions/kymo', 'zsh/site-functions/_kymo', 'fish/vendor_completions.d/kymo.fish':
        check((root / 'share' / path).exists(), f'{path} is there')
    run('make', '-s', '-C', SOURCE, 'uninstall', seconds=300).ok()
    check_same([path for path in (tmp / 'dest').rglob('*') if not path.is_dir()], [], 'files after make uninstall')


def test_every_man_page_formats_without_a_warning():
    for page in sorted((SOURCE / 'man').glob('*.[1-8]')):
        result = run(program('man'), '--warnings', '-E', 'UTF-8', '-Tutf8', '-l', page, env={'MANROFFSEQ': ''})
        check_equal(result.err, '', page.name)


def test_every_command_has_a_man_page_that_knows_its_options():
    for command in COMMANDS:
        text = run(KYMO_PLAIN, command, '--help').ok().out
        page = (SOURCE / f'man/kymo-{command}.1').read_text().replace('\\-', '-')
        for option in set(re.findall(r'(?<![\w-])--[a-z][a-z-]+', text)):
            check(option in page, f'kymo-{command}(1) says nothing about {option}')


def test_make_help_names_the_front_door():
    out = run('make', '-s', '-C', SOURCE, 'help').ok().out
    for goal in ('demo', 'check', 'install', 'uninstall', 'fuzz', 'torture', 'bench', 'check-fresh', 'clean'):
        check_matches(out, rf'^make {goal}\b')


def test_make_builds_each_program_that_make_install_installs():
    built = run('make', '-n', '-C', SOURCE, 'all').ok().out
    for name in re.findall(r"(?:executable|install_symlink)\('([\w-]+)'", (SOURCE / 'meson.build').read_text()):
        check_matches(built, rf'ninja -C build .*(?<![\w/-]){name}(?![\w-])', name)


def heads(report):
    """Of the table of probes and of the numbers that were recorded; numbers are #, with their units."""
    lines = re.findall(r'^(?:PROBE|  size ).*', report, re.M)
    return [re.sub(r'\s+', ' ', re.sub(r'\d[\d.,]*(ns|µs|ms|s)?', '#', line)) for line in lines]


def test_the_first_report_of_the_readme_is_what_its_command_prints_and_the_demo_shows(tmp):
    readme = (SOURCE / 'README.md').read_text()
    command, sample = re.search(r'```\nkymo (record .*)\nkymo report\n```\n\n```\n(.*?)```', readme, re.S).groups()
    demo = re.search(r'^show (record .*)$', (SOURCE / 'tools/demo').read_text(), re.M).group(1)
    check_equal(demo.replace('"$python"', 'python3'), command, 'command of the demo')
    kymo(*shlex.split(command)).ok()
    printed = heads(kymo('report').ok().out)
    check_equal(printed, heads(sample), 'heads of the report')
    check_matches(printed[-1], '^ size # … # mean # time between', 'head of the sizes')


def copy_tree(tmp):
    """As much of the tree as check-layers and tests/run look at."""
    for part in ('src', 'tools', 'tests/lib'):
        shutil.copytree(SOURCE / part, tmp / part)
    for part in ('ARCHITECTURE.md', 'tests/run'):
        shutil.copy(SOURCE / part, tmp / part)
    return tmp


def problems_of(tree, files):
    """What tools/check-layers says of the tree with these {name: text}: its lines but the last one, sorted."""
    for name, text in files.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(text)
    result = run(tree / 'tools/check-layers')
    for name in files:
        (tree / name).unlink()
    problems = sorted(result.out.splitlines()[:-1])
    check_equal(result.status, int(bool(problems)), 'exit status')
    return problems


def test_code_for_targets_that_refers_to_what_stays_behind_is_seen(tmp):
    """A table that a compiler keeps elsewhere, and a function of libc's."""
    tree = copy_tree(tmp)
    for part in ('include', 'meson.build'):
        (shutil.copytree if (SOURCE / part).is_dir() else shutil.copy)(SOURCE / part, tree / part)
    guest = tree / 'src/arch/x86_64/guest_strike.c'
    guest.write_text(guest.read_text() + """
static const uint64_t far_table[3] = { 1, 2, 3 };
size_t strlen(const char *text);
GUEST uint64_t kymo_guest_wrong(const char *text);
GUEST uint64_t kymo_guest_wrong(const char *text) { return far_table[*text & 1] + strlen(text); }
""")
    result = run(tree / 'tools/check-guest')
    check_equal(result.status, 1, 'exit status')
    lines = result.out.splitlines()
    for compiler in ('gcc', 'clang'):
        told = sorted(
            re.findall(f'^{compiler}: the code for targets refers to (.*), which is not copied with it$', result.out,
                       re.M))
        check_equal(told[-1], 'strlen', f'the function, by {compiler}')
        check_equal(len(told), 2, f'what {compiler} leaves outside')
    check_equal(lines[-1], 'check-guest: gcc, clang: 4 problems')


def test_a_broken_layer_is_seen(tmp):
    """All at once, as each look at the tree takes seconds: the second line of each file is the wrong one."""
    ptrace = 'ptrace(0, 0, 0, 0)'
    cases = (('wire', '#include "sym/sym.h"', 'wire may not use sym ("sym/sym.h")'),
             ('report', '#include "proc/process.h"', 'report may not use proc ("proc/process.h")'),
             ('record', '#include "ctf/token.h"', '"ctf/token.h" is private to ctf'),
             ('record', '#include "cli/output.h"', 'no other room uses cli'),
             ('base', f'void f4(void) {{ {ptrace}; }}', 'ptrace is used in src/hub and src/nested only'),
             ('proc', f'void f5(void) {{ {ptrace}; }}', 'ptrace is used in src/hub and src/nested only'),
             ('proc', 'int f6(int *status) { return waitpid(1, status, 0); }',
              'threads and children are waited for by src/hub only'),
             ('hub', '#include "proc/process.h"', 'hub may not use proc ("proc/process.h")'),
             ('hub/trap', '#include "proc/process.h"', 'hub may not use proc ("proc/process.h")'),
             ('sym', '#include <Zydis/Zydis.h>', 'Zydis is used in src/arch only'),
             ('proc', '#include <libelf.h>', 'libdw or libelf is used in src/sym only'))
    names = [f'src/{room}/wrong{i}.c' for i, (room, _, _) in enumerate(cases)]
    files = {name: f'/* ptrace(), in a comment */\n{line}\n' for name, (_, line, _) in zip(names, cases)}
    files['src/attic/wrong.c'] = '\n'
    expected = [f'{name}:2: {reason}' for name, (_, _, reason) in zip(names, cases)]
    expected.append('src/attic/wrong.c: room attic has no row in ARCHITECTURE.md')
    check_same(problems_of(copy_tree(tmp), files), sorted(expected), 'problems')


def test_a_header_that_hands_on_another_rooms_is_seen(tmp):
    cases = [('procfs/maps.h', 'struct kymo_maps;', True),
             ('procfs/maps.h', 'struct wrong { struct kymo_maps maps; };', False),
             ('proc/linker.h', 'int f(int kind); /* KYMO_STARTUP_LOADED */', True),
             ('proc/tree.h', 'bool f(enum kymo_tree_kind kind);', False),
             ('sym/debug.h', 'struct wrong { struct kymo_variable of_a_header_of_its_room; };', False),
             ('probe/options.h', '', False), ]
    files = {f'src/probe/wrong{i}.h': f'#include "{include}"\n{text}\n' for i, (include, text, _) in enumerate(cases)}
    expected = [
        f'src/probe/wrong{i}.h: names nothing of "{include}": its users include what they name'
        for i, (include, _, is_wrong) in enumerate(cases) if is_wrong
    ]
    check_same(problems_of(copy_tree(tmp), files), expected, 'problems')


def test_a_plan_that_touches_a_process_is_seen(tmp):
    cases = (('kymo_process_pid(x)', None), ('kymo_process_read(x)', 'kymo_process_read'),
             ('probes_peers_check(x)', 'probes_peers_check calls kymo_sessions_read_headers'), ('x->kymo_process_read',
                                                                                              None))
    files, expected = {}, []
    for part in 'plan', 'resolve':
        for i, (body, way) in enumerate(cases):
            name = f'src/probe/{part}/wrong{i}.c'
            files[name] = f'static int look(void *x)\n{{\n\treturn {body};\n}}\n'
            expected += [f'{name}: touches a process: look calls {way}'] if way else []
    found = [line for line in problems_of(copy_tree(tmp), files) if ': touches ' in line]
    check_same([re.sub(' calls read_list .*', '', line) for line in found], expected, 'problems')


def test_a_use_of_a_later_directory_is_seen(tmp):
    where = 'a later directory in the order of ARCHITECTURE.md'
    check_same(
        problems_of(
            copy_tree(tmp), {
                'src/probe/memory/wrong.c': '#include "probe/look/look.h"\n',
                'src/hub/trap/wrong.c': 'int f(void *x)\n{\n\treturn hub_freeze_hurry(x);\n}\n',
                'src/hub/attic/wrong.c': '\n',
            }), [
                'src/hub/attic/wrong.c: ARCHITECTURE.md does not say where attic/ is in the order of directories of '
                'hub',
                f'src/hub/trap/wrong.c: calls hub_freeze_hurry() of src/hub/freeze/owner.c, {where}',
                'src/hub: a circle: src/hub uses hub_breakpoints_drop of space.c of src/hub/trap, src/hub/trap uses '
                'hub_freeze_hurry of owner.c of src/hub/freeze, src/hub/freeze uses hub_flush of hub.c of src/hub',
                f'src/probe/memory/wrong.c: includes "probe/look/look.h", of {where}'
            ], 'problems')


def test_two_types_of_one_name_are_seen(tmp):
    check_same(problems_of(copy_tree(tmp), {'src/trace/wrong.c': 'struct kymo_kept {\n\tint n;\n};\n'}),
               ['src/trace/wrong.c: defines struct kymo_kept, as src/trace/kept.c does'], 'problems')


def test_a_long_file_is_seen(tmp):
    tree = copy_tree(tmp)
    longest = {'src/ring/long.c': 600, 'src/ring/long.h': 250, 'tests/unit/ring/long.c': 600}
    check_same(problems_of(tree, {name: '\n' * most for name, most in longest.items()}), [], 'of the longest')
    check_same(problems_of(tree, {name: '\n' * (most + 1) for name, most in longest.items()}),
               [
                   f'{name}: {most + 1} lines; a {"header" if most == 250 else "file"} has {most} at most'
                   for name, most in longest.items()
               ], 'of longer ones')


def test_circles_are_seen(tmp):
    tree = copy_tree(tmp)

    def problems(**files):
        names = {name: name.replace('__', '/').replace('_h', '.h').replace('_c', '.c') for name in files}
        return problems_of(tree, {f'src/ring/{names[name]}': text for name, text in files.items()})

    check_equal(
        problems(one_c='int one(void)\n{\n\treturn two();\n}\n', two_c='int two(void)\n{\n\treturn three();\n}\n',
                 three_c='static int two;\nint three(void)\n{\n\treturn one() + it.two;\n}\n'),
        [
            'src/ring/one.c: a circle: src/ring/one.c uses two of src/ring/two.c, src/ring/two.c uses three of src/ring/three.c, '
            'src/ring/three.c uses one of src/ring/one.c'
        ], 'three files')
    check_equal(problems(one_h='#include "ring/two.h"\n', two_h='#include "ring/one.h"\n'), [
        'src/ring/one.h: a circle: src/ring/one.h uses "ring/two.h" of src/ring/two.h, src/ring/two.h uses "ring/one.h" of src/ring/one.h'
    ], 'two headers')
    check_equal(
        problems(one_c='int one(void)\n{\n\treturn two();\n}\n', sub__two_c='int two(void)\n{\n\treturn 0;\n}\n',
                 sub__three_c='int three(void)\n{\n\treturn four();\n}\n',
                 four_c='int four(void)\n{\n\treturn 0;\n}\n'),
        [
            'src/ring: a circle: src/ring uses two of two.c of src/ring/sub, src/ring/sub uses four of four.c of src/ring'
        ], 'directories')
    check_equal(problems(one_c='int one(void)\n{\n\treturn 0;\n}\n', two_h='int one(void);\n'),
                ['src/ring/two.h: declares one(), which src/ring/one.c defines'], 'a header')


def run_runner(tmp, text, *args):
    """tests/run on a tree with this one file of tests, and nothing else."""
    tree = copy_tree(tmp)
    (tree / 'tests/e2e/some').mkdir(parents=True)
    (tree / 'tests/e2e/some/test_thing.py').write_text(text)
    return run(tree / 'tests/run', *args, 'e2e/some')


def test_the_runner_counts_and_shows_failures_whole(tmp):
    result = run_runner(
        tmp, '''
from kymotest import check_same, skip
def test_good(): pass
def test_bad(tmp): check_same("a\\nb\\nc\\n", "a\\nB\\nc\\n", "letters")
def test_unexpected(): {}["key"]
def test_skipped(): skip("no such thing here")
''').ended(1)
    for line in (r'^ok    e2e/some/thing/good$', r'^FAIL  e2e/some/thing/bad \(exit status 1\)$',
                 r'^ .*letters differs', r'^ .*\| -B$', r'^ .*\| \+b$', r'^FAIL  e2e/some/thing/unexpected',
                 r"^ .*KeyError: 'key'", r'^skip  e2e/some/thing/skipped \(no such thing here\)$'):
        check_matches(result.out, line)
    check_equal(result.out.splitlines()[-1], '2 passed, 2 failed, 1 skipped')  # leftovers is the second


@waits
def test_the_runner_ends_what_hangs_and_what_is_left(tmp):
    result = run_runner(
        tmp, '''
import subprocess, time
from kymotest import at_end, timeout
@timeout(5)
def test_hangs():
    at_end(print, "was cleaned up")
    time.sleep(100)
def test_leaves(tmp): subprocess.Popen(["sleep", "98.76"], start_new_session=True)
def test_files(): open("left here", "w")
''').ended(1)
    check_matches(result.out, r'^FAIL  e2e/some/thing/hangs \(no end after 5 s\)$')
    check_matches(result.out, r'was cleaned up')
    check_matches(result.out, r'^FAIL  e2e/some/thing/leaves')
    check_matches(result.out, r'\d+ sleep$')
    check_equal(result.out.splitlines()[-1], '2 passed, 2 failed')
    check('98.76' not in run('ps', '-eo', 'args').out.replace('left', ''), 'the sleeping process is still there')


def test_a_sanitizer_report_of_any_process_fails_the_test(tmp):
    (tmp /
     'leak.c').write_text('#include <stdlib.h>\nint main(void) { volatile char *p = malloc(7); p = 0; return !!p; }\n')
    run(program('gcc'), '-fsanitize=address', '-g', '-o', tmp / 'leak', tmp / 'leak.c').ok()
    result = run_runner(tmp, f'from kymotest import run\ndef test_leaks(): run("{tmp}/leak")\n').ended(1)
    check_matches(result.out, r'LeakSanitizer: detected memory leaks')


def test_a_search_for_leaks_that_the_end_of_its_test_comes_into_is_no_report(tmp):
    result = run_runner(
        tmp, '''
import os
from kymotest import start
def leave(text):
    path = os.environ['ASAN_OPTIONS'].split('log_path=')[1]
    process = start('sh', '-c', f'echo "{text}" > {path}.$$; echo written; read line')
    process.wait_for('written')
    return process
NO_REGISTERS = '==123==Unable to get registers from thread 122.'
def test_killed(): leave(NO_REGISTERS)
def test_killed_with_more(): leave(NO_REGISTERS + '\\n==122==ERROR: LeakSanitizer')
def test_ended_by_itself(): leave(NO_REGISTERS).end()
''').ended(1)
    check_equal(sorted(line for line in result.out.splitlines() if 'some' in line and line[0] != ' '), [
        'FAIL  e2e/some/thing/ended_by_itself (exit status 1)', 'FAIL  e2e/some/thing/killed_with_more (exit status 1)',
        'ok    e2e/some/thing/killed'
    ])


def test_a_changed_byte_of_text_is_seen():
    process = target('selfcheck', '-t', '2')
    check_same(processes.changed_text(process.pid), [], 'text of a fresh process')
    text = next(mapping for mapping in processes.maps(process.pid)
                if mapping.path == target_path('selfcheck') and 'x' in mapping.permissions)
    address = text.end - 3  # of the padding behind the last function
    with open(f'/proc/{process.pid}/mem', 'r+b', buffering=0) as memory:
        memory.seek(address)
        memory.write(b'\xcc\xcc')
    changes = processes.changed_text(process.pid)
    check_equal(len(changes), 1, f'changes {changes}')
    check_matches(changes[0], rf'selfcheck\+0x{text.offset + address - text.start:x} .*file 00 00, memory cc cc')


def test_targets_refuse_wrong_results_and_tell_right_ones():
    for n, how, status in ((3, 'segv', -11), (3, 'abort', -6), (3, 'kill', -9), (3, 'trap', -5), (3, 'stack', -11),
                           (0, '_exit', 7), (1, 'exit', 7), (2, 'return', 7), (2, 'thread', 7), (2, 'exec', 0)):
        run(target_path('crasher'), n, how).ended(status)
    check_equal(run(target_path('ctor')).ok().json(), {'ctor_work': 130})
    check_equal(run(target_path('dlopener'), target_path('libctor.so'), 4).ok().json(), {'ctor_work': 444})
    for variant in ('callmany', 'callmany-static', 'callmany-nopie'):
        for function in ('work_a', 'work_b', 'work_six', 'work_eight', 'work_redzone'):
            check_equal(run(target_path(variant), 50, function).ok().out, f'{function} 50\n')
    counts = run(target_path('forker'), '-e', 9).ok().json()
    check_equal(counts,
                {'parent': 18, **dict.fromkeys(('fork', 'fork_exit', 'thread_fork', 'vfork', 'spawn', 'exec'), 9)})
