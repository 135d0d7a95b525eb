/*
 * The first lines of the summary.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "report/gaps.h"
#include "report/ended.h"
#include "report/losses.h"
#include "report/overview.h"
#include "report/samples.h"
#include "report/text.h"
#include "sym/demangle.h"

#define LABEL_COLUMNS 10
#define MAX_SPANS 5
#define MAX_GAPS 10

static const char *plural(uint64_t n, const char *one, const char *many)
{
	return n == 1 ? one : many;
}

/* "kymo.data: python3 app.py, pid 4242" */
static struct kymo_error *write_subject(const struct summary *summary, const struct page *page)
{
	const char *raw_command = kymo_ctf_trace_env(summary->trace, "command");
	const char *raw_pid = kymo_ctf_trace_env(summary->trace, "pid");
	kymo_cleanup_free char *dir = kymo_text_escape(summary->dir, page->unicode);
	kymo_cleanup_free char *command = kymo_text_escape(raw_command ? raw_command : "", page->unicode);
	kymo_cleanup_free char *pid = kymo_text_escape(raw_pid ? raw_pid : "", page->unicode);

	if (!dir || !command || !pid)
		return &kymo_error_no_memory;
	kymo_page_text(page, INK_HEAD, dir);
	if (*command)
		kymo_page_printf(page, INK_PLAIN, ": %s", command);
	if (*pid)
		kymo_page_printf(page, INK_DIM, ", pid %s", pid);
	putc('\n', page->out);
	if (kymo_ctf_trace_env(summary->trace, KYMO_ENV_BRANCHES))
		kymo_page_printf(page, INK_PLAIN, "it has branches: 'kymo branches %s' shows them\n", dir);
	return NULL;
}

/* ", 2.46k/s", and since when, where not all CPUs have their records from the beginning: ", 2.46k/s since 4.012 s" */
static void write_rate(const struct model *model, const struct page *page, unsigned int decimals)
{
	char number[TEXT_NUMBER];

	if (!kymo_model_rated_ns(model))
		return;
	kymo_page_printf(page, INK_PLAIN, ", %s/s", kymo_text_short(number, kymo_model_rate(model, model->recent)));
	if (model->since > model->first)
		kymo_page_printf(page, INK_PLAIN, " since %s s",
				 kymo_text_seconds(number, kymo_model_relative_ns(model, model->since), decimals));
}

/* "2024-11-20 12:58:01, 5.012 s: 12,345 events, 2.46k/s; 3 of 5 probes, 2 threads, 2 CPUs" */
static void write_totals(const struct summary *summary, const struct page *page)
{
	const struct model *model = summary->model;
	time_t first = (time_t)(kymo_ctf_wall_ns(summary->trace, model->first) / 1000000000);
	char date[64] = "", seconds[TEXT_NUMBER], count[TEXT_NUMBER];
	uint64_t duration = kymo_model_duration_ns(model);
	const unsigned int decimals = duration >= 1000000000 ? 3 : duration >= 1000000 ? 6 : 9;
	size_t n_threads = model->n_threads;
	struct tm parts;

	if (!model->count) {
		kymo_page_printf(page, INK_PLAIN, "no events; %zu %s\n", model->n_probes,
				 plural(model->n_probes, "probe", "probes"));
		return;
	}
	if (localtime_r(&first, &parts))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S, ", &parts);
	kymo_text_seconds(seconds, (int64_t)duration, decimals);
	kymo_page_printf(page, INK_PLAIN, "%s%s s: ", date, seconds);
	kymo_page_printf(page, INK_HEAD, "%s %s", kymo_text_count(count, model->count),
			 plural(model->count, "event", "events"));
	write_rate(model, page, decimals);
	kymo_page_printf(page, INK_PLAIN, "; ");
	if (model->n_hit < model->n_probes)
		kymo_page_printf(page, INK_PLAIN, "%zu of ", model->n_hit);
	kymo_page_printf(page, INK_PLAIN, "%zu %s, ", model->n_probes, plural(model->n_probes, "probe", "probes"));
	if (summary->names->has_processes)
		kymo_page_printf(page, INK_PLAIN, "%zu processes, ", kymo_ctf_trace_n_pids(summary->trace));
	kymo_page_printf(page, INK_PLAIN, "%zu%s %s, %u %s\n", n_threads, model->other_threads ? "+" : "",
			 plural(n_threads, "thread", "threads"), model->n_cpus, plural(model->n_cpus, "CPU", "CPUs"));
}

/* Which source has seen the system calls, and what it cannot see. */
static void write_calls_way(const struct summary *summary, const struct page *page)
{
	static const struct {
		const char *way, *text;
	} ways[] = {
		{ "inproc", "by code in the process, without memory; those of JIT code are not covered" },
		{ "kernel", "through the kernel, with memory" },
		{ "ptrace", "by tracing (ptrace), with memory" },
	};
	const char *way = kymo_ctf_trace_env(summary->trace, "system_calls");

	for (size_t i = 0; way && i < kymo_countof(ways); i++) {
		if (strcmp(way, ways[i].way))
			continue;
		kymo_page_left(page, INK_PLAIN, "calls", LABEL_COLUMNS);
		kymo_page_printf(page, INK_DIM, "%s\n", ways[i].text);
	}
}

