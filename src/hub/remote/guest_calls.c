/*
 * Callbacks of a client's engines, and the calls that the client makes.
 *
 * A callback is a request over the second socket. The hub's thread waits for the answer, for HUB_ANSWER_MS at most, and
 * makes the calls that come from the client meanwhile. A client that takes longer, has gone, or sends an invalid
 * message is lost: its callbacks answer DETACH from then on. What a client runs between two events is waited for in the
 * same way. It has that time for each call again, for a minute at most.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "hub/attach.h"
#include "hub/engine.h"
#include "hub/freeze/answer.h"
#include "hub/freeze/freeze.h"
#include "hub/hub.h"
#include "hub/list.h"
#include "hub/look.h"
#include "hub/regset.h"
#include "hub/remote/guest.h"
#include "hub/remote/guest_calls.h"
#include "hub/remote/message.h"
#include "hub/remote/proof.h"
#include "hub/remote/table.h"
#include "hub/state.h"
#include "kymo/engine.h"

#define MS 1000000ull
#define MEANWHILE_NS (2 * MS)
#define RUN_MS 60000 /* what a client runs between two events takes no longer, all in all */

/* ---- callbacks ------------------------------------------------------------------------------- */

/* The thread may have more to do than to be a hub's. */
static bool receive(struct hub_guest *guest, uint64_t deadline_ns, struct hub_message *ret, int *fd_ret)
{
	const struct kymo_hub *hub = guest->hub;
	uint64_t now;
	int err;

	while ((now = kymo_now_ns()) < deadline_ns) {
		uint64_t until_ns =
			hub->user.while_waiting && deadline_ns > now + MEANWHILE_NS ? now + MEANWHILE_NS : deadline_ns;

		err = hub_receive(guest->events, HUB_CLIENT, until_ns, ret, guest->memory[1], fd_ret);
		if (err != -ETIMEDOUT || until_ns == deadline_ns)
			return !err;
		hub->user.while_waiting(hub->user.data);
	}
	return false;
}

static bool wait_for_answer(struct hub_guest *guest, struct hub_message *message, uint64_t deadline_ns, int *fd_ret)
{
	const uint64_t end_ns = kymo_now_ns() + RUN_MS * MS;
	struct hub_message got;
	int fd;

	while (receive(guest, deadline_ns, &got, &fd)) {
		if (got.is_reply) {
			*fd_ret = fd;
			if (got.type != message->type || got.serial != message->serial)
				return false;
			*message = got;
			return true;
		}
		if (message->type == HUB_PROVE) { /* nothing of the new program is its before it has answered */
			*fd_ret = fd;
			return false;
		}
		hub_guest_run(guest, &got, guest->memory[1], fd);
		if (hub_send(guest->events, &got, guest->memory[1]))
			return false;
		if (message->type == HUB_RUN_NOW && kymo_now_ns() < end_ns) /* it may attach to thousands of threads */
			deadline_ns = kymo_now_ns() + HUB_ANSWER_MS * MS;
	}
	return false;
}

/* The caller closes what comes, which is nothing or the answer's descriptor. */
static bool ask_for_fd(struct hub_guest *guest, struct hub_message *message, int *fd_ret)
{
	uint64_t deadline_ns = kymo_now_ns() + HUB_ANSWER_MS * MS;

	if (guest->is_lost)
		return false;
	message->version = HUB_VERSION;
	message->serial = ++guest->serial;
	if (!hub_send(guest->events, message, NULL) && wait_for_answer(guest, message, deadline_ns, fd_ret))
		return true;
	hub_guest_lose(guest);
	return false;
}

bool hub_guest_ask(struct hub_guest *guest, struct hub_message *message)
{
	kymo_cleanup_close int fd = -1;

	return ask_for_fd(guest, message, &fd);
}

