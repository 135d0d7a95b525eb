"""Processes that a recorded one makes, and that are not recorded; test_follow.py has those that are."""
import re
import signal

import processes
import remains
from kymotest import (check, check_equal, check_matches, check_same, event_counts, events, kymo, record, report_json,
                      start, start_record, target, target_path)

N = 500


def recorded_pid():
    return int(re.search(r'\bpid = "?(\d+)', open('kymo.data/metadata').read())[1])


def check_forker(result, pid):
    """All kinds of children checked their own results. Records are the parent's; those of the vfork child are the
    parent's too or are counted as lost, as it shares the parent's memory."""
    said = result.ok().json()
    check_equal(set(said.values()), {N, 2 * N}, 'calls')
    here = [event for event in events() if event.name == 'forker:work_a']
    check_equal({event['tid'] for event in here}, {pid}, 'threads that recorded')
    check_vforks(len(here), said['parent'], said)


def check_vforks(n_records, expected, said):
    """All calls of work_a() have a record, but those of the vfork child may be counted instead; and nothing else is
    lost."""
    report = report_json()
    check_equal(report['lost_events'], report['lost_in_vforks'], 'lost')
    check(report['lost_in_vforks'] in (0, said['vfork']), 'all of a vfork child are recorded or lost',
          report['lost_in_vforks'], said)
    check_equal(n_records + report['lost_in_vforks'], expected + said['vfork'], 'records and losses')


def test_children_of_a_command_run_on_correctly_and_do_not_record_for_their_parent():
    result = record('--no-follow', '-p', 'forker:work_a n=%edi:s32', '-p', 'libc:*fork', '-p', 'libc:malloc', '--',
                    target_path('forker'), N)
    check_forker(result, recorded_pid())


def test_children_of_a_process_run_on_correctly_and_do_not_record_for_their_parent():
    process = target('forker', '-w', N)
    recorder = start_record(process.pid, '-p', 'forker:work_a n=%edi:s32', '-p', 'libc:malloc')
    result = process.end(input='\n')
    recorder.end().ok()
    check_forker(result, process.pid)


def test_records_before_an_exec_are_kept():
    result = record('--no-follow', '-p', 'forker:work_a', '--', target_path('forker'), '-e', N).ok()
    said = result.json()
    here = event_counts()['forker:work_a']
    check_vforks(here, said['parent'], said)
    process = target('forker', '-w', '-e', N)
    recorder = start_record(process.pid, '-p', 'forker:work_a')
    process.end(input='\n').ok()
    recorder.end().ok()
    check_vforks(event_counts()['forker:work_a'], said['parent'], said)


FORKING = r'''
import os, sys, time
print("ready", flush=True)
sys.stdin.readline()
child = os.fork()
if not child:
    child_of_child = os.fork()
    for i in range(100):
        os.getppid()
    print("child", os.getpid(), flush=True)
    sys.stdin.readline()
    os._exit(0)
os.read(0, 1)
'''


def test_detach_cleans_a_forked_child_of_a_recorded_process():
    process = start('/usr/bin/python3', '-c', FORKING)
    process.wait_for('^ready$')
    before = remains.mappings(process.pid)
    recorder = start_record(process.pid, '-p', 'libc:getppid', '-p', 'libc:malloc')
    process.send('\n')
    process.wait_for(r'child \d+\n(.|\n)*child \d+\n')
    child = processes.children(process.pid)[0]
    grandchild = processes.children(child)[0]
    for pid in (child, grandchild):
        check(processes.changed_text(pid), 'the child has its parent\'s text')
        check_matches(kymo('status', pid).ok().out, 'by a process that is gone')
        kymo('detach', pid).ok()
        check_same(processes.changed_text(pid), [], 'text')
        check(not remains.are_there(pid), 'nothing is left in the child')
        remains.check_running(pid)
    check(recorder.is_alive(), 'the recorder goes on', recorder.result())
    check(remains.are_there(process.pid), 'the parent is still recorded')
    recorder.end(signal.SIGTERM).ok()
    remains.check_nothing_left(process.pid, before)
    check_equal(event_counts()['libc:getppid'], 0, 'records of the children')
    process.end(input='xxx\n').ok()


def test_children_made_while_probes_come_and_go_run_on_correctly():
    script = 'i=0; while [ $i -lt 400 ]; do (exit 3); [ $? = 3 ] || exit 1; /bin/true || exit 2; i=$((i + 1)); done; echo done'
    process = start('/bin/sh', '-c', script)
    while process.is_alive():
        result = kymo('record', '-q', '-p', 'libc:*fork', '-p', 'libc:malloc', '-p', 'libc:_exit', '--pid', process.pid,
                      '--for', '0.02')
        check(result.status == 0 or not process.is_alive() or 'process' in result.err, 'it records', result)
        if result.status and process.is_alive():
            check_matches(result.err, 'vfork|shares')
    check_equal(process.end().ok().out, 'done\n')
