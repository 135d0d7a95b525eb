/*
 * DWARF's stack holds values while a form is made of them: each entry is the form that computes it. So dup, swap and
 * pick need no operations of forms, and an entry that is not used costs nothing.
 *
 * Entries have types where the compiler says so (DW_OP_convert). A value of less than 8 bytes is kept as its type
 * reads it: extended to 8 bytes by its sign.
 */
#include "sym/debug_machine.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/debug_die.h"
#include "sym/tls.h"

#define NESTING_MAX 4

/* ---- the stack ------------------------------------------------------------------------------- */

static void fail_machine(struct sym_machine *machine, const char *why)
{
	if (!machine->why)
		machine->why = why;
}

static void append_form(struct sym_machine *machine, struct sym_value *value, struct kymo_form_op op)
{
	if (value->form.n == KYMO_FORM_OPS_MAX)
		fail_machine(machine, "is computed by more operations than kymo takes");
	else
		value->form.ops[value->form.n++] = op;
}

static struct sym_value *push_number(struct sym_machine *machine, enum kymo_form_code code, int64_t number)
{
	static struct sym_value none;
	struct sym_value *value;

	if (machine->n == SYM_MACHINE_STACK_MAX) {
		fail_machine(machine, "is computed with more values than kymo takes");
		none.form.n = 0;
		return &none;
	}
	value = &machine->stack[machine->n++];
	value->form.n = 0;
	value->size = 8;
	value->is_typed = value->is_signed = false;
	append_form(machine, value, (struct kymo_form_op){ (uint8_t)code, 0, 0, number });
	return value;
}

/* Entry `depth` from the top, or NULL. */
static struct sym_value *stack_entry(struct sym_machine *machine, uint64_t depth)
{
	if (depth < machine->n)
		return &machine->stack[machine->n - 1 - depth];
	fail_machine(machine, "is told by a damaged expression: it takes what it has not");
	return NULL;
}

static void copy(struct sym_machine *machine, uint64_t depth)
{
	struct sym_value *from = stack_entry(machine, depth), *to;

	if (!from)
		return;
	to = push_number(machine, KYMO_FORM_VALUE, 0);
	if (!machine->why)
		*to = *from;
}

/* ---- operations ------------------------------------------------------------------------------ */

static void unary(struct sym_machine *machine, struct kymo_form_op op)
{
	struct sym_value *top = stack_entry(machine, 0);

	if (top)
		append_form(machine, top, op);
}

/* Keep a value as its type reads it. */
static void normalize(struct sym_machine *machine, struct sym_value *value)
{
	if (value->size < 8)
		append_form(machine, value,
			    (struct kymo_form_op){ KYMO_FORM_EXTEND, value->size, value->is_signed, 0 });
}

static void binary(struct sym_machine *machine, enum kymo_form_code code, uint8_t size, bool is_signed)
{
	struct sym_value *b = stack_entry(machine, 0), *a = stack_entry(machine, 1);

	if (!a || !b)
		return;
	if (a->form.n + b->form.n >= KYMO_FORM_OPS_MAX) {
		fail_machine(machine, "is computed by more operations than kymo takes");
		return;
	}
	memcpy(&a->form.ops[a->form.n], b->form.ops, b->form.n * sizeof(*b->form.ops));
	a->form.n += b->form.n;
	append_form(machine, a, (struct kymo_form_op){ (uint8_t)code, size, is_signed, 0 });
	normalize(machine, a);
	machine->n--;
}

static void compare_values(struct sym_machine *machine, enum kymo_form_code code, bool is_swapped)
{
	struct sym_value *b = stack_entry(machine, 0), *a = stack_entry(machine, 1), spare;
	/* Values without a type are compared by their signs. */
	const bool is_signed = !a || !a->is_typed || a->is_signed;

	if (!a || !b)
		return;
	if (is_swapped) {
		spare = *a;
		*a = *b;
		*b = spare;
	}
	a->size = 8;
	a->is_typed = false;
	binary(machine, code, 0, is_signed);
}

