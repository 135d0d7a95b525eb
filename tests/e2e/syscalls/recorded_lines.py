"""What `kymo report --events` writes of recorded calls, and what strace -f writes of the same command, compared call
by call.

A trace has registers, no memory. So what strace shows from memory is an address with kymo, and results have nothing
in parentheses behind them that was read there. The caller says what else differs, line by line.
"""
import difflib
import re

from kymotest import KYMO, check, check_equal, fail, program, run
from straced import CHANGES, WITH_PIDS, check_compared, ended, whole_lines

PREFIX = re.compile(r'^ *(?:-?\d+\.\d{9} \[\d{3}\]|\[---\]) +(?:\d+/)?(\d+) +\S+ (.*)$')
DURATION = re.compile(r' <\d+\.\d{9}>$')

# How texts from memory begin: strings, arrays, structures, sets of signals; or an address with a remark on what is
# there.
FROM_MEMORY = re.compile(r'["\[{~]|RANDOM|ADDRESS /\* \d+ (vars?|entries) \*/$')
ADDRESS = re.compile(r'0x[0-9a-f]+|ADDRESS')

# As in straced.py.
NOW_AND_THEN = re.compile(r'getrandom\((RANDOM BYTES|ADDRESS), 8, GRND_NONBLOCK\) = 8')

# Signals and ends of processes are no calls, and rt_sigreturn is not recorded.
NO_CALL = re.compile(r'--- |\+\+\+ |rt_sigreturn\(')


def shown(*options, directory='kymo.data'):
    """Lines of the report as strace -f -o has them."""
    result = []
    for line in run(KYMO, 'report', '--events', *options, directory).ok().out.splitlines():
        parts = PREFIX.match(line)
        if parts:
            result.append(f'{parts[1]} {DURATION.sub("", parts[2])}')
        else:
            check('events in vfork children' in line or line.startswith('--- no end: '),
                  f'a line of another kind: {line}')
    return '\n'.join(result)


def calls_of(text):
    """Lines of strace's that are no signals, and no ends of processes."""
    return '\n'.join(line for line in text.splitlines() if not re.match(r'\d+ +(--- |\+\+\+ )', line)) + '\n'


def check_with_memory(tmp, backend, *command, differences=(), chances=(), at_least=1, **how):
    """What is recorded with memory has strace's lines, but for these (straced.py)."""
    (tmp / 'traces').mkdir(exist_ok=True)  # programs that look at their directory find the same there
    run(program('setarch'), '-R', program('strace'), '-q', '-f', '-o', tmp / 'traces/strace', *command, **how).ok()
    run(program('setarch'), '-R', KYMO, 'record', '-q', '-s', 'all', '--backend', backend, '-o', tmp / 'traces/kymo',
        '--', *command, **how).ok()
    strace = calls_of((tmp / 'traces/strace').read_text(errors='backslashreplace'))
    check_compared(strace, shown(directory=tmp / 'traces/kymo'), differences, chances, at_least)


def split(line):
    """A line's name, arguments, and result."""
    name, _, rest = line.partition('(')
    rest, _, result = rest.rpartition(') = ')
    items, item, depth, is_quoted, is_escaped = [], '', 0, False, False
    for c in rest:
        if c == ',' and not depth and not is_quoted:
            items.append(item.strip())
            item = ''
            continue
        item += c
        is_quoted ^= c == '"' and not is_escaped
        is_escaped = c == '\\' and not is_escaped
        if not is_quoted:
            depth += (c in '[{(') - (c in ']})')
    return name, [*items, item.strip()] if item else items, result


def is_same_item(strace, kymo):
    if strace == kymo:
        return True
    (name, sign, value), (other_name, _, other_value) = strace.partition('='), kymo.partition('=')
    if sign and name == other_name and re.fullmatch(r'\w+', name):
        strace, kymo = value, other_value
    return bool(FROM_MEMORY.match(strace) and ADDRESS.fullmatch(kymo))


