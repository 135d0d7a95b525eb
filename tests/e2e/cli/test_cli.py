"""What kymo says to words that it cannot follow: one sentence, what to do, and the exit status 2; 1 for what is not
there."""
import json
import os
import re
import shutil

from kymotest import (KYMO, NOBODY, SOURCE, check, check_equal, check_matches, check_same, kymo, run, sleeper, start,
                      target_path)

COMMANDS = ['record', 'report', 'branches', 'list', 'explain', 'status', 'detach', 'top']
TOPICS = ['probes', 'aggregations']


def check_says(args, sentence, command=None, status=2):
    """All of stderr: the sentence, and where more is told."""
    result = kymo(*args).ended(status)
    hint = f'try \'kymo help{" " + command if command else ""}\'\n' if status == 2 else ''
    check_same(result.err, f'kymo: {sentence}\n{hint}', f'stderr of kymo {args}')
    check_equal(result.out, '', f'stdout of kymo {args}')


# ---- the front door ------------------------------------------------------------------------------


def test_without_a_command_the_overview_is_a_usage_error():
    result = kymo().ended(2)
    check_equal(result.out, '', 'stdout')
    for command in COMMANDS:
        check_matches(result.err, rf'^  {command} ')


def test_help_shows_the_overview():
    texts = [kymo(*args).ok().out for args in (['help'], ['--help'], ['-h'], ['help', 'help'])]
    for text in texts:
        check_same(text, texts[0])
    for command in COMMANDS:
        check_matches(texts[0], rf'^  {command} ')


def test_every_command_has_help_with_examples_on_lines_that_fit():
    for command in COMMANDS:
        text = kymo('help', command).ok().out
        check_same(kymo(command, '--help').ok().out, text)
        check_matches(text, rf'\Ausage: kymo {command}')
        examples = [line for line in text.splitlines() if line.startswith(f'  kymo {command}')]
        check(2 <= len(examples) <= 3, f'examples of {command}', text)
        check(all(len(line) <= 120 for line in text.splitlines()), 'a line is too long', text)


def test_help_of_record_is_one_screen_and_names_the_topics():
    text = kymo('help', 'record').ok().out
    check(len(text.splitlines()) <= 50, 'more than a screen', text)
    for topic in TOPICS:
        check_matches(text, rf"'kymo help {topic}'")
        check_matches(kymo('help').ok().out, rf"'kymo help {topic}'")
        shown = kymo('help', topic).ok().out
        check(len(shown.splitlines()) <= 50, 'more than a screen', shown)
        check(all(len(line) <= 120 for line in shown.splitlines()), 'a line is too long', shown)
        check_says([topic], f"there is no command '{topic}'")


def test_help_of_record_has_every_option():
    text = kymo('help', 'record').ok().out + kymo('help', 'aggregations').ok().out
    page = re.sub(r'\\f.|\\', '', (SOURCE / 'man/kymo-record.1').read_text())
    options = set(re.findall('--[a-z][-a-z]+', ' '.join(re.findall(r'^\.TP\n(.*)', page, re.M))))
    check(len(options) > 30, 'options of the man page', options)
    for option in sorted(options):
        check_matches(text, rf'(?m)(^| ){option}\b')


def test_the_version_is_one_line():
    check_matches(kymo('--version').ok().out, r'\Akymo \d+\.\d+\.\d+\n\Z')


def test_an_unknown_command_names_the_nearest():
    check_says(['recrod'], "there is no command 'recrod'; did you mean 'record'?")
    check_says(['stat'], "there is no command 'stat'; did you mean 'status'?")
    check_says(['frobnicate'], "there is no command 'frobnicate'")
    check_says(['help', 'lits'], "there is no command 'lits'; did you mean 'list'?")
    check_says(['--verson'], "there is no option '--verson' before the command; options of a command follow its name")


def test_output_that_does_not_arrive_is_a_failure():
    with open('/dev/full', 'w') as full:
        result = start(KYMO, 'help', stdout=full).end()
    check_equal(result.status, 1, 'exit status')
    check_same(result.err, 'kymo: cannot write the output: No space left on device\n')


def test_what_is_not_a_terminal_gets_no_control_codes(tmp):
    for args in ([], ['help'], ['record'], ['list', 'nosuchfile'], ['status']):
        result = kymo(*args)
        check('\x1b' not in result.out + result.err and '\r' not in result.out + result.err, 'control codes', result)


# ---- record --------------------------------------------------------------------------------------


def test_record_without_a_probe_names_an_example():
    check_says([
        'record', '--', 'true'
    ], "nothing to record: give a probe, such as -p 'libc:malloc size=%di', a marker with -m, system calls with -s, or branches with -b",
               'record')
    check_says([
        'record'
    ], "nothing to record: give a probe, such as -p 'libc:malloc size=%di', a marker with -m, system calls with -s, or branches with -b",
               'record')


