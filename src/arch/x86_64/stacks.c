/*
 * Whether a pad fits on the stack. Pads run on the stack of the thread that meets them. Go's functions have stacks
 * of two kilobytes and more that grow: a function looks, in its first instructions, whether its frame ends above a
 * limit, and calls morestack if not. Below the limit there are some hundred bytes (`small_stacks_left`), for functions
 * that do not look, and for those that they call. Go's linker adds up what such chains take, and lets them take all of
 * it.
 *
 * So this does what the linker does. The depth of a function is how far below a limit that was kept its return address
 * may lie: 8 for a call from the body of a function that has looked; for other calls the sum of the caller's depth, its
 * frame and 8. The greatest counts. A function that looks has nothing more than what it was called with until it has
 * looked, and morestack has still less.
 *
 * What is not followed are indirect calls. The linker takes them for calls of functions that look; those that deep
 * chains make lead to functions on the thread's own stack (systemstack, mcall), which is a large one. What nothing
 * calls directly has depth 8.
 *
 * Frames are bounded by the sum of all that is subtracted from the stack pointer in a function, whatever is added in
 * between. Loops that push cannot be described by the tables that Go unwinds with, and do not occur. What the stack
 * pointer is loaded with, from memory or another register, is a stack pointer from before, or another stack.
 *
 * Recursion ends where nothing is left: depths are no greater than that.
 */
#include "arch/x86_64/stacks.h"

#include <errno.h>
#include <string.h>

#include "arch/pad.h"
#include "arch/x86_64/decode.h"
#include "arch/x86_64/entries.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"

#define RSP 4
#define R14 14
#define PROLOGUE_MAX 16 /* instructions up to the look at the limit */
#define LEFT_MAX 4096u  /* of kymo_module_code.small_stacks_left */

/* One call or jump to another function, or to itself. */
struct edge {
	uint32_t from, to;
	bool is_call;
};

struct stacks {
	const struct kymo_module_code *code;
	struct kymo_entry_map *map;
	ZydisDecoder decoder;
	uint32_t left;
	KYMO_VEC(struct edge) edges; /* sorted by `from` */
	size_t *first;               /* of each function's edges; one more for the end */
};

/* ---- the look at the limit ------------------------------------------------------------------- */

/* What a register holds. */
enum held {
	HELD_NOTHING,
	HELD_G,          /* the goroutine's descriptor: r14, or loaded from thread-local storage */
	HELD_SP,         /* the stack pointer, or that less a frame */
	HELD_LIMIT,      /* a limit out of the descriptor */
	HELD_DIFFERENCE, /* stack pointer - limit */
};

/* What the next conditional jump asks. */
enum question {
	ASKS_NOTHING,
	ASKS_WRAPPED,   /* whether a frame is larger than the stack pointer */
	ASKS_PREEMPTED, /* whether the limit is the one that no stack pointer keeps */
	ASKS_LIMIT,
};

struct prologue {
	uint8_t held[16];
	enum question question;
	uint64_t fails; /* where those jumps lead; 0: there was none */
};

static enum held held_in(const struct prologue *prologue, const ZydisDecodedOperand *op)
{
	int reg;

	if (op->type != ZYDIS_OPERAND_TYPE_REGISTER || op->size != 64)
		return HELD_NOTHING;
	reg = x86_gpr(op->reg.value);
	return reg < 0 ? HELD_NOTHING : prologue->held[reg];
}

/* stackguard0 and stackguard1 are the third and the fourth word of the descriptor. */
static bool is_limit(const struct prologue *prologue, const ZydisDecodedOperand *op)
{
	int base;

	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.index != ZYDIS_REGISTER_NONE ||
	    op->mem.segment == ZYDIS_REGISTER_FS || op->mem.segment == ZYDIS_REGISTER_GS || op->size != 64)
		return false;
	base = x86_gpr(op->mem.base);
	return base >= 0 && prologue->held[base] == HELD_G &&
	       (op->mem.disp.value == 0x10 || op->mem.disp.value == 0x18);
}

static enum held moved(const struct prologue *prologue, const struct x86_insn *insn)
{
	const ZydisDecodedOperand *from = &insn->op[1];

	if (insn->z.mnemonic == ZYDIS_MNEMONIC_LEA)
		return from->mem.base == ZYDIS_REGISTER_RSP && from->mem.index == ZYDIS_REGISTER_NONE ? HELD_SP
												      : HELD_NOTHING;
	if (from->type == ZYDIS_OPERAND_TYPE_MEMORY && from->mem.segment == ZYDIS_REGISTER_FS)
		return HELD_G;
	return is_limit(prologue, from) ? HELD_LIMIT : held_in(prologue, from);
}

