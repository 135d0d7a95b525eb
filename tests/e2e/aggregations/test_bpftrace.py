"""What bpftrace is asked, by one-liners of its documentation and tools, and what kymo is asked for it, on one run: the
answers are equal. docs/guide/bpftrace.md has all of them.

Each function NAME of asked.c calls its_NAME with the same arguments: kymo has its probe on the former, and bpftrace on
the latter, as only one tool can have a probe at one location."""
import collections
import json
import re
import signal
from pathlib import Path

import markers
from kymotest import (KYMO, SOURCE, check, check_equal, eventually, fail, kymo, need_root, program, record, report_json,
                      run, skip, start, timeout, waits)

HERE = Path(__file__).parent
SECONDS = 100  # bpftrace compiles for seconds of a processor, which a busy machine gives it in many
THEIR_TEXT = 63  # bytes of a string
LATENCY = '{ @start[tid] = nsecs; } uretprobe:./app:%s /@start[tid]/ { %s; delete(@start[tid]); }'
CONN = 'struct conn { int fd; int state; char *peer; };'

# ---- what each of them answers -------------------------------------------------------------------


def unsigned(number):
    return int(number) % 2**64


def key_of(key):
    """Numbers as unsigned ones, and names of probes without their files, as both have other ones."""
    key = re.sub(r'^(?:\S+:)?(?:its_)?(\w+)$', r'\1', str(key))
    return unsigned(key) if re.fullmatch(r'-?\d+', key) else key


def keyed(data, value):
    """{keys: value} of a map of bpftrace's."""
    if not isinstance(data, dict):
        return {(): value(data)}
    return {tuple(map(key_of, keys.split(','))): value(entry) for keys, entry in data.items()}


def rows(table, value):
    result = {tuple(map(key_of, row['keys'])): value(row) for row in table['rows']}
    check_equal(len(result), len(table['rows']), 'rows of different keys')
    return result


def maps_by(field, other=unsigned):
    return lambda answer: keyed(answer['@'], other), lambda table: rows(table, lambda row: unsigned(row[field]))


def mean(row):
    return row['sum'] // row['count']


def theirs_of_buckets(data):
    def buckets(entry):
        return +sum(
            (collections.Counter({bucket.get('min', -1): bucket['count']}) for bucket in entry), collections.Counter())

    return {(): buckets(data)} if isinstance(data, list) else {(key_of(key), ): buckets(entry)
                                                               for key, entry in data.items()}


def mine_of_buckets(table):
    return rows(
        table,
        lambda row: {bucket['low'] if bucket['low'] is not None else -1: bucket['count'] for bucket in row['buckets']})


def stats(data):
    """The count and the sum of bpftrace's, and its mean."""
    return data['count'], data['total'], data['average']


def own_frames(names):
    """Of the program, without the two functions on which the probes are."""
    return tuple(name for name in names if name in ('straight', 'round_about', 'work', 'run'))


def theirs_of_stacks(data):
    found = {}
    for key, count in data.items():
        stack, _, name = key.partition(',')
        frames = own_frames(stack.split())
        found[frames, name] = found.get((frames, name), 0) + count
    return found


def mine_of_stacks(table):
    found = {}
    for row in table['rows']:
        stack, *names = row['keys']
        key = own_frames(frame.get('function') for frame in stack), ''.join(names)
        found[key] = found.get(key, 0) + row['count']
    return found


def totals(buckets):
    """How many there are, by key: the inner call is shorter than the outer one."""
    return {key: sum(counts.values()) for key, counts in buckets.items()}


def check_longer(table, data, what):
    """Of so many calls or more is one as long as each of bpftrace's buckets says: the call that kymo times is made around
    the other one."""
    mine, theirs = mine_of_buckets(table), theirs_of_buckets(data)
    for key, buckets in theirs.items() if table['kind'] == 'hist' else ():
        for low in buckets:
            outer, inner = (sum(n for at, n in some.items() if at >= low) for some in (mine[key], buckets))
            check(outer >= inner, f'{outer} calls of {inner} take {low} ns, by {key}: {what}', mine, theirs)


