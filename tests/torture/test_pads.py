"""SIGKILL of a stub whose conditions are in pads, at random instants. The program runs on each time, and `kymo detach`
leaves its text as it is in the file.

No condition holds, and no thread is stepped: what has come to a trap or makes a step when its stub is killed ends by
SIGTRAP, as with every debugger.
Seeded by the clock; KYMO_SEED=N repeats a run. KILLS=N asks for so many.
"""
import os
import random
import sys
import threading
import time

from kymotest import SOURCE, TORTURE_SECONDS, check, check_equal, check_text_intact, eventually, kymo, start, timeout
from seeds import seed

sys.path.insert(0, str(SOURCE / 'tests/e2e/gdb'))
from debugging import Client, address_of, kill_hub, offer, packet, state_of  # noqa: E402
from pads import FALSE, RDI, RSI, build_hot, equal, has_pads  # noqa: E402

KILLS = int(os.environ.get('KILLS') or (6 if TORTURE_SECONDS <= 10 else 300))
BEGINNING_S, LONGEST_S = 0.4, 0.5


def work(client, sites):
    """Conditions come and go, threads run and stop, until the stub is gone."""
    while True:
        for site in sites:
            condition = random.choice([FALSE, equal(RSI, 90), equal(RDI, -1)])
            client.ask(f'Z0,{site:x},1;{condition}')
        for _ in range(random.randint(1, 3)):
            client.send(packet('vCont;c'))
            time.sleep(random.uniform(0, 0.1))
            client.interrupt()
            site = random.choice(sites)
            client.ask(f'z0,{site:x},1')
            if random.random() < 0.7:
                client.ask(f'Z0,{site:x},1;{FALSE}')


def work_until_killed(client, sites):
    try:
        client.begin()
        client.ask('qRcmd,' + 'set pads 1'.encode().hex())
        work(client, sites)
    except Exception:  # the stub is gone, in the middle of anything
        pass


def rounds_of(process, at):
    with open(f'/proc/{process.pid}/mem', 'rb') as memory:
        memory.seek(at)
        return int.from_bytes(memory.read(8), 'little')


def detach(process, when):
    if has_pads(process.pid):
        kymo('detach', process.pid).ok()
    check(not has_pads(process.pid), f'nothing is left {when}')
    check_text_intact(process.pid)


@timeout(7200)
def test_a_killed_stub(tmp):
    seed()
    build_hot(tmp)
    n_left = 0
    process = start('./app', 4)
    process.wait_for('^ready')
    sites = [address_of(process.pid, name) for name in ('hot', 'poke')]
    wrong, rounds = (address_of(process.pid, name) for name in ('wrong', 'rounds'))
    for i in range(KILLS):
        stub, path = offer('--pid', process.pid)
        client = Client(path)
        worker = threading.Thread(target=work_until_killed, args=(client, sites))
        worker.start()
        if random.random() < BEGINNING_S:
            eventually(lambda: has_pads(process.pid) or not worker.is_alive(), 'there are pads')
        time.sleep(random.uniform(0, LONGEST_S))
        kill_hub(stub)
        worker.join()
        client.close()
        check(process.is_alive(), f'it runs on after kill {i}', process.result() if not process.is_alive() else '')
        eventually(lambda: state_of(process.pid) in 'RS', f'no thread is stopped after kill {i}')
        n_left += has_pads(process.pid)
        try:
            before = rounds_of(process, rounds)
            eventually(lambda: rounds_of(process, rounds) != before, f'its threads go on after kill {i}')
        except ProcessLookupError:
            check(False, f'it runs on after kill {i}', process.end())
        if random.random() < 0.7:  # else the next stub takes out what is left
            detach(process, f'after kill {i}')
        check_equal(rounds_of(process, wrong), 0, f'what its threads have found wrong after kill {i}')
    print(f'{KILLS} kills, {n_left} of them left pads')
    check(n_left > KILLS / 10, 'some left pads', n_left)
    detach(process, 'at the end')
    process.kill()
