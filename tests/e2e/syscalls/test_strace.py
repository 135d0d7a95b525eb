"""kymo syscalls prints what strace prints, of calls with odd arguments; test_programs.py has real programs. straced.py
says what is made equal before texts are compared, and here is what remains different."""
import json
import re

from kymotest import SOURCE, check, check_equal, check_matches, check_same, kymo, program, run, timeout
from straced import CALLS32, build, build32, check_like_strace, trace, whole_lines


@timeout(300)
def test_calls_with_odd_arguments_look_as_in_strace(tmp):
    check_like_strace(tmp, build(tmp, 'calls'), at_least=450)


@timeout(300)
def test_short_strings_look_as_in_strace(tmp):
    check_like_strace(tmp, build(tmp, 'calls'), options=['-s', '5'], at_least=450)


# Calls that kymo decodes less of: registers in hex, bytes as they are.
OTHERWISE = {
    'ptrace(0x63 /* PTRACE_??? */, 0, NULL, NULL)': 'ptrace(0x63, 0, 0, 0)', 'ioctl(-1, SIOCGIFFLAGS, NULL)':
    'ioctl(-1, SIOCGIFFLAGS, 0)',
}


def test_what_is_decoded_less_is_known(tmp):
    strace, kymo = ([
        line for lines in whole_lines(text).values() for line in lines if line.startswith(('ptrace', 'ioctl'))
    ] for text in trace(tmp, (), [build(tmp, 'otherwise')]))
    for lines, expected in ((strace, OTHERWISE.keys()), (kymo, OTHERWISE.values())):
        check_same([line[:len(start)] for line, start in zip(lines, expected)], list(expected), 'lines')


def test_ls_looks_as_in_strace(tmp):
    check_like_strace(tmp, program('ls'), '-lR', SOURCE / 'docs', at_least=100)
    check_like_strace(tmp, program('ls'), '-l', SOURCE / 'docs', options=['-y'], at_least=100)
    check_like_strace(tmp, program('ls'), '-l', SOURCE / 'docs', options=['-s', '7', '-e', '%file,read'], at_least=20)


# strace shows numbers that it has no name for whatever the set is; kymo, where all calls are wanted, or all but some.
UNNAMED = 'syscall_0x1f3'


def test_sets_have_what_those_of_strace_have(tmp):
    calls = build(tmp, 'calls')
    for name in ('file', 'desc', 'process', 'network', 'signal', 'ipc', 'memory', 'creds', 'clock'):
        check_like_strace(tmp, calls, options=['-e', f'%{name}'], at_least=3, only_strace=UNNAMED)
    check_like_strace(tmp, calls, options=['-e', '!%file,%desc,/^[a-r]'], at_least=50)


def test_calls_of_32_bits_look_as_in_strace(tmp):
    check_like_strace(tmp, build32(tmp, 'as32'), at_least=9)
    check_like_strace(tmp, build32(tmp, 'in64'), options=['-e', CALLS32], at_least=9)
    err = kymo('syscalls', '-e', 'getuid', tmp / 'as32').ok().err
    check_matches(err,
                  r'^\[ Process PID=\d+ runs in 32 bit mode. \]\ngetuid\(\) += \d+\n\+\+\+ exited with 0 \+\+\+\n$')
    calls = [
        json.loads(line) for line in kymo('syscalls', '--json', '-e', 'unlink', tmp / 'in64').ok().err.splitlines()
    ]
    check_equal([calls[0][key] for key in ('number', 'arch', 'name', 'error')], [10, 'i386', 'unlink', 'ENOENT'])


def test_an_exec_by_another_thread_looks_as_in_strace(tmp):
    def lines(text):
        ids = {}
        return [
            re.sub(' +', ' ',
                   re.sub(r'(?<!\w)\d{2,}(?= )', lambda match: ids.setdefault(match[0], f'thread {len(ids)}'), line))
            for line in re.sub(r'0x[0-9a-f]+ /\* \d+ vars \*/', 'ENVIRONMENT', text).splitlines()
        ]

    theirs, ours = map(lines, trace(tmp, ['-e', 'execve,exit_group'], [build(tmp, 'execs', '-pthread')]))
    check_same(ours, theirs, 'lines')
    check('thread 0 +++ superseded by execve in pid thread 1 +++' in ours, str(ours))


