/* Remote calls of a stopped thread: one by one, or together (arch/batch.h), which is two stops less for each. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "arch/batch.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "proc/batch.h"
#include "proc/memory.h"
#include "proc/request.h"
#include "proc/state.h"

_Static_assert(KYMO_REMOTE_SCRATCH >= KYMO_REMOTE_TEXT + KYMO_BATCH_MAX * sizeof(struct kymo_batch_call),
	       "a table has room");

uint64_t kymo_remote_scratch(const struct kymo_process *process)
{
	return process->remote.sp - KYMO_REMOTE_SCRATCH;
}

/* One call by the gadget: two stops. */
static struct kymo_error *call_alone(struct kymo_process *process, long number, const uint64_t args[6],
				     int64_t *result_ret)
{
	pid_t tid = process->threads.items[process->remote.thread].tid;
	struct user_regs_struct registers;
	struct kymo_error *error;

	kymo_remote_call(&process->remote.registers, &process->gadgets, process->remote.sp, number, args, &registers);
	error = kymo_joined_call(process, tid, &registers, &registers);
	if (error && error->code == KYMO_ERROR_GONE)
		process->remote.active = false;
	if (!error)
		*result_ret = (int64_t)registers.rax;
	return error;
}

/* ---- batches --------------------------------------------------------------------------------- */

static bool may_map(long number)
{
	return number != SYS_memfd_create && number != SYS_close;
}

bool kymo_remote_may_batch(struct kymo_process *process)
{
	static const int harmless[] = { SIGURG, SIGWINCH }; /* ignored by default */
	const uint64_t taken = process->remote.mask | process->remote.caught;

	process->remote.batch_signal = 0;
	for (size_t i = 0; i < kymo_countof(harmless) && !process->remote.batch_signal; i++)
		if (!(taken >> (harmless[i] - 1) & 1))
			process->remote.batch_signal = harmless[i];
	return process->remote.active && process->threads.n == 1 &&
	       process->threads.items[process->remote.thread].tid == process->pid && process->remote.batch_signal;
}

void kymo_remote_use_batches(struct kymo_process *process, uint64_t at)
{
	uint8_t there[KYMO_BATCH_CODE_MAX];
	size_t size;
	const uint8_t *code = kymo_batch_code(&size);

	if (!kymo_process_read(process, at, there, size) && !memcmp(there, code, size))
		process->remote.batch_at = at;
}

/* Make the calls of the queue from number `first` on, until one fails: results are in the queue then. A call that is
 * not made keeps -ECANCELED. */
static struct kymo_error *make_batch(struct kymo_process *process, size_t first)
{
	struct kymo_batch_call *calls = process->remote.queue + first;
	const size_t n = process->remote.n_queued - first, size = n * sizeof(*calls);
	const uint64_t table = kymo_remote_scratch(process) + KYMO_REMOTE_TEXT, at = process->remote.batch_at;
	struct user_regs_struct registers;
	struct kymo_error *error;
	int err = kymo_process_write(process, table, calls, size);

	if (err)
		return kymo_error_errno(err, "cannot write to the stack of the process");
	kymo_batch_begin(&process->remote.registers, at, process->remote.sp, table, n, process->inner_pid,
			 process->inner_pid, process->remote.batch_signal, &registers);
	error = kymo_joined_batch(process, process->pid, &registers, kymo_batch_end(at), process->remote.batch_signal);
	if (error && error->code == KYMO_ERROR_GONE)
		process->remote.active = false;
	err = error ? 0 : kymo_process_read(process, table, calls, size);
	return err ? kymo_error_errno(err, "cannot read the stack of the process") : error;
}

static bool has_failed(const struct kymo_batch_call *made)
{
	return made->result < 0 && made->result >= -4095;
}

/* How far it came, and what is wrong there. */
static struct kymo_error *look_at_results(struct kymo_process *process, size_t *at)
{
	struct kymo_error *error = NULL;

	while (*at < process->remote.n_queued && !error) {
		const struct kymo_batch_call *made = &process->remote.queue[*at];
		kymo_remote_result *check = process->remote.results[*at];

		++*at;
		error = check ? check(process, made->args, made->result) : NULL;
		if (has_failed(made))
			break;
	}
	return error;
}

/* What is queued behind a call that failed, and whose result is looked at, is for what has not come. */
static void cancel(struct kymo_process *process, size_t from)
{
	size_t kept = from;

	for (size_t i = from; i < process->remote.n_queued; i++) {
		if (process->remote.results[i])
			continue;
		process->remote.queue[kept] = process->remote.queue[i];
		process->remote.results[kept++] = NULL;
	}
	process->remote.n_queued = kept;
}

struct kymo_error *kymo_remote_flush(struct kymo_process *process)
{
	struct kymo_error *error = NULL, *failed = NULL;
	size_t at = 0;

	while (at < process->remote.n_queued && !error) {
		struct kymo_error *wrong;

		error = make_batch(process, at);
		wrong = error ? NULL : look_at_results(process, &at);
		if (wrong)
			cancel(process, at);
		failed = kymo_error_first(failed, wrong);
	}
	process->remote.n_queued = 0;
	return kymo_error_first(failed, error);
}

static void push(struct kymo_process *process, long number, const uint64_t args[6], kymo_remote_result *check)
{
	struct kymo_batch_call *call = &process->remote.queue[process->remote.n_queued];

	call->number = (uint64_t)number;
	memcpy(call->args, args, sizeof(call->args));
	call->result = -ECANCELED;
	process->remote.results[process->remote.n_queued++] = check;
	if (may_map(number))
		kymo_process_forget_maps(process);
}

static struct kymo_error *make_room(struct kymo_process *process)
{
	return process->remote.n_queued < KYMO_BATCH_MAX ? NULL : kymo_remote_flush(process);
}

struct kymo_error *kymo_remote_queue(struct kymo_process *process, long number, const uint64_t args[6],
				     kymo_remote_result *check)
{
	struct kymo_error *error;
	int64_t result;

	if (process->remote.batch_at) {
		error = make_room(process);
		if (!error)
			push(process, number, args, check);
		return error;
	}
	error = kymo_remote_syscall(process, number, args, &result);
	return error || !check ? error : check(process, args, result);
}

/* It is in the queue. */
static struct kymo_error *keep_result(struct kymo_process *process, const uint64_t args[6], int64_t result)
{
	return NULL;
}

struct kymo_error *kymo_remote_syscall(struct kymo_process *process, long number, const uint64_t args[6],
				       int64_t *result_ret)
{
	struct kymo_error *error;
	size_t at;

	if (may_map(number))
		kymo_process_forget_maps(process);
	if (!process->remote.batch_at)
		return call_alone(process, number, args, result_ret);
	error = make_room(process);
	if (error)
		return error;
	at = process->remote.n_queued;
	push(process, number, args, keep_result);
	error = kymo_remote_flush(process);
	if (!error)
		*result_ret = process->remote.queue[at].result;
	return error;
}
