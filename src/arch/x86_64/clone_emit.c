/*
 * The code of a clone: copies of instructions, what is recorded before those that are sites (clone_record.c), and
 * gates.
 *
 * Calls are executed where they are: the clone jumps to the function's own call. So the processor predicts the return,
 * and shadow stacks hold. Calls some bytes of which are a catch are taken apart.
 */
#include "arch/x86_64/clone_record.h"

#include <errno.h>
#include <stdlib.h>

#include "arch/x86_64/clone_gate.h"
#include "arch/x86_64/clone_live.h"
#include "arch/x86_64/clone_table.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/relocate.h"

#define INSN_SIZE_MAX 48u /* of the code of one instruction, with a jump after it */

/* ---- instructions ---------------------------------------------------------------------------- */

/* After an instruction, before the next one, which is -1 where the function is left. */
static bool stays_held(const struct kymo_clone *clone, const struct x86_clone_insn *insn, int32_t next)
{
	return !(insn->clobbers >> clone->held & 1) && next >= 0 && !(clone->insns.items[next].live >> clone->held & 1);
}

/* An instruction that holds no position takes it from what follows. Whether that is new. */
static bool lose_after(struct x86_clone_emitter *emitter, size_t index)
{
	const struct kymo_clone *clone = emitter->clone;
	const struct x86_clone_insn *insn = &clone->insns.items[index];
	const bool is_held =
		insn->is_site ? x86_clone_holds(clone, insn) : emitter->comes_held[index] && !insn->stretch;
	const int32_t next[] = { insn->next, insn->to };
	bool ret = false;

	for (int i = 0; i < 2; i++) {
		if (next[i] < 0 || !emitter->comes_held[next[i]] || (is_held && stays_held(clone, insn, next[i])))
			continue;
		emitter->comes_held[next[i]] = false;
		ret = true;
	}
	return ret;
}

/* Where ways come together that are no sites. Control from elsewhere comes to catches, which are sites. */
static void find_held(struct x86_clone_emitter *emitter)
{
	const struct kymo_clone *clone = emitter->clone;
	bool changed;

	for (size_t i = 0; i < clone->insns.n; i++)
		emitter->comes_held[i] = clone->held < X86_NO_REGISTER;
	do {
		changed = false;
		for (size_t i = 0; i < clone->insns.n; i++)
			changed |= lose_after(emitter, i);
	} while (changed);
}

/* Where the code for instruction `to` is, or what is at `vaddr` where it has none. */
static uint64_t address_of(struct x86_clone_emitter *emitter, int32_t to, uint64_t vaddr)
{
	const struct kymo_clone *clone = emitter->clone;
	const uint16_t stretch = to < 0 ? 0 : clone->insns.items[to].stretch;

	if (to < 0)
		return vaddr + emitter->env->bias;
	if (stretch != emitter->stretch)
		return x86_clone_stub(emitter, emitter->stretch, to);
	if (emitter->is_held && x86_clone_holds(clone, &clone->insns.items[to]))
		emitter->is_hot[to] = true;
	if (!emitter->has_offsets)
		return emitter->code.address;
	if (stretch)
		return emitter->code.address + emitter->hot[to];
	return emitter->code.address + (emitter->is_held && x86_clone_holds(clone, &clone->insns.items[to])
						? emitter->hot[to]
						: emitter->cold[to]);
}

static void relocate(struct x86_clone_emitter *emitter, const struct x86_clone_insn *insn)
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

static bool is_apart(const struct x86_clone_emitter *emitter, const struct x86_clone_insn *insn)
{
	const uint8_t *original;
	struct x86_insn full;

	return !insn->is_in_place ||
	       (emitter->env->calls_apart && x86_flow_is_call((enum x86_flow)insn->flow) &&
		!x86_clone_decode(emitter->clone, insn, 0, &full, &original) && !x86_cannot_move(&full));
}

/* Whether control goes on to the code after it. */
static bool emit_insn(struct x86_clone_emitter *emitter, size_t index)
{
	const struct kymo_clone *clone = emitter->clone;
	const struct x86_clone_insn *insn = &clone->insns.items[index];
	enum x86_flow flow = (enum x86_flow)insn->flow;

	x86_clone_note_copy(emitter, insn->vaddr);
	if (!is_apart(emitter, insn)) {
		x86_clone_put_jump(emitter, insn->vaddr + emitter->env->bias);
		return false;
	}
	if (insn->is_tabled) {
		x86_clone_emit_tabled(emitter, index);
		return false;
	}
	if (emitter->is_held && insn->clobbers >> clone->held & 1)
		emitter->is_held = false;
	relocate(emitter, insn);
	if (x86_flow_ends(flow) || x86_flow_is_call(flow))
		return false;
	emitter->is_held &= stays_held(clone, insn, insn->next);
	if (insn->next == (int32_t)index + 1)
		return true;
	x86_clone_note_point(emitter, insn->vaddr + insn->length);
	x86_clone_put_jump(emitter, address_of(emitter, insn->next, insn->vaddr + insn->length));
	return false;
}

/* Of the copy that a catch leads to. */
static uint64_t catch_address(struct x86_clone_emitter *emitter, size_t i)
{
	return address_of(emitter, x86_clone_find(emitter->clone, emitter->clone->catches.items[i].vaddr), 0);
}

