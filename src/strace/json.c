/* An object a line: each call when it has returned, each signal and each end. */
#include "strace/json.h"

#include <inttypes.h>
#include <string.h>
#include <sys/wait.h>

#include "base/json.h"
#include "strace/state.h"
#include "syscall/call.h"
#include "syscall/errors.h"
#include "syscall/json.h"
#include "syscall/line.h"
#include "syscall/siginfo.h"
#include "syscall/signal_names.h"

static void begin_object(const struct strace_thread *thread, const char *what)
{
	FILE *out = thread->owner->stream.file;

	fprintf(out, "{\"event\": \"%s\", \"pid\": %d, \"tid\": %d", what, thread->pid, thread->tid);
	if (!thread->owner->request->look.shows_names)
		return;
	fputs(", \"comm\": ", out);
	kymo_json_string(out, thread->name);
}

static void end_object(struct strace_thread *thread)
{
	if (thread->text.is_cut)
		thread->owner->stream.is_incomplete = true;
	fputs("}\n", thread->owner->stream.file);
	if (!thread->owner->flushes_later)
		fflush(thread->owner->stream.file);
}

static void print_stack(struct strace_thread *thread)
{
	if (thread->stack)
		fprintf(thread->owner->stream.file, ", %s", thread->stack);
}

static void json_enter(struct strace_thread *thread)
{
	kymo_line_clear(&thread->text);
	kymo_syscall_enter(&thread->call, &thread->target, &thread->text);
}

static void print_call(struct strace_thread *thread)
{
	begin_object(thread, "syscall");
	fputs(", ", thread->owner->stream.file);
	kymo_syscall_write_json(thread->owner->stream.file, &thread->call, thread->number, &thread->text);
}

static void json_leave(struct strace_thread *thread, uint64_t duration_ns)
{
	const struct kymo_strace *s = thread->owner;
	const bool failed = kymo_syscall_failed(&thread->call);

	if (failed ? s->request->which.hides_failed : s->request->which.hides_good)
		return;
	kymo_syscall_leave(&thread->call, &thread->target, &thread->text);
	print_call(thread);
	kymo_syscall_write_json_result(s->stream.file, &thread->call, &thread->target, duration_ns, &thread->text);
	if (thread->injection)
		fprintf(s->stream.file, ", \"injected\": %s, \"delayed\": %s",
			thread->injection->has_result ? "true" : "false",
			thread->injection->delay_enter_ns || thread->injection->delay_exit_ns ? "true" : "false");
	print_stack(thread);
	end_object(thread);
}

static void json_signal(struct strace_thread *thread, const siginfo_t *info)
{
	struct kymo_line text = { 0 };
	char name[32];

	begin_object(thread, "signal");
	fprintf(thread->owner->stream.file, ", \"signal\": \"%s\", \"info\": ", kymo_signal_name(info->si_signo, name));
	kymo_siginfo_text(info, &thread->target, &text);
	kymo_json_string(thread->owner->stream.file, text.data ? text.data : "");
	kymo_line_deinit(&text);
	print_stack(thread);
	end_object(thread);
}

static void json_lost(struct kymo_strace *s, uint64_t n)
{
	fprintf(s->stream.file, "{\"event\": \"lost\", \"count\": %" PRIu64 "}\n", n);
}

static void json_stop(struct strace_thread *thread, int signal)
{
	char name[32];

	begin_object(thread, "stop");
	fprintf(thread->owner->stream.file, ", \"signal\": \"%s\"", kymo_signal_name(signal, name));
	end_object(thread);
}

static void json_end_call(struct strace_thread *thread)
{
	if (thread->owner->request->which.hides_unfinished)
		return;
	kymo_syscall_stop(&thread->call, &thread->text);
	print_call(thread);
	fputs(", \"result\": null", thread->owner->stream.file);
	print_stack(thread);
	end_object(thread);
}

static void json_superseded(struct strace_thread *thread, pid_t by)
{
	begin_object(thread, "superseded");
	fprintf(thread->owner->stream.file, ", \"by\": %d", by);
	end_object(thread);
}

static void json_end(struct strace_thread *thread, int status)
{
	char name[32];

	begin_object(thread, "end");
	if (WIFSIGNALED(status))
		fprintf(thread->owner->stream.file, ", \"signal\": \"%s\", \"core\": %s",
			kymo_signal_name(WTERMSIG(status), name), WCOREDUMP(status) ? "true" : "false");
	else
		fprintf(thread->owner->stream.file, ", \"status\": %d", WEXITSTATUS(status));
	end_object(thread);
}

const struct strace_sink strace_json = {
	.enter = json_enter,
	.leave = json_leave,
	.end_call = json_end_call,
	.signal = json_signal,
	.stop = json_stop,
	.superseded = json_superseded,
	.end = json_end,
	.lost = json_lost,
};
