/*
 * Notes: small pieces of data with an owner and a type that compilers and linkers leave for other programs.
 * Reference: System V ABI, chapter 5, "Note Section"; elf(5).
 */
#include "sym/notes.h"

#include <string.h>

#include "sym/module.h"
#include "sym/module_state.h"

/* Far more than any program has, and little enough for memory: the smallest note takes twelve bytes of a file. */
#define NOTES_MAX (1u << 20)

/* A run of notes: a section, or a segment where there are no sections. */
struct run {
	const uint8_t *bytes;
	uint64_t size, vaddr, offset, align;
};

static uint64_t aligned(const struct run *run, uint64_t at)
{
	return (at + run->align - 1) & ~(run->align - 1);
}

/* The note at `at`, and where the next one begins, which may be beyond the end: the last one need not be padded. */
static bool read_note(const struct run *run, uint64_t at, struct kymo_note *ret, uint64_t *next_ret)
{
	uint64_t name = at + sizeof(Elf64_Nhdr), desc;
	Elf64_Nhdr header;

	/* Sizes are below 2^32 and `run` lies in a file, so that no sum wraps around. */
	memcpy(&header, run->bytes + at, sizeof(header));
	desc = aligned(run, name + header.n_namesz);
	if (header.n_namesz > run->size - name || (header.n_descsz && desc + header.n_descsz > run->size))
		return false;
	*ret = (struct kymo_note){
		.owner = header.n_namesz && !run->bytes[name + header.n_namesz - 1] ? (const char *)run->bytes + name
										    : "",
		.type = header.n_type,
		.desc = run->bytes + (header.n_descsz ? desc : at),
		.size = header.n_descsz,
		.vaddr = run->vaddr ? run->vaddr + desc : 0,
		.offset = run->offset + at,
	};
	*next_ret = aligned(run, desc + header.n_descsz);
	return true;
}

static struct kymo_error *read_run(struct kymo_module *module, const struct run *run)
{
	if (!sym_image_spend(&module->image, run->size))
		return sym_image_bad(&module->image, "its notes overlap too much (offset 0x%llx)", LLX(run->offset));
	for (uint64_t at = 0; at < run->size && run->size - at >= sizeof(Elf64_Nhdr);) {
		struct kymo_note note;

		if (!read_note(run, at, &note, &at))
			return sym_image_bad(&module->image, "the note at offset 0x%llx runs out of its section",
					     LLX(run->offset + at));
		if (module->notes.n == NOTES_MAX)
			return sym_image_bad(&module->image, "more than %u notes", NOTES_MAX);
		if (!kymo_vec_push(&module->notes, note))
			return &kymo_error_no_memory;
	}
	return NULL;
}

static struct kymo_error *read_sections(struct kymo_module *module)
{
	const struct sym_image *image = &module->image;
	struct kymo_error *error = NULL;
	Elf64_Shdr header;

	for (uint64_t i = 1; !error && i < image->n_sections && sym_image_section(image, i, &header); i++) {
		bool is_loaded = header.sh_flags & SHF_ALLOC;

		if (header.sh_type != SHT_NOTE || !header.sh_size || (is_loaded && !sym_section_bytes(module, &header)))
			continue;
		/* sym_image_init() has seen that all sections lie in the file. */
		error = read_run(module, &(struct run){ .bytes = image->bytes + header.sh_offset,
							.size = header.sh_size,
							.vaddr = is_loaded ? header.sh_addr : 0,
							.offset = header.sh_offset,
							.align = header.sh_addralign == 8 ? 8 : 4 });
	}
	return error;
}

static struct kymo_error *read_segments(struct kymo_module *module)
{
	const struct sym_image *image = &module->image;
	struct kymo_error *error = NULL;
	Elf64_Phdr header;

	for (uint64_t i = 0; !error && sym_image_segment(image, i, &header); i++) {
		const uint8_t *bytes;

		if (header.p_type != PT_NOTE || !header.p_filesz)
			continue;
		bytes = sym_bytes(module, header.p_vaddr, header.p_filesz);
		if (bytes)
			error = read_run(module, &(struct run){ .bytes = bytes,
								.size = header.p_filesz,
								.vaddr = header.p_vaddr,
								.offset = (uint64_t)(bytes - image->bytes),
								.align = header.p_align == 8 ? 8 : 4 });
	}
	return error;
}

struct kymo_error *kymo_module_notes(struct kymo_module *module, const struct kymo_note **ret, size_t *n_ret)
{
	struct kymo_error *error;

	if (sym_lazy_begin(&module->notes_lazy, &error)) {
		module->notes.n = 0;
		error = sym_lazy_end(&module->notes_lazy,
				     module->image.n_sections ? read_sections(module) : read_segments(module));
	}
	if (error)
		return error;
	*ret = module->notes.items;
	*n_ret = module->notes.n;
	return NULL;
}
