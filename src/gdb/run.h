/* Letting threads go on, and telling what has stopped them. On the hub's thread. */
#ifndef KYMO_GDB_RUN_H
#define KYMO_GDB_RUN_H

#include "gdb/state.h"

struct gdb_resumption {
	bool is_step;
	int signal; /* the kernel's, or 0 */
	uint64_t range_start, range_end;
};

/* The thread does not go on now, as another one's event is told first: it gets the signal when it does. */
void gdb_keep_signal(struct gdb_thread *thread, int signal);

/* Resume one stopped thread. */
void gdb_resume(struct gdb_thread *thread, const struct gdb_resumption *how);

/* What is done without that threads ran, such as a step: to be called when all threads are resumed that are to be. */
void gdb_note_done(struct kymo_gdb *gdb);

/* Whether the event of a pending thread still holds; else it is forgotten. */
bool gdb_check_pending(struct gdb_thread *thread);

/* The stub leaves it: the signal that it stands before is the program's, or is dropped, as the client has it. */
void gdb_settle_for_good(struct gdb_thread *thread);

/* Tell the event that waits to be told, as the client's `?` has it: a signal. False: there is none. */
bool gdb_tell_pending_signal(struct kymo_gdb *gdb, struct gdb_text *reply);

/* Tell the event of a pending thread. */
void gdb_tell_thread(struct gdb_thread *thread, struct gdb_text *reply);

/* Forget stops that were asked for and have not been told. */
void gdb_forget_stops(struct kymo_gdb *gdb);

/* Tell that it stands, where it has nothing to tell itself. An event that waits to be told goes on waiting. */
void gdb_tell_standing(struct gdb_thread *thread, int signal, struct gdb_text *reply);

/* qThreadStopInfo: why a thread stands, signal 0 where it has no event of its own. An event that waits to be told is
 * told by that. lldb asks for each thread after a stop. */
void gdb_tell_stop_of(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply);

/* All-stop: all threads have stopped; append the stop reply. False: nothing can be told yet. */
bool gdb_collect(struct kymo_gdb *gdb, struct gdb_text *reply);

/* All threads of the process, or of all (NULL), go on, and nothing stops them: no client wants to know. */
void gdb_let_run(struct kymo_gdb *gdb, const struct gdb_process *process);

#endif
