"""kymo syscalls prints what strace prints, of calls with odd arguments; test_programs.py has real programs. straced.py says what is made equal before texts are compared, and here is what remains different."""
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
    'connect(-1, {sa_family=AF_PACKET, sll_protocol=htons(ETH_P_ALL), sll_ifindex=if_nametoindex("lo"), sll_hatype=ARPHRD_ETHER, sll_pkttype=PACKET_HOST, sll_halen=6, '
    'sll_addr=[0x1, 0x2, 0x3, 0x4, 0x5, 0x6]}, 20) = -1 EBADF (Bad file descriptor)':
    r'connect(-1, {sa_family=AF_PACKET, sa_data="\0\3\1\0\0\0\1\0\0\6\1\2\3\4\5\6\0\0"}, 20) = -1 EBADF (Bad file descriptor)',
    'kcmp(1, 2, KCMP_FILE, 3, 4)': 'kcmp(0x1, 0x2, 0, 0x3, 0x4)',
    'ptrace(0x63 /* PTRACE_??? */, 0, NULL, NULL)': 'ptrace(0x63, 0, 0, 0)',
    'ioctl(-1, SIOCGIFFLAGS, NULL)': 'ioctl(-1, SIOCGIFFLAGS, 0)',
    'prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_FOWNER, 0, 0)': 'prctl(PR_CAP_AMBIENT, 0x1, 0x3, 0, 0)',
}


def test_what_is_decoded_less_is_known(tmp):
    strace, kymo = ([line for lines in whole_lines(text).values() for line in lines if line.startswith(('connect', 'kcmp', 'ptrace', 'ioctl', 'prctl'))]
                    for text in trace(tmp, (), [build(tmp, 'otherwise')]))
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
    check_matches(err, r'^\[ Process PID=\d+ runs in 32 bit mode. \]\ngetuid\(\) += \d+\n\+\+\+ exited with 0 \+\+\+\n$')
    calls = [json.loads(line) for line in kymo('syscalls', '--json', '-e', 'unlink', tmp / 'in64').ok().err.splitlines()]
    check_equal([calls[0][key] for key in ('number', 'arch', 'name', 'error')], [10, 'i386', 'unlink', 'ENOENT'])


def test_an_exec_by_another_thread_looks_as_in_strace(tmp):
    def lines(text):
        ids = {}
        return [re.sub(' +', ' ', re.sub(r'(?<!\w)\d{2,}(?= )', lambda match: ids.setdefault(match[0], f'thread {len(ids)}'), line))
                for line in re.sub(r'0x[0-9a-f]+ /\* \d+ vars \*/', 'ENVIRONMENT', text).splitlines()]

    theirs, ours = map(lines, trace(tmp, ['-e', 'execve,exit_group'], [build(tmp, 'execs', '-pthread')]))
    check_same(ours, theirs, 'lines')
    check('thread 0 +++ superseded by execve in pid thread 1 +++' in ours, str(ours))
