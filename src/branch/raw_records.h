/* Pairs of addresses that a processor has recorded, as branches. Private to the room. */
#ifndef KYMO_BRANCH_RAW_RECORDS_H
#define KYMO_BRANCH_RAW_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

struct branch_raw;

/* Zeroed but for `raw`: nothing is known of the thread. */
struct branch_raw_records {
	const struct branch_raw *raw;
	uint64_t last;  /* where the thread went by the branch before */
	bool has_last;  /* … is known */
	bool is_left;   /* it went to the kernel from there */
	bool has_begun; /* there was a branch */
};

/* The next one. `is_after_loss`: some may have been lost before it. */
void branch_raw_take(struct branch_raw_records *records, uint64_t from, uint64_t to, bool is_after_loss);

#endif
