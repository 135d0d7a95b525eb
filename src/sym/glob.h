/* Globs, and what looks like one in names. */
#ifndef KYMO_SYM_GLOB_H
#define KYMO_SYM_GLOB_H

#include <stdbool.h>

/*
 * Whether `text` has one of * ? [, but for what names have of them. Go: "(*" before a type, as in "main.(*T).String",
 * and the "[...]" of "main.Map[...]". C++ and Rust: "operator*", "operator[]", "[abi:cxx11]"; within brackets a "*"
 * after a type, and every "[".
 */
bool kymo_is_glob(const char *text);

/* The same for fnmatch(), with a backslash before what stands for itself: a fresh string, or NULL when memory is out.
 */
char *kymo_glob_create(const char *text);

#endif
