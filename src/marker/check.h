/* Checks of what notes say, and the sentence for a damaged one. Private to the room. */
#ifndef KYMO_MARKER_CHECK_H
#define KYMO_MARKER_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_module;
struct kymo_note;
struct marker_reader;

/* BAD_DATA: "PATH: marker 'NAME' (note at offset 0x…): FORMAT..."; `name` may be NULL. */
struct kymo_error *marker_bad(const struct marker_reader *reader, const struct kymo_note *note, const char *name,
			      const char *format, ...) __attribute__((format(printf, 4, 5), returns_nonnull));

/* Whether `size` bytes at `vaddr` can be written by the program, once it runs. */
bool marker_is_writable(const struct kymo_module *module, uint64_t vaddr, size_t size);

#endif
