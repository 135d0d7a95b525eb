#include "record/aggregate.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "record/aggregate_fields.h"
#include "record/aggregate_hit.h"
#include "record/aggregate_rows.h"
#include "record/describe.h"
#include "record/kept_calls.h"
#include "record/source_hits.h"
#include "record/stacks.h"
#include "record/warnings.h"

#define SECOND_NS 1000000000u
#define FLUSH_NS (SECOND_NS / 10)
#define SETTLE_NS (SECOND_NS / 10)
#define WAITING_SOON (1u << 16)  /* records: they are sorted before their time */
#define LATE_NS (SECOND_NS / 20) /* a producer that is about to write a record has stamped it less long ago */

/* ---- begin and end --------------------------------------------------------------------------- */

static const struct kymo_spec *find_spec(const struct recording *recording, uint32_t number)
{
	for (size_t i = 0; i < recording->wanted.options->n_specs; i++)
		if (recording->wanted.options->specs[i].aggregated == number)
			return &recording->wanted.options->specs[i];
	return NULL;
}

/* What values of a word are is known once names are. */
static void set_type(const struct recording *recording, const struct kymo_aggr *aggr, struct kymo_aggr_word *word)
{
	static const enum kymo_type types[] = {
		[KYMO_AGGR_TID] = KYMO_TYPE_S32,     [KYMO_AGGR_PID] = KYMO_TYPE_S32,
		[KYMO_AGGR_COMM] = KYMO_TYPE_STRING, [KYMO_AGGR_PROBE] = KYMO_TYPE_STRING,
		[KYMO_AGGR_FUNC] = KYMO_TYPE_STRING, [KYMO_AGGR_DURATION] = KYMO_TYPE_U64,
		[KYMO_AGGR_STACK] = KYMO_TYPE_U32,
	};
	const struct kymo_spec *spec;

	if (word->what != KYMO_AGGR_VALUE) {
		word->type = types[word->what];
		return;
	}
	spec = find_spec(recording, aggr->hit ? aggr->hit : word->is_of_return ? aggr->leave : aggr->entry);
	word->type = KYMO_TYPE_U64;
	if (!spec || word->argument >= spec->n_args)
		return;
	if (kymo_type_is_integer(spec->args[word->argument].fetch.type)) {
		word->type = spec->args[word->argument].fetch.type;
		word->naming = spec->args[word->argument].naming; /* which outlives the recording */
	} else {
		word->type = KYMO_TYPE_STRING;
	}
}

struct kymo_error *aggregate_begin(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	const size_t rows_max = options->rows_max ? options->rows_max : KYMO_AGGR_ROWS_DEFAULT;
	struct kymo_error *error = NULL;
	struct aggregating *aggregating;

	if (!options->n_aggregations)
		return NULL;
	aggregating = calloc(1, sizeof(*aggregating));
	recording->output.aggregating = aggregating;
	if (aggregating)
		aggregating->items = calloc(options->n_aggregations, sizeof(*aggregating->items));
	if (!aggregating || !aggregating->items)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < options->n_aggregations && !error; i++) {
		struct aggregation *aggregation = &aggregating->items[i];

		aggregation->aggr = options->aggregations[i];
		aggregation->leave = find_spec(recording, aggregation->aggr.leave);
		for (size_t k = 0; k < aggregation->aggr.n_keys; k++)
			set_type(recording, &aggregation->aggr, &aggregation->aggr.keys[k]);
		if (aggregation->aggr.has_value)
			set_type(recording, &aggregation->aggr, &aggregation->aggr.value);
		kymo_aggr_table_init(&aggregation->table, &aggregation->aggr, rows_max);
		aggregating->has_calls |= aggregation->aggr.entry != 0;
		aggregating->has_conditions |= aggregation->aggr.kind == KYMO_AGGR_UNTIL;
		aggregating->n++;
		if (aggregation_has_table(aggregation))
			error = aggregate_rows_describe(recording, aggregation, i);
	}
	return error;
}