bool hub_guest_proves(struct hub_guest *guest, pid_t tid)
{
	struct hub_message message = { .type = HUB_PROVE, .tid = tid };
	kymo_cleanup_close int fd = -1;

	return ask_for_fd(guest, &message, &fd) && !hub_proof_check(fd, tid, -1);
}

void hub_guest_release(struct kymo_engine *engine)
{
	struct hub_message message = { .type = HUB_GONE, .engine = engine->name };

	hub_table_remove(&engine->guest->table, engine);
	hub_guest_ask(engine->guest, &message);
	hub_guest_put(engine->guest);
}

/* What the callback answers. The callbacks of a lost client answer DETACH with `verdict`. */
static unsigned int ask_guest(struct kymo_engine *engine, struct hub_message *message, enum kymo_action action,
			      unsigned int verdict)
{
	message->engine = engine->name;
	message->tid = kymo_engine_tid(engine);
	message->pid = kymo_engine_pid(engine);
	message->action = action;
	message->flags = hub_has_breakpoints(engine);
	return hub_guest_ask(engine->guest, message) ? (unsigned int)message->result : KYMO_ACTION_DETACH | verdict;
}

static unsigned int on_quiesce(struct kymo_engine *engine, void *data, enum kymo_action action, unsigned int event)
{
	struct hub_message message = { .type = HUB_QUIESCE, .event = event };

	return ask_guest(engine, &message, action, 0);
}

static unsigned int on_signal(struct kymo_engine *engine, void *data, enum kymo_action action,
			      struct kymo_signal_report *report)
{
	struct hub_message message = { .type = HUB_SIGNAL };
	unsigned int answer;

	message.signal = *report;
	answer = ask_guest(engine, &message, action, report->verdict);
	if (message.signal.info.si_signo > 0 && message.signal.info.si_signo <= SIGRTMAX)
		report->info = message.signal.info;
	return answer;
}

#define TOLD(name, kind, report_type, member) \
	static unsigned int on_##name(struct kymo_engine *engine, void *data, enum kymo_action action, \
				      const struct report_type *report) \
	{ \
		struct hub_message message = { .type = kind }; \
\
		message.member = *report; \
		return ask_guest(engine, &message, action, 0); \
	}
TOLD(clone, HUB_CLONE, kymo_clone_report, clone)
TOLD(jctl, HUB_JCTL, kymo_jctl_report, jctl)
TOLD(exec, HUB_EXEC, kymo_exec_report, exec)
TOLD(entry, HUB_SYSCALL_ENTRY, kymo_syscall_report, syscall)
TOLD(exit_of_call, HUB_SYSCALL_EXIT, kymo_syscall_report, syscall)

static unsigned int on_ending(struct kymo_engine *engine, void *data, enum kymo_action action,
			      const struct kymo_exit_report *report)
{
	struct hub_message message = { .type = HUB_EXIT, .status = report->status };

	return ask_guest(engine, &message, action, 0);
}

static unsigned int on_death(struct kymo_engine *engine, void *data, const struct kymo_death_report *report)
{
	struct hub_message message = { .type = HUB_DEATH, .status = report->status };

	return ask_guest(engine, &message, KYMO_ACTION_RESUME, 0);
}

static void on_reap(struct kymo_engine *engine, void *data, const struct kymo_reap_report *report)
{
	struct hub_message message = { .type = HUB_REAP, .reap = *report };

	ask_guest(engine, &message, KYMO_ACTION_RESUME, 0);
}

const struct kymo_engine_ops hub_guest_ops = {
	.size = sizeof(hub_guest_ops),
	.quiesce = on_quiesce,
	.signal = on_signal,
	.clone = on_clone,
	.jctl = on_jctl,
	.exec = on_exec,
	.syscall_entry = on_entry,
	.syscall_exit = on_exit_of_call,
	.exit = on_ending,
	.death = on_death,
	.reap = on_reap,
};

/* ---- calls ----------------------------------------------------------------------------------- */

typedef int64_t guest_call(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof);
typedef int64_t engine_call(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory);

