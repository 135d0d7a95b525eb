#include "sym/debug_memory.h"

#include <stdalign.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#define CHUNK 65536

struct sym_chunk {
	struct sym_chunk *next;
	size_t used, size;
	alignas(16) uint8_t bytes[];
};

static struct sym_chunk *add_chunk(struct kymo_debug *debug, size_t want)
{
	const size_t size = want > CHUNK ? want : CHUNK;
	struct sym_chunk *chunk = calloc(1, sizeof(*chunk) + size);

	if (!chunk) {
		debug->is_out_of_memory = true;
		return NULL;
	}
	chunk->size = size;
	chunk->next = debug->chunks;
	debug->chunks = chunk;
	return chunk;
}

void *sym_debug_alloc(struct kymo_debug *debug, size_t size)
{
	struct sym_chunk *chunk = debug->chunks;
	const size_t want = (size + 15) & ~(size_t)15;
	void *ret;

	if (!chunk || chunk->size - chunk->used < want)
		chunk = add_chunk(debug, want);
	if (!chunk)
		return NULL;
	ret = chunk->bytes + chunk->used;
	chunk->used += want;
	return ret;
}

void *sym_debug_copy(struct kymo_debug *debug, const void *items, size_t n, size_t size)
{
	void *copy = sym_debug_alloc(debug, n * size + 1);

	if (copy && n)
		memcpy(copy, items, n * size);
	return copy;
}

const char *sym_debug_format(struct kymo_debug *debug, const char *format, ...)
{
	kymo_cleanup_free char *text = NULL;
	const char *copy;
	va_list args;

	va_start(args, format);
	text = kymo_format(format, args);
	va_end(args);
	if (!text)
		debug->is_out_of_memory = true;
	copy = text ? sym_debug_copy(debug, text, 1, strlen(text) + 1) : NULL;
	return copy ? copy : "";
}

void sym_debug_free(struct kymo_debug *debug)
{
	while (debug->chunks) {
		struct sym_chunk *next = debug->chunks->next;

		free(debug->chunks);
		debug->chunks = next;
	}
}
