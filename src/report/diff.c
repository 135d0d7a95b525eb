#include "report/diff.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "report/diff_rows.h"
#include "report/labels.h"
#include "report/losses.h"
#include "report/table.h"
#include "report/text.h"

#define TOP_ROWS 20
#define MIN_NAME 12
#define JSON_FORMAT 1

/* A number of one recording, the same of the other, and how it has changed. */
enum { A, B, CHANGE, N_CELLS };
enum { N_GROUPS = 3 };

struct compared_row {
	const char *name; /* the caller's */
	char cells[N_GROUPS][N_CELLS][TEXT_NUMBER];
};

struct table {
	const char *heading;
	const char *groups[N_GROUPS]; /* the first stays on the narrowest page, the last goes first */
	struct compared_row *rows;
	size_t n;
	char **labels;
	unsigned int name, n_groups, widths[N_GROUPS][N_CELLS];
};

static void deinit_table(struct table *table)
{
	kymo_labels_destroy(table->labels, table->n);
	free(table->rows);
}

static void deinit_rows(struct diff_rows *rows)
{
	free(rows->items);
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* "+20%", "-3.5%", "x12" from tenfold on; "=" for no change. A number that is there on one side only is new or gone. */
static void fill_change(struct compared_row *row, unsigned int group, bool has_a, bool has_b, double a, double b)
{
	char *cell = row->cells[group][CHANGE];
	double percent = a > 0 ? (b - a) * 100 / a : 0;

	if (!has_a || !has_b)
		strcpy(cell, has_b ? "new" : has_a ? "gone" : "-");
	else if (a == b)
		strcpy(cell, "=");
	else if (!(a > 0))
		strcpy(cell, "new");
	else if (percent >= 900)
		snprintf(cell, TEXT_NUMBER, "x%.0f", b / a);
	else
		snprintf(cell, TEXT_NUMBER, fabs(percent) < 9.95 ? "%+.1f%%" : "%+.0f%%", percent);
}

static void fill_counts(struct compared_row *row, const struct diff_row *of, const struct summary *const sides[2])
{
	double counts[2], rates[2];
	bool has_rates[2];

	for (unsigned int i = 0; i < 2; i++) {
		const uint64_t count = kymo_diff_count(of->probes[i]);

		counts[i] = (double)count;
		rates[i] = kymo_model_rate(sides[i]->model, of->probes[i] ? of->probes[i]->recent : 0);
		has_rates[i] = of->is_there[i] && kymo_model_rated_ns(sides[i]->model);
		strcpy(row->cells[0][i], "-");
		strcpy(row->cells[1][i], "-");
		if (of->is_there[i])
			kymo_text_count(row->cells[0][i], count);
		if (has_rates[i])
			kymo_text_short(row->cells[1][i], rates[i]);
	}
	fill_change(row, 0, of->is_there[A], of->is_there[B], counts[A], counts[B]);
	fill_change(row, 1, has_rates[A], has_rates[B], rates[A], rates[B]);
}

static void fill_durations(struct compared_row *row, const struct diff_row *of, bool unicode)
{
	static const unsigned int percents[] = { 50, 99 };
	const struct durations *durations[2];

	for (unsigned int i = 0; i < 2; i++)
		durations[i] = of->functions[i] ? of->functions[i]->durations : NULL;
	for (unsigned int group = 0; group < N_GROUPS; group++) {
		double ns[2] = { 0 };

		for (unsigned int i = 0; i < 2; i++) {
			if (!durations[i]) {
				strcpy(row->cells[group][i], "-");
				continue;
			}
			ns[i] = group < 2 ? (double)kymo_durations_quantile(durations[i], percents[group])
					  : kymo_diff_total_ns(of->functions[i]);
			kymo_text_span(row->cells[group][i], ns[i] < 1.8e19 ? (uint64_t)ns[i] : UINT64_MAX, unicode);
		}
		fill_change(row, group, durations[0], durations[1], ns[0], ns[1]);
	}
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void heading_of(const struct table *table, unsigned int group, unsigned int cell, char text[TEXT_NUMBER])
{
	if (cell == CHANGE)
		strcpy(text, "CHANGE");
	else
		snprintf(text, TEXT_NUMBER, "%s %c", table->groups[group], cell == A ? 'A' : 'B');
}

static unsigned int plan_group(struct table *table, unsigned int group)
{
	unsigned int used = 0;

	for (unsigned int cell = 0; cell < N_CELLS; cell++) {
		unsigned int *width = &table->widths[group][cell];
		char text[TEXT_NUMBER];

		heading_of(table, group, cell, text);
		*width = (unsigned int)strlen(text);
		for (size_t i = 0; i < table->n; i++)
			*width = kymo_at_least(kymo_text_columns(table->rows[i].cells[group][cell]), *width);
		used += 2 + *width;
	}
	return used;
}

/* Groups as far as there is room beside names of 20 columns, or of what the longest has. */
static struct kymo_error *plan_columns(struct table *table, const struct page *page)
{
	kymo_cleanup_free const char **names = calloc(table->n + 1, sizeof(char *));
	unsigned int used = 0, longest = MIN_NAME, wanted;

	if (!names)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < table->n; i++) {
		names[i] = table->rows[i].name;
		longest = kymo_at_least(kymo_text_columns(names[i]), longest);
	}
	wanted = longest < 20 ? longest : 20;
	for (unsigned int group = 0; group < N_GROUPS && table->groups[group]; group++) {
		unsigned int columns = plan_group(table, group);

		if (group && !page->whole && used + columns + wanted > page->width)
			break;
		used += columns;
		table->n_groups = group + 1;
	}
	wanted = page->whole ? longest : page->width > used + MIN_NAME ? page->width - used : MIN_NAME;
	table->labels = kymo_labels_create(names, table->n, wanted, page->unicode, &table->name);
	table->name = kymo_at_least(table->name, MIN_NAME);
	return table->labels ? NULL : &kymo_error_no_memory;
}

static void write_table(const struct table *table, const struct page *page)
{
	putc('\n', page->out);
	kymo_page_left(page, INK_DIM, table->heading, table->name);
	for (unsigned int group = 0; group < table->n_groups; group++)
		for (unsigned int cell = 0; cell < N_CELLS; cell++) {
			char text[TEXT_NUMBER];

			heading_of(table, group, cell, text);
			kymo_table_right(page, INK_DIM, text, table->widths[group][cell]);
		}
	putc('\n', page->out);
	for (size_t i = 0; i < table->n; i++) {
		kymo_page_left(page, INK_HEAD, table->labels[i], table->name);
		for (unsigned int group = 0; group < table->n_groups; group++)
			for (unsigned int cell = 0; cell < N_CELLS; cell++)
				kymo_table_right(page, cell == CHANGE ? INK_BAR : INK_PLAIN,
						 table->rows[i].cells[group][cell], table->widths[group][cell]);
		putc('\n', page->out);
	}
}

/* Rows of either kind, as many as are shown. */
static struct kymo_error *write_rows(const struct summary *const sides[2], struct table *table, struct diff_rows *rows,
				     bool of_functions, const struct page *page)
{
	const size_t shown = sides[0]->all || rows->n <= TOP_ROWS ? rows->n : TOP_ROWS;
	struct kymo_error *error;

	if (!rows->n)
		return NULL;
	table->rows = calloc(shown, sizeof(*table->rows));
	if (!table->rows)
		return &kymo_error_no_memory;
	kymo_diff_sort(rows);
	for (; table->n < shown; table->n++) {
		struct compared_row *row = &table->rows[table->n];

		row->name = rows->items[table->n].label;
		if (of_functions)
			fill_durations(row, &rows->items[table->n], page->unicode);
		else
			fill_counts(row, &rows->items[table->n], sides);
	}
	error = plan_columns(table, page);
	if (error)
		return error;
	write_table(table, page);
	if (shown < rows->n)
		kymo_page_printf(page, INK_DIM, "%zu more %s%s, which changed less (--all shows %s)\n", rows->n - shown,
				 of_functions ? "function" : "probe", rows->n - shown == 1 ? "" : "s",
				 rows->n - shown == 1 ? "it" : "them");
	return NULL;
}

/* "A  before.data  12,000 events in 1.200 s, 10.0k/s", and what was lost. */
static struct kymo_error *write_side(const struct summary *summary, char letter, const struct page *page)
{
	const struct model *model = summary->model;
	const uint64_t duration = kymo_model_duration_ns(model);
	kymo_cleanup_free char *dir = kymo_text_escape(summary->dir, page->unicode);
	char number[TEXT_NUMBER];
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(summary->reader, &n);
	struct loss_total total = kymo_losses_total(losses, n);

	if (!dir)
		return &kymo_error_no_memory;
	kymo_page_printf(page, INK_HEAD, "%c  %s", letter, dir);
	kymo_page_printf(page, INK_PLAIN, "  %s %s", kymo_text_count(number, model->count),
			 model->count == 1 ? "event" : "events");
	kymo_page_printf(page, INK_PLAIN, " in %s s", kymo_text_seconds(number, (int64_t)duration, 3));
	if (kymo_model_rated_ns(model))
		kymo_page_printf(page, INK_PLAIN, ", %s/s",
				 kymo_text_short(number, kymo_model_rate(model, model->recent)));
	putc('\n', page->out);
	if (total.events)
		kymo_page_printf(page, INK_ALARM, "   lost %s %s: counts are too low\n",
				 kymo_text_count(number, total.events), total.events == 1 ? "event" : "events");
	if (total.packets)
		kymo_page_printf(page, INK_ALARM, "   overwritten: %s %s of events\n",
				 kymo_text_count(number, total.packets), total.packets == 1 ? "packet" : "packets");
	return NULL;
}

struct kymo_error *kymo_diff_write(const struct summary *a, const struct summary *b, const struct page *page)
{
	const struct summary *const sides[2] = { a, b };
	kymo_cleanup(deinit_table) struct table counts = { .heading = "PROBE", .groups = { "COUNT", "RATE/S" } };
	kymo_cleanup(deinit_table) struct table durations = { .heading = "CALLS", .groups = { "P50", "P99", "TOTAL" } };
	kymo_cleanup(deinit_rows) struct diff_rows probes = { 0 }, functions = { 0 };
	struct kymo_error *error = write_side(a, 'A', page);

	if (!error)
		error = write_side(b, 'B', page);
	if (!error)
		error = kymo_diff_probes(sides, &probes);
	if (!error)
		error = kymo_diff_functions(sides, &functions);
	if (!error)
		error = write_rows(sides, &counts, &probes, false, page);
	return error ? error : write_rows(sides, &durations, &functions, true, page);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_json_side(const struct summary *summary, char letter, FILE *out)
{
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(summary->reader, &n);
	struct loss_total total = kymo_losses_total(losses, n);

	fprintf(out, "\"%c\": {\"directory\": ", letter);
	kymo_json_string(out, summary->dir);
	fprintf(out,
		", \"events\": %" PRIu64 ", \"duration_ns\": %" PRIu64 ", \"lost_events\": %" PRIu64
		", \"overwritten_packets\": %" PRIu64 "},\n",
		summary->model->count, kymo_model_duration_ns(summary->model), total.events, total.packets);
}

static void write_json_probe(const struct probe *probe, bool is_there, FILE *out)
{
	if (is_there)
		fprintf(out, "{\"count\": %" PRIu64 "}", kymo_diff_count(probe));
	else
		fputs("null", out);
}

static void write_json_function(const struct function *function, FILE *out)
{
	const struct durations *durations = function ? function->durations : NULL;

	if (!durations) {
		fputs("null", out);
		return;
	}
	fprintf(out, "{\"count\": %" PRIu64 ", \"total_ns\": %.0f, \"min_ns\": %" PRIu64, durations->stats.count,
		kymo_diff_total_ns(function), durations->stats.min);
	for (unsigned int i = 0; i < 3; i++) {
		static const unsigned int percents[] = { 50, 90, 99 };

		fprintf(out, ", \"p%u_ns\": %" PRIu64, percents[i], kymo_durations_quantile(durations, percents[i]));
	}
	fprintf(out, ", \"max_ns\": %" PRIu64 "}", durations->stats.max);
}

static void write_json_rows(const struct diff_rows *rows, bool of_functions, const char *key, FILE *out)
{
	fprintf(out, "\"%s\": [", key);
	for (size_t i = 0; i < rows->n; i++) {
		fputs(i ? ",\n  {\"name\": " : "\n  {\"name\": ", out);
		kymo_json_string(out, rows->items[i].shown);
		for (unsigned int side = 0; side < 2; side++) {
			fprintf(out, ", \"%c\": ", side ? 'b' : 'a');
			if (of_functions)
				write_json_function(rows->items[i].functions[side], out);
			else
				write_json_probe(rows->items[i].probes[side], rows->items[i].is_there[side], out);
		}
		putc('}', out);
	}
	putc(']', out);
}

struct kymo_error *kymo_diff_write_json(const struct summary *a, const struct summary *b, FILE *out)
{
	const struct summary *const sides[2] = { a, b };
	kymo_cleanup(deinit_rows) struct diff_rows probes = { 0 }, functions = { 0 };
	struct kymo_error *error = kymo_diff_probes(sides, &probes);

	if (!error)
		error = kymo_diff_functions(sides, &functions);
	if (error)
		return error;
	fprintf(out, "{\"format\": %d,\n", JSON_FORMAT);
	write_json_side(a, 'a', out);
	write_json_side(b, 'b', out);
	write_json_rows(&probes, false, "probes", out);
	fputs(",\n", out);
	write_json_rows(&functions, true, "calls", out);
	fputs("\n}\n", out);
	return NULL;
}
