#!/usr/bin/env python3
"""gen_many.py [--puns] [FILE]: write a C library of many functions, to put many probes into.

There are 12,000, and their names begin with the size of the group that they belong to: one_*, hundred_* and tenk_*
are 1, 100 and 10,000 functions; other_* are the rest. No two are alike, so that no linker or compiler folds them.
The library also has the table `many_table` of all of them and their number `many_count`.

With --puns there are 10,000 functions pun_*, in assembler. Their first instruction has three bytes, and a branch
(never taken) leads right behind it: so a jump there has to end in the two bytes that follow, which differ as in
real programs.
"""
import sys

GROUPS = [("other_a", 999), ("one", 1), ("other_b", 450), ("hundred", 100), ("other_c", 450), ("tenk", 10000)]

BODIES = [
    # A branch.
    "long x = a;\n\tif (b & {bit})\n\t\tx += {n};\n\telse\n\t\tx ^= {m};\n\treturn x * 3 + b;",
    # A loop, behind enough straight code that it does not begin at the entry.
    "long x = a ^ {n};\n\tx = x * {m} + b;\n\tfor (int i = 0; i < 3; i++)\n\t\tx = x * 31 + (b >> i);\n\treturn x;",
    # A call, with values that live across it.
    "long x = many_helper(a + {n}, b);\n\treturn x * {m} + a - b;",
    # A stack frame.
    "volatile long frame[6];\n\tframe[a & 3] = b + {n};\n\tframe[4] = {m};\n\treturn frame[a & 3] + frame[4];",
]

TYPE = """\
/* Written by gen_many.py. */
typedef long many_function(int a, long b);

"""

HELPER = """\
static __attribute__((noinline, noclone)) long many_helper(int a, long b)
{
	return a * 5L + (b ^ 0x55);
}

"""

N_PUNS = 10000

# Follow the first instruction. Their first two bytes are the upper half of a jump's distance: some 100 MiB to 2 GiB,
# both ways.
SUCCESSORS = [
    "add ${n}, %rax", "lea {n}(%rax,%rsi), %rax", "imul ${m}, %rax, %rax", "xor %rsi, %rax", "sub %rsi, %rax",
    "mov %rsi, %rcx", "movslq %esi, %rcx", "nopl 0(%rax)", "push %rbp\\n\\tpop %rbp", "not %rax",
]

PUN = """\
asm(".text\\n\\t.balign 16\\n\\t.globl {name}\\n\\t.type {name}, @function\\n"
    "{name}:\\n\\tmovslq %edi, %rax\\n"
    "1:\\t{successor}\\n\\ttest %rsi, %rsi\\n\\tjs 1b\\n\\tret\\n\\t.size {name}, . - {name}");
many_function {name};
"""


def write_table(out, names):
    out.write("extern many_function *const many_table[];\nextern const unsigned int many_count;\n")
    out.write("many_function *const many_table[] = {\n")
    out.writelines(f"\t{name},\n" for name in names)
    out.write(f"}};\nconst unsigned int many_count = {len(names)};\n")


def write_functions(out):
    names = [f"{group}_{i:05}" for group, count in GROUPS for i in range(count)]
    out.write(TYPE + HELPER)
    for index, name in enumerate(names):
        body = BODIES[index % len(BODIES)].format(n=index + 3, m=2 * index + 7, bit=1 << index % 5)
        out.write(f"long {name}(int a, long b);\nlong {name}(int a, long b)\n{{\n\t{body}\n}}\n\n")
    write_table(out, names)


def write_puns(out):
    names = [f"pun_{i:05}" for i in range(N_PUNS)]
    out.write(TYPE)
    for index, name in enumerate(names):
        successor = SUCCESSORS[index % len(SUCCESSORS)].format(n=index + 1000, m=2 * index + 1001)
        out.write(PUN.format(name=name, successor=successor))
    write_table(out, names)


if __name__ == "__main__":
    words = sys.argv[1:]
    write = write_functions
    if words[:1] == ["--puns"]:
        write, words = write_puns, words[1:]
    with open(words[0], "w", encoding="ascii") if words else sys.stdout as file:
        write(file)
