"""A program under a filter that kills it for what it does not do itself."""

# Kills for every call that a Python program which reads a line does not make. Calls libc:labs 25 times between two
# lines.
CONFINED = '''
import ctypes, sys
class Filter(ctypes.Structure):
    _fields_ = [('code', ctypes.c_ushort), ('jt', ctypes.c_ubyte), ('jf', ctypes.c_ubyte), ('k', ctypes.c_uint)]
class Program(ctypes.Structure):
    _fields_ = [('length', ctypes.c_ushort), ('filter', ctypes.POINTER(Filter))]
allowed = [0, 1, 3, 5, 8, 9, 10, 11, 12, 13, 15, 16, 25, 28, 35, 60, 62, 131, 202, 231, 262, 318]
lines = [Filter(0x20, 0, 0, 0)] + [Filter(0x15, len(allowed) - i, 0, number) for i, number in enumerate(allowed)]
lines += [Filter(0x06, 0, 0, 0x80000000), Filter(0x06, 0, 0, 0x7fff0000)]
libc = ctypes.CDLL(None)
labs = libc.labs
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(lines), (Filter * len(lines))(*lines)))) == 0
print('ready', flush=True)
sys.stdin.readline()
for i in range(25):
    labs(-i)
print('done', flush=True)
sys.stdin.readline()
'''
