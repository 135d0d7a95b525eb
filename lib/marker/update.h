/*
 * What slots and gates say, and turning markers on and off. Private to the library; the lock is held for all of it.
 */
#ifndef KYMO_LIB_UPDATE_H
#define KYMO_LIB_UPDATE_H

#include "markers.h"

/*
 * Let all locations of the marker record into `rings`, the first as event `event_id`, the next as the one after it,
 * from kymo_lib_update() on. Compiled code reads slots.rings more than once, and may have been interrupted in between:
 * neither `rings` nor the memory of rings that it names may ever be freed, changed, or unmapped. Ids are not used again
 * for something else. -ENODEV where the marker has no location that can.
 */
int kymo_lib_record(struct lib_marker *marker, const struct kymo_marker_rings *rings, uint64_t event_id);

/*
 * End that: `idle` are rings with the same rseq_offset and tid_offset, n_cpus 0, and kymo_lib_nothing() as `slow`. A
 * thread may finish a record after kymo_lib_leave(): it is not a reader.
 */
void kymo_lib_record_end(struct lib_marker *marker, const struct kymo_marker_rings *idle);

/* The module of a new marker may have been known before, and forgotten: what is left in it is this marker's now. */
void kymo_lib_inherit(struct lib_marker *marker);

/* Slots and gates of a marker whose module goes and can still be touched: nothing is called any more. */
void kymo_lib_silence(struct lib_marker *marker);

/* Look at this marker with the next update. Connections and recordings do so. */
void kymo_lib_changed(struct lib_marker *marker);

/* Never look at the markers of this module again. */
void kymo_lib_unchanged(const struct lib_module *module);

/*
 * Turn on all changed markers that have probes or are recorded, and off those that are not: one batch, a few
 * milliseconds at the most. With `all` it is all or nothing: where one site can't be turned on all are as before, and
 * the caller undoes its changes; without, what can be done is. Turning off always succeeds: a site that can't be
 * changed runs through its cold block for nothing.
 *
 *	-EPERM, -EACCES, -EIO, -EBUSY	see toggle.h
 *	-ENOMEM
 */
int kymo_lib_update(bool all);

#endif
