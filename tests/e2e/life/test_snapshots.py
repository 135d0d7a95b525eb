"""kymo snapshot asks a flight recorder and nothing else, whatever lies at its paths, and reports the result."""
import os
import shutil
import signal
from pathlib import Path

import remains
from kymotest import (KYMO, check, check_equal, check_matches, eventually, kymo, need_root, record, start, start_record,
                      target_path, timeout, waits)

FLIGHT = target_path('flight')
STEPS = ['-p', f'{FLIGHT}:step n=%di:s64']
REFUSAL = 'is no flight recorder: only .kymo record. with --keep or --overwrite has snapshots'


def flight():
    return start(FLIGHT, 1000000, 1000, 100)


def recording(*command):
    """A recorder that has begun."""
    recorder = start(*command)
    recorder.wait_for('kymo: recording process', which=1)
    return recorder


def another(pid, *words):
    return recording(KYMO, 'record', *STEPS, *words, '--pid', pid)


@timeout(120)
@waits
def test_of_two_recorders_each_is_asked_and_each_failure_is_told(tmp):
    process = flight()
    first, second = another(process.pid, '-o', 'first', '--keep', '8M'), another(process.pid, '-o', 'second', '--keep',
                                                                                 '8M')
    out = kymo('snapshot', process.pid).ok().out
    check_equal(sorted(out.splitlines()), [f'snapshot in {tmp}/first.1', f'snapshot in {tmp}/second.1'], 'both')
    second.signal(signal.SIGSTOP)
    result = kymo('snapshot', process.pid).ended(1)
    check_equal(result.out, f'snapshot in {tmp}/first.2\n', 'that of the one that runs')
    check_matches(result.err, f'kymo process {second.pid} has written no snapshot to .*second.2 within 10 seconds',
                  'the other one')
    second.signal(signal.SIGCONT)
    second.end(signal.SIGINT).ok()
    plain = another(process.pid, '-o', 'plain')
    shutil.rmtree('first.1')
    check_equal(
        kymo('snapshot', process.pid).ok().out, f'snapshot in {tmp}/first.1\n',
        'a recorder of another kind is passed over')
    check(plain.is_alive(), 'it got no signal')
    plain.end(signal.SIGINT).ok()
    first.end(signal.SIGINT).ok()


@timeout(120)
@waits
def test_the_recording_is_found_by_its_descriptor(tmp):
    """What lies at its path here is another one, in another mount namespace or behind a descriptor that the recorder
    has from its maker."""
    need_root()
    (tmp / 'place').mkdir()
    record(*STEPS, '--keep', '8M', '-o', 'place/flight', '--', FLIGHT, 1000, 10, 100).ok()
    process = flight()
    words = ' '.join(f"'{word}'" for word in STEPS)
    mounted = f'mount -t tmpfs none {tmp}/place; exec "$0" record {words} -o place/flight --pid {process.pid}'
    plain = recording('unshare', '-m', 'sh', '-c', mounted, KYMO)
    kymo('snapshot', plain.pid).refused(REFUSAL)
    check(plain.is_alive(), 'it got no signal')
    plain.end(signal.SIGINT).ok()
    kept = recording('unshare', '-m', 'sh', '-c', mounted + ' --keep 8M', KYMO)
    check_matches(kymo('snapshot', kept.pid).ok().out, r'^snapshot in .*flight\.1$', 'a snapshot')
    check(not Path('place/flight.1').exists(), 'it is where the recorder writes')
    kept.end(signal.SIGINT).ok()
    plain = recording('sh', '-c', f'exec "$0" record {words} -o plain --pid {process.pid} 3<place/flight', KYMO)
    for pid in (plain.pid, process.pid):
        kymo('snapshot', pid).refused(REFUSAL)
    check(plain.is_alive(), 'it got no signal')
    plain.end(signal.SIGINT).ok()


