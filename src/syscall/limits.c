/* Limits, usage, the system's own description; prctl and capabilities. */
#include <inttypes.h>
#include <asm/prctl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>

#include "syscall/decode.h"

#define ARG (d->call->args[arg])
#define PRINT(name) static void name(struct decode *d, unsigned arg, const void *data)

NAMES(resources, "RLIMIT_???", NAME(RLIMIT_CPU), NAME(RLIMIT_FSIZE), NAME(RLIMIT_DATA), NAME(RLIMIT_STACK), NAME(RLIMIT_CORE),
      NAME(RLIMIT_RSS), NAME(RLIMIT_NPROC), NAME(RLIMIT_NOFILE), NAME(RLIMIT_MEMLOCK), NAME(RLIMIT_AS), NAME(RLIMIT_LOCKS),
      NAME(RLIMIT_SIGPENDING), NAME(RLIMIT_MSGQUEUE), NAME(RLIMIT_NICE), NAME(RLIMIT_RTPRIO), NAME(RLIMIT_RTTIME));
NAMES(usages, "RUSAGE_???", NAME(RUSAGE_SELF), { "RUSAGE_CHILDREN", (unsigned)-1 }, { "RUSAGE_BOTH", (unsigned)-2 }, NAME(RUSAGE_THREAD));
NAMES(prctls, "PR_???", NAME(PR_SET_PDEATHSIG), NAME(PR_GET_PDEATHSIG), NAME(PR_GET_DUMPABLE), NAME(PR_SET_DUMPABLE), NAME(PR_GET_UNALIGN),
      NAME(PR_SET_UNALIGN), NAME(PR_GET_KEEPCAPS), NAME(PR_SET_KEEPCAPS), NAME(PR_GET_FPEMU), NAME(PR_SET_FPEMU), NAME(PR_GET_FPEXC),
      NAME(PR_SET_FPEXC), NAME(PR_GET_TIMING), NAME(PR_SET_TIMING), NAME(PR_SET_NAME), NAME(PR_GET_NAME), NAME(PR_GET_ENDIAN),
      NAME(PR_SET_ENDIAN), NAME(PR_GET_SECCOMP), NAME(PR_SET_SECCOMP), NAME(PR_CAPBSET_READ), NAME(PR_CAPBSET_DROP), NAME(PR_GET_TSC),
      NAME(PR_SET_TSC), NAME(PR_GET_SECUREBITS), NAME(PR_SET_SECUREBITS), NAME(PR_SET_TIMERSLACK), NAME(PR_GET_TIMERSLACK),
      NAME(PR_TASK_PERF_EVENTS_DISABLE), NAME(PR_TASK_PERF_EVENTS_ENABLE), NAME(PR_MCE_KILL), NAME(PR_MCE_KILL_GET), NAME(PR_SET_MM),
      NAME(PR_SET_CHILD_SUBREAPER), NAME(PR_GET_CHILD_SUBREAPER), NAME(PR_SET_NO_NEW_PRIVS), NAME(PR_GET_NO_NEW_PRIVS),
      NAME(PR_GET_TID_ADDRESS), NAME(PR_SET_THP_DISABLE), NAME(PR_GET_THP_DISABLE), NAME(PR_MPX_ENABLE_MANAGEMENT),
      NAME(PR_MPX_DISABLE_MANAGEMENT), NAME(PR_SET_FP_MODE), NAME(PR_GET_FP_MODE), NAME(PR_CAP_AMBIENT), NAME(PR_SVE_SET_VL),
      NAME(PR_SVE_GET_VL), NAME(PR_GET_SPECULATION_CTRL), NAME(PR_SET_SPECULATION_CTRL), NAME(PR_PAC_RESET_KEYS),
      NAME(PR_SET_TAGGED_ADDR_CTRL), NAME(PR_GET_TAGGED_ADDR_CTRL), NAME(PR_SET_IO_FLUSHER), NAME(PR_GET_IO_FLUSHER),
      NAME(PR_SET_SYSCALL_USER_DISPATCH), NAME(PR_PAC_SET_ENABLED_KEYS), NAME(PR_PAC_GET_ENABLED_KEYS), NAME(PR_SCHED_CORE),
      { "PR_SET_VMA", 0x53564d41 }, { "PR_SET_PTRACER", 0x59616d61 });
NAMES(dumpables, "SUID_DUMP_???", { "SUID_DUMP_DISABLE", 0 }, { "SUID_DUMP_USER", 1 }, { "SUID_DUMP_ROOT", 2 });
NAMES(seccomp_modes, "SECCOMP_MODE_???", { "SECCOMP_MODE_DISABLED", 0 }, { "SECCOMP_MODE_STRICT", 1 }, { "SECCOMP_MODE_FILTER", 2 });
NAMES(arch_prctls, "ARCH_???", NAME(ARCH_SET_GS), NAME(ARCH_SET_FS), NAME(ARCH_GET_FS), NAME(ARCH_GET_GS), NAME(ARCH_GET_CPUID),
      NAME(ARCH_SET_CPUID));
