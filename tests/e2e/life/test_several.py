"""Several processes in one recording: named by ids and by names, and children that exist when their parent is followed.
"""
import os
import re
import signal
import socket
import time

import processes
import remains
from kymotest import (KYMO, NOBODY, check, check_equal, check_matches, check_text_intact, check_untraced, eventually,
                      kymo, need_root, probe_counts, program, record, report_json, run, skip, start, timeout)

# Calls hit() as often as each line of its input says, tells so, and counts nothing else. "exec": becomes sleep.
COUNTED = r'''
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline)) void hit(int i) { __asm__ volatile("nop; nop; nop; nop; nop" : : "r"(i) : "memory"); }

int main(void)
{
	char line[64];

	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "exec\n"))
			execlp("sleep", "sleep", "1000", NULL);
		for (int i = 0, n = atoi(line); i < n; i++)
			hit(i);
		printf("done %s", line);
		fflush(stdout);
	}
	return 0;
}
'''

# Workers that make short children all the time; of those and of the workers hit() is called while the master's flag is
# up. At the end the master says how often.
PREFORK = r'''
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct shared { atomic_int go, end; atomic_long hits, births; } *shared;

__attribute__((noinline)) void hit(int i) { __asm__ volatile("nop; nop; nop; nop; nop" : : "r"(i) : "memory"); }

static void be_busy(int n)
{
	for (int i = 0; i < n && shared->go; i++) {
		hit(i);
		shared->hits++;
	}
}

static void be_worker(void)
{
	while (!shared->end) {
		pid_t pid = fork();

		if (!pid) {
			be_busy(5);
			_exit(0);
		}
		shared->births++;
		be_busy(1);
		usleep(3000);
		waitpid(pid, NULL, 0);
	}
	exit(0);
}

int main(int argc, char **argv)
{
	char line[64];
	int workers = atoi(argv[1]);

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < workers; i++)
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			be_worker();
		}
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (!strcmp(line, "go\n"))
			shared->go = 1;
		if (!strcmp(line, "halt\n")) {
			shared->go = 0;
			usleep(100000);
			printf("hits %ld births %ld\n", shared->hits, shared->births);
		} else {
			printf("heard %s", line);
		}
		fflush(stdout);
	}
	shared->end = 1;
	while (wait(NULL) > 0)
		;
	return 0;
}
'''


def compiled(tmp, source, name):
    path = tmp / f'{name}.c'
    path.write_text(source)
    run(program('gcc'), '-O1', '-o', tmp / name, path).ok()
    return tmp / name


def ready(*command, **options):
    process = start(*command, **options)
    process.wait_for('^ready$')
    return process


def counted(tmp, n=2, name='counted'):
    path = compiled(tmp, COUNTED, name)
    return [ready(path) for _ in range(n)]


def hit(process, n):
    """Each time of a process with another number: its answer is waited for by that."""
    process.send(f'{n}\n')
    process.wait_for(rf'^done {n}$')


def recorder_of(*args, n, **options):
    recorder = start(KYMO, 'record', *args, **options)
    recorder.wait_for(rf'^kymo: recording {n} process(es)?, ', 1)
    return recorder


def ids(targets):
    return ','.join(str(target.pid) for target in targets)


def counts_by_process(directory='kymo.data'):
    return {process['pid']: process['count'] for process in report_json(directory)['processes']}


def check_clean(*targets):
    for target in targets:
        check(target.is_alive(), 'the program goes on', target.result())
        check_text_intact(target.pid)
        check_untraced(target.pid)


def test_each_process_has_its_own_count(tmp):
    first, second, third = targets = counted(tmp, 3)
    recorder = recorder_of('-p', 'counted:hit', '--pid', ids(targets[:2]), '--pid', third.pid, n=3)
    for target in targets:
        check_untraced(target.pid)
    for target, n in zip(targets, (101, 202, 303)):
        hit(target, n)
    check_equal(recorder.end(signal.SIGINT).status, 0, 'exit status')
    check_equal(counts_by_process(), {first.pid: 101, second.pid: 202, third.pid: 303}, 'counts by process')
    check_equal(report_json()['lost_events'], 0, 'lost events')
    check_matches(kymo('report').ok().out, rf'^{third.pid} \S*counted +303 ', 'the report')
    check_equal(len(re.findall('hit',
                               kymo('report', '--events', '--process', second.pid).ok().out)), 202,
                'events of one process')
    check_clean(*targets)


