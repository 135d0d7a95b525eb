/* Where two histories part. Pure: a history is an array of numbers, equal ones of equal branches. */
#ifndef KYMO_REPORT_PARTING_H
#define KYMO_REPORT_PARTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The same beginnings: [a, a + n) and [b, b + n). What comes then differs, or is the end of one. */
struct parting {
	size_t a, b, n;
};

/*
 * Where two histories part: whole ones from their beginnings on, others from the first place on at which a longest run
 * is in both. False: they have nothing in common, or memory is out.
 */
bool kymo_part(const uint64_t *a, size_t n_a, const uint64_t *b, size_t n_b, bool are_whole, struct parting *ret);

#endif
