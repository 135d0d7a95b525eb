"""Where functions lie in an ELF file and in a process. Reads what the benchmark itself has compiled."""
import collections
import struct

SHT_SYMTAB = 2
STT_FUNC = 2
PT_LOAD = 1
# Types of the notes of owner "kymo": where a marker is, and where it hands over its arguments.
NOTE_SITE, NOTE_LOCATION = 1, 2
NOTE_SDT = 3


class Elf:
    """`functions`: name to (offset in the file, size). `sites`, `locations` of kymo's markers: name to offsets in the
    file.

    `probes` of <sys/sdt.h>, of any provider: name to (offset in the file, words of its arguments).
    """
    def __init__(self, path):
        self.path = str(path)
        with open(path, "rb") as file:
            self._data = file.read()
        if self._data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path}: not a 64-bit little-endian ELF file")
        (self._phoff, self._shoff) = struct.unpack_from("<QQ", self._data, 32)
        (self._phentsize, self._phnum, self._shentsize, self._shnum, self._names) = struct.unpack_from(
            "<HHHHH", self._data, 54)
        self._loads = self._read_loads()
        self.functions = dict(self._read_functions())
        self.sites, self.locations, self.probes = collections.defaultdict(list), collections.defaultdict(list), {}
        self._read_markers()

    def _read_loads(self):
        loads = []
        for i in range(self._phnum):
            kind, _flags, offset, address, _paddr, size = struct.unpack_from("<IIQQQQ", self._data,
                                                                             self._phoff + i * self._phentsize)
            if kind == PT_LOAD:
                loads.append((address, offset, size))
        return loads

    def _file_offset(self, address):
        for start, offset, size in self._loads:
            if start <= address < start + size:
                return address - start + offset
        return None

    def _sections(self):
        for i in range(self._shnum):
            yield struct.unpack_from("<IIQQQQIIQQ", self._data, self._shoff + i * self._shentsize)

    def _read_functions(self):
        sections = list(self._sections())
        for section in sections:
            if section[1] != SHT_SYMTAB:
                continue
            strings = sections[section[6]][4]
            for at in range(section[4], section[4] + section[5], 24):
                name, info, _other, _shndx, value, size = struct.unpack_from("<IBBHQQ", self._data, at)
                offset = self._file_offset(value)
                if info & 15 != STT_FUNC or not value or offset is None:
                    continue
                begin = strings + name
                yield self._data[begin:self._data.index(b"\0", begin)].decode(), (offset, size)

    def _string(self, at):
        return self._data[at:self._data.index(b"\0", at)].decode()

    def _notes(self, section_name):
        """(type, offset of the description in the file, its vaddr) of each note of a section."""
        sections = list(self._sections())
        for section in sections:
            if self._string(sections[self._names][4] + section[0]) != section_name:
                continue
            at, end = section[4], section[4] + section[5]
            while at < end:
                owner_size, size, kind = struct.unpack_from("<III", self._data, at)
                at += 12 + (owner_size + 3 & ~3)
                yield kind, at, section[3] + at - section[4]
                at += size + 3 & ~3

    def _read_markers(self):
        for kind, at, address in self._notes(".note.kymo"):
            # Offsets relative to their own fields: of the code, and, 16 bytes on, of the name.
            code, name = (struct.unpack_from("<i", self._data, at + field)[0] for field in (0, 16))
            table = {NOTE_SITE: self.sites, NOTE_LOCATION: self.locations}.get(kind)
            if table is not None and code:
                table[self._string(self._file_offset(address + 16 + name))].append(self._file_offset(address + code))
        for kind, at, _address in self._notes(".note.stapsdt"):
            provider = at + 24
            name = self._data.index(b"\0", provider) + 1
            words = self._data.index(b"\0", name) + 1
            offset = self._file_offset(struct.unpack_from("<Q", self._data, at)[0])
            if kind == NOTE_SDT and offset is not None:
                self.probes.setdefault(self._string(name), (offset, self._string(words).split()))

    def bytes_at(self, offset, size):
        return self._data[offset:offset + size]


class Text:
    """Locations in a process, each `offset` behind the start of a function, beside the file: how many have changed?

    `sites`: offsets in the file, in place of functions.
    """
    def __init__(self, pid, elf, names, offset=0, sites=()):
        self._mem = open(f"/proc/{pid}/mem", "rb", buffering=0)
        self._sites = sorted(sites or (elf.functions[name][0] + offset for name in names))
        self._begin = self._sites[0]
        self._size = self._sites[-1] + 8 - self._begin
        self._address = self._map(pid, elf.path)
        self._original = elf.bytes_at(self._begin, self._size)
        self.n_sites = len(self._sites)

    def _map(self, pid, path):
        with open(f"/proc/{pid}/maps", encoding="utf-8", errors="replace") as maps:
            for line in maps:
                words = line.rstrip("\n").split(None, 5)
                if len(words) < 6 or words[5] != path or "x" not in words[1]:
                    continue
                start, end = (int(word, 16) for word in words[0].split("-"))
                offset = int(words[2], 16)
                if offset <= self._begin < offset + end - start:
                    return start + self._begin - offset
        raise ValueError(f"{path} is not mapped in process {pid}")

    def read(self):
        """What stands from the first site to the last one now."""
        self._mem.seek(self._address)
        return self._mem.read(self._size)

    def changed(self, text=None):
        """How many of the sites differ from the file."""
        now = self.read() if text is None else text
        if now == self._original:
            return 0
        at = [site - self._begin for site in self._sites]
        return sum(now[i:i + 5] != self._original[i:i + 5] for i in at)

    def close(self):
        self._mem.close()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()