static int emit_all(struct x86_clone_emitter *emitter)
{
	const struct kymo_clone *clone = emitter->clone;
	bool falls = false;

	emitter->code.n = 0;
	emitter->site = emitter->env->first_site;
	emitter->is_held = false;
	for (size_t i = 0; i < clone->insns.n && !emitter->err; i++) {
		const struct x86_clone_insn *insn = &clone->insns.items[i];

		emitter->vaddr = insn->vaddr;
		if (falls)
			x86_clone_cross(emitter, insn->stretch);
		else
			x86_clone_set_stretch(emitter, insn->stretch);
		if (!insn->is_site)
			emitter->is_held = !insn->stretch && emitter->comes_held[i];
		if (!emitter->has_offsets)
			emitter->cold[i] = UINT32_MAX;
		if (insn->is_site)
			x86_clone_record(emitter, i, falls);
		else
			emitter->hot[i] = emitter->cold[i] = emitter->warm[i] = (uint32_t)emitter->code.n;
		falls = emit_insn(emitter, i);
	}
	emitter->is_held = false;
	x86_clone_emit_loads(emitter);
	x86_clone_emit_shadows(emitter, address_of);
	for (size_t i = 0; i < clone->catches.n; i++)
		(void)catch_address(emitter, i);
	x86_clone_emit_stubs(emitter);
	if (!emitter->err)
		emitter->err = code_error(&emitter->code);
	return emitter->err;
}

/* What catches lead to: gates, which lead to where they would otherwise. */
static void emit_gates(struct x86_clone_emitter *emitter, uint32_t *catch_at)
{
	const struct kymo_clone *clone = emitter->clone;

	for (size_t i = 0; i < clone->catches.n; i++) {
		const struct x86_clone_insn *insn =
			&clone->insns.items[x86_clone_find(clone, clone->catches.items[i].vaddr)];
		const uint64_t copy = emitter->code.address + catch_at[i];

		if (!emitter->env->arena)
			return;
		catch_at[i] = (uint32_t)emitter->code.n;
		x86_clone_note_point(emitter, insn->vaddr);
		x86_clone_emit_gate(&emitter->code, emitter->env, insn->flags_live, copy);
		x86_clone_note_point(emitter, insn->vaddr);
		x86_clone_put_jump(emitter, copy);
	}
	if (!emitter->err)
		emitter->err = code_error(&emitter->code);
}

int kymo_clone_emit(const struct kymo_clone *clone, const struct kymo_clone_env *env, uint64_t to, uint8_t *out,
		    size_t size, uint32_t *catch_at, struct kymo_clone_map *map)
{
	struct x86_clone_emitter emitter = {
		.clone = clone,
		.env = env,
		.map = map,
		.pushed = KYMO_CLONE_HOLDS_NONE,
		.code = { .out = out, .size = size, .address = to },
	};
	int err;

	emitter.hot = malloc((clone->insns.n + 1) * sizeof(*emitter.hot));
	emitter.cold = malloc((clone->insns.n + 1) * sizeof(*emitter.cold));
	emitter.warm = malloc((clone->insns.n + 1) * sizeof(*emitter.warm));
	emitter.is_hot = calloc(clone->insns.n + 1, sizeof(*emitter.is_hot));
	emitter.comes_held = calloc(clone->insns.n + 1, sizeof(*emitter.comes_held));
	err = emitter.hot && emitter.cold && emitter.warm && emitter.is_hot && emitter.comes_held ? 0 : -ENOMEM;
	if (!err)
		find_held(&emitter);
	if (!err && env->checks_held)
		err = emit_all(&emitter);
	if (!err)
		err = emit_all(&emitter);
	emitter.has_offsets = true;
	if (!err)
		err = emit_all(&emitter);
	for (size_t i = 0; !err && i < clone->catches.n; i++)
		catch_at[i] = (uint32_t)(catch_address(&emitter, i) - emitter.code.address);
	if (!err) {
		emit_gates(&emitter, catch_at);
		err = emitter.err;
	}
	free(emitter.hot);
	free(emitter.cold);
	free(emitter.warm);
	free(emitter.is_hot);
	free(emitter.comes_held);
	kymo_vec_deinit(&emitter.stubs);
	kymo_vec_deinit(&emitter.shadows);
	return err ? err : (int)emitter.code.n;
}

size_t kymo_clone_size(const struct kymo_clone *clone)
{
	size_t n_stubs = 0;

	for (size_t i = 0; i < clone->insns.n; i++) {
		int32_t next[2];

		for (int k = x86_clone_next(&clone->insns.items[i], next); k-- > 0;)
			n_stubs += next[k] >= 0 && clone->insns.items[next[k]].stretch != clone->insns.items[i].stretch;
	}
	if (clone->stretches.n)
		n_stubs += clone->catches.n;
	return clone->insns.n * INSN_SIZE_MAX + clone->sites.n * X86_SITE_SIZE_MAX +
	       clone->catches.n * X86_GATE_SIZE_MAX + n_stubs * X86_STUB_SIZE_MAX + x86_clone_shadows_size(clone);
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
		if (!insn->stretch && x86_clone_free_register(clone, insn) == X86_NO_REGISTER)
			costs.n_spilled++;
		else if (insn->stretch || x86_clone_holds(clone, insn))
			costs.n_held++;
		else
			costs.n_free++;
	}
	*ret = costs;
}
