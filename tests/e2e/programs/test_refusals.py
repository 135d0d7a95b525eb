"""What cannot be recorded is refused with a whole sentence, leaves the process as it was, and runs no command."""
import os
import random
import re
import shutil
import signal
from pathlib import Path

import processes
from comparing import babeltrace_with_losses
from kymotest import (KYMO, KYMO_PLAIN, NOBODY, babeltrace, check, check_equal, check_matches, check_same,
                      check_text_intact, eventually, kymo, need_32_bit_programs, need_root, program, record,
                      report_json, run, skip, sleeper, start, start_record, target, target_path, timeout, waits)


def check_refused(args, sentence, status=1, **options):
    """All that `kymo record ARGS` says is `sentence`, a pattern; and nothing was recorded."""
    result = kymo('record', *args, **options).ended(status)
    check_equal(result.out, '', 'stdout')
    hint = "try 'kymo help record'\n" if status == 2 else ''
    check(re.fullmatch(f'kymo: {sentence}\n{re.escape(hint)}', result.err), f'stderr is not /{sentence}/', result)
    left = [path.name for path in Path(options.get('cwd', '.')).glob('*.data*')]
    check_equal(left, [], 'recordings')
    return result


# ---- names ---------------------------------------------------------------------------------------


def test_no_such_program(tmp):
    check_refused(['-p', 'libc:malloc', '--', 'no-such-program'], 'there is no program no-such-program in PATH')
    check_refused(['-p', 'libc:malloc', '--', './no-such-program'], r'there is no program \./no-such-program')
    (tmp / 'plain').write_text('#!/bin/sh\n')
    check_refused(['-p', 'libc:malloc', '--', './plain'], r'cannot run \./plain: Permission denied')
    check_refused(['-p', 'libc:malloc', '--', tmp], rf'cannot run {tmp}: Permission denied')


def test_no_such_file(tmp):
    later = r'and touch was not run\.( Did you mean \w+\?)? Write --late if the file is created, or loaded from elsewhere, later'
    check_refused(['--no-follow', '-p', './no-such-file:main', '--', 'touch', 'ran'],
                  rf'there is no file called \./no-such-file, {later}')
    check_refused(['--no-follow', '-p', 'nosuchlib:malloc', '--', 'touch', 'ran'],
                  f'there is no file called nosuchlib, {later}')
    check_refused(['--late', '--no-follow', '-p', './no-such-file:main', '--', 'touch', 'ran'],
                  r'there is no file \./no-such-file')
    check_refused(['--late', '--no-follow', '-p', 'nosuchlib:malloc', '--', 'touch', 'ran'],
                  r'process \d+ has mapped no file called nosuchlib; it has touch, libc\.so\.6, ld-linux-x86-64\.so\.2 '
                  r'\(without --no-follow it is waited for\)')
    check(not (tmp / 'ran').exists(), 'the command ran')


def test_what_was_meant_is_named(tmp):
    check_refused(['-p', 'pyton3:main', '--', 'touch', 'ran'],
                  r'there is no file called pyton3, and touch was not run\. Did you mean python3\? .*')
    check_refused(['-p', '/usr/lib/x86_64-linux-gnu/libcc:malloc', '--', 'touch', 'ran'],
                  r'there is no file called \S+, and touch was not run\. '
                  r'Did you mean /usr/lib/x86_64-linux-gnu/libc\? .*')
    (tmp / 'lines.sh').write_text('#!/bin/sh\ntouch ran\n')
    (tmp / 'lines.sh').chmod(0o755)
    check_refused(['-p', './lines.sh:main', '--', './lines.sh'],
                  r"\./lines\.sh is a script, which an interpreter runs: probes are for the interpreter's functions, "
                  'and its libraries')
    check_refused(['-p', '4242', '--', 'touch', 'ran'],
                  r'column 1: a process is given by --pid 4242; a probe is written libc:malloc\n  4242\n  \^', 2)
    check_refused(['-p', 'libc:malloc', '--debug-file', './none', '--', 'touch', 'ran'],
                  r'--debug-file \./none: No such file or directory', 2)
    check_refused(['-p', 'libc:malloc', '--debug-file', '/bin/true', '--', 'touch', 'ran'],
                  '--debug-file /bin/true: nothing after it needs debug information; leave the option out, or '
                  'write it before the probe', 2)
    check(not (tmp / 'ran').exists(), 'the command ran')


