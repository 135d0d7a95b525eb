/*
 * ELF files as a tracer needs them: symbols, function extents, text, build-ids. The only user of libelf and libdw.
 *
 * Files come from targets and are not trusted: each offset, size and count is checked. Damage yields an error with the
 * file's name, what is wrong and where, never a crash or an endless loop. A file may be replaced or truncated by its
 * owner while it is open, so its bytes are read into memory once, with pread.
 *
 * A module is immutable after kymo_module_open() but for parts that are computed at first use; use from one thread at a
 * time. All strings and arrays handed out belong to the module.
 */
#ifndef KYMO_SYM_SYM_H
#define KYMO_SYM_SYM_H

#include <stdbool.h>
#include <stdint.h>

/* A loadable segment. Addresses as linked. */
struct kymo_segment {
	uint64_t vaddr, offset, file_size, memory_size;
	bool readable, writable, executable;
};

struct kymo_symbol {
	const char *name;    /* without @VERSION */
	const char *version; /* "GLIBC_2.2.5" or NULL */
	uint64_t vaddr;
	uint64_t size;   /* 0 when the file does not say */
	bool is_ifunc;   /* vaddr is the resolver's */
	bool is_default; /* of several versions, the one new programs get */
	bool is_global;
};

/* A section or a piece of one that is loaded: bytes belong to the module. */
struct kymo_section {
	const char *name;
	uint64_t vaddr, size;
	const uint8_t *bytes;
	bool executable, writable;
};

/* A function: by symbol or by Go's table, or by .eh_frame alone (name is NULL then). [start, end) as linked. */
struct kymo_function {
	const char *name;
	uint64_t start, end;
};

#endif
