/*
 * What clones record.
 *
 * For a site:
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
 * In a stretch (clone_stretch.c) a register has the position from one end to the other:
 *
 *	lea -128(%rsp),%rsp; push %reg	where it is not free
 *	mov %fs:position,%reg
 */
#include <errno.h>

#include "arch/x86_64/clone_record.h"
#include "arch/x86_64/clone_live.h"

/* ---- points ---------------------------------------------------------------------------------- */

#define RED_ZONE 128

static void add_point(struct x86_clone_emitter *emitter, struct kymo_clone_point point)
{
	point.at = (uint32_t)emitter->code.n;
	if (emitter->has_offsets && emitter->map && !kymo_vec_push(&emitter->map->points, point))
		emitter->err = -ENOMEM;
}

void x86_clone_note_point(struct x86_clone_emitter *emitter, uint64_t vaddr)
{
	add_point(emitter, (struct kymo_clone_point){ .vaddr = vaddr,
						      .lowered = emitter->lowered,
						      .pushed = emitter->pushed,
						      .held = KYMO_CLONE_HOLDS_NONE });
}

void x86_clone_note_copy(struct x86_clone_emitter *emitter, uint64_t vaddr)
{
	const struct kymo_clone *clone = emitter->clone;
	const int held = emitter->stretch   ? clone->stretches.items[emitter->stretch - 1].reg
			 : emitter->is_held ? clone->held
					    : KYMO_CLONE_HOLDS_NONE;

	_Static_assert(X86_NO_REGISTER == KYMO_CLONE_HOLDS_NONE, "none is the same");
	add_point(emitter, (struct kymo_clone_point){ .vaddr = vaddr,
						      .lowered = emitter->lowered,
						      .pushed = emitter->pushed,
						      .is_copy = true,
						      .held = (uint8_t)held });
}

void x86_clone_put_jump(struct x86_clone_emitter *emitter, uint64_t target)
{
	byte(&emitter->code, 0xe9);
	rel32_to(&emitter->code, target);
}

/* ---- sites ----------------------------------------------------------------------------------- */

/* `opcode` with `reg` and %fs:position: 0x8b loads, 0x89 stores */
static void move_position(struct x86_clone_emitter *emitter, unsigned int opcode, int reg)
{
	struct code *c = &emitter->code;

	x86_clone_note_point(emitter, emitter->vaddr);
	byte(c, 0x64);
	byte(c, 0x48u | (unsigned int)reg >> 3 << 2);
	byte(c, opcode);
	byte(c, 0x04u | ((unsigned int)reg & 7) << 3);
	byte(c, 0x25);
	imm32(c, emitter->env->position);
}

/* movq $site,(%reg); lea 4(%reg),%reg16; store the position. */
static void put_entry(struct x86_clone_emitter *emitter, int reg)
{
	unsigned int low = (unsigned int)reg & 7;
	struct code *c = &emitter->code;

	x86_clone_note_point(emitter, emitter->vaddr);
	byte(c, reg >= R8 ? 0x49 : 0x48);
	byte(c, 0xc7);
	byte(c, low);
	imm32(c, emitter->site);
	x86_clone_note_point(emitter, emitter->vaddr);
	byte(c, 0x66);
	if (reg >= R8)
		byte(c, 0x45);
	byte(c, 0x8d);
	byte(c, 0x40u | low << 3 | low);
	byte(c, 4);
	move_position(emitter, 0x89, reg);
}

static void push_or_pop(struct code *c, unsigned int opcode, int reg)
{
	if (reg >= R8)
		byte(c, 0x41);
	byte(c, opcode | ((unsigned int)reg & 7));
}

/* Below the red zone. */
static void push_register(struct x86_clone_emitter *emitter, int reg)
{
	struct code *c = &emitter->code;

	x86_clone_note_point(emitter, emitter->vaddr);
	EMIT(c, 0x48, 0x8d, 0x64, 0x24, 0x80); /* lea -128(%rsp),%rsp */
	emitter->lowered = RED_ZONE;
	x86_clone_note_point(emitter, emitter->vaddr);
	push_or_pop(c, 0x50, reg);
	emitter->lowered = RED_ZONE + 8;
	emitter->pushed = (uint8_t)reg;
}

