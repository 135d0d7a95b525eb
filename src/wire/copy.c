#include "wire/copy.h"

#include <string.h>

#include "base/page.h"

/* The copy that has the byte at `address`: its bytes from there on. */
static const uint8_t *find_copy(const struct kymo_copies *copies, uint64_t address, size_t *n_ret)
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
			bytes = find_copy(&copies[i], address + n, &found);
		if (!bytes)
			return n;
		if (found > size - n)
			found = size - n;
		memcpy((uint8_t *)out + n, bytes, found);
		n += found;
	}
	return n;
}

/* ---- making them ----------------------------------------------------------------------------- */

/* The same, bound for bound, as the programs in src/kernel/call_copies.bpf.h make. */
enum { PIECE = 256, ALIGNED = 7 };

/* Up to `size` bytes that lie in one page, or none; where they went. `size` is not 0. */
static uint8_t *copy_piece(struct kymo_copying *copying, uint64_t address, size_t size)
{
	const struct kymo_copied copied = { .address = address, .size = (uint32_t)size };
	const size_t whole = sizeof(copied) + ((size + ALIGNED) & ~(size_t)ALIGNED);
	uint8_t *at = copying->bytes + copying->size;

	if (whole > copying->capacity - copying->size ||
	    copying->read(copying->context, address, at + sizeof(copied), size))
		return NULL;
	memset(at + sizeof(copied) + size, 0, whole - sizeof(copied) - size);
	memcpy(at, &copied, sizeof(copied));
	copying->size += whole;
	return at + sizeof(copied);
}

/* Page by page: the next one may not be there. */
static bool copy_bytes(struct kymo_copying *copying, uint64_t address, size_t size)
{
	while (size && address >= KYMO_COPY_LOWEST) {
		const size_t n = kymo_page_part(address, size);

		if (!copy_piece(copying, address, n))
			return false;
		address += n;
		size -= n;
	}
	return true;
}

/* Keep `n` bytes of the piece that was copied last, which began after `before`. */
static void cut_piece(struct kymo_copying *copying, size_t before, size_t n)
{
	uint8_t *at = copying->bytes + before;
	struct kymo_copied copied;

	memcpy(&copied, at, sizeof(copied));
	copied.size = (uint32_t)n;
	memcpy(at, &copied, sizeof(copied));
	copying->size = before + sizeof(copied) + ((n + ALIGNED) & ~(size_t)ALIGNED);
	memset(at + sizeof(copied) + n, 0, copying->size - before - sizeof(copied) - n);
}

/* With its NUL, or `max` bytes less one. Most are short: little by little. */
static bool copy_string(struct kymo_copying *copying, uint64_t address, size_t max)
{
	for (size_t rest = max ? max - 1 : 0; rest && address >= KYMO_COPY_LOWEST;) {
		const size_t n = kymo_page_part(address, rest < PIECE ? rest : PIECE), before = copying->size;
		const uint8_t *bytes = copy_piece(copying, address, n), *end;

		if (!bytes)
			return false;
		end = memchr(bytes, 0, n);
		if (end) {
			cut_piece(copying, before, (size_t)(end - bytes) + 1);
			return true;
		}
		address += n;
		rest -= n;
	}
	return true;
}

static size_t at_most(uint64_t size, size_t max)
{
	return size < max ? (size_t)size : max;
}

static bool copy_fields(struct kymo_copying *copying, uint64_t address, uint64_t *fields, size_t size)
{
	const size_t before = copying->size;

	if (!copy_bytes(copying, address, size))
		return false;
	return kymo_copies_read(&(struct kymo_copies){ copying->bytes + before, copying->size - before }, 1, address,
				fields, size) == size;
}

static bool copy_vector(struct kymo_copying *copying, uint64_t address, uint64_t n, size_t max)
{
	uint64_t fields[2]; /* of a struct iovec */

	for (uint64_t i = 0; i < n && i < KYMO_COPY_ELEMENTS && address >= KYMO_COPY_LOWEST; i++)
		if (!copy_fields(copying, address + i * sizeof(fields), fields, sizeof(fields)) ||
		    !copy_bytes(copying, fields[0], at_most(fields[1], max)))
			return false;
	return true;
}

static bool copy_message(struct kymo_copying *copying, uint64_t address, size_t max)
{
	uint64_t fields[KYMO_COPY_MESSAGE_SIZE / 8];

	if (address < KYMO_COPY_LOWEST)
		return true;
	return copy_fields(copying, address, fields, sizeof(fields)) &&
	       copy_bytes(copying, fields[0], at_most((uint32_t)fields[1], KYMO_COPY_NAME_MAX)) &&
	       copy_bytes(copying, fields[4], at_most(fields[5], KYMO_COPY_CONTROL_MAX)) &&
	       copy_vector(copying, fields[2], fields[3], max);
}

static bool copy_strings(struct kymo_copying *copying, uint64_t address, size_t max)
{
	uint64_t string;

	for (size_t i = 0; i <= KYMO_COPY_ELEMENTS && address >= KYMO_COPY_LOWEST; i++) {
		if (!copy_fields(copying, address + i * sizeof(string), &string, sizeof(string)))
			return false;
		if (!string)
			return true;
		if (i < KYMO_COPY_ELEMENTS && !copy_string(copying, string, max))
			return false;
	}
	return true;
}

/* How many bytes or elements; false: nothing is to be copied. */
static bool count_items(const struct kymo_copying *copying, const struct kymo_copy *copy, uint64_t *ret)
{
	const size_t size = copy->size ? copy->size : 1;

	*ret = size;
	if (copy->times == KYMO_COPY_ONCE)
		return true;
	if (copy->times == KYMO_COPY_RESULT && copying->result <= 0)
		return false;
	*ret = copy->times == KYMO_COPY_RESULT ? (uint64_t)copying->result : copying->args[copy->times - 1];
	if (copy->what == KYMO_COPY_BYTES)
		*ret = at_most(*ret, copy->max / size) * size;
	return true;
}

static void make_copy(struct kymo_copying *copying, const struct kymo_copy *copy)
{
	uint64_t address = copy->arg == KYMO_COPY_STACK ? copying->stack_pointer : copying->args[copy->arg], n;

	if (address < KYMO_COPY_LOWEST || !count_items(copying, copy, &n))
		return;
	address += copy->offset;
	if (copy->is_pointer && copying->read(copying->context, address, &address, sizeof(address)))
		return;
	switch (copy->what) {
	case KYMO_COPY_BYTES:
		copy_bytes(copying, address, n);
		break;
	case KYMO_COPY_STRING:
		copy_string(copying, address, copy->max);
		break;
	case KYMO_COPY_VECTOR:
		copy_vector(copying, address, n, copy->max);
		break;
	case KYMO_COPY_MESSAGE:
		copy_message(copying, address, copy->max);
		break;
	case KYMO_COPY_STRINGS:
		copy_strings(copying, address, copy->max);
		break;
	}
}

void kymo_copies_make(struct kymo_copying *copying, const struct kymo_copy *copies, size_t n)
{
	for (size_t i = 0; i < n; i++)
		make_copy(copying, &copies[i]);
}
