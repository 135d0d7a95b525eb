/*
 * A shared object with a probe and what the probe needs: unmapped, either would be missed at once.
 */
#include <kymo/marker_probe.h>

#include <stdatomic.h>

__attribute__((visibility("default"))) atomic_ulong object_calls;
static const int table[64] = { 1, 2, 3, 4, 5, 6, 7, 8 };

__attribute__((visibility("default"))) kymo_marker_probe object_probe;

void object_probe(const struct kymo_marker_info *marker, void *data, va_list arguments)
{
	unsigned int value = va_arg(arguments, unsigned int);

	atomic_fetch_add(&object_calls, (unsigned long)(table[value % 8] > 0));
}
