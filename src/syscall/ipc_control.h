/* Control of System V IPC objects. Private to the room. */
#ifndef KYMO_SYSCALL_IPC_CONTROL_H
#define KYMO_SYSCALL_IPC_CONTROL_H

#include "syscall/decode.h"

extern const struct kind k_msgctl_in[1], k_msgctl_out[1], k_semctl_in[1], k_semctl_out[1], k_shmctl_in[1],
	k_shmctl_out[1];

#endif
