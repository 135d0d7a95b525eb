/* Breakpoints and watched memory of a client, through the hub: an engine of each thread has them. On the hub's thread.
 */
#ifndef KYMO_GDB_BREAKPOINTS_H
#define KYMO_GDB_BREAKPOINTS_H

#include "gdb/state.h"

/* Z types. */
enum { GDB_BREAK_SOFTWARE, GDB_BREAK_HARDWARE, GDB_WATCH_WRITE, GDB_WATCH_READ, GDB_WATCH_ACCESS };

/* Z and z packets. */
void gdb_insert(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);
void gdb_remove(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

bool gdb_has_breakpoint(const struct gdb_process *process, uint64_t address);
bool gdb_has_watches(const struct gdb_process *process);

/* A tracepoint's breakpoint in one thread, beside those of the client. A negative errno. */
int gdb_insert_at(struct gdb_thread *thread, uint64_t address);
void gdb_remove_at(struct gdb_thread *thread, uint64_t address);

/* The breakpoints of its process, for a thread that is new. */
void gdb_insert_for(struct gdb_thread *thread);

/* Arm what its process watches and this stopped thread does not yet. */
void gdb_watch_missing(struct gdb_thread *thread);

/* Which Z type a slot of the thread has. */
int gdb_watch_kind(const struct gdb_thread *thread, unsigned int slot);

/* The hub has dropped them: an exec. */
void gdb_forget_breakpoints(struct gdb_thread *thread);

/* Take all out, of all processes. Threads that run are stopped for what they watch, and nothing is told of it before.
 */
void gdb_remove_all(struct kymo_gdb *gdb);

#endif
