/* Looking at threads and changing them. */
#ifndef KYMO_HUB_LOOK_H
#define KYMO_HUB_LOOK_H

#include "hub/thread/task.h"

/* At the entry of a system call: make it another one. A negative errno. */
int hub_set_call(struct task *task, uint64_t number, const uint64_t args[6]);

/* Which stop at a system call it is; fills task->call. STOP_EVENT: neither, or it was killed. */
enum task_stop hub_read_call(struct task *task);

/* Rows of the table in local.c; include/kymo/engine.h has the contracts. */
int hub_local_prepare_examine(struct kymo_engine *engine, struct kymo_examiner *ret);
int hub_local_finish_examine(struct kymo_engine *engine, const struct kymo_examiner *examiner);
int hub_local_get_registers(struct kymo_engine *engine, struct user_regs_struct *ret);
int hub_local_set_registers(struct kymo_engine *engine, const struct user_regs_struct *registers);
int hub_local_set_syscall(struct kymo_engine *engine, uint64_t number, const uint64_t args[6]);
int hub_local_set_result(struct kymo_engine *engine, int64_t result);
int hub_local_set_signal(struct kymo_engine *engine, int signal, const siginfo_t *info);
int hub_local_read(struct kymo_engine *engine, uint64_t address, void *data, size_t size);
int hub_local_write(struct kymo_engine *engine, uint64_t address, const void *data, size_t size);

/* Whether its memory has breakpoints, which reading must not show. */
bool hub_has_breakpoints(struct kymo_engine *engine);

#endif
