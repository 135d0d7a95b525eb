"""Hits that are counted, added up and drawn by keys: as many as records of the same run, in each way that a recording
can end."""
import collections
import json
import re
import shutil
import signal

from kymotest import (KYMO, check, check_equal, check_matches, check_text_intact, event_counts, events, eventually,
                      kymo, need_root, program, record, report_json, run, run_on_terminal, skip, start, start_record,
                      target, target_path, timeout)

PYTHON = '/usr/bin/python3'


def tables(directory='kymo.data'):
    return report_json(directory)['aggregations']


def rows(table):
    """{keys: row}, each key once."""
    result = {tuple(row['keys']): row for row in table['rows']}
    check_equal(len(result), len(table['rows']), 'rows of different keys')
    return result


def counts(table):
    return {keys: row['count'] for keys, row in rows(table).items()}


def bucket_of(value):
    """[low, high] of a value that is not negative."""
    return (0, 0) if not value else (1 << (value.bit_length() - 1), (1 << value.bit_length()) - 1)


# ---- beside records of the same run --------------------------------------------------------------


def test_all_kinds_are_as_the_records_of_the_same_run():
    record('-p', 'libc:malloc size=arg0', '--count', 'libc:malloc by arg0', '--sum', 'libc:malloc arg0 by tid, comm',
           '--min', 'libc:malloc arg0', '--max', 'libc:malloc arg0', '--avg', 'libc:malloc arg0 by (int)arg0 & 3',
           '--hist', 'libc:malloc arg0', '--lhist', 'libc:malloc arg0, 0, 512, 64', '--count',
           'libc:malloc /arg0 > 4K/ by pid', '--top', 'libc:malloc arg0 by probe', '--', PYTHON, '-c',
           'import json').ok()
    made = [event for event in events() if event.name == 'libc:malloc']
    sizes = [event['size'] for event in made]
    check(len(sizes) > 1000, 'there are records')
    by_size, by_thread, least, greatest, means, hist, steps, large, top = tables()
    check_equal(counts(by_size), dict(collections.Counter((size, ) for size in sizes)), 'by size')
    sums = collections.Counter()
    for event in made:
        sums[event['tid']] += event['size']
    check_equal({keys[0]: row['sum'] for keys, row in rows(by_thread).items()}, dict(sums), 'by thread')
    check_equal({keys[1] for keys in rows(by_thread)}, {'python3'}, 'names')
    check_equal((least['rows'][0]['min'], greatest['rows'][0]['max']), (min(sizes), max(sizes)), 'extremes')
    for low in range(4):
        mine = [size for size in sizes if size & 3 == low]
        check_equal((rows(means)[(low, )]['count'], rows(means)[(low, )]['sum']), (len(mine), sum(mine)),
                    f'mean of {low}')
    check_equal({(bucket['low'], bucket['high']): bucket['count'] for bucket in hist['rows'][0]['buckets']},
                dict(collections.Counter(map(bucket_of, sizes))), 'by powers of two')
    check_equal({bucket['low']: bucket['count'] for bucket in steps['rows'][0]['buckets']},
                dict(collections.Counter(size // 64 * 64 if size < 512 else 512 for size in sizes)), 'by steps')
    check_equal(sum(counts(large).values()), len([size for size in sizes if size > 4096]), 'filtered')
    check_equal({keys: row['sum'] for keys, row in rows(top).items()}, {('libc:malloc', ): sum(sizes)}, 'top')
    for table in tables():
        check_equal((table['whole'], table['lost'], table['faults']), (True, 0, 0), 'all are there')


def test_nothing_is_recorded_for_them():
    result = record('--count', 'libc:malloc by arg0', '--', PYTHON, '-c', 'import json').ok()
    check_equal(set(event_counts()), {'count:libc:malloc', 'count:libc:malloc:end'}, 'events')
    check_matches(result.out, r'count of libc:malloc by arg0  [\d,]+ hits, [\d,]+ rows\n  arg0 +count\n +\d+ +[\d,]+',
                  'the table at the end')
    check_matches(result.err, r'[\d,]+ hits aggregated, none lost', 'the summary')
    check_equal(kymo('report').ok().out.split('\n\n', 1)[1], result.out.lstrip('\n'), 'the report has the same')


def test_an_action_behind_a_probe_is_in_place_of_its_records():
    record('-p', f'{target_path("callmany")}:work_b x=arg0', '--count', 'by arg1', '-p',
           f'{target_path("callmany")}:work_six', '--', target_path('callmany'), 200, 'work_b').ok()
    check_equal([counts(table) for table in tables()], [{(5, ): 200}], 'counted')
    check_equal([probe['count'] for probe in report_json()['probes']], [0], 'the other probe')


# ---- by stack ------------------------------------------------------------------------------------


def frames_of(stack):
    """What tells one stack from another; None of one that is not known."""
    return tuple((frame.get('function'), frame.get('file'), frame.get('address'), frame.get('cut_at'))
                 for frame in stack) if stack is not None else None


def by_stack(table, at=0):
    """{stack: row}, where the stack is key `at`; each once."""
    result = {frames_of(row['keys'][at]): row for row in table['rows']}
    check_equal(len(result), len(table['rows']), 'rows of different stacks')
    return result


def recorded_stacks(name):
    """Of each record of that name: its stack, and the record."""
    lines = map(json.loads, kymo('report', '--events', '--json').ok().out.splitlines())
    return [(frames_of(event['stack']), event) for event in lines
            if event['event'] == 'probe' and event['name'] == name]


def test_rows_by_stack_are_the_stacks_of_the_same_run():
    """With room for all copies of stacks, some 20 MB, however busy the recorder is."""
    record('--buffer', '64M', '--stack', '-p', 'libc:malloc size=arg0', '--count', 'libc:malloc by stack', '--sum',
           'libc:malloc arg0 by comm, stack', '--max', 'libc:malloc arg0 by stack', '--', '/bin/ls', '-l', '/etc').ok()
    found = recorded_stacks('libc:malloc')
    count, total, most = tables()
    check(len(found) > 100 and len(set(stack for stack, _ in found)) > 10, 'there are records')
    check_equal({stack: row['count'] for stack, row in by_stack(count).items()},
                dict(collections.Counter(stack for stack, _ in found)), 'counts')
    sums = collections.Counter()
    for stack, event in found:
        sums[stack] += event['args']['size']
    check_equal({stack: row['sum'] for stack, row in by_stack(total, 1).items()}, dict(sums), 'sums')
    check_equal({row['keys'][0] for row in total['rows']}, {'ls'}, 'names')
    check_equal(by_stack(most).keys(), sums.keys(), 'stacks of the greatest')
    check_equal(report_json()['lost_events'], 0, 'lost')
    text = kymo('report').ok().out
    check_matches(
        text, r'count of libc:malloc by stack  [\d,]+ hits, [\d,]+ rows\n  count\n +[\d,]+ .*\n      malloc \(/.*libc',
        'the table')
    check_matches(text, r'sum of arg0 at libc:malloc by comm, stack  .*\n  comm +sum\n  ls .*\n      malloc \(',
                  'with a name')


def test_calls_by_stack_have_that_of_their_entry():
    """Of so few calls that all copies of stacks are in the buffers, however busy the recorder is."""
    path, n_calls = target_path('callmany'), 60
    record('--stack', '-p', f'{path}:work_a', '-r', f'{path}:work_a', '--hist', f'{path}:work_a duration by stack',
           '--count', f'{path}:work_a by stack, (int)arg0 & 1', '-r', f'{path}:work_a', '--count', 'by stack', '--',
           path, n_calls, 'work_a').ok()
    hist, entries, calls = tables()
    expected = collections.Counter(stack for stack, _ in recorded_stacks('callmany:work_a'))
    check_equal(sum(expected.values()), n_calls, 'records')
    for table in (hist, calls):
        check_equal({stack: row['count'] for stack, row in by_stack(table).items()}, dict(expected), 'calls')
    check_equal(sorted((frames_of(row['keys'][0]), row['keys'][1], row['count']) for row in entries['rows']),
                sorted((stack, low, n // 2) for stack, n in expected.items() for low in (0, 1)), 'by stack and a value')
    check(all(sum(bucket['count'] for bucket in row['buckets']) == row['count'] for row in hist['rows']), 'buckets')
    check_matches(kymo('report').ok().out, r'\n  duration .*\n(?: .*\n)+?      work_a \(', 'a histogram and its stack')


def test_stacks_of_different_processes_are_one_row():
    """Each is mapped elsewhere."""
    script = f'for n in 1 2 3; do {target_path("callmany")} 10 work_six; done'
    record('--count', f'{target_path("callmany")}:work_six by stack', '--', '/bin/sh', '-c', script).ok()
    check_equal(sum(row['count'] for row in tables()[0]['rows']), 30, 'all')
    check_equal(len({frames_of(row['keys'][0]) for row in tables()[0]['rows']}), len(tables()[0]['rows']), 'rows')
    check(max(row['count'] for row in tables()[0]['rows']) % 3 == 0, 'of all three', tables())


def test_depths_and_sizes_of_stacks_that_are_keys():
    path = target_path('callmany')
    record('--stack=1', '--count', f'{path}:work_six by stack', '--', path, 40, 'work_six').ok()
    check_equal([(len(row['keys'][0]), row['keys'][0][0]['function'], row['count']) for row in tables()[0]['rows']],
                [(1, 'work_six', 40)], 'one frame')
    record('--stack-size', '64', '--count', f'{path}:work_six by stack', '--', path, 40, 'work_six').ok()
    check_equal({row['keys'][0][-1].get('cut_at') for row in tables()[0]['rows']}, {64}, 'a small copy')


def test_stacks_without_a_row_are_counted():
    result = record('--rows', 3, '--count', 'libc:malloc by stack', '--', '/bin/ls', '-l', '/etc').ok()
    table = tables()[0]
    check_equal(len(table['rows']), 3, 'rows')
    check(table['lost'] > 0, 'lost', table)
    check_matches(result.err, 'a table of 3 rows was full: [\\d,]+ hits', 'the warning')


@timeout(120)
def test_lost_stacks_are_counted():
    path, n = target_path('callmany'), 300_000
    record('--buffer', '512K', '--count', f'{path}:work_six by stack', '--', path, n, 'work_six').ok()
    report = report_json()
    check_equal(report['aggregations'][0]['hits'] + report['lost_events'], n, 'counted and lost')


@timeout(180)
def test_bpftrace_has_the_same_stacks(tmp):
    need_root()
    (tmp / 'deep.c').write_text("""
__attribute__((noinline, noclone)) int leaf(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
__attribute__((noinline, noclone)) int once(int n) { int r = leaf(n); __asm__ volatile("" : "+r"(r)); return r; }
__attribute__((noinline, noclone)) int deep(int n) { int r = n ? deep(n - 1) : once(n); __asm__ volatile("" : "+r"(r)); return r + 1; }
int usleep(unsigned int);
int main(void) { int sum = 0; for (int i = 0; i < 2000; i++) { sum += deep(i % 5); if (i % 3 == 0) sum += once(i); if (i % 50 == 0) usleep(2000); } return sum == 0; }
""")
    run(program('gcc'), '-O1', '-fno-omit-frame-pointer', '-o', 'deep', 'deep.c').ok()
    result = run(program('bpftrace'), '-f', 'json', '-e', f'uprobe:{tmp}/deep:leaf {{ @[ustack(8)] = count(); }}', '-c',
                 f'{tmp}/deep', seconds=150)
    maps = {}
    for line in result.out.splitlines():
        if line.startswith('{"type": "map"'):
            maps.update(json.loads(line)['data'])
    if result.status or '@' not in maps:
        skip(f'bpftrace cannot run here: {result.err.strip()[:200]}')
    # it pauses: copies of stacks fill a buffer in a millisecond
    record('--count', './deep:leaf by stack', '--', './deep').ok()
    leaf, found, expected = None, collections.Counter(), collections.Counter()
    for row in tables()[0]['rows']:
        own = [(frame['function'], int(frame['address'], 16)) for frame in row['keys'][0]
               if frame.get('file', '').endswith('/deep') and frame.get('function') != '_start']
        check_equal((own[0][0], own[1][0], own[-1][0]), ('leaf', 'once', 'main'), 'the ends of a stack')
        leaf = own[0][1]
        # bpftrace goes by frame pointers, and at an entry that is the caller's: it has no first caller.
        found[tuple(address for _, address in (own[0], *own[2:]))] += row['count']
    for stack, count in maps['@'].items():
        addresses = [int(line.strip(), 16) for line in stack.strip().splitlines()]
        own = [address - addresses[0] + leaf for address in addresses]
        expected[tuple(address for address in own if 0 <= address < 1 << 20)] += count
    check_equal(found, expected, 'stacks')


def test_top_shows_stacks(tmp):
    path = target_path('callmany')
    result = kymo('top', '--count', f'{path}:work_six by stack', '--', path, 50, 'work_six').ok()
    check_matches(result.out,
                  r'count of .*work_six by stack  50 hits, .*\n  count\n +\d+ .*\n      work_six \(.*\n      \S+.*\n',
                  'stacks below their rows')
    check(not list(tmp.glob('kymo.data*')), 'nothing is kept')


# ---- durations -----------------------------------------------------------------------------------


def test_durations_are_of_the_calls_that_the_report_pairs():
    record('-p', 'libc:read', '-r', 'libc:read', '--hist', 'libc:read duration by (int)arg0', '--sum',
           'libc:read retval by (int)arg0', '--avg', 'libc:read duration', '--', PYTHON, '-c',
           'import json, decimal').ok()
    report = report_json()
    hist, total, mean = report['aggregations']
    calls = report['calls'][0]
    check(calls['count'] > 20, 'calls')
    check_equal(sum(row['count'] for row in hist['rows']), calls['count'], 'timed')
    check_equal(mean['rows'][0]['count'], calls['count'], 'timed without keys')
    check_equal(counts(hist), counts(total), 'by descriptor')
    # Probes of one place take their stamps one behind the other: each duration is another.
    check(
        hist['rows'] and all(sum(bucket['count'] for bucket in row['buckets']) == row['count'] for row in hist['rows']),
        'buckets')
    check(calls['duration_ns']['min'] / 3 - 1000 < min(row['min'] for row in hist['rows']), 'the shortest', hist)


def test_recursion_and_both_ends_of_a_call():
    path = target_path('callmany')
    record('-r', f'{path}:work_a', '--hist', 'duration by (int)arg0 & 1', '--count', 'by (int)arg0 & 3', '--max',
           'duration', '--', path, 1000, 'work_a').ok()
    hist, by_entry, longest = tables()
    check_equal(counts(hist), {(0, ): 500, (1, ): 500}, 'by an argument')
    check_equal(counts(by_entry), {(n, ): 250 for n in range(4)}, 'counted at the return, by an argument')
    check_equal(longest['rows'][0]['max'], max(row['max'] for row in hist['rows']), 'the longest')


def test_calls_that_are_left_are_not_timed(tmp):
    (tmp / 'thrower.cc').write_text("""
#include <cstdio>
extern "C" __attribute__((noinline)) int inner(int n) { if (n % 3 == 0) throw n; __asm__ volatile("" ::: "memory"); return n + 1; }
extern "C" __attribute__((noinline)) int outer(int n) { try { return inner(n) * 2; } catch (int) { return inner(n + 1); } }
extern "C" __attribute__((noinline)) long deep(long n) { long rest = n ? deep(n - 1) : 0; __asm__ volatile("" : "+r"(rest)); return rest + n; }
int main() { long sum = 0; for (int i = 1; i <= 300; i++) sum += outer(i); for (int i = 0; i < 10; i++) sum += deep(20); std::printf("%ld\\n", sum); }
""")
    run(program('g++'), '-O1', '-o', tmp / 'thrower', tmp / 'thrower.cc').ok()
    record('-p', './thrower:inner', '-r', './thrower:inner', '--hist', './thrower:inner duration', '--hist',
           './thrower:outer duration', '--count', './thrower:inner', '--hist', './thrower:deep duration by arg0', '--',
           tmp / 'thrower', cwd=tmp).ok()
    report = report_json(tmp / 'kymo.data')
    inner, outer, entered, deep = report['aggregations']
    check_equal(report['calls'][0]['count'], 300, 'by the report')
    check_equal([table['hits'] for table in (inner, outer, entered, deep)], [300, 300, 400, 210], 'calls')
    check_equal(counts(deep), {(n, ): 10 for n in range(21)}, 'recursion: each call has its own argument')
    means = [rows(deep)[(n, )]['sum'] for n in range(21)]
    check_equal(means, sorted(means), 'and its own duration')


def test_what_began_before_the_recording_is_not_guessed():
    process = start(PYTHON, '-c', 'import sys, os\nprint("ready", flush=True)\nfor i in range(4): os.read(0, 1)')
    process.wait_for('ready')
    recorder = start_record(process.pid, '--hist', 'libc:read duration')
    process.send('abcd')
    recorder.end().ok()
    table = tables()[0]
    check_equal((table['hits'], table['without_entry']), (3, 1), 'the first read was under way')
    process.end().ok()


# ---- full tables, losses, ends -------------------------------------------------------------------


def test_a_full_table_is_counted_and_told():
    path = target_path('callmany')
    result = record('--rows', 4, '--count', f'{path}:work_six by arg0', '--', path, 100, 'work_six').ok()
    table = tables()[0]
    check_equal((counts(table), table['lost']), ({(n, ): 1 for n in range(4)}, 96), 'four rows, and what found no room')
    check_matches(result.err, 'a table of 4 rows was full: 96 hits', 'the warning')
    check_matches(result.err, '100 hits aggregated, 96 in no row, none lost', 'the summary')
    check_matches(result.out, '96 hits are in no row: there was no room for their keys', 'the table')


@timeout(120)
def test_lost_records_are_counted():
    path, n = target_path('callmany'), 3_000_000
    record('--buffer', '64K', '--count', f'{path}:work_six by arg3', '--', path, n, 'work_six').ok()
    report = report_json()
    check_equal(report['aggregations'][0]['hits'] + report['lost_events'], n, 'counted and lost')


def test_a_killed_recorder_leaves_the_last_interval():
    process = target('callmany', '-w', '-u', 1000, 1000, 'work_six')
    path = target_path('callmany')
    recorder = start_record(process.pid, '--interval', '0.1', '--count', f'{path}:work_six')
    process.send('go\n')
    eventually(lambda: tables() and tables()[0]['hits'] > 5, 'rows are in the trace')
    recorder.end(signal.SIGKILL)
    table = tables()[0]
    check(table['whole'] and 5 < table['hits'] <= 1000, 'the last interval', table)
    process.wait_for('^work_six 1000$')
    kymo('detach', process.pid).ok()
    check_text_intact(process.pid)
    process.end(input='\n').ok()


def test_durations_of_a_quiet_process_are_in_the_intervals():
    """Most buffers are never used there, and wait for their memory."""
    process = target('flight', 1000, 1, 100, ready=False)
    recorder = start_record(process.pid, '--interval', '0.2', '--hist', f'{target_path("flight")}:serve duration')
    eventually(lambda: sum(row['count'] for row in tables()[0]['rows']) >= 3, 'three calls in the rows of an interval')
    recorder.end(signal.SIGTERM).ok()
    process.kill()


def test_a_killed_recorder_without_intervals_is_told():
    process = target('callmany', '-w', 10, 'work_six')
    recorder = start_record(process.pid, '--count', f'{target_path("callmany")}:work_six')
    recorder.end(signal.SIGKILL)
    check_equal(tables()[0]['whole'], False, 'there are no rows')
    check_matches(kymo('report').ok().out, 'kymo was ended before it had written this table', 'the report')
    process.send('go\n')
    process.wait_for('^work_six 10$')
    process.end(input='\n').ok()


def test_rows_of_each_interval_are_in_the_trace():
    process = target('callmany', '-w', 10, 'work_six')
    recorder = start_record(process.pid, '--interval', '0.1', '--count', f'{target_path("callmany")}:work_six')
    name = f'count:{target_path("callmany")}:work_six:end'
    eventually(lambda: event_counts()[name] >= 3, 'three intervals')
    process.send('go\n')
    process.wait_for('^work_six 10$')
    recorder.end(signal.SIGINT).ok()
    check_equal(tables()[0]['hits'], 10, 'the last one')
    process.end(input='\n').ok()


# ---- several processes ---------------------------------------------------------------------------


def test_several_processes_by_pid():
    path = target_path('callmany')
    some = [target('callmany', '-w', 100 * n, 'work_six') for n in (1, 2)]
    recorder = start(KYMO, 'record', '--pid', f'{some[0].pid},{some[1].pid}', '--count',
                     f'{path}:work_six by pid, comm, tid')
    recorder.wait_for('recording 2 processes', which=1)
    for n, process in enumerate(some, 1):
        process.send('go\n')
        process.wait_for(f'^work_six {100 * n}$')
    recorder.end(signal.SIGINT).ok()
    check_equal(counts(tables()[0]),
                {(process.pid, 'callmany', process.pid): 100 * n for n, process in enumerate(some, 1)}, 'by process')
    for process in some:
        process.end(input='\n').ok()


def test_children_of_a_command():
    script = f'for n in 1 2 3; do {target_path("callmany")} $((n * 10)) work_six; done'
    record('--count', f'{target_path("callmany")}:work_six by pid', '--', '/bin/sh', '-c', script).ok()
    check_equal(sorted(counts(tables()[0]).values()), [10, 20, 30], 'by process')


def test_threads_are_named_as_they_are():
    program_text = 'import threading, os\nt = [threading.Thread(target=lambda: [os.getppid() for i in range(7)]) for i in range(5)]\n[x.start() for x in t]; [x.join() for x in t]'
    record('-p', 'libc:getppid', '--count', 'by tid, comm', '--', PYTHON, '-c', program_text).ok()
    check_equal(sorted(counts(tables()[0]).values()), [7] * 5, 'by thread')
    check_equal({keys[1] for keys in counts(tables()[0])}, {'python3'}, 'names')


# ---- beside bpftrace -----------------------------------------------------------------------------


@timeout(180)
def test_bpftrace_counts_the_same(tmp):
    """Of two runs of a program that does the same in each: on one place only one of them has its probe at a time."""
    need_root()
    shutil.copy(target_path('callmany'), 'callmany')  # no other test's processes map it
    path, n = str(tmp / 'callmany'), 5000
    script = f'uprobe:{path}:work_six {{ @count[arg0 & 7] = count(); @sum[arg0 & 3] = sum(arg0); @hist = hist(arg0); @lhist = lhist(arg0, 0, 5000, 500); }}'
    result = run(program('bpftrace'), '-f', 'json', '-e', script, '-c', f'{path} {n} work_six', seconds=150)
    if result.status:
        skip(f'bpftrace cannot run here: {result.err.strip()[:200]}')
    maps = {}
    for line in result.out.splitlines():
        if line.startswith('{"type": "map"') or line.startswith('{"type": "hist"'):
            maps.update(json.loads(line)['data'])
    record('--count', f'{path}:work_six by arg0 & 7', '--sum', f'{path}:work_six arg0 by arg0 & 3', '--hist',
           f'{path}:work_six arg0', '--lhist', f'{path}:work_six arg0, 0, 5000, 500', '--', path, n, 'work_six').ok()
    count, total, hist, steps = tables()
    check_equal({str(keys[0]): row['count'] for keys, row in rows(count).items()}, maps['@count'], 'counts')
    check_equal({str(keys[0]): row['sum'] for keys, row in rows(total).items()}, maps['@sum'], 'sums')
    check_equal([(bucket['low'], bucket['count']) for bucket in hist['rows'][0]['buckets']],
                [(bucket.get('min', bucket.get('max')), bucket['count'])
                 for bucket in maps['@hist'] if bucket['count']], 'by powers of two')
    if '@lhist' in maps:
        check_equal([bucket['count'] for bucket in steps['rows'][0]['buckets']],
                    [bucket['count'] for bucket in maps['@lhist'] if bucket['count']], 'by steps')


# ---- kymo top ------------------------------------------------------------------------------------


def test_top_in_a_pipe_is_plain_text(tmp):
    path = target_path('callmany')
    result = kymo('top', '--count', f'{path}:work_six by arg3', '--', path, 50, 'work_six').ok()
    check(re.search(r'arg3  count\n +4 +50\b', result.out), 'the last table', result)
    check('\x1b' not in result.out, 'no codes', result)
    check(not list(tmp.glob('kymo.data*')), 'nothing is kept')


def test_top_on_a_terminal_is_drawn_again_and_again():
    process = target('callmany', '-w', '-u', 2000, 1000, 'work_six')
    path = target_path('callmany')
    state = {}

    def look(popen, text):
        if 'arg3' in text and 'go' not in state:
            state['go'] = True
            process.send('go\n')
        if len(set(re.findall(r'(\d+) hits', text))) >= 3 and 'end' not in state:
            state['end'] = True
            popen.send_signal(signal.SIGINT)

    result = run_on_terminal(KYMO, 'top', '--count', f'{path}:work_six by arg3', '--pid', process.pid, after=look)
    check_equal(result.status, 0, 'exit status')
    check('\x1b[?1049h' in result.out and '\x1b[?1049l' in result.out, 'a screen of its own, and back', result)
    process.wait_for('^work_six 1000$')
    process.end(input='\n').ok()


def test_top_tells_what_its_tables_lack(tmp):
    """Hits that found no room in the buffers."""
    (tmp / 'hot.c').write_text('__attribute__((noipa)) int hot(int n) { return n + 1; }\n'
                               'int main(void) { int s = 0; for (int i = 0; i < 3000000; i++) s += hot(i & 15) > 99; '
                               'return s; }\n')
    run('gcc', '-O1', '-o', 'hot', 'hot.c').ok()
    result = kymo('top', '--buffer', '64K', '--count', './hot:hot by (int)arg0', '--', './hot').ok()
    last = result.out[result.out.rindex('count of ./hot:hot'):]
    counted = sum(int(row.replace(',', '')) for row in re.findall(r'^ +\d+ +([\d,]+) ', last, re.M))
    lost = re.search(r'^kymo: ([\d,]+) hits were lost\nkymo: a larger --buffer than 64.0 KiB', result.err, re.M)
    check(lost, 'losses are told', result)
    check_equal(counted + int(lost[1].replace(',', '')), 3000000, 'hits in rows, and lost')


# ---- bad input -----------------------------------------------------------------------------------


def test_bad_words_are_told_with_their_column():
    for words, sentence in [
        (('--count', 'by tid'), 'column 1: of what'),
        (('--count', 'libc:malloc by nosuchname'),
         r"column 16: there is no variable 'nosuchname' here|'nosuchname' is not known: .* has no debug information; .*\(libc6-dbg on Debian\)"
         ), (('--count', 'libc:malloc arg0 by tid'), 'column 13: count takes no value'),
        (('--count', 'libc:malloc by'), 'column 15: expected a key'),
        (('--count', 'libc:malloc by arg0,'), 'column 21: expected a key'),
        (('--count', 'libc:malloc by tid, pid, comm, probe, arg0'), 'column 39: an aggregation has at most 4 keys'),
        (('--count', 'libc:malloc by duration'), "column 16: 'duration' is a value"),
        (('--count', 'libc:malloc by tid if arg0'), 'column 20: write the filter between slashes'),
        (('--count', 'libc:malloc /arg0 > 1 by tid'), "column 13: expected '/'"),
        (('--hist', 'libc:malloc comm'), "column 13: 'comm' is text, and hist takes a number"),
        (('--hist', 'libc:malloc str(arg0)'), "column 13: 'str.arg0.' is text"),
        (('--hist', 'libc:malloc'), 'column 12: hist takes a value'),
        (('--sum', 'libc:malloc tid'), "column 13: 'tid' is a key"),
        (('--sum', 'libc:malloc arg0 +'), 'column 19: expected a value'),
        (('-p', 'libc:malloc', '--max', 'duration'), "column 1: 'duration' is known where the function returns"),
        (('--avg', 'libc:read duration / 1000'), 'column 11: the duration of calls is aggregated as it is'),
        (('-r', 'libc:read', '--avg', 'duration / 1000'), 'column 1: the duration of calls is aggregated as it is'),
        (('--sum', 'libc:read retval + arg0'), 'column 20: arguments are gone at the return'),
        (('--lhist', 'libc:malloc arg0'), 'column 17: expected a value, the least'),
        (('--lhist', 'libc:malloc arg0, 0, 9, 2'), 'column 19: .* whole number of steps'),
        (('--lhist', 'libc:malloc arg0, 0, 9000, 1'), 'column 19: these are 9000 steps'),
        (('--lhist', 'libc:malloc arg0, x, 9, 2'), "column 19: 'x' is no number"),
        (('-m', 'python:gc__start', '--count', 'by conn'), 'column 4: variables by name'),
        (('-m', 'python:gc__start', '--hist', 'str(arg0)'), "column 1: 'str.arg0.' is text"),
        (('--hist', 'm app:step duration'),
         "column 12: markers have no 'duration', but one whose name ends with a word such as done"),
        (('--sum', 'm app:x__done retval'), "column 15: markers have no 'retval'"),
        (('--count', 'm app:x sample 1/10'), "column 9: markers are not sampled: leave 'sample 1/10' out"),
        (('-m', 'app:x first 3'), "column 7: markers are not sampled: leave 'first 3' out"),
        (('--count', 'm app:x__done /arg0/'), 'column 15: values of markers are not known to filters'),
        (('-m', 'python:gc__start', '--count', 'by stack'), 'column 4: stacks are for probes'),
        (('--sum', 'libc:malloc stack'), "column 13: 'stack' is a key; write 'by stack'"),
        (('--buffer', '64K', '--count', 'libc:malloc by stack'), 'stacks of 8192 bytes need a --buffer of 512K'),
        (('-r', 'libc:read', '--hist', 'duration by arg0, arg1, arg2, stack', '--hist',
          'duration by arg0 + 1, arg1 + 1, arg2 + 1, stack', '--hist', 'duration by arg0 + 2'),
         "'libc:read' has 7 arguments, and the stack is one more, as is the stack pointer that its calls need: leave one out"
         ), (('--stack-size', '64', '--count', 'libc:malloc by tid'), '--stack-size is for stacks'),
        (('-p', 'libc:malloc', '--interval', '1'), '--interval is for aggregations'),
        (('--overwrite', '--count', 'libc:malloc'), '--overwrite keeps the newest records'),
        (('--backend', 'kernel', '--count', 'libc:malloc'), 'leave --backend out'),
        (('--rows', '0', '--count', 'libc:malloc'), '--rows takes a number')
    ]:
        record(*words, '--', 'true').refused(sentence, status=2)
    kymo('top', '-p', 'libc:malloc', '--', 'true').refused('nothing to show', status=2)
    kymo('top', '-p', 'libc:malloc', '--count', 'libc:free', '--', 'true').refused('shows aggregations alone', status=2)
