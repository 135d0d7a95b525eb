#include "branch/thread.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "branch/chosen.h"
#include "branch/step_kind.h"
#include "kymo/engine.h"
#include "procfs/info.h"

#define ENDED_KEPT_MAX ((UINT64_C(256) << 20) / sizeof(struct kymo_branch))
#define LIVE_KEPT_MAX ((UINT64_C(1) << 30) / sizeof(struct kymo_branch))
#define EXECUTED_MAX 64

void branches_warn(struct kymo_branches *branches, enum branch_warning warning)
{
	branches->warnings |= 1u << warning;
}

/* ---- the tables ------------------------------------------------------------------------------ */

static bool has_threads(const struct kymo_branches *branches, const struct branch_process *process)
{
	for (size_t i = branches->threads.n; i-- > 0;)
		if (branches->threads.items[i]->process == process && !branches->threads.items[i]->has_ended)
			return true;
	return false;
}

/* An id whose threads have all ended may be that of another process now, which has mapped other code. */
static struct branch_process *process_of(struct kymo_branches *branches, pid_t pid)
{
	struct branch_process *process;

	for (size_t i = 0; i < branches->processes.n; i++) {
		process = branches->processes.items[i];
		if (process->pid != pid)
			continue;
		process->is_changed |= !has_threads(branches, process);
		return process;
	}
	process = calloc(1, sizeof(*process));
	if (!process || !kymo_vec_push(&branches->processes, process)) {
		free(process);
		return NULL;
	}
	*process = (struct branch_process){ .pid = pid, .is_changed = true };
	return process;
}

static struct branch_thread *make(struct kymo_branches *branches, struct kymo_engine *engine)
{
	struct branch_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return NULL;
	thread->engine = engine;
	thread->tid = kymo_engine_tid(engine);
	thread->ring.max = branches->options.tail;
	thread->process = process_of(branches, kymo_engine_pid(engine));
	if (!thread->process || !kymo_vec_push(&branches->threads, thread)) {
		free(thread);
		return NULL;
	}
	kymo_read_comm(thread->tid, thread->name);
	return thread;
}

/* Few live at a time, and they are the last ones. */
struct branch_thread *branch_thread_of(struct kymo_branches *branches, struct kymo_engine *engine)
{
	if (branches->last && branches->last->engine == engine)
		return branches->last;
	branches->last = NULL;
	for (size_t i = branches->threads.n; i-- > 0 && !branches->last;)
		if (branches->threads.items[i]->engine == engine)
			branches->last = branches->threads.items[i];
	if (!branches->last)
		branches->last = make(branches, engine);
	if (!branches->last)
		branches_warn(branches, BRANCH_WARNING_MEMORY);
	return branches->last;
}

/* Forget the threads that ended first. */
static void forget_some(struct kymo_branches *branches)
{
	while (branches->ended_kept > ENDED_KEPT_MAX && branches->first_ended) {
		struct branch_thread *thread = branches->first_ended;

		branches->first_ended = thread->next_ended;
		if (!branches->first_ended)
			branches->last_ended = NULL;
		branches->ended_kept -= thread->ring.capacity;
		branch_ring_deinit(&thread->ring);
		branches_warn(branches, BRANCH_WARNING_FORGOTTEN);
	}
}

/* Threads that are made meanwhile are told of. */
int branch_threads_attach(struct kymo_branches *branches, unsigned int flags, const struct kymo_engine_ops *ops,
			  unsigned int events, void (*each)(struct kymo_branches *branches, struct kymo_engine *engine))
{
	kymo_cleanup_closedir DIR *tasks = NULL;
	struct dirent *entry;
	char path[64];
	size_t n;
	int err = kymo_engine_attach_process(branches->hub, branches->pid, flags, ops, branches, events, &n);

	if (err)
		return err;
	branches->n_threads += (int)n;
	snprintf(path, sizeof(path), "/proc/%d/task", branches->pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks))) {
		struct kymo_engine *engine;
		const pid_t tid = (pid_t)atoi(entry->d_name);

		if (tid <= 0 || kymo_engine_attach(branches->hub, tid, KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA,
						   ops, branches, &engine))
			continue;
		each(branches, engine);
		kymo_engine_put(engine);
	}
	return 0;
}

unsigned int branch_thread_exits(struct kymo_engine *engine, void *data, enum kymo_action action,
				 const struct kymo_exit_report *report)
{
	struct branch_thread *thread = branch_thread_of(data, engine);

	if (thread)
		kymo_read_comm(thread->tid, thread->name);
	return KYMO_ACTION_RESUME;
}

