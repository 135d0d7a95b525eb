/* Stacks of this very process, beside what the compiler's own unwinder says of them. */
#include "stack/stack.h"

#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"

static bool read_self(void *context, uint64_t address, void *data, size_t size)
{
	const struct iovec to = { data, size }, from = { (void *)(uintptr_t)address, size };

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)size;
}

static struct kymo_stack_thread thread_at(const ucontext_t *c)
{
	const greg_t *g = c->uc_mcontext.gregs;

	return (struct kymo_stack_thread){
		.tid = getpid(),
		.pid = getpid(),
		.read = read_self,
		.registers = { .rbx = (uint64_t)g[REG_RBX],
			       .rbp = (uint64_t)g[REG_RBP],
			       .rsp = (uint64_t)g[REG_RSP],
			       .rip = (uint64_t)g[REG_RIP],
			       .r12 = (uint64_t)g[REG_R12],
			       .r13 = (uint64_t)g[REG_R13],
			       .r14 = (uint64_t)g[REG_R14],
			       .r15 = (uint64_t)g[REG_R15],
			       .cs = 0x33 },
	};
}

static struct kymo_stacks *stacks;
static struct kymo_stack_frame frames[KYMO_STACK_MAX];
static void *expected[KYMO_STACK_MAX];
static size_t n_frames;
static int n_expected;

/* Both see the same callers; the innermost frame is at two places of one function. The sanitizers have backtrace() for
 * themselves, so what it says of itself is not looked at. */
static __attribute__((noinline)) void take(void)
{
	struct kymo_stack_thread thread;
	ucontext_t context;

	assert_int_equal(getcontext(&context), 0);
	thread = thread_at(&context);
	n_frames = kymo_stacks_take(stacks, &thread, frames);
	n_expected = backtrace(expected, KYMO_STACK_MAX);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void level(int n)
{
	char room[100];

	__asm__ volatile("" : : "r"(room) : "memory");
	if (n)
		level(n - 1);
	else
		take();
	__asm__ volatile("" ::: "memory");
}

static uint64_t low_bits(uint64_t x)
{
	return x & 0xfff;
}

/* By the offset in the page, as one is linked and the other is where it was loaded. */
static void check_same(void)
{
	int skip = n_expected - (int)n_frames;

	assert_in_range(n_frames, 3, KYMO_STACK_MAX - 1);
	assert_in_range(skip + 1, 0, 2);
	for (size_t i = 1; i < n_frames; i++)
		assert_int_equal(low_bits(frames[i].address), low_bits((uint64_t)(uintptr_t)expected[(int)i + skip]));
}

static void check_names(const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		assert_non_null(frames[i].function);
		assert_string_equal(frames[i].function, names[i]);
		assert_non_null(strstr(frames[i].file, "unit-stack-stack"));
	}
}

static void test_nested_functions_are_seen_in_their_order(void **state)
{
	static const char *const names[] = { "take",  "level", "level",
					     "level", "level", "test_nested_functions_are_seen_in_their_order" };

	level(3);
	check_same();
	check_names(names, kymo_countof(names));
}

static void on_signal(int number)
{
	take();
	__asm__ volatile("" ::: "memory");
}

static void test_a_signal_handler_leads_to_what_it_interrupted(void **state)
{
	bool found = false;

	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	check_same();
	assert_string_equal(frames[1].function, "on_signal");
	for (size_t i = 0; i < n_frames; i++)
		found |= frames[i].function &&
			 !strcmp(frames[i].function, "test_a_signal_handler_leads_to_what_it_interrupted");
	assert_true(found);
}

static void test_a_stack_is_bounded(void **state)
{
	level(99);
	check_same();
	level(90);
	level(99);
	assert_in_range(n_frames, 100, KYMO_STACK_MAX - 1);
}

/* Words that look like frames, all over: pointers into code, and into the stack. */
static void test_stacks_of_anything_end(void **state)
{
	const size_t size = 1 << 20;
	uint64_t *words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct kymo_stack_thread thread;
	ucontext_t context;
	unsigned int seed = 1;

	assert_ptr_not_equal(words, MAP_FAILED);
	assert_int_equal(getcontext(&context), 0);
	for (size_t i = 0; i < size / sizeof(*words); i++)
		words[i] = i % 2 ? (uint64_t)(uintptr_t)take + 8 + rand_r(&seed) % 4096
				 : (uint64_t)(uintptr_t)words + 8 * (rand_r(&seed) % (size / 8));
	for (size_t i = 0; i < 1000; i++) {
		thread = thread_at(&context);
		thread.registers.rsp = (uint64_t)(uintptr_t)words + 8 * (rand_r(&seed) % (size / 8));
		thread.registers.rbp = (uint64_t)(uintptr_t)words + 8 * (rand_r(&seed) % (size / 8));
		thread.registers.rip = (uint64_t)(uintptr_t)take + rand_r(&seed) % 4096;
		n_frames = kymo_stacks_take(stacks, &thread, frames);
		assert_in_range(n_frames, 1, KYMO_STACK_MAX);
	}
	munmap(words, size);
}

static void test_code_of_no_file_is_told_by_its_address(void **state)
{
	/* push %rbp; mov %rsp,%rbp; call *%rdi; pop %rbp; ret */
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
	uint8_t *made = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(made, MAP_FAILED);
	memcpy(made, code, sizeof(code));
	kymo_stacks_changed(stacks, getpid());
	((void (*)(void (*)(void)))(uintptr_t)made)(take);
	assert_null(frames[1].file);
	assert_null(frames[1].function);
	assert_int_equal(frames[1].address, (uintptr_t)made + 6);
	assert_false(frames[1].is_lost);
	munmap(made, 4096);
}

static void test_a_place_that_is_not_code_is_lost(void **state)
{
	struct kymo_stack_thread thread;
	ucontext_t context;

	assert_int_equal(getcontext(&context), 0);
	thread = thread_at(&context);
	thread.registers.rip = 42;
	assert_int_equal(kymo_stacks_take(stacks, &thread, frames), 1);
	assert_true(frames[0].is_lost);
	assert_int_equal(frames[0].address, 42);
}

static int create(void **state)
{
	stacks = kymo_stacks_create();
	return stacks ? 0 : -1;
}

static int destroy(void **state)
{
	kymo_stacks_forget(stacks, getpid());
	kymo_stacks_destroy(stacks);
	kymo_stacks_destroy(NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested_functions_are_seen_in_their_order),
		cmocka_unit_test(test_a_signal_handler_leads_to_what_it_interrupted),
		cmocka_unit_test(test_a_stack_is_bounded),
		cmocka_unit_test(test_stacks_of_anything_end),
		cmocka_unit_test(test_code_of_no_file_is_told_by_its_address),
		cmocka_unit_test(test_a_place_that_is_not_code_is_lost),
	};

	return cmocka_run_group_tests(tests, create, destroy);
}
