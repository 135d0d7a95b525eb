"""Arrays of pointers that a NULL ends, list[..]: what gdb prints, what the program prints, and where memory ends."""
import re

from kymotest import KYMO, check, check_equal, events, kymo, program, record, run, start

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

char **list;
static long aux[] = { 1, 2, 0 };

__attribute__((noinline)) int take(int n, char **v)
{
	__asm__ volatile("nop; nop; nop; nop; nop; nop" ::"r"(v), "r"(aux));
	return n;
}

int main(int argc, char **argv)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char **many = calloc(101, sizeof(*many)), **end = (char **)(page + 4096) - 3;

	munmap(page + 4096, 4096);
	list = argv;
	take(argc, argv); /* on the stack */
	for (int i = 0; i < 100; i++)
		many[i] = argv[0] + i;
	take(100, many);
	end[0] = end[1] = argv[0];
	take(2, end); /* the NULL is the last that is there */
	end[2] = argv[0];
	take(3, end); /* there is none */
	take(0, (char **)8);
	for (int i = 0; i < argc; i++)
		printf("%p ", (void *)argv[i]);
	printf("\n");
	fflush(stdout);
	getchar();
}
"""


def compile_it(tmp):
    (tmp / 'lists.c').write_text(SOURCE)
    run('gcc', '-O1', '-g', '-o', tmp / 'lists', tmp / 'lists.c').ok()
    return tmp / 'lists'


def lists_of(event, name):
    """Babeltrace2 prints [ [0] = 0x1, [1] = 0x2 ]."""
    array = re.search(rf'\b{name} = \[(( ?\[\d+\] = \w+,?)*) \]', event.line)
    return [int(number, 16) for number in re.findall(r'= (0x\w+)', array[1])] if array else None


def test_lists_are_those_of_the_program_and_of_gdb(tmp):
    path = compile_it(tmp)
    process = start(KYMO, 'record', '--no-follow', '-p', f'{path}:take n v[..] first=v[..1] rest=v[1..] list[..]', '--', path, 'a', 'b',
                    'and a last one')
    own = [int(number, 16) for number in process.wait_for('^0x.*$')[0].split()]
    pid = run('pgrep', '-nf', f'^{path} a b').ok().out.strip()
    theirs = run(program('gdb'), '-nx', '-batch', '-p', pid, '-ex', 'p *list@5').ok().out
    process.end(input='\n').ok()
    found = events()
    check_equal([lists_of(found[0], 'v'), lists_of(found[0], 'list')], [own, own], 'what the program prints')
    numbers = re.findall(r'[{ ](0x[0-9a-f]+)', theirs.partition('$1 = ')[2])
    check_equal(own + [0], [int(number, 16) for number in numbers], theirs)
    check_equal([lists_of(found[0], 'first'), lists_of(found[0], 'rest')], [own[:2], own[1:]], 'pieces')
    many = [own[0] + i for i in range(100)]
    check_equal([lists_of(found[1], name) for name in ('v', 'first', 'rest')], [many[:32], many[:2], many[1:33]],
                'as many as there is room for')
    check_equal(([lists_of(event, 'v') for event in found[2:4]], [event['faults'] for event in found[2:4]]),
                ([own[:1] * 2, own[:1] * 3], [0, 0b1010]), 'at the end of what is mapped')
    check_equal((lists_of(found[4], 'v') or [], found[4]['faults']), ([], 0b1110), 'no memory')
    text = kymo('report', '--events').ok().out.splitlines()
    check(f'v={{{own[0]:#x}, {own[0]:#x}, {own[0]:#x}}} (fault)' in text[3], text[3])


def test_arguments_of_what_bash_executes():
    record('-p', 'p:run libc:execve args=((char **)arg1)[..] str(((char **)arg1)[2])', '--follow', '--', '/bin/bash', '-c',
           '/bin/true one two three; /bin/echo; true').ok()
    found = [event for event in events() if event.name == 'run']
    check_equal([event['args_length'] for event in found], [4, 1], 'arguments')
    check('"two"' in found[0].line, found[0].line)


def test_refusals(tmp):
    path = compile_it(tmp)
    for words, sentence in (
        ('n[..]', "'[..]' is for pointers"),
        ('x=(*v)[..]', 'a NULL ends an array of pointers, and no other'),
        ('x=aux[..]', 'a NULL ends an array of pointers, and no other'),
        ('x=v[..64]', 'this has 520 bytes, and at most 512 are recorded'),
        ('x=v[n..]', 'expected a number, such as 0'),
        ('x=str(v[..])', 'a piece of an array can be recorded, but not computed with'),
        ('x=sizeof(v[..])', 'the size of this is not known'),
        ('/v[..]/', 'a filter is a number or a comparison'),
    ):
        record('-p', f'{path}:take {words}', '--', path).refused(re.escape(sentence), 2)
