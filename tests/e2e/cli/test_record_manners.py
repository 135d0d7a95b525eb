"""How `kymo record` behaves beside the command or process that it records: what it writes where, signals, exit
statuses."""
import os
import pty
import re
import shutil
import signal
from pathlib import Path

from kymotest import (KYMO, Result, at_end, check, check_equal, check_matches, need_uprobes, probe_counts, program,
                      record, run, run_on_terminal, sleeper, start, start_record, target, target_path)

PROBE = ('-p', 'libc:read')


def check_plain(text):
    check('\x1b' not in text and '\r' not in text, 'control codes', text)


def test_the_exit_status_is_the_commands():
    for status in (0, 1, 2, 77, 255):
        record(*PROBE, 'sh', '-c', f'exit {status}').ended(status)
    record(*PROBE, '--', 'sh', '-c', 'kill -USR1 $$').ended(128 + signal.SIGUSR1)


def test_the_exit_status_is_the_commands_where_the_ends_of_children_are_ignored():
    """The kernel keeps no status for a parent that ignores SIGCHLD. The command ignores it all the same, as it would
    without
    kymo."""
    command = ['sed', '-n', 's/^SigIgn:.//p; $q5', '/proc/self/status']
    ways = [['record', '-q', *PROBE], ['record', '-q', *PROBE, '--follow'], ['record', '-q', *PROBE, '--no-follow'],
            ['record', '-q', '--backend', 'ptrace', '-s', 'chdir'], ['syscalls', '-o', os.devnull]]
    if not os.geteuid():
        ways += [['record', '-q', '--backend', 'kernel', '-s', 'chdir'],
                 ['syscalls', '-o', os.devnull, '--backend', 'kernel']]
    for words in ways:
        result = run(KYMO, *words, '--', *command,
                     preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)).ended(5)
        check(int(result.out, 16) >> (signal.SIGCHLD - 1) & 1, 'the command ignores it', words, result)
        run('rm', '-rf', 'kymo.data').ok()


def test_the_summary_is_one_line_that_names_the_directory():
    result = record(*PROBE, '-o', 'my.data', 'true').ok()
    check_matches(
        result.err,
        r"\Akymo: (?:no events|\d[\d,]* events? \([\d.]+ \w+\)), none lost, in my\.data; 'kymo report my\.data' shows them\n\Z"
    )
    check_equal(result.out, '', 'stdout')


def test_quiet_says_nothing():
    result = record('-q', *PROBE, 'true').ok()
    check_equal(result.out + result.err, '', 'output')


def test_where_no_terminal_is_a_plain_line_tells_that_recording_has_begun():
    process = sleeper()
    recorder = start_record(process.pid, *PROBE)
    recorder.wait_for(rf'^kymo: recording process {process.pid}, \d+ sites?$', which=1)
    result = recorder.end(signal.SIGTERM)
    check_equal(result.status, 0, 'exit status')
    check_plain(result.err)
    check(process.is_alive(), 'the process runs on')


def test_an_interrupt_ends_the_recording_of_a_process():
    for number in (signal.SIGINT, signal.SIGHUP):
        process = sleeper()
        result = start_record(process.pid, *PROBE).end(number)
        check_equal(result.status, 0, 'exit status')
        check_matches(result.err, r'shows them$')
        check(process.is_alive(), 'the process runs on')


def test_for_ends_the_recording():
    process = sleeper()
    result = record(*PROBE, '--pid', process.pid, '--for', '0.5').ok()
    check_matches(result.err, r'shows them$')
    check(process.is_alive(), 'the process runs on')


def test_for_ends_the_recording_of_a_command_and_its_exit_status_is_kept():
    recorder = start(KYMO, 'record', *PROBE, '--for', '0.3', '--', 'sh', '-c', 'read line; exit 5')
    recorder.wait_for('^kymo: waiting for sh to end$', which=1)
    recorder.end(input='\n').ended(5)


def test_a_line_lives_on_a_terminal_and_leaves_nothing():
    def lines(text):
        return re.findall(r'\r(kymo: recording[^\r\x1b]*)\x1b\[K', text)

    def end_when_drawn(popen, text):
        if len(lines(text)) > 2 and not ended:
            ended.append(popen.terminate())

    process, ended = sleeper(), []
    result = run_on_terminal(KYMO, 'record', *PROBE, '--pid', process.pid, columns=60, after=end_when_drawn)
    check(ended, 'the line is drawn again and again', result)
    check(all(len(line) < 60 for line in lines(result.out)), 'the line fits', result)
    check_matches(result.out, r"\r\x1b\[Kkymo: .*shows them\s*\Z", 'the end')


