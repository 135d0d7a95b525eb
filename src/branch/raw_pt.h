/* Packets of Intel PT, as branches. Private to the room. */
#ifndef KYMO_BRANCH_RAW_PT_H
#define KYMO_BRANCH_RAW_PT_H

#include <stdbool.h>

struct branch_raw;

/* Whether libipt is installed. */
bool branch_pt_is_there(void);

/* 0; -ENOSYS: libipt is not installed; -ENOMEM. */
int branch_pt_decode(const struct branch_raw *raw);

#endif
