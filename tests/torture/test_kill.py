"""SIGKILL of the recorder. The program never fails, and what was in it comes out, each time.

Seeded by the clock; KYMO_SEED=N repeats a run. KILLS=N asks for so many of each kind; 500 if nothing is said, and a
few where there are seconds only.
"""
import os
import random
import time

import processes
from killing import NO_LEAKS, Victim, kill_often
from kymotest import KYMO, TORTURE_SECONDS, check, check_equal, program, run, timeout
from seeds import seed
from sleeping import WITH_BLOCK, WOKEN, Sleepers

IS_SHORT = TORTURE_SECONDS <= 10
KILLS = int(os.environ.get('KILLS') or (5 if IS_SHORT else 500))


@timeout(7200)
def test_a_killed_recorder_leaves_a_program_that_runs_on_and_can_be_restored(tmp):
    seed()
    kill_often(Victim(tmp), KILLS, 0.7)


@timeout(7200)
def test_a_killed_recorder_of_every_instruction(tmp):
    seed()
    kill_often(Victim(tmp, threads=8, probes='puns'), KILLS, 0.7)


@timeout(7200)
def test_a_killed_recorder_of_returns(tmp):
    seed()
    kill_often(Victim(tmp, threads=8, probes='returns'), KILLS, 0.7)


@timeout(7200)
def test_a_killed_recorder_beside_another_one(tmp):
    seed()
    kill_often(Victim(tmp, threads=8, probes=random.choice(['entries', 'returns']), companion=True), KILLS, 0.7)


@timeout(7200)
def test_a_killed_recorder_of_places_for_which_an_instruction_was_evicted(tmp):
    seed()
    kill_often(Victim(tmp, threads=4, probes='evicted', companion=random.random() < 0.5, name='packed'), KILLS, 0.7)


@timeout(7200)
def test_a_killed_recorder_of_markers(tmp):
    seed()
    kill_often(Victim(tmp, threads=8, args=('-p', '100'), probes='markers', name='marked'), KILLS, 0.8)


@timeout(7200)
def test_a_killed_recorder_of_markers_among_other_probes(tmp):
    seed()
    kill_often(Victim(tmp, threads=4, args=('-p', '100'), probes='markers among probes', name='marked'), KILLS, 0.8)


@timeout(7200)
def test_a_killed_recorder_of_markers_beside_another_one(tmp):
    """The other one's counters are what they were."""
    seed()
    kill_often(Victim(tmp, threads=4, args=('-p', '1000'), probes='markers', companion=True, name='marked'), KILLS, 0.8)


@timeout(7200)
def test_a_killed_detach_of_markers_can_be_repeated(tmp):
    seed()
    victim = Victim(tmp, threads=4, args=('-p', '100'), probes='markers', name='marked')
    for number in range(1, 200, 45 if IS_SHORT else 1):
        victim.kill_detach_at('pwrite64', number)
    victim.end()


@timeout(7200)
def test_a_killed_detach_can_be_repeated(tmp):
    seed()
    victim = Victim(tmp, threads=4 if IS_SHORT else 16)
    for number in range(1, 60 if IS_SHORT else 300, 14 if IS_SHORT else 3):
        victim.kill_detach_at('ptrace', number)
    for number in range(1, 12 if IS_SHORT else 30, 3 if IS_SHORT else 1):
        victim.kill_detach_at('pwrite64', number)
    victim.end()


@timeout(7200)
def test_a_killed_detach_of_every_instruction_can_be_repeated(tmp):
    seed()
    victim = Victim(tmp, threads=4, probes='puns')
    for number in range(1, 40 if IS_SHORT else 200, 7 if IS_SHORT else 3):
        victim.kill_detach_at('ptrace', number)
    for number in range(1, 80, 16 if IS_SHORT else 1):
        victim.kill_detach_at('pwrite64', number)
    victim.end()


@timeout(7200)
def test_a_recorder_that_is_killed_again_and_again_while_it_works_under_load(tmp):
    """For as long as asked, with threads that never sleep: probed code is where they always are."""
    seed()
    end = time.monotonic() + TORTURE_SECONDS
    victim = Victim(tmp, threads=4, args=('-p', '0'), probes=random.choice(['entries', 'puns', 'returns']))
    calls = victim.calls()
    victim.kill_while_recording()  # one, at least, that leaves something, however few kills there is time for
    victim.after_kill('while it recorded')
    while time.monotonic() < end:
        call = random.choice(calls)
        victim.kill_at(call, random.randint(1, calls.count(call)))
    victim.end()


@timeout(7200)
def test_a_killed_recorder_among_threads_that_sleep(tmp):
    """No call fails, and none ends early or late."""
    seed()
    kills, limit_ms = 0, 5000 if IS_SHORT else 15000
    while kills < KILLS:
        ways = random.sample(sorted(WOKEN), random.randint(1, len(WOKEN))) + random.sample(
            sorted(WITH_BLOCK), random.randint(1, len(WITH_BLOCK)))
        sleepers = Sleepers(tmp, ways, random.choice([0, 1, 16]), limit_ms)
        sleepers.kill_for_a_while(KILLS - kills)
        killed = sleepers.end()
        kills += killed
        if not killed:  # a busy machine
            limit_ms *= 2
            check(limit_ms < 300_000, 'recorders are killed')


# A tree of processes that checks what its parts do.
TREE = '''
i=0
while [ $i -lt 12 ]; do
	(exit 3); [ $? = 3 ] || exit 1
	/bin/echo $i | grep -q $i || exit 2
	x=$(cat /proc/self/comm | tr a-z A-Z); [ "$x" = CAT ] || exit 3
	i=$((i + 1))
done
echo done
'''


@timeout(7200)
def test_a_killed_recorder_of_a_tree_of_processes(tmp):
    """All of the tree runs on to its end, wherever the recorder was."""
    seed()
    trace = tmp / 'calls'
    words = [
        KYMO, 'record', '-q', '-o', tmp / 'tree', '-p', 'libc:malloc', '-p', 'libc:*fork', '-p', 'libc:write', '--',
        '/bin/sh', '-c', TREE
    ]
    done = run(program('strace'), '-qq', '-o', trace, '-e', 'trace=ptrace,pwrite64,wait4,pidfd_open', '-e',
               'signal=none', *words, env=NO_LEAKS).ok()
    check_equal(done.out, 'done\n', 'output')
    calls = [
        line.partition('(')[0] for line in trace.read_text().splitlines()
        if line.startswith(('ptrace', 'pwrite64', 'wait4', 'pidfd_open'))
    ]
    end, n, begun = time.monotonic() + TORTURE_SECONDS, 0, 0
    while time.monotonic() < end and n < KILLS or not begun:
        call = random.choice(calls)
        number = random.randint(1, calls.count(call))
        out = tmp / 'out'
        with open(out, 'w') as file:
            run(program('strace'), '-qq', '-o', '/dev/null', '-e', f'trace={call}', '-e', 'signal=none', '-e',
                f'inject={call}:signal=KILL:when={number}', *words, env=NO_LEAKS, stdout=file)
        n += 1
        # The command's parent is gone: this process adopts it, and those that it leaves.
        while pids := processes.children(os.getpid()):
            for pid in pids:
                status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                check(status in (0, 3),
                      f'a process of the tree ended with {status}, its recorder killed at {call} {number}')
        text = out.read_text()
        begun += bool(text)
        check(text in ('', 'done\n'), f'output {text!r}, the recorder killed at {call} {number}')
    check(begun > n // 8, f'{begun} of {n} recorders were killed when the command had begun')
