"""What kymo leaves out of a recording of markers, and what it says of that: where others have put breakpoints, or
counted wrong; and what it says of probes on markers. The others are recorded whole, and nothing is half on."""
import shutil
import signal

import kernelcount
import markers
import places
import remains
from kymotest import check, check_equal, check_same, event_counts, kymo, start, target, target_path, timeout
from markers import recorder
from recorders import unless_late
from test_sdt import build

ROUNDS = 100
BREAKPOINT = b'\xcc'
HAS_BREAKPOINT = "a uprobe (perf, bpftrace) or a debugger's breakpoint is there"
ALL = {
    'nothing': 1, 'small': 1, 'ints': 1, 'longs': 1, 'pointers': 1, 'reals': 1, 'text': 1, 'mixed': 1, 'eight': 1,
    'costly': 1, 'looped': 8, 'alive': 3, 'alive_text': 3
}


def notes(path, name):
    """([vaddr of each site], [of each place]) of a marker."""
    found = ([], [])
    for note in markers.Elf(path).notes('.note.kymo'):
        site = markers.Site(*note)
        if markers.name_of(path, site) == name:
            found[site.is_place].append(site.code)
    return found


def named(path, vaddr):
    """ "mark_ints+0x18" """
    return next(f'{name}+0x{vaddr - low:x}' if vaddr > low else name
                for name, (low, high) in places.symbols(str(path)).items() if low <= vaddr < high)


class Broken:
    """marked, with breakpoints where a debugger would have put them."""
    def __init__(self):
        self.path, self.process = target_path('marked'), target('marked', '-w', ROUNDS)
        self.pid, self.times = self.process.pid, 0
        self.at = markers.base(self.pid, self.path)
        self.before, self.kept = remains.lasting_mappings(self.pid), {}

    def put(self, vaddr):
        self.kept[vaddr] = markers.read(self.pid, self.at + vaddr, 1)
        markers.write(self.pid, self.at + vaddr, BREAKPOINT)

    def clear(self):
        for vaddr, byte in self.kept.items():
            check_equal(markers.read(self.pid, self.at + vaddr, 1), BREAKPOINT, 'the breakpoint')
            markers.write(self.pid, self.at + vaddr, byte)
        self.kept = {}

    def wanted(self, name):
        """How many recordings want each site of it."""
        gates = zip(markers.sites(self.path), markers.gates(self.pid, self.path))
        return [gate[2] for site, gate in gates if markers.name_of(self.path, site) == name]

    def go(self):
        self.times += 1
        self.process.send('\n')
        self.process.wait_for('(done\n){%d}' % self.times)

    def end(self):
        self.clear()
        remains.check_nothing_left(self.pid, self.before, remains.lasting_mappings)
        markers.check_off(self.pid, self.path)
        self.go()
        self.process.end().ok()


def record_around(broken, *args):
    """What a recording says that runs while the breakpoints are out of the way of the program."""
    each = recorder(broken.pid, 'data', *args)
    kept = dict(broken.kept)
    broken.clear()
    broken.go()
    for vaddr in kept:
        broken.put(vaddr)
    each.end(signal.SIGINT).ok()
    return each.err


def check_records(without=()):
    counts = event_counts('data')
    for name, n in ALL.items():
        check_equal(counts.get(f'marked:{name}', 0), 0 if name in without else n * ROUNDS, f'records of {name}')


# ---- breakpoints ---------------------------------------------------------------------------------


def test_a_breakpoint_on_a_site_leaves_that_marker_out_and_no_other():
    broken = Broken()
    (site, ), _ = notes(broken.path, 'ints')
    broken.put(site)
    said = record_around(broken, '-m', 'marked:*')
    check_same(
        said,
        f'kymo: warning: skipped 1 of 25 markers that match marked:* and cannot be probed safely (marked:ints at {named(broken.path, site)}: {HAS_BREAKPOINT})\n',
        'what kymo says')
    check_records(without=['ints'])
    broken.end()