SPLIT = """
int parts(int n) { return n + 1; }
int main(void) { return parts(1) - 2; }
"""


def test_a_marker_is_no_function(tmp):
    """That it is one is told for a file of the command, for one of another program, and for a process."""
    python = program('/usr/bin/python3')
    hint = (r"/\S*python3\S* has no function gc__done.*; a marker has that name: write -m 'gc__done', or 'm gc__done' in "
            r'--count, --until and the like(\. Write --late .*)?')
    check_refused(['-p', f'{python}:gc__done', '--', python, '-c', 'open("ran", "w")'], hint)
    check_refused(['--keep', '64M', '-p', 'libc:malloc', '--until', f'{python}:gc__done', '--', 'touch', 'ran'], hint)
    check_refused(['-p', f'{python}:gc__*', '--', 'touch', 'ran'],
                  r".* has no function gc__\*, and touch was not run; a marker has that name: write -m 'gc__\*', .*")
    check(not (tmp / 'ran').exists(), 'the command ran')


def test_a_file_of_the_command_is_not_taken_for_the_program_in_path(tmp):
    """coreutils has a split, too, which has no function parts()."""
    (tmp / 'split.c').write_text(SPLIT)
    run(program('gcc'), '-O0', '-o', 'split', 'split.c').ok()
    check_refused(['-p', 'split:parts', '--', 'touch', 'ran'],
                  r'/\S+/split has no function parts, and touch was not run.*\. Write --late if another file of that name has it')
    record('-p', 'split:parts', '--', 'sh', '-c', './split; true').ok()
    check_equal(report_json()['events'], 1, 'calls of parts()')


def test_globs_of_markers_are_no_files(tmp):
    """The part before the last colon of several globs has a slash."""
    said = record('-m', f'{target_path("marked")}:*|other:*', '--', 'true').err
    check(not re.search('there is no file', said), 'no file is missed', said)


def test_lines_of_source_are_no_files(tmp):
    (tmp / 'app.cc').write_text('int main() {}\n')
    run(program('g++'), '-o', 'app', 'app.cc').ok()
    check_refused(['-p', './app:app.cc:1', '--', './app'],
                  r'\./app has no debug information; install the debug symbols of its package '
                  r'\(app-dbgsym on Debian\), build it with -g, or name the file with --debug-file')
    check_matches(
        record('-p', 'app.cc:1', '--', './app').err,
        r'\Akymo: app\.cc is a file of source; a line of it is written PROGRAM:app\.cc:12')
    process = sleeper()
    check_refused(
        ['-p', 'libz:inflate', '--pid', process.pid],
        rf'process {process.pid} has mapped no file called libz; it has sleep, libc\.so\.6, ld-linux-x86-64\.so\.2 '
        r'\(with --follow it is waited for\)')
    check_text_intact(process.pid)


def test_no_such_function_names_the_nearest_three(tmp):
    check_refused(['-p', 'libc:mallok', '--', 'touch', 'ran'],
                  r'\S+/libc\.so\.6 has no function mallok; the nearest names are malloc(, \w+){2}')
    check_refused(['-p', 'libc:malloc', '-p', 'libc:realocc+0x3', '--', 'touch', 'ran'],
                  r'\S+/libc\.so\.6 has no function realocc; the nearest names are realloc(, \w+)*')
    check_refused(['-p', 'libc:nothing_like_*', '--', 'touch', 'ran'],
                  r"\S+/libc\.so\.6 has no function nothing_like_\* \('kymo list libc' shows what there is\)")
    check_refused(['-p', 'libc:0x7fffffff', '--', 'touch', 'ran'],
                  r'\S+/libc\.so\.6 has no code at file offset 0x7fffffff')
    check_refused(['-p', 'libc:malloc+0x1', '--', 'touch', 'ran'],
                  r'no probe can be put at malloc\+0x1 of \S+/libc\.so\.6: .+')
    check(not (tmp / 'ran').exists(), 'the command ran')


def test_each_place_that_is_refused_is_told():
    result = record('--backend', 'inproc', '-p', 'libc:malloc+0x1', '-p', 'libc:malloc', '-p', 'libc:free+0x1', '-p',
                    'libc:malloc+1', '--', 'true').ended(1)
    check_matches(
        result.err,
        r'^kymo: no probe can be put at malloc\+0x1 of \S+: .+\n  no probe can be put at free\+0x1 of \S+: .+$')


