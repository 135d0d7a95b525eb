/* Processes that begin to be debugged. A part of gdb.h. */
#ifndef KYMO_GDB_BEGIN_H
#define KYMO_GDB_BEGIN_H

#include <sys/types.h>

#include "base/error.h"

struct kymo_gdb;

/* Have engines on a process, which runs on until a client comes. BUSY, PERMISSION, GONE. */
struct kymo_error *kymo_gdb_attach(struct kymo_gdb *gdb, pid_t pid);

/* Launch a program, which stands before its first instruction. NOT_FOUND, PERMISSION, FAILED. */
struct kymo_error *kymo_gdb_launch(struct kymo_gdb *gdb, char *const *argv);

#endif
