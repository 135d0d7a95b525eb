#include "report/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/panel.h"
#include "report/text.h"

#define TOP_PROBES 20
#define TOP_THREADS 10
#define TOP_PANELS 5

#define RATE_COLUMNS 6
#define SHARE_COLUMNS 6		/* "100.0%" */
#define THREADS_COLUMNS 7
#define MIN_BAR 6
#define MAX_BAR 30

/* Columns of a table; 0: not shown. */
struct columns {
	unsigned int name, count, bar, threads, time, decimals;
};

static unsigned int at_least(unsigned int columns, unsigned int least)
{
	return columns > least ? columns : least;
}

static struct columns plan_columns(const struct summary *summary, const struct page *page, unsigned int longest_name)
{
	const struct model *model = summary->model;
	uint64_t duration = kymo_model_duration_ns(model);
	struct columns c = { .threads = THREADS_COLUMNS };
	char number[TEXT_NUMBER];
	unsigned int fixed, room;

	c.decimals = duration >= 1000000000 ? 3 : duration >= 1000000 ? 6 : 9;
	c.time = at_least((unsigned int)strlen(kymo_text_seconds(number, (int64_t)duration, c.decimals)), 5);
	c.count = at_least((unsigned int)strlen(kymo_text_count(number, model->count)), 5);
	/* Each column has two spaces before it, but the share has its bar behind it. */
	fixed = 2 + c.count + 2 + RATE_COLUMNS + 2 + SHARE_COLUMNS + 1;
	if (fixed + 2 + c.threads + 2 * (2 + c.time) + MIN_BAR + 16 > page->width)
		c.time = 0;
	if (fixed + 2 + c.threads + MIN_BAR + 12 > page->width)
		c.threads = 0;
	fixed += (c.threads ? 2 + c.threads : 0) + (c.time ? 2 * (2 + c.time) : 0);
	room = page->width > fixed + MIN_BAR + 8 ? page->width - fixed : MIN_BAR + 8;
	c.name = longest_name < room - MIN_BAR ? longest_name : room - MIN_BAR;
	c.bar = room - c.name > MAX_BAR ? MAX_BAR : room - c.name;
	return c;
}

static void write_right(const struct page *page, enum ink ink, const char *text, unsigned int columns)
{
	kymo_page_spaces(page, 2);
	kymo_page_right(page, ink, text, columns);
}

static void write_heading(const struct page *page, const struct columns *c, const char *name)
{
	kymo_page_left(page, INK_DIM, name, c->name);
	write_right(page, INK_DIM, "COUNT", c->count);
	write_right(page, INK_DIM, "RATE/S", RATE_COLUMNS);
	write_right(page, INK_DIM, "SHARE", SHARE_COLUMNS);
	if (c->threads || c->time)
		kymo_page_spaces(page, 1 + c->bar);
	if (c->threads)
		write_right(page, INK_DIM, "THREADS", c->threads);
	if (c->time) {
		write_right(page, INK_DIM, "FIRST", c->time);
		write_right(page, INK_DIM, "LAST", c->time);
	}
	putc('\n', page->out);
}

/* A row up to its bar. Returns what is left to fill up before the next column. */
static unsigned int write_counts(const struct summary *summary, const struct page *page, const struct columns *c,
				 const char *name, uint64_t count)
{
	const struct model *model = summary->model;
	char number[TEXT_NUMBER];

	kymo_page_left(page, INK_HEAD, name, c->name);
	write_right(page, INK_PLAIN, kymo_text_count(number, count), c->count);
	write_right(page, INK_PLAIN,
		    kymo_model_duration_ns(model) ? kymo_text_short(number, kymo_model_rate(model, count)) : "-",
		    RATE_COLUMNS);
	snprintf(number, sizeof(number), "%.1f%%", (double)count * 100 / (double)model->count);
	write_right(page, INK_PLAIN, number, SHARE_COLUMNS);
	kymo_page_spaces(page, 1);
	return c->bar - kymo_page_bar(page, count, model->count, c->bar);
}

static void write_times(const struct summary *summary, const struct page *page, const struct columns *c, uint64_t first,
			uint64_t last)
{
	char number[TEXT_NUMBER];

	if (!c->time)
		return;
	write_right(page, INK_DIM,
		    kymo_text_seconds(number, kymo_model_relative_ns(summary->model, first), c->decimals), c->time);
	write_right(page, INK_DIM, kymo_text_seconds(number, kymo_model_relative_ns(summary->model, last), c->decimals),
		    c->time);
}

