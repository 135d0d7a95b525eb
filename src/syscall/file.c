/* Opening, naming, linking, mounting, watching of files; extended attributes. */
#include "syscall/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/close_range.h>
#include <linux/fs.h>
#include <linux/memfd.h>
#include <linux/limits.h>
#include <linux/openat2.h>
#include <linux/xattr.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/param.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/fcntl.h"
#include "syscall/print.h"
#include "syscall/stat.h"

/* As the kernel has them: libc calls two of them 0 where they change nothing on x86-64. */
#define KERNEL_O_LARGEFILE 0100000

SHARED_NAMES(open_flags, "O_???", NAME(O_CREAT), NAME(O_EXCL), NAME(O_NOCTTY), NAME(O_TRUNC), NAME(O_APPEND),
	     NAME(O_NONBLOCK), NAME(O_SYNC), NAME(O_DSYNC), NAME(O_DIRECT), { "O_LARGEFILE", KERNEL_O_LARGEFILE },
	     NAME(O_NOFOLLOW), NAME(O_NOATIME), NAME(O_CLOEXEC), NAME(O_PATH), NAME(O_TMPFILE), NAME(O_DIRECTORY),
	     { "__O_SYNC", O_SYNC & ~O_DSYNC }, { "__O_TMPFILE", O_TMPFILE & ~O_DIRECTORY }, { "FASYNC", O_ASYNC });
SHARED_NAMES(at_flags, "AT_???", NAME(AT_SYMLINK_NOFOLLOW), NAME(AT_REMOVEDIR), NAME(AT_SYMLINK_FOLLOW),
	     NAME(AT_NO_AUTOMOUNT), NAME(AT_EMPTY_PATH), NAME(AT_RECURSIVE));
SHARED_NAMES(fd_flags, "FD_???", NAME(FD_CLOEXEC));

NAMES(access_modes, "?_OK", NAME(F_OK), NAME(R_OK), NAME(W_OK), NAME(X_OK));
NAMES(access_flags, "AT_???", NAME(AT_SYMLINK_NOFOLLOW), NAME(AT_EACCESS), NAME(AT_EMPTY_PATH));
NAMES(whences, "SEEK_???", NAME(SEEK_SET), NAME(SEEK_CUR), NAME(SEEK_END), NAME(SEEK_DATA), NAME(SEEK_HOLE));
NAMES(rename_flags, "RENAME_??", NAME(RENAME_NOREPLACE), NAME(RENAME_EXCHANGE), NAME(RENAME_WHITEOUT));
NAMES(flock_modes, "LOCK_???", NAME(LOCK_SH), NAME(LOCK_EX), NAME(LOCK_NB), NAME(LOCK_UN), { "LOCK_MAND", 32 },
      { "LOCK_RW", 192 }, { "LOCK_READ", 64 }, { "LOCK_WRITE", 128 });
NAMES(fallocate_modes, "FALLOC_FL_???", NAME(FALLOC_FL_KEEP_SIZE), NAME(FALLOC_FL_PUNCH_HOLE),
      { "FALLOC_FL_NO_HIDE_STALE", 4 }, NAME(FALLOC_FL_COLLAPSE_RANGE), NAME(FALLOC_FL_ZERO_RANGE),
      NAME(FALLOC_FL_INSERT_RANGE), NAME(FALLOC_FL_UNSHARE_RANGE));
NAMES(fadvices, "POSIX_FADV_???", NAME(POSIX_FADV_NORMAL), NAME(POSIX_FADV_RANDOM), NAME(POSIX_FADV_SEQUENTIAL),
      NAME(POSIX_FADV_WILLNEED), NAME(POSIX_FADV_DONTNEED), NAME(POSIX_FADV_NOREUSE));
