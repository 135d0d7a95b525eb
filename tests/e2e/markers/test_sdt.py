"""kymo record -m of SDT probes, which others have put into their programs: each that is passed is recorded, with what
its operands say; semaphores are 0 afterwards."""
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import markers
import remains
from kymotest import (NOBODY, at_end, check, check_equal, check_undisturbed, event_counts, events, eventually, kymo,
                      program, record, run, skip, start)
from markers import recorder

HERE = Path(__file__).parent
PYTHON = Path('/usr/bin/python3')
KINDS = ('registers', 'constants', 'globals', 'stack', 'memory', 'table')


def build(tmp, *words, compiler='gcc'):
    if not any(
            Path(directory, 'sys/sdt.h').exists() for directory in ('/usr/include', '/usr/include/x86_64-linux-gnu')):
        skip('<sys/sdt.h> is not installed (systemtap-sdt-dev)')
    return markers.compile(tmp / 'sdted', HERE / 'sdted.c', *words, compiler=compiler)


def check_values(log, exact):
    """Each value is what the program says that it passed, or is said to be unknown; those of the probes `exact` are
    all known."""
    said = collections.defaultdict(list)
    for line in log.read_text().splitlines():
        fields = json.loads(line)
        said[fields['name']].append(fields['values'])
    found = collections.defaultdict(list)
    for event in events():
        found[event.name.removeprefix('sdted:')].append(markers.values(event))
    for name, want in said.items():
        check_equal(len(found[name]), len(want), f'records of {name}')
        for i, (fields, values) in enumerate(zip(found[name], want)):
            faults = fields.pop('faults', 0)
            got = list(fields.values())
            check(
                len(got) == len(values) and
                all(a == b or faults >> k & 1 and a == 0 for k, (a, b) in enumerate(zip(got, values))),
                f'record {i} of {name}: expected {values}, got {got}, faults {faults:#x}')
            check(not faults or name not in exact, f'record {i} of {name} has faults {faults:#x}, {got}')
    return said


def check_variant(tmp, *words, exact=('registers', 'constants', 'globals', 'stack', 'guarded'), **options):
    path = build(tmp, *words, **options)
    result = record('-m', 'sdted:*', '--', path, '250', 'log').ok()
    said = check_values(tmp / 'log', exact)
    check_equal(set(said), {*KINDS, 'guarded'}, 'probes that were passed')
    check_equal(result.json()['guarded'], 250, 'passes of one that has a semaphore')
    check_equal(event_counts()['sdted:shared'], 500, 'records of two that share theirs')


def test_operands_in_registers_constants_globals_and_on_the_stack(tmp):
    check_variant(tmp)


def test_operands_of_other_compilations(tmp):
    for words in (['-O0'], ['-fno-pie', '-no-pie'], ['-fno-omit-frame-pointer'], ['-O3', '-march=native'], ['-static'],
                  ['-static-pie', '-fPIE']):
        check_variant(tmp, *words)


def test_operands_of_clang(tmp):
    for words in (['-O2'], ['-O0']):
        check_variant(tmp, *words, compiler='clang')


def test_memory_that_cannot_be_read_is_a_fault_and_no_crash(tmp):
    """Of the stack all can be read; of what pointers lead to nothing is certain."""
    path = build(tmp)
    record('-m', 'sdted:memory', '--', path, '100', 'log').ok()
    found = [markers.values(event) for event in events()]
    check_equal(len(found), 200, 'records')
    check_equal([(fields['faults'] & 5, fields['arg1'], fields['arg3']) for fields in found[1::2]], [(5, 0, 0)] * 100,
                'what lies on the heap')
    check_equal([(fields['faults'], fields['arg1'], fields['arg2']) for fields in found[::2]],
                [(0, i + 3, i) for i in range(100)], 'what lies on the stack')
    text = kymo('report', '--events').ok().out
    check(text.count('arg1=(fault)') == 100, 'the report says so', text[:2000])


