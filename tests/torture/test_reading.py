"""Threads read through pointers that others map over, protect and drop; the recorder is killed now and then. No signal
comes to the program, and each value is one that was there, or a fault.

Seeded by the clock; KYMO_SEED=N repeats a run.
"""
import random
import re
import shutil
import signal
import time
from pathlib import Path

from killing import NO_LEAKS
from kymotest import KYMO, TORTURE_SECONDS, check, check_equal, events, eventually, program, run, skip, start, timeout
from seeds import seed

WORDS = ['value=+0(%di):x64', 'far=+4000(%di):x32', 'text=+0(%di):string', 'bytes=+1(%di):x8[24]', 'n=%si:u64']


def is_right(value, size):
    return all(byte in (0, 0x5a) for byte in value.to_bytes(size, 'little'))


def check_records(directory):
    """How many values were there, and how many faults."""
    there = faults = 0
    for event in events(directory):
        check(is_right(event['value'], 8) and is_right(event['far'], 4), 'values were there', event.line)
        check(re.fullmatch(r'"Z*(…)?"', event.fields['text']), 'the string was there', event.line)
        check(not event['faults'] & 1 or event['value'] == 0, 'a fault has no value', event.line)
        there += not event['faults'] & 1
        faults += event['faults'] & 1
    return there, faults


def record_a_while(path, process, directory, *args):
    recording = start(KYMO, 'record', '-q', '-o', directory, '-p', f'p:look {path}:look ' + ' '.join(WORDS), *args,
                      '--pid', process.pid, env=NO_LEAKS)
    eventually(lambda: directory.exists() or not recording.is_alive(), 'it begins')
    time.sleep(0.2 + 3 * random.random()**2)  # pads read by plain loads once it has gone on for a while
    found = (0, 0)
    if random.random() < 0.5:
        recording.end(signal.SIGKILL)
        if random.random() < 0.5:
            run(KYMO, 'detach', process.pid, env=NO_LEAKS)
    else:
        recording.end(signal.SIGINT).ok()
        found = check_records(directory)
    shutil.rmtree(directory, ignore_errors=True)
    return found


def attack(tmp, compiler, *options, args=()):
    seed()
    path = tmp / 'reading'
    done = run(program(compiler), '-O1', *options, '-o', path, Path(__file__).with_name('reading.c'), '-lpthread')
    if done.status and options:
        skip(f'{compiler} {options} makes no program: {done.err}')
    done.ok()
    process, n, there, faults, end = start(path), 0, 0, 0, time.monotonic() + TORTURE_SECONDS / 2
    process.wait_for('ready')
    while n < 4 or not there or time.monotonic() < end:
        more = record_a_while(path, process, tmp / 'data', *args)
        there, faults, n = there + more[0], faults + more[1], n + 1
        check(process.is_alive(), f'the program runs on: status {process.popen.returncode}')
        check(n < 60 or there, 'something is read')
    run(KYMO, 'detach', process.pid, env=NO_LEAKS)
    result = process.end(input='')
    check_equal(result.status, 0, 'status of the program')
    print(f'{n} recordings, {there} values, {faults} faults')


@timeout(7200)
def test_memory_that_is_read_may_go_at_any_time(tmp):
    attack(tmp, 'gcc')


@timeout(7200)
def test_the_same_by_locks(tmp):
    attack(tmp, 'gcc', args=['--no-rseq'])


@timeout(7200)
def test_the_same_by_calls_alone(tmp):
    attack(tmp, 'gcc', args=['--no-fast-reads'])


@timeout(7200)
def test_the_same_by_plain_loads(tmp):
    attack(tmp, 'gcc', args=['--fast-reads'])


@timeout(7200)
def test_the_same_in_a_static_program(tmp):
    attack(tmp, 'gcc', '-static')


@timeout(7200)
def test_the_same_with_musl(tmp):
    attack(tmp, 'musl-gcc', '-static')
