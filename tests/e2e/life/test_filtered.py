"""A process under a seccomp filter might be killed for a system call that is not its own: it is refused, and runs on."""
import remains
from kymotest import check, record, start

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
    result = record('-p', 'libc:malloc', '--pid', process.pid, '--for', '0.1')
    check(result.status == 1 and 'seccomp filter' in result.err, 'it is refused', result)
    remains.check_nothing_left(process.pid, before)
    check(process.end(input='\n').ok().out.endswith('done\n'), 'it runs on')


def test_another_thread_than_a_filtered_one_is_borrowed():
    process = filtered('thread')
    before = remains.mappings(process.pid)
    record('-p', 'libc:malloc', '--pid', process.pid, '--for', '0.1').ok()
    remains.check_nothing_left(process.pid, before)
    check(process.end(input='\n').ok().out.endswith('done\n'), 'it runs on')
