/* Which conditions are in pads. On the hub's thread. */
#ifndef KYMO_GDB_PAD_NOTES_H
#define KYMO_GDB_PAD_NOTES_H

#include "gdb/state.h"

/* The condition of a breakpoint that could be in a pad: it is the only one there, and of a kind that the user wants
 * there. NULL: there is none. */
const struct gdb_condition *gdb_pad_condition(const struct gdb_process *process, const struct gdb_break *what,
					      enum kymo_gdb_pads pads);

/* What is known of an address, or NULL; whether it is that condition that is in there, or was refused. */
const struct gdb_pad *gdb_find_pad(const struct gdb_process *process, uint64_t address);
bool gdb_pad_has(const struct gdb_pad *pad, const struct gdb_condition *condition);

/* A breakpoint is about to be put in, or its conditions have changed: it is by its pad only if that has its condition.
 */
void gdb_pads_choose(struct gdb_thread *thread, const struct gdb_break *what);

/* Nothing is in any more. The same after an exec, or where the process is to be forgotten. */
void gdb_forget_pads(struct gdb_process *process);
void gdb_end_pads(struct gdb_process *process);

#endif
