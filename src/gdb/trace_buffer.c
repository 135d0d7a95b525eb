#include "gdb/trace_buffer.h"

#include <stdlib.h>
#include <string.h>

enum { DROPPED_MAX = 4096 }; /* notes of dropped frames that are kept */

bool gdb_trace_buffer_begin(struct gdb_trace_buffer *buffer, size_t size, size_t registers_size, bool is_circular)
{
	gdb_trace_buffer_deinit(buffer);
	buffer->bytes = malloc(size ? size : 1); /* pages that no frame has reached take no memory */
	if (!buffer->bytes)
		return false;
	buffer->size = size;
	buffer->registers_size = registers_size;
	buffer->is_circular = is_circular;
	return true;
}

void gdb_trace_buffer_deinit(struct gdb_trace_buffer *buffer)
{
	free(buffer->bytes);
	kymo_vec_deinit(&buffer->notes);
	*buffer = (struct gdb_trace_buffer){ .size = 0 };
}

size_t gdb_trace_buffer_count(const struct gdb_trace_buffer *buffer)
{
	return buffer->notes.n - buffer->first;
}

size_t gdb_trace_buffer_used(const struct gdb_trace_buffer *buffer)
{
	return (size_t)(buffer->tail - buffer->head);
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void append(struct gdb_trace_buffer *buffer, const void *bytes, size_t n)
{
	const size_t at = (size_t)(buffer->tail % buffer->size), rest = buffer->size - at, part = n < rest ? n : rest;

	if (!n)
		return; /* `bytes` may be NULL */
	memcpy(buffer->bytes + at, bytes, part);
	memcpy(buffer->bytes, (const uint8_t *)bytes + part, n - part);
	buffer->tail += n;
}

void gdb_trace_buffer_read(const struct gdb_trace_buffer *buffer, uint64_t position, void *ret, size_t n)
{
	size_t at, rest, part;

	if (!n)
		return;
	at = (size_t)(position % buffer->size);
	rest = buffer->size - at;
	part = n < rest ? n : rest;
	memcpy(ret, buffer->bytes + at, part);
	memcpy((uint8_t *)ret + part, buffer->bytes, n - part);
}

/* The least significant byte first. */
static uint64_t read_number(const struct gdb_trace_buffer *buffer, uint64_t position, size_t size)
{
	uint8_t bytes[8];
	uint64_t value = 0;

	gdb_trace_buffer_read(buffer, position, bytes, size);
	for (size_t i = size; i-- > 0;)
		value = value << 8 | bytes[i];
	return value;
}

/* ---- frames ---------------------------------------------------------------------------------- */

static const struct gdb_trace_note *note_of(const struct gdb_trace_buffer *buffer, size_t frame)
{
	return &buffer->notes.items[buffer->first + frame];
}

/* Where the frame ends. */
static uint64_t end_of(const struct gdb_trace_buffer *buffer, size_t frame)
{
	return frame + 1 < gdb_trace_buffer_count(buffer) ? note_of(buffer, frame + 1)->start : buffer->tail;
}

static void drop_oldest(struct gdb_trace_buffer *buffer)
{
	buffer->head = end_of(buffer, 0);
	buffer->first++;
	if (buffer->first < DROPPED_MAX && buffer->first < buffer->notes.n)
		return;
	buffer->notes.n -= buffer->first;
	memmove(buffer->notes.items, buffer->notes.items + buffer->first,
		buffer->notes.n * sizeof(*buffer->notes.items));
	buffer->first = 0;
}

static bool has_room(const struct gdb_trace_buffer *buffer, size_t n)
{
	return gdb_trace_buffer_count(buffer) < GDB_TRACE_FRAMES_MAX &&
	       buffer->size - gdb_trace_buffer_used(buffer) >= n;
}

bool gdb_trace_buffer_add(struct gdb_trace_buffer *buffer, unsigned int number, uint64_t pc, const void *blocks,
			  size_t n)
{
	uint8_t head[GDB_TRACE_FRAME_HEAD] = { (uint8_t)number, (uint8_t)(number >> 8) };

	if (buffer->size < GDB_TRACE_FRAME_HEAD || n > buffer->size - GDB_TRACE_FRAME_HEAD)
		return false;
	while (buffer->is_circular && !has_room(buffer, n + sizeof(head)))
		drop_oldest(buffer);
	if (!has_room(buffer, n + sizeof(head)) ||
	    !kymo_vec_push(&buffer->notes, ((struct gdb_trace_note){ .start = buffer->tail, .pc = pc })))
		return false;
	for (size_t i = 0; i < 4; i++)
		head[2 + i] = (uint8_t)(n >> (8 * i));
	append(buffer, head, sizeof(head));
	append(buffer, blocks, n);
	buffer->n_created++;
	return true;
}

unsigned int gdb_trace_buffer_number(const struct gdb_trace_buffer *buffer, size_t frame)
{
	return (unsigned int)read_number(buffer, note_of(buffer, frame)->start, 2);
}

uint64_t gdb_trace_buffer_pc(const struct gdb_trace_buffer *buffer, size_t frame)
{
	return note_of(buffer, frame)->pc;
}

bool gdb_trace_buffer_next(const struct gdb_trace_buffer *buffer, size_t frame, size_t *at, struct gdb_trace_block *ret)
{
	const uint64_t position = note_of(buffer, frame)->start + GDB_TRACE_FRAME_HEAD + *at;
	const uint64_t end = end_of(buffer, frame);
	struct gdb_trace_block block = { .kind = 0 };
	size_t head = 1;

	if (position >= end)
		return false;
	gdb_trace_buffer_read(buffer, position, &block.kind, 1);
	if (block.kind != 'R' && end - position < GDB_TRACE_MEMORY_HEAD)
		return false; /* shorter than any other block */
	if (block.kind == 'R') {
		block.size = buffer->registers_size;
	} else if (block.kind == 'V') {
		block.address = read_number(buffer, position + 1, 4);
		head = 5;
		block.size = 8;
	} else {
		block.address = read_number(buffer, position + 1, 8);
		head = GDB_TRACE_MEMORY_HEAD;
		block.size = (size_t)read_number(buffer, position + 9, 2);
	}
	if (head + block.size > end - position)
		return false;
	block.at = position + head;
	*at += head + block.size;
	*ret = block;
	return true;
}