void aggregate_end(struct recording *recording)
{
	struct aggregating *aggregating = recording->output.aggregating;

	if (!aggregating)
		return;
	for (size_t i = 0; i < aggregating->n; i++)
		kymo_aggr_table_deinit(&aggregating->items[i].table);
	free(aggregating->items);
	kymo_vec_deinit(&aggregating->layouts);
	kymo_strings_deinit(&aggregating->texts);
	packet_copy_deinit(&aggregating->packet);
	free(aggregating);
	recording->output.aggregating = NULL;
}

uint64_t aggregate_hits(const struct recording *recording)
{
	return recording->output.aggregating ? recording->output.aggregating->hits : 0;
}

uint64_t aggregate_in_no_row(const struct recording *recording)
{
	const struct aggregating *aggregating = recording->output.aggregating;
	uint64_t n = 0;

	for (size_t i = 0; aggregating && i < aggregating->n; i++)
		n = aggregating->items[i].table.lost > n ? aggregating->items[i].table.lost : n;
	return n;
}

/* ---- records --------------------------------------------------------------------------------- */

static bool are_of_one_function(const struct kymo_ctf_event *a, const struct kymo_ctf_event *b)
{
	return a->function_offset == b->function_offset && kymo_ctf_is_of_function(a) && kymo_ctf_is_of_function(b) &&
	       !strcmp(a->path, b->path) && !strcmp(a->build_id, b->build_id);
}

/* "query__start" and "query__done" of one file: the beginning of their names up to the last word is the same. */
static bool are_of_one_marker(const struct kymo_ctf_event *a, const struct kymo_ctf_event *b)
{
	size_t n = strlen(a->name);

	while (n && !strchr("_-:", a->name[n - 1]))
		n--;
	return a->kind == KYMO_CTF_MARKER && b->kind == KYMO_CTF_MARKER && n && !strncmp(a->name, b->name, n) &&
	       !strpbrk(b->name + n, "_-:") && !strcmp(a->path, b->path) && !strcmp(a->build_id, b->build_id);
}

static uint32_t probe_of(const struct kymo_aggr *aggr, const struct kymo_aggr_word *word)
{
	return aggr->hit ? aggr->hit : word->is_of_return ? aggr->leave : aggr->entry;
}

/* Whether an aggregation has arguments of the numbered probe. */
static bool wants_values(const struct aggregating *aggregating, uint32_t number)
{
	bool does = false;

	for (size_t i = 0; i < aggregating->n && number; i++) {
		const struct kymo_aggr *aggr = &aggregating->items[i].aggr;

		for (size_t k = 0; k < aggr->n_keys; k++)
			does |= aggr->keys[k].what == KYMO_AGGR_VALUE && probe_of(aggr, &aggr->keys[k]) == number;
		does |= aggr->has_value && aggr->value.what == KYMO_AGGR_VALUE &&
			probe_of(aggr, &aggr->value) == number;
	}
	return does;
}

/* Which arguments of the numbered probe are texts among the keys. */
static uint8_t find_texts(const struct aggregating *aggregating, uint32_t number)
{
	uint8_t texts = 0;

	for (size_t i = 0; i < aggregating->n && number; i++) {
		const struct kymo_aggr *aggr = &aggregating->items[i].aggr;

		for (size_t k = 0; k < aggr->n_keys; k++) {
			const struct kymo_aggr_word *key = &aggr->keys[k];

			if (key->what == KYMO_AGGR_VALUE && key->type == KYMO_TYPE_STRING &&
			    probe_of(aggr, key) == number)
				texts |= (uint8_t)(1u << key->argument);
		}
	}
	return texts;
}

/* New events have come to the trace. */
static struct kymo_error *read_layouts(struct recording *recording)
{
	struct aggregating *aggregating = recording->output.aggregating;
	const struct kymo_ctf_trace *trace = &recording->output.files.trace;

