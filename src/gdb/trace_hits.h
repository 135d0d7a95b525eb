/* Threads that come to tracepoints: what is collected. In callbacks of engines, on the hub's thread. */
#ifndef KYMO_GDB_TRACE_HITS_H
#define KYMO_GDB_TRACE_HITS_H

#include "gdb/state.h"

/* A thread stands at a breakpoint. If that is a tracepoint's the stub collects for it, which may end the run. False: it
 * is no tracepoint's. */
bool gdb_trace_hit(struct gdb_thread *thread, uint64_t address);

/* A thread has stopped before `event` (0: of a step), maybe after a step that a tracepoint has asked for. */
void gdb_trace_stepped(struct gdb_thread *thread, unsigned int event);

/* What a thread does that goes on: it steps for a tracepoint, or for a client that traces its branches, or it runs. */
enum kymo_action gdb_trace_action(struct gdb_thread *thread);

#endif
