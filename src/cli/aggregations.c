#include "cli/aggregations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "aggr/marker_pairs.h"
#include "aggr/words.h"
#include "base/caret.h"
#include "base/cleanup.h"
#include "cli/spec_names.h"
#include "cli/spec_source.h"
#include "probe/spec/spec_marker.h"

void cli_aggregations_deinit(struct cli_aggregations *aggregations)
{
	for (size_t i = 0; i < aggregations->items.n; i++)
		kymo_aggr_deinit(&aggregations->items.items[i]);
	kymo_vec_deinit(&aggregations->items);
	kymo_vec_deinit(&aggregations->entries);
}

void cli_aggregations_note_probe(struct cli_aggregations *aggregations, const struct cli_probes *specs, size_t n)
{
	aggregations->last_spec = specs->n;
	aggregations->n_last = n;
}

/* ---- one while it is read -------------------------------------------------------------------- */

struct reader {
	struct cli_aggregations *aggregations;
	struct cli_probes *specs;
	const char *text;
	struct kymo_aggr_pieces pieces;
	struct kymo_aggr aggr;
	size_t spec, entry; /* places in `specs`; `entry` where calls are paired */
	bool is_paired;
};

static bool is_value(struct kymo_aggr_piece piece)
{
	return piece.start < piece.end && kymo_aggr_what_of(piece) == KYMO_AGGR_VALUE;
}

/* Whether it is known at a return only. */
static bool is_of_return(struct kymo_aggr_piece piece)
{
	return piece.start < piece.end &&
	       (kymo_aggr_what_of(piece) == KYMO_AGGR_DURATION || kymo_aggr_has_name(piece, "retval"));
}

/* The first piece that is, or one without a start. */
static struct kymo_aggr_piece find_of_return(const struct reader *reader)
{
	const struct kymo_aggr_pieces *pieces = &reader->pieces;

	if (pieces->n_limits)
		return pieces->limits[0];
	for (size_t i = 0; i < pieces->n_keys && !is_of_return(pieces->value); i++)
		if (is_of_return(pieces->keys[i]))
			return pieces->keys[i];
	return is_of_return(pieces->value) ? pieces->value : (struct kymo_aggr_piece){ .start = NULL };
}

/* Whether something is known at a function's entry only, or how long it takes from there. */
static bool wants_entry(const struct kymo_aggr_pieces *pieces)
{
	const struct kymo_aggr_piece value = pieces->value;
	bool wants = pieces->n_limits;

	if (value.start < value.end)
		wants |= kymo_aggr_what_of(value) == KYMO_AGGR_DURATION || (is_value(value) && !is_of_return(value));
	for (size_t i = 0; i < pieces->n_keys; i++)
		wants |= kymo_aggr_what_of(pieces->keys[i]) == KYMO_AGGR_STACK ||
			 (is_value(pieces->keys[i]) && !is_of_return(pieces->keys[i]));
	return wants;
}

/* ---- probes ---------------------------------------------------------------------------------- */

static struct kymo_error *push_spec(struct cli_probes *specs, struct kymo_spec *spec)
{
	if (kymo_vec_push(specs, *spec))
		return NULL;
	kymo_spec_deinit(spec);
	return &kymo_error_no_memory;
}

static struct kymo_error *several_locations_error(const struct reader *reader, size_t n)
{
	return kymo_error_at(reader->text, reader->pieces.probe.start ? reader->pieces.probe.start : reader->text,
			     "this line of source has %zu locations, and an aggregation is of one probe; name a "
			     "function, or one location as FILE:0xOFFSET ('kymo list --lines' has them)",
			     n);
}

/* "query__start|query__begin" of "query__done", as reports pair them; a fresh string, or NULL where it is no such name,
 * or memory is out. */
static char *start_of(const char *marker)
{
	char *all = kymo_marker_begin(marker, 0), *one;

	for (size_t i = 1; all && (one = kymo_marker_begin(marker, i)); i++) {
		char *more;
		const int n = asprintf(&more, "%s|%s", all, one);

		free(all);
		free(one);
		all = n < 0 ? NULL : more;
	}
	return all;
}

static struct kymo_error *add_marker(struct reader *reader)
{
	const struct kymo_aggr_piece marker = reader->pieces.marker;
	kymo_cleanup_free char *name = strndup(marker.start, (size_t)(marker.end - marker.start));
	struct kymo_spec spec;
	struct kymo_error *error = name ? kymo_spec_parse_marker(name, &spec) : &kymo_error_no_memory;

	return error ? error : push_spec(reader->specs, &spec);
}

/* The duration of what a marker ends is known where another one begins it. */
static struct kymo_error *check_marker(const struct reader *reader, struct kymo_aggr_piece of_return)
{
	const struct kymo_spec *spec = &reader->specs->items[reader->spec];
	kymo_cleanup_free char *start = start_of(spec->marker);