def is_same(strace, kymo):
    """But for memory."""
    (name, items, result), (other_name, other_items, other_result) = split(strace), split(kymo)
    return (name == other_name and len(items) == len(other_items) and
            (result == other_result or (result.startswith(f'{other_result} (') and other_result.isdigit())) and
            all(is_same_item(a, b) for a, b in zip(items, other_items)))


def comparable(text):
    """[lines of a process], sorted by what they are."""
    processes = whole_lines(text)
    pids = re.compile(rf'\b({"|".join(processes)})\b')
    result = []
    for lines in processes.values():
        changed = []
        for line in lines:
            if WITH_PIDS.match(line):
                line = pids.sub('PID', line)
            line = re.sub(r'\) += ', ') = ', line, count=1)
            for pattern, replacement in CHANGES:
                line = pattern.sub(replacement, line)
            if not NOW_AND_THEN.match(line):
                changed.append(line)
        result.append(changed)
    return result


def pair(strace, kymo):
    """Processes of both: those that are most alike belong together."""
    def alike(a, b):
        names = [[split(line)[0] for line in lines] for lines in (a, b)]
        return [difflib.SequenceMatcher(None, *texts, autojunk=False).ratio() for texts in (names, (a, b))]

    rest = list(kymo)
    for lines in sorted(strace, key=len, reverse=True):
        best = max(rest, key=lambda other: alike(lines, other), default=[])
        if best:
            rest.remove(best)
        yield lines, best
    yield from (([], lines) for lines in rest)


def differences(strace, kymo):
    """('-' or '+', line) of strace's alone, and of kymo's alone."""
    ours, theirs = [split(line)[0] for line in kymo], [split(line)[0] for line in strace]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
        for before, behind in zip(strace[a:b], kymo[c:d]) if tag == 'equal' else ():
            if not is_same(before, behind):
                yield '-', before
                yield '+', behind
        if tag != 'equal':
            yield from (('-', line) for line in strace[a:b])
            yield from (('+', line) for line in kymo[c:d])


def without_swapped(lines, pattern):
    """But for those like `pattern` that both have, the one earlier than the other."""
    for line in [line for line in lines if line[0] == '-' and re.match(pattern, line[2:])]:
        if f'+ {line[2:]}' in lines:
            lines.remove(line)
            lines.remove(f'+ {line[2:]}')
    return lines


def check_lines(tmp, *command, different=(), at_least=1, options=(), swapped='$^', **how):
    """Lines of `different` are (sign, pattern, why); each has to be met, and nothing else may be. Those like `swapped`
    may come in another order. `options`: of kymo record."""
    (tmp / 'traces').mkdir(exist_ok=True)  # programs that look at their directory find the same there
    run(program('setarch'), '-R', program('strace'), '-q', '-f', '-o', tmp / 'traces/strace', *command, **how).ok()
    result = run(program('setarch'), '-R', KYMO, 'record', '-q', '-s', 'all', *options, '-o', tmp / 'traces/kymo', '--',
                 *command, **how).ok()
    strace = [[line for line in lines if not NO_CALL.match(line)]
              for lines in comparable(ended((tmp / 'traces/strace').read_text(errors='backslashreplace')))]
    kymo = comparable(shown(directory=tmp / 'traces/kymo'))
    met, others, n = set(), [], sum(len(lines) for lines in kymo)
    for lines in pair(strace, kymo):
        for sign, line in differences(*lines):
            whys = [why for its_sign, pattern, why in different if sign == its_sign and re.match(pattern, line)]
            met.update(whys)
            others += [] if whys else [f'{sign} {line}']
    others = without_swapped(others, swapped)
    if others:
        fail('\n'.join([f'what strace (-) and kymo (+) say of {command} differs:', *others, result.err]))
    check_equal(met, {why for _, _, why in different}, 'differences that are met')
    check(n >= at_least, f'{n} lines, not at least {at_least}')
