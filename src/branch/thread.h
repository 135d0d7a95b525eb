/* Threads that are recorded, and what each has executed. Private to the room. */
#ifndef KYMO_BRANCH_THREAD_H
#define KYMO_BRANCH_THREAD_H

#include "branch/state.h"
#include "kymo/engine.h"

struct kymo_engine_ops;

/* The user will be told, once. */
void branches_warn(struct kymo_branches *branches, enum branch_warning warning);

/* The thread of an engine, which is made where it is new. NULL when memory is out. */
struct branch_thread *branch_thread_of(struct kymo_branches *branches, struct kymo_engine *engine);

/* Engines for all threads of the process, and from then on for those that it makes, whose `ops` have CLONE; `each` gets
 * those of the former. A negative errno of kymo_engine_attach_process(). */
int branch_threads_attach(struct kymo_branches *branches, unsigned int flags, const struct kymo_engine_ops *ops,
			  unsigned int events,
			  void (*each)(struct kymo_branches *branches, struct kymo_engine *engine));

/* The callback `exit` of an engine: notes the name of the thread, which is gone with it. */
unsigned int branch_thread_exits(struct kymo_engine *engine, void *data, enum kymo_action action,
				 const struct kymo_exit_report *report);

/* An engine for thread `tid` with these flags and events, whose first stop comes at once. `is_born`: it was made since.
 * A negative errno of kymo_engine_attach(). */
int branch_thread_attach(struct kymo_branches *branches, pid_t tid, unsigned int flags,
			 const struct kymo_engine_ops *ops, unsigned int events, bool is_born);

/* Threads are in the tables from their first callback on. 0, also if it has ended; or a negative errno. */
int branch_thread_want_stop(struct kymo_engine *engine);

/* A signal will end it where it stands, at `at`. */
void branch_thread_note_end(struct branch_thread *thread, const struct kymo_signal_report *report, uint64_t at);

/* Its engine is no more. `thread`: NULL where it is not known. */
void branch_thread_reaped(struct kymo_branches *branches, struct branch_thread *thread,
			  const struct kymo_reap_report *report);

/* It never runs again. */
void branch_thread_ended(struct kymo_branches *branches, struct branch_thread *thread, int status);
void branch_threads_deinit(struct kymo_branches *branches);

/* What its process has mapped; NULL where that is not known. */
struct branch_space *branch_thread_space(const struct kymo_branches *branches, const struct branch_thread *thread);

/* Read again what the process has mapped, if that may have changed. Whether it has. */
bool branch_thread_renew(struct kymo_branches *branches, struct branch_thread *thread);

/* A stop: add what the thread has executed since the one before, and note where it stands. `is_step_end`: the hub has
 * told the end of a step. */
void branch_thread_see(struct kymo_branches *branches, struct branch_thread *thread, bool is_step_end);

/* Execute instructions that are not left to a step, where it stands before such. */
void branch_thread_execute(struct branch_thread *thread);

/* Whether it may push flags by its next step. */
void branch_thread_pushes(struct kymo_branches *branches, struct branch_thread *thread, bool may_push);

/* It runs freely from here on. */
void branch_thread_leave(struct branch_thread *thread);

/* Add a branch, as of now. */
void branch_thread_add(struct kymo_branches *branches, struct branch_thread *thread, uint64_t from, uint64_t to,
		       enum kymo_branch_kind kind);

/* Add a branch with all that it has, or an anchor. */
void branch_thread_add_at(struct kymo_branches *branches, struct branch_thread *thread,
			  const struct kymo_branch *branch);

/* Add a branch without a source, to where the thread stands. */
void branch_thread_note(struct kymo_branches *branches, struct branch_thread *thread, enum kymo_branch_kind kind);

#endif
