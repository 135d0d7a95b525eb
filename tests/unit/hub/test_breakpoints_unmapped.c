/* Breakpoints in code that a program unmaps: what it maps there afterwards is its own. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "breakpoints.h"

#define SPOT 0x200000000000ul
#define PAGE 4096ul
#define TYPE_AT (SPOT + 0x10) /* the type of an ELF file, which is neither 0 nor a trap */

enum { CODE = 1, TRAPS, SAME };

static void map_code(void)
{
	const int fd = open("/proc/self/exe", O_RDONLY);

	mmap((void *)SPOT, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
	close(fd);
}

static void map_data(int byte)
{
	munmap((void *)SPOT, PAGE);
	mmap((void *)SPOT, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memset((void *)SPOT, byte, PAGE);
}

/* Does what `go` says, and says in `seen` what is done. */
static int mapping(struct shared *shared)
{
	map_code();
	const int original = *(const uint8_t *)TYPE_AT;

	shared->seen = CODE;
	shared->ready = 1;
	while (!shared->is_over) {
		const int go = shared->go;

		if (go && go != shared->seen) {
			if (go == CODE)
				map_code();
			else
				map_data(go == TRAPS ? TRAP : original);
			shared->seen = go;
		}
		shared->count++;
		usleep(1000);
	}
	return 0;
}

static void change(struct fixture *f, int to)
{
	f->shared->go = to;
	eventually(f->shared->seen == to);
}

static uint8_t byte_of(const struct fixture *f)
{
	uint8_t byte = 0;
	char name[64];
	int fd;

	snprintf(name, sizeof(name), "/proc/%d/mem", f->pid);
	fd = open(name, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, TYPE_AT), 1);
	close(fd);
	return byte;
}

static struct kymo_engine *begin_with_breakpoint(struct fixture *f, uint8_t *original_ret)
{
	struct kymo_engine *engine;

	begin(f, mapping);
	*original_ret = byte_of(f);
	engine = breaker(f->hub, f->pid, &f->book);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, TYPE_AT), 0);
	eventually(byte_of(f) == TRAP);
	return engine;
}

/* All threads stand still, and go on. */
static void stop_and_go(struct fixture *f, struct kymo_engine *engine)
{
	eventually(!kymo_engine_control(engine, KYMO_ACTION_STOP));
	assert_int_equal(kymo_engine_control(engine, KYMO_ACTION_RESUME), 0);
	runs(f);
}

static void data_is_as_it_was_when_it_is_removed(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;
	uint8_t original;

	engine = begin_with_breakpoint(&f, &original);
	change(&f, TRAPS);
	assert_int_equal(kymo_engine_remove_breakpoint(engine, TYPE_AT), 0);
	assert_int_equal(byte_of(&f), TRAP);
	kymo_engine_put(engine);
	end(&f);
}

static void data_is_as_it_was_when_its_engine_goes(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;
	uint8_t original;

	engine = begin_with_breakpoint(&f, &original);
	change(&f, TRAPS);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
	assert_int_equal(byte_of(&f), TRAP);
	f.hub = new_hub();
	end(&f);
}

static void data_is_as_it_was_after_a_stop(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;
	uint8_t original, seen;

	engine = begin_with_breakpoint(&f, &original);
	change(&f, SAME);
	stop_and_go(&f, engine);
	assert_int_equal(byte_of(&f), original);
	change(&f, TRAPS);
	stop_and_go(&f, engine);
	assert_int_equal(byte_of(&f), TRAP);
	assert_int_equal(kymo_engine_read(engine, TYPE_AT, &seen, 1), 0);
	assert_int_equal(seen, TRAP);
	kymo_engine_put(engine);
	end(&f);
}

static void code_that_comes_again_gets_it_again(void **state)
{
	struct kymo_engine *engine, *second;
	struct fixture f;
	uint8_t original, seen;

	engine = begin_with_breakpoint(&f, &original);
	change(&f, TRAPS);
	stop_and_go(&f, engine);
	change(&f, CODE);
	second = breaker(f.hub, f.pid, &f.other);
	assert_int_equal(kymo_engine_insert_breakpoint(second, TYPE_AT), 0);
	eventually(byte_of(&f) == TRAP);
	assert_int_equal(kymo_engine_read(second, TYPE_AT, &seen, 1), 0);
	assert_int_equal(seen, original);
	assert_int_equal(kymo_engine_remove_breakpoint(engine, TYPE_AT), 0);
	assert_int_equal(byte_of(&f), TRAP);
	assert_int_equal(kymo_engine_remove_breakpoint(second, TYPE_AT), 0);
	assert_int_equal(byte_of(&f), original);
	kymo_engine_put(engine);
	kymo_engine_put(second);
	end(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(data_is_as_it_was_when_it_is_removed),
		cmocka_unit_test(data_is_as_it_was_when_its_engine_goes),
		cmocka_unit_test(data_is_as_it_was_after_a_stop),
		cmocka_unit_test(code_that_comes_again_gets_it_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
