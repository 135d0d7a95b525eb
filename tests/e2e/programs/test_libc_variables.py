"""Variables of programs as Debian ships them have the values that gdb prints: those of libc's functions, whose debug
information is in libc6-dbg, in redis, sqlite3, git, python3 and nginx."""
import json

from kymotest import check, check_equal, kymo, program, record, sampled, share, skip, timeout
from seeds import seed
from variables import gdb_says, same

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

# Where libc is mapped, before its functions are called.
BEGIN = ('unset environment LINES', 'unset environment COLUMNS', 'catch load libc.so.6', 'run', 'delete')


def find_entries():
    """Where this libc has the functions. A program may have one of the same name."""
    found = {}
    for function in ASKED:
        listed = kymo('list', '--json', '--vars', f'libc:{function}')
        if not listed.status:
            found[function] = json.loads(listed.out)[0]['vaddr']
    return found


def by_gdb(command, functions, entries):
    locations = [(function, [entries[function]], words) for function, words in functions.items()]
    return gdb_says(command, locations, file='libc.so.6', begin=BEGIN, hits=HITS)


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
                    check(same(found[function][k][i], row[i]), f'{word} of {function} in {name}, hit {k}',
                          found[function][k][i], row[i])
                n += any(row[i] is not None for row in rows)
    print(n, 'variables')
    check(n * len(PROGRAMS) >= 50 * len(programs), f'{n} variables are compared')
