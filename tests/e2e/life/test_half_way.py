"""An attach that fails leaves nothing, wherever it fails; and a process whose first thread has ended is recorded like
any other."""
import os
import re
import resource
import signal
from pathlib import Path

from kymotest import (KYMO, check, check_equal, check_matches, check_same, check_text_intact, event_counts, eventually,
                      is_recorded, kymo, run, start, target)
import processes
import remains

PROBES = ['-p', 'callmany:work_a', '-p', 'libc:malloc']


def mappings(pid):
    """Without those that the program itself makes larger."""
    lines = Path(f'/proc/{pid}/maps').read_text().splitlines()
    return [line for line in lines if '[heap]' not in line and '[stack]' not in line]


def check_nothing_left(pid, before, result):
    check_same(mappings(pid), before, f'mappings after {result.command}\n{result.err}')
    check(str(pid) not in kymo('status').ok().out, 'kymo status knows nothing of it')
    check_text_intact(pid)
    links = [os.readlink(f'/proc/{pid}/fd/{fd}') for fd in os.listdir(f'/proc/{pid}/fd')]
    check(not any('memfd' in link for link in links), f'descriptors: {links}')


def check_refused(pid, before, result):
    check(result.status == 1, 'it fails with a sentence', result)
    check_matches(result.err, r'^kymo: .+\n$')
    check_nothing_left(pid, before, result)


def test_limits_on_the_size_of_files(tmp):
    process = target('callmany', '-w', 10)
    before = mappings(process.pid)
    refused = 0
    for limit in 1 << 12, 1 << 14, 100 << 10, 1 << 20, 40 << 20, 60 << 20, 200 << 20, 320 << 20:
        result = run('prlimit', f'--fsize={limit}', KYMO, 'record', '--backend', 'inproc', '-o', f'data{limit}',
                     *PROBES, '--for', '0.1', '--pid', process.pid)
        if result.status:
            refused += 1
            check_refused(process.pid, before, result)
        else:
            check_nothing_left(process.pid, before, result)
    check(refused >= 4, f'{refused} of the limits are too small')
    process.end(input='\n').ok()


def test_limits_on_the_address_space_of_the_process(tmp):
    process = target('callmany', '-w', 10)
    before = mappings(process.pid)
    used = int(re.search(r'VmSize:\s+(\d+)', Path(f'/proc/{process.pid}/status').read_text())[1]) << 10
    refused = 0
    for more in 0, 1 << 20, 50 << 20, 60 << 20, 100 << 20, 340 << 20, 1 << 30:
        resource.prlimit(process.pid, resource.RLIMIT_AS, (used + more, resource.RLIM_INFINITY))
        result = kymo('record', '--backend', 'inproc', '-o', f'data{more}', *PROBES, '--for', '0.1', '--pid',
                      process.pid)
        if result.status:
            refused += 1
            check_refused(process.pid, before, result)
        else:
            check_nothing_left(process.pid, before, result)
    check(3 <= refused < 7, f'{refused} of the limits are too small')
    process.end(input='\n').ok()


def check_runs_without_probes(limit, command, out, *options):
    result = kymo('record', *options, '--', 'bash', '-c', f'ulimit {limit}; exec {command}').ok()
    check_same(result.out, out, 'the output of the program')
    check_matches(result.err, r'process \d+ runs without probes: ')


def test_limits_of_a_program_that_starts(tmp):
    """Memory is made at the exec where something that is mapped then has a probe, else with the first file that has
    one."""
    out = run('/bin/ls', '/').ok().out
    check_runs_without_probes('-n 4', '/bin/ls /', out, '-o', 'files', '-p', 'libc:malloc')
    check_runs_without_probes('-v 300000', '/bin/true', '', '-o', 'space', '-p', 'libc:malloc')
    check_runs_without_probes('-n 4', '/bin/ls /', out, '-o', 'files-at-exec', '-s', 'openat')
    check_runs_without_probes('-v 300000', '/bin/true', '', '-o', 'space-at-exec', '-s', 'openat')