LARGE = """
	.globl main, large, larger
	.type main, @function
main:	xor %eax, %eax
	ret
	.size main, . - main
	.type large, @function
large:	.rept 100000
	add $0x12345678, %eax
	.endr
	ret
	.size large, . - large
	.type larger, @function
larger:	.rept 265000
	add $0x12345678, %eax
	.endr
	ret
	.size larger, . - larger
	.section .note.GNU-stack, "", @progbits
"""


@timeout(300)
def test_more_probes_than_there_is_room_for(tmp):
    """By their number, and by the size of their pads."""
    (tmp / 'large.s').write_text(LARGE)
    run(program('gcc'), '-o', tmp / 'large', tmp / 'large.s').ok()
    check_refused([
        '-p', './large:larger:*', '--', './large'
    ], r'a recording of one process can have 26214\d( more)? probes, and 26\d{4} are asked for; ask for fewer, by a glob that matches less'
                  )
    check_refused(['-p', './large:large:*', '--', './large'],
                  r'the pads of \d+ probes fit into the 64 MiB that there are for them, and (9999|10000)\d are asked for; '
                  r'ask for fewer, by a glob that matches less')


def test_no_such_process():
    process = sleeper()
    process.end(signal.SIGKILL)
    check_refused(['-p', 'libc:malloc', '--pid', process.pid], f'there is no process {process.pid}')
    for word in ('0', '-1', 'abc', '1x', ''):
        result = kymo('record', '-p', 'libc:malloc', '--pid', word).ended(2)
        check_matches(result.err, r"^kymo: --pid '.*' is no process id$")


def test_a_process_that_has_ended_and_a_kernel_thread():
    child = os.fork()
    if not child:
        os._exit(0)
    eventually(lambda: processes.status(child).get('State', '')[:1] == 'Z', 'it is a zombie')
    check_refused(['-p', 'libc:malloc', '--pid', child],
                  rf'process {child} has ended; its parent has not collected it yet')
    os.waitpid(child, 0)
    if processes.status(2).get('Name') == 'kthreadd' and not os.getuid():
        check_refused(['-p', 'libc:malloc', '--pid', 2],
                      r'process 2 \(kthreadd\) is a kernel thread, which has no memory')
        for command in (['syscalls'], ['record', '-s', 'all', '--backend', 'ptrace']):
            kymo(*command, '--pid', 2).refused(
                r'cannot trace process 2: process 2 \(kthreadd\) is a thread of the kernel, which cannot be traced')


# ---- permission ----------------------------------------------------------------------------------

NOT_ALLOWED = (
    r'process {pid} does not let you trace it: it runs as another user, with more rights than you, or protects itself '
    r'\(PR_SET_DUMPABLE\); try as root')


def test_a_process_of_another_user(tmp):
    need_root()
    tmp.chmod(0o777)
    process = sleeper()
    check_refused(['-p', 'libc:malloc', '--pid', process.pid], NOT_ALLOWED.format(pid=process.pid), user=NOBODY,
                  cwd=tmp)
    check_text_intact(process.pid)


def test_a_process_that_is_not_dumpable(tmp):
    need_root()
    tmp.chmod(0o777)
    text = 'import ctypes, time\nctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\nprint("ready", flush=True)\ntime.sleep(60)'
    process = start('/usr/bin/python3', '-S', '-c', text, user=NOBODY)
    process.wait_for('^ready$')
    check_refused(['-p', 'libc:malloc', '--pid', process.pid], NOT_ALLOWED.format(pid=process.pid), user=NOBODY,
                  cwd=tmp)


def test_an_ordinary_user_records_a_process_and_a_command_of_their_own(tmp):
    need_root()
    tmp.chmod(0o777)
    path = Path('/proc/sys/kernel/yama/ptrace_scope')
    if path.exists() and path.read_text().strip() != '0':
        skip('kernel.yama.ptrace_scope forbids tracing here')
    process = target('callmany', '-w', '1000', user=NOBODY)
    recorder = start(KYMO, 'record', '-o', 'attached', '-p', 'callmany:work_a $arg1:s32', '--pid', process.pid,
                     user=NOBODY, cwd=tmp)
    recorder.wait_for(r'^kymo: recording process', 1)
    process.send('\n')
    process.wait_for('^work_a 1000$')
    check_equal(recorder.end(signal.SIGINT).status, 0, f'exit status of {recorder.command}')
    check_equal(report_json('attached')['events'], 1000, 'events')
    check_equal(sum(1 for _ in babeltrace('attached')), 1000, 'events by babeltrace2')
    check_equal((tmp / 'attached/metadata').stat().st_uid, NOBODY, 'owner of the recording')
    check_text_intact(process.pid)
    check_equal(process.end(input='\n').status, 0, 'exit status of the process')
    result = record('-o', 'launched', '-p', 'callmany:work_b', '--', target_path('callmany'), 77, 'work_b', user=NOBODY,
                    cwd=tmp)
    check_equal(result.ok().out, 'work_b 77\n', 'output')
    check_equal(report_json('launched')['events'], 77, 'events')


