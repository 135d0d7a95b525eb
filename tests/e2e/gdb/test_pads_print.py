"""`dprintf` whose text is made of a record that its pad writes: no thread stops for it."""
import os
import re
import time

from debugging import SERVER, Client, address_of, by_stdio, gdb, kill_hub, offer
from kymotest import check, check_equal, check_text_intact, eventually, kymo, program, start, timeout
from pads import (ON, RDI, RSI, all_threads, build_hot, equal, finish, has_pads, let_run, mappings, registers,
                  served)

KILLS = int(os.environ.get('KYMO_KILLS', 10))
STYLE = 'set dprintf-style agent'
KINDS = r'''
#include <stdio.h>
#include <string.h>
struct thing { int n; unsigned char c; const char *name; char text[8]; } thing = { 7, 'k', "a name", "inside" };
char longest[96], longer[97];
const char *texts[] = { "", "one", longest, longer, (const char *)16, 0 };
__attribute__((noipa)) void show(int i, long wide, const char *text, struct thing *what)
{
	__asm__ volatile("");
}
int main(void)
{
	memset(longest, 'x', 95);
	memset(longer, 'y', 96);
	for (int i = -2; i < 10; i++)
		show(i, i * 0x100000000, texts[(i + 2) % 6], &thing);
	puts("done");
	return 0;
}
'''
PRINTS = [
    r'dprintf show,"%d %+d %x |%5i| %ld %d %c %s\n", i, i, i, i, wide, what->n, what->c, what->name',
    r'dprintf show,"%s|%s|%10.3s|%p\n", text, &what->text[0], what->name, what->name',
    r'dprintf show,"%d %d %lu\n", i > 2 ? i * 2 : -i, i && wide, sizeof(*what)',
    r'dprintf show,"%d\n", 100 / i',
    r'dprintf show,"no arguments 100%%\n"',
    r'dprintf show,"%d %d %d %d %d %d %d %d %d\n", i, i, i, i, i, i, i, i, i',
]

# Each thread calls `hot` so often, and waits after some calls so that nothing is lost.
COUNTED = r'''
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
long calls;
volatile long go;
__attribute__((noipa)) long hot(long n, long who) { return n * 3 + who; }
__attribute__((noipa)) void over(void) { __asm__ volatile(""); }
static void *run(void *data)
{
	while (!go)
		usleep(1000);
	for (long n = 0; n < calls; n++) {
		hot(n, (long)data);
		if (n % 500 == 499)
			usleep(20000);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t threads[128];
	int n = atoi(argv[1]);
	calls = atol(argv[2]);
	for (long i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, run, (void *)i);
	puts("ready");
	fflush(stdout);
	if (argc > 3)
		go = 1;
	for (long i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	over();
	return 0;
}
'''


def printing(text, *numbers):
    """Code that prints registers, as a packet has it."""
    data = text.encode() + b'\0'
    code = ''.join(f'26{register:04x}' for register in reversed(numbers))
    code += f'2200220034{len(numbers):02x}{len(data):04x}{data.hex()}27'
    return f';cmds:0,X{len(code) // 2:x},{code}'


def take_texts(client):
    """All that is printed up to the next stop, and what that is."""
    text = ''
    while (reply := client.reply()).startswith('O'):
        text += bytes.fromhex(reply[1:]).decode()
    return text, reply


def of_threads(text):
    """The numbers that each thread has printed, in their order."""
    found = {}
    for who, number in re.findall(r'^(\d+) (\d+)$', text, re.MULTILINE):
        found.setdefault(int(who), []).append(int(number))
    return found


def n_lost(text):
    return sum(int(n) for n in re.findall(r'^\((\d+) hits? printed faster', text, re.MULTILINE))


def all_of(app, *commands):
    result = by_stdio(app, *commands).ok()
    return result.out + result.err


def lines_of(app, setting, *commands):
    return [line for line in all_of(app, *setting, *commands).splitlines()
            if re.match(r'-?\d+ |-?\d+$|\||one|x|y|\(fault|\(null|no arg', line)]


@timeout(240)
def test_texts_are_those_of_int3_and_of_gdb(tmp):
    for i, what in enumerate(PRINTS):
        build_hot(tmp, '-O2' if i % 2 else '-O0', KINDS)
        commands = [what, *(['condition 1 i % 3 != 1'] if i % 3 == 0 else []), 'continue']
        # gdb itself ends at what it cannot evaluate: it is no judge of these.
        judges = [[STYLE]] if '/ i' in what or 'text,' in what else [[STYLE], []]
        in_pad, *others = [lines_of('./app', setting, *commands) for setting in [[ON, STYLE], *judges]]
        check(len(in_pad) > 3, 'something is printed', in_pad)
        for other in others:
            check_equal(in_pad, other, what)


