/*
 * A module with markers: a shared object, as a third party's library would be. It links nothing for them.
 */
#include <kymo/marker.h>

#include "marked.h"

static const char *const words[] = { "zero", "one", "many" };

void marked_work(int n)
{
	MARK(subsys_begin, "n=%d", n);
	for (int i = 0; i < n; i++)
		MARK(subsys_event, "%d %s", i, words[i < 2 ? i : 2]);
	MARK(subsys_end, MARK_NOARGS);
}
