/*
 * A thread's blocks of thread-local variables, one for each module that has some. Reference: "ELF Handling For
 * Thread-Local Storage" (Drepper), variant II, and the System V ABI for x86-64.
 *
 * The program's own block ends at the thread pointer, aligned: its code has the distances in itself, so no C library
 * may put the block elsewhere.
 *
 * A library's code asks words of its global offset table, and so do the forms: the dynamic linker has relocated these.
 *	R_X86_64_TPOFF64	the distance from the thread pointer
 *	R_X86_64_DTPMOD64	the number of the module: an index into the thread's vector of blocks (DTV)
 *	R_X86_64_DTPOFF64	behind such a number: the offset within that block
 *	R_X86_64_TLSDESC	two words, the second one of which leads to the one or the other
 * Words of symbols that another module may define lead to what this library's code uses. So they serve for the
 * variable of that symbol alone.
 *
 * Each C library has a vector of its own kind. Its address is 8 bytes behind the thread pointer.
 *	glibc	16 bytes an entry; the length is in the one before the first; -1 in an entry: no block yet
 *	musl	8 bytes an entry; the length is in entry 0; all blocks are always there
 * An entry beyond the length, and a block that is not there, are faults: the number is divided by 0 or 1, and the
 * block's first byte is read.
 */
#include "sym/tls.h"

#include <elf.h>
#include <string.h>

#include "sym/debug_state.h"
#include "sym/module.h"
#include "sym/module_state.h"

#define VECTOR_AT 8 /* from the thread pointer */

/* How a library's words lead to its block; of several ways the last here. */
enum way {
	NO_WAY,
	BY_SYMBOLS_MODULE, /* the module and the offset of the variable's symbol */
	BY_SYMBOLS_DESCRIPTOR,
	BY_SYMBOLS_POINTER, /* the variable's distance from the thread pointer */
	BY_MODULE,          /* the library's number */
	BY_DESCRIPTOR,      /* that of one of its variables */
	BY_POINTER,         /* the distance of one of its variables from the thread pointer */
};

enum libc { LIBC_UNKNOWN, LIBC_GLIBC, LIBC_MUSL };

struct search {
	const struct kymo_module *module;
	uint64_t offset; /* of the variable */
	enum way way;
	uint64_t where; /* the word */
	uint64_t base;  /* the offset of what it is of; of no meaning for numbers of modules */
};

/* ---- relocations ------------------------------------------------------------------------------ */

/* Dynamic symbol `index`, if the module defines it as a thread-local variable. */
static bool find_symbol(const struct kymo_module *module, uint64_t index, Elf64_Sym *ret)
{
	const uint8_t *bytes = NULL;

	if (module->dynamic.symtab && index <= UINT32_MAX)
		bytes = sym_bytes(module, module->dynamic.symtab + index * sizeof(*ret), sizeof(*ret));
	if (!bytes)
		return false;
	memcpy(ret, bytes, sizeof(*ret));
	return ret->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(ret->st_info) == STT_TLS;
}

/* Whether no other module's symbol may stand for it. */
static bool may_not_be_another(const Elf64_Sym *symbol)
{
	return ELF64_ST_BIND(symbol->st_info) == STB_LOCAL || ELF64_ST_VISIBILITY(symbol->st_other) != STV_DEFAULT;
}

/* How a relocation leads to what it is of: NO_WAY if it is of another kind. */
static enum way way_of(uint64_t type, bool is_own)
{
	switch (type) {
	case R_X86_64_TPOFF64:
		return is_own ? BY_POINTER : BY_SYMBOLS_POINTER;
	case R_X86_64_TLSDESC:
		return is_own ? BY_DESCRIPTOR : BY_SYMBOLS_DESCRIPTOR;
	case R_X86_64_DTPMOD64:
		return is_own ? BY_MODULE : BY_SYMBOLS_MODULE;
	default:
		return NO_WAY;
	}
}

static void see_reloc(struct search *search, const Elf64_Rela *rela)
{
	const uint64_t type = ELF64_R_TYPE(rela->r_info), index = ELF64_R_SYM(rela->r_info);
	Elf64_Sym symbol = { .st_value = 0 };
	uint64_t base;
	bool is_own;

	if (!way_of(type, true) || (index && !find_symbol(search->module, index, &symbol)))
		return;
	is_own = !index || may_not_be_another(&symbol);
	base = symbol.st_value + (uint64_t)rela->r_addend;
	if ((is_own || base == search->offset) && way_of(type, is_own) > search->way) {
		search->way = way_of(type, is_own);
		search->where = rela->r_offset;
		search->base = base;
	}
}

