/* How often each call was made, how often it failed, and how long it took, as strace's -c -w shows it. */
#include "strace/counts.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "strace/state.h"
#include "syscall/errors.h"
#include "syscall/names.h"

struct count_row {
	uint64_t number, calls, errors, ns, least_ns, most_ns;
};

/* One row a number, and the last for all that have no name. */
struct strace_counts {
	struct count_row rows[KYMO_SYSCALL_MAX + 1];
};

struct strace_counts *strace_counts_create(void)
{
	struct strace_counts *counts = calloc(1, sizeof(*counts));

	for (size_t i = 0; counts && i <= KYMO_SYSCALL_MAX; i++)
		counts->rows[i].number = i;
	return counts;
}

void strace_counts_destroy(struct strace_counts *counts)
{
	free(counts);
}

void strace_counts_add(struct strace_counts *counts, const struct kymo_syscall_call *call, uint64_t duration_ns)
{
	struct count_row *row = &counts->rows[kymo_syscall_name(call->number) ? call->number : KYMO_SYSCALL_MAX];

	row->calls++;
	row->errors += kymo_syscall_failed(call);
	row->ns += duration_ns;
	if (row->calls == 1 || duration_ns < row->least_ns)
		row->least_ns = duration_ns;
	if (duration_ns > row->most_ns)
		row->most_ns = duration_ns;
}

static const char *name_of_row(const struct count_row *row)
{
	const char *name = kymo_syscall_name(row->number);

	return name ? name : "(unknown)";
}

/* ---- columns --------------------------------------------------------------------------------- */

enum column { SHARE, SECONDS, LEAST, MOST, MEAN, CALLS, ERRORS, NAME_OF_CALL, NO_COLUMN };

static const struct {
	enum column column;
	const char *title;
	int width; /* less than 0: on the left */
} columns[] = {
	[SHARE] = { SHARE, "% time", 6 },    [SECONDS] = { SECONDS, "seconds", 11 },
	[LEAST] = { LEAST, "shortest", 8 },  [MOST] = { MOST, "longest", 8 },
	[MEAN] = { MEAN, "usecs/call", 11 }, [CALLS] = { CALLS, "calls", 9 },
	[ERRORS] = { ERRORS, "errors", 9 },  [NAME_OF_CALL] = { NAME_OF_CALL, "syscall", -16 },
};

/* strace's words for them. */
static const struct {
	const char *word;
	enum column column;
} words[] = {
	{ "time-percent", SHARE },   { "time", SHARE },
	{ "percent-time", SHARE },   { "total-time", SECONDS },
	{ "total_time", SECONDS },   { "time-total", SECONDS },
	{ "min-time", LEAST },       { "min_time", LEAST },
	{ "shortest", LEAST },       { "max-time", MOST },
	{ "max_time", MOST },        { "longest", MOST },
	{ "avg-time", MEAN },        { "avg_time", MEAN },
	{ "usecs/call", MEAN },      { "calls", CALLS },
	{ "count", CALLS },          { "errors", ERRORS },
	{ "error", ERRORS },         { "name", NAME_OF_CALL },
	{ "syscall", NAME_OF_CALL }, { "syscall-name", NAME_OF_CALL },
	{ "nothing", NO_COLUMN },    { "none", NO_COLUMN },
};

static const unsigned char usual[] = { SHARE, SECONDS, MEAN, CALLS, ERRORS, NAME_OF_CALL };

static bool find_column(const char *word, size_t n, enum column *ret)
{
	for (size_t i = 0; i < kymo_countof(words); i++)
		if (strlen(words[i].word) == n && !memcmp(words[i].word, word, n)) {
			*ret = words[i].column;
			return true;
		}
	return false;
}

/* 0 is the default order. */
bool kymo_strace_counts_sort(struct kymo_strace_columns *chosen, const char *text)
{
	enum column column;

	if (!find_column(text, strlen(text), &column))
		return false;
	chosen->order = (unsigned char)(column + 1);
	return true;
}

bool kymo_strace_counts_choose(struct kymo_strace_columns *chosen, const char *text)
{
	chosen->n = 0;
	for (const char *at = text;; at++) {
		const size_t n = strcspn(at, ",");
		enum column column;

		if (!find_column(at, n, &column) || column == NO_COLUMN ||
		    memchr(chosen->shown, (int)column, chosen->n))
			return false;
		chosen->shown[chosen->n++] = (unsigned char)column;
		at += n;
		if (!*at)
			return true;
	}
}

/* ---- order ----------------------------------------------------------------------------------- */

static uint64_t mean_ns(const struct count_row *row)
{
	return row->calls ? row->ns / row->calls : 0;
}

static uint64_t value_of(const struct count_row *row, enum column column)
{
	switch (column) {
	case LEAST:
		return row->least_ns;
	case MOST:
		return row->most_ns;
	case MEAN:
		return mean_ns(row);
	case CALLS:
		return row->calls;
	case ERRORS:
		return row->errors;
	case NO_COLUMN:
		return 0;
	default:
		return row->ns;
	}
}