NAMES(capability_versions, "_LINUX_CAPABILITY_VERSION_???", NAME(_LINUX_CAPABILITY_VERSION_1), NAME(_LINUX_CAPABILITY_VERSION_2),
      NAME(_LINUX_CAPABILITY_VERSION_3));
NAMES(capabilities, "CAP_???", NAME(CAP_CHOWN), NAME(CAP_DAC_OVERRIDE), NAME(CAP_DAC_READ_SEARCH), NAME(CAP_FOWNER), NAME(CAP_FSETID),
      NAME(CAP_KILL), NAME(CAP_SETGID), NAME(CAP_SETUID), NAME(CAP_SETPCAP), NAME(CAP_LINUX_IMMUTABLE), NAME(CAP_NET_BIND_SERVICE),
      NAME(CAP_NET_BROADCAST), NAME(CAP_NET_ADMIN), NAME(CAP_NET_RAW), NAME(CAP_IPC_LOCK), NAME(CAP_IPC_OWNER), NAME(CAP_SYS_MODULE),
      NAME(CAP_SYS_RAWIO), NAME(CAP_SYS_CHROOT), NAME(CAP_SYS_PTRACE), NAME(CAP_SYS_PACCT), NAME(CAP_SYS_ADMIN), NAME(CAP_SYS_BOOT),
      NAME(CAP_SYS_NICE), NAME(CAP_SYS_RESOURCE), NAME(CAP_SYS_TIME), NAME(CAP_SYS_TTY_CONFIG), NAME(CAP_MKNOD), NAME(CAP_LEASE),
      NAME(CAP_AUDIT_WRITE), NAME(CAP_AUDIT_CONTROL), NAME(CAP_SETFCAP), NAME(CAP_MAC_OVERRIDE), NAME(CAP_MAC_ADMIN), NAME(CAP_SYSLOG),
      NAME(CAP_WAKE_ALARM), NAME(CAP_BLOCK_SUSPEND), NAME(CAP_AUDIT_READ), NAME(CAP_PERFMON), NAME(CAP_BPF), NAME(CAP_CHECKPOINT_RESTORE));

/* ---- limits and usage ---- */

PRINT(print_name)
{
	put_name(d, data, (unsigned)ARG);
}

static void put_limit(struct decode *d, uint64_t limit)
{
	if (limit == UINT64_MAX)
		puts_(d, "RLIM64_INFINITY");
	else if (limit > 1024 && limit % 1024 == 0)
		put(d, "%" PRIu64 "*1024", limit / 1024);
	else
		put(d, "%" PRIu64, limit);
}

PRINT(print_limits)
{
	uint64_t limits[2];

	if (!fetch_or_put(d, ARG, limits, sizeof(limits)))
		return;
	puts_(d, "{rlim_cur=");
	put_limit(d, limits[0]);
	puts_(d, ", rlim_max=");
	put_limit(d, limits[1]);
	puts_(d, "}");
}

PRINT(print_uname)
{
	struct utsname name;

	if (!fetch_or_put(d, ARG, &name, sizeof(name)))
		return;
	puts_(d, "{sysname=");
	put_quoted(d, name.sysname, sizeof(name.sysname));
	puts_(d, ", nodename=");
	put_quoted(d, name.nodename, sizeof(name.nodename));
	puts_(d, ", ...}");
}

PRINT(print_sysinfo)
{
	struct sysinfo s;

	if (!fetch_or_put(d, ARG, &s, sizeof(s)))
		return;
	put(d, "{uptime=%ld, loads=[%lu, %lu, %lu], totalram=%lu, freeram=%lu, sharedram=%lu, bufferram=%lu, ", s.uptime, s.loads[0],
	    s.loads[1], s.loads[2], s.totalram, s.freeram, s.sharedram, s.bufferram);
	put(d, "totalswap=%lu, freeswap=%lu, procs=%u, totalhigh=%lu, freehigh=%lu, mem_unit=%u}", s.totalswap, s.freeswap, s.procs,
	    s.totalhigh, s.freehigh, s.mem_unit);
}

PRINT(print_times)
{
	struct tms t;

	if (!fetch_or_put(d, ARG, &t, sizeof(t)))
		return;
	puts_(d, "{tms_utime=");
	put_ticks(d, t.tms_utime);
	puts_(d, ", tms_stime=");
	put_ticks(d, t.tms_stime);
	puts_(d, ", tms_cutime=");
	put_ticks(d, t.tms_cutime);
	puts_(d, ", tms_cstime=");
	put_ticks(d, t.tms_cstime);
	puts_(d, "}");
}

