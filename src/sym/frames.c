/*
 * Frame description entries of .eh_frame: where functions begin and end, and which of them have landing pads. libdw
 * takes the section apart into entries; what stands in them is read here.
 * Reference: Linux Standard Base, "Exception Frames".
 */
#include "sym/frames.h"

#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "sym/cursor.h"
#include "sym/golang.h"
#include "sym/module.h"
#include "sym/module_state.h"
#include "sym/relocs.h"

/* What reading FDEs needs of their common information entry. */
struct cie {
	uint64_t offset;
	bool has_augmentation;
	bool has_personality, is_signal;
	uint8_t pointer_encoding, lsda_encoding;
	uint32_t index; /* in the module's `cies` */
};

/* An .eh_frame that is being read. */
struct frames {
	struct kymo_module *module;
	const uint8_t *bytes;
	uint64_t vaddr, size;
	bool is_open; /* `size` is too much: an entry of length 0, or the last FDE, is the end */
	uint64_t fdes_left;
	KYMO_VEC(struct cie) cies; /* sorted by offset */
};

static struct kymo_error *bad_entry(const struct frames *frames, uint64_t offset, const char *what)
{
	return sym_image_bad(&frames->module->image, ".eh_frame is damaged: %s (vaddr 0x%llx, offset 0x%llx)", what,
			     LLX(frames->vaddr), LLX(offset));
}

static struct sym_cursor cursor_at(const struct frames *frames, const uint8_t *at, const uint8_t *end)
{
	return (struct sym_cursor){ frames->module, at, end, frames->vaddr + (uint64_t)(at - frames->bytes) };
}

/* ---- CIE ------------------------------------------------------------------------------------- */

/* The personality routine is code that only this names, where it is not named through a word of its own. */
static bool read_personality(struct frames *frames, struct sym_cursor *cursor, struct cie *cie)
{
	uint8_t encoding;
	uint64_t value;

	cie->has_personality = true;
	if (!sym_read_u8(cursor, &encoding))
		return false;
	if (encoding == SYM_PE_OMIT)
		return true;
	if (!sym_read_pointer(cursor, encoding & ~SYM_PE_INDIRECT, 0, &value))
		return false;
	return encoding & SYM_PE_INDIRECT || kymo_vec_push(&frames->module->frame_marks, value);
}

static bool read_augmentation(struct frames *frames, const Dwarf_CIE *entry, struct cie *cie)
{
	struct sym_cursor cursor;

	if (!entry->augmentation_data)
		return false;
	cursor = cursor_at(frames, entry->augmentation_data, entry->augmentation_data + entry->augmentation_data_size);
	cie->has_augmentation = true;
	for (const char *letter = entry->augmentation + 1; *letter; letter++) {
		bool ok;

		switch (*letter) {
		case 'R':
			ok = sym_read_u8(&cursor, &cie->pointer_encoding);
			break;
		case 'L':
			ok = sym_read_u8(&cursor, &cie->lsda_encoding);
			break;
		case 'P':
			ok = read_personality(frames, &cursor, cie);
			break;
		case 'S':
			ok = cie->is_signal = true;
			break;
		default:
			ok = false;
		}
		if (!ok)
			return false;
	}
	return true;
}

static struct kymo_error *add_cie(struct frames *frames, uint64_t offset, const Dwarf_CIE *entry)
{
	struct cie cie = { .offset = offset, .lsda_encoding = SYM_PE_OMIT };
	bool ok = !*entry->augmentation || !strcmp(entry->augmentation, "eh");

	if (*entry->augmentation == 'z')
		ok = read_augmentation(frames, entry, &cie);
	if (!ok)
		return bad_entry(frames, offset, "an augmentation that cannot be read");
	cie.index = (uint32_t)frames->module->cies.n;
	if (!kymo_vec_push(&frames->module->cies,
			   ((struct sym_cie){
				   .rules = { entry->initial_instructions, entry->initial_instructions_end },
				   .code_factor = entry->code_alignment_factor,
				   .data_factor = entry->data_alignment_factor,
				   .return_register = entry->return_address_register,
				   .pointer_encoding = cie.pointer_encoding,
				   .is_signal = cie.is_signal,
			   })))
		return &kymo_error_no_memory;
	return kymo_vec_push(&frames->cies, cie) ? NULL : &kymo_error_no_memory;
}

