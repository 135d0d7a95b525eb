"""Recordings belong to the user that makes them: no other user reads them, and no other user's files are touched when
one makes room for the next."""
import os
import shutil
import stat
import time
from pathlib import Path

from kymotest import KYMO, KYMO_PLAIN, check, check_equal, check_matches, need_root, run, start, TARGETS

PROBE = ['-q', '-p', 'libc:malloc']
OTHER = 65534
AS_OTHER = ['setpriv', '--reuid', str(OTHER), '--regid', str(OTHER), '--clear-groups']


def mode(path):
    return stat.S_IMODE(Path(path).stat().st_mode)


def record(*args, **options):
    return run(KYMO, 'record', *PROBE, *args, '--', 'true', **options)


def shared_directory(tmp):
    """Where the other user may do as he likes, as in /tmp but without the sticky bit."""
    need_root()
    tmp.chmod(0o755)
    place = tmp / 'shared'
    place.mkdir()
    os.chown(place, OTHER, OTHER)
    return place


def test_recordings_are_for_their_owner_alone_whatever_the_umask_is(tmp):
    for umask in 0, 0o022, 0o077, 0o777:
        name = f'data{umask:o}'
        run('sh', '-c', f'umask {umask:o}; exec "$0" record -q -o {name} -p libc:malloc -- ls /', KYMO).ok()
        check_equal(mode(name), 0o700, f'{name}, umask {umask:o}')
        files = {path.name: mode(path) for path in Path(name).iterdir()}
        check('metadata' in files and len(files) > 1, f'files of {name}: {files}')
        check_equal(set(files.values()), {0o600}, f'files of {name}: {files}')


def test_lines_of_calls_are_for_their_owner_alone(tmp):
    run('sh', '-c', 'umask 0; exec "$0" syscalls -o lines -- true', KYMO).ok()
    check_equal(mode('lines'), 0o600, 'a new file')
    Path('open').write_text('before')
    os.chmod('open', 0o644)
    run(KYMO, 'syscalls', '-o', 'open', '--', 'true').ok()
    check_equal(mode('open'), 0o600, 'a file that was there')
    check('before' not in Path('open').read_text(), 'it was emptied')
    os.mkfifo('pipe', 0o644)
    os.chmod('pipe', 0o644)
    reader = start('cat', 'pipe')
    run(KYMO, 'syscalls', '-o', 'pipe', '--', 'true').ok()
    check_matches(reader.end().out, r'exit_group')
    check_equal(mode('pipe'), 0o644, 'a pipe')


def test_lines_of_calls_go_into_no_file_of_another_user(tmp):
    """Another user has put it there, and can read it."""
    place = shared_directory(tmp)
    for name in ['trap', 'empty']:
        (place / name).write_text('' if name == 'empty' else 'before')
        os.chown(place / name, OTHER, OTHER)
        (place / name).chmod(0o666)
    for name, options in ('trap', []), ('trap', ['-A']), ('empty', []):
        run(KYMO, 'syscalls', '-o', place / name, *options, '--',
            'true').refused(f'{name} exists and belongs to another user')
        check_equal((place / name).read_text(), '' if name == 'empty' else 'before', f'{name} with {options}')
    own = place / 'own'
    with open(own, 'w') as file:
        os.chown(own, OTHER, OTHER)
        run(KYMO, 'syscalls', '-o', '/dev/stdout', '--', 'true', stdout=file).ok()
    check_matches(own.read_text(), r'exit_group')


def test_lines_of_a_thread_go_into_no_file_of_another_user(tmp):
    """A pipe is not waited for: the thread is stopped meanwhile."""
    place = shared_directory(tmp)
    process = start('sleep', 60)
    trap = place / f'lines.{process.pid}'
    command = [KYMO, 'syscalls', '-ff', '-o', place / 'lines', '--pid', process.pid]
    trap.write_text('before')
    os.chown(trap, OTHER, OTHER)
    trap.chmod(0o666)
    run(*command).refused(f'{trap.name}: it belongs to another user')
    check_equal(trap.read_text(), 'before', 'the file')
    trap.unlink()
    os.mkfifo(trap)
    os.chown(trap, OTHER, OTHER)
    run(*command).refused(f'{trap.name}: No such device or address')
    reader = os.open(trap, os.O_RDONLY | os.O_NONBLOCK)
    run(*command).refused(f'{trap.name}: it belongs to another user')
    check_equal(os.read(reader, 100), b'', 'the pipe')
    os.close(reader)


def test_what_a_program_records_by_itself_is_for_its_owner_alone(tmp):
    program = TARGETS / 'markers/marked-self'
    run('sh', '-c', 'umask 0; exec "$0" -n 7', program, env={'KYMO_MARKERS': '*', 'KYMO_MARKERS_DIR': 'own'}).ok()
    check(Path('own/metadata').exists(), 'it was recorded')
    check_equal(mode('own'), 0o700, 'the directory')
    check_equal({mode(path) for path in Path('own').iterdir()}, {0o600}, 'its files')


def refused(place, name, why, *args, **options):
    result = record('-o', f'{place}/{name}', *args, seconds=60, **options).ended(1)
    check_matches(result.err, why)


