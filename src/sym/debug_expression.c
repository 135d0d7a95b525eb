#include "sym/debug_expression.h"

#include <stdlib.h>
#include <string.h>

#include "sym/debug_machine.h"
#include "sym/debug_variables.h"

void sym_location_nowhere(struct sym_location *where, const char *why)
{
	*where = (struct sym_location){ .number = -1, .frame_register = -1 };
	where->location.kind = KYMO_LOCATION_NOWHERE;
	where->location.why = why;
}

static void set_one(struct sym_location *where, enum kymo_form_code code, int64_t value)
{
	*where = (struct sym_location){ .number = -1, .frame_register = -1 };
	where->location.kind = KYMO_LOCATION_VALUE;
	where->location.form.n = 1;
	where->location.form.ops[0] = (struct kymo_form_op){ (uint8_t)code, 0, 0, value };
}

void sym_location_constant(struct sym_location *where, int64_t value)
{
	set_one(where, KYMO_FORM_VALUE, value);
}

void sym_location_register(struct sym_location *where, unsigned int number)
{
	set_one(where, KYMO_FORM_REGISTER, number);
	where->number = (int)number;
}

void sym_location_vector(struct sym_location *where, unsigned int number)
{
	set_one(where, KYMO_FORM_VECTOR, number);
}

/* The operations before the first piece, where that is all of the value. */
static size_t take_piece(const Dwarf_Op *ops, size_t n, uint64_t size, const char **why_ret)
{
	for (size_t i = 0; i < n; i++) {
		if (ops[i].atom != DW_OP_piece && ops[i].atom != DW_OP_bit_piece)
			continue;
		if (ops[i].atom == DW_OP_piece && i && size && ops[i].number >= size)
			return i;
		*why_ret = i ? "is in several pieces, which kymo does not put together"
			     : "is optimized out here, a part of it at least";
		return 0;
	}
	return n;
}

static void convert_implicit(const struct sym_context *context, const Dwarf_Op *op, struct sym_location *ret)
{
	Dwarf_Block block;
	int64_t value = 0;

	if (!context->attribute || dwarf_getlocation_implicit_value(context->attribute, op, &block))
		sym_location_nowhere(ret, "is told by a damaged expression");
	else if (block.length > sizeof(value))
		sym_location_nowhere(ret, "is a constant of more than 8 bytes");
	else {
		memcpy(&value, block.data, block.length);
		sym_location_constant(ret, value);
	}
}

static void set_location(const struct sym_machine *machine, const struct sym_value *value, bool is_value,
			 bool is_in_frame, int64_t offset, struct sym_location *ret)
{
	*ret = (struct sym_location){ .number = -1, .frame_register = -1 };
	ret->location.kind = is_value ? KYMO_LOCATION_VALUE : KYMO_LOCATION_MEMORY;
	ret->location.form = value->form;
	if (!is_value) {
		ret->is_in_frame = is_in_frame;
		ret->frame_offset = offset;
		ret->frame_register = machine->frame_register;
		ret->is_fixed =
			machine->is_in_thread || (value->form.n == 1 && value->form.ops[0].code == KYMO_FORM_ADDRESS);
	}
	if (!kymo_form_check(&value->form, SYM_MACHINE_REGISTERS, 0))
		sym_location_nowhere(ret, "is computed by more operations than kymo takes");
}

static void convert_register(uint64_t number, struct sym_location *ret)
{
	if (number < SYM_MACHINE_REGISTERS)
		sym_location_register(ret, (unsigned int)number);
	else if (number >= SYM_MACHINE_VECTOR_FIRST && number < SYM_MACHINE_VECTOR_FIRST + KYMO_FORM_VECTORS)
		sym_location_vector(ret, (unsigned int)(number - SYM_MACHINE_VECTOR_FIRST));
	else
		sym_location_nowhere(ret, "is in a register that kymo does not read");
}

static void convert_computed(const struct sym_context *context, const Dwarf_Op *ops, size_t n, struct sym_location *ret)
{
	const bool is_value = ops[n - 1].atom == DW_OP_stack_value;
	struct sym_machine *machine = malloc(sizeof(*machine));
	struct sym_value *value;

	if (!machine) {
		context->debug->is_out_of_memory = true;
		sym_location_nowhere(ret, "is not known: memory is out");
		return;
	}
	machine->context = context;
	machine->nesting = 0;
	machine->n = 0;
	machine->why = NULL;
	machine->frame_register = -1;
	machine->is_in_thread = false;
	value = sym_machine_convert(machine, ops, n - is_value);
	if (value)
		set_location(machine, value, is_value, n == 1 && ops[0].atom == DW_OP_fbreg, (int64_t)ops[0].number,
			     ret);
	else
		sym_location_nowhere(ret, machine->why);
	free(machine);
}

void sym_expression_convert(const struct sym_context *context, const Dwarf_Op *ops, size_t n, uint64_t size,
			    struct sym_location *ret)
{
	const char *why = "is optimized out here";

	n = take_piece(ops, n, size, &why);
	if (!n)
		sym_location_nowhere(ret, why);
	else if (n == 1 && ops->atom >= DW_OP_reg0 && ops->atom <= DW_OP_reg31)
		convert_register(ops->atom - DW_OP_reg0, ret);
	else if (n == 1 && ops->atom == DW_OP_regx)
		convert_register(ops->number, ret);
	else if (ops[n - 1].atom == DW_OP_implicit_value)
		convert_implicit(context, &ops[n - 1], ret);
	else
		convert_computed(context, ops, n, ret);
}
