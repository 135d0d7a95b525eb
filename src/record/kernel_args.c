#include "record/kernel_args.h"

#include "arch/fetch.h"
#include "arch/uprobe.h"
#include "kernel/form.h"
#include "probe/code/events.h"
#include "probe/spec/spec.h"
#include "wire/form.h"

static enum kymo_kernel_source source_of(enum kymo_uprobe_source source)
{
	return source == KYMO_UPROBE_REGISTER ? KYMO_KERNEL_REGISTER
	       : source == KYMO_UPROBE_MEMORY ? KYMO_KERNEL_MEMORY
					      : KYMO_KERNEL_IMMEDIATE;
}

/* Where a value is at sites of this kind. False: there is no such value. */
static bool place_of(const struct kymo_fetch *fetch, enum kymo_offline_kind kind, struct kymo_kernel_place *ret)
{
	struct kymo_uprobe_value value;

	if (kymo_uprobe_resolve(fetch, kind == KYMO_OFFLINE_CALLER, &value))
		return false;
	*ret = (struct kymo_kernel_place){ source_of(value.source), value.at, value.value };
	if (fetch->kind == KYMO_FETCH_RETVAL && kind == KYMO_OFFLINE_TAIL)
		ret->source = KYMO_KERNEL_UNKNOWN;
	return true;
}

static int program_counter(void)
{
	enum kymo_type unused;

	return kymo_register_parse("ip", 2, &unused);
}

/* The places of a form's operations that read something of the machine. */
static bool form_of(const struct kymo_form *form, enum kymo_offline_kind kind, struct kymo_kernel_form *ret)
{
	ret->form = form;
	if (kymo_kernel_form_refusal(form))
		return false;
	for (uint32_t i = 0; i < form->n; i++) {
		struct kymo_fetch fetch = { .value = form->ops[i].value };

		ret->places[i] = (struct kymo_kernel_place){ .source = KYMO_KERNEL_UNKNOWN };
		if (form->ops[i].code == KYMO_FORM_REGISTER)
			fetch.kind = KYMO_FETCH_REGISTER;
		else if (form->ops[i].code == KYMO_FORM_STACK)
			fetch.kind = KYMO_FETCH_STACK;
		else if (form->ops[i].code == KYMO_FORM_RETVAL)
			fetch.kind = KYMO_FETCH_RETVAL;
		else if (form->ops[i].code == KYMO_FORM_ADDRESS)
			fetch = (struct kymo_fetch){ .kind = KYMO_FETCH_REGISTER, .value = program_counter() };
		else
			continue;
		/* There the thread is in its caller already. */
		if (form->ops[i].code == KYMO_FORM_ADDRESS && kind == KYMO_OFFLINE_CALLER)
			return false;
		if (!place_of(&fetch, kind, &ret->places[i]))
			return false;
	}
	return true;
}

static bool arg_of(const struct kymo_fetch *fetch, enum kymo_offline_kind kind, struct kymo_kernel_form *form,
		   struct kymo_kernel_arg *ret)
{
	struct kymo_kernel_place place;

	if (fetch->kind == KYMO_FETCH_FORM) {
		*ret = (struct kymo_kernel_arg){
			.source = KYMO_KERNEL_FORM, .type = fetch->type, .form = form, .limit = fetch->limit
		};
		return form_of(fetch->form, kind, form);
	}
	if (!place_of(fetch, kind, &place))
		return false;
	*ret = (struct kymo_kernel_arg){
		.source = place.source, .type = fetch->type, .at = place.at, .value = place.value
	};
	return true;
}

struct kymo_error *recording_kernel_args_of(const struct kymo_probe_event *event, enum kymo_offline_kind kind,
					    struct recording_kernel_args *ret)
{
	struct kymo_kernel_form *filter = &ret->forms[KYMO_EVENT_MAX_ARGS];

	for (size_t i = 0; i < event->n_args; i++)
		if (!arg_of(&event->args[i], kind, &ret->forms[i], &ret->args[i]))
			return kymo_error_create(KYMO_ERROR_USAGE,
						 "argument %s of %s cannot be recorded through the kernel",
						 event->fields[i].name, event->name);
	ret->filter = event->filter ? filter : NULL;
	if (event->filter && !form_of(event->filter, kind, filter))
		return kymo_error_create(KYMO_ERROR_USAGE, "the filter of %s cannot be computed in the kernel",
					 event->name);
	ret->need_address = ret->filter && kymo_form_has(event->filter, KYMO_FORM_ADDRESS, NULL);
	for (size_t i = 0; i < event->n_args; i++)
		ret->need_address |= event->args[i].form && kymo_form_has(event->args[i].form, KYMO_FORM_ADDRESS, NULL);
	return NULL;
}

struct kymo_error *recording_kernel_check_spec(const struct kymo_spec *spec, const char *way)
{
	const char *why = spec->filter ? kymo_kernel_form_refusal(spec->filter) : NULL;

	for (size_t i = 0; i < spec->n_args && !why; i++) {
		const struct kymo_spec_arg *arg = &spec->args[i];

		if (arg->form)
			why = arg->fetch.type == KYMO_TYPE_BYTES ? "an array or a structure"
								 : kymo_kernel_form_refusal(arg->form);
	}
	if (!why)
		return NULL;
	return kymo_error_create(
		KYMO_ERROR_USAGE,
		"'%s' has %s, which only code in the process itself can compute: leave %s out, or that",
		kymo_spec_typed(spec), why, way);
}
