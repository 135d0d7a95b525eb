/*
 * ELF files as a tracer needs them: symbols, function extents, text, build-ids. The only user of libelf and libdw.
 *
 * Files come from targets and are not trusted: each offset, size and count is checked, and whatever is damaged yields
 * an error with the file's name, what is wrong and where, never a crash or an endless loop. A file may be replaced or
 * truncated by its owner while it is open, so its bytes are read into memory once, with pread.
 *
 * A module is immutable after kymo_module_open() but for parts that are computed at first use; use from one thread at a
 * time. All strings and arrays handed out belong to the module.
 */
#ifndef KYMO_SYM_SYM_H
#define KYMO_SYM_SYM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_module;

#define KYMO_BUILD_ID_MAX 32

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

/*
 * Read the ELF file open at `fd` (not consumed). `path` is used in messages and for kymo_module_path(). Separate debug
 * information is looked for under /usr/lib/debug/.build-id and by .gnu_debuglink beside the file; it adds symbols.
 * Errors: BAD_DATA for what is not ELF, truncated, or damaged ("PATH: section header table lies beyond the end of the
 * file (offset 0x…, size 0x…)"); BAD_DATA for another architecture ("PATH is a 32-bit program; kymo traces x86-64
 * programs only"); NO_MEMORY.
 */
struct kymo_error *kymo_module_open_fd(int fd, const char *path, struct kymo_module **ret);

/* The same by path. NOT_FOUND, PERMISSION. */
struct kymo_error *kymo_module_open(const char *path, struct kymo_module **ret);
void kymo_module_close(struct kymo_module *module);

const char *kymo_module_path(const struct kymo_module *module);
bool kymo_module_is_pie(const struct kymo_module *module);             /* ET_DYN */
uint64_t kymo_module_entry(const struct kymo_module *module);          /* e_entry, as linked */
const char *kymo_module_interpreter(const struct kymo_module *module); /* PT_INTERP or NULL */
const char *kymo_module_soname(const struct kymo_module *module);      /* DT_SONAME or NULL */

/* Whether it calls another file's pthread_cancel(). */
bool kymo_module_cancels(const struct kymo_module *module);

/* Whether nobody but root and the user who runs this can have written the file, and separate debug information that was
 * read with it. */
bool kymo_module_is_protected(const struct kymo_module *module);

/* Whether the file, or separate debug information that was read with it, tells lines of source (.debug_line). */
bool kymo_module_has_lines(const struct kymo_module *module);

/* The GNU build-id; `size` is 0 where there is none. */
const uint8_t *kymo_module_build_id(const struct kymo_module *module, size_t *size);

const struct kymo_segment *kymo_module_segments(const struct kymo_module *module, size_t *n);

/* Where the module's addresses begin in a process that has the file mapped executable at `start`, from `offset` in the
 * file on. -ENOENT where no executable segment begins there. */
int kymo_module_bias(const struct kymo_module *module, uint64_t start, uint64_t offset, uint64_t *ret);

/* File offset to vaddr and back through the loadable segments. -ENOENT outside of what the file holds. */
int kymo_module_offset_to_vaddr(const struct kymo_module *module, uint64_t offset, uint64_t *ret);
int kymo_module_vaddr_to_offset(const struct kymo_module *module, uint64_t vaddr, uint64_t *ret);

/* Symbols of functions that have code (defined FUNC and IFUNC; not PLT stubs, not undefined ones), from .symtab,
 * .dynsym and separate debug information, and those that the table of Go's runtime names where these have none; sorted
 * by vaddr then name, duplicates (same name, vaddr) once. */
const struct kymo_symbol *kymo_module_symbols(const struct kymo_module *module, size_t *n);

/* A data object's vaddr and size by name, from .dynsym or .symtab (such as "__rseq_offset", "_thread_db_pthread_tid").
 * -ENOENT. */
int kymo_module_find_object(const struct kymo_module *module, const char *name, uint64_t *vaddr_ret,
			    uint64_t *size_ret);

/* The vaddr of the one data object of that name, such as a static variable. -ENOENT; -ENOTUNIQ where several are called
 * so. */
