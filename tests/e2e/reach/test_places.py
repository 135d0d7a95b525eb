"""Processes in other places: namespaces of mounts and pids, other roots, without descriptors, rights, system calls, or
room."""
import os
import re
import shutil
import signal

import processes
import remains
from kymotest import (KYMO, NOBODY, check, check_equal, check_matches, eventually, events, kymo, need_root, program,
                      record, report_json, run, skip, start, start_record, target, target_path)

# ---- namespaces ----------------------------------------------------------------------------------


def inside(tmp, *words):
    """A process that alone sees the file that it runs; its pid as it is here, and its path as its maps have it here."""
    need_root()
    (tmp / 'hidden').mkdir()
    script = f'mount -t tmpfs none {tmp}/hidden && cp {target_path("callmany")} {tmp}/hidden/unseen && exec {tmp}/hidden/unseen "$@"'
    process = start(program('unshare'), '-pmf', '--mount-proc', '--kill-child', 'sh', '-c', script, 'sh', *words)
    try:
        process.wait_for('^ready$')
    except AssertionError:
        skip(f'no namespaces here: {process.err.strip()}')
    check(not (tmp / 'hidden/unseen').exists(), 'the file is seen inside only')
    pid = eventually(lambda: processes.children(process.pid), 'it has a child')[0]
    check_equal(processes.status(pid)['NSpid'].split()[-1], '1', 'its pid there')
    path = next(mapping.path for mapping in processes.maps(pid) if mapping.path.endswith('/hidden/unseen'))
    return process, pid, path


def test_a_process_in_other_mount_and_pid_namespaces(tmp):
    process, pid, path = inside(tmp, '-w', '300')
    before = remains.lasting_mappings(pid)
    recorder = start_record(pid, '-p', f'{path}:work_a n=%edi:s32', '-p', 'libc:write')
    process.send('\n')
    process.wait_for('^work_a 300$')
    recorder.end(signal.SIGINT).ok()
    here = [event for event in events() if event.name.endswith('work_a')]
    check_equal([event['n'] for event in here], list(range(300)), 'arguments')
    remains.check_nothing_left(pid, before, remains.lasting_mappings)
    process.end(input='\n').ok()


def test_a_bare_name_is_looked_up_in_that_process(tmp):
    process, pid, path = inside(tmp, '-w', '300')
    recorder = start_record(pid, '-p', 'unseen:work_a')
    process.send('\n')
    process.wait_for('^work_a 300$')
    recorder.end(signal.SIGINT).ok()
    check_equal(report_json()['events'], 300, 'events')
    process.end(input='\n').ok()


def test_a_pipe_in_the_place_of_a_library_is_not_waited_for(tmp):
    """By a user that may not follow /proc/PID/map_files, so that the path is opened in the namespace of the process."""
    need_root()
    library, pipe = tmp / 'libmarked.so', tmp / 'pipe'
    shutil.copy(target_path('libmarked.so'), library)
    tmp.chmod(0o777)
    library.chmod(0o755)
    os.mkfifo(pipe)
    pipe.chmod(0o666)
    as_user = ['setpriv', '--reuid', str(NOBODY), '--regid', str(NOBODY), '--clear-groups']
    process = start(program('unshare'), '-m', *as_user, 'env', f'LD_PRELOAD={library}', 'sleep', '600')
    eventually(lambda: any(mapping.path.endswith(str(library)) for mapping in processes.maps(process.pid)),
               'it has the library')
    eventually(lambda: processes.status(process.pid)['Name'] == 'sleep', 'it is the program')
    result = run(program('nsenter'), '-m', '-t', str(process.pid), 'mount', '--bind', pipe, library)
    if result.status:
        skip(f'no mount there: {result.err.strip()}')
    for command in (['list', process.pid, 'libmarked*'], ['explain', process.pid, f'{library}:0x1000'], [
            'record', '-o', tmp / 'data', '-p', f'{library}:0x1000', '--for', '1', '--pid', process.pid
    ], ['record', '-o', tmp / 'data', '-s', 'all', '--for', '1', '--pid', process.pid]):
        run(KYMO, *command, user=NOBODY, cwd=tmp, seconds=60)
    check(process.is_alive(), 'the process lives')


def test_detach_and_status_in_other_namespaces(tmp):
    process, pid, path = inside(tmp, '-w', '300')
    before = remains.lasting_mappings(pid)
    recorder = start_record(pid, '-p', 'unseen:work_a')
    check_matches(kymo('status', pid).ok().out, str(recorder.pid))
    recorder.end(signal.SIGKILL)
    kymo('detach', pid).ok()
    remains.check_nothing_left(pid, before, remains.lasting_mappings)
    process.end(input='\n\n').ok()


# ---- daemons -------------------------------------------------------------------------------------


