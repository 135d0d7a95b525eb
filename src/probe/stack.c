/*
 * The end of the initial thread's stack. A program that survives the overflow of its stack finds the fault by its
 * program counter: so a pad that may not fit records nothing, and the program itself is the one that overflows
 * (arch/pad.h). thread_stacks.c has other threads'.
 */
#include <sys/resource.h>

#include "base/page.h"
#include "probe/probes.h"

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

/*
 * Pads compare with the initial thread's end first. Where that has none, the words say of each stack that it is another
 * thread's: the block of the initial one has no beginning of a stack, so nothing is near that.
 */
struct probe_stack_words probes_stack_words(const struct kymo_probes *probes, uint8_t state)
{
	struct probe_stack_words words = { .initial = { 0 } };

	_Static_assert(KYMO_PAD_LIVE_STACK_LOW == KYMO_PAD_LIVE_STACK_ENOUGH + 8 &&
			       KYMO_PAD_LIVE_THREAD_LOW == KYMO_PAD_LIVE_THREAD_STACK + 8,
		       "both are written at once");
	if (state != KYMO_PAD_EARLY && probes->thread_stack_offset) {
		words.of_threads[0] = probes->thread_stack_offset;
		words.of_threads[1] = probes->thread_stack_low;
		words.initial[0] = words.initial[1] = UINT64_MAX;
	}
	if (probes->stack_end) {
		words.initial[0] = probes->stack_end + KYMO_PAD_STACK_ENOUGH;
		words.initial[1] = probes->stack_end;
	}
	return words;
}

/* A program may change its limit, and make threads. */
static void follow(struct kymo_probes *probes)
{
	uint64_t end = probes_stack_end(probes);
	bool is_found = probes->state != KYMO_PAD_EARLY && probes_find_thread_stacks(probes);
	struct probe_stack_words words;

	if (end == probes->stack_end && !is_found)
		return;
	probes->stack_end = end;
	words = probes_stack_words(probes, probes->state);
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
	if (n_skipped > probes->n_skipped) {
		struct kymo_shared_ring ring = kymo_probes_ring(probes, kymo_probes_n_rings(probes) - 1);

		__atomic_fetch_add(&ring.shared->lost, n_skipped - probes->n_skipped, __ATOMIC_RELAXED);
		probes->n_skipped = n_skipped;
	}
	follow(probes);
	probes_look_at_reader(probes);
}
