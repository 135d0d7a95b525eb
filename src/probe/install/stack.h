/* How far the initial thread's stack may grow. */
#ifndef KYMO_PROBE_INSTALL_STACK_H
#define KYMO_PROBE_INSTALL_STACK_H

#include <stdint.h>

struct kymo_probes;

/* Count as lost what pads have not recorded for want of stack, and see where the initial thread's stack ends now.
 * Twenty times a second, and before the end. */
void kymo_probes_look_at_stack(struct kymo_probes *probes);

/* How far down the initial thread's stack may grow now; 0: that is not known. */
uint64_t probes_stack_end(const struct kymo_probes *probes);

#endif
