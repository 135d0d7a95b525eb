/* Files and descriptors. Private to the room. */
#ifndef KYMO_SYSCALL_FILE_H
#define KYMO_SYSCALL_FILE_H

#include "syscall/decode.h"

extern const struct names open_flags, at_flags, fd_flags;

extern const struct kind k_open_flags[1], k_mode[1], k_access[1], k_access_flags[1], k_at_flags[1], k_whence[1],
	k_rename_flags[1];
extern const struct kind k_pipe_flags[1], k_dup_flags[1], k_flock[1], k_fallocate[1], k_fadvise[1], k_open_how[1],
	k_node[1];
extern const struct kind k_device[1], k_random_flags[1], k_pidfd_flags[1], k_close_range[1], k_memfd_flags[1],
	k_inotify_flags[1];
extern const struct kind k_inotify_mask[1], k_mount_flags[1], k_mount_data[1], k_umount_flags[1], k_splice_flags[1];
extern const struct kind k_xattr_flags[1], k_xattr_value[1], k_xattr_out[1], k_xattr_list[1], k_rwf[1], k_sync_range[1];

#endif
