/*
 * The dynamic section and what it leads to: the dynamic symbol table, whose length no entry tells, and symbol
 * versions.
 * Reference: System V ABI, chapter 5 "Dynamic Linking"; Linux Standard Base, "Symbol Versioning".
 */
#include "sym/dynamic.h"

#include <stdlib.h>
#include <string.h>

#include "sym/module.h"
#include "sym/module_state.h"

/* clang-format off */
static const struct {
	int64_t tag;
	size_t field;
} fields[] = {
#define FIELD(tag, name) { tag, offsetof(struct sym_dynamic, name) }
	FIELD(DT_STRTAB, strtab), FIELD(DT_STRSZ, strtab_size), FIELD(DT_SYMTAB, symtab),
	FIELD(DT_HASH, hash), FIELD(DT_GNU_HASH, gnu_hash),
	FIELD(DT_VERSYM, versym), FIELD(DT_VERDEF, verdef), FIELD(DT_VERDEFNUM, n_verdef),
	FIELD(DT_SONAME, soname), FIELD(DT_FLAGS_1, flags_1),
	FIELD(DT_RELA, rela), FIELD(DT_RELASZ, rela_size), FIELD(DT_REL, rel), FIELD(DT_RELSZ, rel_size),
	FIELD(36 /* DT_RELR */, relr), FIELD(35 /* DT_RELRSZ */, relr_size),
	FIELD(DT_JMPREL, jmprel), FIELD(DT_PLTRELSZ, jmprel_size), FIELD(DT_PLTREL, pltrel),
	FIELD(DT_INIT, init), FIELD(DT_FINI, fini),
	FIELD(DT_INIT_ARRAY, init_array), FIELD(DT_INIT_ARRAYSZ, init_array_size),
	FIELD(DT_FINI_ARRAY, fini_array), FIELD(DT_FINI_ARRAYSZ, fini_array_size),
	FIELD(DT_PREINIT_ARRAY, preinit_array), FIELD(DT_PREINIT_ARRAYSZ, preinit_array_size),
	FIELD(0x6000000f /* DT_ANDROID_REL */, android), FIELD(0x60000011 /* DT_ANDROID_RELA */, android),
	FIELD(0x6fffe000 /* DT_ANDROID_RELR */, android),
#undef FIELD
};
/* clang-format on */

static void set_field(struct sym_dynamic *dynamic, const Elf64_Dyn *entry)
{
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (fields[i].tag == entry->d_tag)
			memcpy((char *)dynamic + fields[i].field, &entry->d_un.d_val, sizeof(uint64_t));
	if (entry->d_tag == DT_SONAME)
		dynamic->has_soname = true;
}

static struct kymo_error *read_entries(struct kymo_module *module)
{
	const struct sym_part *part = &module->dynamic_part;
	const uint8_t *bytes = sym_bytes(module, part->vaddr, part->size);

	if (!bytes)
		return sym_image_bad(&module->image,
				     "the dynamic section lies outside of the segments (vaddr 0x%llx, size 0x%llx)",
				     LLX(part->vaddr), LLX(part->size));
	for (uint64_t at = 0; part->size - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
		Elf64_Dyn entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.d_tag == DT_NULL)
			break;
		set_field(&module->dynamic, &entry);
	}
	return NULL;
}

static uint32_t word_at(const uint8_t *bytes, uint64_t index)
{
	uint32_t word;

	memcpy(&word, bytes + index * sizeof(word), sizeof(word));
	return word;
}

/* The table has as many symbols as there are chains. */
static bool count_by_hash(const struct kymo_module *module, uint64_t *ret)
{
	const uint8_t *table = sym_bytes(module, module->dynamic.hash, 8);

	if (!table)
		return false;
	*ret = word_at(table, 1);
	return true;
}

/* Symbols are sorted by bucket: the last one is the end of the chain that the highest bucket starts. */
static bool count_by_gnu_hash(const struct kymo_module *module, uint64_t *ret)
{
	uint64_t left, n_buckets, first, buckets, chains, last = 0;
	const uint8_t *table = sym_bytes_from(module, module->dynamic.gnu_hash, &left);

	if (!table || left < 16)
		return false;
	left /= sizeof(uint32_t);
	n_buckets = word_at(table, 0);
	first = word_at(table, 1);
	buckets = 4 + 2 * (uint64_t)word_at(table, 2);
	chains = buckets + n_buckets;
	if (chains > left)
		return false;
	for (uint64_t i = buckets; i < chains; i++)
		if (word_at(table, i) > last)
			last = word_at(table, i);
	if (last < first) {
		*ret = first;
		return true;
	}
	for (;; last++) {
		uint64_t at = chains + (last - first);

		if (at >= left)
			return false;
		if (word_at(table, at) & 1)
			break;
	}
	*ret = last + 1;
	return true;
}

/* The section header's opinion, for tables that have no hash table or leave symbols out of it. */
static uint64_t count_by_section(const struct kymo_module *module)
{
	Elf64_Shdr header;

	for (uint64_t i = 1; i < module->image.n_sections && sym_image_section(&module->image, i, &header); i++)
		if (header.sh_type == SHT_DYNSYM && header.sh_addr == module->dynamic.symtab)
			return header.sh_size / sizeof(Elf64_Sym);
	return 0;
}

