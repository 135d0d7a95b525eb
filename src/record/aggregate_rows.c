#include "record/aggregate_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "probe/code/events.h"

#define PACKET_SIZE (256u << 10) /* the last row may go a little beyond it */

/* ---- what they are --------------------------------------------------------------------------- */

static const char *const row_names[] = { "count", "sum", "min", "max", "low", "high", "rows", "lost", "faults" };

static bool is_field_name(const char *text)
{
	const size_t n = strlen(text);

	for (size_t i = 0; i < kymo_countof(row_names); i++)
		if (!strcmp(text, row_names[i]))
			return false;
	return n && n < 32 && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == n &&
	       !(text[0] >= '0' && text[0] <= '9') && text[0] != '_';
}

static bool is_taken(const struct kymo_probe_event *event, const char *name)
{
	for (size_t i = 0; i < event->n_fields; i++)
		if (!strcmp(event->fields[i].name, name))
			return true;
	return false;
}

static void add_field(struct kymo_probe_event *event, const char *name, enum kymo_type type)
{
	event->fields[event->n_fields++] = (struct kymo_event_field){ .name = (char *)(uintptr_t)name, .type = type };
}

/* `names` is where keys get names that are none of their own. */
static void add_keys(const struct kymo_aggr *aggr, struct kymo_probe_event *event, char names[KYMO_AGGR_KEYS_MAX][8])
{
	for (size_t i = 0; i < aggr->n_keys; i++) {
		const char *text = aggr->keys[i].text;

		snprintf(names[i], 8, "key%zu", i + 1);
		add_field(event, is_field_name(text) && !is_taken(event, text) ? text : names[i], aggr->keys[i].type);
		event->fields[event->n_fields - 1].naming = aggr->keys[i].naming;
	}
}

/* Add the fields of a row after its keys and count. */
static void add_values(const struct kymo_aggr *aggr, struct kymo_probe_event *event)
{
	const bool is_signed = kymo_aggr_is_signed(aggr);
	const enum kymo_type type = is_signed ? KYMO_TYPE_S64 : KYMO_TYPE_U64;

	if (!aggr->has_value)
		return;
	if (aggr->kind != KYMO_AGGR_MIN && aggr->kind != KYMO_AGGR_MAX)
		add_field(event, "sum", type);
	if (aggr->kind != KYMO_AGGR_MAX && aggr->kind != KYMO_AGGR_SUM && aggr->kind != KYMO_AGGR_TOP)
		add_field(event, "min", type);
	if (aggr->kind != KYMO_AGGR_MIN && aggr->kind != KYMO_AGGR_SUM && aggr->kind != KYMO_AGGR_TOP)
		add_field(event, "max", type);
}

static void add_fields(const struct kymo_aggr *aggr, enum kymo_ctf_rows rows, struct kymo_probe_event *event,
		       char names[KYMO_AGGR_KEYS_MAX][8])
{
	static const char *const end_names[] = { "rows", "lost", "faults", "without_entry", "over_losses" };

	if (rows == KYMO_CTF_END) {
		for (size_t i = 0; i < kymo_countof(end_names); i++)
			add_field(event, end_names[i], KYMO_TYPE_U64);
		return;
	}
	add_keys(aggr, event, names);
	if (rows == KYMO_CTF_BUCKET) {
		const enum kymo_type type =
			kymo_aggr_is_signed(aggr) || aggr->kind == KYMO_AGGR_LHIST ? KYMO_TYPE_S64 : KYMO_TYPE_U64;

		add_field(event, "low", type);
		add_field(event, "high", type);
	}
	add_field(event, "count", KYMO_TYPE_U64);
	if (rows == KYMO_CTF_ROW)
		add_values(aggr, event);
}

/* "arg0, 0, 64, 8 by tid, comm": what is asked for of the probe. NULL when memory is out. */
static char *words_of(const struct kymo_aggr *aggr)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	if (aggr->has_value)
		fputs(aggr->value.text, out);
	if (aggr->kind == KYMO_AGGR_LHIST)
		fprintf(out, ", %lld, %lld, %lld", (long long)aggr->low, (long long)aggr->high, (long long)aggr->step);
	for (size_t i = 0; i < aggr->n_keys; i++)
		fprintf(out, "%s%s", i ? ", " : aggr->has_value ? " by " : "by ", aggr->keys[i].text);
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

