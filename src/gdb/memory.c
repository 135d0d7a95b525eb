#include "gdb/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/page.h"
#include "gdb/packet.h"
#include "gdb/thread.h"

enum {
	READ_MAX = GDB_PACKET_MAX / 2 - 16, /* bytes, two digits each */
	WINDOW = 65536,                     /* of a search and of a sum */
	SEARCH_PATTERN_MAX = 16384,
};

/* As much as there is from the beginning on: to the end of a page. */
static size_t read_part(struct gdb_thread *thread, uint64_t address, uint8_t *ret, size_t size)
{
	size_t n = 0;

	if (!kymo_engine_read(thread->engine, address, ret, size))
		return size;
	while (n < size) {
		const uint64_t rest = KYMO_PAGE_SIZE - (address + n) % KYMO_PAGE_SIZE;
		const size_t part = rest < size - n ? (size_t)rest : size - n;

		if (kymo_engine_read(thread->engine, address + n, ret + n, part))
			break;
		n += part;
	}
	return n;
}

static bool take_area(struct gdb_words *words, uint64_t *address, uint64_t *size)
{
	return gdb_take_number(words, address) && gdb_take_char(words, ',') && gdb_take_number(words, size);
}

void gdb_read_memory(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_thread *thread = gdb_general_thread(gdb);
	kymo_cleanup_free uint8_t *bytes = NULL;
	uint64_t address, size;
	size_t n;

	if (!take_area(words, &address, &size) || !gdb_words_are_over(words) || !thread) {
		gdb_text_put(reply, "E01");
		return;
	}
	if (size > READ_MAX)
		size = READ_MAX;
	bytes = malloc(size + 1);
	n = bytes ? read_part(thread, address, bytes, size) : 0;
	if (size && !n)
		gdb_text_put(reply, "E01");
	else
		gdb_text_hex(reply, bytes, n);
}

static void write_memory(const struct gdb_thread *thread, uint64_t address, const void *bytes, size_t size,
			 struct gdb_text *reply)
{
	gdb_text_put(reply, !size || !kymo_engine_write(thread->engine, address, bytes, size) ? "OK" : "E01");
}

void gdb_write_memory(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct gdb_thread *thread = gdb_general_thread(gdb);
	kymo_cleanup_free uint8_t *bytes = NULL;
	uint64_t address, size;

	if (!take_area(words, &address, &size) || !gdb_take_char(words, ':') || size != gdb_words_left(words) / 2 ||
	    !thread) {
		gdb_text_put(reply, "E01");
		return;
	}
	bytes = malloc(size + 1);
	if (bytes && gdb_take_hex(words, bytes, size) && gdb_words_are_over(words))
		write_memory(thread, address, bytes, size, reply);
	else
		gdb_text_put(reply, "E01");
}

void gdb_write_binary(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct gdb_thread *thread = gdb_general_thread(gdb);
	uint64_t address, size;

	if (!take_area(words, &address, &size) || !gdb_take_char(words, ':') || size != gdb_words_left(words) ||
	    !thread)
		gdb_text_put(reply, "E01");
	else
		write_memory(thread, address, words->at, size, reply);
}

/* ---- search and sum -------------------------------------------------------------------------- */

struct search {
	struct gdb_thread *thread;
	uint64_t address, left;
	const void *pattern;
	size_t n;
	uint8_t *window;
};

/* 1: found, at search->address; 0: not there; -1: memory that is not mapped. Windows overlap, so that none is missed
 * between two. */
static int search(struct search *search)
{
	while (search->left >= search->n) {
		const size_t size = search->left < WINDOW ? (size_t)search->left : WINDOW;
		const size_t n = read_part(search->thread, search->address, search->window, size);
		const uint8_t *found = n >= search->n ? memmem(search->window, n, search->pattern, search->n) : NULL;
		const size_t step = size - search->n + 1;

		if (found) {
			search->address += (uint64_t)(found - search->window);
			return 1;
		}
		if (n < size)
			return -1;
		search->address += step;
		search->left -= step;
	}
	return 0;
}

/* "address;length;pattern". */
void gdb_search_memory(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct search it = { .thread = gdb_general_thread(gdb) };
	kymo_cleanup_free uint8_t *window = malloc(WINDOW);
	int result = -1;

	it.window = window;
	if (gdb_take_number(words, &it.address) && gdb_take_char(words, ';') && gdb_take_number(words, &it.left) &&
	    gdb_take_char(words, ';') && it.thread && window) {
		it.pattern = words->at;
		it.n = gdb_words_left(words);
		if (it.n && it.n <= SEARCH_PATTERN_MAX)
			result = search(&it);
	}
	if (result < 0)
		gdb_text_put(reply, "E01");
	else if (!result)
		gdb_text_put(reply, "0");
	else
		gdb_text_format(reply, "1,%lx", it.address);
}

/* The remote protocol's: polynomial 0x04c11db7, from the highest bit, beginning with all ones. */
static uint32_t sum_bytes(uint32_t sum, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		sum ^= (uint32_t)bytes[i] << 24;
		for (int bit = 0; bit < 8; bit++)
			sum = sum & 0x80000000u ? sum << 1 ^ 0x04c11db7u : sum << 1;
	}
	return sum;
}

void gdb_sum_memory(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct gdb_thread *thread = gdb_general_thread(gdb);
	kymo_cleanup_free uint8_t *window = malloc(WINDOW);
	uint64_t address, left;
	uint32_t sum = UINT32_MAX;

	if (!take_area(words, &address, &left) || !gdb_words_are_over(words) || !thread || !window) {
		gdb_text_put(reply, "E01");
		return;
	}
	while (left) {
		const size_t size = left < WINDOW ? (size_t)left : WINDOW;

		if (read_part(thread, address, window, size) < size) {
			gdb_text_put(reply, "E01");
			return;
		}
		sum = sum_bytes(sum, window, size);
		address += size;
		left -= size;
	}
	gdb_text_format(reply, "C%x", sum);
}
