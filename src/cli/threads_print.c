#include "cli/threads_print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/output.h"
#include "cli/threads.h"
#include "cli/threads_engines.h"
#include "procfs/info.h"
#include "procfs/threads.h"
#include "syscall/names.h"

static const struct {
	char letter;
	const char *word;
} states[] = {
	{ 'R', "running" }, { 'S', "sleeping" }, { 'D', "waiting" }, { 'T', "stopped" }, { 't', "traced" },
	{ 'Z', "ended" },   { 'X', "ended" },    { 'I', "idle" },    { 'P', "parked" },
};

static const char *state_word(char letter)
{
	for (size_t i = 0; i < kymo_countof(states); i++)
		if (states[i].letter == letter)
			return states[i].word;
	return "unknown";
}

/* The tracer of one thread most likely traces the next one, too. Its process; 0: it is gone. */
static pid_t find_tracer(struct cli_threads *view, pid_t tid)
{
	struct kymo_process_info info;
	struct kymo_error *error;

	if (view->tracer_tid == tid)
		return view->tracer_pid;
	error = kymo_process_info(tid, &info);
	view->tracer_tid = tid;
	view->tracer_pid = error ? 0 : info.tgid;
	snprintf(view->tracer_comm, sizeof(view->tracer_comm), "%s", error ? "" : info.comm);
	kymo_error_destroy(error);
	return view->tracer_pid;
}

/* ---- the table ------------------------------------------------------------------------------- */

/* Text of another program's, and blanks up to `width` columns, as far as a character is one. */
static void print_padded(FILE *out, const char *text, int width)
{
	kymo_utf8_print(out, text);
	width -= (int)kymo_utf8_count(text, strlen(text));
	fprintf(out, "%*s", width > 0 ? width : 0, "");
}

static const char *what_it_waits_for(const struct kymo_thread_info *thread, char number[32])
{
	if (!thread->may_look)
		return "?";
	if (thread->call >= 0)
		return kymo_syscall_name_or_number((uint64_t)thread->call, number);
	return *thread->wchan ? thread->wchan : "-";
}

static void print_tracer(struct cli_threads *view, pid_t tracer, FILE *out)
{
	char text[64] = "-";

	if (tracer && find_tracer(view, tracer))
		snprintf(text, sizeof(text), "%s (%d)", view->tracer_comm, view->tracer_pid);
	else if (tracer)
		snprintf(text, sizeof(text), "(%d)", tracer);
	putc(' ', out);
	print_padded(out, text, 16);
	putc(' ', out);
}

static void print_thread(struct cli_threads *view, size_t index, FILE *out)
{
	const struct kymo_thread_info *thread = &view->threads.items[index];
	char number[32];

	fprintf(out, "%7d  ", thread->tid);
	print_padded(out, thread->comm, 16);
	fprintf(out, " %-8s %9.2f", state_word(thread->state), (double)thread->cpu_ns / 1e9);
	if (view->shares)
		fprintf(out, " %6.1f%%", view->shares[index] * 100);
	fputs("  ", out);
	print_padded(out, what_it_waits_for(thread, number), 18);
	print_tracer(view, thread->tracer, out);
	cli_threads_print_engines(view, thread, out);
	putc('\n', out);
}

/* "3,000 threads: 4 running, 2,996 sleeping". */
static void print_counts(const struct cli_threads *view, FILE *out)
{
	const char *between = ": ";
	char count[32];

	fprintf(out, "%s thread%s", cli_format_count(view->threads.n, count), view->threads.n == 1 ? "" : "s");
	for (size_t i = 0; i < kymo_countof(states); i++) {
		uint64_t n = 0;

		for (size_t j = 0; j < view->threads.n; j++)
			n += view->threads.items[j].state == states[i].letter;
		if (!n)
			continue;
		fprintf(out, "%s%s %s", between, cli_format_count(n, count), states[i].word);
		between = ", ";
	}
	putc('\n', out);
}

static bool may_look(const struct cli_threads *view)
{
	return view->knows_recordings && view->threads.items[0].may_look;
}