def test_a_pipe_in_place_of_metadata_is_not_waited_for(tmp):
    place = shared_directory(tmp)
    (place / 'data').mkdir()
    os.mkfifo(place / 'data/metadata')
    refused(place, 'data', r'data exists and is not a recording of kymo\'s')
    shutil.rmtree(place / 'data')
    record('-o', place / 'data').ok()
    (place / 'data.old').mkdir()
    os.mkfifo(place / 'data.old/metadata')
    refused(place, 'data', r'data\.old exists and is not a recording of kymo\'s')
    check((place / 'data/metadata').exists(), 'the earlier recording is where it was')


def test_a_pipe_in_a_trace_is_not_waited_for_by_its_reader(tmp):
    (tmp / 'trace').mkdir()
    os.mkfifo(tmp / 'trace/metadata')
    result = run(KYMO, 'report', tmp / 'trace', seconds=30).ended(1)
    check_matches(result.err, r'kymo: \S*trace')
    record('-o', tmp / 'data').ok()
    os.mkfifo(tmp / 'data/more')
    run(KYMO, 'report', tmp / 'data', seconds=30)


def test_directories_of_other_users_are_left_alone(tmp):
    place = shared_directory(tmp)
    run(*AS_OTHER, 'sh', '-c', f'mkdir {place}/data && printf "/* CTF 1.8 */" >{place}/data/metadata').ok()
    refused(place, 'data', r'data exists and belongs to another user; choose another directory with -o')
    run(*AS_OTHER, 'mv', place / 'data', place / 'new.old').ok()
    record('-o', place / 'new').ok()
    refused(place, 'new', r'new\.old exists and belongs to another user')
    check((place / 'new.old/metadata').exists(), "the other user's file is there")


def test_files_that_are_not_kymos_are_not_removed(tmp):
    for _ in range(2):
        record().ok()
    for make in (lambda path: path.write_text('mine'), lambda path: path.mkdir(),
                 lambda path: path.symlink_to('metadata')):
        thing = tmp / 'kymo.data.old/thing'
        make(thing)
        refused(
            tmp, 'kymo.data',
            r"kymo\.data\.old has 'thing' in it, which is not kymo's; move it, or choose another directory with -o")
        check(thing.is_symlink() or thing.exists(), 'it is there')
        check((tmp / 'kymo.data.old/metadata').exists(), 'and the recording too')
        thing.rmdir() if thing.is_dir() and not thing.is_symlink() else thing.unlink()
    record().ok()


def test_links_are_not_followed(tmp):
    (tmp / 'precious').mkdir()
    (tmp / 'precious/metadata').write_text('/* CTF 1.8 */')
    (tmp / 'precious/stream_0').write_text('x')
    (tmp / 'data').symlink_to('precious')
    refused(tmp, 'data', r'data exists and is not a recording of kymo\'s')
    (tmp / 'data').unlink()
    record('-o', 'data').ok()
    (tmp / 'data.old').symlink_to('precious')
    refused(tmp, 'data', r'data\.old exists and is not a recording of kymo\'s')
    check_equal(sorted(os.listdir('precious')), ['metadata', 'stream_0'], 'what the link led to')


def test_names_that_are_no_names_are_refused(tmp):
    (tmp / 'there').mkdir()
    for name in '.', '..', './', 'there/..', '/':
        check_matches(
            record('-o', name).ended(1).err, r"'.*' cannot be the name of a new directory; choose another with -o")
    record('-o', 'with/slashes///').ended(1)
    (tmp / 'with').mkdir()
    record('-o', 'with/slashes///').ok()
    check((tmp / 'with/slashes/metadata').exists(), 'it is there')


def test_nothing_of_roots_goes_when_names_are_exchanged_in_between(tmp):
    """The other user exchanges the earlier recording, a link to a directory of root's, and one of his own, as fast as
    he can."""
    place = shared_directory(tmp)
    precious = tmp / 'precious'
    precious.mkdir()
    (precious / 'metadata').write_text('/* CTF 1.8 */')
    (precious / 'stream_0').write_text('of great value')
    (tmp / 'swap.py').write_text(f'''
import ctypes, os
libc = ctypes.CDLL(None)
os.chdir({str(place)!r})
os.symlink({str(precious)!r}, 'link')
os.mkdir('his')
open('his/metadata', 'w').write('/* CTF 1.8 */')
print('ready', flush=True)
while True:
    for name in b'data', b'data.old':
        for other in b'link', b'his':
            libc.renameat2(-100, other, -100, name, 2)   # RENAME_EXCHANGE
            libc.renameat2(-100, other, -100, name, 2)
''')
    swapper = start(*AS_OTHER, 'python3', tmp / 'swap.py')
    swapper.wait_for('ready')
    end, rounds, done = time.monotonic() + 6, 0, 0
    while time.monotonic() < end:
        result = run(KYMO_PLAIN, 'record', *PROBE, '-o', place / 'data', '--', 'true', seconds=60)
        check(result.status in (0, 1), 'it ends with a sentence', result)
        rounds += 1
        done += result.status == 0
        check_equal(sorted(os.listdir(precious)), ['metadata', 'stream_0'], f"root's files after {rounds} rounds")
    swapper.kill()
    check_equal((precious / 'stream_0').read_text(), 'of great value', 'contents')
    print(f'{rounds} rounds, {done} recordings')
    check(rounds >= 3, 'some rounds')
