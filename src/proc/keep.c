/*
 * Stopping a process whose threads are seized already, and letting them run without letting them go.
 *
 * Threads are waited for in turn, never one alone: a thread that executes a program waits until those beside it are gone, and they are gone when they
 * have been waited for. What happens to other processes meanwhile is dealt with as well: a thread in vfork() stops when its child has executed something, or ended.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/io.h"
#include "proc/tree.h"

#define STOP_TIMEOUT_NS 2000000000ull
#define RELEASE_TIMEOUT_NS 10000000000ull
#define PATIENT_SPINS 64	/* before /proc is asked about a first thread that does not stop */

/* A first thread that has ended stays as a zombie, of which nothing is told, until the others have ended too. */
static bool is_dead(const struct kymo_process *process, pid_t tid)
{
	char state = tid == process->pid ? kymo_thread_state(tid, tid) : 'R';

	return state == 'Z' || state == 'X';
}

static void forget_thread(struct kymo_process *process, size_t index)
{
	process->threads.items[index] = process->threads.items[--process->threads.n];
}

/* One look at all threads that have not stopped. `moved_ret`: something has changed; `tid_ret` is one of those that are left. How many are. */
static size_t look(struct kymo_process *process, bool *moved_ret, pid_t *tid_ret)
{
	size_t left = 0;

	*moved_ret = false;
	for (size_t i = 0; i < process->threads.n;) {
		pid_t tid = process->threads.items[i].tid, got;
		int status;

		if (process->threads.items[i].is_stopped) {
			i++;
			continue;
		}
		got = waitpid(tid, &status, __WALL | WNOHANG);
		*moved_ret |= got != 0;
		if (got == tid) {
			kymo_follow_dispatch(process, tid, status);
		} else if (got < 0 && errno == ECHILD) {	/* it executes a program, under the first thread's id */
			forget_thread(process, i);
		} else {
			*tid_ret = tid;
			left++;
			i++;
		}
	}
	return left;
}

static struct kymo_error *settle(struct kymo_process *process)
{
	uint64_t deadline = kymo_now_ns() + STOP_TIMEOUT_NS;
	unsigned int spins = 0;
	bool moved;
	pid_t tid;

	while (look(process, &moved, &tid)) {
		if (kymo_tree_pump(process->tree) || moved) {
			spins = 0;
			continue;
		}
		if (spins == PATIENT_SPINS && kymo_find_thread(process, process->pid) && is_dead(process, process->pid))
			forget_thread(process, (size_t)(kymo_find_thread(process, process->pid) - process->threads.items));
		if (kymo_now_ns() > deadline)
			return kymo_thread_did_not_stop(process, tid);
		kymo_wait_a_little(spins++);
	}
	return NULL;
}

static struct kymo_error *interrupt_and_settle(struct kymo_process *process)
{
	for (size_t i = 0; i < process->threads.n; i++)	/* fails only for a thread that died, which the wait tells */
		if (!process->threads.items[i].is_stopped)
			ptrace(PTRACE_INTERRUPT, process->threads.items[i].tid, 0, 0);
	return settle(process);
}

/* Seize what is there, until nothing new is: from then on new threads are seized by their birth. */
static struct kymo_error *seize_all(struct kymo_process *process)
{
	struct kymo_error *error = NULL;
	size_t n_new = 1;

	while (!error && n_new) {
		size_t before = process->threads.n;

		error = kymo_take_new_threads(process, &n_new);
		for (size_t i = before; i < process->threads.n; i++) {
			struct kymo_thread *thread = &process->threads.items[i];
			int status;

			if (kymo_tree_take_stranger(process->tree, thread->tid, &status))
				thread->is_stopped = true;
		}
		if (!error)
			error = interrupt_and_settle(process);
		for (size_t i = before; !error && i < process->threads.n; i++) {
			error = kymo_bring_home(process, process->threads.items[i].tid);
			if (error && error->code == KYMO_ERROR_GONE) {	/* its end comes as an event */
				kymo_error_destroy(error);
				error = NULL;
			}
		}
	}
	process->is_whole = !error;
	return error;
}

/* Who asks for it (CLONE_UNTRACED) has threads that are not seized by their birth. All have stopped that are. */
static bool has_untraced(const struct kymo_process *process)
{
	size_t known = process->threads.n + !kymo_find_thread(process, process->pid);
	struct stat tasks;
	char name[64];

	snprintf(name, sizeof(name), "/proc/%d/task", process->pid);
	return !stat(name, &tasks) && tasks.st_nlink > known + 2;	/* two, and one for each thread */
}

static struct kymo_error *stop(struct kymo_process *process)
{
	struct kymo_error *error = NULL;

	process->stopped = !process->is_past;
	if (process->stopped && process->is_whole)
		error = interrupt_and_settle(process);
	if (!error && process->stopped && (!process->is_whole || has_untraced(process)))
		error = seize_all(process);
	if (error || (process->stopped && process->threads.n))
		return error;
	process->stopped = false;
	return kymo_error_create(KYMO_ERROR_GONE, "process %d has ended, or has become another program", process->pid);
}

struct kymo_error *kymo_keep_stop(struct kymo_process *process)
{
	struct kymo_error *error = stop(process);

	if (error)
		kymo_keep_resume(process);
	return error;
}

void kymo_keep_run_thread(struct kymo_thread *thread)
{
	thread->is_stopped = false;
	if (thread->is_in_call) {
		/* Only on its way out of this stop does the kernel look whether a call of its own, of before, is to be made again. */
		thread->is_in_call = false;
		ptrace(PTRACE_INTERRUPT, thread->tid, 0, 0);
		ptrace(PTRACE_CONT, thread->tid, 0, 0);
	} else if (!thread->stop_signal || ptrace(PTRACE_LISTEN, thread->tid, 0, 0)) {
		ptrace(PTRACE_CONT, thread->tid, 0, 0);
	}
}

void kymo_keep_resume(struct kymo_process *process)
{
	if (process->is_held)
		return;
	process->stopped = false;
	process->startup.is_on = false;
	for (size_t i = 0; i < process->threads.n; i++)
		if (process->threads.items[i].is_stopped)
			kymo_keep_run_thread(&process->threads.items[i]);
}

/* Stop and detach what does stop. Whoever does not even in this time stays seized, and is let go by the kernel when this process ends. */
void kymo_keep_release(struct kymo_process *process)
{
	uint64_t deadline = kymo_now_ns() + RELEASE_TIMEOUT_NS;
	struct kymo_error *error = NULL;

	do {
		kymo_error_destroy(error);
		process->stopped = true;
		error = process->is_whole ? stop(process) : interrupt_and_settle(process);
	} while (error && error->code == KYMO_ERROR_BUSY && kymo_now_ns() < deadline);
	kymo_error_destroy(error);
	for (size_t i = 0; i < process->threads.n; i++)
		if (process->threads.items[i].is_stopped)
			ptrace(PTRACE_DETACH, process->threads.items[i].tid, 0, 0);
	process->threads.n = 0;
	process->stopped = false;
	kymo_tree_forget(process->tree, process);
	process->tree = NULL;
}
