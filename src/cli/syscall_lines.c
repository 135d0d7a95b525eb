/*
 * A line a call, as strace writes them. It is begun when the call is, so that one that waits can be seen; when another thread has
 * something to say meanwhile, the line is left " <unfinished ...>" and taken up as "<... read resumed>".
 */
#include <inttypes.h>
#include <sys/wait.h>
#include <time.h>

#include "cli/syscalls.h"

static void put_time(struct kymo_line *line, time_t seconds)
{
	struct tm local;
	char text[32];

	if (localtime_r(&seconds, &local) && strftime(text, sizeof(text), "%T ", &local))
		kymo_line_puts(line, text);
}

/* More than one thread; a file that may have more, or has had. */
static void put_prefix(struct cli_syscall_thread *thread)
{
	struct cli_syscalls *s = thread->owner;

	kymo_line_clear(&thread->text);
	s->had_several |= s->n_threads > 1;
	if (s->is_file && (s->follows || s->had_several))
		kymo_line_printf(&thread->text, "%-5d ", thread->tid);
	else if (s->n_threads > 1)
		kymo_line_printf(&thread->text, "[pid %5d] ", thread->tid);
	if (s->times)
		put_time(&thread->text, s->seconds ? s->seconds : time(NULL));
}

static void write_from(struct cli_syscall_thread *thread, size_t begin)
{
	struct cli_syscalls *s = thread->owner;

	if (thread->text.is_cut)
		s->has_failed = true;
	if (thread->text.n > begin)
		fwrite(thread->text.data + begin, 1, thread->text.n - begin, s->out);
	if (!s->flushes_later)
		fflush(s->out);
}

/* Behind the line of a call or signal. */
static void put_stack(struct cli_syscall_thread *thread)
{
	if (thread->stack)
		kymo_line_puts(&thread->text, thread->stack);
}

static void leave_open_line(struct cli_syscalls *s)
{
	if (s->open)
		fputs(" <unfinished ...>\n", s->out);
	s->open = NULL;
}

void cli_syscall_line_mode(struct cli_syscall_thread *thread)
{
	leave_open_line(thread->owner);
	fprintf(thread->owner->out, "[ Process PID=%d runs in %d bit mode. ]\n", thread->pid, thread->call.is_i386 ? 32 : 64);
}

static bool waits_for_result(const struct cli_syscalls *s)
{
	return s->only_good || s->only_failed;
}

void cli_syscall_line_enter(struct cli_syscall_thread *thread)
{
	struct cli_syscalls *s = thread->owner;

	put_prefix(thread);
	kymo_syscall_enter(&thread->call, &thread->target, &thread->text);
	if (waits_for_result(s))
		return;
	leave_open_line(s);
	write_from(thread, 0);
	s->open = thread;
}

/* Where the rest of the line begins in the text. */
static size_t take_up(struct cli_syscall_thread *thread)
{
	struct cli_syscalls *s = thread->owner;

	if (waits_for_result(s))
		return 0;
	if (s->open == thread) {
		s->open = NULL;
		return thread->text.n;
	}
	leave_open_line(s);
	put_prefix(thread);
	kymo_syscall_put_resumed(&thread->call, &thread->text);
	return 0;
}

void cli_syscall_line_leave(struct cli_syscall_thread *thread, uint64_t duration_ns)
{
	const struct cli_syscalls *s = thread->owner;
	const bool failed = kymo_syscall_failed(&thread->call);
	size_t begin;

	if ((s->only_good && failed) || (s->only_failed && !failed))
		return;
	begin = take_up(thread);
	kymo_syscall_leave(&thread->call, &thread->target, &thread->text);
	kymo_syscall_put_result(&thread->call, &thread->target, &thread->text);
	kymo_line_puts(&thread->text, cli_syscall_injected(thread));
	if (s->durations)
		kymo_line_printf(&thread->text, " <%.6f>", (double)duration_ns / 1e9);
	kymo_line_puts(&thread->text, "\n");
	put_stack(thread);
	write_from(thread, begin);
}

void cli_syscall_line_signal(struct cli_syscall_thread *thread, const siginfo_t *info)
{
	char name[32];

	leave_open_line(thread->owner);
	put_prefix(thread);
	kymo_line_printf(&thread->text, "--- %s ", kymo_signal_name(info->si_signo, name));
	kymo_siginfo_text(info, &thread->text);
	kymo_line_puts(&thread->text, " ---\n");
	put_stack(thread);
	write_from(thread, 0);
}

void cli_syscall_line_lost(struct cli_syscalls *s, uint64_t n)
{
	leave_open_line(s);
	fprintf(s->out, "--- %" PRIu64 " lost: the buffer was full ---\n", n);
}

void cli_syscall_line_let_go(struct cli_syscalls *s)
{
	if (s->open)
		fputs(" <detached ...>\n", s->out);
	s->open = NULL;
}

void cli_syscall_line_stop(struct cli_syscall_thread *thread, int signal)
{
	char name[32];

	leave_open_line(thread->owner);
	put_prefix(thread);
	kymo_line_printf(&thread->text, "--- stopped by %s ---\n", kymo_signal_name(signal, name));
	write_from(thread, 0);
}

void cli_syscall_line_end_call(struct cli_syscall_thread *thread)
{
	size_t begin;

	if (waits_for_result(thread->owner))
		return;
	begin = take_up(thread);
	kymo_syscall_put_no_result(&thread->call, &thread->text);
	kymo_line_puts(&thread->text, "\n");
	put_stack(thread);
	write_from(thread, begin);
}

void cli_syscall_line_superseded(struct cli_syscall_thread *thread, pid_t by)
{
	leave_open_line(thread->owner);
	put_prefix(thread);
	kymo_line_printf(&thread->text, "+++ superseded by execve in pid %d +++\n", by);
	write_from(thread, 0);
}

void cli_syscall_line_end(struct cli_syscall_thread *thread, int status)
{
	char name[32];

	leave_open_line(thread->owner);
	put_prefix(thread);
	if (WIFSIGNALED(status))
		kymo_line_printf(&thread->text, "+++ killed by %s %s+++\n", kymo_signal_name(WTERMSIG(status), name),
				 WCOREDUMP(status) ? "(core dumped) " : "");
	else
		kymo_line_printf(&thread->text, "+++ exited with %d +++\n", WEXITSTATUS(status));
	write_from(thread, 0);
}
