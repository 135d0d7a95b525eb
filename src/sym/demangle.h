/*
 * Names of C++ and Rust as their sources have them. Mangled names come from files and traces and are not trusted: what
 * is longer than KYMO_MANGLED_MAX, nests too deeply, or grows beyond KYMO_DEMANGLED_MAX stays as it is.
 */
#ifndef KYMO_SYM_DEMANGLE_H
#define KYMO_SYM_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "sym/names.h"
#include "sym/pattern.h"

#define KYMO_MANGLED_MAX 1024   /* bytes; the C++ runtime's demangler takes no more */
#define KYMO_DEMANGLED_MAX 4096 /* bytes, with the NUL */

/*
 * The name in its source, with parameters and without the type of what it returns: "shop::Cart::add(int)". The hashes
 * of Rust are left out. A suffix of the compiler is "[clone .cold]", a version stays after the name. False where
 * `name` is no mangled name; `out` is not touched then.
 */
bool kymo_demangle(const char *name, char out[KYMO_DEMANGLED_MAX]);

/* Whether a name begins as mangled ones do: then kymo_demangle() is worth a call. */
bool kymo_is_mangled(const char *name);

/*
 * A name, or a glob, as a user writes it. Without parameters it means all overloads, without template arguments all
 * that are made of the template; blanks do not matter. "shop::Cart::add", "shop::Cart::add(int)", "shop::*".
 */
struct kymo_pattern;

/* From now on kymo_shown() leaves names as they are. */
void kymo_show_raw_names(void);

/* `text` for a user, with each mangled name in it demangled: "app:_ZN1a1fEi%return" is "app:a::f(int)%return". A fresh
 * string, or NULL when memory is out. */
char *kymo_shown(const char *text);

/* The same, with the hashes of Rust's functions: "app:r::Cart<T>::add::h0123456789abcdef". All that are made of one
 * generic function have the same name without them. */
char *kymo_shown_apart(const char *text);

/* Write what kymo_shown() gives, safe on a terminal. */
void kymo_print_shown(FILE *out, const char *text);

#endif
