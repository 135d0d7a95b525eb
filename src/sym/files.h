/* Files by bare names. */
#ifndef KYMO_SYM_FILES_H
#define KYMO_SYM_FILES_H

#include <stdbool.h>

#include "base/error.h"

/*
 * The file meant by a bare name such as "libc", "libc.so.6", "python3", "./app", "/usr/bin/git" when there is no
 * process to look at: paths with a slash as they are; else PATH (executables), else the dynamic linker's cache and
 * default directories
 * ("libc" matches libc.so.6, "libz" libz.so.1). A fresh string. NOT_FOUND names where was looked.
 */
struct kymo_error *kymo_find_file(const char *name, char **ret);

/* Whether a mapped file at `path` (soname may be NULL) is what the user calls `name`: equal paths, equal base names, or
 * base name / soname up to ".so", "-2.36.so" or a version ("libc" matches /lib/x86_64-linux-gnu/libc.so.6, "python3"
 * matches /usr/bin/python3.11, "libstdc++" matches libstdc++.so.6). */
bool kymo_name_matches_file(const char *name, const char *path, const char *soname);

/* ---- private to the room --------------------------------------------------------------------- */

/* `take` is given the name and path of each library in the dynamic linker's cache, until it says false; so does this
 * then. */
bool sym_each_library(bool (*take)(void *data, const char *file, const char *path), void *data_of_take);

#endif
