/* Loops of a history. Pure: a history is an array of numbers, equal ones of equal branches. */
#ifndef KYMO_REPORT_LOOPS_H
#define KYMO_REPORT_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

#define LOOP_MAX 64u /* branches of one */

/* `length` branches from `start` on, `count` times one after the other. */
struct loop {
	size_t start, length, count;
};

struct loops {
	KYMO_VEC(struct loop) items;
};

/* All of `n` branches in their order, those of no loop one by one, with a count of 1. False when memory is out. */
bool kymo_loops_find(const uint64_t *branches, size_t n, struct loops *ret);

#endif
