#include "report/latency.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/labels.h"
#include "report/table.h"
#include "report/text.h"

#define TOP_FUNCTIONS 20
#define MIN_NAME 12

enum { COUNT, ERRORS, MIN, P50, P90, P99, MAX, MEAN, TOTAL, SELF, N_COLUMNS };

static const char *const headings[N_COLUMNS] = {
	"COUNT", "ERRORS", "MIN", "P50", "P90", "P99", "MAX", "MEAN", "TOTAL", "SELF",
};

/* What goes first where the page is narrow. */
static const unsigned int dispensable[] = { P90, MIN, MEAN, SELF, P99, MAX, P50 };

struct latency_row {
	const char *name; /* the caller's */
	char cells[N_COLUMNS][TEXT_NUMBER];
};

struct latency_table {
	struct latency_row *rows;
	size_t n;
	char **labels;                        /* names as they are shown */
	unsigned int name, widths[N_COLUMNS]; /* 0: not shown */
};

/* ---- what is left out ------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static void add_note(struct notes *notes, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(notes->texts[notes->n++], NOTE_SIZE, format, args);
	va_end(args);
}

/* "1 call ONE" or "7 calls MANY"; nothing for 0. */
static void add_count(struct notes *notes, uint64_t n, const char *noun, const char *one, const char *many)
{
	char number[TEXT_NUMBER];

	if (n)
		add_note(notes, "%s %s%s %s", kymo_text_count(number, n), noun, n == 1 ? "" : "s", n == 1 ? one : many);
}

void kymo_latency_notes(const struct calls *calls, struct notes *ret)
{
	const char *ids = kymo_ctf_trace_env(calls->trace, "thread_ids");
	struct function sum = { 0 };

	ret->n = 0;
	for (size_t i = 0; i < calls->functions.n; i++) {
		const struct function *f = &calls->functions.items[i];

		sum.over_losses += f->over_losses;
		sum.left += f->left;
		sum.unwound += f->unwound;
		sum.without_entry += f->without_entry;
		sum.open += f->open;
		sum.too_deep += f->too_deep;
	}
	add_count(ret, sum.over_losses, "call", "spans a loss and is left out", "span a loss and are left out");
	add_count(ret, sum.left, "call", "was left without a return", "were left without a return");
	add_count(ret, sum.unwound, "call", "was left by an exception, longjmp or the end of its thread",
		  "were left by an exception, longjmp or the end of their threads");
	add_count(ret, sum.without_entry, "return",
		  "has no entry: the call began before the recording, or its entry was lost",
		  "have no entry: the calls began before the recording, or their entries were lost");
	add_count(ret, sum.open, "call", "had not returned at the end", "had not returned at the end");
	add_count(ret, sum.too_deep, "call", "is left out: too many calls were nested in it",
		  "are left out: too many calls were nested in them");
	add_count(ret, calls->other_threads, "record", "of a call is left out: there are too many threads",
		  "of calls are left out: there are too many threads");
	if (calls->functions.n && ids && !strcmp(ids, "process"))
		add_note(ret,
			 "threads of a process cannot be told apart in this recording: their calls may be mixed up");
}

/* ---- the table ------------------------------------------------------------------------------- */

static void fill_row(struct latency_row *row, const struct function *function, bool unicode)
{
	static const struct durations none;
	const struct durations *durations = function->durations ? function->durations : &none;
	const struct stats *stats = &durations->stats;

	kymo_text_count(row->cells[COUNT], stats->count);
	if (function->errors)
		kymo_text_count(row->cells[ERRORS], function->errors);
	for (unsigned int i = MIN; i < N_COLUMNS && !stats->count; i++)
		strcpy(row->cells[i], "-");
	if (!stats->count)
		return;
	kymo_text_span(row->cells[MIN], stats->min, unicode);
	kymo_text_span(row->cells[P50], kymo_durations_quantile(durations, 50), unicode);
	kymo_text_span(row->cells[P90], kymo_durations_quantile(durations, 90), unicode);
	kymo_text_span(row->cells[P99], kymo_durations_quantile(durations, 99), unicode);
	kymo_text_span(row->cells[MAX], stats->max, unicode);
	kymo_text_span(row->cells[MEAN], (uint64_t)(stats->sum / (__int128)stats->count), unicode);
	kymo_text_span(row->cells[TOTAL], stats->sum > UINT64_MAX ? UINT64_MAX : (uint64_t)stats->sum, unicode);
	kymo_text_span(row->cells[SELF], durations->self_ns, unicode);
}

static struct kymo_error *write_labels(struct latency_table *table, const struct page *page, unsigned int columns)
{
	kymo_cleanup_free const char **names = calloc(table->n + 1, sizeof(char *));

