/* What files and file systems are, and what is in directories. */
#include "syscall/stat.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>

#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/file.h"
#include "syscall/print.h"
#include "syscall/time.h"

NAMES(formats, "S_IF???", NAME(S_IFSOCK), NAME(S_IFLNK), NAME(S_IFREG), NAME(S_IFBLK), NAME(S_IFDIR), NAME(S_IFCHR),
      NAME(S_IFIFO));
NAMES(statx_masks, "STATX_???", { "STATX_ALL", 0xfff }, { "STATX_BASIC_STATS", 0x7ff }, { "STATX_TYPE", 1 },
      { "STATX_MODE", 2 }, { "STATX_NLINK", 4 }, { "STATX_UID", 8 }, { "STATX_GID", 0x10 }, { "STATX_ATIME", 0x20 },
      { "STATX_MTIME", 0x40 }, { "STATX_CTIME", 0x80 }, { "STATX_INO", 0x100 }, { "STATX_SIZE", 0x200 },
      { "STATX_BLOCKS", 0x400 }, { "STATX_BTIME", 0x800 }, { "STATX_MNT_ID", 0x1000 }, { "STATX_DIOALIGN", 0x2000 });
NAMES(statx_attributes, "STATX_ATTR_???", { "STATX_ATTR_COMPRESSED", 4 }, { "STATX_ATTR_IMMUTABLE", 0x10 },
      { "STATX_ATTR_APPEND", 0x20 }, { "STATX_ATTR_NODUMP", 0x40 }, { "STATX_ATTR_ENCRYPTED", 0x800 },
      { "STATX_ATTR_AUTOMOUNT", 0x1000 }, { "STATX_ATTR_MOUNT_ROOT", 0x2000 }, { "STATX_ATTR_VERITY", 0x100000 },
      { "STATX_ATTR_DAX", 0x200000 });
NAMES(sync_types, "AT_STATX_???", { "AT_STATX_SYNC_AS_STAT", 0 }, { "AT_STATX_FORCE_SYNC", 0x2000 },
      { "AT_STATX_DONT_SYNC", 0x4000 }, { "AT_STATX_FORCE_SYNC|AT_STATX_DONT_SYNC", 0x6000 });
NAMES(mount_states, "ST_???", { "ST_VALID", 0x20 }, { "ST_RDONLY", 1 }, { "ST_NOSUID", 2 }, { "ST_NODEV", 4 },
      { "ST_NOEXEC", 8 }, { "ST_SYNCHRONOUS", 0x10 }, { "ST_MANDLOCK", 0x40 }, { "ST_NOATIME", 0x400 },
      { "ST_NODIRATIME", 0x800 }, { "ST_RELATIME", 0x1000 }, { "ST_NOSYMFOLLOW", 0x2000 });
NAMES(magics, "???", NAME(ADFS_SUPER_MAGIC), NAME(AFFS_SUPER_MAGIC), NAME(AFS_SUPER_MAGIC), NAME(ANON_INODE_FS_MAGIC),
      NAME(AUTOFS_SUPER_MAGIC), NAME(BDEVFS_MAGIC), NAME(BINFMTFS_MAGIC), NAME(BPF_FS_MAGIC), NAME(BTRFS_SUPER_MAGIC),
      NAME(BTRFS_TEST_MAGIC), NAME(CEPH_SUPER_MAGIC), NAME(CGROUP2_SUPER_MAGIC), NAME(CGROUP_SUPER_MAGIC),
      NAME(CRAMFS_MAGIC), NAME(DEBUGFS_MAGIC), NAME(DEVPTS_SUPER_MAGIC), NAME(ECRYPTFS_SUPER_MAGIC),
      NAME(EFIVARFS_MAGIC), NAME(EROFS_SUPER_MAGIC_V1), NAME(EXFAT_SUPER_MAGIC), NAME(EXT2_SUPER_MAGIC),
      NAME(F2FS_SUPER_MAGIC), NAME(FUSE_SUPER_MAGIC), NAME(HUGETLBFS_MAGIC), NAME(ISOFS_SUPER_MAGIC),
      NAME(JFFS2_SUPER_MAGIC), NAME(MSDOS_SUPER_MAGIC), NAME(NFS_SUPER_MAGIC), NAME(NILFS_SUPER_MAGIC),
      NAME(NSFS_MAGIC), NAME(OVERLAYFS_SUPER_MAGIC), NAME(PIPEFS_MAGIC), NAME(PROC_SUPER_MAGIC), NAME(PSTOREFS_MAGIC),
      NAME(RAMFS_MAGIC), NAME(RDTGROUP_SUPER_MAGIC), NAME(SECURITYFS_MAGIC), NAME(SELINUX_MAGIC), NAME(SMACK_MAGIC),
      NAME(SMB2_SUPER_MAGIC), NAME(SMB_SUPER_MAGIC), NAME(SOCKFS_MAGIC), NAME(SQUASHFS_MAGIC), NAME(SYSFS_MAGIC),
      NAME(TMPFS_MAGIC), NAME(TRACEFS_MAGIC), NAME(UDF_SUPER_MAGIC), NAME(USBDEVICE_SUPER_MAGIC), NAME(V9FS_MAGIC),
      NAME(XENFS_SUPER_MAGIC), NAME(XFS_SUPER_MAGIC), NAME(ZONEFS_MAGIC));

