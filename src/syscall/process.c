/* Processes: making, running, waiting, and what the kernel lets them say about themselves. */
#include "syscall/process.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <linux/sched.h>
#include <signal.h>
#include <string.h>
#include <sys/param.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/packet_filter.h"
#include "syscall/print.h"
#include "syscall/signal_names.h"
#include "syscall/time.h"

enum { SIGNAL_MAX = 64 };

NAMES(clone_flags, "CLONE_???", NAME(CLONE_VM), NAME(CLONE_FS), NAME(CLONE_FILES), NAME(CLONE_SIGHAND),
      NAME(CLONE_PIDFD), NAME(CLONE_PTRACE), NAME(CLONE_VFORK), NAME(CLONE_PARENT), NAME(CLONE_THREAD),
      NAME(CLONE_NEWNS), NAME(CLONE_SYSVSEM), NAME(CLONE_SETTLS), NAME(CLONE_PARENT_SETTID), NAME(CLONE_CHILD_CLEARTID),
      NAME(CLONE_UNTRACED), NAME(CLONE_CHILD_SETTID), NAME(CLONE_NEWCGROUP), NAME(CLONE_NEWUTS), NAME(CLONE_NEWIPC),
      NAME(CLONE_NEWUSER), NAME(CLONE_NEWPID), NAME(CLONE_NEWNET), NAME(CLONE_IO));
NAMES(clone3_flags, "CLONE_???", NAME(CLONE_VM), NAME(CLONE_FS), NAME(CLONE_FILES), NAME(CLONE_SIGHAND),
      NAME(CLONE_PIDFD), NAME(CLONE_PTRACE), NAME(CLONE_VFORK), NAME(CLONE_PARENT), NAME(CLONE_THREAD),
      NAME(CLONE_NEWNS), NAME(CLONE_SYSVSEM), NAME(CLONE_SETTLS), NAME(CLONE_PARENT_SETTID), NAME(CLONE_CHILD_CLEARTID),
      NAME(CLONE_UNTRACED), NAME(CLONE_CHILD_SETTID), NAME(CLONE_NEWCGROUP), NAME(CLONE_NEWUTS), NAME(CLONE_NEWIPC),
      NAME(CLONE_NEWUSER), NAME(CLONE_NEWPID), NAME(CLONE_NEWNET), NAME(CLONE_IO), { "CLONE_NEWTIME", 0x80 },
      { "CLONE_CLEAR_SIGHAND", 1ull << 32 }, { "CLONE_INTO_CGROUP", 1ull << 33 });
NAMES(unshare_flags, "CLONE_???", { "CLONE_NEWTIME", 0x80 }, NAME(CLONE_VM), NAME(CLONE_FS), NAME(CLONE_FILES),
      NAME(CLONE_SIGHAND), NAME(CLONE_THREAD), NAME(CLONE_NEWNS), NAME(CLONE_SYSVSEM), NAME(CLONE_NEWCGROUP),
      NAME(CLONE_NEWUTS), NAME(CLONE_NEWIPC), NAME(CLONE_NEWUSER), NAME(CLONE_NEWPID), NAME(CLONE_NEWNET));
NAMES(setns_types, "CLONE_NEW???", { "CLONE_NEWTIME", 0x80 }, NAME(CLONE_NEWNS), NAME(CLONE_NEWCGROUP),
      NAME(CLONE_NEWUTS), NAME(CLONE_NEWIPC), NAME(CLONE_NEWUSER), NAME(CLONE_NEWPID), NAME(CLONE_NEWNET));
NAMES(wait4_flags, "W???", NAME(WNOHANG), NAME(WEXITED), NAME(WSTOPPED), NAME(WCONTINUED), NAME(WNOWAIT),
      { "__WCLONE", 0x80000000 }, { "__WALL", 0x40000000 }, { "__WNOTHREAD", 0x20000000 });
NAMES(id_types, "P_???", NAME(P_ALL), NAME(P_PID), NAME(P_PGID), NAME(P_PIDFD));
NAMES(schedulers, "SCHED_???", NAME(SCHED_OTHER), NAME(SCHED_FIFO), NAME(SCHED_RR), NAME(SCHED_BATCH),
      { "SCHED_ISO", 4 }, NAME(SCHED_IDLE), NAME(SCHED_DEADLINE));
