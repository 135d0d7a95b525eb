/* The bytes that a look has read. */
#include "probe/look/look_text.h"

#include <string.h>

#include "base/search.h"
#include "probe/look/look_state.h"
#include "proc/memory.h"

void look_read(struct kymo_look *look)
{
	for (size_t i = 0; i < look->stretches.n; i++) {
		struct look_stretch *stretch = &look->stretches.items[i];

		if (!kymo_process_read(look->process, stretch->address, look->now + stretch->at, stretch->size)) {
			stretch->is_unread = false;
			continue;
		}
		stretch->is_unread |= !look->is_seen;
		memcpy(look->now + stretch->at, look->seen + stretch->at, stretch->size);
	}
}

bool look_bytes(const struct kymo_look *look, uint64_t address, uint8_t *out, size_t size)
{
	while (size) {
		size_t at = kymo_partition_point(i, look->stretches.n, look->stretches.items[i].address <= address), n;
		const struct look_stretch *stretch = at ? &look->stretches.items[at - 1] : NULL;

		if (!stretch || stretch->is_unread || address - stretch->address >= stretch->size)
			return false;
		n = stretch->size - (address - stretch->address);
		n = n < size ? n : size;
		memcpy(out, look->now + stretch->at + (address - stretch->address), n);
		out += n;
		address += n;
		size -= n;
	}
	return true;
}
