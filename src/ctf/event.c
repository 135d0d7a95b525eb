#include "ctf/event.h"

#include <stdlib.h>
#include <string.h>

#include "wire/event.h"

static bool has_type(const struct kymo_ctf_event *event, enum kymo_type type)
{
	for (uint32_t i = 0; i < kymo_ctf_n_values(event); i++)
		if (event->fields[i].type == type)
			return true;
	return false;
}

void kymo_ctf_event_measure(struct kymo_ctf_event *event)
{
	event->size = KYMO_EVENT_ARGS_OFFSET + event->has_faults;
	for (uint32_t i = 0; i < kymo_ctf_n_values(event); i++)
		event->size += kymo_type_size(event->fields[i].type);
	event->is_fixed = !has_type(event, KYMO_TYPE_STRING) && !has_type(event, KYMO_TYPE_BYTES);
}

uint32_t kymo_ctf_record_max(const struct kymo_ctf_event *event)
{
	return has_type(event, KYMO_TYPE_BYTES) ? KYMO_CTF_MAX_RECORD_OF_BYTES : KYMO_CTF_MAX_RECORD;
}

/* Bytes of the value at `at`, of which `left` are there; more than that where they are not all of it. */
static size_t value_size(const struct kymo_ctf_field *field, const uint8_t *at, size_t left)
{
	const enum kymo_type type = field->type;
	const uint8_t *end;
	uint16_t size;

	if (type == KYMO_TYPE_STRING) {
		end = memchr(at, 0, left);
		return end ? (size_t)(end - at) + 1 : left + 1;
	}
	if (type != KYMO_TYPE_BYTES || left < sizeof(size))
		return kymo_type_size(type);
	memcpy(&size, at, sizeof(size));
	if (field->shape && !field->is_list && size > 1) /* one structure, or none */
		return left + 1;
	return sizeof(size) + (size_t)size * kymo_ctf_element_size(field);
}

/* Bytes of the first `n` values, as kymo_ctf_body_size(). */
static bool size_of_values(const struct kymo_ctf_event *event, uint32_t n, const uint8_t *body, size_t left,
			   uint32_t *ret)
{
	const size_t max = kymo_ctf_record_max(event) - KYMO_EVENT_ARGS_OFFSET;
	size_t at = event->has_faults;

	left = left < max ? left : max;
	for (uint32_t i = 0; i < n && at <= left; i++)
		at += value_size(&event->fields[i], body + at, left - at);
	*ret = (uint32_t)at;
	return at <= left;
}

bool kymo_ctf_body_size(const struct kymo_ctf_event *event, const uint8_t *body, size_t left, uint32_t *ret)
{
	if (!event->is_fixed)
		return size_of_values(event, kymo_ctf_n_values(event), body, left, ret);
	*ret = event->size - KYMO_EVENT_ARGS_OFFSET;
	return *ret <= left;
}

bool kymo_ctf_size_before_stack(const struct kymo_ctf_event *event, const uint8_t *body, size_t left, uint32_t *ret)
{
	return size_of_values(event, event->n_fields, body, left, ret);
}

uint32_t kymo_ctf_record_size(const struct kymo_ctf_event *event, const uint8_t *bytes, size_t left)
{
	uint32_t body;

	return left >= KYMO_EVENT_ARGS_OFFSET && kymo_ctf_body_size(event, bytes + KYMO_EVENT_ARGS_OFFSET,
								    left - KYMO_EVENT_ARGS_OFFSET, &body)
		       ? KYMO_EVENT_ARGS_OFFSET + body
		       : 0;
}

void kymo_ctf_event_deinit(struct kymo_ctf_event *event)
{
	for (uint32_t i = 0; i < kymo_ctf_n_values(event); i++) {
		free(event->fields[i].name);
		kymo_naming_release(event->fields[i].naming);
		kymo_shape_release(event->fields[i].shape);
	}
	free(event->fields);
	free(event->name);
	free(event->path);
	free(event->symbol);
	free(event->build_id);
	free(event->source);
	free(event->format);
	free(event->sample);
	free(event->writes);
}
