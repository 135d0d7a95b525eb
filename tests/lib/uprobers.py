"""Other tools that set uprobes: bpftrace and perf, each set once its breakpoint is in the text, and gone once it is
out of it."""
import os
import re
import select
import shutil
import signal
import tempfile
from pathlib import Path

import kernelcount
import processes
from kymotest import check, check_equal, eventually, program, run, start

BREAKPOINT = b'\xcc'
SECONDS = 180  # bpftrace compiles for a second of a processor, which a busy machine gives it in many


def address_of(pid, path, symbol):
    """Where a function begins in the process."""
    offset, path = kernelcount.function_offset(path, symbol), os.path.realpath(path)
    found = [
        mapping.start + offset - mapping.offset for mapping in processes.maps(pid)
        if mapping.path == path and 'x' in mapping.permissions and mapping.offset <= offset < mapping.offset +
        mapping.end - mapping.start
    ]
    check_equal(len(found), 1, f'mappings of {symbol} in {pid}')
    return found[0]


def text_at(pid, address, size=1):
    with open(f'/proc/{pid}/mem', 'rb', 0) as memory:
        memory.seek(address)
        return memory.read(size)


class Tool:
    """A tool that counts the calls of one function. `end()` is how many it has counted, with its breakpoint gone."""
    def __init__(self, pid, path, symbol):
        self.pid, self.address = pid, address_of(pid, path, symbol)
        self.process = self.begin(str(path), symbol)
        eventually(lambda: self.has_breakpoint() or not self.process.is_alive(),
                   f'{self.process.command} sets its uprobe', SECONDS)
        check(self.has_breakpoint(), 'it is set', self.process.result)

    def has_breakpoint(self):
        return text_at(self.pid, self.address) == BREAKPOINT

    def end(self):
        result = self.process.end(signal.SIGINT)  # once: a second one ends bpftrace before it has told its count
        eventually(lambda: not self.has_breakpoint(), f'the breakpoint of {self.process.command} is gone', SECONDS)
        match = re.search(self.COUNT, result.out + result.err, re.MULTILINE)
        check(match, 'a count', result)
        return int(match[1])


class Bpftrace(Tool):
    """For every process that maps the file."""
    COUNT = r'^@: (\d+)$'

    def begin(self, path, symbol):
        process = start(program('bpftrace'), '-B', 'line', '-e',
                        f'uprobe:{path}:{symbol} {{ @ = count(); }} interval:ms:50 {{ printf("counts\\n"); }}')
        # its breakpoint is there before that
        eventually(lambda: 'counts\n' in process.out or not process.is_alive(), 'bpftrace counts', SECONDS)
        return process


class Perf(Tool):
    """For the one process."""
    COUNT = r'^(\d+),,kymo_test_\S+'

    def begin(self, path, symbol):
        group = kernelcount.define({symbol: (path, symbol)})
        control, told = (Path(tempfile.mkdtemp()) / name for name in ('control', 'told'))
        for fifo in (control, told):
            os.mkfifo(fifo)
        process = start(program('perf'), 'stat', '-x,', '-D', '-1', '--control', f'fifo:{control},{told}', '-e',
                        f'{group}:{symbol}', '-p', self.pid)
        here, there = os.open(told, os.O_RDONLY | os.O_NONBLOCK), os.open(control, os.O_RDWR)
        poll = select.poll()
        poll.register(here, select.POLLIN)
        os.write(there, b'enable\n')  # its events count some time after they are there
        eventually(lambda: poll.poll(100) or not process.is_alive(), 'perf counts', SECONDS)
        os.close(here)
        os.close(there)
        shutil.rmtree(control.parent)
        return process


def build(tmp, name, source):
    """A C program of the test's own, so that no other process maps it."""
    (tmp / f'{name}.c').write_text(source)
    run('gcc', '-O2', '-g', '-pthread', '-o', tmp / name, tmp / f'{name}.c').ok()
    return tmp / name
