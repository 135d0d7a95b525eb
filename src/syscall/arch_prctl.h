/* arch_prctl. Private to the room. */
#ifndef KYMO_SYSCALL_ARCH_PRCTL_H
#define KYMO_SYSCALL_ARCH_PRCTL_H

#include "syscall/decode.h"

void result_arch_prctl(struct decode *d);

extern const struct kind k_arch_prctl[1], k_arch_in[1], k_arch_out[1];

#endif
