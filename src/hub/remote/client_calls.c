/* The calls of include/kymo/engine.h on engines of another process' hub. */
#include <errno.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>

#include "base/vec.h"
#include "hub/engine.h"
#include "hub/ops.h"
#include "hub/remote/client.h"
#include "hub/remote/client_calls.h"
#include "hub/remote/message.h"
#include "hub/remote/table.h"
#include "hub/state.h"
#include "kymo/engine.h"
#include "procfs/info.h"

enum { PER_MESSAGE = HUB_DATA_MAX / sizeof(struct kymo_engine_info) };

#define NAP_NS 500000

static int ask(const struct kymo_engine *engine, struct hub_message *message, void *memory)
{
	int64_t result;

	message->engine = engine->name;
	result = hub_client_ask(hub_client_of(engine->hub), message, memory);
	return result == -EPIPE ? -ESRCH : (int)result;
}

/* ---- attaching ------------------------------------------------------------------------------- */

static const struct kymo_engine_ops nothing;

/* It was not attached, so its data go to no callback. */
static void forget_engine(struct hub_client *client, struct kymo_engine *engine, int64_t result)
{
	if (result == -EPIPE)
		hub_client_wait_for_end(client);
	engine->ops = &nothing;
	if (hub_table_take(&client->table, engine->name))
		kymo_engine_put(engine);
	kymo_engine_put(engine);
}

static int create(struct kymo_hub *hub, struct hub_message *message, const struct kymo_engine_ops *ops, void *data,
		  struct kymo_engine **ret)
{
	struct kymo_engine *engine = calloc(1, sizeof(*engine));
	int64_t result;

	if (!engine)
		return -ENOMEM;
	atomic_init(&engine->refs, 2); /* the caller's, the table's */
	engine->hub = hub;
	engine->ops = ops;
	engine->data = data;
	engine->name = message->engine = hub_client_new_name(hub_client_of(hub));
	hub_table_add(&hub_client_of(hub)->table, engine);
	result = hub_client_ask(hub_client_of(hub), message, NULL);
	if (result)
		forget_engine(hub_client_of(hub), engine, result);
	else
		*ret = engine;
	return result > 0 ? -EPROTO : (int)result;
}

static int client_attach(struct kymo_hub *hub, pid_t tid, unsigned int flags, const struct kymo_engine_ops *ops,
			 void *data, struct kymo_engine **ret)
{
	struct hub_message message = {
		.type = HUB_ATTACH, .tid = tid, .flags = flags, .ops = (uintptr_t)ops, .data = (uintptr_t)data
	};
	struct kymo_engine *engine;
	int64_t result;

	if (flags & KYMO_ATTACH_CREATE)
		return create(hub, &message, ops, data, ret);
	result = hub_client_ask(hub_client_of(hub), &message, NULL);
	if (result)
		return result > 0 ? -EPROTO : (int)result;
	engine = hub_client_find(hub_client_of(hub), message.engine);
	if (!engine)
		return -ENOENT;
	*ret = engine;
	return 0;
}

static int client_attach_process(struct kymo_hub *hub, pid_t pid, unsigned int flags, const struct kymo_engine_ops *ops,
				 void *data, unsigned int events, size_t *n_ret)
{
	struct hub_message message = { .type = HUB_ATTACH_PROCESS, .tid = pid, .flags = flags, .events = events };
	struct hub_client *client = hub_client_of(hub);
	bool is_kept;
	int64_t result;

	message.engine = hub_client_new_name(client);
	message.ops = (uintptr_t)ops;
	message.data = (uintptr_t)data;
	pthread_mutex_lock(&client->state_lock);
	is_kept = kymo_vec_push(&client->groups, (struct hub_group){ HUB_GROUP_OF(message.engine), ops, data });
	pthread_mutex_unlock(&client->state_lock);
	result = is_kept ? hub_client_ask(client, &message, NULL) : -ENOMEM;
	if (result < 0)
		return (int)result;
	if (n_ret)
		*n_ret = (size_t)result;
	return 0;
}

