/* Addresses of sockets. Private to the room. */
#ifndef KYMO_SYSCALL_ADDRESS_H
#define KYMO_SYSCALL_ADDRESS_H

#include <stddef.h>
#include <stdint.h>

#include "syscall/decode.h"

void put_sockaddr(struct decode *d, uint64_t address, uint64_t size);

/* An address of `size` bytes in our own memory, at most SOCKADDR_MAX; without a family, "???". */
void put_sockaddr_bytes(struct decode *d, const void *bytes, size_t size);

void put_inet_address(struct decode *d, const void *bytes); /* 'inet_addr("127.0.0.1")' of four bytes */
void put_inet6_address(struct decode *d, const void *bytes,
		       const char *member); /* 'inet_pton(AF_INET6, "::1", &member)' */

void put_ethernet_protocol(struct decode *d, uint16_t protocol); /* 'htons(ETH_P_IP)', of network order */

/* A network interface: 'if_nametoindex("lo")' for the loopback, which has number 1 in each namespace; others by number.
 */
void put_interface(struct decode *d, unsigned index);

#endif
