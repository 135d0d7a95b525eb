"""What branches are made of where the user does not say: the best that the program allows. What a crash shows does not
depend on it."""
import json
import os
import re
import signal
from pathlib import Path

from kymotest import (KYMO, check, check_equal, check_matches, check_text_intact, check_untraced, eventually, kymo,
                      record, run, skip, start, timeout)

CRASHING = r"""
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static void leaf(void) { *(volatile int *)8 = 1; }
static void (*volatile pointer)(void) = leaf, (*volatile null)(void);
static int compare(const void *a, const void *b)
{
	if (*(int *)a == 7 || *(int *)b == 7) pointer();
	return *(int *)a - *(int *)b;
}
__attribute__((noinline)) static void sorts(void)
{
	int a[] = { 5, 4, 7, 1, 2 };
	qsort(a, 5, sizeof(int), compare);
	__asm__ volatile("");
}
static void *wait(void *arg) { sleep(100); return NULL; }
static void *run(void *arg) { sorts(); return NULL; }
int main(int argc, char **argv)
{
	pthread_t threads[2];
	if (!strcmp(argv[1], "sort")) sorts();
	if (!strcmp(argv[1], "null")) null();
	if (!strcmp(argv[1], "libc")) return (int)strlen((char *)(long)argc - 2);
	if (!strcmp(argv[1], "abort")) abort();
	if (!strcmp(argv[1], "wait")) sleep(100);
	if (!strcmp(argv[1], "thread")) {
		pthread_create(&threads[0], NULL, wait, NULL);
		pthread_create(&threads[1], NULL, run, NULL);
		pthread_join(threads[1], NULL);
	}
	return 0;
}
"""
SLOW = ('kymo: branches are recorded by single steps, 100,000 times slower than the program: '
        'for short windows')
FAST = ('kymo: branches are recorded by function clones; '
        'the kernel offers no branch hardware (Intel PT, BTS, LBR)')


def build(tmp, *options):
    (tmp / 'crashing.c').write_text(CRASHING)
    run('gcc', '-g', '-O1', '-fno-optimize-sibling-calls', '-pthread', '-w', *options, '-o', 'crashing',
        'crashing.c').ok()


def crash(*words):
    """Where the thread stood, and the calls that had not returned: those of the program and of libc's functions that it
    has called."""
    record('-q', *words)
    text = kymo('report', '--crash').ok().out
    lines = re.findall(r'^  #\d+ +(\S+)', text, re.MULTILINE)
    inside = r'crashing:(?!_start)|0x0|libc\S+:(__strlen|msort|qsort|abort|raise)'
    inner = [line for line in lines if re.match(inside, line)]
    return re.search(r'; then (\w+)', text)[1], inner


@timeout(240)
def test_a_crash_is_the_same_by_clones_and_by_steps(tmp):
    build(tmp)
    for mode, signal_name, outermost in (('sort', 'SIGSEGV', 'crashing:main'), ('null', 'SIGSEGV', 'crashing:main'),
                                         ('libc', 'SIGSEGV', 'crashing:main'), ('abort', 'SIGABRT', 'crashing:main'),
                                         ('thread', 'SIGSEGV', 'crashing:run')):
        for spec in ('all', './crashing') if mode == 'sort' else ('./crashing', ):
            found = crash('-b', spec, '--', './crashing', mode)
            stepped = crash('-b', spec, '--branch-source', 'steps', '--', './crashing', mode)
            check_equal(found, stepped, f'{mode}, {spec}')
            check_equal(found[0], signal_name, mode)
            check(found[1][-1].startswith(outermost), f'{mode}, {spec}', found)


def need_no_hardware():
    for name in 'pt', 'bts', 'lbr':
        if not record('-q', '-o', 'try', '-b', 'all', '--branch-source', name, '--', 'true').status:
            skip(f'the processor records branches ({name})')


def source():
    return json.loads(kymo('branches', '--json').ok().out)['source']


def told(*words):
    """What is told before the program runs, and the source that the trace names."""
    result = record(*words).ok()
    return [line for line in result.err.splitlines() if 'recorded by' in line], source()