# ---- tracers -------------------------------------------------------------------------------------


def check_names_tracer(process, tracer):
    eventually(lambda: processes.tracer(process.pid), f'{tracer.command} traces it')
    name = processes.status(processes.tracer(process.pid))['Name']
    check_refused(['-p', 'libc:read', '--pid', process.pid],
                  rf'process {process.pid} is being traced by process {processes.tracer(process.pid)} \({name}\); '
                  'let it detach first')
    check_text_intact(process.pid)
    check(process.is_alive() and tracer.is_alive(), 'both go on')


def test_a_process_under_strace():
    process = sleeper()
    tracer = start(program('strace'), '-o', '/dev/null', '-p', process.pid)
    check_names_tracer(process, tracer)
    tracer.end(signal.SIGINT)
    record('-p', 'libc:read', '--pid', process.pid, '--for', '0.1').ok()


def test_a_process_under_gdb():
    process = sleeper()
    tracer = start(program('gdb'), '-nx', '-q', '-p', process.pid)
    tracer.wait_for(r'^\(gdb\)|\(gdb\) ')
    check_names_tracer(process, tracer)
    tracer.end(input='detach\nquit\n')
    record('-p', 'libc:read', '--pid', process.pid, '--for', '0.1').ok()


@waits
def test_a_process_under_another_users_kymo_which_traces_by_a_thread(tmp):
    need_root()
    process = sleeper()
    start(KYMO, 'syscalls', '-o', tmp / 'lines', '--pid', process.pid)
    tracer = eventually(lambda: processes.tracer(process.pid), 'kymo traces it')
    owner = int(processes.status(tracer)['Tgid'])
    check(owner != tracer, 'a thread traces')
    for command in (['record', '-p', 'libc:read'], ['syscalls']):
        kymo(*command, '--pid', process.pid, user=NOBODY,
             cwd='/').refused(rf'process {process.pid} is being traced by process {owner} \(kymo\)')


def test_kymo_in_a_tree_that_is_followed_is_told_who_is_its_tracer_and_what_to_do(tmp):
    for words in (['syscalls', '-f', program('true')], ['syscalls', '--pid', os.getpid()], [
            'record', '-o', tmp / 'inner', '-p', 'libc:free',
            program('true')
    ], ['record', '-o', tmp / 'inner', '-s', 'all', '--backend', 'ptrace',
            program('true')]):
        recorder = start(KYMO, 'record', '-p', 'libc:malloc', '--', KYMO_PLAIN, *words)
        check_matches(
            recorder.end().ended(1).err,
            rf'^kymo: cannot begin to trace: process {recorder.pid} \(kymo\) traces this one, with what it starts; record it with --no-follow'
        )
    record('--no-follow', '-p', 'libc:malloc', '--', KYMO_PLAIN, 'syscalls', '-f', program('true')).ok()


# ---- memory that others have too -----------------------------------------------------------------


def check_fails(args, sentence):
    """What is known only when probes are about to go in: a directory has been made by then."""
    result = kymo('record', *args).ended(1)
    check(re.fullmatch(f'kymo: {sentence}\n', result.err), f'stderr is not /{sentence}/', result)


@waits
def test_processes_that_share_their_memory():
    """Not as threads: stopping one does not stop the others, whichever of them is asked for."""
    process = target('sharer', '-w', '2', '10')
    for pid in [process.pid, *processes.children(process.pid)]:
        check_fails([
            '-p', 'sharer:work_a', '--pid', pid
        ], rf'process \d+ shares the memory of process {pid}, and would run on while its code is changed; nothing was changed'
                    )
        check_text_intact(process.pid)
    check_equal(process.end(input='\n').ok().json(), {'calls': 30}, 'all of them go on')


