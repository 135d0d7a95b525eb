/* Threads that stand still for the holder of their process. On the hub's thread, with the lock held. */
#ifndef KYMO_HUB_THREAD_CLAIM_H
#define KYMO_HUB_THREAD_CLAIM_H

#include <sys/user.h>

#include "kymo/engine.h"

struct hub_guest;
struct hub_process;
struct task;

/* For whom a process stands still: who is connected, or a part of the hub's own process. What is not constant is
 * guarded by the hub's lock. */
struct hub_holder {
	struct kymo_hub *hub;
	int requests;            /* the socket by which it asks; -1: it is this process' own, on the hub's thread */
	pid_t held;              /* the process, or 0 */
	pid_t kept;              /* that it follows, or 0 */
	bool is_closed;          /* … and nobody else may hold for now */
	bool takes;              /* threads that nobody traces, for as long as it holds them */
	struct hub_guest *guest; /* the client whose it is, or NULL */
	int proof;               /* a client's, for as long as it asks for a hold (remote/proof.h) */
};

/* What was taken from a thread that makes calls for somebody who holds its process. */
struct hub_borrow {
	bool has_own; /* what follows is to be given back; else it is only run through a call */
	struct user_regs_struct own;
	uint64_t mask;
	uint64_t call_at;     /* where its call is made */
	unsigned int n_stops; /* at system calls, which are to come before its call is made; 0: it stands still */
	bool is_left;         /* who has borrowed it is gone */
};

/* A claimed thread stands where it is to. On the hub's thread, lock held, as the next. */
bool hub_is_still(const struct task *task);

/* Its registers, which were read: where they are asked for next, that is saved. */
void hub_hold_note(struct task *task, const struct user_regs_struct *registers);

/* The process that a holder holds, or NULL. */
struct hub_process *hub_held_process(struct kymo_hub *hub, const struct hub_holder *holder);

/* It is its keeper's from now on; threads are claimed. */
void hub_hold_take(struct hub_process *process);

/* Take back a claim that waits for the end of another's hold, if it does. On the hub's thread, lock held, as the next.
 */
void hub_hold_cancel(struct kymo_hub *hub, struct hub_holder *holder);

/* The end of a hold, on the hub's thread, lock held. */
void hub_hold_end(struct kymo_hub *hub, struct hub_holder *holder);

/* It is ending, or is another program now: nothing is given back. */
void hub_forget_borrow(struct task *task);

/* A borrowed thread gets what was taken from it back. A negative errno. */
int hub_give_back(struct task *task);

/* The hold has ended: it gets its registers back, now or behind its call. On the hub's thread, lock held. */
void hub_borrow_leave(struct task *task);

/* Whether a borrowed thread makes a call by the instruction there. */
bool hub_calls_at(const struct hub_process *process, uint64_t address);

#endif
