/* Stopping and letting go on. On the hub's thread. */
#ifndef KYMO_GDB_RUN_H
#define KYMO_GDB_RUN_H

#include "gdb/state.h"

/* An event of a thread that stands still in a callback, or will when that returns with STOP. */
void gdb_note(struct gdb_thread *thread, const struct gdb_event *event);

/* Ask all threads to stop, and wake the main thread when they have. */
void gdb_stop_all(struct kymo_gdb *gdb);

/* Whether that was the last one that was waited for: wakes the main thread. */
void gdb_look_whether_all_stand(struct kymo_gdb *gdb);
void gdb_wake(struct kymo_gdb *gdb);

/* Again and again while threads are waited for, every GDB_TICK_MS: those that sleep where nothing wakes them count as
 * standing after a while. They stop before they return to the program. `data` is the stub. */
enum { GDB_TICK_MS = 200 };
void gdb_tick(void *data);

struct gdb_resumption {
	bool is_step;
	int signal; /* the kernel's, or 0 */
	uint64_t range_start, range_end;
};

/* The thread does not go on now, as another one's event is told first: it gets the signal when it does. */
void gdb_keep_signal(struct gdb_thread *thread, int signal);

/* Let one thread go on that stands still. */
void gdb_resume(struct gdb_thread *thread, const struct gdb_resumption *how);

/* Whether the event of a pending thread still holds; else it is forgotten. */
bool gdb_is_pending(struct gdb_thread *thread);

/* The stub leaves it: the signal that it stands before is the program's, or is dropped, as the client has it. */
void gdb_settle_for_good(struct gdb_thread *thread);

/* Whether all stand that can: a thread that waits for the child of its vfork, or for a disk that does not answer, stops
 * when it comes back from there. */
bool gdb_do_all_stand(const struct kymo_gdb *gdb);

/* Tell the event that waits to be told, as the client's `?` has it: a signal. False: there is none. */
bool gdb_tell_pending_signal(struct kymo_gdb *gdb, struct gdb_text *reply);

/* Tell that it stands, where it has nothing to tell itself. An event that waits to be told goes on waiting. */
void gdb_tell_standing(struct gdb_thread *thread, int signal, struct gdb_text *reply);

/* All threads have stopped: append the stop reply. False: nothing can be told yet. */
bool gdb_collect(struct kymo_gdb *gdb, struct gdb_text *reply);

/* All threads of the process, or of all (NULL), go on, and nothing stops them: no client wants to know. */
void gdb_let_run(struct kymo_gdb *gdb, const struct gdb_process *process);

#endif