	for (size_t i = aggregating->layouts.n; i < trace->n_events; i++) {
		const struct kymo_ctf_event *event = &trace->events[i];
		struct hit_layout layout = {
			.function = (uint32_t)i,
			.aggregated = event->aggregated,
			.texts = find_texts(aggregating, event->aggregated),
			.has_values = event->kind != KYMO_CTF_MARKER || wants_values(aggregating, event->aggregated),
			.direct = aggregate_direct_of(aggregating, event),
		};

		for (size_t k = i; event->aggregated && k-- > 0;)
			if (trace->events[k].aggregated && (are_of_one_function(event, &trace->events[k]) ||
							    are_of_one_marker(event, &trace->events[k]))) {
				layout.function = aggregating->layouts.items[k].function;
				break;
			}
		if (!kymo_vec_push(&aggregating->layouts, layout))
			return &kymo_error_no_memory;
	}
	return NULL;
}

/* The number of a text, which ends at a NUL or with its field. 0: there is no room for another one. */
static uint64_t read_text(struct aggregating *aggregating, const struct kymo_ctf_field *field, const uint8_t *at)
{
	kymo_cleanup_free char *copy = NULL;
	uint16_t n;

	if (field->type == KYMO_TYPE_STRING)
		return kymo_strings_number(&aggregating->texts, (const char *)at);
	memcpy(&n, at, sizeof(n));
	copy = strndup((const char *)at + sizeof(n), n);
	return copy ? kymo_strings_number(&aggregating->texts, copy) : 0;
}

/* Each member by itself: a million times a second, the whole of it takes longer to clear than to fill. */
static void read_hit(const struct recording *recording, uint32_t place, const uint8_t *bytes, uint64_t base,
		     struct kymo_call_hit *ret)
{
	const struct kymo_ctf_event *event = &recording->output.files.trace.events[place];
	const struct hit_layout *layout = &recording->output.aggregating->layouts.items[place];
	const uint8_t *at = bytes + KYMO_EVENT_ARGS_OFFSET + event->has_faults;
	uint64_t header;

	memcpy(&header, bytes, sizeof(header));
	ret->tsc = aggregate_whole_stamp(header >> KYMO_EVENT_ID_BITS, base);
	ret->event = place;
	ret->function = layout->function;
	ret->is_entry = event->kind != KYMO_CTF_RETURN;
	ret->faults = event->has_faults ? bytes[KYMO_EVENT_ARGS_OFFSET] : 0;
	ret->is_span = false;
	ret->stack = 0;
	ret->loss_end = ret->stack_pointer = 0;
	memset(ret->values, 0, sizeof(ret->values));
	memcpy(&ret->tid, bytes + KYMO_EVENT_TID_OFFSET, sizeof(ret->tid));
	if (!layout->has_values)
		return;
	for (uint32_t i = 0; i < event->n_fields; i++) {
		if (layout->texts & 1u << i)
			ret->values[i] = read_text(recording->output.aggregating, &event->fields[i], at);
		else if (kymo_type_is_integer(event->fields[i].type))
			ret->values[i] = aggregate_field_value(at, event->fields[i].type);
		at += aggregate_field_size(&event->fields[i], at);
	}
	if (event->has_stack)
		memcpy(&ret->stack, at, sizeof(ret->stack));
	if (event->has_stack_pointer)
		memcpy(&ret->stack_pointer, at + (event->has_stack ? sizeof(ret->stack) : 0),
		       sizeof(ret->stack_pointer));
}

/* An entry or a return. Markers say which of both they are by the number of their probe. */
static struct kymo_error *add_call(struct recording *recording, struct record_source *source, size_t i,
				   const struct kymo_call_hit *hit)
{
	const struct aggregation *aggregation = &recording->output.aggregating->items[i];
	const struct hit_layout *layout = &recording->output.aggregating->layouts.items[hit->event];
	struct kymo_call_hit call = *hit;

	if (recording->output.files.trace.events[hit->event].kind == KYMO_CTF_MARKER) {
		call.is_entry = layout->aggregated == aggregation->aggr.entry;
		call.is_span = true;
	}
	if (aggregation->aggr.kind != KYMO_AGGR_CALLS || (call.is_entry && !aggregation->aggr.has_entry_values))
		call.record = NULL;
	return kymo_open_calls_add(&source->hits->calls[i], &call);
}

/* A record as a packet has it. */
struct raw_record {
	const uint8_t *bytes;
	uint32_t size, ring;
	uint64_t base; /* a stamp near its own */
};

