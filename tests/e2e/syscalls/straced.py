"""The same command under strace and under kymo, and what they print made comparable.

Each process' lines are compared in their order, from `-f -o FILE`. A line that was left unfinished and taken up is
one line again: where it was broken depends on which thread was faster. So does the moment when another process' signal
arrives, such as SIGCHLD: those lines are compared too, but behind the others. And these differ from run to run, with
any tracer:
"""
import collections
import re
import subprocess
from pathlib import Path

import processes
from kymotest import KYMO, check_equal, check_same, eventually, fail, program, run, skip

CHANGES = ((re.compile(r'0x[0-9a-f]{5,}'), 'ADDRESS'),
           (re.compile(r'\b(tv_sec|tv_usec|tv_nsec|si_utime|si_stime)=\d+( /\* [\d.]+ s \*/)?'), r'\1=TIME'),
           (re.compile(r'"(\\x[0-9a-f]{2})+"'), 'RANDOM BYTES'), (re.compile(r'htons\([1-9]\d{3,4}\)'), 'htons(PORT)'),
           (re.compile(r'(accept4|getpeername)(\(.*sa_data=)".*"'),
            r'\1\2"PORT AND ADDRESS"'),  # they are asked for less than an address
           (re.compile(r'^getppid\(\) = \d+'), 'getppid() = PARENT'),  # of the first process: strace, kymo
           (re.compile(r'^sysinfo\(.*'), 'sysinfo(…)'), (re.compile(r'/#\d+'),
                                                         '/#INODE'),  # files without a name: outputs of this test
           (re.compile(r'/tmp/cc\w{6}'), '/tmp/ccNAME'), (re.compile(r'TIOCGPTN, \[\d+\]'),
                                                          'TIOCGPTN, [TERMINAL]'),  # others make some, too
           (re.compile(r'(socket|pipe):\[\d+\]'),
            r'\1:[INODE]'), (re.compile(r'^((?:shm|sem|msg)(?!get)\w+)\(\d+'),
                             r'\1(ID'), (re.compile(r'^((?:shm|sem|msg)get\(.*\)) = \d+$'), r'\1 = ID'),
           )

# Where process ids stand; elsewhere, such a number is a size by chance.
WITH_PIDS = re.compile(
    r'---|(clone3?|v?fork|wait4|waitid|t?g?kill|get\w*pid|gettid|[gs]etpg\w+|setsid|set_tid_address|rt_sig\w+|process_vm_\w+|semctl|pidfd_\w+|rt_tgsigqueueinfo|setpriority|ioprio_get)\(|fcntl\((.*\bF_SETOWN|\d+, 0x8,)|.*\bpid='
)

# Something that kymo says otherwise: a line of strace's (a pattern of it as a whole), what kymo has for it, and why. ''
# is no line. `unless` is in no line of that process.
Difference = collections.namedtuple('Difference', 'strace kymo why unless', defaults=(None, ))

# What differs in each run, with any tracer: a line, or a part of one, what is compared in its place, and why. '' is
# no line. `where` is in a line of that process.
Chance = collections.namedtuple('Chance', 'line instead why where', defaults=(None, ))

# libc asks once more where the random number for a temporary name is one of those that would make some names likelier.
NOW_AND_THEN = 'getrandom(RANDOM BYTES, 8, GRND_NONBLOCK) = 8'

PYTHON = ('-s', '-S', '-c', 'import json, subprocess, threading; print(json.dumps([1]))')
PYTHON_ENV = {'PYTHONDONTWRITEBYTECODE': '1', 'PYTHONHASHSEED': '0'}
CHILDREN = 'true; /bin/true; (exit 3); /bin/sh -c \'kill -TERM $$\'; exit 0'


def command_of(tracer):
    """The command that a kymo syscalls has begun, a child of the process that does its work, once it is executed."""
    def found():
        below = [pid for worker in processes.children(tracer.pid) for pid in processes.children(worker)]
        return next((pid for pid in below if not processes.status(pid).get('Name', 'kymo').startswith('kymo')), None)

    return eventually(found, 'the command runs')


