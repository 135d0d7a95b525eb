/*
 * What relocations put where, as far as it can be known from the file: the addresses that a program's data names.
 * Reference: System V ABI AMD64, "Relocation"; for DT_RELR the generic ABI, "Relative Relocation Table".
 */
#include "sym/relocs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sym/module.h"
#include "sym/module_state.h"

#define R_X86_64_RELATIVE64_ 38 /* missing in older <elf.h> */
#define SHT_RELR_ 19

/* ---- reading --------------------------------------------------------------------------------- */

/* The value of dynamic symbol `index`, and whether it is an IFUNC of the module; false beyond the table. */
static bool symbol_value(const struct kymo_module *module, uint64_t index, uint64_t *ret, bool *is_indirect_ret)
{
	const struct sym_dynamic *dynamic = &module->dynamic;
	const uint8_t *bytes;
	Elf64_Sym symbol;

	/* A hash table leaves out undefined symbols, so that the table may be longer than it says. */
	if (!dynamic->symtab || index > UINT32_MAX)
		return false;
	bytes = sym_bytes(module, dynamic->symtab + index * sizeof(symbol), sizeof(symbol));
	if (!bytes)
		return false;
	memcpy(&symbol, bytes, sizeof(symbol));
	*ret = ELF64_ST_TYPE(symbol.st_info) == STT_TLS ? 0 : symbol.st_value;
	*is_indirect_ret = ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC && symbol.st_shndx != SHN_UNDEF;
	return true;
}

static bool is_thread_local(uint64_t type)
{
	return type == R_X86_64_DTPMOD64 || type == R_X86_64_DTPOFF64 || type == R_X86_64_TPOFF64 ||
	       type == R_X86_64_TLSDESC;
}

static struct kymo_error *add_reloc(struct kymo_module *module, const Elf64_Rela *rela)
{
	uint64_t type = ELF64_R_TYPE(rela->r_info), index = ELF64_R_SYM(rela->r_info), value = 0;
	bool is_indirect = type == R_X86_64_IRELATIVE;

	if (type == R_X86_64_NONE || type == R_X86_64_COPY || is_thread_local(type))
		return NULL;
	if (type != R_X86_64_RELATIVE && type != R_X86_64_RELATIVE64_ && type != R_X86_64_IRELATIVE && index &&
	    !symbol_value(module, index, &value, &is_indirect))
		return sym_image_bad(
			&module->image,
			"the relocation of 0x%llx refers to symbol %llu, which lies outside of the segments",
			LLX(rela->r_offset), LLX(index));
	value += (uint64_t)rela->r_addend;
	if (!kymo_vec_push(&module->relocs, (struct sym_reloc){ rela->r_offset, value, is_indirect }))
		return &kymo_error_no_memory;
	return NULL;
}

static struct kymo_error *bad_table(const struct kymo_module *module, const char *what, uint64_t vaddr, uint64_t size)
{
	return sym_image_bad(&module->image, "%s: damaged relocation table (vaddr 0x%llx, size 0x%llx)", what,
			     LLX(vaddr), LLX(size));
}

static struct kymo_error *add_rela_table(struct kymo_module *module, const char *what, uint64_t vaddr, uint64_t size)
{
	const uint8_t *bytes;
	struct kymo_error *error = NULL;

	if (!size)
		return NULL;
	bytes = sym_bytes(module, vaddr, size);
	if (!bytes || size % sizeof(Elf64_Rela) || !sym_image_spend(&module->image, size))
		return bad_table(module, what, vaddr, size);
	for (uint64_t at = 0; at < size && !error; at += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;

		memcpy(&rela, bytes + at, sizeof(rela));
		error = add_reloc(module, &rela);
	}
	return error;
}

/*
 * The x86-64 ABI has no REL form, but the dynamic linker's habits do not stop a linker from making it: addends stand
 * in place.
 */
static struct kymo_error *add_rel_table(struct kymo_module *module, const char *what, uint64_t vaddr, uint64_t size)
{
	const uint8_t *bytes;
	struct kymo_error *error = NULL;

