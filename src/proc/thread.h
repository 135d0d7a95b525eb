/* The stopped threads of a process. */
#ifndef KYMO_PROC_THREAD_H
#define KYMO_PROC_THREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

struct kymo_process;

/* A stopped thread. */
struct kymo_thread {
	pid_t tid;
	struct user_regs_struct registers; /* valid while stopped; change through the functions below */
};

/* All threads that are stopped: none while the process runs. */
const struct kymo_thread *kymo_process_threads(const struct kymo_process *process, size_t *n_ret);

/* What the kernel knows of a stopped thread's restartable sequences: where its struct rseq is (0: not registered), and
 * the signature. Negative errno; -EIO where the kernel can't tell. */
int kymo_thread_rseq(struct kymo_process *process, size_t index, uint64_t *pointer_ret, uint32_t *signature_ret);

/* Whether a stopped thread's system calls are signals where they are made outside of one range of code
 * (PR_SET_SYSCALL_USER_DISPATCH), as far as the kernel tells. */
bool kymo_thread_dispatches_calls(struct kymo_process *process, size_t index);

/* Give a stopped thread registers. Negative errno; -ESRCH when it died. */
int kymo_thread_set_registers(struct kymo_process *process, size_t index, const struct user_regs_struct *registers);

/* Move the program counter of a stopped thread. The same errors. */
int kymo_thread_set_pc(struct kymo_process *process, size_t index, uint64_t pc);

#endif