static void add_constant(struct sym_machine *machine, int64_t number)
{
	struct sym_value *top = stack_entry(machine, 0);
	struct kymo_form_op *last = top ? &top->form.ops[top->form.n - 1] : NULL;

	if (!top || !number)
		return;
	/* "register + 8, + 16" is one addition. */
	if (top->form.n >= 2 && last->code == KYMO_FORM_ADD && last[-1].code == KYMO_FORM_VALUE) {
		last[-1].value = (int64_t)((uint64_t)last[-1].value + (uint64_t)number);
		return;
	}
	if (last->code == KYMO_FORM_ADDRESS || last->code == KYMO_FORM_VALUE) {
		last->value = (int64_t)((uint64_t)last->value + (uint64_t)number);
		return;
	}
	append_form(machine, top, (struct kymo_form_op){ KYMO_FORM_VALUE, 0, 0, number });
	append_form(machine, top, (struct kymo_form_op){ KYMO_FORM_ADD, 0, 0, 0 });
	normalize(machine, top);
}

static bool push_register(struct sym_machine *machine, uint64_t number)
{
	if (number < SYM_MACHINE_REGISTERS) {
		push_number(machine, KYMO_FORM_REGISTER, (int64_t)number);
		return true;
	}
	fail_machine(machine, number >= SYM_MACHINE_VECTOR_FIRST && number < SYM_MACHINE_VECTOR_FIRST + 16
				      ? "is in a vector register"
				      : "is in a register that kymo does not read");
	return false;
}

static void load_value(struct sym_machine *machine, uint64_t size)
{
	if (size == 1 || size == 2 || size == 4 || size == 8)
		unary(machine, (struct kymo_form_op){ KYMO_FORM_LOAD, (uint8_t)size, 0, 0 });
	else
		fail_machine(machine, "is computed from a piece of memory that kymo does not load at once");
}

static void swap(struct sym_machine *machine)
{
	struct sym_value *b = stack_entry(machine, 0), *a = stack_entry(machine, 1), spare;

	if (!a || !b)
		return;
	spare = *a;
	*a = *b;
	*b = spare;
}

/* The third from the top becomes the top … as "rot" has it: top, second, third become second, third, top. */
static void rotate(struct sym_machine *machine)
{
	struct sym_value *top = stack_entry(machine, 0), *second = stack_entry(machine, 1),
			 *third = stack_entry(machine, 2), spare;

	if (!top || !second || !third)
		return;
	spare = *top;
	*top = *second;
	*second = *third;
	*third = spare;
}

/* ---- types ----------------------------------------------------------------------------------- */

/* The type that an operation names. False where it is no integer of 1 to 8 bytes. */
static bool operand_type(struct sym_machine *machine, const Dwarf_Op *op, uint8_t *size_ret, bool *is_signed_ret)
{
	uint64_t size = 0, encoding = 0;
	Dwarf_Die type;

	if (!machine->context->attribute || dwarf_getlocation_die(machine->context->attribute, op, &type) ||
	    !sym_die_number(&type, DW_AT_byte_size, &size) || !sym_die_number(&type, DW_AT_encoding, &encoding) ||
	    encoding == DW_ATE_float || encoding == DW_ATE_complex_float || encoding == DW_ATE_decimal_float ||
	    (size != 1 && size != 2 && size != 4 && size != 8)) {
		fail_machine(machine, "is computed with a type that kymo does not compute with");
		return false;
	}
	*size_ret = (uint8_t)size;
	*is_signed_ret = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	return true;
}

static void set_type(struct sym_machine *machine, const Dwarf_Op *op)
{
	struct sym_value *top = stack_entry(machine, 0);
	uint8_t size;
	bool is_signed;

	if (!top || !operand_type(machine, op, &size, &is_signed))
		return;
	top->size = size;
	top->is_typed = true;
	top->is_signed = is_signed;
	normalize(machine, top);
}

static void convert_type(struct sym_machine *machine, const Dwarf_Op *op)
{
	struct sym_value *top = stack_entry(machine, 0);

	if (!top)
		return;
	if (op->number) {
		set_type(machine, op);
		return;
	}
	top->size = 8;
	top->is_typed = top->is_signed = false;
}

