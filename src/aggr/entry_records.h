/*
 * Records of entries whose calls are open, as bytes: what was at the entry of a call can so be told at its end. They
 * are put one after the other. When there are many, those of calls that are open are copied to a new place, and the
 * others are forgotten (calls.c).
 */
#ifndef KYMO_AGGR_ENTRY_RECORDS_H
#define KYMO_AGGR_ENTRY_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KYMO_ENTRY_RECORDS_MAX ((size_t)64 << 20) /* bytes of calls that are open */

/* Zero is an empty one. */
struct kymo_entry_records {
	uint8_t *items;
	size_t n, size; /* bytes that are there, and that there is room for */
};

void kymo_entry_records_deinit(struct kymo_entry_records *records);

/* Whether there is room for `n` bytes more, before those of ended calls are to be forgotten. */
bool kymo_entry_records_have_room(const struct kymo_entry_records *records, uint32_t n);

/* Make room for twice of what is there, and for `n` bytes more. False when memory is out. */
bool kymo_entry_records_grow(struct kymo_entry_records *records, uint32_t n);

/* Put a record of `n` bytes, for which there is room; where it is comes back. */
uint64_t kymo_entry_records_put(struct kymo_entry_records *records, const uint8_t *bytes, uint32_t n);

/* The record that was put at `at`. Valid up to the next growth. */
const uint8_t *kymo_entry_records_get(const struct kymo_entry_records *records, uint64_t at);

#endif
