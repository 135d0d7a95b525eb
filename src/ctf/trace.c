#include "ctf/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctf/tables.h"
#include "wire/event.h"

uint32_t kymo_ctf_event_size(const struct kymo_ctf_event *event)
{
	uint32_t size = KYMO_EVENT_ARGS_OFFSET + event->has_faults;

	for (uint32_t i = 0; i < kymo_ctf_n_values(event); i++)
		size += kymo_type_size(event->fields[i].type);
	return size;
}

static bool has_type(const struct kymo_ctf_event *event, enum kymo_type type)
{
	for (uint32_t i = 0; i < kymo_ctf_n_values(event); i++)
		if (event->fields[i].type == type)
			return true;
	return false;
}

bool kymo_ctf_event_varies(const struct kymo_ctf_event *event)
{
	return has_type(event, KYMO_TYPE_STRING) || has_type(event, KYMO_TYPE_BYTES);
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
	return sizeof(size) + (size_t)size * kymo_type_size(kymo_element_type(field->array_of));
}

bool kymo_ctf_body_size(const struct kymo_ctf_event *event, const uint8_t *body, size_t left, uint32_t *ret)
{
	const size_t max = kymo_ctf_record_max(event) - KYMO_EVENT_ARGS_OFFSET;
	size_t at = event->has_faults;

	left = left < max ? left : max;
	for (uint32_t i = 0; i < kymo_ctf_n_values(event) && at <= left; i++)
		at += value_size(&event->fields[i], body + at, left - at);
	*ret = (uint32_t)at;
	return at <= left;
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
	}
	free(event->fields);
	free(event->name);
	free(event->path);
	free(event->symbol);
	free(event->build_id);
	free(event->source);
	free(event->format);
	free(event->sample);
}

void kymo_ctf_trace_deinit(struct kymo_ctf_trace *trace)
{
	for (size_t i = 0; i < trace->n_events; i++)
		kymo_ctf_event_deinit(&trace->events[i]);
	free(trace->events);
	for (size_t i = 0; i < trace->n_env; i++) {
		free(trace->env[i].key);
		free(trace->env[i].value);
	}
	free(trace->env);
	kymo_ctf_tables_deinit(trace);
	memset(trace, 0, sizeof(*trace));
}

static struct kymo_ctf_env *find_env(const struct kymo_ctf_trace *trace, const char *key)
{
	for (size_t i = 0; i < trace->n_env; i++)
		if (!strcmp(trace->env[i].key, key))
			return &trace->env[i];
	return NULL;
}

struct kymo_error *kymo_ctf_trace_set_env(struct kymo_ctf_trace *trace, const char *key, const char *value)
{
	struct kymo_ctf_env *found = find_env(trace, key), *grown;
	kymo_cleanup_free char *key_copy = NULL;
	kymo_cleanup_free char *value_copy = strdup(value);

	if (!value_copy)
		return &kymo_error_no_memory;
	if (found) {
		free(found->value);
		found->value = kymo_take(value_copy);
		return NULL;
	}
	key_copy = strdup(key);
	/* The struct has no capacity: it doubles at each power of two. */
	grown = trace->env;
	if (!(trace->n_env & (trace->n_env - 1)))
		grown = reallocarray(trace->env, trace->n_env ? trace->n_env * 2 : 1, sizeof(*grown));
	if (grown)
		trace->env = grown;
	if (!key_copy || !grown)
		return &kymo_error_no_memory;
	trace->env[trace->n_env++] = (struct kymo_ctf_env){ kymo_take(key_copy), kymo_take(value_copy) };
	return NULL;
}

const char *kymo_ctf_trace_env(const struct kymo_ctf_trace *trace, const char *key)
{
	const struct kymo_ctf_env *found = find_env(trace, key);

	return found ? found->value : NULL;
}

uint64_t kymo_ctf_duration_ns(const struct kymo_ctf_trace *trace, uint64_t ticks)
{
	uint64_t scaled;

	/* The wide division costs tens of nanoseconds; spans of seconds do without. */
	if (!__builtin_mul_overflow(ticks, (uint64_t)1000000000, &scaled))
		return scaled / trace->clock_frequency;
	return (uint64_t)((unsigned __int128)ticks * 1000000000u / trace->clock_frequency);
}

uint64_t kymo_ctf_wall_ns(const struct kymo_ctf_trace *trace, uint64_t tsc)
{
	unsigned __int128 ticks = (unsigned __int128)trace->clock_offset + tsc;

	return trace->clock_offset_s * 1000000000u + (uint64_t)(ticks * 1000000000u / trace->clock_frequency);
}
