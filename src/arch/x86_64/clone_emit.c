/*
 * The code of a clone.
 *
 * What is recorded for a site:
 *
 *	mov %fs:position,%reg	cold: not where the register has it already
 *	movq $site,(%reg)	hot; the entry after it becomes 0
 *	lea 4(%reg),%reg16	the next entry, at the ring's end its first: its address ends in 16 zeros
 *	mov %reg,%fs:position
 *
 * Where a handler of signals may record in between (`checks_held`), the register is compared before it is used:
 *
 *	cmp %reg,%fs:position	hot
 *	jne cold
 *
 * A processor goes on as if they were the same, and does not wait for what was stored just before. That changes the
 * flags, so where code of the function may read these the position is loaded again.
 *
 * None of the others touches the flags. The position is stored after the entry it counts, so the ring is whole whenever
 * the thread dies; it is in memory at each instant, so what interrupts the thread finds it. The 0 tells where the ring
 * ends when the thread's memory is gone. What costs time is not the store but loading what was stored just before: so
 * where one register is free from one site to the next, it holds the position, and branches lead after the load. Where
 * no register is free one is pushed, below the red zone.
 *
 * Calls are executed where they are: the clone jumps to the function's own call. So the processor predicts the return,
 * and shadow stacks hold. Calls some bytes of which are a catch are taken apart.
 */
#include <errno.h>
#include <stdlib.h>

#include "arch/x86_64/clone.h"
#include "arch/x86_64/clone_gate.h"
#include "arch/x86_64/clone_live.h"
#include "arch/x86_64/code.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/relocate.h"

#define INSN_SIZE_MAX 48u /* of the code of one instruction, with a jump after it */
#define SITE_SIZE_MAX 64u /* of what is recorded, with its cold load out of line */

struct emitter {
	const struct kymo_clone *clone;
	const struct kymo_clone_env *env;
	struct code code;
	uint32_t *hot, *cold; /* offsets of each instruction's code, with and without the position held */
	uint32_t *warm;       /* … where the register has the position for certain */
	bool *is_hot;         /* a branch leads to the hot one, as a pass before the others has found */
	bool has_offsets;     /* they are known, from the first pass */
	uint32_t site;        /* number of the next one */
	bool is_held;         /* the position is, where the code is emitted */
	uint8_t lowered;      /* as a point has it */
	uint64_t vaddr;       /* of the instruction whose code is emitted */
	struct kymo_clone_map *map;
	int err;
};

/* ---- points ---------------------------------------------------------------------------------- */

#define RED_ZONE 128

/* Here the thread is in the state before instruction `vaddr`. */
static void note_point(struct emitter *emitter, uint64_t vaddr)
{
	const struct kymo_clone_point point = { .vaddr = vaddr,
						.at = (uint32_t)emitter->code.n,
						.lowered = emitter->lowered,
						.has_pushed_ax = emitter->lowered > RED_ZONE };

	if (emitter->has_offsets && emitter->map && !kymo_vec_push(&emitter->map->points, point))
		emitter->err = -ENOMEM;
}

/* ---- sites ----------------------------------------------------------------------------------- */

/* `opcode` with `reg` and %fs:position: 0x8b loads, 0x89 stores */
static void move_position(struct emitter *emitter, unsigned int opcode, int reg)
{
	struct code *c = &emitter->code;

	note_point(emitter, emitter->vaddr);
	byte(c, 0x64);
	byte(c, 0x48u | (unsigned int)reg >> 3 << 2);
	byte(c, opcode);
	byte(c, 0x04u | ((unsigned int)reg & 7) << 3);
	byte(c, 0x25);
	imm32(c, emitter->env->position);
}

/* movq $site,(%reg); lea 4(%reg),%reg16; store the position. */
static void put_entry(struct emitter *emitter, int reg)
{
	unsigned int low = (unsigned int)reg & 7;
	struct code *c = &emitter->code;

	note_point(emitter, emitter->vaddr);
	byte(c, reg >= R8 ? 0x49 : 0x48);
	byte(c, 0xc7);
	byte(c, low);
	imm32(c, emitter->site);
	note_point(emitter, emitter->vaddr);
	byte(c, 0x66);
	if (reg >= R8)
		byte(c, 0x45);
	byte(c, 0x8d);
	byte(c, 0x40u | low << 3 | low);
	byte(c, 4);
	move_position(emitter, 0x89, reg);
}

