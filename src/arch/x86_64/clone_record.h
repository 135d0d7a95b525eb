/* The code of a clone while it is emitted, and what is recorded in it. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_CLONE_RECORD_H
#define KYMO_ARCH_X86_64_CLONE_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "arch/x86_64/clone.h"
#include "arch/x86_64/code.h"

/* Code out of line, for a branch that comes into a stretch or leaves one. */
struct x86_clone_stub {
	uint16_t from; /* stretch; 0: none */
	int32_t to;    /* instruction */
	uint32_t at;   /* offset of the code, of the pass before */
};

struct x86_clone_emitter {
	const struct kymo_clone *clone;
	const struct kymo_clone_env *env;
	struct code code;
	uint32_t *hot, *cold; /* offsets of each instruction's code, with and without the position held */
	uint32_t *warm;       /* … where the register has the position for certain */
	bool *is_hot;         /* a branch leads to the hot one, as a pass before the others has found */
	bool *comes_held;     /* by instruction that is no site: the register has the position, whatever leads there */
	bool has_offsets;     /* they are known, from the first pass */
	KYMO_VEC(struct x86_clone_stub) stubs;
	KYMO_VEC(struct x86_clone_stub) shadows; /* without `to`: what jumps by tables lead to (clone_table.c) */
	bool loses_shadow;                       /* not all such jumps outside of stretches have the position held */
	uint32_t site;                           /* number of the next one */
	bool is_held;                            /* the position is, where the code is emitted */
	uint16_t stretch;                        /* in which the code is emitted, or 0 */
	uint8_t lowered;                         /* as a point has it */
	uint8_t pushed;                          /* likewise */
	uint64_t vaddr;                          /* of the instruction whose code is emitted */
	struct kymo_clone_map *map;
	int err;
};

/* Here the thread is in the state before instruction `vaddr`; and all that comes before that is done. */
void x86_clone_note_point(struct x86_clone_emitter *emitter, uint64_t vaddr);
void x86_clone_note_copy(struct x86_clone_emitter *emitter, uint64_t vaddr);

/* Whether the position is to be in the held register before it: a site that is in no stretch. */
bool x86_clone_holds(const struct kymo_clone *clone, const struct x86_clone_insn *insn);

/* What is recorded for a site, with its offsets. `falls`: control comes from the code before. */
void x86_clone_record(struct x86_clone_emitter *emitter, size_t index, bool falls);

/* The loads of those whose predecessors all hold the position. */
void x86_clone_emit_loads(struct x86_clone_emitter *emitter);

/* From the stretch in which the code is emitted to another one, or 0. The point is before instruction `vaddr` of the
 * emitter. */
void x86_clone_cross(struct x86_clone_emitter *emitter, uint16_t to);

/* The state within a stretch, from here on. */
void x86_clone_set_stretch(struct x86_clone_emitter *emitter, uint16_t stretch);

/* Where the code is that goes from a stretch, or 0, to an instruction in another one, or in none. */
uint64_t x86_clone_stub(struct x86_clone_emitter *emitter, uint16_t from, int32_t to);
void x86_clone_emit_stubs(struct x86_clone_emitter *emitter);

void x86_clone_put_jump(struct x86_clone_emitter *emitter, uint64_t target);

#define X86_STUB_SIZE_MAX 64u
#define X86_SITE_SIZE_MAX 64u /* of what is recorded, with its cold load out of line */

#endif
