"""Programs of every kind of linking and language: they do what they do without probes, and counts are right."""
import collections
import random
import re
import struct

import comparing
import places
import processes
import remains
from kernelcount import count_command
from kymotest import (KYMO, SOURCE, check, check_equal, check_same, event_counts, events, kymo, program, record,
                      report_json, run, skip, start, start_record, target, target_path)

VARIANTS = ['callmany', 'callmany-nopie', 'callmany-static', 'callmany-static-pie']
FUNCTIONS = ['work_a', 'work_b', 'work_six', 'work_eight', 'work_redzone']


def check_variant(path, short):
    """Its functions are counted when it is launched, and when it runs already; every instruction of them, too."""
    for function in FUNCTIONS:
        record('-p', f'{path}:{function}', '--', path, '1000', function).ok()
        check_equal(event_counts(), {f'{short}:{function}': 1000}, f'{short} launched')
    process = start(path, '-w', '1000')
    process.wait_for('^ready$')
    before = remains.lasting_mappings(process.pid)
    recorder = start_record(process.pid, '-p', f'{short}:work_a n=%edi:s32')
    process.send('\n')
    process.wait_for('^work_a 1000$')
    recorder.end(2).ok()
    check_equal([event['n'] for event in events()], list(range(1000)), 'arguments')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(input='\n').ok()
    refusals, wanted = {}, [(path, offset) for function in FUNCTIONS
                            for offset in places.instructions_of(path, function)]
    counts = places.compare_places([path, '200', 'work_b'], wanted, refusals)
    print(short, places.tell(refusals, len(wanted)))
    check(any(counts.values()), 'they ran')
    # Where the last byte of a function can lead to depends on where the pad of the next function is.
    check(len(counts) >= 0.94 * len(wanted), 'nearly all have a place', places.tell(refusals, len(wanted)))


def test_static_programs():
    check_variant(target_path('callmany-static'), 'callmany-static')


def test_static_programs_that_are_loaded_anywhere():
    check_variant(target_path('callmany-static-pie'), 'callmany-static-pie')


def test_programs_at_fixed_addresses():
    check_variant(target_path('callmany-nopie'), 'callmany-nopie')


def compile_with(compiler, tmp, name, *flags):
    path = str(tmp / name)
    run(program(compiler), '-O2', *flags, '-o', path, SOURCE / 'tests/targets/callmany.c',
        SOURCE / 'tests/targets/work.c').ok()
    return path


def test_programs_of_musl(tmp):
    check_variant(compile_with('musl-gcc', tmp, 'musl-dynamic'), 'musl-dynamic')


def test_static_programs_of_musl(tmp):
    check_variant(compile_with('musl-gcc', tmp, 'musl-static', '-static'), 'musl-static')


def test_functions_of_musl_itself(tmp):
    path = compile_with('musl-gcc', tmp, 'musl-dynamic')
    libc = re.search(r'interpreter: (\S+)\]', run('readelf', '-lW', path).ok().out)[1]
    result = record('-p', f'{libc}:write n=%dx', '-p', f'{libc}:printf', '--', path, '10').ok()
    check_equal(result.out, 'work_a 10\n', 'output')
    check(sum(event_counts().values()) > 0, 'calls of musl')


NO_THREAD_IDS = "threads of a process cannot be told apart in this recording: their calls may be mixed up"


def check_thread_ids(path, command, warning, option='--follow'):
    """The recorder warns, and the trace tells the report, where records may carry the process id for other threads."""
    result = record(option, '-p', f'{path}:work_a', '-r', f'{path}:work_a', '--', *command).ok()
    said = [re.sub(r'process \d+', 'process N', line) for line in result.warnings()]
    check_same(said, [f'kymo: warning: {warning}'] if warning else [], 'warnings')
    notes = [line for line in kymo('report').ok().out.splitlines() if 'told apart' in line]
    check_same(notes, [NO_THREAD_IDS] if warning else [], 'the note of the report')


def test_programs_with_one_thread_need_no_thread_ids(tmp):
    static, dynamic, musl = target_path('callmany-static'), target_path('callmany'), compile_with(
        'musl-gcc', tmp, 'musl-dynamic')
    for path in (static, dynamic, musl):
        check_thread_ids(path, [path, '10'], None)
        check_thread_ids(path, ['sh', '-c', f'{path} 10; {dynamic} 10; true'], None)


def test_where_threads_may_come_unseen_it_is_said(tmp):
    static, dynamic, musl = target_path('callmany-static'), target_path('callmany'), compile_with(
        'musl-gcc', tmp, 'musl-dynamic')
    check_thread_ids(
        static, [static, '10'], 'this program sets up its threads without the dynamic linker, and kymo does not see '
        'when (--no-follow): all records carry the process id', '--no-follow')
    check_thread_ids(
        musl, [musl, '10'],
        "the threads of process N cannot be told apart (no thread id is found in its thread control "
        'blocks): all records carry the process id', '--no-follow')
    check_thread_ids(dynamic, [dynamic, '10'], None, '--no-follow')


# ---- Go ------------------------------------------------------------------------------------------


def go_functions(path):
    """{name: (start, end)} from the table that Go's runtime unwinds with (version 1.18 and later)."""
    text = comparing.kernelcount.readelf('--sections', path)
    match = re.search(r'\.gopclntab\s+PROGBITS\s+(\w+) (\w+) (\w+)', text)
    if not match:
        return {}
    with open(path, 'rb') as file:
        file.seek(int(match[2], 16))
        table = file.read(int(match[3], 16))
    magic, n_functions = struct.unpack_from('<I', table)[0], struct.unpack_from('<Q', table, 8)[0]
    if magic not in (0xfffffff0, 0xfffffff1):
        return {}
    text_start, names, _, _, _, functions = struct.unpack_from('<6Q', table, 24)
    entries = [struct.unpack_from('<II', table, functions + 8 * i) for i in range(n_functions)]
    end = struct.unpack_from('<I', table, functions + 8 * n_functions)[0]
    found = {}
    for (low, at), high in zip(entries, [entry for entry, _ in entries[1:]] + [end]):
        name = struct.unpack_from('<i', table, functions + at + 4)[0]
        found[table[names + name:table.index(b'\0', names + name)].decode(errors='replace')] = (text_start + low,
                                                                                                text_start + high)
    return found


