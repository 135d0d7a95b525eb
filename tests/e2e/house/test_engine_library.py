"""libkymo-engine as others get it: installed, with its header and its .pc file. The programs of examples/engine are
built against that and do what they say; each call of the interface is in one of them."""
import os
import re
import signal
import sys
from pathlib import Path

import debug_registers
import processes
from kymotest import (KYMO_PLAIN, SOURCE, check, check_equal, check_matches, check_same, eventually, need_root, program,
                      run, skip, sleeper, start, target)

EXAMPLES = SOURCE / 'examples/engine'
FLAGS = ['-std=gnu17', '-O1', '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter']


class Installed:
    """The library in a directory of the test's."""
    def __init__(self, tmp):
        self.tmp, self.root = tmp, tmp / 'dest'
        run(program('meson'), 'install', '-C',
            Path(KYMO_PLAIN).parent, '--no-rebuild', '--quiet', env={'DESTDIR': str(self.root)}).ok()
        self.pc, = self.root.rglob('kymo-engine.pc')
        self.libraries = self.pc.parents[1]
        self.env = {
            'PKG_CONFIG_PATH': str(self.pc.parent), 'PKG_CONFIG_SYSROOT_DIR': str(self.root), 'LD_LIBRARY_PATH':
            str(self.libraries)
        }

    def options(self, *which):
        return run(program('pkg-config'), *which, 'kymo-engine', env=self.env).ok().out.split()

    def build(self, name, *how):
        source = EXAMPLES / f'{name}.c' if (EXAMPLES / f'{name}.c').exists() else self.tmp / f'{name}.c'
        run(program('gcc'), *FLAGS, source, '-o', self.tmp / name, *how, *self.options('--cflags', '--libs')).ok()
        return self.tmp / name

    def run(self, name, *args, **options):
        return run(self.build(name), *args, env=self.env, **options)

    def start(self, name, *args):
        return start(self.build(name), *args, env=self.env)


# ---- the library ---------------------------------------------------------------------------------


def declared():
    text = re.sub(r'/\*.*?\*/', '', (SOURCE / 'include/kymo/engine.h').read_text(), flags=re.DOTALL)
    return sorted(set(re.findall(r'\b(kymo_(?:hub|engine)_\w+)\(', text)))


def test_the_library_has_what_the_header_declares_and_nothing_else(tmp):
    installed = Installed(tmp)
    nm = run(program('nm'), '-D', '--defined-only', installed.libraries / 'libkymo-engine.so').ok().out
    check_same(sorted(line.split()[2] for line in nm.splitlines() if line.split()[1] != 'A'),
               [f'{name}@@KYMO_ENGINE_1' for name in declared()], 'shared')
    nm = run(program('nm'), '-g', '--defined-only', installed.libraries / 'libkymo-engine.a').ok().out
    check_same(sorted(line.split()[2] for line in nm.splitlines() if len(line.split()) == 3), declared(), 'static')


def test_no_line_of_a_header_is_there_twice():
    for header in (SOURCE / 'include').rglob('*.h'):
        lines = [
            line.strip() for line in header.read_text().splitlines() if line.strip().startswith('* ') and len(line) > 60
        ]
        check_equal([line for line in lines if lines.count(line) > 1], [],
                    f'lines of {header.name} that are there twice')


def test_every_call_is_in_an_example_and_in_the_manual():
    text = ''.join(path.read_text() for path in EXAMPLES.glob('*.c'))
    page = (SOURCE / 'man/kymo-engine.3').read_text().replace('\\-', '-')
    header = (SOURCE / 'include/kymo/engine.h').read_text()
    for name in declared():
        check(name + '(' in text, f'no example calls {name}')
        check(name in page, f'kymo-engine(3) says nothing about {name}')
    for name in re.findall(r'^\t(KYMO_(?:EVENT|ACTION|SIGNAL|SYSCALL|ATTACH|LAUNCH|CLONE)_\w+)', header, re.MULTILINE):
        check(name in page, f'kymo-engine(3) says nothing about {name}')


def test_the_manual_lists_the_members_of_each_report():
    page = (SOURCE / 'man/kymo-engine.3').read_text()
    header = re.sub(r'/\*.*?\*/', '', (SOURCE / 'include/kymo/engine.h').read_text(), flags=re.DOTALL)
    reports = re.findall(r'struct kymo_(\w+_report) \{(.*?)\n\};', header, re.DOTALL)
    check_equal(len(reports), 8, 'reports of the header')
    for name, body in reports:
        part = re.search(rf'^\.SS "[^"]*struct kymo_{name}"\n(.*?)(?=^\.S[HS])', page, re.DOTALL | re.MULTILINE)
        check(part, f'kymo-engine(3) has no part for struct kymo_{name}')
        members = [' '.join(line.split()) for line in body.split(';') if line.strip()]
        check_equal(re.findall(r'^\.BI "(.*) " "(.*)"$', part[1], re.MULTILINE),
                    [tuple(re.fullmatch(r'((?:enum )?\w+(?: int)?) (.*)', member).groups()) for member in members],
                    f'members of {name}')


