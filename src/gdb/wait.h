/* Waiting, on the main thread, for what callbacks tell by the eventfd. */
#ifndef KYMO_GDB_WAIT_H
#define KYMO_GDB_WAIT_H

#include "gdb/state.h"

/* What is looked for, on the hub's thread. */
struct gdb_look {
	struct kymo_gdb *gdb;
	pid_t pid; /* 0: all processes */
	bool is_true;
};

/* All threads of all processes are stopped; a thread of the process does; the process has begun its program, or ended;
 * it has ended. */
void gdb_look_whether_stopped(void *look);
void gdb_look_whether_any_stands(void *look);
void gdb_look_whether_started(void *look);
void gdb_look_whether_gone(void *look);

/* False: it is not so within `ms`, or `fd` (-1: none) can be read. */
bool gdb_wait_until(struct kymo_gdb *gdb, pid_t pid, void (*is_it)(void *look), int ms, int fd);

/* Wait until all threads are stopped. */
bool gdb_wait_for_stop(struct kymo_gdb *gdb, int ms, int fd);

/* The client has gone, or the stub is to end: what takes long is of no use any more. */
bool gdb_is_called_off(const struct kymo_gdb *gdb);

#endif