def test_a_steady_rate_is_shown_as_one():
    def rates(text):
        return re.findall(r' (\S+)/s   ', text)

    def end_when_drawn(popen, text):
        if len(rates(text)) > 20 and not ended:
            ended.append(popen.terminate())

    process, ended = target('numbered', '-t', '1'), []
    result = run_on_terminal(KYMO, 'record', '-s', 'getpgid', '--pid', process.pid, columns=140, after=end_when_drawn)
    shown = rates(result.out)
    first = next((i for i, rate in enumerate(shown) if rate != '0'), len(shown))
    check(first < 6, f'events are shown in the first second: {shown}', result)
    check('0' not in shown[first:], f'events come all the time: {shown}', result)


def test_the_live_line_ends_with_a_whole_part():
    """On 80 columns the last part has no room."""
    def end_when_drawn(popen, text):
        if text.count('events   ') > 5 and not ended:
            ended.append(popen.terminate())

    process, ended = target('numbered', '-t', '1'), []
    result = run_on_terminal(KYMO, 'record', '-s', 'getpgid', '--pid', process.pid, columns=80, after=end_when_drawn)
    shown = re.findall(r'\r(kymo: recording[^\r\x1b]*)\x1b\[K', result.out)
    check(shown, 'the line is drawn', result)
    for line in shown:
        check_matches(line, r'(lost|sites?|/s|[KMG]iB|bytes|\(Ctrl-C stops\))\s*\Z', 'how a line ends')


def test_a_dumb_terminal_gets_no_control_codes():
    process = sleeper()
    result = run_on_terminal(KYMO, 'record', *PROBE, '--pid', process.pid, '--for', '0.5', env={'TERM': 'dumb'})
    check_plain(result.out)


def test_a_command_has_the_terminal_for_itself_while_it_runs():
    result = run_on_terminal(KYMO, 'record', *PROBE, 'sh', '-c', 'printf "half a line"; sleep 1; echo " and the rest"')
    check_matches(result.out, 'half a line and the rest')


def run_and_type(command, *keys):
    """Run on a terminal of its own; for each (pattern, text) of `keys`, type text once the output has the pattern."""
    pid, master = pty.fork()
    if not pid:
        os.execvpe(command[0], command, {**os.environ, 'TERM': 'xterm'})
    at_end(os.close, master)
    text, keys, status = '', list(keys), None
    while True:
        if keys and re.search(keys[0][0], text):
            os.write(master, keys.pop(0)[1].encode())
        try:
            part = os.read(master, 65536)
        except OSError:  # EIO: the last one has closed its side
            break
        text += part.decode(errors='replace')
    _, status = os.waitpid(pid, 0)
    return Result(' '.join(command), os.waitstatus_to_exitcode(status), text, '')


def test_an_interrupt_from_the_terminal_is_the_commands():
    script = 'trap "echo caught; sleep 0.5; echo done; exit 9" INT; echo ready; while :; do sleep 0.1; done'
    result = run_and_type([KYMO, 'record', *PROBE, 'sh', '-c', script], ('ready', '\x03'))
    check_equal(result.status, 9, str(result))
    check_matches(result.out, r'(?s)caught.*done.*shows them')


def test_a_second_interrupt_from_the_terminal_ends_the_recording():
    # Two signals of a kind that come at the same time are one: kymo, whose child this is, needs a moment for the first.
    is_pending = 'grep -q "^S[hi][dg]Pnd:.*[2367abef]$" /proc/$PPID/status'
    # The command ends when its terminal does, with kymo.
    script = f"trap 'while {is_pending}; do sleep 0.1; done; sleep 1; echo caught' INT; echo ready; while :; do sleep 0.1; done"
    result = run_and_type([KYMO, 'record', *PROBE, 'sh', '-c', script], ('ready', '\x03'), ('caught', '\x03'))
    check_equal(result.status, 128 + signal.SIGINT, str(result))
    check_matches(result.out, r'(?s)caught.*shows them.*sh runs on')


def last_line(result):
    return result.err.splitlines()[-1]


