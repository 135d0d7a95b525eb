"""A process under a seccomp filter might be killed for a system call that is not its own: code is not put into it, and
it runs on."""
import signal

import remains
from kymotest import check, check_equal, record, report_json, start, start_record

# A filter that allows everything, in the thread that installs it: kymo cannot know that.
PROGRAM = '''
import ctypes, sys, threading
def confine():
    class Filter(ctypes.Structure):
        _fields_ = [('code', ctypes.c_ushort), ('jt', ctypes.c_ubyte), ('jf', ctypes.c_ubyte), ('k', ctypes.c_uint)]
    class Program(ctypes.Structure):
        _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.POINTER(Filter))]
    allow = (Filter * 1)(Filter(0x06, 0, 0, 0x7fff0000))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(Program(1, allow))) == 0
def run():
    if sys.argv[1] == 'thread':
        confine()
    print('ready', flush=True)
    sys.stdin.readline()
if sys.argv[1] == 'process':
    confine()
thread = threading.Thread(target=run)
thread.start()
thread.join()
print('done')
'''


def filtered(which):
    process = start('/usr/bin/python3', '-c', PROGRAM, which)
    process.wait_for('ready')
    return process


def test_a_filtered_process_is_refused_and_runs_on():
    process = filtered('process')
    before = remains.mappings(process.pid)
    result = record('--backend', 'inproc', '-p', 'libc:malloc', '--pid', process.pid, '--for', '0.1')
    check(result.status == 1 and 'seccomp filter' in result.err, 'it is refused', result)
    remains.check_nothing_left(process.pid, before)
    check(process.end(input='\n').ok().out.endswith('done\n'), 'it runs on')


def test_another_thread_than_a_filtered_one_is_borrowed():
    process = filtered('thread')
    before = remains.mappings(process.pid)
    record('--backend', 'inproc', '-p', 'libc:malloc', '--pid', process.pid, '--for', '0.1').ok()
    remains.check_nothing_left(process.pid, before)
    check(process.end(input='\n').ok().out.endswith('done\n'), 'it runs on')


# Reading the counter is a fault from here on, also for children: Python does not read it between the two calls.
MUTING = '''
import ctypes, os
libc = ctypes.CDLL(None)
status, calls = ctypes.c_int(-1), range(100)
for i in calls:
    libc.getppid()
libc.prctl(26, 2, 0, 0, 0)
child = libc.fork()
if child == 0:
    for i in calls:
        libc.getppid()
    libc._exit(7)
libc.waitpid(child, ctypes.byref(status), 0)
libc.prctl(26, 1, 0, 0, 0)
print(status.value >> 8, status.value & 127, flush=True)
'''


def test_a_child_of_a_process_that_may_not_read_the_counter_does_not_read_it_either():
    result = record('-p', 'libc:getppid', '--', '/usr/bin/python3', '-c', MUTING).ok()
    check_equal(result.out, '7 0\n', 'how the child ended')
    check('has made reading the time stamp counter a fault' in result.err, 'it is told', result)
    check_equal(report_json()['events'], 100, 'what was recorded before')


def test_that_reading_the_counter_became_a_fault_is_told_once():
    process = start('/usr/bin/python3', '-c', "print('ready', flush=True); input()" + MUTING + "input()")
    process.wait_for('^ready$')
    recorder = start_record(process.pid, '-p', 'libc:getppid')
    process.send('\n')
    process.wait_for('^7 0$')
    result = recorder.end(signal.SIGINT).ok()
    check_equal(result.err.count('has made reading the time stamp counter a fault'), 1, 'how often it is told')
    process.end(input='\n').ok()
