/* What siginfo_t tells of a signal. */
#include "syscall/siginfo.h"

#include <linux/audit.h>
#include <signal.h>
#include <string.h>

#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/errors.h"
#include "syscall/names.h"
#include "syscall/print.h"
#include "syscall/signal_names.h"
#include "syscall/time.h"

NAMES(codes, "SI_???", NAME(SI_USER), NAME(SI_KERNEL), { "SI_QUEUE", (unsigned)-1 }, { "SI_TIMER", (unsigned)-2 },
      { "SI_MESGQ", (unsigned)-3 }, { "SI_ASYNCIO", (unsigned)-4 }, { "SI_SIGIO", (unsigned)-5 },
      { "SI_TKILL", (unsigned)-6 }, { "SI_DETHREAD", (unsigned)-7 }, { "SI_ASYNCNL", (unsigned)-60 });
NAMES(ill_codes, "ILL_???", NAME(ILL_ILLOPC), NAME(ILL_ILLOPN), NAME(ILL_ILLADR), NAME(ILL_ILLTRP), NAME(ILL_PRVOPC),
      NAME(ILL_PRVREG), NAME(ILL_COPROC), NAME(ILL_BADSTK));
NAMES(fpe_codes, "FPE_???", NAME(FPE_INTDIV), NAME(FPE_INTOVF), NAME(FPE_FLTDIV), NAME(FPE_FLTOVF), NAME(FPE_FLTUND),
      NAME(FPE_FLTRES), NAME(FPE_FLTINV), NAME(FPE_FLTSUB));
NAMES(segv_codes, "SEGV_???", NAME(SEGV_MAPERR), NAME(SEGV_ACCERR), NAME(SEGV_BNDERR), NAME(SEGV_PKUERR));
NAMES(bus_codes, "BUS_???", NAME(BUS_ADRALN), NAME(BUS_ADRERR), NAME(BUS_OBJERR), NAME(BUS_MCEERR_AR),
      NAME(BUS_MCEERR_AO));
NAMES(trap_codes, "TRAP_???", NAME(TRAP_BRKPT), NAME(TRAP_TRACE), NAME(TRAP_BRANCH), NAME(TRAP_HWBKPT));
NAMES(child_codes, "CLD_???", NAME(CLD_EXITED), NAME(CLD_KILLED), NAME(CLD_DUMPED), NAME(CLD_TRAPPED),
      NAME(CLD_STOPPED), NAME(CLD_CONTINUED));
NAMES(poll_codes, "POLL_???", NAME(POLL_IN), NAME(POLL_OUT), NAME(POLL_MSG), NAME(POLL_ERR), NAME(POLL_PRI),
      NAME(POLL_HUP));
NAMES(sys_codes, "SYS_???", { "SYS_SECCOMP", 1 });

static const struct names *codes_of(int signal)
{
	switch (signal) {
	case SIGILL:
		return &ill_codes;
	case SIGFPE:
		return &fpe_codes;
	case SIGSEGV:
		return &segv_codes;
	case SIGBUS:
		return &bus_codes;
	case SIGTRAP:
		return &trap_codes;
	case SIGCHLD:
		return &child_codes;
	case SIGIO:
		return &poll_codes;
	case SIGSYS:
		return &sys_codes;
	default:
		return NULL;
	}
}

static void put_code(struct decode *d, const siginfo_t *info)
{
	const struct names *names = codes_of(info->si_signo);
	const char *name = name_of(&codes, (unsigned)info->si_code);

	if (!name && names)
		name = name_of(names, (unsigned)info->si_code);
	if (name)
		put_hex_constant(d, name, (unsigned)info->si_code);
	else
		put_name(d, &codes, (unsigned)info->si_code);
}

static void put_sender(struct decode *d, const siginfo_t *info)
{
	puts_(d, ", si_pid=");
	put_pid(d, info->si_pid);
	puts_(d, ", si_uid=");
	put_id(d, info->si_uid);
}

static void put_value(struct decode *d, const siginfo_t *info)
{
	put(d, ", si_int=%d, si_ptr=", info->si_value.sival_int);
	put_address(d, (uint64_t)info->si_value.sival_ptr);
}

static void put_child(struct decode *d, const siginfo_t *info)
{
	put_sender(d, info);
	puts_(d, ", si_status=");
	if (info->si_code == CLD_EXITED)
		put(d, "%d", info->si_status);
	else
		put_signal(d, info->si_status);
	puts_(d, ", si_utime=");
	put_ticks(d, info->si_utime);
	puts_(d, ", si_stime=");
	put_ticks(d, info->si_stime);
}

static void put_filtered(struct decode *d, const siginfo_t *info)
{
	const char *name = info->si_syscall >= 0 ? kymo_syscall_name((uint64_t)info->si_syscall) : NULL;

	puts_(d, ", si_call_addr=");
	put_address(d, (uint64_t)info->si_call_addr);
	if (name)
		put(d, ", si_syscall=__NR_%s", name);
	else
		put(d, ", si_syscall=%u", (unsigned)info->si_syscall);
	if (info->si_arch == AUDIT_ARCH_X86_64)
		puts_(d, ", si_arch=AUDIT_ARCH_X86_64");
	else
		put(d, ", si_arch=%#x", info->si_arch);
}

/* What the kernel itself sends has a code above 0 and fields by the signal; what programs send has a sender. */
static void put_detail(struct decode *d, const siginfo_t *info)
{
	if (info->si_code == SI_USER || info->si_code == SI_TKILL) {
		put_sender(d, info);
	} else if (info->si_code == SI_TIMER) {
		put(d, ", si_timerid=%#x, si_overrun=%d", (unsigned)info->si_timerid, info->si_overrun);
		put_value(d, info);
	} else if (info->si_code < 0) {
		put_sender(d, info);
		if (info->si_value.sival_ptr)
			put_value(d, info);
	} else if (info->si_signo == SIGCHLD) {
		put_child(d, info);
	} else if (info->si_signo == SIGILL || info->si_signo == SIGFPE || info->si_signo == SIGSEGV ||
		   info->si_signo == SIGBUS) {
		puts_(d, ", si_addr=");
		put_address(d, (uint64_t)info->si_addr);
	} else if (info->si_signo == SIGIO) {
		put(d, ", si_band=%ld, si_fd=%d", info->si_band, info->si_fd);
	} else if (info->si_signo == SIGSYS) {
		put_filtered(d, info);
	} else if (info->si_pid || info->si_uid) {
		put_sender(d, info);
		if (info->si_value.sival_ptr)
			put_value(d, info);
	}
}

void put_siginfo(struct decode *d, const void *siginfo)
{
	siginfo_t info;

	memcpy(&info, siginfo, sizeof(info));
	if (!info.si_signo) {
		puts_(d, "{}");
		return;
	}
	puts_(d, "{si_signo=");
	put_signal(d, info.si_signo);
	puts_(d, ", si_code=");
	put_code(d, &info);
	if (info.si_errno) {
		const char *name = kymo_syscall_errno(info.si_errno);

		if (name)
			put(d, ", si_errno=%s", name);
		else
			put(d, ", si_errno=%d", info.si_errno);
	}
	put_detail(d, &info);
	puts_(d, "}");
}

void kymo_siginfo_text(const void *siginfo, const struct kymo_syscall_target *target, struct kymo_line *text)
{
	struct decode d = { .target = target, .text = text };

	put_siginfo(&d, siginfo);
}
