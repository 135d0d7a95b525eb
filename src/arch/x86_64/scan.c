/*
 * The superset: everything in the bytes that could be a branch if an instruction began there. It covers what the sweep
 * reads wrongly because data lies between the code, at the price of marks that nothing ever jumps to.
 */
#include "arch/x86_64/scan.h"

#include <string.h>

#include "arch/x86_64/decode.h"
#include "arch/x86_64/entries.h"
#include "arch/x86_64/map.h"
#include "arch/x86_64/marks.h"

static uint64_t read64(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* Offset of the 32-bit displacement of what may begin with these bytes, or 0. */
static size_t rel32_at(const uint8_t *bytes)
{
	switch (bytes[0]) {
	case 0xe8: /* call */
	case 0xe9: /* jmp */
		return 1;
	case 0x0f: /* jcc */
		return (bytes[1] & 0xf0) == 0x80 ? 2 : 0;
	case 0x8d: /* lea disp(%rip) */
		return (bytes[1] & 0xc7) == 0x05 ? 2 : 0;
	case 0xc7: /* xbegin */
		return bytes[1] == 0xf8 ? 2 : 0;
	default:
		return 0;
	}
}

static void scan_area(struct kymo_entry_map *map, const struct kymo_span *span)
{
	static const bool begins[256] = {
		[0xe8] = true, [0xe9] = true, [0x0f] = true, [0x8d] = true, [0xc7] = true,
	};
	uint8_t tail[8];

	for (size_t i = 0; i + 6 <= span->size; i++) {
		size_t at = begins[span->bytes[i]] ? rel32_at(span->bytes + i) : 0;

		if (at)
			x86_mark(map, X86_SCANNED,
				 span->vaddr + i + at + 4 + (uint64_t)x86_read32(span->bytes + i + at));
	}
	/* The last five bytes hold a jump or call but nothing with a two-byte opcode. */
	if (span->size < 5)
		return;
	memset(tail, 0, sizeof(tail));
	memcpy(tail, span->bytes + span->size - 5, 5);
	if (rel32_at(tail) == 1)
		x86_mark(map, X86_SCANNED, span->vaddr + span->size + (uint64_t)x86_read32(tail + 1));
}

void x86_scan_text(struct x86_builder *builder)
{
	for (size_t i = 0; i < builder->map->n_areas; i++)
		scan_area(builder->map, &builder->map->areas[i].span);
}

void x86_scan_short(struct x86_builder *builder, uint64_t low, uint64_t high)
{
	size_t size;
	const uint8_t *bytes = low < high ? x86_text_at(builder->map, low, &size) : NULL;

	if (!bytes)
		return;
	for (size_t i = 0; i + 2 <= size && i < high - low; i++) {
		/* jcc, loopne … jrcxz, jmp */
		if ((bytes[i] & 0xf0) == 0x70 || (bytes[i] & 0xfc) == 0xe0 || bytes[i] == 0xeb)
			x86_mark(builder->map, X86_SCANNED, low + i + 2 + (uint64_t)(int8_t)bytes[i + 1]);
	}
}

void x86_scan_absolute(struct x86_builder *builder, uint64_t low, uint64_t high)
{
	struct kymo_entry_map *map = builder->map;
	size_t size;
	const uint8_t *bytes = low < high ? x86_text_at(map, low, &size) : NULL;

	if (!bytes || builder->code->position_independent)
		return;
	for (size_t i = 0; i + 4 <= size && i < high - low; i++) {
		x86_mark(map, X86_SCANNED, (uint32_t)x86_read32(bytes + i));
		x86_mark(map, X86_SCANNED, (uint64_t)x86_read32(bytes + i));
		if (i + 8 <= size)
			x86_mark(map, X86_SCANNED, read64(bytes + i));
	}
}

void x86_scan_data(struct x86_builder *builder)
{
	if (builder->code->position_independent)
		return;
	for (size_t n = 0; n < builder->code->n_data; n++) {
		const struct kymo_span *span = &builder->data[n];

		for (size_t i = (size_t)(-span->vaddr & 3); i < span->size && span->size - i >= 4; i += 4) {
			x86_mark(builder->map, X86_LIKELY, (uint32_t)x86_read32(span->bytes + i));
			if (span->size - i >= 8)
				x86_mark(builder->map, X86_LIKELY, read64(span->bytes + i));
		}
	}
}
