"""Variables of threads: each thread shows its own."""
import re

from debugging import Client, by_stdio, gdb, offer
from kymotest import check, check_equal, check_matches, program, run, start

SOURCE = r'''
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
__thread int padding[1000] = { 1 }, number = 100;
static pthread_barrier_t barrier;
static int *(*touch)(void);
static void standing(void) { __asm__ volatile(""); }
static void *thread(void *data)
{
	number += (long)data;
	if (touch && (long)data == 1)
		*touch() = 77;
	pthread_barrier_wait(&barrier);
	pause();
	return NULL;
}
static void *load(const char *name, const char *function)
{
	void *library = dlopen(name, RTLD_NOW);
	touch = (int *(*)(void))dlsym(library, function);
	return library;
}
int main(int argc, char **argv)
{
	pthread_t threads[2];
	pthread_barrier_init(&barrier, NULL, 3);
	void *library = argc > 1 ? load(argv[1], "touch") : NULL;
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, thread, (void *)(i + 1));
	pthread_barrier_wait(&barrier);
	if (argc > 2) { /* it gets the number of the first one */
		dlclose(library);
		load(argv[2], "touch_other");
		*touch() = 88;
	}
	puts("ready");
	fflush(stdout);
	standing();
	pause();
}
'''
LIBRARY = '__thread int theirs = 5; int *touch(void) { return &theirs; }'
OTHER = '__thread int others = 6; int *touch_other(void) { return &others; }'


def build(tmp, *options):
    for name, text in (('app', SOURCE), ('lib', LIBRARY), ('other', OTHER)):
        (tmp / f'{name}.c').write_text(text)
    for name in ('lib', 'other'):
        run(program('gcc'), '-g', '-O0', '-shared', '-fPIC', '-ftls-model=global-dynamic', '-o', f'{name}.so',
            f'{name}.c', seconds=60).ok()
    run(program('gcc'), '-g', '-O0', '-w', '-pthread', *options, '-o', 'app', 'app.c', seconds=60).ok()


def values(out):
    return re.findall(r'^\$\d+ = (\d+)$', out, re.MULTILINE)


def test_each_thread_has_its_own(tmp):
    build(tmp)
    out = by_stdio('./app', 'break standing', 'continue', 'thread apply all print number',
                   'thread apply all print padding[0]', 'thread 1', 'set var number = 55',
                   'thread apply all print number', 'kill').ok().out
    check_equal(values(out), ['102', '101', '100', '1', '1', '1', '102', '101', '55'], 'values')


def test_threads_are_found_by_what_the_program_knows_them_by(tmp):
    build(tmp)
    numbers = ' + '.join(f'str(gdb.selected_inferior().thread_from_handle(gdb.parse_and_eval("threads[{i}]")).num)'
                         for i in (1, 0))
    out = by_stdio('./app', 'break standing', 'continue', 'up', f'python print("threads", {numbers})', 'kill').ok().out
    check_matches(out, '^threads 32$')


def test_a_library_that_came_later(tmp):
    """It has no block in a thread that has not used it."""
    build(tmp)
    out = by_stdio('./app ./lib.so', 'break standing', 'continue', 'thread 2', 'print theirs', 'thread 1', 'kill')
    check_equal(values(out.ok().out), ['77'], 'value of the thread that has used it')
    refused = by_stdio('./app ./lib.so', 'break standing', 'continue', 'thread 3', 'print theirs')
    check_matches(refused.out + refused.err, 'thread-local')
    check_equal(values(refused.out), [], 'value of one that has not')


def test_a_library_that_has_the_number_of_another(tmp):
    """A thread that has used the first one has no block of the second."""
    build(tmp)
    out = by_stdio('./app ./lib.so ./other.so', 'break standing', 'continue', 'print others', 'kill')
    check_equal(values(out.ok().out), ['88'], 'value of the thread that has used it')
    refused = by_stdio('./app ./lib.so ./other.so', 'break standing', 'continue', 'thread 2', 'print others')
    check_matches(refused.out + refused.err, 'thread-local')
    check_equal(values(refused.out), [], 'value of one that has not')


def test_a_static_program(tmp):
    build(tmp, '-static')
    out = by_stdio('./app', 'break standing', 'continue', 'thread apply all print number', 'kill').ok().out
    check_equal(values(out), ['102', '101', '100'], 'values')


def test_a_running_process(tmp):
    build(tmp)
    process = start('./app')
    process.wait_for('^ready$')
    stub, path = offer('--pid', process.pid)
    out = gdb(f'target remote {path}', 'thread apply all print number').ok().out
    check_equal(values(out), ['102', '101', '100'], 'values')
    stub.end().ok()


def test_symbols_are_whatever_the_client_says(tmp):
    """Wrong ones give errors, and hurt nothing."""
    build(tmp)
    process = start('./app')
    process.wait_for('^ready$')
    stub, path = offer('--pid', process.pid)
    client = Client(path)
    client.begin()
    thread = f'p{process.pid:x}.{process.pid:x}'
    check_equal(client.ask(f'qGetTLSAddr:{thread},0,1000'), 'E01', 'an address without symbols')
    stack = int.from_bytes(bytes.fromhex(client.ask('p7')), 'little')
    for address in ('', '0', 'ffffffffffffffff', f'{stack:x}'):
        reply, n = client.ask('qSymbol::'), 0
        while reply != 'OK' and n < 50:
            reply, n = client.ask(f'qSymbol:{address}:{reply.removeprefix("qSymbol:")}'), n + 1
        check(n < 50, 'the stub asks for a bounded number of symbols')
        for map in (0, 1, 0xffffffffffffffff):
            check(client.ask(f'qGetTLSAddr:{thread},0,{map:x}')[0] in 'E0123456789abcdef', 'an answer')
    for text in ('', f'{thread}', f'{thread},0', f'{thread},0,', f'{thread},x,0', f'{thread},0,0,0', '-1,0,0', '0,0,0',
                 'p1.1,0,0'):
        check_equal(client.ask(f'qGetTLSAddr:{text}'), 'E01', f'answer to {text}')
    for text in ('', '0', '0:', '0:6', '0:66', ':66', '::', '0:5f7468'):
        check_equal(client.ask(f'qSymbol:{text}'), 'OK', f'answer to {text}')
    client.close()
    stub.end().ok()
    check(process.is_alive(), 'the program lives')