def test_record_wants_a_command_or_a_process_and_not_both():
    check_says(['record', '-p', 'libc:malloc'],
               'nothing to attach to: give a command, --pid PID, --name NAME, or --all', 'record')
    check_says(['record', '-p', 'libc:malloc', '--pid', '1', 'true'],
               "record either --pid or the command 'true', not both", 'record')
    check_says(['record', '-p', 'libc:malloc', '--', ''], "the command's name is empty", 'record')


def test_options_that_do_not_exist_name_the_nearest():
    check_says(['record', '--probes', 'x'], "unknown option '--probes'; did you mean '--probe'?", 'record')
    check_says(['record', '--bufer=1M'], "unknown option '--bufer'; did you mean '--buffer'?", 'record')
    check_says(['record', '--xyzzy'], "unknown option '--xyzzy'", 'record')
    check_says(['record', '-Z'], "unknown option '-Z'", 'record')
    check_says(['status', '--jsn'], "unknown option '--jsn'; did you mean '--json'?", 'status')


def test_options_want_values_where_they_have_one():
    check_says(['record', '-p'], "option '-p' needs a value: -p SPEC", 'record')
    check_says(['record', '--pid'], "option '--pid' needs a value: --pid PID", 'record')
    check_says(['record', '--overwrite=yes'], "option '--overwrite' takes no value", 'record')
    check_says(['record', '-o', '', 'true'], "--output needs the name of a directory, not ''", 'record')


def test_numbers_are_taken_whole_or_refused():
    for text in ('12x', '0', '-1', '', '4194305', '99999999999999999999', '0x10', '+1'):
        check_says(['record', f'--pid={text}'], f"--pid '{text}' is no process id", 'record')
    for text in ('12x', '0', '-1', '', '.', '1e3', 'inf', 'nan', '0x10', '1.5.2', '99999999999999'):
        check_says(['record', f'--for={text}'], f"--for '{text}' is no number of seconds; write 5 or 0.5", 'record')
    for text in ('16X', 'M', '-1M', '', '1.5M', '16MB', '99999999999999999999', '99999999999999999G'):
        check_says(['record', f'--buffer={text}'], f"--buffer '{text}' is no size; write 4096K, 16M or 1G", 'record')
    for text in ('0', '65535', '63K', '5G', '4097M'):
        check_says(['record', f'--buffer={text}'], f"--buffer '{text}' is out of range; a CPU can have 64K to 4G",
                   'record')


def test_options_may_be_joined_with_their_values():
    check_says(['record', '-qplibc:malloc'], 'nothing to attach to: give a command, --pid PID, --name NAME, or --all',
               'record')
    check_says(
        ['record', '--probe=libc:malloc', '--buffer=64K', '--for=.5', '--backend=auto', '--no-rseq', '--overwrite'],
        'nothing to attach to: give a command, --pid PID, --name NAME, or --all', 'record')


def test_what_there_is_not_is_refused_with_an_alternative():
    check_says(['record', '--backend', 'magic'], "there is no backend 'magic'; write auto, inproc, kernel or ptrace",
               'record')


def test_a_spec_that_is_wrong_is_quoted_with_a_mark_below():
    check_says(['record', '-p', 'libc:malloc size=%dj', '--', 'true'], '''\
column 18: no register '%dj' on x86-64; write %di, %edi, %al, %r8 …
  libc:malloc size=%dj
                   ^''', 'record')
    check_says(['record', '-p', 'malloc', '--', 'true'], '''\
column 7: expected ':' and a function after the file, such as libc:malloc
  malloc
        ^''', 'record')


def test_a_spec_cannot_command_the_terminal():
    result = kymo('record', '-p', 'libc:\x1b]0;owned\x07 %dj', '--', 'true').ended(2)
    check('\x1b' not in result.err and '\x07' not in result.err, 'control codes', result)


def test_options_behind_the_command_are_the_commands():
    check_says([
        'record', 'true', '--nonsense', '-p', 'x'
    ], "nothing to record: give a probe, such as -p 'libc:malloc size=%di', a marker with -m, system calls with -s, or branches with -b",
               'record')


def test_a_command_that_does_not_exist_is_named():
    kymo('record', '-p', 'libc:malloc', '--', 'no-such-program').refused(r'\Akymo: .*no-such-program')


# ---- list ----------------------------------------------------------------------------------------


def test_list_wants_one_file_and_one_glob():
    check_says(['list'], 'list what? give a file, such as libc, or the PID of a process', 'list')
    check_says(['list', 'libc', 'a', 'b'], "one FILE or PID and one GLOB: 'b' is too much", 'list')


