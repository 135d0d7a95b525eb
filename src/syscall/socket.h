/*
 * What the files about sockets share: address.c (addresses), sockopt.c with sockopt_names.c (options), control.c
 * (control messages), socket.c (the rest).
 */
#ifndef KYMO_SYSCALL_SOCKET_H
#define KYMO_SYSCALL_SOCKET_H

#include "syscall/decode.h"

enum { SOCKADDR_MAX = 128 }; /* the kernel takes no longer address */

extern const struct names socket_families;

extern const struct kind k_family[1], k_socket_type[1], k_protocol[1], k_sockaddr[1], k_sockaddr_out[1],
	k_socklen_out[1];
extern const struct kind k_shutdown[1], k_accept_flags[1];

#endif
