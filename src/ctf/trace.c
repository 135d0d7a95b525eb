#include "ctf/trace.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "ctf/tables.h"

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
