/* Frames on which a thread that makes remote calls finds home, how a thread on such a frame is known, and batches. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/batch.h"
#include "arch/remote.h"

#define XSTATE 2696
#define TOP UINT64_C(0x7ffc12345678)

static const uint8_t call_code[KYMO_REMOTE_CODE] = { 0x0f, 0x05, 0xc3 }, ret_code[KYMO_REMOTE_CODE] = { 0xc3, 0x90 };
static const uint8_t eax_code[KYMO_REMOTE_CODE] = { 0xb8, 15, 0, 0, 0, 0x0f, 0x05 },
		     pop_code[KYMO_REMOTE_CODE] = { 0x58, 0xc3 };
static const uint8_t rax_code[KYMO_REMOTE_CODE] = { 0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05 },
		     other_code[KYMO_REMOTE_CODE] = { 0x55, 0x48, 0x89, 0xe5 };

/* Memory below TOP with a frame in it. */
struct stack {
	uint64_t sp; /* where the frame begins */
	uint8_t bytes[8192];
};

static void put_frame(struct stack *stack, const struct kymo_gadgets *gadgets)
{
	const struct user_regs_struct home = {
		.rip = 0x401000, .rsp = TOP + 64, .rax = 7, .orig_rax = (uint64_t)-1, .eflags = 0x202
	};
	uint8_t frame[XSTATE + KYMO_REMOTE_FRAME_MAX], *xstate = calloc(1, XSTATE);
	int size;

	assert_non_null(xstate);
	size = kymo_remote_frame(&home, TOP, xstate, XSTATE, 0, gadgets, frame, sizeof(frame), &stack->sp);
	free(xstate);
	assert_true(size > 0 && stack->sp + (uint64_t)size <= TOP);
	memset(stack->bytes, 0x5a, sizeof(stack->bytes));
	memcpy(stack->bytes + sizeof(stack->bytes) - (TOP - stack->sp), frame, (size_t)size);
}

/* With the stack pointer `above` the frame's beginning. */
static bool is_away(const struct stack *stack, unsigned int above, const uint8_t *code)
{
	return kymo_remote_is_away(stack->bytes + sizeof(stack->bytes) - (TOP - stack->sp) + above - KYMO_REMOTE_BELOW,
				   code);
}

static void a_thread_before_in_or_after_the_call_is_away(void **state)
{
	struct stack stack;

	put_frame(&stack, &(struct kymo_gadgets){ .syscall = 0x7000, .sigreturn = 0x8000 });
	assert_true(is_away(&stack, 0, call_code));
	assert_true(is_away(&stack, 0, ret_code));
	assert_true(is_away(&stack, 8, eax_code));
	assert_true(is_away(&stack, 8, rax_code));
	assert_true(is_away(&stack, 8, call_code));
}

static void a_thread_that_gets_home_through_pop_rax_is_away(void **state)
{
	struct stack stack;

	put_frame(&stack, &(struct kymo_gadgets){ .syscall = 0x7000, .pop_rax = 0x9000 });
	assert_true(is_away(&stack, 0, call_code));
	assert_true(is_away(&stack, 0, ret_code));
	assert_true(is_away(&stack, 8, pop_code));
	assert_true(is_away(&stack, 16, ret_code));
	assert_true(is_away(&stack, 24, call_code));
}

static void a_thread_elsewhere_is_not_away(void **state)
{
	struct stack stack;

	put_frame(&stack, &(struct kymo_gadgets){ .syscall = 0x7000, .sigreturn = 0x8000 });
	assert_false(is_away(&stack, 0, other_code));
	assert_false(is_away(&stack, 16, call_code));
	assert_false(is_away(&stack, 512, ret_code));
	for (unsigned int at = 0; at < 48; at++) {
		struct stack other = stack;

		/* Each word that is looked at but the address of the way home, which may be any. */
		if (at < 8)
			continue;
		other.bytes[sizeof(other.bytes) - (TOP - stack.sp) + at] ^= 0x40;
		assert_false(is_away(&other, 0, call_code));
	}
}

static void a_frame_is_found_wherever_it_begins(void **state)
{
	struct stack stack;

	put_frame(&stack, &(struct kymo_gadgets){ .syscall = 0x7000, .sigreturn = 0x8000 });
	assert_true(kymo_remote_has_frame(stack.bytes, sizeof(stack.bytes)));
	assert_false(kymo_remote_has_frame(stack.bytes, sizeof(stack.bytes) - (TOP - stack.sp) + 64));
	memset(stack.bytes + sizeof(stack.bytes) - (TOP - stack.sp), 0, 64);
	assert_false(kymo_remote_has_frame(stack.bytes, sizeof(stack.bytes)));
}

