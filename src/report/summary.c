#include "report/summary.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/latency.h"
#include "report/panel.h"
#include "report/table.h"
#include "report/text.h"
#include "report/who.h"

#define TOP_PROBES 20
#define TOP_PANELS 5

static void write_probe_row(const struct summary *summary, const struct page *page, const struct columns *c,
			    const char *name, const struct probe *probe)
{
	unsigned int owed = kymo_table_counts(summary, page, c, name, probe->count);
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
		longest = kymo_at_least(kymo_text_columns(names[i]), longest);
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
	c = kymo_table_plan(summary, page, longest);
	putc('\n', page->out);
	kymo_table_heading(page, &c, "PROBE");
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
	const struct model *model = summary->model;
	size_t n = model->n_probes - model->n_hit;

	if (!n)
		return NULL;
	kymo_page_printf(page, INK_DIM, "%zu %s never hit%s\n", n, n == 1 ? "probe was" : "probes were",
			 summary->all ? ":" : "");
	for (size_t i = 0; summary->all && i < summary->trace->n_events; i++) {
		kymo_cleanup_free char *safe = NULL;

		if (model->places[i].first != i || model->probes[i])
			continue;
		safe = kymo_text_escape(summary->trace->events[i].name, page->unicode);
		if (!safe)
			return &kymo_error_no_memory;
		kymo_page_printf(page, INK_DIM, "  %s\n", safe);
	}
	return NULL;
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

/* Where the probe sits: "server.c:120 serve+0x4 /usr/bin/server+0x1234 and 2 more places: "fd=%d"", or what of it is known. NULL when memory is
 * out. */
static char *site_text(const struct model *model, const struct kymo_ctf_event *event, bool unicode)
{
	size_t n = model->places[event - model->trace->events].n;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	write_word(out, event->source, unicode);
	write_word(out, event->symbol, unicode);
	write_word(out, event->path, unicode);
	if (event->path && *event->path)
		fprintf(out, "+0x%" PRIx64, event->offset);
	if (n > 1)
		fprintf(out, " and %zu more %s", n - 1, n == 2 ? "place" : "places");
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

/* The name, and where the probe sits. */
static struct kymo_error *write_panel_heading(const struct model *model, const struct page *page,
					      const struct kymo_ctf_event *event)
{
	kymo_cleanup_free char *name = kymo_text_escape(event->name, page->unicode);
	kymo_cleanup_free char *site = site_text(model, event, page->unicode);
	unsigned int columns, room;

	if (!name || !site)
		return &kymo_error_no_memory;
	putc('\n', page->out);
	columns = kymo_text_columns(name);
	kymo_page_left(page, INK_HEAD, name, columns < page->width ? columns : page->width);
	if (*site) {
		room = columns + 2 < page->width ? page->width - columns - 2 : 0;
		kymo_page_spaces(page, room ? 2 : 0);
		columns = kymo_text_columns(site);
		kymo_page_left(page, INK_DIM, site, columns < room ? columns : room);
	}
	putc('\n', page->out);
	return NULL;
}

/* The panel of a field; false where it has none. */
static bool init_field_panel(struct panel *panel, const struct page *page, const char *title,
			     const struct kymo_ctf_field *field, struct field_stats *stats, const char *fault)
{
	if (kymo_type_is_integer(field->type))
		kymo_panel_init(panel, page, title, kymo_type_is_hex(field->type) ? PANEL_HEX : PANEL_DECIMAL,
				&stats->stats, stats->faults, fault);
	else if (field->type == KYMO_TYPE_F64)
		kymo_panel_init_reals(panel, page, title, &stats->reals, stats->faults, fault);
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
		error = write_panel_heading(summary->model, page, probe->event);
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
	if (error || !summary->model->count)
		return error;
	error = kymo_who_processes(summary, page);
	if (!error)
		error = write_probes(summary, page, probes);
	if (!error)
		error = write_unhit(summary, page);
	if (!error)
		error = kymo_latency_write(summary, page);
	if (!error)
		error = kymo_who_threads(summary, page);
	if (!error)
		error = write_all_distributions(summary, page, probes);
	return error;
}