def build_as(tmp, name, source, *options):
    run(program('gcc'), '-w', '-o', tmp / name, Path(__file__).parent / f'{source}.c', *options).ok()
    return tmp / name


def build(tmp, name, *options):
    """A program of this directory."""
    return build_as(tmp, name, name, *options)


def build32(tmp, name):
    """A program that makes calls of 32 bits: 'as32' is one of 32 bits itself, 'in64' is not."""
    as32 = ['-m32', '-nostdlib', '-static', '-fno-stack-protector'] if name == 'as32' else []
    build_as(tmp, name, 'calls32', '-O1', '-no-pie', *as32)
    try:
        status = subprocess.run([tmp / name]).returncode
    except OSError:  # ENOEXEC: it runs no such program either
        status = 1
    if status:
        skip('this kernel makes no calls of 32 bits')
    return tmp / name


CALLS32 = 'open,getpid,read,write,unlink,close,getuid,exit'  # the calls of calls32.c


def names_and_results(text):
    """(name, result) of each line; the only result that differs from run to run is that of getpid."""
    calls = re.findall(r'^(?:\d+ +)?(\w+)\(.*\) += (\S+)', text, re.MULTILINE)
    return [(name, 'PID' if name == 'getpid' else result) for name, result in calls]


def git_log(tmp):
    git = [program('git'), '-C', tmp / 'repository', '-c', 'user.name=x', '-c', 'user.email=x@localhost']
    (tmp / 'repository').mkdir()
    run(*git, 'init', '-q').ok()
    run(*git, 'commit', '-q', '--allow-empty', '-m', 'one').ok()
    return [*git, 'log', '--stat']


def whole_lines(text):
    """{pid: lines} in the order in which processes appear."""
    unfinished, processes = {}, {}
    for line in text.splitlines():
        pid, _, rest = line.partition(' ')
        rest = rest.lstrip()
        lines = processes.setdefault(pid, [])
        resumed = re.match(r'<\.\.\. \w+ resumed>(.*)', rest)
        if resumed:
            rest = unfinished.pop(pid) + resumed[1]
        if rest.endswith(' <unfinished ...>'):
            unfinished[pid] = rest[:-len(' <unfinished ...>')]
        else:
            lines.append(rest)
    check_equal(unfinished, {}, 'lines that were never taken up')
    return processes


def ended(strace):
    """With an end of each exit_group. While another thread ends the process the kernel does not stop a thread at its
    end, and strace leaves its line as it is. Nor may strace know the call of a thread that is about to end."""
    strace = re.sub(r'^\d+ +(\?\?\?\(|<\.\.\. \?\?\? resumed>).*\n', '', strace, flags=re.MULTILINE)
    last = {}
    for line in strace.splitlines():
        pid, _, rest = line.partition(' ')
        if not rest.lstrip().startswith('+++'):
            last[pid] = rest.strip()
    return strace + ''.join(f'{pid} <... exit_group resumed>) = ?\n' for pid, rest in last.items()
                            if re.fullmatch(r'exit_group\(.* <unfinished \.\.\.>', rest))


def comparable(text):
    """Texts, one a process, sorted: which of two children comes first is not defined."""
    processes = whole_lines(text)
    pids = re.compile(rf'\b({"|".join(processes)})\b')
    results = []
    for lines in processes.values():
        changed = []
        for line in lines:
            if WITH_PIDS.match(line):
                line = pids.sub('PID', line)
            line = re.sub(r'\) += ', ') = ', line, count=1)  # the column depends on what was before
            for pattern, replacement in CHANGES:
                line = pattern.sub(replacement, line)
            if line != NOW_AND_THEN:
                changed.append(line)
        signals = sorted(line for line in changed if line.startswith('--- SIGCHLD'))
        results.append('\n'.join([line for line in changed if not line.startswith('--- SIGCHLD')] + signals))
    return sorted(results)


