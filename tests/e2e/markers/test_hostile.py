"""Notes that are damaged, or lie: the process runs on, is told nothing but what it is about, and is as it was
afterwards."""
import re
import signal

import markers
import processes
import remains
from killing import NO_LEAKS
from kymotest import (KYMO, check, check_equal, event_counts, eventually, kymo, program, record, run, start, timeout,
                      waits)

ROUNDS = 2000  # of two threads


class Hostile:
    def __init__(self, tmp, case):
        self.path = markers.compile(tmp / 'hostile', markers.TARGETS / 'hostile.c', f'-DHOSTILE={case}', '-lpthread')
        self.process = start(self.path)
        self.process.wait_for('ready')
        self.pid, self.times = self.process.pid, 0
        self.before, self.gates = remains.lasting_mappings(self.pid), markers.gates(self.pid, self.path)

    def go(self):
        self.times += 1
        self.process.send('\n')
        self.process.wait_for('(done\n){%d}' % self.times)

    def record(self, name='data', *args):
        each = start(KYMO, 'record', '-o', name, '-m', 'hostile:*', *args, '--pid', self.pid)
        each.wait_for('recording process', 1)
        eventually(lambda: processes.tracer(self.pid) == 0, 'it is let go')
        return each

    def recorded_or_refused(self, *args):
        result = kymo('record', *args, '--pid', self.pid, '--for', '0.1')
        check(result.status in (0, 1), 'recorded or refused', result)

    def refused(self, pattern):
        kymo('record', '-o', 'refused', '-m', 'hostile:*', '--pid', self.pid, '--for', '1').refused(pattern)
        self.go()
        self.end()

    def end(self):
        remains.check_nothing_left(self.pid, self.before, remains.lasting_mappings)
        check_equal(markers.gates(self.pid, self.path), self.gates, 'gates')
        self.go()
        self.process.end().ok()


def recorded(tmp, case, expected):
    """Runs with its markers on and off, and leaves nothing."""
    hostile = Hostile(tmp, case)
    hostile.go()
    each = hostile.record()
    hostile.go()
    each.end(signal.SIGINT).ok()
    check_equal(dict(event_counts('data')), {f'hostile:{name}': n for name, n in expected.items()}, 'records')
    hostile.end()


# ---- what is odd, and works ----------------------------------------------------------------------


def test_a_marker_of_hand_made_notes(tmp):
    recorded(tmp, 'ONE', {'one': ROUNDS})


def test_a_place_in_the_hot_path_without_a_site(tmp):
    recorded(tmp, 'NO_SITE', {'one': ROUNDS})


def test_a_site_and_a_place_that_cross_pages(tmp):
    recorded(tmp, 'CROSSES', {'one': ROUNDS})


@timeout(300)
def test_a_recorder_that_is_killed_while_it_changes_a_site_that_crosses_pages(tmp):
    """Each of the three writes leaves an instruction."""
    hostile = Hostile(tmp, 'CROSSES')
    dying = [KYMO, 'record', '-q', '-o', 'dies', '-m', 'hostile:*', '--for', '0.02', '--pid', hostile.pid]
    run(program('strace'), '-qq', '-o', 'writes', '-e', 'trace=pwrite64', '-e', 'signal=none', *dying,
        env=NO_LEAKS).ok()
    lines = open('writes').read().splitlines()
    near = {n + more for n, line in enumerate(lines, 1) if re.search(r', [124], \d+\)', line) for more in (0, 1)}
    check(
        sum(re.search(r'"\\251", 1, ', line) is not None for line in lines) == 2,
        'it goes by another instruction twice', '\n'.join(lines))
    for n in sorted(near):
        run(program('strace'), '-qq', '-o', '/dev/null', '-e', 'trace=pwrite64', '-e', 'signal=none', '-e',
            f'inject=pwrite64:signal=KILL:when={n}', *dying, env=NO_LEAKS)
        hostile.go()
        kymo('detach', hostile.pid)
        check_equal(markers.gates(hostile.pid, hostile.path), [(0, 0, 0)], f'gate, killed at write {n}')
        check_equal(markers.texts(hostile.pid, hostile.path), [markers.NOP], f'site, killed at write {n}')
    hostile.go()
    hostile.end()


def test_a_gate_that_the_program_has_made_read_only(tmp):
    recorded(tmp, 'READ_ONLY', {'one': ROUNDS})


def test_two_sites_of_one_gate(tmp):
    """Both are off when the counter is 0."""
    hostile = Hostile(tmp, 'SAME_GATE')
    for _ in range(2):
        hostile.recorded_or_refused('-m', 'hostile:*')
    hostile.end()


def test_gates_that_overlap(tmp):
    hostile = Hostile(tmp, 'FAR_GATE')
    hostile.recorded_or_refused('-m', 'hostile:*')
    hostile.end()


def test_two_cold_blocks_for_one_site(tmp):
    """One of them gets it."""
    hostile = Hostile(tmp, 'SAME_SITE')
    each = start(KYMO, 'record', '-o', 'data', '-m', 'hostile:one', '--pid', hostile.pid)
    each.wait_for('recording process|kymo:', 1)
    hostile.recorded_or_refused('-o', 'other', '-m', 'hostile:two')
    hostile.go()
    each.end(signal.SIGINT)
    hostile.end()


