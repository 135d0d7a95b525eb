"""In gdb: at each hit of a function the backtrace, as [function, file, line, whether it is inlined], innermost first, up
to the function `last`."""
import json
import os

import gdb

asked = json.load(open('gdb.json'))
stacks = []


class Hit(gdb.Breakpoint):
    def stop(self):
        frame, frames = gdb.newest_frame(), []
        while frame is not None:
            if frame.type() != gdb.TAILCALL_FRAME:  # of a call that has left no frame
                sal, is_inlined = frame.find_sal(), frame.type() == gdb.INLINE_FRAME
                frames.append([frame.name() or '?', os.path.basename(sal.symtab.filename) if sal.symtab else '',
                               sal.line, is_inlined])
                if (frame.name() or '').split('::')[-1] == asked['last'] and not is_inlined:
                    break
            frame = frame.older()
        stacks.append(frames)
        return len(stacks) == asked['hits']


Hit(asked['at'])
gdb.execute('run > /dev/null')
for stack in stacks:
    print('STACK ' + json.dumps(stack))
