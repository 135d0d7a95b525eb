/* How often each call was made, how often it failed, and how long it took, as strace's -c -w shows it. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/syscalls.h"

struct row {
	uint64_t number, calls, errors, ns;
};

/* One row a number, and the last for all that have no name. */
struct cli_syscall_counts {
	struct row rows[KYMO_SYSCALL_MAX + 1];
};

struct cli_syscall_counts *cli_syscall_counts_create(void)
{
	struct cli_syscall_counts *counts = calloc(1, sizeof(*counts));

	for (size_t i = 0; counts && i <= KYMO_SYSCALL_MAX; i++)
		counts->rows[i].number = i;
	return counts;
}

void cli_syscall_counts_destroy(struct cli_syscall_counts *counts)
{
	free(counts);
}

void cli_syscall_counts_add(struct cli_syscall_counts *counts, const struct kymo_syscall_call *call, uint64_t duration_ns)
{
	struct row *row = &counts->rows[kymo_syscall_name(call->number) ? call->number : KYMO_SYSCALL_MAX];

	row->calls++;
	row->errors += kymo_syscall_failed(call);
	row->ns += duration_ns;
}

/* The longest first; where that is equal, the more frequent. */
static int by_time(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static const char *name_of_row(const struct row *row)
{
	const char *name = kymo_syscall_name(row->number);

	return name ? name : "(unknown)";
}

static void print_row(const struct row *row, uint64_t all_ns, const char *name, bool is_total, FILE *out)
{
	char errors[24] = "";

	if (row->errors)
		snprintf(errors, sizeof(errors), "%" PRIu64, row->errors);
	fprintf(out, "%6.2f %11.6f %11" PRIu64 " %9" PRIu64 " %9s %s\n",
		all_ns     ? 100.0 * (double)row->ns / (double)all_ns
		: is_total ? 100.0
			   : 0.0,
		(double)row->ns / 1e9, row->calls ? row->ns / row->calls / 1000 : 0, row->calls, errors, name);
}

static void print_json(const struct row *rows, size_t n, FILE *out)
{
	fputs("[", out);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s\n {\"name\": \"%s\", \"calls\": %" PRIu64 ", \"errors\": %" PRIu64 ", \"duration_ns\": %" PRIu64 "}",
			i ? "," : "", name_of_row(&rows[i]), rows[i].calls, rows[i].errors, rows[i].ns);
	fputs(n ? "\n]\n" : "]\n", out);
}

void cli_syscall_counts_print(const struct cli_syscall_counts *counts, bool json, FILE *out)
{
	static const char rule[] = "------ ----------- ----------- --------- --------- ----------------\n";
	struct row rows[KYMO_SYSCALL_MAX + 1], total = { 0 };
	size_t n = 0;

	for (size_t i = 0; i <= KYMO_SYSCALL_MAX; i++) {
		if (!counts->rows[i].calls)
			continue;
		rows[n++] = counts->rows[i];
		total.calls += counts->rows[i].calls;
		total.errors += counts->rows[i].errors;
		total.ns += counts->rows[i].ns;
	}
	if (n)
		qsort(rows, n, sizeof(*rows), by_time);
	if (json) {
		print_json(rows, n, out);
		return;
	}
	fprintf(out, "%% time     seconds  usecs/call     calls    errors syscall\n%s", rule);
	for (size_t i = 0; i < n; i++)
		print_row(&rows[i], total.ns, name_of_row(&rows[i]), false, out);
	fputs(rule, out);
	print_row(&total, total.ns, "total", true, out);
}
