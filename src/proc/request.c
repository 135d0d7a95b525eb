#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "base/page.h"
#include "hub/freeze/answer.h"
#include "hub/freeze/freeze.h"
#include "hub/remote/client.h"
#include "hub/remote/message.h"
#include "hub/state.h"
#include "hub/thread/tracee.h"
#include "proc/request.h"
#include "proc/state.h"

int kymo_request(struct kymo_joined *joined, struct hub_message *message, void *memory)
{
	if (!joined)
		return -ESRCH;
	return (int)(joined->owner ? hub_freeze_run(joined->owner, message, memory)
				   : hub_client_ask(hub_client_of(joined->hub), message, memory));
}

struct kymo_error *kymo_request_lost(const struct kymo_process *process)
{
	return kymo_error_create(KYMO_ERROR_BUSY,
				 "the kymo that traces process %d, through which its threads were stopped, has ended "
				 "or has let this one go",
				 process->pid);
}

int kymo_joined_set_registers(struct kymo_joined *joined, pid_t tid, const struct user_regs_struct *registers)
{
	return kymo_request(joined,
			    &(struct hub_message){ .type = HUB_FREEZE_SET, .tid = tid, .registers = *registers }, NULL);
}

int kymo_joined_facts(const struct kymo_joined *joined, pid_t tid, unsigned int which, struct kymo_tracee_facts *ret)
{
	if (!joined)
		return -ESRCH;
	if (joined->owner) /* this is the hub's thread */
		return kymo_get_facts(tid, which, ret);
	for (size_t i = 0; i < joined->held.n; i++) {
		if (joined->held.items[i].tid != tid)
			continue;
		*ret = joined->held.items[i].facts;
		return 0;
	}
	return -ESRCH;
}

int kymo_joined_xstate(struct kymo_joined *joined, pid_t tid, void *ret, size_t size, size_t *size_ret)
{
	struct hub_message message = { .type = HUB_FREEZE_XSTATE, .tid = tid, .size = HUB_DATA_MAX };
	kymo_cleanup_free uint8_t *room = malloc(HUB_DATA_MAX);
	int err = room ? kymo_request(joined, &message, room) : -ENOMEM;

	if (!err && (message.word > HUB_DATA_MAX || message.word > size))
		err = -EPROTO;
	if (err)
		return err;
	memcpy(ret, room, message.word);
	*size_ret = message.word;
	return 0;
}

int kymo_joined_begin_calls(struct kymo_joined *joined, pid_t tid, const struct user_regs_struct *call)
{
	return kymo_request(
		joined, &(struct hub_message){ .type = HUB_FREEZE_BEGIN_CALLS, .tid = tid, .registers = *call }, NULL);
}

static struct kymo_error *gone_error(const struct kymo_process *process, pid_t tid)
{
	return kymo_error_create(KYMO_ERROR_GONE, "thread %d of process %d ended meanwhile", tid, process->pid);
}

struct kymo_error *kymo_joined_give_back(struct kymo_process *process, pid_t tid)
{
	int err =
		kymo_request(process->joined, &(struct hub_message){ .type = HUB_FREEZE_END_CALLS, .tid = tid }, NULL);

	if (!err)
		return NULL;
	return !process->joined || process->joined->owner ? gone_error(process, tid) : kymo_request_lost(process);
}

static struct kymo_error *call_failed(struct kymo_process *process, pid_t tid, int err)
{
	switch (err) {
	case -ETIMEDOUT:
		return kymo_error_create(KYMO_ERROR_BUSY, "thread %d of process %d does not return from a system call",
					 tid, process->pid);
	case -EPIPE:
		return kymo_request_lost(process);
	case -EBUSY:
		return kymo_error_create(KYMO_ERROR_BUSY,
					 "another tracer has put a breakpoint on the instruction by which calls are "
					 "made in process %d; try again later",
					 process->pid);
	default:
		return gone_error(process, tid);
	}
}

struct kymo_error *kymo_joined_call(struct kymo_process *process, pid_t tid, const struct user_regs_struct *call,
				    struct user_regs_struct *ret)
{
	struct hub_message message = { .type = HUB_FREEZE_CALL, .tid = tid };
	int err;

	if (call)
		message.registers = *call;
	else
		message.flags = HUB_CALL_AS_IS;
	if (!call)
		kymo_process_forget(process);
	err = kymo_request(process->joined, &message, NULL);
	if (err)
		return call_failed(process, tid, err);
	*ret = message.registers;
	return NULL;
}

struct kymo_error *kymo_joined_batch(struct kymo_process *process, pid_t tid, const struct user_regs_struct *begin,
				     uint64_t end, int signal)
{
	struct hub_message message = { .type = HUB_FREEZE_CALL,
				       .tid = tid,
				       .flags = HUB_CALL_BATCH,
				       .event = (uint32_t)signal,
				       .word = end,
				       .registers = *begin };
	int err = kymo_request(process->joined, &message, NULL);

	return err ? call_failed(process, tid, err) : NULL;
}

bool kymo_joined_writes(const struct kymo_joined *joined)
{
	return !joined->owner || !hub_freeze_is_plain(joined->owner);
}

/* What lies within one page goes with one message. */
int kymo_joined_write(struct kymo_joined *joined, uint64_t address, const void *data, size_t size)
{
	const uint8_t *from = data;
	int err = 0;

	for (size_t done = 0, n; !err && done < size; done += n) {
		n = HUB_DATA_MAX - (address + done) % KYMO_PAGE_SIZE;
		n = size - done < n ? size - done : n;
		err = kymo_request(joined,
				   &(struct hub_message){ .type = HUB_FREEZE_WRITE, .word = address + done, .size = n },
				   (void *)(uintptr_t)(from + done));
	}
	return err;
}
