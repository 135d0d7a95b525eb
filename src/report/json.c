#include "report/json.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "report/losses.h"
#include "report/text.h"

/* Of what this file writes; goes up when a member changes its meaning. */
#define FORMAT 1

/* What is no UTF-8 becomes U+FFFD: JSON knows no bytes. */
static void write_string(FILE *out, const char *text)
{
	putc('"', out);
	while (*text) {
		const char *from = text;
		int32_t point = kymo_text_next(&text, true);
		unsigned char byte = (unsigned char)*from;

		if (byte == '"' || byte == '\\')
			fprintf(out, "\\%c", byte);
		else if (point < 0)
			fprintf(out, "\\u%04x", byte < 0x80 ? byte : 0xfffdu);
		else
			fwrite(from, 1, (size_t)(text - from), out);
	}
	putc('"', out);
}

static void write_member(FILE *out, const char *key, const char *value)
{
	fprintf(out, "\"%s\": ", key);
	if (value)
		write_string(out, value);
	else
		fputs("null", out);
}

static void write_integer(FILE *out, uint64_t value, bool is_signed)
{
	if (is_signed)
		fprintf(out, "%" PRId64, (int64_t)value);
	else
		fprintf(out, "%" PRIu64, value);
}

static void write_sum(FILE *out, __int128 sum)
{
	char digits[48], *at = digits + sizeof(digits);
	unsigned __int128 magnitude = sum < 0 ? -(unsigned __int128)sum : (unsigned __int128)sum;

	*--at = '\0';
	do {
		*--at = (char)('0' + (int)(magnitude % 10));
		magnitude /= 10;
	} while (magnitude);
	fprintf(out, "%s%s", sum < 0 ? "-" : "", at);
}

/* Members of a distribution: "count" up to "histogram". */
static void write_stats(FILE *out, const struct stats *stats)
{
	bool comma = false;

	fprintf(out, "\"count\": %" PRIu64, stats->count);
	if (stats->count) {
		fputs(", \"min\": ", out);
		write_integer(out, stats->min, stats->is_signed);
		fputs(", \"max\": ", out);
		write_integer(out, stats->max, stats->is_signed);
	}
	fputs(", \"sum\": ", out);
	write_sum(out, stats->sum);
	fputs(", \"histogram\": [", out);
	for (unsigned int i = 0; i < N_BUCKETS; i++) {
		if (!stats->buckets[i])
			continue;
		fprintf(out, "%s{\"low\": ", comma ? ", " : "");
		write_integer(out, kymo_bucket_low(i), stats->is_signed);
		fputs(", \"high\": ", out);
		write_integer(out, kymo_bucket_high(i), stats->is_signed);
		fprintf(out, ", \"count\": %" PRIu64 "}", stats->buckets[i]);
		comma = true;
	}
	putc(']', out);
}

static void write_values(FILE *out, const struct stats *stats)
{
	fputs(", \"values\": ", out);
	if (stats->many) {
		fputs("null", out);
		return;
	}
	putc('[', out);
	for (unsigned int i = 0; i < stats->n_distinct; i++) {
		fprintf(out, "%s{\"value\": ", i ? ", " : "");
		write_integer(out, stats->distinct[i].value, stats->is_signed);
		fprintf(out, ", \"count\": %" PRIu64 "}", stats->distinct[i].count);
	}
	putc(']', out);
}

static void write_argument(FILE *out, const struct kymo_ctf_field *field, const struct field_stats *stats)
{
	static const struct stats none;

	fputs("{", out);
	write_member(out, "name", field->name);
	fprintf(out, ", \"type\": \"%s\", \"faults\": %" PRIu64 ", ", kymo_type_name(field->type),
		stats ? stats->faults : 0);
	write_stats(out, stats ? &stats->stats : &none);
	write_values(out, stats ? &stats->stats : &none);
	putc('}', out);
}

static void write_times(FILE *out, const struct kymo_ctf_trace *trace, uint64_t first, uint64_t last)
{
	fprintf(out, ", \"first_ns\": %" PRIu64 ", \"last_ns\": %" PRIu64, kymo_ctf_wall_ns(trace, first),
		kymo_ctf_wall_ns(trace, last));
}