COUNT, SUM, MIN, MAX = (maps_by(field) for field in ('count', 'sum', 'min', 'max'))
AVG = (lambda answer: keyed(answer['@'], int), lambda table: rows(table, mean))
STATS = (lambda answer: keyed(answer['@'], stats), lambda table: rows(table, lambda row:
                                                                      (row['count'], row['sum'], mean(row))))
TEXTS = (lambda answer: answer['@'],
         lambda table: {key[:THEIR_TEXT]: n for (key, ), n in rows(table, lambda row: row['count']).items()})
HIST = (lambda answer: theirs_of_buckets(answer['@']), mine_of_buckets)
TIMES = (lambda answer: totals(theirs_of_buckets(answer['@'])), lambda table: totals(mine_of_buckets(table)))
STACK = (lambda answer: theirs_of_stacks(answer['@']), mine_of_stacks)
LINES = (lambda answer: sorted(answer['printf']), lambda lines: sorted(' '.join(map(str, line)) for line in lines))

# ---- what they are asked -------------------------------------------------------------------------

# (bpftrace's words, kymo's, how both answers are read)
ASKED = [('uprobe:./app:take { @ = count(); }', "--count './app:take'", COUNT),
         ('uprobe:./app:take { @[comm] = count(); }', "--count './app:take by comm'", COUNT),
         ('uprobe:./app:take { @[pid, tid] = count(); }', "--count './app:take by pid, tid'", COUNT),
         ('uprobe:./app:take { @[cpu] = count(); }', "--count './app:take by cpu'", COUNT),
         ('uprobe:./app:ssl_* { @[func] = count(); }', "--count './app:ssl_* by func'", COUNT),
         ('uprobe:./app:ssl_* { @[probe] = count(); }', "--count './app:ssl_* by probe'", COUNT),
         ('uprobe:./app:take { @[arg0 >> 12] = count(); }', "--count './app:take by arg0 >> 12'", COUNT),
         ('uprobe:./app:fetch { @[str(arg0)] = count(); }', "--count './app:fetch by str(arg0)'", COUNT),
         ('uprobe:./app:fetch { @[str(arg0), comm] = sum(arg1); }', "--sum './app:fetch arg1 by str(arg0), comm'", SUM),
         ('uprobe:./app:take /arg0 > 4096/ { @ = count(); }', "--count './app:take /arg0 > 4096/'", COUNT),
         ('uprobe:./app:take /arg0 % 2 == 0 && arg1 != 3/ { @[tid] = count(); }',
          "--count './app:take /arg0 % 2 == 0 && arg1 != 3/ by tid'", COUNT),
         ('uprobe:./app:take /pid == 4242/ { @ = count(); }', "--count './app:take /pid == 4242/'", COUNT),
         ('uprobe:./app:fetch /str(arg0) == "web"/ { @[arg1] = count(); }',
          "--count './app:fetch /str(arg0) == \"web\"/ by arg1'", COUNT),
         ('uprobe:./app:fetch /strncmp("host", str(arg0), 4) == 0/ { @ = count(); }',
          "--count './app:fetch /str(arg0, 4) == \"host\"/'", COUNT),
         ('uprobe:./app:fetch { @[str(arg0, arg1)] = count(); }', "--count './app:fetch by str(arg0, arg1)'", COUNT),
         ('uprobe:./app:fetch /str(arg0, arg1) == "host-1"/ { @ = count(); }',
          "--count './app:fetch /str(arg0, arg1) == \"host-1\"/'", COUNT),
         ('uprobe:./app:take /comm == "worker-2"/ { @[arg1] = count(); }',
          "--count './app:take /comm == \"worker-2\"/ by arg1'", COUNT),
         ('uprobe:./app:take /comm != "worker-2" && nsecs > 5/ { @[comm] = count(); }',
          "--count './app:take /comm != \"worker-2\" && nsecs > 5/ by (comm)'", COUNT),
         ('uprobe:./app:take { @ = sum(arg0); }', "--sum './app:take arg0'", SUM),
         ('uprobe:./app:take { @[comm] = min(arg0); }', "--min './app:take arg0 by comm'", MIN),
         ('uprobe:./app:take { @[comm] = max(arg0); }', "--max './app:take arg0 by comm'", MAX),
         ('uprobe:./app:take { @[tid] = avg(arg0); }', "--avg './app:take arg0 by tid'", AVG),
         ('uprobe:./app:take { @[comm] = stats(arg0); }', "--avg './app:take arg0 by comm'", STATS),
         ('uprobe:./app:take { @ = hist(arg0); }', "--hist './app:take arg0'", HIST),
         ('uprobe:./app:take { @[comm] = hist(arg0); }', "--hist './app:take arg0 by comm'", HIST),
         ('uprobe:./app:take { @ = lhist(arg0, 0, 4000, 250); }', "--lhist './app:take arg0, 0, 4000, 250'", HIST),
         ('uprobe:./app:serve { @ = sum(sarg0); }', "--sum './app:serve arg6'", SUM),
         ('uprobe:./app:serve { @[reg("si")] = count(); }', "--count './app:serve by %si'", COUNT),
         ('uprobe:./app:serve { @[((struct conn *)arg0)->fd] = count(); }', "--count './app:serve by c->fd'", COUNT),
         ('uprobe:./app:serve /((struct conn *)arg0)->state == 1/ { @[str(((struct conn *)arg0)->peer)] = count(); }',
          "--count './app:serve /c->state == 1/ by str(c->peer)'", COUNT),
         ('uprobe:./app:take { @n[pid]++; if (@n[pid] % 10 == 1) { @ = count(); } }',
          "--count './app:take sample 1/10'", COUNT),
         ('uprobe:./app:take { @[ustack(6)] = count(); }', "--count './app:take by stack'", STACK),
         ('uprobe:./app:take { @[ustack(6), comm] = count(); }', "--count './app:take by stack, comm'", STACK),
         ('uretprobe:./app:fetch { @[retval] = count(); }', "--count './app:fetch by retval'", COUNT),
         ('uretprobe:./app:fetch /(int32)retval > 0/ { @[comm] = sum(retval); }',
          "--sum './app:fetch /(int)retval > 0/ retval by comm'", SUM),
         ('uprobe:./app:fetch ' + LATENCY % ('fetch', '@ = hist(nsecs - @start[tid])'), "--hist './app:fetch duration'",
          TIMES),
         ('uprobe:./app:fetch ' + LATENCY % ('fetch', '@[comm] = hist(nsecs - @start[tid])'),
          "--hist './app:fetch duration by comm'", TIMES),
         ('uprobe:./app:fetch { @start[tid] = nsecs; @name[tid] = arg0; } uretprobe:./app:fetch /@start[tid]/ '
          '{ @[str(@name[tid])] = hist(nsecs - @start[tid]); delete(@start[tid]); delete(@name[tid]); }',
          "--hist './app:fetch duration by str(arg0)'", TIMES),
         ('uprobe:./app:ssl_* { @start[tid] = nsecs; @func[tid] = func; } uretprobe:./app:ssl_* /@start[tid]/ '
          '{ if ((int8)retval >= 1) { @[@func[tid]] = lhist((nsecs - @start[tid]) / 1000, 0, 1000, 200); } '
          'delete(@start[tid]); delete(@func[tid]); }',
          "--lhist './app:ssl_* /(s8)retval >= 1/ duration, 0, 1ms, 200us by func'", TIMES),
         ('uprobe:./app:fetch { printf("%d %s\\n", arg1, str(arg0)); }', "-p './app:fetch arg1 str(arg0)'", LINES),
         ('uprobe:./app:fetch { printf("%d %s\\n", arg1, str(arg0, arg1)); }',
          "-p './app:fetch arg1 str(arg0, arg1)'", LINES),
         ('uretprobe:./app:line { printf("%s\\n", str(retval)); }', "-r './app:line str(retval)'", LINES),
         ('uprobe:./app:fetch /arg1 > 30/ { printf("%s %d\\n", comm, tid); }', "-p './app:fetch /arg1 > 30/ comm tid'",
          LINES), ]