static const struct cie *find_cie(const struct frames *frames, uint64_t offset)
{
	size_t low = 0, high = frames->cies.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (frames->cies.items[mid].offset < offset)
			low = mid + 1;
		else
			high = mid;
	}
	return low < frames->cies.n && frames->cies.items[low].offset == offset ? &frames->cies.items[low] : NULL;
}

/* ---- FDE ------------------------------------------------------------------------------------- */

/* The rules stand after the augmentation, to the end of the entry. */
static bool read_augmentation_and_rules(struct sym_cursor *cursor, const struct cie *cie, struct sym_fde *fde)
{
	uint64_t size, lsda;

	fde->rules = (struct sym_rules){ cursor->at, cursor->end };
	if (!cie->has_augmentation)
		return true;
	if (!sym_read_uleb(cursor, &size) || size > (uint64_t)(cursor->end - cursor->at))
		return false;
	cursor->end = fde->rules.start = cursor->at + size;
	if (cie->lsda_encoding == SYM_PE_OMIT)
		return true;
	if (!sym_read_pointer(cursor, cie->lsda_encoding, fde->start, &lsda))
		return false;
	/* Without a personality routine it is never read, and its form is not known. */
	if (cie->has_personality)
		fde->lsda = lsda;
	return true;
}

static struct kymo_error *add_fde(struct frames *frames, uint64_t offset, const Dwarf_FDE *entry)
{
	const struct cie *cie = find_cie(frames, entry->CIE_pointer);
	struct sym_cursor cursor = cursor_at(frames, entry->start, entry->end);
	const struct sym_range *code;
	struct sym_fde fde = { 0 };
	uint64_t size;

	if (!cie)
		return bad_entry(frames, offset, "an FDE without its CIE");
	fde.cie = cie->index;
	if (!sym_read_pointer(&cursor, cie->pointer_encoding, 0, &fde.start) ||
	    !sym_read_pointer(&cursor, cie->pointer_encoding & 0x0f, 0, &size) || size > UINT64_MAX - fde.start)
		return bad_entry(frames, offset, "an FDE's range cannot be read");
	fde.end = fde.start + size;
	if (!read_augmentation_and_rules(&cursor, cie, &fde))
		return bad_entry(frames, offset, "an FDE's augmentation cannot be read");
	/* Linkers leave entries of functions that they have dropped. */
	code = sym_code_at(frames->module, fde.start);
	if (!code || !size)
		return NULL;
	if (fde.end > code->end)
		return bad_entry(frames, offset, "an FDE's range goes beyond the code");
	return kymo_vec_push(&frames->module->fdes, fde) ? NULL : &kymo_error_no_memory;
}

static struct kymo_error *read_entries(struct frames *frames)
{
	const unsigned char *ident = frames->module->image.header.e_ident;
	Elf_Data data = { .d_buf = (void *)(uintptr_t)frames->bytes,
			  .d_type = ELF_T_BYTE,
			  .d_size = frames->size,
			  .d_version = EV_CURRENT,
			  .d_align = 1 };
	struct kymo_error *error = NULL;
	uint64_t offset = 0;

	while (frames->size - offset >= 4 && !error) {
		Dwarf_CFI_Entry entry;
		Dwarf_Off next;
		uint32_t length;

		memcpy(&length, frames->bytes + offset, sizeof(length));
		if (frames->is_open && (!length || !frames->fdes_left))
			break;
		/* Startup files may leave an end in the middle; unwinders find what follows through .eh_frame_hdr. */
		if (!length) {
			offset += 4;
			continue;
		}
		if (dwarf_next_cfi(ident, &data, true, offset, &next, &entry) || next <= offset || next > frames->size)
			return bad_entry(frames, offset, "an entry cannot be read");
		if (dwarf_cfi_cie_p(&entry)) {
			error = add_cie(frames, offset, &entry.cie);
		} else {
			error = add_fde(frames, offset, &entry.fde);
			frames->fdes_left -= frames->is_open;
		}
		offset = next;
	}
	return error;
}

static struct kymo_error *read_frames(struct frames *frames)
{
	struct kymo_error *error;