static size_t client_detach_all(struct kymo_hub *hub, const struct kymo_engine_ops *ops, const void *data)
{
	struct hub_message message = { .type = HUB_DETACH_ALL, .ops = (uintptr_t)ops, .data = (uintptr_t)data };
	int64_t result = hub_client_ask(hub_client_of(hub), &message, NULL);

	if (result == -EPIPE)
		hub_client_wait_for_end(hub_client_of(hub));
	return result < 0 ? 0 : (size_t)result;
}

/* ---- an engine ------------------------------------------------------------------------------- */

static pid_t client_tid(const struct kymo_engine *engine)
{
	struct hub_message message = { .type = HUB_WHERE };

	if (hub_client_is_told(hub_client_of(engine->hub), engine))
		return hub_client_of(engine->hub)->told_tid;
	return ask(engine, &message, NULL) ? 0 : message.tid;
}

static pid_t client_pid(const struct kymo_engine *engine)
{
	struct hub_message message = { .type = HUB_WHERE };

	if (hub_client_is_told(hub_client_of(engine->hub), engine))
		return hub_client_of(engine->hub)->told_pid;
	return ask(engine, &message, NULL) ? 0 : message.pid;
}

static int client_set_events(struct kymo_engine *engine, unsigned int events)
{
	return ask(engine, &(struct hub_message){ .type = HUB_SET_EVENTS, .events = events }, NULL);
}

static int client_control(struct kymo_engine *engine, enum kymo_action action)
{
	return ask(engine, &(struct hub_message){ .type = HUB_CONTROL, .action = action }, NULL);
}

/* The hub says "not yet" instead of waiting, so that other threads' calls get through meanwhile. */
static int client_barrier(struct kymo_engine *engine)
{
	struct hub_message message = { .type = HUB_BARRIER };
	int err;

	while ((err = ask(engine, &message, NULL)) == -EAGAIN) {
		uint64_t event = message.word;

		nanosleep(&(struct timespec){ 0, NAP_NS }, NULL);
		message = (struct hub_message){ .type = HUB_BARRIER, .word = event };
	}
	if (hub_client_of(engine->hub)->failure)
		hub_client_wait_for_end(hub_client_of(engine->hub));
	return err;
}

static int client_try_barrier(struct kymo_engine *engine, uint64_t *event)
{
	struct hub_message message = { .type = HUB_BARRIER, .word = *event };
	const int err = ask(engine, &message, NULL);

	*event = message.word;
	return err;
}

/* ---- looking at a thread --------------------------------------------------------------------- */

static int client_prepare_examine(struct kymo_engine *engine, struct kymo_examiner *ret)
{
	struct hub_message message = { .type = HUB_PREPARE };
	int err = ask(engine, &message, NULL);

	if (!err)
		ret->stop = message.word;
	return err;
}

static int client_finish_examine(struct kymo_engine *engine, const struct kymo_examiner *examiner)
{
	return ask(engine, &(struct hub_message){ .type = HUB_FINISH, .word = examiner->stop }, NULL);
}

static int client_get_registers(struct kymo_engine *engine, struct user_regs_struct *ret)
{
	struct hub_message message = { .type = HUB_GET_REGISTERS };
	int err = ask(engine, &message, NULL);

	if (!err)
		*ret = message.registers;
	return err;
}

static int client_set_registers(struct kymo_engine *engine, const struct user_regs_struct *registers)
{
	return ask(engine, &(struct hub_message){ .type = HUB_SET_REGISTERS, .registers = *registers }, NULL);
}

static int client_set_syscall(struct kymo_engine *engine, uint64_t number, const uint64_t args[6])
{
	struct hub_message message = { .type = HUB_SET_SYSCALL, .call = { .number = number } };

	for (int i = 0; i < 6; i++)
		message.call.args[i] = args[i];
	return ask(engine, &message, NULL);
}

static int client_set_result(struct kymo_engine *engine, int64_t result)
{
	return ask(engine, &(struct hub_message){ .type = HUB_SET_RESULT, .word = (uint64_t)result }, NULL);
}

