/*
 * Who is in a tree, and what is to be told of it. The kernel says by SIGCHLD that some thread has changed its state, and by waitpid() which;
 * the signal is taken from a descriptor, so that the recorder waits for it and for rings in one place.
 */
#include "proc/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/joined.h"

#define STRANGER_NS 2000000000u	/* after that long its maker is taken for dead */
#define MOMENT_NS 20000000u	/* see startup.c */

struct kymo_error *kymo_tree_create(struct kymo_tree **ret)
{
	struct kymo_tree *tree = calloc(1, sizeof(*tree));
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t child;

	if (!tree)
		return &kymo_error_no_memory;
	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	tree->fd = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
	if (tree->fd < 0) {
		int err = errno;

		free(tree);
		return kymo_error_errno(err, "cannot watch for children");
	}
	sigprocmask(SIG_BLOCK, &child, &tree->mask);
	sigaction(SIGCHLD, &action, &tree->action);	/* the kernel sends none to who ignores it */
	*ret = tree;
	return NULL;
}

/* Those that nobody has asked for, stopped at birth. */
static void let_strangers_go(struct kymo_tree *tree)
{
	for (size_t i = 0; i < tree->strangers.n; i++)
		ptrace(PTRACE_DETACH, tree->strangers.items[i].tid, 0, 0);
}

void kymo_tree_destroy(struct kymo_tree *tree)
{
	if (!tree)
		return;
	while (tree->members.n)
		kymo_process_destroy(tree->members.items[tree->members.n - 1]);
	let_strangers_go(tree);
	for (size_t i = tree->first; i < tree->queue.n; i++)
		kymo_error_destroy(tree->queue.items[i].refusal);
	sigaction(SIGCHLD, &tree->action, NULL);
	sigprocmask(SIG_SETMASK, &tree->mask, NULL);
	close(tree->fd);
	kymo_vec_deinit(&tree->members);
	kymo_vec_deinit(&tree->strangers);
	kymo_vec_deinit(&tree->queue);
	free(tree);
}

int kymo_tree_fd(const struct kymo_tree *tree)
{
	return tree->fd;
}

/* ---- members ------------------------------------------------------------------------------------------------------- */

struct kymo_process *kymo_tree_find(const struct kymo_tree *tree, pid_t tid)
{
	/* Whose first thread has ended is known by its pid all the same. */
	for (size_t i = tree->members.n; i-- > 0;)
		if (tree->members.items[i]->pid == tid && !tree->members.items[i]->is_past)
			return tree->members.items[i];
	for (size_t i = tree->members.n; i-- > 0;)
		if (!tree->members.items[i]->is_past && kymo_find_thread(tree->members.items[i], tid))
			return tree->members.items[i];
	return NULL;
}

bool kymo_tree_add(struct kymo_tree *tree, struct kymo_process *process)
{
	if (!kymo_vec_push(&tree->members, process))
		return false;
	process->tree = tree;
	return true;
}

void kymo_tree_forget(struct kymo_tree *tree, const struct kymo_process *process)
{
	size_t left = 0;

	for (size_t i = 0; i < tree->members.n; i++) {
		if (tree->members.items[i] == process)
			continue;
		if (tree->members.items[i]->memory_of == process)
			tree->members.items[i]->memory_of = NULL;
		tree->members.items[left++] = tree->members.items[i];
	}
	tree->members.n = left;
	left = tree->first;
	for (size_t i = tree->first; i < tree->queue.n; i++) {
		struct kymo_tree_event *event = &tree->queue.items[i];

		if (event->other == process)
			event->other = NULL;
		if (event->process == process)
			kymo_error_destroy(event->refusal);
		else
			tree->queue.items[left++] = *event;
	}
	tree->queue.n = left;
}

/* A launched one stands stopped, seized with other options. */
static struct kymo_error *take_stopped(struct kymo_process *process)
{
	for (size_t i = 0; i < process->threads.n; i++) {
		struct kymo_thread *thread = &process->threads.items[i];

		thread->is_in_call = true;
		if (ptrace(PTRACE_SETOPTIONS, thread->tid, 0, KYMO_FOLLOW_OPTIONS))
			return kymo_error_errno(errno, "cannot follow process %d", process->pid);
	}
	process->is_whole = process->was_born_here = true;
	return NULL;
}

/* One that is followed keeps its tracer, and there can't be two. */
static struct kymo_error *check_untraced(const struct kymo_process *process)
{
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(kymo_live_thread(process->pid), &info);
	char comm[16];

	if (error || !info.tracer || !kymo_can_join(info.tracer))	/* others may be gone in a moment, or are told of by who finds that they are not */
		return error;
	kymo_tree_read_comm(info.tracer, comm);
	return kymo_error_create(KYMO_ERROR_BUSY,
				 "process %d is traced by process %d (%s) already, so the children that it makes cannot be followed; record it without --follow",
				 process->pid, info.tracer, comm);
}

struct kymo_error *kymo_tree_take(struct kymo_tree *tree, struct kymo_process *process)
{
	struct kymo_error *error;

