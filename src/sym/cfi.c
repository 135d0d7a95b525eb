/*
 * The programs in .eh_frame, which say for each address of a function where the caller's registers are. Those of the
 * CIE, which many functions share, and then the function's own are executed up to the address; what is left is its row.
 *
 * libdw has an interpreter of these, too. It is not used: it makes room for any register number that a program names
 * (elfutils 0.188, cfi.c, enough_registers()). So one damaged byte of a file may ask for all memory, or for too little.
 *
 * Reference: DWARF 5, 6.4; Linux Standard Base, "DWARF Extensions"; the x86-64 psABI, 3.6.
 */
#include "sym/cfi.h"

#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "base/search.h"
#include "sym/cursor.h"
#include "sym/frames.h"
#include "sym/module.h"
#include "sym/rows.h"

enum {
	PROGRAM_MAX = 1 << 16, /* bytes; the largest function of large programs has a tenth of it */
	REMEMBERED_MAX = 8,
	OPERAND_BITS = 6, /* of the instructions that have one in their own byte */
};

/* A program that is being executed. */
struct program {
	struct sym_cursor at;
	const struct sym_cie *cie;
	uint64_t limit, vaddr; /* up to where; where it is */
	struct sym_row row, initial, remembered[REMEMBERED_MAX];
	size_t n_remembered;
};

/* The rule of a register; a row that is not followed goes to one that is thrown away. */
static struct sym_rule *rule_of(struct program *p, uint64_t number)
{
	static _Thread_local struct sym_rule nobodys;

	return number < KYMO_FRAME_REGISTERS ? &p->row.registers[number] : &nobodys;
}

static bool set_offset(struct program *p, uint64_t number, enum sym_rule_kind kind, int64_t factored)
{
	int64_t value;

	if (__builtin_mul_overflow(factored, p->cie->data_factor, &value))
		return false;
	*rule_of(p, number) = (struct sym_rule){ .kind = kind, .value = value };
	return true;
}

static bool read_offset(struct program *p, uint64_t number, enum sym_rule_kind kind, bool is_signed)
{
	uint64_t factored;

	if (!(is_signed ? sym_read_sleb : sym_read_uleb)(&p->at, &factored))
		return false;
	return set_offset(p, number, kind, (int64_t)factored);
}

static bool read_number_and_offset(struct program *p, enum sym_rule_kind kind, bool is_signed)
{
	uint64_t number;

	return sym_read_uleb(&p->at, &number) && read_offset(p, number, kind, is_signed);
}

static bool read_expression(struct program *p, struct sym_rule *rule, enum sym_rule_kind kind)
{
	uint64_t size;

	*rule = (struct sym_rule){ .kind = kind };
	if (!sym_read_uleb(&p->at, &size))
		return false;
	rule->expression.start = p->at.at;
	if (!sym_skip(&p->at, size))
		return false;
	rule->expression.end = p->at.at;
	return true;
}

static bool set_kind(struct program *p, enum sym_rule_kind kind)
{
	uint64_t number;

	if (!sym_read_uleb(&p->at, &number))
		return false;
	*rule_of(p, number) = (struct sym_rule){ .kind = kind };
	return true;
}

static bool set_register(struct program *p)
{
	uint64_t number, other;

	if (!sym_read_uleb(&p->at, &number) || !sym_read_uleb(&p->at, &other) || other >= KYMO_FRAME_REGISTERS)
		return false;
	*rule_of(p, number) = (struct sym_rule){ .kind = SYM_RULE_REGISTER, .value = (int64_t)other };
	return true;
}

static bool set_cfa_offset(struct program *p, bool is_factored)
{
	uint64_t offset;

	if (!(is_factored ? sym_read_sleb : sym_read_uleb)(&p->at, &offset) || p->row.cfa.kind != SYM_RULE_REGISTER)
		return false;
	return !__builtin_mul_overflow((int64_t)offset, is_factored ? p->cie->data_factor : 1, &p->row.cfa.extra);
}

static bool set_cfa_register(struct program *p)
{
	const bool is_register = p->row.cfa.kind == SYM_RULE_REGISTER;
	uint64_t number;

	if (!sym_read_uleb(&p->at, &number) || number >= KYMO_FRAME_REGISTERS)
		return false;
	p->row.cfa = (struct sym_rule){ .kind = SYM_RULE_REGISTER,
					.value = (int64_t)number,
					.extra = is_register ? p->row.cfa.extra : 0 };
	return true;
}

static bool set_cfa(struct program *p, bool is_factored)
{
	return set_cfa_register(p) && set_cfa_offset(p, is_factored);
}

static bool restore(struct program *p, uint64_t number)
{
	if (number < KYMO_FRAME_REGISTERS)
		p->row.registers[number] = p->initial.registers[number];
	return true;
}

static bool remember(struct program *p)
{
	if (p->n_remembered == REMEMBERED_MAX)
		return false;
	p->remembered[p->n_remembered++] = p->row;
	return true;
}

static bool recall(struct program *p)
{
	if (!p->n_remembered)
		return false;
	p->row = p->remembered[--p->n_remembered];
	return true;
}

static bool advance(struct program *p, uint64_t steps)
{
	uint64_t bytes;

	return !__builtin_mul_overflow(steps, p->cie->code_factor, &bytes) &&
	       !__builtin_add_overflow(p->vaddr, bytes, &p->vaddr);
}

