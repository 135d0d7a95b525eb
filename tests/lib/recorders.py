"""Recorders of a process that a test goes on beside."""
import json

import processes
from kymotest import KYMO, KYMO_PLAIN, eventually, fail, run, start


def recordings(pid, kymo=KYMO):
    """What kymo status tells of the process."""
    return json.loads(run(kymo, 'status', '--json', pid).out or '[]')


def recorder(pid, name, *args, **options):
    """kymo record into `name`, once its probes are in and nobody traces the process any more."""
    started = start(KYMO, 'record', '-q', '-o', name, *args, '--pid', pid, **options)

    def is_recording():
        if not started.is_alive():
            fail(f'the recorder ended before its probes were in\n{started.result()}')
        # Asked again and again, so by the kymo that is quick.
        return processes.tracer(pid) == 0 and any(each['recorder'] == started.pid and each['sites'] for each in recordings(pid, KYMO_PLAIN))
    eventually(is_recording, f'{started.command} has put its probes in', 60)
    return started


def watching_recorder(pid, name, *args, **options):
    """The same, once it looks for libraries that are loaded, which is a moment later. It says so."""
    started = start(KYMO, 'record', '-o', name, *args, '--pid', pid, **options)
    started.wait_for(r'^kymo: recording process', which=1)
    return started
