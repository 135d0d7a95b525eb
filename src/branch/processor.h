/* What processors have to record branches. The room's front door includes it. */
#ifndef KYMO_BRANCH_PROCESSOR_H
#define KYMO_BRANCH_PROCESSOR_H

#include "base/error.h"

/* What a processor may have to record branches, the best first. */
enum kymo_branch_hardware {
	KYMO_BRANCH_PT,
	KYMO_BRANCH_BTS,
	KYMO_BRANCH_LBR,
	KYMO_BRANCH_HARDWARE,
};

struct branch_hardware;

/* NULL: the kernel lets this process record branches of its own by it. Else the sentence says what is missing:
 * NOT_FOUND, PERMISSION, BUSY. */
struct kymo_error *kymo_branch_hardware_check(enum kymo_branch_hardware which);

/* For kymo_branches_options; static. */
const struct branch_hardware *kymo_branch_hardware_of(enum kymo_branch_hardware which);

#endif
