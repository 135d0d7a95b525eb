"""Recorders of a process that a kymo syscalls traces, or another recorder follows, which are killed at any moment, or
whose hub is. The program runs on, and what was in it comes out."""
import random
import signal
import time

import processes
from killing import NO_LEAKS, Victim
from kymotest import KYMO, TORTURE_SECONDS, check, clean_up_after, eventually, program, run, start, timeout
from seeds import seed


def traced(victim):
    """Whose hub is used."""
    if random.random() < 0.5:
        follower = start(KYMO, 'record', '-o', victim.directory / 'follower', '--overwrite', '--follow', *victim.probes,
                         '--pid', victim.pid, env=NO_LEAKS)
        follower.wait_for('^kymo: recording process', which=1)  # the first one has the places that both want
        return follower
    tracer = start(KYMO, 'syscalls', '-o', '/dev/null', '-e', random.choice(['tgkill', 'all']), '--pid', victim.pid,
                   env=NO_LEAKS)
    eventually(lambda: processes.tracer(victim.pid) or not tracer.is_alive(), 'it is traced')
    return tracer


def go_on(tracer):
    check(tracer.is_alive(), 'the tracer goes on', tracer.result())
    tracer.end(signal.SIGTERM)
    check(tracer.popen.returncode in (0, 143), 'the tracer ends well', tracer.result())


def check_after(victim, where):
    eventually(lambda: not processes.tracer(victim.pid), 'nobody traces it any more')
    victim.after_kill(where)


def kill_at_message(victim, number):
    """Its `number`th message to the hub is not sent."""
    words = [
        program('strace'), '-qq', '-f', '-o', '/dev/null', '-e', 'trace=sendmsg', '-e', 'signal=none', '-e',
        f'inject=sendmsg:signal=KILL:when={number}'
    ]
    tracer = traced(victim)
    run(*words, *victim.recorder(0.05), env=NO_LEAKS)
    go_on(tracer)
    check_after(victim, f'at message {number}')


def kill_someone(victim):
    delay, whom = random.uniform(0, 1.2), random.choice(['recorder', 'hub', 'both', 'sleeper'])
    tracer = traced(victim)
    recorder = start(*victim.recorder(0.05), env=NO_LEAKS)
    time.sleep(delay)
    if whom in ('hub', 'both'):
        tracer.kill()
    if whom in ('recorder', 'both'):
        recorder.signal(signal.SIGKILL)
    if whom == 'sleeper':  # at its next messages it finds the hub gone
        recorder.signal(signal.SIGSTOP)
        tracer.kill()
        recorder.signal(signal.SIGCONT)
    result = recorder.end()
    check(result.status in (0, 1, -signal.SIGKILL), 'the recorder ends well, with an error, or was killed', result)
    if whom == 'recorder':
        go_on(tracer)
    check_after(victim, f'{whom} {delay:.4f} s after its start')


@timeout(7200)
def test_a_recorder_is_killed_or_its_hub_is(tmp):
    seed()
    end = time.monotonic() + TORTURE_SECONDS
    victim = Victim(tmp, threads=4, probes=random.choice(['entries', 'puns', 'returns']))
    while time.monotonic() < end or not victim.left:
        with clean_up_after():
            kill_someone(victim)
    victim.end()


@timeout(7200)
def test_a_recorder_is_killed_at_each_of_its_messages(tmp):
    seed()
    end = time.monotonic() + TORTURE_SECONDS
    victim = Victim(tmp, threads=4)
    while time.monotonic() < end or not victim.left:
        with clean_up_after():
            kill_at_message(victim, random.randint(1, 120))
    victim.end()