static void see_table(struct search *search, uint64_t vaddr, uint64_t size)
{
	const uint8_t *bytes = size ? sym_bytes(search->module, vaddr, size) : NULL;

	for (uint64_t at = 0; bytes && size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
		Elf64_Rela rela;

		memcpy(&rela, bytes + at, sizeof(rela));
		see_reloc(search, &rela);
	}
}

/* ---- forms ------------------------------------------------------------------------------------ */

static void put(struct kymo_form *form, enum kymo_form_code code, uint8_t size, int64_t value)
{
	form->ops[form->n++] = (struct kymo_form_op){ (uint8_t)code, size, 0, value };
}

static void put_offset(struct kymo_form *form, uint64_t offset)
{
	put(form, KYMO_FORM_VALUE, 0, (int64_t)offset);
	put(form, KYMO_FORM_ADD, 0, 0);
}

static void put_word(struct kymo_form *form, uint64_t where)
{
	put(form, KYMO_FORM_ADDRESS, 0, (int64_t)where);
	put(form, KYMO_FORM_LOAD, 8, 0);
}

static void put_vector(struct kymo_form *form)
{
	put_offset(form, VECTOR_AT);
	put(form, KYMO_FORM_LOAD, 8, 0);
}

/* vector, number of a module: the thread's block of it */
static void put_block(struct kymo_form *form, enum libc libc)
{
	put(form, KYMO_FORM_PICK, 0, 0);
	put(form, KYMO_FORM_PICK, 0, 2);
	if (libc == LIBC_GLIBC)
		put_offset(form, (uint64_t)-16);
	put(form, KYMO_FORM_LOAD, 8, 0); /* vector, number, number, length */
	put(form, KYMO_FORM_LESS_OR_EQUAL, 0, 0);
	put(form, KYMO_FORM_DIVIDE, 0, 0);
	put(form, KYMO_FORM_VALUE, 0, libc == LIBC_GLIBC ? 16 : 8);
	put(form, KYMO_FORM_MULTIPLY, 0, 0);
	put(form, KYMO_FORM_ADD, 0, 0);
	put(form, KYMO_FORM_LOAD, 8, 0); /* the block */
	put(form, KYMO_FORM_PICK, 0, 0);
	put(form, KYMO_FORM_LOAD, 1, 0);
	put(form, KYMO_FORM_DROP, 0, 0);
}

/* pointer, argument, vector, number, where the argument is an address: the number, or a fault where the vector is older
 * than the descriptor's module. */
static void put_age_check(struct kymo_form *form)
{
	put(form, KYMO_FORM_PICK, 0, 2);
	put_offset(form, 16);
	put(form, KYMO_FORM_LOAD, 8, 0);
	put(form, KYMO_FORM_PICK, 0, 2);
	put(form, KYMO_FORM_LOAD, 8, 0);
	put(form, KYMO_FORM_LESS_OR_EQUAL, 0, 0);
	put(form, KYMO_FORM_DIVIDE, 0, 0);
}

/*
 * Thread pointer, argument of a descriptor: pointer, distance. Blocks at a fixed distance lie before the thread
 * pointer, so that is negative. Else the argument is the address of a number, an offset and, in glibc, the age that the
 * vector must have.
 */
static void put_described(struct kymo_form *form, enum libc libc)
{
	uint32_t jump;

	put(form, KYMO_FORM_PICK, 0, 0);
	put(form, KYMO_FORM_VALUE, 0, 63);
	put(form, KYMO_FORM_SHIFT_RIGHT, 8, 0);
	put(form, KYMO_FORM_NOT, 0, 0);
	jump = form->n;
	put(form, KYMO_FORM_JUMP_IF_ZERO, 0, 0);
	put(form, KYMO_FORM_PICK, 0, 1);
	put_vector(form);
	put(form, KYMO_FORM_PICK, 0, 1);
	put(form, KYMO_FORM_LOAD, 8, 0);
	if (libc == LIBC_GLIBC)
		put_age_check(form);
	put_block(form, libc);
	put(form, KYMO_FORM_PICK, 0, 1);
	put_offset(form, 8);
	put(form, KYMO_FORM_LOAD, 8, 0);
	put(form, KYMO_FORM_ADD, 0, 0); /* pointer, argument, address */
	put(form, KYMO_FORM_PICK, 0, 2);
	put(form, KYMO_FORM_SUBTRACT, 0, 0);
	put(form, KYMO_FORM_PICK, 0, 1);
	put(form, KYMO_FORM_SUBTRACT, 0, 0);
	put(form, KYMO_FORM_ADD, 0, 0);
	form->ops[jump].value = form->n;
}

/* ---- modules ---------------------------------------------------------------------------------- */

/* Linkers of before 2016 do not mark programs that may be loaded anywhere. */
static bool is_program(const struct kymo_module *module)
{
	return !kymo_module_is_pie(module) || module->dynamic.flags_1 & DF_1_PIE ||
	       (module->interpreter && !module->dynamic.has_soname);
}

