/* What both sources tell of threads, shown as lines, as JSON, or counted. */
#include "strace/events.h"

#include <string.h>

#include "strace/counts.h"
#include "strace/state.h"

enum { RESTART_BLOCK = 516 }; /* the kernel's own: the call is made again as restart_syscall */

void strace_enter(struct strace_thread *thread, uint64_t number, const uint64_t args[6], uint64_t stack_pointer)
{
	const char *interrupted = NULL;

	if (thread->call.result == -RESTART_BLOCK)
		interrupted = kymo_syscall_name(thread->call.number);
	thread->call = (struct kymo_syscall_call){ .number = number,
						   .stack_pointer = stack_pointer,
						   .interrupted = interrupted };
	thread->number = number;
	memcpy(thread->call.args, args, sizeof(thread->call.args));
	thread->target.is_whole = kymo_syscall_set_has(&thread->owner->request->look.whole, number);
	thread->target.is_raw = kymo_syscall_set_has(&thread->owner->request->look.raw, number);
	thread->is_in_call = true;
}

/* A program may change between the two with each call. */
void strace_set_mode(struct strace_thread *thread, bool is_i386)
{
	const struct kymo_strace *s = thread->owner;

	if (is_i386)
		thread->call.number = kymo_syscall_from_i386(thread->number);
	thread->call.is_i386 = is_i386;
	if (is_i386 != thread->is_i386 && !s->request->output.to_file && s->sink && s->sink->mode &&
	    !(s->request->which.quiet & KYMO_STRACE_QUIET_MODE))
		s->sink->mode(thread);
	thread->is_i386 = is_i386;
}

void strace_show_entry(struct strace_thread *thread)
{
	const struct kymo_strace *s = thread->owner;

	if (thread->is_shown && s->sink)
		s->sink->enter(thread);
}

/* A call that was entered before kymo attached has no beginning. */
void strace_leave(struct strace_thread *thread, int64_t result, uint64_t now_ns)
{
	struct kymo_strace *s = thread->owner;
	const uint64_t duration_ns = now_ns > thread->entered_ns ? now_ns - thread->entered_ns : 0;

	if (!thread->is_in_call)
		return;
	thread->is_in_call = false;
	thread->call.result = result;
	if (!thread->is_shown)
		return;
	if (s->request->output.kind != KYMO_STRACE_LINES)
		strace_counts_add(s->table, &thread->call, duration_ns);
	if (s->sink)
		s->sink->leave(thread, duration_ns);
}

void strace_signal(struct strace_thread *thread, const siginfo_t *info)
{
	const struct kymo_strace *s = thread->owner;

	if (s->sink && !(s->request->which.hidden_signals >> (info->si_signo - 1) & 1))
		s->sink->signal(thread, info);
}

void strace_end_call(struct strace_thread *thread)
{
	const struct kymo_strace *s = thread->owner;

	if (s->sink && thread->is_in_call && thread->is_shown)
		s->sink->end_call(thread);
	thread->is_in_call = false;
}

void strace_end(struct strace_thread *thread, int status)
{
	const struct kymo_strace *s = thread->owner;

	if (s->sink && !(s->request->which.quiet & KYMO_STRACE_QUIET_EXIT))
		s->sink->end(thread, status);
}

void strace_let_go(struct kymo_strace *s)
{
	if (s->sink && s->sink->let_go)
		s->sink->let_go(s);
}

void strace_let_go_of(struct strace_thread *thread)
{
	const struct strace_sink *sink = thread->owner->sink;

	if (sink && sink->let_go_of)
		sink->let_go_of(thread);
}
