/*
 * The bytes of one ELF file, read once, and its headers. Private to the room.
 *
 * `bytes` spans the whole file, but only the parts that kymo looks at are filled: loadable segments, symbol and
 * string tables, and what names separate debug information. Everything else reads as zeros and costs no memory.
 */
#ifndef KYMO_SYM_IMAGE_H
#define KYMO_SYM_IMAGE_H

#include <elf.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum sym_image_kind {
	SYM_PROGRAM, /* an executable or a shared object: its segments are in the file */
	SYM_DEBUG,   /* separate debug information: its segments are those of another file */
	SYM_DWARF,   /* either, for what libdw reads: sections of debug information, and no segments */
};

/* A string table that ends in a NUL, so that each offset within it is a string. */
struct sym_strings {
	const char *bytes;
	uint64_t size;
};

struct sym_image {
	char *path;
	uint8_t *bytes;
	uint64_t size;
	Elf *elf;
	Elf64_Ehdr header;
	uint64_t n_segments, n_sections; /* entries of the header tables */
	struct sym_strings section_names;
	bool is_large;     /* `bytes` are of kymo_large_alloc(), not of kymo_sparse_alloc() */
	bool is_protected; /* only root and this user can have written it */
	uint64_t budget;   /* bytes that may still be parsed, see sym_image_spend() */
};

/* Read the file open at `fd` and check its headers. The image is empty after a failure. */
struct kymo_error *sym_image_init(struct sym_image *image, int fd, const char *path, enum sym_image_kind kind);
void sym_image_deinit(struct sym_image *image);

/*
 * Open a regular file to read, or return -1 with errno set. Nothing else is opened, even for a moment: a target may
 * name a device, and opening one may do something.
 */
int sym_image_open(const char *path);

/* BAD_DATA: "PATH: FORMAT...". */
struct kymo_error *sym_image_bad(const struct sym_image *image, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull));

/* Whether [offset, offset + size) lies inside of the file. */
bool sym_image_holds(const struct sym_image *image, uint64_t offset, uint64_t size);

/*
 * Header `i` of either table; false where libelf does not give it. There is no section 0: a link to it means "none"
 * (SHN_UNDEF), and what its header says is not checked.
 */
bool sym_image_segment(const struct sym_image *image, uint64_t i, Elf64_Phdr *ret);
bool sym_image_section(const struct sym_image *image, uint64_t i, Elf64_Shdr *ret);

/* The section's name, "" where it lies outside of the name table. */
const char *sym_image_section_name(const struct sym_image *image, const Elf64_Shdr *section);

/* Make a string table of `size` bytes at `bytes`. False where it is empty or does not end in a NUL. */
bool sym_strings_init(struct sym_strings *strings, const void *bytes, uint64_t size);

/* The string at `offset`, or NULL beyond the table. */
const char *sym_string(const struct sym_strings *strings, uint64_t offset);

/*
 * Account for `size` bytes of tables that are about to be parsed. Tables may overlap, and one may be named many
 * times, so that a small file could keep a parser busy for years: false once far more was asked for than the file
 * holds.
 */
bool sym_image_spend(struct sym_image *image, uint64_t size);

/*
 * The GNU build-id among the notes of `size` bytes at `notes`, aligned to `align` (4 or 8): its size, 0 where there
 * is none, -1 where the notes are damaged. Of a longer one the first `max` bytes are given.
 */
int sym_build_id(const uint8_t *notes, uint64_t size, uint64_t align, uint8_t *id, size_t max);

#endif
