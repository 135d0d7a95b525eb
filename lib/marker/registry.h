/*
 * The modules that are known, and their markers. Private to the library; the lock is held for all of it.
 */
#ifndef KYMO_LIB_REGISTRY_H
#define KYMO_LIB_REGISTRY_H

#include "markers.h"

/* Modules whose notes are damaged are not among them. */
struct lib_registry {
	struct lib_module **modules;
	size_t n_modules;
};
extern struct lib_registry kymo_lib_registry;

/* All markers of all modules that may be touched: kymo_lib_each_marker(marker) { ... } */
struct lib_marker *kymo_lib_first_marker(void);
struct lib_marker *kymo_lib_next_marker(struct lib_marker *marker);
#define kymo_lib_each_marker(marker) \
	for (struct lib_marker *marker = kymo_lib_first_marker(); marker; marker = kymo_lib_next_marker(marker))

/* The entries of one name: struct lib_named at = { .name = name }, and kymo_lib_next_named(&at) until it is NULL. */
struct lib_named {
	const char *name;
	size_t module, index;
	bool is_inside; /* `index` is where to go on in the module */
};
struct lib_marker *kymo_lib_next_named(struct lib_named *at);

/* Where the module is among those of the registry. */
size_t kymo_lib_index_of(const struct lib_module *module);

#endif
