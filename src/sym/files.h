/* Files by bare names. */
#ifndef KYMO_SYM_FILES_H
#define KYMO_SYM_FILES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct stat;

/* A file, whatever its path: as stat() tells, or as the maps of a process do. */
struct kymo_file_id {
	uint32_t major, minor;
	uint64_t inode; /* 0: none */
};

/*
 * The file meant by a bare name such as "libc", "libc.so.6", "python3", "./app", "/usr/bin/git" when there is no
 * process to look at: paths with a slash as they are; else PATH (executables), else the dynamic linker's cache and
 * default directories
 * ("libc" matches libc.so.6, "libz" libz.so.1). A fresh string. NOT_FOUND names where was looked.
 */
struct kymo_error *kymo_find_file(const char *name, char **ret);

/* The regular file that a name leads to from here, found as above, links followed: a name may be a link to the file
 * that is mapped, as /usr/bin/redis-server is one to redis-check-rdb. None where there is no such file. */
struct kymo_file_id kymo_identify_file(const char *name);

struct kymo_file_id kymo_file_id_of(const struct stat *st);

/* False where both are none. */
bool kymo_is_same_file(struct kymo_file_id a, struct kymo_file_id b);

/* Whether a mapped file at `path` (soname may be NULL) is what the user calls `name`: equal paths, equal base names, or
 * base name / soname up to ".so", "-2.36.so" or a version ("libc" matches /lib/x86_64-linux-gnu/libc.so.6, "python3"
 * matches /usr/bin/python3.11, "libstdc++" matches libstdc++.so.6). */
bool kymo_name_matches_file(const char *name, const char *path, const char *soname);

/* ---- private to the room --------------------------------------------------------------------- */

/* `take` is given the name and path of each library in the dynamic linker's cache, until it says false; so does this
 * then. */
bool sym_each_library(bool (*take)(void *data, const char *file, const char *path), void *data_of_take);

#endif