def trace(tmp, options, command, backend=(), **how):
    """What strace and kymo write. The layout of memory is the same for both, as it decides how often a program asks
    for more."""
    texts = []
    (tmp / 'traces').mkdir(exist_ok=True)  # programs that look at their directory find the same there
    for name, tracer in (('strace', (program('strace'), '-q')), ('kymo', (KYMO, 'syscalls', *backend))):
        result = run(program('setarch'), '-R', *tracer, '-f', '-o', tmp / 'traces' / name, *options, *command, **how)
        if result.status and name == 'strace':
            fail(f'the command fails by itself:\n{result}')
        result.ok()
        texts.append((tmp / 'traces' / name).read_text(errors='backslashreplace'))
    return texts


def check_like_strace(tmp, *command, options=(), at_least=1, only_strace=None, changes=(), **how):
    """The same lines, of which there are `at_least` so many; but for those that `only_strace` prints, and for
    `changes`, as above."""
    strace, kymo = trace(tmp, options, command, **how)
    if only_strace:
        strace, lines = re.subn(rf'^\d+ +{only_strace}.*\n', '', strace, flags=re.MULTILINE)
        if not lines:
            fail(f'strace has no line /{only_strace}/: the difference is gone')
    strace, kymo = comparable(ended(strace)), comparable(kymo)
    for pattern, replacement in changes:
        strace, kymo = ([re.sub(pattern, replacement, text, flags=re.MULTILINE) for text in texts]
                        for texts in (strace, kymo))
    n = sum(len(text.splitlines()) for text in kymo)
    if n < at_least:
        fail(f'{n} lines, not at least {at_least}')
    check_same('\n'.join(sorted(kymo)), '\n'.join(sorted(strace)), f'what kymo and strace say of {command}')


def replace_lines(lines, pattern, replacement):
    """The lines with whole ones replaced, or left out, and how many."""
    compiled = re.compile(pattern)
    results = [(line, False) if not compiled.fullmatch(line) else (compiled.sub(replacement, line, count=1), True)
               for line in lines]
    return [line for line, _ in results if line], sum(is_replaced for _, is_replaced in results)


def as_kymo_says(texts, differences):
    """What is expected of kymo where strace says this. A difference that is nowhere is gone, and has no place in the
    list."""
    counts = [0] * len(differences)
    expected = []
    for text in texts:
        lines = text.splitlines()
        for i, difference in enumerate(differences):
            if difference.unless and re.search(difference.unless, text, re.MULTILINE):
                continue
            lines, n = replace_lines(lines, difference.strace, difference.kymo)
            counts[i] += n
        expected.append('\n'.join(lines))
    for difference, n in zip(differences, counts):
        if not n:
            fail(f'strace has no line /{difference.strace}/: the difference is gone ({difference.why})')
    return expected


def without_chance(texts, chances):
    def changed(text):
        those = [chance for chance in chances if not chance.where or re.search(chance.where, text, re.MULTILINE)]
        for line in text.splitlines():
            for chance in those:
                line = re.sub(chance.line, chance.instead, line)
            if line:
                yield line

    return ['\n'.join(changed(text)) for text in texts]


def check_compared(strace, kymo, differences=(), chances=(), at_least=1, each_once=False):
    """Both texts are the same but for `differences`, all of which occur, and for `chances`. `each_once`: a program
    does the same again and again, as often as there is time for; so what is compared is which lines there are.
    """
    expected, actual = (without_chance(comparable(text), chances) for text in (ended(strace), kymo))
    expected = as_kymo_says(expected, differences)
    if each_once:
        expected, actual = (['\n'.join(sorted(set(text.splitlines()))) for text in texts]
                            for texts in (expected, actual))
    n = sum(len(text.splitlines()) for text in actual)
    if n < at_least:
        fail(f'{n} lines, not at least {at_least}')
    check_same('\n'.join(sorted(actual)), '\n'.join(sorted(expected)),
               'what kymo says, and what is expected from what strace says')
