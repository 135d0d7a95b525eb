#include "report/event_json.h"
#include "report/ended.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "report/namings.h"
#include "report/samples.h"
#include "report/structures.h"
#include "report/text.h"
#include "sym/demangle.h"

void kymo_event_json_begin(FILE *out, const char *what, const struct thread *thread, uint64_t wall_ns)
{
	fprintf(out, "{\"event\": \"%s\", \"pid\": ", what);
	if (thread->process)
		fprintf(out, "%" PRId32, thread->process->pid);
	else
		fputs("null", out);
	fprintf(out, thread->tid ? ", \"tid\": %" PRId32 : ", \"tid\": null", thread->tid);
	fprintf(out, ", \"time_ns\": %" PRIu64 ", ", wall_ns);
}

static void write_bytes_json(FILE *out, const uint8_t *bytes, size_t size)
{
	putc('"', out);
	for (size_t i = 0; i < size; i++)
		fprintf(out, "%02x", bytes[i]);
	putc('"', out);
}

static void write_integer(FILE *out, enum kymo_type type, uint64_t value)
{
	fprintf(out, kymo_type_is_signed(type) ? "%" PRId64 : "%" PRIu64, value);
}

/* JSON has no numbers that are not finite: "nan", "inf" and "-inf" are strings. Null is what could not be read. */
static void write_real(FILE *out, enum kymo_type type, double value)
{
	char number[TEXT_NUMBER];

	fprintf(out, isfinite(value) ? "%s" : "\"%s\"", kymo_text_real(number, type, value));
}

/* [1, 2, 3], or a string: text up to its first NUL. */
static void write_array(FILE *out, const struct kymo_ctf_field *field, const void *bytes, size_t size)
{
	const enum kymo_type type = kymo_element_type(field->array_of);

	if (field->naming && field->naming->is_character) {
		kymo_cleanup_free char *text = strndup(bytes, size);

		kymo_json_string(out, text ? text : "");
		return;
	}
	putc('[', out);
	for (size_t i = 0; i < size / kymo_type_size(type); i++) {
		fputs(i ? ", " : "", out);
		if (kymo_type_is_real(type))
			write_real(out, type, kymo_ctf_real(kymo_ctf_element(bytes, type, i), type));
		else
			write_integer(out, type, kymo_ctf_element(bytes, type, i));
	}
	putc(']', out);
}

/* An object, or a list of such. */
static void write_structures(FILE *out, const struct kymo_ctf_field *field, const uint8_t *bytes, size_t size)
{
	fputs(field->is_list ? "[" : "", out);
	for (size_t k = 0; k + field->shape->size <= size; k += field->shape->size) {
		fputs(k ? ", " : "", out);
		kymo_structure_write_json(out, field->shape, bytes + k);
	}
	fputs(field->is_list ? "]" : size ? "" : "null", out);
}

static void write_text(FILE *out, const struct kymo_ctf_record *record, uint32_t i)
{
	kymo_cleanup_free char *name = kymo_naming_of_row(record, i);

	kymo_json_string(out, name ? name : kymo_ctf_string(record, i));
}

static void write_value(FILE *out, const struct kymo_ctf_record *record, uint32_t i)
{
	const enum kymo_type type = record->event->fields[i].type;
	const void *bytes;
	size_t size;

	switch (type) {
	case KYMO_TYPE_STRING:
		write_text(out, record, i);
		break;
	case KYMO_TYPE_BYTES:
		bytes = kymo_ctf_bytes(record, i, &size);
		if (record->event->fields[i].shape)
			write_structures(out, &record->event->fields[i], bytes, size);
		else if (record->event->fields[i].array_of)
			write_array(out, &record->event->fields[i], bytes, size);
		else
			write_bytes_json(out, bytes, size);
		break;
	case KYMO_TYPE_F32:
	case KYMO_TYPE_F64:
		write_real(out, type, kymo_ctf_double(record, i));
		break;
	default:
		write_integer(out, type, record->values[i]);
	}
}

/* Of bytes a part may be there. */
static bool is_missing(const struct kymo_ctf_record *record, uint32_t i)
{
	const struct kymo_ctf_event *event = record->event;
	size_t size = 0;

	if (event->fields[i].type == KYMO_TYPE_BYTES)
		kymo_ctf_bytes(record, i, &size);
	return record->faults & 1u << i && !size &&
	       !(event->fields[i].type == KYMO_TYPE_BYTES &&
		 (event->kind == KYMO_CTF_SYSCALL || event->kind == KYMO_CTF_SYSRET));
}