/* ---- capabilities ------------------------------------------------------------------------------------------------------ */

static void put_capability_set(struct decode *d, const char *name, uint64_t set)
{
	bool any = false;

	put(d, "%s=", name);
	for (size_t i = 0; i < capabilities.n; i++) {
		const uint64_t bit = 1ull << capabilities.items[i].value;

		if (!(set & bit))
			continue;
		put(d, "%s1<<%s", any ? "|" : "", capabilities.items[i].text);
		any = true;
		set &= ~bit;
	}
	if (set || !any)
		put(d, any ? "|%#" PRIx64 : "%#" PRIx64, set);
}

PRINT(print_capability_header)
{
	struct __user_cap_header_struct header;

	if (!fetch(d, ARG, &header, sizeof(header))) {
		put_address(d, ARG);
		return;
	}
	puts_(d, "{version=");
	put_name(d, &capability_versions, header.version);
	put(d, ", pid=%d}", header.pid);
}

/* Versions 2 and 3 have the upper halves in a second struct. */
PRINT(print_capabilities)
{
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct c[2] = { 0 };
	const bool is_known = fetch(d, d->call->args[0], &header, sizeof(header));
	const size_t n =
		is_known && (header.version == _LINUX_CAPABILITY_VERSION_2 || header.version == _LINUX_CAPABILITY_VERSION_3) ? 2 : 1;

	if (!is_known || !fetch_or_put(d, ARG, c, n * sizeof(*c)))
		return;
	put_capability_set(d, "{effective", c[0].effective | (uint64_t)c[1].effective << 32);
	put_capability_set(d, ", permitted", c[0].permitted | (uint64_t)c[1].permitted << 32);
	put_capability_set(d, ", inheritable", c[0].inheritable | (uint64_t)c[1].inheritable << 32);
	puts_(d, "}");
}

/* ---- prctl --------------------------------------------------------------------------------------------------------------- */

enum { NAME_SIZE = 16 };

static bool writes(int option)
{
	return option == PR_GET_NAME || option == PR_GET_PDEATHSIG || option == PR_GET_CHILD_SUBREAPER;
}

PRINT(print_prctl)
{
	const int option = (int)ARG;

	put_name(d, &prctls, (unsigned)option);
	switch (option) {
	case PR_GET_DUMPABLE:
	case PR_GET_KEEPCAPS:
	case PR_GET_SECCOMP:
	case PR_GET_TIMERSLACK:
	case PR_GET_SECUREBITS:
	case PR_TASK_PERF_EVENTS_DISABLE:
	case PR_TASK_PERF_EVENTS_ENABLE:
		d->call->is_stopped = true;
		break;
	default:
		puts_(d, ", ");
	}
}

static void put_name_of_thread(struct decode *d, uint64_t address)
{
	struct kymo_syscall_target target = *d->target;
	struct decode inner = *d;

	if (target.string_size > NAME_SIZE - 1)
		target.string_size = NAME_SIZE - 1;
	inner.target = &target;
	put_string(&inner, address);
}

/* All arguments from `first` on. */
static void put_rest(struct decode *d, unsigned first, bool is_hex)
{
	for (unsigned i = first; i < 5; i++) {
		put(d, "%s", i > first ? ", " : "");
		put(d, is_hex ? "%#" PRIx64 : "%" PRIu64, d->call->args[i]);
	}
}

static void put_vma(struct decode *d)
{
	const uint64_t *a = d->call->args;

	puts_(d, a[1] ? "" : "PR_SET_VMA_ANON_NAME, ");
	if (a[1]) {
		put_rest(d, 1, true);
		return;
	}
	put_address(d, a[2]);
	put(d, ", %" PRIu64 ", ", a[3]);
	put_string(d, a[4]);
}

static void put_seccomp_mode(struct decode *d, uint64_t mode)
{
	put_name(d, &seccomp_modes, mode);
	if (mode == SECCOMP_MODE_STRICT)
		return;
	puts_(d, ", ");
	if (mode == SECCOMP_MODE_FILTER)
		put_address(d, d->call->args[2]);
	else
		put_rest(d, 2, true);
}