static struct kymo_error *find_dynsym(struct kymo_module *module)
{
	const struct sym_dynamic *dynamic = &module->dynamic;
	struct sym_table *table = &module->dynsym;
	uint64_t by_hash = 0, n = count_by_section(module);
	const uint8_t *strings = sym_bytes(module, dynamic->strtab, dynamic->strtab_size);

	if (!strings || !sym_strings_init(&table->strings, strings, dynamic->strtab_size))
		return sym_image_bad(&module->image, "the dynamic string table is damaged (vaddr 0x%llx, size 0x%llx)",
				     LLX(dynamic->strtab), LLX(dynamic->strtab_size));
	if (dynamic->gnu_hash ? !count_by_gnu_hash(module, &by_hash)
			      : dynamic->hash && !count_by_hash(module, &by_hash))
		return sym_image_bad(&module->image, "the symbol hash table is damaged (vaddr 0x%llx)",
				     LLX(dynamic->gnu_hash ? dynamic->gnu_hash : dynamic->hash));
	if (by_hash > n)
		n = by_hash;
	if (!n)
		return NULL;
	/* Both counts are below 2^61. */
	table->entries = sym_bytes(module, dynamic->symtab, n * sizeof(Elf64_Sym));
	if (!table->entries)
		return sym_image_bad(
			&module->image,
			"the dynamic symbol table lies outside of the segments (vaddr 0x%llx, %llu entries)",
			LLX(dynamic->symtab), LLX(n));
	table->n = n;
	return NULL;
}

/* ---- versions -------------------------------------------------------------------------------- */

static struct kymo_error *add_version(struct kymo_module *module, unsigned int index, const char *name)
{
	struct sym_table *table = &module->dynsym;

	if (index >= table->n_versions) {
		const char **grown = realloc(table->versions, (index + 1u) * sizeof(*grown));

		if (!grown)
			return &kymo_error_no_memory;
		memset(grown + table->n_versions, 0, (index + 1u - table->n_versions) * sizeof(*grown));
		table->versions = grown;
		table->n_versions = index + 1u;
	}
	table->versions[index] = name;
	return NULL;
}

static struct kymo_error *bad_versions(const struct kymo_module *module, uint64_t vaddr)
{
	return sym_image_bad(&module->image, "the symbol versions are damaged (vaddr 0x%llx)", LLX(vaddr));
}

/* One definition at `at`, with its name. The offsets to the next one only grow, so that the walk ends. */
static struct kymo_error *read_version(struct kymo_module *module, const uint8_t *bytes, uint64_t left, uint64_t at,
				       uint64_t *next_ret)
{
	Elf64_Verdef def;
	Elf64_Verdaux aux;
	const char *name;

	if (at > left || left - at < sizeof(def))
		return bad_versions(module, module->dynamic.verdef + at);
	memcpy(&def, bytes + at, sizeof(def));
	if (def.vd_version != VER_DEF_CURRENT || def.vd_aux > left - at || left - at - def.vd_aux < sizeof(aux))
		return bad_versions(module, module->dynamic.verdef + at);
	memcpy(&aux, bytes + at + def.vd_aux, sizeof(aux));
	name = sym_string(&module->dynsym.strings, aux.vda_name);
	if (!name)
		return bad_versions(module, module->dynamic.verdef + at);
	*next_ret = def.vd_next;
	/* The base version is the file's own name, of no use to a symbol. */
	if (def.vd_flags & VER_FLG_BASE)
		return NULL;
	return add_version(module, def.vd_ndx & 0x7fff, name);
}

static struct kymo_error *read_versions(struct kymo_module *module)
{
	const struct sym_dynamic *dynamic = &module->dynamic;
	struct sym_table *table = &module->dynsym;
	uint64_t left, at = 0, next = 1;
	const uint8_t *bytes;

	if (!dynamic->versym || !table->n)
		return NULL;
	table->versym = sym_bytes(module, dynamic->versym, table->n * sizeof(Elf64_Versym));
	if (!table->versym)
		return bad_versions(module, dynamic->versym);
	if (!dynamic->verdef)
		return NULL;
	bytes = sym_bytes_from(module, dynamic->verdef, &left);
	if (!bytes)
		return bad_versions(module, dynamic->verdef);
	for (uint64_t i = 0; i < dynamic->n_verdef && next; i++, at += next) {
		struct kymo_error *error = read_version(module, bytes, left, at, &next);

		if (error)
			return error;
	}
	return NULL;
}

struct kymo_error *sym_dynamic_read(struct kymo_module *module)
{
	struct kymo_error *error = NULL;

	if (!module->dynamic_part.size)
		return NULL;
	error = read_entries(module);
	if (!error && module->dynamic.strtab)
		error = find_dynsym(module);
	if (!error && module->dynamic.strtab)
		error = read_versions(module);
	if (error)
		return error;
	if (module->dynamic.has_soname && module->dynsym.strings.size) {
		module->soname = sym_string(&module->dynsym.strings, module->dynamic.soname);
		if (!module->soname)
			return sym_image_bad(&module->image, "DT_SONAME lies beyond the string table (offset 0x%llx)",
					     LLX(module->dynamic.soname));
	}
	return NULL;
}
