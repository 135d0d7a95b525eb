"""Stacks of records: as gdb has them at the same place, of programs with and without frame pointers, from everywhere;
and what reports make of them."""
import collections
import html.parser
import json
import os
import re
import shutil
import signal
from pathlib import Path

import comparing
import golang
from kymotest import (KYMO, babeltrace, check, check_equal, check_matches, kymo, record, report_json, run, skip, start,
                      start_record, timeout)

HERE = Path(__file__).parent
LIBC = '/usr/lib/x86_64-linux-gnu/libc.so.6'
# Local to the C library: known where its debug symbols are installed (libc6-dbg).
CALLS_MAIN = '__libc_start_call_main' if '__libc_start_call_main' in comparing.symbol_tables(LIBC) else None
BASE = [CALLS_MAIN or '?', '__libc_start_main', '_start']


def compile_it(tmp, *options):
    run('gcc', '-O1', *options, '-pthread', '-o', tmp / 'stacks', HERE / 'stacks.c').ok()


def stacks(directory='kymo.data'):
    """Of each record, in order."""
    lines = kymo('report', '--events', '--json', directory).ok().out.splitlines()
    return [event['stack'] for event in map(json.loads, lines) if event['event'] == 'probe']


def name_of(frame):
    """The linker and old versions of libc have other names for it. What has none is called by file and address."""
    function = re.sub(r'^.*:0x[0-9a-f]+$', '?', frame.get('function', ''))
    return function.split('@')[0] or ('cut' if 'cut_at' in frame else '?')


def names(stack):
    return [name_of(frame) for frame in stack]


# ---- beside gdb ----------------------------------------------------------------------------------


def compare_with_gdb(tmp, function, file, *command):
    if not shutil.which('gdb'):
        skip('needs gdb')
    if not os.path.exists(command[0]):
        skip(f'needs {command[0]}')
    out = run('gdb', '-nx', '-batch', '-ex', 'set breakpoint pending on', '-ex', 'set confirm off', '-ex',
              'set backtrace past-main on', '-ex', f'tbreak {function}', '-ex', 'run', '-x', HERE / 'gdb_stack.py',
              '--args', *command, env={**os.environ, 'DEBUGINFOD_URLS': ''}).out
    line = [line for line in out.splitlines() if line.startswith('STACK ')]
    if not line:
        skip(f'gdb does not stop at {function}')
    expected = json.loads(line[0].split(' ', 1)[1])
    record('--stack', '--stack-size', '16K', '--no-follow', '-p', f'{file}:{function}', '--', *command).ok()
    found = [[os.path.basename(frame.get('file', '')),
              int(frame['address'], 16)] for frame in stacks()[0] if 'address' in frame]
    check_equal(found[1:], expected[1:], 'the callers')  # gdb stops behind the function's prologue


@timeout(200)
def test_sqlite_as_gdb_has_it(tmp):
    compare_with_gdb(tmp, 'sqlite3_step', 'libsqlite3', '/usr/bin/sqlite3', ':memory:', 'select 1')


@timeout(200)
def test_bash_as_gdb_has_it(tmp):
    compare_with_gdb(tmp, 'parse_and_execute', 'bash', '/bin/bash', '--norc', '-c', 'f() { eval "echo $1"; }; f 1')


@timeout(200)
def test_git_as_gdb_has_it(tmp):
    compare_with_gdb(tmp, 'getcwd', 'libc', '/usr/bin/git', 'version')


@timeout(200)
def test_python_as_gdb_has_it(tmp):
    compare_with_gdb(tmp, 'mkdir', 'libc', os.path.realpath('/usr/bin/python3'), '-c',
                     'import os\ndef f(n): return f(n - 1) if n else os.mkdir(".")\ntry: f(3)\nexcept OSError: pass')


# ---- from everywhere -----------------------------------------------------------------------------


