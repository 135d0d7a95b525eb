"""Function clones that are put into running processes, while their threads stand anywhere: these do what they did, the
branches are those of single steps, and the text is the file's afterwards."""
import os
import random
import re
import signal
import socket
import sys
import time
from pathlib import Path

import processes
from histories import CLONES, STEADY, begin, build, detach, finish, functions, is_clean, jumps, threads
from killing import NO_LEAKS
from kymotest import (IS_WHOLE, KYMO, babeltrace, check, check_equal, check_matches, check_text_intact,
                      check_untraced, eventually, kymo, program, record, run, sampled, sleeper, start, timeout)



def check_clean(pid):
    """Where a thread may still return into a clone kymo has told so, and a detach takes the rest out later."""
    if not is_clean(pid):
        detach(pid)


def put_in(*words, pid):
    """A recorder whose clones are in the process."""
    recorder = start(KYMO, 'record', *words, *CLONES, '--pid', pid)
    recorder.wait_for('recording branches', 1, seconds=120)
    return recorder


# ---- what threads do -----------------------------------------------------------------------------


@sampled
@timeout(600)
def test_clones_come_and_go(tmp):
    """Threads loop, recurse, leap, sort, wait, and come and go."""
    target = begin(tmp, 'forks')
    for _ in range(50 if IS_WHOLE else 25):
        record('-q', '-b', 'running', *CLONES, '--pid', target.pid, '--for', '0.05').ok()
        detach(target.pid)
    babeltrace('kymo.data')
    record('-q', '-b', 'running', '--tail', '256', *CLONES, '--pid', target.pid, '--for', '3').ok()
    found = {name for thread in threads() for name in functions(thread)}
    check({'spin', 'fib', 'choose', 'compare', 'leap', 'short_thread'} <= found, 'what they did', found)
    finish(target)


@timeout(300)
def test_clones_of_all_functions(tmp):
    """Those of the library, too, in which threads sleep; and children are made."""
    target = begin(tmp)
    for _ in range(3):
        record('-q', '-b', 'all', *CLONES, '--pid', target.pid, '--for', '0.2').ok()
        detach(target.pid)
    finish(target)


@timeout(300)
def test_recorder_killed_at_any_instant(tmp):
    target = begin(tmp, 'forks', 'killed')
    chance = random.Random(11)
    for _ in range(20):
        recorder = start(KYMO, 'record', '-q', '-b', 'running', *CLONES, '--pid', target.pid, '--for', '0.3')
        time.sleep(chance.random() * 1.2)
        recorder.end(signal.SIGKILL)
        detach(target.pid)
        check_text_intact(target.pid)
    finish(target)


@timeout(120)
def test_the_next_recorder_takes_out_what_a_killed_one_has_left(tmp):
    target = begin(tmp, 'forks', 'signals', 'killed')
    for _ in range(3):
        put_in('-b', 'running', pid=target.pid).end(signal.SIGKILL)
    record('-q', '-b', 'running', *CLONES, '--pid', target.pid, '--for', '0.1').ok()
    finish(target)


@timeout(300)
def test_recorder_killed_at_each_write(tmp):
    """Threads go on in the function's own text from where no jump is yet, or any more."""
    build(tmp, 'apart')
    target = start('./apart')
    target.wait_for('ready')

    number = status = 0
    while status == -signal.SIGKILL or not number:
        number += 1
        status = run(program('strace'), '-qq', '-o', '/dev/null', '-e', 'trace=pwrite64', '-e', 'signal=none', '-e',
                     f'inject=pwrite64:signal=KILL:when={number}', KYMO, 'record', '-q', '-b', 'apart:across', *CLONES,
                     '--pid', target.pid, '--for', '0.05', env=NO_LEAKS, seconds=120).status
        time.sleep(0.02)
        check(target.is_alive(), f'it runs on after a death at write {number}', target)
        detach(target.pid)
    check_equal(status, 0, 'the last one is not killed')
    check(number > 20, 'deaths', number)
    finish(target)


@timeout(120)
def test_text_that_is_no_code_for_a_moment(tmp):
    """What is restored after it in other pages would lead into the jumps that it still has."""
    build(tmp, 'apart')
    for _ in range(3):
        target = start('./apart')
        target.wait_for('ready')
        put_in('-b', 'apart:across', pid=target.pid).end(signal.SIGKILL)
        target.send('turn\n')
        target.wait_for('turns')
        detached = kymo('detach', target.pid)
        check(target.is_alive(), 'it runs on', target)
        check(detached.status == 0 or 'cannot be trusted' in detached.err, 'is it out', detached)
        target.send('stay\n')
        target.wait_for('stays')
        finish(target)


