"""Programs that are particular about addresses run as without kymo: sanitizers, reservations, other layouts, heaps and
stacks that grow."""
import os
import re
import shutil
import signal
from pathlib import Path

import processes
from kymotest import (KYMO, SOURCE, check, check_equal, check_same, event_counts, kymo, program, run, skip, start,
                      start_record, target, target_path)

SANITIZED = SOURCE / 'tests/e2e/life/sanitized.c'
CALLS = 1000  # of work(), before it reads a line
# not where the house looks for reports
TO_STDERR = {f'{name}_OPTIONS': 'log_path=stderr' for name in ('TSAN', 'MSAN', 'HWASAN')}


def build(compiler, name, *options):
    """A program with that sanitizer; the test is skipped where it does not run by itself."""
    program(compiler)
    done = run(compiler, '-O1', '-g', *options, SANITIZED, '-o', name, '-pthread', seconds=120)
    if done.status:
        skip(f'{compiler} {" ".join(options)} does not link here: {done.err.splitlines()[-1]}')
    bare = run(f'./{name}', env=TO_STDERR)
    if bare.status != 5:
        skip(f'the program does not run without kymo either: {(bare.err or bare.out or "no message").splitlines()[0]}')
    return bare


def check_sanitized(name, bare, *options, before=()):
    result = run(*before, KYMO, 'record', '-q', *options, '-p', f'./{name}:work', '-p', 'libc:getchar', '--',
                 f'./{name}').ended(5)
    check_same(result.out, bare.out, 'output')
    check_same(result.err, bare.err, 'errors')
    check_equal(event_counts(), {f'{name}:work': CALLS}, 'launched')
    process = start(*before, f'./{name}', 'wait')
    process.wait_for(r'^\d+ \d+$')
    recorder = start_record(process.pid, '-p', f'./{name}:work', '-o', 'attached')
    process.end(input='\n').ended(5)
    recorder.end().ok()
    check_equal(event_counts('attached'), {f'{name}:work': CALLS}, 'attached')


def test_thread_sanitizer(tmp):
    check_sanitized('tsan', build('gcc', 'tsan', '-fsanitize=thread'))


def test_memory_sanitizer(tmp):
    check_sanitized('msan', build('clang', 'msan', '-fsanitize=memory'))


def test_address_sanitizer(tmp):
    """Its search for leaks wants to be a tracer."""
    check_sanitized('asan', build('gcc', 'asan', '-fsanitize=address'), '--no-follow')


def test_hardware_address_sanitizer(tmp):
    check_sanitized('hwasan', build('clang', 'hwasan', '-fsanitize=hwaddress', '-Wl,--no-relax'), '--no-follow')


def test_layouts_from_the_bottom_and_without_chance(tmp):
    run('gcc', '-O1', SANITIZED, '-o', 'plain', '-pthread').ok()
    bare = run('./plain').ended(5)
    for layout in ('-R', ), ('-L', ), ('-R', '-L'):
        for each in 'kymo.data', 'kymo.data.old', 'attached':
            shutil.rmtree(each, ignore_errors=True)
        check_sanitized('plain', bare, before=('setarch', *layout))


def test_a_static_program_and_one_at_a_fixed_address(tmp):
    for name, options in ('static', ['-static']), ('fixed', ['-no-pie']), ('static-pie', ['-static-pie']):
        run('gcc', '-O1', *options, SANITIZED, '-o', name, '-pthread').ok()
        bare = run(f'./{name}').ended(5)
        result = run(KYMO, 'record', '-q', '-p', f'./{name}:work', '--', f'./{name}').ended(5)
        check_same(result.out, bare.out, name)
        check_equal(event_counts(), {f'{name}:work': CALLS}, name)
        for each in 'kymo.data', 'kymo.data.old':
            shutil.rmtree(each, ignore_errors=True)


