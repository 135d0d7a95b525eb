/* Control messages of sockets. Private to the room. */
#ifndef KYMO_SYSCALL_CONTROL_H
#define KYMO_SYSCALL_CONTROL_H

#include <stdint.h>

#include "syscall/decode.h"

/* The control messages of a msghdr. */
void put_control(struct decode *d, uint64_t address, uint64_t size);

#endif