# ---- what is recorded ----------------------------------------------------------------------------

CHOSEN = ('collatz', 'choose', 'compare')


@timeout(240)
def test_each_jump_as_single_steps_see_it(tmp):
    """It does the same again and again: what clones record of a running one begins and ends anywhere in that."""
    build(tmp, 'cloned')
    run(*STEADY, KYMO, 'record', '-q', '-b', 'all', '--tail', '1000000', '-o', 'steps', '--', './cloned', 'work',
        seconds=200).ok()
    expected = jumps(threads('steps')[0], 'cloned', CHOSEN)
    check(len(expected) > 500, 'there are some', len(expected))
    target = start(*STEADY, './cloned', 'run')
    target.wait_for('11851')
    chosen = [word for name in CHOSEN for word in ('-b', f'cloned:{name}')]
    record('-q', *chosen, *CLONES, '--tail', '16000', '--pid', target.pid, '--for', '1').ok()
    found = jumps(threads()[0], 'cloned', CHOSEN)
    check(len(found) > 2 * len(expected), 'more than once', len(found))
    begins = [i for i in range(len(expected)) if found[i:i + len(expected)] == expected]
    check_equal(len(begins), 1, 'where the first whole round begins')
    for i, jump in enumerate(found):
        check_equal(jump, expected[(i - begins[0]) % len(expected)], f'jump {i} of {len(found)}')


@timeout(240)
def test_each_thread_has_its_history_after_sigkill(tmp):
    target = begin(tmp, 'signals')
    recorder = put_in('-b', 'running', pid=target.pid)
    time.sleep(1)
    target.end(signal.SIGKILL)
    check_matches(recorder.end().ok().err, r'branches')
    for name in ('spin', 'fib', 'choose', 'compare', 'leap'):
        check(any(functions(thread)[name] > 10 for thread in threads()), f'a history of {name}')


@timeout(120)
def test_it_ends_where_nothing_more_is_recorded(tmp):
    """With the process, and with the program that was cloned."""
    build(tmp, 'cloned')
    target = begin(tmp, 'signals', 'forks')
    recorder = put_in('-b', 'running', pid=target.pid)
    target.end().ok()
    recorder.end().ok()
    os.mkfifo(tmp / 'go')
    target = start('sh', '-c', 'echo ready; read word < go; exec sleep 1000')
    target.wait_for('^ready')
    recorder = put_in('-b', 'all', pid=target.pid)
    (tmp / 'go').write_text('on\n')
    check_matches(recorder.end().ok().err, r'has executed another program \(sleep\), which is not recorded')
    check_untraced(target.pid)


# ---- functions that stay as they are -------------------------------------------------------------

STAY = r'1 of the chosen functions stay as they are'


@timeout(120)
def test_text_that_is_not_the_files(tmp):
    """A clone would be made of other bytes."""
    target = begin(tmp, 'signals', 'forks')
    symbols = run('nm', './running').ok().out
    base = int(re.match(r'[0-9a-f]+', Path(f'/proc/{target.pid}/maps').read_text())[0], 16)
    address = base + int(re.search(r'^([0-9a-f]+) \w patch_here$', symbols, re.M)[1], 16)
    memory = os.open(f'/proc/{target.pid}/mem', os.O_RDWR)
    os.pwrite(memory, b'\x66\x90', address)
    result = record('-b', 'running', *CLONES, '--pid', target.pid, '--for', '0.5').ok()
    check_matches(result.err, STAY)
    found = {branch['from'].get('function') for thread in threads() for branch in thread['branches']
             if 'from' in branch}
    check('runs_patched' in found and 'patched' not in found, 'what was recorded', found)
    check_equal(os.pread(memory, 2, address), b'\x66\x90', 'what was patched')
    os.pwrite(memory, b'\x90\x90', address)
    os.close(memory)
    finish(target)


@timeout(120)
def test_a_handler_that_does_not_return(tmp):
    target = begin(tmp, 'lingers', 'signals', 'forks')
    for _ in range(3):
        result = record('-b', 'running', *CLONES, '--pid', target.pid, '--for', '0.2').ok()
        check_matches(result.err, STAY)
        check_clean(target.pid)
    finish(target)


# ---- what is refused -----------------------------------------------------------------------------


