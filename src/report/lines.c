#include "report/lines.h"
#include "report/ended.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "report/namings.h"
#include "report/samples.h"
#include "report/structures.h"
#include "report/text.h"
#include "sym/demangle.h"

static bool fill_line(struct event_text *text, const struct kymo_ctf_event *event, bool unicode)
{
	kymo_cleanup_free char *function = kymo_shown(event->symbol && *event->symbol ? event->symbol : event->name);

	text->plain_name = kymo_shown(event->name);
	if (!text->plain_name || !function)
		return false;
	text->name = kymo_text_escape(text->plain_name, unicode);
	text->function = kymo_text_escape(function, unicode);
	if (!text->name || !text->function)
		return false;
	for (uint32_t i = 0; i < event->n_fields; i++) {
		text->fields[i] = kymo_text_escape(event->fields[i].name, unicode);
		if (!text->fields[i])
			return false;
	}
	return true;
}

static int compare_names(const void *a, const void *b)
{
	const struct event_text *const *x = a, *const *y = b;

	return strcmp((*x)->plain_name, (*y)->plain_name);
}

/* With its hash, if it has one. */
static bool tell_apart(struct event_text *text, const struct kymo_ctf_event *event, bool unicode)
{
	char *plain = kymo_shown_apart(event->name), *name = plain ? kymo_text_escape(plain, unicode) : NULL;
	char *symbol = kymo_shown_apart(event->symbol && *event->symbol ? event->symbol : event->name);
	char *function = symbol ? kymo_text_escape(symbol, unicode) : NULL;

	free(symbol);
	if (!name || !function) {
		free(plain);
		free(name);
		free(function);
		return false;
	}
	free(text->plain_name);
	free(text->name);
	free(text->function);
	text->plain_name = plain;
	text->name = name;
	text->function = function;
	return true;
}

/* Events of different names that read the same: of functions that Rust has made of one. */
static bool tell_all_apart(struct event_text *texts, const struct kymo_ctf_trace *trace, bool unicode)
{
	const size_t n = trace->n_events;
	kymo_cleanup_free struct event_text **sorted = calloc(n + 1, sizeof(struct event_text *));
	bool done = sorted;

	for (size_t i = 0; sorted && i < n; i++)
		sorted[i] = &texts[i];
	if (sorted)
		qsort(sorted, n, sizeof(struct event_text *), compare_names);
	for (size_t from = 0, to; done && from < n; from = to) {
		const char *first = trace->events[sorted[from] - texts].name;
		bool differ = false;

		for (to = from + 1; to < n && !compare_names(&sorted[from], &sorted[to]); to++)
			differ |= strcmp(first, trace->events[sorted[to] - texts].name) != 0;
		for (size_t i = from; i < to && differ && done; i++)
			done = tell_apart(sorted[i], &trace->events[sorted[i] - texts], unicode);
	}
	return done;
}

struct kymo_error *kymo_event_texts_create(const struct kymo_ctf_trace *trace, bool unicode, struct event_text **ret)
{
	struct event_text *texts = calloc(trace->n_events + 1, sizeof(*texts));

	for (size_t i = 0; texts && i < trace->n_events; i++) {
		if (!fill_line(&texts[i], &trace->events[i], unicode)) {
			kymo_event_texts_destroy(texts, trace);
			texts = NULL;
		}
	}
	if (texts && !tell_all_apart(texts, trace, unicode)) {
		kymo_event_texts_destroy(texts, trace);
		texts = NULL;
	}
	if (!texts)
		return &kymo_error_no_memory;
	*ret = texts;
	return NULL;
}

void kymo_event_texts_destroy(struct event_text *texts, const struct kymo_ctf_trace *trace)
{
	for (size_t i = 0; texts && i < trace->n_events; i++) {
		free(texts[i].name);
		free(texts[i].plain_name);
		free(texts[i].function);
		for (size_t j = 0; j < KYMO_EVENT_MAX_ARGS; j++)
			free(texts[i].fields[j]);
	}
	free(texts);
}

static void write_number(FILE *out, uint64_t value, enum kymo_type type)
{
	char digits[24], *at = digits + sizeof(digits);
	bool is_hex = kymo_type_is_hex(type), negative = kymo_type_is_signed(type) && (int64_t)value < 0;
	unsigned int base = is_hex ? 16 : 10;

	if (negative)
		value = 0 - value;
	*--at = '\0';
	do {
		*--at = "0123456789abcdef"[value % base];
		value /= base;
	} while (value);
	if (negative)
		*--at = '-';
	if (is_hex) {
		*--at = 'x';
		*--at = '0';
	}
	fputs_unlocked(at, out);
}

