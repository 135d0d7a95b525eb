/*
 * Stopping all threads of a process, and letting them go.
 *
 * PTRACE_SEIZE does not disturb a thread; PTRACE_INTERRUPT makes it stop. A thread that has stopped creates no other, so
 * when all known ones are stopped and /proc/PID/task shows no new one, none runs. A thread that meets a signal on its way is
 * given that signal at once and interrupted again (in its handler's first instruction, or not at
 * all when the signal was fatal), so that no signal has to be remembered.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/joined.h"
#include "proc/process.h"

#define STOP_TIMEOUT_MS 2000
#define SEIZE_TRIES 20
#define SEIZE_MAX_TRIES 100
#define SPINS 30
#define LONG_WAIT_MS 10000

/* A nap is at least as long as the timer slack, some 50 us. */
void kymo_wait_a_little(unsigned int spins)
{
	unsigned int naps = spins < SPINS ? 0 : spins - SPINS;

	if (spins < SPINS)
		sched_yield();
	else
		nanosleep(&(struct timespec){ 0, naps < 6 ? 20000l << naps : 1000000 }, NULL);
}

int kymo_wait_thread(struct kymo_process *process, pid_t tid, int timeout_ms, int *status_ret)
{
	uint64_t deadline = kymo_now_ns() + (uint64_t)timeout_ms * 1000000;

	for (unsigned int spins = 0;; spins++) {
		int status;
		pid_t got = waitpid(tid, &status, __WALL | WNOHANG);

		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == tid) {
			if (tid == process->pid && process->launched && (WIFEXITED(status) || WIFSIGNALED(status))) {
				process->reaped = true;
				process->status = status;
			}
			*status_ret = status;
			return 0;
		}
		if (spins >= SPINS && kymo_now_ns() > deadline)
			return -ETIMEDOUT;
		kymo_wait_a_little(spins);
	}
}

char kymo_thread_state(pid_t pid, pid_t tid)
{
	kymo_cleanup_free char *stat = NULL;
	char name[64];
	const char *at;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", pid, tid);
	if (kymo_read_file(AT_FDCWD, name, 4096, &stat, NULL))
		return 'X';
	at = strrchr(stat, ')');
	return at && at[1] ? at[2] : 'X';
}

struct kymo_thread *kymo_find_thread(const struct kymo_process *process, pid_t tid)
{
	for (size_t i = 0; i < process->threads.n; i++)
		if (process->threads.items[i].tid == tid)
			return &process->threads.items[i];
	return NULL;
}

static struct kymo_error *seize_failed(struct kymo_process *process, pid_t tid, int err)
{
	struct kymo_process_info info;
	struct kymo_error *error;

	error = kymo_process_info(tid, &info);
	if (!error && info.tracer && info.tracer != getpid())
		return kymo_error_create(KYMO_ERROR_BUSY,
					 "thread %d of process %d is being traced by process %d; let that one detach first", tid,
					 process->pid, info.tracer);
	kymo_error_destroy(error);
	if (err == EPERM)
		return kymo_error_create(KYMO_ERROR_PERMISSION,
					 "process %d does not let you trace it; try as its user or as root%s", process->pid,
					 access("/proc/sys/kernel/yama/ptrace_scope", R_OK) ?
						 "" :
						 " (kernel.yama.ptrace_scope restricts tracing here)");
	return kymo_error_errno(err, "cannot trace thread %d of process %d", tid, process->pid);
}

static bool is_traced(pid_t tid)
{
	struct kymo_process_info info;
	struct kymo_error *error = kymo_process_info(tid, &info);
	bool traced = !error && info.tracer;

	kymo_error_destroy(error);
	return traced;
}

/* Errno. EPERM may be a tracer that is gone when it is looked for, so it is believed only if it stays without one. */
static int seize(pid_t tid)
{
	int err = 0;

	for (int i = 0, without = 0; i < SEIZE_MAX_TRIES && without < SEIZE_TRIES; i++) {
		err = ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) ? errno : 0;
		if (err != EPERM)
			break;
		if (is_traced(tid) && i >= SEIZE_TRIES)
			break;		/* somebody stays, and has a name */
		without += i >= SEIZE_TRIES;
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	}
	return err;
}

/* Seize one new thread, which runs on. A thread that is ending is passed over. */
static struct kymo_error *take_thread(struct kymo_process *process, pid_t tid)
{
	struct kymo_thread thread = { .tid = tid };
	int err = seize(tid);

	if (err) {
		char state = kymo_thread_state(process->pid, tid);

		return err == ESRCH || state == 'Z' || state == 'X' ? NULL : seize_failed(process, tid, err);
	}
	return kymo_vec_push(&process->threads, thread) ? NULL : &kymo_error_no_memory;
}

