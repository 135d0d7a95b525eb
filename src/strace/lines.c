/*
 * A line a call, as strace writes them. It is begun when the call is, so that one that waits can be seen; when another
 * thread has something to say meanwhile, the line is left " <unfinished ...>" and taken up as "<... read resumed>".
 */
#include "strace/lines.h"

#include <inttypes.h>
#include <sys/wait.h>

#include "strace/inject.h"
#include "strace/prefix.h"
#include "strace/state.h"
#include "syscall/call.h"
#include "syscall/errors.h"
#include "syscall/line.h"
#include "syscall/siginfo.h"
#include "syscall/signal_names.h"

static FILE *out_of(const struct strace_thread *thread)
{
	return thread->out ? thread->out : thread->owner->stream.file;
}

static void begin_line(struct strace_thread *thread)
{
	kymo_line_clear(&thread->text);
	strace_put_prefix(thread);
}

static void write_from(struct strace_thread *thread, size_t begin)
{
	struct kymo_strace *s = thread->owner;

	if (thread->text.is_cut)
		s->stream.is_incomplete = true;
	if (thread->text.n > begin)
		fwrite(thread->text.data + begin, 1, thread->text.n - begin, out_of(thread));
	if (!s->flushes_later)
		fflush(out_of(thread));
}

/* After the line of a call or signal. */
static void put_stack(struct strace_thread *thread)
{
	if (thread->stack)
		kymo_line_puts(&thread->text, thread->stack);
}

static void leave_open_line(struct kymo_strace *s)
{
	if (s->open)
		fputs(" <unfinished ...>\n", s->stream.file);
	s->open = NULL;
}

static bool has_open_line(const struct strace_thread *thread)
{
	return thread->out ? thread->has_open_line : thread->owner->open == thread;
}

static void set_open(struct strace_thread *thread, bool is_open)
{
	if (thread->out)
		thread->has_open_line = is_open;
	else
		thread->owner->open = is_open ? thread : NULL;
}

/* What others have begun, and for a file of its own what the thread itself has. */
static void begin_alone(struct strace_thread *thread)
{
	if (!thread->out)
		leave_open_line(thread->owner);
	else if (thread->has_open_line)
		fputs(" <unfinished ...>\n", thread->out);
	thread->has_open_line = false;
	begin_line(thread);
}

static void line_mode(struct strace_thread *thread)
{
	leave_open_line(thread->owner);
	fprintf(thread->owner->stream.file, "[ Process PID=%d runs in %d bit mode. ]\n", thread->pid,
		thread->call.is_i386 ? 32 : 64);
}

static bool waits_for_result(const struct kymo_strace *s)
{
	return s->request->which.hides_good || s->request->which.hides_failed || s->request->which.hides_unfinished;
}

static void line_enter(struct strace_thread *thread)
{
	struct kymo_strace *s = thread->owner;

	begin_line(thread);
	kymo_syscall_enter(&thread->call, &thread->target, &thread->text);
	if (waits_for_result(s))
		return;
	if (!thread->out)
		leave_open_line(s);
	write_from(thread, 0);
	set_open(thread, true);
}

/* Where the rest of the line begins in the text. */
static size_t take_up(struct strace_thread *thread)
{
	struct kymo_strace *s = thread->owner;

	if (waits_for_result(s))
		return 0;
	if (has_open_line(thread)) {
		set_open(thread, false);
		return thread->text.n;
	}
	begin_alone(thread);
	kymo_syscall_put_resumed(&thread->call, &thread->text);
	return 0;
}

static void line_leave(struct strace_thread *thread, uint64_t duration_ns)
{
	const struct kymo_strace *s = thread->owner;
	const bool failed = kymo_syscall_failed(&thread->call);
	size_t begin;

	if (failed ? s->request->which.hides_failed : s->request->which.hides_good)
		return;
	begin = take_up(thread);
	kymo_syscall_leave(&thread->call, &thread->target, &thread->text);
	kymo_syscall_put_result(&thread->call, &thread->target, &thread->text);
	kymo_line_puts(&thread->text, strace_injected(thread));
	if (s->request->times.durations) {
		kymo_line_puts(&thread->text, " <");
		strace_put_seconds(&thread->text, duration_ns, s->request->times.duration_digits);
		kymo_line_puts(&thread->text, ">");
	}
	kymo_line_puts(&thread->text, "\n");
	put_stack(thread);
	write_from(thread, begin);
}

static void line_signal(struct strace_thread *thread, const siginfo_t *info)
{
	char name[32];

	begin_alone(thread);
	kymo_line_printf(&thread->text, "--- %s ", kymo_signal_name(info->si_signo, name));
	kymo_siginfo_text(info, &thread->target, &thread->text);
	kymo_line_puts(&thread->text, " ---\n");
	put_stack(thread);
	write_from(thread, 0);
}

static void line_lost(struct kymo_strace *s, uint64_t n)
{
	leave_open_line(s);
	fprintf(s->stream.file, "--- %" PRIu64 " lost: the buffer was full ---\n", n);
}

static void line_let_go(struct kymo_strace *s)
{
	if (s->open)
		fputs(" <detached ...>\n", s->stream.file);
	s->open = NULL;
}

static void line_let_go_of(struct strace_thread *thread)
{
	if (!has_open_line(thread))
		return;
	fputs(" <detached ...>\n", out_of(thread));
	set_open(thread, false);
}

static void line_stop(struct strace_thread *thread, int signal)
{
	char name[32];

	begin_alone(thread);
	kymo_line_printf(&thread->text, "--- stopped by %s ---\n", kymo_signal_name(signal, name));
	write_from(thread, 0);
}

static void line_end_call(struct strace_thread *thread)
{
	size_t begin;

	if (thread->owner->request->which.hides_unfinished)
		return;
	begin = take_up(thread);
	kymo_syscall_put_no_result(&thread->call, &thread->target, &thread->text);
	kymo_line_puts(&thread->text, "\n");
	put_stack(thread);
	write_from(thread, begin);
}

static void line_superseded(struct strace_thread *thread, pid_t by)
{
	begin_alone(thread);
	kymo_line_printf(&thread->text, "+++ superseded by execve in pid %d +++\n", by);
	write_from(thread, 0);
}

static void line_end(struct strace_thread *thread, int status)
{
	char name[32];

	begin_alone(thread);
	if (WIFSIGNALED(status))
		kymo_line_printf(&thread->text, "+++ killed by %s %s+++\n", kymo_signal_name(WTERMSIG(status), name),
				 WCOREDUMP(status) ? "(core dumped) " : "");
	else
		kymo_line_printf(&thread->text, "+++ exited with %d +++\n", WEXITSTATUS(status));
	write_from(thread, 0);
}

const struct strace_sink strace_lines = {
	.enter = line_enter,
	.leave = line_leave,
	.end_call = line_end_call,
	.signal = line_signal,
	.stop = line_stop,
	.superseded = line_superseded,
	.end = line_end,
	.lost = line_lost,
	.mode = line_mode,
	.let_go = line_let_go,
	.let_go_of = line_let_go_of,
};