RESERVING = r'''
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
__attribute__((noinline)) int work(int x) { __asm__ volatile("" ::: "memory"); return x * 2 + 1; }
static void reserve(unsigned long low, unsigned long high)
{
	for (unsigned long at = low; at < high; at += 1ul << 30)
		mmap((void *)at, 1ul << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}
static int deep(int n) { volatile char page[4000]; page[0] = (char)n; return n ? deep(n - 1) + page[0] * 0 + 1 : 0; }
int main(int argc, char **argv)
{
	unsigned long heap = 0;
	if (!strcmp(argv[1], "wine")) {		/* as Wine's preloader does, and a large cage as V8 does */
		mmap((void *)0x110000, 0x67ef0000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		mmap((void *)0x7f000000, 0x3000000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		mmap((void *)0x7ffffe000000, 0x1ff0000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
		mmap(NULL, 1ul << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	} else if (!strcmp(argv[1], "full")) {	/* but for little */
		reserve(0x10000000000, 0x540000000000);
		reserve(0x580000000000, 0x7d0000000000);
	}
	printf("ready\n");
	fflush(stdout);
	if (argc > 2)
		getchar();
	for (int i = 0; i < 1000; i++) {
		void *more = sbrk(64 << 10);
		if (more == (void *)-1) { printf("no more heap after %d\n", i); return 1; }
		memset(more, 1, 64 << 10);
		heap += (unsigned long)work(i);
	}
	printf("%lu %d\n", heap, deep(1900));
	return 0;
}
'''


def check_grown(kind):
    Path('grown.c').write_text(RESERVING)
    run('gcc', '-O0', 'grown.c', '-o', 'grown').ok()
    bare = run('./grown', kind).ok()
    result = run(KYMO, 'record', '-q', '-p', './grown:work', '-p', './grown:deep', '--', './grown', kind).ok()
    check_same(result.out, bare.out, 'output, launched')
    check_equal(event_counts(), {'grown:work': 1000, 'grown:deep': 1901}, 'launched')
    process = start('./grown', kind, 'wait')
    process.wait_for('ready')
    recorder = start_record(process.pid, '-p', './grown:work', '-o', 'attached')
    check_same(process.end(input='\n').ok().out, bare.out, 'output, attached')
    recorder.end().ok()
    check_equal(event_counts('attached'), {'grown:work': 1000}, 'attached')


def test_heap_and_stack_grow_as_far_as_without_kymo(tmp):
    """62 MiB by brk, and 7.6 MiB of stack, of 8."""
    check_grown('none')


def test_reservations_as_wine_and_v8_make_them(tmp):
    check_grown('wine')


def test_an_address_space_that_is_nearly_full(tmp):
    check_grown('full')


def test_a_program_that_reserves_a_cage(tmp):
    """node has one of V8's."""
    node = program('node')
    bare = run(node, '-e', 'console.log([1,2,3].map(x => x * 2).join())').ok()
    result = run(KYMO, 'record', '-q', '--no-follow', '-p', 'libc:malloc', '--', node, '-e',
                 'console.log([1,2,3].map(x => x * 2).join())', seconds=120).ok()
    check_same(result.out, bare.out, 'output')
    check(event_counts().get('libc:malloc', 0) > 100, 'it was recorded')


def test_memory_that_is_locked_grows_by_no_more_than_pads_need(tmp):
    Path('locks.c').write_text(r'''
#include <stdio.h>
#include <sys/mman.h>
int work(int x) { return x + 1; }
int main(void) { if (mlockall(MCL_CURRENT | MCL_FUTURE)) return 77; puts("ready"); fflush(stdout); getchar(); return work(1) == 2 ? 0 : 1; }
''')
    run('gcc', '-O0', 'locks.c', '-o', 'locks').ok()
    process = start('./locks')
    process.wait_for('ready')

    def locked():
        return int(re.search(r'VmLck:\s+(\d+)', Path(f'/proc/{process.pid}/status').read_text())[1])

    before = locked()
    recorder = start_record(process.pid, '-p', './locks:work')
    during = locked()
    process.end(input='\n').ok()
    recorder.end().ok()
    check_equal(event_counts(), {'locks:work': 1}, 'events')
    check(during - before <= 1024, f'{before} KiB were locked, and {during} while it is recorded')