int branch_thread_attach(struct kymo_branches *branches, pid_t tid, unsigned int flags,
			 const struct kymo_engine_ops *ops, unsigned int events, bool is_born)
{
	struct branch_thread *thread;
	struct kymo_engine *engine;
	int err = kymo_engine_attach(branches->hub, tid, KYMO_ATTACH_CREATE | flags, ops, branches, &engine);

	if (err)
		return err;
	branches->n_threads++;
	err = kymo_engine_set_events(engine, events);
	thread = err ? NULL : branch_thread_of(branches, engine);
	if (thread)
		thread->is_born = is_born;
	if (!err)
		err = kymo_engine_control(engine, KYMO_ACTION_REPORT);
	if (err && err != -EINPROGRESS) {
		branches->n_threads--;
		kymo_engine_control(engine, KYMO_ACTION_DETACH);
	}
	kymo_engine_put(engine);
	return err == -EINPROGRESS ? 0 : err;
}

int branch_thread_want_stop(struct kymo_engine *engine)
{
	const int err = kymo_engine_control(engine, KYMO_ACTION_REPORT);

	return err == -EINPROGRESS || err == -ESRCH ? 0 : err;
}

void branch_thread_note_end(struct branch_thread *thread, const struct kymo_signal_report *report, uint64_t at)
{
	const int number = report->info.si_signo;

	thread->signal = number;
	thread->at = at;
	thread->at_space = thread->process->space;
	thread->address = report->info.si_code > 0 && (number == SIGSEGV || number == SIGBUS)
				  ? (uint64_t)(uintptr_t)report->info.si_addr
				  : 0;
}

void branch_thread_reaped(struct kymo_branches *branches, struct branch_thread *thread,
			  const struct kymo_reap_report *report)
{
	if (thread)
		thread->engine = NULL; /* another one may be where it was */
	branches->last = NULL;
	branches->n_threads--;
	if (report->superseded_by || !thread || thread->tid != branches->pid || branches->has_ended)
		return; /* a child may get the id of a command that has ended */
	branches->status = report->status;
	branches->has_ended = true;
}

void branch_thread_ended(struct kymo_branches *branches, struct branch_thread *thread, int status)
{
	if (thread->has_ended)
		return;
	thread->has_ended = true;
	thread->status = status;
	thread->now.is_known = thread->is_inside = false;
	branch_thread_pushes(branches, thread, false);
	kymo_vec_deinit(&thread->breaks);
	branches->live_kept -= thread->ring.capacity;
	branches->ended_kept += thread->ring.capacity;
	if (branches->last_ended)
		branches->last_ended->next_ended = thread;
	else
		branches->first_ended = thread;
	branches->last_ended = thread;
	forget_some(branches);
}

void branch_threads_deinit(struct kymo_branches *branches)
{
	for (size_t i = 0; i < branches->threads.n; i++) {
		branch_ring_deinit(&branches->threads.items[i]->ring);
		kymo_vec_deinit(&branches->threads.items[i]->breaks);
		free(branches->threads.items[i]);
	}
	for (size_t i = 0; i < branches->processes.n; i++) {
		branch_space_destroy(branches->processes.items[i]->unnumbered);
		free(branches->processes.items[i]);
	}
	kymo_vec_deinit(&branches->threads);
	kymo_vec_deinit(&branches->processes);
}

struct branch_space *branch_thread_space(const struct kymo_branches *branches, const struct branch_thread *thread)
{
	const struct branch_process *process = thread->process;

	return process->unnumbered ? process->unnumbered : branch_space_of(&branches->spaces, process->space);
}

static void warn_of(struct kymo_branches *branches, int err)
{
	if (err == -ENOSPC)
		branches_warn(branches, BRANCH_WARNING_SPACES);
	if (err == -ENOMEM)
		branches_warn(branches, BRANCH_WARNING_MEMORY);
	if (branches->spaces.lacks_files)
		branches_warn(branches, BRANCH_WARNING_FILES);
}

