/* Opening a module: everything of it that is read at once, in the order in which one part needs the other. */
#include "sym/open.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/page.h"
#include "sym/debuglink.h"
#include "sym/dynamic.h"
#include "sym/module.h"
#include "sym/module_state.h"
#include "sym/symbols.h"

#define VADDR_MAX (1ull << 47)

/* ---- segments -------------------------------------------------------------------------------- */

static struct kymo_error *add_segment(struct kymo_module *module, uint64_t i, const Elf64_Phdr *header)
{
	const struct kymo_segment *last = module->segments.n ? &module->segments.items[module->segments.n - 1] : NULL;

	if (header->p_filesz > header->p_memsz)
		return sym_image_bad(&module->image, "segment %llu is larger in the file than in memory", LLX(i));
	if (header->p_vaddr >= VADDR_MAX || header->p_memsz > VADDR_MAX - header->p_vaddr)
		return sym_image_bad(&module->image,
				     "segment %llu lies outside of the address space (vaddr 0x%llx, size 0x%llx)",
				     LLX(i), LLX(header->p_vaddr), LLX(header->p_memsz));
	if (header->p_filesz && (header->p_vaddr - header->p_offset) % KYMO_PAGE_SIZE)
		return sym_image_bad(&module->image, "segment %llu cannot be mapped (vaddr 0x%llx, offset 0x%llx)",
				     LLX(i), LLX(header->p_vaddr), LLX(header->p_offset));
	if (last && header->p_vaddr < last->vaddr + last->memory_size)
		return sym_image_bad(&module->image,
				     "segment %llu begins before the end of the one before it (vaddr 0x%llx)", LLX(i),
				     LLX(header->p_vaddr));
	if (!kymo_vec_push(&module->segments, (struct kymo_segment){ .vaddr = header->p_vaddr,
								     .offset = header->p_offset,
								     .file_size = header->p_filesz,
								     .memory_size = header->p_memsz,
								     .readable = header->p_flags & PF_R,
								     .writable = header->p_flags & PF_W,
								     .executable = header->p_flags & PF_X }))
		return &kymo_error_no_memory;
	return NULL;
}

static struct kymo_error *read_segments(struct kymo_module *module)
{
	const struct sym_image *image = &module->image;
	struct kymo_error *error;
	Elf64_Phdr header;

	for (uint64_t i = 0; sym_image_segment(image, i, &header); i++) {
		if (header.p_type == PT_DYNAMIC)
			module->dynamic_part = (struct sym_part){ header.p_vaddr, header.p_filesz };
		else if (header.p_type == PT_GNU_EH_FRAME)
			module->eh_frame_header = (struct sym_part){ header.p_vaddr, header.p_filesz };
		else if (header.p_type == PT_TLS)
			module->tls = (struct sym_tls_segment){ header.p_vaddr, header.p_memsz, header.p_align };
		if (header.p_type != PT_LOAD || !header.p_memsz)
			continue;
		error = add_segment(module, i, &header);
		if (error)
			return error;
	}
	return module->segments.n
		       ? NULL
		       : sym_image_bad(image, "no segment to load (offset 0x%llx)", LLX(image->header.e_phoff));
}

/* What other program headers point to, once all segments are known. */
static struct kymo_error *read_parts(struct kymo_module *module)
{
	const struct sym_image *image = &module->image;
	Elf64_Phdr header;

	for (uint64_t i = 0; sym_image_segment(image, i, &header); i++) {
		const uint8_t *bytes;
		int n;

		if ((header.p_type != PT_INTERP && header.p_type != PT_NOTE) || !header.p_filesz)
			continue;
		bytes = sym_bytes(module, header.p_vaddr, header.p_filesz);
		if (!bytes || !sym_image_spend(&module->image, header.p_filesz))
			return sym_image_bad(image, "%s lies outside of the segments (vaddr 0x%llx, size 0x%llx)",
					     header.p_type == PT_NOTE ? "a note" : "the interpreter's name",
					     LLX(header.p_vaddr), LLX(header.p_filesz));
		if (header.p_type == PT_INTERP) {
			if (!memchr(bytes, '\0', header.p_filesz))
				return sym_image_bad(image, "the interpreter's name does not end (vaddr 0x%llx)",
						     LLX(header.p_vaddr));
			module->interpreter = (const char *)bytes;
			continue;
		}
		if (module->build_id_size)
			continue;
		n = sym_build_id(bytes, header.p_filesz, header.p_align == 8 ? 8 : 4, module->build_id,
				 KYMO_BUILD_ID_MAX);
		if (n < 0)
			return sym_image_bad(image, "the notes are damaged (vaddr 0x%llx, size 0x%llx)",
					     LLX(header.p_vaddr), LLX(header.p_filesz));
		module->build_id_size = (size_t)n;
	}
	return NULL;
}

/* ---- sections -------------------------------------------------------------------------------- */

static int compare_sections(const void *a, const void *b)
{
	const struct kymo_section *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	return x->size < y->size ? -1 : x->size > y->size;
}

static bool add_segments_as_sections(struct kymo_module *module)
{
	for (size_t i = 0; i < module->segments.n; i++) {
		const struct kymo_segment *segment = &module->segments.items[i];

		if (segment->file_size &&
		    !kymo_vec_push(&module->sections,
				   (struct kymo_section){ .name = "LOAD",
							  .vaddr = segment->vaddr,
							  .size = segment->file_size,
							  .bytes = module->image.bytes + segment->offset,
							  .executable = segment->executable,
							  .writable = segment->writable }))
			return false;
	}
	return true;
}

