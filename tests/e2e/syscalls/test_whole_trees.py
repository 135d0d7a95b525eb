"""System calls of trees whose programs have data among their code (libcrypto): counts are whole, and no process is
said to run without probes."""
import re

from kymotest import check, check_equal, kymo, program, record, report_json, run

COMMANDS = ['openssl version', 'curl --version', 'git --version', 'ssh -V']


def test_a_tree_with_libcrypto_is_whole_and_no_warning_says_else(tmp):
    words = [
        'sh', '-c', '; '.join(f'{program(command.split()[0])} {command.split()[1]}' for command in COMMANDS) + '; true'
    ]
    run(program('strace'), '-f', '-qq', '-e', 'trace=openat,read', '-o', tmp / 'strace', *words).ok()
    lines = (tmp / 'strace').read_text()
    result = record('-s', 'openat,read', '--', *words).ok()
    check('runs without probes' not in result.err and 'is not recorded' not in result.err, 'no process is left out',
          result)
    check_equal(report_json()['lost_events'], report_json()['lost_in_vforks'], 'lost events')
    shown = kymo('report', '--events').ok().out
    for name in ('openat', 'read'):
        check_equal(len(re.findall(rf' {name}\(', shown)), len(re.findall(rf'^\d+ +{name}\(', lines, re.M)),
                    f'calls of {name}, by strace')
