"""A hub lends its rights to no client: what a client may join is what the kernel would let it trace itself. `strace
-p` on a twin of the target is the reference."""
import os
import re
import signal

from kymotest import KYMO, NOBODY, at_end, check, check_equal, eventually, need_root, program, run, skip, start

LOOP = 'while :; do read -t 0.05 line <> <(:); kill -0 $$; done'
NO_RIGHTS = ['setpriv', '--bounding-set=-all', '--inh-caps=-all', '--no-new-privs']
NO_CAPABILITIES = ['setpriv', '--bounding-set=-all', '--inh-caps=-all']


def twin(*by, **options):
    process = start(*by, 'bash', '-c', LOOP, **options)
    at_end(process.kill)
    eventually(lambda: open(f'/proc/{process.pid}/comm').read() == 'bash\n', 'it is the shell')
    return process


def hub_of(process, by=(), **options):
    """Root's, or that of another user, which serves."""
    hub = start(*by, KYMO, 'syscalls', '-o', os.devnull, '--pid', str(process.pid), **options)
    at_end(hub.kill)
    eventually(lambda: tracer_of(process.pid) > 0, 'it is traced')
    return hub


def hub_that_launches(tmp, **options):
    """One whose target is its child, which Yama lets it trace; and the target."""
    hub = start(KYMO, 'syscalls', '-o', os.devnull, '--', 'bash', '-c', f'echo $$ >{tmp}/pid; {LOOP}', **options)
    at_end(hub.kill)
    eventually(lambda: (tmp / 'pid').exists() and (tmp / 'pid').read_text().endswith('\n'), 'its target runs')
    pid = int((tmp / 'pid').read_text())
    at_end(os.kill, pid, signal.SIGKILL)
    return hub, pid


def tracer_of(pid):
    return int(re.search(r'^TracerPid:\s*(\d+)', open(f'/proc/{pid}/status').read(), re.M).group(1))


def may_strace(pid, client, **options):
    """Whether the kernel lets a process of these rights attach."""
    process = start(*client, program('strace'), '-o', os.devnull, '-p', str(pid), **options)
    eventually(lambda: 'attached' in process.err or not process.is_alive(), 'it is told')
    result = process.end(signal.SIGINT if process.is_alive() else None)
    check(('attached' in result.err) != ('not permitted' in result.err), 'it is one or the other', result)
    return 'attached' in result.err


CALLS = r'kill\(|read\(|clone'


def joins(pid, client, **options):
    """Whether it is told of calls by the hub."""
    process = start(*client, KYMO, 'syscalls', '--pid', str(pid), **options)
    eventually(lambda: re.search(CALLS, process.err) or not process.is_alive(), 'it is told', 60)
    result = process.end(signal.SIGINT if process.is_alive() else None)
    check('Sanitizer' not in result.err.replace('LeakSanitizer has encountered a fatal error', ''), 'no report', result)
    return bool(re.search(CALLS, result.out + result.err)), result


def test_a_client_joins_what_the_kernel_would_let_it_trace():
    need_root()
    program('setpriv')
    cases = {
        'root': ([], [], True), 'without capabilities, target with all': ([], NO_RIGHTS, False),
        'without capabilities but new ones, target with all': ([], NO_CAPABILITIES, False), 'both without capabilities':
        (NO_RIGHTS, NO_RIGHTS, True),
    }
    for what, (target_by, client, expected) in cases.items():
        other = twin(*target_by)
        check_equal(may_strace(other.pid, client), expected, f'the kernel: {what}')
        process = twin(*target_by)
        hub_of(process)
        told, result = joins(process.pid, client)
        check(told == expected, f'the hub: {what}', result)
        check(told or 'does not let you trace it; try as its user or as root' in result.err, f'the sentence: {what}',
              result)
        check(process.is_alive(), 'the target lives')


def test_ambient_capabilities_of_a_hub_are_no_gift(tmp):
    """A hub of an ordinary user with capabilities that it has by no file, so that nothing marks it as secure."""
    need_root()
    tmp.chmod(0o777)
    env = {'XDG_RUNTIME_DIR': str(tmp)}
    as_user = [program('setpriv'), '--reuid', str(NOBODY), '--regid', str(NOBODY), '--clear-groups']
    with_rights = as_user + [
        '--inh-caps=+sys_ptrace,+dac_override,+kill', '--ambient-caps=+sys_ptrace,+dac_override,+kill'
    ]
    for what, client, expected in ('without capabilities', as_user, False), ('with the same', with_rights, True):
        check_equal(may_strace(twin().pid, client, env=env), expected, f'the kernel: {what}')
        process = twin()
        hub_of(process, with_rights, env=env)
        told, result = joins(process.pid, client, env=env)
        check(told == expected, f'the hub: {what}', result)


def joins_as_the_kernel_allows(tmp, **options):
    """An ordinary user's client of a hub of the same user, where the target is no child of the client."""
    other = start('bash', '-c', LOOP, **options)
    at_end(other.kill)
    eventually(lambda: open(f'/proc/{other.pid}/comm').read() == 'bash\n', 'it is the shell')
    allowed = may_strace(other.pid, [], **options)
    hub, pid = hub_that_launches(tmp, **options)
    told, result = joins(pid, [], **options)
    check_equal(told, allowed, f'the hub lets it in ({result})')
    check(hub.is_alive(), 'the hub lives')
    return allowed


def test_an_ordinary_user_joins_a_hub_of_its_own(tmp):
    tmp.chmod(0o777)
    as_user = {'user': NOBODY} if os.geteuid() == 0 else {}
    joins_as_the_kernel_allows(tmp, env={'XDG_RUNTIME_DIR': str(tmp)}, **as_user)


def test_yama_holds_for_clients(tmp):
    """Where it is there, and lets a process trace its descendants alone."""
    scope = '/proc/sys/kernel/yama/ptrace_scope'
    if not os.path.exists(scope):
        skip('this kernel has no Yama')
    with open(scope) as file:
        if int(file.read()) != 1:
            skip(f'{scope} is not 1')
    tmp.chmod(0o777)
    as_user = {'user': NOBODY} if os.geteuid() == 0 else {}
    check_equal(joins_as_the_kernel_allows(tmp, env={'XDG_RUNTIME_DIR': str(tmp)}, **as_user), False, 'the kernel')
