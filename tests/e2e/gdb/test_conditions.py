"""Conditions of breakpoints are evaluated by the stub: as gdb itself does, without a stop that the client sees."""
import re

from debugging import (SERVER, Client, address_of, advances, build, by_stdio, gdb, go_past, listen, offer,
                       words_of)
from kymotest import (check, check_equal, check_matches, eventually, program, run, sampled, share, skip, start,
                      timeout)
from pads import ON as PADS_ON
from seeds import seed
import debug_registers

# Each condition is true now and then while `work` is called with i from 0 to 63.
CONDITIONS = [
    'i == 7', 'i != 7', 'i > 10 && i < 20', 'i % 3 == 0', 'i / 5 == 2', '-i / 5 == -2', '(unsigned)-i > 100',
    'i << 2 > 100', '-i >> 1 < -20', '(i & 12) == 8', '(i | 1) == 9', '(i ^ 3) == 0', '~i < -60', '!i',
    'i ? i > 60 : 1', 'item->id == 5', 'item->next->id == 5', 'item->tag == -3', 'item->wide == 0x100000005',
    'item->name[0] == 98', 'item->bits == 3', 'item->sign == -1', 'table[i % 4] == 30', 'item == &items[2]',
    '*item->pointer == 4', 'here.id == 3 || i == 50', '$rdi == 9', '$eflags & 1 || i == 3', '(char)(i * 5) < 0',
    '(short)(i * 2000) < 0', 'i * 1000000 > 40000000', 'item->kind == BLUE', '(long)item % 16 == 0 && i > 5',
    'sizeof(*item) > 8 && i == 1', 'items[i % 8].id > 6', '!(unsigned char)(unsigned long)(i % 2 ? i * 256L : 255)',
]

SOURCE = r'''
#include <stdio.h>
enum kind { RED, GREEN, BLUE };
struct item { int id; signed char tag; unsigned bits : 3; int sign : 2; long wide; char name[8]; int *pointer;
	      struct item *next; enum kind kind; } items[8], here;
int table[4] = { 10, 20, 30, 40 };
volatile int rounds;
__attribute__((noipa)) int work(int i, struct item *item) { here.id = i; return i + item->id; }
__attribute__((noipa)) void round_ends(void) { rounds++; }
int main(int argc, char **argv)
{
	int n = argc > 1 ? 100000 : 64;
	for (int k = 0; k < 8; k++)
		items[k] = (struct item){ k, k - 6, k, k % 4 - 2, 0x100000000 + k, { 'a' + k }, &items[(k + 3) % 8].id,
					  &items[(k + 1) % 8], k % 3 };
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < n; i++)
			work(i, &items[i % 8]);
		round_ends();
	}
	puts("over");
	return 0;
}
'''


def build_work(tmp, optimize='-O0', rounds=len(CONDITIONS) + 2):
    (tmp / 'app.c').write_text(SOURCE)
    run(program('gcc'), '-g', optimize, '-w', f'-DROUNDS={rounds}', '-o', 'app', 'app.c').ok()


def hits(mode, conditions, *first):
    """By condition, in a session that evaluates them there. A breakpoint with an ignore count counts and goes on."""
    commands = [*first, f'set breakpoint condition-evaluation {mode}', 'break round_ends', 'continue']
    for number, condition in enumerate(conditions, 2):
        commands += [f'break work if {condition}', f'ignore {number} 1000000', 'continue', 'info breakpoints',
                     f'delete {number}', f'echo END {number}\\n']
    out = by_stdio('./app', *commands, 'kill').ok().out
    found, by_target = {}, []
    for number, condition in enumerate(conditions, 2):
        text = out.split(f'END {number}\n')[0].split(f'END {number - 1}\n')[-1]
        hit = re.search(
            rf'^{number} .*\n\tstop only if .*?(\((?:host|target) evals\))?\n'
            r'(?:\tbreakpoint already hit (\d+) time)?', text, re.MULTILINE)
        check(hit, f'breakpoint {number} is listed', text)
        found[condition] = int(hit.group(2) or 0)
        by_target.append('target evals' in hit.group(0))
    check(mode == 'host' or sum(by_target) > len(conditions) - 3, 'the stub evaluates them', out)
    return found


