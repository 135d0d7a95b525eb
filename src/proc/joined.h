/* A process that is traced by a hub, somebody else's or that of a tree here, and stands still through that (docs/design/engines.md). hub_hold.c is the other side. */
#ifndef KYMO_PROC_JOINED_H
#define KYMO_PROC_JOINED_H

#include "proc/process.h"

struct kymo_joined;

/* Whether what thread `tracer` traces can be stopped through that, as far as can be told without asking. */
bool kymo_can_join(pid_t tracer);

/*
 * Stop all threads of the process, or the first one alone, through the hub that traces it. `joined_ret` is false where there is none: then it is to be stopped by ourselves, and no error is
 * given. BUSY, GONE. Behind it threads are in process->threads, and process->joined is set until kymo_joined_resume().
 */
struct kymo_error *kymo_joined_stop(struct kymo_process *process, bool is_first, bool *joined_ret);

/* The same for one of a tree: all threads, through its holder. It may stand still already, and is looked at anew. Behind an error it may be claimed still, until kymo_keep_resume(). */
struct kymo_error *kymo_joined_hold(struct kymo_process *process);

/* They run as they had been. */
void kymo_joined_resume(struct kymo_process *process);

/* Of stopped threads; see tracee.h. */
int kymo_joined_set_registers(struct kymo_joined *joined, pid_t tid, const struct user_regs_struct *registers);
int kymo_joined_facts(const struct kymo_joined *joined, pid_t tid, unsigned int which, struct kymo_tracee_facts *ret);
int kymo_joined_xstate(struct kymo_joined *joined, pid_t tid, void *ret, size_t size, size_t *size_ret);
int kymo_joined_borrow(struct kymo_joined *joined, pid_t tid, const struct user_regs_struct *call);
int kymo_joined_give_back(struct kymo_joined *joined, pid_t tid);
int kymo_joined_call(struct kymo_joined *joined, pid_t tid, const struct user_regs_struct *call, struct user_regs_struct *ret);

/* Whether memory is to be written by the next one; else as that of any process. */
bool kymo_joined_writes(const struct kymo_joined *joined);

/* As kymo_process_write(), and only as long as the process stands still. */
int kymo_joined_write(struct kymo_joined *joined, uint64_t address, const void *data, size_t size);

/* BUSY: the hub has ended. */
struct kymo_error *kymo_joined_lost(const struct kymo_process *process);

#endif