	if (!size)
		return NULL;
	bytes = sym_bytes(module, vaddr, size);
	if (!bytes || size % sizeof(Elf64_Rel) || !sym_image_spend(&module->image, size))
		return bad_table(module, what, vaddr, size);
	for (uint64_t at = 0; at < size && !error; at += sizeof(Elf64_Rel)) {
		Elf64_Rela rela = { 0 };
		const uint8_t *place;

		memcpy(&rela, bytes + at, sizeof(Elf64_Rel));
		place = sym_bytes(module, rela.r_offset, sizeof(rela.r_addend));
		if (place)
			memcpy(&rela.r_addend, place, sizeof(rela.r_addend));
		error = add_reloc(module, &rela);
	}
	return error;
}

/* Whether the dynamic section led to the table already. */
static bool is_known(const struct sym_dynamic *dynamic, const Elf64_Shdr *header)
{
	uint64_t start = header->sh_addr, end = start + header->sh_size;

	return (start >= dynamic->rela && end <= dynamic->rela + dynamic->rela_size) ||
	       (start >= dynamic->jmprel && end <= dynamic->jmprel + dynamic->jmprel_size) ||
	       (start >= dynamic->rel && end <= dynamic->rel + dynamic->rel_size);
}

/*
 * Programs without a dynamic section have IRELATIVE relocations that only section headers and linker symbols lead to.
 */
static struct kymo_error *add_section_tables(struct kymo_module *module)
{
	struct kymo_error *error = NULL;
	Elf64_Shdr header;

	for (uint64_t i = 1; i < module->image.n_sections && sym_image_section(&module->image, i, &header) && !error;
	     i++) {
		if (!sym_section_bytes(module, &header) || is_known(&module->dynamic, &header))
			continue;
		if (header.sh_type == SHT_RELA)
			error = add_rela_table(module, sym_image_section_name(&module->image, &header), header.sh_addr,
					       header.sh_size);
		else if (header.sh_type == SHT_REL)
			error = add_rel_table(module, sym_image_section_name(&module->image, &header), header.sh_addr,
					      header.sh_size);
	}
	return error;
}

static struct kymo_error *read_relocation_tables(struct kymo_module *module)
{
	const struct sym_dynamic *dynamic = &module->dynamic;
	struct kymo_error *error;

	if (dynamic->android)
		return sym_image_bad(&module->image, "relocations in Android's packed form are not understood");
	error = add_rela_table(module, "DT_RELA", dynamic->rela, dynamic->rela_size);
	if (!error)
		error = add_rel_table(module, "DT_REL", dynamic->rel, dynamic->rel_size);
	if (!error && dynamic->pltrel == DT_REL)
		error = add_rel_table(module, "DT_JMPREL", dynamic->jmprel, dynamic->jmprel_size);
	else if (!error)
		error = add_rela_table(module, "DT_JMPREL", dynamic->jmprel, dynamic->jmprel_size);
	return error ? error : add_section_tables(module);
}

struct kymo_error *sym_relocs_read(struct kymo_module *module)
{
	struct kymo_error *error;

	if (!sym_lazy_begin(&module->relocs_lazy, &error))
		return error;
	module->relocs.n = 0;
	return sym_lazy_end(&module->relocs_lazy, read_relocation_tables(module));
}

/* ---- DT_RELR --------------------------------------------------------------------------------- */

struct relr {
	struct kymo_module *module;
	void (*see)(void *data, uint64_t where);
	void *data;
};

/*
 * An even entry is the address of a word; an odd one a bitmap of which of the 63 words after the last one are
 * relocated too.
 */
static struct kymo_error *walk_relr(const struct relr *relr, uint64_t vaddr, uint64_t size)
{
	const uint8_t *bytes;
	uint64_t base = 0;

