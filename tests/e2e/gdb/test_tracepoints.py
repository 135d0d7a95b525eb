"""Tracepoints: the stub collects where threads come by, and no client is told. As gdb drives them."""
import os
import re
import signal
from pathlib import Path

from debugging import SERVER, Client, address_of, gdb, kill_hub, listen, offer, thread_of
from kymotest import check, check_equal, check_matches, eventually, start
from pads import FALSE, build_hot, code_of, let_run, served
from pads import SOURCE as HOT
from tracing import RUN, SOURCE, actions, status


def traced(tmp, *commands, optimize='-O0'):
    build_hot(tmp, optimize, SOURCE)
    return gdb(f'target remote | {SERVER} --once stdio ./app', 'break main', 'continue', *commands).ok()


def test_what_is_collected(tmp):
    """Arguments, locals, memory and registers of each hit; what was not collected is not available."""
    result = traced(tmp, *actions(tmp, 'work if i > 3', 'collect i, total', 'collect *thing', 'collect $regs'),
                    *actions(tmp, 'leave', 'collect total'), 'break done', *RUN, 'tstop', 'tstatus', 'tfind start',
                    'print i', 'print total', 'print *thing', 'print thing->next->n', 'print $sp != 0', 'print $rip',
                    'print other', 'info registers rip', 'tfind', 'print i', 'tfind tracepoint 3', 'print total',
                    'print $sp', 'tfind 99', 'tfind none', 'print total', 'kill')
    check_matches(result.out, 'Collected 7 trace frames')
    check_matches(
        result.out, r'(?s)\$1 = 4\n\$2 = 12\n\$3 = \{n = 12, next = 0x[0-9a-f]+ <second>, name = "first\\000\\000"\}\n'
        r'Cannot access memory|\$4 = <unavailable>')
    check_matches(result.out, r'(?m)^\$5 = 1\n\$6 = .*<work\+\d+>')
    check_matches(result.out, r'(?m)^\$7 = <unavailable>')
    check_matches(result.out, r'(?m)^\$8 = 5')
    check_matches(result.out, r'(?m)^\$9 = 90\n\$10 = <unavailable>')
    check_matches(result.out, 'No trace frame found')


def test_steps_are_collected(tmp):
    """`while-stepping`: a frame after each step, of which each has its own registers."""
    result = traced(tmp, *actions(tmp, 'leave', 'collect $regs', 'while-stepping 5', 'collect $regs', 'end'),
                    'break done', *RUN, 'tstop', 'tstatus', 'tfind start', 'output/x $rip', 'tfind', 'output/x $rip',
                    'tfind', 'output/x $rip', 'kill')
    check_matches(result.out, 'Collected 6 trace frames')
    found = re.findall(r'0x5[0-9a-f]{11}', ' '.join(re.findall(r'(?m)^0x[0-9a-f]+', result.out)))
    check(len(set(found)) >= 3, 'each frame has its own place')


def test_variables(tmp):
    """Trace state variables count in the target, and are in frames."""
    result = traced(tmp, 'tvariable $hits = 40', *actions(tmp, 'work if i % 2', 'collect $hits += 1'), 'break done',
                    *RUN, 'tstop', 'print $hits', 'tfind start', 'print $hits', 'tfind', 'print $hits',
                    'tfind none', 'info tvariables', 'kill')
    check_matches(result.out, r'(?s)\$1 = 45\n.*\$2 = 41\n.*\$3 = 42\n')
    check_matches(result.out, r'(?m)^\$hits +40 +45 *$')


def test_strings(tmp):
    result = traced(tmp, *actions(tmp, 'leave', 'collect/s *(&unused ? &text : &text)'), 'break done', *RUN, 'tstop',
                    'tfind start', 'print text', 'print text[4]', 'print text[12]', 'kill')
    check_matches(result.out, r'\$1 = 0x[0-9a-f]+ <buffer> "a text"')
    check_matches(result.out + result.err, r"\$2 = 120 'x'")
    check_matches(result.out + result.err, r'\$3 = <unavailable>|Cannot access')


