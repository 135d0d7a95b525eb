"""A file whose opening by some processes waits until it is let go, as on a file system that does not answer."""
import ctypes
import errno
import os
import struct
import threading

from kymotest import at_end, need_root, skip

CLASS_CONTENT, CLOEXEC, MARK_ADD, OPEN_PERM, AT_FDCWD, ALLOW = 4, 1, 1, 0x10000, -100, 1
LIBC = ctypes.CDLL(None, use_errno=True)


class HeldFile:
    """By fanotify(7): `opened_by` is filled with the processes that `is_held` names, all others open it at once."""
    def __init__(self, path, is_held):
        need_root()
        self.is_held, self.opened_by, self.waiting = is_held, [], []
        self.fd = LIBC.fanotify_init(CLASS_CONTENT | CLOEXEC, os.O_RDONLY | os.O_CLOEXEC)
        if self.fd < 0 or LIBC.fanotify_mark(self.fd, MARK_ADD, ctypes.c_uint64(OPEN_PERM), AT_FDCWD,
                                             str(path).encode()):
            skip(f'fanotify gives no permission events here ({errno.errorcode[ctypes.get_errno()]})')
        threading.Thread(target=self.answer, daemon=True).start()
        at_end(self.let_go)

    def answer(self):
        while True:
            events = os.read(self.fd, 4096)
            while events:
                size, _, _, _, mask, fd, pid = struct.unpack_from('IBBHQii', events)
                if mask & OPEN_PERM and self.is_held(pid):
                    self.opened_by.append(pid)
                    self.waiting.append(fd)
                elif mask & OPEN_PERM:
                    self.allow(fd)
                events = events[size:]

    def allow(self, fd):
        os.write(self.fd, struct.pack('iI', fd, ALLOW))
        os.close(fd)

    def let_go(self):
        self.is_held = lambda pid: False
        while self.waiting:
            self.allow(self.waiting.pop())
