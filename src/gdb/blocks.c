#include "gdb/blocks.h"

#include <inttypes.h>
#include <stdlib.h>

#define RECORD_SIZE 24u /* bytes: from, to, flags */

size_t gdb_blocks_init(struct gdb_blocks *blocks, size_t size)
{
	size = size < GDB_BLOCKS_MIN ? GDB_BLOCKS_MIN : size > GDB_BLOCKS_MAX ? GDB_BLOCKS_MAX : size;
	*blocks = (struct gdb_blocks){ .capacity = size / RECORD_SIZE };
	blocks->items = calloc(blocks->capacity, sizeof(*blocks->items));
	return blocks->items ? size : 0;
}

void gdb_blocks_deinit(struct gdb_blocks *blocks)
{
	free(blocks->items);
	*blocks = (struct gdb_blocks){ 0 };
}

/* ---- what is executed ------------------------------------------------------------------------ */

static void note_read(struct gdb_blocks *blocks)
{
	blocks->is_read = true;
	blocks->n_read = blocks->n;
	blocks->pc_read = blocks->pc;
}

static void begin_block(struct gdb_blocks *blocks, uint64_t pc)
{
	blocks->is_empty = true;
	blocks->begin = blocks->pc = pc;
}

static void end_block(struct gdb_blocks *blocks)
{
	if (!blocks->is_empty)
		blocks->items[blocks->n++ % blocks->capacity] = (struct gdb_block){ blocks->begin, blocks->last };
}

void gdb_blocks_begin(struct gdb_blocks *blocks, uint64_t pc, bool is_known)
{
	blocks->n = 0;
	blocks->has_begun = true;
	blocks->is_read = false;
	begin_block(blocks, pc);
	if (is_known)
		note_read(blocks);
}

void gdb_blocks_execute(struct gdb_blocks *blocks, uint64_t to, bool is_branch)
{
	blocks->is_empty = false;
	blocks->last = blocks->pc;
	blocks->pc = to;
	if (!is_branch)
		return;
	end_block(blocks);
	begin_block(blocks, to);
}

/* A client that has read up to here takes the instruction for executed that is not. */
void gdb_blocks_move(struct gdb_blocks *blocks, uint64_t to)
{
	if (blocks->n == blocks->n_read && blocks->pc == blocks->pc_read)
		blocks->is_read = false;
	end_block(blocks);
	begin_block(blocks, to);
}

/* ---- what is read ---------------------------------------------------------------------------- */

static bool is_at_read(const struct gdb_blocks *blocks)
{
	return blocks->is_read && blocks->n == blocks->n_read && blocks->pc == blocks->pc_read;
}

static bool has_all_since(const struct gdb_blocks *blocks)
{
	return blocks->is_read && blocks->n - blocks->n_read <= blocks->capacity;
}

static void put_block(struct gdb_text *document, uint64_t begin, uint64_t end)
{
	gdb_text_format(document, "<block begin=\"0x%" PRIx64 "\" end=\"0x%" PRIx64 "\"/>\n", begin, end);
}

static void put_blocks(const struct gdb_blocks *blocks, uint64_t from, bool is_delta, struct gdb_text *document)
{
	put_block(document, is_delta && blocks->n == from ? 0 : blocks->begin, blocks->pc);
	for (uint64_t i = blocks->n; i-- > from;) {
		const struct gdb_block *block = &blocks->items[i % blocks->capacity];

		put_block(document, is_delta && i == from ? 0 : block->begin, block->end);
	}
}

bool gdb_blocks_put(struct gdb_blocks *blocks, enum gdb_blocks_part part, struct gdb_text *document)
{
	uint64_t from = blocks->n > blocks->capacity ? blocks->n - blocks->capacity : 0;
	const bool is_delta = part == GDB_BLOCKS_DELTA;

	if (is_delta && !has_all_since(blocks))
		return false;
	if (is_delta)
		from = blocks->n_read;
	gdb_text_put(document, "<!DOCTYPE btrace SYSTEM \"btrace.dtd\">\n<btrace version=\"1.0\">\n");
	if (blocks->has_begun && !(part == GDB_BLOCKS_NEW && is_at_read(blocks)))
		put_blocks(blocks, from, is_delta, document);
	gdb_text_put(document, "</btrace>\n");
	note_read(blocks);
	return true;
}