/* In a callback the thread is stopped, so no other thread can have its id. */
static bool read_directly(const struct kymo_engine *engine, uint64_t address, void *data, size_t size)
{
	struct iovec here = { data, size }, there = { (void *)(uintptr_t)address, size };
	const struct hub_client *client = hub_client_of(engine->hub);

	return hub_client_is_told(client, engine) && client->told_tid > 0 && !client->told_breakpoints &&
	       process_vm_readv(client->told_tid, &here, 1, &there, 1, 0) == (ssize_t)size;
}

static int client_read(struct kymo_engine *engine, uint64_t address, void *data, size_t size)
{
	uint8_t *to = data;
	int err = 0;

	if (read_directly(engine, address, data, size))
		return 0;
	for (size_t done = 0, n; !err && done < size; done += n) {
		n = size - done < HUB_DATA_MAX ? size - done : HUB_DATA_MAX;
		err = ask(engine, &(struct hub_message){ .type = HUB_READ, .word = address + done, .size = n },
			  to + done);
	}
	return err;
}

static int client_write(struct kymo_engine *engine, uint64_t address, const void *data, size_t size)
{
	const uint8_t *from = data;
	int err = 0;

	for (size_t done = 0, n; !err && done < size; done += n) {
		n = size - done < HUB_DATA_MAX ? size - done : HUB_DATA_MAX;
		err = ask(engine, &(struct hub_message){ .type = HUB_WRITE, .word = address + done, .size = n },
			  (void *)(uintptr_t)(from + done));
	}
	return err;
}

static int client_set_signal(struct kymo_engine *engine, int signal, const siginfo_t *info)
{
	struct hub_message message = { .type = HUB_SET_SIGNAL, .word = (uint64_t)signal };

	if (info)
		message.info = *info;
	return ask(engine, &message, NULL);
}

static int client_get_xstate(struct kymo_engine *engine, void *ret, size_t size, size_t *size_ret)
{
	struct hub_message message = { .type = HUB_GET_XSTATE, .size = size < HUB_DATA_MAX ? size : HUB_DATA_MAX };
	const int err = ask(engine, &message, ret);

	if (!err)
		*size_ret = message.word < message.size ? message.word : message.size;
	return err;
}

static int client_set_xstate(struct kymo_engine *engine, const void *image, size_t size)
{
	if (size > HUB_DATA_MAX)
		return -E2BIG;
	return ask(engine, &(struct hub_message){ .type = HUB_SET_XSTATE, .size = size }, (void *)(uintptr_t)image);
}

static int client_inject(struct kymo_engine *engine, const siginfo_t *info)
{
	return ask(engine, &(struct hub_message){ .type = HUB_INJECT, .info = *info }, NULL);
}

static int client_insert_breakpoint(struct kymo_engine *engine, uint64_t address)
{
	int err = ask(engine, &(struct hub_message){ .type = HUB_INSERT, .word = address }, NULL);

	if (!err && hub_client_is_told(hub_client_of(engine->hub), NULL))
		hub_client_of(engine->hub)->told_breakpoints = true;
	return err;
}

static int client_remove_breakpoint(struct kymo_engine *engine, uint64_t address)
{
	return ask(engine, &(struct hub_message){ .type = HUB_REMOVE, .word = address }, NULL);
}

static int client_hit_again(struct kymo_engine *engine)
{
	return ask(engine, &(struct hub_message){ .type = HUB_HIT_AGAIN }, NULL);
}

static int client_watch(struct kymo_engine *engine, enum kymo_watch watch, uint64_t address, size_t size,
			unsigned int *slot_ret)
{
	struct hub_message message = { .type = HUB_WATCH, .action = watch, .word = address, .flags = (uint32_t)size };
	int err = ask(engine, &message, NULL);

	if (!err)
		*slot_ret = (unsigned int)message.word;
	return err;
}

static int client_unwatch(struct kymo_engine *engine, unsigned int slot)
{
	return ask(engine, &(struct hub_message){ .type = HUB_UNWATCH, .word = slot }, NULL);
}

static bool is_sane(const struct kymo_engine_info *info)
{
	return !(info->events & ~HUB_MASK) && info->wants >= 0 && info->wants <= KYMO_ACTION_DETACH;
}

