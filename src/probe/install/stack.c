/*
 * The end of the initial thread's stack. A program that survives the overflow of its stack finds the fault by its
 * program counter: so a pad that may not fit records nothing, and the program itself is the one that overflows
 * (arch/pad.h). Where other threads' stacks end is not known.
 */
#include "probe/install/stack.h"

#include <sys/resource.h>

#include "arch/pad.h"
#include "base/page.h"
#include "probe/memory/data.h"
#include "probe/memory/state.h"
#include "probe/probes.h"
#include "probe/threads/reading.h"
#include "proc/proc.h"

/* The kernel lets it grow as long as all of it, in whole pages, is within the limit (mm/mmap.c, acct_stack_growth()).
 */
uint64_t probes_stack_end(const struct kymo_probes *probes)
{
	struct rlimit limit;

	if (!probes->stack_high || prlimit(kymo_process_pid(probes->process), RLIMIT_STACK, NULL, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= probes->stack_high)
		return 0;
	return kymo_page_up(probes->stack_high - limit.rlim_cur);
}

/* A program may change its limit. */
static void follow_limit(struct kymo_probes *probes)
{
	uint64_t end = probes_stack_end(probes);
	const uint64_t words[2] = { end ? end + KYMO_PAD_STACK_ENOUGH : 0, end };

	_Static_assert(KYMO_PAD_LIVE_STACK_LOW == KYMO_PAD_LIVE_STACK_ENOUGH + 8, "both are written at once");
	if (end == probes->stack_end)
		return;
	probes->stack_end = end;
	for (uint32_t i = 0; i < probes->shared.n_regions; i++)
		kymo_process_write(probes->process, probes->shared.live[i] + KYMO_PAD_LIVE_STACK_ENOUGH, words,
				   sizeof(words));
}

void kymo_probes_look_at_stack(struct kymo_probes *probes)
{
	uint64_t n_skipped = 0;

	if (!probes->has_shared || !kymo_probes_are_mapped(probes))
		return;
	for (uint32_t i = 0; i < probes->shared.n_regions; i++) {
		uint64_t n;

		if (!kymo_process_read(probes->process, probes->shared.live[i] + KYMO_PAD_LIVE_SKIPPED, &n, sizeof(n)))
			n_skipped += n;
	}
	if (n_skipped > probes->n_skipped) {
		struct kymo_shared_ring ring = kymo_probes_ring(probes, kymo_probes_n_rings(probes) - 1);

		__atomic_fetch_add(&ring.shared->lost, n_skipped - probes->n_skipped, __ATOMIC_RELAXED);
		probes->n_skipped = n_skipped;
	}
	follow_limit(probes);
	probes_look_at_reader(probes);
}
