#include "report/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "ctf/site.h"
#include "report/aggregations.h"
#include "report/ended.h"
#include "report/gaps.h"
#include "report/namings.h"
#include "report/losses.h"
#include "report/text.h"
#include "sym/demangle.h"

/* Of what this file writes; goes up when a member changes its meaning. */
#define FORMAT 1

static void write_member(FILE *out, const char *key, const char *value)
{
	fprintf(out, "\"%s\": ", key);
	if (value)
		kymo_json_string(out, value);
	else
		fputs("null", out);
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
		kymo_json_integer(out, stats->min, stats->is_signed);
		fputs(", \"max\": ", out);
		kymo_json_integer(out, stats->max, stats->is_signed);
	}
	fputs(", \"sum\": ", out);
	write_sum(out, stats->sum);
	fputs(", \"histogram\": [", out);
	for (unsigned int i = 0; i < N_BUCKETS; i++) {
		if (!stats->buckets[i])
			continue;
		fprintf(out, "%s{\"low\": ", comma ? ", " : "");
		kymo_json_integer(out, kymo_bucket_low(i), stats->is_signed);
		fputs(", \"high\": ", out);
		kymo_json_integer(out, kymo_bucket_high(i), stats->is_signed);
		fprintf(out, ", \"count\": %" PRIu64 "}", stats->buckets[i]);
		comma = true;
	}
	putc(']', out);
}

static void write_values(FILE *out, const struct stats *stats, const struct kymo_naming *naming)
{
	fputs(", \"values\": ", out);
	if (stats->many) {
		fputs("null", out);
		return;
	}
	putc('[', out);
	for (unsigned int i = 0; i < stats->n_distinct; i++) {
		fprintf(out, "%s{\"value\": ", i ? ", " : "");
		kymo_json_integer(out, stats->distinct[i].value, stats->is_signed);
		kymo_naming_write_json(out, ", \"name\": ", naming, stats->distinct[i].value);
		fprintf(out, ", \"count\": %" PRIu64 "}", stats->distinct[i].count);
	}
	putc(']', out);
}

static void write_reals(FILE *out, enum kymo_type type, const struct reals *reals)
{
	char number[TEXT_NUMBER];

	fprintf(out, ", \"not_finite\": %" PRIu64, reals->n_others);
	if (!reals->count)
		return;
	fprintf(out, ", \"min\": %s", kymo_text_real(number, type, reals->min));
	fprintf(out, ", \"max\": %s", kymo_text_real(number, type, reals->max));
	fprintf(out, ", \"mean\": %s", kymo_text_double(number, kymo_reals_mean(reals)));
}

/* A name as users know it, after it the mangled one where that differs. */
static void write_name(FILE *out, const char *key, const char *name)
{
	kymo_cleanup_free char *shown = name ? kymo_shown(name) : NULL;
	const bool differs = shown && strcmp(shown, name) != 0;

	write_member(out, key, shown ? shown : name);
	if (differs && !strcmp(key, "symbol")) {
		fputs(", ", out);
		write_member(out, "mangled", name);
	}
}

static void write_argument(FILE *out, const struct kymo_ctf_field *field, const struct probe *probe, uint32_t i)
{
	static const struct field_stats none;
	const struct field_stats *stats = probe ? &probe->fields[i] : &none;

	fputs("{", out);
	write_member(out, "name", field->name);
	fprintf(out, ", \"type\": \"%s\", \"faults\": %" PRIu64 ", ", kymo_type_name(field->type), stats->faults);
	if (kymo_type_is_integer(field->type)) {
		write_stats(out, &stats->stats);
		write_values(out, &stats->stats, field->naming);
	} else {
		fprintf(out, "\"count\": %" PRIu64, probe ? probe->count - stats->faults : 0);
		if (kymo_type_is_real(field->type))
			write_reals(out, field->type, &stats->reals);
	}
	putc('}', out);
}

static void write_times(FILE *out, const struct kymo_ctf_trace *trace, uint64_t first, uint64_t last)
{
	fprintf(out, ", \"first_ns\": %" PRIu64 ", \"last_ns\": %" PRIu64, kymo_ctf_wall_ns(trace, first),
		kymo_ctf_wall_ns(trace, last));
}

static void write_kind(FILE *out, const struct kymo_ctf_event *event)
{
	fprintf(out, ", \"kind\": \"%s\"", kymo_ctf_kind_name(event->kind));
	if (kymo_ctf_is_of_function(event))
		fprintf(out, ", \"function_offset\": %" PRIu64, event->function_offset);
	if (event->source || event->kind == KYMO_CTF_MARKER) {
		fputs(", ", out);
		write_member(out, "source", event->source);
	}
}

