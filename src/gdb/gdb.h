/*
 * The debugger stub: gdb's remote serial protocol on one side, engines of a hub on the other. docs/internals/gdb.md.
 *
 * The front door of the room. A stub is used from one thread. Nothing here prints or ends the process.
 */
#ifndef KYMO_GDB_GDB_H
#define KYMO_GDB_GDB_H

#include "gdb/begin.h"
#include "gdb/listen.h"
#include "gdb/serve.h"

#endif
