/*
 * Pairs of markers that begin and end something: "x__start" and "x__done". They are not nested as calls are: a span may
 * begin in a function and end in its caller. So each pair has a stack of its own in each thread, where an end belongs
 * to the last beginning.
 */
#ifndef KYMO_REPORT_SPANS_H
#define KYMO_REPORT_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/vec.h"
#include "ctf/ctf.h"

/* Of one pair in one thread: the stamps of the beginnings that are open. */
struct span_stack {
	size_t thread;
	uint32_t function;
	const struct kymo_ctf_process *process;
	KYMO_VEC(uint64_t) begins;
};

struct spans {
	KYMO_VEC(struct span_stack) stacks;
	struct kymo_index index; /* of `stacks`, by thread and function */
};

void kymo_spans_deinit(struct spans *spans);

/* The stack of the pair in the thread, made where it is new; good until the next one. NULL when memory is out. */
struct span_stack *kymo_spans_find(struct spans *spans, size_t thread, uint32_t function);

#endif