def test_one_process_by_id_and_by_name_is_there_once(tmp):
    targets = counted(tmp, 2, 'counted_twice')
    recorder = recorder_of('-p', 'counted_twice:hit', '--pid', f'{targets[0].pid},{targets[0].pid}', '--name',
                           'counted_twi*', '--name', 'counted_twice', n=2)
    check_matches(
        recorder.err,
        rf"^kymo: --name counted_twice matches {', '.join(str(pid) for pid in sorted(target.pid for target in targets))}$",
        'which were matched')
    for target in targets:
        hit(target, 50)
    check_equal(recorder.end(signal.SIGINT).status, 0, 'exit status')
    check_equal(counts_by_process(), {target.pid: 50 for target in targets}, 'counts by process')
    check_clean(*targets)


def test_a_name_that_nothing_has_is_told_with_the_nearest(tmp):
    counted(tmp, 1, 'counted_name')
    record('-p', 'libc:malloc', '--name',
           'conted_name').refused("^kymo: no process is called 'conted_name'; did you mean 'counted_name'")
    record('-p', 'libc:malloc', '--name', '').refused('--name needs the name of a program', 2)
    check(not os.path.exists('kymo.data'), 'nothing was made')


def test_an_id_of_no_process_stops_everything_before_it_begins(tmp):
    target = counted(tmp, 1)[0]
    gone = start('true')
    gone.end()
    before = processes.maps(target.pid)
    record('-p', 'counted:hit', '--pid', target.pid, '--pid',
           gone.pid).refused(f'^kymo: there is no process {gone.pid}$')
    record('-p', 'counted:hit', '--pid', f'{target.pid},x').refused("--pid 'x' is no process id", 2)
    check_equal([mapping.line for mapping in processes.maps(target.pid)], [mapping.line for mapping in before],
                'mappings')
    check(not os.path.exists('kymo.data'), 'nothing was made')


def test_the_recording_goes_on_until_the_last_has_ended(tmp):
    first, second, third = counted(tmp, 3)
    recorder = recorder_of('-p', 'counted:hit', '--pid', ids((first, second, third)), n=3)
    hit(first, 10)
    first.end()
    hit(second, 20)
    second.signal(signal.SIGKILL)
    hit(third, 30)
    check(recorder.is_alive(), 'the recording goes on', recorder.result())
    third.end()
    check_equal(recorder.end().status, 0, 'exit status')
    check_equal(counts_by_process(), {first.pid: 10, second.pid: 20, third.pid: 30}, 'counts by process')


def test_a_process_that_executes_something_leaves_the_others(tmp):
    first, second = counted(tmp, 2)
    recorder = recorder_of('-p', 'counted:hit', '--pid', ids((first, second)), n=2)
    hit(first, 10)
    first.send('exec\n')
    recorder.wait_for(rf'process {first.pid} has executed another program, which is not recorded', 1)
    hit(second, 20)
    check_equal(recorder.end(signal.SIGINT).status, 0, 'exit status')
    check_equal(counts_by_process(), {first.pid: 10, second.pid: 20}, 'counts by process')
    check_clean(first, second)


def test_followed_processes_are_recorded_in_what_they_execute(tmp):
    first, second = counted(tmp, 2)
    recorder = recorder_of('-p', 'counted:hit', '-p', 'libc:clock_nanosleep', '--follow', '--pid', ids((first, second)),
                           n=2)
    hit(first, 10)
    first.send('exec\n')
    hit(second, 20)
    eventually(lambda: processes.call(first.pid) == 230, 'it sleeps', 60)
    check_equal(recorder.end(signal.SIGINT).status, 0, 'exit status')
    check_equal(probe_counts(), {'counted:hit': 30, 'libc:clock_nanosleep': 1}, 'counts')
    check_clean(first, second)


