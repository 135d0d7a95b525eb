"""A flight recorder that follows a tree: one bound of memory for the rings of all children that live."""
import os
import signal

import processes
from kymotest import KYMO, check, check_equal, eventually, program, report_json, run, start

CHILDREN, HITS, BUFFER = 40, 20000, 4 << 20
LEAST = 64 << 10

# Children that call hit(), and stay: every second one as another program.
MANY = r'''
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

__attribute__((noinline)) void hit(int i) { __asm__ volatile("nop; nop; nop; nop; nop" : : "r"(i) : "memory"); }

static void be_child(int i, char *path, int hits)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int k = 0; k < hits; k++)
		hit(k);
	if (i % 2)
		execl(path, path, (char *)NULL);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	char byte;

	if (argc < 2) {
		hit(0);
		pause();
	}
	for (int i = 0; i < atoi(argv[1]); i++)
		if (!fork())
			be_child(i, argv[0], atoi(argv[2]));
	puts("ready");
	fflush(stdout);
	return read(0, &byte, 1) < 0;
}
'''


def ring_memory(pid):
    """Bytes that the rings of a recorder have, by process."""
    sizes = []
    for name in os.listdir(f'/proc/{pid}/fd'):
        path = f'/proc/{pid}/fd/{name}'
        try:
            if 'memfd:kymo-data' in os.readlink(path):
                sizes.append(os.stat(path).st_blocks * 512)
        except OSError:  # it has just been closed
            pass
    return sizes


def sleeping_children(pid):
    return [child for child in processes.children(pid) if processes.call(child) == 34]


def test_several_processes_share_the_buffer(tmp):
    (tmp / 'many.c').write_text(MANY)
    run(program('gcc'), '-O1', '-o', tmp / 'many', tmp / 'many.c').ok()
    targets = [start(tmp / 'many', 0, 0) for _ in range(4)]
    for target in targets:
        target.wait_for('^ready$')
    recorder = start(KYMO, 'record', '--overwrite', '--buffer', 4 * BUFFER, '-p', 'many:hit', '--pid', ','.join(
        str(target.pid) for target in targets))
    recorder.wait_for('^kymo: recording 4 processes', 1)
    sizes = ring_memory(recorder.pid)
    check_equal(len(sizes), 4, 'processes with rings')
    check(max(sizes) < 4 * BUFFER * os.cpu_count(), f'each has a quarter, and rings beside it: {sizes}')
    recorder.end(signal.SIGINT)


def test_children_share_one_bound(tmp):
    (tmp / 'many.c').write_text(MANY)
    run(program('gcc'), '-O1', '-o', tmp / 'many', tmp / 'many.c').ok()
    recorder = start(KYMO, 'record', '--overwrite', '--buffer', BUFFER, '-p', 'many:hit', '--', tmp / 'many', CHILDREN,
                     HITS)
    recorder.wait_for('^ready$')
    command = processes.children(recorder.pid)[0]
    eventually(lambda: len(sleeping_children(command)) == CHILDREN, 'all children have made their calls', 120)
    sizes = ring_memory(recorder.pid)
    check_equal(len(sizes), CHILDREN + 1, 'processes with rings')
    first = max(sizes)
    # Beside the rings of the CPUs there are as many with locks, and spare ones of half their number of sub-buffers,
    # four at least.
    cpus = os.cpu_count()
    least = LEAST * 2 * cpus + LEAST // 2 * max(cpus, 4) + (64 << 10)
    check(
        sum(sizes) - first <= 3 * BUFFER * cpus + CHILDREN * least,
        f'{CHILDREN} children have {sum(sizes) - first} bytes of rings, and {least} each at least; the first process has {first}'
    )
    recorder.signal(signal.SIGTERM)
    recorder.end()
    report = report_json()
    check_equal(report['lost_events'], 0, 'lost events')
    overwritten = sum(loss['packets'] for loss in report['losses'])
    check(overwritten > 0, 'what is overwritten is counted', report['losses'])
    with_events = [process for process in report['processes'] if process['count']]
    check(len(with_events) >= CHILDREN, f'{len(with_events)} processes have their newest records')
