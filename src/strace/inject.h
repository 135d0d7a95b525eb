/* Injection into system calls. */
#ifndef KYMO_STRACE_INJECT_H
#define KYMO_STRACE_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct kymo_strace_injections;
struct strace_thread;
struct kymo_syscall_report;

/* Add one to those of `injections`, which are created with the first. USAGE, NO_MEMORY. */
struct kymo_error *kymo_strace_injections_add(struct kymo_strace_injections **injections, const char *text);

/* NULL is allowed. After the end of each trace that has them. */
void kymo_strace_injections_destroy(struct kymo_strace_injections *injections);

/* Whether some are into calls of that number. */
bool strace_injections_have(const struct kymo_strace_injections *injections, uint64_t number);

/* What the thread's engine answers at the entry of a call and at its exit. The report has the injected result then. */
unsigned int strace_inject_enter(struct strace_thread *thread);
unsigned int strace_inject_leave(struct strace_thread *thread, const struct kymo_syscall_report *report);

/* The thread has died, and is not delayed any more. */
void strace_inject_end(const struct strace_thread *thread);

/* " (INJECTED)", " (DELAYED)", both or "". */
const char *strace_injected(const struct strace_thread *thread);

#endif
