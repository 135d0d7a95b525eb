/*
 * Following processes, and reporting what happens to them.
 *
 * A tree's hub is on the recorder's own thread. A SIGCHLD says that a thread has changed its state, or that a client
 * has a request. The signal is read from a descriptor, so that the recorder waits for it and for rings in one place.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/io.h"
#include "base/vec.h"
#include "hub/doze.h"
#include "hub/freeze/freeze.h"
#include "hub/freeze/owner.h"
#include "hub/hub.h"
#include "hub/local.h"
#include "hub/launch.h"
#include "hub/remote/door.h"
#include "hub/state.h"
#include "kymo/engine.h"
#include "proc/follow.h"
#include "proc/joined.h"
#include "proc/frozen.h"
#include "proc/launch.h"
#include "proc/linker.h"
#include "proc/members.h"
#include "proc/process.h"
#include "proc/state.h"
#include "proc/tree.h"
#include "procfs/info.h"

#define SHARE_NS \
	2000000u /* for changes of state that need no consent, before others are asked whether they have \ something \
		    to do */
#define STILL_TRIES 3 /* to freeze it, each for a while (hub/freeze/freeze.c) */

/* Elsewhere the recorder is in the middle of something. */
static void while_waiting(void *data)
{
	const struct kymo_tree *tree = data;

	if (tree->is_in_next && tree->meanwhile)
		tree->meanwhile(tree->data);
}

void kymo_tree_set_meanwhile(struct kymo_tree *tree, void (*meanwhile)(void *data), void *data)
{
	tree->meanwhile = meanwhile;
	tree->data = data;
}

static struct kymo_tree *allocate(void)
{
	struct kymo_tree *tree = calloc(1, sizeof(*tree));

	if (tree && !hub_create_here(&tree->hub))
		return tree;
	free(tree);
	return NULL;
}

struct kymo_error *kymo_tree_create(struct kymo_tree **ret)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	struct kymo_tree *tree = allocate();
	sigset_t child;
	int err;

	if (!tree)
		return &kymo_error_no_memory;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	tree->fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (tree->fd < 0) {
		err = errno;
		kymo_hub_destroy(tree->hub);
		free(tree);
		return kymo_error_errno(err, "cannot watch for children");
	}
	tree->hub->waits_for_any = true;
	tree->hub->user.on_orphan = kymo_follow_orphan;
	tree->hub->user.while_waiting = while_waiting;
	tree->hub->user.data = tree;
	hub_sleeps_end(&tree->hub->seizer); /* another tree's on this hub, which block a signal */
	sigprocmask(SIG_BLOCK, &child, &tree->mask);
	sigaction(SIGCHLD, &action, &tree->action); /* the kernel sends none to a process that ignores it */
	kymo_hub_serve(tree->hub);                  /* if no client can connect, none joins */
	*ret = tree;
	return NULL;
}

struct kymo_error *kymo_tree_create_alone(struct kymo_process *process)
{
	struct kymo_tree *tree = allocate();
	struct kymo_error *error;

	if (!tree)
		return &kymo_error_no_memory;
	tree->is_alone = true;
	error = kymo_tree_take(tree, process);
	if (error && !process->tree)
		kymo_tree_destroy(tree);
	return error;
}

/* What is there beside the hub, which others on this thread may have, too. */
static void end_serving(struct kymo_tree *tree)
{
	tree->hub->user.on_orphan = NULL;
	tree->hub->user.while_waiting = NULL;
	hub_sleeps_end(&tree->hub->seizer);
	if (tree->hub->n_users > 1) {
		hub_close_door(tree->hub->door);
		tree->hub->waits_for_any = false;
	}
	sigaction(SIGCHLD, &tree->action, NULL);
	sigprocmask(SIG_SETMASK, &tree->mask, NULL);
	close(tree->fd);
}

void kymo_tree_destroy(struct kymo_tree *tree)
{
	if (!tree)
		return;
	while (tree->members.n)
		kymo_process_destroy(tree->members.items[tree->members.n - 1]);
	if (!tree->is_alone)
		end_serving(tree);
	kymo_tree_free(tree);
}