/* How many lines it were. */
static int print_head(const struct cli_threads *view, FILE *out)
{
	fprintf(out, "%d ", view->pid);
	kymo_utf8_print(out, view->comm);
	fputs(": ", out);
	print_counts(view, out);
	for (size_t i = 0; i < view->n_recordings; i++) {
		const struct kymo_status *recording = &view->recordings[i];

		fprintf(out, "%zu site%s of kymo's, recorded into ", recording->n_sites,
			recording->n_sites == 1 ? "" : "s");
		kymo_utf8_print(out, recording->directory);
		if (recording->recorder == KYMO_RECORDER_ELSEWHERE)
			fprintf(out, " from another PID namespace\n");
		else if (recording->recorder)
			fprintf(out, " by process %d\n", recording->recorder);
		else
			fprintf(out, " by a process that is gone; 'kymo detach %d' cleans up\n", view->pid);
	}
	if (!may_look(view))
		fputs("only a user who may trace the process sees where its threads sleep, and whether they are "
		      "recorded\n",
		      out);
	fprintf(out, "    TID  %-16s %-8s %9s%s  %-18s %-16s %s\n", "NAME", "STATE", "CPU",
		view->shares ? "   SHARE" : "", "IN", "TRACER", "ENGINES");
	return 2 + (int)view->n_recordings + !may_look(view);
}

static int by_share(const void *a, const void *b, void *context)
{
	const size_t one = *(const size_t *)a, other = *(const size_t *)b;
	const double *shares = context;

	if (shares[one] != shares[other])
		return shares[one] < shares[other] ? 1 : -1;
	return (one > other) - (one < other);
}

void cli_threads_print(struct cli_threads *view, FILE *out, int rows)
{
	kymo_cleanup_free size_t *order = calloc(view->threads.n, sizeof(*order));
	size_t n = view->threads.n;
	const int head = print_head(view, out);
	char count[32];

	if (rows && (size_t)rows < n + (size_t)head)
		n = rows > head + 1 ? (size_t)(rows - head - 1) : 0;
	for (size_t i = 0; order && i < view->threads.n; i++)
		order[i] = i;
	if (order && view->shares)
		qsort_r(order, view->threads.n, sizeof(*order), by_share, view->shares);
	for (size_t i = 0; i < n; i++)
		print_thread(view, order ? order[i] : i, out);
	if (n < view->threads.n)
		fprintf(out, "… and %s more\n", cli_format_count(view->threads.n - n, count));
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void print_recordings_json(const struct cli_threads *view, FILE *out)
{
	if (!view->knows_recordings) {
		fputs("null", out);
		return;
	}
	putc('[', out);
	for (size_t i = 0; i < view->n_recordings; i++) {
		fprintf(out, "%s{\"recorder\": %d, \"directory\": ", i ? ", " : "", view->recordings[i].recorder);
		kymo_json_string(out, view->recordings[i].directory);
		fprintf(out, ", \"sites\": %zu}", view->recordings[i].n_sites);
	}
	putc(']', out);
}

static void print_tracer_json(struct cli_threads *view, pid_t tracer, FILE *out)
{
	if (!tracer) {
		fputs("null", out);
		return;
	}
	fprintf(out, "{\"tid\": %d, \"pid\": ", tracer);
	if (find_tracer(view, tracer)) {
		fprintf(out, "%d, \"comm\": ", view->tracer_pid);
		kymo_json_string(out, view->tracer_comm);
	} else {
		fputs("null, \"comm\": null", out);
	}
	putc('}', out);
}

static void print_thread_json(struct cli_threads *view, const struct kymo_thread_info *thread, FILE *out)
{
	char number[32];

	fprintf(out, "  {\"tid\": %d, \"comm\": ", thread->tid);
	kymo_json_string(out, thread->comm);
	fprintf(out, ", \"state\": \"%s\", \"cpu_ns\": %" PRIu64 ", \"may_look\": %s, \"syscall\": ",
		state_word(thread->state), thread->cpu_ns, thread->may_look ? "true" : "false");
	kymo_json_string(out, thread->call < 0 ? NULL : kymo_syscall_name_or_number((uint64_t)thread->call, number));
	fputs(", \"wchan\": ", out);
	kymo_json_string(out, *thread->wchan ? thread->wchan : NULL);
	fputs(", \"tracer\": ", out);
	print_tracer_json(view, thread->tracer, out);
	fputs(", \"engines\": ", out);
	cli_threads_print_engines_json(view, thread, out);
	putc('}', out);
}

void cli_threads_print_json(struct cli_threads *view, FILE *out)
{
	fprintf(out, "{\"pid\": %d, \"comm\": ", view->pid);
	kymo_json_string(out, view->comm);
	fputs(", \"recordings\": ", out);
	print_recordings_json(view, out);
	fputs(", \"threads\": [", out);
	for (size_t i = 0; i < view->threads.n; i++) {
		fputs(i ? ",\n" : "\n", out);
		print_thread_json(view, &view->threads.items[i], out);
	}
	fputs("\n]}\n", out);
}