NAMES(priority_whiches, "PRIO_???", NAME(PRIO_PROCESS), NAME(PRIO_PGRP), NAME(PRIO_USER));
NAMES(seccomp_operations, "SECCOMP_SET_MODE_???", NAME(SECCOMP_SET_MODE_STRICT), NAME(SECCOMP_SET_MODE_FILTER),
      NAME(SECCOMP_GET_ACTION_AVAIL), NAME(SECCOMP_GET_NOTIF_SIZES));
NAMES(seccomp_flags, "SECCOMP_FILTER_FLAG_???", NAME(SECCOMP_FILTER_FLAG_TSYNC), NAME(SECCOMP_FILTER_FLAG_LOG),
      NAME(SECCOMP_FILTER_FLAG_SPEC_ALLOW), NAME(SECCOMP_FILTER_FLAG_NEW_LISTENER),
      NAME(SECCOMP_FILTER_FLAG_TSYNC_ESRCH), { "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", 1 << 5 });
NAMES(membarriers, "MEMBARRIER_CMD_???", NAME(MEMBARRIER_CMD_QUERY), NAME(MEMBARRIER_CMD_GLOBAL),
      NAME(MEMBARRIER_CMD_GLOBAL_EXPEDITED), NAME(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED),
      NAME(MEMBARRIER_CMD_PRIVATE_EXPEDITED), NAME(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED),
      NAME(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE), NAME(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE),
      NAME(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ), NAME(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ));

/* ---- exec ------------------------------------------------------------------------------------ */

PRINT(print_argv)
{
	uint64_t address;

	if (!ARG || !fetch(d, ARG, &address, sizeof(address))) {
		put_address(d, ARG);
		return;
	}
	puts_(d, "[");
	for (uint64_t i = 0;; i++) {
		if (!fetch(d, ARG + i * sizeof(address), &address, sizeof(address))) {
			put(d, "%s... /* 0x%" PRIx64 " */", i ? ", " : "", ARG + i * sizeof(address));
			break;
		}
		if (!address)
			break;
		puts_(d, i ? ", " : "");
		if (i >= shown_elements(d)) {
			puts_(d, "...");
			break;
		}
		put_string(d, address);
	}
	puts_(d, "]");
}

enum { N_VARIABLES_MAX = 1 << 20 };

PRINT(print_envp)
{
	uint64_t address, n = 0;
	bool ends = false;

	if (d->target->is_whole) {
		print_argv(d, arg, data);
		return;
	}
	put_address(d, ARG);
	if (!ARG)
		return;
	while (!ends && n < N_VARIABLES_MAX && fetch(d, ARG + n * sizeof(address), &address, sizeof(address))) {
		ends = !address;
		n += !ends;
	}
	if (ends || n)
		put(d, " /* %" PRIu64 " var%s%s */", n, n == 1 ? "" : "s", ends ? "" : ", unterminated");
}

/* ---- clone ----------------------------------------------------------------------------------- */

enum { EXIT_SIGNAL_MASK = 0xff };

PRINT(print_clone_stack)
{
	puts_(d, "child_stack=");
	put_address(d, d->call->args[1]);
}

PRINT(print_clone_flags)
{
	const uint64_t flags = d->call->args[0] & ~(uint64_t)EXIT_SIGNAL_MASK;
	const int signal = (int)(d->call->args[0] & EXIT_SIGNAL_MASK);

	puts_(d, "flags=");
	if (flags || !signal)
		put_flags(d, &clone_flags, flags);
	if (signal) {
		puts_(d, flags ? "|" : "");
		put_signal(d, signal);
	}
}

PRINT(print_clone_rest)
{
	const uint64_t flags = d->call->args[0];
	int tid;

	if (flags & (CLONE_PARENT_SETTID | CLONE_PIDFD)) {
		puts_(d, ", parent_tid=");
		if (fetch_or_put(d, d->call->args[2], &tid, sizeof(tid))) {
			puts_(d, "[");
			if (flags & CLONE_PARENT_SETTID)
				put(d, "%d", tid);
			else
				put_fd(d, tid);
			puts_(d, "]");
		}
	}
	if (flags & CLONE_SETTLS) {
		puts_(d, ", tls=");
		put_address(d, d->call->args[4]);
	}
	if (flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)) {
		puts_(d, ", child_tidptr=");
		put_address(d, d->call->args[3]);
	}
}

