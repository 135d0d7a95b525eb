#include "record/kept_calls.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "record/aggregate_fields.h"
#include "record/warnings.h"

#define PACKET_SIZE (256u << 10) /* the last record may go a little beyond it */

/* ---- what is put into a record ---------------------------------------------------------------- */

/* A record that is made of the one that the pad has written. */
struct making {
	const struct kymo_ctf_event *event;
	const uint8_t *from; /* the next field of that */
	struct kept_calls *to;
	size_t begin; /* in its bytes */
};

static bool append(struct making *making, const void *bytes, size_t n)
{
	struct kept_calls *kept = making->to;

	if (!kymo_vec_reserve(&kept->bytes, kept->bytes.n + n))
		return false;
	memcpy(kept->bytes.items + kept->bytes.n, bytes, n);
	kept->bytes.n += n;
	return true;
}

/* Pads have marked it as not available. */
static void set_available(const struct making *making, uint32_t field)
{
	making->to->bytes.items[making->begin + KYMO_EVENT_ARGS_OFFSET] &= (uint8_t) ~(1u << field);
}

/* Field `number` of the record of an entry, which has to have that type; NULL where it was not available. */
static const uint8_t *entry_field(const struct kymo_ctf_event *event, const uint8_t *record, uint32_t number,
				  enum kymo_type type)
{
	const uint8_t *at = record + KYMO_EVENT_ARGS_OFFSET + event->has_faults;

	if (number >= event->n_fields || event->fields[number].type != type ||
	    (event->has_faults && record[KYMO_EVENT_ARGS_OFFSET] >> number & 1))
		return NULL;
	for (uint32_t i = 0; i < number; i++)
		at += aggregate_field_size(&event->fields[i], at);
	return at;
}

/* The next field: `value`, or as it is where that is NULL. */
static bool append_field(struct making *making, uint32_t field, const uint8_t *value)
{
	const struct kymo_ctf_field *of = &making->event->fields[field];
	const size_t size = aggregate_field_size(of, making->from);
	const bool done =
		value ? append(making, value, aggregate_field_size(of, value)) : append(making, making->from, size);

	if (done && value)
		set_available(making, field);
	making->from += size;
	return done;
}

/* The record, with the fields that its call is known by. */
static bool make_record(const struct kymo_ctf_trace *trace, const struct aggregation *aggregation,
			const struct ended_call *call, struct kept_calls *kept)
{
	const struct kymo_ctf_event *event = &trace->events[call->leave->event];
	const struct kymo_spec *spec = aggregation->leave;
	const uint8_t *record = call->leave->record, *end = record + call->leave->record_size;
	struct making making = { event, record + KYMO_EVENT_ARGS_OFFSET + event->has_faults, kept, kept->bytes.n };
	uint32_t next = aggregation->aggr.entry_value;

	if (!append(&making, record, (size_t)(making.from - record)))
		return false;
	for (uint32_t i = 0; i < event->n_fields && i < spec->n_args; i++) {
		const uint8_t *value = NULL;

		if (spec->args[i].is_of_entry && call->entry)
			value = entry_field(&trace->events[call->entry_event], call->entry, next,
					    event->fields[i].type);
		else if (event->duration == i + 1 && call->is_known)
			value = (const uint8_t *)&call->ns;
		next += spec->args[i].is_of_entry;
		if (!append_field(&making, i, value))
			return false;
	}
	return append(&making, making.from, (size_t)(end - making.from));
}

static bool is_within(const struct kymo_aggr *aggr, bool is_known, uint64_t ns)
{
	if (!aggr->has_limits)
		return true;
	return is_known && ns >= aggr->duration_min && ns <= aggr->duration_max;
}

struct kymo_error *kept_calls_add(struct recording *recording, struct record_source *source,
				  struct aggregation *aggregation, const struct ended_call *call)
{
	struct kept_calls *kept = &source->hits->kept[call->leave->ring];
	const size_t at = kept->bytes.n;

	if (!is_within(&aggregation->aggr, call->is_known, call->ns))
		return NULL;
	if (!make_record(&recording->output.files.trace, aggregation, call, kept) ||
	    !kymo_vec_push(&kept->records,
			   ((struct kept_record){ call->leave->tsc, at, (uint32_t)(kept->bytes.n - at) }))) {
		kept->bytes.n = at;
		return &kymo_error_no_memory;
	}
	return NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

static struct kymo_error *write_packet(struct recording *recording, struct kept_calls *kept, uint32_t cpu)
{
	const struct kymo_ring_packet packet = {
		.records = kept->packet.items,
		.size = kept->packet.n,
		.tsc_begin = kept->packet.n ? kept->tsc_begin : kept->tsc_end,
		.tsc_end = kept->tsc_end,
		.lost = kept->lost,
		.sequence = kept->n_packets,
		.is_plain = true,
	};
	struct kymo_error *error;