def test_a_process_without_the_file_gets_nothing_and_is_told_of(tmp):
    target, other = counted(tmp, 1)[0], counted(tmp, 1, 'different')[0]
    for n, pids in ((5, ids((target, other))), (6, ids((other, target)))):
        recorder = recorder_of('-p', 'counted:hit', '--pid', pids, n=1)
        check_matches(recorder.err, f'process {other.pid} is not recorded: it has mapped no file that has a probe',
                      'the warning')
        check_equal([mapping.line for mapping in processes.maps(other.pid) if mapping.path.startswith(remains.MEMFD)],
                    [], 'what it has of kymo')
        hit(target, n)
        check_equal(recorder.end(signal.SIGINT).status, 0, 'exit status')
        check_equal(probe_counts(), {'counted:hit': n}, 'counts')
        check_equal([who['pid'] for who in report_json()['processes']], [target.pid], 'processes of the report')
    check_clean(target, other)


def test_where_all_refuse_it_is_an_error(tmp):
    targets = counted(tmp, 2)
    result = record('-p', 'counted:no_such_function', '--pid', ids(targets)).refused(
        rf'none of the 2 processes can be recorded; process {targets[1].pid}: .* has no function no_such_function')
    check_matches(result.err, rf'process {targets[0].pid} is not recorded: .* has no function no_such_function',
                  'the first')
    record('-p', 'counted:hit', '-p', 'nolibrary:nothing', '--pid',
           ids(targets)).refused('has mapped no file called nolibrary')
    record('-p', 'counted:hit', '--backend', 'kernel', '--pid', ids(targets)).refused(
        '--backend kernel records one process, not 2', 2)
    record('-s', 'all', '--complete', '--pid', ids(targets)).refused('--complete records one process, not 2', 2)
    check_clean(*targets)


def test_another_users_process_is_told_of_and_the_rest_recorded(tmp):
    need_root()
    tmp.chmod(0o777)
    path = compiled(tmp, COUNTED, 'counted')
    own, roots = ready(path, user=NOBODY), ready(path)
    result = run(KYMO, 'record', '-o', tmp / 'data', '-p', 'counted:hit', '--for', '0.2', '--pid', ids((roots, own)),
                 user=NOBODY).ok()
    check_matches(result.err, rf'process {roots.pid} is not recorded: .*does not let you trace it',
                  'the one that is not its own')
    check_matches(result.err, 'recording 1 process, 1 site', 'the one that is')
    check_clean(own, roots)


def test_a_killed_recorder_leaves_them_all_intact(tmp):
    targets = counted(tmp, 3)
    recorder = recorder_of('-p', 'counted:hit', '--pid', ids(targets), n=3)
    recorder.end(signal.SIGKILL)
    for target in targets:
        hit(target, 1000)
        kymo('detach', target.pid).ok()
    check_clean(*targets)


# ---- children that exist -------------------------------------------------------------------------


def check_prefork(tmp, workers, *options):
    master = ready(compiled(tmp, PREFORK, 'prefork'), workers)
    eventually(lambda: len(processes.children(master.pid)) == workers, 'its workers are there')
    recorder = start(KYMO, 'record', '-p', 'prefork:hit', '--follow', *options, '--pid', master.pid)
    recorder.wait_for('^kymo: recording .*process', 1, 120)
    master.send('go\n')
    master.wait_for('^heard go$')
    time.sleep(1)
    master.send('halt\n')
    hits, births = map(int, master.wait_for(r'^hits (\d+) births (\d+)$').groups())
    check(births > workers, 'children were born meanwhile')
    check_equal(recorder.end(signal.SIGINT).status, 0, 'exit status')
    check('not recorded' not in recorder.err and 'without probes' not in recorder.err, 'all are recorded', recorder.err)
    return master, hits


