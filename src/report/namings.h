/* Values by the names of an enumeration, and characters, as reports show them. */
#ifndef KYMO_REPORT_NAMINGS_H
#define KYMO_REPORT_NAMINGS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/naming.h"
#include "ctf/ctf.h"

/* "BUSY", "READ | WRITE", "true", "'a'", safe: a fresh string. NULL where the value is shown as a number, or memory is
 * out. */
char *kymo_naming_label(const struct kymo_naming *naming, uint64_t value, bool unicode);

/* Write that. False: there is none. */
bool kymo_naming_write(FILE *out, const struct kymo_naming *naming, uint64_t value, bool unicode);

/* Write the name as a string of JSON, after `before`. False: there is none, and nothing is written. Characters have
 * none. */
bool kymo_naming_write_json(FILE *out, const char *before, const struct kymo_naming *naming, uint64_t value);

/* The name of a function or probe, as the source has it, where value `i` of a row of a table is one; a fresh string.
 * NULL: it is none, or memory is out. */
char *kymo_naming_of_row(const struct kymo_ctf_record *record, uint32_t i);

#endif
