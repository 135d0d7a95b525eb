/* Other processes with the same memory. */
#ifndef KYMO_PROC_SHARING_H
#define KYMO_PROC_SHARING_H

#include "base/error.h"

struct kymo_process;

/* BUSY when another process (a child, the parent) shares the memory of this one and does not get memory of its own
 * (exec) within two seconds: it would run on while the threads are stopped. To be asked before the process is stopped.
 */
struct kymo_error *kymo_process_check_alone(struct kymo_process *process);

#endif
