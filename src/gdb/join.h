/* The hub of a stub: its own, or that of another process which traces what is to be debugged. On the main thread. */
#ifndef KYMO_GDB_JOIN_H
#define KYMO_GDB_JOIN_H

#include <stdbool.h>
#include <sys/types.h>

struct kymo_gdb;

/* Have a hub of its own, which others may join. A connection ends, so no process may be left. 0, or a negative errno of
 * kymo_hub_create(). */
int gdb_take_own_hub(struct kymo_gdb *gdb);

/*
 * Attach by `attach`, which gets `data`: by the stub's own hub, or by that of the tracer, as kymo_hub_reach() does. A
 * stub has one hub at a time: where it has a process already, that hub alone is tried. A negative errno of `attach`,
 * with the stub's own hub again. `busy_ret`: where it is -EBUSY, the thread that is traced.
 */
int gdb_reach(struct kymo_gdb *gdb, int (*attach)(void *data, pid_t *busy_ret), void *data, pid_t *busy_ret);

/* Whether the hub that it has joined is gone, with all engines. */
bool gdb_is_cut_off(const struct kymo_gdb *gdb);

#endif
