/* What both ways tell of threads, shown as lines, as JSON, or counted. */
#include "cli/syscall_events.h"

#include <string.h>

#include "cli/syscall_counts.h"
#include "cli/syscall_json.h"
#include "cli/syscall_lines.h"
#include "cli/syscalls.h"

enum { RESTART_BLOCK = 516 }; /* the kernel's own: the call is made again as restart_syscall */

void cli_syscall_enter(struct cli_syscall_thread *thread, uint64_t number, const uint64_t args[6],
		       uint64_t stack_pointer)
{
	const char *interrupted = NULL;

	if (thread->call.result == -RESTART_BLOCK)
		interrupted = kymo_syscall_name(thread->call.number);
	thread->call = (struct kymo_syscall_call){ .number = number,
						   .stack_pointer = stack_pointer,
						   .interrupted = interrupted };
	thread->number = number;
	memcpy(thread->call.args, args, sizeof(thread->call.args));
	thread->target.is_whole = kymo_syscall_set_has(&thread->owner->request.whole, number);
	thread->target.is_raw = kymo_syscall_set_has(&thread->owner->request.raw, number);
	thread->is_in_call = true;
}

/* A program may change between the two with each call. */
void cli_syscall_set_mode(struct cli_syscall_thread *thread, bool is_i386)
{
	const struct cli_syscalls *s = thread->owner;

	if (is_i386)
		thread->call.number = kymo_syscall_from_i386(thread->number);
	thread->call.is_i386 = is_i386;
	if (is_i386 != thread->is_i386 && !s->output.is_file && !s->request.json && s->request.shows_lines &&
	    !(s->request.quiet & CLI_QUIET_MODE))
		cli_syscall_line_mode(thread);
	thread->is_i386 = is_i386;
}

void cli_syscall_show_entry(struct cli_syscall_thread *thread)
{
	const struct cli_syscalls *s = thread->owner;

	if (thread->is_shown && s->request.shows_lines)
		(s->request.json ? cli_syscall_json_enter : cli_syscall_line_enter)(thread);
}

/* A call that was entered before anybody looked has no beginning. */
void cli_syscall_leave(struct cli_syscall_thread *thread, int64_t result, uint64_t now_ns)
{
	struct cli_syscalls *s = thread->owner;
	const uint64_t duration_ns = now_ns > thread->entered_ns ? now_ns - thread->entered_ns : 0;

	if (!thread->is_in_call)
		return;
	thread->is_in_call = false;
	thread->call.result = result;
	if (!thread->is_shown)
		return;
	if (s->request.counts)
		cli_syscall_counts_add(s->table, &thread->call, duration_ns);
	if (s->request.shows_lines)
		(s->request.json ? cli_syscall_json_leave : cli_syscall_line_leave)(thread, duration_ns);
}

void cli_syscall_signal(struct cli_syscall_thread *thread, const siginfo_t *info)
{
	const struct cli_syscalls *s = thread->owner;

	if (s->request.shows_lines && !(s->request.hidden_signals >> (info->si_signo - 1) & 1))
		(s->request.json ? cli_syscall_json_signal : cli_syscall_line_signal)(thread, info);
}

void cli_syscall_end_call(struct cli_syscall_thread *thread)
{
	const struct cli_syscalls *s = thread->owner;

	if (s->request.shows_lines && thread->is_in_call && thread->is_shown)
		(s->request.json ? cli_syscall_json_end_call : cli_syscall_line_end_call)(thread);
	thread->is_in_call = false;
}

void cli_syscall_end(struct cli_syscall_thread *thread, int status)
{
	const struct cli_syscalls *s = thread->owner;

	if (s->request.shows_lines && !(s->request.quiet & CLI_QUIET_EXIT))
		(s->request.json ? cli_syscall_json_end : cli_syscall_line_end)(thread, status);
}
