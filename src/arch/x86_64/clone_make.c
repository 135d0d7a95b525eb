/*
 * What a clone is made of.
 *
 * Each instruction that is reached from the function's start is copied. A branch to one of them leads to its copy, any
 * other to where it led before. So the copy does what the function does, wherever it leads: only instructions that may
 * not be moved prevent it. What the analysis is for is that threads come back: each address of the function that
 * control can enter other than by a copied branch is a catch (clone_catch.c). A function whose catches are not known is
 * refused.
 */
#include "arch/x86_64/clone.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/syscall.h>

#include "arch/x86_64/clone_catch.h"
#include "arch/x86_64/clone_live.h"
#include "arch/x86_64/clone_stretch.h"
#include "arch/x86_64/clone_table.h"
#include "arch/x86_64/clone_thin.h"
#include "arch/x86_64/clone_ways.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/heights.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/parts.h"
#include "arch/x86_64/relocate.h"
#include "arch/x86_64/site.h"
#include "arch/x86_64/syscalls.h"
#include "arch/x86_64/verdicts.h"

/* ---- instructions ---------------------------------------------------------------------------- */

static bool is_in_parts(const struct kymo_clone *clone, uint64_t vaddr)
{
	for (size_t i = 0; i < clone->n_parts; i++)
		if (vaddr >= clone->parts[i].start && vaddr < clone->parts[i].end)
			return true;
	return false;
}

static int check_jump(struct x86_body *body, const struct x86_insn *insn, struct x86_clone_insn *ret)
{
	switch (x86_judge(body, insn, x86_body_state(body, insn->address))) {
	case X86_STAYS:
		ret->stays_in = true;
		return 0;
	case X86_RETURNS:
	case X86_LEAVES:
		return 0;
	default:
		return -EPERM;
	}
}

/*
 * A thread that is made goes on where its maker is: in the clone, behind the gate, with no ring. Its word is 0, or what
 * another thread has left there. A call whose number is not known may be any.
 */
static int check_syscall(const struct kymo_clone *clone, struct x86_body *body, const struct x86_insn *insn)
{
	const int32_t number = x86_syscall_number(clone->code, clone->map, insn->address);

	if (number >= 0 && number != SYS_clone && number != SYS_clone3)
		return 0;
	return x86_refuse(body->refusal, insn->address,
			  "the system call at 0x%" PRIx64 " %s a thread, which would go on in the clone without a ring",
			  insn->address, number < 0 ? "may make" : "makes");
}

static int check_insn(struct kymo_clone *clone, struct x86_body *body, const struct x86_insn *insn,
		      struct x86_clone_insn *ret)
{
	const char *reason = x86_cannot_move_alone(insn);

	if (x86_flow_is_call(insn->flow)) {
		ret->is_in_place = true;
		if (insn->has_target && insn->target != clone->parts[0].start && is_in_parts(clone, insn->target))
			return x86_refuse(body->refusal, insn->address,
					  "0x%" PRIx64 " calls into the middle of the function", insn->address);
		return 0;
	}
	if (insn->flow == X86_FLOW_JUMP_INDIRECT || insn->flow == X86_FLOW_RETURN) {
		int err = check_jump(body, insn, ret);

		if (err)
			return err;
	}
	if (insn->z.mnemonic == ZYDIS_MNEMONIC_SYSCALL) {
		int err = check_syscall(clone, body, insn);

		if (err)
			return err;
	}
	if (insn->flow == X86_FLOW_STOP)
		ret->is_in_place = true;
	else if (reason && insn->z.mnemonic != ZYDIS_MNEMONIC_ENDBR64)
		return x86_refuse(body->refusal, insn->address, "0x%" PRIx64 " %s", insn->address, reason);
	return 0;
}

static int add_insn(struct kymo_clone *clone, struct x86_body *body, uint64_t vaddr)
{
	struct x86_clone_insn one = { .vaddr = vaddr, .weight = 1 };
	struct x86_insn insn;
	int err;

	if (x86_body_decode(body, vaddr, &insn) < 0)
		return x86_refuse(body->refusal, vaddr,
				  "the instruction at 0x%" PRIx64 " continues beyond the end of the function", vaddr);
	one.length = insn.length;
	one.flow = (uint8_t)insn.flow;
	one.target = insn.has_target ? insn.target : 0;
	err = check_insn(clone, body, &insn, &one);
	if (err)
		return err;
	x86_clone_note_registers(&one, &insn);
	return kymo_vec_push(&clone->insns, one) ? 0 : -ENOMEM;
}

static int compare_insns(const void *a, const void *b)
{
	const struct x86_clone_insn *left = a, *right = b;

	return left->vaddr < right->vaddr ? -1 : left->vaddr > right->vaddr;
}

static void sort_insns(struct kymo_clone *clone)
{
	if (clone->insns.n)
		qsort(clone->insns.items, clone->insns.n, sizeof(struct x86_clone_insn), compare_insns);
}

static int gather(struct kymo_clone *clone, struct x86_body *body)
{
	for (size_t i = 0; i < body->n_parts; i++) {
		const struct x86_part *part = &body->parts[i];

		for (uint64_t at = part->start; at < part->end; at++) {
			int err = part->states[at - part->start].sp == X86_UNREACHED ? 0 : add_insn(clone, body, at);

			if (err)
				return err;
		}
	}
	sort_insns(clone);
	return 0;
}

/* ---- where they lead ------------------------------------------------------------------------- */