static void push_typed_constant(struct sym_machine *machine, const Dwarf_Op *op)
{
	Dwarf_Block block;
	Dwarf_Attribute value;
	int64_t number = 0;

	if (!machine->context->attribute || dwarf_getlocation_attr(machine->context->attribute, op, &value) ||
	    dwarf_formblock(&value, &block) || block.length > sizeof(number)) {
		fail_machine(machine, "is computed with a constant that kymo does not take");
		return;
	}
	memcpy(&number, block.data, block.length);
	push_number(machine, KYMO_FORM_VALUE, number);
	set_type(machine, op);
}

/* ---- threads --------------------------------------------------------------------------------- */

/* The top is an offset into the thread's block of variables: it becomes their address. */
static void find_in_thread(struct sym_machine *machine)
{
	struct sym_value *top = stack_entry(machine, 0);
	const char *why = top ? sym_tls_find(machine->context->debug, &top->form) : NULL;

	if (why)
		fail_machine(machine, why);
	machine->is_in_thread = true;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static bool find_frame(const struct sym_context *context, Dwarf_Frame **ret)
{
	struct kymo_debug *debug = context->debug;

	return (debug->frames && !dwarf_cfi_addrframe(debug->frames, context->vaddr, ret)) ||
	       (debug->debug_frames && !dwarf_cfi_addrframe(debug->debug_frames, context->vaddr, ret));
}

/* The canonical frame address: what the stack pointer was before the call. */
static void push_frame_address(struct sym_machine *machine)
{
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	size_t n;

	if (!find_frame(machine->context, &frame)) {
		fail_machine(machine, "is in a frame of which nothing tells where it is here");
		return;
	}
	if (dwarf_frame_cfa(frame, &ops, &n) || !n)
		fail_machine(machine, "is in a frame of which nothing tells where it is here");
	else
		sym_machine_convert(machine, ops, n);
	free(frame);
}

static void push_frame_base(struct sym_machine *machine)
{
	struct sym_context inner = *machine->context;
	const struct sym_context *outer = machine->context;
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t n;

	if (!inner.function || !dwarf_attr_integrate(inner.function, DW_AT_frame_base, &attribute) ||
	    dwarf_getlocation_addr(&attribute, inner.vaddr, &ops, &n, 1) != 1 || !n) {
		fail_machine(machine, "is in a frame of which nothing tells where it is here");
		return;
	}
	inner.attribute = &attribute;
	machine->context = &inner;
	if (n == 1 && ops->atom >= DW_OP_reg0 && ops->atom <= DW_OP_reg31) {
		push_register(machine, ops->atom - DW_OP_reg0);
		machine->frame_register = ops->atom - DW_OP_reg0;
	} else {
		sym_machine_convert(machine, ops, n);
	}
	machine->context = outer;
}

/* What a register had when the function was entered. */
static void push_entry_value(struct sym_machine *machine, const Dwarf_Op *op)
{
	Dwarf_Attribute block;
	Dwarf_Op *ops;
	size_t n;

	if (!machine->context->is_entry) {
		fail_machine(machine, "is told only by what was passed at the entry: record it there");
		return;
	}
	if (!machine->context->attribute || dwarf_getlocation_attr(machine->context->attribute, op, &block) ||
	    dwarf_getlocation(&block, &ops, &n) || !n) {
		fail_machine(machine, "is told by a damaged expression");
		return;
	}
	if (n == 1 && ops->atom >= DW_OP_reg0 && ops->atom <= DW_OP_reg31)
		push_register(machine, ops->atom - DW_OP_reg0);
	else
		sym_machine_convert(machine, ops, n);
}

/* ---- one operation --------------------------------------------------------------------------- */

static const char *refusal(uint8_t code)
{
	switch (code) {
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		return "points to a variable that the compiler has split";
	case DW_OP_skip:
	case DW_OP_bra:
		return "is told by an expression with branches";
	case DW_OP_GNU_parameter_ref:
	case DW_OP_GNU_variable_value:
	case DW_OP_call2:
	case DW_OP_call4:
	case DW_OP_call_ref:
		return "is told by another entry, which kymo does not follow";
	default:
		return "is told by an operation that kymo does not know";
	}
}

static bool step_constant(struct sym_machine *machine, const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
		push_number(machine, KYMO_FORM_VALUE, op->atom - DW_OP_lit0);
		return true;
	}
	if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts) {
		push_number(machine, KYMO_FORM_VALUE, (int64_t)op->number);
		return true;
	}
	switch (op->atom) {
	case DW_OP_addr:
		push_number(machine, KYMO_FORM_ADDRESS, (int64_t)op->number);
		return true;
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
		find_in_thread(machine);
		return true;
	case DW_OP_const_type:
	case DW_OP_GNU_const_type:
		push_typed_constant(machine, op);
		return true;
	default:
		return false;
	}
}

