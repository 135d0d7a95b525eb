/* The calls of include/kymo/engine.h on a hub of another process, or on an engine there: what a hub has that is a
 * connection. client_calls.c has the rows. */
#ifndef KYMO_HUB_REMOTE_OPS_H
#define KYMO_HUB_REMOTE_OPS_H

#include "kymo/engine.h"

struct hub_remote_ops {
	int (*attach)(struct kymo_hub *hub, pid_t tid, unsigned int flags, const struct kymo_engine_ops *ops,
		      void *data, struct kymo_engine **ret);
	int (*attach_process)(struct kymo_hub *hub, pid_t pid, unsigned int flags, const struct kymo_engine_ops *ops,
			      void *data, unsigned int events, size_t *n_ret);
	size_t (*detach_all)(struct kymo_hub *hub, const struct kymo_engine_ops *ops, const void *data);
	pid_t (*tid)(const struct kymo_engine *engine);
	pid_t (*pid)(const struct kymo_engine *engine);
	int (*set_events)(struct kymo_engine *engine, unsigned int events);
	int (*control)(struct kymo_engine *engine, enum kymo_action action);
	int (*barrier)(struct kymo_engine *engine);
	int (*prepare_examine)(struct kymo_engine *engine, struct kymo_examiner *ret);
	int (*finish_examine)(struct kymo_engine *engine, const struct kymo_examiner *examiner);
	int (*get_registers)(struct kymo_engine *engine, struct user_regs_struct *ret);
	int (*set_registers)(struct kymo_engine *engine, const struct user_regs_struct *registers);
	int (*set_syscall)(struct kymo_engine *engine, uint64_t number, const uint64_t args[6]);
	int (*set_result)(struct kymo_engine *engine, int64_t result);
	int (*read)(struct kymo_engine *engine, uint64_t address, void *data, size_t size);
	int (*write)(struct kymo_engine *engine, uint64_t address, const void *data, size_t size);
	int (*inject)(struct kymo_engine *engine, const siginfo_t *info);
	int (*insert_breakpoint)(struct kymo_engine *engine, uint64_t address);
	int (*remove_breakpoint)(struct kymo_engine *engine, uint64_t address);
	int (*watch)(struct kymo_engine *engine, enum kymo_watch watch, uint64_t address, size_t size,
		     unsigned int *slot_ret);
	int (*unwatch)(struct kymo_engine *engine, unsigned int slot);
	int (*list)(struct kymo_hub *hub, pid_t id, struct kymo_engine_info *infos, size_t max, size_t *n_ret);
	void (*destroy)(struct kymo_hub *hub); /* end the connection, and free */
};

#endif