static struct hub_attach what_to_attach(struct hub_guest *guest, const struct hub_message *message, int proof)
{
	return (struct hub_attach){
		.id = message->tid,
		.flags = message->flags,
		.events = message->events & KYMO_EVENTS_ALL,
		.ops = &hub_guest_ops,
		.ops_key = message->ops,
		.data_key = message->data,
		.guest = guest,
		.proof = proof,
		.name = message->engine,
	};
}

static int64_t attach_engine(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof)
{
	struct hub_attach what = what_to_attach(guest, message, proof);
	struct kymo_engine *engine;
	int err;

	what.events = 0;
	what.ret = &engine;
	err = hub_attach(guest->hub, &what);
	if (err)
		return err;
	message->engine = engine->name;
	hub_put_later(engine);
	return 0;
}

static int64_t attach_process(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof)
{
	struct hub_attach what = what_to_attach(guest, message, proof);
	int err = hub_attach_process(guest->hub, &what);

	return err ? err : (int64_t)what.n;
}

static int64_t detach_all(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof)
{
	return (int64_t)hub_detach_all(
		guest->hub, &(struct hub_match){ .guest = guest, .ops_key = message->ops, .data_key = message->data });
}

static int64_t detach_guest(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof)
{
	hub_freeze_drop(&guest->owner);
	hub_detach_all(guest->hub, &(struct hub_match){ .guest = guest, .is_any = true });
	return 0;
}

static void tell_to_run(void *data)
{
	struct hub_message message = { .type = HUB_RUN_NOW };

	hub_guest_ask(data, &message);
}

/* In a callback the client runs what it wants at once. One that asks nevertheless would have the hub call itself
 * without end. */
static int64_t have_it_run(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof)
{
	if (pthread_equal(pthread_self(), guest->hub->thread))
		return -EDEADLK;
	kymo_hub_run(guest->hub, tell_to_run, guest);
	return guest->is_lost ? -EPIPE : 0;
}

static int64_t list_engines(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof)
{
	size_t n = 0;
	int err;

	memset(memory, 0, message->size);
	err = hub_list(guest->hub, message->tid, message->word, (struct kymo_engine_info *)(void *)memory,
		       message->size / sizeof(struct kymo_engine_info), &n);
	message->word = n;
	return err;
}

static int64_t set_events(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_set_events(engine, message->events);
}

static int64_t control(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_control(engine, (enum kymo_action)message->action);
}

static int64_t barrier(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return hub_try_barrier(engine, &message->word);
}

static int64_t tell_where(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	message->tid = kymo_engine_tid(engine);
	message->pid = kymo_engine_pid(engine);
	return 0;
}

static int64_t prepare(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	struct kymo_examiner examiner = { 0 };
	int err = kymo_engine_prepare_examine(engine, &examiner);

	message->word = examiner.stop;
	return err;
}

static int64_t finish_call(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_finish_examine(engine, &(struct kymo_examiner){ message->word });
}

static int64_t get_registers(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_get_registers(engine, &message->registers);
}

static int64_t set_registers(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_set_registers(engine, &message->registers);
}

static int64_t set_syscall(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_set_syscall(engine, message->call.number, message->call.args);
}

static int64_t set_result(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_set_result(engine, (int64_t)message->word);
}

static int64_t read_memory(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_read(engine, message->word, memory, message->size);
}

static int64_t write_memory(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_write(engine, message->word, memory, message->size);
}

static int64_t inject_signal(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_inject(engine, &message->info);
}

static int64_t set_signal(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	if (message->word > (uint64_t)SIGRTMAX)
		return -EINVAL;
	return kymo_engine_set_signal(engine, (int)message->word, &message->info);
}

static int64_t get_xstate(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	size_t n = 0;
	int err;

	memset(memory, 0, message->size);
	err = kymo_engine_get_xstate(engine, memory, message->size, &n);
	message->word = n;
	return err;
}

