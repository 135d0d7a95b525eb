"""kymo record -s of programs in which a system call that is made in a pad might be noticed."""
import signal
from pathlib import Path

from kymotest import check_matches, check_text_intact, kymo, program, record, run, skip, start, start_record

HERE = Path(__file__).parent


def corner(tmp, which):
    run(program('gcc'), '-w', '-fexceptions', '-pthread', '-o', tmp / 'corners', HERE / 'corners.c').ok()
    process = start(tmp / 'corners', which)
    process.wait_for('^ready$|^not here$')
    return process


def test_a_handler_upon_a_handler_on_another_stack_keeps_the_pads(tmp):
    """The pad is in the frame of the first, on the stack that the thread has left."""
    process = corner(tmp, 'handlers')
    recorder = start_record(process.pid, '-s', 'read')
    process.send('\n')
    process.wait_for('^inside$')
    check_matches(recorder.end(signal.SIGINT).ok().err, "a signal handler of process .* still runs on top of a pad")
    check_text_intact(process.pid)
    process.send('\n')
    process.wait_for('^right$')
    process.end().ok()


def test_a_program_that_cancels_threads_is_recorded_with_a_warning(tmp):
    process = corner(tmp, 'canceled')
    recorder = start_record(process.pid, '-s', 'read')
    process.send('\n')
    process.wait_for('^joined$')
    check_matches(
        recorder.end(signal.SIGINT).ok().err,
        'corners calls pthread_cancel: threads canceled during a recorded system call skip their cleanup handlers')
    process.end().ok()


def test_calls_that_are_told_apart_by_their_address_are_recorded_from_outside_or_refused(tmp):
    process = corner(tmp, 'dispatch')
    if 'not here' in process.out:
        skip('this kernel has no PR_SET_SYSCALL_USER_DISPATCH')
    why = r'gets signals for system calls .* \(PR_SET_SYSCALL_USER_DISPATCH\)'
    record('--backend', 'inproc', '-s', 'write', '--pid', process.pid, '--for', '0.1').refused(why)
    result = record('-s', 'write', '--pid', process.pid, '--for', '0.1').ok()
    check_matches(result.err, rf'^kymo: warning: .*{why}; (recorded through the kernel|traced)')
    check_text_intact(process.pid)
    check_matches(process.end(input='\n').ok().out, '^right$')
