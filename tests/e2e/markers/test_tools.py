"""Other people's tools see markers: gdb, perf, bpftrace. What they leave in the kernel and in $HOME is taken away
again."""
import os
import re
from pathlib import Path

import kernelcount
from kymotest import at_end, check, check_equal, program, run, skip
from markednotes import Marked
from markerbuild import INCLUDE, build_forms, compile_c

COUNTED = '''#include <kymo/marker.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;

	for (int i = 0; i < n; i++)
		MARK(turn, "i=%d", i);
	MARK(end, "n=%d name=%s", n, argv[0]);
	return 0;
}
'''


def counted():
    with open('counted.c', 'w') as file:
        file.write(COUNTED)
    compile_c('gcc', '-O2', '-g', *INCLUDE, 'counted.c', '-o', 'counted')
    return os.path.abspath('counted')


def test_gdb_lists_markers(tmp):
    for compiler in 'gcc', 'clang':
        path = build_forms('c', compiler, '-O2')
        listing = run(program('gdb'), '-nx', '-batch', '-ex', 'info probes stap kymo', path).ok().out
        listed = {(name, int(address, 16))
                  for name, address in re.findall(r'^stap +kymo +(\w+) +(0x[0-9a-f]+)', listing, re.MULTILINE)}
        check_equal(listed, {(site.name, site.code) for site in Marked(path).check().sites},
                    f'probes of a program by {compiler}')


def test_gdb_breaks_at_markers(tmp):
    path = counted()
    commands = [
        'set debuginfod enabled off', 'break -probe-stap kymo:turn', 'run 3', 'print i', 'continue', 'continue',
        'print i', 'delete', 'break -probe-stap kymo:end', 'continue', 'continue'
    ]
    result = run(program('gdb'), '-nx', '-batch', *[word for command in commands for word in ('-ex', command)],
                 path).ok()
    check_equal(re.findall(r'^\$\d = (\d+)$', result.out, re.MULTILINE), ['0', '2'],
                f'what gdb prints at markers\n{result}')
    check('Breakpoint 2, ' in result.out and 'exited normally' in result.out,
          'it stops at the other one, and the program ends', result)


def private_home():
    Path('home').mkdir()
    return {'HOME': os.path.abspath('home')}


def uprobe_events(path):
    """The kernel's own list of those that are in this file."""
    return [line for line in (kernelcount.tracefs() / 'uprobe_events').read_text().splitlines() if path in line]


# perf wants tracefs at its place, which some machines do not have: then it is there for perf alone.
PERF = [
    'unshare', '--mount', 'sh', '-c',
    'test -e /sys/kernel/tracing/uprobe_events || mount -t tracefs tracefs /sys/kernel/tracing; exec perf "$@"', 'perf'
]


def test_perf_lists_and_counts_markers(tmp):
    path, home = counted(), private_home()
    program('perf')
    if os.geteuid():
        skip('root can put probes with perf')
    # buildid-cache looks for probes in files that have a build id.
    result = run(*PERF, 'buildid-cache', '--add', path, env=home)
    if result.status or 'unknown' in result.err:
        skip(f'perf buildid-cache: {result.err.strip()}')
    listing = run(*PERF, 'list', 'sdt', env=home)
    check('sdt_kymo:turn' in listing.out and 'sdt_kymo:end' in listing.out, 'perf lists the markers', listing)
    check_equal(uprobe_events(path), [], 'probes of the kernel before')
    at_end(lambda: run(*PERF, 'probe', '-q', '-d', 'sdt_kymo:*', env=home))
    added = run(*PERF, 'probe', '-q', '-x', path, 'sdt_kymo:turn', env=home)
    if added.status:
        skip(f'perf probe: {added.err.strip()}')
    check(uprobe_events(path), 'the kernel has a probe in it now')
    stat = run(*PERF, 'stat', '-x', ',', '-e', 'sdt_kymo:turn', path, '7', env=home).ok()
    check(re.search(r'^7,,sdt_kymo:turn', stat.err, re.MULTILINE), 'perf counts the passes', stat)
    run(*PERF, 'probe', '-q', '-d', 'sdt_kymo:*', env=home).ok()
    check_equal(uprobe_events(path), [], 'probes of the kernel afterwards')


def test_bpftrace_lists_and_counts_markers(tmp):
    bpftrace, path = program('bpftrace'), counted()
    if os.geteuid():
        skip('bpftrace needs root')
    listing = run(bpftrace, '-l', f'usdt:{path}:*')
    if listing.status or not listing.out:
        skip(f'bpftrace -l: {listing.err.strip()}')
    check_equal(sorted(listing.out.split()), [f'usdt:{path}:kymo:end', f'usdt:{path}:kymo:turn'], 'what bpftrace lists')
    script = f'usdt:{path}:kymo:turn {{ @turns++ }} usdt:{path}:kymo:end {{ @ends++ }}'
    result = run(bpftrace, '-e', script, '-c', f'{path} 9')
    if result.status:
        skip(f'bpftrace: {result.err.strip()}')
    check('@turns: 9' in result.out and '@ends: 1' in result.out, 'bpftrace counts the passes', result)
