/* What is known of a file. Private to the room. */
#ifndef KYMO_SYSCALL_STAT_H
#define KYMO_SYSCALL_STAT_H

#include "syscall/decode.h"

void put_mode(struct decode *d, unsigned mode); /* "S_IFREG|0644" */

extern const struct kind k_stat[1], k_statx[1], k_statx_mask[1], k_statx_flags[1], k_statfs[1], k_dirents[1];

#endif
