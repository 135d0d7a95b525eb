/* What debuggers want of stopped threads beside the calls of engines: register sets, and hits that they have again. */
#include "hub/regset.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "hub/engine.h"
#include "hub/ops.h"
#include "hub/state.h"
#include "hub/thread/frozen.h"
#include "hub/thread/request.h"
#include "hub/thread/task.h"
#include "hub/thread/tracee.h"
#include "hub/trap/breakpoint.h"

struct access {
	const struct kymo_engine *engine;
	struct iovec image;
	bool is_write;
};

/* Of a thread that makes remote calls for a recording: what it gets back then. */
static int access_saved(struct access *access, struct hub_remote_call *call)
{
	struct iovec *image = &access->image;

	if (access->is_write && image->iov_len != call->xstate_size)
		return -EINVAL;
	if (access->is_write) {
		memcpy(call->xstate, image->iov_base, call->xstate_size);
		call->has_new_xstate = true;
		return 0;
	}
	image->iov_len = image->iov_len < call->xstate_size ? image->iov_len : call->xstate_size;
	memcpy(image->iov_base, call->xstate, image->iov_len);
	return 0;
}

static int make_call(struct kymo_hub *hub, void *argument)
{
	struct access *access = argument;
	const struct task *task = access->engine->task;

	if (access->engine->is_detached || !task || task->state == TASK_ENDING)
		return -ESRCH;
	if (task->remote_call && task->remote_call->has_own && task->remote_call->xstate)
		return access_saved(access, task->remote_call);
	if (task->state != TASK_STOPPED || task->remote_call)
		return -EAGAIN;
	return access->is_write ? kymo_set_xstate(task->tid, access->image.iov_base, access->image.iov_len)
				: kymo_get_xstate(task->tid, access->image.iov_base, access->image.iov_len,
						  &access->image.iov_len);
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

static int hit_again(struct kymo_hub *hub, void *argument)
{
	const struct kymo_engine *engine = argument;
	struct task *task = engine->task;

	if (engine->is_detached || !task || task->state == TASK_ENDING)
		return -ESRCH;
	if (task->state != TASK_STOPPED)
		return -EAGAIN;
	hub_breakpoint_passed(task);
	return 0;
}

int hub_local_hit_again(struct kymo_engine *engine)
{
	return hub_call(engine->hub, hit_again, engine);
}

int kymo_engine_hit_again(struct kymo_engine *engine)
{
	return engine->hub->ops->hit_again(engine);
}
