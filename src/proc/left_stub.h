/* The start stub that a recorder has left which was killed while a program began. */
#ifndef KYMO_PROC_LEFT_STUB_H
#define KYMO_PROC_LEFT_STUB_H

#include <stdbool.h>

#include "base/error.h"

struct kymo_process;

/* Take it out, if there is one; `found_ret`. The process is stopped for it, and runs then. Text is written only where
 * it becomes what the file has. A process that another tracer has is left alone. Errors as of kymo_process_stop(), and
 * as of kymo_open_mapped(), BUSY: it is there still. */
struct kymo_error *kymo_start_clear(struct kymo_process *process, bool *found_ret);

#endif
