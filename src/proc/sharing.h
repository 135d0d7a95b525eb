/* Other processes with the same memory. */
#ifndef KYMO_PROC_SHARING_H
#define KYMO_PROC_SHARING_H

#include "base/error.h"

struct kymo_process;

/* Check, before the process is stopped, that no other process would run on in its memory. BUSY: another process (a
 * child, the parent) shares the memory, and does not get memory of its own (exec) within two seconds. */
struct kymo_error *kymo_process_check_alone(struct kymo_process *process);

#endif