	if (!size)
		return NULL;
	bytes = sym_bytes(relr->module, vaddr, size);
	/* A bitmap stands for up to 63 words. */
	if (!bytes || size % 8 || !sym_image_spend(&relr->module->image, size))
		return bad_table(relr->module, "DT_RELR", vaddr, size);
	for (uint64_t at = 0; at < size; at += 8) {
		uint64_t entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (!(entry & 1)) {
			relr->see(relr->data, entry);
			base = entry + 8;
			continue;
		}
		for (uint64_t bits = entry >> 1, where = base; bits; bits >>= 1, where += 8)
			if (bits & 1)
				relr->see(relr->data, where);
		base += 63 * 8;
	}
	return NULL;
}

struct kymo_error *sym_relr_walk(struct kymo_module *module, void (*see)(void *data, uint64_t where), void *data)
{
	const struct sym_dynamic *dynamic = &module->dynamic;
	const struct relr relr = { module, see, data };
	struct kymo_error *error = walk_relr(&relr, dynamic->relr, dynamic->relr_size);
	Elf64_Shdr header;

	for (uint64_t i = 1; i < module->image.n_sections && sym_image_section(&module->image, i, &header) && !error;
	     i++)
		if (header.sh_type == SHT_RELR_ && header.sh_addr != dynamic->relr &&
		    sym_section_bytes(module, &header))
			error = walk_relr(&relr, header.sh_addr, header.sh_size);
	return error;
}

/* ---- words ----------------------------------------------------------------------------------- */

static int compare_relocs(const void *a, const void *b)
{
	const struct sym_reloc *x = a, *y = b;

	if (x->where != y->where)
		return x->where < y->where ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

/* The relocation of the word at `vaddr`, or NULL. */
static const struct sym_reloc *reloc_at(struct kymo_module *module, uint64_t vaddr)
{
	size_t low = 0, high = module->relocs.n;

	if (!module->relocs_sorted && high) {
		qsort(module->relocs.items, high, sizeof(*module->relocs.items), compare_relocs);
		module->relocs_sorted = true;
	}
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (module->relocs.items[mid].where < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low < module->relocs.n && module->relocs.items[low].where == vaddr ? &module->relocs.items[low] : NULL;
}

bool sym_word(struct kymo_module *module, uint64_t vaddr, uint64_t *ret)
{
	const struct sym_reloc *reloc = reloc_at(module, vaddr);
	const uint8_t *bytes;

	if (reloc) {
		*ret = reloc->value;
		return true;
	}
	bytes = sym_bytes(module, vaddr, sizeof(*ret));
	if (!bytes)
		return false;
	memcpy(ret, bytes, sizeof(*ret));
	return true;
}

/* Whether only the dynamic linker writes to the section, before anything else runs. */
static bool is_constant(const struct kymo_section *section)
{
	return !section->writable ||
	       (section->name && (!strncmp(section->name, ".got", 4) || !strncmp(section->name, ".data.rel.ro", 12)));
}

int kymo_module_constant(struct kymo_module *module, uint64_t vaddr, uint64_t *ret)
{
	const struct kymo_section *section = NULL;
	const struct sym_reloc *reloc;
	struct kymo_error *error;

	for (size_t i = 0; i < module->sections.n && !section; i++)
		if (vaddr >= module->sections.items[i].vaddr &&
		    vaddr - module->sections.items[i].vaddr < module->sections.items[i].size)
			section = &module->sections.items[i];
	if (!section || !is_constant(section))
		return -ENOENT;
	error = sym_relocs_read(module);
	if (error) {
		kymo_error_destroy(error);
		return -ENOENT;
	}
	reloc = reloc_at(module, vaddr);
	return (reloc && reloc->is_indirect) || !sym_word(module, vaddr, ret) ? -ENOENT : 0;
}

int kymo_module_bound_word(struct kymo_module *module, uint64_t resolver, size_t i, uint64_t *ret)
{
	struct kymo_error *error = sym_relocs_read(module);

	if (error) {
		kymo_error_destroy(error);
		return -ENOENT;
	}
	for (size_t k = 0; k < module->relocs.n; k++)
		if (module->relocs.items[k].is_indirect && module->relocs.items[k].value == resolver && !i--) {
			*ret = module->relocs.items[k].where;
			return 0;
		}
	return -ENOENT;
}