def test_the_summary_counts_events_as_the_report_does(tmp):
    """Exactly, of whatever size they are; in a long recording of different sizes it says that it does not."""
    script = ('python3', '-c', 'for i in range(20000): str(i) * 99')
    path = target_path('callmany')
    many = (path, 3000000, 'work_b', 'work_six')
    for words, command, is_exact in ((('-p', 'libc:malloc', '-p', 'libc:free'), script, True),
                                     (('-p', 'libc:malloc size=%di', '-p', 'libc:exit'), ('sh', '-c', 'exit 0'), True),
                                     (('-p', 'libc:malloc size=%di', '-p', 'libc:free'), script,
                                      True), (('--buffer', '256M', '-p', f'{path}:work_b x=arg0', '-p',
                                               f'{path}:work_six'), many, False)):
        said = last_line(record(*words, '--', *command).ok())
        found = re.fullmatch(
            r"kymo: (about )?(\d[\d,]*) events \([\d.]+ \w+\), none lost, in kymo\.data; 'kymo report' shows them",
            said)
        check(found, said)
        n, told = sum(probe_counts().values()), int(found[2].replace(',', ''))
        check(n == told if is_exact else found[1] and abs(n - told) < n / 2, f'{n} events, said: {said}')
        check(not found[1] or not is_exact, said)
    check_matches(last_line(record('-p', 'libc:getservbyname_r', '--', 'true').ok()),
                  r"\Akymo: no events, none lost, in kymo\.data; ")


def check_counts_what_is_there(words, command):
    words = (*words, '--overwrite', '--buffer', '64K')
    said = last_line(record(*words, '--', *command).ok())
    found = re.search(r'kymo: (\d[\d,]*) events', said)
    check(found, said)
    n = sum(probe_counts().values())
    check_equal(int(found[1].replace(',', '')), n, f'events with {words}')
    check(n < 30000, 'some were dropped', n)


CALLS = ('sh', '-c', 'i=0; while [ $i -lt 20000 ]; do cd /; i=$((i+1)); done')


def test_the_summary_of_a_flight_recorder_that_traces_counts_what_is_there(tmp):
    check_counts_what_is_there(('--backend', 'ptrace', '-s', 'all'), CALLS)


def test_the_summary_of_the_kernels_flight_recorder_counts_what_is_there(tmp):
    need_uprobes()
    path = shutil.copy(target_path('callmany'), tmp / 'callmany')  # no other test's processes map it
    check_counts_what_is_there(('--backend', 'kernel', '-s', 'all'), CALLS)
    check_counts_what_is_there(('--backend', 'kernel', '-p', f'{path}:work_b'), (path, 60000, 'work_b'))


def test_long_sentences_are_wrapped_on_a_terminal_alone():
    said = []
    for words in (('record', '--until', 'libc:malloc duration', '--',
                   'true'), ('record', '-p', 'libc:malloc /arg0 > nope/', '--', 'true'),
                  ('record', '--backend', 'ptrace', '-p', 'libc:malloc', 'true'), ('list', '--debug-file', 'x',
                                                                                   'libc')):
        plain = run(KYMO, *words).err
        for columns, width in ((60, 60), (30, 40), (300, 100)):
            shown = run_on_terminal(KYMO, *words, columns=columns).out
            lines = [line for line in shown.splitlines() if not line.startswith('  ') or line.startswith('      ')]
            check_equal(shown.split(), plain.split(), f'the words of {words}')
            check(all(len(line) <= width for line in lines), f'no line of {words} is longer than {width}', shown)
            check_equal([line for line in shown.splitlines() if line.endswith('^')],
                        [line for line in plain.splitlines() if line.endswith('^')], 'carets')
            said.append(len(shown.splitlines()) > len(plain.splitlines()))
    check(any(said), 'some were wrapped')


def test_a_message_is_one_write():
    """Another process that writes to the same terminal or file comes before or after it."""
    for words in (('record', '-p', 'nosuch:f', '--', 'true'), ('record', '-p', 'libc:malloc /arg0 > nope/', 'true')):
        run(program('strace'), '-qq', '-o', 'writes', '-s', '999', '-e', 'trace=write', KYMO, *words)
        said = Path('writes').read_text()
        writes = re.findall(r'^write\(2, "(.*)", \d+\) ', said, re.MULTILINE)
        check(writes and writes[0].startswith('kymo: ') and writes[0].endswith('\\n'), 'a whole message', said)
        check(not any(write.startswith('kymo: ') for write in writes[1:]), 'only one', said)
