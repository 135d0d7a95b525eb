/*
 * Which memory the kinds of argument are shown from, as data, for code that copies it during the call. A kind that is
 * not here is shown from registers alone.
 */
#include "syscall/copies.h"

#include <sys/param.h>

#include "syscall/arch_prctl.h"
#include "syscall/decode.h"
#include "syscall/fcntl.h"
#include "syscall/file.h"
#include "syscall/ioctl.h"
#include "syscall/iovec.h"
#include "syscall/ipc.h"
#include "syscall/ipc_control.h"
#include "syscall/limits.h"
#include "syscall/memory.h"
#include "syscall/names.h"
#include "syscall/poll.h"
#include "syscall/prctl.h"
#include "syscall/print.h"
#include "syscall/process.h"
#include "syscall/signal.h"
#include "syscall/socket.h"
#include "syscall/sockopt.h"
#include "syscall/stat.h"
#include "syscall/table.h"
#include "syscall/time.h"

/* In place of numbers that are known later. */
enum {
	HERE = 0,           /* `arg`: the kind's own; argument N is OF(N) */
	NEXT = 9,           /* `times`: the argument after it */
	SHOWN = UINT16_MAX, /* what -s says */
	PATH_SIZE = 4096 + 2,
};

#define OF(number) ((number) + 1)
#define FIXED(bytes) \
	{ \
		.what = KYMO_COPY_BYTES, .size = (bytes) \
	}
#define FIXED_OF(number, bytes) \
	{ \
		.what = KYMO_COPY_BYTES, .arg = OF(number), .size = (bytes) \
	}
#define COUNTED(count, bytes, most) \
	{ \
		.what = KYMO_COPY_BYTES, .times = (count), .size = (bytes), .max = (most) \
	}
#define BUFFER(count) COUNTED(count, 1, SHOWN)
#define TEXT \
	{ \
		.what = KYMO_COPY_STRING, .max = SHOWN \
	}
#define PATH \
	{ \
		.what = KYMO_COPY_STRING, .max = PATH_SIZE \
	}

struct copies {
	const struct kind *kind;
	struct kymo_copy shown[3];  /* where it is shown */
	struct kymo_copy looked_at; /* at the entry, by LOOKS_AT_ENTRY */
	bool is_in_result;          /* the result is shown with it */
};

