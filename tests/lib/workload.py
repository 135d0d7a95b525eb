#!/usr/bin/python3
"""workload.py KIND [N]: does the same work again and again, and prints a checksum of it each time, as one line; N
times, or until a SIGTERM.

KIND: sqlite, zstd, lzma, zlib, python, libc. All that it computes depends only on KIND, and so does how often each
instruction runs, if it is loaded at the same addresses: counts of two runs are compared. """
import _ctypes
import hashlib
import json
import random
import re
import signal
import sys


class Function(_ctypes.CFuncPtr):
    """For ctypes, which makes a callback when it is imported, of no use: libffi reads /proc/self/status and
    /proc/mounts for the first one, which differ between any two runs (the tracer, the process id, mounts in the
    meantime)."""
    _flags_ = _ctypes.FUNCFLAG_CDECL

    def __new__(cls, *args):
        return None if args and callable(args[0]) else super().__new__(cls, *args)


_ctypes.CFuncPtr = Function
import ctypes  # noqa: E402: behind what it is to use


def text(n, seed=1):
    choose = random.Random(seed)
    words = [bytes(choose.choices(range(97, 123), k=choose.randrange(2, 12))) for _ in range(200)]
    return b' '.join(choose.choice(words) for _ in range(n // 6))[:n]


def sqlite():
    import sqlite3
    base = sqlite3.connect(':memory:')
    base.executescript('create table t(a integer primary key, b text, c real); create index i on t(b);')

    def work():
        base.executemany('insert into t(b, c) values (?, ?)', [(f'name{i * 37 % 101}', i / 3) for i in range(60)])
        base.execute('update t set c = c * 2 where b like ?', ('%7%', ))
        rows = base.execute(
            'select b, count(*), sum(c), group_concat(a) from t group by b having count(*) > 0 order by 3 desc'
        ).fetchall()
        rows += base.execute(
            'with recursive n(x) as (select 1 union all select x + 1 from n where x < 60) '
            'select x, printf("%08.3f|%s|%x", x / 7.0, hex(x), x), substr(b, 2), upper(b) from n join t on a = x'
        ).fetchall()
        rows += base.execute(
            "select json_extract('{\"a\": [1, 2, {\"b\": 3}]}', '$.a[2].b'), date('2020-02-29', '+1 year'), "
            "replace(trim('  xyx '), 'x', 'zz'), round(abs(-2.567), 2), 'abc' glob 'a*'").fetchall()
        base.execute('delete from t')
        return repr(rows).encode()

    return work


def zstd():
    lib = ctypes.CDLL('libzstd.so.1')
    for name in ('ZSTD_compress', 'ZSTD_decompress', 'ZSTD_compressBound'):
        getattr(lib, name).restype = ctypes.c_size_t
    data = text(6000) + bytes(range(256)) * 3

    def work():
        result = b''
        for level in (1, 3, 7, 19):
            packed = ctypes.create_string_buffer(20000)
            n = lib.ZSTD_compress(packed, ctypes.c_size_t(20000), data, ctypes.c_size_t(len(data)), level)
            back = ctypes.create_string_buffer(len(data))
            m = lib.ZSTD_decompress(back, ctypes.c_size_t(len(data)), packed, ctypes.c_size_t(n))
            assert m == len(data) and back.raw == data
            result += packed.raw[:n]
        return result

    return work


def lzma():
    import lzma as library
    data = text(1500, 2)

    def work():
        packed = library.compress(data, preset=1) + library.compress(data, format=library.FORMAT_ALONE)
        assert library.decompress(library.compress(data)) == data
        return packed

    return work


def zlib():
    import zlib as library
    data = text(20000, 3)

    def work():
        packed = b''.join(library.compress(data, level) for level in (1, 6, 9))
        assert library.decompress(library.compress(data)) == data
        return packed + library.crc32(data).to_bytes(4, 'big') + library.adler32(data).to_bytes(4, 'big')

    return work


def python():
    class Node:
        def __init__(self, n):
            self.n, self.more = n, [Node(n - 1), Node(n - 2)] if n > 1 else []

        def total(self):
            return self.n + sum(node.total() for node in self.more)

    def work():
        words = text(2000, 4).decode()
        counts = {word: len(re.findall(word[::-1], words)) for word in sorted(set(words.split()))[:40]}
        value = {
            'a': [Node(6).total(), 2**200 % 97], 'b': f'{1 / 3:.9e} {10 ** 30:,}', 'c': counts, 'd':
            [str(error) for error in errors()], 'e': sorted(words.split(), key=lambda word: word[1:])[:9]
        }
        return json.dumps(json.loads(json.dumps(value)), sort_keys=True).encode()

    def errors():
        for text_of_error in ('1 / 0', '[][3]', '{}["x"]', 'int("z")'):
            try:
                eval(text_of_error)
            except Exception as error:
                yield error

    return work


def libc():
    lib = ctypes.CDLL('libc.so.6')
    lib.malloc.restype = lib.realloc.restype = lib.strdup.restype = ctypes.c_void_p
    lib.strtod.restype = ctypes.c_double
    lines = [text(40, i) for i in range(20)]

    def work():
        out, result = ctypes.create_string_buffer(4000), b''
        for i in range(20):
            lib.snprintf(out, 4000, b'%d|%5.2f|%s|%-9x|%e|%lc|%08o', i, ctypes.c_double(i / 7), lines[i], i * 77,
                         ctypes.c_double(i * 1e9), 65 + i, i)
            result += out.value
        blocks = [lib.malloc(ctypes.c_size_t(17 + 97 * i)) for i in range(60)]
        blocks = [lib.realloc(ctypes.c_void_p(block), ctypes.c_size_t(9 + 211 * i)) for i, block in enumerate(blocks)]
        for block in blocks:
            lib.free(ctypes.c_void_p(block))
        numbers = ctypes.create_string_buffer(b''.join(b'%07d\0' % (i * 7919 % 101) for i in range(60)))
        lib.qsort(numbers, ctypes.c_size_t(60), ctypes.c_size_t(8), lib.strcmp)
        result += numbers.raw
        buffer = ctypes.create_string_buffer(256)
        assert lib.regcomp(buffer, b'(a+|b*)[c-f]([0-9]+).*(end)$', 1) == 0
        result += bytes(
            lib.regexec(buffer, line, ctypes.c_size_t(0), None, 0)
            for line in (b'aad12 end', b'xx', b'bbf9end', b'c3 enD'))
        lib.regfree(buffer)
        result += b'%d %d' % (lib.strtol(b'-0x7ff', None, 16), lib.fnmatch(b'*[a-c]?x', b'zzbyx', 0))
        result += repr([lib.strtod(b'1.25e-7', None),
                        lib.strcoll(b'a', b'b') < 0,
                        lib.strncasecmp(b'ABC', b'abd', 2)]).encode()
        return result

    return work


def main():
    work = {'sqlite': sqlite, 'zstd': zstd, 'lzma': lzma, 'zlib': zlib, 'python': python, 'libc': libc}[sys.argv[1]]()
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else -1
    ended = []
    signal.signal(signal.SIGTERM, lambda *_: ended.append(True))
    while rounds and not ended:
        sys.stdout.write(hashlib.sha256(work()).hexdigest() + '\n')
        sys.stdout.flush()
        rounds -= 1


if __name__ == '__main__':
    main()
