"""What gdb says of variables at locations of a program, for a comparison with what kymo records there.

    found = gdb_says(command, [('f', ['*f'], ['n', 'str(name)'])])     {'f': [[3, 'three'], [4, 'four']]}
    same(4294967295, -1)
"""
import ctypes
import json
from pathlib import Path

from kymotest import program, run

# Reads asked.json: what has the words of gdb_says(). A value that gdb cannot tell is null.
GDB = r'''
import gdb, json, re
asked = json.load(open('asked.json'))
found, NESTED = {}, 8

def as_json(value, depth=0):
    """A number; of a structure {member: ...}, of an array [...] or {bytes}, of an enumeration {name, number}."""
    kind = value.type.strip_typedefs()
    if depth > NESTED:
        return None
    if kind.code in (gdb.TYPE_CODE_STRUCT, gdb.TYPE_CODE_UNION):
        return {field.name or '': as_json(value[field], depth + 1) for field in kind.fields()
                if not hasattr(field, 'bitpos') or not field.artificial}
    if kind.code == gdb.TYPE_CODE_ARRAY:
        first, last = kind.range()
        if kind.target().strip_typedefs().sizeof == 1:
            return {'bytes': [int(value[i]) % 256 for i in range(first, last + 1)]}
        return [as_json(value[i], depth + 1) for i in range(first, last + 1)]
    if kind.code == gdb.TYPE_CODE_ENUM:
        return {'enumerator': str(value), 'number': int(value)}
    if kind.code == gdb.TYPE_CODE_FLT:
        return {'single': float(value)} if kind.sizeof == 4 else float(value)
    return int(value)

def evaluate(word):
    """Also by the names of the function that the innermost one is inlined into."""
    frame = gdb.newest_frame()
    while True:
        frame.select()
        try:
            return gdb.parse_and_eval(word)
        except gdb.error:
            if frame.type() != gdb.INLINE_FRAME:
                raise
        frame = frame.older()

def told(word):
    try:
        if word.startswith('str('):
            text, _, length = word[4:-1].partition(', ')
            value, length = evaluate(text), int(evaluate(length or '-1'))
            kind = value.type.strip_typedefs()
            if kind.code == gdb.TYPE_CODE_PTR and kind.target().strip_typedefs().code == gdb.TYPE_CODE_VOID:
                value = value.cast(gdb.lookup_type('char').pointer())
            if kind.code == gdb.TYPE_CODE_ARRAY and not kind.sizeof:  # char name[];
                value = value.address.cast(kind.target().pointer())
            return value.string('latin-1', length=length)
        piece = re.fullmatch(r'(.*)\[(\d+)\.\.(\d+)\]', word)
        if piece:
            word = f'{piece[1]}[{piece[2]}]@{int(piece[3]) - int(piece[2]) + 1}'
        return as_json(evaluate(word))
    except (gdb.error, ValueError, TypeError):
        return None

class Look(gdb.Breakpoint):
    def __init__(self, name, where, words):
        super().__init__(where)
        self.rows, self.words = found.setdefault(name, []), words

    def stop(self):
        if not asked['hits'] or len(self.rows) < asked['hits']:
            self.rows.append([told(word) for word in self.words])
        else:
            self.enabled = False
        return False

def base_of(name):
    """Where the file is that ends with this: what its addresses as linked are from."""
    mappings = gdb.execute('info proc mappings', to_string=True)
    start, path = re.search(r'(0x\w+) .*\s(/\S*' + re.escape(name) + ')$', mappings, re.M).groups()
    is_fixed = open(path, 'rb').read(18)[16] == 2  # ET_EXEC
    return 0 if is_fixed else int(start, 16)

for command in asked['begin']:
    gdb.execute(command)
base = base_of(asked['file']) if asked['file'] else 0
for name, locations, words in asked['locations']:
    for where in locations:
        Look(name, where if isinstance(where, str) else f'*{base + where}', words)
gdb.execute('continue' if asked['file'] else 'run')
json.dump(found, open('found.json', 'w'))
'''

SETTINGS = ('-nx', '-batch', '-iex', 'set debuginfod enabled off')
# The same environment as without gdb, and no shell that comes first.
ALIKE = ('unset environment LINES', 'unset environment COLUMNS', 'set startup-with-shell off')


def gdb_command(command, locations, file=None, begin=(), hits=None, settings=(), folder='.'):
    """The command that writes found.json into the folder: a row of values for each of the first `hits` at each location.

    `locations` are [(name, where, words)]. `where` are texts as gdb's break takes them; or numbers, which are addresses
    as linked of the file whose path ends with `file`. That one is mapped when gdb has executed `begin`.
    """
    (Path(folder) / 'look.py').write_text(GDB)
    (Path(folder) / 'asked.json').write_text(
        json.dumps({'hits': hits, 'file': file, 'begin': list(begin), 'locations': list(locations)}))
    return [program('gdb'), *SETTINGS, *settings, '-x', 'look.py', '--args', *command]


def gdb_says(command, locations, seconds=120, **options):
    """{name: a row of values for each hit}, of a command that is run to its end."""
    Path('found.json').unlink(missing_ok=True)
    result = run(*gdb_command(command, locations, **options), seconds=seconds)
    return result.ok() and json.loads(Path('found.json').read_text())


def _same_bytes(value, told):
    """An array of bytes: kymo has texts up to their NUL, and bytes in hexadecimal or as numbers."""
    if isinstance(value, str):
        text = bytes(told).split(b'\0')[0]
        return value.replace(' ', '') == bytes(told).hex() or value == text.decode(errors='replace')
    return isinstance(value, list) and len(value) == len(told) and all((a - b) % 256 == 0 for a, b in zip(value, told))


def _same_float(value, told, is_single):
    """kymo has as many digits as tell one float from the next, and JSON has no infinity."""
    value = float(value) if isinstance(value, str) and value.lstrip('-') in ('inf', 'nan') else value
    if not isinstance(value, (int, float)):
        return False
    kind = ctypes.c_float if is_single else ctypes.c_double
    return kind(value).value == kind(told).value or value != value and told != told


def same(value, told):
    """Whether what kymo has recorded is what gdb has told. Neither may know it. Numbers may differ in their signs."""
    if value is None or told is None:
        return value is told
    if isinstance(told, dict) and 'enumerator' in told:
        return value == told['enumerator'] or isinstance(value, int) and same(value, told['number'])
    if isinstance(told, dict) and 'bytes' in told:
        return _same_bytes(value, told['bytes'])
    if isinstance(told, dict) and 'single' in told:
        return _same_float(value, told['single'], True)
    if isinstance(told, dict):
        # members that lie over others are left out by kymo, and so are those behind its limit
        return isinstance(value, dict) and bool(value) and all(
            name in told and same(member, told[name]) for name, member in value.items())
    if isinstance(told, list):
        return isinstance(value, list) and len(value) == len(told) and all(map(same, value, told))
    if isinstance(told, str):
        return value == told or isinstance(value, str) and value.endswith('…') and told.startswith(value[:-1])
    if isinstance(told, float):
        return _same_float(value, told, False)
    return isinstance(value, int) and (value - told) % 2**64 == 0
