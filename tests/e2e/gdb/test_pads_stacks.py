"""Conditions in pads where little is left of a stack: each hit is told, and the program sees no fault."""
from debugging import address_of, go_past, packet
from kymotest import check, check_equal, eventually, timeout
from pads import (FALSE, RSI, build_hot, code_of, equal, finish, has_pads, is_quiet, let_run, registers, served,
                  word_of)

NEAR = 77  # `who` of calls near the end of a stack
FROM, TO, STEP = 24, 696, 24

# Functions are called with the stack pointer near the end of a stack, of the first thread or of another one. One
# begins with a push, one where flags are in use.
SOURCE = r'''
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
volatile long go = 1, wrong, rounds, what;
static char *ends[3];
long hot(long n, long who), pushing(long n, long who), carrying(long n, long who);
long at(char *sp, long n, long who, long (*f)(long, long));
__asm__(".globl hot, pushing, carrying\n.balign 64\nhot: lea (%rdi,%rdi,2), %rax\nadd %rsi, %rax\nret\n.balign 64\n"
	"pushing: push %rbx\nlea (%rdi,%rdi,2), %rax\nadd %rsi, %rax\npop %rbx\nret\n.balign 64\n"
	"carrying: .byte 0x48, 0x8d, 0x87, 0, 0, 0, 0\nadc %rsi, %rax\nret\n.balign 64\n" /* lea 0(%rdi), %rax */
	"at: push %rbx\nmov %rsp, %rbx\nmov %rdi, %rsp\nmov %rsi, %rdi\nmov %rdx, %rsi\n"
	"test %rcx, %rcx\ncall *%rcx\nmov %rbx, %rsp\n"
	"pop %rbx\nret\n.type hot, @function\n.size hot, 8\n.type pushing, @function\n.size pushing, 9\n"
	".type carrying, @function\n.size carrying, 11\n");
static void on_fault(int number) { _exit(9); }
/* As far down as the loader has it for a limit of 8 MiB. */
static void limit_stack(char **argv)
{
	struct rlimit limit;
	getrlimit(RLIMIT_STACK, &limit);
	if (limit.rlim_cur == 8 << 20)
		return;
	limit.rlim_cur = 8 << 20;
	if (!setrlimit(RLIMIT_STACK, &limit))
		execv("/proc/self/exe", argv);
	_exit(8);
}
/* The kernel has it as far down as its limit says; what is not there yet comes by itself. */
static char *first_end(void)
{
	struct rlimit limit;
	unsigned long low, high = 0;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	getrlimit(RLIMIT_STACK, &limit);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "[stack]"))
			sscanf(line, "%lx-%lx", &low, &high);
	fclose(maps);
	return (char *)((high - limit.rlim_cur + 4095) & -4096ul);
}
static char *thread_end(void)
{
	pthread_attr_t attr;
	void *at;
	size_t size;
	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &at, &size);
	return at;
}
static void sweep(char *end, int is_child)
{
	for (long left = FROM; left < TO; left += STEP) {
		wrong += at(end + left, left, 77, hot) != left * 3 + 77;
		wrong += at(end + left, left, 77, pushing) != left * 3 + 77;
		if (!is_child) /* where flags are in use its pad stores them first */
			wrong += at(end + left, left, 77, carrying) != left + 77;
	}
}
static void sweep_in_child(char *end, int is_followed)
{
	int status;
	pid_t child = fork();
	if (!child) {
		sweep(end, !is_followed);
		_exit(wrong != 0);
	}
	waitpid(child, &status, 0);
	wrong += status != 0;
}
static void look(long who)
{
	if (what == who + 1) {
		what = 0;
		sweep(ends[who], 0);
		what = 10;
	}
	if (what == who + 5 || what == who + 12) {
		int is_followed = what >= 12;
		what = 0;
		sweep_in_child(ends[who], is_followed);
		what = 10;
	}
	wrong += hot(rounds++, who) < 0;
	wrong += pushing(rounds++, who) < 0;
	wrong += carrying(rounds++, who) < 0;
}
static void *run(void *data)
{
	ends[1] = thread_end();
	ends[2] = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ends[2] += 8192;
	mprotect(ends[2] - 8192, 8192, PROT_NONE);
	while (go) {
		look(1);
		look(2);
	}
	return NULL;
}
int main(int argc, char **argv)
{
	pthread_t thread;
	stack_t other = { .ss_sp = malloc(65536), .ss_size = 65536 };
	struct sigaction action = { .sa_handler = on_fault, .sa_flags = SA_ONSTACK };
	limit_stack(argv);
	sigaltstack(&other, NULL);
	sigaction(SIGSEGV, &action, NULL);
	ends[0] = first_end();
	pthread_create(&thread, NULL, run, NULL);
	while (!ends[2])
		usleep(1000);
	puts("ready");
	fflush(stdout);
	while (go)
		look(0);
	pthread_join(thread, NULL);
	printf("wrong %ld\n", wrong);
	return wrong != 0;
}
'''.replace('FROM', str(FROM)).replace('TO', str(TO)).replace('STEP', str(STEP))