/* Addresses and constants that stand in a table of their own (DWARF 5, split units). */
static bool step_indexed(struct sym_machine *machine, const Dwarf_Op *op)
{
	const bool is_address = op->atom == DW_OP_addrx || op->atom == DW_OP_GNU_addr_index;
	Dwarf_Attribute value;
	Dwarf_Addr address;

	if (!is_address && op->atom != DW_OP_constx && op->atom != DW_OP_GNU_const_index)
		return false;
	if (!machine->context->attribute || dwarf_getlocation_attr(machine->context->attribute, op, &value) ||
	    (is_address ? dwarf_formaddr(&value, &address) : dwarf_formudata(&value, &address)))
		fail_machine(machine, "is told by a damaged expression");
	else
		push_number(machine, is_address ? KYMO_FORM_ADDRESS : KYMO_FORM_VALUE, (int64_t)address);
	return true;
}

static bool step_register(struct sym_machine *machine, const Dwarf_Op *op)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		if (push_register(machine, op->atom - DW_OP_breg0))
			add_constant(machine, (int64_t)op->number);
		return true;
	}
	switch (op->atom) {
	case DW_OP_bregx:
		if (push_register(machine, op->number))
			add_constant(machine, (int64_t)op->number2);
		return true;
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
		if (push_register(machine, op->number))
			set_type(machine, op);
		return true;
	case DW_OP_fbreg:
		push_frame_base(machine);
		add_constant(machine, (int64_t)op->number);
		return true;
	case DW_OP_call_frame_cfa:
		push_frame_address(machine);
		return true;
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		push_entry_value(machine, op);
		return true;
	default:
		return false;
	}
}

static bool step_stack(struct sym_machine *machine, const Dwarf_Op *op)
{
	switch (op->atom) {
	case DW_OP_dup:
		copy(machine, 0);
		return true;
	case DW_OP_over:
		copy(machine, 1);
		return true;
	case DW_OP_pick:
		copy(machine, op->number);
		return true;
	case DW_OP_drop:
		if (stack_entry(machine, 0))
			machine->n--;
		return true;
	case DW_OP_swap:
		swap(machine);
		return true;
	case DW_OP_rot:
		rotate(machine);
		return true;
	case DW_OP_nop:
		return true;
	case DW_OP_deref:
		load_value(machine, 8);
		return true;
	case DW_OP_deref_size:
		load_value(machine, op->number);
		return true;
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type:
		load_value(machine, op->number);
		set_type(machine, op);
		return true;
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret:
		convert_type(machine, op);
		return true;
	default:
		return false;
	}
}

static void shift_value(struct sym_machine *machine, enum kymo_form_code code, bool is_signed)
{
	struct sym_value *a = stack_entry(machine, 1);

	if (a)
		binary(machine, code, a->size == 4 ? 4 : 8, is_signed);
}

/* (x ^ s) - s, where s has the sign of x in each bit. */
static void make_absolute(struct sym_machine *machine)
{
	copy(machine, 0);
	push_number(machine, KYMO_FORM_VALUE, 63);
	binary(machine, KYMO_FORM_SHIFT_RIGHT, 8, true);
	swap(machine);
	copy(machine, 1);
	binary(machine, KYMO_FORM_XOR, 0, false);
	swap(machine);
	binary(machine, KYMO_FORM_SUBTRACT, 0, false);
}