	if (start && kymo_aggr_what_of(of_return) != KYMO_AGGR_VALUE)
		return NULL;
	if (start && reader->pieces.n_limits)
		return NULL;
	return kymo_error_at(
		reader->text, of_return.start,
		"markers have no '%.*s', but one whose name ends with a word such as done has the duration since its "
		"beginning",
		(int)(of_return.end - of_return.start), of_return.start);
}

/* The probe that the aggregation's own text names. */
static struct kymo_error *add_own(struct reader *reader, const char *text, bool is_return)
{
	kymo_cleanup(cli_specs_deinit) struct cli_specs found = { 0 };
	struct kymo_error *error = cli_specs_parse(text, is_return ? kymo_spec_parse_return : kymo_spec_parse, &found);

	if (error)
		return error;
	if (found.items.n != 1)
		return several_locations_error(reader, found.items.n);
	found.items.n = 0;
	return push_spec(reader->specs, &found.items.items[0]);
}

/* The probe that the text names, or the last one before it. */
static struct kymo_error *find_probe(struct reader *reader)
{
	const struct kymo_aggr_piece own = reader->pieces.probe, of_return = find_of_return(reader);
	kymo_cleanup_free char *text = NULL;
	struct kymo_error *error;

	if (!own.start) {
		if (!reader->aggregations->last_spec)
			return kymo_error_at(reader->text, reader->text,
					     "of what? Begin with FILE:FUNCTION, or give a probe before it: -p "
					     "libc:malloc --count 'by tid'");
		if (reader->aggregations->n_last != 1)
			return several_locations_error(reader, reader->aggregations->n_last);
		reader->spec = reader->aggregations->last_spec - 1;
		if (reader->specs->items[reader->spec].waits)
			return kymo_error_at(
				reader->text, reader->text,
				"the probe before it records the duration of its calls, or has it in its "
				"filter: name the function here, as in 'libc:read /duration > 5ms/ by tid'");
	} else if (reader->pieces.marker.start) {
		error = add_marker(reader);
		if (error)
			return error;
		reader->spec = reader->specs->n - 1;
	} else {
		text = kymo_aggr_probe_text(&reader->pieces);
		if (!text)
			return &kymo_error_no_memory;
		error = add_own(reader, text, of_return.start);
		if (error)
			return error;
		reader->spec = reader->specs->n - 1;
	}
	if (of_return.start && reader->specs->items[reader->spec].marker)
		return check_marker(reader, of_return);
	if (of_return.start && !reader->specs->items[reader->spec].is_return)
		return kymo_error_at(reader->text, of_return.start,
				     "'%.*s' is known where the function returns; write -r in place of -p",
				     (int)(of_return.end - of_return.start), of_return.start);
	return NULL;
}

static uint32_t number(struct cli_aggregations *aggregations, struct kymo_spec *spec)
{
	if (!spec->aggregated)
		spec->aggregated = ++aggregations->n_numbers;
	return spec->aggregated;
}

static struct kymo_error *entry_of(const struct kymo_spec *spec, struct kymo_spec *ret)
{
	kymo_cleanup_free char *start = spec->marker ? start_of(spec->marker) : NULL;

	if (!spec->marker)
		return kymo_spec_entry_of(spec, ret);
	return start ? kymo_spec_parse_marker(start, ret) : &kymo_error_no_memory;
}

/* The entries of the function: one probe for all aggregations of its returns. */
static struct kymo_error *find_entry(struct reader *reader)
{
	struct cli_aggregations *aggregations = reader->aggregations;
	const uint32_t own = reader->specs->items[reader->spec].aggregated;
	struct kymo_error *error;
	struct kymo_spec spec;

	while (aggregations->entries.n <= own)
		if (!kymo_vec_push(&aggregations->entries, 0))
			return &kymo_error_no_memory;
	for (size_t i = 0; i < reader->specs->n && aggregations->entries.items[own]; i++)
		if (reader->specs->items[i].aggregated == aggregations->entries.items[own]) {
			reader->entry = i;
			return NULL;
		}
	error = entry_of(&reader->specs->items[reader->spec], &spec);
	if (error)
		return error;
	aggregations->entries.items[own] = number(aggregations, &spec);
	error = push_spec(reader->specs, &spec);
	reader->entry = reader->specs->n - 1;
	return error;
}

static struct kymo_error *find_probes(struct reader *reader)
{
	struct kymo_error *error = find_probe(reader);
	struct kymo_spec *spec;
	uint32_t own;