static struct kymo_error *take_hit(struct recording *recording, struct record_source *source, uint32_t place,
				   const struct raw_record *raw)
{
	struct aggregating *aggregating = recording->output.aggregating;
	const struct hit_layout *layout = &aggregating->layouts.items[place];
	const uint32_t number = layout->aggregated;
	struct kymo_error *error = NULL;
	struct kymo_call_hit hit;
	bool is_counted = false;

	read_hit(recording, place, raw->bytes, raw->base, &hit);
	hit.record = raw->bytes;
	hit.record_size = raw->size;
	hit.ring = raw->ring;
	for (size_t i = 0; i < aggregating->n && !error; i++) {
		struct aggregation *aggregation = &aggregating->items[i];

		is_counted |= aggregation_has_table(aggregation) &&
			      (aggregation->aggr.hit == number || aggregation->aggr.leave == number);
		if (aggregation->aggr.entry == number || aggregation->aggr.leave == number)
			error = add_call(recording, source, i, &hit);
		else if (aggregation->aggr.hit == number)
			aggregate_add_hit(&(struct hit){ .recording = recording,
							 .source = source,
							 .aggregation = aggregation,
							 .values = hit.values,
							 .faults = hit.faults,
							 .stack = hit.stack,
							 .tid = hit.tid,
							 .tsc = hit.tsc,
							 .event = place });
	}
	aggregating->hits += is_counted;
	return error;
}

/* Most hits are one addition to one table: none of them is copied out of the ring (kymo_packed_take). */
static bool take_directly(void *data, const struct kymo_ctf_event *event, int32_t tid, const uint8_t *body)
{
	struct recording *recording = data;
	struct aggregating *aggregating = recording->output.aggregating;
	const struct hit_layout *layout = &aggregating->layouts.items[event - recording->output.files.trace.events];

	if (!layout->direct.aggregation || !aggregate_direct_add(&layout->direct, tid, body))
		return false;
	aggregating->hits++;
	return true;
}

/* Take what is aggregated out of a packet, which is this process's own copy. */
static struct kymo_error *take_hits(struct recording *recording, struct record_source *source, size_t i,
				    uint8_t *records, struct kymo_ring_packet *packet)
{
	struct kymo_error *error = NULL;
	uint64_t at = 0, kept = 0;

	while (!error && at + sizeof(uint64_t) <= packet->size) {
		const struct kymo_ctf_event *event = packet_event(&recording->output.files, records + at);
		const uint32_t size = event ? kymo_ctf_record_size(event, records + at, packet->size - at) : 0;

		if (!size) /* no record of ours: readers will tell */
			break;
		if (event->aggregated)
			error = take_hit(recording, source, (uint32_t)(event - recording->output.files.trace.events),
					 &(struct raw_record){ records + at, size, (uint32_t)i, packet->tsc_begin });
		if (!event->aggregated || event->is_written) {
			memmove(records + kept, records + at, size);
			kept += size;
		}
		at += size;
	}
	memmove(records + kept, records + at, packet->size - at);
	packet->size = kept + packet->size - at;
	return error;
}

/* Of a ring `lost` records were lost up to `end`: the last of them since what is known of it. */
static struct kymo_error *note_loss(struct recording *recording, struct record_source *source, size_t i, uint64_t lost,
				    uint64_t end)
{
	struct kymo_call_hit loss = { .tsc = source->hits->known[i], .loss_end = end };
	struct kymo_error *error = NULL;

	if (lost <= source->hits->noted[i])
		return NULL;
	source->hits->noted[i] = lost;
	for (size_t k = 0; k < source->hits->n_calls && !error; k++)
		if (recording->output.aggregating->items[k].aggr.entry)
			error = kymo_open_calls_add(&source->hits->calls[k], &loss);
	return error;
}

static struct kymo_error *take_packet(struct recording *recording, struct record_source *source, size_t i,
				      struct kymo_ring_packet *packet)
{
	struct source_hits *hits = source->hits;
	const bool has_lost = packet->lost > hits->lost[i];
	struct kymo_error *error;
	uint8_t *records;

