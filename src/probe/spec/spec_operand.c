#include "probe/spec/spec_operand.h"

#include "base/caret.h"

static void put(struct kymo_form *form, enum kymo_form_code code, uint8_t size, int64_t value)
{
	form->ops[form->n++] = (struct kymo_form_op){ .code = (uint8_t)code, .size = size, .value = value };
}

/* base + index * scale + value */
static void put_address(const struct kymo_fetch *operand, struct kymo_form *form)
{
	put(form, KYMO_FORM_VALUE, 0, operand->value);
	if (operand->base >= 0) {
		put(form, KYMO_FORM_REGISTER, 0, operand->base);
		put(form, KYMO_FORM_ADD, 8, 0);
	}
	if (operand->index >= 0) {
		put(form, KYMO_FORM_REGISTER, 0, operand->index);
		put(form, KYMO_FORM_VALUE, 0, operand->scale);
		put(form, KYMO_FORM_MULTIPLY, 8, 0);
		put(form, KYMO_FORM_ADD, 8, 0);
	}
}

/* False: an operand that forms do not have. */
static bool mean(const struct kymo_fetch *operand, struct kymo_expr_meaning *ret)
{
	ret->type = (struct kymo_expr_type){ .size = (uint8_t)kymo_type_size(operand->type),
					     .is_signed = kymo_type_is_signed(operand->type) };
	ret->is_address = operand->kind == KYMO_FETCH_MEMORY || operand->kind == KYMO_FETCH_GLOBAL;
	switch (operand->kind) {
	case KYMO_FETCH_REGISTER:
		put(&ret->form, KYMO_FORM_REGISTER, 0, operand->value);
		return operand->value < KYMO_FETCH_REGISTERS;
	case KYMO_FETCH_IMMEDIATE:
		put(&ret->form, KYMO_FORM_VALUE, 0, operand->value);
		return true;
	case KYMO_FETCH_GLOBAL:
		put(&ret->form, KYMO_FORM_ADDRESS, 0, operand->value);
		return true;
	case KYMO_FETCH_MEMORY:
		put_address(operand, &ret->form);
		return operand->base < KYMO_FETCH_REGISTERS && operand->index < KYMO_FETCH_REGISTERS;
	default:
		return false;
	}
}

struct kymo_error *kymo_spec_operand(struct kymo_spec *spec, const char *text, const char *start, unsigned int n,
				     struct kymo_expr_meaning *ret)
{
	/* What takes the most code, so that there is room for others. */
	static const struct kymo_fetch some = { .kind = KYMO_FETCH_MEMORY, .type = KYMO_TYPE_S64, .scale = 1 };

	if (!n || n > KYMO_EVENT_MAX_ARGS)
		return kymo_error_at(text, start, "arguments of an SDT probe are numbered arg0 to arg%d",
				     KYMO_EVENT_MAX_ARGS - 1);
	if (n > spec->n_operands_needed)
		spec->n_operands_needed = (uint8_t)n;
	if (mean(spec->operands && n <= spec->n_operands ? &spec->operands[n - 1] : &some, ret))
		return NULL;
	return kymo_error_at(text, start, "arg%u is where expressions cannot take it from", n - 1);
}
