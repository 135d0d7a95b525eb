"""A process whose memory looks like kymo's, and says what is not true."""
import remains
from kymotest import check, kymo, start

# struct kymo_wire_header of src/wire/shared.h, with another process as recorder, and no journal.
PROGRAM = '''
import ctypes, mmap, os, struct, sys
recorder, version, size = int(sys.argv[1]), int(sys.argv[2]), 1 << 20
start = int(open(f'/proc/{recorder}/stat').read().rsplit(')', 1)[1].split()[19])
fd = os.memfd_create('kymo')
os.ftruncate(fd, size)
memory = mmap.mmap(fd, size)
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
header = struct.pack('<QIIQQQQQQQQQQQQQQQQQQIIIIQQ', 0x316f6d796b, version, recorder, start, 0, 0, address, size,
                     524288, 16, 0, 0, 0, 65536, 0, 0, 0, 0, 0, 0, 0, 0, 0, os.getpid(), 0, 0, 0)
ctypes.memmove(address, header, len(header))
ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), ctypes.c_size_t(size), mmap.PROT_READ)  # as a target has it
print('ready', fd, flush=True)
sys.stdin.readline()
print('done')
'''


def test_a_recorder_that_is_none_is_not_ended():
    bystander = start('sleep', '60')
    process = start('/usr/bin/python3', '-c', PROGRAM, bystander.pid, remains.layout_version())
    process.wait_for('ready')
    detach(process, bystander)


# What a display server or a journal does with the memory that a client sends.
MAPPER = '''
import mmap, os, sys
print('ready', flush=True)
memory = mmap.mmap(os.open(sys.stdin.readline().strip(), os.O_RDWR), 1 << 20)
print('mapped', flush=True)
sys.stdin.readline()
'''


def test_a_program_that_maps_the_memory_of_another_one_is_no_recorder():
    bystander = start('/usr/bin/python3', '-c', MAPPER)
    bystander.wait_for('ready')
    process = start('/usr/bin/python3', '-c', PROGRAM, bystander.pid, remains.layout_version())
    fd = process.wait_for(r'ready (\d+)')[1]
    bystander.send(f'/proc/{process.pid}/fd/{fd}\n')
    bystander.wait_for('mapped')
    detach(process, bystander)


def detach(process, bystander):
    result = kymo('detach', process.pid)
    check(bystander.is_alive(), 'the process that the header names runs on', result)
    check(result.status == 0, 'what looks like kymo is taken out', result)
    check(process.end(input='\n').ok().out.endswith('done\n'), 'the other runs on')
