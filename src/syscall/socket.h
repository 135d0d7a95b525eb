/*
 * What the files about sockets share: address.c (addresses), sockopt.c with sockopt_names.c (options), control.c
 * (control messages), socket.c (the rest).
 */
#ifndef KYMO_SYSCALL_SOCKET_H
#define KYMO_SYSCALL_SOCKET_H

#include "syscall/decode.h"

enum { SOCKADDR_MAX = 128 }; /* the kernel takes no longer address */

/* Names of the options of a level, as setsockopt has them or, `is_asked`, getsockopt; NULL for levels without names. */
const struct names *socket_option_names(int level, int option, bool is_asked);

/* An address of `size` bytes in our own memory, at most SOCKADDR_MAX; without a family, "???". */
void put_sockaddr_bytes(struct decode *d, const void *bytes, size_t size);

void put_inet_address(struct decode *d, const void *bytes); /* 'inet_addr("127.0.0.1")' of four bytes */
void put_inet6_address(struct decode *d, const void *bytes,
		       const char *member); /* 'inet_pton(AF_INET6, "::1", &member)' */

void put_ethernet_protocol(struct decode *d, uint16_t protocol); /* 'htons(ETH_P_IP)', of network order */

/* A network interface: 'if_nametoindex("lo")' for the loopback, which has number 1 in each namespace; others by number.
 */
void put_interface(struct decode *d, unsigned index);

void put_credentials(struct decode *d, const void *ucred);

/* The control messages of a msghdr. */
void put_control(struct decode *d, uint64_t address, uint64_t size);

#endif