def test_the_example_of_the_manual_and_cxx_and_static_programs_build(tmp):
    installed = Installed(tmp)
    page = (SOURCE / 'man/kymo-engine.3').read_text()
    code = page.split('.SH EXAMPLE\n')[1].split('.EX\n')[1].split('.EE')[0].replace('\\-',
                                                                                    '-').replace('\\e', '\\').replace(
                                                                                        '\\(aq', "'")
    (tmp / 'manual.c').write_text(code)
    result = installed.run('manual', 'sh', '-c', 'true; exit 3').ended(3)
    check_matches(result.err, r'^\d+ system calls$')
    run(program('g++'), '-Wall', '-Wextra', '-Werror', '-Wno-unused-parameter', '-fsyntax-only', '-x', 'c++',
        SOURCE / 'include/kymo/engine.h').ok()
    run(program('gcc'), *FLAGS, tmp / 'manual.c', '-static', '-o', tmp / 'static',
        *installed.options('--cflags', '--static', '--libs')).ok()
    run(tmp / 'static', 'true').ok()


# ---- the examples --------------------------------------------------------------------------------


def test_examples_see_and_change_system_calls(tmp):
    installed = Installed(tmp)
    (tmp / 'one').write_text('first\n')
    (tmp / 'two').write_text('second\n')
    result = installed.run('opens', 'cat', tmp / 'one', tmp / 'none').ended(1)
    check_matches(result.out, rf'^{tmp}/one: descriptor 3$')
    check_matches(result.out, rf'^{tmp}/none: No such file or directory$')
    result = installed.run('no-delete', 'rm', tmp / 'one').ended(1)
    check_matches(result.err, 'Operation not permitted')
    check((tmp / 'one').exists(), 'it is there')
    installed.run('no-sleep', 'sleep', 1000).ok()
    check_equal(
        installed.run('instead', tmp / 'one', tmp / 'two', 'cat', tmp / 'one').ok().out, 'second\n', 'what cat reads')


def test_examples_take_part_in_signals_and_instructions(tmp):
    installed = Installed(tmp)
    result = installed.run(
        'deaf', 'sh', '-c',
        'kill $$; kill -USR1 $$; trap "echo caught" USR2; kill -USR2 $$; echo still here; kill -9 $$').ended(128 + 9)
    check_same(
        sorted(re.sub(r'\d+', 'N', line) for line in result.out.splitlines()),
        ['caught', 'ignored: Terminated from process N', 'ignored: User defined signal N from process N', 'still here'],
        'lines')
    result = installed.run('ask', 'sh', '-c', 'trap "echo caught" USR2; kill $$; kill $$; kill $$; echo not here',
                           input='no\n12\ny\n').ended(128 + 15)
    check_same(result.out.replace('Terminated? ', ''), 'caught\n', 'what the command says')
    (tmp / 'trap.c').write_text(
        '#include <stdio.h>\nint main(void) { puts("before"); __asm__ volatile("ud2"); puts("behind"); return 0; }\n')
    run(program('gcc'), '-o', tmp / 'trap', tmp / 'trap.c').ok()
    check_same(sorted(installed.run('past-ud2', tmp / 'trap').ok().out.splitlines()),
               ['before', 'behind', 'went past a ud2'], 'lines')
    result = installed.run('steps', 500, 'echo', 'whole').ok()
    check_matches(result.out, r'^500 instructions, at \d+ places$')
    check_matches(result.out, r'^whole$')


def test_an_example_watches_what_a_program_writes(tmp):
    installed = Installed(tmp)
    told = ['has written to its stack'] if debug_registers.work() else []
    for command in (['sh', '-c', 'echo whole; exit 5'], ['python3', '-c', 'print("whole"); exit(5)']):
        result = installed.run('entry', *command).ended(5)
        check_same(result.out.splitlines(), ['at the entry point: yes', *told, 'whole'], 'lines')
    if not told:
        skip('this machine raises no debug exceptions; ptrace alone sees none either')


def test_examples_follow_trees_and_wait_for_ends(tmp):
    installed = Installed(tmp)
    result = installed.run('execs', 'sh', '-c', 'cat </dev/null; (true; exec uname >/dev/null); exit 4').ended(4)
    check_same([Path(line.split()[1]).name for line in result.out.splitlines()],
               [Path(os.path.realpath(program('sh'))).name, 'cat', 'uname'], 'programs')
    for number, words in ((signal.SIGTERM, 'Terminated'), (signal.SIGKILL, 'Killed')):
        process = sleeper()
        watcher = installed.start('last-words', process.pid)
        watcher.wait_for('waiting')
        process.end(number)
        lines = watcher.end().ok().out.splitlines()
        check_same([line for line in lines if not line.startswith('ends')],
                   ['waiting', f'is dead: {words}', f'is gone: {words}'], 'lines')
    process = sleeper()
    strace = start(program('strace'), '-qq', '-p', process.pid)
    eventually(lambda: processes.tracer(process.pid) == strace.pid, 'strace is there')
    installed.run('last-words', process.pid).refused(rf'being traced by process {strace.pid} \(strace\)')


