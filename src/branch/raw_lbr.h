/* Samples of last-branch records, as branches. Private to the room. */
#ifndef KYMO_BRANCH_RAW_LBR_H
#define KYMO_BRANCH_RAW_LBR_H

struct branch_raw;

/* Records of a perf ring that is written backward, so the newest sample comes first. 0 or -ENOMEM. */
int branch_lbr_decode(const struct branch_raw *raw);

#endif
