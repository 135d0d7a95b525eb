#include "sym/cursor.h"

#include <string.h>

#include "sym/relocs.h"

/* DW_EH_PE_*: the low half says how a value is stored, the high half what it is relative to. */
enum {
	STORED_ABSPTR = 0x00,
	STORED_ULEB = 0x01,
	STORED_UDATA2 = 0x02,
	STORED_UDATA4 = 0x03,
	STORED_UDATA8 = 0x04,
	STORED_SLEB = 0x09,
	STORED_SDATA2 = 0x0a,
	STORED_SDATA4 = 0x0b,
	STORED_SDATA8 = 0x0c,
	RELATIVE_NOTHING = 0x00,
	RELATIVE_PC = 0x10,
	RELATIVE_FUNCTION = 0x40,
	ALIGNED = 0x50,
};

bool sym_skip(struct sym_cursor *cursor, uint64_t size)
{
	if (size > (uint64_t)(cursor->end - cursor->at))
		return false;
	cursor->at += size;
	cursor->vaddr += size;
	return true;
}

bool sym_read_u8(struct sym_cursor *cursor, uint8_t *ret)
{
	const uint8_t *at = cursor->at;

	if (!sym_skip(cursor, 1))
		return false;
	*ret = *at;
	return true;
}

/* The bits of a LEB128 number; `shift_ret` is their count and `last_ret` the byte that holds the sign. */
static bool read_leb(struct sym_cursor *cursor, uint64_t *ret, unsigned int *shift_ret, uint8_t *last_ret)
{
	uint64_t value = 0;
	unsigned int shift = 0;
	uint8_t byte;

	do {
		if (shift > 63 || !sym_read_u8(cursor, &byte))
			return false;
		value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	*ret = value;
	*shift_ret = shift;
	*last_ret = byte;
	return true;
}

bool sym_read_uleb(struct sym_cursor *cursor, uint64_t *ret)
{
	unsigned int shift;
	uint8_t last;

	return read_leb(cursor, ret, &shift, &last);
}

bool sym_read_sleb(struct sym_cursor *cursor, uint64_t *ret)
{
	unsigned int shift;
	uint8_t last;

	if (!read_leb(cursor, ret, &shift, &last))
		return false;
	if (shift < 64 && last & 0x40)
		*ret |= ~0ull << shift;
	return true;
}

bool sym_read_fixed(struct sym_cursor *cursor, unsigned int size, bool is_signed, uint64_t *ret)
{
	const uint8_t *at = cursor->at;
	uint64_t value = 0;

	if (!sym_skip(cursor, size))
		return false;
	memcpy(&value, at, size);
	if (is_signed && size < 8 && value >> (8 * size - 1))
		value |= ~0ull << (8 * size);
	*ret = value;
	return true;
}

static bool read_stored(struct sym_cursor *cursor, uint8_t encoding, uint64_t *ret)
{
	switch (encoding & 0x0f) {
	case STORED_ULEB:
		return sym_read_uleb(cursor, ret);
	case STORED_SLEB:
		return sym_read_sleb(cursor, ret);
	case STORED_UDATA2:
		return sym_read_fixed(cursor, 2, false, ret);
	case STORED_SDATA2:
		return sym_read_fixed(cursor, 2, true, ret);
	case STORED_UDATA4:
		return sym_read_fixed(cursor, 4, false, ret);
	case STORED_SDATA4:
		return sym_read_fixed(cursor, 4, true, ret);
	case STORED_ABSPTR:
	case STORED_UDATA8:
	case STORED_SDATA8:
		return sym_read_fixed(cursor, 8, false, ret);
	default:
		return false;
	}
}

/* A whole word that is relative to nothing may be what a relocation makes of it. */
static bool may_be_relocated(uint8_t encoding)
{
	uint8_t stored = encoding & 0x0f;

	return (encoding & 0x70) == RELATIVE_NOTHING &&
	       (stored == STORED_ABSPTR || stored == STORED_UDATA8 || stored == STORED_SDATA8);
}

bool sym_read_pointer(struct sym_cursor *cursor, uint8_t encoding, uint64_t function, uint64_t *ret)
{
	uint64_t place, value;

	if (encoding == ALIGNED) {
		if (!sym_skip(cursor, -cursor->vaddr & 7))
			return false;
		encoding = STORED_ABSPTR;
	}
	place = cursor->vaddr;
	if (!read_stored(cursor, encoding, &value))
		return false;
	if (may_be_relocated(encoding) && !sym_word(cursor->module, place, &value))
		return false;
	if (value) {
		switch (encoding & 0x70) {
		case RELATIVE_NOTHING:
			break;
		case RELATIVE_PC:
			value += place;
			break;
		case RELATIVE_FUNCTION:
			value += function;
			break;
		default:
			return false;
		}
		if (encoding & SYM_PE_INDIRECT && !sym_word(cursor->module, value, &value))
			return false;
	}
	*ret = value;
	return true;
}
