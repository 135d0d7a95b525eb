#include "report/panel.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "report/namings.h"

#define INDENT 2
#define GAP 2
#define MIN_COLUMNS 37
#define MAX_COLUMNS 64
#define NAME_COLUMNS 24

static const char *value_text(char *buffer, uint64_t value, enum panel_kind kind, bool is_signed)
{
	bool negative = is_signed && (int64_t)value < 0;

	if (kind == PANEL_HEX)
		snprintf(buffer, TEXT_NUMBER, "0x%" PRIx64, value);
	else
		kymo_text_signed(buffer, negative ? 0 - value : value, negative);
	return buffer;
}

/* "[512, 1K)", and mirrored for negative values "(-1K, -512]". */
static void bucket_label(char *label, unsigned int bucket)
{
	unsigned int log2 = bucket > BUCKET_ZERO ? bucket - BUCKET_ZERO : BUCKET_ZERO - bucket;
	char low[TEXT_NUMBER], high[TEXT_NUMBER];

	kymo_text_power(low, log2 ? log2 - 1 : 0);
	kymo_text_power(high, log2);
	if (!log2)
		snprintf(label, TEXT_NUMBER, "[0]");
	else if (log2 == 1)
		snprintf(label, TEXT_NUMBER, bucket > BUCKET_ZERO ? "[1]" : "[-1]");
	else if (bucket > BUCKET_ZERO)
		snprintf(label, TEXT_NUMBER, "[%.10s, %.10s)", low, high);
	else
		snprintf(label, TEXT_NUMBER, "(-%.10s, -%.10s]", high, low);
}

static void time_label(char *label, unsigned int bucket, bool unicode)
{
	char low[TEXT_NUMBER], high[TEXT_NUMBER];

	kymo_text_span(low, kymo_bucket_low(bucket), unicode);
	kymo_text_span(high, bucket == BUCKET_ZERO ? 1 : kymo_bucket_high(bucket) + (bucket < N_BUCKETS - 1), unicode);
	snprintf(label, TEXT_NUMBER, "[%.20s, %.20s)", low, high);
}

static void add_panel_row(struct panel *panel, uint64_t count)
{
	struct panel_row *row = &panel->rows[panel->n_rows++];
	unsigned int columns = kymo_text_columns(row->label);
	char number[TEXT_NUMBER];

	row->count = count;
	if (columns > panel->label_columns)
		panel->label_columns = columns;
	columns = (unsigned int)strlen(kymo_text_count(number, count));
	if (columns > panel->count_columns)
		panel->count_columns = columns;
	if (count > panel->largest)
		panel->largest = count;
}

/* Rows for the buckets from the first that holds something to the last; three or more empty ones are skipped. */
static void add_buckets(struct panel *panel, const struct page *page, const struct stats *stats, enum panel_kind kind)
{
	unsigned int first, last;

	if (!kymo_stats_range(stats, &first, &last))
		return;
	for (unsigned int bucket = first; bucket <= last; bucket++) {
		struct panel_row *row = &panel->rows[panel->n_rows];
		unsigned int next = bucket;

		while (!stats->buckets[next])
			next++;
		if (next - bucket >= 3) {
			row->skipped = true;
			snprintf(row->label, sizeof(row->label), page->unicode ? "…" : "...");
			add_panel_row(panel, 0);
			bucket = next - 1;
			continue;
		}
		if (kind == PANEL_TIME)
			time_label(row->label, bucket, page->unicode);
		else
			bucket_label(row->label, bucket);
		add_panel_row(panel, stats->buckets[bucket]);
	}
}

static void mean_text(char *buffer, const struct stats *stats, enum panel_kind kind, bool unicode)
{
	double mean = (double)stats->sum / (double)stats->count;
	__int128 whole = stats->sum / (__int128)stats->count;

	if (kind == PANEL_TIME)
		kymo_text_span(buffer, (uint64_t)whole, unicode);
	else if (mean > -1000 && mean < 1000)
		snprintf(buffer, TEXT_NUMBER, "%.1f", mean);
	else
		kymo_text_signed(buffer, (uint64_t)(whole < 0 ? -whole : whole), whole < 0);
}

