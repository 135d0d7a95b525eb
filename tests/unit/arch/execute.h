/*
 * Code with a plan in it does what it did before: both are run, each in a child, on the same registers and
 * memory, and all that they leave behind is compared.
 *
 * The window, and what a pun relies on, stand alone between breakpoints, far from all else, so that a child stops
 * where control leaves them: at a breakpoint, or at an address that cannot be executed. Data pages appear when
 * they are touched, with contents that depend on their address alone; so random registers are pointers good
 * enough. What is compared at the stop: where it was, all registers, the pages touched in their order, the stack.
 */
#ifndef KYMO_TESTS_ARCH_EXECUTE_H
#define KYMO_TESTS_ARCH_EXECUTE_H

#include "arch/code.h"
#include "arch/plan.h"
#include "mix.h"

/* Once, before all else. */
bool execute_init(void);

/*
 * Run `text` from `start` on, with the plans in it and without; the test fails where that makes a difference. False
 * where it tells nothing. Trampolines are to be between 1.5 GiB below the text and 2 GiB above, but not 256 MiB above
 * it.
 */
bool both_do_the_same(const struct kymo_plan *plans, size_t n_plans, const struct kymo_span *text, uint64_t start,
		      uint64_t seed);

#endif