	if (!packet.size && kept->lost == kept->lost_written)
		return NULL;
	kept->position.ring = KYMO_TRACE_CALLS;
	error = kymo_trace_append(&recording->output.files, &kept->position, cpu, &packet, true);
	if (error)
		return error;
	kept->n_packets++;
	kept->lost_written = kept->lost;
	kept->packet.n = 0;
	return NULL;
}

static int compare_records(const void *a, const void *b)
{
	const struct kept_record *x = a, *y = b;

	if (x->tsc != y->tsc)
		return x->tsc < y->tsc ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

/* In the order of time, whichever probe they are of. */
static struct kymo_error *write_ring(struct recording *recording, struct kept_calls *kept, uint32_t cpu)
{
	struct kymo_error *error = NULL;

	if (kept->records.n)
		qsort(kept->records.items, kept->records.n, sizeof(kept->records.items[0]), compare_records);
	for (size_t i = 0; i < kept->records.n && !error; i++) {
		const struct kept_record *record = &kept->records.items[i];

		if (record->tsc < kept->tsc_end) { /* it waited for too long, or a lying target has written it */
			kept->lost++;
			continue;
		}
		if (kept->packet.n >= PACKET_SIZE)
			error = write_packet(recording, kept, cpu);
		if (!error && !kymo_vec_reserve(&kept->packet, kept->packet.n + record->size))
			error = &kymo_error_no_memory;
		if (error) {
			kept->lost += kept->records.n - i;
			break;
		}
		if (!kept->packet.n)
			kept->tsc_begin = record->tsc;
		memcpy(kept->packet.items + kept->packet.n, kept->bytes.items + record->at, record->size);
		kept->packet.n += record->size;
		kept->tsc_end = record->tsc;
	}
	kept->records.n = kept->bytes.n = 0;
	return error ? error : write_packet(recording, kept, cpu);
}

struct kymo_error *kept_calls_write(struct recording *recording, struct record_source *source)
{
	struct kymo_error *error = NULL;

	for (uint32_t i = 0; i < source->hits->n_rings && !error; i++)
		error = write_ring(recording, &source->hits->kept[i], source->shared[i].cpu);
	return error;
}

uint64_t kept_calls_lost(const struct record_source *source)
{
	uint64_t lost = 0;

	for (size_t i = 0; source->hits && source->hits->kept && i < source->hits->n_rings; i++)
		lost += source->hits->kept[i].lost;
	return lost;
}

void kept_calls_forget(struct recording *recording, struct record_source *source)
{
	struct source_hits *hits = source->hits;

	for (size_t i = 0; i < hits->n_rings && hits->kept; i++) {
		kymo_trace_leave(&recording->output.files, &hits->kept[i].position);
		kymo_vec_deinit(&hits->kept[i].bytes);
		kymo_vec_deinit(&hits->kept[i].records);
		kymo_vec_deinit(&hits->kept[i].packet);
	}
	free(hits->kept);
	hits->kept = NULL;
}

/* ---- what could not be decided --------------------------------------------------------------- */

void kept_calls_tell(struct recording *recording)
{
	const struct aggregating *aggregating = recording->output.aggregating;

	for (size_t i = 0; i < aggregating->n; i++) {
		const struct kymo_aggr *aggr = &aggregating->items[i].aggr;
		const uint64_t without_entry = aggregating->items[i].table.calls_without_entry,
			       over_losses = aggregating->items[i].table.calls_over_losses;

		if (aggr->kind != KYMO_AGGR_CALLS)
			continue;
		if (aggregating->items[i].n_forgotten)
			recording_warn(recording,
				       "'%s': %" PRIu64
				       " calls were open at a time, more than kymo keeps entries of: what they were "
				       "entered with is not known",
				       aggr->probe, aggregating->items[i].n_forgotten);
		if (!aggr->has_limits)
			continue;
		if (without_entry)
			recording_warn(recording,
				       "'%s': %" PRIu64
				       " %s had no entry in the recording; the duration is not known, and the filter "
				       "has left the return out",
				       aggr->probe, without_entry, without_entry == 1 ? "call" : "calls");
		if (over_losses)
			recording_warn(recording,
				       "'%s': records were lost during %" PRIu64
				       " %s; the duration is not known, and the filter has left the return out; a "
				       "larger --buffer has room for more records",
				       aggr->probe, over_losses, over_losses == 1 ? "call" : "calls");
	}
}