static void write_note(struct panel *panel, const struct page *page, const struct stats *stats, enum panel_kind kind)
{
	char low[TEXT_NUMBER], high[TEXT_NUMBER], mean[TEXT_NUMBER];
	const char *to = page->unicode ? "…" : "..";

	if (!stats->count)
		return;
	if (kind == PANEL_TIME) {
		kymo_text_span(low, stats->min, page->unicode);
		kymo_text_span(high, stats->max, page->unicode);
	} else {
		value_text(low, stats->min, kind, stats->is_signed);
		value_text(high, stats->max, kind, stats->is_signed);
	}
	mean_text(mean, stats, kind, page->unicode);
	if (stats->min == stats->max)
		snprintf(panel->note, sizeof(panel->note), "always %s", low);
	else if (kind == PANEL_HEX)
		snprintf(panel->note, sizeof(panel->note), "%s %s %s", low, to, high);
	else
		snprintf(panel->note, sizeof(panel->note), "%s %s %s, mean %s", low, to, high, mean);
}

static void add_named_row(struct panel *panel, const char *name, uint64_t count)
{
	if (!count)
		return;
	snprintf(panel->rows[panel->n_rows].label, TEXT_NUMBER, "%s", name);
	add_panel_row(panel, count);
}

void kymo_panel_init(struct panel *panel, const struct page *page, const char *title, enum panel_kind kind,
		     struct stats *stats, uint64_t faults, const char *fault)
{
	memset(panel, 0, sizeof(*panel));
	panel->title = title;
	write_note(panel, page, stats, kind);
	if (stats->many || kind == PANEL_TIME) {
		add_buckets(panel, page, stats, kind);
	} else {
		kymo_stats_sort_distinct(stats);
		for (unsigned int i = 0; i < stats->n_distinct; i++) {
			value_text(panel->rows[i].label, stats->distinct[i].value, kind, stats->is_signed);
			add_panel_row(panel, stats->distinct[i].count);
		}
	}
	add_named_row(panel, fault, faults);
}

/* The bytes of `name` (safe) that fit into `columns` and `room` bytes, in whole characters. */
static size_t fit_name(const char *name, unsigned int columns, size_t room)
{
	const size_t size = kymo_text_fit(name, columns, &(unsigned int){ 0 });

	return kymo_utf8_cut(name, size < room ? size : room);
}

/* A name that is cut has the value after it: others may begin alike. */
static void label_name(char label[TEXT_NUMBER], const char *name, const char *value, bool unicode)
{
	const char *dots = unicode ? "…" : "...";
	const size_t rest = strlen(dots) + 1 + strlen(value);
	const unsigned int columns = kymo_text_columns(dots) + 1 + kymo_text_columns(value);
	const bool is_seen = kymo_text_columns(name);
	size_t size = fit_name(name, NAME_COLUMNS, TEXT_NUMBER - 1);

	if (!is_seen || !name[size]) {
		snprintf(label, TEXT_NUMBER, "%s", is_seen ? name : value);
		return;
	}
	size = columns < NAME_COLUMNS ? fit_name(name, NAME_COLUMNS - columns, TEXT_NUMBER - 1 - rest) : 0;
	snprintf(label, TEXT_NUMBER, "%.*s%s%s%.26s", (int)size, name, size ? dots : "", size ? " " : "", value);
}

static void name_row(struct panel_row *row, const struct page *page, const struct stats *stats,
		     const struct kymo_naming *naming, uint64_t value)
{
	kymo_cleanup_free char *name = kymo_naming_label(naming, value, page->unicode);
	char number[TEXT_NUMBER];

	value_text(number, value, PANEL_DECIMAL, stats->is_signed);
	label_name(row->label, name ? name : "", number, page->unicode);
}

void kymo_panel_init_names(struct panel *panel, const struct page *page, const char *title, struct stats *stats,
			   const struct kymo_naming *naming, uint64_t faults, const char *fault)
{
	memset(panel, 0, sizeof(*panel));
	panel->title = title;
	kymo_stats_sort_distinct(stats);
	for (unsigned int i = 0; i < stats->n_distinct; i++) {
		name_row(&panel->rows[i], page, stats, naming, stats->distinct[i].value);
		add_panel_row(panel, stats->distinct[i].count);
	}
	add_named_row(panel, "(others)", stats->n_others);
	add_named_row(panel, fault, faults);
}

void kymo_panel_init_note(struct panel *panel, const struct page *page, const char *title, enum panel_kind kind,
			  const struct stats *stats)
{
	memset(panel, 0, sizeof(*panel));
	panel->title = title;
	write_note(panel, page, stats, kind);
}