	error = packet_copy_take(&recording->output.aggregating->packet, &recording->output.files, packet,
				 take_directly, recording);
	if (error)
		return error;
	records = recording->output.aggregating->packet.records;
	hits->has_comm = false; /* threads get other names */
	error = note_loss(recording, source, i, packet->lost, packet->tsc_end);
	if (!error && packet->size && recording->output.stacking)
		error = stacks_replace(recording, source, records, packet);
	if (!error && packet->size)
		error = take_hits(recording, source, i, records, packet);
	if (packet->tsc_end > hits->known[i])
		hits->known[i] = packet->tsc_end;
	hits->lost[i] = packet->lost;
	if (error)
		return error;
	if (packet->size || has_lost)
		return kymo_trace_append(&recording->output.files, &source->positions[i], source->shared[i].cpu, packet,
					 true);
	source->positions[i].skipped++;
	return NULL;
}

/* An idle ring gets no record that is older than `begun`, but for records that producers are about to store. No packet
 * tells what the ring has lost since its last packet. */
static struct kymo_error *note_idle(struct recording *recording, struct record_source *source, size_t i, uint64_t begun)
{
	const uint64_t late = recording->output.files.trace.clock_frequency / SECOND_NS * LATE_NS;
	struct kymo_error *error;

	if (!kymo_ring_is_idle(&source->rings[i]) || begun - late <= source->hits->known[i])
		return NULL;
	error = note_loss(recording, source, i, kymo_ring_lost(&source->rings[i]), kymo_clock_tsc());
	source->hits->known[i] = begun - late;
	return error;
}

struct kymo_error *aggregate_drain(struct recording *recording, struct record_source *source, size_t i, size_t *n_ret)
{
	struct kymo_ring *ring = &source->rings[i];
	struct kymo_error *error = source_hits_make(recording, source);
	const uint64_t begun = kymo_clock_tsc();
	struct kymo_ring_packet packet;
	size_t n = 0;

	if (!error)
		error = read_layouts(recording);
	while (!error && n < ring->n_subbuffers && kymo_ring_peek(ring, &packet)) {
		error = take_packet(recording, source, i, &packet);
		if (!error)
			kymo_ring_release(ring);
		n++;
	}
	if (error)
		return error;
	*n_ret = n;
	return note_idle(recording, source, i, begun);
}

struct kymo_error *aggregate_pass_over(struct recording *recording, struct record_source *source, size_t i)
{
	const uint64_t begun = kymo_clock_tsc();
	struct kymo_error *error = source_hits_make(recording, source);

	return error ? error : note_idle(recording, source, i, begun);
}

/* ---- calls that have ended ------------------------------------------------------------------- */

/* The end of a source: losses after the last packets. */
static struct kymo_error *note_last_losses(struct recording *recording, struct record_source *source)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < source->n_rings && !error; i++)
		error = note_loss(recording, source, i, kymo_ring_lost(&source->rings[i]), UINT64_MAX);
	return error;
}

static bool are_many_waiting(const struct source_hits *hits)
{
	for (size_t i = 0; i < hits->n_calls; i++)
		if (hits->calls[i].waiting.n > WAITING_SOON || hits->calls[i].n_bytes > KYMO_CALLS_BYTES_MAX)
			return true;
	return false;
}

/* All aggregations up to the same stamp: a ring has the records of all, in the order of time. */
struct kymo_error *aggregate_settle(struct recording *recording, struct record_source *source, bool ends)
{
	struct aggregating *aggregating = recording->output.aggregating;
	struct source_hits *hits = source->hits;
	uint64_t mark = UINT64_MAX;
	struct kymo_error *error;
	bool is_time;

