/* Threads in which a recorder that is gone has left a remote call. */
#ifndef KYMO_PROC_HOME_H
#define KYMO_PROC_HOME_H

#include <sys/types.h>

#include "base/error.h"

struct kymo_process;

/* Bring a stopped thread home, its registers read: if it makes a call for a recorder that is gone, let it finish that
 * call and come back to where it was. Other threads are left alone. GONE, BUSY. */
struct kymo_error *kymo_bring_home(struct kymo_process *process, pid_t tid);

#endif
