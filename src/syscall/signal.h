/* Signals: sets and handlers. Private to the room. */
#ifndef KYMO_SYSCALL_SIGNAL_H
#define KYMO_SYSCALL_SIGNAL_H

#include <stdint.h>

#include "syscall/decode.h"

void put_sigset(struct decode *d, uint64_t mask);
void put_sigset_at(struct decode *d, uint64_t address, uint64_t size);

void result_signal(struct decode *d);

extern const struct kind k_signal[1], k_sigaction[1], k_sigaction_out[1], k_sigmask_how[1], k_sigset4[1],
	k_sigset4_out[1];
extern const struct kind k_sigset[1], k_sigset_out[1], k_sigset_part[1], k_sigreturn[1], k_sigaltstack[1],
	k_sigaltstack_out[1], k_signalfd_flags[1];
extern const struct kind k_siginfo_in[1], k_siginfo_out[1];

#endif
