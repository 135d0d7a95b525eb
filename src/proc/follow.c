/*
 * What happens to followed threads, as their hub tells it, and what is done at once: docs/internals/following.md has
 * the table. All of this runs in callbacks, so nothing here waits. If a process must not run until the recorder has
 * handled the event, a freeze is requested and the event is queued.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/io.h"
#include "hub/freeze/freeze.h"
#include "hub/freeze/owner.h"
#include "hub/hub.h"
#include "hub/own_signal.h"
#include "hub/state.h"
#include "hub/thread/task.h"
#include "kymo/engine.h"
#include "proc/follow.h"
#include "proc/linker.h"
#include "proc/members.h"
#include "proc/state.h"
#include "proc/tree.h"
#include "procfs/info.h"

#define EVENTS (KYMO_EVENT_CLONE | KYMO_EVENT_EXEC | KYMO_EVENT_REAP)
#define EVENTS_OF_START (EVENTS | KYMO_EVENT_SYSCALL_EXIT | KYMO_EVENT_JCTL | KYMO_EVENT_QUIESCE)

static const struct kymo_engine_ops ops;

static void tell_event(struct kymo_process *process, enum kymo_tree_kind kind, pid_t tid)
{
	const struct kymo_hub *hub = process->tree->hub;
	struct kymo_tree_event event = { .kind = kind, .process = process, .tid = tid, .status = process->status };

	if (kind != KYMO_TREE_THREAD_ENDED && kind != KYMO_TREE_ENDED)
		kymo_read_comm(tid, event.comm);
	else if (hub->ended.tid == tid)
		memcpy(event.comm, hub->ended.comm, sizeof(event.comm));
	event.is_held = kind == KYMO_TREE_THREAD && process->birth.is_held;
	kymo_tree_tell(process->tree, &event);
}

static int attach(struct kymo_tree *tree, pid_t tid)
{
	struct kymo_engine *engine;
	int err = kymo_engine_attach(tree->hub, tid, KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS,
				     &ops, tree, &engine);

	if (err)
		return err;
	kymo_engine_set_events(engine, EVENTS);
	kymo_engine_put(engine);
	return 0;
}

int kymo_follow_thread(struct kymo_tree *tree, pid_t tid)
{
	int err = attach(tree, tid);

	return err == -EEXIST ? 0 : err;
}

int kymo_follow_process(struct kymo_tree *tree, pid_t pid)
{
	return kymo_engine_attach_process(tree->hub, pid, 0, &ops, tree, EVENTS, NULL);
}

/* ---- births ---------------------------------------------------------------------------------- */

static void new_thread(struct kymo_process *process, pid_t tid)
{
	if (attach(process->tree, tid))
		return; /* it is known; or it is not followed */
	if (process->birth.is_to_freeze && hub_freeze_request(process->owner) >= 0) {
		process->birth.is_to_freeze = false;
		process->birth.is_held = true;
	}
	tell_event(process, KYMO_TREE_THREAD, tid);
}

/* Where the kernel has no kcmp(), it is vfork() that shares memory. */
static bool shares_memory(pid_t a, const struct kymo_clone_report *report)
{
	const int order = kymo_compare_memory(a, report->child);

	return order < 0 ? report->kind == KYMO_CLONE_VFORK : order == 0;
}

/* A process object for one whose first thread is an engine's; NULL with the reason when memory or descriptors are out.
 */
static struct kymo_process *new_member(struct kymo_tree *tree, pid_t pid, struct kymo_error **refusal_ret)
{
	struct kymo_process *process;
	struct kymo_error *error = kymo_process_create_held(pid, &process, refusal_ret);

	if (!error && kymo_tree_add(tree, process)) {
		process->was_born_here = true;
		return process;
	}
	if (!error) {
		kymo_error_destroy(*refusal_ret);
		kymo_process_free(process);
		error = &kymo_error_no_memory;
	}
	*refusal_ret = error;
	return NULL;
}

