#include "gdb/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/page.h"
#include "gdb/packet.h"
#include "gdb/thread.h"
#include "gdb/trace_frames.h"
#include "gdb/wait.h"
#include "hub/hub.h"
#include "procfs/maps.h"

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
		const size_t part = kymo_page_part(address + n, size - n);

		if (kymo_engine_read(thread->engine, address + n, ret + n, part))
			break;
		n += part;
	}
	return n;
}

/* Bytes from an address on that are in one private mapping of a file, which the program cannot write: code, constants.
 * What gdb says of them (QTro) is not right where the program is loaded elsewhere than its file has it. */
static size_t count_constant(const struct gdb_thread *thread, uint64_t address, size_t size)
{
	struct kymo_maps maps = { 0 };
	struct kymo_error *error = kymo_maps_read(thread->process->pid, &maps);
	const struct kymo_map *map = error ? NULL : kymo_maps_at(&maps, address);
	size_t n = 0;

	if (map && !map->writable && !map->shared && map->inode)
		n = size < map->end - address ? size : (size_t)(map->end - address);
	kymo_error_destroy(error);
	kymo_maps_deinit(&maps);
	return n;
}

/* Of a frame of a trace run: what was collected, and what the program does not change. */
static size_t read_selected(struct gdb_thread *thread, uint64_t address, uint8_t *ret, size_t size)
{
	const struct gdb_tracing *tracing = &thread->gdb->tracing;
	size_t n;

	if (!tracing->has_selected)
		return read_part(thread, address, ret, size);
	n = gdb_frame_memory(tracing, address, ret, size);
	if (n)
		return n;
	if (tracing->has_executed || thread->process->pid != tracing->pid)
		return 0;
	n = gdb_is_constant(tracing, address, size) ? size : count_constant(thread, address, size);
	return read_part(thread, address, ret, n);
}

static bool take_area(struct gdb_words *words, uint64_t *address, uint64_t *size)
{
	return gdb_take_number(words, address) && gdb_take_char(words, ',') && gdb_take_number(words, size);
}

/* What a packet asks for, `max` bytes at most; NULL: an error was appended. */
static uint8_t *read_asked(struct kymo_gdb *gdb, struct gdb_words *words, size_t max, size_t *n_ret,
			   struct gdb_text *reply)
{
	struct gdb_thread *thread = gdb_memory_thread(gdb);
	uint8_t *bytes = NULL;
	uint64_t address, size;

	if (take_area(words, &address, &size) && gdb_words_are_over(words) && thread) {
		size = size < max ? size : max;
		bytes = malloc(size + 1);
		*n_ret = bytes ? read_selected(thread, address, bytes, size) : 0;
		if (bytes && (*n_ret || !size))
			return bytes;
	}
	free(bytes);
	gdb_text_put(reply, "E01");
	return NULL;
}

void gdb_read_memory(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	size_t n;
	kymo_cleanup_free uint8_t *bytes = read_asked(gdb, words, READ_MAX, &n, reply);

	if (bytes)
		gdb_text_hex(reply, bytes, n);
}

/* As many as fit, escaped. The client asks for the rest. */
void gdb_read_binary(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	size_t n;
	kymo_cleanup_free uint8_t *bytes = read_asked(gdb, words, GDB_PACKET_MAX, &n, reply);

	if (!bytes)
		return;
	gdb_text_put(reply, "b");
	gdb_packet_escape(reply, (const char *)bytes, gdb_packet_fitting((const char *)bytes, n, GDB_PACKET_MAX - 8));
}

static void write_memory(const struct gdb_thread *thread, uint64_t address, const void *bytes, size_t size,
			 struct gdb_text *reply)
{
	const bool is_past = thread->gdb->tracing.has_selected; /* a frame of a trace run does not change */

	gdb_text_put(reply,
		     !size || (!is_past && !kymo_engine_write(thread->engine, address, bytes, size)) ? "OK" : "E01");
}

void gdb_write_memory(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct gdb_thread *thread = gdb_memory_thread(gdb);
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
	const struct gdb_thread *thread = gdb_memory_thread(gdb);
	uint64_t address, size;

	if (!take_area(words, &address, &size) || !gdb_take_char(words, ':') || size != gdb_words_left(words) ||
	    !thread)
		gdb_text_put(reply, "E01");
	else
		write_memory(thread, address, words->at, size, reply);
}

/* ---- search and sum -------------------------------------------------------------------------- */

/* A window of the general thread's memory. It is read on the hub's thread; what is looked for in it is found on the
 * main thread, which ends where the client has gone or the stub is to end. */
struct window {
	struct kymo_gdb *gdb;
	uint64_t address;
	size_t size, n; /* wanted; there */
	uint8_t *bytes;
};

static void read_window(void *data)
{
	struct window *window = data;
	struct gdb_thread *thread = gdb_memory_thread(window->gdb);

	window->n = thread ? read_part(thread, window->address, window->bytes, window->size) : 0;
}

static bool load(struct window *window, uint64_t left)
{
	window->size = left < WINDOW ? (size_t)left : WINDOW;
	window->n = 0;
	if (!window->bytes || gdb_is_called_off(window->gdb))
		return false;
	kymo_hub_run(window->gdb->hub, read_window, window);
	return true;
}

/* 1: found, at window->address; 0: not there; -1: memory that is not mapped. Windows overlap, so that none is missed
 * between two. */
static int search(struct window *window, uint64_t left, const void *pattern, size_t n)
{
	while (left >= n && load(window, left)) {
		const uint8_t *found = window->n >= n ? memmem(window->bytes, window->n, pattern, n) : NULL;
		const size_t step = window->size - n + 1;

		if (found) {
			window->address += (uint64_t)(found - window->bytes);
			return 1;
		}
		if (window->n < window->size)
			return -1;
		window->address += step;
		left -= step;
	}
	return left >= n ? -1 : 0;
}

/* "address;length;pattern". */
void gdb_search_memory(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	kymo_cleanup_free uint8_t *bytes = malloc(WINDOW);
	struct window window = { .gdb = gdb, .bytes = bytes };
	int result = -1;
	uint64_t left;

	if (gdb_take_number(words, &window.address) && gdb_take_char(words, ';') && gdb_take_number(words, &left) &&
	    gdb_take_char(words, ';') && gdb_words_left(words) && gdb_words_left(words) <= SEARCH_PATTERN_MAX)
		result = search(&window, left, words->at, gdb_words_left(words));
	if (result < 0)
		gdb_text_put(reply, "E01");
	else if (!result)
		gdb_text_put(reply, "0");
	else
		gdb_text_format(reply, "1,%lx", window.address);
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
	kymo_cleanup_free uint8_t *bytes = malloc(WINDOW);
	struct window window = { .gdb = gdb, .bytes = bytes };
	uint32_t sum = UINT32_MAX;
	uint64_t left;

	if (!take_area(words, &window.address, &left) || !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E01");
		return;
	}
	while (left) {
		if (!load(&window, left) || window.n < window.size) {
			gdb_text_put(reply, "E01");
			return;
		}
		sum = sum_bytes(sum, window.bytes, window.n);
		window.address += window.n;
		left -= window.n;
	}
	gdb_text_format(reply, "C%x", sum);
}