def check_all(found):
    recursion, handled, elsewhere, thread, coroutine, wide, *spoiled = found
    check_equal(names(recursion)[:8], ['leaf', *['recurse'] * 6, 'main'], 'a recursion')
    check_equal(names(handled)[:2], ['leaf', 'handler'], 'a handler')
    check('main' in names(handled) and 'raise' in names(handled), 'what the signal came upon', names(handled))
    check_equal(names(elsewhere)[:2], ['leaf', 'handler'], 'a handler on a stack of its own')
    check_equal(names(elsewhere)[-1], 'cut', 'the other stack is not known')
    check_equal(names(thread)[:6], ['leaf', *['recurse'] * 4, 'thread'], 'a thread')
    check_equal(names(coroutine)[:5], ['leaf', *['recurse'] * 3, 'coroutine'], 'a coroutine')
    check_equal(names(wide), ['leaf', 'wide', 'cut'], 'a frame that is larger than the copy')
    check_equal(wide[-1]['cut_at'], 8192, 'the copy')
    check_equal(len(spoiled), 6, 'frame pointers that lead nowhere')
    for stack in spoiled:
        check_equal(names(stack)[0], 'leaf', 'the first frame')
        check(len(stack) < 20, 'it ends', stack)


def test_calls_from_everywhere_without_frame_pointers(tmp):
    compile_it(tmp, '-fomit-frame-pointer')
    record('--stack', '-p', './stacks:leaf', '--', './stacks').ok()
    found = stacks()
    check_all(found)
    check_equal(names(found[0])[-4:], ['main', *BASE], 'the outermost frames')
    check_equal(report_json()['lost_events'], 0, 'lost')


def test_calls_from_everywhere_with_frame_pointers_alone(tmp):
    compile_it(tmp, '-fno-omit-frame-pointer', '-fno-asynchronous-unwind-tables')
    record('--stack', '-p', './stacks:leaf', '--', './stacks').ok()
    check_all(stacks())


def test_without_restartable_sequences(tmp):
    compile_it(tmp, '-fomit-frame-pointer')
    record('--stack', '--no-rseq', '-p', './stacks:leaf', '--', './stacks').ok()
    check_all(stacks())


def test_depth_size_returns_and_values(tmp):
    compile_it(tmp, '-fomit-frame-pointer')
    record('--stack=3', '-p', './stacks:leaf n=%edi:s32 again=arg0', '-r', './stacks:recurse result=$retval', '--',
           './stacks', '40').ok()
    lines = [json.loads(line) for line in kymo('report', '--events', '--json').ok().out.splitlines()]
    check_equal(lines[0]['args'], {'n': 0, 'again': 0}, 'values')
    check_equal(names(lines[0]['stack']), ['leaf', 'recurse', 'recurse'], 'depth')
    returns = [line for line in lines if line['name'].endswith('%return')]
    check_equal(len(returns), 41 + 4 + 3, 'returns')
    check_equal([name_of(frame) for frame in returns[40]['stack']][:2], ['recurse', 'main'], 'the last return')
    record('--stack', '--stack-size', '256', '-p', './stacks:leaf', '--', './stacks', '40').ok()
    check_equal(stacks()[0][-1], {'cut_at': 256}, 'a small copy')
    record('--stack', '-p', './stacks:leaf', '-r', './stacks:leaf', '--', './stacks').ok()
    check_equal(report_json()['calls'][0]['count'], 12, 'calls are paired')


def test_of_a_process_that_has_executed_another(tmp):
    compile_it(tmp, '-fomit-frame-pointer')
    record('--stack', '-p', './stacks:leaf', '-p', 'libc:execve', '--', '/bin/sh', '-c', './stacks; exec ./stacks').ok()
    found = stacks()
    # a vfork child's execve is counted alone
    check_equal([names(stack)[0] for stack in found].count('leaf'), 2 * 12, 'calls')
    check(all('main' in names(stack) or '?' in names(stack) for stack in found if names(stack)[0] == 'execve'),
          'of the shell', found)
    check_equal(sum(names(stack)[-4:] == ['main', *BASE] for stack in found), 2 * 2, 'of both programs')


