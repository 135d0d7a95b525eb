/* The state while a module's markers are read. Private to the room. */
#ifndef KYMO_MARKER_READER_H
#define KYMO_MARKER_READER_H

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "marker/marker.h"

struct kymo_module;
struct marker_strings;

#define MARKERS_MAX (1u << 17) /* of one module; notes of either kind */
#define MARKER_NAME_SIZE 256   /* of a name or provider, with its NUL */

struct marker_reader {
	struct kymo_module *module;
	struct marker_strings *strings;
	KYMO_VEC(struct kymo_marker) markers;
	KYMO_VEC(struct kymo_marker_switch) switches;
	size_t n_notes;
	/* The strings that were copied last: most notes of a file name the same ones. */
	struct {
		uint64_t vaddr;
		const char *copy;
	} last[5];
};

#endif
