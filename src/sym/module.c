#include "sym/module.h"

#include "sym/module_state.h"

#include <errno.h>
#include <string.h>

#include "base/page.h"
#include "base/search.h"

/* ---- addresses ------------------------------------------------------------------------------- */

const struct kymo_segment *kymo_module_segment_at(const struct kymo_module *module, uint64_t vaddr)
{
	const size_t n = kymo_partition_point(i, module->segments.n, module->segments.items[i].vaddr <= vaddr);
	const struct kymo_segment *segment = n ? &module->segments.items[n - 1] : NULL;

	return segment && vaddr - segment->vaddr < segment->memory_size ? segment : NULL;
}

const uint8_t *sym_bytes_from(const struct kymo_module *module, uint64_t vaddr, uint64_t *size_ret)
{
	const struct kymo_segment *segment = kymo_module_segment_at(module, vaddr);
	uint64_t at;

	if (!segment)
		return NULL;
	at = vaddr - segment->vaddr;
	if (at >= segment->file_size)
		return NULL;
	*size_ret = segment->file_size - at;
	return module->image.bytes + segment->offset + at;
}

const uint8_t *sym_bytes(const struct kymo_module *module, uint64_t vaddr, uint64_t size)
{
	uint64_t left;
	const uint8_t *bytes = sym_bytes_from(module, vaddr, &left);

	return bytes && size <= left ? bytes : NULL;
}

const uint8_t *sym_section_bytes(const struct kymo_module *module, const Elf64_Shdr *section)
{
	const uint8_t *bytes;

	if (!(section->sh_flags & SHF_ALLOC) || section->sh_type == SHT_NOBITS || section->sh_type == SHT_NULL ||
	    !section->sh_size)
		return NULL;
	bytes = sym_bytes(module, section->sh_addr, section->sh_size);
	return bytes && (uint64_t)(bytes - module->image.bytes) == section->sh_offset ? bytes : NULL;
}

const struct sym_range *sym_code_at(const struct kymo_module *module, uint64_t vaddr)
{
	const size_t n = kymo_partition_point(i, module->code.n, module->code.items[i].start <= vaddr);
	const struct sym_range *range = n ? &module->code.items[n - 1] : NULL;

	return range && vaddr < range->end ? range : NULL;
}

const uint8_t *kymo_module_bytes(const struct kymo_module *module, uint64_t vaddr, size_t size)
{
	return sym_bytes(module, vaddr, size);
}

bool kymo_module_is_code(const struct kymo_module *module, uint64_t vaddr, size_t size)
{
	const struct sym_range *range = sym_code_at(module, vaddr);

	return range && size <= range->end - vaddr;
}

const char *kymo_module_string(const struct kymo_module *module, uint64_t vaddr, size_t max)
{
	uint64_t left;
	const uint8_t *bytes = sym_bytes_from(module, vaddr, &left);

	return bytes && memchr(bytes, '\0', left < max ? left : max) ? (const char *)bytes : NULL;
}

int kymo_module_offset_to_vaddr(const struct kymo_module *module, uint64_t offset, uint64_t *ret)
{
	const struct kymo_segment *found = NULL;

	/* Two segments may show the same bytes of the file; callers that ask about code get the executable one. */
	for (size_t i = 0; i < module->segments.n; i++) {
		const struct kymo_segment *segment = &module->segments.items[i];

		if (offset >= segment->offset && offset - segment->offset < segment->file_size &&
		    (!found || (segment->executable && !found->executable)))
			found = segment;
	}
	if (!found)
		return -ENOENT;
	*ret = found->vaddr + (offset - found->offset);
	return 0;
}

int kymo_module_vaddr_to_offset(const struct kymo_module *module, uint64_t vaddr, uint64_t *ret)
{
	uint64_t left;
	const uint8_t *bytes = sym_bytes_from(module, vaddr, &left);

	if (!bytes)
		return -ENOENT;
	*ret = (uint64_t)(bytes - module->image.bytes);
	return 0;
}

/* ---- parts that are computed at first use ---------------------------------------------------- */

bool sym_lazy_begin(const struct sym_lazy *lazy, struct kymo_error **error_ret)
{
	*error_ret = lazy->why ? kymo_error_create(lazy->why->code, "%s", lazy->why->message) : NULL;
	return !lazy->done;
}

struct kymo_error *sym_lazy_end(struct sym_lazy *lazy, struct kymo_error *error)
{
	/* Memory may be there the next time. */
	if (error && error->code == KYMO_ERROR_NO_MEMORY)
		return error;
	lazy->done = true;
	if (!error)
		return NULL;
	lazy->why = error;
	return kymo_error_create(error->code, "%s", error->message);
}

/* ---- what was read --------------------------------------------------------------------------- */

const char *kymo_module_path(const struct kymo_module *module)
{
	return module->image.path;
}

bool kymo_module_is_pie(const struct kymo_module *module)
{
	return module->image.header.e_type == ET_DYN;
}

uint64_t kymo_module_entry(const struct kymo_module *module)
{
	return module->image.header.e_entry;
}

const char *kymo_module_interpreter(const struct kymo_module *module)
{
	return module->interpreter;
}

const char *kymo_module_soname(const struct kymo_module *module)
{
	return module->soname;
}

bool kymo_module_cancels(const struct kymo_module *module)
{
	return module->cancels;
}

bool kymo_module_is_protected(const struct kymo_module *module)
{
	return module->image.is_protected && (!module->debug.bytes || module->debug.is_protected);
}

const uint8_t *kymo_module_build_id(const struct kymo_module *module, size_t *size_ret)
{
	*size_ret = module->build_id_size;
	return module->build_id;
}

const struct kymo_segment *kymo_module_segments(const struct kymo_module *module, size_t *n_ret)
{
	*n_ret = module->segments.n;
	return module->segments.items;
}

int kymo_module_bias(const struct kymo_module *module, uint64_t start, uint64_t offset, uint64_t *ret)
{
	for (size_t i = 0; i < module->segments.n; i++) {
		const struct kymo_segment *segment = &module->segments.items[i];

		if (!segment->executable || kymo_page_down(segment->offset) != offset)
			continue;
		*ret = start - kymo_page_down(segment->vaddr);
		return 0;
	}
	return -ENOENT;
}

const struct kymo_section *kymo_module_sections(const struct kymo_module *module, size_t *n_ret)
{
	*n_ret = module->sections.n;
	return module->sections.items;
}
