/*
 * What a module is made of. Private to the room.
 *
 * Segments decide what is where: the kernel and the dynamic linker see nothing else. Sections are believed where they
 * agree with the segments and ignored where they do not.
 */
#ifndef KYMO_SYM_MODULE_STATE_H
#define KYMO_SYM_MODULE_STATE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "sym/image.h"
#include "sym/module.h"
#include "sym/notes.h"
#include "sym/sym.h"

struct sym_range {
	uint64_t start, end;
};

/* A table of the program headers' other types; size 0 where there is none. */
struct sym_part {
	uint64_t vaddr, size;
};

/* PT_TLS: what each thread has a copy of; size 0 where there is none. */
struct sym_tls_segment {
	uint64_t vaddr, size, align;
};

/* The dynamic section, as the dynamic linker would read it: the last of several entries with the same tag wins. */
struct sym_dynamic {
	uint64_t strtab, strtab_size, symtab, hash, gnu_hash, versym, verdef, n_verdef, soname;
	uint64_t rela, rela_size, rel, rel_size, relr, relr_size, jmprel, jmprel_size, pltrel;
	uint64_t init, fini, init_array, init_array_size, fini_array, fini_array_size, preinit_array,
		preinit_array_size;
	uint64_t flags_1;
	uint64_t android; /* relocations in a form that only Android's linker reads */
	bool has_soname;
};

/* A symbol table in an image. */
struct sym_table {
	const uint8_t *entries; /* Elf64_Sym, not aligned */
	uint64_t n;
	struct sym_strings strings;
	const uint8_t *versym; /* `n` halfwords, or NULL */
	const char **versions; /* by index; NULL elements where there is none */
	size_t n_versions;
	bool names_have_versions; /* "memcpy@@GLIBC_2.14", as .symtab has them */
};

struct sym_object {
	const char *name;
	uint64_t vaddr, size;
	bool is_default;
};

/* A program of DWARF that says how frames are left (unwind.c), in the image. `start` is NULL where there is none. */
struct sym_rules {
	const uint8_t *start, *end;
};

/* What many FDEs have in common. */
struct sym_cie {
	struct sym_rules rules;
	uint64_t code_factor, return_register;
	int64_t data_factor;
	uint8_t pointer_encoding;
	bool is_signal; /* frames that a signal has made */
};

struct sym_fde {
	uint64_t start, end;
	uint64_t lsda; /* 0 where the function has no landing pads */
	struct sym_rules rules;
	uint32_t cie;
	bool is_loose; /* the end may lie in the padding after the function */
};

struct sym_row_cache;

/* A function in the table of Go's runtime. */
struct sym_go_function {
	const char *name;
	uint64_t start, end; /* the end may be one byte into the padding */
	uint32_t resume;     /* offset of a second place where control may arrive; 0 where there is none */
};

/* Code that runs on Go's stacks (kymo_module_small_stacks()); [0, 0) where there is none. */
struct sym_small_stacks {
	uint64_t low, high;
	uint32_t left;
};

/* A word at `where` that is `value` when the module is loaded at 0; or, `is_indirect`, what the resolver at `value`
 * returns. */
struct sym_reloc {
	uint64_t where, value;
	bool is_indirect;
};

/* A part that is computed at first use. What is damaged stays so: its error is kept and told again. */
struct sym_lazy {
	bool done;
	struct kymo_error *why;
};

struct kymo_module {
	struct sym_image image, debug;

	KYMO_VEC(struct kymo_segment) segments; /* sorted, not overlapping */
	KYMO_VEC(struct kymo_section) sections; /* sorted by vaddr */
	KYMO_VEC(struct sym_range) code;        /* executable bytes in the file; sorted, not overlapping */
	struct sym_part dynamic_part, eh_frame_header;
	struct sym_tls_segment tls;
	struct sym_dynamic dynamic;
	const char *interpreter, *soname;
	bool cancels;
	uint8_t build_id[KYMO_BUILD_ID_MAX];
	size_t build_id_size;

	struct sym_table dynsym;
	KYMO_VEC(struct kymo_symbol) symbols; /* n_symbols sorted by vaddr; then further versions of those */
	size_t n_symbols;
	KYMO_VEC(struct sym_object) objects; /* sorted by name, once many are looked for */
	unsigned int n_asked;                /* how many were looked for before they were sorted */
	bool are_objects_sorted;
	KYMO_VEC(uint64_t) marks; /* code addresses that symbols of other kinds name */
	KYMO_VEC(char *) names;   /* names cut off before their version */
	uint32_t *by_name;        /* indexes of all symbols, sorted by name; made by sym_index() */
	unsigned int n_scans;     /* names that were looked for without it */

	struct sym_lazy relocs_lazy, frames_lazy, functions_lazy, entries_lazy, rseq_lazy, notes_lazy, go_lazy;
	KYMO_VEC(struct sym_reloc) relocs;
	bool relocs_sorted;
	KYMO_VEC(struct sym_fde) fdes; /* sorted by start */
	KYMO_VEC(struct sym_cie) cies;
	struct sym_row_cache *rows;                    /* of unwind.c, or NULL */
	KYMO_VEC(uint64_t) frame_marks;                /* other code addresses that what describes frames names */
	KYMO_VEC(struct sym_go_function) go_functions; /* as their table has them: sorted, where it is not damaged */
	struct sym_small_stacks small_stacks;
	KYMO_VEC(struct kymo_function) functions;
	uint64_t *entries;
	size_t n_entries;
	KYMO_VEC(struct kymo_function) rseq;
	KYMO_VEC(struct kymo_note) notes;
};

/* The number in a printf argument list. */
#define LLX(x) ((unsigned long long)(x))

#endif
