/* Calls of no larger family. Private to the room. */
#ifndef KYMO_SYSCALL_VARIOUS_H
#define KYMO_SYSCALL_VARIOUS_H

#include "syscall/decode.h"

void result_priority(struct decode *d);

extern const struct kind k_fsopen_flags[1], k_fsmount_flags[1], k_mount_attributes[1], k_fspick_flags[1],
	k_open_tree_flags[1], k_move_mount_flags[1];
extern const struct kind k_delete_flags[1], k_finit_flags[1], k_compared[1], k_secret_flags[1], k_key_rights[1],
	k_uint_hex[1];
extern const struct kind k_priority_target[1], k_priority_id[1], k_priority[1];

#endif
