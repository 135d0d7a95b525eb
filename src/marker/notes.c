/*
 * kymo's own markers: notes of the owner "kymo", laid out as struct kymo_marker_note says. Each address and string in
 * them is checked; what does not fit is an error, because the code that writes it belongs to the program that kymo
 * changes.
 */
#include "marker/notes.h"

#include <string.h>

#include "base/cleanup.h"
#include "marker/check.h"
#include "marker/format.h"
#include "marker/marker.h"
#include "marker/operands.h"
#include "marker/reader.h"
#include "marker/strings.h"

/* Only the layouts are wanted of it. */
#define KYMO_NO_MARKERS
#define KYMO_NO_MARK
#include "arch/marker.h"
#include "kymo/marker.h"
#include "sym/module.h"
#include "sym/notes.h"

#define FORMAT_SIZE 1024
#define FILE_SIZE 4096
#define OPERANDS_SIZE 256
#define LONGEST 65536 /* of a format that costs its marker alone */
#define TOO_LONG "its format is longer than 1,023 bytes"

#define LLX(x) ((unsigned long long)(x))

enum string { NAME, PROVIDER, FORMAT, SOURCE, OPERANDS };

/* A note that is read. Addresses are 0 where the note has none. */
struct fields {
	const struct kymo_note *note;
	uint64_t code, target, gate;
	uint32_t types, line;
	const char *name, *provider, *format, *file;
	const char *operands; /* of a location; NULL: the usual ones */
	bool is_too_long;     /* the format */
};

static uint32_t word(const struct kymo_note *note, size_t field)
{
	uint32_t value;

	memcpy(&value, note->desc + field, sizeof(value));
	return value;
}

/* The vaddr that a field leads to: it is relative to itself. */
static uint64_t follow_field(const struct kymo_note *note, size_t field)
{
	int64_t value = (int32_t)word(note, field);

	return value ? note->vaddr + field + (uint64_t)value : 0;
}

/* A string of the note, copied; `size` is what it may take at most. */
static struct kymo_error *read_string(struct marker_reader *reader, const struct fields *fields, enum string which,
				      size_t field, size_t size, const char *what, const char **ret)
{
	uint64_t vaddr = follow_field(fields->note, field);
	struct kymo_error *error;
	const char *text;
	char *copy;

	if (!vaddr)
		return NULL;
	if (reader->last[which].copy && reader->last[which].vaddr == vaddr) {
		*ret = reader->last[which].copy;
		return NULL;
	}
	text = kymo_module_string(reader->module, vaddr, size);
	if (!text)
		return marker_bad(reader, fields->note, fields->name,
				  "its %s at 0x%llx is not in the file, or longer than %zu bytes", what, LLX(vaddr),
				  size - 1);
	error = marker_copy(reader, text, strlen(text), &copy);
	if (error)
		return error;
	reader->last[which].vaddr = vaddr;
	reader->last[which].copy = *ret = copy;
	return NULL;
}

static bool is_too_long(struct kymo_module *module, uint64_t vaddr)
{
	return vaddr && !kymo_module_string(module, vaddr, FORMAT_SIZE) && kymo_module_string(module, vaddr, LONGEST);
}

static struct kymo_error *read_fields(struct marker_reader *reader, struct fields *fields)
{
	const struct kymo_note *note = fields->note;
	struct kymo_error *error;

