"""What was found in files is kept between runs: found again, never believed when damaged, and never taken from others.
"""
import os
import re
import shutil
import time

from kymotest import KYMO, check, check_equal, kymo, need_root, run, start

LIBC = '/lib/x86_64-linux-gnu/libc.so.6'
NAME = re.compile(r'[0-9a-f]{32}$')


def explain(cache, what=LIBC, **options):
    """What `kymo explain` says of some functions, with that directory as its cache."""
    return ''.join(
        run(KYMO, 'explain', what, name, env={'KYMO_CACHE': str(cache)}, **options).ok().out
        for name in ('malloc', 'qsort', 'getenv+4'))


def entries(cache):
    return sorted(path for path in cache.iterdir() if NAME.match(path.name))


def test_a_second_run_finds_what_the_first_has_kept(tmp):
    cache = tmp / 'cache'
    fresh = explain('')
    check_equal(explain(cache), fresh, 'the first run')
    kept = entries(cache)
    check_equal(len(kept), 1, 'entries')
    check_equal(kept[0].stat().st_mode & 0o7777, 0o600, 'mode of an entry')
    check_equal(cache.stat().st_mode & 0o7777, 0o700, 'mode of the directory')
    before = kept[0].stat()
    check_equal(explain(cache), fresh, 'the second run')
    check_equal(kept[0].stat().st_ino, before.st_ino, 'the entry is the same file')


def test_it_is_the_entry_that_a_second_run_uses(tmp):
    """A program is traced: of the entry it reads each byte, and it writes none."""
    cache = tmp / 'cache'
    explain(cache)
    log = tmp / 'log'
    run('strace', '-f', '-e', 'trace=openat,renameat,pread64', '-o', log, KYMO, 'explain', LIBC, 'malloc',
        env={'KYMO_CACHE': str(cache), 'ASAN_OPTIONS': 'detect_leaks=0'}).ok()
    text = log.read_text()
    check(entries(cache)[0].name in text, 'the entry is opened', text)
    check('renameat' not in text, 'nothing is written', text)


def test_no_directory_means_nothing_kept(tmp):
    for cache in '', 'relative', '/nonexistent/kymo':
        explain(cache, cwd=tmp)
    check_equal(list(tmp.iterdir()), [], 'files that were made')


def test_a_damaged_entry_is_made_anew(tmp):
    cache = tmp / 'cache'
    fresh = explain(cache)
    entry = entries(cache)[0]
    good = entry.read_bytes()
    for at in 0, 8, 16, 31, 32, 40, 60, 100, len(good) // 2, len(good) - 1:
        entry.write_bytes(good[:at] + bytes([good[at] ^ 0x10]) + good[at + 1:])
        check_equal(explain(cache), fresh, f'byte {at} was changed')
        check(entry.read_bytes() == good, f'the entry with a wrong byte {at} is made anew')
    for size in 0, 10, 47, len(good) - 1:
        entry.write_bytes(good[:size])
        check_equal(explain(cache), fresh, f'cut to {size} bytes')
        check(entry.read_bytes() == good, f'the entry cut to {size} bytes is made anew')
    entry.write_bytes(good + b'x')
    check_equal(explain(cache), fresh, 'a byte more')


def test_an_entry_or_directory_that_others_may_write_is_not_believed(tmp):
    need_root()
    cache = tmp / 'cache'
    fresh = explain(cache)
    entry = entries(cache)[0]
    good = entry.read_bytes()
    for spoil in (lambda: entry.chmod(0o622), lambda: os.chown(entry, 65534, -1)):
        spoil()
        check_equal(explain(cache), fresh)
        check_equal((entry.stat().st_mode & 0o777, entry.stat().st_uid), (0o600, os.geteuid()),
                    'the entry was made anew')
        check(entry.read_bytes() == good, 'and is what it was')
    entry.unlink()
    for spoil in (lambda: cache.chmod(0o777), lambda: (cache.chmod(0o700), os.chown(cache, 65534, -1))):
        spoil()
        check_equal(explain(cache), fresh)
        check_equal(list(cache.iterdir()), [], 'what was written where others may write')


def test_an_entry_that_is_a_link_or_a_pipe_is_neither_followed_nor_waited_for(tmp):
    cache = tmp / 'cache'
    fresh = explain(cache)
    entry = entries(cache)[0]
    good = entry.read_bytes()
    (tmp / 'elsewhere').write_bytes(good)
    entry.unlink()
    entry.symlink_to(tmp / 'elsewhere')
    check_equal(explain(cache), fresh, 'with a link')
    check(not entry.is_symlink(), 'the link has made room for an entry')
    entry.unlink()
    os.mkfifo(entry)
    check_equal(explain(cache), fresh, 'with a pipe')


def test_a_file_that_another_user_can_write_is_not_kept(tmp):
    need_root()
    cache, library = tmp / 'cache', tmp / 'libother.so'
    shutil.copy(LIBC, library)
    fresh = explain('', library)
    os.chown(library, 65534, -1)
    check_equal(explain(cache, library), fresh, "another user's file")
    os.chown(library, 0, -1)
    library.chmod(0o666)
    check_equal(explain(cache, library), fresh, "everybody's file")
    check(not cache.exists() or not entries(cache), 'nothing is kept of it')
    library.chmod(0o644)
    check_equal(explain(cache, library), fresh, 'a file of one\'s own')
    check_equal(len(entries(cache)), 1, 'entries')


def test_a_changed_file_is_another_entry(tmp):
    """One byte of text, with the same name, size and times."""
    cache, library = tmp / 'cache', tmp / 'libown.so'
    shutil.copy2(LIBC, library)
    explain(cache, library)
    times = library.stat()
    at = int(
        re.search(r'libown.so\+0x([0-9a-f]+)',
                  kymo('list', library, 'qsort').ok().out + ' libown.so+0x30000')[1], 16)
    with library.open('r+b') as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 1]))
    os.utime(library, ns=(times.st_atime_ns, times.st_mtime_ns))
    explain(cache, library)
    check_equal(len(entries(cache)), 2, 'entries')


def test_several_may_write_at_once_and_be_killed(tmp):
    cache = tmp / 'cache'
    fresh = explain('')
    for delay in 0, 0.02, 0.05, 0.1, 0.2:
        several = [start(KYMO, 'explain', LIBC, 'malloc', env={'KYMO_CACHE': str(cache)}) for _ in range(4)]
        time.sleep(delay)
        several[0].kill()
        for each in several[1:]:
            each.end().ok()
        check_equal(explain(cache), fresh, f'after a kill at {delay} s')
        for entry in entries(cache):
            entry.unlink()


def test_room_is_bounded_and_what_a_kill_has_left_goes(tmp):
    cache = tmp / 'cache'
    cache.mkdir(mode=0o700)
    day = 86400
    for i in range(6):
        path = cache / f'{i:032x}'
        with path.open('wb') as file:
            file.truncate(100 << 20)
        os.utime(path, (time.time() - (i + 1) * day, ) * 2)
    left, new = cache / 'new-1-0000000000000000', cache / 'new-2-0000000000000000'
    for path in left, new, cache / 'README':
        path.write_text('')
    os.utime(left, (time.time() - day, ) * 2)
    explain(cache)
    check(sum(path.stat().st_size for path in entries(cache)) <= 512 << 20, 'no more than 512 MiB')
    check(not (cache / f'{5:032x}').exists() and (cache / f'{0:032x}').exists(), 'the oldest went')
    check_equal((left.exists(), new.exists(), (cache / 'README').exists()), (False, True, True),
                'what stays of other files')
