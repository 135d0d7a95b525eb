/* Stopping a process whose probes are about to change. Private to the room. */
#ifndef KYMO_PROBE_INSTALL_STOP_H
#define KYMO_PROBE_INSTALL_STOP_H

#include "base/error.h"

struct kymo_process;

/* Stop it. Waits if another tracer is there for a moment, such as another kymo that comes or goes. */
struct kymo_error *probes_stop_patiently(struct kymo_process *process);

#endif