static void new_process(struct kymo_tree *tree, struct kymo_process *maker, pid_t pid, bool shares)
{
	struct kymo_tree_event event = { .kind = shares ? KYMO_TREE_SHARING : KYMO_TREE_FORKED,
					 .other = maker,
					 .tid = pid };

	if (kymo_tree_find(tree, pid) || attach(tree, pid))
		return;
	event.process = new_member(tree, pid, &event.refusal);
	kymo_read_comm(pid, event.comm);
	if (!event.process)
		event.kind = KYMO_TREE_REFUSED;
	else if (shares)
		event.process->memory_of = maker->memory_of ? maker->memory_of : maker;
	else
		hub_freeze_request(event.process->owner);
	kymo_tree_tell(tree, &event);
}

static unsigned int on_clone(struct kymo_engine *engine, void *data, enum kymo_action action,
			     const struct kymo_clone_report *report)
{
	struct kymo_tree *tree = data;
	struct kymo_process *process = kymo_tree_find(tree, kymo_engine_pid(engine));

	if (!process)
		return KYMO_ACTION_RESUME;
	if (report->kind == KYMO_CLONE_THREAD)
		new_thread(process, report->child);
	else if (!tree->is_alone)
		new_process(tree, process, report->child, shares_memory(kymo_engine_tid(engine), report));
	return KYMO_ACTION_RESUME;
}

void kymo_follow_orphan(void *data, pid_t tid)
{
	struct kymo_tree *tree = data;
	struct kymo_process_info info;

	if (!kymo_process_peek(tid, &info))
		return;
	if (info.tgid == tid)
		new_process(tree, NULL, tid, false);
	else if (kymo_tree_find(tree, info.tgid))
		new_thread(kymo_tree_find(tree, info.tgid), tid);
}

/* ---- exec, and the end ----------------------------------------------------------------------- */

static void mark_past(struct kymo_process *process)
{
	kymo_process_set_state(process, PROCESS_PAST);
	process->birth.is_held = false;
	if (process->startup.phase == STARTUP_RUNS)
		kymo_process_set_startup(process, STARTUP_TOLD);
	process->threads.n = 0;
}

static void tell_startup(struct kymo_process *process, struct kymo_engine *engine, enum kymo_startup_event what);

/* What it was is no more, also for a caller that is about to stop it. */
static unsigned int on_exec(struct kymo_engine *engine, void *data, enum kymo_action action,
			    const struct kymo_exec_report *report)
{
	struct kymo_tree *tree = data;
	struct kymo_process *before = kymo_tree_find(tree, kymo_engine_pid(engine));
	struct kymo_tree_event event = { .kind = KYMO_TREE_EXECED, .other = before, .tid = kymo_engine_pid(engine) };

	kymo_engine_set_events(engine, EVENTS);
	if (before && tree->is_alone && before->startup.phase == STARTUP_RUNS)
		tell_startup(before, engine, KYMO_STARTUP_LOADED);
	if (!before || tree->is_alone)
		return KYMO_ACTION_RESUME;
	mark_past(before);
	hub_freeze_drop(before->owner);
	event.process = new_member(tree, before->pid, &event.refusal);
	if (!event.process) {
		hub_freeze_abandon(before->owner);
		event.kind = KYMO_TREE_ENDED;
		event.process = before;
		event.other = NULL;
		kymo_tree_tell(tree, &event);
		return KYMO_ACTION_DETACH;
	}
	event.process->startup.is_fresh = true;
	event.process->child = before->child;
	before->child = PROCESS_IS_NOT_OURS;
	if (!event.refusal)
		event.refusal = kymo_process_check_class(event.process);
	kymo_read_comm(event.process->pid, event.comm);
	hub_freeze_request(event.process->owner);
	kymo_tree_tell(tree, &event);
	return KYMO_ACTION_RESUME;
}

static void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	const pid_t tid = kymo_engine_tid(engine), pid = kymo_engine_pid(engine);
	struct kymo_process *process = kymo_tree_find(data, pid);

	if (!process || report->superseded_by)
		return;
	if (tid != pid) {
		tell_event(process, KYMO_TREE_THREAD_ENDED, tid);
		return;
	}
	process->status = report->status;
	if (process->child == PROCESS_IS_OURS)
		process->child = PROCESS_WAS_REAPED;
	mark_past(process);
	tell_event(process, KYMO_TREE_ENDED, pid);
}

/* ---- programs that start --------------------------------------------------------------------- */