NAMES(resolve_flags, "RESOLVE_???", NAME(RESOLVE_NO_XDEV), NAME(RESOLVE_NO_MAGICLINKS), NAME(RESOLVE_NO_SYMLINKS),
      NAME(RESOLVE_BENEATH), NAME(RESOLVE_IN_ROOT), NAME(RESOLVE_CACHED));
NAMES(close_range_flags, "CLOSE_RANGE_???", NAME(CLOSE_RANGE_UNSHARE), NAME(CLOSE_RANGE_CLOEXEC));
NAMES(memfd_flags, "MFD_???", NAME(MFD_CLOEXEC), NAME(MFD_ALLOW_SEALING), NAME(MFD_HUGETLB));
NAMES(random_flags, "GRND_???", NAME(GRND_NONBLOCK), NAME(GRND_RANDOM), NAME(GRND_INSECURE));
NAMES(pidfd_flags, "PIDFD_???", { "PIDFD_NONBLOCK", O_NONBLOCK });
NAMES(inotify_flags, "IN_???", NAME(IN_NONBLOCK), NAME(IN_CLOEXEC));
NAMES(inotify_masks, "IN_???", NAME(IN_ACCESS), NAME(IN_MODIFY), NAME(IN_ATTRIB), NAME(IN_CLOSE_WRITE),
      NAME(IN_CLOSE_NOWRITE), NAME(IN_OPEN), NAME(IN_MOVED_FROM), NAME(IN_MOVED_TO), NAME(IN_CREATE), NAME(IN_DELETE),
      NAME(IN_DELETE_SELF), NAME(IN_MOVE_SELF), NAME(IN_UNMOUNT), NAME(IN_Q_OVERFLOW), NAME(IN_IGNORED),
      NAME(IN_ONLYDIR), NAME(IN_DONT_FOLLOW), NAME(IN_EXCL_UNLINK), NAME(IN_MASK_CREATE), NAME(IN_MASK_ADD),
      NAME(IN_ISDIR), NAME(IN_ONESHOT));
NAMES(mount_flags, "MS_???", NAME(MS_RDONLY), NAME(MS_NOSUID), NAME(MS_NODEV), NAME(MS_NOEXEC), NAME(MS_SYNCHRONOUS),
      NAME(MS_REMOUNT), NAME(MS_MANDLOCK), NAME(MS_DIRSYNC), NAME(MS_NOSYMFOLLOW), NAME(MS_NOATIME),
      NAME(MS_NODIRATIME), NAME(MS_BIND), NAME(MS_MOVE), NAME(MS_REC), NAME(MS_SILENT), NAME(MS_POSIXACL),
      NAME(MS_UNBINDABLE), NAME(MS_PRIVATE), NAME(MS_SLAVE), NAME(MS_SHARED), NAME(MS_RELATIME), NAME(MS_KERNMOUNT),
      NAME(MS_I_VERSION), NAME(MS_STRICTATIME), NAME(MS_LAZYTIME), NAME(MS_SUBMOUNT), NAME(MS_NOREMOTELOCK),
      NAME(MS_NOSEC), NAME(MS_BORN), NAME(MS_ACTIVE), { "MS_NOUSER", 1u << 31 });
NAMES(umount_flags, "MNT_???", { "MNT_FORCE", 1 }, { "MNT_DETACH", 2 }, { "MNT_EXPIRE", 4 }, { "UMOUNT_NOFOLLOW", 8 });
NAMES(splice_flags, "SPLICE_F_???", NAME(SPLICE_F_MOVE), NAME(SPLICE_F_NONBLOCK), NAME(SPLICE_F_MORE),
      NAME(SPLICE_F_GIFT));
NAMES(xattr_flags, "XATTR_???", NAME(XATTR_CREATE), NAME(XATTR_REPLACE));
NAMES(rwf_flags, "RWF_???", NAME(RWF_HIPRI), NAME(RWF_DSYNC), NAME(RWF_SYNC), NAME(RWF_NOWAIT), NAME(RWF_APPEND));
NAMES(sync_range_flags, "SYNC_FILE_RANGE_???", NAME(SYNC_FILE_RANGE_WAIT_BEFORE), NAME(SYNC_FILE_RANGE_WRITE),
      NAME(SYNC_FILE_RANGE_WAIT_AFTER));

