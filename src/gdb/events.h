/* What engines tell, and having them. On the hub's thread. */
#ifndef KYMO_GDB_EVENTS_H
#define KYMO_GDB_EVENTS_H

#include "gdb/state.h"

/* Have an engine on a thread. A negative errno; -EEXIST: there is one. */
int gdb_follow(struct kymo_gdb *gdb, struct gdb_process *process, pid_t tid, struct gdb_thread **ret);

/* … on all threads of a process that has none yet. `busy_ret`: the thread that an error is of. */
int gdb_follow_process(struct kymo_gdb *gdb, struct gdb_process *process, pid_t *busy_ret);

/* Let go of a process, and of forked children that the client was not told of: breakpoints go with the engines. The
 * references of the engines go to the caller. It puts them, and may wait by them before. There are none where memory is
 * out. */
struct gdb_engines {
	struct kymo_engine **items;
	size_t n, cap;
};
void gdb_leave_process(struct kymo_gdb *gdb, struct gdb_process *process, struct gdb_engines *engines);

/* … without waiting. NULL is allowed. */
void gdb_leave_at_once(struct kymo_gdb *gdb, struct gdb_process *process);

/* A forked child of which the client was not told: its maker forgets it. NULL: there is none. */
struct gdb_process *gdb_take_untold(struct kymo_gdb *gdb, const struct gdb_process *maker);

#endif
