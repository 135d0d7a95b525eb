"""Whether this machine has debug registers that do something: some hypervisors keep what is written and raise nothing.
"""
import ctypes
import os
import signal

_TRACEME, _POKEUSER, _CONT = 0, 6, 7
_REGISTERS = 848  # offsetof(struct user, u_debugreg)
_WRITES_OF_4_BYTES = 1 | 0xd << 16


def _ptrace(request, pid, address, data):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return libc.ptrace(request, pid, address, data)


def work():
    """A child writes to a word that its first debug register watches: by ptrace alone, without anything of kymo's."""
    word = ctypes.c_int(0)
    child = os.fork()
    if not child:
        _ptrace(_TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        word.value = 1
        os._exit(0)
    os.waitpid(child, 0)
    _ptrace(_POKEUSER, child, _REGISTERS, ctypes.addressof(word))
    _ptrace(_POKEUSER, child, _REGISTERS + 7 * 8, _WRITES_OF_4_BYTES)
    _ptrace(_CONT, child, None, None)
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        return False
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return True
