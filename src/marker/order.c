#include "marker/order.h"

#include <string.h>

#include "marker/marker.h"

static int compare_numbers(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static int compare_names(const char *provider, const char *other_provider, const char *name, const char *other_name)
{
	int order = strcmp(provider, other_provider);

	return order ? order : strcmp(name, other_name);
}

int marker_by_name_and_location(const void *a, const void *b)
{
	const struct kymo_marker *x = a, *y = b;
	int order = compare_names(x->provider, y->provider, x->name, y->name);

	return order ? order : compare_numbers(x->location, y->location);
}

int marker_by_site(const void *a, const void *b)
{
	const struct kymo_marker_switch *x = a, *y = b;

	if (x->site || y->site)
		return compare_numbers(x->site, y->site);
	return compare_names(x->provider, y->provider, x->name, y->name);
}

int marker_by_name_and_site(const void *a, const void *b)
{
	const struct kymo_marker_switch *x = a, *y = b;
	int order = compare_names(x->provider, y->provider, x->name, y->name);

	if (!order)
		order = compare_numbers(x->site, y->site);
	return order ? order : compare_numbers(x->gate, y->gate);
}
