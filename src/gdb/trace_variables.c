#include "gdb/trace_variables.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gdb/trace_frames.h"

enum { NAME_SIZE = 256, TIMESTAMP = 1 };

/* gdb knows this one by the name: microseconds since 1970. */
static const char timestamp_name[] = "trace_timestamp";

static struct gdb_variable *find_variable(struct gdb_tracing *tracing, unsigned int number)
{
	for (size_t i = 0; i < tracing->variables.n; i++)
		if (tracing->variables.items[i].number == number)
			return &tracing->variables.items[i];
	return NULL;
}

bool gdb_get_variable(struct gdb_tracing *tracing, unsigned int number, int64_t *ret)
{
	const struct gdb_variable *variable = find_variable(tracing, number);

	if (number == TIMESTAMP)
		*ret = (int64_t)gdb_trace_now_us();
	else if (variable)
		*ret = variable->value;
	return variable || number == TIMESTAMP;
}

bool gdb_set_variable_to(struct gdb_tracing *tracing, unsigned int number, int64_t value)
{
	struct gdb_variable *variable = number == TIMESTAMP ? NULL : find_variable(tracing, number);

	if (variable)
		variable->value = value;
	return variable;
}

void gdb_reset_trace_variables(struct gdb_tracing *tracing)
{
	gdb_trace_free_variables(tracing);
}

/* A variable that has the number already gets this value. */
static bool define(struct gdb_tracing *tracing, const struct gdb_variable *what)
{
	struct gdb_variable variable = *what, *old = find_variable(tracing, what->number);

	if (old) {
		old->initial = old->value = what->initial;
		return true;
	}
	variable.value = variable.initial;
	variable.name = strdup(what->name);
	if (variable.name && tracing->variables.n < GDB_VARIABLES_MAX && kymo_vec_push(&tracing->variables, variable))
		return true;
	free(variable.name);
	return false;
}

/* "number:value:builtin:name". */
void gdb_define_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	uint64_t number, value, is_builtin;
	char name[NAME_SIZE];

	if (!gdb_take_number(words, &number) || number > INT32_MAX || !gdb_take_char(words, ':') ||
	    !gdb_take_number(words, &value) || !gdb_take_char(words, ':') || !gdb_take_number(words, &is_builtin) ||
	    !gdb_take_char(words, ':') || !gdb_take_hex_string(words, name, sizeof(name)) ||
	    !gdb_words_are_over(words) ||
	    (number != TIMESTAMP && !define(&gdb->tracing, &(struct gdb_variable){ .number = (unsigned int)number,
										   .initial = (int64_t)value,
										   .is_builtin = is_builtin,
										   .name = name })))
		gdb_text_put(reply, "E01");
	else
		gdb_text_put(reply, "OK");
}

/* ---- what is told ---------------------------------------------------------------------------- */

void gdb_tell_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	uint64_t number;
	int64_t value;

	if (!gdb_take_number(words, &number) || number > INT32_MAX || !gdb_words_are_over(words))
		gdb_text_put(reply, "E01");
	else if (gdb->tracing.has_selected ? gdb_frame_variable(&gdb->tracing, (unsigned int)number, &value)
					   : gdb_get_variable(&gdb->tracing, (unsigned int)number, &value))
		gdb_text_format(reply, "V%" PRIx64, (uint64_t)value);
	else
		gdb_text_put(reply, "U");
}

static void tell(unsigned int number, int64_t initial, bool is_builtin, const char *name, struct gdb_text *reply)
{
	gdb_text_format(reply, "%x:%" PRIx64 ":%x:", number, (uint64_t)initial, is_builtin);
	gdb_text_hex(reply, name, strlen(name));
}

void gdb_next_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_tracing *tracing = &gdb->tracing;
	const struct gdb_variable *variable;

	if (tracing->next_variable >= tracing->variables.n) {
		gdb_text_put(reply, "l");
		return;
	}
	variable = &tracing->variables.items[tracing->next_variable++];
	tell(variable->number, variable->initial, variable->is_builtin, variable->name, reply);
}

void gdb_first_variable(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	gdb->tracing.next_variable = 0;
	tell(TIMESTAMP, 0, true, timestamp_name, reply);
}