def test_a_directory_that_cannot_be_made(tmp):
    process = target('callmany', '-w', 10)
    before = mappings(process.pid)
    (tmp / 'file').write_text('mine')
    for name in 'file', 'file/data', 'nowhere/data':
        check_refused(process.pid, before,
                      kymo('record', '--backend', 'inproc', '-o', name, *PROBES, '--pid', process.pid))
    process.end(input='\n').ok()


def test_an_interrupt_while_it_attaches(tmp):
    process = target('callmany', '-w', 10)
    before = mappings(process.pid)
    for delay in range(0, 200, 20):
        recorder = start('timeout', '-s', 'INT', f'{max(delay, 1) / 1000}', KYMO, 'record', '-o', f'data{delay}',
                         *PROBES, '--pid', process.pid)
        result = recorder.end()
        check(result.status in (0, 1, 124, 130, -signal.SIGINT), 'it ends in order', result)
        check_nothing_left(process.pid, before, result)
    process.end(input='\n').ok()


def without_first_thread():
    """A process whose first thread has ended by pthread_exit(), and whose other one goes on when a line comes."""
    Path('headless.c').write_text(r'''
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
__attribute__((noinline)) int work(int x) { __asm__ volatile("" ::: "memory"); return x + 1; }
static void *body(void *data)
{
	char c;
	int sum = 0;
	while (read(0, &c, 1) == 1 && c == '\n')
		for (int i = 0; i < 100; i++)
			sum += work(i);
	printf("%d\n", sum);
	fflush(stdout);
	_exit(7);
}
int main(void) { pthread_t thread; pthread_create(&thread, 0, body, 0); puts("ready"); fflush(stdout); pthread_exit(0); }
''')
    run('gcc', '-O1', 'headless.c', '-o', 'headless', '-pthread').ok()
    process = start('./headless')
    process.wait_for('ready')
    eventually(lambda: processes.status(process.pid)['State'][0] == 'Z', 'the first thread has ended')
    return process


def start_recorder(process, *args):
    """The recorder, and a thread by which the process is looked at: of the first one /proc tells nothing any more."""
    other = next(tid for tid in processes.threads(process.pid) if tid != process.pid)
    recorder = start(KYMO, 'record', *args, '--pid', process.pid)
    eventually(lambda: not recorder.is_alive() or is_recorded(other), 'probes are in')
    check(recorder.is_alive(), 'it records', recorder.err)
    return recorder, other


def test_a_process_whose_first_thread_has_ended_is_recorded_until_its_real_end(tmp):
    process = without_first_thread()
    recorder, _ = start_recorder(process, '-p', './headless:work n=%di:s32')
    check(str(process.pid) in kymo('status').ok().out, 'kymo status knows it')
    check_matches(kymo('status', process.pid).ok().out, 'headless:work|work')
    check_matches(kymo('explain', process.pid, 'headless:work').ok().out, 'jump|group|pun')
    for _ in range(3):
        process.send('\n')
    process.send('x')
    result = process.end().ended(7)
    check_same(result.out.splitlines()[-1], str(3 * sum(range(1, 101))), 'its result')
    recorder.end().ok()
    check_equal(event_counts(), {'headless:work': 300}, 'events')


def test_such_a_process_is_left_and_detached_from(tmp):
    process = without_first_thread()
    recorder, other = start_recorder(process, '-p', './headless:work')
    recorder.kill()
    check(remains.are_there(other), 'probes stay behind a kill')
    kymo('detach', process.pid).ok()
    check(not remains.are_there(other), 'nothing is left')
    tracer = start(KYMO, 'syscalls', '--pid', process.pid, '-o', 'lines')

    def is_seen():
        process.send('\n')
        return Path('lines').exists() and 'read(' in Path('lines').read_text()

    eventually(is_seen, 'its calls are seen')
    process.send('x')
    process.end().ended(7)
    tracer.end().ok()
    check_matches(Path('lines').read_text(), r'exit_group\(7\)')
