/* Types in the metadata. Private to the room. */
#ifndef KYMO_CTF_WRITE_TYPE_H
#define KYMO_CTF_WRITE_TYPE_H

#include <stdio.h>

#include "base/naming.h"
#include "base/shape.h"
#include "wire/types.h"

/* A string with its quotes. */
void kymo_tsdl_string(FILE *out, const char *text);

/* "u32", "enum : u32 { "A" = 0 }" ... */
void kymo_tsdl_type(FILE *out, enum kymo_type type, const struct kymo_naming *naming);

/* "struct { ... }", of a STRUCT or UNION, or of what is left out of one (tsdl.h). */
void kymo_tsdl_shape(FILE *out, const struct kymo_shape *shape);

#endif