/* An argument whose bits are in a table; the kernel takes the lower half. */

static bool makes_file(uint64_t flags)
{
	return (flags & O_CREAT) || (flags & O_TMPFILE & ~O_DIRECTORY);
}

PRINT(print_open_flags)
{
	put_open_flags(d, (unsigned)ARG);
	d->call->is_stopped = !makes_file(ARG);
}

/* After the upper half of the offset, which is nothing on x86-64. */
PRINT(print_rwf)
{
	put_flags(d, &rwf_flags, (unsigned)d->call->args[5]);
}

PRINT(print_mode)
{
	put_permissions(d, (uint16_t)ARG);
}

PRINT(print_open_how)
{
	struct open_how how;
	const uint64_t size = d->call->args[arg + 1];

	if (size < sizeof(how) || !fetch(d, ARG, &how, sizeof(how))) {
		put_address(d, ARG);
		return;
	}
	puts_(d, "{flags=");
	put_open_flags(d, how.flags);
	if (makes_file(how.flags) || how.mode) {
		puts_(d, ", mode=");
		put(d, "%#03" PRIo64, (uint64_t)how.mode);
	}
	puts_(d, ", resolve=");
	put_flags(d, &resolve_flags, how.resolve);
	put_struct_rest(d, ARG, sizeof(how), size);
	puts_(d, "}");
}

PRINT(print_node)
{
	const unsigned format = ARG & S_IFMT;

	put_mode(d, (uint16_t)ARG);
	d->call->is_stopped = format != S_IFCHR && format != S_IFBLK;
}

PRINT(print_device)
{
	put_device(d, (unsigned)ARG);
}

/* "63<<MFD_HUGE_SHIFT" for the size of huge pages, which stands in the upper six bits. */
PRINT(print_memfd_flags)
{
	const unsigned flags = (unsigned)ARG & 0x3ffffff, size = (unsigned)ARG >> 26;
	const enum kymo_constants style = d->target->style.constants;

	if (!(unsigned)ARG || style != KYMO_CONSTANTS_NAMES)
		put(d, "%#x", (unsigned)ARG);
	if (!(unsigned)ARG || style == KYMO_CONSTANTS_NUMBERS)
		return;
	puts_(d, style == KYMO_CONSTANTS_BOTH ? " /* " : "");
	if (flags)
		put_flags_plainly(d, &memfd_flags, flags);
	if (size)
		put(d, "%s%u<<MFD_HUGE_SHIFT", flags ? "|" : "", size);
	puts_(d, style == KYMO_CONSTANTS_BOTH ? " */" : "");
}

/* Programs from before Linux 2.4 begin the flags with a magic number. */
PRINT(print_mount_flags)
{
	uint64_t flags = ARG;

	if ((flags & MS_MGC_MSK) == MS_MGC_VAL) {
		put_hex_constant(d, "MS_MGC_VAL", MS_MGC_VAL);
		flags &= 0xffff;
		if (!flags)
			return;
		puts_(d, "|");
	}
	put_flags(d, &mount_flags, flags);
}

/* The type of a mount and its data mean nothing where it is only moved or changed. */
PRINT(print_mount_data)
{
	const uint64_t magic = (d->call->args[3] & MS_MGC_MSK) == MS_MGC_VAL ? MS_MGC_MSK : 0,
		       flags = d->call->args[3] & ~magic;
	const bool is_ignored =
		(flags & (MS_REMOUNT | MS_BIND | MS_MOVE | MS_SHARED | MS_PRIVATE | MS_SLAVE | MS_UNBINDABLE)) &&
		(arg == 2 || !(flags & MS_REMOUNT));

	if (is_ignored)
		put_address(d, ARG);
	else
		put_string(d, ARG);
}

