/*
 * A shared object with markers, loaded and unloaded by others. -DFORMAT gives its marker another format, under the same
 * name.
 */
#include <kymo/marker.h>

#ifndef FORMAT
#define FORMAT "value=%d"
#endif

__attribute__((visibility("default"))) void module_work(int value);
__attribute__((visibility("default"))) void module_work(int value)
{
	MARK(module_event, FORMAT, value);
	MARK(module_other, "%s", "other");
}

/* The first thing that happens in it, before it tells that it has come, and the last. */
__attribute__((constructor(101))) static void first(void)
{
	MARK(module_event, FORMAT, -1);
}

__attribute__((destructor(101))) static void last(void)
{
	MARK(module_event, FORMAT, -2);
}
