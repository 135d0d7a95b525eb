/*
 * Processes from outside: stopping them, system calls executed in their name, launching and following them, all through
 * a hub (docs/internals/engines.md).
 *
 * A `struct kymo_process` is used from one thread, the one that created it (ptrace knows its tracer by thread).
 * Destroying it detaches every thread, in the state in which the process had them.
 */
#ifndef KYMO_PROC_PROC_H
#define KYMO_PROC_PROC_H

#include "hub/hub.h"
#include "hub/launch.h"
#include "hub/remote/door.h"
#include "hub/thread/seize.h"
#include "proc/call.h"
#include "proc/launch.h"
#include "proc/left_stub.h"
#include "proc/linker.h"
#include "proc/memory.h"
#include "proc/nap.h"
#include "proc/process.h"
#include "proc/reach.h"
#include "proc/sharing.h"
#include "proc/startup.h"
#include "proc/stop.h"
#include "proc/thread.h"
#include "proc/tree.h"
#include "procfs/info.h"
#include "procfs/maps.h"
#include "procfs/threads.h"

#endif