NAMES(entry_types, "DT_???", NAME(DT_UNKNOWN), NAME(DT_FIFO), NAME(DT_CHR), NAME(DT_DIR), NAME(DT_BLK), NAME(DT_REG),
      NAME(DT_LNK), NAME(DT_SOCK), NAME(DT_WHT));

void put_mode(struct decode *d, unsigned mode)
{
	const char *format = name_of(&formats, mode & S_IFMT);
	const enum kymo_constants style = d->target->style.constants;

	if (style != KYMO_CONSTANTS_NAMES && format)
		put(d, style == KYMO_CONSTANTS_BOTH ? "%#03o /* " : "%#03o", mode);
	if (style == KYMO_CONSTANTS_NUMBERS && format)
		return;
	if (format)
		put(d, "%s|", format);
	put(d, "%s%s%s", mode & S_ISUID && format ? "S_ISUID|" : "", mode & S_ISGID && format ? "S_ISGID|" : "",
	    mode & S_ISVTX && format ? "S_ISVTX|" : "");
	put_permissions(d, format ? mode & 0777 : mode);
	if (style == KYMO_CONSTANTS_BOTH && format)
		puts_(d, " */");
}

/* "st_atime=1", its date as a comment, "st_atime_nsec=0" */
static void put_stat_time(struct decode *d, const char *name, const struct timespec *time)
{
	put(d, ", %s=%" PRId64, name, (int64_t)time->tv_sec);
	put_date(d, time->tv_sec, time->tv_nsec, 9, " /* ", " */");
	put(d, ", %s_nsec=%" PRIu64, name, (uint64_t)time->tv_nsec);
}

static void put_size_of_file(struct decode *d, const struct stat *st)
{
	if (S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode)) {
		puts_(d, ", st_rdev=");
		put_device(d, st->st_rdev);
	} else {
		put(d, ", st_size=%" PRId64, (int64_t)st->st_size);
	}
}

static void put_whole_stat(struct decode *d, const struct stat *st)
{
	puts_(d, "{st_dev=");
	put_device(d, st->st_dev);
	put(d, ", st_ino=%" PRIu64 ", st_mode=", (uint64_t)st->st_ino);
	put_mode(d, st->st_mode);
	put(d, ", st_nlink=%" PRIu64 ", st_uid=%u, st_gid=%u, st_blksize=%" PRId64 ", st_blocks=%" PRId64,
	    (uint64_t)st->st_nlink, st->st_uid, st->st_gid, (int64_t)st->st_blksize, (int64_t)st->st_blocks);
	put_size_of_file(d, st);
	put_stat_time(d, "st_atime", &st->st_atim);
	put_stat_time(d, "st_mtime", &st->st_mtim);
	put_stat_time(d, "st_ctime", &st->st_ctim);
	puts_(d, "}");
}

PRINT(print_stat)
{
	struct stat st;

	if (!fetch_or_put(d, ARG, &st, sizeof(st)))
		return;
	if (d->target->is_whole) {
		put_whole_stat(d, &st);
		return;
	}
	puts_(d, "{st_mode=");
	put_mode(d, st.st_mode);
	put_size_of_file(d, &st);
	puts_(d, ", ...}");
}

PRINT(print_statx_flags)
{
	const unsigned sync = (unsigned)ARG & 0x6000, rest = (unsigned)ARG & ~0x6000u;

	put_name(d, &sync_types, sync);
	if (rest) {
		puts_(d, "|");
		put_flags(d, &at_flags, rest);
	}
}

static void put_statx_time(struct decode *d, const char *name, const struct statx_timestamp *time)
{
	put(d, ", %s={tv_sec=%" PRId64 ", tv_nsec=%u}", name, (int64_t)time->tv_sec, time->tv_nsec);
	put_date(d, time->tv_sec, time->tv_nsec, 9, " /* ", " */");
}

static void put_rest_of_statx(struct decode *d, const struct statx *st)
{
	put(d, ", stx_blocks=%" PRIu64 ", stx_attributes_mask=", (uint64_t)st->stx_blocks);
	put_flags(d, &statx_attributes, st->stx_attributes_mask);
	if (st->stx_mask & STATX_ATIME)
		put_statx_time(d, "stx_atime", &st->stx_atime);
	if (st->stx_mask & STATX_BTIME)
		put_statx_time(d, "stx_btime", &st->stx_btime);
	if (st->stx_mask & STATX_CTIME)
		put_statx_time(d, "stx_ctime", &st->stx_ctime);
	if (st->stx_mask & STATX_MTIME)
		put_statx_time(d, "stx_mtime", &st->stx_mtime);
	put(d, ", stx_rdev_major=%u, stx_rdev_minor=%u, stx_dev_major=%u, stx_dev_minor=%u, stx_mnt_id=%#" PRIx64 "}",
	    st->stx_rdev_major, st->stx_rdev_minor, st->stx_dev_major, st->stx_dev_minor, (uint64_t)st->stx_mnt_id);
}

