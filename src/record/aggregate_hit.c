#include "record/aggregate_hit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "probe/code/events.h"
#include "record/describe.h"
#include "record/kept_calls.h"

/* ---- whose it is ----------------------------------------------------------------------------- */

static const struct target *target_of(const struct recording *recording, const struct record_source *source)
{
	for (size_t i = 0; i < recording->run.targets.n; i++)
		if (recording->run.targets.items[i]->source == source && !recording->run.targets.items[i]->is_sharing)
			return recording->run.targets.items[i];
	return NULL;
}

/* The name of a thread that the table of threads does not have yet; it has it then. */
static bool look_at_comm(struct recording *recording, const struct target *target, int32_t tid, char comm[32])
{
	kymo_cleanup_free char *text = NULL;
	char path[64];

	if (!target || target->inner_pid != target->pid)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", target->pid, tid);
	if (kymo_read_file(AT_FDCWD, path, 256, &text, NULL))
		return false;
	text[strcspn(text, "\n")] = '\0';
	snprintf(comm, 32, "%s", text);
	recording_note_thread(recording, target, tid, false, comm);
	return true;
}

/* The thread of a hit, and its process; of the source's last one it is known. */
static void look_at_thread(struct recording *recording, struct record_source *source, int32_t tid, uint64_t tsc)
{
	const struct kymo_ctf_trace *trace = &recording->output.files.trace;
	const struct kymo_ctf_thread *thread;
	struct source_hits *hits = source->hits;
	const struct target *target;

	if (hits->has_comm && hits->tid == tid)
		return;
	target = target_of(recording, source);
	thread = kymo_ctf_trace_thread(trace, tid, tsc);
	hits->tid = tid;
	hits->pid = target ? target->inner_pid : thread && thread->pid ? thread->pid : source->pid;
	if (thread && (!thread->pid || thread->pid == hits->pid))
		snprintf(hits->comm, sizeof(hits->comm), "%s", thread->comm);
	else if (!look_at_comm(recording, target, tid, hits->comm)) {
		/* It has ended: it is called as its process is, unless it has named itself. */
		thread = kymo_ctf_trace_thread(trace, hits->pid, tsc);
		snprintf(hits->comm, sizeof(hits->comm), "%s", thread ? thread->comm : "");
	}
	hits->has_comm = true;
}

/* False: it was not available. */
static bool value_of(const struct hit *hit, const struct kymo_aggr_word *word, uint64_t *ret)
{
	const bool is_of_return = word->is_of_return && hit->aggregation->aggr.entry;
	const uint8_t faults = is_of_return ? hit->return_faults : hit->faults;

	*ret = (is_of_return ? hit->return_values : hit->values)[word->argument];
	return !(faults & 1u << word->argument);
}

/* "malloc" of "malloc+0x12"; a place that no function has is a fault. */
static void set_function(const struct hit *hit, size_t i, struct kymo_aggr_keys *keys)
{
	const char *symbol = hit->recording->output.files.trace.events[hit->event].symbol;
	kymo_cleanup_free char *function = symbol ? strndup(symbol, kymo_event_function_size(symbol)) : NULL;

	if (function && *function)
		kymo_aggr_set_text(&hit->aggregation->table, keys, i, function);
	else
		keys->faults |= 1u << i;
}

static void set_value(const struct hit *hit, size_t i, struct kymo_aggr_keys *keys)
{
	const struct kymo_aggr_word *word = &hit->aggregation->aggr.keys[i];
	const bool is_text = word->type == KYMO_TYPE_STRING;
	uint64_t value;

	if (!value_of(hit, word, &value))
		keys->faults |= 1u << i;
	else if (is_text && !value)
		keys->has_no_room = true;
	else if (is_text)
		kymo_aggr_set_text(&hit->aggregation->table, keys, i,
				   kymo_strings_text(&hit->recording->output.aggregating->texts, value));
	else
		keys->values[i] = value;
}

