"""Stacks by frame pointers, `--frame-pointers`: as copies of the stack have them, as bpftrace has them, from everywhere, in
Go; where there are no frame pointers; in all ways to record."""
import json
import re
import shutil
import signal
from pathlib import Path

import comparing
import golang
from kymotest import (KYMO, babeltrace, check, check_equal, check_same, kymo, need_root, program, record, report_json,
                      run, skip, start, start_record, timeout)

HERE = Path(__file__).parent
FP = '--frame-pointers'
LIBC = '/usr/lib/x86_64-linux-gnu/libc.so.6'
# What calls main: local to the C library, and known where its debug symbols are installed (libc6-dbg).
CALLS_MAIN = '__libc_start_call_main' if '__libc_start_call_main' in comparing.symbol_tables(LIBC) else '?'

PATHS = """
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#define KEEP(n) __asm__ volatile("" : "+r"(n))
#define FUNCTION __attribute__((noinline, noclone, aligned(64)))
FUNCTION int leaf(int n, const char *s) { volatile int one[2] = { 1, n }; return one[1] + one[0]; }
FUNCTION int a(int n, int rest);
FUNCTION int b(int n, int rest);
static inline __attribute__((always_inline)) int go(int n, int rest)
{
	int r = !rest ? leaf(n, "a text") : n >> (rest - 1) & 1 ? b(n, rest - 1) : a(n, rest - 1);
	KEEP(r);
	return r;
}
int a(int n, int rest) { return go(n, rest) + 1; }
int b(int n, int rest) { return go(n, rest) + 2; }
static void *thread(void *data) { int r = go(21, 5); KEEP(r); return data; }
int main(int argc, char **argv)
{
	int last = atoi(argv[1]), bits = atoi(argv[2]), sum = 0;
	char line[10];
	pthread_t other;
	if (argc > 3 && *argv[3] == 'w') { puts("ready"); fflush(stdout); fgets(line, sizeof(line), stdin); }
	for (int i = 0; i < last; i++) { sum += go(i, bits); if (i % 64 == 63) usleep(500); }
	if (argc > 3 && *argv[3] == 'w') { puts("done"); fflush(stdout); fgets(line, sizeof(line), stdin); }
	if (argc > 3 && *argv[3] == 't') { pthread_create(&other, NULL, thread, NULL); pthread_join(other, NULL); }
	if (argc > 3 && *argv[3] == 'f') { if (!fork()) { sum += go(10, 5); _exit(!sum); } wait(NULL); }
	return sum == 0;
}
"""


def compile_paths(tmp, *options):
    (tmp / 'paths.c').write_text(PATHS)
    run('gcc', '-O2', '-fno-omit-frame-pointer', *options, '-pthread', '-o', 'paths', 'paths.c').ok()


def events(directory='kymo.data'):
    lines = kymo('report', '--events', '--json', directory).ok().out.splitlines()
    return [event for event in map(json.loads, lines) if event['event'] == 'probe']


def name_of(frame):
    """What has no name is called by file and address."""
    return re.sub(r'^.*:0x[0-9a-f]+$', '?', frame.get('function', '?')).split('@')[0]


def names(stack):
    return [name_of(frame) for frame in stack]


def path_of(n, bits):
    return ['leaf', *('ab'[n >> i & 1] for i in range(bits)), 'main', CALLS_MAIN]


def check_paths(directory, bits):
    """Each record's stack is the path that its number says; the numbers."""
    numbers = []
    for event in events(directory):
        n = event['args']['n']
        if names(event['stack']) != path_of(n, bits):
            check_equal(names(event['stack']), path_of(n, bits), f'the stack of {n} in {directory}')
        numbers.append(n)
    check(numbers, f'there are records in {directory}')
    return numbers


# ---- beside copies, and bpftrace -----------------------------------------------------------------


def test_frames_are_those_of_copies(tmp):
    """Up to the C library, which has no frame pointers. Inlined functions and lines are the same, too."""
    compile_paths(tmp, '-g')
    for words in ('-p', './paths:leaf n=arg0'), ('-p', './paths:b', '-r', './paths:leaf'):
        record('--stack', *words, '--', './paths', 32, 5, 't').ok()
        copied = [event['stack'] for event in events()]
        record(FP, '--stack=64', *words, '--', './paths', 32, 5, 't').ok()
        chained = [event['stack'] for event in events()]
        check_equal(len(copied), len(chained), 'records')
        for one, other in zip(copied, chained):
            n = next(i for i, frame in enumerate(one) if 'libc' in frame['file'])
            check_equal(other, one[:n + 1], 'a stack')
            check('thread' in names(one) or names(one)[n - 1] == 'main', 'the outermost function', one)