static void record_spilled(struct emitter *emitter)
{
	struct code *c = &emitter->code;

	note_point(emitter, emitter->vaddr);
	EMIT(c, 0x48, 0x8d, 0x64, 0x24, 0x80); /* lea -128(%rsp),%rsp */
	emitter->lowered = RED_ZONE;
	note_point(emitter, emitter->vaddr);
	EMIT(c, 0x50); /* push %rax */
	emitter->lowered = RED_ZONE + 8;
	move_position(emitter, 0x8b, RAX);
	put_entry(emitter, RAX);
	note_point(emitter, emitter->vaddr);
	EMIT(c, 0x58); /* pop %rax */
	emitter->lowered = RED_ZONE;
	note_point(emitter, emitter->vaddr);
	EMIT(c, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00); /* lea 128(%rsp),%rsp */
	emitter->lowered = 0;
}

/* cmp %reg,%fs:position; jne to where the position is loaded. A handler of signals has recorded in between, or the
 * thread is another one. A thread is most often found between the two, as the load takes its time. */
static void check_position(struct emitter *emitter, int reg, size_t index)
{
	struct code *c = &emitter->code;

	move_position(emitter, 0x39, reg);
	note_point(emitter, emitter->vaddr);
	EMIT(c, 0x0f, 0x85);
	rel32_to(c, c->address + (emitter->has_offsets ? emitter->cold[index] : 0));
}

#define CHECK_SIZE 15

static bool holds(const struct kymo_clone *clone, const struct x86_clone_insn *insn)
{
	return insn->is_site && clone->held < X86_NO_REGISTER && x86_clone_free_register(clone, insn) == clone->held;
}

/* `falls`: control comes from the code before. */
static void record_held(struct emitter *emitter, size_t index, bool is_held)
{
	const int reg = emitter->clone->held;

	if (!is_held)
		move_position(emitter, 0x8b, reg);
	emitter->hot[index] = emitter->warm[index] = (uint32_t)emitter->code.n;
	put_entry(emitter, reg);
}

/* The flags are free there. */
static void record_checked(struct emitter *emitter, size_t index, bool is_held)
{
	const int reg = emitter->clone->held;

	if (!is_held) {
		move_position(emitter, 0x8b, reg);
		if (emitter->is_hot[index])
			EMIT(&emitter->code, 0xeb, CHECK_SIZE); /* jmp */
	}
	emitter->hot[index] = (uint32_t)emitter->code.n;
	if (is_held || emitter->is_hot[index])
		check_position(emitter, reg, index);
	emitter->warm[index] = (uint32_t)emitter->code.n;
	put_entry(emitter, reg);
}

static void record(struct emitter *emitter, size_t index, bool falls)
{
	const struct x86_clone_insn *insn = &emitter->clone->insns.items[index];
	int reg = x86_clone_free_register(emitter->clone, insn);
	bool is_held = falls && emitter->is_held;

	emitter->vaddr = insn->vaddr;
	/* A check changes the flags. */
	is_held &= !emitter->env->checks_held || !insn->flags_live;
	emitter->hot[index] = (uint32_t)emitter->code.n;
	if (!holds(emitter->clone, insn) || !is_held)
		emitter->cold[index] = (uint32_t)emitter->code.n;
	emitter->is_held = holds(emitter->clone, insn);
	if (reg == X86_NO_REGISTER) {
		record_spilled(emitter);
	} else if (!holds(emitter->clone, insn) || (emitter->env->checks_held && insn->flags_live)) {
		move_position(emitter, 0x8b, reg);
		put_entry(emitter, reg);
	} else if (emitter->env->checks_held) {
		record_checked(emitter, index, is_held);
	} else {
		record_held(emitter, index, is_held);
	}
	emitter->site++;
}