/* Of a marker: its format, and each of its copies. */
static void write_marker(FILE *out, const struct model *model, size_t at)
{
	fputs(", ", out);
	write_member(out, "format", model->trace->events[at].format);
	fputs(", \"places\": [", out);
	for (size_t i = at; i != NO_LOCATION; i = model->locations[i].next) {
		const struct kymo_ctf_event *event = &model->trace->events[i];

		fprintf(out, "%s{\"id\": %" PRIu32 ", \"offset\": %" PRIu64 ", ", i == at ? "" : ", ", event->id,
			event->offset);
		write_name(out, "symbol", event->symbol);
		fputs(", ", out);
		write_member(out, "source", event->source);
		fprintf(out, ", \"count\": %" PRIu64 "}", model->counts[i]);
	}
	putc(']', out);
}

static void write_probe(FILE *out, const struct model *model, const struct names *names, size_t at)
{
	const struct kymo_ctf_event *event = &model->trace->events[at];
	const struct probe *probe = model->probes[at];

	fprintf(out, "{\"id\": %" PRIu32 ", ", event->id);
	write_member(out, "name", names->events[at].plain_name);
	fputs(", ", out);
	write_member(out, "path", event->path);
	fprintf(out, ", \"offset\": %" PRIu64 ", ", event->offset);
	write_name(out, "symbol", event->symbol);
	fputs(", ", out);
	write_member(out, "build_id", event->build_id);
	write_kind(out, event);
	if (event->kind == KYMO_CTF_MARKER)
		write_marker(out, model, at);
	if (event->sample) {
		fputs(", ", out);
		write_member(out, "sample", event->sample);
	}
	if (event->writes) {
		fputs(", ", out);
		write_member(out, "writes", event->writes);
	}
	fprintf(out, ", \"count\": %" PRIu64, probe ? probe->count : 0);
	if (model->since > model->first)
		fprintf(out, ", \"count_since\": %" PRIu64, probe ? probe->recent : 0);
	fprintf(out, ", \"threads\": %" PRIu32 ", \"more_threads\": %s", probe ? probe->n_threads : 0,
		probe && probe->more_threads ? "true" : "false");
	if (probe)
		write_times(out, model->trace, probe->first, probe->last);
	fputs(", \"arguments\": [", out);
	for (uint32_t i = 0; i < event->n_fields; i++) {
		fputs(i ? ", " : "", out);
		write_argument(out, &event->fields[i], probe, i);
	}
	fputs("]", out);
	if (probe) {
		fputs(", \"between_ns\": {", out);
		write_stats(out, &probe->gaps);
		putc('}', out);
	}
	putc('}', out);
}

static void write_probes(FILE *out, const struct model *model, const struct names *names)
{
	bool comma = false;

	fputs("\"probes\": [", out);
	for (size_t i = 0; i < model->trace->n_events; i++) {
		if (model->locations[i].first != i || model->trace->events[i].kind == KYMO_CTF_AGGREGATION ||
		    kymo_ctf_is_of_stacks(&model->trace->events[i]) ||
		    kymo_ctf_is_of_branches(&model->trace->events[i]) ||
		    (model->filter && !kymo_filter_has_event(model->filter, &model->trace->events[i])))
			continue;
		fputs(comma ? ",\n  " : "\n  ", out);
		write_probe(out, model, names, i);
		comma = true;
	}
	fputs("],\n", out);
}

static void write_durations(FILE *out, const struct durations *durations)
{
	const struct stats *stats = &durations->stats;

	fputs(", \"duration_ns\": {", out);
	write_stats(out, stats);
	fputs(", \"mean\": ", out);
	write_sum(out, stats->sum / (__int128)stats->count);
	for (unsigned int i = 0; i < 3; i++) {
		static const unsigned int percents[] = { 50, 90, 99 };

		fprintf(out, ", \"p%u\": %" PRIu64, percents[i], kymo_durations_quantile(durations, percents[i]));
	}
	fprintf(out, "}, \"self_ns\": %" PRIu64, durations->self_ns);
}