static struct kymo_error *read_sections(struct kymo_module *module)
{
	const struct sym_image *image = &module->image;
	Elf64_Shdr header;

	for (uint64_t i = 1; i < image->n_sections && sym_image_section(image, i, &header); i++) {
		const uint8_t *bytes = sym_section_bytes(module, &header);

		if (bytes && !kymo_vec_push(&module->sections,
					    (struct kymo_section){ .name = sym_image_section_name(image, &header),
								   .vaddr = header.sh_addr,
								   .size = header.sh_size,
								   .bytes = bytes,
								   .executable = header.sh_flags & SHF_EXECINSTR,
								   .writable = header.sh_flags & SHF_WRITE }))
			return &kymo_error_no_memory;
	}
	if (!module->sections.n && !add_segments_as_sections(module))
		return &kymo_error_no_memory;
	if (module->sections.n)
		qsort(module->sections.items, module->sections.n, sizeof(*module->sections.items), compare_sections);
	return NULL;
}

static bool add_code(struct kymo_module *module, uint64_t start, uint64_t end)
{
	return start >= end || kymo_vec_push(&module->code, (struct sym_range){ start, end });
}

/*
 * Code is the contents of executable segments, without the sections in them that are marked as data. Linkers may put
 * .rodata and .eh_frame into the segment of .text. Bytes that no section speaks of count as code.
 */
static struct kymo_error *find_code(struct kymo_module *module)
{
	const struct kymo_section *sections = module->sections.items;
	size_t next = 0, n = module->sections.n;

	for (size_t i = 0; i < module->segments.n; i++) {
		const struct kymo_segment *segment = &module->segments.items[i];
		uint64_t at = segment->vaddr, limit = segment->vaddr + segment->file_size;

		if (!segment->executable)
			continue;
		while (next < n && sections[next].vaddr < at)
			next++;
		for (; next < n && sections[next].vaddr < limit; next++) {
			if (sections[next].executable)
				continue;
			if (!add_code(module, at, sections[next].vaddr))
				return &kymo_error_no_memory;
			if (sections[next].vaddr + sections[next].size > at)
				at = sections[next].vaddr + sections[next].size;
		}
		if (!add_code(module, at, limit))
			return &kymo_error_no_memory;
	}
	return NULL;
}

/* ---- opening --------------------------------------------------------------------------------- */

static struct kymo_error *read_module(struct kymo_module *module, int fd, const char *path)
{
	struct kymo_error *error = sym_image_init(&module->image, fd, path, SYM_PROGRAM);

	if (!error)
		error = read_segments(module);
	if (!error)
		error = read_parts(module);
	if (!error)
		error = read_sections(module);
	if (!error)
		error = find_code(module);
	if (!error)
		error = sym_dynamic_read(module);
	if (!error)
		error = sym_debug_attach(module);
	return error ? error : sym_symbols_read(module);
}

struct kymo_error *kymo_module_open_fd(int fd, const char *path, struct kymo_module **ret)
{
	struct kymo_module *module = calloc(1, sizeof(*module));
	struct kymo_error *error;

	if (!module)
		return &kymo_error_no_memory;
	error = read_module(module, fd, path);
	if (error) {
		kymo_module_close(module);
		return error;
	}
	*ret = module;
	return NULL;
}

struct kymo_error *kymo_module_open(const char *path, struct kymo_module **ret)
{
	/* Without O_NONBLOCK a named pipe in the place of a file would stop us here. */
	kymo_cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return kymo_error_errno(errno, "%s", path);
	return kymo_module_open_fd(fd, path, ret);
}

static void lazy_deinit(struct sym_lazy *lazy)
{
	kymo_error_destroy(lazy->why);
}

void kymo_module_close(struct kymo_module *module)
{
	if (!module)
		return;
	for (size_t i = 0; i < module->names.n; i++)
		free(module->names.items[i]);
	lazy_deinit(&module->relocs_lazy);
	lazy_deinit(&module->frames_lazy);
	lazy_deinit(&module->functions_lazy);
	lazy_deinit(&module->entries_lazy);
	lazy_deinit(&module->rseq_lazy);
	lazy_deinit(&module->notes_lazy);
	lazy_deinit(&module->go_lazy);
	kymo_vec_deinit(&module->names);
	kymo_vec_deinit(&module->segments);
	kymo_vec_deinit(&module->sections);
	kymo_vec_deinit(&module->code);
	kymo_vec_deinit(&module->symbols);
	kymo_vec_deinit(&module->objects);
	kymo_vec_deinit(&module->marks);
	kymo_vec_deinit(&module->relocs);
	kymo_vec_deinit(&module->fdes);
	kymo_vec_deinit(&module->cies);
	kymo_vec_deinit(&module->frame_marks);
	kymo_vec_deinit(&module->go_functions);
	kymo_vec_deinit(&module->functions);
	kymo_vec_deinit(&module->rseq);
	kymo_vec_deinit(&module->notes);
	free(module->dynsym.versions);
	free(module->rows);
	free(module->by_name);
	free(module->entries);
	sym_image_deinit(&module->debug);
	sym_image_deinit(&module->image);
	free(module);
}
