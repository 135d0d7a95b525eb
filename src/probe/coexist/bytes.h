/* Copies of a few bytes of a process here and there. Private to the room. */
#ifndef KYMO_PROBE_COEXIST_BYTES_H
#define KYMO_PROBE_COEXIST_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct kymo_process;

#define PROBE_BYTES_MAX 8 /* of one copy */

struct probe_bytes_copy {
	uint64_t address;
	uint8_t size, bytes[PROBE_BYTES_MAX];
};

/* Begins as zero. */
struct probe_bytes {
	KYMO_VEC(struct probe_bytes_copy) copies; /* sorted by address */
};

void probe_bytes_deinit(struct probe_bytes *bytes);

/* Copy `size` bytes at `address`; none, where nothing can be read. False when memory is out. */
bool probe_bytes_copy(struct probe_bytes *bytes, struct kymo_process *process, uint64_t address, size_t size);

/* What was copied from `address` on; false where that are not `size` bytes. */
bool probe_bytes_at(const struct probe_bytes *bytes, uint64_t address, void *ret, size_t size);

#endif