/* As far as the size says, and the kernel knows it. */
static bool read_clone_args(struct decode *d, struct clone_args *ret)
{
	const uint64_t size = d->call->args[1];

	memset(ret, 0, sizeof(*ret));
	return size >= CLONE_ARGS_SIZE_VER0 && fetch(d, d->call->args[0], ret, MIN(size, sizeof(*ret)));
}

static void put_tid(struct decode *d, const void *bytes)
{
	put(d, "%d", *(const int *)bytes);
}

PRINT(print_clone3)
{
	struct clone_args c;

	if (!read_clone_args(d, &c)) {
		put_address(d, ARG);
		return;
	}
	puts_(d, "{flags=");
	put_flags(d, &clone3_flags, c.flags);
	if (c.flags & CLONE_PIDFD) {
		puts_(d, ", pidfd=");
		put_address(d, c.pidfd);
	}
	if (c.flags & (CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID)) {
		puts_(d, ", child_tid=");
		put_address(d, c.child_tid);
	}
	if (c.flags & CLONE_PARENT_SETTID) {
		puts_(d, ", parent_tid=");
		put_address(d, c.parent_tid);
	}
	puts_(d, ", exit_signal=");
	if (c.exit_signal && c.exit_signal <= SIGNAL_MAX)
		put_signal(d, (int)c.exit_signal);
	else
		put(d, "%" PRIu64, (uint64_t)c.exit_signal);
	puts_(d, ", stack=");
	put_address(d, c.stack);
	put(d, ", stack_size=%#" PRIx64, (uint64_t)c.stack_size);
	if (c.flags & CLONE_SETTLS) {
		puts_(d, ", tls=");
		put_address(d, c.tls);
	}
	if (c.set_tid || c.set_tid_size) {
		puts_(d, ", set_tid=");
		if (c.set_tid && c.set_tid_size && c.set_tid_size <= SET_TIDS_MAX)
			put_array(d, c.set_tid, c.set_tid_size, sizeof(int), put_tid);
		else
			put_address(d, c.set_tid);
		put(d, ", set_tid_size=%" PRIu64, (uint64_t)c.set_tid_size);
	}
	if (d->call->args[1] >= CLONE_ARGS_SIZE_VER2 && (c.cgroup || c.flags & (1ull << 33)))
		put(d, ", cgroup=%" PRIu64, (uint64_t)c.cgroup);
	put_struct_rest(d, ARG, sizeof(c), d->call->args[1]);
	puts_(d, "}");
}

/* ' => {name=[', or ', name=[' after another; where nothing can be read, the address. */
static void put_clone3_result(struct decode *d, const char *name, uint64_t address, bool is_first, bool is_fd)
{
	int number;

	put(d, "%s%s=", is_first ? " => {" : ", ", name);
	if (!fetch(d, address, &number, sizeof(number))) {
		put_address(d, address);
		return;
	}
	puts_(d, "[");
	if (is_fd)
		put_fd(d, number);
	else
		put(d, "%d", number);
	puts_(d, "]");
}

/* Members that kymo does not know: the kernel may have written them. */
static void put_clone3_rest(struct decode *d, bool is_first)
{
	const uint64_t size = d->call->args[1];

	if (size > sizeof(struct clone_args))
		put_struct_rest_after(d, is_first ? " => {" : ", ", d->call->args[0], sizeof(struct clone_args), size);
}

PRINT(print_clone3_out)
{
	const uint64_t shown = CLONE_PIDFD | CLONE_PARENT_SETTID;
	struct clone_args c;

	if (!call_failed(d) && read_clone_args(d, &c)) {
		const size_t begin = d->text->n;

		if (c.flags & CLONE_PIDFD)
			put_clone3_result(d, "pidfd", c.pidfd, true, true);
		if (c.flags & CLONE_PARENT_SETTID)
			put_clone3_result(d, "parent_tid", c.parent_tid, !(c.flags & CLONE_PIDFD), false);
		put_clone3_rest(d, !(c.flags & shown));
		puts_(d, d->text->n > begin ? "}" : "");
	}
	put(d, ", %" PRIu64, d->call->args[1]);
}

/* ---- wait ------------------------------------------------------------------------------------ */

