/* The functions that the source has at an address. */
#ifndef KYMO_SYM_DEBUG_FRAMES_H
#define KYMO_SYM_DEBUG_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kymo_debug;

#define KYMO_SOURCE_FRAMES_MAX 64

struct kymo_source_frame {
	const char *function; /* as symbol tables would have it (mangled), else with namespaces; NULL: it has no name */
	const char *file;     /* as the line table has it; NULL: the line is not known */
	unsigned int line;
	bool is_inlined;
};

/*
 * The functions that have the address: those inlined there, the innermost first, each with the line that it is at; then
 * the function that they are inlined into. That one is alone at its first address: it is called there, they are not
 * yet. How many; 0: nothing is known, or the file has made kymo look at too much. An address after a call is at the
 * next line: a return address is looked up less one.
 */
size_t kymo_debug_frames(struct kymo_debug *debug, uint64_t vaddr,
			 struct kymo_source_frame frames[KYMO_SOURCE_FRAMES_MAX]);

#endif
