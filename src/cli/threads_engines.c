/* Engines of the threads of a process: asked of the hubs that trace them, which answer processes that may connect. */
#include "cli/threads_engines.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/search.h"
#include "cli/threads.h"
#include "procfs/threads.h"

enum { FIRST_ROOM = 4096, MOST = 1 << 20 };

static const struct {
	unsigned int events;
	const char *word; /* in the table, where all of these are in the mask */
} groups[] = {
	{ KYMO_EVENTS_SYSCALL, "calls" },
	{ KYMO_EVENTS_SIGNAL, "signals" },
	{ KYMO_EVENT_SYSCALL_ENTRY, "syscall_entry" },
	{ KYMO_EVENT_SYSCALL_EXIT, "syscall_exit" },
	{ KYMO_EVENT_SIGNAL, "signal" },
	{ KYMO_EVENT_SIGNAL_IGN, "signal_ign" },
	{ KYMO_EVENT_SIGNAL_STOP, "signal_stop" },
	{ KYMO_EVENT_SIGNAL_TERM, "signal_term" },
	{ KYMO_EVENT_SIGNAL_CORE, "signal_core" },
	{ KYMO_EVENT_QUIESCE, "quiesce" },
	{ KYMO_EVENT_CLONE, "clone" },
	{ KYMO_EVENT_EXEC, "exec" },
	{ KYMO_EVENT_EXIT, "exit" },
	{ KYMO_EVENT_DEATH, "death" },
	{ KYMO_EVENT_REAP, "reap" },
	{ KYMO_EVENT_JCTL, "jctl" },
};

static const char *const actions[] = { "stop", "interrupt", "report", "singlestep", "blockstep", "resume", "detach" };

/* ---- asking ---------------------------------------------------------------------------------- */

static int compare_engines(const void *a, const void *b)
{
	const struct kymo_engine_info *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

/* All that the hub has; again, where there are more than was thought. */
static int list_engines(struct kymo_hub *hub, struct cli_threads *view)
{
	size_t room = FIRST_ROOM, n = 0;
	int err;

	for (;;) {
		struct kymo_engine_info *infos = calloc(room, sizeof(*infos));

		err = infos ? kymo_hub_list(hub, view->pid, infos, room, &n) : -ENOMEM;
		free(view->engines);
		view->engines = infos;
		view->n_engines = err ? 0 : n < room ? n : room;
		if (err || n <= room || room == MOST)
			break;
		room = n < MOST ? n : MOST;
	}
	if (view->n_engines)
		qsort(view->engines, view->n_engines, sizeof(*view->engines), compare_engines);
	return err;
}

/* One hub traces all threads of a process, unless another tracer came first. */
void cli_threads_look_at_engines(struct cli_threads *view, const struct cli_threads *before)
{
	struct kymo_hub *hub;
	size_t i = 0;
	int err;

	while (i < view->threads.n && !view->threads.items[i].tracer)
		i++;
	if (i == view->threads.n)
		return;
	view->silent = before->silent;
	if (view->silent && view->silent == view->threads.items[i].tracer)
		return;
	err = kymo_hub_connect(view->threads.items[i].tid, &hub);
	if (!err) {
		err = list_engines(hub, view);
		kymo_hub_destroy(hub);
	}
	view->hub = err ? 0 : view->threads.items[i].tracer;
	/* A hub that does not answer in time is not asked again. */
	view->silent = err == -ETIMEDOUT ? view->threads.items[i].tracer : 0;
}

/* ---- showing --------------------------------------------------------------------------------- */

/* The first engine of a thread, and how many there are. */
static const struct kymo_engine_info *engines_of(const struct cli_threads *view, pid_t tid, size_t *n_ret)
{
	const size_t at = kymo_partition_point(i, view->n_engines, view->engines[i].tid < tid);
	size_t n = 0;

	while (at + n < view->n_engines && view->engines[at + n].tid == tid)
		n++;
	*n_ret = n;
	return n ? view->engines + at : NULL;
}

static void print_events(unsigned int events, FILE *out)
{
	const char *between = "";

	for (size_t i = 0; i < kymo_countof(groups); i++) {
		if ((events & groups[i].events) != groups[i].events)
			continue;
		fprintf(out, "%s%s", between, groups[i].word);
		between = ",";
		events &= ~groups[i].events;
	}
	fputs(*between ? "" : "none", out);
}

void cli_threads_print_engines(const struct cli_threads *view, const struct kymo_thread_info *thread, FILE *out)
{
	const struct kymo_engine_info *engines;
	size_t n = 0;

	if (!thread->tracer || thread->tracer != view->hub) {
		fputs(thread->tracer ? "?" : "-", out);
		return;
	}
	engines = engines_of(view, thread->tid, &n);
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "%s%d:", i ? " " : "", engines[i].owner);
		print_events(engines[i].events, out);
		if (engines[i].wants < KYMO_ACTION_RESUME)
			fprintf(out, "!%s", actions[engines[i].wants]);
	}
	fputs(n ? "" : "-", out);
}

static void print_events_json(unsigned int events, FILE *out)
{
	const char *between = "";

	for (size_t i = 0; i < kymo_countof(groups); i++) {
		/* Each by its own name. */
		if (!(events & groups[i].events) || groups[i].events & (groups[i].events - 1))
			continue;
		fprintf(out, "%s\"%s\"", between, groups[i].word);
		between = ", ";
	}
}

void cli_threads_print_engines_json(const struct cli_threads *view, const struct kymo_thread_info *thread, FILE *out)
{
	const struct kymo_engine_info *engines;
	size_t n = 0;

	if (thread->tracer && thread->tracer != view->hub) {
		fputs("null", out);
		return;
	}
	engines = thread->tracer ? engines_of(view, thread->tid, &n) : NULL;
	fputs("[", out);
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "%s{\"owner\": %d, \"events\": [", i ? ", " : "", engines[i].owner);
		print_events_json(engines[i].events, out);
		fprintf(out, "], \"wants\": \"%s\"}", actions[engines[i].wants]);
	}
	fputs("]", out);
}
