/*
 * What func and probe are is known when a spec has met a location: a glob has many functions. So forms have the words
 * as operations, and each event gets a copy of its own. In that they are numbers, eight bytes of the name in each, or
 * the text that is recorded. Nothing is read in the program for them.
 */
#include "probe/code/event_words.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/utf8.h"
#include "probe/code/events.h"
#include "sym/demangle.h"
#include "wire/event.h"

#define CUT_SIZE (sizeof(KYMO_STRING_CUT) - 1)

/* The `size` bytes from `from` on, with zeros after the end of the name. */
static int64_t bytes_of(const char *name, size_t from, size_t size)
{
	const size_t length = strlen(name), left = from < length ? length - from : 0;
	int64_t bytes = 0;

	memcpy(&bytes, name + (left ? from : 0), left < size ? left : size);
	return bytes;
}

/* The whole name, or as much of it as a form has room for. */
static void set_text(struct kymo_form *form, const char *name)
{
	size_t length = strlen(name);
	const bool is_cut = length > KYMO_FORM_TEXT_MAX;

	if (is_cut)
		length = kymo_utf8_cut(name, KYMO_FORM_TEXT_MAX - CUT_SIZE);
	memset(form->text, 0, sizeof(form->text));
	memcpy(form->text, name, length);
	if (is_cut)
		memcpy(form->text + length, KYMO_STRING_CUT, CUT_SIZE);
}

static void set_word(struct kymo_form *form, struct kymo_form_op *op, const char *name)
{
	if (!op->size) {
		set_text(form, name);
		*op = (struct kymo_form_op){ .code = KYMO_FORM_TEXT };
		return;
	}
	*op = (struct kymo_form_op){ .code = KYMO_FORM_VALUE, .value = bytes_of(name, (size_t)op->value, op->size) };
}

static void set_words(struct kymo_form *form, const char *func, const char *probe)
{
	for (uint32_t i = 0; i < form->n; i++) {
		if (form->ops[i].code == KYMO_FORM_FUNC)
			set_word(form, &form->ops[i], func);
		else if (form->ops[i].code == KYMO_FORM_PROBE)
			set_word(form, &form->ops[i], probe);
	}
}

/* A copy of `form` with the event's words, kept as its `at`th; or the form itself. */
static struct kymo_error *own_form(struct kymo_probe_event *event, size_t at, bool is_own,
				   const struct kymo_form **form)
{
	kymo_cleanup_free char *symbol = NULL, *func = NULL, *probe = NULL;
	struct kymo_form *copy;

	if (!*form || (!is_own && !kymo_form_has_words(*form)))
		return NULL;
	symbol = strndup(event->symbol, kymo_event_function_size(event->symbol));
	func = symbol ? kymo_shown(symbol) : NULL;
	probe = kymo_shown(event->name);
	copy = func && probe ? malloc(sizeof(*copy)) : NULL;
	if (!copy)
		return &kymo_error_no_memory;
	*copy = **form;
	set_words(copy, func, probe);
	event->forms[at] = copy;
	*form = copy;
	return NULL;
}

struct kymo_error *probe_event_own_forms(const struct kymo_probe_event *event, struct kymo_probe_event *copy)
{
	const size_t of_filter = KYMO_EVENT_MAX_ARGS;
	struct kymo_error *error = own_form(copy, of_filter, event->forms[of_filter], &copy->filter);

	for (size_t i = 0; i < copy->n_args && !error; i++)
		if (copy->args[i].kind == KYMO_FETCH_FORM)
			error = own_form(copy, i, event->forms[i], &copy->args[i].form);
	return error;
}
