"""Commands from their first instruction on."""
import os
import re
import shutil
import time
from pathlib import Path

import markers
import processes
from killing import NO_LEAKS
from kernelcount import count_command, library
from kymotest import (KYMO, KYMO_PLAIN, check, check_equal, check_matches, event_counts, eventually, program, record,
                      run, start, target_path)

# There is no memory of 64 KiB and more as soon as there is a file `full`.
FULL = '''
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
int posix_fallocate64(int fd, off64_t offset, off64_t size)
{
	int (*real)(int, off64_t, off64_t) = (int (*)(int, off64_t, off64_t))dlsym(RTLD_NEXT, "posix_fallocate64");

	return size >= 64 << 10 && !access("full", F_OK) ? ENOSPC : real(fd, offset, size);
}
'''

# What ld.so calls in libc before main(), and what constructors call.
LIBC = ('malloc', 'calloc', 'free', '__libc_early_init', '__cxa_atexit', '__libc_start_main', 'write', '_exit')


def compare(command, names):
    """Counts of a command's functions: kymo's and the kernel's. `names` is {file: functions}, file as kymo names it:
    path."""
    sites = {name: (path, name) for (_, path), functions in names.items() for name in functions}
    probes = {f'{short}:{name}': name for (short, _), functions in names.items() for name in functions}
    expected = count_command(command, sites)[1]
    result = record(*[word for probe in probes for word in ('-p', probe)], '--', *command).ok()
    counts = event_counts()
    check_equal({name: counts[probe] for probe, name in probes.items()}, expected, f'counts\n{result}')
    return counts


def test_constructors_destructors_and_calls_of_the_dynamic_linker_are_seen():
    path = target_path('ctor')
    libc = ('libc', library('libc.so.6', path))
    libctor = ('libctor', target_path('libctor.so'))
    counts = compare([path, '20'], {libc: LIBC, libctor: ('ctor_work', 'ctor_sum')})
    check_equal(counts['libctor:ctor_work'], 130, 'calls of ctor_work')
    check(counts['libc:__libc_early_init'] == 1 and counts['libc:calloc'] + counts['libc:malloc'] > 0, 'ld.so was seen',
          counts)


def test_functions_of_the_dynamic_linker_itself_are_seen():
    path = target_path('ctor')
    loader = re.search(r'interpreter: (\S+)\]', run('readelf', '-lW', path).ok().out)[1]
    names = ('_dl_allocate_tls', '_dl_rtld_di_serinfo', '_dl_find_dso_for_object', '__tls_get_addr')
    present = run('readelf', '-sW', os.path.realpath(loader)).ok().out
    names = [name for name in names if re.search(rf'FUNC .* {name}@@', present)]
    check(names, 'ld.so exports functions')
    compare([path], {('ld-linux-x86-64', os.path.realpath(loader)): names})


def test_libraries_that_a_command_opens_later_do_no_harm():
    libctor = target_path('libctor.so')
    result = record('-p', 'libc:malloc', '-p', 'libc:free', '-p', 'libc:dlopen', '--', target_path('dlopener'), libctor,
                    '20').ok()
    check_equal(result.json(), {'ctor_work': 20 * 111})
    check_equal(event_counts()['libc:dlopen'], 20)


def test_static_programs():
    result = record('-p', 'callmany-static:work_a n=%edi:s32', '--', target_path('callmany-static'), '1000').ok()
    check_equal(event_counts()['callmany-static:work_a'], 1000, str(result))


def test_programs_at_fixed_addresses():
    record('-p', 'callmany-nopie:work_a n=%edi:s32', '-p', 'libc:write', '--', target_path('callmany-nopie'),
           '1000').ok()
    check_equal(event_counts()['callmany-nopie:work_a'], 1000)


def test_a_command_that_becomes_another_program_runs_on():
    """A constructor cannot be relied on to return."""
    script = f'exec {target_path("callmany")} 100'
    result = record('-p', 'libc:malloc', '--', '/bin/sh', '-c', script).ok()
    check_equal(result.out, 'work_a 100\n')


