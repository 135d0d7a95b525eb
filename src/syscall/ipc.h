/* IPC of System V. Private to the room. */
#ifndef KYMO_SYSCALL_IPC_H
#define KYMO_SYSCALL_IPC_H

#include "syscall/decode.h"

extern const struct kind k_ipc_key[1], k_ipc_flags[1], k_shm_flags[1], k_shmat_flags[1], k_shm_command[1],
	k_sem_command[1];
extern const struct kind k_msg_command[1], k_sembufs[1], k_message_in[1], k_message_out[1], k_message_flags[1];

#endif
