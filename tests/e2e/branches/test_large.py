"""Function clones of programs that are too large for them."""
import os
import signal
import time
from pathlib import Path

from kymotest import KYMO, check, check_equal, check_matches, kymo, record, run, start, timeout

CLONES = ('--branch-source', 'clones')

# Ten calls in each function: more than 2^18 addresses that calls return to.
LIBRARY = r"""
	.text
	.globl leaf
	.type leaf,@function
leaf:	xor %eax,%eax
	nopl 0(%rax,%rax)
	ret
	.size leaf,.-leaf
	.altmacro
	.macro one n
	.p2align 4
	.type f\n,@function
f\n:	sub $8,%rsp
	.rept 10
	call leaf@PLT
	nopl 0(%rax,%rax)
	.endr
	add $8,%rsp
	ret
	.size f\n,.-f\n
	.endm
	.set i,0
	.rept 28000
	one %i
	.set i,i+1
	.endr
	.section .note.GNU-stack,"",@progbits
"""

PROGRAM = r"""
#include <stdio.h>
int leaf(void);
__attribute__((noinline)) static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) { printf("%d\n", fib(12) + leaf()); }
"""


def build(tmp):
    (tmp / 'large.S').write_text(LIBRARY)
    (tmp / 'small.c').write_text(PROGRAM)
    run('gcc', '-shared', '-nostdlib', '-o', 'liblarge.so', 'large.S', seconds=100).ok()
    run('gcc', '-O1', '-o', 'small', 'small.c', './liblarge.so').ok()


@timeout(200)
def test_whole_files_are_left_out(tmp):
    build(tmp)
    result = record('-b', 'all', *CLONES, '--', './small').ok()
    check_equal(result.out, '144\n', 'what the program writes')
    check_matches(result.err, r'the functions of liblarge\.so are not recorded: all clones of a program take 262144')
    check_matches(kymo('branches').ok().out, r'small:fib', 'other files are recorded')
    record('-b', 'liblarge', *CLONES, '-o', 'none', '--', './small').refused('there are too many of them')
    record('-b', 'liblarge:f12*', *CLONES, '-o', 'some', '--', './small').ok()


@timeout(200)
def test_a_signal_ends_the_preparations(tmp):
    build(tmp)
    recorder = start(KYMO, 'record', '-b', 'all', *CLONES, '--', './small')
    time.sleep(0.4)
    os.kill(recorder.pid, signal.SIGTERM)
    began = time.monotonic()
    ended = recorder.end()
    check(time.monotonic() - began < 5, 'at once')
    if ended.out != '144\n':
        check_equal((ended.status, ended.out), (1, ''), 'the command was not executed')
        check_matches(ended.err, r'stopped while clones were made: the command was not executed')
        check(not Path('kymo.data').exists(), 'no recording is made')
