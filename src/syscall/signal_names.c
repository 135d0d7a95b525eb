/* The names of signals. */
#include "syscall/signal_names.h"

#include <string.h>

#include "syscall/constants.h"
#include "syscall/decode.h"

enum {
	FIRST_RT = 32, /* the kernel's; libc's SIGRTMIN is above those that it keeps for itself */
};

static const char *const names_of_signals[FIRST_RT] = {
	NULL,   "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1",
	"SEGV", "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN",
	"TTOU", "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "IO",   "PWR",  "SYS",
};

const char *kymo_signal_name(int signal, char buffer[32])
{
	if (signal > 0 && signal < FIRST_RT)
		snprintf(buffer, 32, "SIG%s", names_of_signals[signal]);
	else if (signal == FIRST_RT)
		snprintf(buffer, 32, "SIGRTMIN");
	else if (signal > FIRST_RT && signal <= N_SIGNALS)
		snprintf(buffer, 32, "SIGRT_%d", signal - FIRST_RT);
	else
		snprintf(buffer, 32, "%d", signal);
	return buffer;
}

void put_signal(struct decode *d, int signal)
{
	char buffer[32];
	const char *name = kymo_signal_name(signal, buffer);

	if (!strncmp(name, "SIG", 3))
		put_constant(d, name, signal);
	else
		puts_(d, name);
}
