/* Requests about one stopped thread, by its tracer's own thread: a hub's. All return negative errno values; -ESRCH: it
 * has ended. Recorders ask by joined.h. */
#ifndef KYMO_HUB_THREAD_TRACEE_H
#define KYMO_HUB_THREAD_TRACEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

/* What the kernel knows of a thread's restartable sequences, and whether its system calls outside of one range are
 * signals. */
struct kymo_tracee_facts {
	uint64_t mask; /* blocked signals */
	uint64_t rseq_pointer;
	uint32_t rseq_signature;
	int32_t rseq_error; /* 0, or why the two above are not known */
	uint32_t dispatches_calls;
	uint32_t unused;
};

/* Which of them are wanted: a request each. */
enum {
	KYMO_FACT_MASK = 1 << 0,
	KYMO_FACT_RSEQ = 1 << 1,
	KYMO_FACT_DISPATCH = 1 << 2,
	KYMO_FACTS_ALL = KYMO_FACT_MASK | KYMO_FACT_RSEQ | KYMO_FACT_DISPATCH,
};

int kymo_get_registers(pid_t tid, struct user_regs_struct *ret);
int kymo_set_registers(pid_t tid, const struct user_regs_struct *registers);
int kymo_get_facts(pid_t tid, unsigned int which, struct kymo_tracee_facts *ret); /* 0 for the others */
int kymo_get_xstate(pid_t tid, void *ret, size_t size, size_t *size_ret);
int kymo_set_xstate(pid_t tid, const void *image, size_t size);
int kymo_set_mask(pid_t tid, uint64_t mask);

#endif
