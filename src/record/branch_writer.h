/* Histories of branches, as records. Private to the room. */
#ifndef KYMO_RECORD_BRANCH_WRITER_H
#define KYMO_RECORD_BRANCH_WRITER_H

#include "base/error.h"

struct kymo_branches;
struct kymo_events;
struct recording;

/* Add their events, which are the first ones. */
struct kymo_error *branch_writer_describe(struct kymo_events *events);

/* Write all that a recording has: locations, threads, and branches in the order of time. */
struct kymo_error *branch_writer_write(struct recording *recording, struct kymo_branches *branches);

#endif