@sampled
@timeout(300)
def test_they_hold_as_in_gdb(tmp):
    seed()
    for optimize in '-O0', '-O2':
        conditions = share(CONDITIONS, 2)
        build_work(tmp, optimize)
        by_gdb = hits('host', conditions)
        check_equal(hits('target', conditions), by_gdb, f'hits with {optimize}')
        check_equal(hits('target', conditions, PADS_ON), by_gdb, f'hits by pads with {optimize}')
        check(sum(0 < n < 64 for n in by_gdb.values()) > len(conditions) * 3 / 4, 'most hold now and then', by_gdb)


def served_app():
    """./app at its first instruction; the server, a client, and its id."""
    server, port = listen('127.0.0.1:0', './app')
    client = Client(port)
    features = client.ask('qSupported:multiprocess+;swbreak+')
    check('ConditionalBreakpoints+' in features, 'the feature is told', features)
    client.ask('?')
    return server, client, int(re.search(r'p([0-9a-f]+)\.', client.ask('qC')).group(1), 16)


def test_a_false_one_stops_nobody(tmp):
    build_work(tmp)
    server, client, pid = served_app()
    work = address_of(pid, 'work')
    check_equal(client.ask(f'Z0,{work:x},1;X3,220027'), 'OK', 'inserted')
    check_equal(client.ask('vCont;c')[:3], 'W00', 'it runs to its end')
    client.close()
    server.end().ok()


def test_one_of_several_is_enough_and_a_new_list_replaces_the_old(tmp):
    build_work(tmp)
    server, client, pid = served_app()
    work, ends = address_of(pid, 'work'), address_of(pid, 'round_ends')

    def insert(conditions, what):
        check_equal(client.ask(f'Z0,{work:x},1{conditions}'), 'OK', what)
        return conditions

    def stop(conditions=None):
        if conditions is not None:
            check_equal(go_past(client, work, conditions)[:3], 'T05', 'a step')
        reply = client.ask('vCont;c')
        check_equal(reply[:3], 'T05', 'a stop')
        return int.from_bytes(bytes.fromhex(client.ask('p10')), 'little'), int.from_bytes(
            bytes.fromhex(client.ask('p5')), 'little') & 0xffffffff

    def equal(n):  # $rdi == n
        return f'X9,26000522{n:02x}132a0127'

    now = insert(f';{equal(3)}{equal(5)}', 'two')
    check_equal([stop(), stop(now)], [(work, 3), (work, 5)], 'both hold')
    now = insert(f';{equal(9)};{equal(11)}', 'two others')
    check_equal([stop(now), stop(now)], [(work, 9), (work, 11)], 'they have replaced them')
    now = insert(';X1,22', 'one that cannot be evaluated')
    check_equal(stop(now), (work, 12), 'it stops')
    now = insert('', 'none')
    check_equal(stop(now), (work, 13), 'each is a stop')
    for wrong in (';X', ';X3', ';X3,', ';X3,2200', ';X0,', ';X3,22zz27', ';Y3,220027', ';X3,220027;cmds:0,X1',
                  ';X3,220027;cmds:,X1,27', ';cmds:0,X1,27;cmds:0,X1,27', 'X3,220027'):
        check_equal(client.ask(f'Z0,{work:x},1{wrong}'), 'E01', f'wrong: {wrong}')
    check_equal(stop(now), (work, 14), 'what was there stays')
    check_equal(client.ask(f'Z2,{work:x},1;X3,220027'), 'E01', 'watched memory has no conditions here')
    check_equal(client.ask(f'z0,{work:x},1'), 'OK', 'removed')
    check_equal(client.ask(f'Z0,{ends:x},1'), 'OK', 'the end of a round')
    check_equal(stop()[0], ends, 'no condition is left')
    client.ask('vKill;%x' % pid)
    client.close()
    server.end()