def test_text_in_a_mapping_that_is_shared_and_writable(tmp):
    copy = tmp / 'copy'
    shutil.copy(target_path('changer'), copy)
    whole = copy.read_bytes()
    process = target('changer', 'shared', copy)
    check_refused(['-p', './copy:work_a', '--pid', process.pid],
                  rf'{copy} is mapped shared and writable: other processes would see the change')
    if not os.getuid():
        recorder = start(KYMO, 'record', '--backend', 'kernel', '-p', './copy:work_a', '--pid', process.pid)
        recorder.wait_for('^kymo: recording process', 1)
        process.send('\n')
        process.wait_for('^done$')
        result = recorder.end(signal.SIGINT).ok()
        check_equal(
            result.err.splitlines()[0], f'kymo: warning: process {process.pid} has mapped {copy} shared and writable, '
            'where the kernel sets no probes: what runs there is not recorded')
        check_equal(report_json()['events'], 0, 'events')
    process.end(input='\n\n').ok()
    check(copy.read_bytes() == whole, 'the file is as it was')


def test_text_that_the_program_has_changed_before():
    process = target('changer', 'text')
    process.send('\n')
    process.wait_for('^done$')
    changed = processes.changed_text(process.pid)
    check_fails([
        '-p', 'changer:work_a', '--pid', process.pid
    ], r'no probe can be put at work_a of \S+/changer: what is there is not what its file holds: something else has patched it'
                )
    check_same(processes.changed_text(process.pid), changed, 'what the program has written')
    process.end(input='\n').ok()


def test_text_that_the_program_changes_below_a_probe():
    """It is not known what is right there now: it stays as the program has it, and so do the pads."""
    process = target('changer', 'text')
    recorder = start_record(process.pid, '-p', 'changer:work_a')
    process.send('\n')
    process.wait_for('^done$')
    changed = [line for line in processes.changed_text(process.pid) if '/changer' in str(line)]
    check_equal(len(changed), 1, 'places')
    sentence = (
        rf'kymo: 1 location in the code of process {process.pid} \(0x[0-9a-f]+\) holds bytes that neither kymo nor the file put there; '
        r'that location and the pads are left as they are\n')
    result = recorder.end(signal.SIGINT).ended(1)
    check(re.search(rf'^{sentence}\Z', result.err, re.MULTILINE), 'the recorder says so', result)
    result = kymo('detach', process.pid).ended(1)
    check(re.fullmatch(sentence, result.err), 'so does kymo detach', result)
    check_same(processes.changed_text(process.pid), changed, 'what the program has written')
    process.end(input='\n').ok()


# ---- programs that are not for kymo --------------------------------------------------------------


def test_a_32_bit_program():
    need_32_bit_programs()
    sentence = r'process \d+ is not a 64-bit x86 program; kymo traces x86-64 programs only'
    process = target('tiny32', ready=False)
    eventually(lambda: 'tiny32' in os.readlink(f'/proc/{process.pid}/exe'), 'it runs')
    check_refused(['-p', 'tiny32:_start', '--pid', process.pid], sentence)
    check(process.is_alive(), 'it runs on')
    check_refused(['-p', 'tiny32:_start', '--', target_path('tiny32')], sentence)