struct kymo_error *aggregate_rows_describe(struct recording *recording, struct aggregation *aggregation, size_t number)
{
	static const char *const parts[] = {
		[KYMO_CTF_ROW] = "", [KYMO_CTF_BUCKET] = ":bucket", [KYMO_CTF_END] = ":end"
	};
	const struct kymo_aggr *aggr = &aggregation->aggr;
	kymo_cleanup_free char *words = words_of(aggr);
	struct kymo_error *error = words ? NULL : &kymo_error_no_memory;

	for (size_t rows = 0; rows < KYMO_CTF_N_ROWS && !error; rows++) {
		char names[KYMO_AGGR_KEYS_MAX][8];
		kymo_cleanup_free char *name = NULL;
		struct kymo_probe_event event = {
			.kind = KYMO_EVENT_AGGREGATION,
			.path = (char[]){ "" },
			.build_id = (char[]){ "" },
			.symbol = aggr->probe,
			.source = words,
			.format = (char *)(uintptr_t)kymo_aggr_kind_name(aggr->kind),
			.offset = number * KYMO_CTF_N_ROWS + rows,
			.is_used = true,
		};
		size_t index;

		if (rows == KYMO_CTF_BUCKET && !kymo_aggr_is_histogram(aggr->kind))
			continue;
		if (asprintf(&name, "%s:%.*s%s", kymo_aggr_kind_name(aggr->kind), (int)strcspn(aggr->probe, " "),
			     aggr->probe, parts[rows]) < 0) {
			name = NULL;
			return &kymo_error_no_memory;
		}
		event.name = name;
		add_fields(aggr, (enum kymo_ctf_rows)rows, &event, names);
		error = kymo_events_add(recording->run.events, &event, &index);
		aggregation->events[rows] = error ? 0 : (uint32_t)index + 1;
	}
	return error;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct writer {
	struct recording *recording;
	const struct aggregation *aggregation;
	FILE *out;
	char *bytes;
	size_t size;
	struct kymo_error *error;
};

static struct kymo_error *open_packet(struct writer *writer)
{
	writer->out = open_memstream(&writer->bytes, &writer->size);
	return writer->out ? NULL : &kymo_error_no_memory;
}

static void close_packet(struct writer *writer)
{
	struct recording *recording = writer->recording;
	struct aggregating *aggregating = recording->output.aggregating;
	struct kymo_ring_packet packet = {
		.tsc_begin = aggregating->rows_tsc,
		.tsc_end = aggregating->rows_tsc,
		.sequence = aggregating->n_packets,
		.is_plain = true,
	};

	if (!writer->out)
		return;
	if (fclose(writer->out))
		writer->error = &kymo_error_no_memory;
	writer->out = NULL;
	packet.records = (const uint8_t *)writer->bytes;
	packet.size = writer->size;
	aggregating->position.ring = KYMO_TRACE_ROWS;
	if (!writer->error && packet.size) {
		writer->error = kymo_trace_append(&recording->output.files, &aggregating->position, KYMO_CTF_NO_CPU,
						  &packet, false);
		aggregating->n_packets++;
	}
	free(writer->bytes);
	writer->bytes = NULL;
}

static void write_bytes(struct writer *writer, const void *bytes, size_t size)
{
	fwrite(bytes, 1, size, writer->out);
}

static void write_u64(struct writer *writer, uint64_t value)
{
	write_bytes(writer, &value, sizeof(value));
}

static void begin_record(struct writer *writer, enum kymo_ctf_rows rows, uint8_t faults)
{
	const int32_t nobody = 0;

	if (ftell(writer->out) > (long)PACKET_SIZE) {
		close_packet(writer);
		if (!writer->error)
			writer->error = open_packet(writer);
		if (writer->error)
			return;
	}
	write_u64(writer, writer->aggregation->events[rows] | writer->recording->output.aggregating->rows_tsc
								      << KYMO_EVENT_ID_BITS);
	write_bytes(writer, &nobody, sizeof(nobody));
	write_bytes(writer, &faults, sizeof(faults));
}

static void write_keys(struct writer *writer, const struct kymo_aggr_keys *keys)
{
	const struct kymo_aggr *aggr = &writer->aggregation->aggr;

	for (size_t i = 0; i < aggr->n_keys; i++) {
		const char *text = kymo_strings_text(&writer->aggregation->table.strings, keys->values[i]);

		if (aggr->keys[i].type == KYMO_TYPE_STRING)
			write_bytes(writer, text, strlen(text) + 1);
		else
			write_bytes(writer, &keys->values[i], kymo_type_size(aggr->keys[i].type));
	}
}

/* A sum that 64 bits do not hold is the greatest or the least that they do. */
static uint64_t sum_of(const struct kymo_aggr *aggr, __int128 sum)
{
	if (!kymo_aggr_is_signed(aggr))
		return sum > (__int128)UINT64_MAX ? UINT64_MAX : (uint64_t)sum;
	return sum > INT64_MAX ? INT64_MAX : sum < INT64_MIN ? (uint64_t)INT64_MIN : (uint64_t)(int64_t)sum;
}

static void write_row(struct writer *writer, const struct kymo_aggr_row *row)
{
	const struct kymo_aggr *aggr = &writer->aggregation->aggr;

	begin_record(writer, KYMO_CTF_ROW, (uint8_t)row->keys.faults);
	if (writer->error)
		return;
	write_keys(writer, &row->keys);
	write_u64(writer, row->count);
	if (!aggr->has_value)
		return;
	if (aggr->kind != KYMO_AGGR_MIN && aggr->kind != KYMO_AGGR_MAX)
		write_u64(writer, sum_of(aggr, row->sum));
	if (aggr->kind != KYMO_AGGR_MAX && aggr->kind != KYMO_AGGR_SUM && aggr->kind != KYMO_AGGR_TOP)
		write_u64(writer, row->min);
	if (aggr->kind != KYMO_AGGR_MIN && aggr->kind != KYMO_AGGR_SUM && aggr->kind != KYMO_AGGR_TOP)
		write_u64(writer, row->max);
}

/* Least and greatest value of a bucket. */
static void bounds_of(const struct kymo_aggr *aggr, size_t bucket, uint64_t *low_ret, uint64_t *high_ret)
{
	const size_t log2 = bucket > KYMO_AGGR_ZERO ? bucket - KYMO_AGGR_ZERO : KYMO_AGGR_ZERO - bucket;
	const uint64_t low = log2 ? 1ull << (log2 - 1) : 0, high = log2 ? low + (low - 1) : 0;
	int64_t least, greatest;

	if (aggr->kind == KYMO_AGGR_LHIST) {
		kymo_aggr_step(aggr, bucket, &least, &greatest);
		*low_ret = (uint64_t)least;
		*high_ret = (uint64_t)greatest;
		return;
	}
	*low_ret = bucket < KYMO_AGGR_ZERO ? 0 - high : low;
	*high_ret = bucket < KYMO_AGGR_ZERO ? 0 - low : high;
}

static void write_buckets(struct writer *writer, const struct kymo_aggr_row *row)
{
	const struct kymo_aggr *aggr = &writer->aggregation->aggr;

	for (size_t i = 0; i < kymo_aggr_n_buckets(aggr) && !writer->error; i++) {
		uint64_t low, high;

		if (!row->buckets[i])
			continue;
		bounds_of(aggr, i, &low, &high);
		begin_record(writer, KYMO_CTF_BUCKET, (uint8_t)row->keys.faults);
		if (writer->error)
			return;
		write_keys(writer, &row->keys);
		write_u64(writer, low);
		write_u64(writer, high);
		write_u64(writer, row->buckets[i]);
	}
}

static void write_aggregation(struct writer *writer)
{
	const struct kymo_aggr_table *table = &writer->aggregation->table;
	kymo_cleanup_free const struct kymo_aggr_row **rows = kymo_aggr_sorted(table);
	const uint64_t totals[] = { table->rows.n, table->lost, table->faults, table->calls_without_entry,
				    table->calls_over_losses };

	if (!rows)
		writer->error = &kymo_error_no_memory;
	for (size_t i = 0; i < table->rows.n && !writer->error; i++) {
		write_row(writer, rows[i]);
		if (!writer->error)
			write_buckets(writer, rows[i]);
	}
	if (!writer->error)
		begin_record(writer, KYMO_CTF_END, 0);
	for (size_t i = 0; i < kymo_countof(totals) && !writer->error; i++)
		write_u64(writer, totals[i]);
}

struct kymo_error *aggregate_rows_write(struct recording *recording)
{
	struct aggregating *aggregating = recording->output.aggregating;
	struct writer writer = { .recording = recording };

	aggregating->rows_tsc = kymo_clock_tsc();
	writer.error = open_packet(&writer);
	for (size_t i = 0; i < aggregating->n && !writer.error; i++) {
		writer.aggregation = &aggregating->items[i];
		if (aggregation_has_table(writer.aggregation))
			write_aggregation(&writer);
	}
	close_packet(&writer);
	return writer.error;
}
