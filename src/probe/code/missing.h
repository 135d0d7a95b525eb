/* Functions that a file does not have. */
#ifndef KYMO_PROBE_CODE_MISSING_H
#define KYMO_PROBE_CODE_MISSING_H

#include <stddef.h>

#include "base/error.h"

struct kymo_module;

/* What may be meant by `name`, which is no function of the module: the end of a sentence that begins so, as in "; the
 * nearest names are ..."; or "". */
void kymo_missing_function(struct kymo_module *module, const char *name, char *out, size_t size);

/* NOT_FOUND, with what may be meant; `file` is what the user calls it. */
struct kymo_error *kymo_no_such_function(struct kymo_module *module, const char *file, const char *name);

#endif
