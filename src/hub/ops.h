/*
 * The calls of include/kymo/engine.h, as a hub of one nature has them. There are two: a hub that traces by itself
 * (local.c), and a connection to the hub of another process (remote/client_calls.c). front.c checks what callers give,
 * and calls the row.
 *
 * Invariants.
 *
 *   1. `hub->ops` is set when the hub is allocated, before any thread but the creating one can see the hub, and is
 *      never changed. So threads, callbacks and signal handlers read it without a lock.
 *   2. A connection never becomes a hub that traces. A process that is to be traced by itself after its tracer has
 *      ended gets another hub. Engines keep the hub that made them, and fail with it.
 *   3. No code asks which nature a hub has. What depends on it is a row here.
 *   4. No row is NULL. What one nature does not do, it refuses in its row.
 *   5. Of a connection nothing of struct kymo_hub is set but `ops`, and it has no door, thread or task. struct
 *      hub_client has what a connection is made of.
 */
#ifndef KYMO_HUB_OPS_H
#define KYMO_HUB_OPS_H

#include "kymo/engine.h"

/* Arguments that front.c checks are valid here. */
struct hub_ops {
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
	int (*try_barrier)(struct kymo_engine *engine, uint64_t *event); /* hub_try_barrier() */
	int (*prepare_examine)(struct kymo_engine *engine, struct kymo_examiner *ret);
	int (*finish_examine)(struct kymo_engine *engine, const struct kymo_examiner *examiner);
	int (*get_registers)(struct kymo_engine *engine, struct user_regs_struct *ret);
	int (*set_registers)(struct kymo_engine *engine, const struct user_regs_struct *registers);
	int (*set_syscall)(struct kymo_engine *engine, uint64_t number, const uint64_t args[6]);
	int (*set_result)(struct kymo_engine *engine, int64_t result);
	int (*set_signal)(struct kymo_engine *engine, int signal, const siginfo_t *info);
	int (*get_xstate)(struct kymo_engine *engine, void *ret, size_t size, size_t *size_ret); /* regset.h */
	int (*set_xstate)(struct kymo_engine *engine, const void *image, size_t size);
	int (*read)(struct kymo_engine *engine, uint64_t address, void *data, size_t size);
	int (*write)(struct kymo_engine *engine, uint64_t address, const void *data, size_t size);
	int (*inject)(struct kymo_engine *engine, const siginfo_t *info);
	int (*insert_breakpoint)(struct kymo_engine *engine, uint64_t address);
	int (*remove_breakpoint)(struct kymo_engine *engine, uint64_t address);
	int (*hit_again)(struct kymo_engine *engine); /* regset.h */
	int (*watch)(struct kymo_engine *engine, enum kymo_watch watch, uint64_t address, size_t size,
		     unsigned int *slot_ret);
	int (*unwatch)(struct kymo_engine *engine, unsigned int slot);
	int (*list)(struct kymo_hub *hub, pid_t id, struct kymo_engine_info *infos, size_t max, size_t *n_ret);
	/* With a filter that picks `calls`, or none (NULL). */
	int (*launch)(struct kymo_hub *hub, unsigned int flags, char *const *argv, const uint64_t *calls,
		      pid_t *pid_ret);
	int (*start)(struct kymo_hub *hub, pid_t pid);
	int (*wait)(struct kymo_hub *hub, pid_t pid, int *status_ret);
	void (*run)(struct kymo_hub *hub, void (*run)(void *data), void *data); /* kymo_hub_run() */
	int (*may_serve)(const struct kymo_hub *hub);                           /* 0: it may get a door; -EALREADY */
	int (*leave)(struct kymo_hub *hub); /* what kymo_hub_hand_over() does before it waits, with those errors */
	int (*failure)(const struct kymo_hub *hub);
	void (*destroy)(struct kymo_hub *hub);
};

#endif
