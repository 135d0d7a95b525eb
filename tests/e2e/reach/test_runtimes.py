"""Processes with compilers in them: functions of their libraries are probed, their own code is left alone."""
import base64
import random
import re
from pathlib import Path

import comparing
import places
import remains
from kernelcount import library
from kymotest import (check, check_equal, check_same, event_counts, eventually, record, report_json, run, start,
                      start_record, timeout)

HERE = Path(__file__).parent

NODE = '''
const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
const rl = require('readline').createInterface({input: process.stdin});
console.log('ready');
rl.on('line', line => {
    const waste = Array.from({length: 2000}, (_, i) => ({i, text: 'x'.repeat(i % 50)}));
    console.log(line, fib(16), JSON.stringify(waste).length, require('zlib').gzipSync('y'.repeat(5000)).length);
});
rl.on('close', () => console.log('end'));
'''


def java():
    """The program itself: no shell or alternative in between."""
    return comparing.installed('java')


def jvm_library():
    found = sorted(Path(java()).parent.parent.rglob('libjvm.so'))
    check(found, 'the JVM has a libjvm.so')
    return str(found[0])


def java_loop(tmp):
    """Loop.java, compiled by `javac --release 8 -g:none`: a JVM without a compiler is enough."""
    (tmp / 'Loop.class').write_bytes(base64.b64decode((HERE / 'Loop.class.base64').read_text()))
    return [java(), '-Xmx64m', '-cp', str(tmp), 'Loop']


def turns(process, n, what):
    """Have it do `n` rounds; each answers in a line, and all answers are alike."""
    for i in range(n):
        process.send(f'{what}\n')
    pattern = re.compile(rf'^{what} (.*)$', re.MULTILINE)
    eventually(lambda: len(pattern.findall(process.out)) >= n, f'{n} answers of {what}', 120)
    answers = set(pattern.findall(process.out))
    check_equal(len(answers), 1, f'answers {answers}')
    return answers.pop()


def check_running(process, probes, *again):
    """Answers before, with probes in, and after they have left are the same."""
    process.wait_for('^ready$', seconds=120)
    before = turns(process, 5, 'before')
    recorder = start_record(process.pid, *(word for probe in probes for word in ('-p', probe)), *again)
    check_equal(turns(process, 20, 'during'), before, 'what it computes')
    recorder.end(2).ok()
    check(not remains.are_there(process.pid), 'nothing is left')
    check_same(remains.descriptors(process.pid), [], 'descriptors')
    remains.check_text_intact(process.pid)
    check_equal(turns(process, 5, 'after'), before, 'what it computes')
    check(process.end().ok().out.endswith('end\n'), 'it ends well', process.result())
    return event_counts()


@timeout(300)
def test_a_jvm_with_probes_in_libc_and_libjvm(tmp):
    jvm = jvm_library()
    names = [name for name in places.symbols(jvm) if name.startswith('JVM_')]
    check(len(names) > 50, 'functions of libjvm', names)
    counts = check_running(start(*java_loop(tmp)), [f'{jvm}:JVM_*', 'libc:malloc size=%di', 'libc:free', 'libc:write'])
    check(counts['libc:write'] >= 20 and sum(count for name, count in counts.items() if ':JVM_' in name) > 0, 'calls',
          counts)


@timeout(300)
def test_a_jvm_with_a_thousand_instructions_of_its_library(tmp):
    jvm = jvm_library()
    random.seed(11)
    wanted = [(jvm, place) for name in random.sample(sorted(places.symbols(jvm)), 40)
              for place in places.instructions_of(jvm, name)]
    wanted = random.sample(wanted, min(1000, len(wanted)))
    process = start(*java_loop(tmp))
    process.wait_for('^ready$', seconds=120)
    before, refusals = turns(process, 3, 'before'), {}
    result, left = places.without_refused(
        wanted, lambda left: record('-q', '--displace-faulting', *places.specs(left), '--pid', process.pid, '--for',
                                    '1', seconds=120), refusals)
    print(places.tell(refusals, len(wanted)))
    # Neighbors in 40 functions are in each other's way; and where pages are free in reach of libjvm is another thing
    # each time.
    check(result.status == 0 and len(left) > 0.75 * len(wanted), 'most have a place', result)
    check_equal(turns(process, 3, 'after'), before, 'what it computes')
    remains.check_text_intact(process.pid)
    process.end().ok()


@timeout(300)
def test_a_launched_jvm(tmp):
    command = java_loop(tmp)
    bare = run(*command, input='one\ntwo\n', seconds=120).ok()
    result = record('-q', '-p', 'libc:write', '-p', f'{jvm_library()}:JVM_CurrentTimeMillis', '-p',
                    f'{jvm_library()}:JVM_NanoTime', '--', *command, input='one\ntwo\n', seconds=120).ok()
    check_same(result.out, bare.out, 'stdout')
    check(report_json()['events'] > 0, 'events')


def node():
    return comparing.installed('node')


@timeout(300)
def test_node_with_probes_in_libc_and_itself(tmp):
    (tmp / 'loop.js').write_text(NODE)
    libc = library('libc.so.6', node())
    named = [name for name in places.symbols(node()) if re.match(r'uv_(run|now|read_start|write|hrtime|fs_\w+)$', name)]
    process = start(node(), tmp / 'loop.js')
    counts = check_running(process, ['libc:malloc', 'libc:free', 'libc:write', *(f'{node()}:{name}' for name in named)],
                           '--displace-faulting')
    check(counts['libc:malloc'] + counts['libc:write'] > 20, f'calls of {libc}', counts)


@timeout(300)
def test_a_launched_node(tmp):
    (tmp / 'loop.js').write_text(NODE)
    bare = run(node(), tmp / 'loop.js', input='one\ntwo\n').ok()
    result = record('-q', '-p', 'libc:write', '-p', 'libc:read', '-p', 'libc:malloc', '--', node(), tmp / 'loop.js',
                    input='one\ntwo\n').ok()
    check_same(result.out, bare.out, 'stdout')
    check(report_json()['events'] > 0, 'events')
