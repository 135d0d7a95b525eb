/*
 * What the resolver of an indirect function can return.
 *
 * Each path from its start is followed, also into functions that it goes on to by a jump. Before each instruction every
 * register has a set of functions that it may point to. Sets only grow, at each point until nothing changes any more.
 *
 *	an address comes from	lea; a constant, in modules that cannot move; a word that nothing but relocation writes
 *				(a GOT's)
 *	it goes on by		mov, cmov, and slots of the frame
 *	all else		is NOT_KNOWN: it matters only if it is returned, and then the resolver is refused
 *
 * A slot is a word at a distance from the frame pointer, where code that was not optimized keeps its choice. It may
 * hold what is stored there anywhere. That is so as long as rbp is nothing but the frame pointer, and the frame is
 * reached by no other way: no address of it is taken, and nothing is stored by the stack pointer but by pushing.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arch/exits.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/site.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "base/vec.h"

#define N_REGISTERS 16
#define RAX 0
#define RSP 4
#define RBP 5

#define CANDIDATES_MAX 63
#define NOT_KNOWN (UINT64_C(1) << CANDIDATES_MAX)
#define INSNS_MAX 2048
#define PASSES_MAX 100
#define SLOTS_MAX 32
#define INDEX_SIZE (4 * INSNS_MAX)

/* A set has a bit for each candidate. Registers are numbered as x86_gpr() does. */
struct resolver_point {
	uint64_t vaddr;
	uint64_t sets[N_REGISTERS]; /* before the instruction */
};

struct resolver_slot {
	int64_t at; /* from the frame pointer */
	uint64_t set;
};

struct resolver {
	const struct kymo_module_code *code;
	const struct kymo_entry_map *map;
	bool (*constant)(void *data, uint64_t vaddr, uint64_t *ret);
	void *data;
	struct kymo_refusal *refusal;
	ZydisDecoder decoder;
	KYMO_VEC(struct resolver_point) points; /* as they were met */
	uint16_t index[INDEX_SIZE];             /* hash: point + 1, or 0 */
	uint64_t candidates[CANDIDATES_MAX];
	size_t n_candidates;
	struct resolver_slot slots[SLOTS_MAX];
	size_t n_slots;
	bool has_frame, frame_is_lost;
	bool changed;
	uint64_t returned;
	uint64_t doubted; /* where what is returned is not known */
};

/* ---- values ---------------------------------------------------------------------------------- */

static uint64_t function_set(struct resolver *resolver, uint64_t vaddr)
{
	ptrdiff_t at = x86_function_at(resolver->code, vaddr);
	size_t i = 0;

	if (at < 0 || resolver->code->functions[at].start != vaddr)
		return NOT_KNOWN;
	while (i < resolver->n_candidates && resolver->candidates[i] != vaddr)
		i++;
	if (i == CANDIDATES_MAX)
		return NOT_KNOWN;
	if (i == resolver->n_candidates)
		resolver->candidates[resolver->n_candidates++] = vaddr;
	return UINT64_C(1) << i;
}

static bool is_plain(const ZydisDecodedOperand *op)
{
	return op->mem.segment != ZYDIS_REGISTER_FS && op->mem.segment != ZYDIS_REGISTER_GS;
}

static bool is_slot(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.base == ZYDIS_REGISTER_RBP &&
	       op->mem.index == ZYDIS_REGISTER_NONE && is_plain(op);
}

static uint64_t slot_set(const struct resolver *resolver, int64_t at)
{
	for (size_t i = 0; resolver->has_frame && !resolver->frame_is_lost && i < resolver->n_slots; i++)
		if (resolver->slots[i].at == at)
			return resolver->slots[i].set;
	return NOT_KNOWN;
}

static uint64_t memory_set(struct resolver *resolver, const struct x86_insn *insn, const ZydisDecodedOperand *op)
{
	uint64_t value;

	if (op->size != 64)
		return NOT_KNOWN;
	if (is_slot(op))
		return slot_set(resolver, op->mem.disp.value);
	if (!insn->has_rip || !is_plain(op) || !resolver->constant(resolver->data, insn->rip, &value))
		return NOT_KNOWN;
	return function_set(resolver, value);
}

