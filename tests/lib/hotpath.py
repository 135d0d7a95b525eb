"""Machine code as a list of instructions, for comparing what compilers make of two sources that differ in their
markers.

    hot_path(functions('program')['leaf'], marks)     ['MARKER', 'mov %edi,%eax', 'sub %esi,%eax', 'ret']

The instructions of a function of a linked file that can be reached from its beginning, by address, as objdump prints
them; targets of jumps within it are numbers of instructions, those outside names. Alignment between them is left out;
markers are the NOPs at the addresses `marks`, and do not count as instructions.
"""
import re

from kymotest import check, program, run

_FUNCTION = re.compile(r'^([0-9a-f]+) <(.+)>:$')
_LINE = re.compile(r'^ *([0-9a-f]+):\t(.*?)\s*$')
_TARGET = re.compile(r'^(j\w+|call|loop\w*) +([0-9a-f]+) <(.*)>$')
_ENDS = re.compile(r'^(ret|jmp|ud2|hlt)')
_PADDING = re.compile(r'^((data16 |cs )*nop|xchg +%ax,%ax)')
_PLACES = re.compile(r'-?0x[0-9a-f]+(?=\(%rip\))')


class Instruction:
    def __init__(self, text):
        target = _TARGET.match(text)
        self.target = int(target[2], 16) if target else None
        self.name = target[3] if target else None
        self.text = target[1] if target else _PLACES.sub('', re.sub(r'\s+', ' ', re.sub(r'\s+#.*', '', text)))


def functions(path):
    """By name; each a dictionary of instructions by address."""
    found, current = {}, None
    for line in run(program('objdump'), '-dw', '--no-show-raw-insn', path).ok().out.splitlines():
        if match := _FUNCTION.match(line):
            current = found.setdefault(match[2], {})
        elif (match := _LINE.match(line)) and current is not None:
            current[int(match[1], 16)] = Instruction(match[2])
    return found


def hot_path(code, marks):
    """`code` is one of functions()."""
    addresses = sorted(code)
    following = dict(zip(addresses, addresses[1:]))
    reached, wanted = set(), addresses[:1]
    while wanted:
        at = wanted.pop()
        if at in reached or at not in code:
            continue
        reached.add(at)
        if code[at].target is not None:
            wanted.append(code[at].target)
        if not _ENDS.match(code[at].text) and at in following:
            wanted.append(following[at])
    check(all(at in reached for at in marks), 'all markers are in the hot path')
    kept = [at for at in sorted(reached) if at in marks or not _PADDING.match(code[at].text)]
    numbers = {}
    for at in kept:
        numbers[at] = sum(1 for other in kept if other < at and other not in marks)
    lines = []
    for at in kept:
        instruction = code[at]
        to = instruction.target
        if at in marks:
            lines.append('MARKER')
        elif to in code:
            while to not in numbers:  # alignment
                to = following[to]
            lines.append(f'{instruction.text} {numbers[to]}')
        else:
            lines.append(instruction.text + (f' {instruction.name}' if to is not None else ''))
    return lines
