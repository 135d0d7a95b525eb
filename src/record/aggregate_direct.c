#include "record/aggregate_direct.h"

#include "record/aggregate.h"
#include "record/aggregate_fields.h"
#include "wire/event.h"

/* The only aggregation that wants the numbered probe, if it has a table and the probe's hits are its hits. */
static struct aggregation *find_only(const struct aggregating *aggregating, uint32_t number)
{
	struct aggregation *only = NULL;

	for (size_t i = 0; i < aggregating->n; i++) {
		struct aggregation *aggregation = &aggregating->items[i];
		const struct kymo_aggr *aggr = &aggregation->aggr;

		if (aggr->entry == number || aggr->leave == number)
			return NULL;
		if (aggr->hit != number)
			continue;
		if (only || !aggregation_has_table(aggregation))
			return NULL;
		only = aggregation;
	}
	return only;
}

static bool find_word(const struct kymo_ctf_event *event, const struct kymo_aggr_word *word, struct direct_word *ret)
{
	uint32_t at = event->has_faults;

	if (word->what == KYMO_AGGR_TID) {
		*ret = (struct direct_word){ .is_tid = true };
		return true;
	}
	if (word->what != KYMO_AGGR_VALUE || word->argument >= event->n_fields ||
	    !kymo_type_is_integer(event->fields[word->argument].type))
		return false;
	for (uint32_t i = 0; i < word->argument; i++)
		at += kymo_type_size(event->fields[i].type);
	*ret = (struct direct_word){ .at = at, .type = event->fields[word->argument].type };
	return true;
}

struct aggregate_direct aggregate_direct_of(const struct aggregating *aggregating, const struct kymo_ctf_event *event)
{
	const struct aggregate_direct none = { .aggregation = NULL };
	struct aggregation *aggregation = event->aggregated && event->is_fixed && !event->is_written
						  ? find_only(aggregating, event->aggregated)
						  : NULL;
	struct aggregate_direct direct = {
		.aggregation = aggregation,
		.has_faults = event->has_faults,
	};

	if (!aggregation)
		return none;
	for (size_t i = 0; i < aggregation->aggr.n_keys; i++)
		if (!find_word(event, &aggregation->aggr.keys[i], &direct.keys[i]))
			return none;
	if (aggregation->aggr.has_value && !find_word(event, &aggregation->aggr.value, &direct.value))
		return none;
	return direct;
}

static uint64_t read_word(const struct direct_word *word, int32_t tid, const uint8_t *body)
{
	return word->is_tid ? (uint64_t)(int64_t)tid : aggregate_field_value(body + word->at, word->type);
}

bool aggregate_direct_add(const struct aggregate_direct *direct, int32_t tid, const uint8_t *body)
{
	const struct kymo_aggr *aggr = &direct->aggregation->aggr;
	struct kymo_aggr_keys keys = { .faults = 0 };
	uint64_t value = 0;

	if (direct->has_faults && body[0])
		return false;
	for (size_t i = 0; i < aggr->n_keys; i++)
		keys.values[i] = read_word(&direct->keys[i], tid, body);
	if (aggr->has_value)
		value = read_word(&direct->value, tid, body);
	kymo_aggr_add(&direct->aggregation->table, &keys, value);
	return true;
}
