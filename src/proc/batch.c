#include "proc/batch.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "arch/remote.h"
#include "proc/call.h"
#include "proc/joined.h"
#include "proc/memory.h"
#include "proc/request.h"
#include "proc/state.h"
#include "procfs/confined.h"

#define TEXT 256 /* of the scratch memory, for callers; the table of a batch follows */

_Static_assert(KYMO_REMOTE_SCRATCH >= TEXT + KYMO_BATCH_MAX * sizeof(struct kymo_batch_call), "a table has room");

int kymo_harmless_signal(uint64_t mask)
{
	static const int signals[] = { SIGURG, SIGWINCH }; /* ignored by default */

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (!(mask >> (signals[i] - 1) & 1))
			return signals[i];
	return 0;
}

bool kymo_remote_may_batch(struct kymo_process *process)
{
	if (process->startup.is_fresh && !process->startup.harmless && !kymo_is_confined(process->pid))
		process->startup.harmless = kymo_harmless_signal(process->remote.mask);
	process->startup.is_fresh = false;
	return process->startup.harmless && process->joined && process->joined->owner && process->threads.n == 1 &&
	       process->threads.items[0].tid == process->pid;
}

static bool has_code(struct kymo_process *process, uint64_t at)
{
	uint8_t there[KYMO_BATCH_CODE_MAX];
	size_t size;
	const uint8_t *code = kymo_batch_code(&size);

	return at && kymo_remote_may_batch(process) && !kymo_process_read(process, at, there, size) &&
	       !memcmp(there, code, size);
}

static bool has_failed(const struct kymo_batch_call *made)
{
	return made->result < 0 && made->result >= -4095;
}

static struct kymo_error *make_batch(struct kymo_process *process, uint64_t code, struct kymo_batch_call *calls,
				     size_t n)
{
	const uint64_t table = kymo_remote_scratch(process) + TEXT;
	const int signal = process->startup.harmless;
	struct user_regs_struct registers;
	struct kymo_error *error;
	int err = kymo_process_write(process, table, calls, n * sizeof(*calls));

	if (err)
		return kymo_error_errno(err, "cannot write to the stack of process %d", process->pid);
	kymo_process_forget_maps(process);
	kymo_batch_begin(&process->remote.registers, code, process->remote.sp, table, n, signal, &registers);
	error = kymo_joined_batch(process, process->pid, &registers, kymo_batch_end(code), signal);
	if (error) {
		process->startup.harmless = process->startup.is_fresh = 0; /* what is late may still use the table */
		if (error->code == KYMO_ERROR_GONE)
			process->remote.active = false;
		return error;
	}
	err = kymo_process_read(process, table, calls, n * sizeof(*calls));
	return err ? kymo_error_errno(err, "cannot read the stack of process %d", process->pid) : NULL;
}

static struct kymo_error *make_one(struct kymo_process *process, struct kymo_batch_call *call)
{
	return kymo_remote_syscall(process, (long)call->number, call->args, &call->result);
}

struct kymo_error *kymo_remote_calls(struct kymo_process *process, uint64_t code, struct kymo_batch_call *calls,
				     size_t n)
{
	const bool is_batch = n > 1 && has_code(process, code);
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < n; i++)
		calls[i].result = -ECANCELED;
	for (size_t i = 0, part; i < n && !error; i += part) {
		part = is_batch ? n - i : 1;
		part = part < KYMO_BATCH_MAX ? part : KYMO_BATCH_MAX;
		error = part > 1 ? make_batch(process, code, calls + i, part) : make_one(process, calls + i);
		if (!error && has_failed(&calls[i + part - 1]))
			break;
	}
	return error;
}
