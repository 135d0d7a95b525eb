"""Packets that do all or nothing."""
import os
import signal

from debugging import Client, advances, build, loop, offer
from kymotest import check, check_equal, need_root, skip, start, timeout

RIP, MXCSR = 16 * 8, 532  # offsets in the reply to g


def served(tmp, mode='loop'):
    build(tmp)
    process = loop(tmp, mode)
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    return process, stub, client


def test_registers_are_written_all_or_none(tmp):
    process, stub, client = served(tmp)
    before = client.ask('g')
    image = bytearray.fromhex(before.replace('x', '0'))
    image[RIP:RIP + 8] = (int.from_bytes(image[RIP:RIP + 8], 'little') + 1).to_bytes(8, 'little')
    image[MXCSR:MXCSR + 4] = b'\xff' * 4
    check_equal(client.ask('G' + image.hex()), 'E01', 'a value of mxcsr that there is not')
    check_equal(client.ask('g'), before, 'the registers')
    check_equal(client.ask('G' + before + '00'), 'E01', 'more than there are')
    check_equal(client.ask('G' + before), 'OK', 'all of them')
    client.close()
    stub.end().ok()
    advances(process)


def test_left_overs_are_refused(tmp):
    process, stub, client = served(tmp)
    tid = f'p{process.pid:x}.{process.pid:x}'
    check_equal(client.ask(f'T{tid}'), 'OK', 'the thread lives')
    for text in (f'T{tid};junk', f'qThreadExtraInfo,{tid}xyz', 'qAttached:1junk', 'QCatchSyscalls:1;zz'):
        check_equal(client.ask(text)[:1], 'E', f'answer to {text}')
    name = b'/etc/passwd'.hex()
    for text in ('vFile:setfs:0junk', f'vFile:open:{name},0,0junk', f'vFile:readlink:{name};',
                 f'vFile:unlink:{b"nosuch".hex()},1'):
        check_equal(client.ask(text), 'F-1,16', f'answer to {text}')
    check_equal(client.ask(f'vFile:open:{name},0,0'), 'F0', 'a file')
    for text in ('vFile:fstat:0junk', 'vFile:pread:0,1,0junk', 'vFile:close:0junk'):
        check_equal(client.ask(text), 'F-1,16', f'answer to {text}')
    check_equal(client.ask('vFile:close:0'), 'F0', 'the file is closed')
    client.close()
    stub.end().ok()
    advances(process)


@timeout(180)
def test_a_search_without_end_ends_with_its_client_and_with_the_stub(tmp):
    build(tmp)
    for ends_stub in (False, True):
        process = start('./app', 'huge')
        if process.popen.poll() == 77:
            skip('no such mapping here')
        address = int(process.wait_for(r'^ready (0x\w+)$').group(1), 16)
        stub, path = offer('--pid', process.pid)
        client = Client(path)
        client.begin()
        client.send(b'$' + (body := f'qSearch:memory:{address:x};{1 << 43:x};abc'.encode()) + b'#%02x' %
                    (sum(body) & 255))
        client.socket.recv(1)
        if ends_stub:
            stub.end(signal.SIGTERM, seconds=10).ok()
        else:
            client.close()
            stub.end(seconds=10).ok()
        advances(process)
        process.kill()


def test_files_of_another_root_are_not_ours(tmp):
    need_root()
    process, stub, client = served(tmp)
    root = tmp / 'root'
    root.mkdir()
    (root / 'link').symlink_to('/etc/passwd')
    (root / 'file').write_text('inside')
    (root / 'inner').symlink_to('/file')
    other = start('python3', '-c',
                  f'import os, time; os.chroot({str(root)!r}); print("ready", flush=True); time.sleep(100)')
    other.wait_for('^ready$')
    check_equal(client.ask(f'vFile:setfs:{other.pid:x}'), 'F0', 'its root')
    for name, answer in (('/link', 'F-1,2'), ('/inner', 'F0'), ('/../../etc/passwd', 'F-1,2')):
        check_equal(client.ask(f'vFile:open:{name.encode().hex()},0,0'), answer, f'open {name}')
    check_equal(client.ask('vFile:pread:0,20,0'), 'F6;inside', 'its file')
    check_equal(client.ask(f'vFile:readlink:{b"/link".hex()}'), 'Fb;/etc/passwd', 'a link')
    check_equal(client.ask(f'vFile:unlink:{b"/inner".hex()}'), 'F0', 'a link is removed')
    check(not os.path.lexists(root / 'inner') and os.path.exists('/etc/passwd'), 'that one alone')
    client.close()
    stub.end().ok()
    advances(process)