/* The greatest first; where that is equal, the more frequent. Names from a to z. */
static int compare_rows(const void *a, const void *b, void *data)
{
	const struct kymo_strace_columns *chosen = data;
	const enum column order = chosen->order ? (enum column)(chosen->order - 1) : SECONDS;
	const struct count_row *x = a, *y = b;
	const uint64_t of_x = value_of(x, order), of_y = value_of(y, order);

	if (order == NAME_OF_CALL)
		return strcmp(name_of_row(x), name_of_row(y));
	if (of_x != of_y)
		return of_x < of_y ? 1 : -1;
	if (order != NO_COLUMN && x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static void print_json(const struct count_row *rows, size_t n, FILE *out)
{
	fputs("[", out);
	for (size_t i = 0; i < n; i++)
		fprintf(out,
			"%s\n {\"name\": \"%s\", \"calls\": %" PRIu64 ", \"errors\": %" PRIu64
			", \"duration_ns\": %" PRIu64 "}",
			i ? "," : "", name_of_row(&rows[i]), rows[i].calls, rows[i].errors, rows[i].ns);
	fputs(n ? "\n]\n" : "]\n", out);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void put_cell(const struct count_row *row, enum column column, uint64_t all_ns, const char *name, char *out,
		     size_t size)
{
	switch (column) {
	case SHARE:
		snprintf(out, size, "%.2f", all_ns ? 100.0 * (double)row->ns / (double)all_ns : name ? 100.0 : 0.0);
		break;
	case MEAN:
		snprintf(out, size, "%" PRIu64, mean_ns(row) / 1000);
		break;
	case CALLS:
		snprintf(out, size, "%" PRIu64, row->calls);
		break;
	case ERRORS:
		*out = '\0';
		if (row->errors)
			snprintf(out, size, "%" PRIu64, row->errors);
		break;
	case NAME_OF_CALL:
		snprintf(out, size, "%s", name ? name : name_of_row(row));
		break;
	default:
		snprintf(out, size, "%.6f", (double)value_of(row, column) / 1e9);
	}
}

/* `name`: of the row of sums; NULL: of a call. */
static void print_row(const struct kymo_strace_columns *chosen, const struct count_row *row, uint64_t all_ns,
		      const char *name, FILE *out)
{
	for (unsigned int i = 0; i < chosen->n; i++) {
		const enum column column = chosen->shown[i];
		const bool is_last = i + 1 == chosen->n;
		char cell[64];

		put_cell(row, column, all_ns, name, cell, sizeof(cell));
		fprintf(out, "%*s%s", is_last && columns[column].width < 0 ? 0 : columns[column].width, cell,
			is_last ? "\n" : " ");
	}
}

static void print_titles(const struct kymo_strace_columns *chosen, FILE *out)
{
	for (unsigned int i = 0; i < chosen->n; i++) {
		const enum column column = chosen->shown[i];
		const bool is_last = i + 1 == chosen->n;

		fprintf(out, "%*s%s", is_last && columns[column].width < 0 ? 0 : columns[column].width,
			columns[column].title, is_last ? "\n" : " ");
	}
}

static void print_rule(const struct kymo_strace_columns *chosen, FILE *out)
{
	for (unsigned int i = 0; i < chosen->n; i++)
		fprintf(out, "%.*s%s", abs(columns[chosen->shown[i]].width), "----------------",
			i + 1 == chosen->n ? "\n" : " ");
}

static struct kymo_strace_columns or_usual(const struct kymo_strace_columns *asked)
{
	struct kymo_strace_columns chosen = *asked;

	if (!chosen.n) {
		memcpy(chosen.shown, usual, sizeof(usual));
		chosen.n = sizeof(usual);
	}
	if (!memchr(chosen.shown, NAME_OF_CALL, chosen.n)) /* as strace, which shows the name always */
		chosen.shown[chosen.n++] = NAME_OF_CALL;
	return chosen;
}

void strace_counts_print(const struct strace_counts *counts, const struct kymo_strace_columns *asked, bool json,
			 FILE *out)
{
	struct kymo_strace_columns chosen = or_usual(asked);
	struct count_row rows[KYMO_SYSCALL_MAX + 1], total = { .least_ns = UINT64_MAX };
	size_t n = 0;

	for (size_t i = 0; i <= KYMO_SYSCALL_MAX; i++) {
		const struct count_row *row = &counts->rows[i];

		if (!row->calls)
			continue;
		rows[n++] = *row;
		total.calls += row->calls;
		total.errors += row->errors;
		total.ns += row->ns;
		total.least_ns = row->least_ns < total.least_ns ? row->least_ns : total.least_ns;
		total.most_ns = row->most_ns > total.most_ns ? row->most_ns : total.most_ns;
	}
	if (!n)
		total.least_ns = 0;
	qsort_r(rows, n, sizeof(*rows), compare_rows, &chosen);
	if (json) {
		print_json(rows, n, out);
		return;
	}
	print_titles(&chosen, out);
	print_rule(&chosen, out);
	for (size_t i = 0; i < n; i++)
		print_row(&chosen, &rows[i], total.ns, NULL, out);
	print_rule(&chosen, out);
	print_row(&chosen, &total, total.ns, "total", out);
}
