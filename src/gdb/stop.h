/* Stopping threads, and what is noted of them. On the hub's thread. */
#ifndef KYMO_GDB_STOP_H
#define KYMO_GDB_STOP_H

#include "gdb/state.h"

/* Wake the main thread: there may be something to collect. */
void gdb_wake(struct kymo_gdb *gdb);

/* The state of all-stop becomes another one. In non-stop it stays RUNNING. */
void gdb_change_state(struct kymo_gdb *gdb, enum gdb_change change);

/* All threads of the stub have stopped. For kymo_hub_run(). */
void gdb_be_stopped(void *gdb);

/* An event of a thread that is stopped in a callback, or will be when that returns STOP. In all-stop it stops all
 * threads. */
void gdb_note(struct gdb_thread *thread, const struct gdb_event *event);

/* The thread is stopped as requested. That is an event where the client is to be told. */
void gdb_stand(struct gdb_thread *thread);

/* Ask a thread to stop, without an event of its own. */
void gdb_ask(struct gdb_thread *thread);

/* Non-stop: stop a thread, and tell the client of it with this signal (the kernel's, or 0). A stopped thread is left
 * alone. */
void gdb_stop_one(struct gdb_thread *thread, int signal);

/* All-stop: ask all threads to stop, and wake the main thread when they have. */
void gdb_stop_all(struct kymo_gdb *gdb);

/* ^C, or vCtrlC. Where no thread runs, as the client knows it, it waits for the next resumption; in non-stop it is
 * nothing then. */
void gdb_interrupt(struct kymo_gdb *gdb);

/* Non-stop: let ^C that waits come to a thread that runs, if there is one. */
void gdb_interrupt_one(struct kymo_gdb *gdb);

/* Whether a thread runs that the client knows. */
bool gdb_does_any_run(const struct kymo_gdb *gdb);

/* Whether all threads stand that can: a thread that waits for the child of its vfork, or for a disk that does not
 * answer, stops when it comes back from there. */
bool gdb_do_all_stand(const struct kymo_gdb *gdb);

/* … a thread of that process, or none is left. */
bool gdb_does_any_stand(const struct kymo_gdb *gdb, pid_t pid);

/* Whether that was the last one that was waited for: wakes the main thread. */
void gdb_look_whether_all_stand(struct kymo_gdb *gdb);

/* Again and again while threads are waited for, every GDB_TICK_MS: those that sleep where nothing wakes them count as
 * standing after a while. They stop before they return to the program. `data` is the stub. */
enum { GDB_TICK_MS = 200 };
void gdb_tick(void *data);

#endif