def test_a_portable_site_that_has_no_cold_block(tmp):
    recorded(tmp, 'PORTABLE_NOWHERE', {'one': ROUNDS})


# ---- what is refused -----------------------------------------------------------------------------


def test_a_site_that_is_its_own_place(tmp):
    Hostile(tmp, 'SITE_IS_PLACE').refused('there is the NOP of a marker')


def test_a_site_without_a_place(tmp):
    Hostile(tmp, 'NO_PLACE').refused("has no marker 'hostile:\\*'")


def test_a_place_within_another_instruction(tmp):
    Hostile(tmp, 'PLACE_WITHIN').refused('no instruction begins at')


def test_a_cold_block_that_begins_within_an_instruction(tmp):
    Hostile(tmp, 'COLD_WITHIN').refused('inside of an instruction')


def test_a_gate_that_is_full_of_recordings_that_do_not_exist(tmp):
    Hostile(tmp, 'FULL').refused('its gate counts recordings that kymo does not know of')


@waits
def test_a_gate_that_says_for_ever_that_the_program_is_changing_the_site(tmp):
    Hostile(tmp, 'BUSY').refused('marker')


def test_a_site_within_another_instruction(tmp):
    """Its bytes are a NOP's, but no instruction begins there."""
    hostile = Hostile(tmp, 'WITHIN')
    hostile.recorded_or_refused('-m', 'hostile:*')
    each = start(KYMO, 'record', '-o', 'data', '-m', 'hostile:*', '--pid', hostile.pid, '--for', '1')
    eventually(lambda: not each.is_alive() or markers.gates(hostile.pid, hostile.path) != hostile.gates,
               'it is in, or refused')
    hostile.go()
    each.end()
    hostile.end()


def test_a_payload_at_an_address_that_nothing_is_at(tmp):
    """Nothing is read from there."""
    hostile = Hostile(tmp, 'PAYLOAD')
    each = hostile.record()
    hostile.go()
    each.end(signal.SIGINT)
    hostile.end()


# ---- one among many ------------------------------------------------------------------------------

LONG = '''
#include <kymo/marker.h>
int main(void)
{
	for (int i = 0; i < 10; i++) {
		MARK(longer, "i=%d LONG", i);
		MARK(other, "i=%d", i);
	}
	return 0;
}
'''


def test_a_format_that_is_too_long_costs_that_marker_alone(tmp):
    path = markers.compile(tmp / 'longer', LONG.replace('LONG', 'x' * 1500))
    record('-m', 'longer:*', '--', path)
    check_equal(event_counts().get('longer:other'), 10, 'records of the other marker')


MANY = '#include <kymo/marker.h>\n#include "target.h"\n'


def test_thousands_of_sites(tmp):
    functions = [
        f'static void f{k}(int i) {{ {" ".join(f"""MARK(m{k}_{j}, "i=%d", i + {j});""" for j in range(50))} }}'
        for k in range(30)
    ]
    text = MANY + '\n'.join(functions) + '''
int main(void)
{
	say("ready\\n");
	for (char c; read(0, &c, 1) == 1; say("done\\n")) {
		''' + ' '.join(f'f{k}({k});' for k in range(30)) + '''
	}
	return 0;
}
'''
    path = markers.compile(tmp / 'many', text, '-O1')
    process = start(path)
    process.wait_for('ready')
    before = remains.lasting_mappings(process.pid)
    for i in range(2):
        each = markers.recorder(process.pid, 'data', '-m', 'many:*')
        process.send('\n')
        process.wait_for('(done\n){%d}' % (i + 1))
        each.end(signal.SIGINT).ok()
        counts = event_counts('data')
        check_equal((len(counts), set(counts.values())), (1500, {1}), 'markers')
        markers.check_off(process.pid, path)
        remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end().ok()


def test_a_file_that_has_nothing_but_damaged_notes(tmp):
    """Cut in the middle, of sizes that are too large, with names that do not end."""
    path = markers.compile(tmp / 'whole', LONG.replace('LONG', ''))
    whole = path.read_bytes()
    offsets = [offset for _, _, offset, _ in markers.Elf(path).notes('.note.kymo')]
    large = b'\xff\xff\xff\x7f'
    damage = [(-20, b'\xff' * 4), (-16, large), (0, b'\x01\0\0\0'), (4, large), (8, b'\0\0\0\x80'),
              (16, b'\x01\0\0\x7f'), (20, b'\xff' * 4)]
    for i, (at, data) in enumerate(damage):
        damaged = bytearray(whole)
        for offset in offsets:
            damaged[offset + at:offset + at + len(data)] = data
        other = tmp / f'damaged{i}'
        other.write_bytes(damaged)
        other.chmod(0o755)
        result = record('-m', f'damaged{i}:*', '--', other)
        check(result.status in (0, 1), 'recorded, or refused', result)
        run(other).ok()
