/* The user's words for code whose branches are recorded. The room's front door includes it. */
#ifndef KYMO_BRANCH_SPEC_H
#define KYMO_BRANCH_SPEC_H

#include "base/error.h"

/* What a user wants: "libc:mem*" is a file and a glob of functions, "./app" a file, "all" neither. */
struct kymo_branch_spec {
	char *file, *functions; /* or NULL */
};

/* USAGE quotes `text`, and says what was expected. */
struct kymo_error *kymo_branch_spec_parse(const char *text, struct kymo_branch_spec *ret);
void kymo_branch_spec_deinit(struct kymo_branch_spec *spec);

#endif