@timeout(300)
def test_goroutines(tmp):
    golang.build(tmp, 'stacks', HERE.parent / 'reach' / 'stacks.go')
    result = record('--stack', '--buffer', '64M', '-p', './stacks:main.check', '--', './stacks', seconds=200).ok()
    check('ok\n' in result.err, 'no stack was written to', result)
    check_equal({names(stack)[0] for stack in stacks()}, {'main.check'}, 'the innermost frames')


# ---- flight recorders ----------------------------------------------------------------------------

PATHS = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#define KEEP(n) __asm__ volatile("" : "+r"(n))
static char text[201];
__attribute__((noinline, noclone)) int leaf(int n, const char *s) { KEEP(n); return n + 1; }
__attribute__((noinline, noclone)) int a(int n, int rest);
__attribute__((noinline, noclone)) int b(int n, int rest);
static inline __attribute__((always_inline)) int go(int n, int rest)
{
	int r = !rest ? leaf(n, text) : n >> (rest - 1) & 1 ? b(n, rest - 1) : a(n, rest - 1);
	KEEP(r);
	return r;
}
__attribute__((noinline, noclone)) int a(int n, int rest) { return go(n, rest) + 1; }
__attribute__((noinline, noclone)) int b(int n, int rest) { return go(n, rest) + 2; }
int main(int argc, char **argv)
{
	int last = atoi(argv[1]), bits = atoi(argv[2]), sum = 0;
	char line[10];
	for (int i = 0; i < 200; i++) text[i] = 'x';
	if (argc > 3) { puts("ready"); fflush(stdout); fgets(line, sizeof(line), stdin); }
	for (int i = 0; i < last; i++) { sum += go(i, bits); if (i % 64 == 63) usleep(500); if (last == 6000 && i % 2000 == 1999) usleep(700000); }
	if (argc > 3) { puts("done"); fflush(stdout); fgets(line, sizeof(line), stdin); }
	return sum == 0;
}
"""

# For all copies: on a busy machine the recorder may come to them late.
ROOMY = ('--keep', '128M', '--buffer', '64M')


def check_paths(directory, bits):
    """Each record's stack is the path that its number says; the numbers."""
    numbers = []
    for line in kymo('report', '--events', '--json', directory).ok().out.splitlines():
        event = json.loads(line)
        if event['event'] != 'probe':
            continue
        n = event['args']['n']
        expected = ['leaf', *('ab'[n >> i & 1] for i in range(bits)), 'main', *BASE]
        if names(event['stack']) != expected:
            check_equal(names(event['stack']), expected, f'the stack of {n} in {directory}')
        numbers.append(n)
    check(numbers, f'there are records in {directory}')
    return numbers


def compile_paths(tmp):
    (tmp / 'paths.c').write_text(PATHS)
    run('gcc', '-O1', '-fomit-frame-pointer', '-o', 'paths', 'paths.c').ok()


def test_what_is_kept_has_its_stacks(tmp):
    compile_paths(tmp)
    record('--stack', '-p', './paths:leaf n=arg0', *ROOMY, '--', './paths', 1000, 5).ok()
    check_equal(check_paths('kymo.data', 5), list(range(1000)), 'all')
    babeltrace()
    # The program pauses after each such hit, as the recorder notices it up to 0.2 seconds later.
    record('--stack', '-p', './paths:leaf n=arg0', *ROOMY, '--snapshots', 2, '--until',
           './paths:leaf /arg0 % 2000 == 1999/', '--', './paths', 6000, 5)
    for number in (1, 2):
        numbers = check_paths(f'kymo.data.{number}', 5)
        check(numbers == list(range(len(numbers))) and len(numbers) >= 2000 * number, f'snapshot {number}',
              len(numbers))
        babeltrace(f'kymo.data.{number}')


