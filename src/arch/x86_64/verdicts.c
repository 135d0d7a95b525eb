/*
 * Whether an instruction leaves the function that it is part of.
 *
 * A return does, unless it pops what the function itself has pushed. A jump out of the parts does. An indirect jump is
 * one by a table; or to a label, where the frame is still there; or a tail call, where it is not and no label is known
 * to exist. All else is refused. A jump back to the start, with the frame gone, is a tail call of the function itself:
 * the probe at its entry sees it.
 */
#include "arch/x86_64/verdicts.h"

#include <inttypes.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/heights.h"
#include "arch/x86_64/jumps.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/site.h"

static enum x86_verdict refuse_body(struct x86_body *body, const struct x86_insn *insn, const char *what)
{
	x86_refuse(body->refusal, insn->address, "0x%" PRIx64 " %s", insn->address, what);
	return X86_REFUSED;
}

/* ---- what a jump tells ----------------------------------------------------------------------- */

/* Whether the stack pointer was raised in the straight run of instructions before `vaddr`: a frame was taken down. */
static bool is_raised(struct x86_body *body, uint64_t vaddr)
{
	const struct x86_part *part = x86_body_part(body, vaddr);
	struct x86_insn insn;

	for (int steps = 0; steps < 16 && vaddr > part->start; steps++) {
		if (x86_test(body->map, X86_KNOWN, vaddr) || x86_test(body->map, X86_LIKELY, vaddr))
			return false;
		vaddr = x86_last(body->map, 1u << X86_STARTS, part->start, vaddr - 1);
		if (vaddr == UINT64_MAX || x86_body_decode(body, vaddr, &insn) < 0)
			return false;
		switch (insn.z.mnemonic) {
		case ZYDIS_MNEMONIC_POP:
		case ZYDIS_MNEMONIC_LEAVE:
			return true;
		case ZYDIS_MNEMONIC_ADD:
		case ZYDIS_MNEMONIC_LEA:
			if (insn.op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			    insn.op[0].reg.value == ZYDIS_REGISTER_RSP)
				return true;
			break;
		default:
			break;
		}
	}
	return false;
}

/* A stub of the procedure linkage table: jmp *GOT(%rip). */
static bool is_stub(struct x86_body *body, uint64_t vaddr)
{
	for (int i = 0; i < 2; i++) {
		struct x86_insn insn;
		size_t size;
		const uint8_t *bytes = x86_text_at(body->map, vaddr, &size);

		if (!bytes || x86_decode(&body->jumps.decoder, bytes, size, vaddr, &insn) < 0)
			return false;
		if (insn.flow == X86_FLOW_JUMP_INDIRECT)
			return insn.has_rip;
		if (insn.z.mnemonic != ZYDIS_MNEMONIC_ENDBR64)
			return false;
		vaddr += insn.length;
	}
	return false;
}

static bool leads_back(const struct x86_body *body, size_t index)
{
	for (size_t i = 0; i < body->n_parts; i++) {
		ptrdiff_t part = x86_function_at(body->code, body->parts[i].start);

		if (part >= 0 && body->map->functions[part].entered_from == index + 1)
			return true;
	}
	return false;
}

static enum x86_verdict judge_function(struct x86_body *body, const struct x86_insn *insn,
				       const struct x86_state *state, uint64_t target, size_t index)
{
	bool is_start = target == body->code->functions[index].start, is_jump = insn->flow == X86_FLOW_JUMP;

	if (x86_body_may_join(body, index)) {
		if (!is_jump || !is_start || leads_back(body, index))
			return X86_JOINS;
		if (x86_has_frame(state))
			return X86_JOINS;
		if (x86_height_is_known(state->sp))
			return X86_LEAVES;
		return is_raised(body, insn->address) ? X86_LEAVES : X86_JOINS;
	}
	if (insn->flow == X86_FLOW_BRANCH)
		return refuse_body(body, insn, "is a conditional jump to another function");
	if (!is_jump)
		return refuse_body(body, insn, "is the last instruction, and control continues into the next function");
	if (is_start && x86_has_frame(state))
		return refuse_body(body, insn, "jumps to another function with the frame still there");
	return X86_LEAVES;
}

/* A direct jump, or what follows the last instruction of a part. */
static enum x86_verdict judge_target(struct x86_body *body, const struct x86_insn *insn, const struct x86_state *state,
				     uint64_t target)
{
	ptrdiff_t index;

	if (x86_body_part(body, target))
		return insn->flow == X86_FLOW_JUMP && target == body->parts[0].start && x86_has_no_frame(state)
			       ? X86_LEAVES
			       : X86_STAYS;
	index = x86_function_at(body->code, target);
	if (index >= 0)
		return judge_function(body, insn, state, target, (size_t)index);
	if (insn->flow == X86_FLOW_BRANCH)
		return refuse_body(body, insn, "is a conditional jump out of the function");
	if (insn->flow != X86_FLOW_JUMP)
		return refuse_body(body, insn, "is the last instruction, and control continues after it");
	if (!x86_has_no_frame(state) && !is_stub(body, target))
		return refuse_body(body, insn, "jumps to what is no known function");
	return X86_LEAVES;
}