struct kymo_error *kymo_take_new_threads(struct kymo_process *process, size_t *n_new)
{
	struct kymo_error *error = NULL;
	size_t before = process->threads.n;
	struct dirent *entry;
	char name[64];
	DIR *tasks;

	snprintf(name, sizeof(name), "/proc/%d/task", process->pid);
	tasks = opendir(name);
	if (!tasks)
		return errno == ENOENT ? kymo_error_create(KYMO_ERROR_GONE, "process %d has ended", process->pid) :
					 kymo_error_errno(errno, "cannot list the threads of process %d", process->pid);
	while (!error && (entry = readdir(tasks))) {
		pid_t tid = (pid_t)strtol(entry->d_name, NULL, 10);

		if (tid > 0 && (before == 0 || !kymo_find_thread(process, tid)))
			error = take_thread(process, tid);
	}
	closedir(tasks);
	*n_new = process->threads.n - before;
	return error;
}

/*
 * The stop made a waiting call fail: have it made again. Its time limit begins anew then, because nobody knows how much of it has passed; that is better
 * than an error for who waits shortly. Who waits for long has timers that must not be late, and expects EINTR.
 */
void kymo_undo_interruption(struct kymo_process *process, struct kymo_thread *thread)
{
	struct user_regs_struct again;
	int64_t limit_ms, limit[2];
	uint64_t limit_at;

	if (!kymo_remote_uninterrupt(&thread->registers, &again, &limit_ms, &limit_at))
		return;
	if (limit_at && !kymo_process_read(process, limit_at, limit, sizeof(limit)))
		limit_ms = limit[0] < LONG_WAIT_MS / 1000 ? 0 : LONG_WAIT_MS + 1;
	if (limit_ms <= LONG_WAIT_MS && !kymo_set_registers(thread->tid, &again))
		thread->registers = again;
}

/* Wait until thread `index` is in a stop in which it will stay. 1: stopped, 0: it died. */
static int settle(struct kymo_process *process, size_t index, int timeout_ms)
{
	pid_t tid = process->threads.items[index].tid;

	for (;;) {
		int status, err = kymo_wait_thread(process, tid, timeout_ms, &status);

		if (err == -ECHILD || (!err && !WIFSTOPPED(status)))
			return 0;
		if (err)
			return err;
		if (status >> 16 == PTRACE_EVENT_STOP)
			return 1;
		/* A signal on its way: deliver it. Other events (exec, a system call that took too long) go on without. Any stop may have used up the interrupt. */
		ptrace(PTRACE_INTERRUPT, tid, 0, 0);
		ptrace(PTRACE_CONT, tid, 0, status >> 16 || WSTOPSIG(status) == (SIGTRAP | 0x80) ? 0 : WSTOPSIG(status));
	}
}

struct kymo_error *kymo_thread_did_not_stop(struct kymo_process *process, pid_t tid)
{
	kymo_cleanup_free char *where = NULL;
	char name[64], state = kymo_thread_state(process->pid, tid);

	snprintf(name, sizeof(name), "/proc/%d/task/%d/wchan", process->pid, tid);
	if (kymo_read_file(AT_FDCWD, name, 4096, &where, NULL))
		where = NULL;
	return kymo_error_create(KYMO_ERROR_BUSY,
				 "thread %d of process %d did not stop within %d s (state %c%s%s: uninterruptible sleep, or waiting for a vfork child); nothing was changed, try again later",
				 tid, process->pid, STOP_TIMEOUT_MS / 1000, state, where && *where ? ", in " : "",
				 where ? where : "");
}

static void forget(struct kymo_process *process, size_t index)
{
	process->threads.items[index] = process->threads.items[--process->threads.n];
}

static void stopped_now(struct kymo_process *process, struct kymo_thread *thread)
{
	thread->is_stopped = true;
	kymo_undo_interruption(process, thread);
}

static struct kymo_error *settle_from(struct kymo_process *process, size_t first)
{
	for (size_t i = first; i < process->threads.n;) {
		struct kymo_thread *thread = &process->threads.items[i];
		int stopped = settle(process, i, STOP_TIMEOUT_MS);
		struct kymo_error *error;

		if (stopped == -ETIMEDOUT)
			return kymo_thread_did_not_stop(process, thread->tid);
		if (stopped != 1 || kymo_get_registers(thread->tid, &thread->registers)) {
			forget(process, i);
			continue;
		}
		thread->is_stopped = true;
		error = kymo_bring_home(process, thread->tid);
		if (error && error->code != KYMO_ERROR_GONE)
			return error;
		if (error)
			forget(process, i);
		else
			stopped_now(process, &process->threads.items[i++]);
		kymo_error_destroy(error);
	}
	return NULL;
}