def script(asked, words):
    """One for all, each with maps of its own. `words`: what stands for some of theirs."""
    clauses = [CONN]
    for i, (clause, _, _) in enumerate(asked):
        clause = clause.replace('@', f'@q{i}_').replace('printf("', f'printf("q{i} ')
        clauses.append(replaced(clause, words))
    return '\n'.join(clauses + ['interval:ms:50 { printf("counts\\n"); }'])


def replaced(text, words):
    for word, other in words.items():
        text = text.replace(word, other)
    return text


def words_of(asked, i, words):
    """The option and its value, with a name for records of each question."""
    option, value = replaced(asked[i][1], words).split(' ', 1)
    value = value.strip("'")
    return option, f'p:q{i} {value}' if option in ('-p', '-r') else value


# ---- what they answer ----------------------------------------------------------------------------


def merged(pairs):
    """Of what has one name: bpftrace has a row for its address in each process."""
    result = {}
    for key, value in pairs:
        key = re.sub(r'\s*(\w+)\+\d+\n?', r'\1 ', key)
        result[key] = result[key] + value if key in result else value
    return result


def theirs(asked, result):
    """Of each question, what its maps and lines have."""
    answers = [{'printf': [], '@': None} for _ in asked]
    for line in result.out.splitlines():
        if not line.startswith('{'):  # of the program's own output
            continue
        answer = json.loads(line, object_pairs_hook=merged)
        if answer['type'] in ('map', 'hist', 'stats'):
            for name, data in answer['data'].items():
                number, _, name = name.removeprefix('@q').partition('_')
                answers[int(number)]['@' + name] = data
        elif answer['type'] == 'printf':
            for number, text in re.findall(r'^q(\d+) (.*)$', answer['data'], re.MULTILINE):
                answers[int(number)]['printf'].append(text)
        elif answer['type'] == 'lost_events':
            fail(f'bpftrace has lost lines: {line}')
    return answers


