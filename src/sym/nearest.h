/* What a user may have meant by a name. */
#ifndef KYMO_SYM_NEAREST_H
#define KYMO_SYM_NEAREST_H

#include <stdbool.h>
#include <stddef.h>

/* The name nearest to `name` into `out`: among `program`, the libraries of the dynamic linker's cache, without ".so"
 * and version, and the programs of PATH. Of a path it is one of the same directory. "" where nothing is near. */
void kymo_nearest_file(const char *name, const char *program, char *out, size_t size);

/*
 * "app.cc is a file of source; …" for a file that a user wrote as "./app:app.cc" or "app.cc", with how a line of it is
 * written. False, and nothing in `out`, where it does not look like a source file.
 */
bool kymo_tell_source_line(const char *file, char *out, size_t size);

#endif
