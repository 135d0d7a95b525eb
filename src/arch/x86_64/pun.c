/*
 * Jumps that share bytes with the code after them.
 *
 * A jmp rel32 is e9 and a distance, low byte first. If an instruction is shorter than five bytes, or a page ends inside
 * of them, only the first bytes are written; the others stay unchanged. The fixed bytes are the distance's high ones,
 * so the targets to choose from are one range of addresses: 16 million for an instruction of four bytes, 256 for two,
 * one for a single byte.
 *
 * Control flow after the instruction does not matter: those bytes do not change, and instructions begin where they did.
 * So what makes a group unsafe is no problem here. The rules are
 *
 *   1. it is an instruction, and nothing enters it after its first byte (as far as bytes of it change);
 *   2. it does the same elsewhere. A system call does: a restart goes back two bytes to its start. That is the jump or
 *      the displaced copy, wherever the thread fell asleep;
 *   3. nothing reads the bytes that change;
 *   4. the bytes relied on stay: they are locked, and no other party can take one back.
 *
 * Where other tools set breakpoints, the best pun changes only the first byte, however long the instruction is: the
 * kernel changes and restores that byte.
 *
 * Redundant prefixes move the jump to the right: then other bytes are its last ones, and fewer can be chosen.
 *
 * The way back is a matter of speed. Processors know taken branches by where they end, before they have decoded
 * anything: a thread that comes back to the next instruction runs over the bytes that the jump ends with. The processor
 * takes it for the jump, and finds out late (some 6 ns, half of what a probe costs). So copies of the instructions that
 * follow run in the pad too, up to the end of the jump, and the way back leads there. They stay where they are, for
 * threads that come from elsewhere; their bytes are locked, so that both do the same. Code that behaves differently at
 * another address is not copied: calls, what may fault, and what a third party has changed.
 */
#include "arch/x86_64/pun.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "arch/x86_64/check.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/faults.h"
#include "arch/x86_64/jit.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/relocate.h"
#include "base/page.h"

/* Segment overrides, of which es to ds are branch hints at most, and REX, which loses to a prefix after it. */
const uint8_t x86_prefixes[X86_N_PREFIXES] = {
	0x2e, 0x26, 0x36, 0x3e, 0x64, 0x65, 0x40, 0x48, 0x41, 0x42, 0x43,
	0x44, 0x45, 0x46, 0x47, 0x49, 0x4a, 0x4b, 0x4c, 0x4d, 0x4e, 0x4f,
};

/* Addresses asked for one by one, where those possible have gaps between them. */
#define HINTED_TRIES 8u
#define STEPPED_TRIES 64u

/* ---- bytes under construction ---------------------------------------------------------------- */

/* Whether the byte at `vaddr` is mapped with the one before it, and by that is not written. */
static bool goes_on(const struct kymo_module_code *code, uint64_t vaddr)
{
	for (size_t i = 0; i < code->n_fixed; i++)
		if (vaddr > code->fixed[i].start && vaddr < code->fixed[i].end)
			return true;
	return false;
}

void x86_layout_init(struct x86_layout *layout, const struct x86_site *site, uint64_t base, unsigned int size)
{
	*layout = (struct x86_layout){ .base = base };
	while (layout->size < size) { /* a section may begin where another one ends, as .fini does after .text */
		size_t available = 0;
		const uint8_t *bytes = x86_text_at(site->map, base + layout->size, &available);
		size_t left = size - layout->size, n = available < left ? available : left;

		if (!n || (layout->size && !goes_on(site->code, base + layout->size)))
			break;
		memcpy(layout->bytes + layout->size, bytes, n);
		layout->size += (unsigned int)n;
	}
	if (layout->size)
		site->room->look(site->room->data, base, layout->bytes, layout->size);
}

void x86_layout_open(struct x86_layout *layout, unsigned int at, unsigned int n)
{
	for (; n-- && at < layout->size; at++)
		layout->open[at] = true;
}

void x86_layout_set(struct x86_layout *layout, unsigned int at, uint8_t byte)
{
	layout->bytes[at] = byte;
	layout->open[at] = false;
}

int x86_layout_check(const struct x86_layout *layout, const struct x86_site *site, unsigned int at,
		     struct kymo_refusal *refusal)
{
	uint64_t end = layout->base + layout->size;