	if (error)
		return error;
	spec = &reader->specs->items[reader->spec];
	own = number(reader->aggregations, spec);
	reader->is_paired =
		(spec->is_return && wants_entry(&reader->pieces)) || (spec->marker && find_of_return(reader).start);
	if (!reader->is_paired) {
		reader->aggr.hit = own;
		return NULL;
	}
	error = find_entry(reader);
	if (error)
		return error;
	reader->aggr.leave = own;
	reader->aggr.entry = reader->specs->items[reader->entry].aggregated;
	return NULL;
}

/* ---- words ----------------------------------------------------------------------------------- */

static struct kymo_error *parse_key_word(struct reader *reader, struct kymo_aggr_piece piece,
					 struct kymo_aggr_word *word)
{
	struct kymo_spec *spec = &reader->specs->items[reader->spec];
	struct kymo_error *error;
	size_t argument;

	word->what = kymo_aggr_what_of(piece);
	word->text = strndup(piece.start, (size_t)(piece.end - piece.start));
	if (!word->text)
		return &kymo_error_no_memory;
	if (word->what == KYMO_AGGR_STACK && spec->marker)
		return kymo_error_at(reader->text, piece.start,
				     "stacks are for probes, and '%s' is a marker; name the function that it is in",
				     kymo_spec_typed(spec));
	if (word->what != KYMO_AGGR_VALUE)
		return NULL;
	word->is_of_return = spec->is_return && is_of_return(piece);
	if (reader->is_paired && !word->is_of_return)
		spec = &reader->specs->items[reader->entry];
	error = kymo_spec_add_value(spec, reader->text, piece.start, piece.end, &argument);
	word->argument = error ? 0 : (uint8_t)argument;
	return error;
}

static struct kymo_error *take_words(struct reader *reader)
{
	const struct kymo_aggr_pieces *pieces = &reader->pieces;
	struct kymo_aggr *aggr = &reader->aggr;
	struct kymo_error *error = NULL;

	aggr->probe = pieces->probe.start
			      ? strndup(pieces->probe.start, (size_t)(pieces->probe.end - pieces->probe.start))
			      : strdup(kymo_spec_typed(&reader->specs->items[reader->spec]));
	if (!aggr->probe)
		return &kymo_error_no_memory;
	aggr->has_limits = pieces->n_limits;
	aggr->duration_min = pieces->duration_min;
	aggr->duration_max = pieces->duration_max;
	aggr->low = pieces->low;
	aggr->high = pieces->high;
	aggr->step = pieces->step;
	aggr->has_value = pieces->value.start < pieces->value.end;
	if (aggr->has_value)
		error = parse_key_word(reader, pieces->value, &aggr->value);
	for (; aggr->n_keys < pieces->n_keys && !error; aggr->n_keys++)
		error = parse_key_word(reader, pieces->keys[aggr->n_keys], &aggr->keys[aggr->n_keys]);
	return error;
}

/* Texts are keys: strings, and arrays of characters. */
static bool is_text(const struct kymo_spec_arg *arg)
{
	return arg->fetch.type == KYMO_TYPE_STRING ||
	       (arg->fetch.type == KYMO_TYPE_BYTES && arg->naming && arg->naming->is_character);
}

/* Of a word that is an argument of the probe: types are known now. */
static struct kymo_error *check_type(const struct reader *reader, const struct kymo_aggr_word *word, bool is_key)
{
	const bool is_of_entry = reader->is_paired && !word->is_of_return;
	const struct kymo_spec *spec = &reader->specs->items[is_of_entry ? reader->entry : reader->spec];
	const struct kymo_spec_arg *arg = &spec->args[word->argument];
	const struct kymo_spec_value *value;

	if (word->what != KYMO_AGGR_VALUE || kymo_type_is_integer(arg->fetch.type) || (is_key && is_text(arg)))
		return NULL;
	value = &spec->values[word->argument - kymo_spec_first_value(spec)];
	return kymo_error_at(value->text, value->text + value->start,
			     is_key ? "keys are integers and texts, and '%.*s' is bytes or a floating-point number"
				    : "aggregations are of integers, and '%.*s' is a text, bytes or a floating-point "
				      "number",
			     (int)(value->end - value->start), value->text + value->start);
}

static struct kymo_error *check_types(const struct reader *reader)
{
	struct kymo_error *error = reader->aggr.has_value ? check_type(reader, &reader->aggr.value, false) : NULL;

	for (size_t i = 0; i < reader->aggr.n_keys && !error; i++)
		error = check_type(reader, &reader->aggr.keys[i], true);
	return error;
}

/* Whether `marker`, which is recorded, is `name`, or begins what that ends. */
static bool begins(const char *marker, const char *name)
{
	bool does = !strcmp(marker, name), is_last = false;

	for (size_t i = 0; !does && !is_last; i++) {
		kymo_cleanup_free char *start = kymo_marker_begin(name, i);

		is_last = !start;
		does = start && !strcmp(marker, start);
	}
	return does;
}

