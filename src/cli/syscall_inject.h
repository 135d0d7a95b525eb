/* Injection into system calls. */
#ifndef KYMO_CLI_SYSCALL_INJECT_H
#define KYMO_CLI_SYSCALL_INJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct cli_syscall_injections;
struct cli_syscall_thread;
struct kymo_syscall_report;

/* Add one to those of `injections`, which are created with the first. USAGE, NO_MEMORY. */
struct kymo_error *cli_syscall_injections_add(struct cli_syscall_injections **injections, const char *text);

/* After the hub's end. */
void cli_syscall_injections_destroy(struct cli_syscall_injections *injections);

/* Whether some are into calls of that number. */
bool cli_syscall_injections_have(const struct cli_syscall_injections *injections, uint64_t number);

/* What the thread's engine answers at the entry of a call and at its exit. The report has the injected result then. */
unsigned int cli_syscall_inject_enter(struct cli_syscall_thread *thread);
unsigned int cli_syscall_inject_leave(struct cli_syscall_thread *thread, const struct kymo_syscall_report *report);

/* The thread has died, and is not delayed any more. */
void cli_syscall_inject_end(const struct cli_syscall_thread *thread);

/* " (INJECTED)", " (DELAYED)", both or "". */
const char *cli_syscall_injected(const struct cli_syscall_thread *thread);

/* Let threads go on whose delay is over; UINT64_MAX: all. On the main thread. When the next one's is, or UINT64_MAX. */
uint64_t cli_syscall_injections_end_delays(struct cli_syscall_injections *injections, uint64_t now);

#endif
