"""A hub lends its rights to no client: what a client may join is what the kernel would let it trace itself. `strace -p` on a twin of the target is the reference."""
import os
import re

from kymotest import KYMO, at_end, check, check_equal, eventually, need_root, program, run, start

LOOP = 'while :; do read -t 0.05 line <> <(:); kill -0 $$; done'
NO_RIGHTS = ['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--no-new-privs']
NO_CAPABILITIES = ['setpriv', '--bounding-set=-all', '--inh-caps=-all']


def twin(*by, **options):
    process = start(*by, 'bash', '-c', LOOP, **options)
    at_end(process.kill)
    eventually(lambda: open(f'/proc/{process.pid}/comm').read() == 'bash\n', 'it is the shell')
    return process


def hub_of(process):
    """Root's, which serves."""
    hub = start(KYMO, 'syscalls', '-o', os.devnull, '--pid', str(process.pid))
    at_end(hub.kill)
    eventually(lambda: tracer_of(process.pid) > 0, 'it is traced')
    return hub


def tracer_of(pid):
    return int(re.search(r'^TracerPid:\s*(\d+)', open(f'/proc/{pid}/status').read(), re.M).group(1))


def may_strace(pid, client):
    """Whether the kernel lets a process of these rights attach."""
    result = run(*client, 'timeout', '-s', 'INT', '1', program('strace'), '-o', os.devnull, '-p', str(pid))
    check(('attached' in result.err) != ('not permitted' in result.err), 'it is one or the other', result)
    return 'attached' in result.err


def joins(pid, client):
    """Whether it is told of calls by the hub."""
    result = run(*client, 'timeout', '-s', 'INT', '4', KYMO, 'syscalls', '--pid', str(pid), seconds=60)
    check('Sanitizer' not in result.err.replace('LeakSanitizer has encountered a fatal error', ''), 'no report', result)
    return bool(re.search(r'kill\(|read\(|clone', result.out + result.err)), result


def test_a_client_joins_what_the_kernel_would_let_it_trace():
    need_root()
    program('setpriv')
    cases = {
        'root': ([], [], True),
        'without capabilities, target with all': ([], NO_RIGHTS, False),
        'without capabilities but new ones, target with all': ([], NO_CAPABILITIES, False),
        'both without capabilities': (NO_RIGHTS, NO_RIGHTS, True),
    }
    for what, (target_by, client, expected) in cases.items():
        other = twin(*target_by)
        check_equal(may_strace(other.pid, client), expected, f'the kernel: {what}')
        process = twin(*target_by)
        hub_of(process)
        told, result = joins(process.pid, client)
        check(told == expected, f'the hub: {what}', result)
        check(process.is_alive(), 'the target lives')
