#include "report/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/aggregations.h"
#include "report/labels.h"
#include "report/latency.h"
#include "report/overview.h"
#include "report/panel.h"
#include "report/table.h"
#include "report/text.h"
#include "report/who.h"
#include "sym/demangle.h"

#define TOP_PROBES 20
#define TOP_PANELS 5

static void write_probe_row(const struct summary *summary, const struct page *page, const struct columns *c,
			    const char *name, const struct probe *probe)
{
	unsigned int owed = kymo_table_counts(summary, page, c, name, probe->count, probe->recent,
					      kymo_model_of_probes(summary->model));
	char number[TEXT_NUMBER];

	if (c->threads || c->time)
		kymo_page_spaces(page, owed);
	if (c->threads) {
		snprintf(number, sizeof(number), "%" PRIu32 "%s", probe->n_threads, probe->more_threads ? "+" : "");
		kymo_table_right(page, INK_PLAIN, number, c->threads);
	}
	kymo_table_times(summary, page, c, probe->first, probe->last);
	putc('\n', page->out);
}

static const char *event_name(const struct summary *summary, const struct kymo_ctf_event *event)
{
	return summary->names->events[event - summary->trace->events].name;
}

static struct kymo_error *write_rows(const struct summary *summary, const struct page *page,
				     struct probe *const *probes, size_t n)
{
	kymo_cleanup_free const char **names = calloc(n + 1, sizeof(char *));
	struct columns c;
	char **labels;
	struct kymo_error *error;

	for (size_t i = 0; names && i < n; i++)
		names[i] = event_name(summary, probes[i]->event);
	error = names ? kymo_table_plan(summary, page, names, n, &c, &labels) : &kymo_error_no_memory;
	if (error)
		return error;
	putc('\n', page->out);
	kymo_table_heading(page, &c, "PROBE");
	for (size_t i = 0; i < n; i++)
		write_probe_row(summary, page, &c, labels[i], probes[i]);
	kymo_labels_destroy(labels, n);
	return NULL;
}

static struct kymo_error *write_probes(const struct summary *summary, const struct page *page,
				       struct probe *const *probes)
{
	const struct model *model = summary->model;
	size_t shown = summary->all || model->n_hit <= TOP_PROBES ? model->n_hit : TOP_PROBES;
	struct kymo_error *error = write_rows(summary, page, probes, shown);
	char number[TEXT_NUMBER];
	uint64_t rest = kymo_model_of_probes(model);

	if (error)
		return error;
	for (size_t i = 0; i < shown; i++)
		rest -= probes[i]->count;
	if (shown < model->n_hit)
		kymo_page_printf(page, INK_DIM, "%zu more %s, %s events (--all shows them)\n", model->n_hit - shown,
				 model->n_hit - shown == 1 ? "probe" : "probes", kymo_text_count(number, rest));
	return NULL;
}

/* With --all, the probes without a record, a line each. */
static void write_unhit(const struct summary *summary, const struct page *page)
{
	const struct model *model = summary->model;
	size_t n = model->n_probes - model->n_hit;

	if (!n)
		return;
	kymo_page_printf(page, INK_DIM, "%zu %s never hit%s\n", n, n == 1 ? "probe was" : "probes were",
			 summary->all ? ":" : "");
	for (size_t i = 0; summary->all && i < summary->trace->n_events; i++)
		if (model->locations[i].first == i && !model->probes[i])
			kymo_page_printf(page, INK_DIM, "  %s\n", summary->names->events[i].name);
}

/* Write ` text` or, where nothing has been written, `text`, as a terminal may have it; nothing of NULL or "". */
static void write_word(FILE *out, const char *text, bool unicode)
{
	if (!text || !*text)
		return;
	if (ftell(out))
		putc(' ', out);
	kymo_text_write(out, text, unicode);
}

/* Where the probe sits: "server.c:120 serve+0x4 /usr/bin/server+0x1234 and 2 more locations: "fd=%d"", or what of it is
 * known. NULL when memory is out. */
