/*
 * Errors, results, signals and delays that the user wants in calls. A thread that is to be delayed is held by its
 * engine's STOP, at the entry or at the exit of the call; the main thread lets it go when its time is over.
 */
#include "cli/syscall_inject.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/vec.h"
#include "cli/syscall_wake.h"
#include "cli/syscalls.h"

struct delay {
	struct kymo_engine *engine; /* with a reference */
	uint64_t until_ns;
};

struct cli_syscall_injections {
	KYMO_VEC(struct kymo_syscall_injection) items; /* the last one counts that has the call */
	pthread_mutex_t lock;                          /* of the delays */
	KYMO_VEC(struct delay) delays;
};

struct kymo_error *cli_syscall_injections_add(struct cli_syscall_injections **injections, const char *text)
{
	struct kymo_syscall_injection injection;
	struct kymo_error *error = kymo_syscall_injection_parse(text, &injection);

	if (error)
		return error;
	if (!*injections) {
		*injections = calloc(1, sizeof(**injections));
		if (!*injections)
			return &kymo_error_no_memory;
		pthread_mutex_init(&(*injections)->lock, NULL);
	}
	return kymo_vec_push(&(*injections)->items, injection) ? NULL : &kymo_error_no_memory;
}

void cli_syscall_injections_destroy(struct cli_syscall_injections *injections)
{
	if (!injections)
		return;
	kymo_vec_deinit(&injections->items);
	kymo_vec_deinit(&injections->delays);
	pthread_mutex_destroy(&injections->lock);
	free(injections);
}

/* ---- on the hub's thread --------------------------------------------------------------------- */

static const struct kymo_syscall_injection *find_injection(const struct cli_syscall_injections *injections,
							   uint64_t number)
{
	for (size_t i = injections->items.n; kymo_syscall_name(number) && i-- > 0;)
		if (kymo_syscall_set_has(&injections->items.items[i].set, number))
			return &injections->items.items[i];
	return NULL;
}

bool cli_syscall_injections_have(const struct cli_syscall_injections *injections, uint64_t number)
{
	return find_injection(injections, number);
}

/* As the kernel itself sends them. Engines are not told of what they send, and ours is to show it: so somebody else's
 * does. */
static void send_signal(const struct cli_syscall_thread *thread, int number)
{
	static const struct kymo_engine_ops silent = { .size = sizeof(silent) };
	siginfo_t info;
	struct kymo_engine *sender;
	int err =
		kymo_engine_attach(thread->owner->tracing.hub, thread->tid, KYMO_ATTACH_CREATE, &silent, NULL, &sender);

	memset(&info, 0, sizeof(info));
	info.si_signo = number;
	info.si_code = SI_KERNEL;
	if (!err) {
		err = kymo_engine_inject(sender, &info);
		kymo_engine_control(sender, KYMO_ACTION_DETACH);
		kymo_engine_put(sender);
	}
	if (err && err != -ESRCH)
		thread->owner->output.has_failed = true;
}

/* What the engine answers: that it holds the thread, if it is to be delayed. */
static enum kymo_action delay(struct cli_syscall_thread *thread, uint64_t ns)
{
	struct cli_syscalls *s = thread->owner;
	const struct delay item = { thread->engine, kymo_now_ns() + ns };
	bool is_in;

	if (!ns)
		return KYMO_ACTION_RESUME;
	pthread_mutex_lock(&s->request.injections->lock);
	is_in = kymo_vec_push(&s->request.injections->delays, item);
	if (is_in)
		kymo_engine_get(thread->engine);
	pthread_mutex_unlock(&s->request.injections->lock);
	if (!is_in) {
		s->output.has_failed = true;
		return KYMO_ACTION_RESUME;
	}
	cli_syscalls_wake(s, CLI_SYSCALLS_DELAYED);
	return KYMO_ACTION_STOP;
}

unsigned int cli_syscall_inject_enter(struct cli_syscall_thread *thread)
{
	const struct kymo_syscall_injection *injection =
		find_injection(thread->owner->request.injections, thread->call.number);

	thread->injection = NULL;
	if (!injection || thread->is_starting)
		return KYMO_ACTION_RESUME | KYMO_SYSCALL_RUN;
	if (!thread->made)
		thread->made = calloc(KYMO_SYSCALL_MAX, sizeof(*thread->made));
	if (!thread->made) {
		thread->owner->output.has_failed = true;
		return KYMO_ACTION_RESUME | KYMO_SYSCALL_RUN;
	}
	if (!kymo_syscall_injection_is_due(injection, ++thread->made[thread->call.number]))
		return KYMO_ACTION_RESUME | KYMO_SYSCALL_RUN;
	thread->injection = injection;
	if (injection->signal)
		send_signal(thread, injection->signal);
	return delay(thread, injection->delay_enter_ns) |
	       (injection->has_result ? KYMO_SYSCALL_ABORT : KYMO_SYSCALL_RUN);
}

unsigned int cli_syscall_inject_leave(struct cli_syscall_thread *thread, const struct kymo_syscall_report *report)
{
	const struct kymo_syscall_injection *injection = thread->injection;

	if (!injection)
		return KYMO_ACTION_RESUME;
	if (report->is_aborted && kymo_engine_set_result(thread->engine, injection->result))
		thread->owner->output.has_failed = true;
	return delay(thread, injection->delay_exit_ns);
}

const char *cli_syscall_injected(const struct cli_syscall_thread *thread)
{
	const struct kymo_syscall_injection *injection = thread->injection;

	if (!injection)
		return "";
	if (injection->delay_enter_ns || injection->delay_exit_ns)
		return injection->has_result ? " (INJECTED) (DELAYED)" : " (DELAYED)";
	return injection->has_result ? " (INJECTED)" : "";
}

void cli_syscall_inject_end(const struct cli_syscall_thread *thread)
{
	struct cli_syscall_injections *injections = thread->owner->request.injections;
	bool is_found = false;

	if (!thread->injection)
		return;
	pthread_mutex_lock(&injections->lock);
	for (size_t i = 0; i < injections->delays.n && !is_found; i++)
		if (injections->delays.items[i].engine == thread->engine) {
			injections->delays.items[i] = injections->delays.items[--injections->delays.n];
			is_found = true;
		}
	pthread_mutex_unlock(&injections->lock);
	if (is_found)
		kymo_engine_put(thread->engine);
}

/* ---- on the main thread ---------------------------------------------------------------------- */

/* One whose time is over, with its reference; else NULL, and when the next one's is. */
static struct kymo_engine *take_due(struct cli_syscall_injections *injections, uint64_t now, uint64_t *next_ret)
{
	struct kymo_engine *engine = NULL;

	*next_ret = UINT64_MAX;
	pthread_mutex_lock(&injections->lock);
	for (size_t i = 0; i < injections->delays.n && !engine; i++) {
		const struct delay *item = &injections->delays.items[i];

		if (item->until_ns <= now) {
			engine = item->engine;
			injections->delays.items[i] = injections->delays.items[--injections->delays.n];
		} else if (item->until_ns < *next_ret) {
			*next_ret = item->until_ns;
		}
	}
	pthread_mutex_unlock(&injections->lock);
	return engine;
}

uint64_t cli_syscall_injections_end_delays(struct cli_syscall_injections *injections, uint64_t now)
{
	struct kymo_engine *engine;
	uint64_t next;

	while ((engine = take_due(injections, now, &next))) {
		kymo_engine_control(engine, KYMO_ACTION_RESUME); /* ESRCH: it was killed meanwhile */
		kymo_engine_put(engine);
	}
	return next;
}
