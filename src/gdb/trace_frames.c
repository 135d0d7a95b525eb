#include "gdb/trace_frames.h"

#include <inttypes.h>
#include <string.h>

#include "gdb/packet.h"

enum { UPLOAD_MAX = GDB_PACKET_MAX / 2 - 16 }; /* bytes, two digits each */

/* ---- the selected one ------------------------------------------------------------------------ */

/* What the first block has that has something of it. */
static size_t read_block(const struct gdb_tracing *tracing, uint64_t address, uint8_t *ret, size_t size)
{
	struct gdb_trace_block block;
	size_t at = 0;

	while (gdb_trace_buffer_next(&tracing->buffer, tracing->selected, &at, &block)) {
		const uint64_t offset = address - block.address;

		if (block.kind != 'M' || offset >= block.size)
			continue;
		if (size > block.size - offset)
			size = (size_t)(block.size - offset);
		gdb_trace_buffer_read(&tracing->buffer, block.at + offset, ret, size);
		return size;
	}
	return 0;
}

size_t gdb_frame_memory(const struct gdb_tracing *tracing, uint64_t address, void *ret, size_t size)
{
	size_t n = 0, part;

	while (n < size && (part = read_block(tracing, address + n, (uint8_t *)ret + n, size - n)))
		n += part;
	return n;
}

bool gdb_frame_registers(const struct gdb_tracing *tracing, uint8_t *ret)
{
	struct gdb_trace_block block;
	size_t at = 0;

	while (gdb_trace_buffer_next(&tracing->buffer, tracing->selected, &at, &block)) {
		if (block.kind != 'R')
			continue;
		gdb_trace_buffer_read(&tracing->buffer, block.at, ret, block.size);
		return true;
	}
	return false;
}

/* The one that was collected last. */
bool gdb_frame_variable(const struct gdb_tracing *tracing, unsigned int number, int64_t *ret)
{
	struct gdb_trace_block block;
	bool is_there = false;
	size_t at = 0;

	while (gdb_trace_buffer_next(&tracing->buffer, tracing->selected, &at, &block)) {
		if (block.kind != 'V' || block.address != number)
			continue;
		gdb_trace_buffer_read(&tracing->buffer, block.at, ret, sizeof(*ret));
		is_there = true;
	}
	return is_there;
}

uint64_t gdb_frame_pc(const struct gdb_tracing *tracing)
{
	return gdb_trace_buffer_pc(&tracing->buffer, tracing->selected);
}

bool gdb_is_constant(const struct gdb_tracing *tracing, uint64_t address, size_t size)
{
	for (size_t i = 0; i < tracing->regions.n; i++) {
		const struct gdb_trace_region *region = &tracing->regions.items[i];

		if (address >= region->start && address < region->end && size <= region->end - address)
			return true;
	}
	return false;
}

bool gdb_make_frame_info(struct kymo_gdb *gdb, struct gdb_words *annex, struct gdb_text *document)
{
	const struct gdb_tracing *tracing = &gdb->tracing;
	struct gdb_trace_block block;
	size_t at = 0;

	if (!tracing->has_selected)
		return false;
	gdb_text_put(document, "<?xml version=\"1.0\"?>\n<!DOCTYPE traceframe-info SYSTEM \"traceframe-info.dtd\">\n"
			       "<traceframe-info>\n");
	while (gdb_trace_buffer_next(&tracing->buffer, tracing->selected, &at, &block)) {
		if (block.kind == 'M')
			gdb_text_format(document, "<memory start=\"0x%" PRIx64 "\" length=\"0x%zx\"/>\n", block.address,
					block.size);
		else if (block.kind == 'V')
			gdb_text_format(document, "<tvar id=\"0x%" PRIx64 "\"/>\n", block.address);
	}
	gdb_text_put(document, "</traceframe-info>\n");
	return true;
}

/* ---- finding one ----------------------------------------------------------------------------- */

enum key { BY_PC, BY_POINT, INSIDE, OUTSIDE };