	if (note->size < sizeof(struct kymo_marker_note))
		return marker_bad(reader, note, NULL, "it has %zu bytes instead of %zu", note->size,
				  sizeof(struct kymo_marker_note));
	if (!note->vaddr)
		return marker_bad(reader, note, NULL, "it lies in no segment");
#define FIELD(name) offsetof(struct kymo_marker_note, name)
	error = read_string(reader, fields, NAME, FIELD(name), MARKER_NAME_SIZE, "name", &fields->name);
	if (!error && (!fields->name || !*fields->name)) {
		fields->name = NULL;
		return marker_bad(reader, note, NULL, "it has no name");
	}
	if (!error)
		error = read_string(reader, fields, PROVIDER, FIELD(provider), MARKER_NAME_SIZE, "provider",
				    &fields->provider);
	fields->is_too_long = !error && is_too_long(reader->module, follow_field(note, FIELD(format)));
	if (!error && !fields->is_too_long)
		error = read_string(reader, fields, FORMAT, FIELD(format), FORMAT_SIZE, "format", &fields->format);
	if (!error)
		error = read_string(reader, fields, SOURCE, FIELD(file), FILE_SIZE, "source file's name",
				    &fields->file);
	if (!error && note->type == KYMO_MARKER_NOTE_LOCATION)
		error = read_string(reader, fields, OPERANDS, FIELD(gate), OPERANDS_SIZE, "operands",
				    &fields->operands);
	fields->code = follow_field(note, FIELD(code));
	fields->target = follow_field(note, FIELD(target));
	fields->gate = follow_field(note, FIELD(gate));
	fields->types = word(note, FIELD(types));
	fields->line = word(note, FIELD(line));
#undef FIELD
	return error;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static struct kymo_error *check_code(const struct marker_reader *reader, const struct fields *fields, const char *what,
				     uint64_t vaddr)
{
	if (kymo_module_is_code(reader->module, vaddr, KYMO_JUMP_SIZE))
		return NULL;
	return marker_bad(reader, fields->note, fields->name, "its %s 0x%llx is not in the program's text", what,
			  LLX(vaddr));
}

static struct kymo_error *check_nop(const struct marker_reader *reader, const struct fields *fields, const char *what,
				    uint64_t vaddr)
{
	struct kymo_error *error = check_code(reader, fields, what, vaddr);
	const uint8_t *bytes = kymo_module_bytes(reader->module, vaddr, sizeof(kymo_marker_nop));

	if (error || (bytes && !memcmp(bytes, kymo_marker_nop, sizeof(kymo_marker_nop))))
		return error;
	return marker_bad(reader, fields->note, fields->name,
			  "its %s 0x%llx is not the NOP of five bytes that a marker has", what, LLX(vaddr));
}

static struct kymo_error *check_data(const struct marker_reader *reader, const struct fields *fields, const char *what,
				     uint64_t vaddr, size_t size)
{
	if (marker_is_writable(reader->module, vaddr, size))
		return NULL;
	return marker_bad(reader, fields->note, fields->name, "its %s 0x%llx %s not in the program's data", what,
			  LLX(vaddr), size > sizeof(struct kymo_marker_gate) ? "are" : "is");
}

static struct kymo_error *make_fields(const struct marker_reader *reader, const struct fields *fields,
				      const char *format, struct kymo_marker_fields *ret)
{
	if (kymo_marker_fields(fields->types, format, ret))
		return marker_bad(reader, fields->note, fields->name, "the types of its arguments, 0x%x, are no types",
				  fields->types);
	return NULL;
}

/* ---- a switch -------------------------------------------------------------------------------- */

static struct kymo_error *add_switch(struct marker_reader *reader, const struct fields *fields)
{
	struct kymo_marker_switch new = { .provider = fields->provider,
					  .name = fields->name,
					  .site = fields->code,
					  .cold = fields->target,
					  .gate = fields->gate };
	struct kymo_error *error = check_data(reader, fields, "gate", new.gate, sizeof(struct kymo_marker_gate));
	struct kymo_marker_fields made;
	uint8_t jump[KYMO_JUMP_SIZE];

	/* The portable form tests the gate and jumps nowhere. */
	if (!error && new.site) {
		error = check_nop(reader, fields, "site", new.site);
		if (!error)
			error = check_code(reader, fields, "cold block", new.cold);
		if (!error && kymo_encode_jump(new.site, new.cold, jump))
			error = marker_bad(reader, fields->note, fields->name,
					   "its cold block 0x%llx is out of reach of its site 0x%llx", LLX(new.cold),
					   LLX(new.site));
	}
	if (!error)
		error = make_fields(reader, fields, fields->format, &made);
	if (error)
		return error;
	new.must_stay_off = fields->is_too_long || made.why_not;
	return kymo_vec_push(&reader->switches, new) ? NULL : &kymo_error_no_memory;
}

/* ---- a location ------------------------------------------------------------------------------ */

static struct kymo_error *add_fields(struct marker_reader *reader, const struct fields *fields,
				     struct kymo_marker *marker)
{
	struct kymo_marker_fields made;
	struct kymo_error *error = make_fields(reader, fields, marker->format, &made);

