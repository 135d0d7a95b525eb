/* Markers of a process, which are its static tracepoints: SDT probes, and kymo's own. Files of the process are read, so
 * not on the hub's thread. */
#ifndef KYMO_GDB_MARKERS_H
#define KYMO_GDB_MARKERS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/vec.h"

struct gdb_marker {
	uint64_t address;   /* of a NOP: where a tracepoint goes */
	uint64_t semaphore; /* of a 16-bit counter that turns the marker on, or 0 */
	char *id;           /* "PROVIDER:NAME"; several markers may have it */
	char *extra;        /* its format, or its arguments with their types */
};

struct gdb_markers {
	KYMO_VEC(struct gdb_marker) items;
	pid_t pid;   /* whose they are; 0: they were not read */
	size_t next; /* of qTsSTM */
};

/* Those of all files that the process has mapped as code. A file that cannot be read, or is damaged, has none; of a
 * process there are 65,536 at most. */
void gdb_markers_read(pid_t pid, struct gdb_markers *ret);

/* Read those anew that are mapped where this address is: other code may be there now. */
void gdb_markers_read_at(struct gdb_markers *markers, pid_t pid, uint64_t address);

/* NULL: there is none at that address. */
const struct gdb_marker *gdb_marker_at(const struct gdb_markers *markers, uint64_t address);

void gdb_markers_deinit(struct gdb_markers *markers);

#endif