static const struct copies table[] = {
	{ .kind = k_path, .shown = { PATH } },
	{ .kind = k_string, .shown = { TEXT } },
	{ .kind = k_memfd_name, .shown = { TEXT } },
	{ .kind = k_mount_data, .shown = { TEXT } },
	{ .kind = k_cwd_out, .shown = { PATH } },
	{ .kind = k_path_out, .shown = { BUFFER(KYMO_COPY_RESULT) } },
	{ .kind = k_read_buffer, .shown = { BUFFER(KYMO_COPY_RESULT) } },
	{ .kind = k_random_buffer, .shown = { BUFFER(KYMO_COPY_RESULT) } },
	{ .kind = k_write_buffer, .shown = { BUFFER(NEXT) } },
	{ .kind = k_xattr_value, .shown = { BUFFER(NEXT) } },
	{ .kind = k_xattr_out, .shown = { BUFFER(KYMO_COPY_RESULT) } },
	{ .kind = k_xattr_list, .shown = { BUFFER(KYMO_COPY_RESULT) } },
	{ .kind = k_int_at, .shown = { FIXED(4) } },
	{ .kind = k_int_out, .shown = { FIXED(4) } },
	{ .kind = k_uint_out, .shown = { FIXED(4) } },
	{ .kind = k_id_out, .shown = { FIXED(4) } },
	{ .kind = k_fd_pair, .shown = { FIXED(8) } },
	{ .kind = k_offset_in, .shown = { FIXED(8) } },
	{ .kind = k_sent_from, .shown = { FIXED(8) } },
	{ .kind = k_sent, .shown = { FIXED_OF(2, 8) } },
	{ .kind = k_ids, .shown = { COUNTED(OF(0), 4, 4096) } },
	{ .kind = k_ids_out, .shown = { COUNTED(KYMO_COPY_RESULT, 4, 4096) } },
	{ .kind = k_open_how, .shown = { COUNTED(NEXT, 1, 4096) } },
	{ .kind = k_stat, .shown = { FIXED(144) } },
	{ .kind = k_statx, .shown = { FIXED(256) } },
	{ .kind = k_statfs, .shown = { FIXED(120) } },
	{ .kind = k_dirents, .shown = { COUNTED(KYMO_COPY_RESULT, 1, KYMO_COPY_SIZE_MAX) } },
	{ .kind = k_iovec_in, .shown = { { .what = KYMO_COPY_VECTOR, .times = NEXT, .max = SHOWN } } },
	{ .kind = k_iovec_out, .shown = { { .what = KYMO_COPY_VECTOR, .times = NEXT, .max = SHOWN } } },
	{ .kind = k_iovec_plain, .shown = { COUNTED(NEXT, 16, 4096) } },
	{ .kind = k_msg_in, .shown = { { .what = KYMO_COPY_MESSAGE, .max = SHOWN } } },
	{ .kind = k_msg_out, .shown = { { .what = KYMO_COPY_MESSAGE, .max = SHOWN } }, .looked_at = FIXED(56) },
	{ .kind = k_mmsg_in, .shown = { COUNTED(NEXT, 64, 4096), { .what = KYMO_COPY_MESSAGE, .max = SHOWN } } },
	{ .kind = k_mmsg_out,
	  .shown = { COUNTED(NEXT, 64, 4096), { .what = KYMO_COPY_MESSAGE, .max = SHOWN } },
	  .looked_at = COUNTED(NEXT, 64, 64 * KYMO_SYSCALL_NAME_SIZES) },
	{ .kind = k_receive_limit, .shown = { FIXED(16) }, .looked_at = FIXED(16) },
	{ .kind = k_fcntl_in, .shown = { FIXED(32) } },
	{ .kind = k_fcntl_out, .shown = { FIXED_OF(2, 32) } },
	{ .kind = k_ioctl_in, .shown = { FIXED(64) } },
	{ .kind = k_ioctl_out, .shown = { FIXED_OF(2, 64) } },
	{ .kind = k_residence, .shown = { { .what = KYMO_COPY_BYTES, .size = SHOWN } } },
	{ .kind = k_argv, .shown = { { .what = KYMO_COPY_STRINGS, .max = SHOWN } } },
	{ .kind = k_envp, .shown = { FIXED(8192) } },
	{ .kind = k_clone_rest, .shown = { FIXED_OF(2, 4) } },
	{ .kind = k_clone3,
	  .shown = { COUNTED(OF(1), 1, 4096),
		     { .what = KYMO_COPY_BYTES, .is_pointer = true, .offset = 64, .size = 4 * SET_TIDS_MAX } } },
	{ .kind = k_clone3_out,
	  .shown = { { .what = KYMO_COPY_BYTES, .arg = OF(0), .times = OF(1), .size = 1, .max = 88 },
		     { .what = KYMO_COPY_BYTES, .arg = OF(0), .is_pointer = true, .offset = 8, .size = 4 },
		     { .what = KYMO_COPY_BYTES, .arg = OF(0), .is_pointer = true, .offset = 24, .size = 4 } } },
	{ .kind = k_wait_status, .shown = { FIXED(4) } },
	{ .kind = k_wait_rusage, .shown = { FIXED(144) } },
	{ .kind = k_rusage_out, .shown = { FIXED(144) } },
	{ .kind = k_futex_args, .shown = { FIXED_OF(3, 16) } },
	{ .kind = k_affinity_in, .shown = { COUNTED(OF(1), 1, 1024) } },
	{ .kind = k_affinity_out, .shown = { COUNTED(KYMO_COPY_RESULT, 1, 1024) } },
	{ .kind = k_robust_out, .shown = { FIXED(8) } },
	{ .kind = k_robust_size_out, .shown = { FIXED(8) } },
	{ .kind = k_rlimit, .shown = { FIXED(16) } },
	{ .kind = k_rlimit_out, .shown = { FIXED(16) } },
	{ .kind = k_uname, .shown = { FIXED(390) } },
	{ .kind = k_sysinfo, .shown = { FIXED(112) } },
	{ .kind = k_times, .shown = { FIXED(32) } },
	{ .kind = k_capability_header, .shown = { FIXED(8) } },
	{ .kind = k_capability_data, .shown = { FIXED(24), FIXED_OF(0, 8) } },
	{ .kind = k_capability_out, .shown = { FIXED(24), FIXED_OF(0, 8) } },
	{ .kind = k_prctl_in, .shown = { FIXED_OF(1, 16), { .what = KYMO_COPY_STRING, .arg = OF(4), .max = SHOWN } } },
	{ .kind = k_prctl_out, .shown = { FIXED_OF(1, 16), FIXED_OF(4, 8) } },
	{ .kind = k_arch_out, .shown = { FIXED_OF(1, 8) } },
	{ .kind = k_pollfds, .shown = { COUNTED(NEXT, 8, 8192) }, .is_in_result = true },
	{ .kind = k_fdset, .shown = { FIXED(128) }, .is_in_result = true },
	{ .kind = k_pselect_mask, .shown = { FIXED(16), { .what = KYMO_COPY_BYTES, .is_pointer = true, .size = 8 } } },
	{ .kind = k_epoll_event, .shown = { FIXED(12) } },
	{ .kind = k_epoll_events, .shown = { COUNTED(KYMO_COPY_RESULT, 12, 6144) } },
	{ .kind = k_sigaction, .shown = { FIXED(32) } },
	{ .kind = k_sigaction_out, .shown = { FIXED(32) } },
	{ .kind = k_sigset4, .shown = { FIXED(8) } },
	{ .kind = k_sigset4_out, .shown = { FIXED(8) } },
	{ .kind = k_sigset, .shown = { FIXED(8) } },
	{ .kind = k_sigset_out, .shown = { FIXED(8) } },
	{ .kind = k_sigset_part, .shown = { FIXED(8) } },
	{ .kind = k_sigreturn,
	  .shown = { { .what = KYMO_COPY_BYTES, .arg = OF(KYMO_COPY_STACK), .offset = MASK_IN_FRAME, .size = 8 } } },
	{ .kind = k_sigaltstack, .shown = { FIXED(24) } },
	{ .kind = k_sigaltstack_out, .shown = { FIXED(24) } },
	{ .kind = k_siginfo_in, .shown = { FIXED(128) } },
	{ .kind = k_siginfo_out, .shown = { FIXED(128) } },
	{ .kind = k_sockaddr, .shown = { COUNTED(NEXT, 1, 128) } },
	{ .kind = k_sockaddr_out, .shown = { FIXED(128) } },
	{ .kind = k_socklen_out, .shown = { FIXED(4) }, .looked_at = FIXED(4) },
	{ .kind = k_option_value, .shown = { COUNTED(NEXT, 1, 136), BUFFER(NEXT) } },
	{ .kind = k_option_out, .shown = { FIXED(128), { .what = KYMO_COPY_BYTES, .size = SHOWN } } },
	{ .kind = k_sembufs, .shown = { COUNTED(NEXT, 6, 1536) } },
	{ .kind = k_msgctl_in, .shown = { FIXED(120) } },
	{ .kind = k_msgctl_out, .shown = { FIXED_OF(2, 120) } },
	{ .kind = k_semctl_in, .shown = { FIXED(104) } },
	{ .kind = k_semctl_out, .shown = { FIXED_OF(3, 104) } },
	{ .kind = k_shmctl_in, .shown = { FIXED(112) } },
	{ .kind = k_shmctl_out, .shown = { FIXED_OF(2, 112) } },
	{ .kind = k_message_in,
	  .shown = { FIXED(8), { .what = KYMO_COPY_BYTES, .offset = 8, .times = NEXT, .size = 1, .max = SHOWN } } },
	{ .kind = k_message_out,
	  .shown = { FIXED(8), { .what = KYMO_COPY_BYTES, .offset = 8, .times = NEXT, .size = 1, .max = SHOWN } } },
	{ .kind = k_timespec, .shown = { FIXED(16) }, .is_in_result = true },
	{ .kind = k_timespec_out, .shown = { FIXED(16) } },
	{ .kind = k_timeval, .shown = { FIXED(16) }, .is_in_result = true },
	{ .kind = k_timeval_out, .shown = { FIXED(16) } },
	{ .kind = k_timezone, .shown = { FIXED(8) } },
	{ .kind = k_timezone_out, .shown = { FIXED(8) } },
	{ .kind = k_time_out, .shown = { FIXED(8) } },
	{ .kind = k_sleep_rest, .shown = { FIXED(16) } },
	{ .kind = k_itimerval, .shown = { FIXED(32) } },
	{ .kind = k_itimerval_out, .shown = { FIXED(32) } },
	{ .kind = k_itimerspec, .shown = { FIXED(32) } },
	{ .kind = k_itimerspec_out, .shown = { FIXED(32) } },
	{ .kind = k_sigevent, .shown = { FIXED(64) } },
	{ .kind = k_utimens, .shown = { FIXED(32) } },
	{ .kind = k_utimes, .shown = { FIXED(32) } },
	{ .kind = k_utime, .shown = { FIXED(16) } },
};

