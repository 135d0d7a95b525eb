"""Names of code that a program has made, in stacks: by the map that the program writes for perf."""
import json
import os
import re
import shutil
from pathlib import Path

from kymotest import (KYMO, NOBODY, at_end, check, check_equal, check_matches, eventually, kymo, need_root, record, run,
                      skip, start, start_record)

# A function that only calls what it is given, with a frame, is made twice: first it is named `old`, then `new`.
SOURCE = r'''
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noipa)) void leaf(void) { getppid(); __asm__ volatile(""); }
int main(int argc, char **argv)
{
	static const unsigned char code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	unsigned char *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char line[100], name[100];
	memcpy(made + 64, code, sizeof(code));
	mprotect(made, 4096, PROT_READ | PROT_EXEC);
	snprintf(name, sizeof(name), "/tmp/perf-%d.map", getpid());
	FILE *map = fopen(name, "w");
	fprintf(map, "%lx 10 old one\n", (long)made + 60);
	fflush(map);
	printf("ready\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "name\n"))
			fprintf(map, "%lx 8 %s\nno line\n", (long)made + 64, "new; one");
		fflush(map);
		((void (*)(void (*)(void)))(made + 64))(leaf);
		printf("done\n");
		fflush(stdout);
	}
	unlink(name);
	return 0;
}
'''


def build(tmp):
    (tmp / 'made.c').write_text(SOURCE)
    run('gcc', '-O1', '-w', '-o', 'made', 'made.c').ok()


def stacks():
    lines = kymo('report', '--events', '--json').ok().out.splitlines()
    return [event['stack'] for event in map(json.loads, lines) if event['event'] == 'probe']


def remove_map(process):
    Path(f'/tmp/perf-{process.pid}.map').unlink(missing_ok=True)


def test_code_has_the_name_that_came_last(tmp):
    """While it is recorded, too."""
    build(tmp)
    process = start('./made')
    at_end(remove_map, process)
    process.wait_for('ready')
    recorder = start_record(process.pid, '--stack', '-p', './made:leaf')
    for i, word in enumerate(('call', 'name', 'call')):
        process.send(f'{word}\n')
        eventually(lambda: len(stacks()) > i, 'the record is written')
    process.end().ok()
    recorder.end().ok()
    found = [[(frame['function'], frame.get('offset', 0)) for frame in stack[:2]] for stack in stacks()]
    check_equal(found, [[('leaf', 0), ('old one', 10)]] + 2 * [[('leaf', 0), ('new; one', 6)]], 'the innermost frames')
    check_equal([stack[2]['function'] for stack in stacks()], 3 * ['main'], 'what has called it')
    folded = [line.rpartition('main;')[2] for line in kymo('report', '--folded').ok().out.splitlines()]
    check_equal(sorted(folded), ['new: one;leaf 2', 'old one;leaf 1'], 'lines, of which no name separates fields')


def test_frames_of_system_calls_have_the_name_too(tmp):
    build(tmp)
    result = run(KYMO, 'syscalls', '-k', '-e', 'getppid', '--', './made', input='call\n').ok()
    check_matches(result.err, r'^getppid\(\).*\n > [^\n]*\n > \S*/made\(leaf\+0x[0-9a-f]+\) .*\n'
                  r' > \(old one\+0xa\) \[0x[0-9a-f]+\]\n > \S*/made\(main\+')


def test_a_map_of_another_user_is_not_believed(tmp):
    need_root()
    build(tmp)
    process = start('./made')
    at_end(remove_map, process)
    process.wait_for('ready')
    os.chown(f'/tmp/perf-{process.pid}.map', NOBODY, -1)
    recorder = start_record(process.pid, '--stack', '-p', './made:leaf')
    process.end(input='call\n').ok()
    recorder.end().ok()
    check_equal([frame.get('function') for frame in stacks()[0][:3]], ['leaf', None, 'main'], 'the innermost frames')


def test_functions_of_node_have_names(tmp):
    """Also code that node maps while the recorder opens its files, which takes long."""
    node = shutil.which('node')
    if not node:
        skip('needs node')
    (tmp / 'app.js').write_text("""
function inner() { return process.cpuUsage().user; }
function outer() { let sum = 0; for (let i = 0; i < 3; i++) sum += inner(); return sum; }
const end = Date.now() + 1500;
while (Date.now() < end) outer();
require('fs').unlinkSync(`/tmp/perf-${process.pid}.map`);
""")
    record('--stack', '--stack-size', '16K', '--buffer', '8M', '-p', 'libc:getrusage sample 1/10', '--', node,
           '--perf-basic-prof', '--interpreted-frames-native-stack', 'app.js').ok()
    folded = kymo('report', '--folded').ok().out
    check(re.search(r';JS:\S*outer [^;]*/app\.js:3:15(;JS:\S*inner [^;]*)?;', folded), 'functions of app.js', folded)
    lost = sum(int(line.split()[-1]) for line in folded.splitlines() if line.startswith('[unknown]'))
    check(lost * 2 < sum(int(line.split()[-1]) for line in folded.splitlines()), 'most stacks are whole', lost)