def test_examples_hold_wake_and_leave_running_processes(tmp):
    installed = Installed(tmp)
    process = target('threads1000', '-t', 20)
    freezer = installed.start('freeze', process.pid)
    freezer.wait_for('all are held')
    check_same({processes.status(tid)['State'] for tid in processes.threads(process.pid)}, {'t (tracing stop)'},
               'states')
    check_equal(len(re.findall(r'^\d+ stands at 0x[1-9a-f]', freezer.out, re.MULTILINE)), 21,
                f'threads of {freezer.out}')
    freezer.end().ok()
    processes_states = {processes.status(tid)['State'][0] for tid in processes.threads(process.pid)}
    check(processes_states <= set('SRD'), f'they run on: {processes_states}')
    check_equal(processes.tracer(process.pid), 0, 'tracer')
    process.end(signal.SIGTERM).ok()

    process = sleeper()
    watcher = installed.start('jobs', process.pid)
    watcher.wait_for('watching')
    for number, words in ((signal.SIGSTOP, 'Stopped (signal)'), (signal.SIGCONT, 'Continued')):
        process.signal(number)
        watcher.wait_for(f'^{process.pid}: {re.escape(words)}$')
    process.end(signal.SIGTERM)
    watcher.end().ok()

    process = start(
        program('perl'), '-e',
        '$SIG{USR1} = sub { print "caught\\n" }; $| = 1; print "ready\\n"; my $fd = syscall(291, 0); while (1) { syscall(232, $fd, my $events = " " x 12, 1, -1); print "woken\\n" }'
    )
    process.wait_for('ready')

    def wakes(number, word):
        # What is asked for again and again: a hub that goes at once may undo the end of the call
        # (docs/reference/limits/README.md).
        if processes.call(process.pid) == 232:  # epoll_wait
            run(tmp / 'wake', process.pid, int(number), env=installed.env).ok()
        return word in process.out

    installed.build('wake')
    eventually(lambda: wakes(0, 'woken'), 'an interrupt wakes perl')
    eventually(lambda: wakes(signal.SIGUSR1, 'caught'), 'perl has the signal')
    process.signal(signal.SIGTERM)
    process.end()


def test_examples_count_and_find_engines(tmp):
    need_root()
    installed = Installed(tmp)
    process = start(sys.executable, '-c', 'import os\nprint("ready", flush=True)\nwhile True: os.getppid()')
    process.wait_for('ready')
    check_same(
        installed.run('rate', process.pid, 100).ok().out,
        'enough calls, and none later\ndetach: done\nbarrier: nothing comes any more\n')
    process = target('threads1000', '-t', 3)
    lines = installed.run('references', process.pid).ok().out.splitlines()
    check_same(
        lines[:6] + sorted(lines[6:]), '''\
there is none yet
nobody else with these callbacks
it is found by its data
4 more of all threads
1 detached
detached, and there: of no thread
one is released
other is released
other is released
other is released
other is released
''')
    check_equal(processes.tracer(process.pid), 0, 'tracer')


def test_examples_count_beside_each_other(tmp):
    installed = Installed(tmp)
    process = start('sh', '-c', 'while read line; do echo $line; done')
    counters = []
    for _ in range(3):
        counters.append(installed.start('beside', process.pid))
        counters[-1].wait_for('^begins$')
    lines = installed.run('whose', process.pid).ok().out.splitlines()
    check_equal(sorted(line.split()[1] for line in lines), sorted(str(counter.pid) for counter in counters),
                'who has engines')
    process.send('a\nb\n')
    process.wait_for('^b$')
    counters[0].popen.stdin.close()
    counters[0].wait_for('^stays for 2$')
    process.send('c\n')
    process.wait_for('^c$')
    for counter in reversed(counters):
        result = counter.end().ok()
        check(int(re.search(r'(\d+) calls$', result.out)[1]) >= 2, 'it has seen calls', result)
    process.end().ok()


def test_examples_for_processes_say_what_they_want_and_why_they_can_not(tmp):
    installed = Installed(tmp)
    programs = {
        name: installed.build(name)
        for name in ('beside', 'freeze', 'jobs', 'last-words', 'rate', 'references', 'wake', 'whose')
    }
    for name, path in programs.items():
        wanted = (EXAMPLES / f'{name}.c').read_text()[3:].split(':')[0]
        for words in ([], ['x', 'y']):
            check_equal(run(path, *words, env=installed.env).ended(2).err, f'usage: {wanted}\n', name)
    process = sleeper()
    strace = start(program('strace'), '-qq', '-p', process.pid)
    eventually(lambda: processes.tracer(process.pid) == strace.pid, 'strace is there')
    for name, path in programs.items():
        words = {'rate': [1], 'wake': [0]}.get(name, [])
        pattern = 'nobody who lets others in' if name == 'whose' else rf'being traced by process {strace.pid} \(strace\)'
        check_matches(run(path, process.pid, *words, env=installed.env).ended(1).err, rf'^{name}: .*{pattern}')
        check_matches(
            run(path, 4194303, *words, env=installed.env).ended(1).err,
            rf'^{name}: .*(there is no process 4194303|No such process)')
