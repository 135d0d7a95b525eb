/* What the metadata says. Private to the room. */
#ifndef KYMO_RECORD_DESCRIBE_H
#define KYMO_RECORD_DESCRIBE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

struct recording;
struct record_source;
struct target;

/* Command, pid, mode. */
struct kymo_error *recording_describe_target(struct recording *recording);

/* The table of processes: `target` has begun to be what it is, the same program as its `maker`'s (NULL: another), or is
 * no more. */
void recording_note_begin(struct recording *recording, const struct target *target, const struct target *maker);

/* It is not recorded after all: what recording_note_begin() has noted goes. */
void recording_note_refused(struct recording *recording, const struct target *target);
void recording_note_end(struct recording *recording, const struct target *target);

/* The table of threads: `tid` is new, or is about to be gone, and called so; "" is nothing. */
void recording_note_thread(struct recording *recording, const struct target *target, pid_t tid, bool is_new,
			   const char *comm);

/*
 * Names of all threads that live now, or of those that are in the table: new threads of followed processes are told,
 * and would be two threads if they were looked at before. Threads that change it between two looks stay without, and so
 * do those that come and go if no process is followed.
 */
void recording_note_threads(struct recording *recording, bool all);

/* A source has started, or is about to be freed: the metadata will tell whether its threads can be told apart. */
void recording_note_thread_ids(struct recording *recording, const struct record_source *source);

/* (Re)write the metadata, with the events that the probes have by now and the clock as it is known by now. */
struct kymo_error *recording_write_metadata(struct recording *recording);

/* The same, if there are events that the metadata on the disk lack: before their first record is written. */
struct kymo_error *recording_update_metadata(struct recording *recording);

#endif
