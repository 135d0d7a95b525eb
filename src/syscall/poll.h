/* Waiting for descriptors. Private to the room. */
#ifndef KYMO_SYSCALL_POLL_H
#define KYMO_SYSCALL_POLL_H

#include "syscall/decode.h"

void result_poll(struct decode *d);
void result_select(struct decode *d);

extern const struct kind k_pollfds[1], k_fdset[1], k_pselect_mask[1], k_epoll_flags[1], k_epoll_op[1], k_epoll_event[1];
extern const struct kind k_epoll_events[1], k_eventfd_flags[1];

#endif
