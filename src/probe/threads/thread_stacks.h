/* Where stacks of threads end, for the live pages. Private to the room. */
#ifndef KYMO_PROBE_THREADS_THREAD_STACKS_H
#define KYMO_PROBE_THREADS_THREAD_STACKS_H

#include <stdbool.h>
#include <stdint.h>

struct kymo_probes;

/* Look where other threads' stacks end, if that is worth it now; true: it is known, and was not before. */
bool probes_find_thread_stacks(struct kymo_probes *probes);

/* What live pages that say `state` say of stacks. Early threads may have no thread pointer to read at. */
struct probe_stack_words {
	uint64_t initial[2];    /* from KYMO_PAD_LIVE_STACK_ENOUGH on */
	uint64_t of_threads[2]; /* from KYMO_PAD_LIVE_THREAD_STACK on */
};

struct probe_stack_words probes_stack_words(const struct kymo_probes *probes, uint8_t state, bool is_child);

#endif
