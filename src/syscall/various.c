/* Calls of few words: mounts by descriptors, modules, keys of memory protection, kcmp, priorities of input and output.
 */
#include "syscall/various.h"

#include <fcntl.h>
#include <inttypes.h>
#include <linux/ioprio.h>

#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/print.h"

NAMES(fsopen_flags, "FSOPEN_???", { "FSOPEN_CLOEXEC", 1 });
NAMES(fsmount_flags, "FSMOUNT_???", { "FSMOUNT_CLOEXEC", 1 });
NAMES(mount_attributes, "MOUNT_ATTR_???", { "MOUNT_ATTR_RDONLY", 1 }, { "MOUNT_ATTR_NOSUID", 2 },
      { "MOUNT_ATTR_NODEV", 4 }, { "MOUNT_ATTR_NOEXEC", 8 }, { "MOUNT_ATTR_NOATIME", 0x10 },
      { "MOUNT_ATTR_STRICTATIME", 0x20 }, { "MOUNT_ATTR_NODIRATIME", 0x80 }, { "MOUNT_ATTR_IDMAP", 0x100000 },
      { "MOUNT_ATTR_NOSYMFOLLOW", 0x200000 });
NAMES(fspick_flags, "FSPICK_???", { "FSPICK_CLOEXEC", 1 }, { "FSPICK_SYMLINK_NOFOLLOW", 2 },
      { "FSPICK_NO_AUTOMOUNT", 4 }, { "FSPICK_EMPTY_PATH", 8 });
NAMES(open_tree_flags, "OPEN_TREE_???", { "OPEN_TREE_CLONE", 1 }, { "OPEN_TREE_CLOEXEC", 0x80000 },
      { "AT_SYMLINK_NOFOLLOW", 0x100 }, { "AT_REMOVEDIR", 0x200 }, { "AT_SYMLINK_FOLLOW", 0x400 },
      { "AT_NO_AUTOMOUNT", 0x800 }, { "AT_EMPTY_PATH", 0x1000 }, { "AT_RECURSIVE", 0x8000 });
NAMES(move_mount_flags, "MOVE_MOUNT_???", { "MOVE_MOUNT_F_SYMLINKS", 1 }, { "MOVE_MOUNT_F_AUTOMOUNTS", 2 },
      { "MOVE_MOUNT_F_EMPTY_PATH", 4 }, { "MOVE_MOUNT_T_SYMLINKS", 0x10 }, { "MOVE_MOUNT_T_AUTOMOUNTS", 0x20 },
      { "MOVE_MOUNT_T_EMPTY_PATH", 0x40 }, { "MOVE_MOUNT_SET_GROUP", 0x100 });
NAMES(delete_flags, "O_???", NAME(O_NONBLOCK), NAME(O_TRUNC));
NAMES(finit_flags, "MODULE_INIT_???", { "MODULE_INIT_IGNORE_MODVERSIONS", 1 }, { "MODULE_INIT_IGNORE_VERMAGIC", 2 },
      { "MODULE_INIT_COMPRESSED_FILE", 4 });
NAMES(compared, "KCMP_???", { "KCMP_FILE", 0 }, { "KCMP_VM", 1 }, { "KCMP_FILES", 2 }, { "KCMP_FS", 3 },
      { "KCMP_SIGHAND", 4 }, { "KCMP_IO", 5 }, { "KCMP_SYSVSEM", 6 }, { "KCMP_EPOLL_TFD", 7 });
NAMES(secret_flags, "", { "O_CLOEXEC", O_CLOEXEC });
NAMES(key_rights, "PKEY_???", { "PKEY_DISABLE_ACCESS", 1 }, { "PKEY_DISABLE_WRITE", 2 }, { "PKEY_DISABLE_EXECUTE", 4 });
NAMES(priority_targets, "IOPRIO_WHO_???", NAME(IOPRIO_WHO_PROCESS), NAME(IOPRIO_WHO_PGRP), NAME(IOPRIO_WHO_USER));
NAMES(priority_classes, "IOPRIO_CLASS_???", { "IOPRIO_CLASS_NONE", 0 }, { "IOPRIO_CLASS_RT", 1 },
      { "IOPRIO_CLASS_BE", 2 }, { "IOPRIO_CLASS_IDLE", 3 });

