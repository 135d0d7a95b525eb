/* Where the lines of `kymo syscalls` go: -o, -A and -ff. */
#ifndef KYMO_CLI_SYSCALL_OUTPUT_H
#define KYMO_CLI_SYSCALL_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct cli_worker;

struct cli_syscall_output {
	const char
		*path; /* NULL: stderr; with a '|' or '!' before it: a command for the shell, which reads the lines */
	bool appends;  /* to the file */
	pid_t filter;  /* the shell that runs the command; or 0 */
};

bool cli_syscall_output_is_command(const struct cli_syscall_output *output);

/* A descriptor, or a negative errno; EEXIST: it belongs to another user. A command is a child of this process, with
 * the signals of `worker`. */
int cli_syscall_output_open(struct cli_syscall_output *output, const struct cli_worker *worker);

/* -ff: a file for the thread. A negative errno; the user was told of it, unless memory is out. */
int cli_syscall_output_open_own(const struct cli_syscall_output *output, pid_t tid, FILE **ret);

/* All was written, and no process has the descriptor: wait for the command. */
void cli_syscall_output_wait(struct cli_syscall_output *output);

#endif
