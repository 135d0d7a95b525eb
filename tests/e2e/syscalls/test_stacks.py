"""kymo syscalls -k: the stack behind each line, beside what strace prints."""
import json
import re
import signal

from kymotest import (KYMO, check, check_equal, check_matches, check_same, eventually, program, run, start,
                      start_record, timeout)
from straced import build

# as strace prints it: function and offset, or neither
FRAME = re.compile(r' > (.*)\((.*?)\+0x([0-9a-f]+)\) \[0x([0-9a-f]+)\]$|'
                   r' > (.*)\(\) \[0x([0-9a-f]+)\]$')
FIXED = 0x400000  # where programs without PIE are linked to: strace counts from the file's beginning


def calls(text):
    """[line without its thread, [frame…]] for each line but ends."""
    result = []
    for line in text.splitlines():
        if line.startswith(' > '):
            result[-1][1].append(line)
        elif '+++' not in line:
            result.append((re.sub(r'^(\d+ +|\[pid +\d+\] )', '', line), []))
    return result


def place(frame):
    """The file and the address in it."""
    match = FRAME.match(frame)
    if not match:
        return frame
    address = int(match[4] or match[6], 16)
    return match[1] or match[5], hex(address - FIXED if FIXED <= address < 2 * FIXED else address)


def function(frame):
    return re.sub(r'.*\((.*?)(\+0x[0-9a-f]+)?\) \[.*', r'\1', frame)


def functions(text, call='getppid'):
    """Names of the frames of each such call, which a line that was begun alone does not have."""
    return [[function(frame) for frame in frames] for line, frames in calls(text)
            if frames and re.match(rf'(<\.\.\. )?{call}( resumed>|\()', line)]


def trace(tmp, *command, options=(), tracer=(KYMO, 'syscalls'), **how):
    result = run(program('setarch'), '-R', *tracer, '-k', '-o', tmp / 'out', *options, *command, **how)
    return (tmp / 'out').read_text(), result


def counted(tmp):
    process = start(build(tmp, 'counted', '-O1', '-pthread', '-fno-optimize-sibling-calls'))
    process.wait_for(r'^ready$')
    return process


def check_like_strace(tmp, calls_shown, *command, at_least=1, options=(), **how):
    """The same calls and signals, with the same frames: file and address. Names are compared elsewhere, as strace
    takes the nearest one that is exported."""
    strace, _ = trace(tmp, *command, options=('-e', f'trace={calls_shown}', *options), tracer=(program('strace'), '-q'),
                      **how)
    kymo, result = trace(tmp, *command, options=('-e', calls_shown, *options), **how)
    result.ok()
    strace, kymo = ([(re.split(r'[({]', line)[0], [place(frame) for frame in frames]) for line, frames in calls(text)]
                    for text in (strace, kymo))
    check(len(kymo) >= at_least, f'{len(kymo)} calls, not {at_least}')
    check_same([f'{name}: {frame}' for name, frames in kymo for frame in ['', *frames]],
               [f'{name}: {frame}' for name, frames in strace for frame in ['', *frames]], 'frames')


@timeout(300)
def test_frames_are_those_of_strace_for_bash(tmp):
    check_like_strace(tmp, 'pipe2,dup2,openat,read,exit_group', program('bash'), '-c',
                      'echo a; x=$(</dev/null); . /dev/null; echo b >/dev/null', at_least=10)


@timeout(300)
def test_frames_are_those_of_strace_for_python(tmp):
    check_like_strace(tmp, 'getpid,getcwd,getdents64', '/usr/bin/python3', '-I', '-S', '-c',
                      'import os, json; os.getpid(); os.getcwd(); os.listdir("/")', at_least=4)


def test_frames_are_those_of_strace_without_symbols(tmp):
    stacks = build(tmp, 'stacks', '-O2', '-pthread')
    run(program('strip'), stacks).ok()
    check_like_strace(tmp, 'getppid,exit_group', stacks, 'nested', at_least=2)
    check_like_strace(tmp, 'getppid,exit_group', stacks, 'handler', at_least=2)


def test_nested_functions_are_named_in_each_thread(tmp):
    text, _ = trace(tmp, build(tmp, 'stacks', '-O2', '-pthread'), 'threads', options=('-f', '-e', 'getppid'))
    stacks = functions(text)
    check_equal(len(stacks), 4, 'stacks')
    for names in stacks:
        check_equal(names[1:5], ['inner', 'middle', 'outer', 'in_thread'], 'functions')


def test_static_programs_have_stacks(tmp):
    for options in (('-static', ), ('-static-pie', ), ('-no-pie', )):
        text, _ = trace(tmp, build(tmp, 'stacks', '-O2', '-w', '-pthread', *options), 'nested',
                        options=('-e', 'getppid'))
        names = functions(text)[0]
        check_equal(names[1:5], ['inner', 'middle', 'outer', 'main'], f'functions, {options}')
        check_equal(names[-1], '_start', f'outermost, {options}')


def test_a_handler_is_on_top_of_what_it_interrupted(tmp):
    text, _ = trace(tmp, build(tmp, 'stacks', '-O2', '-pthread'), 'handler', options=('-e', 'getppid'))
    names = functions(text)[0]
    check_equal(names[1:3], ['inner', 'on_signal'], 'functions')
    check(names.index('raise_it') > names.index('on_signal'), 'the interrupted function is further out', text)
    check(
        'raise_it'
        in [function(frame) for line, frames in calls(text) for frame in frames if line.startswith('--- SIGUSR1')],
        'the signal has a stack', text)