def test_a_breakpoint_on_a_place_leaves_that_marker_off_and_out():
    broken = Broken()
    _, (place, ) = notes(broken.path, 'ints')
    broken.put(place)
    each = recorder(broken.pid, 'data', '-m', 'marked:*')
    check_equal((broken.wanted('ints'), broken.wanted('longs')), ([0], [1]), 'who wants them')
    broken.go()
    each.end(signal.SIGINT).ok()
    check_same(
        each.err,
        f'kymo: warning: skipped 1 of 25 markers that match marked:* and cannot be probed safely (marked:ints at {named(broken.path, place)}: {HAS_BREAKPOINT})\n',
        'what kymo says')
    check_records(without=['ints'])
    broken.end()


def test_breakpoints_on_many_markers_are_found_at_once():
    broken = Broken()
    names = ['ints', 'longs', 'reals', 'pointers', 'mixed', 'text', 'eight', 'small', 'nothing', 'costly', 'alive']
    for i, name in enumerate(names):
        for vaddr in notes(broken.path, name)[i % 2]:
            broken.put(vaddr)
    said = record_around(broken, '-m', 'marked:*')
    check(
        said.startswith(
            f'kymo: warning: skipped {len(broken.kept)} of 25 markers that match marked:* and cannot be probed safely (first: '
        ), 'what kymo says', said)
    check_records(without=names)
    broken.end()


def test_what_is_there_and_is_no_breakpoint_is_said_to_be_a_patch():
    broken = Broken()
    (site, ), _ = notes(broken.path, 'ints')
    markers.write(broken.pid, broken.at + site, bytes.fromhex('9090909090'))
    result = kymo('record', '-m', 'marked:ints', '-m', 'marked:longs', '--pid', broken.pid, '--for', '0.1').ended(1)
    check_same(
        result.err,
        f"kymo: the only marker that matches marked:ints cannot be probed safely: marked:ints at {named(broken.path, site)}: "
        'what is there is not what its file holds: something else has patched it\n', 'what kymo says')
    markers.write(broken.pid, broken.at + site, markers.NOP)
    broken.end()


def test_a_marker_that_is_named_and_has_a_breakpoint_is_an_error_and_nothing_is_on():
    broken = Broken()
    for vaddr in (notes(broken.path, 'ints')[0][0], notes(broken.path, 'ints')[1][0]):
        broken.put(vaddr)
        result = kymo('record', '-m', 'marked:longs', '-m', 'marked:ints', '--pid', broken.pid, '--for', '0.1').ended(1)
        check_same(
            result.err,
            f"kymo: the only marker that matches marked:ints cannot be probed safely: marked:ints at {named(broken.path, vaddr)}: {HAS_BREAKPOINT}\n",
            'what kymo says')
        check_equal(set(markers.gates(broken.pid, broken.path)), {(0, 0, 0)}, 'gates')
        check(not remains.are_there(broken.pid), 'nothing of kymo is left')
        broken.clear()
    broken.end()