/* One message's; how many were asked for is how many fit. */
static int ask_for_some(struct hub_client *client, pid_t id, size_t from, struct kymo_engine_info *infos, size_t n,
			size_t *all_ret)
{
	struct hub_message message = { .type = HUB_LIST, .tid = id, .word = from, .size = n * sizeof(*infos) };
	int64_t err = hub_client_ask_for(client, &message, infos, HUB_ANSWER_MS);

	if (err)
		return err > 0 ? -EPROTO : client->failure ? client->failure : (int)err;
	for (size_t i = 0; i < n && from + i < message.word; i++)
		if (!is_sane(&infos[i]))
			return -EPROTO;
	*all_ret = (size_t)message.word;
	return 0;
}

static int client_list(struct kymo_hub *hub, pid_t id, struct kymo_engine_info *infos, size_t max, size_t *n_ret)
{
	struct kymo_engine_info none;
	size_t from = 0, all = 0;
	int err;

	do {
		const size_t n = max - from < PER_MESSAGE ? max - from : PER_MESSAGE;

		err = ask_for_some(hub_client_of(hub), id, from, n ? infos + from : &none, n, &all);
		from += n;
	} while (!err && from < max && from < all);
	if (!err)
		*n_ret = all;
	return err;
}

static void client_destroy(struct kymo_hub *hub)
{
	hub_client_destroy(hub_client_of(hub));
}

/* ---- what a connection does not do, or does by itself ---------------------------------------- */

static int client_launch(struct kymo_hub *hub, unsigned int flags, char *const *argv, const uint64_t *calls,
			 pid_t *pid_ret)
{
	return -EOPNOTSUPP;
}

static int client_start(struct kymo_hub *hub, pid_t pid)
{
	return -EOPNOTSUPP;
}

static int client_wait(struct kymo_hub *hub, pid_t pid, int *status_ret)
{
	return -EOPNOTSUPP;
}

static void client_run(struct kymo_hub *hub, void (*run)(void *data), void *data)
{
	hub_client_run(hub_client_of(hub), run, data);
}

/* The process that has the hub lets clients in. */
static int client_may_serve(const struct kymo_hub *hub)
{
	return -EALREADY;
}

static int client_leave(struct kymo_hub *hub)
{
	return -EOPNOTSUPP;
}

static int client_failure(const struct kymo_hub *hub)
{
	return ((const struct hub_client *)hub)->failure;
}

static const struct hub_ops ops = {
	.attach = client_attach,
	.attach_process = client_attach_process,
	.detach_all = client_detach_all,
	.tid = client_tid,
	.pid = client_pid,
	.set_events = client_set_events,
	.control = client_control,
	.barrier = client_barrier,
	.try_barrier = client_try_barrier,
	.prepare_examine = client_prepare_examine,
	.finish_examine = client_finish_examine,
	.get_registers = client_get_registers,
	.set_registers = client_set_registers,
	.set_syscall = client_set_syscall,
	.set_result = client_set_result,
	.set_signal = client_set_signal,
	.get_xstate = client_get_xstate,
	.set_xstate = client_set_xstate,
	.read = client_read,
	.write = client_write,
	.inject = client_inject,
	.insert_breakpoint = client_insert_breakpoint,
	.remove_breakpoint = client_remove_breakpoint,
	.hit_again = client_hit_again,
	.watch = client_watch,
	.unwatch = client_unwatch,
	.list = client_list,
	.launch = client_launch,
	.start = client_start,
	.wait = client_wait,
	.run = client_run,
	.may_serve = client_may_serve,
	.leave = client_leave,
	.failure = client_failure,
	.destroy = client_destroy,
};

int hub_connect_to(pid_t tid, struct kymo_hub **ret)
{
	return hub_client_create(tid, &ops, ret);
}

int kymo_hub_connect(pid_t tid, struct kymo_hub **ret)
{
	struct kymo_process_info info;

	if (!kymo_process_peek(tid, &info))
		return -ESRCH;
	return info.tracer ? hub_connect_to(info.tracer, ret) : -ENOENT;
}