void kymo_panel_add(struct panel *panel, const char *label, uint64_t count)
{
	if (panel->n_rows == MAX_ROWS)
		return;
	snprintf(panel->rows[panel->n_rows].label, TEXT_NUMBER, "%s", label);
	add_panel_row(panel, count);
}

void kymo_panel_init_reals(struct panel *panel, const struct page *page, const char *title, enum kymo_type type,
			   const struct reals *reals, uint64_t faults, const char *fault)
{
	char low[TEXT_NUMBER], high[TEXT_NUMBER];

	memset(panel, 0, sizeof(*panel));
	panel->title = title;
	kymo_text_real(low, type, reals->min);
	kymo_text_real(high, type, reals->max);
	if (reals->count && reals->min == reals->max)
		snprintf(panel->note, sizeof(panel->note), "always %s", low);
	else if (reals->count)
		snprintf(panel->note, sizeof(panel->note), "%s %s %s, mean %.3g", low, page->unicode ? "…" : "..", high,
			 kymo_reals_mean(reals));
	add_named_row(panel, "(nan, inf)", reals->n_others);
	add_named_row(panel, fault, faults);
}

/* Writers of parts return the columns that they have used. */
static unsigned int write_title(const struct panel *panel, const struct page *page, unsigned int columns)
{
	unsigned int title = kymo_text_columns(panel->title), note = kymo_text_columns(panel->note);

	if (title > columns / 2 && title + 2 + note > columns)
		title = columns / 2;
	if (note > columns - title - 2)
		note = columns - title - 2;
	kymo_page_left(page, INK_HEAD, panel->title, title);
	if (!note)
		return title;
	kymo_page_spaces(page, 2);
	kymo_page_left(page, INK_DIM, panel->note, note);
	return title + 2 + note;
}

static unsigned int write_panel_row(const struct panel *panel, const struct panel_row *row, const struct page *page,
				    unsigned int columns)
{
	unsigned int label = panel->label_columns, used;
	char number[TEXT_NUMBER];

	/* Two columns before the label, one on each side of the count, and a bar of at least four. */
	if (label + panel->count_columns + 8 > columns)
		label = columns > panel->count_columns + 11 ? columns - panel->count_columns - 8 : 3;
	kymo_page_spaces(page, 2);
	kymo_page_right(page, row->skipped ? INK_DIM : INK_PLAIN, row->label, label);
	if (row->skipped)
		return 2 + label;
	kymo_page_spaces(page, 1);
	kymo_page_right(page, INK_PLAIN, kymo_text_count(number, row->count), panel->count_columns);
	used = 2 + label + 1 + panel->count_columns;
	if (!row->count || used + 1 >= columns)
		return used;
	kymo_page_spaces(page, 1);
	return used + 1 + kymo_page_bar(page, row->count, panel->largest, columns - used - 1);
}

/* Panels side by side; those that have ended leave their columns free. */
static void write_group(const struct panel *panels, unsigned int n, const struct page *page, unsigned int columns)
{
	unsigned int rows = 0;

	for (unsigned int i = 0; i < n; i++)
		rows = panels[i].n_rows > rows ? panels[i].n_rows : rows;
	for (unsigned int row = 0; row <= rows; row++) {
		unsigned int owed = INDENT;

		for (unsigned int i = 0; i < n; i++) {
			unsigned int used = 0;

			if (row <= panels[i].n_rows) {
				kymo_page_spaces(page, owed);
				owed = 0;
				used = row ? write_panel_row(&panels[i], &panels[i].rows[row - 1], page, columns)
					   : write_title(&panels[i], page, columns);
			}
			owed += columns + GAP > used ? columns + GAP - used : GAP;
		}
		putc('\n', page->out);
	}
}

void kymo_panels_write(const struct panel *panels, unsigned int n, const struct page *page)
{
	unsigned int room = page->width > INDENT + MIN_COLUMNS ? page->width - INDENT : MIN_COLUMNS;
	unsigned int abreast = (room + GAP) / (MIN_COLUMNS + GAP);
	unsigned int columns;

	abreast = abreast > n ? n : abreast;
	if (!abreast)
		return;
	columns = (room - (abreast - 1) * GAP) / abreast;
	columns = columns > MAX_COLUMNS ? MAX_COLUMNS : columns;
	for (unsigned int i = 0; i < n; i += abreast)
		write_group(panels + i, n - i < abreast ? n - i : abreast, page, columns);
}