static const struct copies *find_copies(const struct kind *kind)
{
	for (size_t i = 0; i < kymo_countof(table); i++)
		if (table[i].kind == kind)
			return &table[i];
	return NULL;
}

/* With the numbers that were not known. */
static struct kymo_copy complete(const struct kymo_copy *copy, unsigned arg, size_t string_size)
{
	struct kymo_copy result = *copy;
	const unsigned shown = (unsigned)MIN(string_size, KYMO_SYSCALL_COPIED_MAX);

	result.arg = (uint8_t)(copy->arg == HERE ? arg : copy->arg - 1u);
	if (copy->times == NEXT)
		result.times = (uint8_t)OF(arg + 1);
	if (copy->size == SHOWN)
		result.size = (uint16_t)shown;
	if (copy->max ==
	    SHOWN) /* one more tells that there are more, and the kernel ends a string that it cuts with a NUL */
		result.max =
			(uint16_t)(shown + (copy->what == KYMO_COPY_STRING || copy->what == KYMO_COPY_STRINGS ? 2 : 0));
	return result;
}

static bool is_copy(const struct kymo_copy *copy)
{
	return copy->size || copy->max;
}

size_t kymo_syscall_copies(uint64_t number, bool is_leaving, size_t string_size, struct kymo_copy ret[KYMO_COPIES_MAX])
{
	const struct syscall_row *row = syscall_row(number);
	bool is_late = false; /* what stands after an argument that is shown at the exit is shown then, too */
	size_t n = 0;

	for (unsigned arg = 0; row && arg < 6 && row->args[arg]; arg++) {
		const struct copies *copies = find_copies(row->args[arg]);

		is_late |= row->args[arg]->when & AT_EXIT;
		if (!copies)
			continue;
		if (!is_leaving && is_copy(&copies->looked_at) && n < KYMO_COPIES_MAX)
			ret[n++] = complete(&copies->looked_at, arg, string_size);
		if (is_late != is_leaving && !(is_leaving && copies->is_in_result))
			continue;
		for (size_t i = 0; i < kymo_countof(copies->shown) && is_copy(&copies->shown[i]) && n < KYMO_COPIES_MAX;
		     i++)
			ret[n++] = complete(&copies->shown[i], arg, string_size);
	}
	return n;
}
