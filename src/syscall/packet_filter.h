/* Programs of classic BPF as text: '[BPF_STMT(BPF_LD|BPF_W|BPF_ABS, 0), …]'. Without -v, their addresses. */
#ifndef KYMO_SYSCALL_PACKET_FILTER_H
#define KYMO_SYSCALL_PACKET_FILTER_H

#include "syscall/decode.h"

/* The `n` instructions at `address`, of a socket's filter. */
void put_socket_filter(struct decode *d, uint64_t address, uint64_t n);

/* A struct sock_fprog of a socket, "{len=3, filter=[…]}", in our own memory. */
void put_socket_program(struct decode *d, const void *program);

/* The same of seccomp, in the target's; its address where it can't be read. */
void put_seccomp_program_at(struct decode *d, uint64_t address);

/* What a filter of seccomp decides, "[SECCOMP_RET_TRAP]"; its address where it can't be read. */
void put_seccomp_action_at(struct decode *d, uint64_t address);

#endif