def check_recluse(*words, user=None):
    """It is recorded, cleanly, and does its work."""
    process = target('recluse', *words, '500', user=user)
    before = remains.lasting_mappings(process.pid)
    recorder = start_record(process.pid, '-p', 'recluse:work_a n=%edi:s32')
    process.send('\n')
    process.wait_for('work_a')
    recorder.wait_for('^kymo: recording process', 1)  # what is interrupted before that has not begun
    recorder.end(signal.SIGINT).ok()
    check_equal([event['n'] for event in events()], list(range(500)), 'arguments')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    check_equal(process.end(input='\n').ok().json(), {'work_a': 500})


def check_launched_recluse(*words):
    result = record('-p', 'recluse:work_a', '--', target_path('recluse'), *words, '500', input='\n').ok()
    check_equal(result.json(), {'work_a': 500})
    check_equal(report_json()['events'], 500, 'events')


def test_a_daemon_without_descriptors():
    check_recluse('-c')
    check_launched_recluse('-c')


def test_a_daemon_in_another_root(tmp):
    need_root()
    check_recluse('-r', tmp)
    check_launched_recluse('-r', tmp)


def test_a_daemon_that_has_dropped_its_privileges(tmp):
    need_root()
    check_recluse('-u', NOBODY)
    check_launched_recluse('-u', NOBODY)


def test_a_daemon_that_has_done_all_of_it(tmp):
    need_root()
    check_recluse('-c', '-r', tmp, '-u', NOBODY)
    check_launched_recluse('-c', '-r', tmp, '-u', NOBODY)


def test_a_process_that_may_only_read_and_write_is_not_killed():
    """Recorded or refused; a system call of kymo's in its name would be its end."""
    process = target('recluse', '-s', '500')
    before = remains.lasting_mappings(process.pid)
    result = record('-p', 'recluse:work_a', '--pid', process.pid, '--for', '0.2')
    if result.status:
        result.refused('seccomp')
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.send('\n')
    process.wait_for('work_a')
    check_equal(process.end(input='\n').ok().json(), {'work_a': 500})


def test_a_command_that_confines_itself_is_not_killed():
    """Probes are in before. Behind prctl() the time stamp counter is forbidden as well: nothing is recorded then,
    which is said."""
    result = record('-p', 'recluse:work_a', '--', target_path('recluse'), '-s', '500', input='\n').ok()
    check_equal(result.json(), {'work_a': 500})
    check_equal(report_json()['events'], 0, 'events')
    check_matches(result.err, 'made reading the time stamp counter a fault')


def test_a_recording_of_a_command_that_confines_itself_may_end_before_it():
    recorder = start(KYMO, 'record', '-p', 'recluse:work_a', '--', target_path('recluse'), '-s', '500')
    recorder.wait_for('^ready$')
    pid = processes.children(recorder.pid)[0]
    recorder.signal(signal.SIGTERM)
    eventually(lambda: not processes.changed_text(pid), 'text is as it was')
    remains.check_running(pid)
    os.kill(pid, signal.SIGKILL)
    recorder.end()


def test_a_process_that_is_not_dumpable_is_recorded_by_root():
    need_root()
    check_recluse('-d')


def test_no_room_within_reach():
    """Plain jumps need some as well: it is said, and nothing happens; or the kernel does it."""
    process = target('recluse', '-f', '500')
    before = remains.lasting_mappings(process.pid)
    result = record('--backend', 'inproc', '-p', 'recluse:work_a', '-p', 'libc:write', '--pid', process.pid, '--for',
                    '0.2')
    check(result.status == 1 and re.search(r'^kymo: .*(room|hole|free|address|reach)', result.err, re.MULTILINE),
          'it is said', result)
    remains.check_nothing_left(process.pid, before, remains.lasting_mappings)
    process.send('\n')
    process.wait_for('work_a')
    check_equal(process.end(input='\n').ok().json(), {'work_a': 500})


def test_no_room_within_reach_and_the_kernel_helps():
    need_root()
    process = target('recluse', '-f', '500')
    recorder = start(KYMO, 'record', '-p', 'recluse:work_a', '--pid', process.pid)
    recorder.wait_for(r'^kymo: recording', 1)
    process.send('\n')
    process.wait_for('work_a')
    recorder.end(signal.SIGINT).ok()
    check_equal(report_json()['events'], 500, 'events')
    process.end(input='\n').ok()


def test_a_program_that_was_deleted_or_replaced(tmp):
    for replace in (False, True):
        copy = tmp / 'copy'
        shutil.copy(target_path('callmany'), copy)
        process = start(copy, '-w', '100')
        process.wait_for('^ready$')
        copy.unlink()
        if replace:
            shutil.copy(target_path('selfcheck'), copy)
        result = run(KYMO, 'record', '-p', 'copy:work_a', '--pid', process.pid, '--for', '0.2')
        check(result.status in (0, 1), 'recorded, or refused with a sentence', result)
        remains.check_text_intact(process.pid)
        process.end(input='\n\n').ok()
        copy.unlink(missing_ok=True)
