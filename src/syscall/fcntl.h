/* fcntl. Private to the room. */
#ifndef KYMO_SYSCALL_FCNTL_H
#define KYMO_SYSCALL_FCNTL_H

#include <stdint.h>

#include "syscall/decode.h"

void put_open_flags(struct decode *d, uint64_t flags); /* with the access mode */

void result_fcntl(struct decode *d);

extern const struct kind k_fcntl[1], k_fcntl_in[1], k_fcntl_out[1];

#endif
