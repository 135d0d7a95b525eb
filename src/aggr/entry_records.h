/*
 * Records of entries whose calls are open, as bytes: the newest ones, in a circle. What was at the entry of a call may
 * so be told at its end. The circle grows up to a bound, and then the oldest are overwritten.
 */
#ifndef KYMO_AGGR_ENTRY_RECORDS_H
#define KYMO_AGGR_ENTRY_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KYMO_ENTRY_RECORDS_MAX ((size_t)32 << 20) /* bytes */

/* Zero is an empty one. */
struct kymo_entry_records {
	uint8_t *items;
	size_t size;
	uint64_t head; /* bytes that were put there, and left out before its end */
};

void kymo_entry_records_deinit(struct kymo_entry_records *records);

/* Put a record of `n` bytes, fewer than 64 KiB. `at_ret` is where it is. False when memory is out. */
bool kymo_entry_records_put(struct kymo_entry_records *records, const uint8_t *bytes, uint32_t n, uint64_t *at_ret);

/* The record that was put at `at`, of `n` bytes; NULL: it was overwritten. Valid up to the next put. */
const uint8_t *kymo_entry_records_get(const struct kymo_entry_records *records, uint64_t at, uint32_t n);

#endif