	if (!hits || !aggregating->has_calls)
		return NULL;
	error = ends ? note_last_losses(recording, source) : NULL;
	for (size_t i = 0; i < hits->n_rings && !ends; i++)
		if (hits->known[i] < mark)
			mark = hits->known[i];
	is_time = ends || mark >= hits->next_mark || are_many_waiting(hits);
	for (size_t i = 0; i < hits->n_calls && !error; i++) {
		struct hit hit = { .recording = recording, .source = source, .aggregation = &aggregating->items[i] };
		struct kymo_open_calls *calls = &hits->calls[i];

		if (calls->waiting.n && is_time)
			error = kymo_open_calls_settle(calls, mark, aggregate_end_call, &hit);
		aggregating->items[i].n_forgotten += calls->n_forgotten;
		calls->n_forgotten = 0;
		error = kymo_error_first(error, hit.error);
	}
	if (!error)
		error = kept_calls_write(recording, source);
	if (!ends && mark >= hits->next_mark)
		hits->next_mark = mark + recording->output.files.trace.clock_frequency / (SECOND_NS / SETTLE_NS);
	return error;
}

void aggregate_hurry(const struct recording *recording)
{
	for (size_t i = 0; i < recording->run.sources.n; i++)
		if (recording->run.sources.items[i]->hits)
			recording->run.sources.items[i]->hits->next_mark = 0;
}

/* ---- now and then ---------------------------------------------------------------------------- */

static void show_tables(struct recording *recording)
{
	const struct kymo_record_options *options = recording->wanted.options;
	kymo_cleanup_free struct kymo_aggr_table *tables = NULL;
	size_t n = 0;

	if (!options->tables)
		return;
	tables = calloc(recording->output.aggregating->n, sizeof(*tables));
	for (size_t i = 0; tables && i < recording->output.aggregating->n; i++)
		if (aggregation_has_table(&recording->output.aggregating->items[i])) {
			tables[n] = recording->output.aggregating->items[i].table;
			tables[n++].frames = stacks_frames(recording);
		}
	if (tables && n)
		options->tables(tables, n, options->data);
}

bool aggregate_wants_flush(struct recording *recording)
{
	struct aggregating *aggregating = recording->output.aggregating;
	const uint64_t now = kymo_now_ns();

	if (!(aggregating->has_calls || aggregating->has_conditions) || now < aggregating->next_flush_ns)
		return false;
	aggregating->next_flush_ns = now + FLUSH_NS;
	return true;
}

struct kymo_error *aggregate_now_and_then(struct recording *recording)
{
	struct aggregating *aggregating = recording->output.aggregating;
	const double interval = recording->wanted.options->interval;
	const uint64_t now = kymo_now_ns();
	bool is_rows_time;

	if (!aggregating->next_rows_ns)
		aggregating->next_rows_ns = now + (uint64_t)(interval * SECOND_NS);
	if (now >= aggregating->next_table_ns) {
		aggregating->next_table_ns = now + SECOND_NS;
		show_tables(recording);
	}
	is_rows_time = interval > 0 && now >= aggregating->next_rows_ns;
	if (!is_rows_time)
		return NULL;
	aggregating->next_rows_ns += (uint64_t)(interval * SECOND_NS);
	if (aggregating->next_rows_ns < now)
		aggregating->next_rows_ns = now;
	return aggregate_write(recording, false);
}

struct kymo_error *aggregate_write(struct recording *recording, bool is_last)
{
	struct kymo_error *error = aggregate_rows_write(recording);
	const uint64_t lost = aggregate_in_no_row(recording);
	bool is_full = false;

	if (!is_last || error)
		return error;
	show_tables(recording);
	kept_calls_tell(recording);
	for (size_t i = 0; i < recording->output.aggregating->n; i++) {
		const struct kymo_aggr_table *table = &recording->output.aggregating->items[i].table;

		is_full |= table->rows.n >= table->rows_max;
	}
	if (lost && !is_full)
		recording_warn(recording,
			       "the tables have room for %u different texts in all: %" PRIu64
			       " hits found none for their "
			       "keys, and are in no row; a filter, or a shorter text, has fewer",
			       KYMO_STRINGS_MAX, lost);
	else if (lost)
		recording_warn(recording,
			       "a table of %zu rows was full: %" PRIu64 " hits found no room for their keys, and are "
			       "in none of its rows; a larger --rows has more",
			       recording->output.aggregating->items[0].table.rows_max, lost);
	return NULL;
}
