/*
 * What a thread calls that passes a marker. No lock is held. Private to the library.
 */
#ifndef KYMO_LIB_DISPATCH_H
#define KYMO_LIB_DISPATCH_H

#include "markers.h"

/*
 * What slots.call is set to: a marker's probes are called with the arguments of its frame (call_x86_64.S), or with its
 * own (elsewhere). slots.owner is the struct lib_marker.
 */
void kymo_lib_call(void);

/* A function as slots.call and rings.slow must be, which returns at once. */
void kymo_lib_nothing(void);

/* What the marker tells of itself; the counts are those of this moment. */
void kymo_lib_describe(const struct lib_marker *marker, struct kymo_marker_info *ret);

#endif
