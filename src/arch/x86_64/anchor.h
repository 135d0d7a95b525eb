/* Anchors of records in histories of branches. Private to arch/x86_64. */
#ifndef KYMO_ARCH_X86_64_ANCHOR_H
#define KYMO_ARCH_X86_64_ANCHOR_H

#include <stdbool.h>

#include "arch/pad.h"

struct code;

#define X86_ANCHOR_SIZE_MAX 128u

/* The stamp is in the frame then. */
static inline bool x86_has_anchors(const struct kymo_pad_env *env, const struct kymo_pad_chain *chain)
{
	return env->position && chain->next;
}

/* With the frame in place, behind the records: one for the stamp in it, if that is not 0 and the thread has a ring. */
void x86_emit_anchor(struct code *c, const struct kymo_pad_env *env);

#endif