@timeout(300)
def test_children_that_exist_are_recorded_each_once_while_they_fork(tmp):
    master, hits = check_prefork(tmp, 4)
    report = report_json()
    check_equal(report['lost_events'], 0, 'lost events')
    check_equal(probe_counts()['prefork:hit'], hits, 'recorded hits, by what the program has counted itself')
    for pid in [master.pid, *processes.children(master.pid)]:
        check_untraced(pid)
        check_text_intact(pid)
    check_equal(master.end().status, 0, 'exit status of the program')


def test_children_that_exist_can_be_left_out(tmp):
    master = ready(compiled(tmp, PREFORK, 'prefork'), 2)
    recorder = start(KYMO, 'record', '-p', 'prefork:hit', '--follow', '--no-existing', '--pid', master.pid)
    recorder.wait_for(f'^kymo: recording process {master.pid}, 1 site', 1)
    for child in processes.children(master.pid):
        check_untraced(child)
    check_equal(recorder.end(signal.SIGINT).status, 0, 'exit status')
    record('-p', 'libc:malloc', '--no-existing', '--pid', master.pid).refused(
        '--no-existing leaves out the children that a followed process has', 2)
    check_equal(master.end().status, 0, 'exit status of the program')


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


NGINX = '''
daemon off; master_process on; worker_processes 3; error_log {tmp}/log notice; pid {tmp}/pid;
events {{ worker_connections 16; }}
http {{
	access_log off; client_body_temp_path {tmp}/b; proxy_temp_path {tmp}/p; fastcgi_temp_path {tmp}/f; uwsgi_temp_path {tmp}/u; scgi_temp_path {tmp}/s;
	server {{ listen 127.0.0.1:{port}; location / {{ return 200 "hello"; }} }}
}}
'''


def test_nginx_with_its_workers_by_its_name_and_by_its_master(tmp):
    port = free_port()
    (tmp / 'conf').write_text(NGINX.format(tmp=tmp, port=port))
    curl = program('curl')
    server = start(program('nginx'), '-c', tmp / 'conf')
    eventually(lambda: len(processes.children(server.pid)) == 3 or not server.is_alive(), 'it has its workers', 60)
    family = [server.pid, *processes.children(server.pid)]
    for words in (['--follow', '--pid', server.pid], ['--pid', ','.join(map(str, family))]):
        recorder = recorder_of('-s', 'accept4', *words, n=4)
        for _ in range(20):
            check_equal(run(curl, '-s', f'http://127.0.0.1:{port}/').ok().out, 'hello', 'what it answers')
        check_equal(recorder.end(signal.SIGINT).status, 0, 'exit status')
        returned = [
            line for line in kymo('report', '--events').ok().out.splitlines() if re.search(r'accept4\(.* = \d', line)
        ]
        check_equal(len(returned), 20, 'connections that were accepted')
        for pid in family:
            check_untraced(pid)
            check_text_intact(pid)
    os.kill(server.pid, signal.SIGQUIT)
    check_equal(server.end().status, 0, 'exit status of nginx')


def test_redis_with_the_child_that_saves(tmp):
    port = free_port()
    server = start(program('redis-server'), '--port', port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no',
                   '--dir', tmp, '--rdb-key-save-delay', '2000')
    server.wait_for('Ready to accept connections')
    cli = [program('redis-cli'), '-p', port]
    for i in range(4):
        run(*cli, 'mset', *(word for k in range(500) for word in (f'{i}.{k}', 'x'))).ok()
    if 'started' not in run(*cli, 'bgsave').ok().out:
        skip('this redis saves in no child')
    eventually(lambda: processes.children(server.pid), 'it has a child')
    recorder = recorder_of('-p', 'libc:fsync', '-p', 'libc:rename', '--follow', '--pid', server.pid, n=2)
    eventually(lambda: not processes.children(server.pid), 'the child has saved', 120)
    check_equal(recorder.end(signal.SIGINT).status, 0, 'exit status')
    check_equal(probe_counts()['libc:rename'], 1, 'renames, of the child that was there')
    check_clean(server)
    run(*cli, 'shutdown', 'nosave')
