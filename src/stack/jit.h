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
	uint64_t looked_at_ns; /* when it was looked for, or read */
	uint64_t cost_ns;      /* how long that took */
};

void stack_jit_deinit(struct stack_jit *jit);

/* Whether the region has code that a perf map may name: memory that is of no file in any directory. */
bool stack_is_jit(const struct stack_region *region);

/* Open the map of the process of thread `tid`, so that it can be read when the process has ended. */
void stack_jit_open(struct stack_jit *jit, pid_t tid);

/* The name of the function that has `address`, or NULL. It stays until stack_jit_deinit(). */
const char *stack_jit_name(struct stack_jit *jit, pid_t tid, uint64_t address, uint64_t *start_ret);

#endif