static void write_probe_row(const struct summary *summary, const struct page *page, const struct columns *c,
			    const char *name, const struct probe *probe)
{
	unsigned int owed = write_counts(summary, page, c, name, probe->count);
	char number[TEXT_NUMBER];

	if (c->threads || c->time)
		kymo_page_spaces(page, owed);
	if (c->threads) {
		snprintf(number, sizeof(number), "%" PRIu32 "%s", probe->n_threads, probe->more_threads ? "+" : "");
		write_right(page, INK_PLAIN, number, c->threads);
	}
	write_times(summary, page, c, probe->first, probe->last);
	putc('\n', page->out);
}

/* Names of the first `n` probes, safe; a fresh array of fresh strings. */
static char **probe_names(struct probe *const *probes, size_t n, bool unicode, unsigned int *longest_ret)
{
	char **names = calloc(n + 1, sizeof(*names));
	unsigned int longest = 12;

	for (size_t i = 0; names && i < n; i++) {
		names[i] = kymo_text_escape(probes[i]->event->name, unicode);
		if (!names[i]) {
			while (i)
				free(names[--i]);
			free(names);
			return NULL;
		}
		longest = at_least(kymo_text_columns(names[i]), longest);
	}
	*longest_ret = longest;
	return names;
}

static struct kymo_error *write_probes(const struct summary *summary, const struct page *page,
				       struct probe *const *probes)
{
	const struct model *model = summary->model;
	size_t shown = summary->all || model->n_hit <= TOP_PROBES ? model->n_hit : TOP_PROBES;
	unsigned int longest;
	char **names = probe_names(probes, shown, page->unicode, &longest);
	struct columns c;
	char number[TEXT_NUMBER];
	uint64_t rest = model->count;

	if (!names)
		return &kymo_error_no_memory;
	c = plan_columns(summary, page, longest);
	putc('\n', page->out);
	write_heading(page, &c, "PROBE");
	for (size_t i = 0; i < shown; i++) {
		write_probe_row(summary, page, &c, names[i], probes[i]);
		rest -= probes[i]->count;
		free(names[i]);
	}
	free(names);
	if (shown < model->n_hit)
		kymo_page_printf(page, INK_DIM, "%zu more %s, %s events (--all shows them)\n", model->n_hit - shown,
				 model->n_hit - shown == 1 ? "probe" : "probes", kymo_text_count(number, rest));
	return NULL;
}

/* With --all, the probes without a record, a line each. */
static struct kymo_error *write_unhit(const struct summary *summary, const struct page *page)
{
	size_t n = summary->trace->n_events - summary->model->n_hit;

	if (!n)
		return NULL;
	kymo_page_printf(page, INK_DIM, "%zu %s never hit%s\n", n, n == 1 ? "probe was" : "probes were",
			 summary->all ? ":" : "");
	for (size_t i = 0; summary->all && i < summary->trace->n_events; i++) {
		kymo_cleanup_free char *safe = NULL;

		if (summary->model->probes[i])
			continue;
		safe = kymo_text_escape(summary->trace->events[i].name, page->unicode);
		if (!safe)
			return &kymo_error_no_memory;
		kymo_page_printf(page, INK_DIM, "  %s\n", safe);
	}
	return NULL;
}

static void write_thread_row(const struct summary *summary, const struct page *page, const struct columns *c,
			     const struct thread *thread)
{
	const struct thread_name *name = kymo_names_find(summary->names, thread->tid);
	char label[256];
	unsigned int owed;

	snprintf(label, sizeof(label), "%" PRId32, thread->tid);
	if (name) {
		unsigned int columns;
		/* A comm has 15 bytes; a hostile trace's may have more, and must not be cut within a character. */
		size_t fits = kymo_text_fit(name->safe, 60, &columns);

		snprintf(label, sizeof(label), "%" PRId32 " %.*s", thread->tid, fits < 240 ? (int)fits : 0, name->safe);
	}
	owed = write_counts(summary, page, c, label, thread->count);
	if (c->time) {
		kymo_page_spaces(page, owed + (c->threads ? 2 + c->threads : 0));
		write_times(summary, page, c, thread->first, thread->last);
	}
	putc('\n', page->out);
}

static unsigned int longest_thread(const struct summary *summary, struct thread *const *threads, size_t n)
{
	unsigned int longest = 12;

	for (size_t i = 0; i < n; i++) {
		const struct thread_name *name = kymo_names_find(summary->names, threads[i]->tid);

		if (name)
			longest = at_least(12 + kymo_text_columns(name->safe), longest);
	}
	return longest;
}

static struct kymo_error *write_threads(const struct summary *summary, const struct page *page)
{
	const struct model *model = summary->model;
	kymo_cleanup_free struct thread **threads = kymo_model_sorted_threads(model);
	size_t shown = summary->all || model->threads.n <= TOP_THREADS ? model->threads.n : TOP_THREADS;
	char number[TEXT_NUMBER];
	uint64_t rest = model->count;
	struct columns c;

