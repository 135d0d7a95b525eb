/* Conditions of breakpoints, which the stub evaluates: a thread that comes to one whose condition is false goes on, and
 * its client is told nothing. And commands, which print: the thread goes on then, too. On the hub's thread. */
#ifndef KYMO_GDB_CONDITIONS_H
#define KYMO_GDB_CONDITIONS_H

#include "gdb/state.h"

/* The rest of a Z packet: ";X3,220027X3,…;cmds:0,X5,…". What is at `what` already is replaced, by nothing where there
 * is nothing. Where a process has too many, those at `what` are dropped: each hit is a stop then, and the client
 * evaluates them. False: it is wrong, or memory is out; all stays as it was. */
bool gdb_take_conditions(struct gdb_words *words, struct gdb_process *process, const struct gdb_break *what);

static inline bool gdb_condition_is_at(const struct gdb_condition *condition, int type, uint64_t address)
{
	return condition->type == type && condition->address == address;
}

void gdb_drop_conditions(struct gdb_process *process, const struct gdb_break *what);
void gdb_forget_conditions(struct gdb_process *process);

#endif
