/* Engines of a hub: attaching, detaching, references. include/kymo/engine.h has the calls of its users. */
#ifndef KYMO_HUB_ENGINE_H
#define KYMO_HUB_ENGINE_H

#include <stdatomic.h>

#include "base/vec.h"
#include "kymo/engine.h"

struct hub_guest;
struct task;

#define EVENTS_OF_STOPS (KYMO_EVENTS_SYSCALL) /* that a thread stops for only if asked to when it is resumed */
#define HUB_MASK ((unsigned int)KYMO_EVENTS_ALL | KYMO_MASK_PICKED_CALLS)

struct kymo_engine {
	atomic_uint refs;
	struct kymo_hub *hub;
	struct task *task; /* NULL: detached and let go, or reaped */
	const struct kymo_engine_ops *ops;
	void *data;
	unsigned int events;
	enum kymo_action wants;
	bool owes_report, owes_step; /* quiesce is to report this at the next stop, when the step is done */
	bool is_detached;
	bool is_in_callback;
	bool has_later; /* requested by control() during a callback */
	enum kymo_action later;
	uint64_t born;                  /* hub->counts.events when it was attached */
	struct hub_guest *guest;        /* its client, with a reference; NULL: this process' own */
	uint64_t ops_key, data_key;     /* what MATCH_OPS and MATCH_DATA compare */
	bool may_break;                 /* KYMO_ATTACH_BREAKPOINTS */
	KYMO_VEC(uint64_t) breakpoints; /* addresses of the breakpoints that it has inserted */
	uint64_t name;                  /* between a hub and a client of it */
	struct kymo_engine *in_names;
};

/* What to attach or to look for. Keys of this process' engines are their addresses. */
struct hub_attach {
	pid_t id;
	unsigned int flags, events;
	const struct kymo_engine_ops *ops;
	void *data;
	uint64_t ops_key, data_key;
	struct hub_guest *guest;
	int proof;     /* of the guest: a descriptor, or -1 (remote/proof.h) */
	uint64_t name; /* the first engine's; others count on */
	struct kymo_engine **ret;
	size_t n;
};

/* Rows of the table in local.c; include/kymo/engine.h has the contracts. */
pid_t hub_local_tid(const struct kymo_engine *engine);
pid_t hub_local_pid(const struct kymo_engine *engine);
int hub_local_set_events(struct kymo_engine *engine, unsigned int events);
int hub_local_control(struct kymo_engine *engine, enum kymo_action action);
int hub_local_barrier(struct kymo_engine *engine);
int hub_local_try_barrier(struct kymo_engine *engine, uint64_t *event);

/* Put an engine from a thread, or at a time, that must not run its `release`. */
void hub_put_later(struct kymo_engine *engine);

/* kymo_engine_barrier() that returns -EAGAIN instead of waiting. `event` is 0 the first time, and then what this
 * function has set. */
int hub_try_barrier(struct kymo_engine *engine, uint64_t *event);

/* Remove it from the engines of its task. Lock held. */
void hub_detach_engine(struct kymo_hub *hub, struct kymo_engine *engine);

/* The event in progress is over: remove engines that were detached meanwhile. Lock held. */
void hub_purge_engines(struct kymo_hub *hub, struct task *task);

/* A new engine at the end of the task's, with one reference, the task's own. NULL: memory is out. Lock held. */
struct kymo_engine *hub_add_engine(struct kymo_hub *hub, struct task *task, const struct hub_attach *attach);

/* Whether no callback of it runs, and its thread was let go if it is detached. Lock held. */
bool hub_engine_is_through(const struct kymo_engine *engine);

/* The lock is released meanwhile; does what hub_drop() has put off. On the hub's thread, lock held. */
void hub_bury(struct kymo_hub *hub);

#endif
