/* A process that stands still through the hub that traces it, somebody else's or this thread's (docs/design/engines.md). hub_hold.c is the other side. */
#ifndef KYMO_PROC_JOINED_H
#define KYMO_PROC_JOINED_H

#include "proc/process.h"

struct kymo_joined;

/* Whether what thread `tracer` traces can be stopped through that, as far as can be told without asking. */
bool kymo_can_join(pid_t tracer);

/*
 * Stop the process through the hub of another process, which traces it: all threads if `second` is 0, else the first
 * thread and thread `second`, which may be the same. `joined_ret` is false where there is no such hub; then no error is
 * given, and the caller stops the process itself. Errors: BUSY, GONE. After success process->threads holds the threads,
 * and process->joined is set until kymo_joined_resume().
 */
struct kymo_error *kymo_joined_stop(struct kymo_process *process, pid_t second, bool *joined_ret);

/* The same through its holder, by this thread's hub. It may stand still already, and is looked at anew. Behind an error it may be claimed still, until kymo_joined_resume(). */
struct kymo_error *kymo_joined_hold(struct kymo_process *process, pid_t second);

/* They run as they had been. */
void kymo_joined_resume(struct kymo_process *process);

/* ---- of one stopped thread. Negative errno values: -ESRCH, it is gone; -EPIPE, the hub is -------------------------------- */

int kymo_joined_set_registers(struct kymo_joined *joined, pid_t tid, const struct user_regs_struct *registers);
int kymo_joined_facts(const struct kymo_joined *joined, pid_t tid, unsigned int which, struct kymo_tracee_facts *ret);
int kymo_joined_xstate(struct kymo_joined *joined, pid_t tid, void *ret, size_t size, size_t *size_ret);

/* Set its registers for calls that are not its own, and block its signals; give both back, to a borrowed one. */
int kymo_joined_borrow(struct kymo_joined *joined, pid_t tid, const struct user_regs_struct *call);
struct kymo_error *kymo_joined_give_back(struct kymo_process *process, pid_t tid);

/* Run it from here (`call`; NULL: from where it is) to the exit of the next system call, and read its registers. GONE, BUSY after five seconds. */
struct kymo_error *kymo_joined_call(struct kymo_process *process, pid_t tid, const struct user_regs_struct *call, struct user_regs_struct *ret);

/* Whether memory is to be written by the next one; else as that of any process. */
bool kymo_joined_writes(const struct kymo_joined *joined);

/* As kymo_process_write(), and only as long as the process stands still. */
int kymo_joined_write(struct kymo_joined *joined, uint64_t address, const void *data, size_t size);

#endif
