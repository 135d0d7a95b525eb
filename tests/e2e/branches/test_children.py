"""Histories of a command's children, and of theirs: `kymo record -b --follow`."""
import json
import os
import re
import signal
from pathlib import Path

from kymotest import (KYMO, babeltrace, check, check_equal, check_matches, check_untraced, eventually, kymo, record,
                      run, start, timeout)


def build(tmp, source, name):
    (tmp / f'{name}.c').write_text(source)
    run('gcc', '-g', '-O1', '-o', tmp / name, tmp / f'{name}.c').ok()


def threads(directory='kymo.data'):
    return json.loads(kymo('branches', '--json', directory).ok().out)['threads']


def entered(thread):
    """Each function that the thread comes to."""
    return [branch.get('to', {}).get('function') for branch in thread['branches']]


FAMILY = r"""
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noinline)) int step(int n) { __asm__ volatile("" : "+r"(n)); return n + 1; }
__attribute__((noinline)) void die(long at) { *(volatile int *)at = 1; }
__attribute__((noinline)) int crash(void)
{
	int n = 0;
	for (int i = 0; i < 5; i++)
		n = step(n);
	die(8);
	return n;
}
__attribute__((noinline)) int parent(void)
{
	int status, sum;
	pid_t child = fork();
	if (!child)
		_exit(crash());
	waitpid(child, &status, 0);
	sum = WTERMSIG(status);
	child = vfork();
	if (!child) {
		execl("/bin/sh", "sh", "-c", "exit 3", NULL);
		_exit(1);
	}
	waitpid(child, &status, 0);
	return step(sum + WEXITSTATUS(status));
}
int main(void)
{
	printf("%d\n", parent());
	return 0;
}
"""


@timeout(240)
def test_a_child_that_crashes(tmp):
    build(tmp, FAMILY, 'family')
    bare = run('./family').ok()
    specs = [word for name in ['parent', 'crash', 'step', 'die'] for word in ['-b', f'./family:{name}']]
    result = record(*specs, '--follow', '--', './family', seconds=200).ok()
    check_equal(result.out, bare.out, 'the output')
    check_matches(result.err, r"'kymo report --crash' shows them", 'what to look at')
    parent, child, other = threads()
    check_equal((parent['status'], child['signal'], other['status']), (0, 'SIGSEGV', 3), 'how they end')
    check_equal([parent['pid'] == parent['tid'], child['pid'] == child['tid']], [True, True], 'each is a process')
    check_equal((child['at']['function'], child['fault']), ('die', '0x8'), 'where it was')
    # The child goes on after fork(), where its parent does, though it has never entered that code.
    check_equal(entered(child), ['parent', 'crash', *['step', 'crash', 'crash'] * 4, 'step', 'crash', 'die'],
                'the child from the fork on')
    check_equal([(branch['kind'], branch.get('to', {}).get('function')) for branch in other['branches']][:1],
                [('enter', 'parent')], 'the vfork child, before its program')
    check_equal((parent['branches'][0]['kind'], entered(parent)[0]), ('enter', 'parent'), 'the parent')
    check('step' in entered(parent) and 'crash' not in entered(parent), 'the parent after its children')
    crash = kymo('report', '--crash').ok().out
    check_matches(crash, r'not seen: the kernel\n', 'what is not seen')
    check_matches(
        crash, r'then SIGSEGV at family:die\S* family.c:6, address 0x8\n'
        r'  #0  family:die\S* family.c:6\n  #1  family:crash\S+ family.c:12\n', 'the crash')
    babeltrace()


@timeout(240)
def test_what_a_shell_executes(tmp):
    build(tmp, FAMILY, 'family')
    bare = run('sh', '-c', './family; ./family').ok()
    result = record('-b', './family:step', '--follow', '--', 'sh', '-c', './family; ./family', seconds=200).ok()
    check_equal(result.out, bare.out, 'the output')
    steps = [thread['taken'] for thread in threads() if thread['taken']]
    # An entry, a return to other code: twice for each of the two parents, ten times in their children.
    check_equal(sorted(steps), [2, 2, 10, 10], 'in the programs')
    result = record('-b', './family:step', '--', 'sh', '-c', './family; exit 4', seconds=200)
    check_equal((result.status, result.out), (4, run('./family').out), 'as without --follow')
    check_equal([thread['taken'] for thread in threads()], [0], 'without --follow')


SPINS = r"""
#include <unistd.h>
__attribute__((noinline)) static int work(void) { int s = 0; for (volatile int i = 0; i < 50; i++) s += i; return s; }
static void spin(const char *text) { while (work() && write(1, text, 1) == 1); }
int main(void)
{
	char start;
	if (read(0, &start, 1) != 1) return 1;
	spin(fork() ? "p" : "c");
	return 0;
}
"""


def children(pid):
    return [int(word) for word in Path(f'/proc/{pid}/task/{pid}/children').read_text().split()]


def is_traced(pid):
    return not re.search(r'^TracerPid:\t0$', Path(f'/proc/{pid}/status').read_text(), re.M)


def seen(directory):
    result = kymo('branches', '--json', directory)
    return set() if result.status else {thread['pid'] for thread in json.loads(result.out)['threads']}


@timeout(240)
def test_children_run_on_when_the_recording_ends(tmp):
    build(tmp, SPINS, 'spins')
    for how in [signal.SIGINT, signal.SIGKILL]:
        here, there = os.pipe()
        with open(tmp / 'dots', 'wb') as dots:
            target = start('./spins', stdin=here, stdout=dots)
        recorder = start(KYMO, 'record', '-q', '-o', how.name, '-b', 'all', '--pid', str(target.pid), '--follow',
                         '--no-existing')
        eventually(lambda: is_traced(target.pid), 'it is traced')
        os.write(there, b'!')
        eventually(lambda: children(target.pid) and is_traced(children(target.pid)[0]), 'its child is traced')
        child, = children(target.pid)
        eventually(lambda: {b'p', b'c'} <= set(re.findall(b'.', (tmp / 'dots').read_bytes())), 'both are stepped')
        recorder.end(how)
        for pid in [target.pid, child]:
            eventually(lambda: not is_traced(pid), 'it is let go of')
        check_untraced(target.pid)
        for letter in [b'p', b'c']:
            before = (tmp / 'dots').read_bytes().count(letter)
            eventually(lambda: (tmp / 'dots').read_bytes().count(letter) > before, 'it goes on with its work')
        os.kill(child, signal.SIGKILL)
        target.kill()
        eventually(lambda: seen(how.name) == {target.pid, child}, 'what was seen of both is written', 60)
        os.close(here)
        os.close(there)


def test_sentences(tmp):
    for args, pattern in [
        (['-b', 'all', '--follow', '--pid', str(os.getpid())],
         r'-b records no children that a process has already.*add --no-existing to --follow'),
        (['-b', 'all', '--follow', '--branch-source', 'steps', '-p', 'libc:malloc', '--', 'true'],
         r'of one process and, by --follow, its children'),
        (['-b', 'all', '--no-existing', '--', 'true'], r'--no-existing leaves out the children')
    ]:
        result = record(*args)
        check_equal(result.status, 2, f'the status of {args}')
        check_matches(result.err, pattern, 'the sentence')
