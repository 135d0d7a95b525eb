/* System calls as JSON, an object a line. */
#ifndef KYMO_CLI_SYSCALL_JSON_H
#define KYMO_CLI_SYSCALL_JSON_H

#include <signal.h>
#include <stdint.h>
#include <sys/types.h>

struct cli_syscall_thread;
struct cli_syscalls;

void cli_syscall_json_enter(struct cli_syscall_thread *thread);
void cli_syscall_json_leave(struct cli_syscall_thread *thread, uint64_t duration_ns);
void cli_syscall_json_signal(struct cli_syscall_thread *thread, const siginfo_t *info);
void cli_syscall_json_stop(struct cli_syscall_thread *thread, int signal);
void cli_syscall_json_end_call(struct cli_syscall_thread *thread); /* that does not return */
void cli_syscall_json_superseded(struct cli_syscall_thread *thread, pid_t by);
void cli_syscall_json_end(struct cli_syscall_thread *thread, int status);
void cli_syscall_json_lost(struct cli_syscalls *s, uint64_t n);

#endif