void put_wait_status(struct decode *d, int status)
{
	char buffer[32];

	if (WIFEXITED(status))
		put(d, "[{WIFEXITED(s) && WEXITSTATUS(s) == %d}]", WEXITSTATUS(status));
	else if (WIFSIGNALED(status))
		put(d, "[{WIFSIGNALED(s) && WTERMSIG(s) == %s%s}]", kymo_signal_name(WTERMSIG(status), buffer),
		    WCOREDUMP(status) ? " && WCOREDUMP(s)" : "");
	else if (WIFCONTINUED(status))
		puts_(d, "[{WIFCONTINUED(s)}]");
	else if (WIFSTOPPED(status) && !(status >> 16))
		put(d, "[{WIFSTOPPED(s) && WSTOPSIG(s) == %s}]", kymo_signal_name(WSTOPSIG(status), buffer));
	else
		put(d, "[%#x]", (unsigned)status);
}

PRINT(print_status)
{
	int status;

	if (!d->call->result)
		put_address(d, ARG);
	else if (fetch_or_put(d, ARG, &status, sizeof(status)))
		put_wait_status(d, status);
}

void put_rusage_at(struct decode *d, uint64_t address)
{
	struct rusage usage;

	if (!fetch_or_put(d, address, &usage, sizeof(usage)))
		return;
	puts_(d, "{ru_utime=");
	put_timeval(d, &usage.ru_utime);
	puts_(d, ", ru_stime=");
	put_timeval(d, &usage.ru_stime);
	if (!d->target->is_whole) {
		puts_(d, ", ...}");
		return;
	}
	put(d,
	    ", ru_maxrss=%lu, ru_ixrss=%lu, ru_idrss=%lu, ru_isrss=%lu, ru_minflt=%lu, ru_majflt=%lu, ru_nswap=%lu, "
	    "ru_inblock=%lu, ru_oublock=%lu",
	    usage.ru_maxrss, usage.ru_ixrss, usage.ru_idrss, usage.ru_isrss, usage.ru_minflt, usage.ru_majflt,
	    usage.ru_nswap, usage.ru_inblock, usage.ru_oublock);
	put(d, ", ru_msgsnd=%lu, ru_msgrcv=%lu, ru_nsignals=%lu, ru_nvcsw=%lu, ru_nivcsw=%lu}", usage.ru_msgsnd,
	    usage.ru_msgrcv, usage.ru_nsignals, usage.ru_nvcsw, usage.ru_nivcsw);
}

PRINT(print_wait_rusage)
{
	if (d->call->result > 0)
		put_rusage_at(d, ARG);
	else
		put_address(d, ARG);
}

PRINT(print_rusage)
{
	put_rusage_at(d, ARG);
}

/* ---- scheduling ------------------------------------------------------------------------------ */

static void put_cpus(struct decode *d, uint64_t address, uint64_t size)
{
	uint64_t set[128] = { 0 };
	bool any = false;

	if (!address || size > sizeof(set) || (size && !fetch(d, address, set, size))) {
		put_address(d, address);
		return;
	}
	puts_(d, "[");
	for (unsigned cpu = 0; cpu < size * 8; cpu++)
		if (set[cpu / 64] >> (cpu % 64) & 1) {
			put(d, "%s%u", any ? " " : "", cpu);
			any = true;
		}
	puts_(d, "]");
}

PRINT(print_cpus)
{
	put_cpus(d, ARG, d->call->args[1]);
}

PRINT(print_cpus_out)
{
	if (call_failed(d))
		put_address(d, ARG);
	else
		put_cpus(d, ARG, (uint64_t)d->call->result);
}

void result_scheduler(struct decode *d)
{
	const char *name = name_of(&schedulers, (uint64_t)d->call->result);

	put(d, "%" PRId64, d->call->result);
	if (name)
		put(d, " (%s)", name);
}

void result_membarrier(struct decode *d)
{
	if ((int)d->call->args[0] != MEMBARRIER_CMD_QUERY) {
		put(d, "%" PRId64, d->call->result);
		return;
	}
	put(d, "%#" PRIx64 " (", (uint64_t)d->call->result);
	put_flags(d, &membarriers, (uint64_t)d->call->result);
	puts_(d, ")");
}

