/* Structures that were recorded as a whole, as reports show them. */
#ifndef KYMO_REPORT_STRUCTURES_H
#define KYMO_REPORT_STRUCTURES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/shape.h"

/*
 * Write the value at `bytes`, which has the shape's size, as gdb prints it with "set print null-stop on": {fd = 3, name
 * = "in", at = {x = 1, y = 2}}. Pointers are numbers, bytes without a meaning hexadecimal ones. Members that were left
 * out are "...".
 */
void kymo_structure_write(FILE *out, const struct kymo_shape *shape, const uint8_t *bytes, bool unicode);

/* The same as JSON: objects, lists, numbers, text. Null is what was left out. */
void kymo_structure_write_json(FILE *out, const struct kymo_shape *shape, const uint8_t *bytes);

/*
 * Names of values in it, as members of a JSON object: "conn.state": "OPEN". `path` is what it is called. `separator` is
 * written before the first one; returns whether there is any.
 */
bool kymo_structure_write_names(FILE *out, const char *separator, const char *path, const struct kymo_shape *shape,
				const uint8_t *bytes);

#endif