static int64_t set_xstate(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_set_xstate(engine, memory, message->size);
}

static int64_t insert_break(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_insert_breakpoint(engine, message->word);
}

static int64_t remove_(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_remove_breakpoint(engine, message->word);
}

static int64_t hit_again(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_hit_again(engine);
}

static int64_t set_watch(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	unsigned int slot = 0;
	int err;

	if (message->action > KYMO_WATCH_ACCESS)
		return -EINVAL;
	err = kymo_engine_watch(engine, (enum kymo_watch)message->action, message->word, message->flags, &slot);
	message->word = slot;
	return err;
}

static int64_t unwatch(struct kymo_engine *engine, struct hub_message *message, uint8_t *memory)
{
	return kymo_engine_unwatch(engine, (unsigned int)message->word);
}

static const struct {
	guest_call *of_guest;
	engine_call *of_engine;
} calls[HUB_N_TYPES] = {
	[HUB_BYE] = { detach_guest, NULL },
	[HUB_ATTACH] = { attach_engine, NULL },
	[HUB_ATTACH_PROCESS] = { attach_process, NULL },
	[HUB_DETACH_ALL] = { detach_all, NULL },
	[HUB_LIST] = { list_engines, NULL },
	[HUB_RUN] = { have_it_run, NULL },
	[HUB_SET_EVENTS] = { NULL, set_events },
	[HUB_CONTROL] = { NULL, control },
	[HUB_BARRIER] = { NULL, barrier },
	[HUB_WHERE] = { NULL, tell_where },
	[HUB_PREPARE] = { NULL, prepare },
	[HUB_FINISH] = { NULL, finish_call },
	[HUB_GET_REGISTERS] = { NULL, get_registers },
	[HUB_SET_REGISTERS] = { NULL, set_registers },
	[HUB_SET_SYSCALL] = { NULL, set_syscall },
	[HUB_SET_RESULT] = { NULL, set_result },
	[HUB_READ] = { NULL, read_memory },
	[HUB_WRITE] = { NULL, write_memory },
	[HUB_INJECT] = { NULL, inject_signal },
	[HUB_INSERT] = { NULL, insert_break },
	[HUB_REMOVE] = { NULL, remove_ },
	[HUB_HIT_AGAIN] = { NULL, hit_again },
	[HUB_WATCH] = { NULL, set_watch },
	[HUB_UNWATCH] = { NULL, unwatch },
	[HUB_SET_SIGNAL] = { NULL, set_signal },
	[HUB_GET_XSTATE] = { NULL, get_xstate },
	[HUB_SET_XSTATE] = { NULL, set_xstate },
};

static int64_t call_engine(struct hub_guest *guest, engine_call *run, struct hub_message *message, uint8_t *memory)
{
	struct kymo_engine *engine = hub_table_find(&guest->table, message->engine);
	int64_t result = engine ? run(engine, message, memory) : -ESRCH;

	if (engine)
		hub_put_later(engine);
	return result;
}

static int64_t run_hold(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof)
{
	int64_t result;

	if (message->type != HUB_FREEZE || hub_freeze_is_in_callback(&guest->owner))
		return hub_freeze_run(&guest->owner, message, memory); /* -EINVAL: a second HELLO */
	guest->owner.proof = proof;
	result = hub_freeze_run(&guest->owner, message, memory);
	guest->owner.proof = -1;
	return result;
}

static int64_t run(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof)
{
	if (calls[message->type].of_guest)
		return calls[message->type].of_guest(guest, message, memory, proof);
	if (calls[message->type].of_engine)
		return call_engine(guest, calls[message->type].of_engine, message, memory);
	return run_hold(guest, message, memory, proof);
}

void hub_guest_run(struct hub_guest *guest, struct hub_message *message, uint8_t *memory, int proof)
{
	message->is_reply = 1;
	message->result = run(guest, message, memory, proof);
	if (proof >= 0)
		close(proof);
}
