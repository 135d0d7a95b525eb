"""A program recorded by kymo beside the same program counted by the kernel: outputs and exit status are the same, and
so is how often each function ran."""
import collections
import ctypes
import fnmatch
import os
import re
import shutil
from pathlib import Path

import kernelcount
import kymotest
from kymotest import check, check_equal, check_same, event_counts, fail, program, record, report_json

ADDR_NO_RANDOMIZE = 0x0040000  # personality(2)

# What else would differ from one run to the next. The same for both, as a stack that begins elsewhere is a difference
# too.
FIXED = {
    'LC_ALL': 'C', 'TZ': 'UTC', 'HOME': '/nonexistent', 'PYTHONHASHSEED': '0', 'PYTHONDONTWRITEBYTECODE': '1',
    'PERL_HASH_SEED': '0', 'PERL_PERTURB_KEYS': '0', 'GIT_CONFIG_NOSYSTEM': '1', 'SQLITE_HISTORY': '/dev/null'
}


def fix_addresses():
    """What is started from now on is loaded where it was before, as by setarch -R."""
    if ctypes.CDLL(None, use_errno=True).personality(ADDR_NO_RANDOMIZE) < 0:
        raise OSError(ctypes.get_errno(), 'personality')


def installed(name):
    """The file behind a program of the system, not of this user's PATH."""
    path = shutil.which(name, path='/usr/bin:/bin:/usr/sbin:/sbin') or program(name)
    return os.path.realpath(path)


# ---- names and file offsets, by readelf ----------------------------------------------------------


def segments(path):
    """[(offset in the file, virtual address, size)]"""
    return [
        tuple(int(text, 16) for text in match.groups())
        for match in re.finditer(r'LOAD\s+0x(\w+) 0x(\w+) 0x\w+ 0x(\w+)', kernelcount.readelf('--segments', path))
    ]


def symbol_tables(path):
    """What readelf prints of the file, and of its debug file where that is installed."""
    build_id = re.search(r'Build ID: (\w\w)(\w+)', kernelcount.readelf('--notes', path))
    debug = build_id and f'/usr/lib/debug/.build-id/{build_id[1]}/{build_id[2]}.debug'
    return ''.join(
        kernelcount.readelf('--syms', '--dyn-syms', file) for file in (path, debug) if file and os.path.exists(file))


def functions(path):
    """{name: {file offset}} of all functions that the file's symbol tables name; IFUNCs have no offset."""
    loads = segments(path)
    found = collections.defaultdict(set)
    for line in symbol_tables(path).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] in ('FUNC', 'IFUNC') and fields[6] not in ('UND', 'ABS'):
            name, vaddr = fields[7].partition('@')[0], int(fields[1], 16)
            found[name].update(vaddr - start + offset for offset, start, size in loads
                               if start <= vaddr < start + size and fields[3] == 'FUNC')
    return found


# First instructions that are long enough for a jump and the same everywhere, but for what is relative: rip-relative mov
# and lea,
# cmpl and cmpq with memory, mov of an immediate, sub from the stack pointer, call.
_LONG = re.compile(
    rb'\x48(\x8b|\x8d)[\x05\x0d\x15\x35\x3d]|\x8b[\x05\x0d\x15\x35\x3d]|\x48?\x83\x3d|[\xb8-\xbf]|\x48\x81\xec|\xe8')


def long_starts(path):
    """File offsets of functions of a stripped file that begin with such an instruction, from the frames that unwinders
    use."""
    return starts_with(path, _LONG)


def starts_with(path, pattern):
    """File offsets of functions whose first bytes match."""
    text, bytes_of_file, loads = kernelcount.readelf('--debug-dump=frames',
                                                     path), Path(path).read_bytes(), segments(path)
    vaddrs = [int(start, 16) for start in re.findall(r'^\w+ \w+ \w+ FDE .*pc=(\w+)\.\.', text, re.MULTILINE)]
    offsets = [
        vaddr - start + offset for vaddr in vaddrs for offset, start, size in loads if start <= vaddr < start + size
    ]
    return [offset for offset in offsets if pattern.match(bytes_of_file, offset)]


# push %r15, %r14, %r13: a large function.
_PUSHES = re.compile(rb'AWAVAU')


def busiest_places(path, command, at_least, **options):
    """File offsets of large functions in `path` that can be probed and that run at least so often in `command`."""
    fix_addresses()
    offsets = [
        offset for offset in starts_with(path, _PUSHES)
        if 'why safe' in kymotest.run(kymotest.KYMO_PLAIN, 'explain', path, hex(offset)).out
    ]
    options = {**options, 'env': {**FIXED, **options.get('env', {})}}
    counts = kernelcount.count_command(command, {f'o{offset}': (path, offset) for offset in offsets}, many=True,
                                       **options)[1]
    return [offset for offset in offsets if counts[f'o{offset}'] >= at_least]


# ---- the two runs --------------------------------------------------------------------------------


class Comparison:
    """What came of compare(): `result` is kymo's, `counts` are {event name: count} and `total` their sum."""
    def __init__(self, result, report):
        self.result, self.report = result, report
        self.counts = collections.Counter()  # several functions may have one name
        for probe in report['probes']:
            self.counts[probe['name']] += probe['count']
        self.total = report['events']

    def count(self, pattern):
        """How often the functions ran whose event names match; there must be some."""
        matching = [count for name, count in self.counts.items() if fnmatch.fnmatchcase(name, pattern)]
        check(matching, f'no event is named {pattern}', sorted(self.counts))
        return sum(matching)


