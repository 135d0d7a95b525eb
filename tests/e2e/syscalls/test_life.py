"""The life of a hub: it ends with the last of those that are connected, however the one that began it ends."""
import collections
import fcntl
import os
import random
import select
import signal
import subprocess
import threading
import time
from pathlib import Path

import processes
from killing import NO_LEAKS
from kymotest import (KYMO, at_end, check, check_equal, check_untraced, eventually, kymo, program, run, start, target,
                      target_path, waits)
from numbered import Client, end, hub_of, workers_left
from straced import command_of

HOWS = {
    'an interrupt': lambda first: first.front.end(signal.SIGINT).ok(), 'SIGTERM':
    lambda first: first.front.end(signal.SIGTERM).ok(), 'SIGKILL': lambda first: first.kill(),
}


def check_gone(process):
    eventually(lambda: not workers_left(), f'no process of kymo is left: {workers_left()}', 60)
    check_untraced(process.pid)


def check_first_of_three_ends(tmp, how):
    process = target('numbered', '-f')
    first, second = Client(process.pid, tmp / 'first'), Client(process.pid, tmp / 'second')
    third = Client(process.pid, tmp / 'third', '-e', 'getpgid,getuid')
    hub = hub_of(process.pid)
    check_equal(hub, first.worker(), 'the first has the hub')
    time.sleep(random.random() * 0.1)
    HOWS[how](first)
    second.until_it_sees()
    check_equal(hub_of(process.pid), hub, 'the hub')
    fourth = Client(process.pid, tmp / 'fourth')
    fourth.front.end(signal.SIGINT).ok()
    last = end(process)
    for client in (second, third):
        client.front.end().ok()
        client.check_whole(last)
    for client in (first, fourth):
        client.check_whole()
    eventually(lambda: not workers_left(), 'the hub ends', 60)


def test_others_miss_nothing_when_the_first_is_interrupted(tmp):
    check_first_of_three_ends(tmp, 'an interrupt')


def test_others_miss_nothing_when_the_first_gets_sigterm(tmp):
    check_first_of_three_ends(tmp, 'SIGTERM')


def test_others_miss_nothing_when_the_first_is_killed(tmp):
    check_first_of_three_ends(tmp, 'SIGKILL')


def test_nobody_is_left_when_the_last_has_gone(tmp):
    process = target('numbered')
    clients = [Client(process.pid, tmp / str(i)) for i in range(3)]
    clients[0].kill()
    clients[2].kill()
    clients[1].until_it_sees()
    clients[1].front.end(signal.SIGINT).ok()
    clients[1].check_whole()
    check_gone(process)
    end(process)


def test_others_are_told_that_the_hub_was_killed_and_the_first_says_so(tmp):
    process = target('numbered')
    first, second = Client(process.pid, tmp / 'first'), Client(process.pid, tmp / 'second')
    os.kill(first.worker(), signal.SIGKILL)
    first.front.end().refused(
        r'which did the tracing, was ended by signal 9 \(Killed\): what happened from there on is not shown')
    second.front.end().refused(
        rf'what process {process.pid} did from here on is not shown: the kymo that traced it, and let this one in, has ended'
    )
    check_gone(process)
    end(process)


def test_who_has_joined_and_is_killed_takes_nothing_from_the_others(tmp):
    process = target('numbered')
    first, second = Client(process.pid, tmp / 'first'), Client(process.pid, tmp / 'second')
    third = Client(process.pid, tmp / 'third')
    second.kill()
    third.kill(worker=True)
    first.until_it_sees()
    last = end(process)
    first.front.end().ok()
    first.check_whole(last)


def test_a_hub_that_stays_ends_by_sigterm_and_lets_go(tmp):
    process = target('numbered')
    first, second = Client(process.pid, tmp / 'first'), Client(process.pid, tmp / 'second')
    hub = hub_of(process.pid)
    first.front.end(signal.SIGINT).ok()
    eventually(lambda: processes.status(hub)['Name'] == 'kymo-hub', 'it stays')
    os.kill(hub, signal.SIGTERM)
    second.front.end().refused('has ended')
    check_gone(process)
    end(process)