def unanswered(asked, result):
    """Words of bpftrace's that have no answer at all."""
    return [
        words for (words, _, how), answer in zip(asked, theirs(asked, result))
        if not answer['printf' if how is LINES else '@']
    ]


def mine(asked, directory, numbers=None):
    """{number: its table, or the arguments of its records}"""
    report = report_json(directory)
    check_equal(report['lost_events'], 0, 'lost')
    tables = iter(report['aggregations'])
    lines = [json.loads(line) for line in kymo('report', '--events', '--json', directory).ok().out.splitlines()]
    return {
        i: next(tables)
        if asked[i][2] is not LINES else [line['args'].values() for line in lines if line.get('name') == f'q{i}']
        for i in numbers or range(len(asked))
    }


def compare(asked, result, tables, is_same_run=True):
    check_equal(unanswered(asked, result), [], f'questions that bpftrace has no answer to\n{result}')
    their_answers = theirs(asked, result)
    for i, (words, _, (read_theirs, read_mine)) in enumerate(asked):
        found = read_mine(tables[i])
        check(found, f'hits of {words}')
        check_equal(found, read_theirs(their_answers[i]), words)
        if read_mine is TIMES[1] and is_same_run:
            check_longer(tables[i], their_answers[i]['@'], words)


# ---- one run -------------------------------------------------------------------------------------


@timeout(170)
@waits
def test_bpftrace_and_kymo_give_the_same_answers(tmp):
    need_root()
    path = markers.compile(tmp / 'app', HERE / 'asked.c', '-O1', '-g', '-fno-omit-frame-pointer',
                           '-fno-optimize-sibling-calls', '-falign-functions=32', '-pthread')
    apps = [start(path, seed) for seed in (0, 900)]
    for app in apps:
        app.wait_for('ready')
    pid, pids = str(apps[0].pid), ','.join(str(app.pid) for app in apps)
    other = start(program('bpftrace'), '-f', 'json', '-e', script(ASKED, {'4242': pid, './app:': f'{path}:its_'}))
    eventually(lambda: '"counts' in other.out or not other.is_alive(), 'bpftrace counts', SECONDS)
    if not other.is_alive():
        skip(f'bpftrace cannot run here: {other.result().err.strip()[:300]}')
    # a recording has 16 probes at one location at most
    parts = {f'part{first}': range(first, len(ASKED), 3) for first in range(3)}
    recorders = []
    for directory, part in parts.items():
        words = [word for i in part for word in words_of(ASKED, i, {'4242': pid})]
        recorders.append(start(KYMO, 'record', '-o', directory, *words, '--pid', pids))
        recorders[-1].wait_for('recording 2 processes', which=1)
    for app in apps:
        app.send('\n')
        app.wait_for('done')
    # At its end bpftrace drops lines that it has not read yet. It also leaves maps out that have names of stacks, if
    # the process is still recorded (docs/reference/limits/other-tools.md)
    n_rounds = other.out.count('"counts')
    eventually(lambda: other.out.count('"counts') > n_rounds + 3, 'bpftrace has read all lines', SECONDS)
    for recorder in recorders:
        recorder.end(signal.SIGINT).ok()
    result = other.end(signal.SIGINT).ok()
    for app in apps:
        app.end(input='\n').ok()
    tables = {}
    for directory, part in parts.items():
        tables.update(mine(ASKED, directory, part))
    compare(ASKED, result, tables)


