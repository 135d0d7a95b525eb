/* ioctl. Private to the room. */
#ifndef KYMO_SYSCALL_IOCTL_H
#define KYMO_SYSCALL_IOCTL_H

#include "syscall/decode.h"

extern const struct kind k_ioctl[1], k_ioctl_in[1], k_ioctl_out[1];

#endif