@timeout(120)
def test_what_can_have_no_clones(tmp):
    build(tmp, 'running', '-static', to='static')
    static = start('./static')
    static.wait_for('ready')
    handles = start(sys.executable, '-X', 'faulthandler', '-c', 'print("ready", flush=True); input()')
    handles.wait_for('ready')
    asleep = sleeper()

    def refused(sentence, pid, *words, status=1):
        record('-b', 'all', *words, *CLONES, '--pid', pid).refused(sentence, status)

    refused('and this is none: --branch-source steps records it, slowly', static.pid)
    refused('handles faults .*, and its handler may look where it is', handles.pid)
    refused('no children: leave --follow out', asleep.pid, '--follow', '--no-existing', status=2)
    recorder = start(KYMO, 'record', '-o', 'probes', '-p', 'libc:nanosleep', '--pid', asleep.pid)
    eventually(lambda: not is_clean(asleep.pid), 'probes are in')
    refused('has probes of another recording', asleep.pid)
    recorder.end(signal.SIGTERM)
    tracer = start(program('strace'), '-qq', '-o', '/dev/null', '-p', asleep.pid)
    eventually(lambda: processes.tracer(asleep.pid), 'it is traced')
    refused('strace', asleep.pid)
    tracer.end(signal.SIGTERM)
    check_clean(asleep.pid)
    check(not Path('kymo.data/branches').exists(), 'no recording is made')


# ---- real programs -------------------------------------------------------------------------------

SQL = """with recursive c(x) as (select 1 union all select x + 1 from c where x < 20000)
  insert into t select x, x * 7 % 100 from c;
select b, count(*), sum(a) from t group by b order by 3 desc limit 3;
delete from t;
"""
PYTHON = """import hashlib, json, re, sys
for line in sys.stdin:
    table = {str(n): [n * n, hashlib.sha256(str(n).encode()).hexdigest()] for n in range(3000)}
    text = json.dumps(sorted(table.items()))
    print(len(re.findall(r'[0-9a-f]{5}7', text)), hash(text) != 0, line.strip(), flush=True)
"""


def compute(chosen, command, begin_words, words):
    """The same words again and again, with clones and without: it says the same each time."""
    process = start(*command)
    process.send(begin_words)

    def answer():
        before = len(process.out)
        process.send(words)
        return eventually(lambda: process.out[before:].count('\n') >= words.count(';\n') and process.out[before:],
                          'it answers', 60)

    expected = None
    for i in range(4):
        recorder = put_in(*chosen, '-o', f'data{i}', pid=process.pid) if i % 2 else None
        found = answer()
        expected = expected or found
        check_equal(found, expected, f'{command[0]}, round {i}')
        if recorder:
            recorder.end(signal.SIGTERM)
            check_clean(process.pid)
            check_text_intact(process.pid)
    process.end().ok()


@timeout(240)
def test_sqlite3(tmp):
    compute(('-b', 'libsqlite3'), (program('sqlite3'), ':memory:'), 'create table t(a, b);\n', SQL)


@timeout(240)
def test_python3(tmp):
    chosen = ('-b', 'python3:_Py*', '-b', 'python3:PyUnicode*', '-b', 'libc:mem*', '-b', 'libc:*alloc*')
    compute(chosen, ('/usr/bin/python3', '-c', PYTHON), '', 'a line;\n')


@timeout(240)
def test_redis_under_load(tmp):
    """Its handlers of faults are turned off, as they look where a fault was."""
    with socket.socket() as listening:
        listening.bind(('127.0.0.1', 0))
        port = listening.getsockname()[1]
    server = start(program('redis-server'), '--port', port, '--save', '', '--crash-log-enabled', 'no', '--bind',
                   '127.0.0.1', '--io-threads', '2')
    server.wait_for('Ready to accept connections')
    load = start(program('redis-benchmark'), '-p', port, '-q', '-n', '1000000000', '-c', '20', '-t', 'set,get,lpush')
    for _ in range(3):
        record('-q', '-b', 'redis-server:*Command', '-b', 'libc:mem*', *CLONES, '--pid', server.pid, '--for', '1').ok()
        check_clean(server.pid)
        check_text_intact(server.pid)
    check(any(functions(thread)['getCommand'] + functions(thread)['setCommand'] > 5 for thread in threads()),
          'what it did', functions(threads()[0]))
    check(load.is_alive(), 'no connection was lost', load.result() if not load.is_alive() else '')
    load.kill()
    check_equal(run(program('redis-cli'), '-p', port, 'ping').ok().out, 'PONG\n', 'it answers')
    server.end(signal.SIGTERM).ok()
