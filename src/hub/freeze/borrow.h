/* Threads that make system calls for a holder. */
#ifndef KYMO_HUB_FREEZE_BORROW_H
#define KYMO_HUB_FREEZE_BORROW_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/user.h>

struct kymo_hub;
struct hub_holder;
struct hub_message;
struct hub_process;
struct task;

/* What was taken from a thread that makes calls for somebody who holds its process. */
struct hub_borrow {
	bool has_own; /* what follows is to be given back; else it is only run through a call */
	struct user_regs_struct own;
	uint64_t mask;
	uint64_t call_at;     /* where its call is made */
	unsigned int n_stops; /* at system calls, which are to come before its call is made; 0: it stands still */
	bool is_left;         /* who has borrowed it is gone */
};

/* Whether a stop of thread `task` was of a call that is not its own, and was dealt with. */
bool hub_borrowed_stopped(struct kymo_hub *hub, struct task *task, int status);

/* Whether a borrowed thread makes a call by the instruction there. */
bool hub_calls_at(const struct hub_process *process, uint64_t address);

/* It is ending, or is another program now: nothing is given back. */
void hub_forget_borrow(struct task *task);

int64_t hub_borrow_begin(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);
int64_t hub_borrow_call(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);
int64_t hub_borrow_end(struct hub_holder *holder, struct hub_message *message, uint8_t *memory);

/* The hold has ended: it gets its registers back, now or behind its call. On the hub's thread, lock held. */
void hub_borrow_leave(struct task *task);

#endif
