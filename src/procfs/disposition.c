#include "procfs/disposition.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

#define STATUS_LIMIT (1u << 20)

static bool has_bit(const char *status, const char *name, int signal)
{
	const char *at = strstr(status, name);

	return at && (strtoull(at + strlen(name), NULL, 16) >> (signal - 1) & 1);
}

static enum kymo_disposition default_of(int signal)
{
	switch (signal) {
	case SIGCHLD:
	case SIGCONT:
	case SIGURG:
	case SIGWINCH:
		return KYMO_DISPOSITION_IGNORED;
	case SIGSTOP:
	case SIGTSTP:
	case SIGTTIN:
	case SIGTTOU:
		return KYMO_DISPOSITION_STOP;
	case SIGQUIT:
	case SIGILL:
	case SIGTRAP:
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGSEGV:
	case SIGXCPU:
	case SIGXFSZ:
	case SIGSYS:
		return KYMO_DISPOSITION_CORE;
	default:
		return KYMO_DISPOSITION_TERM;
	}
}

/* The caller frees it. NULL: it is not available. */
static char *read_status(pid_t tid)
{
	char *status = NULL, name[64];

	snprintf(name, sizeof(name), "/proc/%d/status", tid);
	return kymo_read_file(AT_FDCWD, name, STATUS_LIMIT, &status, NULL) ? NULL : status;
}

bool kymo_signal_is_pending(pid_t tid, int signal)
{
	kymo_cleanup_free char *status = read_status(tid);

	return status && has_bit(status, "\nSigPnd:", signal);
}

enum kymo_disposition kymo_signal_disposition(pid_t tid, int signal)
{
	kymo_cleanup_free char *status = read_status(tid);

	if (!status)
		return default_of(signal);
	if (has_bit(status, "\nSigCgt:", signal))
		return KYMO_DISPOSITION_CAUGHT;
	return has_bit(status, "\nSigIgn:", signal) ? KYMO_DISPOSITION_IGNORED : default_of(signal);
}
