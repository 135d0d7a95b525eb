/* Options of sockets. Private to the room. */
#ifndef KYMO_SYSCALL_SOCKOPT_H
#define KYMO_SYSCALL_SOCKOPT_H

#include "syscall/decode.h"

extern const struct names socket_levels;

extern const struct kind k_level[1], k_option[1], k_option_asked[1], k_option_value[1], k_option_out[1];

void put_credentials(struct decode *d, const void *ucred);

#endif