/* Stop the seized threads from index `first` on. */
static struct kymo_error *stop_from(struct kymo_process *process, size_t first)
{
	for (size_t i = first; i < process->threads.n; i++)	/* fails only for a thread that died, which the wait tells */
		ptrace(PTRACE_INTERRUPT, process->threads.items[i].tid, 0, 0);
	return settle_from(process, first);
}

/* And threads that are new, until there are none. */
static struct kymo_error *stop_new_threads(struct kymo_process *process)
{
	struct kymo_error *error = NULL;
	size_t n_new = 1;

	while (!error && n_new) {
		size_t before = process->threads.n;

		error = kymo_take_new_threads(process, &n_new);
		if (!error)
			error = stop_from(process, before);
	}
	return error;
}

static struct kymo_error *stopped_or_not(struct kymo_process *process, struct kymo_error *error)
{
	if (!error && !process->threads.n)
		error = kymo_error_create(KYMO_ERROR_GONE, "process %d has ended", process->pid);
	if (error)
		kymo_process_resume(process);
	return error;
}

/* Seizing takes most of the time and stops nobody, so it comes first. */
struct kymo_error *kymo_process_stop(struct kymo_process *process)
{
	struct kymo_error *error;
	bool is_joined;
	size_t n_new;

	if (process->tree)
		return kymo_keep_stop(process);
	if (process->stopped)
		return NULL;
	error = kymo_joined_stop(process, false, &is_joined);
	if (error || is_joined)
		return error;
	process->stopped = true;
	error = kymo_take_new_threads(process, &n_new);
	if (!error)
		error = stop_from(process, 0);
	if (!error)
		error = stop_new_threads(process);
	return stopped_or_not(process, error);
}

struct kymo_error *kymo_process_stop_first(struct kymo_process *process)
{
	struct kymo_error *error;
	bool is_joined;

	if (process->tree)
		return kymo_keep_stop(process);
	if (process->stopped)
		return NULL;
	error = kymo_joined_stop(process, true, &is_joined);
	if (error || is_joined)
		return error;
	process->stopped = true;
	error = take_thread(process, process->pid);
	if (!error)
		error = stop_from(process, 0);
	return stopped_or_not(process, error);
}

struct kymo_error *kymo_process_stop_others(struct kymo_process *process)
{
	return process->tree ? kymo_keep_stop(process) : stop_new_threads(process);
}

/*
 * Detaching needs a stopped thread, in a stop that holds no signal. After a failed stop some are not: they are waited for a little more. Whoever does not
 * even then stays on the list, as ours, for the next stop; the kernel lets it go when this process ends.
 */
static bool let_go(struct kymo_process *process, size_t index)
{
	struct kymo_thread *thread = &process->threads.items[index];

	if (!thread->is_stopped && settle(process, index, 100) < 0)
		return false;
	ptrace(PTRACE_DETACH, thread->tid, 0, 0);
	return true;
}

void kymo_process_resume(struct kymo_process *process)
{
	size_t left = 0;

	if (process->tree) {
		kymo_keep_resume(process);
		return;
	}
	if (process->joined) {
		kymo_joined_resume(process);
		return;
	}
	for (size_t i = 0; i < process->threads.n; i++) {
		if (let_go(process, i))
			continue;
		process->threads.items[left] = process->threads.items[i];
		process->threads.items[left++].is_stopped = false;
	}
	process->threads.n = left;
	process->stopped = false;
}

const struct kymo_thread *kymo_process_threads(const struct kymo_process *process, size_t *n)
{
	*n = process->stopped ? process->threads.n : 0;
	return process->threads.items;
}

int kymo_thread_rseq(struct kymo_process *process, size_t index, uint64_t *pointer_ret, uint32_t *signature_ret)
{
	struct kymo_tracee_facts facts;
	int err = kymo_tracee_facts(process, process->threads.items[index].tid, KYMO_FACT_RSEQ, &facts);

	if (!err)
		err = facts.rseq_error;
	if (err)
		return err;
	*pointer_ret = facts.rseq_pointer;
	*signature_ret = facts.rseq_signature;
	return 0;
}

bool kymo_thread_dispatches_calls(struct kymo_process *process, size_t index)
{
	struct kymo_tracee_facts facts;

	return !kymo_tracee_facts(process, process->threads.items[index].tid, KYMO_FACT_DISPATCH, &facts) && facts.dispatches_calls;
}

int kymo_thread_set_pc(struct kymo_process *process, size_t index, uint64_t pc)
{
	struct kymo_thread *thread = &process->threads.items[index];
	struct user_regs_struct registers = thread->registers;
	int err;

	registers.rip = pc;
	err = kymo_tracee_set_registers(process, thread->tid, &registers);
	if (!err)
		thread->registers = registers;
	return err;
}