def test_a_location_that_was_not_defined_is_no_error(tmp):
    """gdb asks for one at which the condition has no meaning, as in another function of that name. Its user's command
    would end by an error."""
    build_hot(tmp, source=SOURCE)
    stub, path = offer('--', './app')
    client = Client(path)
    client.begin()
    check_equal(client.ask('QTDP:1:401000:E:0:0'), 'OK', 'defined')
    check_equal(client.ask('qTP:1:401000'), 'V0:0', 'a tracepoint')
    check_equal(client.ask('qTP:1:402000'), '', 'another location of it')
    check_equal(client.ask('qTP:1'), 'E01', 'no location')
    client.ask('vKill;%x' % thread_of(client.ask('?')))
    client.close()
    stub.end()


def test_passes_end_the_run(tmp):
    result = traced(tmp, *actions(tmp, 'work', 'collect i'), 'passcount 3', 'break done', *RUN, 'tstatus',
                    'info tracepoints', 'tfind 2', 'print i', 'tfind', 'kill')
    check_matches(result.out, 'Trace stopped by tracepoint 2')
    check_matches(result.out, 'already hit 3 times')
    check_matches(result.out, r'(?s)\$1 = 2\n')


def test_a_full_buffer(tmp):
    """It ends the run, or the oldest frames go."""
    build_hot(tmp, '-O0', SOURCE)
    for kind, words, first in (('off', 'because the buffer was full', 0), ('on', 'Trace buffer is circular', 7)):
        result = gdb(f'target remote | {SERVER} --once stdio ./app', 'break main', 'continue',
                     f'set circular-trace-buffer {kind}', 'set trace-buffer-size 64',
                     *actions(tmp, 'work', 'collect total'), 'break done', *RUN, 'tstop', 'tstatus', 'tfind start',
                     'print total', 'kill')
        check_matches(result.out, words)
        check_matches(result.out, 'Collected 3 trace frames|contains 3 trace frames')
        check_matches(result.out, rf'\$1 = {sum(2 * i for i in range(first))}\n' if first else r'\$1 = 0\n')


def test_a_large_hit(tmp):
    """It has 16 MiB at most, in several blocks, and what fits after that. Frames that were cut, and lost, are counted."""
    result = traced(tmp, 'set trace-buffer-size 60000000', *actions(tmp, 'work', 'collect big', 'collect i'),
                    'break done', *RUN, 'tstatus', 'tfind 2', 'print big[16000000]', 'print big[17000000]', 'print i',
                    'tfind none', 'kill')
    check_matches(result.out, 'Collected 3 trace frames')
    check_matches(result.out, r"(?s)\$1 = 0 '\\000'\n\$2 = <unavailable>\n\$3 = 2\n")
    check_matches(result.out + result.err, r'(?m)^\(frames that the trace run has lost: 1\)$')
    check_matches(result.out + result.err, r'(?m)^\(frames of the trace run without all of their memory: 3\)$')


def memory_of(pid):
    return int(re.search(r'^RssAnon:\s*(\d+) kB', Path(f'/proc/{pid}/status').read_text(), re.MULTILINE).group(1)) << 10


def run_to_end(client):
    """Of the trace run; what the stub has said meanwhile."""
    said = []

    def has_ended():
        let_run(client)
        reply = client.interrupt()
        while reply.startswith('O'):
            said.append(bytes.fromhex(reply[1:]).decode())
            reply = client.reply()
        check_equal(reply[:3], 'T02', 'no other stop')
        return status(client).startswith('T0')

    eventually(has_ended, 'the run ends')
    return ''.join(said)


def large_run(tmp):
    """A program that has come to a tracepoint which collects 17 MiB, once; its stub, and where that memory is."""
    # Memory goes back at once.
    os.environ['ASAN_OPTIONS'] = os.environ.get('ASAN_OPTIONS', '') + ':quarantine_size_mb=0'
    build_hot(tmp, '-O0', HOT.replace('volatile long go', 'char big[17 << 20];\nvolatile long go'))
    process, stub, client = served(1)
    hot, big = (address_of(process.pid, name) for name in ('hot', 'big'))
    before = memory_of(stub.pid)
    for text in ('QTBuffer:size:2000000', f'QTDP:1:{hot:x}:E:0:1-', f'QTDP:-1:{hot:x}:M-1,{big:x},1100000', 'QTStart'):
        check_equal(client.ask(text), 'OK', text)
    check_equal(run_to_end(client), '(frames of the trace run without all of their memory: 1)\n', 'what is said')
    return process, stub, client, big, before