int kymo_module_only_object(const struct kymo_module *module, const char *name, uint64_t *ret);

/* Function extents, sorted, not overlapping: symbols with sizes, joined with .eh_frame (FDEs give extents to what has
 * no symbol or a symbol without size; so does Go's table). Aliases appear once, with the shortest global name. Computed
 * at first use. */
struct kymo_error *kymo_module_functions(struct kymo_module *module, const struct kymo_function **ret, size_t *n);

/* The function whose extent contains `vaddr`, or NULL. */
const struct kymo_function *kymo_module_function_at(struct kymo_module *module, uint64_t vaddr);

/* The segment whose memory `vaddr` lies in, or NULL. */
const struct kymo_segment *kymo_module_segment_at(const struct kymo_module *module, uint64_t vaddr);

/* The file's bytes at [vaddr, vaddr + size), or NULL where they do not all lie in what one segment has in the file. */
const uint8_t *kymo_module_bytes(const struct kymo_module *module, uint64_t vaddr, size_t size);

/* Whether [vaddr, vaddr + size) is code: executable bytes in the file that no section calls something else. */
bool kymo_module_is_code(const struct kymo_module *module, uint64_t vaddr, size_t size);

/* The string at `vaddr`, or NULL where it, with its NUL, does not lie in the file or takes more than `max` bytes. */
const char *kymo_module_string(const struct kymo_module *module, uint64_t vaddr, size_t max);

/* Loaded sections with bytes in the file. A file without section headers gives its segments instead. */
const struct kymo_section *kymo_module_sections(const struct kymo_module *module, size_t *n);

/*
 * Every address inside of executable sections that something other than code names: function symbols, FDE starts, C++
 * landing pads (LSDA call-site tables), addends of relative relocations (also DT_RELR and packed ones), .init_array,
 * the ELF entry. Sorted, unique; may contain more than that, never less. Computed at first use. A damaged .eh_frame or
 * LSDA is an error.
 */
struct kymo_error *kymo_module_entries(struct kymo_module *module, const uint64_t **ret, size_t *n);

/*
 * The code that runs on stacks of Go's, which its functions let grow: all that its compiler made, [low, high) as
 * linked, empty where there is none. `left_ret` gets how many bytes of a stack are below the frame of a function that
 * has looked whether it has to grow.
 */
struct kymo_error *kymo_module_small_stacks(struct kymo_module *module, uint64_t *low_ret, uint64_t *high_ret,
					    uint32_t *left_ret);

/* The word at `vaddr`, in read-only data or a global offset table, as it is when the module is loaded at 0: nothing but
 * relocation writes to it. -ENOENT for other places, and where it is what a resolver returns. */
int kymo_module_constant(struct kymo_module *module, uint64_t vaddr, uint64_t *ret);

/* Where the module keeps what the IFUNC resolver at `resolver` has returned: the vaddr of word number `i` (0 …), which
 * is not bound yet where linking is lazy. -ENOENT: there are no more. */
int kymo_module_bound_word(struct kymo_module *module, uint64_t resolver, size_t i, uint64_t *ret);

/* Restartable sequences that the module declares in __rseq_cs (start, end pairs as linked). */
struct kymo_error *kymo_module_rseq(struct kymo_module *module, const struct kymo_function **ret, size_t *n);

/* A note of the file. Pointers belong to the module. */
struct kymo_note {
	const char *owner; /* "" where it does not end in a NUL */
	uint32_t type;
	const uint8_t *desc; /* not aligned */
	size_t size;         /* of the descriptor */
	uint64_t vaddr;      /* of the descriptor; 0 where it is not loaded */
	uint64_t offset;     /* of the note in the file */
};

/*
 * The notes of all note sections, loaded or not, in the order of the file's sections; where there are no section
 * headers those of the note segments. Computed at first use. BAD_DATA for notes that run out of their section.
 */
struct kymo_error *kymo_module_notes(struct kymo_module *module, const struct kymo_note **ret, size_t *n);