@timeout(120)
def test_a_recorder_is_known_under_other_names(tmp):
    shutil.copy(KYMO, 'kymo-copy')
    process = flight()
    recorder = recording('./kymo-copy', 'record', *STEPS, '-o', 'kept', '--keep', '8M', '--pid', process.pid)
    for number, pid in ((1, recorder.pid), (2, process.pid)):
        check_equal(kymo('snapshot', pid).ok().out, f'snapshot in {tmp}/kept.{number}\n', 'where it is')
    recorder.end(signal.SIGINT).ok()
    recorder = recording(
        'sh', '-c', f"trap '' USR1; exec \"$0\" record -p {FLIGHT}:step -o deaf --keep 8M --pid {process.pid}", KYMO)
    kymo('snapshot', process.pid,
         seconds=8).refused('was started with SIGUSR1 ignored, and takes no snapshots on request')
    recorder.end(signal.SIGINT).ok()


@timeout(120)
def test_a_recorder_in_a_pid_namespace_is_found(tmp):
    need_root()
    outer = start('unshare', '-pf', '--mount-proc', KYMO, 'record', *STEPS, '-o', 'inner', '--keep', '8M', '--', FLIGHT,
                  1000000, 1000, 100)

    def target():
        for path in Path('/proc').glob('[0-9]*/exe'):
            try:
                recorder = (path.parent / 'status').read_text().partition('PPid:')[2].split()[0]
                is_ours = f'PPid:\t{outer.pid}\n' in Path(f'/proc/{recorder}/status').read_text()
                if is_ours and path.samefile(FLIGHT) and 'memfd:kymo' in (path.parent / 'maps').read_text():
                    return int(path.parent.name)
            except (OSError, IndexError):
                pass
        return None

    pid = eventually(target, 'it is recorded')
    eventually(lambda: Path('inner/metadata').exists(), 'there are metadata')
    # a chroot's paths are longer from other mount namespaces
    check_matches(kymo('snapshot', pid).ok().out, rf'^snapshot in .*{tmp}/inner\.1$')
    recorder = int((Path('/proc') / str(pid) / 'status').read_text().partition('PPid:')[2].split()[0])
    remains.write_live_state(pid, 0)
    check_matches(kymo('status', pid).ok().out, rf'^ *{pid}  flight: .* by process {recorder}\n')
    os.kill(pid, signal.SIGKILL)
    outer.end()


@timeout(120)
def test_a_directory_that_is_recorded_into_stays_where_it_is(tmp):
    process = flight()
    recorder = start_record(process.pid, *STEPS, '--keep', '8M')
    record('-p', 'libc:malloc', '--', 'true').refused(
        f'kymo.data exists and kymo process {recorder.pid} records into it; choose another directory with -o')
    check_equal(kymo('snapshot', process.pid).ok().out, f'snapshot in {tmp}/kymo.data.1\n', 'a snapshot')
    check(Path('kymo.data.1/metadata').exists(), 'it is there')
    recorder.end(signal.SIGINT).ok()
    record('-p', 'libc:malloc', '--', 'true').ok()


def test_what_another_user_calls_a_recording_is_not_opened(tmp):
    need_root()
    tmp.chmod(0o755)
    shutil.copy('/bin/sleep', 'kymo')
    (tmp / 'secret').write_text('env {\n\tmode = "overwrite";\n}\n')
    os.utime('secret', (1, 1))
    for name, make in (('fifo', os.mkfifo), ('link', lambda path: os.symlink(tmp / 'secret', path)),
                       ('directory', os.mkdir), ('hard', lambda path: os.link(tmp / 'secret', path))):
        os.mkdir(name)
        make(f'{name}/metadata')
        os.chown(name, 65534, 65534)
        fake = start('sh', '-c', f'exec ./kymo 100 3<{name}', user=65534)
        eventually(lambda: os.readlink(f'/proc/{fake.pid}/exe').endswith('/kymo'), 'it runs')
        kymo('snapshot', fake.pid, seconds=8).refused('does not record, or has not begun to')
        check(fake.is_alive(), 'it got no signal')
        check_equal(os.stat('secret').st_atime, 1, f'when the file behind {name} was read')
        fake.kill()
