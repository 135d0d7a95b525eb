"""Tracers of programs with many threads, tests/targets/crowd and numbered: no thread is missed or disturbed, whatever
they do when a tracer comes, goes, or is killed."""
import os
import random
import re
import signal

import processes
from kymotest import KYMO, check, check_equal, eventually, start, target
from numbered import Client, end

BIRTHS = 10**9
KILLS = 8


def tracer_of(process, path, *options):
    return start(KYMO, 'syscalls', '-f', *options, '-o', path, '--pid', process.pid)


def tracers(process):
    """Of threads that live."""
    found = [processes.status(tid) for tid in processes.threads(process.pid)]
    return [int(status['TracerPid']) for status in found if status.get('State', 'Z')[0] not in 'ZX']


def until_all_are_traced(process, tracer):
    eventually(lambda: all(tracers(process)) or not tracer.is_alive(), 'all threads are traced', 90)
    check(tracer.is_alive(), 'the tracer goes on', tracer.result())


def until_none_is_traced(process):
    eventually(lambda: not any(tracers(process)), 'no thread is traced', 60)


def states(process):
    return {processes.status(tid).get('State', 'X')[0] for tid in processes.threads(process.pid)}


def wake(process, threads):
    """All of its threads, which do what they are to do."""
    already = len(re.findall('^woke', process.out, re.MULTILINE))
    process.send('\n')
    eventually(
        lambda: len(re.findall(f'^woke {threads}$', process.out, re.MULTILINE)) > already or not process.is_alive(),
        f'{threads} threads wake up', 90)
    check(process.is_alive(), 'the program runs on', process.result())


def numbers_seen(path):
    return {int(number) - BIRTHS
            for number in re.findall(r'getpgid\((\d+)', path.read_text())} if path.exists() else set()


def test_no_thread_is_missed_of_those_that_come_and_go_meanwhile(tmp):
    process = target('crowd', 'births', '-t', 40)
    tracer = tracer_of(process, tmp / 'calls', '-e', 'getpgid')
    eventually(lambda: numbers_seen(tmp / 'calls'), 'it sees calls', 90)
    process.send('\n')
    first = int(process.wait_for(r'^births (\d+)$')[1])
    eventually(lambda: max(numbers_seen(tmp / 'calls')) > first + 300, 'it sees more', 90)
    births = process.end(seconds=90).ok().out
    tracer.end(seconds=90).ok()
    last = int(re.findall(r'^births (\d+)$', births, re.MULTILINE)[-1])
    missing = sorted(set(range(first + 1, last + 1)) - numbers_seen(tmp / 'calls'))
    check_equal(missing[:10], [], f'births that were not seen, {len(missing)} of {last - first}')


def test_none_of_many_that_call_more_than_can_be_told_is_forgotten(tmp):
    process = target('numbered', '-t', 200, '-p', 5000)
    client = Client(process.pid, tmp / 'calls', threads=200)
    client.until_it_sees()
    last = end(process)
    client.front.end().ok()
    client.check_whole(last)


def test_calls_that_stops_would_end_go_on(tmp):
    process = target('crowd', 'wait', '-t', 300)
    for i in range(3):
        tracer = tracer_of(process, tmp / f'calls{i}')
        until_all_are_traced(process, tracer)
        if i:
            wake(process, 300)
        tracer.end(signal.SIGINT).ok()
        until_none_is_traced(process)
        wake(process, 300)
    process.end().ok()


def test_a_stopped_process_stays_so_until_it_is_continued(tmp):
    process = target('crowd', 'sleep', '-t', 300)
    os.kill(process.pid, signal.SIGSTOP)
    eventually(lambda: states(process) == {'T'}, 'it has stopped')
    tracer = tracer_of(process, tmp / 'first')
    until_all_are_traced(process, tracer)
    tracer.end(signal.SIGINT).ok()
    until_none_is_traced(process)
    eventually(lambda: states(process) == {'T'},
               lambda: f'its threads stop again, once they had their turn: {states(process)}')
    tracer = tracer_of(process, tmp / 'second')
    until_all_are_traced(process, tracer)
    os.kill(process.pid, signal.SIGCONT)
    wake(process, 300)
    tracer.end(signal.SIGINT).ok()
    wake(process, 300)
    process.end().ok()


def test_a_process_whose_first_thread_has_ended_is_traced(tmp):
    process = target('crowd', 'sleep', '-l', '-t', 100)
    eventually(lambda: processes.status(process.pid)['State'][0] == 'Z', 'its first thread ends')
    tracer = tracer_of(process, tmp / 'calls')
    until_all_are_traced(process, tracer)
    wake(process, 100)
    tracer.end(signal.SIGINT).ok()
    until_none_is_traced(process)
    check('"woke 100\\n"' in (tmp / 'calls').read_text(), 'memory is read', (tmp / 'calls').read_text()[-1000:])
    wake(process, 100)
    process.end().ok()


def test_a_tracer_that_is_killed_while_it_attaches_leaves_all_running(tmp):
    process = target('crowd', 'sleep', '-t', 1000)
    for i in range(KILLS):
        client = Client(process.pid, tmp / f'calls{i}', waits=False)
        chosen = random.choice(processes.threads(process.pid))
        eventually(lambda: processes.tracer(chosen), 'it is on its way', 60)  # pylint: disable=cell-var-from-loop
        client.kill(worker=True)
        until_none_is_traced(process)
        wake(process, 1000)
    process.end().ok()
