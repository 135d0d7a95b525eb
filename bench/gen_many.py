#!/usr/bin/env python3
"""Write a C library of 12,000 functions, to put many probes into.

The functions' names begin with the size of the group that they belong to: one_*, hundred_* and tenk_* are 1, 100 and
10,000 functions; other_* are the rest. No two are alike, so that no linker or compiler folds them. The library also has
the table `many_table` of all of them and their number `many_count`.
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

HEAD = """\
/* Written by gen_many.py. */
typedef long many_function(int a, long b);

static __attribute__((noinline, noclone)) long many_helper(int a, long b)
{
	return a * 5L + (b ^ 0x55);
}

"""


def write(out):
    names = [f"{group}_{i:05}" for group, count in GROUPS for i in range(count)]
    out.write(HEAD)
    for index, name in enumerate(names):
        body = BODIES[index % len(BODIES)].format(n=index + 3, m=2 * index + 7, bit=1 << index % 5)
        out.write(f"long {name}(int a, long b);\nlong {name}(int a, long b)\n{{\n\t{body}\n}}\n\n")
    out.write("extern many_function *const many_table[];\nextern const unsigned int many_count;\n")
    out.write("many_function *const many_table[] = {\n")
    out.writelines(f"\t{name},\n" for name in names)
    out.write(f"}};\nconst unsigned int many_count = {len(names)};\n")


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="ascii") if len(sys.argv) > 1 else sys.stdout as file:
        write(file)
