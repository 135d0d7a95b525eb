"""Recordings of places for which another instruction has to make room: they join what the first one has planned, and
leave in any order."""
import collections
import random
import re
import signal

import remains
from kymotest import (KYMO_PLAIN, check, check_equal, check_text_intact, events, kymo, run, start,
                      target, target_path)
from seeds import seed

FUNCTIONS = [f'add_{i}' for i in range(1, 13)]
PROBES = ['--buffer', '64K', '--no-rseq', '-p', 'packed:add_*']


class Packed:
    def __init__(self):
        self.process = target('packed', '-p', '20000')
        self.pid, self.counted = self.process.pid, 0
        self.before = remains.lasting_mappings(self.pid)

    def count(self, n):
        """Each function is called so many times by the first thread."""
        self.process.send(f'count {n}\n')
        self.counted += 1
        self.process.wait_for(r'(?:^counted$[^\0]*?){%d}' % self.counted)

    def check_clean(self):
        remains.check_nothing_left(self.pid, self.before, remains.lasting_mappings)

    def end(self):
        self.process.end(signal.SIGTERM).ok()


class Recorder:
    def __init__(self, packed, name, *probes):
        self.packed, self.name, self.expected, self.functions = packed, name, 0, FUNCTIONS
        self.process = start(KYMO_PLAIN, 'record', '-o', name, *(probes or PROBES), '--pid', packed.pid)

    def counts(self):
        counts = collections.Counter()
        for event in events(self.name):
            counts[event.name.removeprefix('packed:')] += event['tid'] == self.packed.pid
        return {name: n for name, n in counts.items() if n}

    def wait(self):
        """Until all of its probes are in. A trampoline that lies on two pages cannot be shared: that is seldom more
        than one."""
        sites = int(self.process.wait_for(r'^kymo: recording process \d+, (\d+) sites$', which=1)[1])
        left_out = re.findall(r"(add_\d+): another recording has a probe here, the jump of which cannot be shared",
                              self.process.err)
        self.functions = [name for name in FUNCTIONS if name not in left_out]
        check_equal(sites, len(self.functions), f'sites, without {left_out}')
        check(sites >= 9, f'most places are shared, {sites} of 12')
        return self

    def end(self):
        self.process.end(signal.SIGINT).ok()
        check_equal(self.counts(), {name: self.expected for name in self.functions if self.expected},
                    f'calls in {self.name}')

    def kill(self):
        self.process.signal(signal.SIGKILL)
        self.process.end()


def count(packed, recorders, n=20):
    """Each of them sees all of it."""
    packed.count(n)
    for each in recorders:
        each.expected += n


def check_tactics():
    told = kymo('explain', target_path('packed'), 'add_*').ok().out
    check('6 evicted successor, 6 evicted neighbor, 0 refused' in told, 'the functions are what this test is for',
          told)


def test_twenty_equal_recordings_come_four_at_a_time_and_leave_in_any_order(tmp):
    seed()
    check_tactics()
    packed, recorders = Packed(), []
    for i in range(5):
        coming = [Recorder(packed, f'data.{i}.{k}') for k in range(4)]
        recorders += [each.wait() for each in coming]
    count(packed, recorders)
    random.shuffle(recorders)
    for _ in range(3):
        for _ in range(5):
            recorders.pop().end()
        count(packed, recorders)
    while recorders:
        recorders.pop().end()
    packed.check_clean()
    packed.end()


def test_two_leave_in_either_order(tmp):
    for order in ((0, 1), (1, 0)):
        packed = Packed()
        recorders = [Recorder(packed, f'{order[0]}.{i}').wait() for i in range(2)]
        count(packed, recorders)
        recorders[order[0]].end()
        count(packed, [recorders[order[1]]])
        late = Recorder(packed, f'{order[0]}.late').wait()  # it joins the remaining recording
        count(packed, [recorders[order[1]], late])
        recorders[order[1]].end()
        count(packed, [late])
        late.end()
        packed.check_clean()
        packed.end()


def test_they_come_and_go_and_are_killed(tmp):
    """A killed one is taken out by the next that comes."""
    seed()
    packed, recorders = Packed(), []
    for i in range(24):
        if recorders and (len(recorders) > 4 or random.random() < 0.4):
            leaving = recorders.pop(random.randrange(len(recorders)))
            random.choice([leaving.end, leaving.end, leaving.kill])()
        else:
            recorders.append(Recorder(packed, f'data.{i}').wait())
        count(packed, recorders, 5)
    for each in recorders:
        each.end()
    kymo('detach', '-q', packed.pid)
    packed.check_clean()
    packed.end()


def test_all_are_killed_and_one_detach_restores_the_text(tmp):
    seed()
    packed = Packed()
    for i in range(4):
        recorders = [Recorder(packed, f'{i}.{k}').wait() for k in range(4)]
        random.shuffle(recorders)
        for each in recorders:
            each.kill()
        packed.count(5)
        kymo('detach', packed.pid).ok()
        packed.check_clean()
    packed.end()


def test_an_instruction_that_has_made_room_is_refused_alone(tmp):
    """Its bytes are what another recording's jump relies on: the recording that has the jump keeps them, too."""
    packed = Packed()
    first = Recorder(packed, 'first').wait()
    alone = run(KYMO_PLAIN, 'record', '-o', 'alone', '--for', '0.1', '-p', 'packed:add_7+2', '--backend', 'inproc',
                '--pid', packed.pid)
    alone.refused('another recording has displaced the instruction here to make room')
    count(packed, [first])
    first.end()
    check_text_intact(packed.pid)
    packed.check_clean()
    packed.end()
