#include "sym/debug_location.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "sym/debug_memory.h"
#include "sym/module_state.h"

#define RANGES_SHOWN 4
#define RANGES_MAX 4096

void sym_frames_open(struct kymo_debug *debug)
{
	if (debug->frames_are_sought)
		return;
	debug->frames_are_sought = true;
	debug->frames = dwarf_getcfi_elf(debug->module->image.elf);
	debug->debug_frames = dwarf_getcfi(debug->dwarf);
}

/* ---- constants ------------------------------------------------------------------------------- */

static void find_constant(Dwarf_Attribute *attribute, struct sym_location *ret)
{
	Dwarf_Sword number;
	Dwarf_Block block;
	int64_t value = 0;

	switch (dwarf_whatform(attribute)) {
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
	case DW_FORM_exprloc:
	case DW_FORM_data16:
		if (dwarf_formblock(attribute, &block) || block.length > sizeof(value)) {
			sym_location_nowhere(ret, "is a constant of more than 8 bytes");
			return;
		}
		memcpy(&value, block.data, block.length);
		break;
	default:
		if (dwarf_formsdata(attribute, &number)) {
			sym_location_nowhere(ret, "is a constant that is no number");
			return;
		}
		value = number;
	}
	sym_location_constant(ret, value);
}

/* ---- where it is alive ----------------------------------------------------------------------- */

static size_t tell_range(char *out, size_t size, uint64_t from, uint64_t start, uint64_t end, bool is_first)
{
	const char *join = is_first ? "" : ", ";
	int n;

	if (start >= from)
		n = snprintf(out, size, "%sfrom +0x%" PRIx64 " to +0x%" PRIx64, join, start - from, end - from);
	else
		n = snprintf(out, size, "%sfrom 0x%" PRIx64 " to 0x%" PRIx64, join, start, end);
	return (size_t)n < size ? (size_t)n : size;
}

/* "is optimized out here; it is alive from +0x12 to +0x40" */
static const char *tell_ranges(const struct sym_context *context, Dwarf_Attribute *attribute, uint64_t from)
{
	Dwarf_Addr base, start, end, last_start = 0, last_end = 0;
	char out[512] = "";
	size_t at = 0, n_ops, shown = 0;
	ptrdiff_t offset = 0;
	Dwarf_Op *ops;

	for (unsigned int i = 0; i < RANGES_MAX && shown < RANGES_SHOWN; i++) {
		offset = dwarf_getlocations(attribute, offset, &base, &start, &end, &ops, &n_ops);
		if (offset <= 0)
			break;
		if (start >= end || !n_ops)
			continue;
		if (start == last_end) {
			last_end = end;
			continue;
		}
		if (last_end)
			at += tell_range(out + at, sizeof(out) - at, from, last_start, last_end, !shown++);
		last_start = start;
		last_end = end;
	}
	if (last_end && shown < RANGES_SHOWN)
		at += tell_range(out + at, sizeof(out) - at, from, last_start, last_end, !shown++);
	if (!shown)
		return "is optimized out";
	return sym_debug_format(context->debug, "is optimized out here; it is alive %s%s", out,
				offset > 0 ? " ..." : "");
}

void sym_location_find(const struct sym_context *context, Dwarf_Die *die, uint64_t size, uint64_t from,
		       struct sym_location *ret)
{
	struct sym_context inner = *context;
	Dwarf_Attribute attribute;
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_attr_integrate(die, DW_AT_const_value, &attribute)) {
		find_constant(&attribute, ret);
		return;
	}
	if (!dwarf_attr_integrate(die, DW_AT_location, &attribute)) {
		sym_location_nowhere(ret, "is optimized out");
		return;
	}
	sym_frames_open(context->debug);
	inner.attribute = &attribute;
	if (dwarf_getlocation_addr(&attribute, context->vaddr, &ops, &n, 1) == 1 && n)
		sym_expression_convert(&inner, ops, n, size, ret);
	else
		sym_location_nowhere(ret, tell_ranges(context, &attribute, from));
}
