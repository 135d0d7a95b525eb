"""Options of kymo record in a file: the same words as on the command line, a line each."""
from kymotest import KYMO, check_equal, check_same, event_counts, kymo, record, run

SAMPLE = """\
# what is recorded
-p libc:malloc /arg0 > 1/ size=%di:u64
--probe 'p:freed libc:free'

\t-r libc:malloc ptr=$retval\t
# how
--buffer=1M
  --follow
-o from-file
"""


def test_options_of_a_file_are_those_of_the_command_line(tmp):
    (tmp / 'options').write_text(SAMPLE)
    record('--config', 'options', '--', '/bin/ls', '/').ok()
    record('-p', 'libc:malloc /arg0 > 1/ size=%di:u64', '-p', 'p:freed libc:free', '-r', 'libc:malloc ptr=$retval',
           '-o', 'from-words', '--', '/bin/ls', '/').ok()
    check_equal(event_counts('from-file'), event_counts('from-words'), 'events')


def test_options_come_from_standard_input_too(tmp):
    record('--config', '-', '--', '/bin/true', input='-p libc:exit\n').ok()
    check_equal(event_counts(), {'libc:exit': 1}, 'events')


def test_options_come_from_a_slow_pipe_too(tmp):
    run('sh', '-c', "(sleep 0.3; echo '-p libc:exit') | \"$@\"", 'sh', KYMO, 'record', '--config', '-', '--',
        '/bin/true').ok()
    check_equal(event_counts(), {'libc:exit': 1}, 'events')


def check_says(tmp, lines, *sentences):
    (tmp / 'options').write_text(lines)
    result = record('--config', 'options', '--', '/bin/true').ended(2)
    check_same(
        result.err, ''.join(f'kymo: {sentence}\ntry \'kymo help record\'\n'
                            for sentence in sentences) + f'kymo: this is line {len(lines.splitlines())} of options\n',
        lines)


def test_a_wrong_line_is_named(tmp):
    check_says(tmp, '-q\nlibc:malloc\n', "'libc:malloc' is no option; a line is one, such as -p libc:malloc")
    check_says(tmp, '--probee libc:malloc\n', "unknown option '--probee'; did you mean '--probe'?")
    check_says(tmp, '-p\n', "option '-p' needs a value: -p SPEC")
    check_says(tmp, '--follow now\n', "option '--follow' takes no value, and a line has one option")
    check_says(tmp, '--config other\n', 'a file of options cannot name another one')
    check_says(tmp, '--help\n', '--help belongs on the command line')
    check_says(tmp, '# one\n\n--buffer much\n', "--buffer 'much' is no size; write 4096K, 16M or 1G")


def test_files_that_cannot_be_read_are_refused(tmp):
    check_same(
        record('--config', 'none', '--', '/bin/true').ended(1).err,
        'kymo: cannot read options from none: No such file or directory\n')
    (tmp / 'binary').write_bytes(b'-p libc:malloc\0\n')
    check_same(
        record('--config', 'binary', '--', '/bin/true').ended(1).err, 'kymo: binary is no text: it has a NUL byte\n')
    (tmp / 'options').write_text('-p libc:malloc\n')
    result = kymo('record', '--config', 'options', '--config', 'options', '--', '/bin/true').ended(2)
    check_same(
        result.err,
        "kymo: one file of options is enough; put the lines of options into the first one\ntry 'kymo help record'\n")
