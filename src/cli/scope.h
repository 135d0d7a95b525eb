/* The names of the source at a location. */
#ifndef KYMO_CLI_SCOPE_H
#define KYMO_CLI_SCOPE_H

#include "probe/spec/spec.h"
#include "probe/spec/spec_scope.h"

struct kymo_module;

/* A location whose names are known, and what is open for that. */
struct cli_scope {
	struct kymo_module *module; /* of cli_module() */
	struct kymo_error *error;   /* why there is no debug information */
	struct kymo_spec_scope scope;
};

/* The names that are visible where the spec is, which is in `path`. `ret` stays where it is until it is closed. */
struct kymo_error *cli_scope_open(const struct kymo_spec *spec, const char *path, struct cli_scope *ret);
void cli_scope_close(struct cli_scope *scope);

#endif
