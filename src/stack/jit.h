/* Names of code that has no file, by the perf map of its process. Private to the room. */
#ifndef KYMO_STACK_JIT_H
#define KYMO_STACK_JIT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct kymo_perf_table;
struct stack_region;

/* What is known of one process's perf map. All zero: nothing yet. */
struct stack_jit {
	struct kymo_perf_table *table;
	uint64_t opened_at_ns, read_at_ns; /* when that was tried last */
	uint64_t cost_ns;                  /* how long it took to read */
};

void stack_jit_deinit(struct stack_jit *jit);

/* Whether the region has code that a perf map may name: memory that is of no file in any directory. */
bool stack_is_jit(const struct stack_region *region);

/* Open the map of the process of thread `tid`, unless that was tried a moment ago. It can then be read when the process
 * has ended. */
void stack_jit_open(struct stack_jit *jit, pid_t tid);

/*
 * The name of the function that has `address`, or NULL. It stays until the map is read again, which happens here, and
 * only with `*may_read`: that becomes false then.
 */
const char *stack_jit_name(struct stack_jit *jit, uint64_t address, bool *may_read, uint64_t *start_ret);

#endif
