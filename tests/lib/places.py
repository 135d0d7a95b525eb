"""Single instructions as places for probes: which there are, by objdump; recordings of many of them; what the kernel
counts there."""
import bisect
import collections
import functools
import os
import random
import re
import subprocess
import sys

import comparing
import kernelcount
from kymotest import check, check_same, record, report_json, run

real = functools.cache(os.path.realpath)


@functools.cache
def to_offset(path):
    """A function from addresses as linked to file offsets; None for what lies in no loaded segment."""
    loads = comparing.segments(path)

    def convert(vaddr):
        return next((vaddr - start + offset for offset, start, size in loads if start <= vaddr < start + size), None)

    return convert


_INSTRUCTION = r'^ +([0-9a-f]+):\t(?!\.byte|\(bad\)|int3)\S'


def disassemble(path, low, high):
    """Addresses of the instructions in [low, high), as linked, but for those that only fill (int3). What objdump takes
    for data has none."""
    done = subprocess.run(
        ['objdump', '-d', '--no-show-raw-insn', f'--start-address=0x{low:x}', f'--stop-address=0x{high:x}', path],
        capture_output=True, text=True, env={**os.environ, 'LC_ALL': 'C'})
    check(done.returncode == 0, f'objdump {path}: {done.stderr}')
    return [int(match[1], 16) for match in re.finditer(_INSTRUCTION, done.stdout, re.MULTILINE)]


@functools.cache
def extents(path):
    """[(start, end)] of all functions, as linked, sorted: from the frames that unwinders use."""
    # readelf's status is 1 for a libc with separate debug information, without a word.
    frames = subprocess.run(['readelf', '-W', '--debug-dump=frames', path], capture_output=True, text=True,
                            env={**os.environ, 'LC_ALL': 'C'}).stdout
    found = {(int(low, 16), int(high, 16))
             for low, high in re.findall(r'^\w+ \w+ \w+ FDE .*pc=(\w+)\.\.(\w+)$', frames, re.MULTILINE)}
    check(found, f'{path} has frames')
    return sorted(extent for extent in found if extent[0] < extent[1])


@functools.cache
def symbols(path):
    """{name: (start, end)} of the functions that are named and have a size, as linked."""
    found = {}
    for line in comparing.symbol_tables(path).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] == 'FUNC' and fields[6] not in ('UND', 'ABS') and int(fields[2], 0):
            found.setdefault(fields[7].partition('@')[0], (int(fields[1], 16), int(fields[1], 16) + int(fields[2], 0)))
    return found


def instructions_of(path, function):
    """File offsets of the instructions of a named function."""
    check(function in symbols(path), f'{path} has a function {function}')
    return [to_offset(path)(vaddr) for vaddr in disassemble(path, *symbols(path)[function])]


@functools.cache
def all_instructions(path):
    """All instructions of the file, as linked, sorted."""
    done = subprocess.run(['objdump', '-d', '--no-show-raw-insn', path], capture_output=True, text=True,
                          env={**os.environ, 'LC_ALL': 'C'})
    return [int(match[1], 16) for match in re.finditer(_INSTRUCTION, done.stdout, re.MULTILINE)]


def instructions_in(path, functions):
    """File offsets of the instructions of functions that are given as extents."""
    everything, convert, found = all_instructions(path), to_offset(path), []
    for low, high in functions:
        found += [
            convert(vaddr)
            for vaddr in everything[bisect.bisect_left(everything, low):bisect.bisect_left(everything, high)]
        ]
    return found


# ---- what a workload runs ------------------------------------------------------------------------


def functions_run_by(path, command, **options):
    """Extents of those functions of `path` that `command` enters, by kernel uprobes."""
    comparing.fix_addresses()
    options = {**options, 'env': {**comparing.FIXED, **options.get('env', {})}}
    convert = to_offset(path)
    known = {
        f'f{i}': (path, convert(low)) for i, (low, _) in enumerate(extents(path))
        if convert(low) is not None and comparing.kernel_can_count(path, convert(low))
    }
    counts = kernelcount.count_command(command, known, many=True, may_lose=True, **options)[1]
    return [extents(path)[int(name[1:])] for name, count in counts.items() if count]


