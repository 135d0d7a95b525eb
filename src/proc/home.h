/* Threads in which a recorder that is gone has left a remote call. */
#ifndef KYMO_PROC_HOME_H
#define KYMO_PROC_HOME_H

#include <sys/types.h>

#include "base/error.h"

struct kymo_process;

/* Let a stopped thread, its registers read, that makes a call for a recorder which is gone finish that and come back to
 * where it was. Others are left alone. GONE, BUSY. */
struct kymo_error *kymo_bring_home(struct kymo_process *process, pid_t tid);

#endif
