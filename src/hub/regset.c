/* Register sets that debuggers want beside the general one. */
#include "hub/regset.h"

#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include "hub/engine.h"
#include "hub/ops.h"
#include "hub/state.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"

struct access {
	const struct kymo_engine *engine;
	struct iovec image;
	bool is_write;
};

static int make_call(struct kymo_hub *hub, void *argument)
{
	struct access *access = argument;
	const struct task *task = access->engine->task;

	if (access->engine->is_detached || !task || task->state == TASK_ENDING)
		return -ESRCH;
	if (task->state != TASK_STOPPED || task->remote_call)
		return -EAGAIN;
	return ptrace(access->is_write ? PTRACE_SETREGSET : PTRACE_GETREGSET, task->tid, NT_X86_XSTATE,
		      &access->image) < 0
		       ? -errno
		       : 0;
}

int hub_local_get_xstate(struct kymo_engine *engine, void *ret, size_t size, size_t *size_ret)
{
	struct access access = { .engine = engine, .image = { ret, size } };
	int err = hub_call(engine->hub, make_call, &access);

	if (!err)
		*size_ret = access.image.iov_len;
	return err;
}

int hub_local_set_xstate(struct kymo_engine *engine, const void *image, size_t size)
{
	struct access access = { .engine = engine, .image = { (void *)(uintptr_t)image, size }, .is_write = true };

	return hub_call(engine->hub, make_call, &access);
}

int kymo_engine_get_xstate(struct kymo_engine *engine, void *ret, size_t size, size_t *size_ret)
{
	return engine->hub->ops->get_xstate(engine, ret, size, size_ret);
}

int kymo_engine_set_xstate(struct kymo_engine *engine, const void *image, size_t size)
{
	return engine->hub->ops->set_xstate(engine, image, size);
}