/* ---- instructions ---------------------------------------------------------------------------- */

/* Where the code for instruction `to` is, or what is at `vaddr` where it has none. */
static uint64_t address_of(const struct emitter *emitter, int32_t to, uint64_t vaddr)
{
	const struct kymo_clone *clone = emitter->clone;

	if (to < 0)
		return vaddr + emitter->env->bias;
	if (emitter->is_held && holds(clone, &clone->insns.items[to]))
		emitter->is_hot[to] = true;
	if (!emitter->has_offsets)
		return emitter->code.address;
	return emitter->code.address +
	       (emitter->is_held && holds(clone, &clone->insns.items[to]) ? emitter->hot[to] : emitter->cold[to]);
}

static void put_jump(struct emitter *emitter, uint64_t target)
{
	byte(&emitter->code, 0xe9);
	rel32_to(&emitter->code, target);
}

static void relocate(struct emitter *emitter, const struct x86_clone_insn *insn)
{
	struct code *c = &emitter->code;
	const uint8_t *original;
	struct x86_insn full;
	int n = x86_clone_decode(emitter->clone, insn, emitter->env->bias, &full, &original);

	if (!n && insn->flow != X86_FLOW_CALL && full.has_target)
		full.target = address_of(emitter, insn->to, insn->target);
	if (!n && full.z.mnemonic == ZYDIS_MNEMONIC_ENDBR64)
		return;
	if (!n)
		n = x86_relocate_insn(&full, original, c->address + c->n, c->out + c->n, c->size - c->n);
	if (n < 0)
		emitter->err = n;
	else
		c->n += (size_t)n;
}

static bool is_apart(const struct emitter *emitter, const struct x86_clone_insn *insn)
{
	const uint8_t *original;
	struct x86_insn full;

	return !insn->is_in_place ||
	       (emitter->env->calls_apart && x86_flow_is_call((enum x86_flow)insn->flow) &&
		!x86_clone_decode(emitter->clone, insn, 0, &full, &original) && !x86_cannot_move(&full));
}

/* Whether control goes on to the code after it. */
static bool emit_insn(struct emitter *emitter, size_t index)
{
	const struct kymo_clone *clone = emitter->clone;
	const struct x86_clone_insn *insn = &clone->insns.items[index];
	enum x86_flow flow = (enum x86_flow)insn->flow;

	note_point(emitter, insn->vaddr);
	if (!is_apart(emitter, insn)) {
		put_jump(emitter, insn->vaddr + emitter->env->bias);
		return false;
	}
	if (emitter->is_held && insn->clobbers >> clone->held & 1)
		emitter->is_held = false;
	relocate(emitter, insn);
	if (x86_flow_ends(flow) || x86_flow_is_call(flow))
		return false;
	if (insn->next < 0 || clone->insns.items[insn->next].live >> (clone->held & 15) & 1)
		emitter->is_held = false;
	if (insn->next == (int32_t)index + 1)
		return true;
	note_point(emitter, insn->vaddr + insn->length);
	put_jump(emitter, address_of(emitter, insn->next, insn->vaddr + insn->length));
	return false;
}

/* The loads of those whose predecessors all hold the position. */
static void emit_loads(struct emitter *emitter)
{
	const struct kymo_clone *clone = emitter->clone;
	size_t begin = emitter->code.n;

	for (size_t i = 0; i < clone->insns.n; i++) {
		if (emitter->cold[i] < begin)
			continue;
		emitter->cold[i] = (uint32_t)emitter->code.n;
		emitter->vaddr = clone->insns.items[i].vaddr;
		move_position(emitter, 0x8b, clone->held);
		note_point(emitter, emitter->vaddr);
		put_jump(emitter, emitter->code.address + emitter->warm[i]);
	}
}

