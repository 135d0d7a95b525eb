/* Vectors of buffers, and messages. Private to the room. */
#ifndef KYMO_SYSCALL_IOVEC_H
#define KYMO_SYSCALL_IOVEC_H

#include <stdbool.h>
#include <stdint.h>

#include "syscall/decode.h"

/* Vectors of buffers; `limit` is how many bytes they hold in all (what was transferred), or UINT64_MAX. */
void put_iovec(struct decode *d, uint64_t address, uint64_t n, uint64_t limit, bool with_data);

void result_recvmmsg(struct decode *d);

extern const struct kind k_iovec_in[1], k_iovec_out[1], k_iovec_plain[1], k_msg_in[1], k_msg_out[1], k_mmsg_in[1],
	k_mmsg_out[1], k_receive_limit[1];
extern const struct kind k_msg_flags[1];

#endif