/* glibc's atomics jump over a lock prefix: that is one more instruction. */
static int add_unlocked(struct kymo_clone *clone, uint64_t vaddr)
{
	int32_t locked = x86_clone_find(clone, vaddr - 1);
	struct x86_clone_insn one;
	size_t size;

	if (locked < 0 || clone->insns.items[locked].length < 2 || *x86_text_at(clone->map, vaddr - 1, &size) != 0xf0)
		return -EPERM;
	one = clone->insns.items[locked];
	one.vaddr++;
	one.length--;
	one.is_unlocked = true;
	if (!kymo_vec_push(&clone->insns, one))
		return -ENOMEM;
	sort_insns(clone);
	return 0;
}

static int check_targets(struct kymo_clone *clone, struct kymo_refusal *refusal)
{
	for (size_t i = 0; i < clone->insns.n; i++) {
		const struct x86_clone_insn *insn = &clone->insns.items[i];
		uint64_t from = insn->vaddr, target = insn->target;
		int err = 0;

		if (target && is_in_parts(clone, target) && x86_clone_find(clone, target) < 0)
			err = add_unlocked(clone, target);
		if (err == -EPERM)
			return x86_refuse(refusal, from, "0x%" PRIx64 " leads into an instruction, to 0x%" PRIx64, from,
					  target);
		if (err)
			return err;
	}
	return 0;
}

/* An instruction that a branch leads back to from after runs more often, and all in between. */
static void weigh_loop(struct kymo_clone *clone, size_t low, size_t high)
{
	for (size_t i = low; i <= high; i++)
		if (clone->insns.items[i].weight < 64)
			clone->insns.items[i].weight *= 4;
}

static void link_insns(struct kymo_clone *clone)
{
	for (size_t i = 0; i < clone->insns.n; i++) {
		struct x86_clone_insn *insn = &clone->insns.items[i];

		insn->next = x86_clone_find(clone, insn->vaddr + insn->length);
		insn->to = insn->target ? x86_clone_find(clone, kymo_site_of(clone->map, insn->target)) : -1;
		if (insn->to >= 0 && insn->flow != X86_FLOW_CALL) {
			clone->insns.items[insn->to].is_site = true;
			if ((size_t)insn->to <= i)
				weigh_loop(clone, (size_t)insn->to, i);
		}
	}
}

static int number_sites(struct kymo_clone *clone)
{
	for (size_t i = 0; i < clone->insns.n; i++)
		if (clone->insns.items[i].is_site && !kymo_vec_push(&clone->sites, clone->insns.items[i].vaddr))
			return -ENOMEM;
	return 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int check_rseq(const struct kymo_clone *clone, struct kymo_refusal *refusal)
{
	for (size_t i = 0; i < clone->code->n_rseq; i++)
		for (size_t k = 0; k < clone->n_parts; k++)
			if (clone->code->rseq[i].start < clone->parts[k].end &&
			    clone->parts[k].start < clone->code->rseq[i].end)
				return x86_refuse(refusal, clone->code->rseq[i].start,
						  "0x%" PRIx64 " is a restartable sequence, which stays where it is",
						  clone->code->rseq[i].start);
	return 0;
}

/* A jump that is not understood may lead to any byte of it. */
static int check_computed(const struct kymo_clone *clone, struct kymo_refusal *refusal)
{
	for (size_t i = 0; i < clone->n_parts; i++) {
		ptrdiff_t index = x86_function_at(clone->code, clone->parts[i].start);
		uint64_t from = index < 0 ? 0 : clone->map->functions[index].computed;

		if (from)
			return x86_refuse(refusal, from,
					  "the jump at 0x%" PRIx64 " may lead anywhere into the function", from);
	}
	return 0;
}

static int analyze(struct kymo_clone *clone, struct x86_body *body, uint64_t start)
{
	ptrdiff_t index = x86_function_at(clone->code, start);
	int err;

	if (index < 0 || clone->code->functions[index].start != start)
		return x86_refuse(body->refusal, start, "no function is known to begin at 0x%" PRIx64, start);
	err = x86_body_add(body, start, clone->code->functions[index].end);
	if (!err)
		err = x86_find_parts(body);
	if (!err)
		err = x86_check_starts(body);
	if (err)
		return err;
	for (size_t i = 0; i < body->n_parts; i++)
		clone->parts[clone->n_parts++] = (struct kymo_extent){ body->parts[i].start, body->parts[i].end };
	clone->is_shared = x86_is_entered_from_outside(body);
	err = check_rseq(clone, body->refusal);
	if (!err)
		err = check_computed(clone, body->refusal);
	if (!err)
		err = gather(clone, body);
	if (!err)
		err = check_targets(clone, body->refusal);
	if (err)
		return err;
	link_insns(clone);
	err = x86_clone_catch(clone, body, body->refusal);
	if (!err)
		err = x86_clone_divide(clone);
	if (err)
		return err;
	x86_clone_live(clone);
	err = x86_clone_thin(clone);
	x86_clone_choose_held(clone);
	x86_clone_choose_tables(clone);
	if (!err)
		err = x86_clone_find_stretches(clone);
	return err ? err : number_sites(clone);
}

int kymo_clone_create(const struct kymo_module_code *code, const struct kymo_entry_map *map, uint64_t start,
		      struct kymo_clone **ret, struct kymo_refusal *refusal)
{
	struct kymo_clone *clone = calloc(1, sizeof(*clone));
	struct kymo_refusal unused;
	struct x86_body body;
	int err;

	_Static_assert(sizeof(clone->parts) / sizeof(clone->parts[0]) == X86_PARTS_MAX, "room for all parts");
	if (!clone)
		return -ENOMEM;
	clone->code = code;
	clone->map = map;
	clone->held = X86_NO_REGISTER;
	x86_decoder_init(&clone->decoder);
	x86_body_init(&body, code, map, refusal ? refusal : &unused);
	err = analyze(clone, &body, start);
	x86_body_deinit(&body);
	if (err) {
		kymo_clone_destroy(clone);
		return err;
	}
	*ret = clone;
	return 0;
}
