/*
 * What the decoders of this room share. One family of calls is a file; it says in `kind`s how arguments are shown, and
 * calls.h joins kinds to calls.
 */
#ifndef KYMO_SYSCALL_DECODE_H
#define KYMO_SYSCALL_DECODE_H

#include <stdint.h>

#include "base/cleanup.h"
#include "syscall/syscall.h"

struct decode {
	struct kymo_syscall_call *call;
	const struct kymo_syscall_target *target;
	struct kymo_line *text;
	bool is_leaving; /* the call has returned: what it wrote can be read */
	bool is_output;  /* the argument at hand is what the call writes: nothing, where it failed */
};

enum { N_SIGNALS = 64 };

enum { SET_TIDS_MAX = 32 }; /* of clone3: as deep as namespaces of processes are */

/* How an argument is shown. */
struct kind {
	void (*print)(struct decode *d, unsigned arg, const void *data);
	const void *data; /* for `print`: the table of flags, for instance */
	unsigned when;
};

enum {
	AT_ENTRY = 0,
	AT_EXIT = 1,   /* the kernel writes it */
	OWN_COMMA = 2, /* it prints ", " itself, or nothing at all */
	IS_PATH = 4,   /* what -P compares */
	IS_FD = 8,
	LOOKS_AT_ENTRY =
		16, /* with AT_EXIT: it is called at the entry too, to save something, and prints nothing then */
};

typedef void result_fn(struct decode *d);

struct row {
	result_fn *result; /* what a call that did not fail gives; NULL: a decimal number */
	const struct kind *args[6];
	bool is_known;
};

enum {
	CLASS_FILE = 1,
	CLASS_DESC = 2,
	CLASS_PROCESS = 4,
	CLASS_NETWORK = 8,
	CLASS_SIGNAL = 16,
	CLASS_IPC = 32,
	CLASS_MEMORY = 64,
	CLASS_CREDS = 128,
	CLASS_CLOCK = 256,
};

/* Where the mask is from the stack pointer on as rt_sigreturn is made: uc_sigmask of the kernel's struct ucontext. */
enum { MASK_IN_FRAME = 296 };

/* NULL for unknown numbers. */
const struct row *syscall_row(uint64_t number);

/* What classes a call is in; none for unknown numbers. */
unsigned syscall_classes(uint64_t number);

/* The name of a call by the number that 32-bit programs have for it; NULL for unknown ones. */
const char *syscall_i386_name(uint64_t number);

/* "-1 ENOENT (No such file or directory)", "? ERESTARTSYS (To be restarted if SA_RESTART is set)". */
void syscall_put_error(struct kymo_line *text, int number);

/* ---- flags and values: data ------------------------------------------------------------------ */

struct name {
	const char *text;
	uint64_t value;
};

struct names {
	const struct name *items; /* in the order in which they are shown */
	size_t n;
	const char *unknown; /* "O_???" */
	bool is_decimal;     /* by -X its numbers are no hex */
};

#define NAME(constant) \
	{ \
#constant, (uint64_t)(constant) \
	}