/* What is in an operand that is read. Half of an address is as good as the whole in modules that always lie below 4
 * GiB. */
static uint64_t operand_set(struct resolver *resolver, const struct x86_insn *insn, const ZydisDecodedOperand *op,
			    const uint64_t sets[N_REGISTERS])
{
	bool is_fixed = !resolver->code->position_independent;
	int reg;

	switch (op->type) {
	case ZYDIS_OPERAND_TYPE_REGISTER:
		reg = x86_gpr(op->reg.value);
		return reg >= 0 && (op->size == 64 || (op->size == 32 && is_fixed)) ? sets[reg] : NOT_KNOWN;
	case ZYDIS_OPERAND_TYPE_IMMEDIATE:
		if (!op->imm.value.u) /* no function at all */
			return 0;
		return is_fixed ? function_set(resolver, op->imm.value.u) : NOT_KNOWN;
	case ZYDIS_OPERAND_TYPE_MEMORY:
		return memory_set(resolver, insn, op);
	default:
		return NOT_KNOWN;
	}
}

/* ---- the frame ------------------------------------------------------------------------------- */

static void lose_frame(struct resolver *resolver)
{
	resolver->changed |= !resolver->frame_is_lost;
	resolver->frame_is_lost = true;
}

static void add_to_slot(struct resolver *resolver, struct resolver_slot *slot, uint64_t set)
{
	resolver->changed |= (slot->set | set) != slot->set;
	slot->set |= set;
}

static void store_set(struct resolver *resolver, int64_t at, int64_t size, uint64_t set)
{
	bool is_there = false;

	for (size_t i = 0; i < resolver->n_slots; i++) {
		struct resolver_slot *slot = &resolver->slots[i];

		if (slot->at == at && size == 8)
			is_there = true;
		if (slot->at < at + size && at < slot->at + 8)
			add_to_slot(resolver, slot, slot->at == at && size == 8 ? set : NOT_KNOWN);
	}
	if (is_there || size != 8)
		return;
	if (resolver->n_slots == SLOTS_MAX) {
		lose_frame(resolver);
		return;
	}
	resolver->slots[resolver->n_slots++] = (struct resolver_slot){ at, set };
	resolver->changed = true; /* what overlaps with it is seen when all is gone through again */
}

static bool is_move(const struct x86_insn *insn, ZydisRegister to, ZydisRegister from)
{
	return insn->z.mnemonic == ZYDIS_MNEMONIC_MOV && insn->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       insn->op[0].reg.value == to && insn->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       insn->op[1].reg.value == from;
}

/* Whether the instruction uses the frame pointer and the stack pointer as such. */
static bool is_frame_use(const struct x86_insn *insn)
{
	switch (insn->z.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_LEAVE:
		return true;
	case ZYDIS_MNEMONIC_MOV:
		return is_move(insn, ZYDIS_REGISTER_RBP, ZYDIS_REGISTER_RSP) ||
		       is_move(insn, ZYDIS_REGISTER_RSP, ZYDIS_REGISTER_RBP);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_AND:
		return insn->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && insn->op[0].reg.value == ZYDIS_REGISTER_RSP &&
		       insn->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
	default:
		return false;
	}
}

static bool spoils_frame(const struct x86_insn *insn, const ZydisDecodedOperand *op)
{
	bool writes = op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
	int reg;

	if (op->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		reg = x86_gpr(op->reg.value);
		return (reg == RBP || reg == RSP) && !is_frame_use(insn);
	}
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY)
		return false;
	if (x86_gpr(op->mem.base) == RBP)
		return op->mem.type == ZYDIS_MEMOP_TYPE_AGEN || !is_slot(op);
	return x86_gpr(op->mem.base) == RSP && (writes || op->mem.type == ZYDIS_MEMOP_TYPE_AGEN);
}

