/*
 * The parts of a function, found by what leads where, and whether anything else leads into them. exits.c tells why that
 * is right.
 */
#include "arch/x86_64/parts.h"

#include <errno.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/heights.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/site.h"
#include "arch/x86_64/marks.h"
#include "arch/x86_64/verdicts.h"

static int add_function(struct x86_body *body, size_t index)
{
	const struct kymo_extent *extent = &body->code->functions[index];

	return x86_body_add(body, extent->start, extent->end);
}

/* Add the part that the instruction leads to. */
static int join_target(struct x86_body *body, const struct x86_insn *insn)
{
	uint64_t next = insn->address + insn->length;
	uint64_t target = insn->has_target && !x86_body_part(body, insn->target) ? insn->target : next;
	ptrdiff_t index = x86_function_at(body->code, target);

	return index < 0 ? -EPERM : add_function(body, (size_t)index);
}

/*
 * Whether function `index`, which leads into the body and is not known to be entered, is a part: if it were entered by
 * a call, the stack pointer would not be where the body has it at the address that it leads to.
 */
static int find_handler(struct x86_body *body, size_t index, bool *ret)
{
	const struct kymo_extent *extent = &body->code->functions[index];
	struct kymo_refusal unused;
	struct x86_body alone;
	int err;

	x86_body_init(&alone, body->code, body->map, &unused);
	err = x86_body_add(&alone, extent->start, extent->end);
	if (!err)
		err = x86_body_run(&alone);
	for (uint64_t at = extent->start; !err && at < extent->end; at++) {
		const struct x86_state *from = x86_body_state(&alone, at), *to;
		struct x86_insn insn;

		if (!x86_height_is_known(from->sp) || x86_body_decode(&alone, at, &insn) < 0 || !insn.has_target)
			continue;
		to = x86_body_state(body, insn.target);
		if (to && x86_height_is_known(to->sp) && to->sp != from->sp)
			*ret = true;
	}
	x86_body_deinit(&alone);
	return err == -EPERM ? 0 : err;
}

/* Parts that lead into the function, and only an unwinder leads into them: handlers of exceptions. */
static int join_sources(struct x86_body *body, bool *joined)
{
	for (size_t i = 0; i < body->n_parts; i++) {
		ptrdiff_t index = x86_function_at(body->code, body->parts[i].start);
		uint32_t from = index < 0 ? 0 : body->map->functions[index].entered_from;
		bool is_part = false;
		int err;

		if (!from || from == X86_SEVERAL || x86_body_has(body, from - 1) || !x86_body_may_join(body, from - 1))
			continue;
		err = find_handler(body, from - 1, &is_part);
		if (!err && is_part)
			err = add_function(body, from - 1);
		if (err)
			return err;
		*joined |= is_part;
	}
	return 0;
}

/* Join what the instructions of a part lead to. */
static int join_targets(struct x86_body *body, size_t part, bool *joined)
{
	uint64_t start = body->parts[part].start, end = body->parts[part].end;

	for (uint64_t at = start; at < end; at++) {
		const struct x86_state *state = &body->parts[part].states[at - start];
		struct x86_insn insn;
		int err;

		if (state->sp == X86_UNREACHED || x86_body_decode(body, at, &insn) < 0 ||
		    insn.flow == X86_FLOW_JUMP_INDIRECT || x86_judge(body, &insn, state) != X86_JOINS)
			continue;
		err = join_target(body, &insn);
		if (err)
			return err;
		*joined = true;
	}
	return 0;
}

int x86_find_parts(struct x86_body *body)
{
	bool joined;
	int err;

	do {
		joined = false;
		err = x86_body_run(body);
		if (!err)
			err = join_sources(body, &joined);
		for (size_t i = 0; !err && i < body->n_parts; i++)
			err = join_targets(body, i, &joined);
	} while (!err && joined);
	return err;
}

static uint32_t entered_from(const struct x86_body *body, size_t part)
{
	const ptrdiff_t index = x86_function_at(body->code, body->parts[part].start);

	return index < 0 ? 0 : body->map->functions[index].entered_from;
}

bool x86_is_entered_from_outside(const struct x86_body *body)
{
	for (size_t i = 0; i < body->n_parts; i++) {
		const uint32_t from = entered_from(body, i);

		if (from == X86_SEVERAL || (from && !x86_body_has(body, from - 1)))
			return true;
	}
	return false;
}

int x86_check_starts(struct x86_body *body)
{
	for (size_t i = 0; i < body->n_parts; i++) {
		uint64_t start = body->parts[i].start;
		ptrdiff_t index = x86_function_at(body->code, start);

		if (index < 0 || body->code->functions[index].start != start)
			return x86_refuse(body->refusal, start, "0x%lx lies inside of another function", start);
	}
	return 0;
}

int x86_check_sources(struct x86_body *body)
{
	int err = x86_check_starts(body);

	for (size_t i = 0; !err && i < body->n_parts; i++) {
		const uint64_t start = body->parts[i].start;
		const uint32_t from = entered_from(body, i);

		if (from == X86_SEVERAL)
			return x86_refuse(body->refusal, start,
					  "other functions jump into the middle of the one at 0x%lx, not to its start",
					  start);
		if (from && !x86_body_has(body, from - 1))
			return x86_refuse(
				body->refusal, start,
				"the function at 0x%lx jumps into the middle of the one at 0x%lx, not to its start",
				body->code->functions[from - 1].start, start);
	}
	return err;
}
