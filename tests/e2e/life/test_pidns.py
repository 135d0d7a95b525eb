"""A /proc of another PID namespace: its processes are others than those of the same ids here, so that kymo leaves all
alone."""
from kymotest import KYMO, check, check_equal, check_same, need_root, program, run, target_path, timeout

SENTENCE = ('/proc shows another PID namespace, where process ids mean other processes; '
            'mount that of this one first: mount -t proc proc /proc')


def refused_inside(*words):
    """`kymo WORDS` in a namespace of its own with the /proc of ours; 2 is a sleep there, and a kernel thread or
    another program here."""
    script = 'sleep 60 & "$@"; status=$?; kill $!; exit $status'
    return run(program('unshare'), '-pf', '--kill-child', 'sh', '-c', script, 'sh', KYMO, *words)


@timeout(60)
def test_commands_are_refused(tmp):
    need_root()
    for words in (['record', '-p', 'libc:malloc', '--pid', '2'], ['record', '-p', 'libc:malloc', '--', 'true'], [
            'record', '-p', 'libc:malloc', '--name', 'sleep'
    ], ['detach', '2'], ['threads', '2'], ['status', '2'], ['list', '2'], ['explain', '2', 'libc:malloc'], [
            'syscalls', '-p', '2'
    ], ['syscalls', 'true'], ['record', '-s', '%file', '--', 'true']):
        result = refused_inside(*words)
        check_equal(result.status, 1, f'status of {words}')
        check_same(result.err, f'kymo: {SENTENCE}\n', f'stderr of {words}')
        check_same(result.out, '', f'stdout of {words}')


def test_a_proc_of_its_own_serves(tmp):
    need_root()
    result = run(program('unshare'), '-pf', '--mount-proc', '--kill-child', KYMO, 'record', '-q', '-p',
                 'callmany:work_a', '--', target_path('callmany'), '1000').ok()
    check(not result.err, 'no warning', result)
