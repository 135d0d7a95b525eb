"""Clients of a hub come and go, ended or killed, on a program with threads that forks. Those that were left alone, and
whose hub was, miss nothing. Seeded by the clock; KYMO_SEED=N repeats a run."""
import os
import random
import signal
import time

from kymotest import TORTURE_SECONDS, check, check_equal, check_untraced, eventually, target, timeout
from numbered import Client, end, hub_of, workers_left
from seeds import seed

AT_MOST = 4
THREADS = 4


class Crowd:
    def __init__(self, process, tmp):
        self.process, self.tmp = process, tmp
        self.clients, self.made, self.ended, self.hubs_killed = [], 0, 0, 0

    def come(self):
        """Some are left before they see anything."""
        self.made += 1
        client = Client(self.process.pid, self.tmp / f'client{self.made}', threads=THREADS, waits=False)
        client.is_excused = False
        if random.random() < 0.7:
            client.until_it_sees()
            self.clients.append(client)
        else:
            time.sleep(random.random() * 0.2)
            client.kill(worker=random.random() < 0.3)

    def go(self):
        client = self.clients.pop(random.randrange(len(self.clients)))
        how = random.choice(['interrupt', 'interrupt', 'kill', 'kill', 'kill both'])
        if how == 'interrupt':
            client.front.end(signal.SIGINT).ok()
            client.check_whole()
        else:
            self.excuse(client, how)
            client.kill(worker=how == 'kill both')
        self.ended += 1

    def excuse(self, client, how):
        """Whose worker is the hub takes the others along."""
        if how == 'kill both' and client.worker() == hub_of(self.process.pid):
            self.lose_all()

    def lose_all(self):
        self.hubs_killed += 1
        for each in self.clients:
            each.is_excused = True

    def kill_hub(self):
        hub = hub_of(self.process.pid)
        if not hub:
            return
        self.lose_all()
        os.kill(hub, signal.SIGKILL)
        for each in self.clients:
            check_equal(each.front.end().status, 1, f'status of {each.path.name}')
            each.check_whole()
        self.clients.clear()

    def step(self):
        choice = random.random()
        if choice < 0.04:
            self.kill_hub()
        elif self.clients and (len(self.clients) == AT_MOST or choice < 0.5):
            self.go()
            self.clients = [each for each in self.clients if not each.is_excused or self.is_over(each)]
        else:
            self.come()

    def is_over(self, client):
        check_equal(client.front.end().status, 1, f'status of {client.path.name}')
        client.check_whole()
        return False


@timeout(7200)
def test_clients_that_come_and_go_in_any_order(tmp):
    seed()
    deadline = time.monotonic() + TORTURE_SECONDS
    process = target('numbered', '-f', '-t', THREADS)
    crowd = Crowd(process, tmp)
    while time.monotonic() < deadline or not crowd.ended:
        check(process.is_alive(), 'the program goes on', process.result())
        crowd.step()
    if not crowd.clients:
        crowd.come()
    last = end(process)
    for client in crowd.clients:
        client.front.end().ok()
        client.check_whole(last)
    eventually(lambda: not workers_left(), 'no process of kymo is left', 60)


@timeout(7200)
def test_nobody_stays_traced_when_all_have_gone(tmp):
    seed()
    deadline = time.monotonic() + TORTURE_SECONDS / 2
    process = target('numbered', '-f', '-t', THREADS)
    crowd = Crowd(process, tmp)
    while time.monotonic() < deadline or not crowd.ended:
        while len(crowd.clients) < 2:
            crowd.come()
        while crowd.clients:
            crowd.go()
            crowd.clients = [each for each in crowd.clients if not each.is_excused or crowd.is_over(each)]
        eventually(lambda: not workers_left(), 'no process of kymo is left', 60)
        check_untraced(process.pid)
    end(process)
