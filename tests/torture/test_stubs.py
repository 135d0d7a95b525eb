"""SIGKILL of what the user has started, kymo gdb and kymo-gdbserver, or the end of its client, at random instants. All
threads come by breakpoints, tracepoints and watched memory all the time. The program runs on each time, with its text
as in the file.

Seeded by the clock; KYMO_SEED=N repeats a run. KILLS=N asks for so many.
"""
import os
import random
import socket
import sys
import threading
import time

from kymotest import (SOURCE, TORTURE_SECONDS, check, check_text_intact, check_untraced, start, timeout)
from seeds import seed

sys.path.insert(0, str(SOURCE / 'tests/e2e/gdb'))
from debugging import Client, address_of, kill_front, listen, offer, packet  # noqa: E402
from pads import FALSE, RDI, RSI, build_hot, equal  # noqa: E402

KILLS = int(os.environ.get('KILLS') or (10 if TORTURE_SECONDS <= 10 else 500))
LONGEST_S = 0.3


def trace(client, sites):
    """A run of tracepoints, after the last one if there was one."""
    client.ask('QTStop')
    client.ask('QTinit')
    for number, site in enumerate(sites, 1):
        client.ask(f'QTDP:{number}:{site:x}:E:0:0-')
        client.ask(f'QTDP:-{number}:{site:x}:R03FFFFFFFFFFFFFFFFFF')
    client.ask('QTStart')


def work(client, sites, watched):
    """Breakpoints come and go, and are hit, until the stub is gone."""
    client.begin()
    while True:
        if random.random() < 0.3:
            trace(client, sites)
        if random.random() < 0.3:
            client.ask(f'{random.choice("zZ")}2,{watched:x},8')
        for site in sites:
            condition = random.choice([FALSE, equal(RSI, 1), equal(RDI, -1)])
            client.ask(f'Z0,{site:x},1;{condition}')
        client.send(packet(random.choice(['vCont;c', 'vCont;s'])))
        time.sleep(random.uniform(0, 0.05))
        client.interrupt()
        client.ask(f'z0,{random.choice(sites):x},1')


def work_until_killed(client, *places):
    try:
        work(client, *places)
    except Exception:  # the stub is gone, in the middle of anything
        pass


@timeout(7200)
def test_a_front_that_is_killed(tmp):
    seed()
    build_hot(tmp)
    process = start('./app', 3)
    process.wait_for('^ready')
    sites = [address_of(process.pid, name) for name in ('hot', 'poke')]
    watched = address_of(process.pid, 'rounds')
    for i in range(KILLS):
        if random.random() < 0.7:
            stub, where = offer('--pid', process.pid, start_new_session=True)
        else:
            stub, where = listen('--attach', ':0', process.pid)
        client = Client(where)
        worker = threading.Thread(target=work_until_killed, args=(client, sites, watched))
        worker.start()
        time.sleep(random.uniform(0, LONGEST_S))
        if isinstance(where, str) and random.random() < 0.2:
            client.socket.shutdown(socket.SHUT_RDWR)
            stub.end().ok()
        else:
            kill_front(stub, kills_group=isinstance(where, str) and random.random() < 0.5)
        worker.join()
        client.close()
        check(process.is_alive(), f'it runs on after kill {i}', process.result())
        check_untraced(process.pid)
        check_text_intact(process.pid)
    process.kill()
