/* Breakpoints in code that a program unmaps: what it maps there afterwards is its own. */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "breakpoints.h"

#define SPOT 0x200000000000ul
#define PAGE 4096ul
#define TYPE_AT (SPOT + 0x10) /* the type of an ELF file, which is neither 0 nor a trap */

enum { CODE = 1, TRAPS, SAME, SHARED };

static void map_file(int protection, int flags)
{
	const int fd = open("/proc/self/exe", O_RDONLY);

	mmap((void *)SPOT, PAGE, protection, flags | MAP_FIXED, fd, 0);
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
	map_file(PROT_READ | PROT_EXEC, MAP_PRIVATE);
	const int original = *(const uint8_t *)TYPE_AT;

	shared->seen = CODE;
	shared->ready = 1;
	while (!shared->is_over) {
		const int go = shared->go;

		if (go && go != shared->seen) {
			if (go == CODE)
				map_file(PROT_READ | PROT_EXEC, MAP_PRIVATE);
			else if (go == SHARED)
				map_file(PROT_READ, MAP_SHARED);
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

/* All threads are stopped, and go on. */
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

/* What is written there is written to the file. */
static void the_file_itself_is_as_it_was(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;
	uint8_t original;

	engine = begin_with_breakpoint(&f, &original);
	change(&f, SHARED);
	stop_and_go(&f, engine);
	assert_int_equal(byte_of(&f), original);
	kymo_engine_put(engine);
	end(&f);
	begin(&f, mapping);
	assert_int_equal(byte_of(&f), original);
	end(&f);
}

static void its_owner_may_insert_it_again(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;
	uint8_t original;

	engine = begin_with_breakpoint(&f, &original);
	change(&f, TRAPS);
	stop_and_go(&f, engine);
	change(&f, CODE);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, TYPE_AT), -EEXIST);
	eventually(byte_of(&f) == TRAP);
	assert_int_equal(kymo_engine_remove_breakpoint(engine, TYPE_AT), 0);
	assert_int_equal(byte_of(&f), original);
	assert_int_equal(kymo_engine_remove_breakpoint(engine, TYPE_AT), -ENOENT);
	kymo_engine_put(engine);
	end(&f);
}

/* ---- copies ---------------------------------------------------------------------------------- */

__attribute__((noinline, section(".text.moved"), aligned(4096))) static void moved(struct shared *shared)
{
	__asm__ volatile("" ::: "memory");
	atomic_fetch_add(&shared->count, 1);
	__asm__ volatile(".skip 4000, 0x90"); /* nothing else is in its page */
}

/* As programs do that put their text into large pages: away, and back, in two steps. */
static int moving(struct shared *shared)
{
	static uint8_t kept[PAGE];

	shared->ready = 1;
	while (shared->go < 1)
		usleep(1000);
	memcpy(kept, (void *)moved, PAGE);
	mmap((void *)moved, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	shared->seen = 1;
	while (shared->go < 2)
		usleep(1000);
	memcpy((void *)moved, kept, PAGE);
	for (int i = 0; i < 10; i++)
		moved(shared);
	return 0;
}

static void begin_moving(struct fixture *f, struct kymo_engine **engine_ret)
{
	begin(f, moving);
	*engine_ret = breaker(f->hub, f->pid, &f->book);
	assert_int_equal(kymo_engine_insert_breakpoint(*engine_ret, at(moved)), 0);
	f->shared->go = 1;
	eventually(f->shared->seen);
}

static void a_copy_of_the_code_runs_when_it_was_removed_meanwhile(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin_moving(&f, &engine);
	assert_int_equal(kymo_engine_remove_breakpoint(engine, at(moved)), 0);
	f.shared->go = 2;
	assert_int_equal(end_of(f.pid), 0);
	assert_int_equal(f.shared->count, 10);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

static void a_copy_of_the_code_runs_with_it(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin_moving(&f, &engine);
	f.shared->go = 2;
	assert_int_equal(end_of(f.pid), 0);
	assert_int_equal(f.shared->count, 10);
	assert_int_equal(f.book.told[SIGNAL], 10);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

/* ---- children in the same memory ------------------------------------------------------------- */

static struct kymo_engine *of_child;

static unsigned int break_in_child(struct book *book, struct kymo_engine *engine, enum told told,
				   enum kymo_action action, void *data)
{
	struct fixture *f = book->more;

	if (told != CLONE)
		return KYMO_ACTION_RESUME;
	of_child = breaker(f->hub, ((const struct kymo_clone_report *)data)->child, &f->other);
	assert_int_equal(kymo_engine_insert_breakpoint(of_child, at(tick)), 0);
	return KYMO_ACTION_RESUME;
}

static int executing_by_vfork(struct shared *shared)
{
	pid_t pid;
	int status;

	shared->ready = 1;
	while (!shared->go)
		usleep(1000);
	pid = vfork();
	if (!pid) {
		execl("/bin/true", "true", NULL);
		_exit(9);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return 1;
	tick(shared);
	return 0;
}

static void an_exec_of_a_child_takes_it_from_its_maker(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;

	begin(&f, executing_by_vfork);
	f.book.hook = break_in_child;
	engine = breaker(f.hub, f.pid, &f.book);
	assert_int_equal(kymo_engine_set_events(engine, KYMO_EVENT_CLONE), 0);
	f.shared->go = 1;
	assert_int_equal(end_of(f.pid), 0);
	assert_int_equal(f.shared->count, 1);
	kymo_engine_put(of_child);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
}

/* ---- flags ----------------------------------------------------------------------------------- */

unsigned long push_flags(void);
void pop_flags(void);
__asm__(".pushsection .text\n"
	".globl push_flags\n.type push_flags, @function\npush_flags: pushfq\n pop %rax\n ret\n.size push_flags, "
	".-push_flags\n"
	".globl pop_flags\n.type pop_flags, @function\npop_flags: pushfq\n.globl pop_flags_at\npop_flags_at: popfq\n "
	"ret\n.size pop_flags, .-pop_flags\n"
	".popsection\n");
extern const char pop_flags_at[];

static int using_flags(struct shared *shared)
{
	shared->ready = 1;
	while (!shared->is_over) {
		shared->seen += push_flags() >> 8 & 1;
		pop_flags();
		shared->count++;
		usleep(1000);
	}
	return 0;
}

static void flags_are_the_programs_where_it_is_stepped_over(void **state)
{
	struct kymo_engine *engine;
	struct fixture f;
	int before;

	begin(&f, using_flags);
	engine = breaker(f.hub, f.pid, &f.book);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at((const void *)push_flags)), 0);
	assert_int_equal(kymo_engine_insert_breakpoint(engine, at(pop_flags_at)), 0);
	before = f.shared->count;
	eventually(f.shared->count > before + 20);
	kymo_engine_put(engine);
	kymo_hub_destroy(f.hub);
	runs(&f);
	assert_int_equal(f.shared->seen, 0);
	f.shared->is_over = 1;
	assert_int_equal(end_of(f.pid), 0);
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
		cmocka_unit_test(the_file_itself_is_as_it_was),
		cmocka_unit_test(code_that_comes_again_gets_it_again),
		cmocka_unit_test(its_owner_may_insert_it_again),
		cmocka_unit_test(a_copy_of_the_code_runs_when_it_was_removed_meanwhile),
		cmocka_unit_test(a_copy_of_the_code_runs_with_it),
		cmocka_unit_test(an_exec_of_a_child_takes_it_from_its_maker),
		cmocka_unit_test(flags_are_the_programs_where_it_is_stepped_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
