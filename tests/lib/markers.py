"""Markers of a file and what a process makes of them: notes as they are in the file, counters and instructions as they
are in memory. Reads both by itself, so that kymo is held against something else."""
import os
import re
import struct

import processes
import recorders
from kymotest import SOURCE, Failure, check, check_equal, kymo, program, run, start

NOP = bytes.fromhex('0f1f440000')
INCLUDE = SOURCE / 'include'
TARGETS = SOURCE / 'tests/targets'


def compile(path, source, *words, compiler='gcc'):
    """`source` is a path, or the text of a C program."""
    if '\n' in str(source):
        path.with_suffix('.c').write_text(source)
        source = path.with_suffix('.c')
    run(program(compiler), '-O2', '-D_GNU_SOURCE', '-I', INCLUDE, '-I', TARGETS, '-o', path, source, *words).ok()
    return path


# ---- the file ------------------------------------------------------------------------------------


class Elf:
    """As much of an ELF file of 64 bits as is needed here."""
    def __init__(self, path):
        self.path, self.data = str(path), open(path, 'rb').read()
        shoff, = struct.unpack_from('<Q', self.data, 0x28)
        size, n, names = struct.unpack_from('<HHH', self.data, 0x3a)
        headers = [struct.unpack_from('<IIQQQQIIQQ', self.data, shoff + i * size) for i in range(n)]
        strings = headers[names][4]
        self.sections = {self.string(strings + header[0]): header for header in headers}
        phoff, = struct.unpack_from('<Q', self.data, 0x20)
        size, n = struct.unpack_from('<HH', self.data, 0x36)
        segments = [struct.unpack_from('<IIQQQQQQ', self.data, phoff + i * size) for i in range(n)]
        self.low = min(segment[3] for segment in segments if segment[0] == 1) & ~0xfff

    def string(self, offset):
        return self.data[offset:self.data.index(b'\0', offset)].decode()

    def notes(self, section):
        """(type, vaddr of the descriptor, its offset in the file, its bytes)"""
        if section not in self.sections:
            return
        _, _, _, vaddr, offset, size, _, _, _, _ = self.sections[section]
        at = 0
        while at < size:
            n_owner, n, kind = struct.unpack_from('<III', self.data, offset + at)
            at += 12 + (n_owner + 3 & ~3)
            yield kind, vaddr + at, offset + at, self.data[offset + at:offset + at + n]
            at += n + 3 & ~3


class Site:
    """A note of .note.kymo; addresses are the file's, 0 for none."""
    def __init__(self, kind, vaddr, offset, desc):
        fields = struct.unpack('<iiiIiiiIi', desc[:36])
        at = [vaddr + 4 * i + value if value else 0 for i, value in enumerate(fields)]
        self.is_place, self.offset, self.vaddr = kind == 2, offset, vaddr
        self.code, self.target, self.gate, self.name = at[0], at[1], at[2], at[4]


def sites(path):
    """Those that are switched."""
    return [site for site in (Site(*note) for note in Elf(path).notes('.note.kymo')) if not site.is_place]


def name_of(path, site):
    elf = Elf(path)
    for header in elf.sections.values():
        if header[2] & 2 and header[3] <= site.name < header[3] + header[5]:
            return elf.string(header[4] + site.name - header[3])
    return None


def semaphores(path):
    """Addresses of the counters of SDT probes."""
    found = {struct.unpack_from('<Q', desc, 16)[0] for _, _, _, desc in Elf(path).notes('.note.stapsdt')}
    return sorted(found - {0})


# ---- the process ---------------------------------------------------------------------------------


def base(pid, path):
    """What is added to the file's addresses."""
    maps = [mapping for mapping in processes.maps(pid) if mapping.path == os.path.realpath(path)]
    check(maps, f'{pid} has {path} mapped')
    return min(mapping.start for mapping in maps) - Elf(path).low


def read(pid, address, size):
    with open(f'/proc/{pid}/mem', 'rb', buffering=0) as memory:
        return os.pread(memory.fileno(), size, address)


def write(pid, address, data):
    with open(f'/proc/{pid}/mem', 'r+b', buffering=0) as memory:
        check_equal(os.pwrite(memory.fileno(), data, address), len(data), 'bytes written')


def gates(pid, path):
    """What is in the gates: a list of (inside, busy, how many recordings want it)."""
    at = base(pid, path)
    found = [struct.unpack('<BBH', read(pid, at + site.gate, 4)) for site in sites(path)]
    return [(inside, busy, outside.bit_count()) for inside, busy, outside in found]


def set_busy(pid, path, busy):
    """As if the process stood still while it changes its markers itself; or not any more."""
    at = base(pid, path)
    for site in sites(path):
        write(pid, at + site.gate + 1, bytes([busy]))


def texts(pid, path):
    """What is at the sites."""
    at = base(pid, path)
    return [read(pid, at + site.code, len(NOP)) for site in sites(path) if site.code]


def counters(pid, path):
    at = base(pid, path)
    return [struct.unpack('<H', read(pid, at + address, 2))[0] for address in semaphores(path)]


def check_off(pid, path):
    """All markers and SDT probes are off, and each site is the NOP."""
    check_equal(set(gates(pid, path)) - {(0, 0, 0)}, set(), f'gates of {path}')
    check_equal(set(counters(pid, path)) - {0}, set(), f'semaphores of {path}')
    check_equal(set(texts(pid, path)) - {NOP}, set(), f'sites of {path}')


# ---- recordings ----------------------------------------------------------------------------------


def recorder(pid, name, *args, **options):
    """As the other, with buffers that a recorder on a busy machine can keep up with."""
    return recorders.recorder(pid, name, '--buffer', '64M', *args, **options)


# what kymo says if it stopped a program in the midst of that, each time: a busy machine does
BUSY = 'is changing its markers itself'


def patient_recorder(pid, name, *args):
    """Of a program that turns its markers on and off itself."""
    for _ in range(10):
        try:
            return recorder(pid, name, *args)
        except Failure as error:
            if BUSY not in str(error):
                raise
    return recorder(pid, name, *args)


def journal_entries(pid):
    """Of the first recording (struct kymo_wire_header)."""
    header = next(
        mapping for mapping in processes.maps(pid) if mapping.path.startswith('/memfd:kymo ') and not mapping.offset)
    return struct.unpack('<Q', read(pid, header.start + 64, 8))[0]


_FIELD = re.compile(r'(\w+) = ("(?:[^"\\]|\\.)*"|[^\s}]+)')


def value(text):
    """Of babeltrace2, as Python has it."""
    if text.startswith('"'):
        return re.sub(r'\\(.)', r'\1', text[1:-1])
    return int(text, 0) if re.fullmatch(r'-?(0x[0-9A-Fa-f]+|\d+)', text) else float(text)


def values(event):
    """Fields of a kymotest.Event; f64 are floats, hexadecimal integers are unsigned."""
    return {name: value(text) for name, text in event.fields.items() if name not in ('tid', 'cpu_id', 'pid')}