#define NAMES(variable, unknown_text, ...) \
	static const struct name variable##_items[] = { __VA_ARGS__ }; \
	static const struct names variable = { variable##_items, kymo_countof(variable##_items), unknown_text, false }
#define SHARED_NAMES(variable, unknown_text, ...) \
	static const struct name variable##_items[] = { __VA_ARGS__ }; \
	const struct names variable = { variable##_items, kymo_countof(variable##_items), unknown_text, false }

#define DECIMAL_NAMES(variable, unknown_text, ...) \
	static const struct name variable##_items[] = { __VA_ARGS__ }; \
	static const struct names variable = { variable##_items, kymo_countof(variable##_items), unknown_text, true }

extern const struct names open_flags, at_flags, fd_flags, socket_families, socket_levels, clock_ids, capability_names;

/* NULL where none has this very value. */
const char *name_of(const struct names *names, uint64_t value);

/* ---- pieces of text -------------------------------------------------------------------------- */

#define put(d, ...) kymo_line_printf((d)->text, __VA_ARGS__)
static inline void puts_(struct decode *d, const char *string)
{
	kymo_line_puts(d->text, string);
}

void put_flags(struct decode *d, const struct names *names, uint64_t value); /* "A|B|0x40", "0", "0x40 / * X_??? * /" */
bool has_any_flag(const struct names *names, uint64_t value);
void put_flags_plainly(struct decode *d, const struct names *names, uint64_t value); /* "A|B" whatever -X says */
void put_flags_after(struct decode *d, const struct names *names, const char *first, uint64_t value,
		     uint64_t rest); /* "FIRST|A|B" for `value`, of which `rest` has names of the table */
void put_name(struct decode *d, const struct names *names, uint64_t value); /* one of them, or "0x7 / * X_??? * /" */
void put_constant(struct decode *d, const char *name, int64_t value);       /* whose number is decimal */
void put_hex_constant(struct decode *d, const char *name, uint64_t value);

/* Of a value in network order: its bytes, if -X asks for them, and whether the text follows that is easier to read;
 * then end_form(). */
bool begin_form(struct decode *d, const void *bytes, size_t n);
void end_form(struct decode *d);

void put_pid(struct decode *d, int pid);              /* of a process or thread, with what -Y says */
void put_process_group(struct decode *d, int group);  /* of processes, likewise */
void put_address(struct decode *d, uint64_t address); /* "NULL", "0x…" */
void put_fd(struct decode *d, int fd);
void put_dirfd(struct decode *d, int fd);
void put_path(struct decode *d, uint64_t address);
void put_string(struct decode *d, uint64_t address);               /* up to its NUL, cut by -s */
void put_bytes(struct decode *d, uint64_t address, uint64_t size); /* as a string, cut by -s */
void put_hex_bytes(struct decode *d, uint64_t address, uint64_t size);
void put_quoted(struct decode *d, const char *bytes, size_t size); /* up to a NUL; of our own memory */
void put_signal(struct decode *d, int signal);
void put_sigset(struct decode *d, uint64_t mask);
void put_mode(struct decode *d, unsigned mode);        /* "S_IFREG|0644" */
void put_permissions(struct decode *d, unsigned mode); /* "0644" */
void put_open_flags(struct decode *d, uint64_t flags); /* with the access mode */
void put_device(struct decode *d, uint64_t device);
void put_id(struct decode *d, unsigned id); /* of a user or group: "-1" for none */
void put_wait_status(struct decode *d, int status);
void put_siginfo(struct decode *d, const void *siginfo);
void put_date(struct decode *d, int64_t seconds, int64_t fraction, int digits, const char *before,
	      const char *after); /* "2026-01-31T12:00:00.500000000+0000"; nothing for 0 */
void put_timespec(struct decode *d, const void *timespec);
void put_timeval(struct decode *d, const void *timeval);
void put_timespec_at(struct decode *d, uint64_t address);
void put_timeval_at(struct decode *d, uint64_t address);
void put_sockaddr(struct decode *d, uint64_t address, uint64_t size);
void put_sigset_at(struct decode *d, uint64_t address, uint64_t size);
void put_ticks(struct decode *d, int64_t ticks); /* of the user's clock, with seconds behind them */
void put_rusage_at(struct decode *d, uint64_t address);

/* What stands behind the `known` bytes of a structure of `size` bytes: nothing where it is all zero. */
void put_struct_rest(struct decode *d, uint64_t address, size_t known, uint64_t size);
void put_struct_rest_after(struct decode *d, const char *before, uint64_t address, size_t known, uint64_t size);

/* Vectors of buffers; `limit` is how many bytes they hold in all (what was transferred), or UINT64_MAX. */
void put_iovec(struct decode *d, uint64_t address, uint64_t n, uint64_t limit, bool with_data);

/* ---- memory of the target -------------------------------------------------------------------- */

/* All `size` bytes, or false. */
bool fetch(struct decode *d, uint64_t address, void *out, size_t size);

/* The same; where it fails, or the call has failed, the address is printed. */
bool fetch_or_put(struct decode *d, uint64_t address, void *out, size_t size);

bool call_failed(const struct decode *d);

/* Of an array: what -s says, and with -v all that an array may reasonably have. */
size_t shown_elements(const struct decode *d);

/* An array: "[", elements with ", " between, "...", "]". Elements are fetched one at a time into room for 128 bytes. */
void put_array(struct decode *d, uint64_t address, uint64_t n, size_t element_size,
	       void (*element)(struct decode *d, const void *bytes));

/* ---- results --------------------------------------------------------------------------------- */

result_fn result_pid, result_group, result_hex, result_octal, result_fd, result_fcntl, result_poll, result_select,
	result_scheduler, result_signal, result_time, result_prctl, result_recvmmsg, result_membarrier, result_priority,
	result_personality, result_arch_prctl;

/* ---- kinds, by family ------------------------------------------------------------------------ */

/* print.c */
extern const struct kind k_int[1], k_pid[1], k_group[1], k_uint[1], k_long[1], k_ulong[1], k_hex[1], k_address[1],
	k_fd[1], k_dirfd[1];
extern const struct kind k_path[1], k_string[1], k_id[1], k_octal[1], k_interrupted[1], k_write_buffer[1],
	k_read_buffer[1], k_random_buffer[1];
extern const struct kind k_path_out[1], k_cwd_out[1], k_memfd_name[1], k_int_at[1], k_uint_out[1], k_int_out[1],
	k_id_out[1];
extern const struct kind k_fd_pair[1], k_offset_in[1], k_sent_from[1], k_sent[1], k_ids[1], k_ids_out[1];

/* file.c */
extern const struct kind k_open_flags[1], k_mode[1], k_access[1], k_access_flags[1], k_at_flags[1], k_whence[1],
	k_rename_flags[1];
extern const struct kind k_pipe_flags[1], k_dup_flags[1], k_flock[1], k_fallocate[1], k_fadvise[1], k_open_how[1],
	k_node[1];
extern const struct kind k_device[1], k_random_flags[1], k_pidfd_flags[1], k_close_range[1], k_memfd_flags[1],
	k_inotify_flags[1];
extern const struct kind k_inotify_mask[1], k_mount_flags[1], k_mount_data[1], k_umount_flags[1], k_splice_flags[1];
extern const struct kind k_xattr_flags[1], k_xattr_value[1], k_xattr_out[1], k_xattr_list[1], k_rwf[1], k_sync_range[1];

/* stat.c */
extern const struct kind k_stat[1], k_statx[1], k_statx_mask[1], k_statx_flags[1], k_statfs[1], k_dirents[1];

/* iovec.c */
extern const struct kind k_iovec_in[1], k_iovec_out[1], k_iovec_plain[1], k_msg_in[1], k_msg_out[1], k_mmsg_in[1],
	k_mmsg_out[1], k_receive_limit[1];
extern const struct kind k_msg_flags[1];

/* fcntl.c */
extern const struct kind k_fcntl[1], k_fcntl_in[1], k_fcntl_out[1];

/* ioctl.c */
extern const struct kind k_ioctl[1], k_ioctl_in[1], k_ioctl_out[1];

/* memory.c */
extern const struct kind k_prot[1], k_map_flags[1], k_map_offset[1], k_advice[1], k_residence[1], k_remap_flags[1],
	k_msync[1], k_mlockall[1];
extern const struct kind k_mlock2[1];

/* process.c */
extern const struct kind k_argv[1], k_envp[1], k_clone_stack[1], k_clone_flags[1], k_clone_rest[1], k_clone3[1],
	k_clone3_out[1];
extern const struct kind k_unshare_flags[1], k_setns_type[1], k_wait_status[1], k_wait_options[1], k_id_type[1],
	k_wait_rusage[1];
extern const struct kind k_rusage_out[1], k_futex_op[1], k_futex_args[1], k_affinity_in[1], k_affinity_out[1],
	k_scheduler[1];
extern const struct kind k_priority_which[1], k_priority_who[1], k_wait_id[1], k_seccomp_op[1], k_seccomp_flags[1],
	k_seccomp_args[1], k_membarrier[1], k_robust_out[1], k_robust_size_out[1];

/* limits.c */
extern const struct kind k_resource[1], k_rlimit[1], k_rlimit_out[1], k_rusage_who[1], k_uname[1], k_sysinfo[1],
	k_times[1];
extern const struct kind k_capability_header[1], k_capability_data[1], k_capability_out[1];

/* prctl.c */
extern const struct kind k_prctl[1], k_prctl_in[1], k_prctl_out[1];

/* arch_prctl.c */
extern const struct kind k_arch_prctl[1], k_arch_in[1], k_arch_out[1];

/* personality.c */
extern const struct kind k_personality[1];

/* signal.c */
extern const struct kind k_signal[1], k_sigaction[1], k_sigaction_out[1], k_sigmask_how[1], k_sigset4[1],
	k_sigset4_out[1];
extern const struct kind k_sigset[1], k_sigset_out[1], k_sigset_part[1], k_sigreturn[1], k_sigaltstack[1],
	k_sigaltstack_out[1], k_signalfd_flags[1];
extern const struct kind k_siginfo_in[1], k_siginfo_out[1];

/* time.c */
extern const struct kind k_timespec[1], k_timespec_out[1], k_timeval[1], k_timeval_out[1], k_timezone[1],
	k_timezone_out[1];
extern const struct kind k_time_out[1], k_sleep_rest[1], k_clock[1], k_timer_flags[1], k_timerfd_flags[1], k_itimer[1];
extern const struct kind k_itimerval[1], k_itimerval_out[1], k_itimerspec[1], k_itimerspec_out[1], k_sigevent[1],
	k_utimens[1];
extern const struct kind k_utimes[1], k_utime[1];

/* socket.c */
extern const struct kind k_family[1], k_socket_type[1], k_protocol[1], k_sockaddr[1], k_sockaddr_out[1],
	k_socklen_out[1];
extern const struct kind k_shutdown[1], k_accept_flags[1];

/* sockopt.c */
extern const struct kind k_level[1], k_option[1], k_option_asked[1], k_option_value[1], k_option_out[1];

/* poll.c */
extern const struct kind k_pollfds[1], k_fdset[1], k_pselect_mask[1], k_epoll_flags[1], k_epoll_op[1], k_epoll_event[1];
extern const struct kind k_epoll_events[1], k_eventfd_flags[1];

/* various.c */
extern const struct kind k_fsopen_flags[1], k_fsmount_flags[1], k_mount_attributes[1], k_fspick_flags[1],
	k_open_tree_flags[1], k_move_mount_flags[1];
extern const struct kind k_delete_flags[1], k_finit_flags[1], k_compared[1], k_secret_flags[1], k_key_rights[1],
	k_uint_hex[1];
extern const struct kind k_priority_target[1], k_priority_id[1], k_priority[1];

/* ipc.c */
extern const struct kind k_ipc_key[1], k_ipc_flags[1], k_shm_flags[1], k_shmat_flags[1], k_shm_command[1],
	k_sem_command[1];
extern const struct kind k_msg_command[1], k_sembufs[1], k_message_in[1], k_message_out[1], k_message_flags[1];

/* ipc_control.c */
extern const struct kind k_msgctl_in[1], k_msgctl_out[1], k_semctl_in[1], k_semctl_out[1], k_shmctl_in[1],
	k_shmctl_out[1];
#endif
