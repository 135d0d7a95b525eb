/*
 * Landing pads: where the unwinder enters a function in its middle. Each function that has some leads to a table of
 * call sites in .gcc_except_table, whose form all languages of GCC and LLVM share.
 * Reference: "Exception Handling Tables" in the Itanium C++ ABI's companion; gcc/except.cc writes it, libstdc++ reads
 * it.
 */
#include "sym/lsda.h"

#include "sym/cursor.h"
#include "sym/frames.h"
#include "sym/module.h"
#include "sym/module_state.h"

struct pads {
	void (*see)(void *data, uint64_t vaddr);
	void *data;
};

static bool read_call_sites(struct sym_cursor *cursor, uint8_t encoding, uint64_t base, const struct pads *pads)
{
	while (cursor->at < cursor->end) {
		uint64_t start, size, pad, action;

		if (!sym_read_pointer(cursor, encoding, base, &start) ||
		    !sym_read_pointer(cursor, encoding, base, &size) ||
		    !sym_read_pointer(cursor, encoding, base, &pad) || !sym_read_uleb(cursor, &action))
			return false;
		if (pad)
			pads->see(pads->data, base + pad);
	}
	return true;
}

static bool read_lsda(struct kymo_module *module, const struct sym_fde *fde, const struct pads *pads)
{
	struct sym_cursor cursor = { .module = module, .vaddr = fde->lsda };
	uint64_t left, size, base = fde->start;
	uint8_t encoding;

	cursor.at = sym_bytes_from(module, fde->lsda, &left);
	if (!cursor.at)
		return false;
	cursor.end = cursor.at + left;
	if (!sym_read_u8(&cursor, &encoding))
		return false;
	if (encoding != SYM_PE_OMIT && !sym_read_pointer(&cursor, encoding, fde->start, &base))
		return false;
	if (!sym_read_u8(&cursor, &encoding) || (encoding != SYM_PE_OMIT && !sym_read_uleb(&cursor, &size)))
		return false;
	if (!sym_read_u8(&cursor, &encoding) || !sym_read_uleb(&cursor, &size) ||
	    size > (uint64_t)(cursor.end - cursor.at))
		return false;
	if (!sym_image_spend(&module->image, size))
		return false;
	cursor.end = cursor.at + size;
	return read_call_sites(&cursor, encoding, base, pads);
}

struct kymo_error *kymo_module_landing_pads(struct kymo_module *module, void (*see)(void *data, uint64_t vaddr),
					    void *data)
{
	const struct pads pads = { see, data };
	struct kymo_error *error = sym_frames_read(module);

	if (error)
		return error;
	for (size_t i = 0; i < module->fdes.n; i++) {
		const struct sym_fde *fde = &module->fdes.items[i];

		if (fde->lsda && !read_lsda(module, fde, &pads))
			return sym_image_bad(&module->image,
					     "the exception table of the function at 0x%llx is damaged (vaddr 0x%llx)",
					     LLX(fde->start), LLX(fde->lsda));
	}
	return NULL;
}