def test_libraries_that_are_loaded_later_are_known(tmp):
    (tmp / 'library.c').write_text('void in_library(void (*f)(void)) { f(); __asm__ volatile(""); }\n')
    run(program('gcc'), '-O2', '-shared', '-fPIC', '-o', tmp / 'library.so', tmp / 'library.c').ok()
    text, _ = trace(tmp, build(tmp, 'stacks', '-O2', '-pthread'), 'library', tmp / 'library.so',
                    options=('-e', 'getppid'))
    stacks = functions(text)
    check_equal([names[1:4] for names in stacks], [['inner', 'in_library', 'library']] * 2, 'functions')
    check_matches(text, rf'^ > {tmp}/library.so\(in_library\+0x', 'output')


def test_another_program_has_its_own_stack(tmp):
    stacks = build(tmp, 'stacks', '-O2', '-pthread')
    text, _ = trace(tmp, program('sh'), '-c', f'exec {stacks} nested', options=('-e', 'getppid,execve'))
    check_equal(functions(text)[-1][1:5], ['inner', 'middle', 'outer', 'main'], 'functions')
    check(any('execve' in name for name in functions(text, 'execve')[-1]),
          'the exec has the stack of the program before', text)


def test_made_code_is_told_by_its_address(tmp):
    text, _ = trace(tmp, build(tmp, 'stacks', '-O2', '-pthread'), 'made', options=('-e', 'getppid'))
    check_matches(text, r'\(inner\+0x.*\n > \[0x[0-9a-f]+\]\n > .*\(made\+0x', 'output')


def test_stacks_that_are_none_are_bounded(tmp):
    stacks = build(tmp, 'stacks', '-O2', '-pthread')
    for mode in 'hostile', 'endless':
        text, result = trace(tmp, stacks, mode, options=('-e', 'getppid'))
        result.ok()
        sizes = [len(frames) for _, frames in calls(text)]
        check_equal(len(sizes), 6 if mode == 'hostile' else 1, 'calls')
        check(all(1 <= n <= 256 for n in sizes), f'{sizes} frames')
    check_equal(sizes, [256], 'frames of endless recursion')


def test_json_has_the_stack_as_a_list(tmp):
    text, _ = trace(tmp, build(tmp, 'stacks', '-O2', '-pthread'), 'nested', options=('-e', 'getppid', '--json'))
    call = json.loads(text.splitlines()[0])
    check_equal([frame.get('function') for frame in call['stack']][1:5], ['inner', 'middle', 'outer', 'main'],
                'functions')
    check_equal(call['stack'][1]['file'], str(tmp / 'stacks'), 'file')
    check(
        re.fullmatch('0x[0-9a-f]+', call['stack'][1]['address']) and call['stack'][1]['offset'] > 0,
        'address and offset', text)


def check_stacks_of_work(text):
    """Of the threads of counted.c: each has the function that calls syscall(), and nothing of kymo's."""
    stacks = functions(text, 'getpgid')
    check(stacks, 'there are stacks', text)
    for names in stacks:
        check_equal(names[:2], ['syscall', 'work'], 'functions')
    check('/memfd:' not in text, 'no frame is in a pad', text)


def trace_until_seen(process, *options):
    """What is shown of getpgid() until there are 20."""
    tracer = start(KYMO, 'syscalls', '-k', '-e', 'getpgid', *options, '--pid', process.pid)
    eventually(lambda: tracer.output(1).count('getpgid(') > 20 or not tracer.is_alive(), 'calls are shown', 60)
    return tracer


def test_recorded_calls_have_the_stack_of_their_place(tmp):
    """A call that is recorded by kymo, too, is made in a pad, which is in no stack."""
    process = counted(tmp)
    recorder = start_record(process.pid, '-s', 'getpgid')
    text = trace_until_seen(process).end(signal.SIGINT).ok().err
    recorder.end(signal.SIGINT).ok()
    check_stacks_of_work(text)
    process.end(input='x').ok()


def test_who_has_joined_sees_stacks_too(tmp):
    process = counted(tmp)
    first = trace_until_seen(process)
    text = trace_until_seen(process).end(signal.SIGINT).ok().err
    check_stacks_of_work(text)
    check_stacks_of_work(first.end(signal.SIGINT).ok().err)
    process.end(input='x').ok()


def test_a_death_meanwhile_is_no_failure(tmp):
    for _ in range(5):
        process = counted(tmp)
        tracer = trace_until_seen(process)
        process.kill()
        result = tracer.end()
        check_equal(result.status, 0, 'exit status')
        check_matches(result.err, r'\+\+\+ killed by SIGKILL', 'output')


def test_what_can_not_be_is_refused(tmp):
    run(KYMO, 'syscalls', '-k', '--backend', 'kernel', '--', 'true').refused(
        '-k and -i need a stopped thread', status=2)
    run(KYMO, 'syscalls', '-k', '--all').refused('-k and -i need a stopped thread', status=2)
    run(KYMO, 'syscalls', '-k', '-c', 'true').refused('-c shows a table and no lines', status=2)


def test_damaged_files_do_no_harm(tmp):
    """Programs run without their unwind tables; what these say is looked at by kymo alone."""
    stacks = build(tmp, 'stacks', '-O2', '-pthread')
    whole = stacks.read_bytes()
    headers = run(program('readelf'), '-SW', stacks).ok().out
    found = re.search(r'\.eh_frame +PROGBITS +[0-9a-f]+ ([0-9a-f]+) ([0-9a-f]+)', headers)
    begin, size = (int(found[i], 16) for i in (1, 2))
    for at in range(begin, begin + size, max(1, size // 25)):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        (tmp / f'damaged{at}').write_bytes(damaged)
        (tmp / f'damaged{at}').chmod(0o755)
        text, result = trace(tmp, tmp / f'damaged{at}', 'nested', options=('-e', 'getppid'))
        result.ok()
        check_equal(functions(text)[0][1], 'inner', 'the first function of the program')