def test_list_shows_functions_one_a_line_sorted():
    lines = kymo('list', 'libc', 'm*lloc').ok().out.splitlines()
    names = [line.split()[3].rsplit(':', 1)[1] for line in lines]
    check('malloc' in names, 'malloc is listed', '\n'.join(lines))
    check_same(names, sorted(names))
    for line in lines:
        check_matches(line, r'^0x[0-9a-f]{8,}  0x[0-9a-f]{8,}  +\d+  /\S+:\S+(  \(ifunc\))?$')


def test_list_takes_a_location_as_probes_are_written(tmp):
    """Unless there is a file of that name."""
    check_equal(kymo('list', 'libc:m*lloc').ok().out, kymo('list', 'libc', 'm*lloc').ok().out, 'of a library')
    shutil.copy(target_path('libctor.so'), tmp / 'a:b')
    check_equal(kymo('list', './a:b:ctor_work').ok().out, kymo('list', './a:b', 'ctor_work').ok().out, 'of a file')
    check_matches(kymo('list', './a:b').ok().out, r':ctor_work$')
    kymo('list', 'libc:maloc').refused('no function in libc is called \'maloc\'; near are .*malloc')
    kymo('list', 'nosuch:malloc').refused('nosuch: no such program in PATH')


def test_list_as_json_says_the_same():
    lines = kymo('list', 'libc', 'm*lloc').ok().out.splitlines()
    rows = json.loads(kymo('list', '--json', 'libc', 'm*lloc').ok().out)
    check_equal(len(rows), len(lines), 'rows')
    for line, row in zip(lines, rows):
        vaddr, offset, size, place = line.split()[:4]
        check_equal((row['vaddr'], row['offset'], row['size']), (int(vaddr, 16), int(offset, 16), int(size)), line)
        check_equal(place, f'{row["file"]}:{row["name"]}' + (f'@{row["version"]}' if row['version'] else ''), line)


def test_list_of_a_process_has_all_of_its_files():
    process = sleeper()
    check_matches(process_lists(process, 'malloc'), r'libc\S*:malloc$')
    check_matches(process_lists(process, 'libc:free'), r'libc\S*:free$')
    kymo('list', process.pid, 'nosuchlib:free').refused(r"no function in \d+ is called 'free'\n")
    kymo('list', process.pid, 'libc:mallok').refused(r"is called 'mallok'; near are .*malloc")


def process_lists(process, glob):
    return kymo('list', process.pid, glob).ok().out


def test_list_of_names_that_do_not_exist_names_the_nearest():
    result = kymo('list', 'libc',
                  'mallok').refused(r"\Akymo: no function in libc is called 'mallok'; near are .*malloc")
    check_equal(result.out, '', 'stdout')
    kymo('list', '/nonexistent/file').refused('/nonexistent/file')
    kymo('list', 'no-such-program').refused('no-such-program')
    kymo('list', '/').refused(r'/')


def test_list_of_what_is_not_elf_is_refused(tmp):
    (tmp / 'text').write_text('#!/bin/sh\n')
    (tmp / 'empty').write_text('')
    (tmp / 'cut').write_bytes(b'\x7fELF\x02\x01\x01' + bytes(20))
    for name in ('text', 'empty', 'cut'):
        kymo('list', tmp / name).refused(rf'\Akymo: .*{name}')


def test_processes_that_are_not_there_are_named():
    process = start('true')
    process.end()
    kymo('list', process.pid).refused(f'no process {process.pid}')
    kymo('explain', process.pid, 'malloc').refused(f'no process {process.pid}')
    kymo('status', process.pid).refused(f'{process.pid}')
    kymo('detach', process.pid).refused(f'{process.pid}')
    check_says(['list', '99999999'], "'99999999' is no process id; a file of that name is written ./99999999", 'list')


def test_processes_of_others_need_the_permission():
    if os.geteuid():
        return
    process = start('sleep', '60')
    kymo('list', process.pid, user=NOBODY).refused('(?i)permi')


# ---- explain -------------------------------------------------------------------------------------


def test_explain_wants_a_file_and_a_location():
    check_says(['explain'], 'explain what? give a file or PID and a location, such as libc malloc', 'explain')
    check_says(['explain', 'libc'], 'explain what? give a file or PID and a location, such as libc malloc', 'explain')
    check_says(['explain', 'libc', 'a', 'b'], "one file or process and one location: 'b' is too much", 'explain')


def test_explain_tells_tactic_proof_and_code():
    text = kymo('explain', 'libc', 'malloc').ok().out
    check_matches(text, r'^\S+/libc\S*:malloc$')
    check_matches(text, r'^  > 0x[0-9a-f]+  ([0-9a-f]{2} )+ +\S')
    check_matches(text, r'^  tactic     (jump|group|pun): ')
    check_matches(text, r'^  why safe   ')


