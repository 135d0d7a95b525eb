/* System calls that failed because of a stop, and are made again. */
#include "arch/remote.h"
#include "hub/run.h"
#include "hub/thread/frozen.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "hub/undo.h"
#include "procfs/disposition.h"
#include "procfs/memory.h"

#define LONG_WAIT_MS 10000

static bool is_to_be_undone(const struct task *task, int signal, const struct user_regs_struct *registers)
{
	struct user_regs_struct again;
	uint64_t limit_at;
	int64_t limit_ms;

	return kymo_remote_uninterrupt(registers, &again, &limit_ms, &limit_at) &&
	       (!signal || kymo_signal_disposition(task->tid, signal) == KYMO_DISPOSITION_IGNORED);
}

/*
 * The stop made a waiting call fail: have it made again. Its time limit begins again then, because it is not known how
 * much of it has passed; for short waits that is better than an error. A thread that waits for long has timers that
 * must not be late, and expects EINTR.
 */
static void make_call_again(const struct kymo_memory *memory, pid_t tid, struct user_regs_struct *registers)
{
	struct user_regs_struct again;
	int64_t limit_ms, limit[2];
	uint64_t limit_at;

	if (!kymo_remote_uninterrupt(registers, &again, &limit_ms, &limit_at))
		return;
	if (limit_at && !kymo_memory_read(memory, limit_at, limit, sizeof(limit)))
		limit_ms = limit[0] < LONG_WAIT_MS / 1000 ? 0 : LONG_WAIT_MS + 1;
	if (limit_ms <= LONG_WAIT_MS && !kymo_set_registers(tid, &again))
		*registers = again;
}

void hub_undo_interruption(struct task *task, int signal)
{
	struct user_regs_struct registers;
	struct hub_memory *memory;

	if (hub_is_interrupted(task) || kymo_get_registers(task->tid, &registers))
		return;
	task->resumed.makes_call_again = kymo_remote_restarts(&registers);
	memory = is_to_be_undone(task, signal, &registers) ? hub_memory_of(task->process) : NULL;
	if (memory) {
		make_call_again(&memory->opened, task->tid, &registers);
		task->resumed.makes_call_again = kymo_remote_restarts(&registers);
	}
	hub_freeze_note(task, &registers);
}