	if (!threads)
		return &kymo_error_no_memory;
	c = plan_columns(summary, page, longest_thread(summary, threads, shown));
	putc('\n', page->out);
	c.threads = 0;
	write_heading(page, &c, "THREAD");
	for (size_t i = 0; i < shown; i++) {
		write_thread_row(summary, page, &c, threads[i]);
		rest -= threads[i]->count;
	}
	if (rest)
		kymo_page_printf(page, INK_DIM, "%zu%s more %s, %s events%s\n", model->threads.n - shown,
				 model->other_threads ? "+" : "", model->threads.n - shown == 1 ? "thread" : "threads",
				 kymo_text_count(number, rest),
				 summary->all ? "" : " (--all shows them)");
	return NULL;
}

/* The name, and where the probe sits. */
static struct kymo_error *write_panel_heading(const struct page *page, const struct kymo_ctf_event *event)
{
	kymo_cleanup_free char *name = kymo_text_escape(event->name, page->unicode);
	kymo_cleanup_free char *symbol = kymo_text_escape(event->symbol ? event->symbol : "", page->unicode);
	kymo_cleanup_free char *path = kymo_text_escape(event->path ? event->path : "", page->unicode);
	unsigned int columns, room;

	if (!name || !symbol || !path)
		return &kymo_error_no_memory;
	putc('\n', page->out);
	columns = kymo_text_columns(name);
	kymo_page_left(page, INK_HEAD, name, columns < page->width ? columns : page->width);
	if (*symbol || *path) {
		kymo_cleanup_free char *site = NULL;
		char offset[TEXT_NUMBER] = "";

		if (*path)
			snprintf(offset, sizeof(offset), "+0x%" PRIx64, event->offset);
		if (asprintf(&site, "%s%s%s%s", symbol, *symbol && *path ? " " : "", path, offset) < 0)
			return &kymo_error_no_memory;
		room = columns + 2 < page->width ? page->width - columns - 2 : 0;
		kymo_page_spaces(page, room ? 2 : 0);
		columns = kymo_text_columns(site);
		kymo_page_left(page, INK_DIM, site, columns < room ? columns : room);
	}
	putc('\n', page->out);
	return NULL;
}

static struct kymo_error *write_distributions(const struct page *page, struct probe *probe)
{
	/* Too large for a stack. */
	kymo_cleanup_free struct panel *panels = calloc(KYMO_EVENT_MAX_ARGS + 1, sizeof(*panels));
	char *titles[KYMO_EVENT_MAX_ARGS] = { NULL };
	unsigned int n = 0;
	bool failed = !panels;
	struct kymo_error *error = NULL;

	for (uint32_t i = 0; i < probe->event->n_fields && !failed; i++) {
		const struct kymo_ctf_field *field = &probe->event->fields[i];
		struct field_stats *stats = &probe->fields[i];

		titles[i] = kymo_text_escape(field->name, page->unicode);
		failed = !titles[i];
		if (!failed)
			kymo_panel_init(&panels[n++], page, titles[i],
					kymo_type_is_hex(field->type) ? PANEL_HEX : PANEL_DECIMAL, &stats->stats,
					stats->faults);
	}
	if (!failed && probe->gaps.count)
		kymo_panel_init(&panels[n++], page, "time between", PANEL_TIME, &probe->gaps, 0);
	if (!failed && n)
		error = write_panel_heading(page, probe->event);
	if (!failed && n && !error)
		kymo_panels_write(panels, n, page);
	for (size_t i = 0; i < KYMO_EVENT_MAX_ARGS; i++)
		free(titles[i]);
	return failed ? &kymo_error_no_memory : error;
}

static struct kymo_error *write_all_distributions(const struct summary *summary, const struct page *page,
						  struct probe *const *probes)
{
	size_t n = summary->model->n_hit, shown = summary->all || n <= TOP_PANELS ? n : TOP_PANELS;
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < shown && !error; i++)
		error = write_distributions(page, probes[i]);
	if (shown < n && !error)
		kymo_page_printf(page, INK_DIM, "\ndistributions of %zu more %s (--all shows them)\n", n - shown,
				 n - shown == 1 ? "probe" : "probes");
	return error;
}

struct kymo_error *kymo_summary_write(const struct summary *summary, const struct page *page)
{
	kymo_cleanup_free struct probe **probes = kymo_model_sorted_probes(summary->model);
	struct kymo_error *error = kymo_summary_overview(summary, page);

	if (!probes && !error)
		error = &kymo_error_no_memory;
	if (error || !summary->model->count)
		return error;
	error = write_probes(summary, page, probes);
	if (!error)
		error = write_unhit(summary, page);
	if (!error)
		error = write_threads(summary, page);
	if (!error)
		error = write_all_distributions(summary, page, probes);
	return error;
}
