"""Expressions and filters through the kernel: what programs of BPF compute is what pads compute."""
import re
from pathlib import Path

from kymotest import check, check_equal, check_matches, kymo, need_uprobes, record, report_json, run

HERE = Path(__file__).parent

# Each is arguments of one probe at the entry of feed().
ARGUMENTS = [
    'n u c (-n) (~n) (!n) (n + 1)',
    '(n - u) (n * u) (n & u) (n | u) (n ^ 7) (n << 3) (n >> 3)',
    '(u >> 5) (u << 5) (n / 7) (n % 7) (n / -3) (n % -3) (u / 9)',
    '(u % 9) (n / c) (n % c) (c / n) (n < 5) (n <= -1) (u > 100)',
    '(n == 7) (n != 7) (n < 0 && u > 5) (n > 0 || u == 0) (n ? 1 : 2) (c < 0 ? -c : c) (char)n',
    '(short)n (unsigned)n (unsigned char)u ((int)u * 2) arg0 arg1 %di',
    'item->id item->kind item->flags item->big item->low item->high item->next',
    'item->next->id item->next->kind item->next->big (item->id + item->next->id) item->next->next item->name',
    'total spare.id (spare.big - total) str(spare.name) (&spare == item)',
    'str(text) text[0] text[1] str(item->name, 8)',
    'str(item->name) str(text, 3) str(item->next->name, 4)',
    '(pid == tid) (pid > 1) $stack0:x64 %sp %si:s8 %dx:x16',
    '(item->flags & 4 ? item->kind : item->id) *(int *)arg0 ((struct item *)arg0)->kind',
]
ARGUMENTS_OF_LENGTHS = ['str(text, n) str(item->name, u & 7)', 'str(text, n / c) str(text, item->next->id)']
FILTERS_OF_LENGTHS = [
    'str(text, u & 7) == "names"', 'str(text, n) != "name"', 'str(item->name, item->next->id) == "a"'
]
FILTERS = [
    'n > 0', 'n == -7 || u == 0', 'item->id > 0', 'item->next->id & 1', 'n / c > 0', 'item->next', '!item',
    'str(text) == "names"', 'str(text) != "names"', 'str(text, 2) == "na"', 'item->low == 3 && item->high > 20',
    'n % 7 == 0', '(char)u < 0', 'total > 1000',
    ' || '.join(f'n == {i}' for i in range(12))
]
RETURNS = [('total', '/spare.id == 5/'), ('retval $retval retval*2', ''), ('retval', '/retval < 0/'),
           ('retval', '/(int)retval > 1000/')]


def groups():
    """The probes by recordings: one site has sixteen at most."""
    return [[('-p', f'p:a{i} ./values:feed {arguments}') for i, arguments in enumerate(ARGUMENTS)],
            [('-p', f'p:f{i} ./values:feed /{condition}/ n') for i, condition in enumerate(FILTERS)] +
            [('-r', f'r:r{i} ./values:feed {condition} {arguments}')
             for i, (arguments, condition) in enumerate(RETURNS)],
            [('-p', f'p:t{i} ./values:feed {arguments}') for i, arguments in enumerate(ARGUMENTS_OF_LENGTHS)] +
            [('-p', f'p:u{i} ./values:feed /{condition}/ n') for i, condition in enumerate(FILTERS_OF_LENGTHS)]]


def seen(directory, backend, probes):
    """{name: [fields of each event, as kymo shows them]} of a recording."""
    words = [word for probe in probes for word in probe]
    record('-o', directory, '--backend', backend, *words, '--', 'setarch', '-R', './values').ok()
    check_equal(report_json(directory)['lost_events'], 0, f'lost in {directory}')
    found = {}
    # babeltrace2 prints the last text once more in place of an empty one.
    for line in kymo('report', '--events', directory).ok().out.splitlines():
        name, _, fields = re.fullmatch(r' *[\d.]+ \[\d+\] +\d+ values (.*)', line)[1].partition(' ')
        found.setdefault(name, []).append(fields)
    return found


def test_values_are_those_of_the_process(tmp):
    """All arguments, filters and faults, in the kernel and in the process."""
    need_uprobes()
    run('gcc', '-g', '-O1', '-o', 'values', HERE / 'values.c').ok()
    for number, probes in enumerate(groups()):
        inside = seen(f'inside{number}', 'inproc', probes)
        kernel = seen(f'kernel{number}', 'kernel', probes)
        check_equal(len(inside), len(probes), 'probes that were hit')
        check_equal({name: len(hits) for name, hits in kernel.items()},
                    {name: len(hits) for name, hits in inside.items()}, 'hits')
        for name, hits in inside.items():
            for at, (one, other) in enumerate(zip(hits, kernel[name])):
                check_equal(other, one, f'fields of hit {at} of {name}')


def test_what_the_kernel_cannot_compute_is_refused_by_name(tmp):
    need_uprobes()
    run('gcc', '-g', '-O1', '-o', 'values', HERE / 'values.c').ok()
    for words, why in (('comm', 'the name of the thread'), ('(double)n', 'floating-point numbers'),
                       ('*item', 'an array or a structure'), ('text[0..3]', 'an array or a structure'),
                       ('func', 'func and probe'), ('/probe == "x"/ n', 'func and probe')):
        result = kymo('record', '--backend', 'kernel', '-p', f'./values:feed {words}', '--', './values')
        check_equal(result.status, 2, f'exit status for {words}')
        check_matches(
            result.err, f"has {why}, which only code in the process itself can compute: leave --backend kernel out",
            f'what is said of {words}')
        check(not Path('kymo.data').exists(), 'nothing was recorded')
    result = kymo('record', '--backend', 'kernel', '-p', './values:feed str(text) str(text,100) str(text,100)', '--',
                  './values')
    check_matches(result.err, 'its strings take more than the 272 bytes', 'what is said of three strings')


HIGH = """
	.data
total:	.quad	7
	.text
	.globl	_start
_start:	mov	$20, %ebx
1:	mov	%rbx, %rdi
	call	leaf
	dec	%ebx
	jnz	1b
	mov	$60, %eax
	xor	%edi, %edi
	syscall
	.globl	leaf
	.type	leaf, @function
leaf:	push	%rdi
	pop	%rax
	ret
	.size	leaf, . - leaf
"""


def test_a_program_that_is_linked_far_up_is_recorded(tmp):
    need_uprobes()
    (tmp / 'high.s').write_text(HIGH)
    run('gcc', '-nostdlib', '-static', '-no-pie', '-Wl,-Ttext=0x200000001000', '-o', 'high', 'high.s').ok()
    record('--backend', 'kernel', '-p', './high:leaf (arg0 + 1) /arg0 > 5/', '--', './high').ok()
    check_equal(report_json('kymo.data')['events'], 15, 'events')