PRINT(print_statx)
{
	const bool is_whole = d->target->is_whole;
	struct statx st;

	if (!fetch_or_put(d, ARG, &st, sizeof(st)))
		return;
	puts_(d, "{stx_mask=");
	put_flags(d, &statx_masks, st.stx_mask);
	if (is_whole)
		put(d, ", stx_blksize=%u", st.stx_blksize);
	puts_(d, ", stx_attributes=");
	put_flags(d, &statx_attributes, st.stx_attributes);
	if (is_whole)
		put(d, ", stx_nlink=%u, stx_uid=%u, stx_gid=%u", st.stx_nlink, st.stx_uid, st.stx_gid);
	puts_(d, ", stx_mode=");
	put_mode(d, st.stx_mode);
	if (is_whole)
		put(d, ", stx_ino=%" PRIu64, (uint64_t)st.stx_ino);
	put(d, ", stx_size=%" PRIu64, (uint64_t)st.stx_size);
	if (is_whole)
		put_rest_of_statx(d, &st);
	else
		puts_(d, ", ...}");
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
	put(d, ", f_bsize=%" PRIu64 ", f_blocks=%" PRIu64 ", f_bfree=%" PRIu64 ", f_bavail=%" PRIu64,
	    (uint64_t)st.f_bsize, (uint64_t)st.f_blocks, (uint64_t)st.f_bfree, (uint64_t)st.f_bavail);
	put(d,
	    ", f_files=%" PRIu64 ", f_ffree=%" PRIu64 ", f_fsid={val=[%#x, %#x]}, f_namelen=%" PRIu64
	    ", f_frsize=%" PRIu64 ", f_flags=",
	    (uint64_t)st.f_files, (uint64_t)st.f_ffree, id[0], id[1], (uint64_t)st.f_namelen, (uint64_t)st.f_frsize);
	put_flags(d, &mount_states, (uint64_t)st.f_flags);
	puts_(d, "}");
}

enum { ENTRY_SIZE = 19, NAME_AT = 19, NAME_AT_OLD = 18 };

/* The kernel's struct linux_dirent64, or its older one, which has the type in its last byte. */
static void put_entry(struct decode *d, const char *bytes, uint16_t length, bool is_old)
{
	const unsigned char type = (unsigned char)bytes[is_old ? length - 1 : NAME_AT - 1];
	uint64_t numbers[2];

	memcpy(numbers, bytes, sizeof(numbers));
	put(d, "{d_ino=%" PRIu64 ", d_off=%" PRId64 ", d_reclen=%u", numbers[0], (int64_t)numbers[1], length);
	for (unsigned i = 0; i < 2; i++)
		if (i == is_old) {
			puts_(d, ", d_type=");
			put_name(d, &entry_types, type);
		} else {
			const unsigned at = is_old ? NAME_AT_OLD : NAME_AT;

			puts_(d, ", d_name=");
			put_quoted(d, bytes + at, length - at - is_old);
		}
	puts_(d, "}");
}

static void put_entries(struct decode *d, uint64_t address, uint64_t size, bool is_old)
{
	kymo_cleanup_free char *bytes = size && size <= 1 << 20 ? malloc(size) : NULL;
	uint16_t length;

	if (!bytes || !fetch(d, address, bytes, size)) {
		if (size)
			put_address(d, address);
		else
			puts_(d, "[]");
		return;
	}
	puts_(d, "[");
	for (uint64_t at = 0; at + ENTRY_SIZE <= size; at += length) {
		memcpy(&length, bytes + at + 16, sizeof(length));
		if (length <= ENTRY_SIZE || length > size - at)
			break;
		puts_(d, at ? ", " : "");
		put_entry(d, bytes + at, length, is_old);
	}
	puts_(d, "]");
}

/* How many entries there are: each begins with its number, its place and its length. */
PRINT(print_dirents)
{
	const uint64_t size = (uint64_t)d->call->result;
	unsigned n = 0;

	if (d->target->is_whole && !call_failed(d)) {
		put_entries(d, ARG, size, d->call->number == SYS_getdents);
		return;
	}
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
const struct kind k_statx_mask[1] = { { print_flags, &statx_masks, 0 } };
const struct kind k_statx_flags[1] = { { print_statx_flags, NULL, 0 } };
const struct kind k_statfs[1] = { { print_statfs, NULL, AT_EXIT } };
const struct kind k_dirents[1] = { { print_dirents, NULL, AT_EXIT } };