/* In a module that cannot move, any constant may be a label: whether something is entered where no branch leads. */
static bool is_entered_loosely(const struct x86_body *body)
{
	for (size_t i = 0; i < body->n_parts && !body->code->position_independent; i++) {
		const struct x86_part *part = &body->parts[i];

		for (uint64_t at = part->start; at < part->end; at++)
			if (part->states[at - part->start].sp == X86_FREE)
				return true;
	}
	return false;
}

/* Whether there may be an address inside of the function that an indirect jump leads to. */
static bool has_labels(struct x86_body *body)
{
	if (body->takes_label || body->has_labels || is_entered_loosely(body))
		return true;
	for (size_t i = 0; i < body->n_parts; i++) {
		ptrdiff_t index = x86_function_at(body->code, body->parts[i].start);

		if (index >= 0 && body->map->functions[index].own_address)
			return true;
	}
	for (size_t i = 0; i < body->n_parts; i++) {
		const uint64_t *entries;

		if (x86_entries_in(body->code, body->parts[i].start + 1, body->parts[i].end, &entries))
			return true;
	}
	return false;
}

static enum x86_verdict judge_indirect(struct x86_body *body, const struct x86_insn *insn,
				       const struct x86_state *state)
{
	ptrdiff_t index = x86_function_at(body->code, insn->address), other;
	uint64_t target;

	if (index < 0 || x86_is_branch16(insn))
		return refuse_body(body, insn, "is a jump that not all processors take alike");
	if (x86_body_table(body, insn->address, &target)) {
		if (x86_body_part(body, target))
			return X86_STAYS;
		other = x86_function_at(body->code, target);
		if (!x86_jump_adds(&body->jumps, (size_t)index, insn->address) && other >= 0 &&
		    target == body->code->functions[other].start)
			return X86_LEAVES;
		return refuse_body(body, insn, "jumps by a table that leads out of the function");
	}
	if (x86_jump_adds(&body->jumps, (size_t)index, insn->address))
		return X86_STAYS;
	if (x86_has_frame(state))
		return has_labels(body)
			       ? X86_STAYS
			       : refuse_body(body, insn, "jumps with the frame still there to what is not known");
	if (insn->has_rip || (x86_has_no_frame(state) && is_raised(body, insn->address)) || !has_labels(body))
		return X86_LEAVES;
	return refuse_body(body, insn, "may be a tail call, or a jump inside of the function");
}

/* ---- one instruction ------------------------------------------------------------------------- */

/* The last instruction of a part that ends with a call, or a system call: it does not come back. */
static enum x86_verdict judge_end(struct x86_body *body, const struct x86_insn *insn, const struct x86_state *state)
{
	uint64_t end = insn->address + insn->length, at = insn->address;
	const struct x86_part *part = x86_body_part(body, at);
	struct x86_insn before = *insn;

	if (end < part->end)
		return X86_STAYS;
	while (x86_is_nop(&before) && at > part->start) {
		at = x86_last(body->map, 1u << X86_STARTS, part->start, at - 1);
		if (at == UINT64_MAX || x86_body_decode(body, at, &before) < 0)
			break;
	}
	if (x86_flow_is_call(before.flow) || before.z.meta.category == ZYDIS_CATEGORY_SYSCALL)
		return X86_STAYS;
	return judge_target(body, insn, state, end);
}

static enum x86_verdict judge_call(struct x86_body *body, const struct x86_insn *insn, const struct x86_state *state)
{
	if (insn->has_target && insn->target != body->parts[0].start && x86_body_part(body, insn->target))
		return refuse_body(body, insn, "calls into the middle of the function");
	return judge_end(body, insn, state);
}

static enum x86_verdict judge_stop(struct x86_body *body, const struct x86_insn *insn)
{
	switch (insn->z.mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_INT3:
		return X86_STAYS;
	default:
		return refuse_body(body, insn, "leaves the function in a way that is not a near return");
	}
}

enum x86_verdict x86_judge(struct x86_body *body, const struct x86_insn *insn, const struct x86_state *state)
{
	enum x86_verdict verdict;

	switch (insn->flow) {
	case X86_FLOW_BRANCH:
		verdict = judge_target(body, insn, state, insn->target);
		return verdict == X86_STAYS ? judge_end(body, insn, state) : verdict;
	case X86_FLOW_JUMP:
		return judge_target(body, insn, state, insn->target);
	case X86_FLOW_JUMP_INDIRECT:
		return judge_indirect(body, insn, state);
	case X86_FLOW_CALL:
	case X86_FLOW_CALL_INDIRECT:
		return judge_call(body, insn, state);
	case X86_FLOW_RETURN:
		if (x86_height_is_known(state->sp) && state->sp < 0)
			return refuse_body(body, insn, "returns to what the function has pushed");
		return X86_RETURNS;
	case X86_FLOW_STOP:
		return judge_stop(body, insn);
	default:
		return judge_end(body, insn, state);
	}
}
