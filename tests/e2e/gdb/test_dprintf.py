"""`dprintf` of gdb's style "agent": the stub prints, and no client is told of a hit."""
import os
import re
import signal
import time

from debugging import SERVER, address_of, gdb, listen
from kymotest import check, check_equal, check_matches, eventually, timeout
from pads import RDI, RSI, TRUE, build_hot, equal, finish, has_pads, let_run, registers, served

LONELY = r'''
#include <signal.h>
#include <stdio.h>
volatile long go = 1, signals;
static void on_signal(int number) { signals++; }
__attribute__((noipa)) long hot(long n) { return n * 3; }
int main(void)
{
	signal(SIGUSR1, on_signal);
	puts("ready");
	fflush(stdout);
	for (long n = 0; go; n++)
		hot(n);
	printf("wrong 0\n");
	return 0;
}
'''
STYLE = 'set dprintf-style agent'
SOURCE = r'''
#include <stdio.h>
struct thing { int n; unsigned char c; const char *name; char text[8]; } thing = { 7, 'k', "a name", "inside" };
const char *volatile bad = (const char *)16;
__attribute__((noipa)) void show(int i, long wide, struct thing *what)
{
	__asm__ volatile("");
}
int main(void)
{
	for (int i = -2; i < 3; i++)
		show(i, i * 0x100000000, &thing);
	puts("done");
	return 0;
}
'''
EXPECTED = '''-2 -2 fffffffe |   -2| -8589934592 7 k a name inside "x" 100%\t(null)
-1 -1 ffffffff |   -1| -4294967296 7 k a name inside "x" 100%\t(null)
0 +0 0 |    0| 0 7 k a name inside "x" 100%\t(null)
1 +1 1 |    1| 4294967296 7 k a name inside "x" 100%\t(null)
2 +2 2 |    2| 8589934592 7 k a name inside "x" 100%\t(null)
'''
PRINT = (r'dprintf show,"%d %+d %x |%5i| %ld %d %c %s %s \"x\" 100%%\t%s\n", i, i, i, i, wide, what->n, what->c, '
         'what->name, &what->text[0], (char *)0')


def test_as_gdb_prints_it(tmp):
    build_hot(tmp, '-O0', SOURCE)
    serve = f'target remote | {SERVER} --once stdio ./app'
    by_agent = gdb(serve, STYLE, PRINT, 'continue').ok()
    by_gdb = gdb(serve, PRINT, 'continue').ok()

    def lines(result):
        return ''.join(re.findall(r'^-?\d \S+ .*\n', result.out + result.err, re.MULTILINE))

    check_equal(lines(by_gdb), EXPECTED, 'what gdb prints')
    check_equal(lines(by_agent), EXPECTED, 'what the stub prints')
    check_matches(by_agent.out, 'exited normally')


def test_conditions_and_faults(tmp):
    build_hot(tmp, '-O0', SOURCE)
    serve = f'target remote | {SERVER} --once stdio ./app'
    result = gdb(serve, STYLE, r'dprintf show,"one %d %s\n", i, bad', 'condition 1 i > 0',
                 r'dprintf app.c:13,"two %d\n", *(int *)16', 'break app.c:14', 'continue', 'kill').ok()
    lines = re.findall(r'^(?:one|two|\(fault).*', result.out + result.err, re.MULTILINE)
    check_equal(lines, ['one 1 (fault)', 'one 2 (fault)', lines[-1]], 'what is printed')
    check_matches(lines[-1], r'^\(fault\) of a command at 0x')
    check_matches(result.out, 'Breakpoint 3, main')


def commands(*expressions, condition=None):
    """The end of a Z packet."""
    text = f';{condition}' if condition else ''
    return text + ';cmds:0,' + ','.join(f'X{len(code) // 2:x},{code}' for code in expressions)


def printing(text, *registers):
    """Code that prints registers."""
    data = text.encode() + b'\0'
    code = ''.join(f'26{register:04x}' for register in reversed(registers))
    return f'{code}22002200' f'34{len(registers):02x}{len(data):04x}{data.hex()}27'


def texts(client, n, part):
    """What is printed until a line has `part`, as often as it is wanted."""
    text = ''
    while text.count(part) < n:
        reply = client.reply()
        check_equal(reply[:1], 'O', 'a text')
        text += bytes.fromhex(reply[1:]).decode()
    return text


def count(text):
    """Of a thread that prints n, n + 1, …: what is wrong with the numbers and the losses, or nothing. The last lines
    may be of a loss that is told before its time: hits after the last text."""
    numbers = [int(line) for line in text.splitlines() if line.isdigit()]
    lost = sum(int(n) for n in re.findall(r'^\((\d+) hits printed faster', text, re.MULTILINE))
    if any(a >= b for a, b in zip(numbers, numbers[1:])):
        return 'their order'
    left_out = numbers[-1] - numbers[0] + 1 - len(numbers)
    return '' if left_out <= lost else f'{left_out} left out, {lost} lost'