/* Those that are the same whatever the types are. */
static bool step_plain(struct sym_machine *machine, const Dwarf_Op *op)
{
	static const struct {
		uint8_t operation, code;
	} plain[] = {
		{ DW_OP_plus, KYMO_FORM_ADD }, { DW_OP_minus, KYMO_FORM_SUBTRACT }, { DW_OP_mul, KYMO_FORM_MULTIPLY },
		{ DW_OP_and, KYMO_FORM_AND },  { DW_OP_or, KYMO_FORM_OR },          { DW_OP_xor, KYMO_FORM_XOR },
	};

	for (size_t i = 0; i < kymo_countof(plain); i++)
		if (plain[i].operation == op->atom) {
			binary(machine, (enum kymo_form_code)plain[i].code, 0, false);
			return true;
		}
	return false;
}

static bool step_arithmetic(struct sym_machine *machine, const Dwarf_Op *op)
{
	struct sym_value *a = machine->n > 1 ? stack_entry(machine, 1) : NULL;
	const bool is_signed = !a || !a->is_typed || a->is_signed;

	switch (op->atom) {
	case DW_OP_plus_uconst:
		add_constant(machine, (int64_t)op->number);
		return true;
	case DW_OP_div:
		binary(machine, KYMO_FORM_DIVIDE, 0, is_signed);
		return true;
	case DW_OP_mod:
		binary(machine, KYMO_FORM_REMAINDER, 0, a && a->is_typed && a->is_signed);
		return true;
	case DW_OP_shl:
		shift_value(machine, KYMO_FORM_SHIFT_LEFT, false);
		return true;
	case DW_OP_shr:
		shift_value(machine, KYMO_FORM_SHIFT_RIGHT, false);
		return true;
	case DW_OP_shra:
		shift_value(machine, KYMO_FORM_SHIFT_RIGHT, true);
		return true;
	case DW_OP_neg:
		unary(machine, (struct kymo_form_op){ KYMO_FORM_NEGATE, 0, 0, 0 });
		return true;
	case DW_OP_abs:
		make_absolute(machine);
		return true;
	case DW_OP_not:
		unary(machine, (struct kymo_form_op){ KYMO_FORM_COMPLEMENT, 0, 0, 0 });
		return true;
	default:
		return false;
	}
}

static bool step_comparison(struct sym_machine *machine, const Dwarf_Op *op)
{
	static const struct {
		uint8_t operation;
		enum kymo_form_code code;
		bool is_swapped;
	} comparisons[] = {
		{ DW_OP_eq, KYMO_FORM_EQUAL, false },         { DW_OP_ne, KYMO_FORM_DIFFERENT, false },
		{ DW_OP_lt, KYMO_FORM_LESS, false },          { DW_OP_gt, KYMO_FORM_LESS, true },
		{ DW_OP_le, KYMO_FORM_LESS_OR_EQUAL, false }, { DW_OP_ge, KYMO_FORM_LESS_OR_EQUAL, true },
	};

	for (size_t i = 0; i < kymo_countof(comparisons); i++)
		if (comparisons[i].operation == op->atom) {
			compare_values(machine, comparisons[i].code, comparisons[i].is_swapped);
			return true;
		}
	return false;
}

struct sym_value *sym_machine_convert(struct sym_machine *machine, const Dwarf_Op *ops, size_t n)
{
	if (++machine->nesting > NESTING_MAX)
		fail_machine(machine, "is told by an expression within expressions");
	for (size_t i = 0; i < n && !machine->why; i++)
		if (!step_constant(machine, &ops[i]) && !step_indexed(machine, &ops[i]) &&
		    !step_register(machine, &ops[i]) && !step_stack(machine, &ops[i]) &&
		    !step_plain(machine, &ops[i]) && !step_arithmetic(machine, &ops[i]) &&
		    !step_comparison(machine, &ops[i]))
			fail_machine(machine, refusal(ops[i].atom));
	machine->nesting--;
	return machine->why ? NULL : stack_entry(machine, 0);
}