# ---- recording -----------------------------------------------------------------------------------

_REFUSED = re.compile(r'no probe can be put at (\S+) of (\S+): (.*)')


def refused_place(result, places, must=True):
    """Which of `places` [(path, offset)] kymo would not take, and why: by its first sentence. Unless it `must` be one
    of them, it may be None."""
    match = _REFUSED.search(result.err)
    check(match, 'all that is refused is a place', result)
    found = which_place(*match.groups(), places)
    check(found or not must, 'the place that is refused is one that was asked for', result)
    return found


def which_place(name, path, reason, places):
    """(place, reason) of a sentence of kymo's, or None."""
    path = real(path)
    convert, candidates = to_offset(path), {offset for where, offset in places if real(where) == path}
    symbol, _, plus = name.partition('+')
    tried = [int(word, 16) for word in re.findall(r'0x[0-9a-f]+', f'{name} {reason}')]
    if symbol in symbols(path):
        tried.insert(0, symbols(path)[symbol][0] + int(plus or '0', 0))
    for vaddr in tried:
        for offset in (convert(vaddr), vaddr):
            if offset in candidates:
                return (path, offset), strip(reason)
    return None


def strip(reason):
    """Without names and numbers, so that sentences about different places are the same."""
    return re.sub(r'0x[0-9a-f]+|\b\d+\b', '#', re.sub(r'the probe at \S+', 'another probe', reason))


def specs(places):
    """For kymo record, in the process: what is refused there is of interest, by the names of the symbol table."""
    return ['--backend', 'inproc', '--no-demangle'
            ] + [word for path, offset in places for word in ('-p', f'{path}:0x{offset:x}')]


def without_refused(places, attempt, refusals):
    """Call attempt(places) until none of them is refused; its Result, and the places that were left. `refusals`
    {reason: places} gets the others."""
    places = list(places)
    while True:
        result = attempt(places)
        if 'no probe can be put' not in result.err:  # an error, or a warning about a library that was loaded later
            return result, places
        refused = {}
        for sentence in _REFUSED.findall(result.err):
            found = which_place(*sentence, places)
            check(found, 'the place that is refused is one that was asked for', sentence, result)
            refused.setdefault(*found)
        for place, reason in refused.items():
            refusals.setdefault(reason, []).append(place)
        left = [kept for kept in places if (real(kept[0]), kept[1]) not in refused]
        check(len(left) < len(places), 'what is refused was among the places', refused, result)
        places = left
        if not places:
            return result, places


def compare_places(command, places, refusals, outputs=(), n_counted=500, **options):
    """Run `command` bare and with probes on all `places` at once: outputs and status are the same, and a sample of the
    counts are what the kernel counts. {place: count}. Children count too: git makes some."""
    comparing.fix_addresses()
    places = list(dict.fromkeys((real(path), offset) for path, offset in places))
    options = {**options, 'env': {**comparing.FIXED, **options.get('env', {})}}
    bare = run(*command, **options).ok()
    files = comparing.files_of(outputs)

    def attempt(left):
        # Any instruction, also of programs that handle faults: these do not look at program counters.
        return record('--buffer', '4M', '--displace-faulting', *specs(left), '--', *command, **options)

    recorded, left = without_refused(places, attempt, refusals)
    # a program does not wait forever for probes in what it loads. It may end before a recorder on a busy machine has
    # them
    for _ in range(3):
        if 'is not probed' in recorded.err and left:
            recorded, left = without_refused(left, attempt, refusals)
    if not left:
        return {}
    if 'is not probed' in recorded.err:
        print(f'{command[0]} was over before the probes were in: {recorded.err}', file=sys.stderr, flush=True)
        return {}
    recorded.ended(bare.status)
    check_same(recorded.out, bare.out, 'stdout')
    check_same('\n'.join(comparing.own_lines(recorded)), bare.err.removesuffix('\n'), 'stderr')
    check(comparing.files_of(outputs) == files, f'{outputs} differ')
    report = report_json()
    counts = {(real(probe['path']), probe['offset']): probe['count'] for probe in report['probes']}
    check_same(sorted(f'{path}+0x{offset:x}' for path, offset in counts),
               sorted(f'{real(path)}+0x{offset:x}' for path, offset in left), 'places in the report')
    # On a busy machine a program does not wait for ever for probes in a library that it loads; it is said.
    if report['lost_events'] == 0 and 'had to wait too long' not in recorded.err:
        check_sample(command, counts, n_counted, options)
    return counts


