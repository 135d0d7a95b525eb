/* fcntl: what a command takes and gives depends on the command. */
#include "syscall/fcntl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <string.h>

#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/file.h"
#include "syscall/print.h"
#include "syscall/signal_names.h"

NAMES(commands, "F_???", NAME(F_DUPFD), NAME(F_GETFD), NAME(F_SETFD), NAME(F_GETFL), NAME(F_SETFL), { "F_GETLK", 5 },
      { "F_SETLK", 6 }, { "F_SETLKW", 7 }, NAME(F_SETOWN), NAME(F_GETOWN), NAME(F_SETSIG), NAME(F_GETSIG),
      NAME(F_SETOWN_EX), NAME(F_GETOWN_EX), NAME(F_OFD_GETLK), NAME(F_OFD_SETLK), NAME(F_OFD_SETLKW), NAME(F_SETLEASE),
      NAME(F_GETLEASE), NAME(F_NOTIFY), NAME(F_DUPFD_CLOEXEC), NAME(F_SETPIPE_SZ), NAME(F_GETPIPE_SZ),
      NAME(F_ADD_SEALS), NAME(F_GET_SEALS), NAME(F_GET_RW_HINT), NAME(F_SET_RW_HINT), NAME(F_GET_FILE_RW_HINT),
      NAME(F_SET_FILE_RW_HINT));
NAMES(lock_types, "F_???", NAME(F_RDLCK), NAME(F_WRLCK), NAME(F_UNLCK), { "F_EXLCK", 4 }, { "F_SHLCK", 8 });
NAMES(whences, "SEEK_???", NAME(SEEK_SET), NAME(SEEK_CUR), NAME(SEEK_END), NAME(SEEK_DATA), NAME(SEEK_HOLE));
NAMES(seals, "F_SEAL_???", NAME(F_SEAL_SEAL), NAME(F_SEAL_SHRINK), NAME(F_SEAL_GROW), NAME(F_SEAL_WRITE),
      NAME(F_SEAL_FUTURE_WRITE));
NAMES(notices, "DN_???", NAME(DN_ACCESS), NAME(DN_MODIFY), NAME(DN_CREATE), NAME(DN_DELETE), NAME(DN_RENAME),
      NAME(DN_ATTRIB), NAME(DN_MULTISHOT));
NAMES(owner_types, "F_OWNER_???", NAME(F_OWNER_TID), NAME(F_OWNER_PID), NAME(F_OWNER_PGRP));

void put_open_flags(struct decode *d, uint64_t flags)
{
	static const char *const modes[] = { "O_RDONLY", "O_WRONLY", "O_RDWR", "O_ACCMODE" };

	put_flags_after(d, &open_flags, modes[flags & O_ACCMODE], flags, flags & ~(uint64_t)O_ACCMODE);
}

static void put_lock(struct decode *d, uint64_t address, bool with_owner)
{
	struct flock lock;

	if (!fetch_or_put(d, address, &lock, sizeof(lock)))
		return;
	puts_(d, "{l_type=");
	put_name(d, &lock_types, (uint16_t)lock.l_type);
	puts_(d, ", l_whence=");
	put_name(d, &whences, (uint16_t)lock.l_whence);
	put(d, ", l_start=%" PRId64 ", l_len=%" PRId64, (int64_t)lock.l_start, (int64_t)lock.l_len);
	if (with_owner)
		put(d, ", l_pid=%d", lock.l_pid);
	puts_(d, "}");
}

static void put_owner(struct decode *d, uint64_t address)
{
	struct f_owner_ex owner;

	if (!fetch_or_put(d, address, &owner, sizeof(owner)))
		return;
	puts_(d, "{type=");
	put_name(d, &owner_types, (unsigned)owner.type);
	puts_(d, ", pid=");
	if (owner.type == F_OWNER_PGRP)
		put_process_group(d, owner.pid);
	else
		put_pid(d, owner.pid);
	puts_(d, "}");
}

static bool takes_nothing(unsigned command)
{
	switch (command) {
	case F_GETFD:
	case F_GETFL:
	case F_GETOWN:
	case F_GETSIG:
	case F_GETLEASE:
	case F_GETPIPE_SZ:
	case F_GET_SEALS:
		return true;
	default:
		return false;
	}
}

PRINT(print_command)
{
	put_name(d, &commands, (unsigned)ARG);
	d->call->is_stopped = takes_nothing((unsigned)ARG);
	puts_(d, d->call->is_stopped ? "" : ", ");
}

PRINT(print_argument)
{
	const uint64_t value = ARG;

	d->call->is_stopped = true;
	switch ((unsigned)d->call->args[1]) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
	case F_SETPIPE_SZ:
		put(d, "%d", (int)value);
		break;
	case F_SETOWN:
		put_pid(d, (int)value);
		break;
	case F_SETFD:
		put_flags(d, &fd_flags, (unsigned)value);
		break;
	case F_SETFL:
		put_open_flags(d, (unsigned)value);
		break;
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		put_lock(d, value, false);
		break;
	case F_SETSIG:
		put_signal(d, (int)value);
		break;
	case F_SETOWN_EX:
		put_owner(d, value);
		break;
	case F_SETLEASE:
		put_name(d, &lock_types, (unsigned)value);
		break;
	case F_NOTIFY:
		put_flags(d, &notices, (unsigned)value);
		break;
	case F_ADD_SEALS:
		put_flags(d, &seals, (unsigned)value);
		break;
	case F_GETLK:
	case F_OFD_GETLK:
	case F_GETOWN_EX:
		d->call->is_stopped = false;
		break;
	default:
		put(d, "%#" PRIx64, value);
	}
}

PRINT(print_answer)
{
	if ((unsigned)d->call->args[1] == F_GETOWN_EX)
		put_owner(d, d->call->args[2]);
	else
		put_lock(d, d->call->args[2], true);
}

void result_fcntl(struct decode *d)
{
	const uint64_t result = (uint64_t)d->call->result;

	switch ((unsigned)d->call->args[1]) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		put_fd(d, (int)result);
		break;
	case F_GETOWN:
		put_pid(d, (int)result);
		break;
	case F_GETFD:
		put(d, "%#" PRIx64, result);
		if (result) {
			puts_(d, " (flags ");
			put_flags(d, &fd_flags, result);
			puts_(d, ")");
		}
		break;
	case F_GETFL:
		put(d, "%#" PRIx64 " (flags ", result);
		put_open_flags(d, result);
		puts_(d, ")");
		break;
	case F_GETLEASE:
	case F_GET_SEALS:
		put(d, "%#" PRIx64 " (", result);
		if ((unsigned)d->call->args[1] == F_GETLEASE)
			put_name(d, &lock_types, result);
		else
			put_flags(d, &seals, result);
		puts_(d, ")");
		break;
	case F_GETSIG:
		put(d, "%" PRIu64, result);
		if (!result)
			break;
		puts_(d, " (");
		put_signal(d, (int)result);
		puts_(d, ")");
		break;
	default:
		put(d, "%" PRId64, (int64_t)result);
	}
}

const struct kind k_fcntl[1] = { { print_command, NULL, 0 } };
const struct kind k_fcntl_in[1] = { { print_argument, NULL, OWN_COMMA } };
const struct kind k_fcntl_out[1] = { { print_answer, NULL, AT_EXIT | OWN_COMMA } };
