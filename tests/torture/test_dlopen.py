"""A library that is opened and closed all the time, in a process that is recorded now and then."""
import signal

import opening
import processes
import remains
from kymotest import check_equal, kymo, target, target_path, timeout
from seeds import seed


@timeout(7200)
def test_a_library_is_probed_each_time_it_is_opened(tmp):
    seed()
    counts = {'libctor:ctor_work': opening.CALLS, 'libc:dlopen': 1}
    opening.record_each('libctor.so', ['-p', 'libctor:ctor_work', '-p', 'libc:dlopen'], counts, 200)


@timeout(7200)
def test_recorders_come_and_go_while_a_library_does(tmp):
    seed()
    process = target('dlopener', target_path('libctor.so'), '0')
    before = [line for line in remains.lasting_mappings(process.pid) if 'libctor' not in line]
    choices = [['-p', 'libctor:ctor_work'], ['-p', 'libctor:ctor_work', '-p', 'libc:malloc'],
               ['-p', 'libc:dlclose', '-p', 'libctor:ctor_*']]
    opening.come_and_go(process, tmp, choices, ['libctor'])
    kymo('detach', process.pid)  # on a loaded machine the last one may have left its memory to this
    with processes.stopped(process.pid):
        after = [line for line in remains.lasting_mappings(process.pid) if 'libctor' not in line]
    check_equal([line for line in after if remains.MEMFD in line or 'x' in line.split()[1]],
                [line for line in before if 'x' in line.split()[1]], 'executable mappings')
    process.end(signal.SIGTERM).ok()