@timeout(300)
def test_sockets_look_as_in_strace(tmp):
    """Options and control messages of each level, whole and cut, and addresses of each family."""
    sockets = build(tmp, 'sockets')
    check_like_strace(tmp, sockets, 'set', options=['-e', 'setsockopt'], at_least=10000)
    check_like_strace(tmp, sockets, 'get', options=['-e', 'getsockopt', '--inject', 'getsockopt:retval=0'],
                      at_least=10000)
    check_like_strace(tmp, sockets, 'addresses', options=['-e', 'connect'], at_least=1800)
    check_like_strace(tmp, sockets, 'control', options=['-e', 'sendmsg'], at_least=2000)


def check_decoded(tmp, part, calls, at_least, results=('0', ), when=''):
    """Of each call, as it fails, as it is said to have filled memory, with constants as numbers, and as both."""
    decoded = build(tmp, 'decoded', '-no-pie')
    check_like_strace(tmp, decoded, part, options=['-e', calls, '--inject', f'{calls}:error=EPERM{when}'],
                      at_least=at_least)
    for style in ('abbrev', 'raw', 'verbose'):
        for result in results:
            check_like_strace(tmp, decoded, part,
                              options=['-X', style, '-e', calls, '--inject',
                                       f'{calls}:retval={result}{when}'], at_least=at_least)


@timeout(300)
def test_objects_of_system_v_look_as_in_strace(tmp):
    check_decoded(tmp, 'ipc', 'msgctl,semctl,shmctl,msgget,shmget', 600)


@timeout(300)
def test_options_of_processes_look_as_in_strace(tmp):
    check_decoded(tmp, 'prctl', 'prctl', 4000, results=('0', '0x4080003'))


@timeout(300)
def test_small_families_look_as_in_strace(tmp):
    check_decoded(tmp, 'arch', 'arch_prctl', 300, results=('0', '0x60003'), when=':when=2+')  # the first is libc's own
    check_decoded(tmp, 'personality', 'personality', 900, results=('0', '0x4080003'))
    check_decoded(tmp, 'memfd', 'memfd_create,memfd_secret', 100)
    check_decoded(tmp, 'mount', 'mount', 100)


@timeout(300)
def test_ids_and_times_of_odd_calls_look_as_in_strace(tmp):
    ids = build(tmp, 'ids')
    calls = '/^(get|set)p(gid|gr|riority)|^ioprio|waitid$|queueinfo,fcntl,openat,utimensat,close_range'
    for options in ([], ['-v'], ['-X', 'verbose'], ['-y']):
        check_like_strace(tmp, ids, options=[*options, '-e', f'trace={calls},statx'], at_least=35)
    # strace shows no flags of statx there
    check_like_strace(tmp, ids, options=['-X', 'raw', '-e', f'trace={calls}'], at_least=35)


@timeout(300)
def test_filters_of_packets_and_of_calls_look_as_in_strace(tmp):
    filters = build(tmp, 'filters')
    for options in ([], ['-v'], ['-v', '-X', 'raw'], ['-v', '-X', 'verbose']):
        check_like_strace(tmp, filters, options=[*options, '-e', 'setsockopt,getsockopt,prctl,seccomp'], at_least=25)


def test_arguments_as_numbers_are_as_many_as_in_strace(tmp):
    joined = 'ioctl,shmctl,clone,semctl,msgctl,fcntl,prctl,futex,arch_prctl,clone3,sendfile,openat,wait4'
    theirs, ours = ([
        re.sub('[^(,]*([,)])', r'N\1', line[:line.index(')') + 1]) for lines in whole_lines(text).values()
        for line in lines if re.match(f'({joined.replace(",", "|")})\\(', line)
    ] for text in trace(tmp, ['-e', joined, '-e', 'raw=all'], [build(tmp, 'calls')]))
    check(len(ours) > 100, f'{len(ours)} lines')
    check_same(ours, theirs, 'lines')


@timeout(300)
def test_numbers_of_sockets_look_as_in_strace(tmp):
    sockets = build(tmp, 'sockets')
    for numbers in ('raw', 'verbose'):
        for what, call in (('set', 'setsockopt'), ('addresses', 'connect'), ('control', 'sendmsg')):
            check_like_strace(tmp, sockets, what, options=['-X', numbers, '-e', call], at_least=2000)


def test_what_ends_where_nothing_can_be_read_looks_as_in_strace(tmp):
    ends = build(tmp, 'ends')
    for shown in ('5', '32', '256'):
        check_like_strace(tmp, ends,
                          options=['-s', shown, '-e',
                                   'memfd_create,writev,process_vm_writev,clone3,recvmmsg,sendmmsg'], at_least=80)
