"""Recordings of markers that come and go, in any order, killed or not. Seeded by the clock; KYMO_SEED=N repeats a run.
"""
import random
import signal
import time

import markers
import opening
import processes
import remains
from kymotest import (KYMO, TARGETS, TORTURE_SECONDS, check, check_equal, clean_up_after, eventually, kymo, record_some,
                      report_json, run, skip, target, target_path, timeout)
from seeds import seed


@timeout(7200)
def test_a_library_with_markers_is_recorded_each_time_it_is_opened(tmp):
    seed()
    counts = {'libmarked:lib_comes': 100, 'libmarked:lib_work': opening.CALLS, 'libmarked:lib_goes': 1}
    opening.record_each('libmarked.so', ['-m', 'libmarked:*'], counts, 150)


@timeout(7200)
def test_recorders_come_and_go_while_a_library_with_markers_does(tmp):
    seed()
    process = target('dlopener', target_path('libmarked.so'), '0')
    choices = [['-m', 'lib_*'], ['-m', 'lib_work', '-p', 'libc:malloc'],
               ['-m', 'libmarked:*', '-p', 'libmarked:ctor_*']]
    opening.come_and_go(process, tmp, choices, ['libmarked', 'has no marker'])
    kymo('detach', process.pid)  # on a loaded machine the last one may have left its memory to this
    with processes.stopped(process.pid):
        check_equal([line for line in remains.lasting_mappings(process.pid) if remains.MEMFD in line], [],
                    'mappings of kymo')
    process.end(signal.SIGTERM).ok()


GLOBS = ['marked:*', 'marked:*t*', 'marked:text', 'marked:looped', 'marked:[a-m]*', 'kymo:*i*', 'marked:costly']


def next_one_records(pid, name, directory):
    with clean_up_after():
        result = run(KYMO, 'record', '-q', '-o', directory, '-m', f'{name}:handled', '--pid', pid, '--for', '0.01')
    check(result.status == 0 or markers.BUSY in result.err, 'it records, or says why not', result)
    return result.status == 0


def come_and_go(name, directory, threads, *args):
    """Recorders of random markers, at most three at a time beside one that stays, for TORTURE_SECONDS. How many there
    were."""
    process = target(name, '-t', threads, *args)
    path, pid = target_path(name), process.pid
    time.sleep(0.3)
    before = remains.lasting_mappings(pid)
    globs = [glob.replace('marked', name) for glob in GLOBS]
    stays = markers.patient_recorder(pid, directory / 'stays', '-m', f'{name}:alive*', '--overwrite')
    end, n, running = time.monotonic() + TORTURE_SECONDS, 0, []
    while time.monotonic() < end or n <= TORTURE_SECONDS / 4:
        check(process.is_alive(), 'the program goes on', process.result())
        if running and (len(running) == 3 or random.random() < 0.4):
            running.pop(random.randrange(len(running))).end(
                random.choice([signal.SIGINT, signal.SIGINT, signal.SIGKILL]))
        else:
            words = ['-p', f'{name}:mark_*'] if random.random() < 0.3 else []
            try:
                running.append(
                    markers.recorder(pid, directory / f'data{n}', '--buffer', '1M', '--overwrite', '-m',
                                     random.choice(globs), *words))
                n += 1
            except Exception as error:
                if markers.BUSY not in str(error):
                    raise
    for each in running:
        each.end(signal.SIGINT)
    eventually(lambda: next_one_records(pid, name, directory / 'last'),
               'the next one takes out what the killed ones have left', 120)
    alive = [
        gate[2] for site, gate in zip(markers.sites(path), markers.gates(pid, path))
        if markers.name_of(path, site).startswith('alive')
    ]
    check(alive and set(alive) == {1}, 'the one that stays is counted', alive)
    check_equal(sum(gate[2] for gate in markers.gates(pid, path)), len(alive), 'and no other one')
    stays.end(signal.SIGINT).ok()
    check(report_json(directory / 'stays')['events'] > 0, 'it has recorded')
    remains.check_running(pid)
    return process, path, before, n


@timeout(7200)
def test_recorders_that_come_and_go_in_any_order(tmp):
    seed()
    process, path, before, n = come_and_go('marked', tmp, 6, '-p', '50')
    # chance need not have chosen the one that evaluates anything
    record_some(tmp / 'costly', process.pid, '-m', 'marked:costly')
    markers.check_off(process.pid, path)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    said = process.end(signal.SIGTERM).ok().json()
    check(said['evaluations'] > 0 and n > TORTURE_SECONDS / 4, 'it was done often', said, n)


@timeout(7200)
def test_recorders_of_a_program_that_turns_its_markers_on_and_off_itself(tmp):
    seed()
    if not (TARGETS / 'marked-toggling').exists():
        skip('libkymo-marker is not built')
    process, path, _, n = come_and_go('marked-toggling', tmp, 3, '-s', '-p', '50')
    check_equal({gate[2] for gate in markers.gates(process.pid, path)}, {0}, 'recordings that want a marker')
    process.end(signal.SIGTERM).ok()
    check(n > TORTURE_SECONDS / 8, 'it was done often', n)