@timeout(200)
def test_bpftrace_has_the_same_but_may_lack_the_caller(tmp):
    """The kernel follows frame pointers, too. At an entry it looks for a push of the frame pointer, not before Linux
    6.11. If it can read that without a fault it has the caller."""
    need_root()
    compile_paths(tmp)
    script = 'uprobe:./paths:leaf { printf("STACK%s\\n", ustack(perf, 64)); }'
    other = run(program('bpftrace'), '-e', script, '-c', './paths 32 5', seconds=120)
    theirs = [[int(line.split()[0], 16) & 0xfff for line in text.splitlines() if line.startswith('\t')]
              for text in other.out.split('STACK')[1:]]
    if not theirs:
        skip(f'bpftrace cannot run here: {other.err.strip()[:300]}')
    record(FP, '--stack=64', '-p', './paths:leaf', '--', './paths', 32, 5).ok()
    mine = [[int(frame['address'], 16) & 0xfff for frame in event['stack']] for event in events()]
    check_equal(len(mine), 32, 'records')
    check_equal(len(theirs), 32, 'stacks of bpftrace')
    for own, other in zip(mine, theirs):
        check(other in (own, own[:1] + own[2:]), 'a stack', own, other)


# ---- how many ------------------------------------------------------------------------------------


def test_a_stack_has_so_many_frames_at_most(tmp):
    compile_paths(tmp)
    for n in 1, 2, 3, 9, 10, 11, 100, 255, 256:
        words = '-p', './paths:leaf n=arg0', '-p', './paths:leaf+0x10'
        record(FP, f'--stack={n}', '--buffer', '1M', *words, '--', './paths', 3, 7).ok()
        stacks = [names(event['stack']) for event in events()]
        check_equal(stacks, [path_of(i, 7)[:n] for i in range(3) for _ in range(2)], f'{n} frames')
    record(FP, '--stack=256', '--buffer', '1M', '-p', './paths:leaf n=arg0', '--', './paths', 2, 300).ok()
    check_equal([len(event['stack']) for event in events()], [256, 256], 'of 303 frames')


def test_in_each_part_of_a_function(tmp):
    """Wherever the frame pointer is that of the caller's frame the caller is there nevertheless: at the entry, after the
    push, and at the return."""
    compile_paths(tmp)
    record(FP, '--stack=16', '-p', './paths:leaf:*', '-p', './paths:a:*', '--', './paths', 1, 2).ok()
    found = [names(event['stack']) for event in events()]
    check_equal({tuple(stack) for stack in found},
                {('leaf', 'a', 'a', 'main', CALLS_MAIN), ('a', 'a', 'main', CALLS_MAIN), ('a', 'main', CALLS_MAIN)},
                'stacks')
    check(len(found) > 20, 'instructions', len(found))


# ---- from everywhere -----------------------------------------------------------------------------


def check_from_everywhere(tmp, *options):
    """Stacks of signal handlers lack what the signal came upon; other stacks than threads' end with their page."""
    run('gcc', '-O1', *options, '-pthread', '-o', 'stacks', HERE / 'stacks.c').ok()
    record(FP, '--stack=16', '-p', './stacks:leaf', '--', './stacks').ok()
    recursion, handled, elsewhere, thread, coroutine, wide, *spoiled = [names(event['stack']) for event in events()]
    check_equal(recursion, ['leaf', *['recurse'] * 6, 'main', CALLS_MAIN], 'a recursion')
    check_equal(handled[:3], ['leaf', 'handler', '?'], 'a handler')
    check_equal(elsewhere[:3], ['leaf', 'handler', '?'], 'a handler on a stack of its own')
    check_equal(thread[:6], ['leaf', *['recurse'] * 4, 'thread'], 'a thread')
    check_equal(coroutine[:5], ['leaf', *['recurse'] * 3, 'coroutine'], 'a coroutine')
    check_equal(wide, ['leaf', 'wide', 'main', CALLS_MAIN], 'a frame that is larger than a copy')
    check_equal(len(spoiled), 6, 'frame pointers that lead nowhere')
    for stack in spoiled:
        check_equal(stack[:2], ['leaf', 'spoil'], 'the first frames')
        check(len(stack) < 4, 'it ends', stack)
    check_equal(report_json()['lost_events'], 0, 'lost')