static enum held subtracted(struct prologue *prologue, const struct x86_insn *insn)
{
	enum held from = held_in(prologue, &insn->op[0]);

	if (from != HELD_SP)
		return HELD_NOTHING;
	if (insn->op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		prologue->question = ASKS_WRAPPED;
		return HELD_SP;
	}
	return held_in(prologue, &insn->op[1]) == HELD_LIMIT ? HELD_DIFFERENCE : HELD_NOTHING;
}

static enum question compared(const struct prologue *prologue, const struct x86_insn *insn)
{
	const ZydisDecodedOperand *right = &insn->op[1];

	switch (held_in(prologue, &insn->op[0])) {
	case HELD_SP:
		return is_limit(prologue, right) || held_in(prologue, right) == HELD_LIMIT ? ASKS_LIMIT : ASKS_NOTHING;
	case HELD_DIFFERENCE:
		return right->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? ASKS_LIMIT : ASKS_NOTHING;
	case HELD_LIMIT:
		return right->type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? ASKS_PREEMPTED : ASKS_NOTHING;
	default:
		return ASKS_NOTHING;
	}
}

/* Whether the conditional jump is one to morestack: to the same place as those before it. */
static bool is_answer(const struct prologue *prologue, const struct x86_insn *insn)
{
	ZydisMnemonic mnemonic = insn->z.mnemonic;

	if (insn->flow != X86_FLOW_BRANCH || !insn->has_target || (prologue->fails && prologue->fails != insn->target))
		return false;
	switch (prologue->question) {
	case ASKS_WRAPPED:
		return mnemonic == ZYDIS_MNEMONIC_JB;
	case ASKS_PREEMPTED:
		return mnemonic == ZYDIS_MNEMONIC_JZ;
	case ASKS_LIMIT:
		return mnemonic == ZYDIS_MNEMONIC_JBE || mnemonic == ZYDIS_MNEMONIC_JB;
	default:
		return false;
	}
}

/* An instruction that goes on to the next. False where it takes stack. */
static bool follow_prologue(struct prologue *prologue, const struct x86_insn *insn)
{
	const ZydisMnemonic mnemonic = insn->z.mnemonic;
	enum held result = HELD_NOTHING;

	if (x86_writes(insn, RSP))
		return false;
	prologue->question = ASKS_NOTHING;
	if (mnemonic == ZYDIS_MNEMONIC_CMP)
		prologue->question = compared(prologue, insn);
	else if (mnemonic == ZYDIS_MNEMONIC_SUB)
		result = subtracted(prologue, insn);
	else if (mnemonic == ZYDIS_MNEMONIC_MOV || mnemonic == ZYDIS_MNEMONIC_LEA)
		result = moved(prologue, insn);
	if (result != HELD_NOTHING && insn->op[0].size != 64)
		result = HELD_NOTHING;
	for (int reg = 0; reg < 16; reg++)
		if (x86_writes(insn, reg))
			prologue->held[reg] = (uint8_t)result;
	return true;
}

/* Whether the function looks at its limit before it does anything else: `passed` and `fails` are known then. */
static bool find_check(const struct stacks *stacks, const struct kymo_extent *extent, struct x86_stack *self)
{
	struct prologue prologue = { .held = { [RSP] = HELD_SP, [R14] = HELD_G } };
	size_t size;
	const uint8_t *bytes = x86_text_at(stacks->map, extent->start, &size);
	uint64_t at = extent->start;

	for (int i = 0; i < PROLOGUE_MAX && bytes && at < extent->end; i++) {
		struct x86_insn insn;

		if (x86_decode_full(&stacks->decoder, bytes + (at - extent->start), (size_t)(extent->end - at), at,
				    &insn) < 0)
			return false;
		at += insn.length;
		if (insn.flow == X86_FLOW_NEXT) {
			if (!follow_prologue(&prologue, &insn))
				return false;
			continue;
		}
		if (!is_answer(&prologue, &insn))
			return false;
		prologue.fails = insn.target;
		if (prologue.question == ASKS_LIMIT) {
			self->passed = at;
			self->fails = prologue.fails;
			return self->fails > self->passed && self->fails < extent->end;
		}
		prologue.question = ASKS_NOTHING;
	}
	return false;
}

/* ---- what functions take, and what they call ------------------------------------------------- */