	for (size_t i = 0; names && i < table->n; i++)
		names[i] = table->rows[i].name;
	if (names)
		table->labels = kymo_labels_create(names, table->n, columns, page->unicode, &table->name);
	table->name = kymo_at_least(table->name, MIN_NAME);
	return table->labels ? NULL : &kymo_error_no_memory;
}

/* Widths of what fits; the time without calls within, and errors, say something only where there are any. */
static struct kymo_error *plan_columns(struct latency_table *table, const struct page *page, bool has_self,
				       bool has_errors)
{
	unsigned int used = 0, longest = MIN_NAME, wanted;

	for (unsigned int column = 0; column < N_COLUMNS; column++) {
		table->widths[column] = column == COUNT || column == TOTAL ? 5 : 4;
		for (size_t i = 0; i < table->n; i++)
			table->widths[column] =
				kymo_at_least(kymo_text_columns(table->rows[i].cells[column]), table->widths[column]);
		if (column == ERRORS)
			table->widths[column] =
				kymo_at_least(table->widths[column], (unsigned int)strlen(headings[ERRORS]));
		if ((column == SELF && !has_self) || (column == ERRORS && !has_errors))
			table->widths[column] = 0;
		used += table->widths[column] ? 2 + table->widths[column] : 0;
	}
	for (size_t i = 0; i < table->n; i++)
		longest = kymo_at_least(kymo_text_columns(table->rows[i].name), longest);
	wanted = longest < 20 ? longest : 20;
	for (unsigned int i = 0; i < kymo_countof(dispensable) && used + wanted > page->width && !page->whole; i++) {
		used -= table->widths[dispensable[i]] ? 2 + table->widths[dispensable[i]] : 0;
		table->widths[dispensable[i]] = 0;
	}
	wanted = page->whole ? longest : page->width > used + MIN_NAME ? page->width - used : MIN_NAME;
	return write_labels(table, page, wanted);
}

static void write_table(const struct latency_table *table, const struct page *page)
{
	putc('\n', page->out);
	kymo_page_left(page, INK_DIM, "CALLS", table->name);
	for (unsigned int column = 0; column < N_COLUMNS; column++)
		if (table->widths[column])
			kymo_table_right(page, INK_DIM, headings[column], table->widths[column]);
	putc('\n', page->out);
	for (size_t i = 0; i < table->n; i++) {
		kymo_page_left(page, INK_HEAD, table->labels[i], table->name);
		for (unsigned int column = 0; column < N_COLUMNS; column++)
			if (table->widths[column])
				kymo_table_right(page, INK_PLAIN, table->rows[i].cells[column], table->widths[column]);
		putc('\n', page->out);
	}
}

static void deinit_table(struct latency_table *table)
{
	kymo_labels_destroy(table->labels, table->n);
	free(table->rows);
}

static struct kymo_error *write_functions(const struct summary *summary, const struct page *page,
					  struct function *const *functions, size_t n)
{
	kymo_cleanup(deinit_table) struct latency_table table = { .rows = calloc(n + 1, sizeof(*table.rows)) };
	bool has_self = false, has_errors = false;
	struct kymo_error *error;

	if (!table.rows)
		return &kymo_error_no_memory;
	for (; table.n < n; table.n++) {
		struct latency_row *row = &table.rows[table.n];

		row->name = summary->names->events[functions[table.n]->entry - summary->trace->events].name;
		fill_row(row, functions[table.n], page->unicode);
		has_errors |= functions[table.n]->errors > 0;
		has_self |= functions[table.n]->durations && functions[table.n]->durations->has_children;
	}
	error = plan_columns(&table, page, has_self, has_errors);
	if (!error)
		write_table(&table, page);
	return error;
}

struct kymo_error *kymo_latency_write(const struct summary *summary, const struct page *page)
{
	const struct calls *calls = summary->calls;
	kymo_cleanup_free struct function **functions = NULL;
	struct kymo_error *error;
	struct notes notes;
	size_t n, shown;

	functions = kymo_functions_sorted(&calls->functions, &n);
	if (!functions)
		return &kymo_error_no_memory;
	if (!n)
		return NULL;
	shown = summary->all || n <= TOP_FUNCTIONS ? n : TOP_FUNCTIONS;
	error = write_functions(summary, page, functions, shown);
	if (error)
		return error;
	if (shown < n)
		kymo_page_printf(page, INK_DIM, "%zu more %s (--all shows them)\n", n - shown,
				 n - shown == 1 ? "function" : "functions");
	kymo_latency_notes(calls, &notes);
	for (unsigned int i = 0; i < notes.n; i++)
		kymo_page_printf(page, INK_ALARM, "%s\n", notes.texts[i]);
	return NULL;
}
