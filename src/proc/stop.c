/* Stopping all threads of a process, and letting them go: through whoever has it, or by ourselves. What is known of those that have stopped. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "proc/joined.h"
#include "proc/process.h"

#define STOP_TIMEOUT_MS 2000
#define SPINS 30
#define BORROW_TRIES 8	/* threads that were to be awake, and sleep where they are stopped */
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

/* `second`: 0 for all threads. */
static struct kymo_error *stop(struct kymo_process *process, pid_t second)
{
	struct kymo_error *error;
	bool is_joined;

	if (process->tree)
		return kymo_keep_stop(process);
	if (process->stopped)
		return NULL;
	error = kymo_joined_stop(process, second, &is_joined);
	return error || is_joined ? error : kymo_keep_take(process, second);
}

struct kymo_error *kymo_process_stop(struct kymo_process *process)
{
	return stop(process, 0);
}

struct kymo_error *kymo_process_stop_first(struct kymo_process *process)
{
	struct kymo_error *error;
	pid_t second;

	if (process->tree || process->stopped)
		return stop(process, 0);
	second = kymo_thread_to_borrow(process->pid);
	error = stop(process, second);
	for (int i = 0; i < BORROW_TRIES && !error && (second = kymo_thread_to_borrow_rather(process)); i++) {
		kymo_process_resume(process);
		error = stop(process, second);
	}
	return error;
}

struct kymo_error *kymo_process_stop_others(struct kymo_process *process)
{
	return process->tree ? kymo_keep_stop(process) : kymo_keep_take(process, 0);
}

void kymo_process_resume(struct kymo_process *process)
{
	if (!process->tree)
		kymo_keep_leave(process);
	else if (kymo_tree_is_alone(process->tree))
		kymo_keep_release(process);
	else
		kymo_keep_resume(process);
}

const struct kymo_thread *kymo_process_threads(const struct kymo_process *process, size_t *n)
{
	*n = process->stopped ? process->threads.n : 0;
	return process->threads.items;
}

int kymo_thread_rseq(struct kymo_process *process, size_t index, uint64_t *pointer_ret, uint32_t *signature_ret)
{
	struct kymo_tracee_facts facts;
	int err = kymo_joined_facts(process->joined, process->threads.items[index].tid, KYMO_FACT_RSEQ, &facts);

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

	return !kymo_joined_facts(process->joined, process->threads.items[index].tid, KYMO_FACT_DISPATCH, &facts) && facts.dispatches_calls;
}

int kymo_thread_set_pc(struct kymo_process *process, size_t index, uint64_t pc)
{
	struct kymo_thread *thread = &process->threads.items[index];
	struct user_regs_struct registers = thread->registers;
	int err;

	registers.rip = pc;
	err = kymo_joined_set_registers(process->joined, thread->tid, &registers);
	if (!err)
		thread->registers = registers;
	return err;
}