bool kymo_tree_hand_over(struct kymo_tree *tree, pid_t *who_ret)
{
	struct kymo_tree_event event;
	bool is_shared;

	tree->hub->user.on_orphan = NULL;
	tree->meanwhile = NULL;
	do { /* a process that was born, or executed a program, while the others were let go is frozen for this one */
		while (tree->members.n)
			kymo_process_destroy(tree->members.items[tree->members.n - 1]);
		while (kymo_tree_next(tree, &event))
			kymo_error_destroy(event.refusal);
	} while (tree->members.n);
	is_shared = hub_is_shared(tree->hub);
	*who_ret = is_shared ? hub_visitor(tree->hub) : 0;
	if (!is_shared)
		hub_close_door(tree->hub->door); /* now, as ends may be told meanwhile */
	return is_shared;
}

bool kymo_tree_has_ended(struct kymo_tree *tree, pid_t pid, int *status_ret)
{
	return hub_launched_ended(tree->hub, pid, status_ret);
}

struct kymo_hub *kymo_tree_hub(const struct kymo_tree *tree)
{
	return tree->hub;
}

int kymo_tree_fd(const struct kymo_tree *tree)
{
	hub_dozes_end(tree->hub);
	return tree->fd;
}

/* This hub has stopped a launched process. */
static struct kymo_error *take_stopped(struct kymo_tree *tree, struct kymo_process *process)
{
	int err;

	if (!kymo_vec_reserve(&tree->members, tree->members.n + 1)) /* so that the engine is a member's */
		return &kymo_error_no_memory;
	err = kymo_follow_thread(tree, process->pid);
	if (err)
		return kymo_error_errno(err, "cannot follow process %d", process->pid);
	if (!kymo_tree_add(tree, process))
		return &kymo_error_no_memory;
	process->was_born_here = !tree->is_alone;
	return kymo_frozen_stop(process);
}

/* A followed process keeps its tracer, and there can't be two. */
static struct kymo_error *check_untraced(const struct kymo_process *process)
{
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(kymo_live_thread(process->pid), &info);
	char comm[16];
	pid_t tracer;

	if (error || !info.tracer || !kymo_can_join(info.tracer)) /* others may be gone in a moment, or are told by the
								     function that finds them alive */
		return error;
	tracer = kymo_process_of(info.tracer, comm);
	return kymo_error_create(KYMO_ERROR_BUSY,
				 "process %d is traced by process %d (%s) already, so the children that it makes "
				 "cannot be followed; record it without --follow",
				 process->pid, tracer, comm);
}

struct kymo_error *kymo_tree_take(struct kymo_tree *tree, struct kymo_process *process)
{
	struct kymo_error *error;
	int err;

