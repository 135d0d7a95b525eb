/* Which conditions are in pads. On the hub's thread. */
#ifndef KYMO_GDB_PAD_NOTES_H
#define KYMO_GDB_PAD_NOTES_H

#include "gdb/state.h"

/* What could be in a pad of a breakpoint. */
struct gdb_pad_wish {
	const struct gdb_condition *condition; /* the only one there, or NULL: there is none */
	const struct gdb_condition *command;   /* which prints; or NULL: the thread traps where the condition holds */
};

/* False: nothing could, or nothing is of a kind that the user wants there. */
bool gdb_pad_wish(const struct gdb_process *process, const struct gdb_break *what, enum kymo_gdb_pads pads,
		  struct gdb_pad_wish *ret);

/* Whether memory of the program is read. */
bool gdb_pad_reads(const struct gdb_pad_wish *wish);

/* Its code, as `struct gdb_pad` has it. Without memory `code` is NULL. */
struct gdb_pad gdb_pad_of(const struct gdb_pad_wish *wish, uint64_t address);

/* What is known of an address, or NULL; whether that is what is in there, or was refused. */
const struct gdb_pad *gdb_find_pad(const struct gdb_process *process, uint64_t address);
bool gdb_pad_has(const struct gdb_pad *pad, const struct gdb_pad_wish *wish);

/* A breakpoint is about to be put in, or its conditions have changed: it is by its pad only if that has its condition.
 */
void gdb_pads_choose(struct gdb_thread *thread, const struct gdb_break *what);

/* Nothing is in any more. The same after an exec, or where the process is to be forgotten. */
void gdb_forget_pads(struct gdb_process *process);
void gdb_end_pads(struct gdb_process *process);

#endif