static void a_thread_that_waits_in_a_call_of_its_own_is_not_away(void **state)
{
	assert_false(kymo_remote_may_be_away(&(struct user_regs_struct){ .orig_rax = 202, .rax = (uint64_t)-512 }));
	assert_false(kymo_remote_may_be_away(&(struct user_regs_struct){ .orig_rax = 35, .rax = (uint64_t)-516 }));
	assert_true(kymo_remote_may_be_away(&(struct user_regs_struct){ .orig_rax = 9, .rax = 0x7f0000000000 }));
	assert_true(kymo_remote_may_be_away(&(struct user_regs_struct){ .orig_rax = (uint64_t)-1, .rax = 9 }));
}

static struct user_regs_struct in_call(int64_t number, int64_t error)
{
	return (struct user_regs_struct){
		.orig_rax = (uint64_t)number, .rax = (uint64_t)-error, .rsi = 1, .rdx = 2, .r10 = 3
	};
}

static void what_becomes_of_a_sleep_is_told_by_its_call(void **state)
{
	static const struct {
		struct user_regs_struct registers;
		enum kymo_remote_sleep sleep;
	} table[] = {
		{ { .orig_rax = (uint64_t)-1, .rax = (uint64_t)-516 }, KYMO_REMOTE_AWAKE },
		{ { .orig_rax = 35, .rax = 0 }, KYMO_REMOTE_AWAKE },
		{ { .orig_rax = 0, .rax = (uint64_t)-512 }, KYMO_REMOTE_SLEEPS },
		{ { .orig_rax = 230, .rax = (uint64_t)-514, .rsi = 1 }, KYMO_REMOTE_SLEEPS },
		{ { .orig_rax = 35, .rax = (uint64_t)-516 }, KYMO_REMOTE_SLEEPS_ANEW },
		{ { .orig_rax = 230, .rax = (uint64_t)-516 }, KYMO_REMOTE_SLEEPS_ANEW },
		{ { .orig_rax = 7, .rax = (uint64_t)-516, .rdx = 100 }, KYMO_REMOTE_SLEEPS_ANEW },
		{ { .orig_rax = 7, .rax = (uint64_t)-516, .rdx = 0xffffffff }, KYMO_REMOTE_SLEEPS },
		{ { .orig_rax = 202, .rax = (uint64_t)-516, .rsi = 128, .r10 = 1 }, KYMO_REMOTE_SLEEPS_ANEW },
		{ { .orig_rax = 202, .rax = (uint64_t)-516, .rsi = 128 | 256 | 9, .r10 = 1 }, KYMO_REMOTE_SLEEPS },
		{ { .orig_rax = 219, .rax = (uint64_t)-516 }, KYMO_REMOTE_SLEEPS_ONCE },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(kymo_remote_sleep(&table[i].registers), table[i].sleep);
	assert_int_equal(kymo_remote_sleep_in(-1, (uint64_t[6]){ 0 }), KYMO_REMOTE_AWAKE);
	assert_int_equal(kymo_remote_sleep_in(202, (uint64_t[6]){ 0, 0, 0, 1 }), KYMO_REMOTE_SLEEPS_ANEW);
	assert_int_equal(kymo_remote_sleep_in(202, (uint64_t[6]){ 0 }), KYMO_REMOTE_SLEEPS);
}

static void a_restarted_call_is_named_by_the_instruction_before_it(void **state)
{
	static const struct {
		uint8_t code[KYMO_REMOTE_NAME];
		int64_t number, error, is;
	} table[] = {
		{ { 0xf1, 0x90, 0xb8, 35, 0, 0, 0, 0x0f, 0x05 }, 219, 516, 35 },
		{ { 0x48, 0xc7, 0xc0, 0xe6, 0, 0, 0, 0x0f, 0x05 }, 219, 516, 230 },
		{ { 0xf1, 0x41, 0xb8, 35, 0, 0, 0, 0x0f, 0x05 }, 219, 516, 219 }, /* mov $35,%r8d */
		{ { 0xf1, 0x90, 0xb8, 35, 1, 0, 0, 0x0f, 0x05 }, 219, 516, 219 },
		{ { 0xf1, 0x90, 0xb8, 0, 0, 0, 0, 0x0f, 0x05 }, 219, 516, 219 }, /* read() has no restart block */
		{ { 0xf1, 0x90, 0xb8, 35, 0, 0, 0, 0xcd, 0x80 }, 219, 516, 219 },
		{ { 0xf1, 0x90, 0xb8, 7, 0, 0, 0, 0x0f, 0x05 }, 35, 516, 35 },
		{ { 0xf1, 0x90, 0xb8, 7, 0, 0, 0, 0x0f, 0x05 }, 219, 4, 219 },
	};

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct user_regs_struct registers = in_call(table[i].number, table[i].error);

		assert_int_equal(kymo_remote_name_call(&registers, table[i].code), table[i].is != table[i].number);
		assert_int_equal(registers.orig_rax, table[i].is);
	}
}

