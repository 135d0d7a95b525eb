/* What is done to calls, as strace -e inject. */
#ifndef KYMO_SYSCALL_INJECT_H
#define KYMO_SYSCALL_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "syscall/sets.h"

/* Something to be done to calls of a set, as strace's -e inject. */
struct kymo_syscall_injection {
	struct kymo_syscall_set set;
	bool has_result; /* the call is not made, and returns `result`; an error is a negative errno */
	int64_t result;
	int signal;                             /* to send when it is entered; or 0 */
	uint64_t delay_enter_ns, delay_exit_ns; /* 0: none */
	uint32_t first, last, step;             /* which ones: a thread counts its calls of each number from 1 on */
};

/*
 * Read SET[:error=ERRNO|:retval=N][:signal=SIG][:when=FIRST[..LAST][+[STEP]]][:delay_enter=TIME][:delay_exit=TIME];
 * times are in microseconds, or have a unit. USAGE, with the column; NO_MEMORY.
 */
struct kymo_error *kymo_syscall_injection_parse(const char *text, struct kymo_syscall_injection *ret);

/* Of the thread's `nth` call of a number. */
bool kymo_syscall_injection_is_due(const struct kymo_syscall_injection *injection, uint32_t nth);

#endif
