/*
 * Whether an indirect jump leads only to addresses that the map has.
 *
 * It does when it jumps to a whole pointer that was not computed with: loaded from memory, popped, taken by lea,
 * returned by a call, or handed to the function in a register it never writes; or when it is the sum of a table's
 * address and an entry of that very table. The search for where a register was written goes back instruction by
 * instruction, and stops where control may come from elsewhere. What is asked there is weaker but independent of order:
 * does any instruction of the function put something computed into that register?
 */
#include "arch/x86_64/jumps.h"

#include <string.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"

#define STEPS_MAX 256 /* instructions looked at for one register */
#define DEPTH_MAX 8   /* copies followed */

#define CALL_CLOBBERED 0x0fc7u /* rax rcx rdx rsi rdi r8-r11 */

enum origin {
	ORIGIN_UNKNOWN, /* the search was given up */
	ORIGIN_BLOCK,   /* what the register held at `at`, where control may come from elsewhere */
	ORIGIN_CALL,    /* what the call at `at` left in it */
	ORIGIN_INSN,    /* what the instruction at `at` put there: `insn` */
};

struct value {
	enum origin origin;
	int reg;
	uint64_t at;
	struct x86_insn insn;
};

static int decode_at(const struct x86_jumps *jumps, uint64_t vaddr, struct x86_insn *insn)
{
	size_t size;
	const uint8_t *bytes = x86_text_at(jumps->map, vaddr, &size);

	return bytes ? x86_decode_full(&jumps->decoder, bytes, size, vaddr, insn) : -1;
}

/* Find what `reg` holds just before the instruction at `vaddr`. */
static void find_value(const struct x86_jumps *jumps, size_t function, int reg, uint64_t vaddr, struct value *ret)
{
	const struct kymo_entry_map *map = jumps->map;
	uint64_t start = jumps->code->functions[function].start;

	ret->reg = reg;
	ret->at = vaddr;
	for (int steps = 0; steps < STEPS_MAX; steps++) {
		ret->origin = ORIGIN_BLOCK;
		if (ret->at <= start || x86_test(map, X86_KNOWN, ret->at) || x86_test(map, X86_LIKELY, ret->at) ||
		    x86_test(map, X86_STOPS, ret->at))
			return;
		ret->at = x86_last(map, 1u << X86_STARTS, start, ret->at - 1);
		if (ret->at == UINT64_MAX || decode_at(jumps, ret->at, &ret->insn) < 0)
			break;
		ret->origin = x86_flow_is_call(ret->insn.flow) ? ORIGIN_CALL : ORIGIN_INSN;
		if (ret->origin == ORIGIN_CALL && (CALL_CLOBBERED >> reg & 1))
			return;
		if (ret->origin == ORIGIN_INSN && x86_writes(&ret->insn, reg))
			return;
	}
	ret->origin = ORIGIN_UNKNOWN;
}

/* ---- shapes of instructions ------------------------------------------------------------------ */

static bool is_register(const ZydisDecodedOperand *op, int size)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && op->size == size && x86_gpr(op->reg.value) >= 0;
}

static bool is_mov(const struct x86_insn *insn, ZydisOperandType source, int size)
{
	return insn->z.mnemonic == ZYDIS_MNEMONIC_MOV && is_register(&insn->op[0], size) &&
	       insn->op[1].type == source && insn->op[1].size == size &&
	       (source != ZYDIS_OPERAND_TYPE_REGISTER || x86_gpr(insn->op[1].reg.value) >= 0);
}

static bool is_load(const struct x86_insn *insn)
{
	return is_mov(insn, ZYDIS_OPERAND_TYPE_MEMORY, 64) ||
	       (insn->z.mnemonic == ZYDIS_MNEMONIC_POP && is_register(&insn->op[0], 64));
}

/* glibc's PTR_DEMANGLE: a rotation by a constant, and an xor with the guard beside the thread pointer. */
static bool is_unmangling(const struct x86_insn *insn)
{
	if (!is_register(&insn->op[0], 64))
		return false;
	if (insn->z.mnemonic == ZYDIS_MNEMONIC_ROR || insn->z.mnemonic == ZYDIS_MNEMONIC_ROL)
		return insn->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	return insn->z.mnemonic == ZYDIS_MNEMONIC_XOR && insn->op[1].type == ZYDIS_OPERAND_TYPE_MEMORY &&
	       insn->op[1].mem.segment == ZYDIS_REGISTER_FS;
}

