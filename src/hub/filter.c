/*
 * The seccomp filter of commands that are launched with picked calls: which calls stop their threads.
 * docs/internals/engines.md, "Picked calls".
 *
 * The filter looks at the number and the architecture, and for clone() at the flags. So the kernel (5.11 and later)
 * finds out which numbers always pass when the filter is installed, and does not run it for those. For older kernels
 * the filter is a binary search.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hub/filter.h"
#include "kymo/engine.h"

#define PASS SECCOMP_RET_ALLOW
#define PICK (SECCOMP_RET_TRACE | HUB_FILTER_MARK)

_Static_assert(KYMO_CALL_NUMBERS * 3 + 16 < HUB_FILTER_MAX && HUB_FILTER_MAX <= BPF_MAXINSNS,
	       "room for runs of one number each");

struct program {
	struct sock_filter *at;
	size_t n;
};

static void put_jump(struct program *program, uint16_t code, uint32_t k, size_t yes, size_t no)
{
	program->at[program->n++] = (struct sock_filter)BPF_JUMP(code, k, (uint8_t)yes, (uint8_t)no);
}

static bool is_picked(const uint64_t *calls, unsigned int number)
{
	return calls[number / 64] >> (number % 64) & 1;
}

/* Numbers from starts[first] to below starts[end] go the same way from each start to the next. */
static void emit_search(struct program *program, const uint64_t *calls, const uint16_t *starts, size_t first,
			size_t end)
{
	const size_t middle = first + (end - first) / 2, at = program->n;
	size_t left;

	if (end - first == 1) {
		put_jump(program, BPF_RET | BPF_K, is_picked(calls, starts[first]) ? PICK : PASS, 0, 0);
		return;
	}
	program->n += 2;
	emit_search(program, calls, starts, first, middle);
	left = program->n - at - 2;
	program->n = at;
	put_jump(program, BPF_JMP | BPF_JGE | BPF_K, starts[middle], 0, 1);
	put_jump(program, BPF_JMP | BPF_JA, (uint32_t)left, 0, 0);
	program->n += left;
	emit_search(program, calls, starts, middle, end);
}

static void emit_load(struct program *program, size_t offset)
{
	put_jump(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

size_t hub_filter_make(const uint64_t *calls, struct sock_filter *out)
{
	struct program program = { out, 0 };
	uint16_t starts[KYMO_CALL_NUMBERS];
	size_t n = 0;

	for (unsigned int i = 0; i < KYMO_CALL_NUMBERS; i++)
		if (!i || is_picked(calls, i) != is_picked(calls, i - 1))
			starts[n++] = (uint16_t)i;
	emit_load(&program, offsetof(struct seccomp_data, arch));
	put_jump(&program, BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 0, 2);
	emit_load(&program, offsetof(struct seccomp_data, nr));
	put_jump(&program, BPF_JMP | BPF_JGE | BPF_K, KYMO_CALL_NUMBERS, 0, 1); /* x32's, too */
	put_jump(&program, BPF_RET | BPF_K, PICK, 0, 0);
	/* A child that had no tracer could not make picked calls. */
	put_jump(&program, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1);
	put_jump(&program, BPF_RET | BPF_K, PICK, 0, 0);
	put_jump(&program, BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4);
	emit_load(&program, offsetof(struct seccomp_data, args));
	put_jump(&program, BPF_JMP | BPF_JSET | BPF_K, CLONE_UNTRACED, 0, 1);
	put_jump(&program, BPF_RET | BPF_K, PICK, 0, 0);
	emit_load(&program, offsetof(struct seccomp_data, nr));
	emit_search(&program, calls, starts, 0, n);
	return program.n;
}

int hub_filter_install(const struct sock_filter *filter, size_t n)
{
	struct sock_fprog program = { (unsigned short)n, (struct sock_filter *)(uintptr_t)filter };

	if (!syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program))
		return 0;
	if (errno != EACCES || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) ? -errno : 0;
}