def files_of(names):
    return {name: Path(name).read_bytes() if Path(name).exists() else None for name in names}


def compare(command, specs, outputs=(), status=0, handles_faults=False, **options):
    """Run `command` bare, under kymo with `specs`, and under the kernel's uprobes at the places that kymo has chosen.
    `outputs` are the files that it writes. `handles_faults`: it has handlers of faults, which do not look at
    program counters."""
    fix_addresses()
    options = {**options, 'env': {**FIXED, **options.get('env', {})}}
    bare = kymotest.run(*command, **options)
    check_equal(bare.status, status, f'exit status of {bare.command}\n{bare.err}')
    bare_files = files_of(outputs)
    recorded = record('--no-follow', *['--displace-faulting'] * handles_faults,
                      *(word for spec in specs for word in ('-p', spec)), '--', *command, **options).ended(status)
    check_same(recorded.out, bare.out, 'stdout')
    check_same('\n'.join(own_lines(recorded)), bare.err.removesuffix('\n'), 'stderr')
    check(files_of(outputs) == bare_files, f'{outputs} differ')
    report = report_json()
    check_trace(report)
    sites = {
        f's{i}': (probe['path'], probe['offset']) for i, probe in enumerate(report['probes'])
        if kernel_can_count(probe['path'], probe['offset'])
    }
    counted, expected = kernelcount.count_command(command, sites, many=True, **options)
    check(counted.out == bare.out and counted.status == status, 'the kernel changes what the command does', counted)
    check_counts(report, expected)
    return Comparison(recorded, report)


def kernel_can_count(path, offset):
    """Linux 6.18 silently refuses uprobes on instructions with a lock prefix. Programs go wrong with uprobes on some
    instructions with a VEX or EVEX prefix."""
    with open(path, 'rb') as file:
        file.seek(offset)
        return file.read(1) not in (b'\xf0', b'\x62', b'\xc4', b'\xc5')


def own_lines(result):
    """What the program itself wrote to stderr."""
    return [line for line in result.err.splitlines() if not line.startswith('kymo: ')]


def check_counts(report, expected):
    wrong = [
        f'{probe["name"]} ({probe["path"]}+0x{probe["offset"]:x}): kymo {probe["count"]}, kernel {expected[f"s{i}"]}'
        for i, probe in enumerate(report['probes']) if probe['count'] != expected.get(f's{i}', probe['count'])
    ]
    check(not wrong, f'{len(wrong)} of {len(expected)} counts differ', *wrong)


def check_trace(report, directory='kymo.data'):
    """babeltrace2 has no warning, and sees what the report sees; nothing was lost, but
    what vfork children did."""
    check_equal(report['lost_events'], report['lost_in_vforks'], 'lost events')
    expected = collections.Counter()
    for probe in report['probes']:
        expected[probe['name']] += probe['count']
    check_equal(report['events'], sum(expected.values()), 'events of the report')
    check_equal(event_counts(directory), +expected, 'events by babeltrace2')


def babeltrace_with_losses(directory='kymo.data'):
    """(events, lost events) by babeltrace2, which may warn of losses and of nothing else."""
    result = kymotest.run(program('babeltrace2'), directory).ok()
    discarded = [
        re.match(r'WARNING: Tracer discarded (\d+) (event|packet)s? ', line) for line in result.err.splitlines()
    ]
    check(all(discarded), 'babeltrace2 has other warnings', result.err)
    return len(kymotest.event_lines(result.out)), sum(int(match[1]) for match in discarded if match[2] == 'event')


def check_names(report, files):
    """Each event lies where readelf sees the function after which it is named. `files` are those looked at."""
    known = {path: functions(path) for path in map(os.path.realpath, files)}
    looked = 0
    for probe in report['probes']:
        path = os.path.realpath(probe['path'])
        if path in known:
            looked += 1
            symbol = probe['symbol'].rpartition('=')[2]  # of an IFUNC
            check(
                probe['offset'] in known[path].get(symbol, ()) or symbol == hex(probe['offset']),
                f'{probe["name"]} is recorded at {path}+0x{probe["offset"]:x}; readelf has '
                f'{[hex(offset) for offset in known[path].get(symbol, ())]}')
    check(looked, f'no event lies in {files}')


def check_glob(comparison, spec, path):
    """Each function of `path` that the glob of `spec` matches is recorded, or said to be left out."""
    pattern = spec.split()[0].rpartition(':')[2]
    named = functions(path)
    matching = [name for name in named if fnmatch.fnmatchcase(name, pattern)]
    places = {offset for name in matching for offset in named[name]}
    recorded = {probe['offset'] for probe in comparison.report['probes'] if os.path.realpath(probe['path']) == path}
    missing = places - recorded
    said = re.search(
        rf'^kymo: warning: skipped (\d+) of (\d+) functions that match {re.escape(spec)} and cannot be probed safely',
        comparison.result.err, re.MULTILINE)
    n_said = int(said[1]) if said else 0
    if len(missing) > n_said:
        fail(f'{len(missing)} functions that match {spec} are missing, {n_said} are said to be left out:\n' +
             '\n'.join(name for name in matching if named[name] & missing))
    return len(places & recorded)