def test_calls_from_everywhere(tmp):
    check_from_everywhere(tmp, '-fno-omit-frame-pointer')


def test_calls_from_everywhere_by_frame_pointers_alone(tmp):
    check_from_everywhere(tmp, '-fno-omit-frame-pointer', '-fno-asynchronous-unwind-tables')


def test_without_frame_pointers_stacks_are_short(tmp):
    """The location and its caller are there. Whatever the register holds, the program runs on."""
    run('gcc', '-O1', '-fomit-frame-pointer', '-pthread', '-o', 'stacks', HERE / 'stacks.c').ok()
    record(FP, '--stack=64', '-p', './stacks:leaf', '--', './stacks').ok()
    found = [names(event['stack']) for event in events()]
    check_equal([stack[:2] for stack in found],
                [['leaf', caller]
                 for caller in ('recurse', 'handler', 'handler', 'recurse', 'recurse', 'wide', *['spoil'] * 6)],
                'the first frames')
    check_equal({name for stack in found for name in stack[2:]} - {'?', 'main', CALLS_MAIN, 'start_thread', 'clone3'},
                set(), 'what else is there')
    python = shutil.which('python3')
    bare = run(python, '-c', 'import json; print(json.dumps(list(range(9))))').ok()
    result = record(FP, '--stack=256', '-p', 'libc:malloc', '-r', 'libc:malloc', '--', python, '-c',
                    'import json; print(json.dumps(list(range(9))))').ok()
    check_equal(result.out, bare.out, 'what the program prints')


GO = """package main

//go:noinline
func leaf(n int) int { return n + 1 }

//go:noinline
func inner(n int) int { return leaf(n) + 2 }

//go:noinline
func outer(n int) int { return inner(n) + 3 }

func main() {
	done := make(chan int)
	go func() { done <- outer(1) }()
	println(<-done + outer(2))
}
"""


@timeout(300)
def test_goroutines(tmp):
    (tmp / 'deep.go').write_text(GO)
    golang.build(tmp, 'deep', 'deep.go')
    result = record(FP, '--stack=16', '-p', './deep:main.leaf', '--', './deep', seconds=200).ok()
    check('15\n' in result.err, 'the sum', result)
    stacks = [[name.replace('.abi0', '') for name in names(event['stack'])] for event in events()]
    check_equal(stacks, [['main.leaf', 'main.inner', 'main.outer', 'main.main.func1', 'runtime.goexit'],
                         ['main.leaf', 'main.inner', 'main.outer', 'main.main', 'runtime.main', 'runtime.goexit']],
                'stacks')
    golang.build(tmp, 'stacks', HERE.parent / 'reach' / 'stacks.go')
    result = record(FP, '--stack', '--buffer', '64M', '-p', './stacks:main.check', '--', './stacks', seconds=200).ok()
    check('ok\n' in result.err, 'no stack was written to', result)
    check_equal({names(event['stack'])[0] for event in events()}, {'main.check'}, 'the innermost frames')


def test_functions_of_node_have_names(tmp):
    node = shutil.which('node')
    if not node:
        skip('needs node')
    (tmp / 'app.js').write_text("""
function inner() { return process.cpuUsage().user; }
function outer() { let sum = 0; for (let i = 0; i < 3; i++) sum += inner(); return sum; }
const end = Date.now() + 1500;
while (Date.now() < end) outer();
require('fs').unlinkSync(`/tmp/perf-${process.pid}.map`);
""")
    record(FP, '--stack=64', '-p', 'libc:getrusage sample 1/10', '--', node, '--perf-basic-prof',
           '--interpreted-frames-native-stack', 'app.js').ok()
    folded = kymo('report', '--folded').ok().out
    check(re.search(r'main;.*;JS:\S*outer [^;]*/app\.js:3:15(;JS:\S*inner [^;]*)?;.*;getrusage ', folded),
          'functions of app.js', folded)


# ---- in all ways ---------------------------------------------------------------------------------