static bool read_advance(struct program *p, unsigned int size)
{
	uint64_t steps;

	return sym_read_fixed(&p->at, size, false, &steps) && advance(p, steps);
}

static bool execute_extended(struct program *p, uint8_t code)
{
	uint64_t number;

	switch (code) {
	case DW_CFA_nop:
		return true;
	case DW_CFA_set_loc:
		return sym_read_pointer(&p->at, p->cie->pointer_encoding, 0, &p->vaddr);
	case DW_CFA_advance_loc1:
		return read_advance(p, 1);
	case DW_CFA_advance_loc2:
		return read_advance(p, 2);
	case DW_CFA_advance_loc4:
		return read_advance(p, 4);
	case DW_CFA_offset_extended:
		return read_number_and_offset(p, SYM_RULE_AT, false);
	case DW_CFA_offset_extended_sf:
		return read_number_and_offset(p, SYM_RULE_AT, true);
	case DW_CFA_val_offset:
		return read_number_and_offset(p, SYM_RULE_IS, false);
	case DW_CFA_val_offset_sf:
		return read_number_and_offset(p, SYM_RULE_IS, true);
	case DW_CFA_restore_extended:
		return sym_read_uleb(&p->at, &number) && restore(p, number);
	case DW_CFA_undefined:
		return set_kind(p, SYM_RULE_UNDEFINED);
	case DW_CFA_same_value:
		return set_kind(p, SYM_RULE_SAME);
	case DW_CFA_register:
		return set_register(p);
	case DW_CFA_remember_state:
		return remember(p);
	case DW_CFA_restore_state:
		return recall(p);
	case DW_CFA_def_cfa:
		return set_cfa(p, false);
	case DW_CFA_def_cfa_sf:
		return set_cfa(p, true);
	case DW_CFA_def_cfa_register:
		return set_cfa_register(p);
	case DW_CFA_def_cfa_offset:
		return set_cfa_offset(p, false);
	case DW_CFA_def_cfa_offset_sf:
		return set_cfa_offset(p, true);
	case DW_CFA_def_cfa_expression:
		return read_expression(p, &p->row.cfa, SYM_RULE_IS_EXPRESSION);
	case DW_CFA_expression:
		return sym_read_uleb(&p->at, &number) && read_expression(p, rule_of(p, number), SYM_RULE_AT_EXPRESSION);
	case DW_CFA_val_expression:
		return sym_read_uleb(&p->at, &number) && read_expression(p, rule_of(p, number), SYM_RULE_IS_EXPRESSION);
	case DW_CFA_GNU_args_size:
		return sym_read_uleb(&p->at, &number);
	default:
		return false;
	}
}

static bool execute_one(struct program *p)
{
	uint8_t code, operand;

	if (!sym_read_u8(&p->at, &code))
		return false;
	operand = code & ((1 << OPERAND_BITS) - 1);
	switch (code >> OPERAND_BITS << OPERAND_BITS) {
	case DW_CFA_advance_loc:
		return advance(p, operand);
	case DW_CFA_offset:
		return read_offset(p, operand, SYM_RULE_AT, false);
	case DW_CFA_restore:
		return restore(p, operand);
	default:
		return execute_extended(p, code);
	}
}

/* Up to the limit, or to the end. The pointers of rules are in a section that is loaded. */
static bool execute(struct program *p, struct kymo_module *module, struct sym_rules rules)
{
	uint64_t offset = (uint64_t)(rules.start - module->image.bytes);

	p->at = (struct sym_cursor){ .module = module, .at = rules.start, .end = rules.end };
	if (!rules.start || rules.end - rules.start > PROGRAM_MAX ||
	    kymo_module_offset_to_vaddr(module, offset, &p->at.vaddr))
		return rules.start && rules.start == rules.end;
	while (p->at.at < p->at.end && p->vaddr <= p->limit)
		if (!execute_one(p))
			return false;
	return true;
}

static const struct sym_fde *fde_at(struct kymo_module *module, uint64_t vaddr)
{
	struct kymo_error *error = sym_frames_read(module);
	size_t n;

	kymo_error_destroy(error);
	if (error)
		return NULL;
	n = kymo_partition_point(i, module->fdes.n, module->fdes.items[i].start <= vaddr);
	return n && vaddr < module->fdes.items[n - 1].end && module->fdes.items[n - 1].rules.start
		       ? &module->fdes.items[n - 1]
		       : NULL;
}

void sym_row_find(struct kymo_module *module, uint64_t vaddr, struct sym_row *ret)
{
	const struct sym_fde *fde = fde_at(module, vaddr);
	struct program p = { .limit = vaddr };

	*ret = (struct sym_row){ .vaddr = vaddr, .err = fde ? -EBADMSG : -ENOENT };
	if (!fde)
		return;
	p.cie = &module->cies.items[fde->cie];
	p.row.vaddr = vaddr;
	p.row.is_signal = p.cie->is_signal;
	p.row.return_register = p.cie->return_register;
	/* Registers without a rule keep the caller's value, as compilers intend; the stack pointer is what the CFA
	 * says. */
	p.row.registers[KYMO_FRAME_RSP] = (struct sym_rule){ .kind = SYM_RULE_IS };
	p.row.cfa.kind = SYM_RULE_UNDEFINED;
	if (p.row.return_register != KYMO_FRAME_PC || !execute(&p, module, p.cie->rules))
		return;
	p.initial = p.row;
	p.vaddr = fde->start;
	if (execute(&p, module, fde->rules))
		*ret = p.row;
}
