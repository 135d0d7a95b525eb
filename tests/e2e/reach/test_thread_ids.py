"""Which thread a record is of, in programs that set up their threads in other ways than glibc's dynamic linker does."""
import collections
import re
from pathlib import Path

import golang
from kymotest import (KYMO, check, check_equal, check_same, events, kymo, program, record, report_json, run, start,
                      timeout)

HERE = Path(__file__).parent
THREADS, CALLS = 5, 20
NOT_APART = 'all records carry the process id'


def compiled_with(compiler, tmp, *flags):
    """tids.c, as ./tids; a thread's first argument is in rdi."""
    run(program(compiler), '-O2', '-pthread', *flags, '-o', tmp / 'tids', HERE / 'tids.c').ok()
    return './tids'


def compiled_go(tmp):
    """tids.go, as ./tids; Go has first arguments in rax."""
    golang.build(tmp, 'tids', HERE / 'tids.go')
    return './tids'


def probes(argument='di', prefix=''):
    """Entries with their argument and returns with their value, of both functions."""
    return [
        word for name in ('outer', 'inner')
        for word in ('-p', f'tids:{prefix}{name} n=%{argument}:s64', '-r', f'tids:{prefix}{name} r=$retval:s64')
    ]


def said_by(text):
    """{tid: index} from what the program prints."""
    said = dict(tuple(map(int, line.split())) for line in text.splitlines() if re.fullmatch(r'\d+ \d+', line))
    check(said, 'threads say who they are', text)
    return said


def check_calls(said, directory='kymo.data', prefix=''):
    """Each thread has its own calls, in their order, and each return is that of the call it belongs to."""
    stacks, seen = collections.defaultdict(list), collections.defaultdict(list)
    for event in events(directory):
        stack, name = stacks[event['tid']], event.name.removeprefix(f'tids:{prefix}').removesuffix('%return')
        if event.name.endswith('%return'):
            check(stack, 'a return without a call in its thread', event.line)
            entered, n = stack.pop()
            check_equal((name, event['r']), (entered, 3 * n + (8 if entered == 'outer' else 1)),
                        f'what returns: {event.line}')
        else:
            stack.append((name, event['n']))
            seen[event['tid'], name].append(event['n'])
    check_equal({tid for tid, _ in seen}, set(said), 'threads')
    for (tid, name), arguments in seen.items():
        check_equal(arguments, [1000 * said[tid] + k for k in range(CALLS + said[tid])],
                    f'calls of {name} in thread {tid}')
    report = report_json(directory)
    check_equal(report['lost_events'], 0, 'lost')
    for function in report['calls']:
        check_equal(function['count'], sum(CALLS + index for index in said.values()),
                    f'calls with a duration: {function}')
        check_equal(function['without_return'] + function['without_entry'] + function['open'], 0,
                    f'calls without an end: {function}')
    check('told apart' not in kymo('report', directory).ok().out, 'nothing is said of threads that are mixed up')


def check_launched(path, *options, argument='di', prefix=''):
    """As the command, and somewhere below it."""
    words = [path, *options, THREADS, CALLS]
    for command in (words, ['sh', '-c', f'{" ".join(map(str, words))}; true']):
        result = record(*probes(argument, prefix), '--', *command).ok()
        check(NOT_APART not in result.err, 'no warning', result)
        said = said_by(result.out)
        check_equal(len(said), THREADS + 1 + (THREADS + 1) * ('-f' in options) + ('-c' in options),
                    'threads that spoke')
        check_calls(said, prefix=prefix)


def test_threads_of_static_programs(tmp):
    check_launched(compiled_with('gcc', tmp, '-static'))


def test_threads_of_static_programs_of_musl(tmp):
    check_launched(compiled_with('musl-gcc', tmp, '-static'))


def test_threads_of_programs_of_musl(tmp):
    check_launched(compiled_with('musl-gcc', tmp))


def test_threads_of_forked_children(tmp):
    """A child of a process with many threads has one, with its maker's control block."""
    for compiler, flags in (('gcc', ['-static']), ('musl-gcc', ['-static']), ('musl-gcc', []), ('gcc', [])):
        check_launched(compiled_with(compiler, tmp, *flags), '-f')


def test_children_that_are_made_without_the_library(tmp):
    """Their thread's control block has their maker's id."""
    for compiler, flags in (('gcc', ['-static']), ('musl-gcc', ['-static']), ('gcc', [])):
        check_launched(compiled_with(compiler, tmp, *flags), '-c')


@timeout(400)
def test_threads_of_go_programs(tmp):
    check_launched(compiled_go(tmp), argument='ax', prefix='main.')
    run('strip', '-o', 'tids', 'tids').ok()
    check_launched('./tids', argument='ax', prefix='main.')


@timeout(400)
def test_threads_of_go_programs_that_run_already(tmp):
    path = compiled_go(tmp)
    for option in ('--no-follow', '--follow'):
        process = start(path, '-w', THREADS, CALLS)
        process.wait_for('^ready$')
        recorder = start(KYMO, 'record', option, *probes('ax', 'main.'), '--pid', process.pid)
        recorder.wait_for('recording process', 1)
        said = said_by(process.end(input='\n').ok().out)
        result = recorder.end()
        check(NOT_APART not in result.ok().err, 'no warning', result)
        check_calls(said, prefix='main.')


def test_threads_that_cannot_be_told_apart_are_said(tmp):
    """A thread with the control block of another one has that one's id in it."""
    path = compiled_with('gcc', tmp, '-static')
    for command in ([path, '-r', THREADS, CALLS], ['sh', '-c', f'{path} -r {THREADS} {CALLS}; true']):
        result = record(*probes(), '--', *command).ok()
        said = [re.sub(r'process \d+', 'process N', line) for line in result.warnings()]
        check_same(said, [
            "kymo: warning: the threads of process N cannot be told apart (no thread id is found in its thread control "
            f'blocks): {NOT_APART}'
        ], 'warnings')
        process = {tid for tid, index in said_by(result.out).items() if not index}
        check_equal({event['tid'] for event in events()}, process, 'ids')
        check('told apart' in kymo('report').ok().out, 'the report says so too')
