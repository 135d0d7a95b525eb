/* Processes that begin to be debugged. A part of gdb.h. */
#ifndef KYMO_GDB_BEGIN_H
#define KYMO_GDB_BEGIN_H

#include <sys/types.h>

#include "base/error.h"

struct kymo_gdb;

/* Have engines on the process of a thread, which runs on until a client comes. `pid_ret` (may be NULL): which that is.
 * BUSY, PERMISSION, GONE; BAD_DATA: a 32-bit program. */
struct kymo_error *kymo_gdb_attach(struct kymo_gdb *gdb, pid_t tid, pid_t *pid_ret);

/* Launch a program, which stands before its first instruction. It is the one that clients run again. NOT_FOUND,
 * PERMISSION, FAILED; BAD_DATA. */
struct kymo_error *kymo_gdb_launch(struct kymo_gdb *gdb, char *const *argv, pid_t *pid_ret);

/* Forget the words of what was launched last. */
void gdb_free_argv(struct kymo_gdb *gdb);

#endif