	if (at + KYMO_JUMP_SIZE > layout->size)
		return x86_refuse(refusal, end, "the text ends at 0x%lx, inside of a jump at 0x%lx", end,
				  layout->base + at);
	for (unsigned int i = at + 1; i < at + KYMO_JUMP_SIZE; i++) {
		uint64_t vaddr = layout->base + i;

		if (!layout->open[i] && site->room->is_unsteady(site->room->data, vaddr, 1))
			return x86_refuse(refusal, vaddr,
					  "a jump at 0x%lx would rely on 0x%lx, which another tracer may change",
					  layout->base + at, vaddr);
	}
	return 0;
}

/* ---- addresses ------------------------------------------------------------------------------- */

void x86_layout_range(const struct x86_layout *layout, unsigned int at, uint64_t *low_ret, uint64_t *high_ret,
		      uint64_t *step_ret)
{
	const uint8_t *bytes = layout->bytes + at + 1;
	const bool *open = layout->open + at + 1;
	uint64_t from = layout->base + at + KYMO_JUMP_SIZE, step = 1;
	uint32_t fixed = 0, span = 0;
	bool seen = false;

	for (unsigned int i = 0; i < 4; i++) {
		if (open[i])
			span |= 0xffu << (8 * i);
		else
			fixed |= (uint32_t)bytes[i] << (8 * i);
		seen |= open[i];
		if (!seen)
			step <<= 8;
	}
	/* With an open sign the lowest distance is the most negative one. */
	if (open[3])
		fixed |= 0x80000000;
	*low_ret = from + (uint64_t)(int64_t)(int32_t)fixed;
	*high_ret = *low_ret + span;
	*step_ret = seen ? step : 1;
}

static uint64_t reserve_trampoline(struct x86_site *site, uint64_t low, uint64_t high)
{
	const struct kymo_plan_room *room = site->room;
	uint64_t got;

	if (!site->budget)
		return 0;
	site->budget--;
	got = room->reserve(room->data, low, high, KYMO_JUMP_SIZE);
	if (!got || got - low <= high - low)
		return got;
	room->release(room->data, got, KYMO_JUMP_SIZE);
	return 0;
}

/*
 * One of low, low + step … high. Close after what is free at all; else from the middle outwards, which is near
 * the jump where the whole distance is open.
 */
static uint64_t reserve_stepped(struct x86_site *site, uint64_t low, uint64_t high, uint64_t step)
{
	uint64_t count = (high - low) / step + 1, tries = count < STEPPED_TRIES ? count : STEPPED_TRIES, got;
	uint64_t quarter = (high - low) >> 30 ? (high - low) / 4 : 0, hint, nth;

	hint = reserve_trampoline(site, low + quarter, high - quarter);
	if (!hint && quarter)
		hint = reserve_trampoline(site, low, high);
	if (!hint)
		return 0;
	site->room->release(site->room->data, hint, KYMO_JUMP_SIZE);
	nth = (hint - low + step - 1) / step;
	for (got = 0; !got && nth < count && nth < (hint - low) / step + HINTED_TRIES; nth++)
		got = reserve_trampoline(site, low + nth * step, low + nth * step);
	for (uint64_t i = 0; i < tries && !got; i++) {
		uint64_t aside = (i + 1) / 2, place = i % 2 ? tries / 2 - aside : tries / 2 + aside;
		uint64_t at = low + place * (count / tries) * step;

		got = reserve_trampoline(site, at, at);
	}
	return got;
}

/* Reserve an address from low to high. Of all that a jump reaches, the middle half is better: what is at the far ends
 * may not reach a pad. */
static uint64_t reserve_any(struct x86_site *site, uint64_t low, uint64_t high)
{
	uint64_t span = high - low, got = 0;

	if (span == UINT32_MAX)
		got = reserve_trampoline(site, low + span / 4, high - span / 4);
	return got ? got : reserve_trampoline(site, low, high);
}

/* Whether a probe is wanted on the instruction before. */
static bool is_before_wanted(const struct x86_site *site)
{
	uint64_t start = site->function->start, before;

	if (site->vaddr == start)
		return false;
	before = x86_last(site->map, 1u << X86_STARTS, start, site->vaddr - 1);
	return before != UINT64_MAX && site->room->is_locked(site->room->data, before, 1);
}

/*
 * One of low to high. The bytes that decide which are the high ones of a pun on the instruction before: where one
 * is wanted, 0 would lead it into the module itself, so that the second and third eighths are asked for first.
 */
