/* Signals: sets and handlers. */
#include "syscall/signal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>

#include "syscall/call.h"
#include "syscall/constants.h"
#include "syscall/decode.h"
#include "syscall/print.h"
#include "syscall/siginfo.h"
#include "syscall/signal_names.h"

enum {
	KERNEL_SA_RESTORER = 0x04000000,
};

NAMES(action_flags, "SA_???", { "SA_RESTORER", KERNEL_SA_RESTORER }, NAME(SA_ONSTACK), NAME(SA_RESTART),
      { "SA_INTERRUPT", 0x20000000 }, NAME(SA_NODEFER), NAME(SA_RESETHAND), NAME(SA_SIGINFO), NAME(SA_NOCLDSTOP),
      NAME(SA_NOCLDWAIT));
NAMES(mask_hows, "SIG_???", NAME(SIG_BLOCK), NAME(SIG_UNBLOCK), NAME(SIG_SETMASK));
NAMES(stack_flags, "SS_???", NAME(SS_ONSTACK), NAME(SS_DISABLE), { "SS_AUTODISARM", 1u << 31 });
NAMES(signalfd_flags, "SFD_???", NAME(SFD_CLOEXEC), NAME(SFD_NONBLOCK));
/* ---- sets ------------------------------------------------------------------------------------ */

/* The signals that are missing, where that list is shorter. */
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
const struct kind k_sigmask_how[1] = { { print_name, &mask_hows, 0 } };
const struct kind k_sigset4[1] = { { print_sigset, (void *)4, 0 } };
const struct kind k_sigset4_out[1] = { { print_sigset, (void *)4, AT_EXIT } };
const struct kind k_sigset[1] = { { print_sigset_next, NULL, 0 } };
const struct kind k_sigset_part[1] = { { print_sigset_part, NULL, AT_EXIT } };
const struct kind k_sigset_out[1] = { { print_sigset_next, NULL, AT_EXIT } };
const struct kind k_sigreturn[1] = { { print_frame, NULL, 0 } };
const struct kind k_sigaltstack[1] = { { print_stack, NULL, 0 } };
const struct kind k_sigaltstack_out[1] = { { print_stack, NULL, AT_EXIT } };
const struct kind k_signalfd_flags[1] = { { print_flags, &signalfd_flags, 0 } };
const struct kind k_siginfo_in[1] = { { print_siginfo, NULL, 0 } };
const struct kind k_siginfo_out[1] = { { print_siginfo, NULL, AT_EXIT } };
