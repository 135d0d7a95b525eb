#include "gdb/signals.h"

#include <signal.h>
#include <stddef.h>

enum { UNKNOWN = 143, KERNEL_RTMIN = 32, KERNEL_RTMAX = 64 };

/* include/gdb/signals.def: first what Unix always had. */
static const unsigned char names[KERNEL_RTMIN] = {
	[SIGHUP] = 1,     [SIGINT] = 2,   [SIGQUIT] = 3,   [SIGILL] = 4,   [SIGTRAP] = 5,  [SIGABRT] = 6,
	[SIGFPE] = 8,     [SIGKILL] = 9,  [SIGBUS] = 10,   [SIGSEGV] = 11, [SIGSYS] = 12,  [SIGPIPE] = 13,
	[SIGALRM] = 14,   [SIGTERM] = 15, [SIGURG] = 16,   [SIGSTOP] = 17, [SIGTSTP] = 18, [SIGCONT] = 19,
	[SIGCHLD] = 20,   [SIGTTIN] = 21, [SIGTTOU] = 22,  [SIGIO] = 23,   [SIGXCPU] = 24, [SIGXFSZ] = 25,
	[SIGVTALRM] = 26, [SIGPROF] = 27, [SIGWINCH] = 28, [SIGUSR1] = 30, [SIGUSR2] = 31, [SIGPWR] = 32,
};

int gdb_signal_of(int number)
{
	if (number == 0)
		return 0;
	if (number > 0 && number < KERNEL_RTMIN)
		return names[number] ? names[number] : UNKNOWN;
	if (number == KERNEL_RTMIN)
		return 77;
	if (number == KERNEL_RTMAX)
		return 78;
	return number > KERNEL_RTMIN && number < KERNEL_RTMAX ? number - 33 + 45 : UNKNOWN;
}

int gdb_signal_to(int signal)
{
	for (int number = 1; number <= KERNEL_RTMAX; number++)
		if (gdb_signal_of(number) == signal && signal != UNKNOWN)
			return number;
	return 0;
}