	if (process->stopped) {
		if (!kymo_tree_add(tree, process))
			return &kymo_error_no_memory;
		return take_stopped(process);
	}
	error = check_untraced(process);
	if (error)
		return error;
	if (!kymo_tree_add(tree, process))
		return &kymo_error_no_memory;
	error = kymo_process_stop(process);
	if (!error)
		kymo_process_resume(process);
	return error;
}

pid_t kymo_tree_sharing_child(const struct kymo_process *process)
{
	const struct kymo_tree *tree = process->tree;

	for (size_t i = 0; i < tree->members.n; i++)
		if (tree->members.items[i]->memory_of == process && !tree->members.items[i]->is_past)
			return tree->members.items[i]->pid;
	return 0;
}

void kymo_tree_read_comm(pid_t tid, char ret[16])
{
	kymo_cleanup_close int fd = -1;
	char name[32];
	ssize_t n;

	ret[0] = '\0';
	snprintf(name, sizeof(name), "/proc/%d/comm", tid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, ret, 15);
	ret[n < 0 ? 0 : n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

/* ---- strangers ----------------------------------------------------------------------------------------------------- */

bool kymo_tree_take_stranger(struct kymo_tree *tree, pid_t tid, int *status_ret)
{
	for (size_t i = 0; i < tree->strangers.n; i++) {
		if (tree->strangers.items[i].tid != tid)
			continue;
		*status_ret = tree->strangers.items[i].status;
		tree->strangers.items[i] = tree->strangers.items[--tree->strangers.n];
		return true;
	}
	return false;
}

static void add_stranger(struct kymo_tree *tree, pid_t tid, int status)
{
	struct stranger stranger = { tid, status, kymo_now_ns() };
	int before;

	kymo_tree_take_stranger(tree, tid, &before);
	if (WIFSTOPPED(status) && !kymo_vec_push(&tree->strangers, stranger))
		ptrace(PTRACE_DETACH, tid, 0, 0);
}

static void look_at_strangers(struct kymo_tree *tree)
{
	uint64_t now = tree->strangers.n ? kymo_now_ns() : 0;

	for (size_t i = 0; i < tree->strangers.n;) {
		struct stranger stranger = tree->strangers.items[i];

		if (now - stranger.since_ns < STRANGER_NS) {
			i++;
			continue;
		}
		tree->strangers.items[i] = tree->strangers.items[--tree->strangers.n];
		kymo_follow_orphan(tree, &stranger);
	}
}

/* ---- events -------------------------------------------------------------------------------------------------------- */

void kymo_tree_tell(struct kymo_tree *tree, const struct kymo_tree_event *event)
{
	if (tree->first == tree->queue.n)
		tree->first = tree->queue.n = 0;
	if (!kymo_vec_push(&tree->queue, *event))
		kymo_error_destroy(event->refusal);
}

bool kymo_tree_pump(struct kymo_tree *tree)
{
	struct kymo_process *process;
	siginfo_t info = { .si_pid = 0 };
	int status;

	/* Looked at first: the name of a thread that has ended can be read until it is waited for. */
	if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) || !info.si_pid)
		return false;
	tree->comm[0] = '\0';
	if (info.si_code == CLD_EXITED || info.si_code == CLD_KILLED || info.si_code == CLD_DUMPED)
		kymo_tree_read_comm(info.si_pid, tree->comm);
	if (waitpid(info.si_pid, &status, WNOHANG | __WALL) != info.si_pid)
		return true;	/* killed between: it has another state now */
	process = kymo_tree_find(tree, info.si_pid);
	if (process)
		kymo_follow_dispatch(process, info.si_pid, status);
	else
		add_stranger(tree, info.si_pid, status);
	return true;
}

/* Programs that start and make no system calls are looked at now and then. */
static void look_at_starting(struct kymo_tree *tree)
{
	uint64_t now = 0;

	for (size_t i = 0; i < tree->members.n; i++) {
		struct kymo_process *process = tree->members.items[i];

		if (!process->startup.is_on || process->is_past || (process->threads.n && process->threads.items[0].stop_signal))
			continue;
		now = now ? now : kymo_now_ns();
		if (now < process->startup.moment_ns)
			continue;
		process->startup.moment_ns = now + MOMENT_NS;
		ptrace(PTRACE_INTERRUPT, process->pid, 0, 0);
	}
}

static void forget_signals(struct kymo_tree *tree)
{
	struct signalfd_siginfo infos[8];

	while (read(tree->fd, infos, sizeof(infos)) > 0)
		;
}

bool kymo_tree_next(struct kymo_tree *tree, struct kymo_tree_event *ret)
{
	if (tree->first == tree->queue.n) {
		forget_signals(tree);	/* first: a signal that comes from here on is kept for the next poll() */
		while (tree->first == tree->queue.n && kymo_tree_pump(tree))
			;
		look_at_strangers(tree);
		look_at_starting(tree);
	}
	if (tree->first == tree->queue.n)
		return false;
	*ret = tree->queue.items[tree->first++];
	if (ret->is_held)
		ret->process->is_held = false;
	return true;
}
