"""kymo report --events of recorded calls: lines of strace -f, but for memory, which is in no trace, and for what each
test lists."""
import re
import signal

from kymotest import SOURCE, check, check_equal, check_matches, kymo, program, record, timeout
from recorded_lines import check_lines, shown
from straced import CHILDREN, PYTHON, PYTHON_ENV, build, git_log

# '-' is of strace alone, '+' of kymo alone; what the line is; why.
FIRST = [('-', r'execve\(.*\) = 0$', 'the first execve is made by a child of whoever traces')]
EXEC = [('+', r'execve\((ADDRESS, ){2}ADDRESS\) = \?$', 'an execve that does not fail returns to another program')]
VFORK = [('+', r'exit\(0\) = \?$',
          "a child of vfork that is not glibc's makes its calls in the name of its parent's thread"),
         ('-', r'exit\(0\) = \?$', 'so it is not the child here that makes it'),
         ('-', r'vfork\(\) = PID$', 'there is no child with an id'),
         ('+', r'vfork\(\) = \d+$', 'that the trace has a record of')]
GUARDS = [('-', r'(clone3?|vfork|prctl)\(', "kymo's guards are in the places of glibc")]
BEFORE_EXEC = [('-', r'(execve|rt_sigprocmask|rt_sigaction|exit_group)\(',
                'children of vfork are not recorded before their exec')]
STDERR = [('-', r'lseek\(2, 0, SEEK_CUR\) = 0$', 'kymo has written warnings'),
          ('+', r'lseek\(2, 0, SEEK_CUR\) = \d+$', 'to the same file before')]
DEATH = [('-', r'kill\(PID, SIGTERM\) = 0$', 'who is ended by the signal that it sends'),
         ('+', r'kill\(PID, SIGTERM\) = \?$', 'does not come back to the pad')]


@timeout(300)
def test_calls_with_odd_arguments_look_as_in_strace(tmp):
    check_lines(tmp, build(tmp, 'calls'), at_least=450, different=FIRST + VFORK)


@timeout(300)
def test_programs_look_as_in_strace(tmp):
    check_lines(tmp, program('ls'), '-lR', SOURCE / 'docs', at_least=100, different=FIRST)
    check_lines(tmp, *git_log(tmp), at_least=100, different=FIRST)


# It asks for them in the order of what is sorted by its address, and kymo's memory is among its own.
ARENAS = r'mmap\(NULL, \d+, PROT_READ\|PROT_WRITE, MAP_PRIVATE\|MAP_ANONYMOUS, -1, 0\) = ADDRESS$'


@timeout(300)
def test_python_looks_as_in_strace(tmp):
    check_lines(tmp, program('python3'), *PYTHON, at_least=300, different=FIRST + STDERR, swapped=ARENAS,
                env=PYTHON_ENV)


@timeout(300)
def test_threads_and_children_look_as_in_strace(tmp):
    check_lines(tmp, build(tmp, 'threads', '-pthread'), at_least=40, different=FIRST + GUARDS)
    check_lines(tmp, program('sh'), '-c', CHILDREN, at_least=100, different=FIRST + GUARDS + BEFORE_EXEC + DEATH)
    check_lines(tmp, program('sh'), '-c', 'exec /bin/true', at_least=20, different=FIRST + EXEC)


# strace has two lines of a call that is interrupted, and says that it is made again. A program sees one call that takes
# longer, or one that fails.
READ = r'read\(3,  <unfinished \.\.\.>'
HANDLER = r'write\(4, 0x\w+, 1\) += 1'
INTERRUPTED = [
    READ, HANDLER, r'<\.\.\. read resumed>0x\w+, 1\) += 1', READ, HANDLER,
    r'<\.\.\. read resumed>0x\w+, 1\) += -1 EINTR \(Interrupted system call\)', r'read\(3, 0x\w+, 1\) += 1',
    READ,  # left by a jump
    r'read\(3,  <unfinished \.\.\.>\) += \?',  # ended by a signal
    r'<\.\.\. read resumed> <unfinished \.\.\.>\) += \?',
]


def test_interrupted_calls_are_what_the_program_sees(tmp):
    record('-s', 'read,write', '--', build(tmp, 'interrupted')).ended(128 + signal.SIGALRM)
    lines = [line.partition(' ')[2] for line in shown().splitlines()]
    lines = lines[-len(INTERRUPTED):]
    check(
        len(lines) == len(INTERRUPTED) and
        all(re.fullmatch(pattern, line) for pattern, line in zip(INTERRUPTED, lines)), '\n'.join(lines))


def test_threads_that_wait_leave_lines_that_are_taken_up(tmp):
    record('-s', 'pause,getuid,exit_group', '--', build(tmp, 'threads', '-pthread')).ok()
    lines = [re.sub(r'^\d+ ', '', line) for line in shown().splitlines()]
    check_equal([line for line in lines if not line.startswith('getuid')], ['pause( <unfinished ...>'] * 3 +
                ['exit_group(0)                           = ?'] + ['<... pause resumed>)                    = ?'] * 3,
                'lines')


def test_raw_events_are_records_with_numbers():
    record('-s', 'write', '--', program('sh'), '-c', 'echo 12345').ok()
    lines = kymo('report', '--events', '--raw').ok().out.splitlines()
    check_matches(lines[0], r' sh syscall:write arg1=0x1 arg2=0x\w+ arg3=0x6 ')
    check_matches(lines[1], r' sh syscall:return result=6$')
    check_matches(
        kymo('report', '--events').ok().out,
        r'^ +0\.000000000 \[\d{3}\] +\d+ sh write\(1, 0x\w+, 6\) +  = 6 <0\.\d{9}>\n$')
    kymo('report', '--raw').refused('--raw requires --events', 2)


def test_calls_stand_between_other_events():
    record('-s', 'write', '-p', 'libc:write', '--', program('sh'), '-c', 'echo 12345').ok()
    out = kymo('report', '--events').ok().out
    check_matches(out, r' sh libc:write\n.* sh write\(1, 0x\w+, 6\) += 6 <')
