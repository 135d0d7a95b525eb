"""Variables of programs as Debian ships them have the values that gdb prints: those of libc's functions, whose debug
information is in libc6-dbg, in redis, sqlite3, git, python3 and nginx."""
import json
import re
from pathlib import Path

from kymotest import check, check_equal, kymo, program, record, run, sampled, share, skip, timeout
from seeds import seed

PROGRAMS = (
    ('redis-server', '--version'),
    ('redis-cli', '--version'),
    ('sqlite3', ':memory:', 'create table t(x); insert into t values (1), (2); select sum(x) from t;'),
    ('git', 'config', '--list', '--show-origin'),
    ('/usr/bin/python3', '-S', '-c', 'print(sorted([3, 1, 2]), open("/dev/null").read())'),
    ('nginx', '-V'),
)

ASKED = {
    'malloc': ['bytes'],
    'calloc': ['n', 'elem_size'],
    'realloc': ['bytes'],
    'getenv': ['str(name)'],
    'setlocale': ['category', 'str(locale)'],
    'exit': ['status'],
    'fwrite': ['size', 'count', 'fp->_fileno', 'fp->_mode'],
    'fputs': ['str(str)', 'fp->_flags'],
    'write': ['fd', 'nbytes'],
    'read': ['fd', 'nbytes'],
    'sigaction': ['sig', 'act->sa_flags'],
    'open64': ['str(file)', 'oflag'],
    'qsort': ['n', 's'],
    'strdup': ['str(s)'],
    'fopen64': ['str(filename)', 'str(mode)'],
    'fclose': ['fp->_fileno', 'fp->_flags', 'fp->_offset'],
    'vsnprintf': ['maxlen', 'str(format)'],
    '__libc_start_main': ['argc', 'str(argv[0])', 'str(argv[1])'],
    'mmap': ['len', 'prot', 'flags'],
    'fflush': ['fp->_fileno'],
    'close': ['fd'],
    'strtol': ['str(nptr)', 'base'],
    'strtoul': ['str(nptr)', 'base'],
    'setvbuf': ['mode', 'size'],
    'sysconf': ['name'],
}
HITS = 4  # of each function, the first ones

GDB = r'''
import gdb, json
import re
asked, entries, hits = json.load(open('asked.json'))
found = {}

def told(word):
    try:
        if word.startswith('str('):
            return gdb.parse_and_eval(word[4:-1]).string('latin-1')
        return int(gdb.parse_and_eval(word))
    except gdb.error:
        return None

class Look(gdb.Breakpoint):
    def __init__(self, function, words):
        super().__init__(f'*{base + entries[function]}')
        self.rows, self.words = found.setdefault(function, []), words

    def stop(self):
        self.rows.append([told(word) for word in self.words])
        self.enabled = len(self.rows) < hits
        return False

for command in ('unset environment LINES', 'unset environment COLUMNS', 'catch load libc.so.6', 'run', 'delete'):
    gdb.execute(command)
mappings = gdb.execute('info proc mappings', to_string=True)
base = int(re.search(r'(0x\w+) .*/libc\.so\.6', mappings)[1], 16)
for function, words in asked.items():
    Look(function, words)
gdb.execute('continue')
json.dump(found, open('found.json', 'w'))
'''

SETTINGS = ('-nx', '-batch', '-iex', 'set debuginfod enabled off', '-x', 'look.py', '--args')


def find_entries():
    """Where this libc has the functions. A program may have one of the same name."""
    found = {}
    for function in ASKED:
        listed = kymo('list', '--json', '--vars', f'libc:{function}')
        if not listed.status:
            found[function] = json.loads(listed.out)[0]['vaddr']
    return found


def by_gdb(command, functions, entries):
    Path('look.py').write_text(GDB)
    Path('asked.json').write_text(json.dumps([functions, entries, HITS]))
    run(program('gdb'), *SETTINGS, *command, seconds=120)
    return json.loads(Path('found.json').read_text())


def by_kymo(command, functions):
    """The values of each hit, by functions."""
    options = [
        option for function, words in functions.items()
        for option in ('-p', f'p:{function} libc:{function} first {HITS} ' +
                       ' '.join(f'v{i}={word}' for i, word in enumerate(words)))
    ]
    record('--no-follow', *options, '--', *command)
    found = {function: [] for function in functions}
    for line in kymo('report', '--events', '--json').ok().out.splitlines():
        row = json.loads(line)
        if row['event'] == 'probe':
            found[row['name']].append([row['args'][f'v{i}'] for i in range(len(functions[row['name']]))])
    return found


def same(word, actual, expected):
    if word.startswith('str(') and expected is not None:
        return actual is not None and actual[:100] == expected[:100]
    return actual == expected or (isinstance(actual, int) and (actual - expected) % 2**64 == 0)


@sampled
@timeout(480)
def test_they_have_the_values_that_gdb_prints(tmp):
    seed()
    entries, programs = find_entries(), share(PROGRAMS, 2)
    functions = {function: ASKED[function] for function in entries}
    if len(functions) < 20:
        skip('libc has no debug information here (libc6-dbg)')
    n = 0
    for name, *words in programs:
        command = (program(name), *words)
        expected, found = by_gdb(command, functions, entries), by_kymo(command, functions)
        for function, rows in expected.items():
            check_equal(len(found[function]), len(rows), f'hits of {function} in {name}')
            for i, word in enumerate(functions[function]):
                for k, row in enumerate(rows):
                    check(same(word, found[function][k][i], row[i]), f'{word} of {function} in {name}, hit {k}',
                          found[function][k][i], row[i])
                n += any(row[i] is not None for row in rows)
    print(n, 'variables')
    check(n * len(PROGRAMS) >= 50 * len(programs), f'{n} variables are compared')
