/* prctl. Private to the room. */
#ifndef KYMO_SYSCALL_PRCTL_H
#define KYMO_SYSCALL_PRCTL_H

#include "syscall/decode.h"

void result_prctl(struct decode *d);

extern const struct kind k_prctl[1], k_prctl_in[1], k_prctl_out[1];

#endif