@timeout(200)
def test_frames_go_with_the_packets_that_name_them(tmp):
    """262,144 frames, of which the packets that are kept name a part."""
    compile_paths(tmp)
    record('--stack', '-p', './paths:leaf n=arg0 s=str(arg1, 200)', '--keep', '8M', '--', './paths', 150000, 16,
           seconds=150).ok()
    numbers = check_paths('kymo.data', 16)
    check_equal(numbers, sorted(numbers), 'in order')
    lost = report_json()['lost_events']  # where the machine is busy and the recorder comes late
    check(10000 < len(numbers) < 50000 and numbers[-1] >= 149999 - lost, 'the newest', len(numbers), numbers[-1], lost)
    if shutil.which('babeltrace2'):
        n = run('babeltrace2', 'kymo.data').out.count(' kymo:frame: ')
        check(20000 < n < 240000, 'frames', n)


def test_what_is_overwritten_has_its_stacks(tmp):
    compile_paths(tmp)
    record('--stack', '-p', './paths:leaf n=arg0', '--overwrite', '--buffer', '1M', '--', './paths', 10000, 5).ok()
    numbers = check_paths('kymo.data', 5)
    check(numbers[-1] == 9999 and len(numbers) < 9000, 'the newest', len(numbers), numbers[-1])
    for words in (('--overwrite', '--buffer', '64M'), ROOMY):
        process = start('./paths', 1000, 5, 'wait')
        process.wait_for('ready')
        recorder = start_record(process.pid, '-o', 'live', '--stack', '-p', './paths:leaf n=arg0', *words)
        process.send('go\n')
        process.wait_for('done')
        recorder.popen.send_signal(signal.SIGUSR1)
        recorder.wait_for('snapshot in', which=1)
        process.end(input='\n')
        recorder.end().ok()
        check_equal(check_paths('live.1', 5), list(range(1000)), 'the snapshot')
        check_equal(check_paths('live', 5), list(range(1000)), 'the recording')
        babeltrace('live.1')
        shutil.rmtree('live.1')


WORKERS = """
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline, noclone)) int leaf(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
__attribute__((noinline, noclone)) int worker(int n, int all_are_there)
{
	char end;
	int sum = leaf(n);

	if (read(all_are_there, &end, 1)) abort();
	return sum + leaf(n) + 1;
}
int main(int argc, char **argv)
{
	const int n = atoi(argv[1]);
	int ends[2];

	if (pipe(ends)) abort();
	for (int i = 0; i < n; i++) if (!fork()) { close(ends[1]); _exit(worker(i, ends[0]) == 0); }
	close(ends[1]);
	for (int i = 0; i < n; i++) wait(NULL);
	return 0;
}
"""


@timeout(240)
def test_more_processes_than_are_looked_at_at_once_have_their_stacks(tmp):
    """They are all there at once, so that the buffers of most are the least that there are."""
    (tmp / 'workers.c').write_text(WORKERS)
    run('gcc', '-O1', '-o', 'workers', 'workers.c').ok()
    record('--stack', '--overwrite', '--buffer', '64M', '-p', './workers:leaf n=arg0', '--', './workers', 300,
           seconds=200).ok()
    stacks = [
        names(event['stack'])[:3] for event in map(json.loads,
                                                   kymo('report', '--events', '--json').ok().out.splitlines())
        if event['event'] == 'probe'
    ]
    check_equal(len(stacks), 600, 'records')
    check_equal([stack for stack in stacks if stack != ['leaf', 'worker', 'main']], [],
                'stacks that do not begin with the function')


# ---- reports -------------------------------------------------------------------------------------


class Page(html.parser.HTMLParser):
    """Well-formed, and with nothing from elsewhere."""
    def __init__(self, text):
        super().__init__()
        self.open, self.boxes = [], collections.Counter()
        self.feed(text)
        check_equal(self.open, [], 'elements that are open')

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            check(name not in ('src', 'href'), 'nothing is loaded', tag, attrs)
            if name == 'data-n':
                self.boxes[value] += 1
        if tag not in ('meta', 'input'):
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        check_equal(self.open.pop(), tag, 'the element that ends')


def nameless(text):
    """Functions of the C library that have no name, by their file alone."""
    return re.sub(r'\blibc\.so\.6:0x[0-9a-f]+', '[libc.so.6]', text)