/* ---- batches --------------------------------------------------------------------------------- */

static volatile sig_atomic_t n_signals;

static void count(int signal)
{
	n_signals = n_signals + 1;
}

/* This thread makes the calls. It is the first one of its process. */
static void make(struct kymo_batch_call *calls, size_t n)
{
	size_t size;
	const uint8_t *code = kymo_batch_code(&size);
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct user_regs_struct registers = { .eflags = 0x202 };
	uint64_t values[3], *words = values;
	void *code_at = at;

	assert_true(at != MAP_FAILED && size <= KYMO_BATCH_CODE_MAX);
	memcpy(at, code, size);
	kymo_batch_begin(&registers, (uintptr_t)at, 0, (uintptr_t)calls, n, SIGURG, &registers);
	assert_true(registers.rip == (uintptr_t)at);
	assert_true(kymo_batch_end(registers.rip) == (uintptr_t)at + size - 1);
	memcpy(values, (uint64_t[]){ registers.r12, registers.r13, registers.rbx }, sizeof(values));
	__asm__ volatile("sub $128,%%rsp\n\t"
			 "mov 0(%%rax),%%r12\n\t"
			 "mov 8(%%rax),%%r13\n\t"
			 "mov 16(%%rax),%%rbx\n\t"
			 "call *%%rdx\n\t"
			 "add $128,%%rsp"
			 : "+a"(words), "+d"(code_at)
			 :
			 : "rbx", "rcx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory",
			   "cc");
	munmap(at, size);
}

static void a_batch_ends_with_one_signal(void **state)
{
	struct kymo_batch_call calls[3] = { { .number = SYS_getppid, .result = -ECANCELED },
					    { .number = SYS_mmap,
					      .args = { 0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)-1,
							0 },
					      .result = -ECANCELED },
					    { .number = SYS_gettid, .result = -ECANCELED } };

	n_signals = 0;
	make(calls, 3);
	assert_int_equal(n_signals, 1);
	assert_int_equal(calls[0].result, getppid());
	assert_int_equal(calls[2].result, gettid());
	assert_int_equal(munmap((void *)(uintptr_t)calls[1].result, 4096), 0);
}

static void a_batch_ends_at_the_first_call_that_fails(void **state)
{
	struct kymo_batch_call calls[3] = { { .number = SYS_getpid, .result = -ECANCELED },
					    { .number = SYS_close, .args = { (uint64_t)-1 }, .result = -ECANCELED },
					    { .number = SYS_getpid, .result = -ECANCELED } };

	n_signals = 0;
	make(calls, 3);
	assert_int_equal(n_signals, 1);
	assert_int_equal(calls[0].result, getpid());
	assert_int_equal(calls[1].result, -EBADF);
	assert_int_equal(calls[2].result, -ECANCELED);
}

/* At each of its instructions: other code is as long. */
static void a_thread_in_a_batch_is_away(void **state)
{
	static const unsigned int starts[] = { 0, 4, 9, 34, 36, 41, 51, 56, 58, 63, 65, 71, 76, 78 };
	uint8_t code[KYMO_BATCH_CODE_MAX + KYMO_REMOTE_CODE] = { 0 };
	struct stack stack;
	size_t size;
	const uint8_t *whole = kymo_batch_code(&size);

	memcpy(code, whole, size);
	put_frame(&stack, &(struct kymo_gadgets){ .syscall = 0x7000, .sigreturn = 0x8000 });
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
		assert_true(is_away(&stack, 0, code + starts[i]));
	assert_false(is_away(&stack, 0, code + 2));
	assert_false(is_away(&stack, 512, code));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_thread_before_in_or_after_the_call_is_away),
		cmocka_unit_test(a_thread_that_gets_home_through_pop_rax_is_away),
		cmocka_unit_test(a_thread_elsewhere_is_not_away),
		cmocka_unit_test(a_frame_is_found_wherever_it_begins),
		cmocka_unit_test(a_thread_that_waits_in_a_call_of_its_own_is_not_away),
		cmocka_unit_test(what_becomes_of_a_sleep_is_told_by_its_call),
		cmocka_unit_test(a_restarted_call_is_named_by_the_instruction_before_it),
		cmocka_unit_test(a_batch_ends_with_one_signal),
		cmocka_unit_test(a_batch_ends_at_the_first_call_that_fails),
		cmocka_unit_test(a_thread_in_a_batch_is_away),
	};

	signal(SIGURG, count);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