/* "m postgres:query__done …" of "postgres:query__done …" where -m has named its start or itself before: a fresh string.
 * NULL: it is as it is, or memory is out. */
static char *as_marker(const struct cli_probes *specs, const char *text)
{
	kymo_cleanup_free char *name = strndup(text, strcspn(text, " \t/"));
	char *ret;

	for (size_t i = 0; i < specs->n && name; i++)
		if (specs->items[i].marker && begins(specs->items[i].marker, name))
			return asprintf(&ret, "m %s", text) < 0 ? NULL : ret;
	return NULL;
}

static struct kymo_error *add(struct cli_aggregations *aggregations, enum kymo_aggr_kind kind, const char *text,
			      struct cli_probes *specs)
{
	struct reader reader = { .aggregations = aggregations, .specs = specs, .text = text, .aggr = { .kind = kind } };
	struct kymo_error *error = kymo_aggr_split(kind, text, &reader.pieces);

	if (!error)
		error = find_probes(&reader);
	if (!error)
		error = take_words(&reader);
	if (!error)
		error = cli_spec_find_names(&specs->items[reader.spec]);
	if (!error && reader.is_paired)
		error = cli_spec_find_names(&specs->items[reader.entry]);
	if (!error)
		error = check_types(&reader);
	if (!error && !kymo_vec_push(&aggregations->items, reader.aggr))
		error = &kymo_error_no_memory;
	if (error)
		kymo_aggr_deinit(&reader.aggr);
	return error;
}

struct kymo_error *cli_aggregations_add(struct cli_aggregations *aggregations, enum kymo_aggr_kind kind,
					const char *text, struct cli_probes *specs)
{
	kymo_cleanup_free char *marker = as_marker(specs, text);

	return add(aggregations, kind, marker ? marker : text, specs);
}

/* ---- what the calls of a probe that is recorded are known by ---------------------------------- */

static struct kymo_error *check_room(const struct kymo_spec *spec)
{
	if (spec->n_args < KYMO_EVENT_MAX_ARGS)
		return NULL;
	return kymo_error_at(spec->text, spec->text,
			     "for the duration and the entry() of its calls a probe has room for %d arguments: leave "
			     "one out",
			     KYMO_EVENT_MAX_ARGS - 1);
}

static bool has_entry_values(const struct kymo_spec *spec)
{
	bool has = false;

	for (size_t i = 0; i < spec->n_args; i++)
		has |= spec->args[i].is_of_entry;
	return has;
}

/* The entry records what the record of the return gets, in the same order. */
static struct kymo_error *add_entry_values(struct reader *reader)
{
	const struct kymo_spec *spec = &reader->specs->items[reader->spec];
	struct kymo_spec *entry = &reader->specs->items[reader->entry];
	struct kymo_error *error = NULL;
	size_t argument;

	reader->aggr.entry_value = (uint8_t)entry->n_args;
	for (size_t i = 0; i < spec->n_args && !error; i++) {
		const char *start = spec->text + spec->args[i].entry_start;

		if (spec->args[i].is_of_entry)
			error = kymo_spec_add_value(entry, spec->text, start, start + spec->args[i].entry_size,
						    &argument);
	}
	return error;
}

struct kymo_error *cli_aggregations_add_calls(struct cli_aggregations *aggregations,
					      const struct kymo_aggr_pieces *limits, struct cli_probes *specs)
{
	struct reader reader = {
		.aggregations = aggregations,
		.specs = specs,
		.spec = aggregations->last_spec - 1,
		.aggr = { .kind = KYMO_AGGR_CALLS,
			  .has_limits = limits->n_limits,
			  .duration_min = limits->duration_min,
			  .duration_max = limits->duration_max },
	};
	struct kymo_spec *spec = &specs->items[reader.spec];
	struct kymo_error *error = NULL;

	reader.aggr.has_entry_values = has_entry_values(spec);
	if (!limits->n_limits && !spec->duration && !reader.aggr.has_entry_values)
		return NULL;
	error = check_room(spec);
	if (error)
		return error;
	spec->waits = true;
	spec->is_limited = limits->n_limits;
	reader.aggr.leave = number(aggregations, spec);
	error = find_entry(&reader); /* which moves the specs */
	if (!error)
		error = add_entry_values(&reader);
	if (!error)
		error = cli_spec_find_names(&specs->items[reader.entry]);
	if (error)
		return error;
	reader.aggr.entry = specs->items[reader.entry].aggregated;
	reader.aggr.probe = strndup(limits->probe.start, (size_t)(limits->probe.end - limits->probe.start));
	if (reader.aggr.probe && kymo_vec_push(&aggregations->items, reader.aggr))
		return NULL;
	free(reader.aggr.probe);
	return &kymo_error_no_memory;
}
