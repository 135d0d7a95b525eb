/* One function as its stack pointer runs through it. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_HEIGHTS_H
#define KYMO_ARCH_X86_64_HEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/x86_64/jumps.h"
#include "base/vec.h"

struct kymo_entry_map;
struct kymo_module_code;
struct kymo_refusal;
struct x86_insn;

#define X86_PARTS_MAX 16
#define X86_BODY_MAX (4u << 20) /* bytes of all parts */

/*
 * Where a register points, in bytes from the stack pointer at the function's entry (the return address lies there), or
 * one of these. What is known overrides FREE, two that differ become LOST, and LOST overrides all.
 */
enum {
	X86_UNREACHED = INT32_MIN,
	X86_FREE, /* entered from where nothing is known: a landing pad, a label */
	X86_LOST,
};

static inline bool x86_height_is_known(int32_t height)
{
	return height > X86_LOST;
}

/* Before an instruction: the stack pointer and the frame pointer. */
struct x86_state {
	int32_t sp, bp;
};

/* Whether the function's frame is certainly there still: the return address is not on top of the stack. */
static inline bool x86_has_frame(const struct x86_state *state)
{
	return (x86_height_is_known(state->sp) && state->sp < 0) || x86_height_is_known(state->bp);
}

/* Whether it certainly is on top. */
static inline bool x86_has_no_frame(const struct x86_state *state)
{
	return state->sp == 0 && !x86_height_is_known(state->bp);
}

struct x86_part {
	uint64_t start, end;
	struct x86_state *states; /* of each byte; X86_UNREACHED where no instruction that is reached begins */
};

struct x86_body {
	const struct kymo_module_code *code;
	const struct kymo_entry_map *map;
	struct kymo_refusal *refusal;
	struct x86_jumps jumps;
	struct x86_part parts[X86_PARTS_MAX];
	size_t n_parts;
	uint64_t size;
	int err;                     /* sticks: -ENOMEM, or -EPERM with `refusal` filled in */
	KYMO_VEC(uint64_t) queue;    /* instructions whose state has changed */
	KYMO_VEC(uint64_t) weak;     /* calls whose next instruction is entered from elsewhere too */
	KYMO_VEC(uint64_t) indirect; /* jumps whose targets are not looked for yet */
	struct x86_state label;      /* at an indirect jump to labels */
	bool labels_done;            /* they were looked for; a new part may have more */
	uint64_t budget;             /* table entries still to be read */
	bool takes_label;            /* its code takes an address after its start */
	bool has_labels;             /* an indirect jump with the frame still there was seen, and what it may lead to */
	bool is_new;                 /* a part was added */
};

void x86_body_init(struct x86_body *body, const struct kymo_module_code *code, const struct kymo_entry_map *map,
		   struct kymo_refusal *refusal);
void x86_body_deinit(struct x86_body *body);

/* One more part. -EPERM where it does not decode, is too large, or is one too many. */
int x86_body_add(struct x86_body *body, uint64_t start, uint64_t end);

/* Follow each path from the start of the first part; again after a part was added. */
int x86_body_run(struct x86_body *body);

/* The part that contains `vaddr`, or NULL; the state before the instruction there, or NULL. */
struct x86_part *x86_body_part(struct x86_body *body, uint64_t vaddr);
struct x86_state *x86_body_state(struct x86_body *body, uint64_t vaddr);

/* Whether function `index` is one of the parts; whether only the parts lead into it, as far as branches show. */
bool x86_body_has(const struct x86_body *body, size_t index);
bool x86_body_may_join(const struct x86_body *body, size_t index);

/* Decode in full the instruction at `vaddr` of a part. -EINVAL where it goes on after the part. */
int x86_body_decode(struct x86_body *body, uint64_t vaddr, struct x86_insn *ret);

/* The first target of an indirect jump by a table whose entries the module's bytes hold; false: none is in sight. */
bool x86_body_table(struct x86_body *body, uint64_t vaddr, uint64_t *ret);

/* Call `each` with each target in the parts, and perhaps more addresses in them, of an indirect jump by such a table.
 * False: none is in sight. `are_all_ret`: the table is over for certain where it was left, so that no target is
 * elsewhere. */
bool x86_body_targets(struct x86_body *body, uint64_t vaddr, void (*each)(void *closure, uint64_t target),
		      void *closure, bool *are_all_ret);

/* Whether the indirect jump adds up an address and an entry of what lies there: a relative table of which the address
 * is taken somewhere. */
bool x86_body_adds(struct x86_body *body, uint64_t vaddr);

/* Call `each` with the targets in the parts of what may be such a table. False: perhaps not with all. */
bool x86_body_relative(struct x86_body *body, uint64_t table, void (*each)(void *closure, uint64_t target),
		       void *closure);

#endif
