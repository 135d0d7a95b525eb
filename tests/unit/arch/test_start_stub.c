/* The start stub, run step by step: from each instruction a thread can be taken out, as if it had never been there. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/start_stub.h"
#include "base/cleanup.h"

#define SIZE 4096
#define SITE 64
#define STUB 2048
#define END (SITE + KYMO_START_CALL)
#define RED_ZONE 128

/* lea 0x2d0(%rdx), %rdi; mov $218, %eax; syscall; mov %eax, 0x2d0(%rdx) */
static const uint8_t plain[KYMO_START_CODE] = { 0x48, 0x8d, 0xba, 0xd0, 0x02, 0,    0,    0xb8, 0xda, 0,   0,
						0,    0x0f, 0x05, 0x89, 0x82, 0xd0, 0x02, 0,    0,    0x90 };

static void test_what_is_a_site(void **state)
{
	uint8_t code[KYMO_START_CODE];

	assert_true(kymo_start_is_site(plain));
	for (size_t i = 0; i < KYMO_START_CODE - 1; i++) {
		memcpy(code, plain, sizeof(code));
		code[i] ^= i == 2 || i == 15 ? 1 : 0x40;
		assert_false(kymo_start_is_site(code));
	}
	/* the same by %r10 */
	memcpy(code, plain, sizeof(code));
	code[0] = 0x49;
	memcpy(code + 14, "\x41\x89\x82\xd0\x02\x00\x00", 7);
	assert_true(kymo_start_is_site(code));
	code[14] = 0x40;
	assert_false(kymo_start_is_site(code));
}

static void test_one_site_alone_is_found(void **state)
{
	uint8_t text[256];

	memset(text, 0x90, sizeof(text));
	assert_int_equal(kymo_start_find_site(text, sizeof(text)), -ENOENT);
	memcpy(text + 100, plain, sizeof(plain));
	assert_int_equal(kymo_start_find_site(text, sizeof(text)), 107);
	assert_int_equal(kymo_start_find_site(text + 101, 100), -ENOENT);
	assert_int_equal(kymo_start_find_site(text, 120), -ENOENT);
	memcpy(text + 200, plain + 7, 7);
	assert_int_equal(kymo_start_find_site(text, sizeof(text)), -EEXIST);
}

static void test_a_stub_is_known_by_its_bytes(void **state)
{
	uint8_t stub[KYMO_START_STUB], jump[KYMO_START_JUMP], again[KYMO_START_JUMP];
	const uint64_t at = 0x7ffff7fe6120, site = 0x7ffff7fd1e83;
	uint64_t found;

	assert_int_equal(kymo_start_make_stub(at, site, SIGURG, stub, jump), 0);
	assert_true(kymo_start_is_stub(stub, at, &found, again));
	assert_int_equal(found, site);
	assert_memory_equal(jump, again, sizeof(jump));
	assert_memory_equal(stub, plain + KYMO_START_BEFORE, KYMO_START_CALL);
	for (size_t i = 0; i < sizeof(stub); i++) {
		uint8_t other[KYMO_START_STUB];
		bool is_any = i == 21 || (i >= 45 && i < 49); /* the signal, the distance */

		memcpy(other, stub, sizeof(other));
		other[i] ^= 1;
		assert_int_equal(kymo_start_is_stub(other, at, &found, again), is_any);
	}
	assert_int_equal(kymo_start_make_stub(at, at + ((uint64_t)1 << 32), SIGURG, stub, jump), -ERANGE);
}

/* ---- run ------------------------------------------------------------------------------------- */