	if (error)
		return error;
	for (size_t i = 0; i < made.n; i++)
		marker->fields[i].type = made.types[i];
	marker->n_fields = made.n;
	marker->why_not = fields->is_too_long ? TOO_LONG : made.why_not;
	return marker_copy_names(reader, &made, marker);
}

static const char usual_operands[] = "8@%rdi 8@%rsi 8@%rdx 8@%rcx 8@%r8 8@%r9 8@%r10 8@%r11";

static int8_t register_number(const char *name)
{
	enum kymo_type ignored;

	return (int8_t)kymo_register_parse(name, strlen(name), &ignored);
}

/* Whether any is a string: then r10 and r11 have all of them. */
static bool has_string(const struct kymo_marker *marker)
{
	for (size_t i = 0; i < marker->n_fields; i++)
		if (marker->fields[i].type == KYMO_TYPE_STRING)
			return true;
	return false;
}

/*
 * Where the cold block has put the arguments: each in a register, as 64 bits. The note's operands say in which; without
 * any they are those of a call, and two more.
 */
static struct kymo_error *make_fetches(struct marker_reader *reader, const struct fields *fields,
				       struct kymo_marker *marker)
{
	const char *at = fields->operands ? fields->operands : usual_operands, *operand, *why;
	enum kymo_type ignored;
	size_t length;

	if (has_string(marker)) {
		marker->fetches[0] = (struct kymo_fetch){ .kind = KYMO_FETCH_PAYLOAD,
							  .type = KYMO_TYPE_STRING,
							  .value = register_number("r10"),
							  .base = register_number("sp"),
							  .index = register_number("r11") };
		marker->n_fetches = 1;
		return NULL;
	}
	for (size_t i = 0; i < marker->n_fields; i++) {
		struct kymo_fetch *fetch = &marker->fetches[i];

		if (!marker_next_operand(&at, &operand, &length))
			return marker_bad(reader, fields->note, fields->name, "it has %zu arguments and %zu operands",
					  marker->n_fields, i);
		if (marker_parse_operand(reader->module, operand, length, fetch, &ignored, &why) ||
		    fetch->kind != KYMO_FETCH_REGISTER || kymo_type_size(fetch->type) != 8)
			return marker_bad(reader, fields->note, fields->name,
					  "its operand '%.*s' is no register of 64 bits", (int)length, operand);
		fetch->type = marker->fields[i].type;
	}
	marker->n_fetches = marker->n_fields;
	return NULL;
}

static struct kymo_error *add_marker(struct marker_reader *reader, const struct fields *fields)
{
	struct kymo_marker marker = { .provider = fields->provider,
				      .name = fields->name,
				      .format = fields->format,
				      .file = fields->file,
				      .line = fields->line,
				      .location = fields->code };
	struct kymo_error *error = check_nop(reader, fields, "location", marker.location);

	if (!error && fields->target)
		error = check_data(reader, fields, "slots", fields->target, sizeof(struct kymo_marker_slots));
	if (!error)
		error = add_fields(reader, fields, &marker);
	if (!error && !marker.why_not)
		error = make_fetches(reader, fields, &marker);
	if (error)
		return error;
	return kymo_vec_push(&reader->markers, marker) ? NULL : &kymo_error_no_memory;
}

struct kymo_error *marker_read_kymo(struct marker_reader *reader, const struct kymo_note *note)
{
	struct fields fields = { .note = note, .provider = "kymo", .format = "" };
	struct kymo_error *error;

	if (note->type != KYMO_MARKER_NOTE_SITE && note->type != KYMO_MARKER_NOTE_LOCATION)
		return NULL;
	error = read_fields(reader, &fields);
	if (error)
		return error;
	if (!*fields.provider)
		return marker_bad(reader, note, fields.name, "its provider has no name");
	return note->type == KYMO_MARKER_NOTE_SITE ? add_switch(reader, &fields) : add_marker(reader, &fields);
}