/* Bytes of a value that lies in the reader's memory; 0 of others. */
static size_t kept_size(const struct kymo_ctf_record *record, uint32_t i)
{
	size_t size;

	switch (record->event->fields[i].type) {
	case KYMO_TYPE_STRING:
		return strlen(kymo_ctf_string(record, i)) + 1;
	case KYMO_TYPE_BYTES:
		kymo_ctf_bytes(record, i, &size);
		return sizeof(uint16_t) + size;
	default:
		return 0;
	}
}

bool kymo_record_copy(const struct kymo_ctf_record *record, struct kymo_ctf_record *ret, char **strings_ret)
{
	const struct kymo_ctf_event *event = record->event;
	char *strings = NULL, *to;
	size_t size = 0;

	for (uint32_t i = 0; i < event->n_fields; i++)
		size += kept_size(record, i);
	if (size) {
		strings = malloc(size);
		if (!strings)
			return false;
	}
	*ret = *record;
	to = strings;
	for (uint32_t i = 0; i < event->n_fields; i++) {
		const size_t kept = kept_size(record, i);

		if (!kept)
			continue;
		ret->values[i] = (uintptr_t)memcpy(to, (const void *)(uintptr_t)record->values[i], kept);
		to += kept;
	}
	*strings_ret = strings;
	return true;
}

static bool is_of_call(const struct kymo_ctf_record *record)
{
	return record->event->kind == KYMO_CTF_SYSCALL || record->event->kind == KYMO_CTF_SYSRET;
}

/* Bytes that a probe has recorded; of what a system call leads to, how many. A part of them, where the rest could not
 * be read. */
static void write_bytes_line(FILE *out, const struct kymo_ctf_record *record, uint32_t i)
{
	const bool is_part = record->faults & 1u << i;
	const uint8_t *bytes;
	size_t size;

	bytes = kymo_ctf_bytes(record, i, &size);
	if (is_of_call(record)) {
		fprintf(out, "(%zu %s%s)", size, size == 1 ? "byte" : "bytes", is_part ? " of more" : "");
		return;
	}
	for (size_t k = 0; k < size; k++)
		fprintf(out, "%s%02x", k ? " " : "", bytes[k]);
	if (is_part)
		fputs(" (fault)", out);
}

/* Up to the first NUL. */
static void write_characters(const struct page *page, const void *bytes, size_t size)
{
	char *text = strndup(bytes, size);

	kymo_text_quote(page->out, text ? text : "", page->unicode);
	free(text);
}

/* {1, 2, 3}, or text. Of elements that a hole in memory follows, those before it. */
static void write_array(const struct page *page, const struct kymo_ctf_record *record, uint32_t i)
{
	const struct kymo_ctf_field *field = &record->event->fields[i];
	const enum kymo_type type = kymo_element_type(field->array_of);
	char number[TEXT_NUMBER];
	const void *bytes;
	size_t size;

	bytes = kymo_ctf_bytes(record, i, &size);
	if (field->naming && field->naming->is_character) {
		write_characters(page, bytes, size);
	} else {
		putc('{', page->out);
		for (size_t k = 0; k < size / kymo_type_size(type); k++) {
			const uint64_t value = kymo_ctf_element(bytes, type, k);

			fputs(k ? ", " : "", page->out);
			if (kymo_type_is_real(type))
				fputs(kymo_text_real(number, type, kymo_ctf_real(value, type)), page->out);
			else if (!kymo_naming_write(page->out, field->naming, value, page->unicode))
				write_number(page->out, value, type);
		}
		putc('}', page->out);
	}
	if (record->faults & 1u << i)
		kymo_page_text(page, INK_ALARM, " (fault)");
}

/* {fd = 3, at = {x = 1, y = 2}}, or a list of such. */
static void write_structures(const struct page *page, const struct kymo_ctf_record *record, uint32_t i)
{
	const struct kymo_ctf_field *field = &record->event->fields[i];
	const uint8_t *bytes;
	size_t size;

	bytes = kymo_ctf_bytes(record, i, &size);
	fputs(field->is_list ? "{" : "", page->out);
	for (size_t k = 0; k + field->shape->size <= size; k += field->shape->size) {
		fputs(k ? ", " : "", page->out);
		kymo_structure_write(page->out, field->shape, bytes + k, page->unicode);
	}
	fputs(field->is_list ? "}" : "", page->out);
	if (record->faults & 1u << i)
		kymo_page_text(page, INK_ALARM, " (fault)");
}