	if (!sym_image_spend(&frames->module->image, frames->size))
		return bad_entry(frames, 0, "sections overlap");
	error = read_entries(frames);
	kymo_vec_deinit(&frames->cies);
	return error;
}

/* ---- finding it ------------------------------------------------------------------------------ */

/*
 * Without section headers the header that unwinders start from leads there: version, three encodings, pointer, the
 * number of FDEs and a table of these.
 */
static struct kymo_error *read_by_header(struct kymo_module *module)
{
	const struct sym_part *part = &module->eh_frame_header;
	const uint8_t *bytes = sym_bytes(module, part->vaddr, part->size);
	struct sym_cursor cursor = { module, bytes, bytes ? bytes + part->size : NULL, part->vaddr };
	struct frames frames = { .module = module, .is_open = true, .fdes_left = UINT64_MAX };
	uint8_t encoding, count_encoding;

	if (!bytes || part->size < 4 || bytes[0] != 1)
		return sym_image_bad(&module->image, ".eh_frame_hdr is damaged (vaddr 0x%llx, size 0x%llx)",
				     LLX(part->vaddr), LLX(part->size));
	encoding = bytes[1];
	count_encoding = bytes[2];
	if (encoding == SYM_PE_OMIT)
		return NULL;
	if (!sym_skip(&cursor, 4) || !sym_read_pointer(&cursor, encoding, 0, &frames.vaddr) ||
	    (count_encoding != SYM_PE_OMIT && !sym_read_pointer(&cursor, count_encoding, 0, &frames.fdes_left)))
		return sym_image_bad(&module->image, ".eh_frame_hdr does not lead to .eh_frame (vaddr 0x%llx)",
				     LLX(part->vaddr));
	frames.bytes = sym_bytes_from(module, frames.vaddr, &frames.size);
	if (!frames.bytes)
		return sym_image_bad(&module->image, ".eh_frame lies outside of the segments (vaddr 0x%llx)",
				     LLX(frames.vaddr));
	return read_frames(&frames);
}

/* Functions of Go have no FDEs, but all that is wanted of those. */
static struct kymo_error *add_go(struct kymo_module *module)
{
	struct kymo_error *error = sym_go_read(module);

	for (size_t i = 0; i < module->go_functions.n && !error; i++) {
		const struct sym_go_function *function = &module->go_functions.items[i];

		if (!kymo_vec_push(
			    &module->fdes,
			    ((struct sym_fde){ .start = function->start, .end = function->end, .is_loose = true })) ||
		    (function->resume && !kymo_vec_push(&module->frame_marks, function->start + function->resume)))
			return &kymo_error_no_memory;
	}
	return error;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct sym_fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* As linkers that sort .eh_frame leave them. */
static bool are_sorted(const struct kymo_module *module)
{
	for (size_t i = 1; i < module->fdes.n; i++)
		if (compare_fdes(&module->fdes.items[i - 1], &module->fdes.items[i]) > 0)
			return false;
	return true;
}

static struct kymo_error *read_all_frames(struct kymo_module *module)
{
	/* Pointers in it may be relocated. */
	struct kymo_error *error = sym_relocs_read(module);
	bool found = false;

	for (size_t i = 0; i < module->sections.n && !error; i++) {
		const struct kymo_section *section = &module->sections.items[i];
		struct frames frames = {
			.module = module, .bytes = section->bytes, .vaddr = section->vaddr, .size = section->size
		};

		if (strcmp(section->name, ".eh_frame"))
			continue;
		found = true;
		error = read_frames(&frames);
	}
	if (!error && !found && module->eh_frame_header.size)
		error = read_by_header(module);
	if (!error)
		error = add_go(module);
	if (!error && !are_sorted(module))
		qsort(module->fdes.items, module->fdes.n, sizeof(*module->fdes.items), compare_fdes);
	return error;
}

struct kymo_error *sym_frames_read(struct kymo_module *module)
{
	struct kymo_error *error;

	if (!sym_lazy_begin(&module->frames_lazy, &error))
		return error;
	module->fdes.n = module->cies.n = module->frame_marks.n = 0;
	return sym_lazy_end(&module->frames_lazy, read_all_frames(module));
}
