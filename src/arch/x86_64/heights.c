/*
 * How far the stack pointer is from where it was at a function's entry, before each instruction.
 *
 * It tells two things apart that look the same. A jump to another function is a tail call when the return address is on
 * top of the stack; with a frame still there it leads to a part that was split off. An indirect jump with a frame
 * there leads to a label.
 *
 * Compiled code has one height at each address, or it could not be unwound; so a state that comes by a sure path is
 * not asked for again by a guess. Sure are: the start, branches, falling through. Then, each only for what
 * is not reached yet: jump tables; what follows a call where others enter too (calls that never return
 * are not known for it); labels; and at last all that is entered, from where nothing is known.
 * Where it can't be followed (alloca, realigned stacks) it is LOST until the frame pointer brings it back; as long as
 * that points into the frame, the frame is still there, for the caller's has to be put back first.
 */
#include "arch/x86_64/heights.h"

#include <errno.h>
#include <string.h>

#include "arch/x86_64/code.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/jumps.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/site.h"
#include "base/search.h"

#define HEIGHT_MAX (1 << 30)
#define RSP 4
#define RBP 5

/* ---- parts ----------------------------------------------------------------------------------- */

void x86_body_init(struct x86_body *body, const struct kymo_module_code *code, const struct kymo_entry_map *map,
		   struct kymo_refusal *refusal)
{
	memset(body, 0, sizeof(*body));
	body->code = code;
	body->map = map;
	body->refusal = refusal;
	body->jumps = (struct x86_jumps){ .code = code, .map = map, .summary_of = -1 };
	body->label.sp = X86_UNREACHED;
	body->budget = 1000000;
	x86_decoder_init(&body->jumps.decoder);
}

void x86_body_deinit(struct x86_body *body)
{
	for (size_t i = 0; i < body->n_parts; i++)
		free(body->parts[i].states);
	kymo_vec_deinit(&body->queue);
	kymo_vec_deinit(&body->weak);
	kymo_vec_deinit(&body->indirect);
}

/* Each byte of a part belongs to a function that decodes. */
static int check_part(struct x86_body *body, uint64_t start, uint64_t end)
{
	for (uint64_t at = start; at < end;) {
		ptrdiff_t index = x86_function_at(body->code, at);
		const struct x86_function *about;

		if (index < 0 || (size_t)index >= body->map->n_functions)
			return x86_refuse(body->refusal, at, "no function with a known end contains 0x%lx", at);
		about = &body->map->functions[index];
		if (!about->decodes)
			return x86_refuse(body->refusal, about->bad,
					  "the function at 0x%lx has bytes at 0x%lx that are no instruction", start,
					  about->bad);
		if (about->bad)
			return x86_refuse(body->refusal, about->bad,
					  "control enters at 0x%lx, inside of an instruction: the function at 0x%lx "
					  "may contain data",
					  about->bad, start);
		at = body->code->functions[index].end;
	}
	return 0;
}

int x86_body_add(struct x86_body *body, uint64_t start, uint64_t end)
{
	struct x86_part part = { start, end, NULL };
	int err;

	if (start >= end || end - start > X86_BODY_MAX - body->size)
		return x86_refuse(body->refusal, start, "the function at 0x%lx has more than %u bytes", start,
				  X86_BODY_MAX);
	if (body->n_parts == X86_PARTS_MAX)
		return x86_refuse(body->refusal, start, "the function at 0x%lx has more than %d parts",
				  body->parts[0].start, X86_PARTS_MAX);
	if (x86_body_part(body, start) || x86_body_part(body, end - 1))
		return x86_refuse(body->refusal, start, "parts of the function at 0x%lx overlap", body->parts[0].start);
	err = check_part(body, start, end);
	if (err)
		return err;
	part.states = malloc((size_t)(end - start) * sizeof(*part.states));
	if (!part.states)
		return -ENOMEM;
	for (uint64_t i = 0; i < end - start; i++)
		part.states[i] = (struct x86_state){ X86_UNREACHED, X86_UNREACHED };
	body->size += end - start;
	body->parts[body->n_parts++] = part;
	body->labels_done = false;
	body->is_new = true;
	return 0;
}