static uint64_t reserve_near(struct x86_site *site, uint64_t low, uint64_t high)
{
	uint64_t span = high - low, got = 0;

	if (span > UINT16_MAX / 2 && span < UINT32_MAX && is_before_wanted(site))
		got = reserve_trampoline(site, low + span / 8, low + span / 8 * 3);
	return got ? got : reserve_any(site, low, high);
}

uint64_t x86_layout_reserve(struct x86_layout *layout, struct x86_site *site, unsigned int at)
{
	uint64_t low, high, step, got, distance;

	x86_layout_range(layout, at, &low, &high, &step);
	got = step == 1 ? reserve_near(site, low, high) : reserve_stepped(site, low, high, step);
	if (!got)
		return 0;
	distance = got - (layout->base + at + KYMO_JUMP_SIZE);
	for (unsigned int i = 0; i < 4; i++)
		x86_layout_set(layout, at + 1 + i, (uint8_t)(distance >> (8 * i)));
	return got;
}

/* ---- plans ----------------------------------------------------------------------------------- */

void x86_plan_alone(const struct x86_site *site, enum kymo_tactic tactic, const struct x86_layout *layout,
		    unsigned int patch_size, unsigned int span, uint64_t trampoline, struct kymo_plan *ret)
{
	const struct x86_insn *insn = &site->insn;
	size_t size;

	*ret = (struct kymo_plan){
		.tactic = tactic,
		.vaddr = site->vaddr,
		.window = insn->length,
		.n_insns = 1,
		.insn_offset = { 0, insn->length },
		.patch_size = (uint8_t)patch_size,
		.lock_size = (uint8_t)(span > insn->length ? span : insn->length),
		.trampoline = trampoline,
		.faults = (uint8_t)x86_faults(site, insn),
		.ends_flow = x86_flow_ends(insn->flow) || x86_flow_is_call(insn->flow),
	};
	memcpy(ret->original, x86_text_at(site->map, site->vaddr, &size), insn->length);
	memcpy(ret->patch, layout->bytes + (site->vaddr - layout->base), patch_size);
}

/* Whether the instruction, which follows another one that is displaced or copied, can be copied. */
static bool can_copy(const struct x86_site *site, const struct x86_insn *insn)
{
	const struct kymo_plan_room *room = site->room;
	uint64_t vaddr = insn->address, end = vaddr + insn->length;
	uint8_t now[X86_INSN_MAX];
	struct kymo_refusal unused;
	const uint8_t *text;
	size_t size;

	if (!x86_test(site->map, X86_STARTS, vaddr) || x86_flow_is_call(insn->flow) || x86_faults(site, insn) ||
	    x86_check_insn(site, insn, end, false, &unused) || x86_check_rseq(site, vaddr, end, &unused) ||
	    x86_is_locked(site, vaddr, insn->length) || room->is_unsteady(room->data, vaddr, insn->length))
		return false;
	text = x86_text_at(site->map, vaddr, &size);
	memcpy(now, text, insn->length);
	room->look(room->data, vaddr, now, insn->length);
	return !memcmp(now, text, insn->length);
}

/* Add copies up to the end of the jump, which is `span` bytes after the site; all that takes, or none. */
static void add_copies(const struct x86_site *site, unsigned int span, struct kymo_plan *plan)
{
	struct kymo_plan with = *plan;
	struct x86_insn insn = site->insn;
	unsigned int at = plan->window, n = plan->n_insns;
	size_t size;

	if (x86_cannot_move(&insn) || site->code->is_jit) /* a system call; or they may be changed */
		return;
	for (; at < span && !x86_flow_ends(insn.flow) && !x86_flow_is_call(insn.flow); at += insn.length) {
		if (n == KYMO_WINDOW_MAX_INSNS || x86_decode_in(site, site->vaddr + at, &insn) < 0 ||
		    at + insn.length > KYMO_WINDOW_MAX || !can_copy(site, &insn))
			return;
		memcpy(with.original + at, x86_text_at(site->map, insn.address, &size), insn.length);
		with.insn_offset[++n] = (uint8_t)(at + insn.length);
		with.n_copied++;
		with.ends_flow = x86_flow_ends(insn.flow);
	}
	if (with.lock_size < at)
		with.lock_size = (uint8_t)at;
	*plan = with;
}

