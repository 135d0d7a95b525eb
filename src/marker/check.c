/* What all readers of notes check, and how they say what is wrong. */
#include "marker/check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "marker/reader.h"
#include "sym/module.h"
#include "sym/notes.h"
#include "sym/sym.h"

struct kymo_error *marker_bad(const struct marker_reader *reader, const struct kymo_note *note, const char *name,
			      const char *format, ...)
{
	const char *path = kymo_module_path(reader->module);
	kymo_cleanup_free char *what = NULL;
	va_list args;

	va_start(args, format);
	what = kymo_format(format, args);
	va_end(args);
	if (!what)
		return &kymo_error_no_memory;
	if (!name)
		return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s: a marker (note at offset 0x%llx): %s", path,
					 (unsigned long long)note->offset, what);
	return kymo_error_create(KYMO_ERROR_BAD_DATA, "%s: marker '%s' (note at offset 0x%llx): %s", path, name,
				 (unsigned long long)note->offset, what);
}

bool marker_is_writable(const struct kymo_module *module, uint64_t vaddr, size_t size)
{
	const struct kymo_segment *segment = kymo_module_segment_at(module, vaddr);

	return segment && segment->writable && size <= segment->memory_size - (vaddr - segment->vaddr);
}
