/* The kind of a branch, by the instruction that took it. Private to the room. */
#ifndef KYMO_BRANCH_STEP_KIND_H
#define KYMO_BRANCH_STEP_KIND_H

#include "arch/step.h"
#include "branch/branch.h"

static inline enum kymo_branch_kind branch_step_kind(const struct kymo_step *step)
{
	switch (step->kind) {
	case KYMO_STEP_CALL:
		return KYMO_BRANCH_CALL;
	case KYMO_STEP_RETURN:
		return KYMO_BRANCH_RETURN;
	case KYMO_STEP_JUMP:
	case KYMO_STEP_CONDITIONAL:
		return KYMO_BRANCH_JUMP;
	default:
		return KYMO_BRANCH_KERNEL;
	}
}

#endif