static void pop_register(struct x86_clone_emitter *emitter, int reg)
{
	struct code *c = &emitter->code;

	x86_clone_note_point(emitter, emitter->vaddr);
	push_or_pop(c, 0x58, reg);
	emitter->lowered = RED_ZONE;
	emitter->pushed = KYMO_CLONE_HOLDS_NONE;
	x86_clone_note_point(emitter, emitter->vaddr);
	EMIT(c, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00); /* lea 128(%rsp),%rsp */
	emitter->lowered = 0;
}

static void record_spilled(struct x86_clone_emitter *emitter)
{
	push_register(emitter, RAX);
	move_position(emitter, 0x8b, RAX);
	put_entry(emitter, RAX);
	pop_register(emitter, RAX);
}

/* cmp %reg,%fs:position; jne to where the position is loaded. A handler of signals has recorded in between, or the
 * thread is another one. A thread is most often found between the two, as the load takes its time. */
static void check_position(struct x86_clone_emitter *emitter, int reg, size_t index)
{
	struct code *c = &emitter->code;

	move_position(emitter, 0x39, reg);
	x86_clone_note_point(emitter, emitter->vaddr);
	EMIT(c, 0x0f, 0x85);
	rel32_to(c, c->address + (emitter->has_offsets ? emitter->cold[index] : 0));
}

#define CHECK_SIZE 15

bool x86_clone_holds(const struct kymo_clone *clone, const struct x86_clone_insn *insn)
{
	return insn->is_site && !insn->stretch && clone->held < X86_NO_REGISTER &&
	       x86_clone_free_register(clone, insn) == clone->held;
}

/* `falls`: control comes from the code before. */
static void record_held(struct x86_clone_emitter *emitter, size_t index, bool is_held)
{
	const int reg = emitter->clone->held;

	if (!is_held)
		move_position(emitter, 0x8b, reg);
	emitter->hot[index] = emitter->warm[index] = (uint32_t)emitter->code.n;
	put_entry(emitter, reg);
}

/* The flags are free there. */
static void record_checked(struct x86_clone_emitter *emitter, size_t index, bool is_held)
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

/* The flags are free where it is compared. */
static void record_in_stretch(struct x86_clone_emitter *emitter, size_t index)
{
	const struct x86_clone_insn *insn = &emitter->clone->insns.items[index];
	const int reg = emitter->clone->stretches.items[insn->stretch - 1].reg;

	emitter->hot[index] = (uint32_t)emitter->code.n;
	if (emitter->env->checks_held && insn->flags_live)
		move_position(emitter, 0x8b, reg);
	else if (emitter->env->checks_held)
		check_position(emitter, reg, index);
	emitter->warm[index] = (uint32_t)emitter->code.n;
	put_entry(emitter, reg);
}

static void record_outside(struct x86_clone_emitter *emitter, size_t index, bool falls)
{
	const struct x86_clone_insn *insn = &emitter->clone->insns.items[index];
	int reg = x86_clone_free_register(emitter->clone, insn);
	bool is_held = falls && emitter->is_held;

	/* A check changes the flags. */
	is_held &= !emitter->env->checks_held || !insn->flags_live;
	emitter->hot[index] = (uint32_t)emitter->code.n;
	if (!x86_clone_holds(emitter->clone, insn) || !is_held)
		emitter->cold[index] = (uint32_t)emitter->code.n;
	emitter->is_held = x86_clone_holds(emitter->clone, insn);
	if (reg == X86_NO_REGISTER) {
		record_spilled(emitter);
	} else if (!x86_clone_holds(emitter->clone, insn) || (emitter->env->checks_held && insn->flags_live)) {
		move_position(emitter, 0x8b, reg);
		put_entry(emitter, reg);
	} else if (emitter->env->checks_held) {
		record_checked(emitter, index, is_held);
	} else {
		record_held(emitter, index, is_held);
	}
}

