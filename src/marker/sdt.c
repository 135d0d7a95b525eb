/*
 * SDT probes: what <sys/sdt.h> leaves in .note.stapsdt, which is not loaded. A descriptor is three addresses and three
 * strings: the location, where the linker has put .stapsdt.base, and the semaphore; provider, name and arguments. Where
 * .stapsdt.base is now tells how far prelink(8) has moved the module since: notes that are not loaded are not moved.
 * Reference: the wiki of SystemTap, "UserSpaceProbeImplementation".
 */
#include "marker/sdt.h"

#include <string.h>

#include "marker/check.h"
#include "marker/format.h"
#include "marker/marker.h"
#include "marker/operands.h"
#include "marker/order.h"
#include "marker/reader.h"
#include "marker/strings.h"
#include "sym/module.h"
#include "sym/notes.h"

#define NOTE_TYPE 3
#define SEMAPHORE_SIZE 2 /* bytes */
#define SHOWN_MAX 60     /* bytes of an operand, in a sentence */

#define LLX(x) ((unsigned long long)(x))

struct fields {
	uint64_t location, base, semaphore;
	const char *provider, *name, *arguments; /* in the note */
};

/* ---- arguments ------------------------------------------------------------------------------- */

/* "1st", "12th" of 1 … 99, without the digits */
static const char *ordinal_suffix(size_t n)
{
	static const char *const suffixes[] = { "th", "st", "nd", "rd" };

	return n / 10 == 1 || n % 10 > 3 ? suffixes[0] : suffixes[n % 10];
}

static struct kymo_error *say_why_not(struct marker_reader *reader, struct kymo_marker *marker, const char *operand,
				      size_t length, const char *why)
{
	struct kymo_error *error;
	char *sentence;

	error = marker_print(reader, &sentence, "its %zu%s argument '%.*s%s' %s", marker->n_fields,
			     ordinal_suffix(marker->n_fields), (int)(length < SHOWN_MAX ? length : SHOWN_MAX), operand,
			     length < SHOWN_MAX ? "" : "...", why);
	if (!error)
		marker->why_not = sentence;
	return error;
}

static struct kymo_error *read_arguments(struct marker_reader *reader, const char *at, struct kymo_marker *marker)
{
	struct kymo_marker_fields fields;
	struct kymo_error *error = NULL;
	const char *operand;
	size_t n = 0, length;
	char *sentence;

	while (!error && marker_next_operand(&at, &operand, &length)) {
		size_t i = marker->n_fields;
		const char *why;

		if (++n > KYMO_EVENT_MAX_ARGS)
			continue;
		marker->n_fields++;
		if (marker_parse_operand(reader->module, operand, length, &marker->fetches[i], &marker->fields[i].type,
					 &why) &&
		    !marker->why_not)
			error = say_why_not(reader, marker, operand, length, why);
	}
	if (!error && n > KYMO_EVENT_MAX_ARGS && !marker->why_not) {
		error = marker_print(reader, &sentence, "it has %zu arguments; kymo records at most %d", n,
				     KYMO_EVENT_MAX_ARGS);
		if (!error)
			marker->why_not = sentence;
	}
	marker->n_fetches = error || marker->why_not ? 0 : marker->n_fields;
	fields.n = marker->n_fields;
	kymo_marker_make_names(NULL, 0, &fields);
	return error ? error : marker_copy_names(reader, &fields, marker);
}

/* ---- notes ----------------------------------------------------------------------------------- */

/* The string at `*at` of the descriptor, and what is after it. NULL where it does not end. */
static const char *take_string(const struct kymo_note *note, size_t *at)
{
	const char *text = (const char *)note->desc + *at;
	const char *end = *at < note->size ? memchr(text, '\0', note->size - *at) : NULL;

	if (!end)
		return NULL;
	*at += (size_t)(end - text) + 1;
	return text;
}

static struct kymo_error *read_fields(const struct marker_reader *reader, const struct kymo_note *note,
				      struct fields *ret)
{
	size_t at = 3 * sizeof(uint64_t);
	struct fields fields;

	if (note->size < at)
		return marker_bad(reader, note, NULL, "it has %zu bytes; an SDT probe has more than %zu", note->size,
				  at);
	memcpy(&fields.location, note->desc, sizeof(fields.location));
	memcpy(&fields.base, note->desc + 8, sizeof(fields.base));
	memcpy(&fields.semaphore, note->desc + 16, sizeof(fields.semaphore));
	fields.provider = take_string(note, &at);
	fields.name = fields.provider ? take_string(note, &at) : NULL;
	fields.arguments = fields.name ? take_string(note, &at) : NULL;
	if (!fields.arguments)
		return marker_bad(reader, note, NULL, "its strings do not end within it");
	if (!*fields.provider || !*fields.name)
		return marker_bad(reader, note, NULL, "it has no name");
	if (strlen(fields.provider) >= MARKER_NAME_SIZE || strlen(fields.name) >= MARKER_NAME_SIZE)
		return marker_bad(reader, note, NULL, "its name is longer than %d bytes", MARKER_NAME_SIZE - 1);
	*ret = fields;
	return NULL;
}

static bool has_switch(const struct marker_reader *reader, const struct kymo_marker_switch *key)
{
	return reader->switches.n &&
	       bsearch(key, reader->switches.items, reader->switches.n, sizeof(*key), marker_by_site);
}

/* Each site of kymo's is an SDT probe without arguments, too, for others: kymo has the marker itself. */
static bool is_of_kymo(const struct marker_reader *reader, const struct fields *fields)
{
	const struct kymo_marker_switch patched = { .site = fields->location };
	const struct kymo_marker_switch portable = { .provider = fields->provider, .name = fields->name };

	return has_switch(reader, &patched) || (!*fields->arguments && has_switch(reader, &portable));
}

static struct kymo_error *add_marker(struct marker_reader *reader, const struct fields *fields)
{
	struct kymo_marker marker = { .is_sdt = true, .location = fields->location, .semaphore = fields->semaphore };
	char *provider, *name;
	struct kymo_error *error = marker_copy(reader, fields->provider, strlen(fields->provider), &provider);

	if (!error)
		error = marker_copy(reader, fields->name, strlen(fields->name), &name);
	if (error)
		return error;
	marker.provider = provider;
	marker.name = name;
	error = read_arguments(reader, fields->arguments, &marker);
	if (error)
		return error;
	return kymo_vec_push(&reader->markers, marker) ? NULL : &kymo_error_no_memory;
}

struct kymo_error *marker_read_sdt(struct marker_reader *reader, uint64_t base, const struct kymo_note *note)
{
	struct kymo_error *error;
	struct fields fields;

	if (note->type != NOTE_TYPE)
		return NULL;
	error = read_fields(reader, note, &fields);
	/* The linker has dropped the function that it was in. */
	if (error || !fields.location)
		return error;
	if (base && fields.base) {
		fields.location += base - fields.base;
		fields.semaphore += fields.semaphore ? base - fields.base : 0;
	}
	if (is_of_kymo(reader, &fields))
		return NULL;
	if (!kymo_module_is_code(reader->module, fields.location, 1))
		return marker_bad(reader, note, fields.name, "its location 0x%llx is not in the program's text",
				  LLX(fields.location));
	if (fields.semaphore && !marker_is_writable(reader->module, fields.semaphore, SEMAPHORE_SIZE))
		return marker_bad(reader, note, fields.name, "its semaphore 0x%llx is not in the program's data",
				  LLX(fields.semaphore));
	return add_marker(reader, &fields);
}