PRINT(print_seccomp_flags)
{
	if (d->call->args[0] == SECCOMP_SET_MODE_FILTER)
		put_flags(d, &seccomp_flags, (unsigned)ARG);
	else
		put(d, "%#x", (unsigned)ARG);
}

PRINT(print_seccomp_args)
{
	const unsigned int operation = (unsigned int)d->call->args[0];

	if (operation == SECCOMP_GET_NOTIF_SIZES)
		return;
	puts_(d, ", ");
	if (operation == SECCOMP_SET_MODE_FILTER)
		put_seccomp_program_at(d, ARG);
	else if (operation == SECCOMP_GET_ACTION_AVAIL)
		put_seccomp_action_at(d, ARG);
	else
		put_address(d, ARG);
	d->call->is_stopped = true;
}

/* What the kernel has written, which has no other operation. */
PRINT(print_seccomp_sizes)
{
	const uint64_t address = d->call->args[2];
	struct seccomp_notif_sizes sizes;

	puts_(d, ", ");
	if (call_failed(d) || !fetch(d, address, &sizes, sizeof(sizes)))
		put_address(d, address);
	else
		kymo_line_printf(d->text, "{seccomp_notif=%u, seccomp_notif_resp=%u, seccomp_data=%u}",
				 sizes.seccomp_notif, sizes.seccomp_notif_resp, sizes.seccomp_data);
}

PRINT(print_priority_who)
{
	if ((int)d->call->args[arg - 1] == PRIO_PROCESS)
		put_pid(d, (int)ARG);
	else if ((int)d->call->args[arg - 1] == PRIO_PGRP)
		put_process_group(d, (int)ARG);
	else
		put(d, "%d", (int)ARG);
}

PRINT(print_wait_id)
{
	const int id = (int)ARG;

	switch ((int)d->call->args[arg - 1]) {
	case P_PID:
		put_pid(d, id);
		break;
	case P_PGID:
		put_process_group(d, id);
		break;
	case P_PIDFD:
		put_fd(d, id);
		break;
	default:
		put(d, "%d", id);
	}
}

const struct kind k_argv[1] = { { print_argv, NULL, 0 } };
const struct kind k_envp[1] = { { print_envp, NULL, 0 } };
const struct kind k_clone_stack[1] = { { print_clone_stack, NULL, 0 } };
const struct kind k_clone_flags[1] = { { print_clone_flags, NULL, 0 } };
const struct kind k_clone_rest[1] = { { print_clone_rest, NULL, AT_EXIT | OWN_COMMA } };
const struct kind k_clone3[1] = { { print_clone3, NULL, 0 } };
const struct kind k_clone3_out[1] = { { print_clone3_out, NULL, AT_EXIT | OWN_COMMA } };
const struct kind k_unshare_flags[1] = { { print_flags_long, &unshare_flags, 0 } };
const struct kind k_setns_type[1] = { { print_flags, &setns_types, 0 } };
const struct kind k_wait_status[1] = { { print_status, NULL, AT_EXIT } };
const struct kind k_wait_options[1] = { { print_flags, &wait4_flags, 0 } };
const struct kind k_id_type[1] = { { print_name, &id_types, 0 } };
const struct kind k_wait_rusage[1] = { { print_wait_rusage, NULL, AT_EXIT } };
const struct kind k_rusage_out[1] = { { print_rusage, NULL, AT_EXIT } };
const struct kind k_affinity_in[1] = { { print_cpus, NULL, 0 } };
const struct kind k_affinity_out[1] = { { print_cpus_out, NULL, AT_EXIT } };
const struct kind k_scheduler[1] = { { print_name, &schedulers, 0 } };
const struct kind k_seccomp_flags[1] = { { print_seccomp_flags, NULL, 0 } };
const struct kind k_seccomp_args[1] = { { print_seccomp_args, NULL, OWN_COMMA } };
const struct kind k_seccomp_sizes[1] = { { print_seccomp_sizes, NULL, AT_EXIT | OWN_COMMA } };
const struct kind k_priority_who[1] = { { print_priority_who, NULL, 0 } };
const struct kind k_wait_id[1] = { { print_wait_id, NULL, 0 } };
const struct kind k_priority_which[1] = { { print_name, &priority_whiches, 0 } };
const struct kind k_seccomp_op[1] = { { print_name, &seccomp_operations, 0 } };
const struct kind k_membarrier[1] = { { print_name, &membarriers, 0 } };