def test_what_a_large_hit_leaves(tmp):
    """No memory but the buffer's. A read goes on in the next block."""
    process, stub, client, big, before = large_run(tmp)
    check_matches(status(client), r'^T0;tpasscount:1;tframes:1;tcreated:1;.*;lost:0;cut:1;')
    check(memory_of(stub.pid) < before + (24 << 20), 'the stub has the frame once')
    check_equal(client.ask('QTFrame:0'), 'F0T1', 'a frame')
    for offset in (32760, 65520):
        check_equal(client.ask(f'm{big + offset:x},20'), '00' * 32, f'what two blocks have at {offset}')
    check_equal(client.ask('QTinit'), 'OK', 'forgotten')
    check(memory_of(stub.pid) < before + (8 << 20), 'the stub has nothing')
    client.close()
    stub.end().ok()
    process.kill()


def test_a_run_that_cannot_begin(tmp):
    """The reply says why. No tracepoint is in, and what the last run has left is as it was."""
    build_hot(tmp)
    process, stub, client = served(2)
    hot, go = (address_of(process.pid, name) for name in ('hot', 'go'))
    before = code_of(process.pid, hot, 16)
    check_equal(client.ask(f'QTDP:1:{hot:x}:E:0:1'), 'OK', 'a tracepoint')
    check_equal(client.ask('QTStart'), 'OK', 'started')
    run_to_end(client)
    was = status(client)
    check_matches(was, '^T0;tpasscount:1;tframes:1;')
    for where, why in ((go, 'it is no code, or other processes share its memory'), (0x1000, 'nothing is mapped there')):
        check_equal(client.ask(f'QTDP:2:{where:x}:E:0:0'), 'OK', 'another one')
        check_equal(client.ask('QTStart'), f'E.tracepoint 2 at {where:#x} cannot be inserted: {why}', 'why')
        check_equal(status(client), was, 'the last run')
        check_equal(code_of(process.pid, hot, 16), before, 'its text')
        check_equal(client.ask(f'QTDisable:2:{where:x}'), 'OK', 'it is not wanted')
    check_equal(client.ask('QTFrame:0'), 'F0T1', 'its frame')
    check_equal(client.ask('QTStart'), 'OK', 'started without it')
    client.close()
    stub.end().ok()
    process.kill()


def test_a_run_while_conditions_stay_in_threads(tmp):
    """They are not taken out while a thread is before a signal: a tracepoint there would miss hits."""
    build_hot(tmp)
    process, stub, client = served(2)
    hot = address_of(process.pid, 'hot')
    check_equal(client.ask(f'Z0,{hot:x},1;{FALSE}'), 'OK', 'a condition')
    let_run(client)
    eventually(lambda: code_of(process.pid, hot, 1) == b'\xe9', 'it is in the threads')
    os.kill(process.pid, signal.SIGUSR1)
    check_equal(client.reply()[:3], 'T1e', 'the signal')
    check_equal(client.ask(f'QTDP:1:{hot:x}:E:0:1'), 'OK', 'a tracepoint')
    check_matches(client.ask('QTStart'), r'^E\.conditions of breakpoints cannot be taken out of the threads yet')
    let_run(client)  # without the signal
    check_equal(client.interrupt()[:3], 'T02', 'no other stop')
    check_equal(client.ask('QTStart'), 'OK', 'started')
    run_to_end(client)
    check_matches(status(client), '^T0;tpasscount:1;')
    client.close()
    stub.end().ok()
    process.kill()