/* Nothing of it could be read. */
static bool is_missing(const struct kymo_ctf_record *record, uint32_t i)
{
	size_t size = 0;

	if (!(record->faults & 1u << i))
		return false;
	if (record->event->fields[i].type == KYMO_TYPE_BYTES)
		kymo_ctf_bytes(record, i, &size);
	return !size && !(is_of_call(record) && record->event->fields[i].type == KYMO_TYPE_BYTES);
}

/* What a function returns may not be known at one of its exits. */
static const char *why_missing(const struct kymo_ctf_record *record, uint32_t i)
{
	const enum kymo_type type = record->event->fields[i].type;

	return record->event->kind == KYMO_CTF_RETURN && type != KYMO_TYPE_STRING && type != KYMO_TYPE_BYTES
		       ? "(unknown)"
		       : "(fault)";
}

static void write_text(const struct page *page, const struct kymo_ctf_record *record, uint32_t i)
{
	kymo_cleanup_free char *name = kymo_naming_of_row(record, i);

	kymo_text_quote(page->out, name ? name : kymo_ctf_string(record, i), page->unicode);
}

void kymo_value_write(const struct page *page, const struct kymo_ctf_record *record, uint32_t i)
{
	enum kymo_type type = record->event->fields[i].type;
	char number[TEXT_NUMBER];

	if (is_missing(record, i))
		kymo_page_text(page, INK_ALARM, why_missing(record, i));
	else if (type == KYMO_TYPE_STRING)
		write_text(page, record, i);
	else if (type == KYMO_TYPE_BYTES && record->event->fields[i].shape)
		write_structures(page, record, i);
	else if (type == KYMO_TYPE_BYTES && record->event->fields[i].array_of)
		write_array(page, record, i);
	else if (type == KYMO_TYPE_BYTES)
		write_bytes_line(page->out, record, i);
	else if (kymo_type_is_real(type))
		fputs_unlocked(kymo_text_real(number, type, kymo_ctf_double(record, i)), page->out);
	else if (!kymo_naming_write(page->out, record->event->fields[i].naming, record->values[i], page->unicode))
		write_number(page->out, record->values[i], type);
}

void kymo_loss_write(const struct page *page, const struct kymo_ctf_trace *trace, const struct kymo_ctf_loss *loss)
{
	uint64_t ticks = loss->end > loss->begin ? loss->end - loss->begin : 0;
	char number[TEXT_NUMBER], span[TEXT_NUMBER];

	kymo_text_span(span, kymo_ctf_duration_ns(trace, ticks), page->unicode);
	kymo_text_count(number, loss->events ? loss->events : loss->packets);
	kymo_page_printf(page, INK_ALARM, loss->events ? "--- lost %s %s" : "--- overwritten: %s %s", number,
			 loss->events ? (loss->events == 1 ? "event" : "events")
				      : (loss->packets == 1 ? "packet" : "packets"));
	if (kymo_loss_is_in_vforks(loss))
		kymo_page_text(page, INK_ALARM, " in vfork children");
	/* What was overwritten before the first packet has no beginning. */
	if (ticks)
		kymo_page_printf(page, INK_ALARM, " within %s", span);
	kymo_page_text(page, INK_ALARM, " ---");
	putc('\n', page->out);
}

struct kymo_error *kymo_lines_finish(const struct page *page, const struct kymo_ctf_reader *reader,
				     const struct loss_total *written)
{
	size_t n;
	const struct kymo_ctf_loss *losses = kymo_ctf_reader_losses(reader, &n);
	struct loss_total total = kymo_losses_total(losses, n);
	const char *const *warnings = kymo_ctf_reader_warnings(reader, &n);
	const char *unended = kymo_unended(kymo_ctf_reader_trace(reader));
	char number[TEXT_NUMBER];

	if (unended)
		kymo_page_printf(page, INK_ALARM, "--- no end: %s ---\n", unended);
	if (total.events != written->events)
		kymo_page_printf(page, INK_ALARM, "--- lost %s %s in all ---\n", kymo_text_count(number, total.events),
				 total.events == 1 ? "event" : "events");
	if (total.packets != written->packets)
		kymo_page_printf(page, INK_ALARM, "--- %s %s overwritten in all ---\n",
				 kymo_text_count(number, total.packets), total.packets == 1 ? "packet" : "packets");
	for (size_t i = 0; i < n; i++) {
		kymo_cleanup_free char *safe = kymo_text_escape(warnings[i], page->unicode);

		if (!safe)
			return &kymo_error_no_memory;
		kymo_page_printf(page, INK_ALARM, "--- damaged: %s ---\n", safe);
	}
	return kymo_samples_write(page, kymo_ctf_reader_trace(reader));
}