static uint8_t *make_code(void)
{
	uint8_t *code = mmap(NULL, SIZE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t jump[KYMO_START_JUMP];

	assert_ptr_not_equal(code, MAP_FAILED);
	memset(code, 0xcc, SIZE);
	memcpy(code + SITE - KYMO_START_BEFORE, plain, sizeof(plain));
	assert_int_equal(kymo_start_make_stub((uint64_t)code + STUB, (uint64_t)code + SITE, SIGURG, code + STUB, jump),
			 0);
	memcpy(code + SITE, jump, sizeof(jump));
	return code;
}

/* A child that stands before the jump, with a value in each register. */
static pid_t begin(const uint8_t *code, struct user_regs_struct *ret)
{
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		_exit(1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(ptrace(PTRACE_GETREGS, child, 0, ret), 0);
	ret->rip = (uint64_t)code + SITE;
	ret->orig_rax = (unsigned long long)-1;
	ret->rdi = (uint64_t)code + SIZE / 2 - 64; /* where the kernel stores nothing yet */
	ret->rsi = 0x1111, ret->rdx = 0x2222, ret->rbx = 0x3333, ret->rbp = 0x4444, ret->r8 = 0x5555;
	ret->r9 = 0x6666, ret->r10 = 0x7777, ret->r12 = 0x8888, ret->r13 = 0x9999, ret->r14 = 0xaaaa, ret->r15 = 0xbbbb;
	ret->eflags |= 0x8d5 & ~0x100;
	assert_int_equal(ptrace(PTRACE_SETREGS, child, 0, ret), 0);
	return child;
}

static void read_stack(pid_t child, uint64_t sp, uint64_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		words[i] = (uint64_t)ptrace(PTRACE_PEEKDATA, child, sp + 8 * i, 0);
}

/* As they are behind the call in the linker's own code, or before it. */
static void check_outside(const struct user_regs_struct *outside, const struct user_regs_struct *before,
			  const uint8_t *code, bool has_called, pid_t child)
{
	struct user_regs_struct expected = *before;

	expected.rip = (uint64_t)code + (has_called ? END : SITE);
	expected.rax = has_called ? (unsigned long long)child : outside->rax;
	expected.rcx = outside->rcx;
	expected.r11 = outside->r11;
	expected.orig_rax = (unsigned long long)-1;
	expected.eflags = outside->eflags & 0x10100 ? outside->eflags : before->eflags;
	assert_int_equal(outside->eflags & 0x8d5, before->eflags & 0x8d5);
	assert_memory_equal(outside, &expected, sizeof(expected));
}

static void test_a_thread_can_be_taken_out_anywhere(void **state)
{
	uint64_t below[RED_ZONE / 8], still_below[RED_ZONE / 8], words[KYMO_START_WORDS];
	const uint8_t *code = make_code();
	struct user_regs_struct before, now, outside;
	pid_t child = begin(code, &before);
	unsigned int n = 0, n_signals = 0;
	bool has_called = false;
	int status;

	read_stack(child, before.rsp - RED_ZONE, below, kymo_countof(below));
	for (;;) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, child, 0, 0), 0);
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSTOPPED(status));
		assert_int_equal(ptrace(PTRACE_GETREGS, child, 0, &now), 0);
		if (WSTOPSIG(status) == SIGURG) {
			assert_int_equal(now.rip, kymo_start_told_at((uint64_t)code + STUB));
			n_signals++;
			continue;
		}
		assert_int_equal(WSTOPSIG(status), SIGTRAP);
		if (now.rip == (uint64_t)code + END)
			break;
		read_stack(child, now.rsp, words, kymo_countof(words));
		outside = now;
		assert_int_equal(kymo_start_leave_stub((uint64_t)code + STUB, (uint64_t)code + SITE, words, &outside,
						       &has_called),
				 0);
		check_outside(&outside, &before, code, has_called, child);
		n++;
	}
	assert_int_equal(n_signals, 1);
	assert_true(n > 15);
	now.orig_rax = (unsigned long long)-1;
	check_outside(&now, &before, code, true, child);
	read_stack(child, now.rsp - RED_ZONE, still_below, kymo_countof(below));
	assert_memory_equal(below, still_below, sizeof(below));
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	munmap((void *)code, SIZE);
}

static void test_nothing_else_is_an_instruction_of_it(void **state)
{
	const uint64_t stack[KYMO_START_WORDS] = { 0 };
	struct user_regs_struct registers = { 0 };
	bool has_called;

	for (uint64_t at = 49; at < 2 * KYMO_START_STUB; at++) {
		registers.rip = STUB + at;
		assert_int_equal(kymo_start_leave_stub(STUB, SITE, stack, &registers, &has_called), -EINVAL);
	}
}

/* Without a tracer the signal is nothing to the program. */
static void test_it_runs_without_a_tracer(void **state)
{
	const uint8_t *code = make_code();
	struct user_regs_struct before;
	pid_t child = begin(code, &before);
	uint8_t *end = (uint8_t *)code + END;
	int status;

	/* mov $0, %edi; mov $exit_group, %eax; syscall */
	static const uint8_t ending[] = { 0xbf, 0, 0, 0, 0, 0xb8, 0xe7, 0, 0, 0, 0x0f, 0x05 };

	for (size_t i = 0; i < sizeof(ending); i += 8) {
		uint64_t word = 0;

		memcpy(&word, ending + i, sizeof(ending) - i < 8 ? sizeof(ending) - i : 8);
		assert_int_equal(ptrace(PTRACE_POKETEXT, child, end + i, word), 0);
	}
	assert_int_equal(ptrace(PTRACE_DETACH, child, 0, 0), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	munmap((void *)code, SIZE);
}

/* A signal that the kernel refuses (here by its number): the thread comes out as it does after the call. */
static void test_a_refused_signal_changes_nothing(void **state)
{
	uint8_t *code = make_code(), jump[KYMO_START_JUMP];
	struct user_regs_struct before, after;
	int status;
	pid_t child;

	assert_int_equal(kymo_start_make_stub((uint64_t)code + STUB, (uint64_t)code + SITE, 65, code + STUB, jump), 0);
	memset(code + END, 0xcc, 1);
	child = begin(code, &before);
	assert_int_equal(ptrace(PTRACE_CONT, child, 0, 0), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
	assert_int_equal(ptrace(PTRACE_GETREGS, child, 0, &after), 0);
	after.rip--; /* after the breakpoint */
	check_outside(&after, &before, code, true, child);
	assert_int_equal(ptrace(PTRACE_KILL, child, 0, 0), 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	munmap(code, SIZE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_what_is_a_site),
		cmocka_unit_test(test_one_site_alone_is_found),
		cmocka_unit_test(test_a_stub_is_known_by_its_bytes),
		cmocka_unit_test(test_a_thread_can_be_taken_out_anywhere),
		cmocka_unit_test(test_nothing_else_is_an_instruction_of_it),
		cmocka_unit_test(test_it_runs_without_a_tracer),
		cmocka_unit_test(test_a_refused_signal_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
