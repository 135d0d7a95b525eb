"""Control that leaves functions in other ways than by their return, or comes from nowhere: every instruction of both
sides is probed."""
import re
from pathlib import Path

import comparing
import places
from kernelcount import library
from kymotest import check, check_equal, check_same, program, record, report_json, run, target_path

HERE = Path(__file__).parent


def every_instruction(path, functions):
    return [(path, offset) for name in functions for offset in places.instructions_of(path, name)]


# Of probes side by side in libraries: addresses are fixed here (see comparing), and above libraries there is little
# room then, so many jumps have
# no place to lead to.
DENSE = 0.7


def check_functions(command, path, functions, least=0.99, **options):
    """compare_places() on every instruction of some functions; at least such a share of them has a place."""
    refusals, wanted = {}, every_instruction(path, functions)
    counts = places.compare_places(command, wanted, refusals, **options)
    print(places.tell(refusals, len(wanted)))
    check(len(counts) >= least * len(wanted), 'nearly all have a place', places.tell(refusals, len(wanted)))
    check(any(counts.values()), 'they ran')
    return counts


def test_longjmp_setcontext_thread_ends_and_handlers():
    path = target_path('leaps')
    check_functions([path, '100'], path,
                    [name for name in places.symbols(path) if re.match(r'(leap|by|on|run)_', name)])


def test_the_functions_of_libc_that_leap():
    path = target_path('leaps')
    libc = library('libc.so.6', path)
    wanted = [
        'setjmp', '_setjmp', '__sigsetjmp', 'longjmp', '_longjmp', 'siglongjmp', '__longjmp_chk', 'getcontext',
        'setcontext', 'swapcontext', 'makecontext', 'raise', 'pthread_exit', 'pthread_kill', 'sigaction'
    ]
    check_functions([path, '50'], libc, [name for name in wanted if name in places.symbols(libc)], least=DENSE)


def test_malloc_and_free():
    perl = comparing.installed('perl')
    libc = library('libc.so.6', perl)
    script = 'my %h; $h{$_} = "x" x ($_ % 100) for 1 .. 300; delete $h{$_ * 2} for 1 .. 100; print join(",", map { length } sort keys %h), "\\n"'
    check_functions([perl, '-e', script], libc, ['malloc', 'free', 'calloc', 'realloc'], least=DENSE)


def test_threads_from_creation_to_their_end():
    path = target_path('selfcheck')
    libc = library('libc.so.6', path)
    wanted = [
        name for name in ('pthread_create', 'pthread_join', 'pthread_exit', 'pthread_kill', 'pthread_sigmask',
                          'pthread_detach') if name in places.symbols(libc)
    ]
    # How threads meet varies from run to run, and so do counts.
    refusals, all_of_them = {}, every_instruction(libc, wanted)
    result, left = places.without_refused(
        all_of_them, lambda left: record(*places.specs(left), '--', path, '-n', '300', '-t', '8', '-p', '0'), refusals)
    said = result.ok().json()
    check(len(left) >= DENSE * len(all_of_them), 'nearly all have a place', places.tell(refusals, len(all_of_them)))
    entry = places.instructions_of(libc, 'pthread_create')[0]
    counts = {probe['offset']: probe['count'] for probe in report_json()['probes']}
    check_equal(report_json()['lost_events'], 0, 'lost events')
    if entry in counts:
        check_equal(counts[entry], 8 + said['threads'], 'threads made')


def test_sigreturn_is_probed():
    """The two instructions of libc that every signal handler returns to: recorded, or refused because debuggers know
    them by their bytes."""
    path = target_path('leaps')
    libc = library('libc.so.6', path)
    code, restorer = Path(libc).read_bytes(), b'\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05'
    at = code.find(restorer)
    check(at > 0 and code.find(restorer, at + 1) < 0, f'{libc} has one place that calls sigreturn')
    refusals = {}
    result, left = places.without_refused([(libc, at), (libc, at + 7)],
                                          lambda left: record(*places.specs(left), '--', path, '100'), refusals)
    print(places.tell(refusals, 2))
    run(path, '100').ok()
    if not left:
        return
    result.ok()
    for probe in report_json()['probes']:
        check_equal(probe['count'], 100, 'handlers that returned')  # of SIGUSR2; the others are left by siglongjmp


def test_cxx_exceptions_through_probed_frames(tmp):
    path = str(tmp / 'throwing')
    run(program('g++'), '-O2', '-o', path, HERE / 'throwing.cc').ok()
    names = [name for name in places.symbols(path) if name.startswith('throw_')]
    check(len(names) >= 4, 'functions', names)
    check_functions([path, '200'], path, names)


def test_cxx_exceptions_with_probes_in_the_unwinder(tmp):
    path = str(tmp / 'throwing')
    run(program('g++'), '-O2', '-o', path, HERE / 'throwing.cc').ok()
    for name, functions in (('libgcc_s.so.1', [
            '_Unwind_RaiseException', '_Unwind_Resume', '_Unwind_SetIP'
    ]), ('libstdc++.so.6', ['__cxa_throw', '__cxa_rethrow', '__cxa_begin_catch', '__cxa_end_catch'])):
        lib = library(name, path)
        check_functions([path, '100'], lib, [function for function in functions if function in places.symbols(lib)],
                        least=DENSE)


def test_return_probes_under_leaps_and_exceptions(tmp):
    """No return address is replaced: returns that happen are recorded, those that do not are not."""
    path = target_path('leaps')
    result = record('-p', 'leaps:leap_deep', '-r', 'leaps:leap_deep $retval', '-r', 'leaps:leap_plain r=$retval', '--',
                    path, '100').ok()
    said = result.json()
    report = report_json()
    total = {
        kind: sum(probe['count'] for probe in report['probes'] if probe['name'].endswith(kind))
        for kind in ('leap_deep', 'leap_deep%return', 'leap_plain%return')
    }
    check_equal(total['leap_deep'], said['leap_deep'], 'entries')
    check_equal(total['leap_deep%return'] + total['leap_plain%return'], said['returns'], 'returns')
    cxx = str(tmp / 'throwing')
    run(program('g++'), '-O2', '-o', cxx, HERE / 'throwing.cc').ok()
    bare = run(cxx, '100').ok()
    thrown = record('-r', f'{cxx}:throw_*', '--', cxx, '100').ok()
    check_same(thrown.out, bare.out, 'stdout')