/* What this takes of the stack for longer than itself. Calls have their own edges. */
static uint64_t taken_by(const struct x86_insn *insn, uint64_t unknown)
{
	const ZydisDecodedOperand *op = insn->op;
	int64_t change;

	if (x86_flow_is_call(insn->flow) || insn->flow == X86_FLOW_RETURN || !x86_writes(insn, RSP))
		return 0;
	switch (insn->z.mnemonic) {
	case ZYDIS_MNEMONIC_PUSH:
	case ZYDIS_MNEMONIC_PUSHF:
	case ZYDIS_MNEMONIC_PUSHFQ:
		return 8;
	case ZYDIS_MNEMONIC_POP:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_LEAVE:
	case ZYDIS_MNEMONIC_MOV:
	case ZYDIS_MNEMONIC_SYSCALL:
		return 0;
	case ZYDIS_MNEMONIC_LEA:
		if (op[1].mem.index != ZYDIS_REGISTER_NONE ||
		    (op[1].mem.base != ZYDIS_REGISTER_RSP && op[1].mem.base != ZYDIS_REGISTER_RBP))
			return unknown;
		change = op[1].mem.disp.value;
		break;
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_AND:
		if (op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE || op[0].size != 64)
			return unknown;
		change = op[1].imm.value.s;
		if (insn->z.mnemonic == ZYDIS_MNEMONIC_AND && change >= 0)
			return unknown;
		/* A shift by more than all memory there is would overflow when its sign is changed. */
		if (change < -(int64_t)LEFT_MAX || change > (int64_t)LEFT_MAX)
			return insn->z.mnemonic == ZYDIS_MNEMONIC_SUB ? (change > 0 ? unknown : 0)
								      : (change < 0 ? unknown : 0);
		if (insn->z.mnemonic == ZYDIS_MNEMONIC_SUB)
			change = -change;
		break;
	default:
		return unknown;
	}
	if (change >= 0)
		return 0;
	return change < -(int64_t)LEFT_MAX ? unknown : (uint64_t)-change;
}

static bool add_edge(struct stacks *stacks, size_t from, uint64_t target, bool is_call)
{
	ptrdiff_t to = x86_function_at(stacks->code, target);
	struct edge edge = { (uint32_t)from, (uint32_t)to, is_call };

	return to < 0 || !x86_has_small_stack(stacks->code, (size_t)to) || kymo_vec_push(&stacks->edges, edge);
}

/* The part of a function that nothing has been looked at for. Without a direct call, what fails leads nowhere known. */
static int walk_function(struct stacks *stacks, size_t index, uint64_t low, bool *calls_ret)
{
	const struct kymo_extent *extent = &stacks->code->functions[index];
	struct x86_stack *self = &stacks->map->stacks[index];
	size_t size;
	const uint8_t *bytes = x86_text_at(stacks->map, low, &size);
	uint64_t taken = 0;
	bool calls = false, falls_out = false;

	for (uint64_t at = low; bytes && at < extent->end;) {
		struct x86_insn insn;

		if (x86_decode_full(&stacks->decoder, bytes + (at - low), (size_t)(extent->end - at), at, &insn) < 0) {
			taken = stacks->left;
			break;
		}
		at += insn.length;
		taken += taken_by(&insn, stacks->left);
		if (taken > stacks->left)
			taken = stacks->left;
		/* After a call that never returns there may be a NOP, so that its return address belongs to the
		 * function. */
		if (!x86_is_nop(&insn))
			falls_out = !x86_flow_ends(insn.flow) && !x86_flow_is_call(insn.flow);
		if (!insn.has_target)
			continue;
		calls |= insn.flow == X86_FLOW_CALL;
		if (insn.flow != X86_FLOW_CALL && insn.target >= extent->start && insn.target < extent->end) {
			self->begins_anew |= insn.target == extent->start;
			continue;
		}
		if (!add_edge(stacks, index, insn.target, insn.flow == X86_FLOW_CALL))
			return -ENOMEM;
	}
	if (falls_out && !add_edge(stacks, index, extent->end, false))
		return -ENOMEM;
	self->taken = (uint16_t)taken;
	*calls_ret = calls;
	return 0;
}

static int look_at_function(struct stacks *stacks, size_t index)
{
	const struct kymo_extent *extent = &stacks->code->functions[index];
	const struct x86_function *about = &stacks->map->functions[index];
	struct x86_stack *self = &stacks->map->stacks[index];
	size_t n = stacks->edges.n;
	bool calls;
	int err;

	self->depth = 8;
	if (!about->decodes) {
		self->taken = (uint16_t)stacks->left;
		return 0;
	}
	/* A thread that enters after the check has not checked. */
	if (!about->entered_from && find_check(stacks, extent, self)) {
		err = walk_function(stacks, index, self->fails, &calls);
		if (err || calls)
			return err;
		stacks->edges.n = n;
	}
	self->passed = self->fails = 0;
	return walk_function(stacks, index, extent->start, &calls);
}

