/* Orders of markers and switches, for qsort() and bsearch(). Private to the room. */
#ifndef KYMO_MARKER_ORDER_H
#define KYMO_MARKER_ORDER_H

/* Orders switches by site; those of the portable form, which have none, by provider and name. */
int marker_by_site(const void *a, const void *b);

/* Order markers by provider, name and location, and switches by provider, name, site and gate. */
int marker_by_name_and_location(const void *a, const void *b);
int marker_by_name_and_site(const void *a, const void *b);

#endif
