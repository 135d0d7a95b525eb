/* Where lines go. */
#ifndef KYMO_CLI_SYSCALL_OUTPUT_H
#define KYMO_CLI_SYSCALL_OUTPUT_H

#include <stdbool.h>

struct cli_syscall_thread;
struct cli_syscalls;

/* `path`: NULL: stderr; with a '|' or '!' before it: a command for the shell, which reads the lines. A negative errno.
 */
int cli_syscalls_open_output(struct cli_syscalls *s, const char *path, bool appends);

/* All was written; waits for the command. */
void cli_syscalls_close_output(struct cli_syscalls *s);

/* -ff: a file for the thread. A negative errno. */
int cli_syscalls_open_own_output(struct cli_syscall_thread *thread);

#endif