static void write_function(FILE *out, const struct names *names, const struct function *function)
{
	const struct kymo_ctf_event *entry = function->entry;

	fputs("{", out);
	write_member(out, "name", names->events[entry - names->trace->events].plain_name);
	fputs(", ", out);
	write_member(out, "path", entry->path);
	fprintf(out, ", \"function_offset\": %" PRIu64 ", ", entry->function_offset);
	write_name(out, "symbol", entry->symbol);
	fprintf(out, ", \"entry\": %" PRIu32 ", \"return\": %" PRIu32 ", \"count\": %" PRIu64, entry->id,
		function->leave->id, function->durations ? function->durations->stats.count : 0);
	fprintf(out,
		", \"over_losses\": %" PRIu64 ", \"without_return\": %" PRIu64 ", \"unwound\": %" PRIu64
		", \"without_entry\": %" PRIu64 ", \"open\": %" PRIu64 ", \"too_deep\": %" PRIu64,
		function->over_losses, function->left, function->unwound, function->without_entry, function->open,
		function->too_deep);
	if (function->is_syscall)
		fprintf(out, ", \"errors\": %" PRIu64, function->errors);
	if (function->durations)
		write_durations(out, function->durations);
	putc('}', out);
}

static struct kymo_error *write_calls(FILE *out, const struct calls *calls, const struct names *names)
{
	kymo_cleanup_free struct function **functions = NULL;
	size_t n;

	functions = kymo_functions_sorted(&calls->functions, &n);
	if (!functions)
		return &kymo_error_no_memory;
	fputs("\"calls\": [", out);
	for (size_t i = 0; i < n; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		write_function(out, names, functions[i]);
	}
	fprintf(out, "],\n\"calls_of_other_threads\": %" PRIu64 ",\n", calls->other_threads);
	return NULL;
}

static void write_stamp(FILE *out, const char *key, const struct kymo_ctf_trace *trace, uint64_t tsc)
{
	fprintf(out, ", \"%s\": ", key);
	if (tsc)
		fprintf(out, "%" PRIu64, kymo_ctf_wall_ns(trace, tsc));
	else
		fputs("null", out);
}

static void write_processes(FILE *out, const struct model *model)
{
	fputs("\"processes\": [", out);
	for (size_t i = 0; i < model->trace->n_processes; i++) {
		const struct process_count *count = &model->processes[i];
		const struct kymo_ctf_process *process = count->process;

		fprintf(out, "%s{\"pid\": %" PRId32 ", \"parent\": ", i ? ",\n  " : "\n  ", process->pid);
		fprintf(out, process->parent ? "%" PRId32 : "null", process->parent);
		fputs(", ", out);
		write_member(out, "command", process->command);
		write_stamp(out, "begin_ns", model->trace, process->begin);
		write_stamp(out, "end_ns", model->trace, process->end);
		fprintf(out, ", \"count\": %" PRIu64, count->count);
		if (count->count)
			write_times(out, model->trace, count->first, count->last);
		putc('}', out);
	}
	fputs("],\n", out);
}

/* ", "probes": [{"id": 3, "count": 17}]" */
static void write_pairs(FILE *out, const struct model *model, const struct pair *sorted, size_t thread)
{
	size_t n;
	const struct pair *pairs = kymo_pairs_of(sorted, model->pairs.n, thread, &n);

	fputs(", \"probes\": [", out);
	for (size_t i = 0; i < n; i++)
		fprintf(out, "%s{\"id\": %" PRIu32 ", \"count\": %" PRIu64 "}", i ? ", " : "",
			model->trace->events[pairs[i].probe].id, pairs[i].count);
	putc(']', out);
}

static struct kymo_error *write_threads(FILE *out, const struct model *model)
{
	kymo_cleanup_free struct thread **threads = kymo_model_sorted_threads(model);
	kymo_cleanup_free struct pair *sorted = model->has_pairs ? kymo_pairs_sorted(&model->pairs) : NULL;

	if (!threads || (model->has_pairs && !sorted))
		return &kymo_error_no_memory;
	fputs("\"threads\": [", out);
	for (size_t i = 0; i < model->n_threads; i++) {
		const struct kymo_ctf_process *process = threads[i]->process;

		fprintf(out, "%s{\"tid\": %" PRId32 ", \"pid\": ", i ? ",\n  " : "\n  ", threads[i]->tid);
		fprintf(out, process ? "%" PRId32 : "null", process ? process->pid : 0);
		fputs(", ", out);
		write_member(out, "name", threads[i]->entry ? threads[i]->entry->comm : NULL);
		fprintf(out, ", \"count\": %" PRIu64, threads[i]->count);
		write_times(out, model->trace, threads[i]->first, threads[i]->last);
		if (sorted)
			write_pairs(out, model, sorted, (size_t)(threads[i] - model->threads.items.items));
		putc('}', out);
	}
	fprintf(out, "],\n\"events_of_other_threads\": %" PRIu64 ",\n", model->other_threads);
	return NULL;
}

