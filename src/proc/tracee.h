/*
 * What is asked of one stopped thread. By ptrace, or, where the process stands still by a hub of somebody else's, by a message to that (joined.c).
 * All give negative errno values: -ESRCH, it is gone; -EPIPE, the hub is.
 */
#ifndef KYMO_PROC_TRACEE_H
#define KYMO_PROC_TRACEE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct kymo_process;

/* ---- requests, by the tracer's own thread -------------------------------------------------------------------------------- */

/* What the kernel knows of a thread's restartable sequences, and whether its system calls are signals elsewhere than in one range. */
struct kymo_tracee_facts {
	uint64_t mask;			/* blocked signals */
	uint64_t rseq_pointer;
	uint32_t rseq_signature;
	int32_t rseq_error;		/* 0, or why the two above are not known */
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
int kymo_get_facts(pid_t tid, unsigned int which, struct kymo_tracee_facts *ret);	/* 0 for the others */
int kymo_get_xstate(pid_t tid, void *ret, size_t size, size_t *size_ret);
int kymo_set_mask(pid_t tid, uint64_t mask);

/* ---- the same, whoever is the tracer -------------------------------------------------------------------------------------- */

int kymo_tracee_set_registers(struct kymo_process *process, pid_t tid, const struct user_regs_struct *registers);
int kymo_tracee_facts(struct kymo_process *process, pid_t tid, unsigned int which, struct kymo_tracee_facts *ret);
int kymo_tracee_xstate(struct kymo_process *process, pid_t tid, void *ret, size_t size, size_t *size_ret);

/*
 * Set the registers for calls that are not its own, and then block its signals. `is_away_ret` says whether it has those registers: then it is to be given back, also when the second
 * step has failed.
 */
int kymo_tracee_borrow(struct kymo_process *process, pid_t tid, const struct user_regs_struct *call, bool *is_away_ret);

/* Set back what it had: a borrowed one. */
int kymo_tracee_give_back(struct kymo_process *process, pid_t tid, const struct user_regs_struct *own, uint64_t mask);

/* Run it from here (`call`; NULL: from where it is) to the exit of the next system call, and read its registers. GONE, BUSY after five seconds. */
struct kymo_error *kymo_tracee_call(struct kymo_process *process, pid_t tid, const struct user_regs_struct *call, struct user_regs_struct *ret);

#endif
