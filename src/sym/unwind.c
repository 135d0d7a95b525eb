/*
 * One frame after the other. Rows are kept by their address, as a program makes its calls from few: 256 of a module,
 * each where its address falls.
 */
#include "sym/unwind.h"

#include <errno.h>
#include <stdlib.h>

#include "sym/cfi.h"
#include "sym/expression.h"
#include "sym/rows.h"

enum { CACHED_ROWS = 256 };

struct sym_row_cache {
	struct sym_row rows[CACHED_ROWS];
	bool is_there[CACHED_ROWS];
};

/* The row of an address, which `spare` is for where memory is out. */
static const struct sym_row *row_of(struct kymo_module *module, uint64_t vaddr, struct sym_row *spare)
{
	const size_t i = (vaddr ^ vaddr >> 8) % CACHED_ROWS;
	struct sym_row_cache *rows;

	if (!module->rows)
		module->rows = calloc(1, sizeof(*module->rows));
	rows = module->rows;
	if (!rows) {
		sym_row_find(module, vaddr, spare);
		return spare;
	}
	if (!rows->is_there[i] || rows->rows[i].vaddr != vaddr)
		sym_row_find(module, vaddr, &rows->rows[i]);
	rows->is_there[i] = true;
	return &rows->rows[i];
}

struct step {
	const struct kymo_frame *frame;
	uint64_t cfa;
	kymo_frame_read *read;
	void *context;
};

static int apply(const struct step *step, const struct sym_rule *rule, uint64_t *value)
{
	uint64_t address;
	int err;

	switch (rule->kind) {
	case SYM_RULE_SAME:
		return 0;
	case SYM_RULE_UNDEFINED:
		*value = 0;
		return 0;
	case SYM_RULE_AT:
		return step->read(step->context, step->cfa + (uint64_t)rule->value, value) ? 0 : -EFAULT;
	case SYM_RULE_IS:
		*value = step->cfa + (uint64_t)rule->value;
		return 0;
	case SYM_RULE_REGISTER:
		*value = step->frame->registers[rule->value] + (uint64_t)rule->extra;
		return 0;
	case SYM_RULE_IS_EXPRESSION:
		return sym_expression(rule->expression, step->frame, &step->cfa, step->read, step->context, value);
	case SYM_RULE_AT_EXPRESSION:
		err = sym_expression(rule->expression, step->frame, &step->cfa, step->read, step->context, &address);
		return err ? err : step->read(step->context, address, value) ? 0 : -EFAULT;
	}
	return -EBADMSG;
}

/* What was saved below the stack pointer is in its register again: compilers do not say so where the function returns
 * at once. A copy of a stack has nothing of it. */
static bool is_popped(const struct step *step, const struct sym_rule *rule)
{
	return rule->kind == SYM_RULE_AT && step->cfa + (uint64_t)rule->value < step->frame->registers[KYMO_FRAME_RSP];
}

static int find_cfa(const struct sym_row *row, struct step *step)
{
	switch (row->cfa.kind) {
	case SYM_RULE_REGISTER:
		return apply(step, &row->cfa, &step->cfa);
	case SYM_RULE_IS_EXPRESSION:
		return sym_expression(row->cfa.expression, step->frame, NULL, step->read, step->context, &step->cfa);
	default:
		return -EBADMSG;
	}
}

/* Of a stack that only grows down the caller's part is further up. A signal may have come on another stack. */
static bool is_further(const struct kymo_frame *caller, const struct kymo_frame *frame)
{
	return caller->registers[KYMO_FRAME_RSP] > frame->registers[KYMO_FRAME_RSP];
}

int kymo_module_unwind(struct kymo_module *module, uint64_t vaddr, struct kymo_frame *frame, kymo_frame_read *read,
		       void *context)
{
	struct sym_row spare;
	const struct sym_row *row = row_of(module, vaddr, &spare);
	struct step step = { .frame = frame, .read = read, .context = context };
	struct kymo_frame caller = *frame;
	int err = row->err;

	if (!err && row->registers[KYMO_FRAME_PC].kind == SYM_RULE_UNDEFINED)
		return -ENODATA;
	if (!err)
		err = find_cfa(row, &step);
	for (size_t i = 0; i < KYMO_FRAME_REGISTERS && !err; i++) {
		err = apply(&step, &row->registers[i], &caller.registers[i]);
		if (err == -EFAULT && i != KYMO_FRAME_PC && is_popped(&step, &row->registers[i]))
			err = 0;
	}
	if (err)
		return err;
	if (!caller.registers[KYMO_FRAME_PC])
		return -ENODATA;
	if (!row->is_signal && !is_further(&caller, frame))
		return -EBADMSG;
	caller.is_exact = row->is_signal;
	*frame = caller;
	return 0;
}

int kymo_module_return_place(struct kymo_module *module, uint64_t vaddr, const struct kymo_frame *frame,
			     kymo_frame_read *read, void *context, uint64_t *ret)
{
	struct sym_row spare;
	const struct sym_row *row = row_of(module, vaddr, &spare);
	const struct sym_rule *rule = &row->registers[KYMO_FRAME_PC];
	struct step step = { .frame = frame, .read = read, .context = context };
	int err = row->err;

	if (!err && rule->kind == SYM_RULE_UNDEFINED)
		return -ENODATA;
	if (!err && rule->kind != SYM_RULE_AT)
		return -EBADMSG;
	if (!err)
		err = find_cfa(row, &step);
	if (!err)
		*ret = step.cfa + (uint64_t)rule->value;
	return err;
}

int kymo_frame_unwind_by_pointer(struct kymo_frame *frame, kymo_frame_read *read, void *context)
{
	const uint64_t pointer = frame->registers[KYMO_FRAME_RBP];
	struct kymo_frame caller = *frame;

	caller.registers[KYMO_FRAME_RSP] = pointer + 16;
	if (pointer % 8 || !is_further(&caller, frame))
		return -EBADMSG;
	if (!read(context, pointer, &caller.registers[KYMO_FRAME_RBP]) ||
	    !read(context, pointer + 8, &caller.registers[KYMO_FRAME_PC]))
		return -EFAULT;
	caller.is_exact = false;
	*frame = caller;
	return 0;
}
