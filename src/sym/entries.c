/*
 * Where control may arrive in a module other than by its own code: a window of displaced instructions that contains
 * such an address would kill the target. So the set errs on the side of too many.
 *
 * In a position-independent file each address in data has a relocation. In a file at a fixed address data has no
 * relocations. Every word in it that looks like an address of code counts as one, at any alignment.
 */
#include "sym/entries.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sym/frames.h"
#include "sym/lsda.h"
#include "sym/module.h"
#include "sym/module_state.h"
#include "sym/relocs.h"

/*
 * One bit for each byte of code, so that addresses come out sorted and unique, and what is named often costs nothing.
 */
struct marker {
	struct kymo_module *module;
	uint64_t *bits;
	uint64_t *first;    /* bit of each code range's first byte */
	uint64_t low, high; /* bounds of all code */
	size_t n;           /* bits set */
};

static void mark(struct marker *marker, uint64_t vaddr)
{
	const struct sym_range *range;
	uint64_t bit;

	if (vaddr < marker->low || vaddr >= marker->high)
		return;
	range = sym_code_at(marker->module, vaddr);
	if (!range)
		return;
	bit = marker->first[range - marker->module->code.items] + (vaddr - range->start);
	marker->n += !(marker->bits[bit / 64] >> bit % 64 & 1);
	marker->bits[bit / 64] |= 1ull << bit % 64;
}

static void see_code(void *data, uint64_t vaddr)
{
	mark(data, vaddr);
}

/* The word in the file at `where`, as it is before any relocation. */
static void see_word(void *data, uint64_t where)
{
	struct marker *marker = data;
	const uint8_t *bytes = sym_bytes(marker->module, where, sizeof(uint64_t));
	uint64_t value;

	if (!bytes)
		return;
	memcpy(&value, bytes, sizeof(value));
	mark(marker, value);
}

/* ---- sources --------------------------------------------------------------------------------- */

/* Undefined symbols too: their value, if any, is a PLT entry that stands for the function's address. */
static void mark_dynsym_values(struct marker *marker)
{
	const struct sym_table *table = &marker->module->dynsym;

	for (uint64_t i = 0; i < table->n; i++) {
		Elf64_Sym symbol;

		memcpy(&symbol, table->entries + i * sizeof(symbol), sizeof(symbol));
		mark(marker, symbol.st_value);
	}
}

static void mark_symbols(struct marker *marker)
{
	const struct kymo_module *module = marker->module;

	mark_dynsym_values(marker);
	for (size_t i = 0; i < module->n_symbols; i++)
		mark(marker, module->symbols.items[i].vaddr);
	for (size_t i = 0; i < module->marks.n; i++)
		mark(marker, module->marks.items[i]);
}

static struct kymo_error *mark_relocs(struct marker *marker)
{
	struct kymo_module *module = marker->module;
	struct kymo_error *error = sym_relocs_read(module);

	if (error)
		return error;
	/* What is in place counts too: slots of the PLT hold the address of their own stub until they are bound. */
	for (size_t i = 0; i < module->relocs.n; i++) {
		mark(marker, module->relocs.items[i].value);
		see_word(marker, module->relocs.items[i].where);
	}
	return sym_relr_walk(module, see_word, marker);
}

static struct kymo_error *mark_array(struct marker *marker, uint64_t vaddr, uint64_t size)
{
	const struct kymo_module *module = marker->module;

	if (!size)
		return NULL;
	if (!sym_bytes(module, vaddr, size) || !sym_image_spend(&marker->module->image, size))
		return sym_image_bad(
			&module->image,
			"an array of initializers lies outside of the segments (vaddr 0x%llx, size 0x%llx)", LLX(vaddr),
			LLX(size));
	for (uint64_t at = 0; size - at >= 8; at += 8)
		see_word(marker, vaddr + at);
	return NULL;
}

static struct kymo_error *mark_start(struct marker *marker)
{
	struct kymo_module *module = marker->module;
	const struct sym_dynamic *dynamic = &module->dynamic;
	struct kymo_error *error = mark_array(marker, dynamic->init_array, dynamic->init_array_size);
	Elf64_Shdr header;