static int emit_all(struct emitter *emitter)
{
	const struct kymo_clone *clone = emitter->clone;
	bool falls = false;

	emitter->code.n = 0;
	emitter->site = emitter->env->first_site;
	emitter->is_held = false;
	for (size_t i = 0; i < clone->insns.n && !emitter->err; i++) {
		if (!falls)
			emitter->is_held = false;
		if (!emitter->has_offsets)
			emitter->cold[i] = UINT32_MAX;
		if (clone->insns.items[i].is_site)
			record(emitter, i, falls);
		else
			emitter->hot[i] = emitter->cold[i] = (uint32_t)emitter->code.n;
		falls = emit_insn(emitter, i);
	}
	emit_loads(emitter);
	if (!emitter->err)
		emitter->err = code_error(&emitter->code);
	return emitter->err;
}

/* What catches lead to: gates, which lead to where they would otherwise. */
static void emit_gates(struct emitter *emitter, uint32_t *catch_at)
{
	const struct kymo_clone *clone = emitter->clone;

	for (size_t i = 0; i < clone->catches.n; i++) {
		const struct x86_clone_insn *insn =
			&clone->insns.items[x86_clone_find(clone, clone->catches.items[i].vaddr)];
		const uint64_t copy = emitter->code.address + catch_at[i];

		if (!emitter->env->arena)
			return;
		catch_at[i] = (uint32_t)emitter->code.n;
		note_point(emitter, insn->vaddr);
		x86_clone_emit_gate(&emitter->code, emitter->env, insn->flags_live, copy);
		note_point(emitter, insn->vaddr);
		put_jump(emitter, copy);
	}
	if (!emitter->err)
		emitter->err = code_error(&emitter->code);
}

int kymo_clone_emit(const struct kymo_clone *clone, const struct kymo_clone_env *env, uint64_t to, uint8_t *out,
		    size_t size, uint32_t *catch_at, struct kymo_clone_map *map)
{
	struct emitter emitter = {
		.clone = clone, .env = env, .map = map, .code = { .out = out, .size = size, .address = to }
	};
	int err;

	emitter.hot = malloc((clone->insns.n + 1) * sizeof(*emitter.hot));
	emitter.cold = malloc((clone->insns.n + 1) * sizeof(*emitter.cold));
	emitter.warm = malloc((clone->insns.n + 1) * sizeof(*emitter.warm));
	emitter.is_hot = calloc(clone->insns.n + 1, sizeof(*emitter.is_hot));
	err = emitter.hot && emitter.cold && emitter.warm && emitter.is_hot ? 0 : -ENOMEM;
	if (!err && env->checks_held)
		err = emit_all(&emitter);
	if (!err)
		err = emit_all(&emitter);
	emitter.has_offsets = true;
	if (!err)
		err = emit_all(&emitter);
	for (size_t i = 0; !err && i < clone->catches.n; i++)
		catch_at[i] = emitter.cold[x86_clone_find(clone, clone->catches.items[i].vaddr)];
	if (!err) {
		emit_gates(&emitter, catch_at);
		err = emitter.err;
	}
	free(emitter.hot);
	free(emitter.cold);
	free(emitter.warm);
	free(emitter.is_hot);
	return err ? err : (int)emitter.code.n;
}

size_t kymo_clone_size(const struct kymo_clone *clone)
{
	return clone->insns.n * INSN_SIZE_MAX + clone->sites.n * SITE_SIZE_MAX + clone->catches.n * X86_GATE_SIZE_MAX;
}

/* ---- costs ----------------------------------------------------------------------------------- */

void kymo_clone_costs(const struct kymo_clone *clone, struct kymo_clone_costs *ret)
{
	struct kymo_clone_costs costs = { 0 };

	for (size_t i = 0; i < clone->insns.n; i++) {
		const struct x86_clone_insn *insn = &clone->insns.items[i];

		if (x86_flow_is_call((enum x86_flow)insn->flow)) {
			costs.n_calls++;
			costs.n_calls_apart += !insn->is_in_place;
		}
		if (!insn->is_site)
			continue;
		if (x86_clone_free_register(clone, insn) == X86_NO_REGISTER)
			costs.n_spilled++;
		else if (holds(clone, insn))
			costs.n_held++;
		else
			costs.n_free++;
	}
	*ret = costs;
}