def begin(**features):
    process, stub, client = served(**features)
    sites = [address_of(process.pid, name) for name in ('hot', 'pushing', 'carrying')]
    for site in sites:
        check_equal(client.ask(f'Z0,{site:x},1;{FALSE}'), 'OK', 'inserted')
    let_run(client)
    eventually(lambda: has_pads(process.pid), 'there are pads')
    client.interrupt()
    for site in sites:
        check_equal(code_of(process.pid, site, 1), b'\xe9', 'by a pad')
    return process, stub, client, sites


def ask_for(client, process, what):
    client.ask(f'M{address_of(process.pid, "what"):x},8:' + what.to_bytes(8, 'little').hex())


def is_done(client, process):
    return is_quiet(client) and client.word(address_of(process.pid, 'what')) == 10


def finish_without(sites, process, client, stub):
    for site in sites:
        client.ask(f'z0,{site:x},1')
    finish(process, client, stub)


@timeout(240)
def test_each_hit_is_told(tmp):
    """On the first thread, on another one, and on a stack whose end the pad does not know."""
    build_hot(tmp, source=SOURCE)
    process, stub, client, sites = begin()
    for who in range(3):
        for site in sites:
            client.ask(f'z0,{site:x},1')
            client.ask(f'Z0,{site:x},1;{equal(RSI, NEAR)}')
        is_quiet(client)
        check(has_pads(process.pid), 'by pads')
        ask_for(client, process, who + 1)
        expected = [(site, left) for left in range(FROM, TO, STEP) for site in sites]
        found = []
        for _ in expected:
            check_equal(client.ask('vCont;c')[:3], 'T05', f'a hit after {found[-1:]} on stack {who}')
            now = registers(client)
            found.append((now[16], now[5]))
            check_equal(go_past(client, now[16], f';{equal(RSI, NEAR)}')[:3], 'T05', 'a step')
        check_equal(found, expected, f'hits on stack {who}')
        eventually(lambda: is_done(client, process), 'all have been')
    finish_without(sites, process, client, stub)


@timeout(240)
def test_a_false_condition_and_children(tmp):
    """A child that is forked has pads, and no tracer takes their faults."""
    build_hot(tmp, source=SOURCE)
    process, stub, client, sites = begin()
    for what in 1, 2, 3, 5, 6, 7:
        ask_for(client, process, what)
        eventually(lambda: is_done(client, process), f'sweep {what} is done')
        check(has_pads(process.pid), 'by pads')
    finish_without(sites, process, client, stub)


@timeout(240)
def test_a_child_that_is_followed(tmp):
    """Its pads do nothing, but those that keep flags first use its stack. It gets no signal of that."""
    build_hot(tmp, source=SOURCE)
    process, stub, client, sites = begin(features='multiprocess+;swbreak+;fork-events+')
    client.ask('QPassSignals:14')  # SIGCHLD
    for who in range(3):
        ask_for(client, process, who + 12)
        reply = client.ask('vCont;c')
        check('fork:' in reply, 'a child is told', reply)
        check_equal(client.ask('vCont;c')[:3], 'W00', 'it ends well')
        client.ask(f'Hgp{process.pid:x}.{process.pid:x}')
        let_run(client)
        eventually(lambda: word_of(process.pid, address_of(process.pid, 'what')) == 10, f'sweep {who} is done')
        check_equal(client.interrupt()[:3], 'T02', 'nothing but ^C stops it')
    finish_without(sites, process, client, stub)


@timeout(240)
def test_a_breakpoint_that_was_removed(tmp):
    """Its pad is there as long as threads are not all let go on. What does not fit on the stack is no hit."""
    build_hot(tmp, source=SOURCE)
    process, stub, client, sites = begin()
    for site in sites:
        client.ask(f'z0,{site:x},1')
    for what in 1, 2, 3:
        ask_for(client, process, what)
        client.send(packet('vCont;C1c'))  # SIGWINCH, which it ignores
        eventually(lambda: word_of(process.pid, address_of(process.pid, 'what')) == 10, f'sweep {what} is done')
        check_equal(client.interrupt()[:3], 'T02', 'nothing but ^C stops it')
        for site in sites:
            check_equal(code_of(process.pid, site, 1), b'\xe9', 'by a pad')
    finish(process, client, stub)