static void put_prctl(struct decode *d, int option)
{
	const uint64_t value = d->call->args[1];
	int number;

	switch (option) {
	case PR_SET_NAME:
	case PR_GET_NAME:
		if (option == PR_GET_NAME && call_failed(d))
			put_address(d, value);
		else
			put_name_of_thread(d, value);
		break;
	case PR_SET_PDEATHSIG:
		put_signal(d, (int)value);
		break;
	case PR_GET_PDEATHSIG:
	case PR_GET_CHILD_SUBREAPER:
		if (!fetch_or_put(d, value, &number, sizeof(number)))
			break;
		puts_(d, "[");
		if (option == PR_GET_PDEATHSIG)
			put_signal(d, number);
		else
			put(d, "%d", number);
		puts_(d, "]");
		break;
	case PR_SET_DUMPABLE:
		put_name(d, &dumpables, value);
		break;
	case PR_SET_SECCOMP:
		put_seccomp_mode(d, value);
		break;
	case PR_CAPBSET_READ:
	case PR_CAPBSET_DROP:
		put_name(d, &capabilities, value);
		break;
	case PR_SET_CHILD_SUBREAPER:
	case PR_SET_KEEPCAPS:
	case PR_SET_TIMERSLACK:
		put(d, "%" PRId64, (int64_t)value);
		break;
	case PR_SET_NO_NEW_PRIVS:
	case PR_GET_NO_NEW_PRIVS:
	case PR_GET_THP_DISABLE:
	case PR_SET_THP_DISABLE:
		put_rest(d, 1, false);
		break;
	case 0x53564d41:
		put_vma(d);
		break;
	case 0x59616d61:
		if ((int)value == -1)
			puts_(d, "PR_SET_PTRACER_ANY");
		else
			put(d, "%d", (int)value);
		break;
	default:
		put_rest(d, 1, true);
	}
}

/* What most options take is known at the entry; what some give, at the exit. */
PRINT(print_prctl_in)
{
	const int option = (int)d->call->args[0];

	if (!writes(option)) {
		put_prctl(d, option);
		d->call->is_stopped = true;
	}
}

PRINT(print_prctl_out)
{
	put_prctl(d, (int)d->call->args[0]);
}

void result_prctl(struct decode *d)
{
	const char *name = (int)d->call->args[0] == PR_GET_DUMPABLE ? name_of(&dumpables, (uint64_t)d->call->result) : NULL;

	put(d, "%" PRId64, d->call->result);
	if (name)
		put(d, " (%s)", name);
}

/* ---- arch_prctl ------------------------------------------------------------------------------------------------------------ */

PRINT(print_arch_prctl)
{
	put_name(d, &arch_prctls, (unsigned)ARG);
	d->call->is_stopped = (int)ARG == ARCH_GET_CPUID;
	puts_(d, d->call->is_stopped ? "" : ", ");
}

PRINT(print_arch_in)
{
	const int option = (int)d->call->args[0];

	if (option == ARCH_GET_FS || option == ARCH_GET_GS)
		return;
	if (option == ARCH_SET_CPUID)
		put(d, "%" PRIu64, d->call->args[1]);
	else if (option == ARCH_SET_FS || option == ARCH_SET_GS)
		put_address(d, d->call->args[1]);
	else
		put(d, "%#" PRIx64, d->call->args[1]);
	d->call->is_stopped = true;
}

PRINT(print_arch_out)
{
	uint64_t base;

	if (!fetch_or_put(d, d->call->args[1], &base, sizeof(base)))
		return;
	puts_(d, "[");
	put_address(d, base);
	puts_(d, "]");
}

const struct kind k_resource[1] = { { print_name, &resources, 0 } };
const struct kind k_rlimit[1] = { { print_limits, NULL, 0 } };
const struct kind k_rlimit_out[1] = { { print_limits, NULL, AT_EXIT } };
const struct kind k_rusage_who[1] = { { print_name, &usages, 0 } };
const struct kind k_uname[1] = { { print_uname, NULL, AT_EXIT } };
const struct kind k_sysinfo[1] = { { print_sysinfo, NULL, AT_EXIT } };
const struct kind k_times[1] = { { print_times, NULL, AT_EXIT } };
const struct kind k_capability_header[1] = { { print_capability_header, NULL, 0 } };
const struct kind k_capability_data[1] = { { print_capabilities, NULL, 0 } };
const struct kind k_capability_out[1] = { { print_capabilities, NULL, AT_EXIT } };
const struct kind k_prctl[1] = { { print_prctl, NULL, 0 } };
const struct kind k_prctl_in[1] = { { print_prctl_in, NULL, OWN_COMMA } };
const struct kind k_prctl_out[1] = { { print_prctl_out, NULL, AT_EXIT | OWN_COMMA } };
const struct kind k_arch_prctl[1] = { { print_arch_prctl, NULL, 0 } };
const struct kind k_arch_in[1] = { { print_arch_in, NULL, OWN_COMMA } };
const struct kind k_arch_out[1] = { { print_arch_out, NULL, AT_EXIT | OWN_COMMA } };