def test_an_expression_that_fails_ends_the_run(tmp):
    result = traced(tmp, *actions(tmp, 'work if 7 / i', 'collect i'), 'break done', *RUN, 'tstatus', 'kill')
    check_matches(result.out, r'Trace stopped by an error \(the condition cannot be evaluated, tracepoint 2\)')


def test_a_trace_file(tmp):
    """What `tsave` writes, gdb reads without the program."""
    traced(tmp, *actions(tmp, 'work', 'collect i, total', 'collect $regs'), 'break done', *RUN, 'tstop',
           'tsave trace.tf', 'kill', optimize='-no-pie')
    result = gdb('target tfile trace.tf', 'tfind 4', 'print i', 'print total', 'tstatus', 'backtrace 1').ok()
    check_matches(result.out, r'(?s)\$1 = 4\n\$2 = 12\n')
    check_matches(result.out, 'Collected 10 trace frames')


def test_enabled_and_disabled_in_a_run(tmp):
    result = traced(tmp, *actions(tmp, 'work', 'collect i'), 'tstart', 'break work if i == 3', 'continue', 'disable 2',
                    'delete 3', 'break work if i == 6', 'continue', 'tstatus', 'enable 2', 'delete 4', 'break done',
                    'continue', 'tstop', 'tstatus', 'tfind 3', 'print i', 'tfind', 'print i', 'kill')
    check_matches(result.out, r'(?s)Collected 4 trace frames.*Collected 7 trace frames')
    check_matches(result.out, r'(?s)\$1 = 3\n.*\$2 = 7\n')


def test_beside_a_breakpoint(tmp):
    """A breakpoint at the same address is told, and each hit is collected once."""
    result = traced(tmp, *actions(tmp, 'work', 'collect i'), 'tstart', 'break work if i == 6', 'continue', 'print i',
                    'stepi', 'delete 3', 'break done', 'continue', 'tstop', 'tstatus', 'kill')
    check_matches(result.out, r'\$1 = 6\n')
    check_matches(result.out, 'Collected 10 trace frames')


def test_all_threads_and_none_is_told(tmp):
    """Threads of a process that was attached to come by for a while; when the run ends, its text is as it was."""
    build_hot(tmp)
    process, stub, client = served(4)
    hot = address_of(process.pid, 'hot')
    before = code_of(process.pid, hot, 16)
    check_equal(client.ask('QTinit'), 'OK', 'no tracepoints')
    check_equal(client.ask('QTBuffer:circular:1'), 'OK', 'a circular buffer')
    check_equal(client.ask('QTBuffer:size:1000'), 'OK', 'its size')
    check_equal(client.ask(f'QTDP:1:{hot:x}:E:0:0-'), 'OK', 'a tracepoint')
    check_equal(client.ask(f'QTDP:-2:{hot:x}:M4,0,8'), 'E01', 'another one')
    check_equal(client.ask(f'QTDP:-1:{hot:x}:M7,0,8'), 'OK', 'its action')
    check_equal(client.ask('QTStart'), 'OK', 'started')
    let_run(client)
    eventually(lambda: code_of(process.pid, hot, 16) != before, 'it is in')
    check_equal(client.interrupt()[:3], 'T02', 'no other stop')
    check_equal(client.ask('QTStop'), 'OK', 'stopped')
    eventually(lambda: code_of(process.pid, hot, 16) == before, 'it is out')
    check(int(re.search('tcreated:([0-9a-f]+)', status(client)).group(1), 16) > 0, 'there were hits')
    client.close()
    stub.end().ok()
    check(process.is_alive(), 'the program runs on')
    process.kill()


def with_tracepoint(tmp, function):
    """A run of a program with one tracepoint at the function: also where that is, and its code before."""
    build_hot(tmp)
    process, stub, client = served(2)
    address = address_of(process.pid, function)
    before = code_of(process.pid, address, 16)
    client.ask(f'QTDP:1:{address:x}:E:0:0')
    check_equal(client.ask('QTStart'), 'OK', 'started')
    return process, stub, client, address, before