void x86_clone_record(struct x86_clone_emitter *emitter, size_t index, bool falls)
{
	emitter->vaddr = emitter->clone->insns.items[index].vaddr;
	if (emitter->stretch)
		record_in_stretch(emitter, index);
	else
		record_outside(emitter, index, falls);
	emitter->site++;
}

void x86_clone_emit_loads(struct x86_clone_emitter *emitter)
{
	const struct kymo_clone *clone = emitter->clone;
	const size_t begin = emitter->code.n;

	for (size_t i = 0; i < clone->insns.n; i++) {
		const uint16_t stretch = clone->insns.items[i].stretch;

		if (emitter->cold[i] < begin)
			continue;
		emitter->cold[i] = (uint32_t)emitter->code.n;
		emitter->vaddr = clone->insns.items[i].vaddr;
		x86_clone_set_stretch(emitter, stretch);
		move_position(emitter, 0x8b, stretch ? clone->stretches.items[stretch - 1].reg : clone->held);
		x86_clone_note_point(emitter, emitter->vaddr);
		x86_clone_put_jump(emitter, emitter->code.address + emitter->warm[i]);
	}
	x86_clone_set_stretch(emitter, 0);
}

/* ---- stretches ------------------------------------------------------------------------------- */

void x86_clone_set_stretch(struct x86_clone_emitter *emitter, uint16_t stretch)
{
	const struct x86_clone_stretch *found = stretch ? &emitter->clone->stretches.items[stretch - 1] : NULL;

	emitter->stretch = stretch;
	emitter->lowered = found && found->pushes ? RED_ZONE + 8 : 0;
	emitter->pushed = found && found->pushes ? found->reg : KYMO_CLONE_HOLDS_NONE;
	if (found)
		emitter->is_held = false;
}

void x86_clone_cross(struct x86_clone_emitter *emitter, uint16_t to)
{
	const struct x86_clone_stretch *stretches = emitter->clone->stretches.items;
	const struct x86_clone_stretch *from = emitter->stretch ? &stretches[emitter->stretch - 1] : NULL;

	if (emitter->stretch == to)
		return;
	if (from && from->pushes)
		pop_register(emitter, from->reg);
	emitter->stretch = 0;
	emitter->is_held = false;
	if (to && stretches[to - 1].pushes)
		push_register(emitter, stretches[to - 1].reg);
	if (to)
		move_position(emitter, 0x8b, stretches[to - 1].reg);
	x86_clone_set_stretch(emitter, to);
}

uint64_t x86_clone_stub(struct x86_clone_emitter *emitter, uint16_t from, int32_t to)
{
	const struct x86_clone_stub stub = { .from = from, .to = to };

	for (size_t i = 0; i < emitter->stubs.n; i++)
		if (emitter->stubs.items[i].from == from && emitter->stubs.items[i].to == to)
			return emitter->code.address + emitter->stubs.items[i].at;
	if (!kymo_vec_push(&emitter->stubs, stub))
		emitter->err = -ENOMEM;
	return emitter->code.address;
}

void x86_clone_emit_stubs(struct x86_clone_emitter *emitter)
{
	for (size_t i = 0; i < emitter->stubs.n; i++) {
		const struct x86_clone_stub *stub = &emitter->stubs.items[i];
		const struct x86_clone_insn *insn = &emitter->clone->insns.items[stub->to];

		emitter->stubs.items[i].at = (uint32_t)emitter->code.n;
		emitter->vaddr = insn->vaddr;
		x86_clone_set_stretch(emitter, stub->from);
		x86_clone_cross(emitter, insn->stretch);
		x86_clone_note_point(emitter, emitter->vaddr);
		x86_clone_put_jump(emitter,
				   emitter->code.address + (insn->stretch ? emitter->warm : emitter->cold)[stub->to]);
	}
	x86_clone_set_stretch(emitter, 0);
}
