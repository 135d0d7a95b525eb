/*
 * Jumps by tables whose targets are all known.
 *
 * The function's own text has a jump at each target: a catch. That leads to a gate, and to the copy. A clone has these
 * jumps as well, at the same distances from each other, in what is called a *shadow*; they lead straight to the copies.
 * So where the function computes an address, the clone adds the distance to the shadow:
 *
 *	lea distance(%reg),%scratch
 *	jmp *%scratch
 *
 * The thread has its word already, and the register that has the position keeps it. `scratch` is a register that no
 * target reads. A jump by memory loads it before.
 *
 * There is one shadow a stretch (clone_stretch.c) that has such jumps, and one for those outside.
 */
#include "arch/x86_64/clone_table.h"

#include <stdlib.h>

#include "arch/x86_64/clone_record.h"
#include "arch/x86_64/decode.h"
#include "base/search.h"

#define SPAN_MAX 32768u
#define JUMP_SIZE 5u

/* ---- choosing -------------------------------------------------------------------------------- */

static void give_up(struct kymo_clone *clone)
{
	clone->targets.n = 0;
	for (size_t i = 0; i < clone->insns.n; i++)
		clone->insns.items[i].is_tabled = false;
}

static void sort_targets(struct kymo_clone *clone)
{
	size_t n = 0;

	if (clone->targets.n)
		qsort(clone->targets.items, clone->targets.n, sizeof(uint64_t), kymo_compare_u64);
	for (size_t i = 0; i < clone->targets.n; i++)
		if (!n || clone->targets.items[n - 1] != clone->targets.items[i])
			clone->targets.items[n++] = clone->targets.items[i];
	clone->targets.n = n;
}

/* Each is a site, and each but the last one has room for a jump. `live_ret`: what they read. */
static bool are_good(const struct kymo_clone *clone, uint16_t *live_ret)
{
	const uint64_t *targets = clone->targets.items;
	const size_t n = clone->targets.n;

	*live_ret = 0;
	for (size_t i = 0; i < n; i++) {
		const int32_t at = x86_clone_find(clone, targets[i]);

		if (at < 0 || !clone->insns.items[at].is_site || (i && targets[i] - targets[i - 1] < JUMP_SIZE))
			return false;
		*live_ret |= clone->insns.items[at].live;
	}
	return n && targets[n - 1] - targets[0] <= SPAN_MAX;
}

/* A register, or memory that is named by registers: without a prefix but notrack. */
static bool is_plain(const struct x86_insn *insn)
{
	for (unsigned int i = 0; i < insn->z.raw.prefix_count; i++) {
		const uint8_t prefix = insn->z.raw.prefixes[i].value;

		if (prefix != 0x3e && (prefix & 0xf0) != 0x40)
			return false;
	}
	return !insn->has_rip && insn->z.operand_width == 64 && insn->z.raw.modrm.offset &&
	       (insn->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER || insn->op[0].type == ZYDIS_OPERAND_TYPE_MEMORY);
}

static bool find_scratch(const struct kymo_clone *clone, struct x86_clone_insn *insn, uint16_t live)
{
	unsigned int free = X86_VOLATILE & ~(unsigned int)live;
	const uint8_t *bytes;
	struct x86_insn full;

	if (clone->held < X86_NO_REGISTER)
		free &= ~(1u << clone->held);
	if (!free || x86_clone_decode(clone, insn, 0, &full, &bytes) || !is_plain(&full))
		return false;
	insn->scratch = (uint8_t)__builtin_ctz(free);
	/* The one that it reads, if it can. */
	if (free & insn->reads)
		insn->scratch = (uint8_t)__builtin_ctz(free & insn->reads);
	return true;
}

void x86_clone_choose_tables(struct kymo_clone *clone)
{
	uint16_t live;

	sort_targets(clone);
	if (!are_good(clone, &live)) {
		give_up(clone);
		return;
	}
	for (size_t i = 0; i < clone->insns.n; i++) {
		struct x86_clone_insn *insn = &clone->insns.items[i];

		insn->is_tabled = insn->is_tabled && find_scratch(clone, insn, live);
	}
}

/* ---- the jump -------------------------------------------------------------------------------- */

static uint64_t shadow_of(struct x86_clone_emitter *emitter, uint16_t stretch)
{
	const struct x86_clone_stub shadow = { .from = stretch };

	for (size_t i = 0; i < emitter->shadows.n; i++)
		if (emitter->shadows.items[i].from == stretch)
			return emitter->code.address + emitter->shadows.items[i].at;
	if (!kymo_vec_push(&emitter->shadows, shadow))
		emitter->err = -ENOMEM;
	return emitter->code.address;
}