# ---- a real program, twice -----------------------------------------------------------------------

SQL = """
create table t(id integer primary key, name text, size real);
insert into t values (1, 'one', 2.5), (2, 'two', 1e9), (3, null, 0);
insert into t select id + 3, name || id, size / 7 from t;
insert into t select id + 6, name || id, size / 7 from t;
select name, count(*), sum(size) from t group by name;
update t set name = upper(name) where id % 3 = 0;
select no such column from t;
select id, name from t where name like 'o%' limit 4;
"""

# Both have their probes on the same functions, each in a run of its own.
ASKED_OF_SQLITE = [
    ('uprobe:libsqlite3:sqlite3_value_* /pid == cpid/ { @[probe] = count(); }',
     "--count 'libsqlite3:sqlite3_value_* by probe'", COUNT),
    ('uprobe:libsqlite3:sqlite3_str_append /pid == cpid/ { @ = hist((int32)arg2); }',
     "--hist 'libsqlite3:sqlite3_str_append (int)arg2'", HIST),
    ('uretprobe:libsqlite3:sqlite3_step /pid == cpid/ { @[retval] = count(); }',
     "--count 'libsqlite3:sqlite3_step by (int)retval'", COUNT),
    ('uprobe:libsqlite3:sqlite3_prepare_v2 /pid == cpid/ { @[str(arg1)] = count(); }',
     "--count 'libsqlite3:sqlite3_prepare_v2 by str(arg1)'", TEXTS),
    ('uprobe:libsqlite3:sqlite3_exec /pid == cpid/ { @start[tid] = nsecs; } uretprobe:libsqlite3:sqlite3_exec '
     '/@start[tid]/ { @[comm] = hist(nsecs - @start[tid]); delete(@start[tid]); }',
     "--hist 'libsqlite3:sqlite3_exec duration by comm'", TIMES),
]


@timeout(120)
@waits
def test_bpftrace_and_kymo_give_the_same_answers_about_sqlite(tmp):
    need_root()
    (tmp / 'script').write_text(SQL)
    command = program('sqlite3'), '-batch', '-init', tmp / 'script', ':memory:', '.quit'
    other = run(program('bpftrace'), '-f', 'json', '-e', script(ASKED_OF_SQLITE, {}), '-c', ' '.join(map(str, command)),
                seconds=SECONDS)
    if not re.search('"@q', other.out):
        skip(f'bpftrace cannot run here: {other.err.strip()[:300]}')
    record(*(word for i in range(len(ASKED_OF_SQLITE)) for word in words_of(ASKED_OF_SQLITE, i, {})), '--', *command)
    compare(ASKED_OF_SQLITE, other, mine(ASKED_OF_SQLITE, 'kymo.data'), is_same_run=False)


# ---- the guide -----------------------------------------------------------------------------------


def test_the_guide_has_what_is_asked():
    page = (SOURCE / 'docs/guide/bpftrace.md').read_text()
    asked = ASKED + ASKED_OF_SQLITE
    missing = [words for question in asked for words in question[:2] if words not in page]
    check_equal(missing, [], 'questions that the guide does not have')
    check(len(asked) >= 25, 'questions', len(asked))
