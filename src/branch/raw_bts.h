/* Records of the Branch Trace Store, as branches. Private to the room. */
#ifndef KYMO_BRANCH_RAW_BTS_H
#define KYMO_BRANCH_RAW_BTS_H

struct branch_raw;

/* `from`, `to` and flags; 8 bytes each. A last one that is cut off is left out. 0. */
int branch_bts_decode(const struct branch_raw *raw);

#endif