def test_a_hub_that_stays_holds_nothing_of_the_users(tmp):
    """A reader of kymo's and its caller's output sees the end; descriptors and the directory are free."""
    process = target('numbered')
    (tmp / 'here').mkdir()
    outer, inner = os.pipe()
    at_end(os.close, outer)
    popen = subprocess.Popen(
        [KYMO, 'syscalls', '-e', 'getpgid', '--pid', str(process.pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, pass_fds=[inner], cwd=tmp / 'here')
    at_end(lambda: popen.poll() is None and popen.kill())
    os.close(inner)
    popen.stderr.readline()
    # Else the pipe is full, and the hub ends a client that takes nothing for five seconds.
    rest = threading.Thread(target=popen.stderr.read)
    rest.start()
    second = Client(process.pid, tmp / 'second')
    hub = hub_of(process.pid)
    popen.send_signal(signal.SIGINT)
    rest.join(60)
    check_equal((rest.is_alive(), popen.stdout.read(), popen.wait(60)), (False, b'', 0), 'both pipes end, and it does')
    check_equal(os.read(outer, 1), b'', 'what comes from the descriptor that was inherited')
    second.until_it_sees()
    check_equal(hub_of(process.pid), hub, 'the hub')
    check_equal(os.readlink(f'/proc/{hub}/cwd'), '/')
    for waker in processes.children(hub):
        check_equal(os.readlink(f'/proc/{waker}/cwd'), '/')
    second.front.end(signal.SIGINT).ok()
    check_gone(process)
    end(process)


@waits
def test_the_first_that_nobody_reads_is_left_behind(tmp):
    """Its pipe is full: the others go on after five seconds, and miss nothing. It says why, when there is a reader."""
    process = target('numbered', '-t', '8', '-p', '100')
    outer, inner = os.pipe()
    fcntl.fcntl(inner, fcntl.F_SETPIPE_SZ, 4096)
    popen = subprocess.Popen([KYMO, 'syscalls', '-e', 'getpgid', '--pid', str(process.pid)], stderr=inner)
    at_end(lambda: popen.poll() is None and popen.kill())
    os.close(inner)
    check(os.read(outer, 100), 'it begins')
    second = start(KYMO, 'syscalls', '-f', '-e', 'getpgid', '-o', tmp / 'second', '--pid', process.pid)
    eventually(
        lambda: hub_of(process.pid) and (tmp / 'second').exists() and (tmp / 'second').read_bytes().count(b'\n') > 500,
        'the second sees calls', 90)
    said = b''
    while part := os.read(outer, 65536):
        said += part
    os.close(outer)
    check_equal(popen.wait(60), 1)
    check(said.rstrip().endswith(b'did not drain its output for 5 seconds, and other kymos trace the same process'),
          said[-300:].decode())
    client = Client.__new__(Client)
    client.path = tmp / 'second'
    last = end(process)
    second.end().ok()
    client.check_whole(last)


def test_a_process_runs_on_when_its_tracer_is_killed_that_waits_for_a_reader(tmp):
    process = target('numbered', '-t', '8', '-p', '100')
    outer, inner = os.pipe()
    at_end(os.close, outer)
    popen = subprocess.Popen([KYMO, 'syscalls', '-e', 'getpgid', '--pid', str(process.pid)], stderr=inner)
    at_end(lambda: popen.poll() is None and popen.kill())
    os.close(inner)
    eventually(lambda: processes.tracer(process.pid), 'it is traced')
    eventually(
        lambda: processes.status(process.pid)['State'][0] == 't' or any(
            processes.status(tid).get('State', '?')[0] == 't'
            for tid in processes.threads(process.pid)) and not select.select([], [inner_of(popen)], [], 0)[1],
        'the pipe is full', 60)
    popen.kill()
    popen.wait()
    check_gone(process)
    end(process)


def inner_of(popen):
    """The writing end of its pipe, opened once more."""
    if not hasattr(popen, 'again'):
        popen.again = os.open(f'/proc/{popen.pid}/fd/2', os.O_WRONLY | os.O_NONBLOCK)
        at_end(os.close, popen.again)
    return popen.again


def reading(process, *words, lines=2, **options):
    """A kymo whose reader leaves after a few lines."""
    popen = subprocess.Popen([KYMO, 'syscalls', '-e', 'getpgid', *words, '--pid',
                              str(process.pid)], stderr=subprocess.PIPE, text=True, **options)
    at_end(lambda: popen.poll() is None and popen.kill())
    for _ in range(lines):
        check(popen.stderr.readline(), 'a line comes')
    popen.stderr.close()
    return popen


def test_tracing_ends_when_who_reads_it_has_left(tmp):
    """As by SIGPIPE, which ends every program that writes. Others go on."""
    process = target('numbered')
    for words in ([], ['-f'], ['--json']):
        check_equal(reading(process, *words).wait(60), 128 + signal.SIGPIPE, f'exit status with {words}')
        check_gone(process)
    client = Client(process.pid, tmp / 'other')
    check_equal(reading(process).wait(60), 128 + signal.SIGPIPE, 'exit status of who has joined')
    client.until_it_sees()
    client.front.end(signal.SIGINT).ok()
    check_gone(process)
    end(process)


def test_who_ignores_that_nobody_reads_is_told(tmp):
    process = target('numbered')
    popen = reading(process, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_IGN))
    check_equal(popen.wait(60), 1, 'exit status')
    check_gone(process)
    end(process)


def test_tracing_ends_when_nothing_can_be_written_any_more():
    process = target('numbered')
    for words in ([], ['--json']):
        kymo('syscalls', *words, '-o', '/dev/full', '--pid',
             process.pid).refused(r'cannot write /dev/full: the output is not whole \(No space left on device\)')
        check_gone(process)
    end(process)


def test_a_command_runs_on_when_who_reads_its_calls_has_left(tmp):
    popen = subprocess.Popen([
        KYMO, 'syscalls', '-f',
        program('sh'), '-c', 'echo begun > begun; while [ ! -e left ]; do :; done; echo done > done'
    ], stderr=subprocess.PIPE, text=True)
    at_end(lambda: popen.poll() is None and popen.kill())
    eventually((tmp / 'begun').exists, 'it has begun')
    popen.stderr.close()
    (tmp / 'left').touch()
    check_equal(popen.wait(60), 128 + signal.SIGPIPE, 'exit status')
    eventually((tmp / 'done').exists, 'the command has come to its end')


# ---- a command -----------------------------------------------------------------------------------


def launched(tmp):
    """numbered as a command of kymo's, and that kymo."""
    tracer = start(KYMO, 'syscalls', '-f', '-e', 'getpgid', '-o', tmp / 'first', target_path('numbered'))
    tracer.wait_for('^ready$')
    return tracer, command_of(tracer)


def check_command_without_launcher(tmp, how):
    """The command runs on, and the peer that has joined follows it to its end."""
    tracer, pid = launched(tmp)
    second = Client(pid, tmp / 'second')
    how(tracer)
    second.until_it_sees()
    tracer.popen.stdin.close()  # the end of the command's input
    second.front.end().ok()
    check((tmp / 'second').read_text().rstrip().endswith('+++ exited with 0 +++'), 'the end of the command',
          second.front.result())
    second.check_whole()
    eventually(lambda: not workers_left(), 'the hub ends', 60)


def test_a_command_runs_on_with_who_has_joined_when_its_kymo_is_ended(tmp):
    check_command_without_launcher(
        tmp, lambda tracer: (tracer.signal(signal.SIGTERM), check_equal(tracer.popen.wait(60), 128 + signal.SIGTERM)))


def test_a_command_runs_on_with_who_has_joined_when_its_kymo_is_killed(tmp):
    check_command_without_launcher(tmp, lambda tracer: (tracer.signal(signal.SIGKILL), tracer.popen.wait(60)))


def test_a_command_runs_on_when_who_traces_is_killed(tmp):
    tracer, pid = launched(tmp)
    for worker in processes.children(tracer.pid):
        os.kill(worker, signal.SIGKILL)
    check_equal(tracer.popen.wait(60), 1)
    check('was ended by signal 9 (Killed)' in tracer.err, tracer.err)
    check_untraced(pid)
    tracer.popen.stdin.close()
    eventually(lambda: not processes.is_alive(pid), 'the command ends', 60)


def test_a_kymo_that_is_killed_at_any_moment_leaves_nothing_behind(tmp):
    """The command has never been, or runs to its end."""
    for i in range(30):
        mark = tmp / f'mark{i}'
        tracer = start(KYMO, 'syscalls', '-f', '-o', '/dev/null', 'sh', '-c',
                       f'echo begun > {mark}.begun; true; echo ended > {mark}.ended', env=NO_LEAKS)
        time.sleep(0.003 * i)
        tracer.kill()
        # an ended process is listed until reaped; its detached processes come before that
        eventually(lambda: processes.reap() or not processes.children(os.getpid()), 'all has ended', 60)
        check_equal(Path(f'{mark}.begun').exists(), Path(f'{mark}.ended').exists(), 'what has begun has ended')


def test_the_job_is_the_users_process_and_the_command(tmp):
    """A signal to the group does not reach the tracer."""
    tracer = start(KYMO, 'syscalls', '-f', '-o', tmp / 'out', 'sh', '-c',
                   'trap "exit 5" USR1; echo ready; while :; do sleep 0.05; done', process_group=0)
    tracer.wait_for('^ready$')
    worker = processes.children(tracer.pid)[0]
    check_equal(os.getpgid(processes.children(worker)[-1]), tracer.pid)
    check(os.getpgid(worker) != tracer.pid, 'the worker is not of the group')
    check(os.getsid(worker) != os.getsid(tracer.pid), 'nor of the session')
    for pid in processes.children(worker):
        if os.getpgid(pid) == tracer.pid and processes.status(pid).get('Name') == 'sh':
            os.kill(pid, signal.SIGUSR1)
    check_equal(tracer.popen.wait(60), 5)


def test_ends_of_children_are_waited_for_where_they_are_ignored(tmp):
    run(KYMO, 'syscalls', '-o', tmp / 'out', 'sh', '-c', 'exit 3',
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)).ended(3)


def test_of_threads_that_never_pause_each_gets_its_turn(tmp):
    """The kernel tells of those first that were seized last."""
    run(program('gcc'), '-w', '-pthread', '-o', tmp / 'busy', Path(__file__).parent / 'busy.c').ok()
    process, lines = start(tmp / 'busy', '8'), tmp / 'lines'
    process.wait_for('^ready$')
    tracer = start(KYMO, 'syscalls', '-f', '-e', 'getppid', '-o', lines, '--pid', process.pid)
    eventually(lambda: lines.exists() and lines.read_bytes().count(b'\n') > 64_000, 'calls of all', 180)
    tracer.end(signal.SIGINT).ok()
    calls = collections.Counter(line.split()[0] for line in lines.read_text().splitlines() if 'getppid(' in line)
    check(
        len(calls) == 8 and min(calls.values()) > sum(calls.values()) / 80,
        'no thread has less than a tenth of its share', calls)
    process.end().ok()