def test_semaphores_are_counted_by_each_recording_and_0_afterwards(tmp):
    path = build(tmp)
    process = start(path, '50', 'log', 'wait')
    process.wait_for('ready')
    before = remains.lasting_mappings(process.pid)
    n = len(markers.semaphores(path))
    process.send('\n')
    process.wait_for('done')
    one = recorder(process.pid, 'one', '-m', 'sdted:*')
    check_equal(markers.counters(process.pid, path), [1] * n, 'semaphores')
    two = recorder(process.pid, 'two', '-m', 'sdted:*ed')
    check_equal(sorted(set(markers.counters(process.pid, path))), [1, 2], 'semaphores')
    process.send('\n')
    process.wait_for('(done\n){2}')
    one.end(signal.SIGINT).ok()
    process.send('\n')
    process.wait_for('(done\n){3}')
    two.end(signal.SIGINT).ok()
    markers.check_off(process.pid, path)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.send('\n')
    process.wait_for('(done\n){4}')
    check_equal(process.end().ok().json()['guarded'], 100, 'passes of one with a semaphore')
    check_equal([event_counts('one').get(f'sdted:{name}', 0) for name in ('guarded', 'shared', 'stack')], [50, 100, 50],
                'records of one')
    check_equal([event_counts('two').get(f'sdted:{name}', 0) for name in ('guarded', 'shared', 'stack')], [100, 200, 0],
                'of the other')


def test_semaphores_that_others_count_too(tmp):
    path = build(tmp)
    process = start(path, '50', 'log', 'wait')
    process.wait_for('ready')
    at, semaphores = markers.base(process.pid, path), markers.semaphores(path)
    for address in semaphores:
        markers.write(process.pid, at + address, b'\x05\0')
    each = recorder(process.pid, 'data', '-m', 'sdted:*')
    check_equal(set(markers.counters(process.pid, path)), {6}, 'semaphores')
    each.end(signal.SIGINT).ok()
    check_equal(set(markers.counters(process.pid, path)), {5}, 'semaphores')
    for address in semaphores:
        markers.write(process.pid, at + address, b'\xff\xff')
    kymo('record', '-m', 'sdted:*', '--pid', process.pid).refused('counter has come to its end')
    check_equal(set(markers.counters(process.pid, path)), {0xffff}, 'semaphores')
    check(not remains.are_there(process.pid), 'nothing of kymo is left')
    process.end().ok()


LIBRARY = '''
#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>
unsigned short lib_tick_semaphore __attribute__((section(".probes")));
int large[1 << 18] = { 1 };
int tick(int n)
{
	if (__builtin_expect(lib_tick_semaphore, 0))
		STAP_PROBE2(lib, tick, n, n * 2);
	return n + large[n];
}
'''
USER = '''
int tick(int);
int main(void)
{
	int sum = 0;
	for (int i = 0; i < 100; i++)
		sum += tick(i);
	return sum == 0;
}
'''


def test_semaphores_of_a_library_that_a_launched_program_is_linked_with(tmp):
    """Its data is mapped after its text."""
    build(tmp)
    markers.compile(tmp / 'libtick.so', LIBRARY, '-fPIC', '-shared')
    markers.compile(tmp / 'user', USER, '-L', tmp, '-ltick', f'-Wl,-rpath,{tmp}')
    record('-m', 'lib:tick', '--', tmp / 'user').ok()
    check_equal([(event['arg1'], event['arg2']) for event in events()], [(i, 2 * i) for i in range(100)], 'records')


# ---- programs of others --------------------------------------------------------------------------

SCRIPT = '''
import gc
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
for i in range(5):
    print(fib(12))
    gc.collect()
'''
# Nothing of the environment, of site-packages, or of random hashes.
SCRIPT_WORDS = ['-I', '-S', '-B']


def python_probes():
    if not PYTHON.exists() or not any(markers.semaphores(PYTHON)):
        skip(f'{PYTHON} has no SDT probes')