static void set_key(const struct hit *hit, size_t i, struct kymo_aggr_keys *keys)
{
	const struct kymo_aggr_word *word = &hit->aggregation->aggr.keys[i];
	const struct source_hits *who = hit->source->hits;
	struct kymo_aggr_table *table = &hit->aggregation->table;

	switch (word->what) {
	case KYMO_AGGR_TID:
		keys->values[i] = (uint64_t)(int64_t)hit->tid;
		break;
	case KYMO_AGGR_PID:
		look_at_thread(hit->recording, hit->source, hit->tid, hit->tsc);
		keys->values[i] = (uint64_t)(int64_t)who->pid;
		break;
	case KYMO_AGGR_COMM:
		look_at_thread(hit->recording, hit->source, hit->tid, hit->tsc);
		kymo_aggr_set_text(table, keys, i, who->comm);
		break;
	case KYMO_AGGR_PROBE:
		kymo_aggr_set_text(table, keys, i, hit->recording->output.files.trace.events[hit->event].name);
		break;
	case KYMO_AGGR_STACK:
		keys->values[i] = hit->stack;
		keys->faults |= hit->stack ? 0 : 1u << i;
		break;
	case KYMO_AGGR_FUNC:
		set_function(hit, i, keys);
		break;
	default:
		set_value(hit, i, keys);
	}
}

/* The first of them counts until it is dealt with. */
static void note_condition(const struct hit *hit)
{
	struct aggregating *aggregating = hit->recording->output.aggregating;

	if (aggregating->condition.aggr)
		return;
	aggregating->condition.aggr = &hit->aggregation->aggr;
	aggregating->condition.tsc = hit->tsc;
	aggregating->condition.tid = hit->tid;
}

void aggregate_add_hit(const struct hit *hit)
{
	const struct kymo_aggr *aggr = &hit->aggregation->aggr;
	struct kymo_aggr_table *table = &hit->aggregation->table;
	struct kymo_aggr_keys keys = { .faults = 0 };
	uint64_t value = 0;

	if (!aggregation_has_table(hit->aggregation)) {
		note_condition(hit);
		return;
	}
	for (size_t i = 0; i < aggr->n_keys; i++)
		set_key(hit, i, &keys);
	if (aggr->has_value && aggr->value.what == KYMO_AGGR_DURATION)
		value = kymo_ctf_duration_ns(&hit->recording->output.files.trace, hit->ticks);
	else if (aggr->has_value && !value_of(hit, &aggr->value, &value)) {
		table->faults++;
		return;
	}
	kymo_aggr_add(table, &keys, value);
}

/* Whether a call is as short and as long as the filter wants it. */
static bool is_within(const struct hit *hit)
{
	const struct kymo_aggr *aggr = &hit->aggregation->aggr;
	uint64_t ns;

	if (!aggr->has_limits)
		return true;
	ns = kymo_ctf_duration_ns(&hit->recording->output.files.trace, hit->ticks);
	return ns >= aggr->duration_min && ns <= aggr->duration_max;
}

static uint64_t ticks_of(const struct frame *entry, const struct kymo_call_hit *leave)
{
	return leave->tsc > entry->begin ? leave->tsc - entry->begin : 0;
}

static void keep_call(struct hit *hit, enum kymo_call_end end, const struct frame *entry,
		      const struct kymo_call_hit *leave)
{
	struct aggregating *aggregating = hit->recording->output.aggregating;
	const struct kymo_open_calls *calls = &hit->source->hits->calls[hit->aggregation - aggregating->items];
	struct ended_call call = { .leave = leave, .is_known = end == KYMO_CALL_RETURNED };

	if (call.is_known) {
		call.ns = kymo_ctf_duration_ns(&hit->recording->output.files.trace, ticks_of(entry, leave));
		call.entry_event = entry->record_event;
		if (entry->record_size)
			call.entry = kymo_entry_records_get(&calls->entries, entry->record_at);
	}
	if (!hit->error)
		hit->error = kept_calls_add(hit->recording, hit->source, hit->aggregation, &call);
}

void aggregate_end_call(void *data, enum kymo_call_end end, const struct frame *entry,
			const struct kymo_call_hit *leave)
{
	struct hit *hit = data;
	struct kymo_aggr_table *table = &hit->aggregation->table;

	if (hit->aggregation->aggr.kind == KYMO_AGGR_CALLS)
		keep_call(hit, end, entry, leave);
	if (end != KYMO_CALL_RETURNED) {
		table->calls_over_losses += end == KYMO_CALL_OVER_LOSS;
		table->calls_without_entry += end == KYMO_CALL_WITHOUT_ENTRY;
		return;
	}
	hit->values = entry->kept;
	hit->faults = entry->kept_faults;
	hit->stack = entry->kept_stack;
	hit->return_values = leave->values;
	hit->return_faults = leave->faults;
	hit->ticks = ticks_of(entry, leave);
	hit->tid = leave->tid;
	hit->tsc = leave->tsc;
	hit->event = leave->event;
	if (hit->aggregation->aggr.kind != KYMO_AGGR_CALLS && is_within(hit))
		aggregate_add_hit(hit);
}
