/* Signals: their names, sets, handlers, and what siginfo_t tells. */
#include <errno.h>
#include <inttypes.h>
#include <linux/audit.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "syscall/decode.h"

#define ARG (d->call->args[arg])
#define PRINT(name) static void name(struct decode *d, unsigned arg, const void *data)

enum {
	KERNEL_SA_RESTORER = 0x04000000,
};

NAMES(action_flags, "SA_???", { "SA_RESTORER", KERNEL_SA_RESTORER }, NAME(SA_ONSTACK), NAME(SA_RESTART),
      { "SA_INTERRUPT", 0x20000000 }, NAME(SA_NODEFER), NAME(SA_RESETHAND), NAME(SA_SIGINFO), NAME(SA_NOCLDSTOP),
      NAME(SA_NOCLDWAIT));
NAMES(mask_hows, "SIG_???", NAME(SIG_BLOCK), NAME(SIG_UNBLOCK), NAME(SIG_SETMASK));
NAMES(stack_flags, "SS_???", NAME(SS_ONSTACK), NAME(SS_DISABLE), { "SS_AUTODISARM", 1u << 31 });
NAMES(signalfd_flags, "SFD_???", NAME(SFD_CLOEXEC), NAME(SFD_NONBLOCK));
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

/* ---- sets ------------------------------------------------------------------------------------ */

/* Those that are missing, where that is shorter. */
static void put_sigset_of(struct decode *d, uint64_t mask, int n_signals)
{
	const bool inverted = __builtin_popcountll(mask) >= n_signals * 2 / 3;
	const uint64_t shown = inverted ? ~mask : mask;
	bool any = false;

	puts_(d, inverted ? "~[" : "[");
	for (int signal = 1; signal <= n_signals; signal++) {
		char buffer[32];

		if (!(shown >> (signal - 1) & 1))
			continue;
		puts_(d, any ? " " : "");
		put_constant(d, kymo_signal_name(signal, buffer) + 3, signal);
		any = true;
	}
	puts_(d, "]");
}

void put_sigset(struct decode *d, uint64_t mask)
{
	put_sigset_of(d, mask, N_SIGNALS);
}

void put_sigset_at(struct decode *d, uint64_t address, uint64_t size)
{
	uint64_t mask;

	if (size != sizeof(mask))
		put_address(d, address);
	else if (fetch_or_put(d, address, &mask, sizeof(mask)))
		put_sigset(d, mask);
}

/* The size stands in the argument that `data` names, counted from one. */
PRINT(print_sigset)
{
	put_sigset_at(d, ARG, d->call->args[(uintptr_t)data - 1]);
}

PRINT(print_sigset_next)
{
	put_sigset_at(d, ARG, d->call->args[arg + 1]);
}

/* rt_sigpending() takes less than a whole set. */
PRINT(print_sigset_part)
{
	const uint64_t size = d->call->args[arg + 1];
	uint64_t mask = 0;

	if (!size || size > sizeof(mask))
		put_address(d, ARG);
	else if (fetch_or_put(d, ARG, &mask, size))
		put_sigset_of(d, mask, size > 4 ? N_SIGNALS : N_SIGNALS / 2);
}

/* ---- handlers -------------------------------------------------------------------------------- */

static void put_handler(struct decode *d, uint64_t handler)
{
	if (!handler)
		put_hex_constant(d, "SIG_DFL", handler);
	else if (handler == 1)
		put_hex_constant(d, "SIG_IGN", handler);
	else if (handler == UINT64_MAX)
		put_hex_constant(d, "SIG_ERR", handler);
	else
		put_address(d, handler);
}

PRINT(print_action)
{
	uint64_t action[4]; /* handler, flags, restorer, mask */

	if (!fetch_or_put(d, ARG, action, sizeof(action)))
		return;
	puts_(d, "{sa_handler=");
	put_handler(d, action[0]);
	puts_(d, ", sa_mask=");
	put_sigset(d, action[3]);
	puts_(d, ", sa_flags=");
	put_flags(d, &action_flags, action[1]);
	if (action[1] & KERNEL_SA_RESTORER) {
		puts_(d, ", sa_restorer=");
		put_address(d, action[2]);
	}
	puts_(d, "}");
}

/* The frame of the handler lies where the stack pointer is; the call returns what the interrupted code had in its
 * register. */
PRINT(print_frame)
{
	uint64_t mask;

	if (fetch(d, d->call->stack_pointer + MASK_IN_FRAME, &mask, sizeof(mask))) {
		puts_(d, "{mask=");
		put_sigset(d, mask);
		puts_(d, "}");
	} else {
		put_address(d, d->call->stack_pointer);
	}
}

PRINT(print_stack)
{
	stack_t stack;

	if (!fetch_or_put(d, ARG, &stack, sizeof(stack)))
		return;
	puts_(d, "{ss_sp=");
	put_address(d, (uint64_t)stack.ss_sp);
	puts_(d, ", ss_flags=");
	put_flags(d, &stack_flags, (unsigned)stack.ss_flags);
	put(d, ", ss_size=%zu}", stack.ss_size);
}

PRINT(print_signal)
{
	put_signal(d, (int)ARG);
}
PRINT(print_how)
{
	put_name(d, &mask_hows, (unsigned)ARG);
}
PRINT(print_signalfd_flags)
{
	put_flags(d, &signalfd_flags, (unsigned)ARG);
}

/* ---- siginfo --------------------------------------------------------------------------------- */

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

PRINT(print_siginfo)
{
	siginfo_t info;

	if (fetch_or_put(d, ARG, &info, sizeof(info)))
		put_siginfo(d, &info);
}

void result_signal(struct decode *d)
{
	put(d, "%d (", (int)d->call->result);
	put_signal(d, (int)d->call->result);
	puts_(d, ")");
}

const struct kind k_signal[1] = { { print_signal, NULL, 0 } };
const struct kind k_sigaction[1] = { { print_action, NULL, 0 } };
const struct kind k_sigaction_out[1] = { { print_action, NULL, AT_EXIT } };
const struct kind k_sigmask_how[1] = { { print_how, NULL, 0 } };
const struct kind k_sigset4[1] = { { print_sigset, (void *)4, 0 } };
const struct kind k_sigset4_out[1] = { { print_sigset, (void *)4, AT_EXIT } };
const struct kind k_sigset[1] = { { print_sigset_next, NULL, 0 } };
const struct kind k_sigset_part[1] = { { print_sigset_part, NULL, AT_EXIT } };
const struct kind k_sigset_out[1] = { { print_sigset_next, NULL, AT_EXIT } };
const struct kind k_sigreturn[1] = { { print_frame, NULL, 0 } };
const struct kind k_sigaltstack[1] = { { print_stack, NULL, 0 } };
const struct kind k_sigaltstack_out[1] = { { print_stack, NULL, AT_EXIT } };
const struct kind k_signalfd_flags[1] = { { print_signalfd_flags, NULL, 0 } };
const struct kind k_siginfo_in[1] = { { print_siginfo, NULL, 0 } };
const struct kind k_siginfo_out[1] = { { print_siginfo, NULL, AT_EXIT } };