# How often counts were compared with the kernel's, and how often its probes ended the program.
compared = collections.Counter()


def check_sample(command, counts, n, options, most=400_000, status=0):
    """Counts of up to `n` places, `most` hits together, are those of kernel uprobes."""
    chosen, hits = {}, 0
    for place in random.sample(sorted(counts), len(counts)):
        if len(chosen) < n and hits + counts[place] <= most and can_be_counted(*place):
            chosen[f's{len(chosen)}'] = place
            hits += counts[place]
    if not chosen:
        return
    result, expected = kernelcount.count_command(command, chosen, children=True, many=True, **options)
    if result.status < 0:  # the kernel steps over copies of instructions, and gets a few wrong; kymo's run was right
        print(f'by the kernel\'s own probes {result.command} ended with {result.status}: not compared', file=sys.stderr,
              flush=True)
        compared['not'] += 1
        return
    check(result.status == status, 'the kernel\'s probes change what the command does', result, chosen)
    compared['equal'] += 1
    wrong = [
        f'{path}+0x{offset:x}: kymo {counts[path, offset]}, kernel {expected[name]}'
        for name, (path, offset) in chosen.items()
        if counts[path,
                  offset] != expected[name] and not (expected[name] == 0 and comes_after_cpuid(counts, path, offset))
    ]
    check(not wrong, f'{len(wrong)} of {len(chosen)} counts differ', *wrong)


_CPUID = b'\x0f\xa2'


def comes_after_cpuid(counts, path, offset):
    """Whether it is the next instruction, passed as often as kymo counts there. Some hypervisors make cpuid and go on
    after the breakpoint."""
    with open(path, 'rb') as file:
        file.seek(offset - len(_CPUID))
        return file.read(len(_CPUID)) == _CPUID and counts.get((path, offset - len(_CPUID))) == counts[path, offset]


_BAD_PREFIX = re.compile(rb'[\x64-\x67\xf2\xf3\x40-\x4f]*[\x26\x2e\x36\x3e\xf0]')
_REPEATED = re.compile(rb'(\x66|[\x48-\x4f])*[\xf2\xf3](\x66|[\x48-\x4f])*[\xa4-\xa7\xaa-\xaf]')


def can_be_counted(path, offset):
    """The kernel refuses some instructions (see comparing); those with rep it counts once a repetition, and system
    calls it counts again when they are restarted."""
    with open(path, 'rb') as file:
        file.seek(offset)
        code = file.read(15)
    return comparing.kernel_can_count(path, offset) and not _REPEATED.match(code) and not code.startswith(b'\x0f\x05') \
        and not _BAD_PREFIX.match(code)


def tell(refusals, n):
    """One paragraph: how many of `n` were refused, why."""
    total = sum(map(len, refusals.values()))
    lines = [f'{len(places)} {reason}' for reason, places in sorted(refusals.items(), key=lambda item: -len(item[1]))]
    return '\n'.join([f'{total} of {n} places refused', *(f'  {line}' for line in lines)])