/* The column of a time on a line of `columns` over the trace's duration. */
static unsigned int column_of(const struct model *model, uint64_t tsc, unsigned int columns)
{
	uint64_t span = ((model->last - model->origin) >> model->timeline_shift) + 1;
	uint64_t bin = tsc > model->origin ? (tsc - model->origin) >> model->timeline_shift : 0;

	return bin >= span ? columns - 1 : (unsigned int)(bin * columns / span);
}

/* Mean records a bin for each column: columns need not hold the same number of bins. */
static void fill_columns(const struct model *model, double *heights, unsigned int columns)
{
	size_t n_bins = (size_t)((model->last - model->origin) >> model->timeline_shift) + 1;

	for (unsigned int column = 0; column < columns; column++) {
		/* All bins of which column_of() gives this column. */
		size_t from = (column * n_bins + columns - 1) / columns,
		       to = ((column + 1) * n_bins + columns - 1) / columns;

		heights[column] = 0;
		for (size_t bin = from; bin < to; bin++)
			heights[column] += (double)model->timeline[bin] / (double)(to - from);
	}
}

static void write_activity(const struct summary *summary, const struct page *page, unsigned int columns)
{
	static const char *const blocks[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { " ", ".", ":", "-", "=", "+", "*", "%", "#" };
	double heights[TIMELINE_BINS], highest = 0;

	fill_columns(summary->model, heights, columns);
	for (unsigned int i = 0; i < columns; i++)
		highest = heights[i] > highest ? heights[i] : highest;
	kymo_page_left(page, INK_PLAIN, "activity", LABEL_COLUMNS);
	for (unsigned int i = 0; i < columns; i++) {
		unsigned int level = highest > 0 ? (unsigned int)(heights[i] / highest * 8 + 0.999) : 0;

		level = level > 8 ? 8 : level;
		kymo_page_text(page, INK_BAR, page->unicode ? blocks[level] : ascii[level]);
	}
	putc('\n', page->out);
}

static void mark_losses(const struct summary *summary, const struct page *page, unsigned int columns,
			const struct kymo_ctf_loss *losses, size_t n)
{
	char marks[TIMELINE_BINS + 1];
	unsigned int end = 0;

	memset(marks, ' ', sizeof(marks));
	for (size_t i = 0; i < n; i++) {
		unsigned int last = column_of(summary->model, losses[i].end, columns);

		if (kymo_loss_is_in_vforks(
			    &losses[i])) /* known to the second only, and the records shown are not fewer for them */
			continue;
		for (unsigned int c = column_of(summary->model, losses[i].begin, columns); c <= last; c++)
			marks[c] = 'x';
		end = last >= end ? last + 1 : end;
	}
	if (!end)
		return;
	kymo_page_left(page, INK_PLAIN, "lost", LABEL_COLUMNS);
	kymo_page_printf(page, INK_ALARM, "%.*s\n", (int)end, marks);
}

static void write_lost_events(const struct model *model, const struct page *page, const struct loss_total *total)
{
	double percent = (double)total->events * 100 / ((double)model->count + (double)total->events);
	char number[TEXT_NUMBER];

	kymo_page_printf(page, INK_ALARM, "lost %s %s (", kymo_text_count(number, total->events),
			 plural(total->events, "event", "events"));
	if (model->filter && kymo_filter_is_part(model->filter))
		kymo_page_printf(page, INK_ALARM, "in the whole recording)");
	else if (percent < 0.01)
		kymo_page_printf(page, INK_ALARM, "less than 0.01 %% of all)");
	else
		kymo_page_printf(page, INK_ALARM, "%.*f %% of all)", percent < 1 ? 2 : 0, percent);
	if (total->in_vforks)
		kymo_page_printf(page, INK_ALARM, ", %s in vfork children before their exec",
				 total->in_vforks == total->events ? "all" : kymo_text_count(number, total->in_vforks));
}

/* No loss is shown before the first record: a recorder that has just begun knows only that it was after its begin. */
static int64_t shown_ns(const struct model *model, uint64_t tsc)
{
	const int64_t ns = kymo_model_relative_ns(model, tsc);

	return ns > 0 ? ns : 0;
}

/* "lost 5 events (29 % of all), 2 packets overwritten: 0.001 to 0.020 s, 1.500 to 1.600 s" */
static void write_losses_line(const struct summary *summary, const struct page *page,
			      const struct kymo_ctf_loss *losses, size_t n)
{
	const struct model *model = summary->model;
	struct loss_total total = kymo_losses_total(losses, n);
	struct kymo_ctf_loss spans[MAX_SPANS];
	size_t n_spans = kymo_losses_join(losses, n, (model->last - model->first) / 50, spans, MAX_SPANS);
	char number[TEXT_NUMBER], begin[TEXT_NUMBER], end[TEXT_NUMBER];
	unsigned int decimals = kymo_model_duration_ns(model) >= 1000000000 ? 3 : 6;

	if (total.events)
		write_lost_events(model, page, &total);
	if (total.packets)
		kymo_page_printf(page, INK_ALARM, "%s%s %s overwritten", total.events ? ", " : "",
				 kymo_text_count(number, total.packets), plural(total.packets, "packet", "packets"));
	for (size_t i = 0; i < n_spans; i++) {
		kymo_text_seconds(begin, shown_ns(model, spans[i].begin), decimals);
		kymo_text_seconds(end, shown_ns(model, spans[i].end), decimals);
		if (total.packets &&
		    spans[i].begin == spans[i].end) /* of the packets that are gone, only the end is known */
			kymo_page_printf(page, INK_PLAIN, "%s before %s s", i ? "," : ":", end);
		else
			kymo_page_printf(page, INK_PLAIN, "%s %s to %s s", i ? "," : ":", begin, end);
	}
	putc('\n', page->out);
}

/* "not recorded: 3 probes of process 7 (libc:malloc and 2 more), 1.234 to 2.345 s: another tool's breakpoint was there"
 */
static struct kymo_error *write_gap(const struct summary *summary, const struct page *page, const struct trace_gap *gap)
{
	const struct model *model = summary->model;
	kymo_cleanup_free char *shown = kymo_shown(gap->name),
			       *name = shown ? kymo_text_escape(shown, page->unicode) : NULL;
	char number[TEXT_NUMBER], begin[TEXT_NUMBER], end[TEXT_NUMBER];

	if (!name)
		return &kymo_error_no_memory;
	kymo_page_printf(page, INK_ALARM, "not recorded: %s %s of process %d (%s%s)", kymo_text_count(number, gap->n),
			 plural(gap->n, "probe", "probes"), gap->pid, name, gap->n > 1 ? " …" : "");
	if (!model->count) { /* nothing that times could be told from */
		kymo_page_printf(page, INK_PLAIN, ": %s\n", gap->cause);
		return NULL;
	}
	kymo_page_printf(page, INK_PLAIN, ", %s s to %s%s: %s\n",
			 gap->begin ? kymo_text_seconds(begin, kymo_model_relative_ns(model, gap->begin), 3) : "0",
			 gap->end ? kymo_text_seconds(end, kymo_model_relative_ns(model, gap->end), 3) : "the end",
			 gap->end ? " s" : "", gap->cause);
	return NULL;
}

static struct kymo_error *write_gaps(const struct summary *summary, const struct page *page)
{
	struct kymo_error *error = NULL;
	size_t n = 0;

	for (size_t i = 0; i < summary->trace->n_env && !error; i++) {
		struct trace_gap gap;

		if (kymo_gap_parse(&summary->trace->env[i], &gap) && n++ < MAX_GAPS)
			error = write_gap(summary, page, &gap);
	}
	if (!error && n > MAX_GAPS)
		kymo_page_printf(page, INK_ALARM, "not recorded: %zu more gaps; --json has all\n", n - MAX_GAPS);
	return error;
}

static struct kymo_error *write_warnings(const struct summary *summary, const struct page *page)
{
	size_t n;
	const char *const *warnings = kymo_ctf_reader_warnings(summary->reader, &n);
	const char *unended = kymo_unended(summary->trace);

	if (unended)
		kymo_page_printf(page, INK_ALARM, "no end: %s\n", unended);

	for (size_t i = 0; i < n; i++) {
		kymo_cleanup_free char *safe = kymo_text_escape(warnings[i], page->unicode);

		if (!safe)
			return &kymo_error_no_memory;
		kymo_page_printf(page, INK_ALARM, "damaged: %s\n", safe);
	}
	return NULL;
}

struct kymo_error *kymo_summary_overview(const struct summary *summary, const struct page *page)
{
	const struct model *model = summary->model;
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(summary->reader, &n);
	uint64_t bins = ((model->last - model->origin) >> model->timeline_shift) + 1;
	unsigned int columns = page->width > LABEL_COLUMNS + 10 ? page->width - LABEL_COLUMNS : 10;
	struct kymo_error *error = write_subject(summary, page);

	if (error)
		return error;
	write_totals(summary, page);
	write_calls_way(summary, page);
	columns = columns > 128 ? 128 : columns;
	columns = columns > bins ? (unsigned int)bins : columns;
	if (model->count > 1 && columns > 1) {
		write_activity(summary, page, columns);
		if (n)
			mark_losses(summary, page, columns, losses, n);
	}
	if (n)
		write_losses_line(summary, page, losses, n);
	error = write_gaps(summary, page);
	if (!error)
		error = kymo_samples_write(page, summary->trace);
	if (error)
		return error;
	if (!summary->trace->clock_is_invariant)
		kymo_page_printf(page, INK_ALARM,
				 "times are uncertain: this machine's time stamp counter changes its rate\n");
	return write_warnings(summary, page);
}