struct wanted {
	enum key key;
	uint64_t low, high;
};

static bool is_wanted(const struct gdb_trace_buffer *buffer, size_t frame, const struct wanted *wanted)
{
	const uint64_t pc = gdb_trace_buffer_pc(buffer, frame);

	switch (wanted->key) {
	case BY_PC:
		return pc == wanted->low;
	case BY_POINT:
		return gdb_trace_buffer_number(buffer, frame) == wanted->low;
	case INSIDE:
		return pc >= wanted->low && pc <= wanted->high;
	case OUTSIDE:
		return pc < wanted->low || pc > wanted->high;
	}
	return false;
}

/* "pc:ADDRESS", "tdp:NUMBER", "range:FROM:TO", "outside:FROM:TO". */
static bool take_wanted(struct gdb_words *words, struct wanted *ret)
{
	const bool is_pc = gdb_take_text(words, "pc:"), is_point = !is_pc && gdb_take_text(words, "tdp:");
	const bool is_inside = !is_pc && !is_point && gdb_take_text(words, "range:");

	if (is_pc || is_point) {
		ret->key = is_pc ? BY_PC : BY_POINT;
		return gdb_take_number(words, &ret->low) && gdb_words_are_over(words);
	}
	ret->key = is_inside ? INSIDE : OUTSIDE;
	return (is_inside || gdb_take_text(words, "outside:")) && gdb_take_number(words, &ret->low) &&
	       gdb_take_char(words, ':') && gdb_take_number(words, &ret->high) && gdb_words_are_over(words);
}

static void select_frame(struct gdb_tracing *tracing, size_t frame, struct gdb_text *reply)
{
	if (tracing->is_running ||
	    frame >= gdb_trace_buffer_count(&tracing->buffer)) { /* frames of a run come and go */
		gdb_text_put(reply, "F-1");
		return;
	}
	tracing->has_selected = true;
	tracing->selected = frame;
	gdb_text_format(reply, "F%zxT%x", frame, gdb_trace_buffer_number(&tracing->buffer, frame));
}

/* The next one after that which is selected. */
static void find_frame(struct gdb_tracing *tracing, const struct wanted *wanted, struct gdb_text *reply)
{
	const size_t n = gdb_trace_buffer_count(&tracing->buffer);
	size_t frame = tracing->has_selected ? tracing->selected + 1 : 0;

	while (frame < n && !is_wanted(&tracing->buffer, frame, wanted))
		frame++;
	select_frame(tracing, frame, reply);
}

void gdb_select_frame(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	struct wanted wanted;
	uint64_t number;

	if (gdb_take_number(words, &number) && gdb_words_are_over(words)) {
		if (number != UINT32_MAX) {
			select_frame(&gdb->tracing, number, reply);
			return;
		}
		gdb->tracing.has_selected = false;
		gdb_text_put(reply, "OK");
	} else if (take_wanted(words, &wanted)) {
		find_frame(&gdb->tracing, &wanted, reply);
	} else {
		gdb_text_put(reply, "E01");
	}
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* "offset,length". */
void gdb_upload_frames(struct kymo_gdb *gdb, struct gdb_words *words, struct gdb_text *reply)
{
	const struct gdb_trace_buffer *buffer = &gdb->tracing.buffer;
	const size_t used = gdb_trace_buffer_used(buffer);
	uint8_t bytes[UPLOAD_MAX];
	uint64_t offset, size;

	if (!gdb_take_number(words, &offset) || !gdb_take_char(words, ',') || !gdb_take_number(words, &size) ||
	    !gdb_words_are_over(words)) {
		gdb_text_put(reply, "E01");
		return;
	}
	if (offset >= used || !size) {
		gdb_text_put(reply, "l");
		return;
	}
	size = size < used - offset ? size : used - offset;
	size = size < sizeof(bytes) ? size : sizeof(bytes);
	gdb_trace_buffer_read(buffer, buffer->head + offset, bytes, (size_t)size);
	gdb_text_hex(reply, bytes, (size_t)size);
}