static void write_probe(FILE *out, const struct model *model, size_t at)
{
	const struct kymo_ctf_event *event = &model->trace->events[at];
	const struct probe *probe = model->probes[at];

	fprintf(out, "{\"id\": %" PRIu32 ", ", event->id);
	write_member(out, "name", event->name);
	fputs(", ", out);
	write_member(out, "path", event->path);
	fprintf(out, ", \"offset\": %" PRIu64 ", ", event->offset);
	write_member(out, "symbol", event->symbol);
	fputs(", ", out);
	write_member(out, "build_id", event->build_id);
	fprintf(out, ", \"count\": %" PRIu64, probe ? probe->count : 0);
	fprintf(out, ", \"threads\": %" PRIu32 ", \"more_threads\": %s", probe ? probe->n_threads : 0,
		probe && probe->more_threads ? "true" : "false");
	if (probe)
		write_times(out, model->trace, probe->first, probe->last);
	fputs(", \"arguments\": [", out);
	for (uint32_t i = 0; i < event->n_fields; i++) {
		fputs(i ? ", " : "", out);
		write_argument(out, &event->fields[i], probe ? &probe->fields[i] : NULL);
	}
	fputs("]", out);
	if (probe) {
		fputs(", \"between_ns\": {", out);
		write_stats(out, &probe->gaps);
		putc('}', out);
	}
	putc('}', out);
}

static void write_probes(FILE *out, const struct model *model)
{
	fputs("\"probes\": [", out);
	for (size_t i = 0; i < model->trace->n_events; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		write_probe(out, model, i);
	}
	fputs("],\n", out);
}

static struct kymo_error *write_threads(FILE *out, const struct model *model, const struct names *names)
{
	kymo_cleanup_free struct thread **threads = kymo_model_sorted_threads(model);

	if (!threads)
		return &kymo_error_no_memory;
	fputs("\"threads\": [", out);
	for (size_t i = 0; i < model->threads.n; i++) {
		const struct thread_name *name = kymo_names_find(names, threads[i]->tid);

		fprintf(out, "%s{\"tid\": %" PRId32 ", ", i ? ",\n  " : "\n  ", threads[i]->tid);
		write_member(out, "name", name ? name->raw : NULL);
		fprintf(out, ", \"count\": %" PRIu64, threads[i]->count);
		write_times(out, model->trace, threads[i]->first, threads[i]->last);
		putc('}', out);
	}
	fprintf(out, "],\n\"events_of_other_threads\": %" PRIu64 ",\n", model->other_threads);
	return NULL;
}

static void write_losses(FILE *out, const struct kymo_ctf_reader *reader, const struct kymo_ctf_trace *trace)
{
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(reader, &n);
	struct loss_total total = kymo_losses_total(losses, n);

	fprintf(out, "\"lost_events\": %" PRIu64 ",\n\"overwritten_packets\": %" PRIu64 ",\n\"losses\": [",
		total.events, total.packets);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s{\"cpu\": %" PRIu32 ", \"events\": %" PRIu64 ", \"packets\": %" PRIu64
			", \"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64 "}", i ? ",\n  " : "\n  ", losses[i].cpu,
			losses[i].events, losses[i].packets, kymo_ctf_wall_ns(trace, losses[i].begin),
			kymo_ctf_wall_ns(trace, losses[i].end));
	fputs("],\n", out);
}

static void write_warnings(FILE *out, const struct kymo_ctf_reader *reader)
{
	size_t n;
	const char *const *warnings = kymo_ctf_reader_warnings(reader, &n);

	fputs("\"warnings\": [", out);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		write_string(out, warnings[i]);
	}
	fputs("]\n", out);
}

static void write_trace(FILE *out, const struct kymo_ctf_trace *trace)
{
	fprintf(out, "\"clock_frequency\": %" PRIu64 ",\n\"clock_invariant\": %s,\n\"monotonic_offset_ns\": %" PRId64 ",\n",
		trace->clock_frequency, trace->clock_is_invariant ? "true" : "false", trace->monotonic_offset_ns);
	fputs("\"environment\": {", out);
	for (size_t i = 0; i < trace->n_env; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		write_string(out, trace->env[i].key);
		fputs(": ", out);
		write_string(out, trace->env[i].value);
	}
	fputs("},\n", out);
}

struct kymo_error *kymo_json_write(const char *dir, const struct kymo_ctf_reader *reader, const struct model *model,
				   const struct names *names, FILE *out)
{
	struct kymo_error *error;

	fprintf(out, "{\"format\": %d,\n", FORMAT);
	write_member(out, "directory", dir);
	fputs(",\n", out);
	write_trace(out, model->trace);
	fprintf(out, "\"events\": %" PRIu64 ",\n\"duration_ns\": %" PRIu64 ",\n\"cpus\": %" PRIu32, model->count,
		kymo_model_duration_ns(model), model->n_cpus);
	if (model->count)
		write_times(out, model->trace, model->first, model->last);
	fputs(",\n", out);
	write_probes(out, model);
	error = write_threads(out, model, names);
	if (error)
		return error;
	write_losses(out, reader, model->trace);
	write_warnings(out, reader);
	fputs("}\n", out);
	return NULL;
}