def test_reports(tmp):
    (tmp / 'odd.cc').write_text(
        'template <typename T> struct box { __attribute__((noinline)) int put(T *n, const char &c); };\n'
        'extern "C" __attribute__((noinline)) int leaf(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }\n'
        'template <typename T> int box<T>::put(T *n, const char &c) { int r = leaf(c); __asm__ volatile("" : "+r"(r)); return r; }\n'
        'int main() { box<int> b; for (int i = 0; i < 10; i++) { int n = i; b.put(&n, 1); } leaf(1); return 0; }\n')
    run('g++', '-O1', '-o', 'odd', 'odd.cc').ok()
    record('--stack', '-p', './odd:leaf', '--', './odd').ok()
    folded = dict(line.rsplit(' ', 1) for line in nameless(kymo('report', '--folded').ok().out).splitlines())
    calls_main = CALLS_MAIN or '[libc.so.6]'
    check_equal(
        folded, {
            f'_start;__libc_start_main;{calls_main};main;leaf': '1',
            f'_start;__libc_start_main;{calls_main};main;box<int>::put(int*, char const&);leaf': '10'
        }, 'folded')
    page = Page(nameless(kymo('report', '--flame').ok().out))
    check_equal(
        page.boxes, {
            'all': 1, '_start': 1, '__libc_start_main': 1, calls_main: 1, 'main': 1, 'leaf': 2,
            'box<int>::put(int*, char const&)': 1
        }, 'boxes')
    check_equal([line.split()[0:3] for line in kymo('report', '--callers', 'leaf').ok().out.splitlines()[1:4]],
                [['11', '100.0%', 'leaf'], ['10', '90.9%', 'box<int>::put(int*,'], ['10', '90.9%', 'main']], 'callers')
    check_equal([line.split()[0:3] for line in kymo('report', '--callees', 'main').ok().out.splitlines()[1:3]],
                [['11', '100.0%', 'main'], ['10', '90.9%', 'box<int>::put(int*,']], 'callees')
    check_matches(
        kymo('report', '--callers', 'nothing').ended(1).err, "no stack has a function 'nothing'",
        'a function that is not there')
    check_matches(
        kymo('report', '--events').ok().out,
        r'odd:leaf\n        leaf \(.*/odd\)\n        box<int>::put\(int\*, char const&\)\+0x\w+ \(.*/odd\)\n        main\+',
        'lines')
    check('kymo:frame' not in kymo('report').ok().out + kymo('report', '--json').ok().out, 'frames are no events')
    if shutil.which('babeltrace2'):
        babeltrace()


def test_wrong_words(tmp):
    for words, sentence in ((('--stack=0', '-p', 'libc:malloc'), '--stack takes a number of frames'),
                            (('--stack', '--stack-size', '1G', '-p', 'libc:malloc'),
                             '--stack-size takes a number of bytes'), (('--stack-size', '4K', '-p', 'libc:malloc'),
                                                                       'add --stack'),
                            (('--stack', '--buffer', '64K', '-p', 'libc:malloc'),
                             'need a --buffer of 512K'), (('--stack', '-m', 'a*'), 'leave --marker out'),
                            (('--stack', '-s', 'all'), 'leave --syscall out'), (('--stack', '--count', 'libc:malloc'),
                                                                                'aggregations write none'),
                            (('--stack', '--backend', 'kernel', '-p', 'libc:malloc'),
                             'stacks are taken in the process itself')):
        result = run(KYMO, 'record', *words, '--', '/bin/true').ended(2)
        check(sentence in result.err, f'the sentence for {words}', result)
    record('-p', 'libc:malloc', '--', '/bin/true').ok()
    check_matches(
        kymo('report', '--flame').ended(1).err,
        "no record of kymo.data has a stack: 'kymo record --stack' records them", 'a trace without')
    check_matches(kymo('report', '--flame', '--events').ended(2).err, 'exclude each other', 'two modes')