def test_a_client_that_leaves_ends_the_run(tmp):
    process, stub, client, hot, before = with_tracepoint(tmp, 'hot')
    client.close()
    stub.end().ok()
    check_equal(code_of(process.pid, hot, 16), before, 'its text')
    check(process.is_alive(), 'the program runs on')
    process.kill()


def loop_hot():
    process = start('./app', 2)
    process.wait_for('^ready')
    return process


def test_a_run_without_a_client(tmp):
    """With QTDisconnected it goes on, and the next client finds it."""
    build_hot(tmp)
    process = loop_hot()
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    hot = address_of(process.pid, 'hot')
    before = code_of(process.pid, hot, 16)
    client.ask('QTBuffer:circular:1')
    client.ask(f'QTDP:5:{hot:x}:E:0:0')
    check_equal(client.ask('QTDisconnected:1'), 'OK', 'it is to go on')
    check_equal(client.ask('QTStart'), 'OK', 'started')
    check_equal(client.ask('D'), 'OK', 'detached')
    client.close()
    counts = []

    def is_traced():
        other = Client(path)
        other.begin()
        counts.append(int(re.search('tcreated:([0-9a-f]+)', status(other, 'T1')).group(1), 16))
        check_equal(other.ask('qTfP'), f'T5:{hot:x}:E:0:0', 'the definition')
        check_equal(other.ask('qTsP'), 'l', 'and no more')
        if counts[-1] < 10:
            other.close()
            return False
        check_equal(other.ask('QTStop'), 'OK', 'stopped')
        other.ask('QTDisconnected:0')
        other.close()
        return True

    eventually(is_traced, 'hits are counted')
    stub.end().ok()
    check_equal(code_of(process.pid, hot, 16), before, 'its text')
    check(process.is_alive(), 'the program runs on')
    process.kill()


def test_a_peer_that_sends_nothing(tmp):
    """It ends no stub that keeps a run, also where that has ended since: its frames are for the next client."""
    build_hot(tmp)
    process = loop_hot()
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    client.ask(f'QTDP:5:{address_of(process.pid, "hot"):x}:E:0:3')
    client.ask('QTDisconnected:1')
    check_equal(client.ask('QTStart'), 'OK', 'started')
    client.close()
    for _ in range(3):
        Client(path).close()

    def status_of_the_end():
        """By another client; the stub ends with the one that finds the run over."""
        other = Client(path)
        other.begin()
        text = status(other)
        other.close()
        return text if text.startswith('T0;') else None

    check_matches(eventually(status_of_the_end, 'the run ends'), '^T0;tpasscount:5;tframes:3;')
    stub.end().ok()
    check(process.is_alive(), 'the program runs on')
    process.kill()


def test_a_killed_stub(tmp):
    """The keeper takes tracepoints out as it does breakpoints."""
    process, stub, client, over, before = with_tracepoint(tmp, 'over')
    let_run(client)
    eventually(lambda: code_of(process.pid, over, 16) != before, 'it is in')
    kill_hub(stub)
    eventually(lambda: code_of(process.pid, over, 16) == before, 'its text')
    check(process.is_alive(), 'the program runs on')
    process.kill()


def test_a_stub_ends_with_what_it_traces(tmp):
    """A run goes on without a client, with --once too. The stub ends with the process, and waits for no client then."""
    build_hot(tmp)
    server, port = listen(':0', './app')
    client = Client(port)
    client.begin()
    pid = int(re.search(r'pid = (\d+)', server.wait_for(r'^.*created; pid = \d+', 1).group(0)).group(1))
    over = address_of(pid, 'over')
    client.ask('QTDisconnected:1')
    check_equal(client.ask(f'QTDP:1:{over:x}:E:0:0'), 'OK', 'a tracepoint')
    check_equal(client.ask('QTStart'), 'OK', 'started')
    client.close()
    server.wait_for('^ready')
    other = Client(port)
    other.begin()
    status(other, 'T1;tframes:0;')
    other.close()
    go = address_of(pid, 'go')
    with open(f'/proc/{pid}/mem', 'r+b', buffering=0) as memory:
        memory.seek(go)
        memory.write(bytes(8))
    server.end().ok()