PRINT(print_uint_hex)
{
	put(d, "%#x", (unsigned)ARG);
}

/* ---- kcmp ------------------------------------------------------------------------------------ */

enum { COMPARED_FILE = 0, COMPARED_TFD = 7 };

/* What is compared decides whether the others are descriptors; most have none. */
PRINT(print_compared)
{
	const unsigned type = (unsigned)ARG;
	const uint64_t *a = d->call->args;

	put_name(d, &compared, type);
	if (type == COMPARED_FILE) {
		puts_(d, ", ");
		put_fd(d, (int)a[3]);
		puts_(d, ", ");
		put_fd(d, (int)a[4]);
	} else if (type == COMPARED_TFD) {
		puts_(d, ", ");
		put_fd(d, (int)a[3]);
		puts_(d, ", ");
		put_address(d, a[4]);
	} else if (!name_of(&compared, type)) {
		put(d, ", %#" PRIx64 ", %#" PRIx64, a[3], a[4]);
	}
	d->call->is_stopped = true;
}

/* ---- priorities ------------------------------------------------------------------------------ */

enum { CLASS_SHIFT = 13 };

static void put_priority(struct decode *d, unsigned priority)
{
	puts_(d, "IOPRIO_PRIO_VALUE(");
	put_name(d, &priority_classes, priority >> CLASS_SHIFT);
	put(d, ", %u)", priority & ((1u << CLASS_SHIFT) - 1));
}

PRINT(print_priority_id)
{
	if ((int)d->call->args[arg - 1] == IOPRIO_WHO_PROCESS)
		put_pid(d, (int)ARG);
	else if ((int)d->call->args[arg - 1] == IOPRIO_WHO_PGRP)
		put_process_group(d, (int)ARG);
	else
		put(d, "%d", (int)ARG);
}

PRINT(print_priority)
{
	const enum kymo_constants style = d->target->style.constants;
	const unsigned priority = (unsigned)ARG;

	if (style != KYMO_CONSTANTS_NAMES)
		put(d, "%d", (int)priority);
	if (style == KYMO_CONSTANTS_NUMBERS)
		return;
	puts_(d, style == KYMO_CONSTANTS_BOTH ? " /* " : "");
	put(d, "IOPRIO_PRIO_VALUE(");
	put_name(d, &priority_classes, priority >> CLASS_SHIFT);
	put(d, ", %u)%s", priority & ((1u << CLASS_SHIFT) - 1), style == KYMO_CONSTANTS_BOTH ? " */" : "");
}

void result_priority(struct decode *d)
{
	put(d, d->target->style.constants == KYMO_CONSTANTS_NUMBERS ? "%" PRId64 : "%" PRId64 " (", d->call->result);
	if (d->target->style.constants == KYMO_CONSTANTS_NUMBERS)
		return;
	put_priority(d, (unsigned)d->call->result);
	puts_(d, ")");
}

const struct kind k_fsopen_flags[1] = { { print_flags, &fsopen_flags, 0 } };
const struct kind k_fsmount_flags[1] = { { print_flags, &fsmount_flags, 0 } };
const struct kind k_mount_attributes[1] = { { print_flags, &mount_attributes, 0 } };
const struct kind k_fspick_flags[1] = { { print_flags, &fspick_flags, 0 } };
const struct kind k_open_tree_flags[1] = { { print_flags, &open_tree_flags, 0 } };
const struct kind k_move_mount_flags[1] = { { print_flags, &move_mount_flags, 0 } };
const struct kind k_delete_flags[1] = { { print_flags, &delete_flags, 0 } };
const struct kind k_finit_flags[1] = { { print_flags, &finit_flags, 0 } };
const struct kind k_compared[1] = { { print_compared, NULL, 0 } };
const struct kind k_secret_flags[1] = { { print_flags, &secret_flags, 0 } };
const struct kind k_key_rights[1] = { { print_flags_long, &key_rights, 0 } };
const struct kind k_uint_hex[1] = { { print_uint_hex, NULL, 0 } };
const struct kind k_priority_target[1] = { { print_name, &priority_targets, 0 } };
const struct kind k_priority_id[1] = { { print_priority_id, NULL, 0 } };
const struct kind k_priority[1] = { { print_priority, NULL, 0 } };
