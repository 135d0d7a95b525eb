/*
 * What specs mean, what probes are called, and what is said of those that can't be: the same in a process and without
 * one. Private to the room.
 */
#ifndef KYMO_PROBE_CODE_WORDS_H
#define KYMO_PROBE_CODE_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "probe/code/events.h"
#include "probe/spec/spec.h"
#include "sym/module.h"
#include "sym/sym.h"

/* Bytes of a location's text, with the NUL: mangled names that kymo can demangle are whole. */
#define PROBE_LOCATION_MAX 1400

/* Why an IFUNC has no location: its resolver does not say what it chooses from (printf, with the reason); an offset is
 * in one of several (with their number, the file, the name). */
#define PROBE_IS_IFUNC_NOT_KNOWN \
	"it is an IFUNC, and its resolver does not tell which functions it chooses from (%s); name the chosen one " \
	"or its file offset"
#define PROBE_IS_IFUNC_OF_MANY \
	"it is an IFUNC, and the offset may be in any of %zu functions; 'kymo explain %s %s' lists them, " \
	"name one"

/* What of an IFUNC's functions is others' too (with the spec, and their names). */
#define PROBE_IS_SHARED "%s also records the calls of %s, which may lead to the same functions"

enum kymo_event_kind probe_spec_kind(const struct kymo_spec *spec);

/* Whether it names one location, which must not be left out; else it may stand for several. */
bool probe_spec_is_exact(const struct kymo_spec *spec);

/* The location of a spec without a symbol. NOT_FOUND where the file has nothing there that is loaded. */
struct kymo_error *probe_spec_offset(const struct kymo_spec *spec, struct kymo_module *module, uint64_t *vaddr_ret);

/* What the location of an offset in the file is called: the line of source that the user wrote, or as
 * kymo_module_describe() has it. */
void probe_describe(const struct kymo_spec *spec, struct kymo_module *module, uint64_t vaddr, char *out, size_t size);

/* The build-id in hex, "" where there is none. */
#define PROBE_BUILD_ID_SIZE (2 * KYMO_BUILD_ID_MAX + 1)
void probe_build_id(const struct kymo_module *module, char out[PROBE_BUILD_ID_SIZE]);

/*
 * "libc:malloc": the file as the user calls it (its last part), then the location; of an address the location alone. A
 * name that the user gave is kept, with the location where it stands for several. A fresh string, or NULL.
 */
char *probe_event_name(const struct kymo_spec *spec, const char *location, bool is_one_of_many);

/* NOT_FOUND unless the debug information that gave the spec its names is of the file with `build_id`. */
struct kymo_error *probe_check_names(const struct kymo_spec *spec, const char *build_id);

/* What the arguments of a spec are in an event of it; the names stay the spec's. */
void probe_event_arguments(const struct kymo_spec *spec, struct kymo_probe_event *event);

/* "malloc", "malloc+0x4": the location that `spec` means by a symbol. */
void probe_location_name(const struct kymo_spec *spec, const char *symbol, char *out, size_t size);

/* Whether `found` are several functions that the one name of `spec` means: overloads, and what is made of one template.
 */
bool probe_is_overloaded(const struct kymo_spec *spec, const struct kymo_symbol *const *found, size_t n);

/* "shop::Cart::add means 2 functions, and all are recorded: …" */
void probe_overloads_text(const struct kymo_spec *spec, const struct kymo_symbol *const *found, size_t n, char *out,
			  size_t size);

/* USAGE where an offset of `spec` may be in several functions. */
struct kymo_error *probe_check_overloads(const struct kymo_spec *spec, const struct kymo_symbol *const *found,
					 size_t n);

/* Bytes of a reason that a warning of several locations shows: of a long one, which is a whole plan, what its first
 * tactic says. */
size_t probe_reason_shown(const char *reason);

#endif
