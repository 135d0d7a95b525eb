/* What stands before a line, as strace has it: the thread, the time, the number of the call, the address. */
#include "strace/prefix.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "strace/state.h"

static struct timespec now_of(const struct kymo_strace *s)
{
	struct timespec now = s->now;

	if (!now.tv_sec)
		clock_gettime(CLOCK_REALTIME, &now);
	return now;
}

static void put_fraction(struct kymo_line *line, uint64_t ns, unsigned int digits)
{
	for (unsigned int i = digits; i < 9; i++)
		ns /= 10;
	if (digits)
		kymo_line_printf(line, ".%0*" PRIu64, (int)digits, ns);
}

void strace_put_seconds(struct kymo_line *line, uint64_t ns, unsigned int digits)
{
	kymo_line_printf(line, "%" PRIu64, ns / 1000000000);
	put_fraction(line, ns % 1000000000, digits);
}

static void put_clock(const struct kymo_strace *s, struct kymo_line *line, const struct timespec *now)
{
	struct tm local;
	char text[32];

	if (s->request->times.clock == KYMO_STRACE_UNIX_TIME)
		kymo_line_printf(line, "%" PRId64, (int64_t)now->tv_sec);
	else if (localtime_r(&now->tv_sec, &local) && strftime(text, sizeof(text), "%T", &local))
		kymo_line_puts(line, text);
	put_fraction(line, (uint64_t)now->tv_nsec, s->request->times.clock_digits);
	kymo_line_puts(line, " ");
}

/* Since the line before; 0 for the first. */
static uint64_t since_last(struct kymo_strace *s, const struct timespec *now)
{
	const int64_t ns = (now->tv_sec - s->last.tv_sec) * 1000000000 + (now->tv_nsec - s->last.tv_nsec);

	return s->last.tv_sec && ns > 0 ? (uint64_t)ns : 0;
}

static void put_times(struct kymo_strace *s, struct kymo_line *line)
{
	const struct timespec now = now_of(s);
	uint64_t ns;

	if (s->request->times.clock)
		put_clock(s, line, &now);
	if (!s->request->times.relative_times)
		return;
	ns = since_last(s, &now);
	kymo_line_printf(line, "%s%6" PRIu64, s->request->times.clock ? "(+" : "", ns / 1000000000);
	put_fraction(line, ns % 1000000000, s->request->times.relative_digits);
	kymo_line_puts(line, s->request->times.clock ? ") " : " ");
	s->last = now;
}

/* With its name, as -Y or --all wants it. */
static void put_id(struct strace_thread *thread, const char *before, int width, const char *after)
{
	struct kymo_line *line = &thread->text;
	char comm[sizeof(thread->comm)];
	size_t n = 0;

	kymo_line_puts(line, before);
	kymo_line_printf(line, "%*d", thread->target.pid_name && width < 0 ? 0 : width, thread->tid);
	if (thread->target.pid_name)
		n = thread->target.pid_name(thread, thread->tid, comm, sizeof(comm));
	if (n) { /* where it has ended, it has the name that it had */
		memcpy(thread->comm, comm, n);
		thread->n_comm = n;
	}
	if (thread->n_comm) {
		kymo_line_puts(line, "<");
		kymo_line_escape(line, thread->comm, thread->n_comm, "<>");
		kymo_line_puts(line, ">");
	}
	if (*thread->name)
		kymo_line_printf(line, " %s", thread->name);
	kymo_line_puts(line, after);
}

/* More than one thread; a file that may have more, or has had. */
static void put_thread(struct strace_thread *thread)
{
	struct kymo_strace *s = thread->owner;

	s->had_several |= s->n_threads > 1;
	if (s->request->output.separately)
		return;
	if (s->request->output.to_file && (s->request->target.follows || s->had_several))
		put_id(thread, "", -5, " ");
	else if (s->n_threads > 1 || s->request->look.shows_names)
		put_id(thread, "[pid ", 5, "] ");
}

void strace_put_prefix(struct strace_thread *thread)
{
	struct kymo_strace *s = thread->owner;

	put_thread(thread);
	if (s->request->times.clock || s->request->times.relative_times)
		put_times(s, &thread->text);
	if (s->request->look.numbers)
		kymo_line_printf(&thread->text, "[%4" PRIu64 "] ", thread->number);
	if (s->request->look.addresses && thread->address)
		kymo_line_printf(&thread->text, "[%016" PRIx64 "] ", thread->address);
	else if (s->request->look.addresses)
		kymo_line_puts(&thread->text, "[????????????????] ");
}
