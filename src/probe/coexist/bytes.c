#include "probe/coexist/bytes.h"

#include <string.h>

#include "base/search.h"
#include "proc/memory.h"

void probe_bytes_deinit(struct probe_bytes *bytes)
{
	kymo_vec_deinit(&bytes->copies);
}

static size_t copy_at(const struct probe_bytes *bytes, uint64_t address)
{
	return kymo_partition_point(i, bytes->copies.n, bytes->copies.items[i].address < address);
}

bool probe_bytes_copy(struct probe_bytes *bytes, struct kymo_process *process, uint64_t address, size_t size)
{
	struct probe_bytes_copy copy = { .address = address, .size = (uint8_t)size };
	const size_t at = copy_at(bytes, address);

	if (size > sizeof(copy.bytes) || kymo_process_read(process, address, copy.bytes, size))
		return true;
	if (!kymo_vec_reserve(&bytes->copies, bytes->copies.n + 1))
		return false;
	memmove(&bytes->copies.items[at + 1], &bytes->copies.items[at], (bytes->copies.n - at) * sizeof(copy));
	bytes->copies.items[at] = copy;
	bytes->copies.n++;
	return true;
}

bool probe_bytes_at(const struct probe_bytes *bytes, uint64_t address, void *ret, size_t size)
{
	const struct probe_bytes_copy *copies = bytes->copies.items;

	for (size_t i = copy_at(bytes, address); i < bytes->copies.n && copies[i].address == address; i++) {
		if (copies[i].size < size)
			continue;
		memcpy(ret, copies[i].bytes, size);
		return true;
	}
	return false;
}
