/* Threads that are recorded, and what each has executed. Private to the room. */
#ifndef KYMO_BRANCH_THREAD_H
#define KYMO_BRANCH_THREAD_H

#include "branch/state.h"
#include "kymo/engine.h"

/* The user will be told, once. */
void branches_warn(struct kymo_branches *branches, enum branch_warning warning);

/* The thread of an engine, which is made where it is new. NULL when memory is out. */
struct branch_thread *branch_thread_of(struct kymo_branches *branches, struct kymo_engine *engine);

/* The callback `exit` of an engine: notes the name of the thread, which is gone with it. */
unsigned int branch_thread_exits(struct kymo_engine *engine, void *data, enum kymo_action action,
				 const struct kymo_exit_report *report);

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

/* Add a branch without a source, to where the thread stands. */
void branch_thread_note(struct kymo_branches *branches, struct branch_thread *thread, enum kymo_branch_kind kind);

#endif