def test_explain_of_a_glob_ends_with_totals():
    text = kymo('explain', 'libc', 'mem*').ok().out
    totals = text.splitlines()[-1]
    check_matches(totals, r'^\d+ sites: \d+ jump, \d+ group, (\d+ [a-z ]+, )*\d+ refused$')
    check_equal(len([line for line in text.splitlines() if line.startswith('  site  ')]), int(totals.split()[0]),
                'sites')


def test_explain_of_every_instruction_of_a_function():
    text = kymo('explain', target_path('callmany'), 'work_a:*').ok().out
    sites = re.findall(r'^  site       (0x[0-9a-f]+), ', text, re.MULTILINE)
    code = run('objdump', '-d', '--no-show-raw-insn', '--disassemble=work_a', target_path('callmany')).ok().out
    expected = [
        f'0x{address}' for address, name in re.findall(r'^ +([0-9a-f]+):\t(\w+)', code, re.MULTILINE)
        if name != 'endbr64'
    ]
    check_same(sites, expected, 'sites')
    check_matches(text.splitlines()[-1], rf'^{len(sites)} sites: \d+ jump, \d+ group, (\d+ [a-z ]+, )*\d+ refused$')


def test_explain_inside_of_an_instruction_names_the_ones_beside():
    path = target_path('lines')
    code = run('objdump', '-d', '--no-show-raw-insn', '--disassemble=main', path).ok().out
    starts = [int(address, 16) for address in re.findall(r'^ +([0-9a-f]+):\t', code, re.MULTILINE)]
    before, after = next((low, high) for low, high in zip(starts, starts[1:]) if high - low > 1)
    result = kymo('explain', path, f'main+{after - 1 - starts[0]:#x}').ended(1)
    lines = result.out.splitlines()
    check_matches(lines[1], rf'^  site       {after - 1:#x}, ')
    check_matches(lines[2], rf'^    {before:#x}  ')
    check_matches(lines[3], rf'^    {after:#x}  ')
    check_same(lines[-3:], [
        '  tactic     none: a probe here is refused', f'  not taken  no instruction begins at {after - 1:#x}',
        f'             instructions begin at {before:#x} and {after:#x}'
    ], 'the end')
    check_equal(result.err, f"kymo: no probe can be put at 'main+{after - 1 - starts[0]:#x}'\n")


def test_explain_of_an_offset_and_of_a_process_is_the_same_site():
    row = json.loads(kymo('list', '--json', 'libc', 'malloc').ok().out)[0]
    by_name = kymo('explain', 'libc', 'malloc').ok().out
    check_same(kymo('explain', 'libc', f'{row["offset"]:#x}').ok().out, by_name)
    process = sleeper()
    check_same(without_heading(kymo('explain', process.pid, 'libc:malloc').ok().out), without_heading(by_name))
    check_says(['explain', str(process.pid), '1234'], f'of which file of process {process.pid}? write libc:1234',
               'explain')


def without_heading(text):
    return text.splitlines()[1:]


def test_explain_of_nonsense_is_refused():
    kymo('explain', 'libc', 'mallok').refused(r"\Akymo: no function in libc is called 'mallok'; near are .*malloc")
    process = sleeper()
    kymo('explain', process.pid, 'libc:mallok').refused(r"no function in \d+ is called 'mallok'; near are .*malloc")
    kymo('explain', process.pid, 'nosuchlib:0x1234').refused(r"process \d+ has no file 'nosuchlib'")
    kymo('explain', 'libc', '0xffffffffff').refused(r'offset 0xffffffffff of .* is in no segment')
    check_says(['explain', 'libc', 'malloc+q'], '''\
column 13: expected a number after '+', such as +0x12
  libc:malloc+q
              ^''', 'explain')
    check_says(['explain', 'libc', 'malloc %di'], "a location has no arguments and no event: 'malloc %di'", 'explain')


# ---- status and detach ---------------------------------------------------------------------------


def test_status_and_detach_check_their_words():
    check_says(['status', '12x'], "'12x' is no process id", 'status')
    check_says(['status', '1', '2'], "one process at a time: '2' is too much", 'status')
    check_says(['detach'], "which process? give a PID; 'kymo status' lists those that are recorded", 'detach')
    check_says(['detach', '0'], "'0' is no process id", 'detach')
    check_says(['detach', '1', '2'], "one process at a time: '2' is too much", 'detach')


def test_a_process_without_probes_has_no_status_and_nothing_to_detach():
    process = start('sleep', '60')
    kymo('status', process.pid).refused(f'{process.pid}')
    kymo('detach', process.pid).refused(f'{process.pid}')
    check(process.is_alive(), 'detaching did no harm')