	if (kymo_process_is_stopped(process))
		return take_stopped(tree, process);
	error = check_untraced(process);
	if (error)
		return error;
	err = kymo_follow_process(tree, process->pid);
	if (err)
		return kymo_not_seized(process->pid, err);
	return kymo_tree_add(tree, process) ? NULL : &kymo_error_no_memory;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* Programs that start and make no system calls are looked at now and then. */
static void look_at_starting(struct kymo_tree *tree)
{
	uint64_t now = 0;

	for (size_t i = 0; i < tree->members.n; i++) {
		struct kymo_process *process = tree->members.items[i];

		if (process->startup.phase != STARTUP_RUNS || process->state == PROCESS_PAST ||
		    process->startup.is_in_group_stop)
			continue;
		now = now ? now : kymo_now_ns();
		if (now < process->startup.moment_ns)
			continue;
		process->startup.moment_ns = now + KYMO_STARTUP_MOMENT_NS;
		kymo_follow_look_at_start(process);
	}
}

static void forget_signals(struct kymo_tree *tree)
{
	struct signalfd_siginfo infos[8];

	hub_signal_is_dealt_with(tree->hub);
	while (read(tree->fd, infos, sizeof(infos)) == sizeof(infos)) /* less: there were no more */
		;
}

static bool is_any_starting(const struct kymo_tree *tree)
{
	for (size_t i = 0; i < tree->members.n; i++)
		if (tree->members.items[i]->startup.phase == STARTUP_RUNS &&
		    tree->members.items[i]->state != PROCESS_PAST)
			return true;
	return false;
}

/* Until there is something to tell. Peers that have joined may keep threads changing their states forever. A program
 * that starts stops at each of its calls, and is waited for here: a turn through the recorder's loop costs more than
 * that takes. */
static void pump(struct kymo_tree *tree)
{
	uint64_t deadline = kymo_now_ns() + SHARE_NS;
	unsigned int spins = 0;

	while (tree->first == tree->queue.n) {
		bool has_any = kymo_tree_pump(tree), is_late = kymo_now_ns() >= deadline;

		spins = has_any ? 0 : spins + 1;
		if (!has_any)
			hub_signal_is_dealt_with(tree->hub);
		else if (is_late)
			tgkill(getpid(), gettid(), SIGCHLD); /* there is more, for the next poll() */
		if (is_late || (!has_any && (!is_any_starting(tree) || !hub_doze(tree->hub, 0, spins - 1))))
			return;
	}
}

/* The freeze has been requested, and is under way. One that does not come there in this time stays requested; what is
 * not available then fails when it is asked for. */
static void stand_still(const struct kymo_tree_event *event)
{
	struct kymo_process *process = event->process;

	if (event->kind != KYMO_TREE_FORKED && event->kind != KYMO_TREE_EXECED && event->kind != KYMO_TREE_STARTUP)
		return;
	for (int i = 0; i < STILL_TRIES && (!i || !kymo_process_is_stopped(process)) && process->state != PROCESS_PAST;
	     i++)
		kymo_error_destroy(kymo_joined_freeze(process, 0, NULL));
	if (kymo_process_is_stopped(process))
		kymo_frozen_engines(process);
}

static bool next_event(struct kymo_tree *tree, struct kymo_tree_event *ret)
{
	if (tree->first == tree->queue.n) {
		forget_signals(tree); /* first: a signal that comes from here on is kept for the next poll() */
		pump(tree);
		look_at_starting(tree);
	}
	if (tree->first == tree->queue.n)
		return false;
	*ret = tree->queue.items[tree->first++];
	if (ret->is_held)
		ret->process->birth.is_held = false;
	stand_still(ret);
	return true;
}

bool kymo_tree_next(struct kymo_tree *tree, struct kymo_tree_event *ret)
{
	bool has_any;

	tree->is_in_next = true;
	has_any = next_event(tree, ret);
	tree->is_in_next = false;
	return has_any;
}

static bool is_startup_of(const struct kymo_tree_event *event, const struct kymo_process *process,
			  enum kymo_startup_event *ret)
{
	bool is_exec = event->kind == KYMO_TREE_EXECED && event->other == process;

	if (is_exec || (event->kind == KYMO_TREE_ENDED && event->process == process)) {
		*ret = is_exec ? KYMO_STARTUP_EXECED : KYMO_STARTUP_ENDED;
		return true;
	}
	*ret = event->startup;
	return event->kind == KYMO_TREE_STARTUP && event->process == process;
}

bool kymo_tree_take_startup(struct kymo_process *process, enum kymo_startup_event *ret)
{
	struct kymo_tree *tree = process->tree;

	look_at_starting(tree);
	for (size_t i = tree->first; i < tree->queue.n; i++) {
		struct kymo_tree_event event = tree->queue.items[i];

		if (!is_startup_of(&event, process, ret))
			continue;
		if (event.kind != KYMO_TREE_STARTUP)
			return true;
		memmove(&tree->queue.items[i], &tree->queue.items[i + 1], (--tree->queue.n - i) * sizeof(event));
		stand_still(&event);
		return true;
	}
	return false;
}

void kymo_process_freeze_birth(struct kymo_process *process, bool is_to_freeze)
{
	process->birth.is_to_freeze = is_to_freeze;
}