def test_of_a_named_marker_the_copies_without_a_breakpoint_are_recorded():
    broken = Broken()
    sites, _ = notes(broken.path, 'copies')
    check_equal(len(sites), 3, 'copies')
    broken.put(sites[0])
    said = record_around(broken, '-m', 'copies')
    check_same(
        said,
        f'kymo: warning: skipped 1 of 3 markers that match copies and cannot be probed safely (marked:copies at {named(broken.path, sites[0])}: {HAS_BREAKPOINT})\n',
        'what kymo says')
    counts = [event_counts('data')['marked:copies'], ROUNDS // 2 * 5]
    check(0 < counts[0] < counts[1], 'some copies are recorded', counts)
    for site in sites[1:]:
        broken.put(site)
    result = kymo('record', '-m', 'copies', '--pid', broken.pid, '--for', '0.1').ended(1)
    check_same(
        result.err, 'kymo: none of the 3 markers that match copies can be probed safely: ' +
        '; '.join(f'marked:copies at {named(broken.path, site)}: {HAS_BREAKPOINT}' for site in sorted(sites)) + '\n',
        'what kymo says')
    broken.end()


def test_a_breakpoint_that_has_gone_leaves_nothing_out():
    broken = Broken()
    for vaddr in (notes(broken.path, 'ints')[0][0], notes(broken.path, 'longs')[1][0]):
        broken.put(vaddr)
    said = record_around(broken, '-m', 'marked:*')
    check('skipped 2 of 25 markers that match marked:* and cannot be probed safely (first: ' in said, 'what kymo says',
          said)
    broken.clear()
    check_same(record_around(broken, '-m', 'marked:*'), '', 'what kymo says then')
    check_records()
    broken.end()


def test_uprobes_of_the_kernel_on_markers_and_a_recording_of_the_others(tmp):
    """Each counts what is its; newer kernels make calls of those that are hit."""
    path = shutil.copy(target_path('marked'), tmp / 'marked')
    process = start(path, '-w', ROUNDS)
    process.wait_for('ready')
    ints, longs = notes(path, 'ints')[0][0], notes(path, 'longs')[1][0]
    offset = places.to_offset(str(path))
    uprobes = kernelcount.PerfCounter(process.pid,
                                      {'ints': (str(path), offset(ints)), 'longs': (str(path), offset(longs))})
    for i in range(2):
        each = recorder(process.pid, 'data', '-m', 'marked:*')
        process.send('\n')
        process.wait_for('(done\n){%d}' % (i + 1))
        each.end(signal.SIGINT).ok()
        check_same(
            each.err,
            f'kymo: warning: skipped 2 of 25 markers that match marked:* and cannot be probed safely (first: marked:ints at {named(path, ints)}: {HAS_BREAKPOINT}; '
            f'marked:longs at {named(path, longs)}: {HAS_BREAKPOINT})\n', 'what kymo says')
        check_records(without=['ints', 'longs'])
        check_equal(uprobes.counts(), {'ints': (i + 1) * ROUNDS, 'longs': 0}, 'what the kernel counts')
    check_equal(process.end().ok().json()['ints'], 2 * ROUNDS, 'passes')


def put_breakpoint_meanwhile(tmp):
    path = shutil.copy(target_path('libmarked.so'), tmp / 'libmarked.so')
    process = target('reopener', path, 1)
    process.send('o')
    process.wait_for('open .*\n')
    each = recorder(process.pid, 'data', '-m', 'libmarked:*')
    process.send('c')
    process.wait_for('closed')
    sites = notes(path, 'lib_work')[0]
    uprobes = kernelcount.PerfCounter(
        process.pid, {f's{i}': (str(path), places.to_offset(str(path))(site)) for i, site in enumerate(sites)})
    process.send('o')
    process.wait_for('open .*\nclosed\nopen .*\n')
    each.end(signal.SIGINT).ok()
    said = '; '.join(f'libmarked:lib_work at {named(path, site)}: {HAS_BREAKPOINT}' for site in sorted(sites))
    n = '1 marker that matches libmarked:*' if len(sites) == 1 else f'{len(sites)} markers that match libmarked:*'
    first = '' if len(sites) == 1 else 'first: '
    check_same(each.err, f'kymo: warning: skipped {n} and cannot be probed safely ({first}{said})\n', 'what kymo says')
    check_equal(event_counts('data')['libmarked:lib_comes'], 100, 'records of another marker')
    check(sum(uprobes.counts().values()) > 100, 'the kernel counts', uprobes.counts())
    process.end().ok()


def test_a_breakpoint_in_a_library_that_comes_back():
    """Its markers were recorded before: they are not tried anew, but for the one."""
    unless_late(put_breakpoint_meanwhile)


# ---- SDT probes ----------------------------------------------------------------------------------


def sdt_places(path):
    """{name: [vaddr]}"""
    found = {}
    for _, _, _, desc in markers.Elf(path).notes('.note.stapsdt'):
        _, name, _ = desc[24:].split(b'\0')[:3]
        found.setdefault(name.decode(), []).append(int.from_bytes(desc[:8], 'little'))
    return found


class Sdted:
    def __init__(self, tmp):
        self.path = build(tmp)
        self.process, self.times = start(self.path, ROUNDS, 'log', 'wait'), 0
        self.process.wait_for('ready')
        self.pid = self.process.pid
        self.at = markers.base(self.pid, self.path)

    def go(self):
        self.times += 1
        self.process.send('\n')
        self.process.wait_for('(done\n){%d}' % self.times)


def test_a_breakpoint_on_an_sdt_probe_leaves_that_one_out_and_its_semaphore_alone(tmp):
    sdted = Sdted(tmp)
    (place, ) = sdt_places(sdted.path)['guarded']
    kept = markers.read(sdted.pid, sdted.at + place, 1)
    markers.write(sdted.pid, sdted.at + place, BREAKPOINT)
    each = recorder(sdted.pid, 'data', '-m', 'sdted:*')
    check_equal(sorted(markers.counters(sdted.pid, sdted.path)), [0] + [1] * 7, 'semaphores')
    sdted.go()
    each.end(signal.SIGINT).ok()
    n = sum(map(len, sdt_places(sdted.path).values()))
    check_same(
        each.err,
        f'kymo: warning: skipped 1 of {n} markers that match sdted:* and cannot be probed safely (sdted:guarded at {named(sdted.path, place)}: {HAS_BREAKPOINT})\n',
        'what kymo says')
    check_equal((event_counts('data').get('sdted:guarded', 0), event_counts('data')['sdted:shared']), (0, 2 * ROUNDS),
                'records')
    markers.check_off(sdted.pid, sdted.path)
    markers.write(sdted.pid, sdted.at + place, kept)
    sdted.process.end().ok()


def test_a_semaphore_that_can_count_no_further_leaves_its_probes_out(tmp):
    """So it is as if a tracer had taken 1 from 0."""
    sdted = Sdted(tmp)
    semaphores = markers.semaphores(sdted.path)
    shared = next(
        int.from_bytes(desc[16:24], 'little') for _, _, _, desc in markers.Elf(sdted.path).notes('.note.stapsdt')
        if b'\0shared\0' in desc[24:])
    markers.write(sdted.pid, sdted.at + shared, b'\xff\xff')
    each = recorder(sdted.pid, 'data', '-m', 'sdted:*')
    check_equal([n for address, n in zip(semaphores, markers.counters(sdted.pid, sdted.path)) if address != shared],
                [1] * 7, 'semaphores')
    sdted.go()
    each.end(signal.SIGINT).ok()
    found = sdt_places(sdted.path)
    check_same(
        each.err,
        f'kymo: warning: skipped 2 of {sum(map(len, found.values()))} markers that match sdted:* and cannot be probed safely (first: '
        + '; '.join(f'sdted:shared at {named(sdted.path, place)}: its counter has come to its end'
                    for place in sorted(found['shared'])) + ')\n', 'what kymo says')
    counts = event_counts('data')
    check_equal((counts['sdted:guarded'], counts.get('sdted:shared', 0)), (ROUNDS, 0), 'records')
    check_equal(sorted(markers.counters(sdted.pid, sdted.path)), [0] * 7 + [0xffff], 'semaphores then')
    sdted.process.end().ok()


def test_a_semaphore_that_another_tracer_has_written_is_never_taken_below_0(tmp):
    """0 and lower values turn the probes off for all; a leaving recorder subtracts what is there, at most its own."""
    for written, left in ((0, 0), (1, 0), (3, 2)):
        sdted = Sdted(tmp)
        each = recorder(sdted.pid, 'data', '-m', 'sdted:*')
        for address in markers.semaphores(sdted.path):
            markers.write(sdted.pid, sdted.at + address, written.to_bytes(2, 'little'))
        sdted.go()
        each.end(signal.SIGINT).ok()
        check_equal(
            event_counts('data').get('sdted:guarded', 0), ROUNDS if written else 0,
            f'records when {written} was written')
        check_equal(set(markers.counters(sdted.pid, sdted.path)), {left}, f'semaphores when {written} was written')
        sdted.process.end().ok()


# ---- probes on markers ---------------------------------------------------------------------------


def test_a_probe_on_a_function_that_begins_with_a_marker_is_refused_and_why_is_said():
    path, process = target_path('marked'), target('marked', '-w', ROUNDS)
    check_equal(named(path, notes(path, 'nothing')[0][0]), 'mark_nothing', 'where the marker is')
    why = 'there is the NOP of the marker kymo:nothing, which changes when that is turned on; -m kymo:nothing records it'
    result = kymo('record', '--backend', 'inproc', '-p', 'marked:mark_nothing', '--pid', process.pid, '--for',
                  '0.1').ended(1)
    check_same(result.err, f'kymo: no probe can be put at mark_nothing of {path}: {why}\n', 'what kymo says')
    result = kymo('record', '-q', '-p', 'marked:mark_[ni]*', '--pid', process.pid, '--for', '0.1').ok()
    check_same(
        result.err,
        'kymo: warning: skipped 1 of 2 functions that match marked:mark_[ni]* and cannot be probed safely (mark_nothing: '
        'there is the NOP of a marker, which changes when that is turned on (-m records markers))\n',
        'what kymo says of a glob')
    markers.check_off(process.pid, path)
    process.end().ok()


def test_a_breakpoint_in_a_function_leaves_it_out_of_a_glob():
    process, path = target('marked', '-w', ROUNDS), target_path('marked')
    at = markers.base(process.pid, path) + places.symbols(str(path))['mark_ints'][0]
    kept = markers.read(process.pid, at, 1)
    markers.write(process.pid, at, BREAKPOINT)
    each = recorder(process.pid, 'data', '-p', 'marked:mark_[ilr]*')
    markers.write(process.pid, at, kept)
    process.send('\n')
    process.wait_for('done')
    each.end(signal.SIGINT).ok()
    check_same(
        each.err,
        f'kymo: warning: skipped 1 of 4 functions that match marked:mark_[ilr]* and cannot be probed safely (mark_ints: {HAS_BREAKPOINT})\n',
        'what kymo says')
    check_equal(dict(event_counts('data')), {f'marked:mark_{name}': ROUNDS for name in ('longs', 'reals', 'looped')},
                'records')
    process.end().ok()


# ---- beside probes on each instruction -----------------------------------------------------------

AROUND = [word for name in ('mark_*', 'do_round', 'compute_*', 'on_usr1') for word in ('-p', f'marked:{name}:*')]


@timeout(300)
def test_no_marker_is_left_out_beside_a_recording_of_each_instruction_whichever_comes_first():
    """No jump of that relies on bytes at which another recording may come to put its own."""
    for first in (AROUND, ['-m', 'marked:*']):
        process, path = target('marked', '-w', ROUNDS), target_path('marked')
        before = remains.lasting_mappings(process.pid)
        one = recorder(process.pid, 'one', '--overwrite', *first)
        two = recorder(process.pid, 'two', '--overwrite', *(['-m', 'marked:*'] if first is AROUND else AROUND))
        marks, around = (two, one) if first is AROUND else (one, two)
        process.send('\n')
        process.wait_for('done')
        marks.end(signal.SIGINT).ok()
        around.end(signal.SIGINT).ok()
        check_same(marks.err, '', 'what is said of the markers')
        counts = event_counts('two' if first is AROUND else 'one')
        for name, n in ALL.items():
            check_equal(counts[f'marked:{name}'], n * ROUNDS, f'records of {name}')
        counts = event_counts('one' if first is AROUND else 'two')
        for name in ('ints', 'longs', 'reals'):
            (place, ) = notes(path, name)[1]
            check_equal([counts[f'marked:{where}'] for where in (f'mark_{name}', named(path, place))], [ROUNDS] * 2,
                        f'records of instructions around {name}')
        remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
        markers.check_off(process.pid, path)
        process.end().ok()
