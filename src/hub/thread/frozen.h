/* Threads of a frozen process. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_THREAD_FROZEN_H
#define KYMO_HUB_THREAD_FROZEN_H

#include <sys/user.h>

#include "kymo/engine.h"

struct hub_guest;
struct hub_process;
struct task;

/* A session that has a process frozen: a client that is connected, or a part of the hub's own process. What is not
 * constant is guarded by the hub's lock. */
struct hub_owner {
	struct kymo_hub *hub;
	int requests;            /* the socket by which it asks; -1: it is this process' own, on the hub's thread */
	pid_t frozen;            /* the process, or 0 */
	pid_t followed;          /* that it follows, or 0 */
	bool is_closed;          /* … and no other owner may freeze it for now */
	bool takes;              /* seizes threads that have no tracer, as long as it has them frozen */
	struct hub_guest *guest; /* the client whose it is, or NULL */
	int proof;               /* a client's, as long as it asks for a freeze (remote/proof.h) */
};

/* What is saved of a thread that makes remote calls for the owner of its process. Its engines read and write that. */
struct hub_remote_call {
	bool has_own; /* what follows is to be given back; else it is only run through a call */
	struct user_regs_struct own;
	uint64_t mask;
	uint8_t *xstate; /* NULL: it has no engines, or memory was out */
	size_t xstate_size;
	bool has_new_xstate;
	uint64_t call_at;     /* where its call is made, or its batch begins */
	uint64_t call_end;    /* where it is after its batch */
	int signal;           /* which it gets there; 0: it makes one call */
	unsigned int n_stops; /* which are to come before its call, or its batch, is made; 0: it is stopped */
	bool is_left;         /* the owner is gone */
};

/* A thread that must freeze stands where it is to. On the hub's thread, lock held, as the next. */
bool hub_is_still(const struct task *task);

/* Its registers, which were read: where they are asked for next, that is saved. */
void hub_freeze_note(struct task *task, const struct user_regs_struct *registers);

/* The process that an owner has frozen, or NULL. */
struct hub_process *hub_frozen_process(struct kymo_hub *hub, const struct hub_owner *owner);

/* Its follower owns it from now on, and its threads must freeze. */
void hub_freeze_take(struct hub_process *process);

/* Cancel a request that waits for the end of another owner's freeze, if it does. On the hub's thread, lock held, as the
 * next.
 */
void hub_freeze_cancel(struct kymo_hub *hub, struct hub_owner *owner);

/* The end of a freeze, on the hub's thread, lock held. */
void hub_freeze_end(struct kymo_hub *hub, struct hub_owner *owner);

/* It is ending, or is another program now: nothing is given back. */
void hub_forget_remote_call(struct task *task);

/* Its own registers, which its engines may change; NULL: it makes no remote call, or has those. */
struct user_regs_struct *hub_own_registers(const struct task *task);

/* Give what was saved back to a thread that made remote calls. A negative errno. */
int hub_give_back(struct task *task);

/* The freeze has ended: the thread gets its registers back, now or after its call. On the hub's thread, lock held. */
void hub_remote_call_leave(struct kymo_hub *hub, struct task *task);

/* Whether a thread makes a remote call by the instruction there. */
bool hub_calls_at(const struct hub_process *process, uint64_t address);

#endif
