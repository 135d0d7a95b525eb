/* Breakpoints and debug registers of a hub, what they leave in a process, and who takes it out. docs/design/engines.md has the rules. */
#ifndef KYMO_PROC_HUB_TRAP_H
#define KYMO_PROC_HUB_TRAP_H

#include "proc/hub.h"

/* ---- hub_keeper.c: the journal, and who puts back what a dead hub has left -------------------------------------------------- */

/* Note what is to be put back: the byte at an address of the memory behind descriptor `fd`. An entry; -ENOSPC; -EAGAIN: nobody could be made who would do it. */
int hub_note_byte(struct kymo_hub *hub, int fd, uint64_t address, uint8_t original);

/* Note a thread whose debug registers are to be cleared. The same. */
int hub_note_watches(struct kymo_hub *hub, pid_t tid);

/* Another byte is to be put back. */
void hub_note_change(struct kymo_hub *hub, int entry, uint8_t original);

/* Nothing is to be put back any more. With the last entry the keeper ends. */
void hub_strike(struct kymo_hub *hub, int entry);

/* The keeper has ended; there is another one if it is needed. */
void hub_keeper_ended(struct kymo_hub *hub);

/* Whether one is needed and could not be made; try again. */
bool hub_lacks_keeper(const struct kymo_hub *hub);
void hub_get_keeper(struct kymo_hub *hub);

/* The hub ends. What is still noted, of threads that did not stop, is the keeper's to do. */
void hub_leave_keeper(struct kymo_hub *hub);

/* ---- hub_space.c: memories with breakpoints ---------------------------------------------------------------------------------- */

struct hub_break {
	uint64_t address;
	unsigned int owners;	/* 0: it was taken out, and a hit may be on its way */
	uint8_t original;	/* what is below it */
	int entry;		/* in the journal; -1: none is needed */
	bool is_in_jump;	/* of a recording, behind its first byte, where there is no instruction: it is not written */
	uint64_t out_ns;
};

/* The memory of a process and of those that share it. */
struct hub_space {
	struct hub_space *next;
	unsigned int n_processes;	/* 0: it is kept for a while, for children whose makers were killed */
	uint64_t left_ns;
	struct hub_memory *memory;	/* a reference */
	KYMO_VEC(struct hub_break) breaks;	/* by address */
	size_t n_in;
	bool is_parked;			/* nobody can run, and no byte is in */
};

struct hub_break *hub_space_find(const struct hub_space *space, uint64_t address);

/* One owner more; less. */
int hub_space_insert(struct kymo_hub *hub, struct hub_process *process, uint64_t address);
void hub_space_remove(struct kymo_hub *hub, struct hub_space *space, uint64_t address);

/* The byte of one that is in, and back. */
void hub_space_lift(struct hub_space *space, const struct hub_break *b);
void hub_space_lower(struct hub_space *space, const struct hub_break *b);

/* Whether what is at the address is a breakpoint instruction. */
bool hub_space_has_trap(const struct hub_space *space, uint64_t address);

/* The process has other memory now, or has ended. Its engines' breakpoints are gone. */
void hub_space_leave(struct kymo_hub *hub, struct hub_process *process);

/* A process has made another one, which does not run yet. */
void hub_space_born(struct kymo_hub *hub, struct hub_process *maker, struct hub_process *child, bool is_vfork);

/* One whose maker is not known is let go. */
void hub_space_clean_stranger(struct kymo_hub *hub, pid_t tid);

/* What engines read and write. */
int hub_space_read(struct hub_space *space, uint64_t address, void *data, size_t size);
int hub_space_write(struct kymo_hub *hub, struct hub_space *space, uint64_t address, const void *data, size_t size);

/* What a recorder writes, which may be jumps over breakpoints, or what was there before. The process has a space. -EBUSY: somebody runs where there are breakpoints. */
int hub_space_write_text(struct kymo_hub *hub, const struct hub_process *process, uint64_t address, const void *data, size_t size);

/* Take out all there are. */
void hub_space_clear_all(struct kymo_hub *hub);

/* Free those that have been left for long; whether there are such. */
void hub_space_look_at_clock(struct kymo_hub *hub, uint64_t now);
bool hub_space_needs_clock(const struct kymo_hub *hub);

/* ---- hub_park.c: who runs in such a memory ------------------------------------------------------------------------------------ */

/* Whether a thread must stay the hub's without engines. */
bool hub_space_keeps(const struct task *task);

/* The task has stopped and is held: perhaps nobody of the space can run now. It is going on. */
void hub_space_rest(struct kymo_hub *hub, const struct task *task);
void hub_space_wake(const struct task *task);

/* Whether anybody of its processes runs. */
bool hub_space_can_run(const struct kymo_hub *hub, const struct hub_space *space);

/* Stop all that could run in the memory of `process`, but `except`, without telling anybody; what they stop with is told later. */
void hub_space_hold(struct kymo_hub *hub, const struct hub_process *process, const struct task *except);

/* ---- hub_breakpoint.c ---------------------------------------------------------------------------------------------------------- */

/* A thread has stopped for a SIGTRAP. True: it was a breakpoint's, and dealt with; it stands in a stop without a signal, or has another status to be told. */
bool hub_breakpoint_stopped(struct kymo_hub *hub, struct task *task, int *group_ret);

/* Whether a signal that waits in a thread is of a breakpoint or a debug register, of one that is gone perhaps. */
bool hub_is_trap_of_ours(const struct task *task, const siginfo_t *info);

/*
 * Step over the breakpoint at which a thread that is going on stands. False: there is none, or it is done, and the thread goes on as if nothing had been. True: what it has done instead is to be
 * told, and it must not be touched before. `wants_step`: a step is to be told.
 */
bool hub_step_over(struct kymo_hub *hub, struct task *task, bool wants_step);

/* It has executed the instruction at which it was told of. */
void hub_breakpoint_passed(struct task *task);

/* What an engine has put in goes with it. */
void hub_breakpoints_drop(struct kymo_hub *hub, struct kymo_engine *engine);

/* ---- hub_watch.c ---------------------------------------------------------------------------------------------------------------- */

/* The same for debug registers. `is_step`: it may be the end of a step as well. */
bool hub_watch_stopped(struct kymo_hub *hub, struct task *task, bool is_step, int *group_ret);

void hub_watches_drop(struct kymo_engine *engine);

/* A stopped thread goes on, or is let go (`all`): clear what nobody has claimed any more. */
void hub_watches_clear(struct kymo_hub *hub, struct task *task, bool all);

/* The kernel has cleared them. */
void hub_watches_forget(struct kymo_hub *hub, struct task *task);

#endif