/* The sentence for a jump with `prefixes` in front, whose layout leads nowhere. */
static int refuse_range(const struct x86_layout *layout, unsigned int prefixes, struct kymo_refusal *refusal)
{
	char bytes[4 * 3 + 1] = "", *to = bytes, before[32] = "";
	uint64_t low, high, step;
	unsigned int n = 0;

	for (unsigned int i = prefixes + 1; i < prefixes + KYMO_JUMP_SIZE; i++) {
		if (!layout->open[i]) {
			to += snprintf(to, 4, " %02x", layout->bytes[i]);
			n++;
		}
	}
	x86_layout_range(layout, prefixes, &low, &high, &step);
	if (prefixes)
		snprintf(before, sizeof(before), "with %u prefix%s ", prefixes, prefixes == 1 ? "" : "es");
	if (low == high)
		return x86_refuse(refusal, layout->base,
				  "%sthe jump's last 4 bytes would be%s, which leads to %s0x%lx, which is not free",
				  before, bytes, X86_ADDRESS(low));
	if (!n)
		return x86_refuse(refusal, layout->base, "%sa jump leads to %s0x%lx - %s0x%lx, where nothing is free",
				  before, X86_ADDRESS(low), X86_ADDRESS(high));
	return x86_refuse(refusal, layout->base,
			  "%sthe jump's last %u byte%s would be%s, which leads to %s0x%lx - %s0x%lx, "
			  "where nothing is free",
			  before, n, n == 1 ? "" : "s", bytes, X86_ADDRESS(low), X86_ADDRESS(high));
}

/* A jump after `prefixes` bytes, where `open` bytes of the instruction may be changed. */
static int try_at(struct x86_site *site, unsigned int prefixes, unsigned int open, struct kymo_plan *ret,
		  struct kymo_refusal *refusal)
{
	unsigned int span = prefixes + KYMO_JUMP_SIZE, patch_size = open < span ? open : span;
	struct x86_layout layout;
	uint64_t trampoline;
	int err;

	x86_layout_init(&layout, site, site->vaddr, span);
	x86_layout_open(&layout, 0, patch_size);
	for (unsigned int i = 0; i < prefixes; i++)
		x86_layout_set(&layout, i, x86_prefixes[0]);
	x86_layout_set(&layout, prefixes, 0xe9);
	err = x86_layout_check(&layout, site, prefixes, refusal);
	if (!err)
		err = x86_check_jit(site, span, refusal);
	if (err)
		return err;
	trampoline = x86_layout_reserve(&layout, site, prefixes);
	if (!trampoline)
		return refuse_range(&layout, prefixes, refusal);
	x86_plan_alone(site, prefixes ? KYMO_TACTIC_PREFIX : KYMO_TACTIC_PUN, &layout, patch_size, span, trampoline,
		       ret);
	add_copies(site, span, ret);
	return 0;
}

int x86_try_pun(struct x86_site *site, struct kymo_plan *plans, size_t *n, struct kymo_refusal *refusal)
{
	unsigned int open = x86_changeable(site);
	int err = open ? try_at(site, 0, open, &plans[0], refusal) : x86_refuse_fixed(site, refusal);

	*n = 1;
	return err;
}

/*
 * A pun that changes the first byte alone: it leads to one address. Where that lies on two pages the trampoline could
 * not be shared with another recording, so something else is taken.
 */
int x86_try_first(struct x86_site *site, struct kymo_plan *plans, size_t *n, struct kymo_refusal *refusal)
{
	int err = x86_changeable(site) ? try_at(site, 0, 1, &plans[0], refusal) : x86_refuse_fixed(site, refusal);

	if (!err && !kymo_page_has(plans[0].trampoline, KYMO_JUMP_SIZE)) {
		site->room->release(site->room->data, plans[0].trampoline, KYMO_JUMP_SIZE);
		err = x86_refuse(refusal, site->vaddr,
				 "the only address that a jump at 0x%lx leads to lies on two pages", site->vaddr);
	}
	*n = 1;
	return err;
}

int x86_try_prefix(struct x86_site *site, struct kymo_plan *plans, size_t *n, struct kymo_refusal *refusal)
{
	unsigned int open = x86_changeable(site);

	*n = 1;
	if (open < 2)
		return x86_refuse(refusal, site->vaddr,
				  "there is no byte for a prefix: only the one at 0x%lx may be changed", site->vaddr);
	for (unsigned int prefixes = 1; prefixes < open && prefixes + KYMO_JUMP_SIZE <= X86_INSN_MAX; prefixes++) {
		int err = try_at(site, prefixes, open, &plans[0], refusal);

		if (!err)
			return 0;
	}
	return -EPERM;
}