@timeout(120)
def test_the_source_is_told(tmp):
    need_no_hardware()
    build(tmp)
    run('gcc', '-w', '-pthread', '-static', '-o', 'static', 'crashing.c').ok()
    check_equal(told('-b', './crashing', '--', './crashing', ''), ([FAST], 'function clones'), 'a program')
    check_equal(told('-b', './crashing', '--branch-source', 'auto', '--', './crashing', ''),
                ([FAST], 'function clones'), 'by its name')
    check_equal(told('-b', './crashing', '--branch-source', 'clones', '--', './crashing', ''), ([], 'function clones'),
                'clones that are asked for')
    check_equal(told('-b', './crashing', '--branch-source', 'steps', '--', './crashing', ''), ([SLOW], 'single steps'),
                'steps that are asked for')
    check_equal(
        told('-b', './static:main', '--', './static', ''),
        ([f'{SLOW}; not by clones: functions are cloned in programs that the dynamic linker of glibc loads '
          '(ld-linux-x86-64.so.2), and this is none'], 'single steps'), 'a static program')
    check_equal(
        told('-b', './crashing', '--follow', '--', 'sh', '-c', './crashing x; exit 0'),
        ([f'{SLOW}; not by clones: clones record no children (--follow)'], 'single steps'), 'children')
    check_equal(
        told('-b', './crashing', '--', 'sh', '-c', 'exec ./crashing x'),
        ([f'{SLOW}; not by clones: the program has no such code when it begins, and what comes later has none'],
         'single steps'), 'a program that another executes')
    check_equal(
        told('-b', 'libc:clone', '--', './crashing', ''),
        ([f"{SLOW}; not by clones: none of the chosen functions can be cloned; 'kymo explain --branch' says why"],
         'single steps'), 'a function that can have none')
    target = start('./crashing', 'wait')
    check_equal(
        told('-b', './crashing', '--pid', target.pid, '--for', '0.1'),
        ([f'{SLOW}; not by clones: clones are put in before a command runs, and this process runs already'],
         'single steps'), 'a process')
    target.kill()
    check_equal(record('-q', '-b', './crashing', '--', './crashing', '').ok().err, '', 'quiet')


def test_hardware_that_is_not_there(tmp):
    """By the kernel's answers: those that it gives here, and others."""
    need_no_hardware()
    build(tmp)
    for source, device, name in ('pt', 'intel_pt', 'Intel PT'), ('bts', 'intel_bts', 'BTS'):
        if not Path(f'/sys/bus/event_source/devices/{device}').exists():
            record('-b', 'all', '--branch-source', source, '--', './crashing', '').refused(
                rf'^kymo: {name} is not available: the kernel offers none '
                rf'\(/sys/bus/event_source/devices/{device}\); the processor has none, or a virtual machine hides it\n$')
    for error, sentence in (('EACCES', r'the kernel does not let this user have LBR: kernel.perf_event_paranoid is -?\d, '
                             'and has to be 2 or less, or kymo needs the capability CAP_PERFMON'),
                            ('EOPNOTSUPP', 'LBR is not available: the counters of this processor record no branches'),
                            ('EBUSY', 'LBR is in use by another tracer of this machine'),
                            ('ENOENT', 'LBR is not available: the kernel offers none')):
        refuse = ('syscalls', '-f', '-q', '-e', 'none', '-e', f'inject=perf_event_open:error={error}', '--', KYMO)
        result = kymo(*refuse, 'record', '-b', 'all', '--branch-source', 'lbr', '--', './crashing', '')
        check_matches(result.err, f'^kymo: {sentence}', error)
    result = kymo(*refuse[:6], 'inject=perf_event_open:error=EACCES', '--', KYMO, 'record', '-b', './crashing', '--',
                  './crashing', '')
    check_matches(result.err, 'kymo: branches are recorded by function clones; the kernel does not let this user have LBR',
                  'what a user may change')
    check(not Path('none').exists(), 'no recording is made')


def test_a_wrong_word_is_told_once(tmp):
    build(tmp)
    result = record('-b', './crashing:sort', '--', './crashing', '')
    check_equal((result.status, result.err),
                (1, 'kymo: --branch ./crashing:sort: ./crashing has no such function; the nearest names are sorts\n'),
                'a name')
    check_equal(record('-b', 'all', '--', './none').err, 'kymo: cannot run ./none: No such file or directory\n',
                'a command')
    check(not Path('kymo.data').exists(), 'no recording is made')


@timeout(120)
def test_clones_go_out_when_the_process_that_was_started_is_killed(tmp):
    """Its worker takes them out, and writes what there is."""
    need_no_hardware()
    build(tmp)
    recorder = start(KYMO, 'record', '-q', '-b', 'all', '--', './crashing', 'wait')

    def has_clones(pid):
        return 'kymo-arena' in Path(f'/proc/{pid}/maps').read_text()

    def find():
        for path in Path('/proc').glob('[0-9]*/comm'):
            pid = path.parent.name
            try:
                if path.read_text() == 'crashing\n' and os.path.realpath(f'/proc/{pid}/cwd') == str(tmp) and has_clones(
                        pid):
                    return int(pid)
            except OSError:
                pass
        return None

    target = eventually(find, 'it has clones')
    eventually(lambda: Path('kymo.data/metadata').exists(), 'it is recorded')
    os.kill(recorder.pid, signal.SIGKILL)
    eventually(lambda: not has_clones(target), 'they are out')
    check_text_intact(target)
    eventually(lambda: 'TracerPid:\t0\n' in Path(f'/proc/{target}/status').read_text(), 'nothing traces it')
    check_untraced(target)
    eventually(lambda: kymo('branches').status == 0, 'the trace is written')
    check_equal(source(), 'function clones', 'the source')
    os.kill(target, signal.SIGKILL)
    recorder.end()