/* What the source says of a frame. */
static void write_source_json(FILE *out, const struct kymo_frame_tree *rows, const struct kymo_frame_source *source)
{
	if (!source->file)
		return;
	fputs("\"source\": ", out);
	kymo_json_string(out, kymo_strings_text(&rows->texts, source->file));
	fprintf(out, ", \"line\": %" PRIu32 ", ", source->line);
}

/* `source`: of an inlined function, or of the frame's own, or NULL. */
static void write_frame_json(FILE *out, const struct kymo_frame_tree *rows, const struct kymo_frame_node *row,
			     const struct kymo_frame_source *source)
{
	const bool is_inlined = source && source->is_inlined;
	const uint32_t text = is_inlined ? source->function : row->function;
	kymo_cleanup_free char *function = text ? kymo_shown(kymo_strings_text(&rows->texts, text)) : NULL;

	if (row->what == KYMO_CTF_FRAME_CUT) {
		fprintf(out, "{\"cut_at\": %" PRIu64 "}", row->offset);
		return;
	}
	fputs("{", out);
	if (function) {
		fputs("\"function\": ", out);
		kymo_json_string(out, function);
		fputs(", ", out);
		if (!is_inlined)
			fprintf(out, "\"offset\": %" PRIu64 ", ", row->offset);
	}
	if (is_inlined)
		fputs("\"inlined\": true, ", out);
	if (source)
		write_source_json(out, rows, source);
	if (row->file) {
		fputs("\"file\": ", out);
		kymo_json_string(out, kymo_strings_text(&rows->texts, row->file));
		fputs(", ", out);
	}
	fprintf(out, "\"address\": \"0x%" PRIx64 "\"%s}", row->address,
		row->what == KYMO_CTF_FRAME_LOST ? ", \"lost\": true" : "");
}

void kymo_stack_json(FILE *out, const struct kymo_frame_tree *rows, uint64_t number)
{
	const struct kymo_frame_node *row = kymo_frame_at(rows, number);
	const char *separator = "";

	putc('[', out);
	for (; row; row = kymo_frame_at(rows, row->caller)) {
		uint32_t n, i;
		const struct kymo_frame_source *sources = kymo_frame_sources(rows, row, &n);

		for (i = 0; i < n && sources[i].is_inlined; i++) {
			fputs(separator, out);
			write_frame_json(out, rows, row, &sources[i]);
			separator = ", ";
		}
		fputs(separator, out);
		write_frame_json(out, rows, row, i < n ? &sources[i] : NULL);
		separator = ", ";
	}
	putc(']', out);
}

/* ["BUSY", null]: null has no name. False: none has one. */
static bool write_element_names(FILE *out, const struct kymo_ctf_record *record, uint32_t i)
{
	const struct kymo_ctf_field *field = &record->event->fields[i];
	const enum kymo_type type = kymo_element_type(field->array_of);
	bool has_any = false;
	size_t size;
	const void *bytes = kymo_ctf_bytes(record, i, &size);

	for (size_t k = 0; k < size / kymo_type_size(type); k++) {
		const char *before = k ? ", " : "[";

		if (kymo_naming_write_json(out, before, field->naming, kymo_ctf_element(bytes, type, k)))
			has_any = true;
		else
			fprintf(out, "%snull", before);
	}
	putc(']', out);
	return has_any;
}

/* A string, or a list. NULL: there is none, or memory is out. */
static char *names_of(const struct kymo_ctf_record *record, uint32_t i)
{
	const struct kymo_ctf_field *field = &record->event->fields[i];
	char *text = NULL;
	bool has_any;
	size_t size;
	FILE *out;

	if (!field->naming || is_missing(record, i) || !(field->array_of || kymo_type_is_integer(field->type)))
		return NULL;
	out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	has_any = field->array_of ? write_element_names(out, record, i)
				  : kymo_naming_write_json(out, "", field->naming, record->values[i]);
	if (!fclose(out) && has_any)
		return text;
	free(text);
	return NULL;
}

