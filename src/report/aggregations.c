#include "report/aggregations.h"

#include <stdlib.h>
#include <string.h>

#include "aggr/words.h"
#include "report/aggregation_json.h"
#include "report/aggregation_table.h"

#define ROWS_MAX (1u << 20)

/* ---- what the trace says of them ------------------------------------------------------------- */

static bool read_kind(const char *name, enum kymo_aggr_kind *ret)
{
	for (size_t i = 0; i < KYMO_AGGR_N_KINDS; i++)
		if (!strcmp(name, kymo_aggr_kind_name((enum kymo_aggr_kind)i))) {
			*ret = (enum kymo_aggr_kind)i;
			return true;
		}
	return false;
}

static void copy_key_word(struct kymo_aggr_word *word, struct kymo_aggr_piece piece)
{
	word->what = kymo_aggr_what_of(piece);
	word->text = strndup(piece.start, (size_t)(piece.end - piece.start));
}

/* Of the event of its rows. False: it makes no sense, or memory is out. */
static bool read_aggregation(const struct kymo_ctf_event *event, struct kymo_aggr *aggr)
{
	struct kymo_aggr_pieces pieces;
	struct kymo_error *error;

	if (!event->format || !event->source || !event->symbol || !read_kind(event->format, &aggr->kind))
		return false;
	error = kymo_aggr_split(aggr->kind, event->source, &pieces);
	if (error || pieces.probe.start || event->n_fields < pieces.n_keys + 1) {
		kymo_error_destroy(error);
		return false;
	}
	aggr->probe = strdup(event->symbol);
	aggr->low = pieces.low;
	aggr->high = pieces.high;
	aggr->step = pieces.step;
	aggr->n_keys = pieces.n_keys;
	aggr->has_value = pieces.value.start < pieces.value.end;
	for (size_t i = 0; i < pieces.n_keys; i++) {
		copy_key_word(&aggr->keys[i], pieces.keys[i]);
		aggr->keys[i].type = event->fields[i].type;
		aggr->keys[i].naming = kymo_naming_share(event->fields[i].naming);
	}
	if (aggr->has_value) {
		copy_key_word(&aggr->value, pieces.value);
		aggr->value.type = event->fields[event->n_fields - 1].type;
	}
	return aggr->probe;
}

static struct trace_aggregation *make_aggregation(const struct kymo_ctf_event *event,
						  const struct kymo_frame_tree *frames)
{
	struct trace_aggregation *made = calloc(1, sizeof(*made));

	if (!made || !read_aggregation(event, &made->aggr)) {
		if (made)
			kymo_aggr_deinit(&made->aggr);
		free(made);
		return NULL;
	}
	kymo_aggr_table_init(&made->coming, &made->aggr, ROWS_MAX);
	kymo_aggr_table_init(&made->table, &made->aggr, ROWS_MAX);
	made->coming.frames = made->table.frames = frames;
	return made;
}

static void destroy_aggregation(struct trace_aggregation *aggregation)
{
	if (!aggregation)
		return;
	kymo_aggr_table_deinit(&aggregation->coming);
	kymo_aggr_table_deinit(&aggregation->table);
	kymo_aggr_deinit(&aggregation->aggr);
	free(aggregation);
}

/* Other events of that aggregation, in the trace after that of its rows. */
static void note_events(struct aggregations *aggregations, uint64_t number)
{
	const struct kymo_ctf_trace *trace = aggregations->trace;

	for (size_t i = 0; i < trace->n_events; i++)
		if (trace->events[i].kind == KYMO_CTF_AGGREGATION &&
		    trace->events[i].offset / KYMO_CTF_N_ROWS == number)
			aggregations->by_event[i] = (uint32_t)aggregations->items.n;
}

struct kymo_error *kymo_aggregations_init(struct aggregations *aggregations, const struct kymo_ctf_trace *trace)
{
	*aggregations = (struct aggregations){ .trace = trace };
	aggregations->by_event = calloc(trace->n_events + 1, sizeof(*aggregations->by_event));
	if (!aggregations->by_event)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < trace->n_events; i++) {
		const struct kymo_ctf_event *event = &trace->events[i];
		struct trace_aggregation *made;

		if (event->kind != KYMO_CTF_AGGREGATION || event->offset % KYMO_CTF_N_ROWS != KYMO_CTF_ROW)
			continue;
		made = make_aggregation(event, &aggregations->frames);
		if (made && !kymo_vec_push(&aggregations->items, made)) {
			destroy_aggregation(made);
			return &kymo_error_no_memory;
		}
		if (!made)
			continue;
		aggregations->has_stacks |= kymo_aggr_has_stacks(&made->aggr);
		note_events(aggregations, event->offset / KYMO_CTF_N_ROWS);
	}
	return NULL;
}