static char *site_text(const struct model *model, const struct kymo_ctf_event *event, bool unicode)
{
	size_t n = model->locations[event - model->trace->events].n;
	kymo_cleanup_free char *symbol = event->symbol ? kymo_shown(event->symbol) : NULL;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	write_word(out, event->source, unicode);
	write_word(out, symbol, unicode);
	write_word(out, event->path, unicode);
	if (event->path && *event->path)
		fprintf(out, "+0x%" PRIx64, event->offset);
	if (n > 1)
		fprintf(out, " and %zu more %s", n - 1, n == 2 ? "location" : "locations");
	if (event->format && *event->format) {
		fputs(ftell(out) ? ": " : "", out);
		kymo_text_quote(out, event->format, unicode);
	}
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

/* The name, and where the probe sits, as far as there is room for it. */
static struct kymo_error *write_panel_heading(const struct summary *summary, const struct page *page,
					      const struct kymo_ctf_event *event)
{
	kymo_cleanup_free char *site = site_text(summary->model, event, page->unicode);
	const char *name = event_name(summary, event);
	unsigned int columns = kymo_text_columns(name), room;

	if (!site)
		return &kymo_error_no_memory;
	putc('\n', page->out);
	kymo_page_text(page, INK_HEAD, name);
	room = columns + 2 < page->width ? page->width - columns - 2 : 0;
	if (page->whole || room >= kymo_text_columns(site))
		room = kymo_text_columns(site);
	if (*site && room) {
		kymo_page_spaces(page, 2);
		kymo_page_left(page, INK_DIM, site, kymo_text_columns(site) < room ? kymo_text_columns(site) : room);
	}
	putc('\n', page->out);
	return NULL;
}

/* The panel of a field; false where it has none. */
static bool init_field_panel(struct panel *panel, const struct page *page, const char *title,
			     const struct kymo_ctf_field *field, struct field_stats *stats, const char *fault)
{
	if (kymo_type_is_integer(field->type) && field->naming)
		kymo_panel_init_names(panel, page, title, &stats->stats, field->naming, stats->faults, fault);
	else if (kymo_type_is_integer(field->type))
		kymo_panel_init(panel, page, title, kymo_type_is_hex(field->type) ? PANEL_HEX : PANEL_DECIMAL,
				&stats->stats, stats->faults, fault);
	else if (kymo_type_is_real(field->type))
		kymo_panel_init_reals(panel, page, title, field->type, &stats->reals, stats->faults, fault);
	return field->type != KYMO_TYPE_STRING && field->type != KYMO_TYPE_BYTES;
}

/* Arguments, durations of calls at the function's entry, times between. */
static struct kymo_error *write_distributions(const struct summary *summary, const struct page *page,
					      struct probe *probe)
{
	/* Too large for a stack. */
	kymo_cleanup_free struct panel *panels = calloc(KYMO_EVENT_MAX_ARGS + 2, sizeof(*panels));
	const struct function *function =
		kymo_functions_of_entry(&summary->calls->functions, summary->trace, probe->event);
	const char *fault = probe->event->kind == KYMO_CTF_RETURN ? "(unknown)" : "(fault)";
	char *titles[KYMO_EVENT_MAX_ARGS] = { NULL };
	unsigned int n = 0;
	bool failed = !panels;
	struct kymo_error *error = NULL;

	for (uint32_t i = 0; i < probe->event->n_fields && !failed; i++) {
		const struct kymo_ctf_field *field = &probe->event->fields[i];

		titles[i] = kymo_text_escape(field->name, page->unicode);
		failed = !titles[i];
		if (!failed && init_field_panel(&panels[n], page, titles[i], field, &probe->fields[i], fault))
			n++;
	}
	if (!failed && function && function->durations)
		kymo_panel_init(&panels[n++], page, "duration", PANEL_TIME, &function->durations->stats, 0, fault);
	if (!failed && probe->gaps.count)
		kymo_panel_init(&panels[n++], page, "time between", PANEL_TIME, &probe->gaps, 0, fault);
	if (!failed && n)
		error = write_panel_heading(summary, page, probe->event);
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
		error = write_distributions(summary, page, probes[i]);
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
	if (!error)
		error = kymo_aggregations_write(summary->aggregations, page, summary->all);
	if (error || !summary->model->count)
		return error;
	error = kymo_who_processes(summary, page);
	if (!error)
		error = write_probes(summary, page, probes);
	if (!error)
		write_unhit(summary, page);
	if (!error)
		error = kymo_latency_write(summary, page);
	if (!error)
		error = kymo_who_threads(summary, page);
	if (!error)
		error = write_all_distributions(summary, page, probes);
	return error;
}