static void write_losses_json(FILE *out, const struct kymo_ctf_reader *reader, const struct kymo_ctf_trace *trace)
{
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(reader, &n);
	struct loss_total total = kymo_losses_total(losses, n);

	fprintf(out,
		"\"lost_events\": %" PRIu64 ",\n\"lost_in_vforks\": %" PRIu64 ",\n\"overwritten_packets\": %" PRIu64
		",\n\"losses\": [",
		total.events, total.in_vforks, total.packets);
	for (size_t i = 0; i < n; i++) {
		fprintf(out, "%s{\"cpu\": ", i ? ",\n  " : "\n  ");
		fprintf(out, kymo_loss_is_in_vforks(&losses[i]) ? "null" : "%" PRIu32, losses[i].cpu);
		fprintf(out,
			", \"events\": %" PRIu64 ", \"packets\": %" PRIu64 ", \"begin_ns\": %" PRIu64
			", \"end_ns\": %" PRIu64 "}",
			losses[i].events, losses[i].packets, kymo_ctf_wall_ns(trace, losses[i].begin),
			kymo_ctf_wall_ns(trace, losses[i].end));
	}
	fputs("],\n", out);
}

static void write_gaps(FILE *out, const struct kymo_ctf_trace *trace)
{
	const char *before = "\n  ";

	fputs("\"gaps\": [", out);
	for (size_t i = 0; i < trace->n_env; i++) {
		struct trace_gap gap;

		if (!kymo_gap_parse(&trace->env[i], &gap))
			continue;
		fprintf(out, "%s{\"pid\": %" PRId32 ", \"cause\": \"%s\", \"probes\": %" PRIu64 ", \"first\": ", before,
			gap.pid, gap.word, gap.n);
		kymo_json_string(out, gap.name);
		fprintf(out, gap.begin ? ", \"begin_ns\": %" PRIu64 : ", \"begin_ns\": null",
			kymo_ctf_wall_ns(trace, gap.begin));
		fprintf(out, gap.end ? ", \"end_ns\": %" PRIu64 "}" : ", \"end_ns\": null}",
			kymo_ctf_wall_ns(trace, gap.end));
		before = ",\n  ";
	}
	fputs("],\n", out);
}

static void write_warnings(FILE *out, const struct kymo_ctf_reader *reader)
{
	size_t n;
	const char *const *warnings = kymo_ctf_reader_warnings(reader, &n);
	const char *unended = kymo_unended(kymo_ctf_reader_trace(reader));

	fputs("\"warnings\": [", out);
	if (unended) {
		fputs("\n  ", out);
		kymo_json_string(out, unended);
	}
	for (size_t i = 0; i < n; i++) {
		fputs(i || unended ? ",\n  " : "\n  ", out);
		kymo_json_string(out, warnings[i]);
	}
	fputs("]\n", out);
}

static void write_trace(FILE *out, const struct kymo_ctf_trace *trace)
{
	fprintf(out,
		"\"clock_frequency\": %" PRIu64 ",\n\"clock_invariant\": %s,\n\"monotonic_offset_ns\": %" PRId64 ",\n",
		trace->clock_frequency, trace->clock_is_invariant ? "true" : "false", trace->monotonic_offset_ns);
	fputs("\"environment\": {", out);
	for (size_t i = 0; i < trace->n_env; i++) {
		fputs(i ? ",\n  " : "\n  ", out);
		kymo_json_string(out, trace->env[i].key);
		fputs(": ", out);
		kymo_json_string(out, trace->env[i].value);
	}
	fputs("},\n", out);
}

struct kymo_error *kymo_json_write(const struct summary *summary, FILE *out)
{
	const struct model *model = summary->model;
	struct kymo_error *error;

	fprintf(out, "{\"format\": %d,\n", FORMAT);
	write_member(out, "directory", summary->dir);
	fputs(",\n", out);
	write_trace(out, model->trace);
	fprintf(out, "\"events\": %" PRIu64 ",\n\"duration_ns\": %" PRIu64 ",\n\"cpus\": %" PRIu32, model->count,
		kymo_model_duration_ns(model), model->n_cpus);
	if (model->count)
		write_times(out, model->trace, model->first, model->last);
	if (model->since > model->first)
		fprintf(out, ",\n\"since_ns\": %" PRIu64 ", \"events_since\": %" PRIu64,
			kymo_ctf_wall_ns(model->trace, model->since), model->recent);
	fputs(",\n", out);
	write_probes(out, model, summary->names);
	error = kymo_aggregations_write_json(summary->aggregations, out);
	if (!error)
		error = write_calls(out, summary->calls, summary->names);
	if (error)
		return error;
	write_processes(out, model);
	error = write_threads(out, model);
	if (error)
		return error;
	write_losses_json(out, summary->reader, model->trace);
	write_gaps(out, model->trace);
	write_warnings(out, summary->reader);
	fputs("}\n", out);
	return NULL;
}
