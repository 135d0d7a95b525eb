/* What files and file systems are, and what is in directories. */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "syscall/decode.h"

#define ARG (d->call->args[arg])
#define PRINT(name) static void name(struct decode *d, unsigned arg, const void *data)

NAMES(formats, "S_IF???", NAME(S_IFSOCK), NAME(S_IFLNK), NAME(S_IFREG), NAME(S_IFBLK), NAME(S_IFDIR), NAME(S_IFCHR), NAME(S_IFIFO));
NAMES(statx_masks, "STATX_???", { "STATX_ALL", 0xfff }, { "STATX_BASIC_STATS", 0x7ff }, { "STATX_TYPE", 1 }, { "STATX_MODE", 2 },
      { "STATX_NLINK", 4 }, { "STATX_UID", 8 }, { "STATX_GID", 0x10 }, { "STATX_ATIME", 0x20 }, { "STATX_MTIME", 0x40 },
      { "STATX_CTIME", 0x80 }, { "STATX_INO", 0x100 }, { "STATX_SIZE", 0x200 }, { "STATX_BLOCKS", 0x400 }, { "STATX_BTIME", 0x800 },
      { "STATX_MNT_ID", 0x1000 }, { "STATX_DIOALIGN", 0x2000 });
NAMES(statx_attributes, "STATX_ATTR_???", { "STATX_ATTR_COMPRESSED", 4 }, { "STATX_ATTR_IMMUTABLE", 0x10 }, { "STATX_ATTR_APPEND", 0x20 },
      { "STATX_ATTR_NODUMP", 0x40 }, { "STATX_ATTR_ENCRYPTED", 0x800 }, { "STATX_ATTR_AUTOMOUNT", 0x1000 },
      { "STATX_ATTR_MOUNT_ROOT", 0x2000 }, { "STATX_ATTR_VERITY", 0x100000 }, { "STATX_ATTR_DAX", 0x200000 });
NAMES(sync_types, "AT_STATX_???", { "AT_STATX_SYNC_AS_STAT", 0 }, { "AT_STATX_FORCE_SYNC", 0x2000 }, { "AT_STATX_DONT_SYNC", 0x4000 },
      { "AT_STATX_FORCE_SYNC|AT_STATX_DONT_SYNC", 0x6000 });
NAMES(mount_states, "ST_???", { "ST_VALID", 0x20 }, { "ST_RDONLY", 1 }, { "ST_NOSUID", 2 }, { "ST_NODEV", 4 }, { "ST_NOEXEC", 8 },
      { "ST_SYNCHRONOUS", 0x10 }, { "ST_MANDLOCK", 0x40 }, { "ST_NOATIME", 0x400 }, { "ST_NODIRATIME", 0x800 }, { "ST_RELATIME", 0x1000 },
      { "ST_NOSYMFOLLOW", 0x2000 });
NAMES(magics, "???", NAME(ADFS_SUPER_MAGIC), NAME(AFFS_SUPER_MAGIC), NAME(AFS_SUPER_MAGIC), NAME(ANON_INODE_FS_MAGIC),
      NAME(AUTOFS_SUPER_MAGIC), NAME(BDEVFS_MAGIC), NAME(BINFMTFS_MAGIC), NAME(BPF_FS_MAGIC), NAME(BTRFS_SUPER_MAGIC),
      NAME(BTRFS_TEST_MAGIC), NAME(CEPH_SUPER_MAGIC), NAME(CGROUP2_SUPER_MAGIC), NAME(CGROUP_SUPER_MAGIC), NAME(CRAMFS_MAGIC),
      NAME(DEBUGFS_MAGIC), NAME(DEVPTS_SUPER_MAGIC), NAME(ECRYPTFS_SUPER_MAGIC), NAME(EFIVARFS_MAGIC), NAME(EROFS_SUPER_MAGIC_V1),
      NAME(EXFAT_SUPER_MAGIC), NAME(EXT2_SUPER_MAGIC), NAME(F2FS_SUPER_MAGIC), NAME(FUSE_SUPER_MAGIC), NAME(HUGETLBFS_MAGIC),
      NAME(ISOFS_SUPER_MAGIC), NAME(JFFS2_SUPER_MAGIC), NAME(MSDOS_SUPER_MAGIC), NAME(NFS_SUPER_MAGIC), NAME(NILFS_SUPER_MAGIC),
      NAME(NSFS_MAGIC), NAME(OVERLAYFS_SUPER_MAGIC), NAME(PIPEFS_MAGIC), NAME(PROC_SUPER_MAGIC), NAME(PSTOREFS_MAGIC), NAME(RAMFS_MAGIC),
      NAME(RDTGROUP_SUPER_MAGIC), NAME(SECURITYFS_MAGIC), NAME(SELINUX_MAGIC), NAME(SMACK_MAGIC), NAME(SMB2_SUPER_MAGIC),
      NAME(SMB_SUPER_MAGIC), NAME(SOCKFS_MAGIC), NAME(SQUASHFS_MAGIC), NAME(SYSFS_MAGIC), NAME(TMPFS_MAGIC), NAME(TRACEFS_MAGIC),
      NAME(UDF_SUPER_MAGIC), NAME(USBDEVICE_SUPER_MAGIC), NAME(V9FS_MAGIC), NAME(XENFS_SUPER_MAGIC), NAME(XFS_SUPER_MAGIC),
      NAME(ZONEFS_MAGIC));