/* Of the first thread. */
static void set_events(struct kymo_process *process, unsigned int events, bool is_to_report)
{
	struct kymo_engine *engine;

	if (kymo_engine_attach(process->tree->hub, process->pid, KYMO_ATTACH_MATCH_OPS, &ops, process->tree, &engine))
		return; /* it was killed, which is told */
	kymo_engine_set_events(engine, events);
	if (is_to_report)
		kymo_engine_control(engine, KYMO_ACTION_REPORT);
	kymo_engine_put(engine);
}

/* No other owner is to freeze it meanwhile: what it waits for may come at any time, and is requested then. */
static void set_starting(struct kymo_process *process, bool is_starting)
{
	kymo_process_set_startup(process, is_starting ? STARTUP_RUNS : STARTUP_TOLD);
	process->owner->is_closed = is_starting;
}

/* The stub tells when all files are mapped; without one, system calls do. */
static unsigned int events_of_start(const struct kymo_process *process)
{
	const unsigned int unwanted = process->startup.stub == STUB_IS_AWAITED ? KYMO_EVENT_SYSCALL_EXIT : 0;

	return EVENTS_OF_START & ~unwanted;
}

void kymo_follow_start(struct kymo_process *process)
{
	const struct task *task = hub_find(process->tree->hub, process->pid);

	set_starting(process, true);
	process->startup.is_in_group_stop = task && task->group_stop; /* what comes from here on is told */
	set_events(process, events_of_start(process), false);
}

void kymo_follow_start_is_over(struct kymo_process *process)
{
	if (process->startup.phase != STARTUP_RUNS)
		return;
	set_starting(process, false);
	set_events(process, EVENTS, false);
}

void kymo_follow_look_at_start(struct kymo_process *process)
{
	set_events(process, events_of_start(process), true);
	hub_flush(process->tree->hub);
}

/* The one that starts, if this is its first thread. */
static struct kymo_process *starting(struct kymo_tree *tree, const struct kymo_engine *engine)
{
	struct kymo_process *process = kymo_tree_find(tree, kymo_engine_tid(engine));

	return process && process->startup.phase == STARTUP_RUNS ? process : NULL;
}

static void tell_startup(struct kymo_process *process, struct kymo_engine *engine, enum kymo_startup_event what)
{
	struct kymo_tree_event event = {
		.kind = KYMO_TREE_STARTUP, .process = process, .tid = process->pid, .startup = what
	};

	set_starting(process, false);
	kymo_engine_set_events(engine, EVENTS);
	hub_freeze_request(process->owner);
	kymo_tree_tell(process->tree, &event);
}

static unsigned int on_syscall_exit(struct kymo_engine *engine, void *data, enum kymo_action action,
				    const struct kymo_syscall_report *report)
{
	struct kymo_process *process = starting(data, engine);
	enum kymo_startup_event what;

	if (process && report->is_entry_known &&
	    kymo_startup_returned(process, (long)report->number, report->args, report->result, &what))
		tell_startup(process, engine, what);
	return KYMO_ACTION_RESUME;
}

static unsigned int on_jctl(struct kymo_engine *engine, void *data, enum kymo_action action,
			    const struct kymo_jctl_report *report)
{
	struct kymo_process *process = starting(data, engine);

	if (process)
		process->startup.is_in_group_stop = report->signal != SIGCONT;
	return KYMO_ACTION_RESUME;
}

static unsigned int on_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event)
{
	struct kymo_process *process = event ? NULL : starting(data, engine);

	if (process && hub_own_signal_has_come(engine)) {
		process->startup.has_come = true;
		tell_startup(process, engine, KYMO_STARTUP_MAPPED);
	} else if (process && kymo_startup_looks_done(process)) {
		/* No call was seen meanwhile, so MAPPED is all that is certain. */
		tell_startup(process, engine,
			     process->startup.stub == STUB_IS_AWAITED ? KYMO_STARTUP_MAPPED : KYMO_STARTUP_LOADED);
	}
	return KYMO_ACTION_RESUME;
}

static const struct kymo_engine_ops ops = {
	.size = sizeof(ops),
	.quiesce = on_quiesce,
	.clone = on_clone,
	.jctl = on_jctl,
	.exec = on_exec,
	.syscall_exit = on_syscall_exit,
	.reap = on_reap,
};