/* "name+0x12", "name" at its start, or "0x…" (as a file offset is written nowhere: this is the vaddr) into `out`; used
 * in messages and reports. */
void kymo_module_describe(struct kymo_module *module, uint64_t vaddr, char *out, size_t size);

/* ---- names of code that has no file ---------------------------------------------------------- */

#define KYMO_PERF_NAME_MAX 200

/* A function as a perf map tells it: the lines "START SIZE NAME", in hex, that compilers within programs write to
 * /tmp/perf-PID.map. */
struct kymo_perf_function {
	uint64_t start, size;
	char name[KYMO_PERF_NAME_MAX]; /* printable; cut at the end of a character */
};

/* One line, without its end. False for what is none. Pure. */
bool kymo_perf_map_parse(const char *line, size_t length, struct kymo_perf_function *ret);

/* The last function in the map open at `fd` (not consumed; nothing in it is trusted) that has `address`. -ENOENT where
 * there is none, -EFBIG beyond a GiB, or as pread() fails. */
int kymo_perf_map_find(int fd, uint64_t address, struct kymo_perf_function *ret);

/* ---- looking names up ------------------------------------------------------------------------ */

/*
 * Whether `text` has one of * ? [, but for what names have of them. Go: "(*" before a type, as in "main.(*T).String",
 * and the "[...]" of "main.Map[...]". C++ and Rust: "operator*", "operator[]", "[abi:cxx11]"; within brackets a "*"
 * behind a type, and every "[".
 */
bool kymo_is_glob(const char *text);

/* The same for fnmatch(), with a backslash before what stands for itself: a fresh string, or NULL when memory is out.
 */
char *kymo_glob_create(const char *text);

/*
 * Symbols whose name matches `pattern` (kymo_is_glob(), or exact), as the file has it, or, where there are none or
 * `pattern` has a "::", as its source in C++ or Rust does: with parameters one function, without these each overload,
 * without template arguments each that is made of the template. Into a fresh array that the caller frees (the pointers
 * belong to the module). One entry per vaddr: of aliases that match the exported one, without leading underscores, the
 * shortest, the first by name. "name@VERSION" selects a version; a plain name with several versions takes the default.
 * 0 matches is success with n = 0.
 */
struct kymo_error *kymo_module_find(struct kymo_module *module, const char *pattern, const struct kymo_symbol ***ret,
				    size_t *n);

/* The up to three function names nearest to `name` (edit distance, at most half of the length; a name that only goes on
 * counts as two; ties by name), joined ", " into `out`; "" where nothing is near. Mangled names are compared, and
 * given, without parameters; with these where nothing else is wrong. */
void kymo_module_nearest(struct kymo_module *module, const char *name, char *out, size_t size);

/*
 * The file meant by a bare name such as "libc", "libc.so.6", "python3", "./app", "/usr/bin/git" when there is no
 * process to look at: paths with a slash as they are; else PATH (executables), else the dynamic linker's cache and
 * default directories
 * ("libc" matches libc.so.6, "libz" libz.so.1). A fresh string. NOT_FOUND names where was looked.
 */
struct kymo_error *kymo_find_file(const char *name, char **ret);

/* The name nearest to `name`, without ".so" and version, among the libraries of the dynamic linker's cache and
 * `program`, into `out`; "" where nothing is near. */
void kymo_nearest_file(const char *name, const char *program, char *out, size_t size);

/*
 * "app.cc is a file of source; …" for a file that a user wrote as "./app:app.cc" or "app.cc", with how a line of it is
 * written. False, and nothing in `out`, where it does not look like a source file.
 */
bool kymo_tell_source_line(const char *file, char *out, size_t size);

/* Whether a mapped file at `path` (soname may be NULL) is what the user calls `name`: equal paths, equal base names, or
 * base name / soname up to ".so", "-2.36.so" or a version ("libc" matches /lib/x86_64-linux-gnu/libc.so.6, "python3"
 * matches /usr/bin/python3.11, "libstdc++" matches libstdc++.so.6). */
bool kymo_name_matches_file(const char *name, const char *path, const char *soname);

#endif
