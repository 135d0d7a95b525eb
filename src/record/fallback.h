/* From the process to the kernel. Private to the room. */
#ifndef KYMO_RECORD_FALLBACK_H
#define KYMO_RECORD_FALLBACK_H

#include "base/error.h"

struct recording;

/* The backend that is asked for, or else the best available one; into `way`. PERMISSION, NOT_FOUND: none has all that
 * is wanted. */
struct kymo_error *recording_choose_backend(struct recording *recording);

enum recording_fallback {
	RECORDING_NO_FALLBACK,
	RECORDING_MIXED,     /* begin anew, with more of the specs for the kernel */
	RECORDING_BY_KERNEL, /* all of it is the kernel's */
	RECORDING_BY_PTRACE, /* all of it is system calls, which are traced */
};

/*
 * The recording in the process could not begin: what the kernel could make of it. NO_WAY: the error may have got a
 * remark. MIXED: `reasons` has more. The process is still as the attempt has left it.
 */
enum recording_fallback recording_fallback(struct recording *recording, struct kymo_error **refusal);

/* The kernel's attempt after a refusal (or without one) has come to `error`: tells the user why, or returns the error
 * that says more. */
struct kymo_error *recording_fell_back(struct recording *recording, struct kymo_error *error);

#endif