static bool is_cmov(const struct x86_insn *insn)
{
	return insn->z.meta.category == ZYDIS_CATEGORY_CMOV && is_register(&insn->op[0], 64);
}

/* A constant that is no code address, zero, or what was extended from less than 32 bits. */
static bool is_small(const struct x86_jumps *jumps, const struct x86_insn *insn)
{
	if (!is_register(&insn->op[0], 32))
		return false;
	switch (insn->z.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return insn->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		       !x86_area_at(jumps->map, (uint32_t)insn->op[1].imm.value.u);
	case ZYDIS_MNEMONIC_XOR:
		return insn->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		       insn->op[0].reg.value == insn->op[1].reg.value;
	default:
		return insn->z.mnemonic == ZYDIS_MNEMONIC_MOVZX;
	}
}

/* A result that no code address fits in; 32 bits are too few for one of a module that can move. */
static bool is_too_narrow(const struct x86_jumps *jumps, const struct x86_insn *insn, int reg)
{
	if (is_small(jumps, insn))
		return true;
	if (!jumps->code->position_independent)
		return false;
	for (int i = 0; i < insn->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &insn->op[i];

		if (op->type == ZYDIS_OPERAND_TYPE_REGISTER && (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    x86_gpr(op->reg.value) == reg && op->size != 32)
			return false;
	}
	return true;
}

/* The two registers whose sum the instruction leaves in `reg`. */
static bool is_sum(const struct x86_insn *insn, int reg, int *a_ret, int *b_ret)
{
	const ZydisDecodedOperandMem *mem = &insn->op[1].mem;

	if (!is_register(&insn->op[0], 64) || x86_gpr(insn->op[0].reg.value) != reg)
		return false;
	if (insn->z.mnemonic == ZYDIS_MNEMONIC_ADD && is_register(&insn->op[1], 64)) {
		*a_ret = reg;
		*b_ret = x86_gpr(insn->op[1].reg.value);
		return true;
	}
	if (insn->z.mnemonic != ZYDIS_MNEMONIC_LEA || insn->z.address_width != 64 || mem->scale != 1 ||
	    mem->disp.value != 0)
		return false;
	*a_ret = x86_gpr(mem->base);
	*b_ret = x86_gpr(mem->index);
	return *a_ret >= 0 && *b_ret >= 0;
}

/* ---- whole pointers -------------------------------------------------------------------------- */

/* Whether the instruction may put something computed into `reg`; a copy is not that, but goes to `copies`. */
static bool computes(const struct x86_jumps *jumps, const struct x86_insn *insn, int reg, uint32_t *copies)
{
	if (is_mov(insn, ZYDIS_OPERAND_TYPE_REGISTER, 64) || is_cmov(insn)) {
		if (insn->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER)
			*copies |= 1u << x86_gpr(insn->op[1].reg.value);
		return false;
	}
	return !is_load(insn) && !is_unmangling(insn) && !x86_is_rip_lea(insn) && !is_too_narrow(jumps, insn, reg);
}

static void summarize(struct x86_jumps *jumps, size_t function)
{
	const struct kymo_extent *extent = &jumps->code->functions[function];
	struct x86_insn insn;

	jumps->summary_of = (ptrdiff_t)function;
	jumps->summary_bad = 0;
	memset(jumps->summary_copies, 0, sizeof(jumps->summary_copies));
	for (uint64_t at = extent->start; at < extent->end; at += insn.length) {
		if (decode_at(jumps, at, &insn) < 0) {
			jumps->summary_bad = UINT32_MAX;
			return;
		}
		for (int reg = 0; reg < 16; reg++) {
			if (!x86_flow_is_call(insn.flow) && x86_writes(&insn, reg) &&
			    computes(jumps, &insn, reg, &jumps->summary_copies[reg]))
				jumps->summary_bad |= 1u << reg;
		}
	}
}

/* Whether no instruction of the function puts something computed into `reg`, or into what it is copied from. */
static bool holds_only_pointers(struct x86_jumps *jumps, size_t function, int reg)
{
	uint32_t reached = 1u << reg, before;

	if (jumps->summary_of != (ptrdiff_t)function)
		summarize(jumps, function);
	do {
		before = reached;
		for (int i = 0; i < 16; i++) {
			if (before >> i & 1)
				reached |= jumps->summary_copies[i];
		}
	} while (reached != before);
	return !(reached & jumps->summary_bad);
}

static bool is_pointer(struct x86_jumps *jumps, size_t function, int reg, uint64_t vaddr, int depth)
{
	const struct x86_insn *insn;
	struct value value;

	if (depth > DEPTH_MAX)
		return false;
	find_value(jumps, function, reg, vaddr, &value);
	insn = &value.insn;
	if (value.origin == ORIGIN_BLOCK)
		return holds_only_pointers(jumps, function, reg);
	if (value.origin != ORIGIN_INSN)
		return value.origin == ORIGIN_CALL;
	if (is_mov(insn, ZYDIS_OPERAND_TYPE_REGISTER, 64))
		return is_pointer(jumps, function, x86_gpr(insn->op[1].reg.value), value.at, depth + 1);
	if (is_unmangling(insn))
		return is_pointer(jumps, function, reg, value.at, depth + 1);
	if (is_cmov(insn))
		return is_pointer(jumps, function, reg, value.at, depth + 1) &&
		       (insn->op[1].type == ZYDIS_OPERAND_TYPE_MEMORY ||
			is_pointer(jumps, function, x86_gpr(insn->op[1].reg.value), value.at, depth + 1));
	return is_load(insn) || x86_is_rip_lea(insn) || is_too_narrow(jumps, insn, reg) ||
	       (!jumps->code->position_independent && insn->z.mnemonic == ZYDIS_MNEMONIC_MOV &&
		insn->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && insn->op[0].size >= 32);
}

/* ---- jump tables ----------------------------------------------------------------------------- */

/* The value of `reg` before `vaddr`, copies followed back to where it was made. */
static void find_origin(const struct x86_jumps *jumps, size_t function, int reg, uint64_t vaddr, struct value *ret)
{
	for (int depth = 0; depth < DEPTH_MAX; depth++) {
		find_value(jumps, function, reg, vaddr, ret);
		if (ret->origin != ORIGIN_INSN || !is_mov(&ret->insn, ZYDIS_OPERAND_TYPE_REGISTER, 64))
			return;
		reg = x86_gpr(ret->insn.op[1].reg.value);
		vaddr = ret->at;
	}
	ret->origin = ORIGIN_UNKNOWN;
}

static bool same_value(const struct value *a, const struct value *b)
{
	if (a->origin != b->origin || a->origin == ORIGIN_UNKNOWN)
		return false;
	if (a->origin == ORIGIN_INSN && x86_is_rip_lea(&a->insn) && x86_is_rip_lea(&b->insn))
		return a->insn.rip == b->insn.rip;
	return a->reg == b->reg && a->at == b->at;
}

/* The constant address of a table, as a module that cannot move may have it. */
static bool is_constant(const struct x86_insn *insn, uint64_t *ret)
{
	if (insn->z.mnemonic != ZYDIS_MNEMONIC_MOV || insn->op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
		return false;
	*ret = insn->op[1].imm.value.u;
	return true;
}

/*
 * A table's address in sight must be one at which a table was found. Out of sight, it was made by some lea of the
 * module, which tables.c has followed; that this function takes the address of a table at all makes sure that it is a
 * switch.
 */
static bool is_table_base(const struct x86_jumps *jumps, size_t function, const struct value *base)
{
	uint64_t address;

	if (base->origin == ORIGIN_INSN && x86_is_rip_lea(&base->insn))
		return jumps->has_table(jumps->closure, base->insn.rip);
	if (base->origin == ORIGIN_INSN && is_constant(&base->insn, &address))
		return jumps->has_table(jumps->closure, address);
	if (base->origin == ORIGIN_INSN) {
		const ZydisDecodedOperandMem *mem = &base->insn.op[1].mem;

		if (!is_mov(&base->insn, ZYDIS_OPERAND_TYPE_MEMORY, 64) ||
		    (mem->base != ZYDIS_REGISTER_RSP && mem->base != ZYDIS_REGISTER_RBP))
			return false;
	}
	return base->origin != ORIGIN_CALL && jumps->map->functions[function].n_tables > 0;
}

/* Whether `entry` is a 32-bit entry, its sign extended, of the table at `base`. */
static bool is_entry_of(const struct x86_jumps *jumps, size_t function, struct value *entry, const struct value *base)
{
	const ZydisDecodedOperandMem *mem = &entry->insn.op[1].mem;
	ZydisRegister registers[2];
	struct value of;

	if (entry->origin != ORIGIN_INSN)
		return false;
	if (entry->insn.z.mnemonic == ZYDIS_MNEMONIC_CDQE ||
	    (entry->insn.z.mnemonic == ZYDIS_MNEMONIC_MOVSXD && is_register(&entry->insn.op[1], 32))) {
		int source = entry->insn.z.mnemonic == ZYDIS_MNEMONIC_CDQE ? 0 : x86_gpr(entry->insn.op[1].reg.value);

		find_value(jumps, function, source, entry->at, entry);
		if (entry->origin != ORIGIN_INSN || !is_mov(&entry->insn, ZYDIS_OPERAND_TYPE_MEMORY, 32))
			return false;
	} else if (entry->insn.z.mnemonic != ZYDIS_MNEMONIC_MOVSXD || !is_register(&entry->insn.op[0], 64) ||
		   entry->insn.op[1].type != ZYDIS_OPERAND_TYPE_MEMORY || entry->insn.op[1].size != 32) {
		return false;
	}
	if (mem->disp.value != 0 || entry->insn.z.address_width != 64 || entry->insn.has_rip ||
	    mem->segment == ZYDIS_REGISTER_FS || mem->segment == ZYDIS_REGISTER_GS)
		return false;
	registers[0] = mem->base;
	registers[1] = mem->scale == 1 ? mem->index : ZYDIS_REGISTER_NONE;
	for (int i = 0; i < 2; i++) {
		if (x86_gpr(registers[i]) < 0)
			continue;
		find_origin(jumps, function, x86_gpr(registers[i]), entry->at, &of);
		if (same_value(&of, base))
			return true;
	}
	return false;
}

/* Whether `reg` holds the sum of a table's address, `base_ret`, and one of its entries. */
static bool is_table_jump(const struct x86_jumps *jumps, size_t function, int reg, uint64_t vaddr,
			  struct value *base_ret)
{
	struct value sum, entry;
	int registers[2];

	find_origin(jumps, function, reg, vaddr, &sum);
	if (sum.origin != ORIGIN_INSN || !is_sum(&sum.insn, sum.reg, &registers[0], &registers[1]))
		return false;
	for (int i = 0; i < 2; i++) {
		find_value(jumps, function, registers[i], sum.at, &entry);
		find_origin(jumps, function, registers[!i], sum.at, base_ret);
		if (is_entry_of(jumps, function, &entry, base_ret))
			return true;
	}
	return false;
}

/* ---- verdict --------------------------------------------------------------------------------- */

/* A link-time address, loaded, and added to a load base that was loaded too: how dynamic linkers call constructors. */
static bool is_rebased(const struct x86_jumps *jumps, size_t function, const struct value *sum)
{
	struct value base;

	if (sum->insn.z.mnemonic != ZYDIS_MNEMONIC_ADD || !is_register(&sum->insn.op[0], 64) ||
	    sum->insn.op[1].type != ZYDIS_OPERAND_TYPE_MEMORY)
		return false;
	find_origin(jumps, function, sum->reg, sum->at, &base);
	return base.origin == ORIGIN_INSN && is_load(&base.insn);
}

/* A call goes to the start of a function, unless the register was computed in sight. */
static bool is_plain_call(const struct x86_jumps *jumps, size_t function, int reg, uint64_t vaddr)
{
	struct value value;
	uint32_t copies = 0;

	find_origin(jumps, function, reg, vaddr, &value);
	return value.origin != ORIGIN_INSN || !computes(jumps, &value.insn, value.reg, &copies) ||
	       value.insn.z.mnemonic == ZYDIS_MNEMONIC_MOV || is_rebased(jumps, function, &value);
}

bool x86_jump_table(const struct x86_jumps *jumps, size_t index, uint64_t vaddr, uint64_t *ret)
{
	struct x86_insn insn;
	struct value base;

	if (decode_at(jumps, vaddr, &insn) < 0 || insn.flow != X86_FLOW_JUMP_INDIRECT ||
	    !is_register(&insn.op[0], 64) ||
	    !is_table_jump(jumps, index, x86_gpr(insn.op[0].reg.value), vaddr, &base) || base.origin != ORIGIN_INSN ||
	    !x86_is_rip_lea(&base.insn))
		return false;
	*ret = base.insn.rip;
	return true;
}

bool x86_jump_absolute(const struct x86_jumps *jumps, uint64_t vaddr, uint64_t *ret)
{
	const ZydisDecodedOperandMem *mem;
	struct x86_insn insn;

	if (jumps->code->position_independent || decode_at(jumps, vaddr, &insn) < 0 ||
	    insn.flow != X86_FLOW_JUMP_INDIRECT || insn.op[0].type != ZYDIS_OPERAND_TYPE_MEMORY)
		return false;
	mem = &insn.op[0].mem;
	if (mem->base != ZYDIS_REGISTER_NONE || mem->index == ZYDIS_REGISTER_NONE || mem->scale != 8)
		return false;
	*ret = (uint64_t)mem->disp.value;
	return true;
}

bool x86_jump_adds(const struct x86_jumps *jumps, size_t index, uint64_t vaddr)
{
	struct x86_insn insn;
	struct value base;

	return decode_at(jumps, vaddr, &insn) == 0 && insn.flow == X86_FLOW_JUMP_INDIRECT &&
	       is_register(&insn.op[0], 64) && is_table_jump(jumps, index, x86_gpr(insn.op[0].reg.value), vaddr, &base);
}

bool x86_jump_rebased(const struct x86_jumps *jumps, size_t index, uint64_t vaddr, uint64_t *table_ret,
		      uint64_t *base_ret)
{
	struct value sum, entry, base, table;
	struct x86_insn insn;
	int registers[2];

	if (decode_at(jumps, vaddr, &insn) < 0 || insn.flow != X86_FLOW_JUMP_INDIRECT || !is_register(&insn.op[0], 64))
		return false;
	find_origin(jumps, index, x86_gpr(insn.op[0].reg.value), vaddr, &sum);
	if (sum.origin != ORIGIN_INSN || !is_sum(&sum.insn, sum.reg, &registers[0], &registers[1]))
		return false;
	for (int i = 0; i < 2; i++) {
		find_value(jumps, index, registers[i], sum.at, &entry);
		find_origin(jumps, index, registers[!i], sum.at, &base);
		if (base.origin != ORIGIN_INSN || !x86_is_rip_lea(&base.insn) || entry.origin != ORIGIN_INSN ||
		    entry.insn.op[1].type != ZYDIS_OPERAND_TYPE_MEMORY || x86_gpr(entry.insn.op[1].mem.base) < 0)
			continue;
		find_origin(jumps, index, x86_gpr(entry.insn.op[1].mem.base), entry.at, &table);
		if (table.origin == ORIGIN_INSN && x86_is_rip_lea(&table.insn) &&
		    is_entry_of(jumps, index, &entry, &table)) {
			*table_ret = table.insn.rip;
			*base_ret = base.insn.rip;
			return true;
		}
	}
	return false;
}

bool x86_jump_is_understood(struct x86_jumps *jumps, size_t index, uint64_t vaddr)
{
	bool own_address = jumps->map->functions[index].own_address;
	const ZydisDecodedOperand *op;
	struct x86_insn insn;
	struct value base;

	if (decode_at(jumps, vaddr, &insn) < 0 || x86_is_branch16(&insn))
		return false;
	op = &insn.op[0];
	if (op->type == ZYDIS_OPERAND_TYPE_MEMORY)
		return insn.flow == X86_FLOW_CALL_INDIRECT || insn.has_rip || !own_address;
	if (!is_register(op, 64))
		return false;
	if (insn.flow == X86_FLOW_CALL_INDIRECT)
		return is_plain_call(jumps, index, x86_gpr(op->reg.value), vaddr);
	if (is_table_jump(jumps, index, x86_gpr(op->reg.value), vaddr, &base))
		return is_table_base(jumps, index, &base);
	return !own_address && is_pointer(jumps, index, x86_gpr(op->reg.value), vaddr, 0);
}