def test_all_threads_print_and_none_stops(tmp):
    build_hot(tmp)
    process, stub, client = served(3)
    hot = address_of(process.pid, 'hot')
    both = commands(printing('a %d ', RSI), printing(r'b %ld\n', RDI))
    check_equal(client.ask(f'Z0,{hot:x},1{both}'), 'OK', 'inserted')
    let_run(client)
    lines = texts(client, 300, '\n').splitlines()[:300]
    check(all(re.fullmatch(r'a [012] b \d+', line) for line in lines), 'whole lines', lines)
    check(len({line[2] for line in lines}) > 1, 'of several threads')
    client.send(b'\x03')
    while (reply := client.reply()).startswith('O'):
        pass
    check_equal(reply[:3], 'T02', 'stopped by ^C alone')
    check_equal(client.ask(f'Z0,{hot:x},1' + commands(printing('%s', RDI, RSI))), 'OK', 'a wrong number of arguments')
    let_run(client)
    check_matches(texts(client, 5, '\n'), r'^\(fault\) of a command at 0x')
    client.send(b'\x03')
    while client.reply().startswith('O'):
        pass
    check_equal(client.ask(f'Z0,{hot:x},1;cmds:0'), 'E01', 'no comma')
    check_equal(client.ask(f'Z0,{hot:x},1;cmds:0,X3,2200'), 'E01', 'half a command')
    check_equal(client.ask(f'Z0,{hot:x},1'), 'OK', 'without commands')
    check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit')
    check_equal(registers(client)[16], hot, 'at the site')
    check_equal(client.ask(f'z0,{hot:x},1'), 'OK', 'removed')
    finish(process, client, stub)


@timeout(120)
def test_a_condition_in_a_pad(tmp):
    """No thread stops while it is false. The stub prints."""
    build_hot(tmp)
    process, stub, client = served(3)
    hot = address_of(process.pid, 'hot')
    for condition, n in (equal(RDI, 1 << 30), 0), (equal(RSI, 2), 50):
        both = commands(printing(r'%d\n', RSI), condition=condition)
        check_equal(client.ask(f'Z0,{hot:x},1{both}'), 'OK', 'inserted')
        let_run(client)
        eventually(lambda: has_pads(process.pid), 'there are pads')
        check_equal(set(texts(client, n, '\n').split()), {'2'} if n else set(), 'what is printed')
        client.send(b'\x03')
        while (reply := client.reply()).startswith('O'):
            pass
        check_equal(reply[:3], 'T02', 'stopped by ^C alone')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


@timeout(120)
def test_signals_at_a_hit_in_a_pad(tmp):
    """Each hit prints once, or is told to be lost: a thread that a signal stops in the pad or behind it goes on from
    there."""
    build_hot(tmp, source=LONELY)
    process, stub, client = served()
    hot, signals = address_of(process.pid, 'hot'), address_of(process.pid, 'signals')
    both = commands(printing(r'%ld\n', RDI), condition=TRUE)
    client.ask('QPassSignals:1e')
    check_equal(client.ask(f'Z0,{hot:x},1{both}'), 'OK', 'inserted')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    text = ''
    for _ in range(300):
        os.kill(process.pid, signal.SIGUSR1)
        text += texts(client, 1, '\n')
    client.send(b'\x03')
    while (reply := client.reply()).startswith('O'):
        text += bytes.fromhex(reply[1:]).decode()
    check_equal(reply[:3], 'T02', 'stopped by ^C alone')
    check_equal(count(text), '', 'what is wrong with the hits')
    check(client.word(signals) > 10, 'its handler has run', client.word(signals))
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


def test_a_client_that_does_not_read(tmp):
    """Texts are lost then, which is said. No thread waits for it."""
    build_hot(tmp)
    process, stub, client = served(2)
    hot = address_of(process.pid, 'hot')
    check_equal(client.ask(f'Z0,{hot:x},1' + commands(printing('%0999d' * 60 + r'\n', *[RSI] * 60))), 'OK', 'inserted')
    let_run(client)
    time.sleep(3)
    client.send(b'\x03')
    text = ''
    while (reply := client.reply()).startswith('O'):
        text += bytes.fromhex(reply[1:]).decode()
    check_equal(reply[:3], 'T02', 'stopped by ^C alone')
    check_matches(text, r'\(\d+ hits printed faster')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


def test_in_non_stop_the_server_prints(tmp):
    build_hot(tmp, '-O0', SOURCE)
    server, port = listen('localhost:0', './app')
    gdb('set non-stop on', f'target remote :{port}', STYLE, PRINT, 'continue', seconds=60)
    check_equal(''.join(re.findall(r'^-?\d \S+ .*\n', server.end().out, re.MULTILINE)), EXPECTED, 'what is printed')