/* ---- depths ---------------------------------------------------------------------------------- */

/* Every function that may lie deeper than was known is on the list once; depths are multiples of 8, so each gets there
 * at most left / 8 times. */
static int find_depths(struct stacks *stacks)
{
	size_t n = stacks->code->n_functions, n_listed = 0;
	uint32_t *list = calloc(n + 1, sizeof(*list));
	bool *is_listed = calloc(n + 1, sizeof(*is_listed));

	if (!list || !is_listed) {
		free(list);
		free(is_listed);
		return -ENOMEM;
	}
	for (size_t i = n; i-- > 0;) {
		if (stacks->first[i] == stacks->first[i + 1])
			continue;
		list[n_listed++] = (uint32_t)i;
		is_listed[i] = true;
	}
	while (n_listed) {
		uint32_t from = list[--n_listed];
		const struct x86_stack *caller = &stacks->map->stacks[from];

		is_listed[from] = false;
		for (size_t i = stacks->first[from]; i < stacks->first[from + 1]; i++) {
			const struct edge *edge = &stacks->edges.items[i];
			struct x86_stack *callee = &stacks->map->stacks[edge->to];
			uint32_t depth = (caller->depth + caller->taken + (edge->is_call ? 8u : 0u) + 7u) / 8 * 8;

			if (depth > stacks->left)
				depth = stacks->left;
			if (depth <= callee->depth)
				continue;
			callee->depth = (uint16_t)depth;
			if (!is_listed[edge->to])
				list[n_listed++] = edge->to;
			is_listed[edge->to] = true;
		}
	}
	free(list);
	free(is_listed);
	return 0;
}

bool x86_has_small_stack(const struct kymo_module_code *code, size_t function)
{
	uint64_t start = code->functions[function].start;

	return start >= code->small_stacks.start && start < code->small_stacks.end;
}

int x86_find_stacks(struct x86_builder *builder)
{
	const struct kymo_module_code *code = builder->code;
	struct stacks stacks = { .code = code, .map = builder->map, .decoder = builder->decoder };
	size_t n = code->n_functions;
	int err = 0;

	if (code->small_stacks.start >= code->small_stacks.end)
		return 0;
	if (code->small_stacks_left > LEFT_MAX || n >= UINT32_MAX)
		return -EINVAL;
	stacks.left = code->small_stacks_left / 8 * 8;
	builder->map->stacks = calloc(n + 1, sizeof(*builder->map->stacks));
	stacks.first = calloc(n + 1, sizeof(*stacks.first));
	if (!builder->map->stacks || !stacks.first)
		err = -ENOMEM;
	for (size_t i = 0; i < n && !err; i++) {
		stacks.first[i] = stacks.edges.n;
		if (x86_has_small_stack(code, i))
			err = look_at_function(&stacks, i);
	}
	if (!err) {
		stacks.first[n] = stacks.edges.n;
		err = find_depths(&stacks);
	}
	free(stacks.first);
	kymo_vec_deinit(&stacks.edges);
	return err;
}

/* ---- the question ---------------------------------------------------------------------------- */

int x86_check_stack(const struct x86_site *site, struct kymo_refusal *refusal)
{
	size_t index = (size_t)(site->about - site->map->functions);
	const struct x86_stack *self = site->map->stacks ? &site->map->stacks[index] : NULL;
	uint64_t start = site->function->start;
	uint32_t used = 0, left = site->code->small_stacks_left,
		 takes = KYMO_PAD_STACK_MAX + (site->room ? site->room->more_stack : 0);

	if (!self || !x86_has_small_stack(site->code, index))
		return 0;
	if (!self->passed || site->vaddr < self->passed || site->vaddr >= self->fails) {
		used = self->depth;
		if (self->passed ? site->vaddr >= self->fails : site->vaddr != start || self->begins_anew)
			used += self->taken;
	} else if (takes == KYMO_PAD_STACK_MAX) {
		return 0;
	}
	if (used + takes <= left)
		return 0;
	return x86_refuse(
		refusal, site->vaddr,
		"the function at 0x%lx and what calls it may leave %u bytes of a goroutine's stack, and a pad takes %u",
		start, used < left ? left - used : 0, takes);
}
