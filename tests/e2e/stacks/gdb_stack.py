"""In gdb: the stack of the thread that has stopped, as [file, address as linked], the innermost frame first."""
import json
import os

import gdb

bases = {}
with open(f'/proc/{gdb.selected_inferior().pid}/maps') as maps:
    for line in maps:
        parts = line.split()
        if len(parts) > 5:
            bases.setdefault(parts[5], int(parts[0].split('-')[0], 16))


def address_of(file, pc):
    """An executable that is not position-independent runs where it was linked to."""
    if file not in bases:
        return pc
    with open(file, 'rb') as elf:
        return pc if elf.read(18)[16] == 2 else pc - bases[file]


frame, frames = gdb.newest_frame(), []
while frame is not None:
    file = os.path.realpath(gdb.solib_name(frame.pc()) or gdb.current_progspace().filename)
    frames.append([os.path.basename(file), address_of(file, frame.pc())])
    frame = frame.older()
print('STACK ' + json.dumps(frames))
