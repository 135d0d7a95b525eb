"""Recorders that come and go under load, each with other places."""
import os
import random
import shutil
import signal
import time

import places
import processes
import remains
from kymotest import KYMO, check, clean_up_after, report_json, run, start, target, target_path

FUNCTIONS = ['work_a', 'work_b', 'work_c', 'work_redzone', 'work_deep', 'work_signal']


def instructions():
    path = target_path('selfcheck')
    return [(path, offset) for name in FUNCTIONS for offset in places.instructions_of(path, name)]


def some(choice, n):
    """Options for `n` random places in the process: functions, returns of functions, single instructions."""
    words = ['--backend', 'inproc']
    for _ in range(n):
        kind = random.random()
        if kind < 0.3:
            words += ['-p', f'selfcheck:{random.choice(FUNCTIONS)} a=%di']
        else:
            path, offset = random.choice(choice)
            words += ['-p', f'{path}:0x{offset:x}']
    return words


class Load:
    """A program with threads that never sleep and checks all that it computes."""
    def __init__(self, threads=16, pause=0):
        self.program = target('selfcheck', '-t', threads, '-p', pause)
        self.pid = self.program.pid
        time.sleep(0.3)
        self.before = remains.lasting_mappings(self.pid)
        self.choice = instructions()
        self.tried = self.refused = 0

    def check_alive(self):
        check(self.program.is_alive(), 'the program runs on', self.program.result())

    def drop_refused(self, result):
        """A place that was refused is not asked for again. True when that was it. What is in another recording's way
        may be available the next time."""
        self.tried += 1
        if result.status == 0 or 'no probe can be put' not in result.err:
            return False
        refused = places.refused_place(result, self.choice, must=False)
        self.choice = [kept for kept in self.choice if not refused or (places.real(kept[0]), kept[1]) != refused[0]]
        self.refused += 1
        check(self.refused < 40 + self.tried / 3, 'few places are refused', result)
        return True

    def toggle(self, directory, n=8):
        """Some probes go in and out."""
        with clean_up_after():
            result = run(KYMO, 'record', '-q', '-o', directory, '--buffer', '256K', '--overwrite', *some(
                self.choice, n), '--pid', self.pid, '--for', f'{random.random() * 0.03 + 0.0001:.4f}')
        self.check_alive()
        if not self.drop_refused(result):
            result.ok()

    def end(self):
        remains.check_nothing_left(self.pid, self.before, remains.lasting_mappings)
        said = self.program.end(signal.SIGTERM).ok().json()
        check(min(said.values()) > 0, 'it did all kinds of work', said)


def toggle_for(seconds, directory, threads=16):
    """So long, and longer where a loaded machine has not done it once in four seconds."""
    load, n, end = Load(threads), 0, time.monotonic() + seconds
    while time.monotonic() < end or n <= seconds / 4:
        load.toggle(directory / 'toggled')
        n += 1
    load.end()
    print(f'{n} recordings of 8 probes, {load.refused} places refused')
    return n


def two_recorders_for(seconds, directory):
    """Recorders of random sets of places start and stop in random order, up to three at once, and none disturbs
    another."""
    load, running, n, end, over = Load(6, 20), [], 0, time.monotonic() + seconds, False
    while not over or running:
        over = time.monotonic() >= end and n > seconds / 4
        if running and (over or len(running) == 3 or random.random() < 0.5):
            name, recorder = running.pop(random.randrange(len(running)))
            result = recorder.end(signal.SIGINT)
            load.check_alive()
            recorder.kill()
            if load.drop_refused(result) or result.status == -signal.SIGINT:  # before it had caught the signal
                continue
            result.ok()
            report = report_json(directory / name)
            check(report['events'] >= 0, 'its recording is whole', report)
            shutil.rmtree(directory / name)
        elif not over:
            n += 1
            words = [
                '-q', '-o', directory / f'r{n}', '--buffer', '256K', '--overwrite',
                *some(load.choice, random.randint(1, 12))
            ]
            recorder = start(KYMO, 'record', *words, '--pid', load.pid)
            time.sleep(random.random() * 0.2)
            if recorder.is_alive() or not load.drop_refused(recorder.result()):
                running.append((f'r{n}', recorder))
    load.end()
    print(f'{n} recorders, {load.refused} places refused')
    return n


def check_one_that_stays(seconds, directory):
    """What the first recorder counts is what the program says it did, whatever recorders come and go beside it."""
    first = start(KYMO, 'record', '-q', '--no-follow', '-o', directory / 'first',
                  '--buffer', '16M', '-p', 'selfcheck:work_a', '-p', 'selfcheck:work_deep', '--',
                  target_path('selfcheck'), '-t', '3', '-p', '400')
    first.wait_for('^ready$')
    pid, n, choice = processes.children(first.pid)[0], 0, instructions()
    end = time.monotonic() + seconds
    while time.monotonic() < end or n <= seconds / 4:
        with clean_up_after():
            result = run(KYMO, 'record', '-q', '-o', directory / 'second', '--buffer', '256K',
                         *some(choice, random.randint(1, 8)), '--pid', pid, '--for', '0.02')
        n += result.status == 0
        check(first.is_alive() and (result.status == 0 or 'no probe can be put' in result.err), 'it records', result)
    os.kill(pid, signal.SIGTERM)
    said = first.end(seconds=120).ok().json()
    report = report_json(directory / 'first')
    counts = {probe['name']: probe['count'] for probe in report['probes']}
    check(report['lost_events'] == 0, 'nothing is lost', report)
    check(counts == {f'selfcheck:{name}': said[name] for name in ('work_a', 'work_deep')}, f'{counts} of {said}')
    return n