struct x86_part *x86_body_part(struct x86_body *body, uint64_t vaddr)
{
	for (size_t i = 0; i < body->n_parts; i++)
		if (vaddr >= body->parts[i].start && vaddr < body->parts[i].end)
			return &body->parts[i];
	return NULL;
}

struct x86_state *x86_body_state(struct x86_body *body, uint64_t vaddr)
{
	struct x86_part *part = x86_body_part(body, vaddr);

	return part ? &part->states[vaddr - part->start] : NULL;
}

bool x86_body_has(const struct x86_body *body, size_t index)
{
	uint64_t start = body->code->functions[index].start;

	for (size_t i = 0; i < body->n_parts; i++)
		if (start >= body->parts[i].start && start < body->parts[i].end)
			return true;
	return false;
}

bool x86_body_may_join(const struct x86_body *body, size_t index)
{
	const struct x86_function *about = &body->map->functions[index];

	return !about->called && about->decodes && !about->bad && about->jumped_from != X86_SEVERAL &&
	       (!about->jumped_from || x86_body_has(body, about->jumped_from - 1));
}

int x86_body_decode(struct x86_body *body, uint64_t vaddr, struct x86_insn *ret)
{
	const struct x86_part *part = x86_body_part(body, vaddr);
	size_t size;
	const uint8_t *bytes = part ? x86_text_at(body->map, vaddr, &size) : NULL;

	if (!bytes)
		return -EINVAL;
	if (size > part->end - vaddr)
		size = (size_t)(part->end - vaddr);
	return x86_decode_full(&body->jumps.decoder, bytes, size, vaddr, ret);
}

/* ---- one instruction ------------------------------------------------------------------------- */

static int32_t moved(int32_t height, int64_t by)
{
	int64_t sum = height + by;

	if (!x86_height_is_known(height))
		return height;
	return by > HEIGHT_MAX || by < -HEIGHT_MAX || sum > HEIGHT_MAX || sum < -HEIGHT_MAX ? X86_LOST : (int32_t)sum;
}

static int32_t height_of(const struct x86_state *state, ZydisRegister reg)
{
	if (reg == ZYDIS_REGISTER_RSP)
		return state->sp;
	return reg == ZYDIS_REGISTER_RBP ? state->bp : X86_LOST;
}