def test_jumps_that_lie_far_apart_take_a_page_each_and_not_what_is_between_them(tmp):
    """Mappings of jumps are few, and reach over unwritten pages: gigabytes in most layouts."""
    process = target('marked', '-w', 1)
    functions = ('mark_*', 'do_round', 'compute_*', 'on_usr1')
    recorder = start_record(process.pid, '-q', *(word for name in functions for word in ('-p', f'marked:{name}:*')))
    maps = [mapping for mapping in processes.maps(process.pid) if '/memfd:kymo-jumps' in mapping.path]
    check(maps, 'there are jumps apart from the pads')
    files = {
        found.st_ino: found.st_blocks * 512
        for found in (os.stat(f'/proc/{process.pid}/map_files/{mapping.start:x}-{mapping.end:x}') for mapping in maps)
    }
    check(0 < sum(files.values()) < 16 << 20, 'bytes of memory', *files.values())
    recorder.end(signal.SIGINT).ok()
    process.end(signal.SIGKILL)


def build_many():
    """A jump in the place of each push ends in the next instruction, and so leads 5 MiB further than that of the
    function before."""
    functions = ''.join(f'.globl f{i}; .type f{i}, @function; f{i}: push %rbx; mov ${i * 0x5000 + 0x100000}, %ecx; '
                        f'mov %ecx, %eax; pop %rbx; ret; .size f{i}, . - f{i}\n' for i in range(40))
    Path('many.s').write_text(f'.text\n{functions}.section .note.GNU-stack, ""\n')
    Path('many.c').write_text('#include <stdio.h>\n' + ''.join(f'int f{i}(void); ' for i in range(40)) +
                              'int main(void) { puts("ready"); fflush(stdout); getchar(); '
                              f'return ({" + ".join(f"f{i}()" for i in range(40))}) == 1; }}\n')
    run('gcc', '-O2', 'many.c', 'many.s', '-o', 'many').ok()


def record_many(*words):
    """How many mappings its jumps take."""
    process = start(*words, './many')
    process.wait_for('ready')
    recorder = start_record(process.pid, '-q', '-p', './many:f?', '-p', './many:f??')
    maps = [mapping for mapping in processes.maps(process.pid) if '/memfd:kymo-jumps' in mapping.path]
    process.end(input='\n').ok()
    recorder.end().ok()
    check_equal(sum(event_counts().values()), 40, 'events')
    return len(maps)


def test_forty_jumps_take_few_mappings(tmp):
    """A thread is held while each is mapped."""
    build_many()
    n = record_many()
    check(0 < n <= 12, 'mappings of jumps', n)


def test_forty_jumps_take_few_addresses_where_these_have_a_limit(tmp):
    """What lies between jumps counts there."""
    build_many()
    n = record_many('prlimit', f'--as={16 << 30}')
    check(n > 12, 'mappings of jumps', n)


def test_a_limit_on_locked_memory_is_told(tmp):
    Path('locks.c').write_text(r'''
#include <stdio.h>
#include <sys/mman.h>
int work(int x) { return x + 1; }
int main(void) { if (mlockall(MCL_FUTURE)) return 77; puts("ready"); fflush(stdout); getchar(); return 0; }
''')
    run('gcc', '-O0', 'locks.c', '-o', 'locks').ok()
    process = start('setpriv', '--bounding-set=-ipc_lock', '--inh-caps=-ipc_lock', 'prlimit', '--memlock=8388608',
                    './locks')
    process.wait_for('ready')
    maps = Path(f'/proc/{process.pid}/maps').read_text()
    result = kymo('record', '--backend', 'inproc', '-p', './locks:work', '--pid', process.pid).ended(1)
    check(f'prlimit --pid {process.pid} --memlock=unlimited' in result.err, 'the sentence', result)
    check_same(Path(f'/proc/{process.pid}/maps').read_text(), maps, 'mappings')
    process.end(input='\n').ok()
