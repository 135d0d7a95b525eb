/* Limits, usage, the system's own description, capabilities. */
#include "syscall/limits.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/utsname.h>

#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/print.h"
#include "syscall/time.h"

NAMES(resources, "RLIMIT_???", NAME(RLIMIT_CPU), NAME(RLIMIT_FSIZE), NAME(RLIMIT_DATA), NAME(RLIMIT_STACK),
      NAME(RLIMIT_CORE), NAME(RLIMIT_RSS), NAME(RLIMIT_NPROC), NAME(RLIMIT_NOFILE), NAME(RLIMIT_MEMLOCK),
      NAME(RLIMIT_AS), NAME(RLIMIT_LOCKS), NAME(RLIMIT_SIGPENDING), NAME(RLIMIT_MSGQUEUE), NAME(RLIMIT_NICE),
      NAME(RLIMIT_RTPRIO), NAME(RLIMIT_RTTIME));
NAMES(usages, "RUSAGE_???", NAME(RUSAGE_SELF), { "RUSAGE_CHILDREN", (unsigned)-1 }, { "RUSAGE_BOTH", (unsigned)-2 },
      NAME(RUSAGE_THREAD));
NAMES(capability_versions, "_LINUX_CAPABILITY_VERSION_???", NAME(_LINUX_CAPABILITY_VERSION_1),
      NAME(_LINUX_CAPABILITY_VERSION_2), NAME(_LINUX_CAPABILITY_VERSION_3));
SHARED_NAMES(capability_names, "CAP_???", NAME(CAP_CHOWN), NAME(CAP_DAC_OVERRIDE), NAME(CAP_DAC_READ_SEARCH),
	     NAME(CAP_FOWNER), NAME(CAP_FSETID), NAME(CAP_KILL), NAME(CAP_SETGID), NAME(CAP_SETUID), NAME(CAP_SETPCAP),
	     NAME(CAP_LINUX_IMMUTABLE), NAME(CAP_NET_BIND_SERVICE), NAME(CAP_NET_BROADCAST), NAME(CAP_NET_ADMIN),
	     NAME(CAP_NET_RAW), NAME(CAP_IPC_LOCK), NAME(CAP_IPC_OWNER), NAME(CAP_SYS_MODULE), NAME(CAP_SYS_RAWIO),
	     NAME(CAP_SYS_CHROOT), NAME(CAP_SYS_PTRACE), NAME(CAP_SYS_PACCT), NAME(CAP_SYS_ADMIN), NAME(CAP_SYS_BOOT),
	     NAME(CAP_SYS_NICE), NAME(CAP_SYS_RESOURCE), NAME(CAP_SYS_TIME), NAME(CAP_SYS_TTY_CONFIG), NAME(CAP_MKNOD),
	     NAME(CAP_LEASE), NAME(CAP_AUDIT_WRITE), NAME(CAP_AUDIT_CONTROL), NAME(CAP_SETFCAP), NAME(CAP_MAC_OVERRIDE),
	     NAME(CAP_MAC_ADMIN), NAME(CAP_SYSLOG), NAME(CAP_WAKE_ALARM), NAME(CAP_BLOCK_SUSPEND), NAME(CAP_AUDIT_READ),
	     NAME(CAP_PERFMON), NAME(CAP_BPF), NAME(CAP_CHECKPOINT_RESTORE));

/* ---- limits and usage ------------------------------------------------------------------------ */

static void put_limit(struct decode *d, uint64_t limit)
{
	const bool is_plain = limit != UINT64_MAX && !(limit > 1024 && limit % 1024 == 0);
	const enum kymo_constants style = is_plain ? KYMO_CONSTANTS_NAMES : d->target->style.constants;

	if (style != KYMO_CONSTANTS_NAMES)
		put(d, style == KYMO_CONSTANTS_BOTH ? "%" PRIu64 " /* " : "%" PRIu64, limit);
	if (style == KYMO_CONSTANTS_NUMBERS)
		return;
	if (limit == UINT64_MAX)
		puts_(d, "RLIM64_INFINITY");
	else if (limit > 1024 && limit % 1024 == 0)
		put(d, "%" PRIu64 "*1024", limit / 1024);
	else
		put(d, "%" PRIu64, limit);
	if (style == KYMO_CONSTANTS_BOTH)
		puts_(d, " */");
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
	if (!d->target->is_whole) {
		puts_(d, ", ...}");
		return;
	}
	puts_(d, ", release=");
	put_quoted(d, name.release, sizeof(name.release));
	puts_(d, ", version=");
	put_quoted(d, name.version, sizeof(name.version));
	puts_(d, ", machine=");
	put_quoted(d, name.machine, sizeof(name.machine));
	puts_(d, ", domainname=");
	put_quoted(d, name.domainname, sizeof(name.domainname));
	puts_(d, "}");
}

PRINT(print_sysinfo)
{
	struct sysinfo s;

	if (!fetch_or_put(d, ARG, &s, sizeof(s)))
		return;
	put(d, "{uptime=%ld, loads=[%lu, %lu, %lu], totalram=%lu, freeram=%lu, sharedram=%lu, bufferram=%lu, ",
	    s.uptime, s.loads[0], s.loads[1], s.loads[2], s.totalram, s.freeram, s.sharedram, s.bufferram);
	put(d, "totalswap=%lu, freeswap=%lu, procs=%u, totalhigh=%lu, freehigh=%lu, mem_unit=%u}", s.totalswap,
	    s.freeswap, s.procs, s.totalhigh, s.freehigh, s.mem_unit);
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

/* ---- capabilities ---------------------------------------------------------------------------- */

static void put_capability_set(struct decode *d, const char *name, uint64_t set)
{
	bool any = false;

	put(d, "%s=", name);
	for (size_t i = 0; i < capability_names.n; i++) {
		const uint64_t bit = 1ull << capability_names.items[i].value;

		if (!(set & bit))
			continue;
		put(d, "%s1<<%s", any ? "|" : "", capability_names.items[i].text);
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
	const size_t n = is_known && (header.version == _LINUX_CAPABILITY_VERSION_2 ||
				      header.version == _LINUX_CAPABILITY_VERSION_3)
				 ? 2
				 : 1;

	if (!is_known || !fetch_or_put(d, ARG, c, n * sizeof(*c)))
		return;
	put_capability_set(d, "{effective", c[0].effective | (uint64_t)c[1].effective << 32);
	put_capability_set(d, ", permitted", c[0].permitted | (uint64_t)c[1].permitted << 32);
	put_capability_set(d, ", inheritable", c[0].inheritable | (uint64_t)c[1].inheritable << 32);
	puts_(d, "}");
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
