/* What the dynamic linker of a program that starts has done. */
#ifndef KYMO_PROC_LINKER_H
#define KYMO_PROC_LINKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"

struct kymo_process;

enum kymo_startup_event {
	KYMO_STARTUP_MAPPED, /* a file was mapped executable; the thread is stopped after its mmap */
	KYMO_STARTUP_TLS,    /* the thread pointer is set, and the tid after it */
	KYMO_STARTUP_LOADED, /* all initial files are mapped and linked; their constructors run next, or have begun to
			      */
	KYMO_STARTUP_ENDED,  /* it ended before */
	KYMO_STARTUP_EXECED, /* it became another program before; only of one that is followed, and the tree tells the
				rest; else LOADED */
};

/*
 * Whether the dynamic linker of a stopped process that has just started is still to tell debuggers that it is done
 * (r_state is RT_ADD; glibc, elf/rtld.c). False where it tells nothing, and for a process that was not launched or
 * followed.
 */
bool kymo_process_is_linking(struct kymo_process *process);

/* Where the dynamic linker of a process was loaded, as the process has it; 0: it has none, or can't be asked. */
uint64_t kymo_linker_of(pid_t pid);

/* Sleep until the linker of a process that runs has mapped its files. It does not where the process, which was forked
 * at `start_time` (field 22 of its stat), is four seconds old, or its linker tells nothing. */
void kymo_linker_wait(struct kymo_process *process, uint64_t start_time);

/* ---- for startup.c and follow.c -------------------------------------------------------------- */

#define KYMO_STARTUP_MOMENT_NS 20000000u /* without a call, before a program that starts is looked at */

/* Find out where its linker is, and what it tells. */
struct kymo_error *kymo_startup_begin(struct kymo_process *process);

/* What the end of a system call means; false: nothing. */
bool kymo_startup_returned(struct kymo_process *process, long number, const uint64_t args[6], int64_t result,
			   enum kymo_startup_event *ret);

/* A moment has passed without any. A linker that tells nothing has had its time. */
bool kymo_startup_looks_done(struct kymo_process *process);

#endif
