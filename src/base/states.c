#include "base/states.h"

#include <stdio.h>
#include <stdlib.h>

bool kymo_state_may_follow(const struct kymo_state_row *rows, size_t n, unsigned int from, unsigned int to)
{
	return from < n && to < n && rows[from].next & KYMO_STATE(to);
}

void kymo_state_fail(const char *noun, const char *from, const char *to)
{
	fprintf(stderr, "kymo: %s: '%s' must not follow '%s'\n", noun, to, from);
	abort();
}
