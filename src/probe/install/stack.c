/*
 * The end of the initial thread's stack. A program that survives the overflow of its stack finds the fault by its
 * program counter: so a pad that may not fit records nothing, and the program itself is the one that overflows
 * (arch/pad.h). thread_stacks.c has other threads'.
 */
#include "probe/install/stack.h"

#include <sys/resource.h>

#include "arch/pad.h"
#include "base/page.h"
#include "probe/install/readable_pages.h"
#include "probe/memory/data.h"
#include "probe/memory/state.h"
#include "probe/probes.h"
#include "probe/threads/reading.h"
#include "probe/threads/thread_stacks.h"
#include "proc/memory.h"
#include "proc/process.h"

/* The kernel lets it grow as long as all of it, in whole pages, is within the limit (mm/mmap.c, acct_stack_growth()).
 */
uint64_t probes_stack_end(const struct kymo_probes *probes)
{
	struct rlimit limit;

	if (!probes->stacks.high || prlimit(kymo_process_pid(probes->process), RLIMIT_STACK, NULL, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= probes->stacks.high)
		return 0;
	return kymo_page_up(probes->stacks.high - limit.rlim_cur);
}

/* A program may change its limit, and make threads. */
static void follow(struct kymo_probes *probes)
{
	uint64_t end = probes_stack_end(probes);
	bool is_found = probes->threads.state != KYMO_PAD_EARLY && probes_find_thread_stacks(probes);
	struct probe_stack_words words;

	if (end == probes->stacks.end && !is_found)
		return;
	probes->stacks.end = end;
	words = probes_stack_words(probes, probes->threads.state, false);
	for (uint32_t i = 0; i < probes->shared.n_regions; i++) {
		uint64_t live = probes->shared.live[i];

		kymo_process_write(probes->process, live + KYMO_PAD_LIVE_THREAD_STACK, words.of_threads,
				   sizeof(words.of_threads));
		kymo_process_write(probes->process, live + KYMO_PAD_LIVE_STACK_ENOUGH, words.initial,
				   sizeof(words.initial));
	}
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
	if (n_skipped > probes->stacks.n_skipped) {
		struct kymo_shared_ring ring = kymo_probes_ring(probes, kymo_probes_n_rings(probes) - 1);

		__atomic_fetch_add(&ring.shared->lost, n_skipped - probes->stacks.n_skipped, __ATOMIC_RELAXED);
		probes->stacks.n_skipped = n_skipped;
	}
	follow(probes);
	probes_look_at_reader(probes);
	probes_look_at_readable(probes);
}
