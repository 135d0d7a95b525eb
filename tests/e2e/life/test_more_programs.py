"""What one more program of a tree costs the recorder, counted in what does not depend on the machine's speed or load:
how often it lets a thread run to a system call, and how it writes pads."""
import re

from killing import NO_LEAKS
from kymotest import KYMO, check, program, run

FEW, MANY = 2, 8
SCRIPT = 'i=0; while [ $i -lt {} ]; do /bin/true; i=$((i+1)); done'


def requests(tmp, n, *what):
    """The recorder's ptrace() and process_vm_writev() calls while a shell executes n programs."""
    trace = f'{tmp}/trace'
    run(program('strace'), '-qq', '-o', trace, '-e', 'trace=ptrace,process_vm_writev', '-e', 'signal=none', KYMO,
        'record', '-q', '-o', f'{tmp}/data', *what, '--', 'sh', '-c', SCRIPT.format(n), env=NO_LEAKS)
    with open(trace, encoding='utf-8', errors='replace') as file:
        return file.read()


def check_steps(tmp, what, most):
    """The calls in a program's name take two such steps each, or none where they are made in a batch. Those that are
    left, and the linker's last ones, are half as many as `most`, for kernels and libraries with others."""
    few, many = (requests(tmp, n, *what).count('PTRACE_SYSCALL') for n in (FEW, MANY))
    check(few > FEW, f'{few} steps for {FEW} programs: the recorder does not trace them as it did')
    check((many - few) / (MANY - FEW) <= most,
          f'{what}: {few} steps to system calls for {FEW} programs, {many} for {MANY}; {most} a program at most')


def test_one_more_program_with_one_probe_takes_few_steps(tmp):
    check_steps(tmp, ('-p', 'libc:malloc'), 28)


def test_one_more_program_with_system_calls_takes_few_steps(tmp):
    check_steps(tmp, ('-s', '%file'), 40)


def test_pads_of_many_pages_are_copied_without_faults(tmp):
    seen = requests(tmp, FEW, '-s', '%file')
    sizes = [int(size) for size in re.findall(r'process_vm_writev\(.* = (\d+)$', seen, re.M)]
    check(len([size for size in sizes if size > 100 << 10]) >= FEW, f'{FEW} programs, and copies of {sizes} bytes')
