/* Lines of source in specs: "./app:app.c:120", "./app:main:3". */
#ifndef KYMO_CLI_SPEC_SOURCE_H
#define KYMO_CLI_SPEC_SOURCE_H

#include "base/vec.h"
#include "probe/spec/spec.h"

struct cli_specs {
	KYMO_VEC(struct kymo_spec) items;
};

/* The specs that `text` means: of a line, one for each of its addresses; else the one that `parse` makes of it. A line
 * without code is told to be another. USAGE, NOT_FOUND. */
struct kymo_error *cli_specs_parse(const char *text, struct kymo_error *(*parse)(const char *, struct kymo_spec *),
				   struct cli_specs *ret);
void cli_specs_deinit(struct cli_specs *specs);

#endif