JSON = '{"a": [1, 2.5, {"b": null, "c": "text \\u00e9"}], "d": {"e": [true, false, []]}, "f": ["x", "y", "z"]}'


def test_a_go_program(tmp):
    """Go moves stacks and looks at return addresses; its goroutines run in any thread."""
    gron = comparing.installed('gron')
    functions = go_functions(gron)
    if not functions:
        skip(f'{gron} has no table of functions that this test reads')
    (tmp / 'some.json').write_text(JSON)
    command = [gron, '--monochrome', tmp / 'some.json']
    bare = run(*command).ok()
    own = [extent for name, extent in functions.items() if re.match(r'main\.|encoding/json\.|sort\.|strconv\.', name)]
    convert = places.to_offset(gron)
    entries = [(gron, convert(low)) for low, _ in own]
    counts = check_go(command, bare, entries)
    check(sum(counts.values()) > 100, 'its functions run', counts)
    inside = [
        (gron, offset)
        for offset in places.instructions_in(gron, [own[i] for i, place in enumerate(entries) if counts.get(place)])
    ]
    counts = check_go(command, bare, random.Random(5).sample(inside, min(1000, len(inside))))
    check(any(counts.values()), 'they run')


def check_go(command, bare, wanted):
    """Output is the same. How often functions run varies (with threads, the collector, the order of maps): what some
    run with probes has counted is what some run with the kernel's has."""
    refusals, counts = {}, collections.defaultdict(set)
    left = wanted
    for _ in range(4):
        result, left = places.without_refused(left, lambda left: record(*places.specs(left), '--', *command), refusals)
        check_same(result.ok().out, bare.out, 'stdout')
        check_equal(report_json()['lost_events'], 0, 'lost')
        for probe in report_json()['probes']:
            counts[probe['path'], probe['offset']].add(probe['count'])
    print(places.tell(refusals, len(wanted)))
    check(len(left) > 0.9 * len(wanted), 'nearly all have a place', places.tell(refusals, len(wanted)))
    sites = {f's{i}': place for i, place in enumerate(counts) if max(counts[place]) and places.can_be_counted(*place)}
    expected = [count_command(command, sites, many=True)[1] for _ in range(4)]
    wrong = [
        f'{place}: kymo {counts[place]}, kernel {[run_of[name] for run_of in expected]}'
        for name, place in sites.items() if not counts[place] & {run_of[name] for run_of in expected}
    ]
    check(len(wrong) <= len(sites) // 20, f'{len(wrong)} of {len(sites)} counts differ', *wrong)
    return collections.Counter({place: max(found) for place, found in counts.items()})


# ---- Rust ----------------------------------------------------------------------------------------


def test_a_rust_program(tmp):
    fd = comparing.installed('fdfind')
    for i in range(40):
        (tmp / f'tree/d{i % 7}/e{i % 3}').mkdir(parents=True, exist_ok=True)
        (tmp / f'tree/d{i % 7}/e{i % 3}/file{i}.txt').write_text('x')
    command = [fd, '--threads', '1', '--color', 'never', r'1\d*\.txt$', tmp / 'tree']

    def sorted_output(result):
        return sorted(result.ok().out.splitlines())

    bare = sorted_output(run(*command))
    check(len(bare) > 5, 'it finds files', bare)
    run_by_it = places.functions_run_by(fd, command)
    check(len(run_by_it) > 50, 'functions that ran', run_by_it)
    inside = [(fd, offset) for offset in places.instructions_in(fd, run_by_it)]
    for wanted in ([(fd, places.to_offset(fd)(low)) for low, _ in run_by_it], random.Random(6).sample(
            inside, min(1000, len(inside)))):
        refusals = {}
        result, left = places.without_refused(wanted, lambda left: record(*places.specs(left), '--', *command),
                                              refusals)
        print(places.tell(refusals, len(wanted)))
        check_same(sorted_output(result), bare, 'files found')
        check(len(left) > 0.9 * len(wanted), 'nearly all have a place', places.tell(refusals, len(wanted)))
        check(report_json()['events'] > 20, 'events')
        check_equal(report_json()['lost_events'], 0, 'lost')


# ---- user rights ---------------------------------------------------------------------------------


def test_a_process_without_privileges_by_setpriv(tmp):
    """Everything that root may do is gone; the process is one's own."""
    tmp.chmod(0o777)
    setpriv = [
        program('setpriv'), '--reuid=65534', '--regid=65534', '--clear-groups', '--bounding-set=-all',
        '--inh-caps=-all', '--no-new-privs'
    ]
    if run(*setpriv, 'true').status:
        skip('needs root')
    process = target('callmany', '-w', '500', user=65534)
    before = remains.lasting_mappings(process.pid)
    recorder = start(*setpriv, KYMO, 'record', '-o', 'own', '-p', 'callmany:work_a', '--pid', process.pid, cwd=tmp)
    recorder.wait_for(r'recording process', 1)
    process.send('\n')
    process.wait_for('^work_a 500$')
    check_equal(recorder.end(2).status, 0, 'exit status')
    check_equal(report_json('own')['events'], 500, 'events')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.end(input='\n').ok()
    check_equal(processes.tracer(process.pid), 0, 'tracer')