static bool begins_with(const char *name, const char *with)
{
	return !strncmp(name, with, strlen(with));
}

/* The C library that a library needs. */
static enum libc find_libc(const struct kymo_module *module)
{
	const struct sym_part *part = &module->dynamic_part;
	const uint8_t *bytes = sym_bytes(module, part->vaddr, part->size);

	for (uint64_t at = 0; bytes && part->size - at >= sizeof(Elf64_Dyn); at += sizeof(Elf64_Dyn)) {
		const char *name;
		Elf64_Dyn entry;

		memcpy(&entry, bytes + at, sizeof(entry));
		if (entry.d_tag == DT_NULL)
			break;
		name = entry.d_tag == DT_NEEDED ? sym_string(&module->dynsym.strings, entry.d_un.d_val) : NULL;
		if (name && (!strcmp(name, "libc.so.6") || begins_with(name, "ld-linux-x86-64.so.")))
			return LIBC_GLIBC;
		if (name &&
		    (!strcmp(name, "libc.so") || begins_with(name, "libc.musl-") || begins_with(name, "ld-musl-")))
			return LIBC_MUSL;
	}
	return LIBC_UNKNOWN;
}

/* By the way that the search has found. */
static void put_way(const struct search *search, enum libc libc, struct kymo_form *ret)
{
	const bool is_of_module = search->way == BY_MODULE || search->way == BY_SYMBOLS_MODULE;

	put(ret, KYMO_FORM_THREAD, 0, 0);
	if (is_of_module) {
		put_vector(ret);
		put_word(ret, search->where);
		put_block(ret, libc);
	} else if (search->way == BY_POINTER || search->way == BY_SYMBOLS_POINTER) {
		put_word(ret, search->where);
		put(ret, KYMO_FORM_ADD, 0, 0);
	} else {
		put_word(ret, search->where + 8);
		put_described(ret, libc);
		put(ret, KYMO_FORM_ADD, 0, 0);
	}
	if (search->way == BY_SYMBOLS_MODULE) {
		put_word(ret, search->where + 8);
		put(ret, KYMO_FORM_ADD, 0, 0);
	} else {
		put_offset(ret, search->offset - (is_of_module ? 0 : search->base));
	}
}

static const char *find_in_library(struct search *search, struct kymo_form *ret)
{
	const struct sym_dynamic *dynamic = &search->module->dynamic;
	const enum libc libc = find_libc(search->module);

	see_table(search, dynamic->rela, dynamic->rela_size);
	if (dynamic->pltrel != DT_REL)
		see_table(search, dynamic->jmprel, dynamic->jmprel_size);
	if (search->way == NO_WAY)
		return "is a thread-local variable that its library's own code does not look for: nothing tells where "
		       "it is";
	if (libc == LIBC_UNKNOWN && search->way != BY_POINTER && search->way != BY_SYMBOLS_POINTER)
		return "is a thread-local variable of a library that needs neither glibc nor musl";
	put_way(search, libc, ret);
	return NULL;
}

static const char *find_variable(const struct kymo_module *module, uint64_t offset, struct kymo_form *ret)
{
	const struct sym_tls_segment *segment = &module->tls;
	struct search search = { .module = module, .offset = offset };
	const uint64_t align = segment->align ? segment->align : 1;

	if (!segment->size)
		return "is a thread-local variable of a file that has no such data";
	/* With -gsplit-dwarf gcc 12 has addresses of what each thread's copy is made of, where offsets belong. */
	if (offset > segment->size && offset - segment->vaddr <= segment->size)
		search.offset = offset -= segment->vaddr;
	if (offset > segment->size || align & (align - 1))
		return "is a thread-local variable outside of its file's data: that is damaged";
	if (!is_program(module))
		return find_in_library(&search, ret);
	put(ret, KYMO_FORM_THREAD, 0, 0);
	put_offset(ret, offset + segment->vaddr - ((segment->vaddr + segment->size + align - 1) & -align));
	return NULL;
}

const char *sym_tls_find(struct kymo_debug *debug, struct kymo_form *form)
{
	const struct sym_dynamic *dynamic = &debug->module->dynamic;
	const uint64_t offset = (uint64_t)form->ops[0].value;

	if (form->n != 1 || form->ops[0].code != KYMO_FORM_VALUE)
		return "is a thread-local variable at an offset that is computed";
	if (!sym_debug_spend(debug, (dynamic->rela_size + dynamic->jmprel_size) / sizeof(Elf64_Rela)))
		return "is a thread-local variable of a file with too many relocations";
	form->n = 0;
	return find_variable(debug->module, offset, form);
}
