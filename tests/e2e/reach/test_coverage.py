"""tools/coverage: nearly every instruction has a place, alone and with a thousand others."""
import re

from kymotest import SOURCE, check, check_equal, run

COVERAGE = SOURCE / 'tools/coverage'  # the script, as people call it


def shares(*args):
    """{file: (instructions, % in-process, % of 1,000 together, % where faults are handled)}"""
    result = run(COVERAGE, *args, seconds=300).ok()
    rows = {}
    for line in result.out.splitlines():
        match = re.match(r'(\S+) +(\d+) .* ([\d.]+) % +\d+ +([\d.]+) % +([\d.]+) %$', line)
        if match:
            rows[match[1]] = int(match[2]), float(match[3]), float(match[4]), float(match[5])
    print(result.out)
    return rows


def test_nearly_every_instruction_of_libraries_and_programs_has_a_place():
    rows = shares('-n', '20000', '-s', '1', 'libc', 'libz', 'xz')
    check_equal(len(rows), 3, 'files')
    for file, (n, alone, together, watched) in rows.items():
        check(n > 1000 and alone >= 99.9, f'{alone} % of {file} one at a time')
        check(together >= 99, f'{together} % of 1,000 in {file} at once')
        check(55 <= watched < alone, f'{watched} % of {file} where nothing is displaced that may fault')


def test_a_file_that_is_none_is_an_error(tmp):
    (tmp / 'text').write_text('no program')
    result = run(COVERAGE, tmp / 'text').ended(1)
    check('text' in result.err, 'it is named', result)