	mark(marker, module->image.header.e_entry);
	mark(marker, dynamic->init);
	mark(marker, dynamic->fini);
	for (size_t i = 0; i < module->sections.n; i++)
		mark(marker, module->sections.items[i].vaddr);
	if (!error)
		error = mark_array(marker, dynamic->fini_array, dynamic->fini_array_size);
	if (!error)
		error = mark_array(marker, dynamic->preinit_array, dynamic->preinit_array_size);
	for (uint64_t i = 1; i < module->image.n_sections && sym_image_section(&module->image, i, &header) && !error;
	     i++)
		if ((header.sh_type == SHT_INIT_ARRAY || header.sh_type == SHT_FINI_ARRAY ||
		     header.sh_type == SHT_PREINIT_ARRAY) &&
		    sym_section_bytes(module, &header))
			error = mark_array(marker, header.sh_addr, header.sh_size);
	return error;
}

static struct kymo_error *mark_frames(struct marker *marker)
{
	struct kymo_module *module = marker->module;
	struct kymo_error *error = sym_frames_read(module);

	if (error)
		return error;
	for (size_t i = 0; i < module->fdes.n; i++)
		mark(marker, module->fdes.items[i].start);
	for (size_t i = 0; i < module->frame_marks.n; i++)
		mark(marker, module->frame_marks.items[i]);
	return kymo_module_landing_pads(module, see_code, marker);
}

/*
 * Words of a file at a fixed address: 8 bytes at any place, and 4 bytes where they are aligned, outside of code. Code
 * has its addresses in instructions, and what is left there are tables of whole words.
 */
static void mark_words(struct marker *marker, const struct kymo_segment *segment)
{
	const uint8_t *bytes;

	if (!segment->file_size) /* then the offset may be anything */
		return;
	bytes = marker->module->image.bytes + segment->offset;
	for (uint64_t at = 0; segment->file_size - at >= 4; at++) {
		uint64_t word = 0;

		if (segment->file_size - at >= 8) {
			memcpy(&word, bytes + at, 8);
			mark(marker, word);
		}
		if ((segment->vaddr + at) % 4 ||
		    (segment->executable && sym_code_at(marker->module, segment->vaddr + at)))
			continue;
		word = 0;
		memcpy(&word, bytes + at, 4);
		mark(marker, word);
	}
}

static struct kymo_error *mark_all(struct marker *marker)
{
	struct kymo_module *module = marker->module;
	struct kymo_error *error;

	mark_symbols(marker);
	error = mark_start(marker);
	if (!error)
		error = mark_relocs(marker);
	if (!error)
		error = mark_frames(marker);
	for (size_t i = 0; i < module->segments.n && !error && !kymo_module_is_pie(module); i++)
		mark_words(marker, &module->segments.items[i]);
	return error;
}

/* ---- the set --------------------------------------------------------------------------------- */

static struct kymo_error *collect(struct kymo_module *module, const struct marker *marker)
{
	uint64_t *entries = malloc((marker->n + 1) * sizeof(*entries));
	size_t n = 0;

	if (!entries)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < module->code.n; i++) {
		const struct sym_range *range = &module->code.items[i];
		uint64_t bit = marker->first[i], end = bit + (range->end - range->start);

		for (; bit < end; bit++) {
			uint64_t rest = marker->bits[bit / 64] >> bit % 64;

			if (!rest) {
				bit |= 63;
				continue;
			}
			bit += (unsigned int)__builtin_ctzll(rest);
			if (bit < end)
				entries[n++] = range->start + (bit - marker->first[i]);
		}
	}
	free(module->entries);
	module->entries = entries;
	module->n_entries = n;
	return NULL;
}

static struct kymo_error *find_entries(struct kymo_module *module)
{
	const size_t n = module->code.n;
	kymo_cleanup_free uint64_t *first = calloc(n + 1, sizeof(*first));
	kymo_cleanup_free uint64_t *bits = NULL;
	struct marker marker = { .module = module };
	struct kymo_error *error;
	uint64_t size = 0;

	if (!first)
		return &kymo_error_no_memory;
	for (size_t i = 0; i < n; i++) {
		first[i] = size;
		size += module->code.items[i].end - module->code.items[i].start;
	}
	bits = calloc(size / 64 + 1, sizeof(*bits));
	if (!bits)
		return &kymo_error_no_memory;
	marker.first = first;
	marker.bits = bits;
	marker.low = n ? module->code.items[0].start : 0;
	marker.high = n ? module->code.items[n - 1].end : 0;
	error = mark_all(&marker);
	return error ? error : collect(module, &marker);
}

struct kymo_error *kymo_module_entries(struct kymo_module *module, const uint64_t **ret, size_t *n_ret)
{
	struct kymo_error *error;

	if (sym_lazy_begin(&module->entries_lazy, &error))
		error = sym_lazy_end(&module->entries_lazy, find_entries(module));
	if (error)
		return error;
	*ret = module->entries;
	*n_ret = module->n_entries;
	return NULL;
}
