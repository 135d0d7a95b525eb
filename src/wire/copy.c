#include "wire/copy.h"

#include <string.h>

/* The copy that has the byte at `address`: its bytes from there on. */
static const uint8_t *find(const struct kymo_copies *copies, uint64_t address, size_t *n_ret)
{
	const uint8_t *at = copies->bytes;
	size_t rest = copies->size;

	while (rest > sizeof(struct kymo_copied)) {
		struct kymo_copied copied;
		size_t size;

		memcpy(&copied, at, sizeof(copied));
		at += sizeof(copied);
		rest -= sizeof(copied);
		if (copied.size > rest)
			return NULL;
		if (address >= copied.address && address - copied.address < copied.size) {
			*n_ret = copied.size - (size_t)(address - copied.address);
			return at + (address - copied.address);
		}
		size = ((size_t)copied.size + 7) & ~(size_t)7;
		if (size >= rest)
			return NULL;
		at += size;
		rest -= size;
	}
	return NULL;
}

size_t kymo_copies_read(const struct kymo_copies *copies, size_t n_copies, uint64_t address, void *out, size_t size)
{
	size_t n = 0;

	while (n < size) {
		const uint8_t *bytes = NULL;
		size_t found = 0;

		for (size_t i = 0; i < n_copies && !bytes; i++)
			bytes = find(&copies[i], address + n, &found);
		if (!bytes)
			return n;
		if (found > size - n)
			found = size - n;
		memcpy((uint8_t *)out + n, bytes, found);
		n += found;
	}
	return n;
}
