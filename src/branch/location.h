/* Names of addresses, when a recording is over. The room's front door includes it. */
#ifndef KYMO_BRANCH_LOCATION_H
#define KYMO_BRANCH_LOCATION_H

#include <stdint.h>

struct kymo_branches;

/* What stands at an address of a space. Strings are valid until the next call. */
struct kymo_branch_location {
	const char *file;     /* "": of no file */
	const char *function; /* "": nothing names it */
	uint64_t offset;      /* in the function */
	uint64_t linked;      /* the address as linked; of no file, as it is */
	const char *source;   /* "app.c:12", or "" */
};

void kymo_branches_locate(struct kymo_branches *branches, uint32_t space, uint64_t address,
			  struct kymo_branch_location *ret);

#endif
