#include "report/aggregation_json.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "report/event_json.h"
#include "report/namings.h"
#include "report/stats.h"
#include "sym/demangle.h"

/* Names of functions and probes are those of the source. */
static void write_aggregated_text(FILE *out, const char *text, enum kymo_aggr_what what)
{
	kymo_cleanup_free char *shown = what == KYMO_AGGR_FUNC || what == KYMO_AGGR_PROBE ? kymo_shown(text) : NULL;

	kymo_json_string(out, shown ? shown : text);
}

/* [3, "python3", null]: null is a key that was not available. A stack is an array of frames. */
static void write_keys(FILE *out, const struct kymo_aggr_table *table, const struct kymo_aggr_row *row)
{
	putc('[', out);
	for (size_t i = 0; i < table->aggr->n_keys; i++) {
		const enum kymo_type type = table->aggr->keys[i].type;

		fputs(i ? ", " : "", out);
		if (row->keys.faults & 1u << i)
			fputs("null", out);
		else if (table->aggr->keys[i].what == KYMO_AGGR_STACK && table->frames)
			kymo_stack_json(out, table->frames, row->keys.values[i]);
		else if (type == KYMO_TYPE_STRING)
			write_aggregated_text(out, kymo_strings_text(&table->strings, row->keys.values[i]),
					      table->aggr->keys[i].what);
		else
			kymo_json_integer(out, row->keys.values[i], kymo_type_is_signed(type));
	}
	putc(']', out);
}

/* ["BUSY", null]: where a key has one. */
static void write_names(FILE *out, const struct kymo_aggr_table *table, const struct kymo_aggr_row *row)
{
	const struct kymo_aggr *aggr = table->aggr;
	bool has = false;

	for (size_t i = 0; i < aggr->n_keys; i++)
		has |= aggr->keys[i].naming && aggr->keys[i].naming->n;
	if (!has)
		return;
	fputs(", \"names\": [", out);
	for (size_t i = 0; i < aggr->n_keys; i++) {
		const char *separator = i ? ", " : "";

		if (row->keys.faults & 1u << i ||
		    !kymo_naming_write_json(out, separator, aggr->keys[i].naming, row->keys.values[i]))
			fprintf(out, "%snull", separator);
	}
	putc(']', out);
}

/* Within, both ends; null where it has none. */
static void write_bounds(FILE *out, const struct kymo_aggr *aggr, size_t bucket)
{
	int64_t low, high;

	if (aggr->kind == KYMO_AGGR_HIST) {
		fputs("\"low\": ", out);
		kymo_json_integer(out, kymo_bucket_low((unsigned int)bucket), bucket < KYMO_AGGR_ZERO);
		fputs(", \"high\": ", out);
		kymo_json_integer(out, kymo_bucket_high((unsigned int)bucket), bucket < KYMO_AGGR_ZERO);
		return;
	}
	kymo_aggr_step(aggr, bucket, &low, &high);
	fprintf(out, bucket ? "\"low\": %" PRId64 : "\"low\": null", low);
	fprintf(out, bucket + 1 < kymo_aggr_n_buckets(aggr) ? ", \"high\": %" PRId64 : ", \"high\": null", high);
}

static void write_buckets(FILE *out, const struct kymo_aggr *aggr, const struct kymo_aggr_row *row)
{
	const char *before = "";

	fputs(", \"buckets\": [", out);
	for (size_t i = 0; i < kymo_aggr_n_buckets(aggr); i++) {
		if (!row->buckets[i])
			continue;
		fprintf(out, "%s{", before);
		write_bounds(out, aggr, i);
		fprintf(out, ", \"count\": %" PRIu64 "}", row->buckets[i]);
		before = ", ";
	}
	putc(']', out);
}

/* Sums that were written into a trace have 64 bits. */
static void write_row_json(FILE *out, const struct kymo_aggr_table *table, const struct kymo_aggr_row *row)
{
	const struct kymo_aggr *aggr = table->aggr;
	const bool is_signed = kymo_aggr_is_signed(aggr);
	const enum kymo_aggr_kind kind = aggr->kind;

	fputs("{\"keys\": ", out);
	write_keys(out, table, row);
	write_names(out, table, row);
	fprintf(out, ", \"count\": %" PRIu64, row->count);
	if (aggr->has_value && kind != KYMO_AGGR_MIN && kind != KYMO_AGGR_MAX) {
		fputs(", \"sum\": ", out);
		kymo_json_integer(out, (uint64_t)row->sum, is_signed);
	}
	if (aggr->has_value && (kind == KYMO_AGGR_MIN || kind == KYMO_AGGR_AVG || kymo_aggr_is_histogram(kind))) {
		fputs(", \"min\": ", out);
		kymo_json_integer(out, row->min, is_signed);
	}
	if (aggr->has_value && (kind == KYMO_AGGR_MAX || kind == KYMO_AGGR_AVG || kymo_aggr_is_histogram(kind))) {
		fputs(", \"max\": ", out);
		kymo_json_integer(out, row->max, is_signed);
	}
	if (kind == KYMO_AGGR_AVG)
		fprintf(out, ", \"mean\": %.15g", row->count ? (double)row->sum / (double)row->count : 0);
	if (row->buckets)
		write_buckets(out, aggr, row);
	putc('}', out);
}

struct kymo_error *kymo_aggregation_json_write(const struct kymo_aggr_table *table, bool is_whole, FILE *out)
{
	kymo_cleanup_free const struct kymo_aggr_row **rows = kymo_aggr_sorted(table);
	const struct kymo_aggr *aggr = table->aggr;

	if (!rows)
		return &kymo_error_no_memory;
	fprintf(out, "{\"kind\": \"%s\", \"probe\": ", kymo_aggr_kind_name(aggr->kind));
	kymo_json_string(out, aggr->probe);
	fputs(", \"value\": ", out);
	if (aggr->has_value)
		kymo_json_string(out, aggr->value.text);
	else
		fputs("null", out);
	fputs(", \"keys\": [", out);
	for (size_t i = 0; i < aggr->n_keys; i++) {
		fputs(i ? ", " : "", out);
		kymo_json_string(out, aggr->keys[i].text);
	}
	fprintf(out,
		"], \"whole\": %s, \"hits\": %" PRIu64 ", \"lost\": %" PRIu64 ", \"faults\": %" PRIu64
		", \"without_entry\": %" PRIu64 ", \"over_losses\": %" PRIu64 ", \"rows\": [",
		is_whole ? "true" : "false", table->hits, table->lost, table->faults, table->calls_without_entry,
		table->calls_over_losses);
	for (size_t i = 0; i < table->rows.n; i++) {
		fputs(i ? ",\n    " : "\n    ", out);
		write_row_json(out, table, rows[i]);
	}
	fputs("]}", out);
	return NULL;
}