def test_truncated_programs(tmp):
    """At every length there is a sentence; a prefix that the kernel runs may be recorded or not."""
    whole = Path(target_path('callmany')).read_bytes()
    cut = tmp / 'cut'
    for size in (0, 4, 20, 40, 64, 120, 500, 3000, 8192, len(whole) // 2, len(whole) - 2000, len(whole) - 1):
        cut.write_bytes(whole[:size])
        cut.chmod(0o755)
        for command in (['list', cut], ['explain', cut,
                                        'work_a'], ['record', '--no-follow', '-p', './cut:work_a', '--', './cut', 3]):
            result = kymo(*command)
            if command[0] != 'record' or result.status != 0:
                check_equal(result.status, 1, f'exit status of {result.command} at {size} bytes')
                check(re.search(r'^kymo: .*\S$', result.err, re.MULTILINE), f'no sentence at {size} bytes', result)


def test_a_library_that_was_cut_is_refused(tmp):
    """The program runs with a whole library; what lies at its path later is damaged."""
    copy = tmp / 'callmany'
    shutil.copy(target_path('callmany'), copy)
    process = start(copy, '-w', 10)
    process.wait_for('^ready$')
    copy.unlink()
    copy.write_bytes(b'\x7fELF')
    result = record('-p', f'{copy}:work_a', '--pid', process.pid, '--for', '0.1')
    check(result.status in (0, 1), 'exit status', result)  # the mapped file can be opened still, but for some users
    check_text_intact(process.pid)
    check_equal(process.end(input='\n\n').status, 0, 'exit status of the process')


# ---- words ---------------------------------------------------------------------------------------


def test_garbage_in_a_spec_is_marked(tmp):
    for spec, column, sentence in (('libc:malloc size=%dj', 18, r"no register '%dj' on x86-64; .*"),
                                   ('malloc', 7, r"expected ':' and a function after the file, .*"),
                                   ('libc:', 6, r'expected a function, a glob or a file offset, .*'),
                                   (':malloc', 1, r"expected a program or library before ':', .*"),
                                   ('libc:malloc+zz', 13, r"expected a number after '\+', .*"),
                                   ('libc:malloc $arg0', 17,
                                    r'arguments are numbered \$arg1 to \$arg\d+'), ('libc:malloc x=%di:u9', 19,
                                                                                    r"no type 'u9'; .*"),
                                   ('libc:malloc \\99999999999999999999', 14,
                                    r"expected a number of at most 64 bits .*"), ('libc:malloc +0(%flags)', 16,
                                                                                  r"'%flags' is no address; .*"),
                                   ('\x1b[31m', 6, r"expected ':' .*"), ('', 1, r'expected FILE:FUNCTION, .*')):
        result = kymo('record', '-p', spec, '--', 'touch', 'ran').ended(2)
        lines = result.err.splitlines()
        check(re.fullmatch(rf'kymo: column {column}: {sentence}', lines[0]), f'not /{sentence}/', result)
        check_equal(lines[1], '  ' + ''.join(c if c.isprintable() else '?' for c in spec), 'the text')
        check_equal(lines[2], ' ' * (column + 1) + '^', 'the mark')
        check('\x1b' not in result.err, 'control codes')
    check_equal(os.listdir(tmp), [], 'files')


def test_random_words_are_specs_or_are_marked(tmp):
    choose = random.Random(3)
    pieces = [
        'libc', ':', 'malloc', '%di', '$arg', '7', '=', '+', '-', '0x', '\\', ' ', 'p:', '/', '*', '[', ']', 'u8', '@',
        '(', ')', '\xe9', '\x07', '%', 'ret'
    ]
    for _ in range(40):
        spec = ''.join(choose.choices(pieces, k=choose.randrange(1, 12)))
        result = kymo('record', '-p', spec, '--', 'true')
        check(result.status in (0, 1, 2), f'exit status with {spec!r}', result)
        if result.status == 2:
            check_matches(result.err, r'^ +\^$', repr(spec))
        shutil.rmtree('kymo.data', ignore_errors=True)
        shutil.rmtree('kymo.data.old', ignore_errors=True)


# ---- where it writes -----------------------------------------------------------------------------


def test_what_is_in_the_way_is_left_alone(tmp):
    sentence = r'{} exists and is not a recording of kymo\'s; choose another directory with -o'
    (tmp / 'file').write_text('mine')
    (tmp / 'mine').mkdir()
    (tmp / 'mine/thing').write_text('mine too')
    os.symlink('mine', 'link')
    for name in ('file', 'mine', 'mine/', 'link'):
        check_refused(['-o', name, '-p', 'libc:malloc', '--', 'touch', 'ran'], sentence.format(name.rstrip('/')))
    record('-o', 'new', '-p', 'libc:malloc', '--', 'true').ok()
    (tmp / 'new.old').mkdir()
    (tmp / 'new.old/thing').write_text('mine again')
    check_refused(['-o', 'new', '-p', 'libc:malloc', '--', 'touch', 'ran'], sentence.format(r'new\.old'))
    check_equal([(tmp / name).read_text() for name in ('file', 'mine/thing', 'new.old/thing')],
                ['mine', 'mine too', 'mine again'])
    report_json('new')
    check(not (tmp / 'ran').exists(), 'the command ran')
    check_refused(['-o', 'no/such/place', '-p', 'libc:malloc', '--', 'true'],
                  r'cannot make the directory no/such/place: No such file or directory')


def test_an_earlier_recording_is_kept_once(tmp):
    for i in range(3):
        record('-p', 'callmany:work_a', '--', target_path('callmany'), i + 1).ok()
    check_equal(sorted(os.listdir(tmp)), ['kymo.data', 'kymo.data.old'], 'files')
    check_equal([report_json(name)['events'] for name in ('kymo.data', 'kymo.data.old')], [3, 2], 'events')


# Its return is the last byte of the text, where no jump fits in.
NO_RETURN = '''#include <unistd.h>
__attribute__((noipa)) int step(int n) { usleep(1000 * n); __asm__ volatile("nop" ::: "memory"); return n; }
int main(void) { for (;;) step(100); }
'''


def test_a_process_that_is_refused_leaves_the_earlier_recordings(tmp):
    (tmp / 'stepping.c').write_text(NO_RETURN)
    run(program('gcc'), '-O2', '-o', 'stepping', 'stepping.c', seconds=60).ok()
    for i in range(2):
        record('-p', 'callmany:work_a', '--', target_path('callmany'), i + 1).ok()
    processes = [start('./stepping') for _ in range(2)]
    for pids in (processes[0].pid, ','.join(str(process.pid) for process in processes)):
        record('--backend', 'inproc', '-r', './stepping:step', '--for', 1, '--pid',
               pids).refused(r'no probe can be put at step%return of .*stepping: jump: ')
        check_equal(sorted(path.name for path in tmp.glob('kymo*')), ['kymo.data', 'kymo.data.old'], 'directories')
        check_equal([report_json(name)['events'] for name in ('kymo.data', 'kymo.data.old')], [2, 1], 'events')


def test_a_read_only_directory(tmp):
    need_root()
    (tmp / 'locked').mkdir(mode=0o555)
    check_refused(['-p', 'libc:malloc', '--', 'touch', '/tmp/never'],
                  r'cannot make the directory kymo\.data: Permission denied', user=NOBODY, cwd=tmp / 'locked')
    process = sleeper(user=NOBODY)
    check_refused(['-p', 'libc:malloc', '--pid', process.pid],
                  r'cannot make the directory kymo\.data: Permission denied', user=NOBODY, cwd=tmp / 'locked')
    check_text_intact(process.pid)


FULL_DISK = '''
mount -t tmpfs -o size=20m tmpfs small || exit 77
"$@"
echo "status $?"
cp -r small/kymo.data copy
'''


def test_a_full_disk(tmp):
    """The command runs on; what fits is complete."""
    need_root()
    (tmp / 'small').mkdir()
    arguments = ' '.join(f'$arg{n}' for n in range(1, 9))
    process = start(program('unshare'), '-m', 'sh', '-c', FULL_DISK, 'sh', KYMO, 'record', '-o',
                    'small/kymo.data', '--buffer', '64M', '-p', f'callmany:work_eight {arguments}', '--',
                    target_path('callmany'), 900000, 'work_eight')
    result = process.end(seconds=90)
    if result.status == 77:
        skip('no permission to mount')
    check_matches(result.err, r"^kymo: cannot write the stream stream_\d+: No space left on device$")
    check_matches(result.out, r'^status 1$')
    eventually(lambda: 'work_eight 900000\n' in process.out, 'the command ends well')
    report = report_json('copy')
    check(0 < report['events'] < 900000, 'some events are recorded', report['events'])
    check_equal(babeltrace_with_losses('copy'), (report['events'], report['lost_events']), 'events and lost ones')


def test_a_full_disk_beside_a_running_process(tmp):
    """Probes are taken out of it."""
    need_root()
    (tmp / 'small').mkdir()
    process = target('callmany', '-w', '2000000', 'work_six')
    arguments = ' '.join(f'$arg{n}' for n in range(1, 7))
    recorder = start(program('unshare'), '-m', 'sh', '-c', FULL_DISK, 'sh', KYMO, 'record', '-o', 'small/kymo.data',
                     '--buffer', '64M', '-p', f'callmany:work_six {arguments}', '--pid', process.pid)
    recorder.wait_for(r'^kymo: recording process', 1)
    process.send('\n')
    result = recorder.end()
    check_matches(result.err, r"^kymo: cannot write the stream stream_\d+: No space left on device$")
    process.wait_for('^work_six 2000000$')
    check_text_intact(process.pid)
    check_equal([mapping.line for mapping in processes.maps(process.pid) if mapping.path.startswith('/memfd:')], [],
                'mappings')
    check_equal(process.end(input='\n').status, 0, 'exit status')
    report = report_json('copy')
    check_equal(babeltrace_with_losses('copy'), (report['events'], report['lost_events']), 'events and lost ones')
