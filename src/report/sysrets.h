/* Which system call a return is of: all share one event. */
#ifndef KYMO_REPORT_SYSRETS_H
#define KYMO_REPORT_SYSRETS_H

#include <stdbool.h>
#include <stdint.h>

#include "aggr/stacks.h"
#include "ctf/ctf.h"
#include "report/functions.h"

/* The system call that has come back, on the stack that it was made on, which is the present one from then on. False
 * where none is open that can have come back so. */
bool kymo_sysret_find(const struct functions *functions, struct stack *stack, const struct role *role,
		      const struct kymo_ctf_record *record, uint32_t *function_ret);

/* Whether the call came back with an error. */
static inline bool kymo_sysret_has_failed(const struct kymo_ctf_record *record)
{
	return record->event->n_fields && !(record->faults & 1) && record->values[0] > (uint64_t)-4096;
}

#endif