/* What the instruction, which writes its first operand, puts there. */
static int32_t result(const struct x86_insn *insn, const struct x86_state *state, ZydisRegister reg)
{
	const ZydisDecodedOperand *to = &insn->op[0], *from = &insn->op[1];

	if (to->type != ZYDIS_OPERAND_TYPE_REGISTER || to->reg.value != reg)
		return X86_LOST;
	switch (insn->z.mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		return from->type == ZYDIS_OPERAND_TYPE_REGISTER ? height_of(state, from->reg.value) : X86_LOST;
	case ZYDIS_MNEMONIC_LEA:
		if (from->mem.index != ZYDIS_REGISTER_NONE)
			return X86_LOST;
		return moved(height_of(state, from->mem.base), from->mem.disp.value);
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (from->type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return X86_LOST;
		return moved(height_of(state, reg),
			     insn->z.mnemonic == ZYDIS_MNEMONIC_ADD ? from->imm.value.s : -from->imm.value.s);
	default:
		return X86_LOST;
	}
}

static struct x86_state after(const struct x86_insn *insn, const struct x86_state *before)
{
	struct x86_state state = *before;
	int width = insn->z.operand_width / 8;

	if (x86_flow_is_call(insn->flow))
		return state;
	switch (insn->z.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
		state.sp = moved(before->sp, -width);
		return state;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
		state.sp = moved(before->sp, width);
		if (insn->z.mnemonic == ZYDIS_MNEMONIC_POP && insn->op[0].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			if (x86_gpr(insn->op[0].reg.value) == RSP)
				state.sp = X86_LOST;
			if (x86_gpr(insn->op[0].reg.value) == RBP)
				state.bp = X86_LOST;
		}
		return state;
	case ZYDIS_MNEMONIC_LEAVE:
		state.sp = moved(before->bp, 8);
		state.bp = X86_LOST;
		return state;
	default:
		if (x86_writes(insn, RSP))
			state.sp = result(insn, before, ZYDIS_REGISTER_RSP);
		if (x86_writes(insn, RBP))
			state.bp = result(insn, before, ZYDIS_REGISTER_RBP);
		return state;
	}
}

/* ---- paths ----------------------------------------------------------------------------------- */

static bool join_height(int32_t *height, int32_t more)
{
	int32_t before = *height;

	if (before == X86_UNREACHED || before == X86_FREE)
		*height = more;
	else if (more != X86_FREE && more != before)
		*height = X86_LOST;
	return *height != before;
}

static bool is_entered(const struct x86_body *body, uint64_t vaddr)
{
	return x86_test(body->map, X86_FIRM, vaddr) || x86_test(body->map, X86_LIKELY, vaddr);
}

static void merge(struct x86_body *body, uint64_t vaddr, struct x86_state more)
{
	struct x86_state *state;
	bool sp, bp;

	/* After a lock prefix: the same instruction as far as this goes. */
	if (!x86_test(body->map, X86_STARTS, vaddr) && x86_test(body->map, X86_STARTS, vaddr - 1))
		vaddr--;
	state = x86_body_state(body, vaddr);
	if (!state || !x86_test(body->map, X86_STARTS, vaddr))
		return;
	sp = join_height(&state->sp, more.sp);
	bp = join_height(&state->bp, more.bp);
	if ((sp || bp) && !kymo_vec_push(&body->queue, vaddr))
		body->err = -ENOMEM;
}

/* A guess: where more is known, it is not asked. */
static void guess(struct x86_body *body, uint64_t vaddr, struct x86_state more)
{
	const struct x86_state *state = x86_body_state(body, vaddr);

	if (state && (state->sp == X86_UNREACHED || (state->sp == X86_FREE && more.sp != X86_FREE)))
		merge(body, vaddr, more);
}

static void note_label(struct x86_body *body, const struct x86_insn *insn)
{
	if (x86_is_rip_lea(insn) && insn->rip != body->parts[0].start && x86_body_part(body, insn->rip))
		body->takes_label = true;
}

static void step_height(struct x86_body *body, uint64_t vaddr)
{
	struct x86_state state;
	struct x86_insn insn;
	uint64_t next;

	if (x86_body_decode(body, vaddr, &insn) < 0)
		return;
	state = after(&insn, x86_body_state(body, vaddr));
	next = vaddr + insn.length;
	note_label(body, &insn);
	if (insn.flow == X86_FLOW_BRANCH || insn.flow == X86_FLOW_JUMP)
		merge(body, insn.target, state);
	if (insn.flow == X86_FLOW_NEXT || insn.flow == X86_FLOW_BRANCH)
		merge(body, next, state);
	if (x86_flow_is_call(insn.flow)) {
		if (!is_entered(body, next))
			merge(body, next, state);
		else if (!kymo_vec_push(&body->weak, vaddr))
			body->err = -ENOMEM;
	}
	if (insn.flow == X86_FLOW_JUMP_INDIRECT && !kymo_vec_push(&body->indirect, vaddr))
		body->err = -ENOMEM;
}

/* ---- indirect jumps -------------------------------------------------------------------------- */

static const struct kymo_span *data_at(const struct x86_body *body, uint64_t vaddr)
{
	for (size_t i = 0; i < body->code->n_data; i++)
		if (vaddr >= body->code->data[i].vaddr && vaddr - body->code->data[i].vaddr < body->code->data[i].size)
			return &body->code->data[i];
	return NULL;
}

static bool read_data(const struct x86_body *body, uint64_t vaddr, void *out, size_t size)
{
	const struct kymo_span *span = data_at(body, vaddr);
	const uint8_t *bytes = span ? span->bytes + (vaddr - span->vaddr) : NULL;
	size_t room = span ? span->size - (size_t)(vaddr - span->vaddr) : 0;

	if (!span)
		bytes = x86_text_at(body->map, vaddr, &room);
	if (!bytes || room < size)
		return false;
	memcpy(out, bytes, size);
	return true;
}

static bool read_entry(const struct x86_body *body, uint64_t table, bool is_relative, uint64_t i, uint64_t *ret)
{
	int32_t distance;

	if (!is_relative)
		return read_data(body, table + 8 * i, ret, 8);
	if (!read_data(body, table + 4 * i, &distance, 4))
		return false;
	*ret = table + (uint64_t)distance;
	return true;
}

static bool find_table(struct x86_body *body, uint64_t vaddr, bool *is_relative, uint64_t *ret)
{
	ptrdiff_t index = x86_function_at(body->code, vaddr);

	*is_relative = index >= 0 && x86_jump_table(&body->jumps, (size_t)index, vaddr, ret);
	return *is_relative || x86_jump_absolute(&body->jumps, vaddr, ret);
}

bool x86_body_table(struct x86_body *body, uint64_t vaddr, uint64_t *ret)
{
	bool is_relative;
	uint64_t table;

	return find_table(body, vaddr, &is_relative, &table) && read_entry(body, table, is_relative, 0, ret);
}

/* The next table that some jump uses, after `vaddr`. */
static uint64_t next_table(const struct kymo_entry_map *map, uint64_t vaddr)
{
	size_t at = kymo_partition_point(i, map->n_tables, map->tables[i] <= vaddr);

	return at < map->n_tables ? map->tables[at] : UINT64_MAX;
}

/* Whether an entry that leads there, out of the parts, may be one of a table that jumps of theirs use. */
static bool may_be_target(struct x86_body *body, uint64_t target)
{
	const ptrdiff_t index = x86_function_at(body->code, target);

	return x86_area_at(body->map, target) && x86_test(body->map, X86_STARTS, target) &&
	       (index < 0 || x86_body_may_join(body, (size_t)index));
}

/* Whether the table is over for certain where its targets are in the parts no more. */
static bool read_table(struct x86_body *body, uint64_t table, bool is_relative,
		       void (*each)(void *closure, uint64_t target), void *closure)
{
	const uint64_t end = next_table(body->map, table);
	uint64_t target;

	for (uint64_t i = 0; table + i * (is_relative ? 4 : 8) < end; i++) {
		if (!read_entry(body, table, is_relative, i, &target))
			return true;
		if (!x86_body_part(body, target) || !x86_test(body->map, X86_STARTS, target))
			return !may_be_target(body, target);
		each(closure, target);
	}
	return true;
}

bool x86_body_targets(struct x86_body *body, uint64_t vaddr, void (*each)(void *closure, uint64_t target),
		      void *closure, bool *are_all_ret)
{
	uint64_t table;
	bool is_relative;

	if (!find_table(body, vaddr, &is_relative, &table))
		return false;
	*are_all_ret = read_table(body, table, is_relative, each, closure);
	return true;
}

bool x86_body_adds(struct x86_body *body, uint64_t vaddr)
{
	const ptrdiff_t index = x86_function_at(body->code, vaddr);

	return index >= 0 && x86_jump_adds(&body->jumps, (size_t)index, vaddr);
}

bool x86_body_relative(struct x86_body *body, uint64_t table, void (*each)(void *closure, uint64_t target),
		       void *closure)
{
	return read_table(body, table, true, each, closure);
}

/* A target of a table in another function: a part that was split off, as nothing else leads there. False: the table is
 * over. */
static bool join_target(struct x86_body *body, uint64_t target)
{
	ptrdiff_t index = x86_function_at(body->code, target);
	const struct kymo_extent *extent;

	if (index < 0 || !x86_body_may_join(body, (size_t)index) || !x86_test(body->map, X86_STARTS, target))
		return false;
	extent = &body->code->functions[index];
	body->err = x86_body_add(body, extent->start, extent->end);
	return !body->err;
}

static void follow_table(struct x86_body *body, uint64_t table, bool is_relative, struct x86_state state)
{
	uint64_t end = next_table(body->map, table), target;

	for (uint64_t i = 0; table + i * (is_relative ? 4 : 8) < end && body->budget; i++) {
		body->budget--;
		if (!read_entry(body, table, is_relative, i, &target) ||
		    (!x86_body_part(body, target) && !join_target(body, target)) ||
		    !x86_test(body->map, X86_STARTS, target))
			return;
		guess(body, target, state);
	}
}

/* Whether there was one. */
static bool follow_indirect(struct x86_body *body)
{
	bool is_relative;
	uint64_t vaddr, table;
	struct x86_state state;
	ptrdiff_t index;

	if (!body->indirect.n)
		return false;
	vaddr = body->indirect.items[--body->indirect.n];
	state = *x86_body_state(body, vaddr);
	index = x86_function_at(body->code, vaddr);
	if (find_table(body, vaddr, &is_relative, &table))
		follow_table(body, table, is_relative, state);
	else if (x86_has_frame(&state) ||
		 (x86_height_is_known(state.sp) && index >= 0 && x86_jump_adds(&body->jumps, (size_t)index, vaddr)))
		body->label = state;
	return true;
}

/* ---- the rest -------------------------------------------------------------------------------- */

static bool follow_weak(struct x86_body *body)
{
	struct x86_insn insn;
	uint64_t vaddr;

	if (!body->weak.n)
		return false;
	vaddr = body->weak.items[--body->weak.n];
	if (x86_body_decode(body, vaddr, &insn) == 0)
		guess(body, vaddr + insn.length, *x86_body_state(body, vaddr));
	return true;
}

/* All that is entered and was not reached. Whether there was something. */
static bool follow_rest(struct x86_body *body, struct x86_state state)
{
	for (size_t i = 0; i < body->n_parts; i++) {
		const struct x86_part *part = &body->parts[i];

		for (uint64_t at = part->start; at < part->end; at++) {
			if (part->states[at - part->start].sp != X86_UNREACHED ||
			    !x86_test(body->map, X86_STARTS, at) || !is_entered(body, at))
				continue;
			merge(body, at, state);
		}
	}
	return body->queue.n;
}

/* A part is new: whatever is reached may lead into it. */
static void queue_all_again(struct x86_body *body)
{
	body->is_new = false;
	for (size_t i = 0; i < body->n_parts; i++) {
		const struct x86_part *part = &body->parts[i];

		for (uint64_t at = part->start; at < part->end; at++)
			if (part->states[at - part->start].sp != X86_UNREACHED && !kymo_vec_push(&body->queue, at))
				body->err = -ENOMEM;
	}
}

static bool follow_labels(struct x86_body *body)
{
	if (body->label.sp == X86_UNREACHED || body->labels_done)
		return false;
	body->labels_done = true;
	body->has_labels = follow_rest(body, body->label) || body->has_labels;
	return body->has_labels;
}

int x86_body_run(struct x86_body *body)
{
	const struct x86_state nothing = { X86_FREE, X86_FREE };
	merge(body, body->parts[0].start, (struct x86_state){ 0, X86_LOST });
	while (!body->err) {
		if (body->is_new)
			queue_all_again(body);
		else if (body->queue.n)
			step_height(body, body->queue.items[--body->queue.n]);
		else if (!follow_indirect(body) && !follow_labels(body) && !follow_weak(body) &&
			 !follow_rest(body, nothing))
			break;
	}
	return body->err;
}
