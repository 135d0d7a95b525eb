"""What markers have left in an ELF file, read here once more, independently of kymo: `.note.kymo` as
include/kymo/marker.h lays it out, and `.note.stapsdt`.

    marked = Marked('program')
    marked.sites[0].name, marked.sites[0].code, marked.places[0].operands, marked.sdt[0].address

The file is linked; addresses are those in it.
"""
import collections
import struct
from pathlib import Path

from kymotest import check

Note = collections.namedtuple('Note', 'name format file line provider types code target third')
Sdt = collections.namedtuple('Sdt', 'provider name address arguments')

TYPES = {1: 's32', 2: 'u32', 3: 's64', 4: 'u64', 5: 'pointer', 6: 'f64', 7: 'string', 8: 'pointer'}
_SIZE = 36
_NOP = b'\x0f\x1f\x44\x00\x00'


class Marked:
    def __init__(self, path):
        self.path, self.bytes = str(path), Path(path).read_bytes()
        self.is_64 = self.bytes[4] == 2
        self.sections = self._sections()
        notes = list(self._notes('.note.kymo', 'kymo'))
        self.sites = [self._note(*note) for kind, *note in notes if kind == 1]
        self.places = [self._note(*note) for kind, *note in notes if kind == 2]
        probes = [self._sdt(desc) for kind, _, desc in self._notes('.note.stapsdt', 'stapsdt') if kind == 3]
        self.sdt = [probe for probe in probes if not probe.provider.startswith('lib')]  # libstdc++ has some, too

    def _sections(self):
        if self.is_64:
            offset, size, count, strings = *struct.unpack_from('<Q', self.bytes, 40), *struct.unpack_from(
                '<3H', self.bytes, 58)
            layout = '<IIQQQQ'
        else:
            offset, size, count, strings = *struct.unpack_from('<I', self.bytes, 32), *struct.unpack_from(
                '<3H', self.bytes, 46)
            layout = '<IIIIII'
        rows = [struct.unpack_from(layout, self.bytes, offset + i * size) for i in range(count)]
        names = rows[strings][4] if rows else 0
        Section = collections.namedtuple('Section', 'name kind flags address offset size')
        return [Section(self._text(names + row[0]), *row[1:]) for row in rows]

    def _text(self, offset):
        return self.bytes[offset:self.bytes.index(b'\0', offset)].decode()

    def section(self, name):
        return next((section for section in self.sections if section.name == name), None)

    def has_section(self, name):
        return self.section(name) is not None

    def at(self, address, size=None):
        """The bytes of the file that are at an address; without a size those of a string."""
        for section in self.sections:
            if section.flags & 2 and section.kind != 8 and section.address <= address < section.address + section.size:
                start = section.offset + address - section.address
                return self.bytes[start:start + size] if size else self.bytes[start:self.bytes.index(b'\0', start)]
        return None

    def is_in(self, address, flag):
        """In a section that is writable (1) or executable (4)."""
        return any(section.flags & flag and section.address <= address < section.address + section.size
                   for section in self.sections)

    def _notes(self, name, owner):
        for section in self.sections:
            at, end = section.offset, section.offset + section.size
            while section.name == name and at < end:
                name_size, size, kind = struct.unpack_from('<III', self.bytes, at)
                check(self._text(at + 12) == owner, f'the owner of {name}', self.path)
                desc = at + 12 + (name_size + 3 & ~3)
                yield kind, desc - section.offset + section.address, self.bytes[desc:desc + size]
                at = desc + (size + 3 & ~3)

    def _note(self, address, desc):
        check(len(desc) >= _SIZE, 'a note is complete', self.path)
        fields = struct.unpack_from('<3iI3iIi', desc)
        where = [address + 4 * i + field if field else 0 for i, field in enumerate(fields)]
        name, form, file, provider = ((self.at(where[i]) or b'').decode() if where[i] else None for i in (4, 5, 6, 8))
        types = [TYPES[fields[3] >> 4 * i & 15] for i in range(8) if fields[3] >> 4 * i & 15]
        return Note(name, form, file, fields[7], provider, types, where[0], where[1], where[2])

    def _sdt(self, desc):
        words = struct.unpack_from('<3Q' if self.is_64 else '<3I', desc)
        strings = desc[24 if self.is_64 else 12:].split(b'\0')
        provider, name, arguments = (text.decode() for text in strings[:3])
        base = self.section('.stapsdt.base')
        return Sdt(provider, name, words[0] + (base.address - words[1] if base else 0), arguments)

    def operands(self, place):
        return self.at(place.third).decode() if place.third else ''

    def check(self, patched=True):
        """All that holds for each note by itself."""
        addresses = set()
        for site in self.sites:
            check(self.is_in(site.third, 1) and site.third % 4 == 0, f'the gate of {site} is writable', self.path)
            check(bool(site.code) == patched, f'{site} has an instruction to change', self.path)
            if site.code:
                check(self.at(site.code, 5) == _NOP, f'{site} is a NOP of five bytes', self.path)
                check(self.is_in(site.target, 4), f'the cold block of {site} is code', self.path)
            addresses.add(site.third)
        for place in self.places:
            check(
                self.is_in(place.target, 1) and place.target % 4 == 0, f'the slots of {place} are writable', self.path)
            if place.code:
                check(self.at(place.code, 5) == _NOP, f'{place} is a NOP of five bytes', self.path)
                check(
                    len(self.operands(place).split()) == len(place.types), f'{place} has an operand for each argument',
                    self.path)
            addresses.add(place.target)
        check(len(addresses) == len(self.sites) + len(self.places), 'each copy has its own gate and slots', self.path)
        for note in self.sites + self.places:
            check(note.name and note.provider == 'kymo' and note.format and note.file and note.line,
                  f'{note} is complete', self.path)
        names = collections.Counter(site.name for site in self.sites)
        check(names == collections.Counter(probe.name for probe in self.sdt), 'each site is an SDT probe', names,
              self.sdt)
        if patched:
            check({site.code for site in self.sites} == {probe.address for probe in self.sdt},
                  'the SDT probes are at the sites', self.path)
        check(all(probe.provider == 'kymo' and not probe.arguments for probe in self.sdt), 'SDT probes', self.sdt)
        return self

    def counts(self):
        """How many sites and places each marker has: {name: (sites, places)}."""
        sites, places = (collections.Counter(note.name for note in notes) for notes in (self.sites, self.places))
        return {name: (sites[name], places[name]) for name in sorted(sites | places)}
