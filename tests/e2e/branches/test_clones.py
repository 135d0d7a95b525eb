"""Which functions could be cloned: `kymo explain --branch`."""
import re

from kymotest import check, check_equal, check_matches, kymo, run, skip


def totals(*args):
    out = kymo('explain', '--branch', *args).ok().out
    found = re.search(r'^([\d,]+) functions: ([\d,]+) could be cloned', out, re.MULTILINE)
    check(found, 'totals', out[-500:])
    return (*(int(text.replace(',', '')) for text in found.groups()), out)


def test_most_functions_could_be_cloned(tmp):
    for name in ['libc', 'sort', 'ls']:
        n, cloned, out = totals(name)
        check(n > 100 and cloned >= 0.95 * n, f'at least 95 % of the functions of {name}', out[-500:])
        check_equal(out.count('  clone      none: '), n - cloned, 'each refusal has its reason')


def test_one_function(tmp):
    n, cloned, out = totals('libc', 'qsort_r')
    check_equal((n, cloned), (1, 1), 'qsort_r alone')
    check_matches(out, r'qsort_r 0x[0-9a-f]+\n  clone      could be made: \d+ blocks are recorded, \d+ jumps lead back')
    result = kymo('explain', '--branch', 'libc', 'no_such_function')
    check_equal((result.status, result.err), (1, "kymo: no function in libc is called 'no_such_function'\n"),
                'a name that is not there')


def test_what_makes_a_thread_could_not(tmp):
    """As `kymo record` refuses it."""
    result = kymo('explain', '--branch', 'libc', 'syscall')
    check_matches(result.out, r'clone      none: the system call at 0x[0-9a-f]+ may make a thread, which would go on')
    check_equal(result.status, 1, 'the only one is refused')


def test_an_indirect_function_is_all_that_it_may_be(tmp):
    n, _, out = totals('libc', 'strlen')
    check(n > 1 and '__strlen_avx2 ' in out, 'what its resolver chooses from', out)


CODE = r"""
	.text
	.globl computed, entered, jumper, data, plain, tiny, caller
	.type computed,@function
computed:			# lands anywhere behind the label
	lea 1f(%rip),%rax
	lea (%rax,%rdi,4),%rax
	jmp *%rax
1:	add $1,%edi
	add $1,%edi
	ret
	.size computed,.-computed
	.p2align 4
	.type entered,@function
entered:
	mov %edi,%eax
	test %eax,%eax
middle:	add $1,%eax
	ret
	.size entered,.-entered
	.p2align 4
	.type jumper,@function
jumper:	xor %eax,%eax
	jmp middle
	.size jumper,.-jumper
	.p2align 4
	.type other,@function
other:	mov $1,%eax
	jmp middle
	.size other,.-other
	.p2align 4
	.type split,@function
split:	test %edi,%edi
	je cold
	ret
	.size split,.-split
	.p2align 4
	.type cold,@function
cold:	mov $2,%eax
	ret
	.size cold,.-cold
	.p2align 4
	.type plain,@function
plain:	test %edi,%edi
	jne 1f
	ret
1:	xor %eax,%eax
	ret
	.size plain,.-plain
	.p2align 4
	.type tiny,@function
tiny:	ret			# no room: the next one begins at once
	.size tiny,.-tiny
	.type caller,@function
caller:	sub $8,%rsp
	call plain
	add $8,%rsp
	ret
	.size caller,.-caller
	.section .note.GNU-stack,"",@progbits
"""


def test_refusals(tmp):
    (tmp / 'code.S').write_text(CODE)
    if run('gcc', '-shared', '-nostdlib', '-o', 'libcode.so', 'code.S').status:
        skip('needs gcc')
    n, cloned, out = totals('./libcode.so')
    check_equal((n, cloned), (8, 6), 'how many could be cloned')
    for name, reason in [
        ('computed', r'the jump at 0x[0-9a-f]+ may lead anywhere into the function'),
        ('tiny', r'no room for a jump at 0x[0-9a-f]+, where the function is entered')
    ]:
        check_matches(out, rf'{name} 0x[0-9a-f]+\n  clone      none: {reason}\n')
    out = kymo('explain', '--branch', './libcode.so', 'entered').ok().out
    check_matches(out, r'2 blocks are recorded, 2 jumps lead back into it', 'the entry, and what others jump to')
    result = kymo('explain', '--branch', './libcode.so', 'tiny')
    check_equal((result.status, result.err), (1, "kymo: no function 'tiny' of ./libcode.so could be cloned\n"),
                'the only one is refused')
    result = kymo('explain', '--branch', './libcode.so', 'cold')
    check_equal((result.status, result.err), (1, "kymo: 'cold' of ./libcode.so is a part of another function\n"), 'a part')
