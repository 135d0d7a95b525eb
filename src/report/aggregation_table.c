#include "report/aggregation_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/frames.h"
#include "report/namings.h"
#include "report/panel.h"
#include "report/text.h"
#include "sym/demangle.h"

#define ROWS_SHOWN 20
#define HISTOGRAMS_SHOWN 6
#define TOP_SHOWN 10
#define TEXT_MAX 40     /* columns of a key */
#define NAME_COLUMNS 12 /* of a key that the title of a histogram tells */
#define BAR_MAX 30
#define BAR_MIN 6
#define STACK_INDENT 6

static bool is_time(const struct kymo_aggr *aggr)
{
	return aggr->has_value && aggr->value.what == KYMO_AGGR_DURATION;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Those are no column: they stand below their row. */
static bool is_stack(const struct kymo_aggr *aggr, size_t column)
{
	return column < aggr->n_keys && aggr->keys[column].what == KYMO_AGGR_STACK;
}

static void write_stacks(const struct kymo_aggr_table *table, const struct page *page, const struct kymo_aggr_row *row)
{
	for (size_t i = 0; i < table->aggr->n_keys && table->frames; i++)
		if (is_stack(table->aggr, i))
			kymo_stack_write(page, table->frames, row->keys.values[i], STACK_INDENT);
}

/* ---- keys and values as text ----------------------------------------------------------------- */

/* Names of functions and probes are those of the source. */
static char *shown_key(const char *text, enum kymo_aggr_what what, bool unicode)
{
	kymo_cleanup_free char *shown =
		what == KYMO_AGGR_FUNC || what == KYMO_AGGR_PROBE ? kymo_shown(text) : strdup(text);

	return shown ? kymo_text_escape(shown, unicode) : NULL;
}

/* Key `i` of a row, safe; NULL when memory is out. */
static char *key_text(const struct kymo_aggr_table *table, const struct page *page, const struct kymo_aggr_row *row,
		      size_t i)
{
	const enum kymo_type type = table->aggr->keys[i].type;
	const uint64_t value = row->keys.values[i];
	char number[TEXT_NUMBER], *label;

	if (row->keys.faults & 1u << i)
		return strdup("(fault)");
	label = kymo_naming_label(table->aggr->keys[i].naming, value, page->unicode);
	if (label)
		return label;
	if (type == KYMO_TYPE_STRING)
		return shown_key(kymo_strings_text(&table->strings, value), table->aggr->keys[i].what, page->unicode);
	if (kymo_type_is_hex(type))
		snprintf(number, sizeof(number), "0x%" PRIx64, value);
	else if (kymo_type_is_signed(type))
		snprintf(number, sizeof(number), "%" PRId64, (int64_t)value);
	else
		snprintf(number, sizeof(number), "%" PRIu64, value);
	return strdup(number);
}

static void wide_text(char number[TEXT_NUMBER], const struct kymo_aggr *aggr, __int128 value, bool unicode)
{
	const bool is_negative = value < 0;
	const __int128 magnitude = is_negative ? -value : value;
	const uint64_t cut = magnitude > (__int128)UINT64_MAX ? UINT64_MAX : (uint64_t)magnitude;

	if (is_time(aggr))
		kymo_text_span(number, cut, unicode);
	else
		kymo_text_signed(number, cut, is_negative);
}

/* What the row comes to. */
static void weight_text(char number[TEXT_NUMBER], const struct kymo_aggr *aggr, const struct kymo_aggr_row *row,
			const struct page *page)
{
	const double mean = row->count ? (double)row->sum / (double)row->count : 0;

	if (aggr->kind == KYMO_AGGR_COUNT || !aggr->has_value)
		kymo_text_count(number, row->count);
	else if (aggr->kind == KYMO_AGGR_AVG && !is_time(aggr) && mean > -1000 && mean < 1000)
		snprintf(number, TEXT_NUMBER, "%.1f", mean);
	else
		wide_text(number, aggr, kymo_aggr_weight(aggr, row), page->unicode);
}

/* ---- the heading and the end ----------------------------------------------------------------- */

static struct kymo_error *write_heading(const struct kymo_aggr_table *table, const struct page *page)
{
	const struct kymo_aggr *aggr = table->aggr;
	char *text = NULL, number[TEXT_NUMBER];
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return &kymo_error_no_memory;
	fputs(kymo_aggr_kind_name(aggr->kind), out);
	if (aggr->has_value) {
		fputs(" of ", out);
		kymo_text_write(out, aggr->value.text, page->unicode);
	}
	fputs(aggr->has_value ? " at " : " of ", out);
	kymo_text_write(out, aggr->probe, page->unicode);
	for (size_t i = 0; i < aggr->n_keys; i++) {
		fputs(i ? ", " : " by ", out);
		kymo_text_write(out, aggr->keys[i].text, page->unicode);
	}
	if (fclose(out)) {
		free(text);
		return &kymo_error_no_memory;
	}
	putc('\n', page->out);
	kymo_page_text(page, INK_HEAD, text);
	free(text);
	kymo_page_printf(page, INK_DIM, "  %s %s", kymo_text_count(number, table->hits),
			 table->hits == 1 ? "hit" : "hits");
	if (aggr->n_keys)
		kymo_page_printf(page, INK_DIM, ", %s %s", kymo_text_count(number, table->rows.n),
				 table->rows.n == 1 ? "row" : "rows");
	putc('\n', page->out);
	return NULL;
}

static void write_missing(const struct kymo_aggr_table *table, const struct page *page)
{
	const struct {
		uint64_t n;
		const char *one, *many;
	} missing[] = {
		{ table->lost, "hit is in no row: there was no room for its key",
		  "hits are in no row: there was no room for their keys" },
		{ table->faults, "hit is in no row: its value was not available",
		  "hits are in no row: their value was not available" },
		{ table->calls_without_entry,
		  "call is in no row: it began before the recording, or its entry is not known",
		  "calls are in no row: they began before the recording, or their entries are not known" },
		{ table->calls_over_losses, "call is in no row: records were lost meanwhile",
		  "calls are in no row: records were lost meanwhile" },
	};
	char number[TEXT_NUMBER];

	for (size_t i = 0; i < kymo_countof(missing); i++)
		if (missing[i].n)
			kymo_page_printf(page, INK_ALARM, "  %s %s\n", kymo_text_count(number, missing[i].n),
					 missing[i].n == 1 ? missing[i].one : missing[i].many);
}

static void write_rest(const struct kymo_aggr_table *table, const struct page *page,
		       const struct kymo_aggr_row *const *rows, size_t shown)
{
	char hits[TEXT_NUMBER], number[TEXT_NUMBER];
	uint64_t n = 0;

	if (shown >= table->rows.n)
		return;
	for (size_t i = shown; i < table->rows.n; i++)
		n += rows[i]->count;
	kymo_page_printf(page, INK_DIM, "  %s more %s, %s hits (kymo report --all shows them)\n",
			 kymo_text_count(number, table->rows.n - shown), table->rows.n - shown == 1 ? "row" : "rows",
			 kymo_text_count(hits, n));
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* The texts of the rows that are shown: of each its keys, then its value. */
struct lines {
	size_t n, n_columns;
	char **texts;                                 /* n_columns a row */
	unsigned int columns[KYMO_AGGR_KEYS_MAX + 1]; /* how wide each is */
};

static void lines_deinit(struct lines *lines)
{
	for (size_t i = 0; lines->texts && i < lines->n * lines->n_columns; i++)
		free(lines->texts[i]);
	free(lines->texts);
}

static const char *heading_of(const struct kymo_aggr *aggr, size_t column)
{
	if (column < aggr->n_keys)
		return aggr->keys[column].text;
	return aggr->has_value ? kymo_aggr_kind_name(aggr->kind == KYMO_AGGR_TOP ? KYMO_AGGR_SUM : aggr->kind)
			       : "count";
}

static void widen(struct lines *lines, size_t column, const char *text)
{
	unsigned int columns = kymo_text_columns(text);

	if (columns > TEXT_MAX)
		columns = TEXT_MAX;
	if (columns > lines->columns[column])
		lines->columns[column] = columns;
}

static bool make_lines(struct lines *lines, const struct kymo_aggr_table *table, const struct page *page,
		       const struct kymo_aggr_row *const *rows, size_t n)
{
	const struct kymo_aggr *aggr = table->aggr;
	char number[TEXT_NUMBER];

	lines->n = n;
	lines->n_columns = aggr->n_keys + 1;
	lines->texts = calloc(n * lines->n_columns + 1, sizeof(char *));
	for (size_t i = 0; i < lines->n_columns; i++)
		if (!is_stack(aggr, i))
			widen(lines, i, heading_of(aggr, i));
	for (size_t row = 0; lines->texts && row < n; row++)
		for (size_t i = 0; i < lines->n_columns; i++) {
			char **text = &lines->texts[row * lines->n_columns + i];

			weight_text(number, aggr, rows[row], page);
			*text = i < aggr->n_keys ? key_text(table, page, rows[row], i) : strdup(number);
			if (!*text)
				return false;
			if (!is_stack(aggr, i))
				widen(lines, i, *text);
		}
	return lines->texts;
}

/* A column of texts stands at the left, one of numbers at the right. */
static void write_cell(const struct kymo_aggr *aggr, const struct lines *lines, const struct page *page, enum ink ink,
		       size_t column, const char *text)
{
	if (is_stack(aggr, column))
		return;
	kymo_page_spaces(page, 2);
	if (column < aggr->n_keys && aggr->keys[column].type == KYMO_TYPE_STRING)
		kymo_page_left(page, ink, text, lines->columns[column]);
	else
		kymo_page_right(page, ink, text, lines->columns[column]);
}

/* Bars are for what can be added up. */
static bool has_bars(const struct kymo_aggr *aggr)
{
	return aggr->kind == KYMO_AGGR_COUNT || aggr->kind == KYMO_AGGR_SUM || aggr->kind == KYMO_AGGR_TOP;
}

static void write_bar(const struct kymo_aggr *aggr, const struct page *page, const struct kymo_aggr_row *row,
		      __int128 whole, unsigned int columns)
{
	__int128 part = kymo_aggr_weight(aggr, row);

	if (part <= 0 || whole <= 0 || columns < BAR_MIN)
		return;
	while (whole > (__int128)UINT32_MAX) {
		whole >>= 1;
		part >>= 1;
	}
	kymo_page_spaces(page, 1);
	kymo_page_bar(page, (uint64_t)part, (uint64_t)whole, columns);
}

static struct kymo_error *write_lines(const struct kymo_aggr_table *table, const struct page *page,
				      const struct kymo_aggr_row *const *rows, size_t n)
{
	kymo_cleanup(lines_deinit) struct lines lines = { .n = 0 };
	const struct kymo_aggr *aggr = table->aggr;
	unsigned int used = 1;
	__int128 whole = 0;

	if (!make_lines(&lines, table, page, rows, n))
		return &kymo_error_no_memory;
	for (size_t i = 0; i < lines.n_columns; i++)
		used += 2 + lines.columns[i];
	used = page->width > used ? page->width - used : 0;
	if (aggr->n_keys) {
		for (size_t i = 0; i < lines.n_columns; i++)
			write_cell(aggr, &lines, page, INK_DIM, i, heading_of(aggr, i));
		putc('\n', page->out);
	}
	for (size_t i = 0; i < table->rows.n; i++)
		if (kymo_aggr_weight(aggr, &table->rows.items[i]) > whole)
			whole = kymo_aggr_weight(aggr, &table->rows.items[i]);
	for (size_t row = 0; row < n; row++) {
		for (size_t i = 0; i < lines.n_columns; i++)
			write_cell(aggr, &lines, page, INK_PLAIN, i, lines.texts[row * lines.n_columns + i]);
		if (aggr->n_keys && has_bars(aggr))
			write_bar(aggr, page, rows[row], whole, used > BAR_MAX ? BAR_MAX : used);
		putc('\n', page->out);
		write_stacks(table, page, rows[row]);
	}
	return NULL;
}

/* ---- histograms ------------------------------------------------------------------------------ */

/* "fd 3, comm python3"; the value where there are no such keys. A name that is long would take the room of the key: the
 * heading has it. NULL when memory is out. */
static char *title_of(const struct kymo_aggr_table *table, const struct page *page, const struct kymo_aggr_row *row)
{
	const struct kymo_aggr *aggr = table->aggr;
	const char *before = "";
	char *text = NULL;
	bool failed = false;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	for (size_t i = 0; i < aggr->n_keys; i++) {
		kymo_cleanup_free char *key = is_stack(aggr, i) ? NULL : key_text(table, page, row, i);

		if (is_stack(aggr, i))
			continue;
		failed |= !key;
		fputs(before, out);
		before = ", ";
		if (!key || !*key || kymo_text_columns(aggr->keys[i].text) <= NAME_COLUMNS) {
			kymo_text_write(out, aggr->keys[i].text, page->unicode);
			putc(' ', out);
		}
		fputs(key ? key : "", out);
	}
	if (!*before)
		kymo_text_write(out, aggr->value.text, page->unicode);
	if (!fclose(out) && !failed)
		return text;
	free(text);
	return NULL;
}

static void stats_of(const struct kymo_aggr *aggr, const struct kymo_aggr_row *row, struct stats *ret)
{
	_Static_assert(KYMO_AGGR_BUCKETS == N_BUCKETS && KYMO_AGGR_ZERO == BUCKET_ZERO, "the same buckets");
	*ret = (struct stats){
		.count = row->count,
		.min = row->min,
		.max = row->max,
		.sum = row->sum,
		.many = true,
		.is_signed = kymo_aggr_is_signed(aggr),
	};
	if (aggr->kind == KYMO_AGGR_HIST)
		memcpy(ret->buckets, row->buckets, sizeof(ret->buckets));
}

static void bound_text(char number[TEXT_NUMBER], const struct kymo_aggr *aggr, int64_t value, bool unicode)
{
	wide_text(number, aggr, value, unicode);
}

static void step_label(char label[TEXT_NUMBER], const struct kymo_aggr *aggr, size_t bucket, bool unicode)
{
	char low[TEXT_NUMBER], high[TEXT_NUMBER];
	int64_t least, greatest;

	kymo_aggr_step(aggr, bucket, &least, &greatest);
	bound_text(low, aggr, least, unicode);
	bound_text(high, aggr, greatest == INT64_MAX ? greatest : greatest + 1, unicode);
	if (!bucket)
		snprintf(label, TEXT_NUMBER, "< %.30s", high);
	else if (bucket == kymo_aggr_n_buckets(aggr) - 1)
		snprintf(label, TEXT_NUMBER, ">= %.30s", low);
	else
		snprintf(label, TEXT_NUMBER, "[%.20s, %.20s)", low, high);
}

static void init_panel(struct panel *panel, const struct page *page, const struct kymo_aggr *aggr,
		       const struct kymo_aggr_row *row, const char *title)
{
	const enum panel_kind kind = is_time(aggr) ? PANEL_TIME : PANEL_DECIMAL;
	const size_t n = kymo_aggr_n_buckets(aggr);
	size_t first = 0, last = n;
	struct stats stats;

	stats_of(aggr, row, &stats);
	if (aggr->kind == KYMO_AGGR_HIST) {
		kymo_panel_init(panel, page, title, kind, &stats, 0, "");
		return;
	}
	kymo_panel_init_note(panel, page, title, kind, &stats);
	while (first < n && !row->buckets[first])
		first++;
	while (last > first && !row->buckets[last - 1])
		last--;
	for (size_t i = first; i < last; i++) {
		char label[TEXT_NUMBER];

		step_label(label, aggr, i, page->unicode);
		kymo_panel_add(panel, label, row->buckets[i]);
	}
}

static void write_panels_with_stacks(const struct kymo_aggr_table *table, const struct page *page,
				     const struct panel *panels, const struct kymo_aggr_row *const *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		kymo_panels_write(&panels[i], 1, page);
		write_stacks(table, page, rows[i]);
	}
}

static struct kymo_error *write_histograms(const struct kymo_aggr_table *table, const struct page *page,
					   const struct kymo_aggr_row *const *rows, size_t n)
{
	kymo_cleanup_free struct panel *panels = calloc(n + 1, sizeof(*panels));
	kymo_cleanup_free char **titles = calloc(n + 1, sizeof(char *));
	bool failed = !panels || !titles;

	for (size_t i = 0; i < n && !failed; i++) {
		titles[i] = title_of(table, page, rows[i]);
		failed = !titles[i];
		if (!failed)
			init_panel(&panels[i], page, table->aggr, rows[i], titles[i]);
	}
	if (!failed && !kymo_aggr_has_stacks(table->aggr))
		kymo_panels_write(panels, (unsigned int)n, page);
	else if (!failed)
		write_panels_with_stacks(table, page, panels, rows, n);
	for (size_t i = 0; titles && i < n; i++)
		free(titles[i]);
	return failed ? &kymo_error_no_memory : NULL;
}

/* ---- the whole ------------------------------------------------------------------------------- */

struct kymo_error *kymo_aggregation_table_write(const struct kymo_aggr_table *table, const struct page *page, bool all)
{
	kymo_cleanup_free const struct kymo_aggr_row **rows = kymo_aggr_sorted(table);
	const bool is_histogram = kymo_aggr_is_histogram(table->aggr->kind);
	const size_t most = is_histogram                         ? HISTOGRAMS_SHOWN
			    : table->aggr->kind == KYMO_AGGR_TOP ? TOP_SHOWN
								 : ROWS_SHOWN;
	const size_t n = all || table->rows.n < most ? table->rows.n : most;
	struct kymo_error *error = rows ? write_heading(table, page) : &kymo_error_no_memory;

	if (!error && n)
		error = is_histogram ? write_histograms(table, page, rows, n) : write_lines(table, page, rows, n);
	if (error)
		return error;
	write_rest(table, page, rows, n);
	write_missing(table, page);
	return NULL;
}