def test_python_is_counted_as_bpftrace_counts_it(tmp):
    python_probes()
    (tmp / 'script.py').write_text(SCRIPT)
    command = [PYTHON.resolve(), *SCRIPT_WORDS, tmp / 'script.py']
    check_undisturbed(command, ['-m', 'python:*'], env={'PYTHONHASHSEED': '0'})
    counts = {name.removeprefix('python:'): n for name, n in event_counts().items()}
    check_equal(counts['function__entry'] > 5 * 465 and counts['function__return'], counts['function__entry'],
                'calls and returns')
    check(counts['gc__start'] == counts['gc__done'] >= 5 and counts['line'] > counts['function__entry'], 'other probes',
          counts)
    if os.geteuid():
        skip('the kernel lets root alone use uprobes')
    # Python calls a function more for each output that something has been written to already, as bpftrace does.
    silent = {'env': {'PYTHONHASHSEED': '0'}, 'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
    record('-m', 'python:*', '--', *command, **silent).ok()
    counts = {name.removeprefix('python:'): n for name, n in event_counts().items()}
    other = run(program('bpftrace'), '-q', '-o', tmp / 'counts', '-e',
                f'usdt:{command[0]}:python:* {{ @[probe] = count(); }}', '-c', ' '.join(map(str, command)), **silent)
    found = {
        name: int(n)
        for name, n in re.findall(r'^@\[usdt:\S+:python:(\w+)\]: (\d+)$', (tmp / 'counts').read_text(), re.MULTILINE)
    }
    check(found, 'bpftrace counts', other)
    check_equal(counts, found, 'counts of kymo and of bpftrace')


LOOP = '''
import gc
import sys
gc.disable()
for line in sys.stdin:
    for i in range(100):
        gc.collect()
    print('done', flush=True)
'''


def test_python_that_runs_already(tmp):
    python_probes()
    path = PYTHON.resolve()
    (tmp / 'loop.py').write_text(LOOP)
    process = start(path, *SCRIPT_WORDS, tmp / 'loop.py')
    process.send('\n')
    process.wait_for('done')
    before = remains.lasting_mappings(process.pid)
    each = recorder(process.pid, 'data', '-m', 'python:gc__*')
    process.send('\n')
    process.wait_for('(done\n){2}')
    each.end(signal.SIGINT).ok()
    check_equal([event_counts('data')[f'python:gc__{name}'] for name in ('start', 'done')], [100, 100], 'collections')
    markers.check_off(process.pid, path)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end().ok()


THROWING = '''
#include <cstdio>
int main()
{
	int caught = 0;
	for (int i = 0; i < 50; i++)
		try { throw i; } catch (int n) { caught += n == i; }
	printf("%d\\n", caught);
	return 0;
}
'''


def test_exceptions_of_cxx(tmp):
    (tmp / 'throwing.cc').write_text(THROWING)
    run(program('g++'), '-O2', '-o', tmp / 'throwing', tmp / 'throwing.cc').ok()
    check_equal(record('-m', 'libstdcxx:*', '--', tmp / 'throwing').ok().out, '50\n', 'output')
    counts = event_counts()
    check_equal([counts['libstdcxx:throw'], counts['libstdcxx:catch']], [50, 50], 'thrown and caught')


def test_all_there_is_in_every_library_of_a_program(tmp):
    """libc, libstdc++ and the dynamic linker have probes of their own; what cannot be recorded is told and left out."""
    (tmp / 'throwing.cc').write_text(THROWING)
    run(program('g++'), '-O2', '-o', tmp / 'throwing', tmp / 'throwing.cc').ok()
    if not any(True for _ in markers.Elf('/lib/x86_64-linux-gnu/libc.so.6').notes('.note.stapsdt')):
        skip('libc has no SDT probes here')
    result = check_undisturbed([tmp / 'throwing'], ['-m', '*'])
    counts = event_counts()
    check(counts['libstdcxx:throw'] == 50 and any(name.startswith(('libc:', 'rtld:')) for name in counts),
          'of several files', counts, result.err)


def test_postgres_queries(tmp):
    """Where it is built with its probes."""
    servers = sorted(Path('/usr/lib/postgresql').glob('*/bin/postgres')) if Path('/usr/lib/postgresql').exists() else []
    if not servers or not any(True for _ in markers.Elf(servers[-1]).notes('.note.stapsdt')):
        skip('there is no postgres with SDT probes')
    if os.geteuid():
        skip('needs root, to be another user')
    bin_, data = servers[-1].parent, Path(tempfile.mkdtemp(dir='/tmp', prefix='kymo-postgres-'))
    at_end(shutil.rmtree, data, True)
    os.chown(data, NOBODY, NOBODY)
    run(bin_ / 'initdb', '-D', data, '-A', 'trust', '--locale=C', '--no-sync', user=NOBODY, cwd=data).ok()
    process = start(bin_ / 'postgres', '--single', '-D', data, 'postgres', user=NOBODY, cwd=data)
    process.wait_for('backend>')
    before = remains.lasting_mappings(process.pid)
    each = recorder(process.pid, 'trace', '-m', 'postgresql:query__*')
    process.send('select 1;\n' * 10)
    eventually(lambda: process.out.count('1: ?column?') >= 20, 'queries are answered')
    each.end(signal.SIGINT).ok()
    markers.check_off(process.pid, servers[-1])
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end().ok()
    counts = event_counts('trace')
    check_equal([counts.get(f'postgresql:query__{name}') for name in ('start', 'parse__start', 'execute__done')],
                [10] * 3, 'queries')