/* Calls push and pop, and leave the frame as it is. */
static void note_frame(struct resolver *resolver, const struct x86_insn *insn, const uint64_t sets[N_REGISTERS])
{
	for (int i = 0; i < insn->z.operand_count; i++) {
		const ZydisDecodedOperand *op = &insn->op[i];

		if (op->visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
			continue;
		if (spoils_frame(insn, op))
			lose_frame(resolver);
		else if (is_slot(op) && (op->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			store_set(resolver, op->mem.disp.value, op->size / 8,
				  insn->z.mnemonic == ZYDIS_MNEMONIC_MOV
					  ? operand_set(resolver, insn, &insn->op[1], sets)
					  : NOT_KNOWN);
	}
	resolver->has_frame |= is_move(insn, ZYDIS_REGISTER_RBP, ZYDIS_REGISTER_RSP);
}

/* ---- one instruction ------------------------------------------------------------------------- */

static bool is_cleared(const struct x86_insn *insn)
{
	return (insn->z.mnemonic == ZYDIS_MNEMONIC_XOR || insn->z.mnemonic == ZYDIS_MNEMONIC_SUB) &&
	       insn->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && insn->op[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
	       insn->op[0].size >= 32 && insn->op[0].reg.value == insn->op[1].reg.value;
}

/* What the instruction puts into its first operand, a whole register that holds `before`. */
static uint64_t result(struct resolver *resolver, const struct x86_insn *insn, const uint64_t sets[N_REGISTERS],
		       uint64_t before)
{
	if (insn->z.mnemonic == ZYDIS_MNEMONIC_MOV)
		return operand_set(resolver, insn, &insn->op[1], sets);
	if (insn->z.meta.category == ZYDIS_CATEGORY_CMOV)
		return before | operand_set(resolver, insn, &insn->op[1], sets);
	if (x86_is_rip_lea(insn) && insn->op[0].size == 64)
		return function_set(resolver, insn->rip);
	return is_cleared(insn) ? 0 : NOT_KNOWN;
}

/* From what registers hold before the instruction to what they hold after it. */
static void step_registers(struct resolver *resolver, const struct x86_insn *insn, uint64_t sets[N_REGISTERS])
{
	static const int clobbered[] = {
		0, 1, 2, 6, 7, 8, 9, 10, 11
	}; /* by calls: rax, rcx, rdx, rsi, rdi, r8 to r11 */
	uint64_t set = NOT_KNOWN;
	int to = -1;

	if (x86_flow_is_call(insn->flow)) {
		for (size_t i = 0; i < kymo_countof(clobbered); i++)
			sets[clobbered[i]] = NOT_KNOWN;
		return;
	}
	note_frame(resolver, insn, sets);
	if (insn->z.operand_count && insn->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER && insn->op[0].size >= 32)
		to = x86_gpr(insn->op[0].reg.value);
	if (to >= 0)
		set = result(resolver, insn, sets, sets[to]);
	for (int reg = 0; reg < N_REGISTERS; reg++)
		if (x86_writes(insn, reg))
			sets[reg] = reg == to ? set : NOT_KNOWN;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static uint16_t *index_of(struct resolver *resolver, uint64_t vaddr)
{
	size_t at = (size_t)((vaddr * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (INDEX_SIZE - 1);

	while (resolver->index[at] && resolver->points.items[resolver->index[at] - 1].vaddr != vaddr)
		at = (at + 1) & (INDEX_SIZE - 1);
	return &resolver->index[at];
}

static int join_sets(struct resolver *resolver, uint64_t vaddr, const uint64_t sets[N_REGISTERS])
{
	uint16_t *index = index_of(resolver, vaddr);
	struct resolver_point *point;

	if (!*index) {
		if (resolver->points.n == INSNS_MAX)
			return x86_refuse(resolver->refusal, vaddr, "it has more than %d instructions", INSNS_MAX);
		if (!kymo_vec_push(&resolver->points, (struct resolver_point){ .vaddr = vaddr }))
			return -ENOMEM;
		*index = (uint16_t)resolver->points.n;
		resolver->changed = true;
	}
	point = &resolver->points.items[*index - 1];
	for (int i = 0; i < N_REGISTERS; i++) {
		resolver->changed |= (point->sets[i] | sets[i]) != point->sets[i];
		point->sets[i] |= sets[i];
	}
	return 0;
}

/* Nothing follows a call that is the function's last instruction. */
static bool comes_back(const struct resolver *resolver, const struct x86_insn *insn)
{
	return x86_function_at(resolver->code, insn->address) ==
	       x86_function_at(resolver->code, insn->address + insn->length);
}

static int continue_at(struct resolver *resolver, const struct x86_insn *insn, const uint64_t sets[N_REGISTERS])
{
	uint64_t next = insn->address + insn->length;
	int err;

	switch (insn->flow) {
	case X86_FLOW_NEXT:
		return join_sets(resolver, next, sets);
	case X86_FLOW_BRANCH:
		err = join_sets(resolver, insn->target, sets);
		return err ? err : join_sets(resolver, next, sets);
	case X86_FLOW_JUMP:
		return join_sets(resolver, insn->target, sets);
	case X86_FLOW_CALL:
	case X86_FLOW_CALL_INDIRECT:
		return comes_back(resolver, insn) ? join_sets(resolver, next, sets) : 0;
	case X86_FLOW_JUMP_INDIRECT:
		return x86_refuse(resolver->refusal, insn->address, "where it jumps to at 0x%lx is not known",
				  insn->address);
	case X86_FLOW_RETURN:
		resolver->returned |= sets[RAX];
		if (sets[RAX] & NOT_KNOWN)
			resolver->doubted = insn->address;
		return 0;
	default:
		return 0;
	}
}

static int pass(struct resolver *resolver)
{
	int err = 0;

	for (size_t i = 0; i < resolver->points.n && !err; i++) {
		struct resolver_point point = resolver->points.items[i];
		struct x86_insn insn;
		size_t size;
		const uint8_t *bytes = x86_text_at(resolver->map, point.vaddr, &size);

		if (!bytes || x86_decode_full(&resolver->decoder, bytes, size, point.vaddr, &insn))
			return x86_refuse(resolver->refusal, point.vaddr, "it leads to 0x%lx, where no instruction is",
					  point.vaddr);
		step_registers(resolver, &insn, point.sets);
		err = continue_at(resolver, &insn, point.sets);
	}
	return err;
}

static int follow_from(struct resolver *resolver, uint64_t vaddr)
{
	uint64_t sets[N_REGISTERS];
	int err;

	for (int i = 0; i < N_REGISTERS; i++)
		sets[i] = NOT_KNOWN;
	err = join_sets(resolver, vaddr, sets);
	for (int passes = 0; !err && resolver->changed; passes++) {
		if (passes == PASSES_MAX)
			return x86_refuse(resolver->refusal, vaddr, "it is too intricate");
		resolver->changed = false;
		err = pass(resolver);
	}
	return err;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int list_targets(const struct resolver *resolver, uint64_t vaddr, uint64_t **ret, size_t *n_ret)
{
	uint64_t *list;
	size_t n = 0;

	if (resolver->returned & NOT_KNOWN)
		return x86_refuse(resolver->refusal, resolver->doubted,
				  "what it returns at 0x%lx is not for certain a function of this file",
				  resolver->doubted);
	if (!resolver->returned)
		return x86_refuse(resolver->refusal, vaddr, "it returns no function");
	list = malloc(resolver->n_candidates * sizeof(*list));
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < resolver->n_candidates; i++)
		if (resolver->returned >> i & 1)
			list[n++] = resolver->candidates[i];
	qsort(list, n, sizeof(*list), kymo_compare_u64);
	*ret = list;
	*n_ret = n;
	return 0;
}

int kymo_resolver_create(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t vaddr,
			 bool (*constant)(void *data, uint64_t vaddr, uint64_t *ret), void *data, uint64_t **ret,
			 size_t *n_ret, struct kymo_refusal *refusal)
{
	struct resolver *resolver = calloc(1, sizeof(*resolver));
	int err;

	if (!resolver)
		return -ENOMEM;
	resolver->code = code;
	resolver->map = map;
	resolver->constant = constant;
	resolver->data = data;
	resolver->refusal = refusal;
	x86_decoder_init(&resolver->decoder);
	err = follow_from(resolver, vaddr);
	if (!err)
		err = list_targets(resolver, vaddr, ret, n_ret);
	kymo_vec_deinit(&resolver->points);
	free(resolver);
	return err;
}
