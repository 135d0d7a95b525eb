/* Markers that begin and end something, by the last words of their names. */
#ifndef KYMO_AGGR_MARKER_PAIRS_H
#define KYMO_AGGR_MARKER_PAIRS_H

#include <stddef.h>

/*
 * The name of the event that ends what `name` begins, and the next one that may with the next `i`: "x__done" for
 * "x__start", "p:function-return" for "p:function-entry". A fresh string; NULL where there is none any more, or memory
 * is out.
 */
char *kymo_marker_end(const char *name, size_t i);

/* The other way round: "x__start", then "x__begin" for "x__done". */
char *kymo_marker_begin(const char *name, size_t i);

#endif