def test_what_is_kept_or_overwritten_has_its_stacks(tmp):
    compile_paths(tmp)
    words = FP, '--stack=32', '-p', './paths:leaf n=arg0'
    record(*words, '--', './paths', 1000, 5).ok()
    check_equal(check_paths('kymo.data', 5), list(range(1000)), 'all')
    babeltrace()
    record(*words, '--no-rseq', '--', './paths', 1000, 5).ok()
    check_equal(check_paths('kymo.data', 5), list(range(1000)), 'all, by locks')
    record(*words, '--overwrite', '--buffer', '64K', '--', './paths', 10000, 5).ok()
    numbers = check_paths('kymo.data', 5)
    check(numbers[-1] == 9999 and len(numbers) < 9000, 'the newest', len(numbers), numbers[-1])
    for how in ('--overwrite', '--buffer', '64M'), ('--keep', '128M', '--buffer', '64M'):
        process = start('./paths', 1000, 5, 'wait')
        process.wait_for('ready')
        recorder = start_record(process.pid, '-o', 'live', *words, *how)
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


def test_children_have_their_stacks(tmp):
    compile_paths(tmp)
    record(FP, '--stack=32', '-p', './paths:leaf n=arg0', '--', '/bin/sh', '-c', './paths 3 5 f; ./paths 2 5').ok()
    check_equal(check_paths('kymo.data', 5), [0, 1, 2, 10, 0, 1], 'of all processes')


def test_beside_other_values(tmp):
    compile_paths(tmp)
    words = '-p', './paths:leaf n=arg0 s=str(arg1) c=comm', '-r', './paths:leaf r=$retval'
    record(FP, '--stack=4', *words, '--', './paths', 2, 5).ok()
    found = [(event['args'], names(event['stack'])) for event in events()]
    check_equal(found, [({'n': 0, 's': 'a text', 'c': 'paths'}, ['leaf', 'a', 'a', 'a']),
                        ({'r': 1}, ['leaf', 'a', 'a', 'a']),
                        ({'n': 1, 's': 'a text', 'c': 'paths'}, ['leaf', 'b', 'a', 'a']),
                        ({'r': 2}, ['leaf', 'b', 'a', 'a'])], 'values and stacks')
    check_equal(report_json()['calls'][0]['count'], 2, 'calls are paired')


def test_stacks_that_are_keys_and_reports(tmp):
    compile_paths(tmp)
    record(FP, '--stack=3', '--count', './paths:leaf by stack', '-r', './paths:leaf', '--hist', 'duration by stack',
           '--', './paths', 64, 5).ok()
    count, durations = report_json()['aggregations']
    expected = {('leaf', *path): 16 for path in ('aa', 'ab', 'ba', 'bb')}
    for table in count, durations:
        found = {tuple(names(row['keys'][0])): row['count'] for row in table['rows']}
        check_equal(found, expected, 'hits of each stack')
    record(FP, '--stack=4', '-p', './paths:leaf', '--', './paths', 4, 2).ok()
    check_same(sorted(kymo('report', '--folded').ok().out.splitlines()),
               ['main;a;a;leaf 1', 'main;a;b;leaf 1', 'main;b;a;leaf 1', 'main;b;b;leaf 1'], 'folded stacks')
    check_equal([line.split()[:3] for line in kymo('report', '--callers', 'leaf').ok().out.splitlines()[1:3]],
                [['4', '100.0%', 'leaf'], ['2', '50.0%', 'a']], 'callers')


def test_wrong_words(tmp):
    for words, sentence in (
        (('--stack=257', '-p', 'libc:malloc'),
         "--stack takes a number of frames up to 256, as in --stack=16, not '257'"),
        (('--stack=0', '-p', 'libc:malloc'), "--stack takes a number of frames up to 256, as in --stack=16, not '0'"),
        ((FP, '--stack', '--stack-size', '4K', '-p', 'libc:malloc'),
         '--frame-pointers copies nothing of the stack: leave --stack-size out'),
        ((FP, '-p', 'libc:malloc'), '--frame-pointers is for stacks: add --stack'),
        ((FP, '--stack=256', '--buffer', '64K', '-p', 'libc:malloc'),
         'stacks of 256 frames need a --buffer of 130K or more'),
        ((FP, '--stack=16', '--backend', 'kernel', '-p', 'libc:malloc'),
         'stacks are taken in the process itself: leave --backend kernel out, or --stack'),
        ((FP, '--stack=16', '-m', 'a*'), '--stack is for probes: leave --marker out')):
        result = run(KYMO, 'record', *words, '--', '/bin/true').ended(2)
        check(sentence in result.err, f'the sentence for {words}', result)