def test_more_than_are_kept_stop_each_time(tmp):
    """gdb evaluates them then."""
    build_work(tmp)
    server, client, pid = served_app()
    work = address_of(pid, 'work')
    check_equal(client.ask(f'Z0,{work:x},1;' + 4096 * 'X3,220027'), 'OK', 'as many as are kept')
    check_equal(client.ask(f'Z0,{work:x},1;' + 4096 * 'X3,220027'), 'OK', 'the same again')
    check_equal(client.ask('vCont;c')[:3], 'W00', 'none holds')
    client.close()
    server.end()
    server, client, pid = served_app()
    work = address_of(pid, 'work')
    check_equal(client.ask(f'Z0,{work:x},1;' + 4097 * 'X3,220027'), 'OK', 'more')
    check_equal(client.ask('vCont;c')[:3], 'T05', 'a stop')
    loop = '2401000000' + '22010328' + '200005' + '220027'  # 16 M turns, then 0
    check_equal(client.ask(f'Z0,{work:x},1;' + 1500 * f'X{len(loop) // 2:x},{loop}'), 'OK', 'long ones')
    check_equal(client.ask('vCont;c')[:3], 'T05', 'a hit has a bound for all of them')
    client.ask('vKill;%x' % pid)
    client.close()
    server.end()


def test_by_hardware(tmp):
    if not debug_registers.work():
        skip('no debug registers here')
    build_work(tmp)
    out = by_stdio('./app', 'hbreak work if i == 41 && item->id == 1', 'continue', 'info breakpoints', 'print i',
                   'kill').ok().out
    check_matches(out, r'stop only if .* \(target evals\)')
    check_matches(out, r'^\$1 = 41$')


def test_steps_come_past_false_ones(tmp):
    build_work(tmp)
    out = by_stdio('./app', 'break main', 'continue', 'break work if i == 9', 'break 25', 'continue', 'next', 'next',
                   'info line', 'delete 3', 'continue', 'print i', 'kill').ok().out
    check_matches(out, r'^\$1 = 9$')


THREADS = r'''
#include <pthread.h>
#include <stdio.h>
volatile long total[4];
__attribute__((noipa)) void hot(long n, long who) { total[who] += n; }
static void *run(void *who) { for (long i = 0; i < 2000; i++) hot(i, (long)who); return NULL; }
int main(void)
{
	pthread_t threads[4];
	for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, run, (void *)i);
	for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
	printf("%ld %ld %ld %ld\n", total[0], total[1], total[2], total[3]);
	return 0;
}
'''


@timeout(180)
def test_of_many_threads_none_misses_it(tmp):
    (tmp / 'app.c').write_text(THREADS)
    run(program('gcc'), '-g', '-O1', '-pthread', '-o', 'app', 'app.c').ok()
    for settings in [], ['set non-stop on']:
        result = gdb(*settings, f'target remote | {SERVER} --once stdio ./app', 'break hot if n == 1234 && who == 2',
                     'continue', 'thread apply all -q -s printf "at %ld of %ld\\n", n, who',
                     'continue -a' if settings else 'continue')
        check_matches(result.out + result.err, r'^at 1234 of 2$')
        check_matches(result.out + result.err, r'^1999000 1999000 1999000 1999000$')


@timeout(180)
def test_in_real_programs(tmp):
    bash = program('bash')
    script = 'for i in 1 2 3; do echo $i; done; pwd >/dev/null; echo $((6*6))'
    commands = ('set breakpoint pending on', f"target remote | {SERVER} --once stdio {bash} -c '{script}'",
                'break malloc if $rdi == 424242', 'break write if $rdi == 1 && *(char *)$rsi == 51', 'continue',
                'print (char)*(char *)$rsi', 'delete', 'continue')
    out = run(program('gdb'), '-nx', '-batch', *words_of(commands), bash, seconds=150).ok()
    check_matches(out.out, r"^\$1 = 51 '3'$")
    check_matches(out.out + out.err, r'^36$')


def test_the_process_runs_on_when_the_client_goes(tmp):
    build(tmp)
    process = start('./app', 'loop')
    process.wait_for('^ready')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    tick = address_of(process.pid, 'work')
    client.ask(f'Z0,{tick:x},1;X3,220027')
    client.send(b'$vCont;c#a8')
    advances(process)
    client.close()
    stub.end().ok()
    advances(process)