bool branch_thread_renew(struct kymo_branches *branches, struct branch_thread *thread)
{
	struct branch_process *process = thread->process;
	struct branch_space *unnumbered = NULL, *space;
	const uint32_t before = process->space;
	int err;

	if (!process->is_changed)
		return false;
	process->is_changed = false;
	err = branch_spaces_read(&branches->spaces, process->pid, &process->space, &unnumbered);
	if (err == -ESRCH)
		return false;
	warn_of(branches, err);
	branch_space_destroy(process->unnumbered);
	process->unnumbered = unnumbered;
	space = branch_thread_space(branches, thread);
	if (space && !branches->is_all && !space->is_searched && !branch_choose(branches, space))
		branches_warn(branches, BRANCH_WARNING_MEMORY);
	return unnumbered || process->space != before;
}

/* ---- what it has executed -------------------------------------------------------------------- */

void branch_thread_add(struct kymo_branches *branches, struct branch_thread *thread, uint64_t from, uint64_t to,
		       enum kymo_branch_kind kind)
{
	const uint64_t now = branches->options.stamp();
	const struct kymo_branch branch = {
		.from = from,
		.to = to,
		.stamp = now > branches->last_stamp ? now : branches->last_stamp + 1,
		.space = thread->process->space,
		.kind = (uint8_t)kind,
	};

	branches->last_stamp = branch.stamp;
	branch_thread_add_at(branches, thread, &branch);
}

void branch_thread_add_at(struct kymo_branches *branches, struct branch_thread *thread,
			  const struct kymo_branch *branch)
{
	const size_t before = thread->ring.capacity;
	const bool is_anchor = branch->kind == KYMO_BRANCH_ANCHOR;

	branch_ring_add(&thread->ring, branch, LIVE_KEPT_MAX - branches->live_kept);
	branches->live_kept += thread->ring.capacity - before;
	if (thread->ring.max < branches->options.tail)
		branches_warn(branches, BRANCH_WARNING_SHORT);
	thread->n_anchors += is_anchor;
	branches->n_taken += !is_anchor;
}

static bool is_pad(struct kymo_branches *branches, const struct branch_thread *thread, uint64_t address)
{
	const struct branch_region *region = branch_region_at(branch_thread_space(branches, thread), address);

	return region && region->is_pad;
}

/* `may_be_self`: an instruction may have been executed that leads to itself. */
static void compare(struct kymo_branches *branches, struct branch_thread *thread, uint64_t to, bool may_be_self)
{
	const bool has_signal = thread->expects_handler && to != thread->now.pc;

	if (to == thread->now.pc && !may_be_self)
		return;
	thread->expects_handler &= !has_signal;
	if (!has_signal && !kymo_step_branches(&thread->now.step, thread->now.pc, to))
		return;
	branch_thread_renew(branches, thread);
	thread->is_in_pad = is_pad(branches, thread, to);
	if (thread->is_in_pad)
		branches_warn(branches, BRANCH_WARNING_PAD);
	else
		branch_thread_add(branches, thread, thread->now.pc, to,
				  has_signal ? KYMO_BRANCH_SIGNAL : branch_step_kind(&thread->now.step));
}

void branch_thread_see(struct kymo_branches *branches, struct branch_thread *thread, bool is_step_end)
{
	struct kymo_walk now = { .is_known = false };
	const int err = kymo_walk_look(thread->engine, &now);

	thread->is_of_32_bits = err == -ENOTSUP;
	if (err) {
		thread->now.is_known = false;
		if (thread->is_of_32_bits) {
			branches_warn(branches, BRANCH_WARNING_32_BITS);
			branch_thread_leave(thread);
		}
		return;
	}
	if (thread->now.is_known && thread->is_inside) {
		compare(branches, thread, now.pc, is_step_end && !thread->is_at_call_end);
		if (now.pc != thread->now.pc)
			kymo_walk_clean(thread->engine, &thread->now, &now);
	}
	thread->is_at_call_end = false;
	thread->now = now;
}

void branch_thread_execute(struct branch_thread *thread)
{
	for (int i = 0; i < EXECUTED_MAX && kymo_walk_pop(thread->engine, &thread->now); i++)
		;
}

void branch_thread_pushes(struct kymo_branches *branches, struct branch_thread *thread, bool may_push)
{
	branches->n_pushing += may_push - thread->may_push;
	thread->may_push = may_push;
}

void branch_thread_leave(struct branch_thread *thread)
{
	thread->is_inside = thread->now.is_known = thread->expects_handler = false;
}

void branch_thread_note(struct kymo_branches *branches, struct branch_thread *thread, enum kymo_branch_kind kind)
{
	branch_thread_renew(branches, thread);
	branch_thread_add(branches, thread, 0, thread->now.pc, kind);
}