void put_mode(struct decode *d, unsigned mode)
{
	const char *format = name_of(&formats, mode & S_IFMT);

	if (format)
		put(d, "%s|", format);
	put(d, "%s%s%s", mode & S_ISUID && format ? "S_ISUID|" : "", mode & S_ISGID && format ? "S_ISGID|" : "",
	    mode & S_ISVTX && format ? "S_ISVTX|" : "");
	put_permissions(d, format ? mode & 0777 : mode);
}

PRINT(print_stat)
{
	struct stat st;

	if (!fetch_or_put(d, ARG, &st, sizeof(st)))
		return;
	puts_(d, "{st_mode=");
	put_mode(d, st.st_mode);
	if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
		puts_(d, ", st_rdev=");
		put_device(d, st.st_rdev);
	} else {
		put(d, ", st_size=%" PRId64, (int64_t)st.st_size);
	}
	puts_(d, ", ...}");
}

PRINT(print_statx_flags)
{
	const unsigned sync = (unsigned)ARG & 0x6000, rest = (unsigned)ARG & ~0x6000u;

	puts_(d, name_of(&sync_types, sync));
	if (rest) {
		puts_(d, "|");
		put_flags(d, &at_flags, rest);
	}
}

PRINT(print_statx_mask)
{
	put_flags(d, &statx_masks, (unsigned)ARG);
}

PRINT(print_statx)
{
	struct statx st;

	if (!fetch_or_put(d, ARG, &st, sizeof(st)))
		return;
	puts_(d, "{stx_mask=");
	put_flags(d, &statx_masks, st.stx_mask);
	puts_(d, ", stx_attributes=");
	put_flags(d, &statx_attributes, st.stx_attributes);
	puts_(d, ", stx_mode=");
	put_mode(d, st.stx_mode);
	put(d, ", stx_size=%" PRIu64 ", ...}", (uint64_t)st.stx_size);
}

PRINT(print_statfs)
{
	struct statfs st;
	unsigned id[2];

	if (!fetch_or_put(d, ARG, &st, sizeof(st)))
		return;
	memcpy(id, &st.f_fsid, sizeof(id));
	puts_(d, "{f_type=");
	put_name(d, &magics, (uint64_t)st.f_type);
	put(d, ", f_bsize=%" PRIu64 ", f_blocks=%" PRIu64 ", f_bfree=%" PRIu64 ", f_bavail=%" PRIu64, (uint64_t)st.f_bsize,
	    (uint64_t)st.f_blocks, (uint64_t)st.f_bfree, (uint64_t)st.f_bavail);
	put(d, ", f_files=%" PRIu64 ", f_ffree=%" PRIu64 ", f_fsid={val=[%#x, %#x]}, f_namelen=%" PRIu64 ", f_frsize=%" PRIu64 ", f_flags=",
	    (uint64_t)st.f_files, (uint64_t)st.f_ffree, id[0], id[1], (uint64_t)st.f_namelen, (uint64_t)st.f_frsize);
	put_flags(d, &mount_states, (uint64_t)st.f_flags);
	puts_(d, "}");
}

/* How many entries there are: each begins with its number, its place and its length. */
PRINT(print_dirents)
{
	const uint64_t size = (uint64_t)d->call->result;
	unsigned n = 0;

	put_address(d, ARG);
	if (call_failed(d))
		return;
	for (uint64_t at = 0; at + 19 <= size; n++) {
		uint16_t length;

		if (!fetch(d, ARG + at + 16, &length, sizeof(length)))
			return;
		if (length < 19)
			break;
		at += length;
	}
	put(d, " /* %u entries */", n);
}

const struct kind k_stat[1] = { { print_stat, NULL, AT_EXIT } };
const struct kind k_statx[1] = { { print_statx, NULL, AT_EXIT } };
const struct kind k_statx_mask[1] = { { print_statx_mask, NULL, 0 } };
const struct kind k_statx_flags[1] = { { print_statx_flags, NULL, 0 } };
const struct kind k_statfs[1] = { { print_statfs, NULL, AT_EXIT } };
const struct kind k_dirents[1] = { { print_dirents, NULL, AT_EXIT } };
