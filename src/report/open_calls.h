/* Calls of a history that have not returned at its end: the stack of the thread, as far back as the history goes. Pure.
 */
#ifndef KYMO_REPORT_OPEN_CALLS_H
#define KYMO_REPORT_OPEN_CALLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

/* A branch: addresses, and enum kymo_ctf_branch_kind. */
struct passage {
	uint64_t from, to;
	uint8_t kind;
	bool is_entry; /* `to` is where a function begins */
};

struct open_calls {
	KYMO_VEC(size_t) items; /* numbers of passages that are calls, or begin a signal's handler; the oldest first */
};

/*
 * A return, or an entry into recorded code, ends the newest call that it comes back from, and all that are newer. An
 * entry where a function begins that comes back from none is a call by other code. A return that comes back from none
 * ends what is newer than the last such entry, or than the last signal's handler. Where there is neither, it comes back
 * from a call before the history, and all end. False when memory is out.
 */
bool kymo_open_calls_find(const struct passage *passages, size_t n, struct open_calls *ret);

#endif