/* mov of what the jump reads from memory. */
static void load_target(struct code *c, const struct x86_insn *insn, const uint8_t *original, unsigned int scratch)
{
	const unsigned int modrm = insn->z.raw.modrm.offset;

	byte(c, 0x48u | scratch >> 3 << 2 | (unsigned int)insn->z.raw.rex.X << 1 | insn->z.raw.rex.B);
	byte(c, 0x8b);
	byte(c, (original[modrm] & 0xc7u) | (scratch & 7) << 3);
	bytes(c, original + modrm + 1, insn->length - modrm - 1u);
}

void x86_clone_emit_tabled(struct x86_clone_emitter *emitter, size_t index)
{
	const struct kymo_clone *clone = emitter->clone;
	const struct x86_clone_insn *insn = &clone->insns.items[index];
	const uint64_t first = clone->targets.items[0] + emitter->env->bias;
	const unsigned int scratch = insn->scratch;
	struct code *c = &emitter->code;
	unsigned int from = scratch;
	const uint8_t *original;
	struct x86_insn full;
	int64_t distance;

	if (x86_clone_decode(clone, insn, emitter->env->bias, &full, &original)) {
		emitter->err = -EINVAL;
		return;
	}
	if (full.op[0].type == ZYDIS_OPERAND_TYPE_MEMORY)
		load_target(c, &full, original, scratch);
	else
		from = (unsigned int)x86_gpr(full.op[0].reg.value);
	distance = (int64_t)(shadow_of(emitter, emitter->stretch) - first);
	c->far |= distance != (int32_t)distance;
	byte(c, 0x48u | scratch >> 3 << 2 | from >> 3);
	byte(c, 0x8d);
	byte(c, 0x80u | (scratch & 7) << 3 | (from & 7));
	if ((from & 7) == RSP)
		byte(c, 0x24);
	imm32(c, distance);
	if (full.z.attributes & ZYDIS_ATTRIB_HAS_NOTRACK)
		byte(c, 0x3e);
	if (scratch >= R8)
		byte(c, 0x41);
	byte(c, 0xff);
	byte(c, 0xe0u | (scratch & 7));
	emitter->loses_shadow |= !emitter->stretch && !emitter->is_held;
}

/* ---- what it leads to ------------------------------------------------------------------------ */

static void emit_shadow(struct x86_clone_emitter *emitter, struct x86_clone_stub *shadow,
			uint64_t (*address_of)(struct x86_clone_emitter *emitter, int32_t to, uint64_t vaddr))
{
	const struct kymo_clone *clone = emitter->clone;
	const uint64_t *targets = clone->targets.items;

	shadow->at = (uint32_t)emitter->code.n;
	for (size_t i = 0; i < clone->targets.n; i++) {
		/* Breakpoints: nothing leads there. */
		while (emitter->code.n - shadow->at < targets[i] - targets[0] && !emitter->code.full)
			byte(&emitter->code, 0xcc);
		x86_clone_set_stretch(emitter, shadow->from);
		emitter->is_held = !shadow->from && !emitter->loses_shadow;
		x86_clone_note_point(emitter, targets[i]);
		x86_clone_put_jump(emitter, address_of(emitter, x86_clone_find(clone, targets[i]), 0));
	}
}

void x86_clone_emit_shadows(struct x86_clone_emitter *emitter,
			    uint64_t (*address_of)(struct x86_clone_emitter *emitter, int32_t to, uint64_t vaddr))
{
	for (size_t i = 0; i < emitter->shadows.n; i++)
		emit_shadow(emitter, &emitter->shadows.items[i], address_of);
	x86_clone_set_stretch(emitter, 0);
	emitter->is_held = false;
}

size_t x86_clone_shadows_size(const struct kymo_clone *clone)
{
	size_t n = 0, size = 0;

	for (size_t i = 0; i < clone->insns.n; i++)
		n += clone->insns.items[i].is_tabled;
	if (n > clone->stretches.n + 1)
		n = clone->stretches.n + 1;
	if (n)
		size = clone->targets.items[clone->targets.n - 1] - clone->targets.items[0] + JUMP_SIZE;
	/* The targets in other stretches have stubs. */
	return n * (size + clone->targets.n * X86_STUB_SIZE_MAX);
}
