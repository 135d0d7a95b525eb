/*
 * What the recorder is told of markers: by record.c, or by record_none.c where this machine cannot record in place. The
 * lock is held. Private to the library.
 */
#ifndef KYMO_LIB_RECORD_H
#define KYMO_LIB_RECORD_H

#include <stdbool.h>

struct lib_marker;

/*
 * The module of this marker has come, or is read anew: its slots.rings may be there already, and end with
 * kymo_lib_record_end() where it is not to be recorded any more. Where it is: kymo_lib_record() or
 * kymo_lib_add_probe(); the caller updates.
 */
void kymo_record_marker_comes(struct lib_marker *marker);

/*
 * It goes, or has gone: kymo_lib_record_end() may be called and knows whether its memory may be touched; else the
 * module's memory must not be. marker->record is for the recorder to free (by kymo_lib_retire() where readers use it).
 */
void kymo_record_marker_goes(struct lib_marker *marker);

/*
 * kymo_marker_set_probe() with KYMO_MARKER_INLINE: one more that wants this marker to be recorded in place. The caller
 * updates. -ENODEV where it can't be, or nothing is being recorded; -ENOMEM.
 */
int kymo_record_add(struct lib_marker *marker);

/* One less. Nothing where recording has ended meanwhile. */
void kymo_record_remove(struct lib_marker *marker);

bool kymo_record_is_running(void);

/* In the child of a fork(), whose only thread this is: the writer is not there, and nothing is recorded. The lock is
 * held. */
void kymo_record_forked(void);

#endif
