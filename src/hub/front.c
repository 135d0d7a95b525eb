/* The calls of include/kymo/engine.h that depend on a hub's nature: what callers give is checked here, for both; ops.h
 * tells of the rest. */
#include <errno.h>

#include "hub/engine.h"
#include "hub/ops.h"
#include "hub/state.h"
#include "hub/trap/watch.h"
#include "kymo/engine.h"

#define ATTACH_FLAGS \
	(KYMO_ATTACH_CREATE | KYMO_ATTACH_EXCLUSIVE | KYMO_ATTACH_MATCH_OPS | KYMO_ATTACH_MATCH_DATA | \
	 KYMO_ATTACH_BREAKPOINTS)

/* ---- a hub ----------------------------------------------------------------------------------- */

void kymo_hub_destroy(struct kymo_hub *hub)
{
	if (hub)
		hub->ops->destroy(hub);
}

int kymo_hub_failure(const struct kymo_hub *hub)
{
	return hub->ops->failure(hub);
}

int kymo_hub_list(struct kymo_hub *hub, pid_t id, struct kymo_engine_info *infos, size_t max, size_t *n_ret)
{
	return hub->ops->list(hub, id, infos, max, n_ret);
}

static bool can_launch(unsigned int flags, char *const *argv)
{
	return !(flags & ~(unsigned int)KYMO_LAUNCH_EXITKILL) && argv && argv[0];
}

int kymo_hub_launch(struct kymo_hub *hub, unsigned int flags, char *const *argv, pid_t *pid_ret)
{
	return can_launch(flags, argv) ? hub->ops->launch(hub, flags, argv, NULL, pid_ret) : -EINVAL;
}

int kymo_hub_launch_picking(struct kymo_hub *hub, unsigned int flags, char *const *argv, const uint64_t *calls,
			    pid_t *pid_ret)
{
	return calls && can_launch(flags, argv) ? hub->ops->launch(hub, flags, argv, calls, pid_ret) : -EINVAL;
}

int kymo_hub_start(struct kymo_hub *hub, pid_t pid)
{
	return hub->ops->start(hub, pid);
}

int kymo_hub_wait(struct kymo_hub *hub, pid_t pid, int *status_ret)
{
	return hub->ops->wait(hub, pid, status_ret);
}

/* ---- attaching ------------------------------------------------------------------------------- */

/* The library reads each member that it knows: a smaller table lacks some. It never calls members that it does not
 * know: the program would wait for them in vain. */
static int check_ops(const struct kymo_engine_ops *ops)
{
	if (ops->size < sizeof(*ops))
		return -EBADR;
	return ops->size > sizeof(*ops) ? -E2BIG : 0;
}

int kymo_engine_attach(struct kymo_hub *hub, pid_t tid, unsigned int flags, const struct kymo_engine_ops *ops,
		       void *data, struct kymo_engine **ret)
{
	int err = flags & KYMO_ATTACH_CREATE && ops ? check_ops(ops) : 0;

	if (flags & ~ATTACH_FLAGS || (flags & KYMO_ATTACH_CREATE && !ops))
		return -EINVAL;
	return err ? err : hub->ops->attach(hub, tid, flags, ops, data, ret);
}

int kymo_engine_attach_process(struct kymo_hub *hub, pid_t pid, unsigned int flags, const struct kymo_engine_ops *ops,
			       void *data, unsigned int events, size_t *n_ret)
{
	int err = ops ? check_ops(ops) : 0;

	if (flags & ~ATTACH_FLAGS || !ops || events & ~HUB_MASK)
		return -EINVAL;
	return err ? err : hub->ops->attach_process(hub, pid, flags, ops, data, events, n_ret);
}

size_t kymo_engine_detach_all(struct kymo_hub *hub, const struct kymo_engine_ops *ops, void *data)
{
	return hub->ops->detach_all(hub, ops, data);
}

/* ---- an engine ------------------------------------------------------------------------------- */

pid_t kymo_engine_tid(const struct kymo_engine *engine)
{
	return engine->hub->ops->tid(engine);
}

pid_t kymo_engine_pid(const struct kymo_engine *engine)
{
	return engine->hub->ops->pid(engine);
}

int kymo_engine_set_events(struct kymo_engine *engine, unsigned int events)
{
	return events & ~HUB_MASK ? -EINVAL : engine->hub->ops->set_events(engine, events);
}

int kymo_engine_control(struct kymo_engine *engine, enum kymo_action action)
{
	return (unsigned int)action > KYMO_ACTION_DETACH ? -EINVAL : engine->hub->ops->control(engine, action);
}

int kymo_engine_barrier(struct kymo_engine *engine)
{
	return engine->hub->ops->barrier(engine);
}

/* ---- its thread ------------------------------------------------------------------------------ */

int kymo_engine_prepare_examine(struct kymo_engine *engine, struct kymo_examiner *ret)
{
	return engine->hub->ops->prepare_examine(engine, ret);
}

int kymo_engine_finish_examine(struct kymo_engine *engine, const struct kymo_examiner *examiner)
{
	return engine->hub->ops->finish_examine(engine, examiner);
}

int kymo_engine_get_registers(struct kymo_engine *engine, struct user_regs_struct *ret)
{
	return engine->hub->ops->get_registers(engine, ret);
}

int kymo_engine_set_registers(struct kymo_engine *engine, const struct user_regs_struct *registers)
{
	return engine->hub->ops->set_registers(engine, registers);
}

int kymo_engine_set_syscall(struct kymo_engine *engine, uint64_t number, const uint64_t args[6])
{
	return engine->hub->ops->set_syscall(engine, number, args);
}

int kymo_engine_set_result(struct kymo_engine *engine, int64_t result)
{
	return engine->hub->ops->set_result(engine, result);
}

int kymo_engine_set_signal(struct kymo_engine *engine, int signal, const siginfo_t *info)
{
	if (signal < 0 || signal > SIGRTMAX || (signal && (!info || info->si_signo != signal)))
		return -EINVAL;
	return engine->hub->ops->set_signal(engine, signal, info);
}

int kymo_engine_read(struct kymo_engine *engine, uint64_t address, void *data, size_t size)
{
	return engine->hub->ops->read(engine, address, data, size);
}

int kymo_engine_write(struct kymo_engine *engine, uint64_t address, const void *data, size_t size)
{
	return engine->hub->ops->write(engine, address, data, size);
}

int kymo_engine_inject(struct kymo_engine *engine, const siginfo_t *info)
{
	if (info->si_signo <= 0 || info->si_signo > SIGRTMAX)
		return -EINVAL;
	return engine->hub->ops->inject(engine, info);
}

int kymo_engine_insert_breakpoint(struct kymo_engine *engine, uint64_t address)
{
	return engine->hub->ops->insert_breakpoint(engine, address);
}

int kymo_engine_remove_breakpoint(struct kymo_engine *engine, uint64_t address)
{
	return engine->hub->ops->remove_breakpoint(engine, address);
}

int kymo_engine_watch(struct kymo_engine *engine, enum kymo_watch watch, uint64_t address, size_t size,
		      unsigned int *slot_ret)
{
	if (!hub_watch_can(watch, address, size))
		return -EINVAL;
	return engine->hub->ops->watch(engine, watch, address, size, slot_ret);
}

int kymo_engine_unwatch(struct kymo_engine *engine, unsigned int slot)
{
	return engine->hub->ops->unwatch(engine, slot);
}