@timeout(120)
def test_each_hit_prints_once(tmp):
    """Also where threads are stopped at all times, and brought out of the pad."""
    build_hot(tmp, '-O1', COUNTED)
    process = start('./app', 4, 3000)
    process.wait_for('^ready')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    client.ask('qRcmd,' + 'set pads 1'.encode().hex())
    hot, over, go = (address_of(process.pid, name) for name in ('hot', 'over', 'go'))
    check_equal(client.ask(f'Z0,{hot:x},1' + printing(r'%ld %ld\n', RSI, RDI)), 'OK', 'inserted')
    check_equal(client.ask(f'Z0,{over:x},1'), 'OK', 'inserted')
    check_equal(client.ask(f'M{go:x},8:0100000000000000'), 'OK', 'written')
    text, n_stops = '', 0
    while True:
        let_run(client)
        time.sleep(0.003)
        if not n_stops:
            eventually(lambda: has_pads(process.pid), 'there are pads')
        client.send(b'\x03')
        more, reply = take_texts(client)
        text += more
        if reply.startswith('T05'):
            break
        check_equal(reply[:3], 'T02', 'stopped by ^C alone')
        n_stops += 1
        pads = mappings(process.pid)
        for thread in all_threads(client):
            pc = registers(client, thread)[16]
            check(not any(low <= pc < high for low, high in pads), 'no thread is in a pad', hex(pc))
    check_equal(registers(client)[16], over, 'all calls were made')
    check(n_stops > 5, 'it was stopped meanwhile', n_stops)
    check_equal(of_threads(text), {who: list(range(3000)) for who in range(4)}, 'each hit, in the order of each thread')
    check_equal(len(text.splitlines()), 12000, 'and nothing else')
    client.ask(f'z0,{hot:x},1')
    client.ask(f'z0,{over:x},1')
    client.close()
    stub.end().ok()
    process.end().ok()


def test_texts_come_before_stops_and_ends(tmp):
    build_hot(tmp, '-O1', COUNTED)
    for at in 'over', None:
        process, stub, client = served(3, 2000)
        go, hot = address_of(process.pid, 'go'), address_of(process.pid, 'hot')
        check_equal(client.ask(f'Z0,{hot:x},1' + printing(r'%ld %ld\n', RSI, RDI)), 'OK', 'inserted')
        if at:
            check_equal(client.ask(f'Z0,{address_of(process.pid, at):x},1'), 'OK', 'inserted')
        check_equal(client.ask(f'M{go:x},8:0100000000000000'), 'OK', 'written')
        let_run(client)
        text, reply = take_texts(client)
        check_equal(reply[:3], 'T05' if at else 'W00', 'what it ends with')
        check_equal(of_threads(text), {who: list(range(2000)) for who in range(3)}, 'before that')
        client.close()
        stub.end().ok()
        process.end().ok()


@timeout(300)
def test_a_hundred_threads_print(tmp):
    build_hot(tmp, '-O1', COUNTED)
    out = all_of('./app 100 600 go', ON, STYLE, r'dprintf hot,"%ld %ld\n", who, n', 'condition 1 n >= 100', 'continue')
    found = of_threads(out)
    for who in range(100):
        texts = found.get(who, [])  # all of a thread may be lost
        check(texts == sorted(set(texts) & set(range(100, 600))), f'what thread {who} prints', texts)
    check_equal(sum(map(len, found.values())) + n_lost(out), 100 * 500, 'texts and losses')


def test_what_is_lost_is_told(tmp):
    """The threads never wait. Each thread's numbers and the losses make up all calls."""
    build_hot(tmp)
    process, stub, client = served(3)
    hot, rounds = address_of(process.pid, 'hot'), address_of(process.pid, 'rounds')
    check_equal(client.ask(f'Z0,{hot:x},1' + printing(r'%ld %ld\n', RSI, RDI)), 'OK', 'inserted')
    before = [client.word(rounds + 8 * i) for i in range(3)]
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    time.sleep(1)
    client.send(b'\x03')
    text, reply = take_texts(client)
    check_equal(reply[:3], 'T02', 'stopped by ^C alone')
    found = of_threads(text)
    check(all(numbers == sorted(set(numbers)) for numbers in found.values()), 'in the order of each thread')
    lost = n_lost(text)
    made = sum(client.word(rounds + 8 * i) - before[i] for i in range(3))
    # A call that was begun before, or has printed and is not counted yet, is one of each thread.
    check(abs(sum(map(len, found.values())) + lost - made) <= 3, 'texts and losses', [lost, made])
    check(lost, 'something is lost')
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