def killed_commands(points, command, expected, tmp):
    """Kill recorders at calls of theirs while they start `command`."""
    begun = 0
    for call, number in points:
        shutil.rmtree(tmp / 'killed', ignore_errors=True)
        out = tmp / 'out'
        with open(out, 'w') as file:
            run(program('strace'), '-qq', '-o', '/dev/null', '-e', f'trace={call}', '-e', 'signal=none', '-e',
                f'inject={call}:signal=KILL:when={number}', KYMO, 'record', '-q', '-o', tmp / 'killed', '-p',
                'callmany:work_*', '-p', 'libc:write', '-p', 'libc:malloc', '--', *command, env=NO_LEAKS, stdout=file)
        # The command's parent is gone: this process adopts it, and wait() tells how it ended.
        ended = [os.waitpid(pid, 0)[1] for pid in processes.children(os.getpid())]
        for status in ended:
            begun += 1
            check_equal(os.waitstatus_to_exitcode(status), 0,
                        f'status of the command, its recorder killed at {call} {number}')
            check_equal(out.read_text(), expected, f'output of the command, its recorder killed at {call} {number}')
    return begun


def test_a_command_whose_recorder_is_killed_runs_on(tmp):
    points = [('ptrace', number) for number in range(2, 180, 12)] + \
        [('pwrite64', number) for number in range(1, 30, 4)] + \
             [('wait4', number) for number in range(1, 100, 12)]
    begun = killed_commands(points, [target_path('callmany'), '1000'], 'work_a 1000\n', tmp)
    check(begun > len(points) // 2, f'{begun} of {len(points)} recorders were killed when the command had begun')


def test_a_function_that_is_not_there_keeps_the_command_from_running(tmp):
    record('-p', 'callmany:no_such', '--', target_path('callmany'), '10').refused('no function no_such')
    result = record('--no-follow', '-p', 'libnone:malloc', '--', target_path('callmany'), '10').ended(1)
    check_equal(result.out, '', 'output of the command')


def test_rings_without_memory_keep_a_command_from_running_and_later_programs_from_being_probed(tmp):
    """The recorder finds out when all else is done. Then nothing is mapped beside the code of the program."""
    environment = {'LD_PRELOAD': str(markers.compile(tmp / 'full.so', FULL, '-shared', '-fPIC', '-ldl'))}
    maps, sentence = '"$0" memfd:kymo /proc/self/maps', r'cannot allocate [0-9]+ MiB for the rings; a smaller --buffer'
    for command in (f'echo > full; {maps}; echo after', f'echo > full; exec {maps}'):
        result = run(KYMO_PLAIN, 'record', '-o', 'later', '-p', 'libc:malloc', '--', 'sh', '-c', command,
                     program('grep'), env=environment).ok()
        check_matches(result.err, rf'warning: process [0-9]+ runs without probes: {sentence}')
        check('memfd:kymo-data' in result.out and 'memfd:kymo-jumps' not in result.out, 'what is mapped', result)
        check('after' in result.out or 'exec' in command, 'the command runs on', result)
        result = run(KYMO_PLAIN, 'record', '-o', 'first', '-p', 'libc:malloc', '--', 'sh', '-c', 'echo after',
                     env=environment)
        check_matches(result.ended(1).err, sentence)
        check_equal(result.out, '', 'output of the command')
        os.unlink('full')


def test_a_process_that_has_just_been_started_is_waited_for(tmp):
    """As with `app & kymo record --pid $!`: its linker has not mapped libc yet, as it reads a FIFO here."""
    os.mkfifo(tmp / 'preloaded')
    process = start('env', f'LD_PRELOAD={tmp}/preloaded', 'sleep', '1')
    eventually(lambda: Path(f'/proc/{process.pid}/comm').read_text() == 'sleep\n', 'it is executed')
    recorder = start(KYMO, 'record', '-p', 'libc:clock_nanosleep', '--pid', process.pid)
    time.sleep(0.1)
    check('libc' not in Path(f'/proc/{process.pid}/maps').read_text(), 'it has no libc')
    open(tmp / 'preloaded', 'wb').close()  # the linker tells that this is no library, and goes on
    recorder.end().ok()
    process.end().ok()
