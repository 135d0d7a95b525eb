"""The kernel's breakpoints for a command are in every process that maps the file. They stay out of those that another
kymo records."""
import shutil
import signal

from kymotest import (KYMO, check, check_equal, check_text_intact, event_counts, need_uprobes, record, start,
                      start_record, target_path)


def own(name):
    """A copy of a target, so that no other test's processes map the file."""
    shutil.copy(target_path(name), '.')
    return f'./{name}'


def waiting(path, calls):
    process = start(path, '-w', calls, 'work_six')
    process.wait_for('^ready$')
    return process


def go(process, calls):
    process.send('go\n')
    process.wait_for(f'^work_six {calls}$')


def by_kernel(*args, **options):
    return record('--backend', 'kernel', '-o', 'outside', *args, **options)


def test_a_command_through_the_kernel_beside_a_recorded_process():
    need_uprobes()
    path = own('callmany')
    process = waiting(path, 200)
    recorder = start_record(process.pid, '-p', f'{path}:work_six')
    by_kernel(
        '-p', f'{path}:work_six', '--', path,
        30).refused(f'process {process.pid} has other code at it than the file: another kymo records that process')
    by_kernel('-p', f'{path}:work_*', '--', path, 30).ok()  # a glob's other places are free
    check('callmany:work_six' not in event_counts('outside'), 'the place is left out')
    check_equal(event_counts('outside')['callmany:work_a'], 30, 'calls in the command')
    go(process, 200)
    recorder.end(signal.SIGINT).ok()
    check_equal(event_counts()['callmany:work_six'], 200, 'calls in the recorded process')
    check_text_intact(process.pid)
    process.end(input='\n').ok()


def test_a_process_beside_a_command_through_the_kernel():
    """The other order: the breakpoints are there first, and no jump is put on them."""
    need_uprobes()
    path = own('callmany')
    process = waiting(path, 200)
    kernel = start(KYMO, 'record', '-o', 'outside', '--backend', 'kernel', '-p', f'{path}:work_six', '--', path, '-w',
                   100, 'work_six')
    kernel.wait_for('^ready$')
    record('--backend', 'inproc', '-p', f'{path}:work_six', '--pid', process.pid, '--for', '0.1').refused('work_six')
    recorder = start(KYMO, 'record', '--backend', 'inproc', '-p', f'{path}:work_[a-f]*', '--pid', process.pid)
    recorder.wait_for('recording process', which=1)  # the text has the kernel's breakpoint before it has a jump
    kernel.send('go\n')
    kernel.wait_for('^work_six 100$')
    go(process, 200)
    kernel.end(input='\n').ok()
    recorder.end(signal.SIGINT).ok()
    check_equal(event_counts('outside')['callmany:work_six'], 100, 'calls in the command')
    check_text_intact(process.pid)
    process.end(input='\n').ok()