def test_auto_prints_what_reads_no_memory(tmp):
    build_hot(tmp)
    process, stub, client = served(2)
    hot = address_of(process.pid, 'hot')
    client.ask('qRcmd,' + 'set pads auto'.encode().hex())
    for text, is_in in ('%s\\n', False), ('%d\\n', True):
        check_equal(client.ask(f'Z0,{hot:x},1;{equal(RSI, 1)}' + printing(text, RSI)), 'OK', 'inserted')
        let_run(client)
        time.sleep(0.3)
        client.send(b'\x03')
        text, _ = take_texts(client)
        lines = [line for line in text.splitlines() if 'hits printed' not in line]
        check_equal(set(lines), {'1'} if is_in else {'(fault)'}, 'what is printed')
        check(len(lines) > 20000 if is_in else len(lines) < 20000, 'as fast as it is', len(lines))
    client.ask(f'z0,{hot:x},1')
    finish(process, client, stub)


def test_a_client_that_leaves(tmp):
    build_hot(tmp)
    for how in 'close', 'detach', 'kill':
        process, stub, client = served(3)
        hot = address_of(process.pid, 'hot')
        check_equal(client.ask(f'Z0,{hot:x},1' + printing(r'%ld %ld\n', RSI, RDI)), 'OK', 'inserted')
        let_run(client)
        eventually(lambda: has_pads(process.pid), 'there are pads')
        if how == 'close':
            client.close()
        elif how == 'detach':
            client.send(b'\x03')
            take_texts(client)
            client.ask('D')
        else:
            stub.kill()
        eventually(lambda: not has_pads(process.pid), 'pads are out')
        check_text_intact(process.pid)
        check(process.is_alive(), 'runs on')
        process.kill()


@timeout(300)
def test_the_stub_is_killed(tmp):
    build_hot(tmp)
    for i in range(KILLS):
        process, stub, client = served(4)
        hot = address_of(process.pid, 'hot')
        client.ask(f'Z0,{hot:x},1' + printing(r'%ld %ld\n', RSI, RDI))
        let_run(client)
        eventually(lambda: has_pads(process.pid), 'there are pads')
        time.sleep(0.01 * i)
        kill_hub(stub)
        time.sleep(0.1)
        check(process.is_alive(), 'runs on')
        kymo('detach', process.pid)
        eventually(lambda: not has_pads(process.pid), 'pads are out')
        check_text_intact(process.pid)
        process.kill()


FORKS = r'''
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
__attribute__((noipa)) long hot(long n) { return n * 3; }
int main(int argc, char **argv)
{
	int status = 0, wrong = 0;
	for (long n = 0; n < 20; n++) {
		hot(n);
		pid_t child = fork();
		if (!child) {
			hot(1000 + n);
			_exit(3);
		}
		waitpid(child, &status, 0);
		wrong += WEXITSTATUS(status) != 3;
	}
	printf("wrong %d\n", wrong);
	if (argc < 2) {
		fflush(stdout);
		execl("/proc/self/exe", "again", "again", NULL);
	}
	return wrong;
}
'''


def test_children_and_another_program(tmp):
    """What a forked child does is not printed, as with int3."""
    build_hot(tmp, '-O1', FORKS)
    outputs = [all_of('./app', setting, STYLE, r'dprintf hot,"at %ld\n", n', 'continue')
               for setting in (ON, 'monitor set pads 0')]
    lines = [re.findall(r'^at \d+$', out, re.MULTILINE) for out in outputs]
    check_equal(lines[0], lines[1], 'as with int3')
    check(len(lines[0]) >= 40, 'both programs print', lines[0])
    check_equal([out.count('exited normally') for out in outputs], [1, 1], 'the end')


def test_sqlite(tmp):
    """A real program, in a function of a library that it calls for each row."""
    script = 'create table t(a); ' + 'insert into t values(1); ' * 20 + 'select count(*) from t;'
    (tmp / 'script').write_text(script)
    library = 'dprintf sqlite3_step,"step %d\\n", 1'
    outputs = [gdb(f'target remote | {SERVER} --once stdio {program("sqlite3")} :memory: ".read script"', setting, STYLE,
                   'set breakpoint pending on', library, 'continue', seconds=120)
               for setting in (ON, 'monitor set pads 0')]
    counts = [(out.out + out.err).count('step 1\n') for out in outputs]
    check_equal(counts[0], counts[1], 'as with int3')
    check(counts[0] > 20, 'steps', counts)
