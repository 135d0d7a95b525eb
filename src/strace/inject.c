/* Errors, results, signals and delays that the user wants in calls. */
#include "strace/inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/vec.h"
#include "strace/state.h"
#include "strace/wake.h"

struct kymo_strace_injections {
	KYMO_VEC(struct kymo_syscall_injection) items; /* the last one counts that has the call */
};

struct kymo_error *kymo_strace_injections_add(struct kymo_strace_injections **injections, const char *text)
{
	struct kymo_syscall_injection injection;
	struct kymo_error *error = kymo_syscall_injection_parse(text, &injection);

	if (error)
		return error;
	if (!*injections) {
		*injections = calloc(1, sizeof(**injections));
		if (!*injections)
			return &kymo_error_no_memory;
	}
	return kymo_vec_push(&(*injections)->items, injection) ? NULL : &kymo_error_no_memory;
}

void kymo_strace_injections_destroy(struct kymo_strace_injections *injections)
{
	if (!injections)
		return;
	kymo_vec_deinit(&injections->items);
	free(injections);
}

static const struct kymo_syscall_injection *find_injection(const struct kymo_strace_injections *injections,
							   uint64_t number)
{
	for (size_t i = injections->items.n; kymo_syscall_name(number) && i-- > 0;)
		if (kymo_syscall_set_has(&injections->items.items[i].set, number))
			return &injections->items.items[i];
	return NULL;
}

bool strace_injections_have(const struct kymo_strace_injections *injections, uint64_t number)
{
	return find_injection(injections, number);
}

/* As the kernel itself sends them. Engines are not told of what they send, and ours is to show it: so another thread's
 * does. */
static void send_signal(const struct strace_thread *thread, int number)
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
		thread->owner->stream.is_incomplete = true;
}

/* What the engine answers: that it holds the thread, if it is to be delayed. */
static enum kymo_action delay(struct strace_thread *thread, uint64_t ns)
{
	struct kymo_strace *s = thread->owner;

	if (!ns)
		return KYMO_ACTION_RESUME;
	if (!strace_delays_add(&s->tracing.delays, thread->engine, ns)) {
		s->stream.is_incomplete = true;
		return KYMO_ACTION_RESUME;
	}
	strace_wake(s, STRACE_DELAYED);
	return KYMO_ACTION_STOP;
}

unsigned int strace_inject_enter(struct strace_thread *thread)
{
	const struct kymo_syscall_injection *injection =
		find_injection(thread->owner->request->target.injections, thread->call.number);

	thread->injection = NULL;
	if (!injection || thread->is_before_exec)
		return KYMO_ACTION_RESUME | KYMO_SYSCALL_RUN;
	if (!thread->made)
		thread->made = calloc(KYMO_SYSCALL_MAX, sizeof(*thread->made));
	if (!thread->made) {
		thread->owner->stream.is_incomplete = true;
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

unsigned int strace_inject_leave(struct strace_thread *thread, const struct kymo_syscall_report *report)
{
	const struct kymo_syscall_injection *injection = thread->injection;

	if (!injection)
		return KYMO_ACTION_RESUME;
	if (report->is_aborted && kymo_engine_set_result(thread->engine, injection->result))
		thread->owner->stream.is_incomplete = true;
	return delay(thread, injection->delay_exit_ns);
}

const char *strace_injected(const struct strace_thread *thread)
{
	const struct kymo_syscall_injection *injection = thread->injection;

	if (!injection)
		return "";
	if (injection->delay_enter_ns || injection->delay_exit_ns)
		return injection->has_result ? " (INJECTED) (DELAYED)" : " (DELAYED)";
	return injection->has_result ? " (INJECTED)" : "";
}

void strace_inject_end(const struct strace_thread *thread)
{
	if (thread->injection)
		strace_delays_drop(&thread->owner->tracing.delays, thread->engine);
}