/* Of what is in structures, by paths. Returns what the next name has before it. */
static const char *write_names_within(FILE *out, const char *separator, const struct kymo_ctf_record *record,
				      uint32_t i)
{
	const struct kymo_ctf_field *field = &record->event->fields[i];
	size_t size, n = 0;
	const uint8_t *bytes = kymo_ctf_bytes(record, i, &size);

	for (size_t k = 0; k + field->shape->size <= size; k += field->shape->size) {
		kymo_cleanup_free char *path = NULL;

		if (asprintf(&path, field->is_list ? "%s[%zu]" : "%s", field->name, n++) < 0) {
			path = NULL;
			break;
		}
		if (kymo_structure_write_names(out, separator, path, field->shape, bytes + k))
			separator = ", ";
	}
	return separator;
}

/* Of the values that have some. */
static void write_names(FILE *out, const struct kymo_ctf_record *record)
{
	const struct kymo_ctf_event *event = record->event;
	const char *const first = ", \"names\": {", *separator = first;

	for (uint32_t i = 0; i < event->n_fields; i++) {
		kymo_cleanup_free char *text = NULL;

		if (event->fields[i].shape && !is_missing(record, i)) {
			separator = write_names_within(out, separator, record, i);
			continue;
		}
		text = names_of(record, i);
		if (!text)
			continue;
		fputs(separator, out);
		kymo_json_string(out, event->fields[i].name);
		fprintf(out, ": %s", text);
		separator = ", ";
	}
	fputs(separator != first ? "}" : "", out);
}

void kymo_event_json_record(FILE *out, const struct kymo_ctf_trace *trace, const struct thread *thread,
			    const char *name, const struct kymo_ctf_record *record, const struct kymo_frame_tree *rows,
			    bool raw)
{
	const struct kymo_ctf_event *event = record->event;

	kymo_event_json_begin(out, "probe", thread, kymo_ctf_wall_ns(trace, record->tsc));
	fprintf(out, record->cpu == KYMO_CTF_NO_CPU ? "\"cpu\": null" : "\"cpu\": %" PRIu32, record->cpu);
	fputs(", \"name\": ", out);
	kymo_json_string(out, name);
	fputs(", \"args\": {", out);
	for (uint32_t i = 0; i < event->n_fields; i++) {
		fputs(i ? ", " : "", out);
		kymo_json_string(out, event->fields[i].name);
		fputs(": ", out);
		if (is_missing(record, i))
			fputs("null", out);
		else
			write_value(out, record, i);
	}
	if (raw && event->has_stack_pointer)
		fprintf(out, "%s\"" KYMO_STACK_POINTER_FIELD "\": %" PRIu64, event->n_fields ? ", " : "",
			kymo_ctf_stack_pointer(record));
	fputs("}", out);
	write_names(out, record);
	if (event->has_stack) {
		fputs(", \"stack\": ", out);
		kymo_stack_json(out, rows, kymo_ctf_stack(record));
	}
	fputs("}\n", out);
}

void kymo_event_json_loss(FILE *out, const struct kymo_ctf_trace *trace, const struct kymo_ctf_loss *loss)
{
	fprintf(out,
		"{\"event\": \"%s\", \"count\": %" PRIu64 ", \"begin_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64 "}\n",
		loss->events ? "lost" : "overwritten", loss->events ? loss->events : loss->packets,
		kymo_ctf_wall_ns(trace, loss->begin), kymo_ctf_wall_ns(trace, loss->end));
}

static void write_rest(FILE *out, const char *what, uint64_t total, uint64_t written)
{
	if (total > written)
		fprintf(out, "{\"event\": \"%s\", \"count\": %" PRIu64 "}\n", what, total - written);
}

void kymo_event_json_finish(FILE *out, const struct kymo_ctf_reader *reader, const struct loss_total *written)
{
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(reader, &n);
	const struct loss_total total = kymo_losses_total(losses, n);
	const char *const *warnings = kymo_ctf_reader_warnings(reader, &n);
	const char *unended = kymo_unended(kymo_ctf_reader_trace(reader));

	if (unended) {
		fputs("{\"event\": \"unended\", \"what\": ", out);
		kymo_json_string(out, unended);
		fputs("}\n", out);
	}
	write_rest(out, "lost", total.events, written->events);
	write_rest(out, "overwritten", total.packets, written->packets);
	for (size_t i = 0; i < n; i++) {
		fputs("{\"event\": \"damaged\", \"what\": ", out);
		kymo_json_string(out, warnings[i]);
		fputs("}\n", out);
	}
	kymo_samples_write_json(out, kymo_ctf_reader_trace(reader));
}