/* A value with its NUL, if it has one: that one is not shown. */
static void put_xattr_value(struct decode *d, uint64_t address, uint64_t size)
{
	char last;

	if (size && fetch(d, address + size - 1, &last, 1) && !last && size <= d->target->string_size)
		put_bytes(d, address, size - 1);
	else
		put_bytes(d, address, size);
}

/* More than the kernel takes is not looked at. */
PRINT(print_xattr_value)
{
	if (d->call->args[arg + 1] > XATTR_SIZE_MAX)
		put_address(d, ARG);
	else
		put_xattr_value(d, ARG, d->call->args[arg + 1]);
}

PRINT(print_xattr_out)
{
	if (call_failed(d) || !d->call->args[arg + 1])
		put_address(d, ARG);
	else
		put_xattr_value(d, ARG, (uint64_t)d->call->result);
}

PRINT(print_xattr_list)
{
	if (call_failed(d) || !d->call->args[arg + 1])
		put_address(d, ARG);
	else
		put_bytes(d, ARG, (uint64_t)d->call->result);
}

const struct kind k_open_flags[1] = { { print_open_flags, NULL, 0 } };
const struct kind k_mode[1] = { { print_mode, NULL, 0 } };
const struct kind k_access[1] = { { print_flags, &access_modes, 0 } };
const struct kind k_access_flags[1] = { { print_flags, &access_flags, 0 } };
const struct kind k_at_flags[1] = { { print_flags, &at_flags, 0 } };
const struct kind k_whence[1] = { { print_name, &whences, 0 } };
const struct kind k_rename_flags[1] = { { print_flags, &rename_flags, 0 } };
const struct kind k_pipe_flags[1] = { { print_flags, &open_flags, 0 } };
const struct kind k_dup_flags[1] = { { print_flags, &open_flags, 0 } };
const struct kind k_flock[1] = { { print_flags, &flock_modes, 0 } };
const struct kind k_fallocate[1] = { { print_flags, &fallocate_modes, 0 } };
const struct kind k_fadvise[1] = { { print_name, &fadvices, 0 } };
const struct kind k_open_how[1] = { { print_open_how, NULL, 0 } };
const struct kind k_node[1] = { { print_node, NULL, 0 } };
const struct kind k_device[1] = { { print_device, NULL, 0 } };
const struct kind k_random_flags[1] = { { print_flags, &random_flags, 0 } };
const struct kind k_pidfd_flags[1] = { { print_flags, &pidfd_flags, 0 } };
const struct kind k_close_range[1] = { { print_flags, &close_range_flags, 0 } };
const struct kind k_memfd_flags[1] = { { print_memfd_flags, NULL, 0 } };
const struct kind k_inotify_flags[1] = { { print_flags, &inotify_flags, 0 } };
const struct kind k_inotify_mask[1] = { { print_flags, &inotify_masks, 0 } };
const struct kind k_mount_flags[1] = { { print_mount_flags, NULL, 0 } };
const struct kind k_mount_data[1] = { { print_mount_data, NULL, 0 } };
const struct kind k_umount_flags[1] = { { print_flags, &umount_flags, 0 } };
const struct kind k_splice_flags[1] = { { print_flags, &splice_flags, 0 } };
const struct kind k_xattr_flags[1] = { { print_flags, &xattr_flags, 0 } };
const struct kind k_xattr_value[1] = { { print_xattr_value, NULL, 0 } };
const struct kind k_xattr_out[1] = { { print_xattr_out, NULL, AT_EXIT } };
const struct kind k_xattr_list[1] = { { print_xattr_list, NULL, AT_EXIT } };
const struct kind k_rwf[1] = { { print_rwf, NULL, 0 } };
const struct kind k_sync_range[1] = { { print_flags, &sync_range_flags, 0 } };