void kymo_aggregations_deinit(struct aggregations *aggregations)
{
	for (size_t i = 0; i < aggregations->items.n; i++)
		destroy_aggregation(aggregations->items.items[i]);
	kymo_vec_deinit(&aggregations->items);
	kymo_frame_tree_deinit(&aggregations->frames);
	free(aggregations->by_event);
	*aggregations = (struct aggregations){ .by_event = NULL };
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool find_value(const struct kymo_ctf_record *record, const char *name, uint64_t *ret)
{
	for (uint32_t i = record->event->n_fields; i-- > 0;)
		if (!strcmp(record->event->fields[i].name, name) &&
		    kymo_type_is_integer(record->event->fields[i].type)) {
			*ret = record->values[i];
			return true;
		}
	return false;
}

static struct kymo_aggr_row *row_of(struct trace_aggregation *aggregation, const struct kymo_ctf_record *record)
{
	struct kymo_aggr_keys keys = { .faults = record->faults & ((1u << aggregation->aggr.n_keys) - 1) };

	if (record->event->n_fields < aggregation->aggr.n_keys)
		return NULL;
	for (size_t i = 0; i < aggregation->aggr.n_keys; i++) {
		const enum kymo_type type = record->event->fields[i].type;

		if (type != aggregation->aggr.keys[i].type || keys.faults & 1u << i)
			continue;
		if (type == KYMO_TYPE_STRING)
			kymo_aggr_set_text(&aggregation->coming, &keys, i, kymo_ctf_string(record, (uint32_t)i));
		else
			keys.values[i] = record->values[i];
	}
	return kymo_aggr_row(&aggregation->coming, &keys);
}

static void take_row(struct trace_aggregation *aggregation, const struct kymo_ctf_record *record)
{
	struct kymo_aggr_row *row = row_of(aggregation, record);
	uint64_t sum;

	if (!row)
		return;
	if (find_value(record, "sum", &sum))
		row->sum = kymo_aggr_is_signed(&aggregation->aggr) ? (__int128)(int64_t)sum : (__int128)sum;
	(void)find_value(record, "count", &row->count);
	(void)find_value(record, "min", &row->min);
	(void)find_value(record, "max", &row->max);
	aggregation->coming.hits += row->count;
}

static void take_bucket(struct trace_aggregation *aggregation, const struct kymo_ctf_record *record)
{
	struct kymo_aggr_row *row = row_of(aggregation, record);
	uint64_t low, count;

	if (row && row->buckets && find_value(record, "low", &low) && find_value(record, "count", &count))
		row->buckets[kymo_aggr_bucket(&aggregation->aggr, low)] = count;
}

static void take_end(struct trace_aggregation *aggregation, const struct kymo_ctf_record *record)
{
	(void)find_value(record, "lost", &aggregation->coming.lost);
	(void)find_value(record, "faults", &aggregation->coming.faults);
	(void)find_value(record, "without_entry", &aggregation->coming.calls_without_entry);
	(void)find_value(record, "over_losses", &aggregation->coming.calls_over_losses);
	kymo_aggr_table_deinit(&aggregation->table);
	aggregation->table = aggregation->coming;
	kymo_aggr_table_init(&aggregation->coming, &aggregation->aggr, ROWS_MAX);
	aggregation->coming.frames = aggregation->table.frames;
	aggregation->is_whole = true;
}

void kymo_aggregations_take(struct aggregations *aggregations, const struct kymo_ctf_record *record)
{
	const uint32_t number = aggregations->by_event[record->event - aggregations->trace->events];
	struct trace_aggregation *aggregation = number ? aggregations->items.items[number - 1] : NULL;

	if (!aggregation)
		return;
	if (aggregation->coming_tsc != record->tsc)
		kymo_aggr_table_clear(&aggregation->coming);
	aggregation->coming_tsc = record->tsc;
	switch (record->event->offset % KYMO_CTF_N_ROWS) {
	case KYMO_CTF_ROW:
		take_row(aggregation, record);
		break;
	case KYMO_CTF_BUCKET:
		take_bucket(aggregation, record);
		break;
	default:
		take_end(aggregation, record);
	}
}

/* ---- writing --------------------------------------------------------------------------------- */

struct kymo_error *kymo_aggregations_write(const struct aggregations *aggregations, const struct page *page, bool all)
{
	struct kymo_error *error = NULL;

	for (size_t i = 0; i < aggregations->items.n && !error; i++) {
		const struct trace_aggregation *aggregation = aggregations->items.items[i];

		error = kymo_aggregation_table_write(&aggregation->table, page, all);
		if (!error && !aggregation->is_whole)
			kymo_page_text(page, INK_ALARM,
				       "kymo was ended before it had written this table; --interval writes it again "
				       "and again\n");
	}
	return error;
}

struct kymo_error *kymo_aggregations_write_json(const struct aggregations *aggregations, FILE *out)
{
	struct kymo_error *error = NULL;

	fputs("\"aggregations\": [", out);
	for (size_t i = 0; i < aggregations->items.n && !error; i++) {
		const struct trace_aggregation *aggregation = aggregations->items.items[i];

		fputs(i ? ",\n  " : "\n  ", out);
		error = kymo_aggregation_json_write(&aggregation->table, aggregation->is_whole, out);
	}
	fputs("],\n", out);
	return error;
}
