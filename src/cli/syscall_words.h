/*
 * The words of `kymo syscalls`: options with the letters and long names that strace's users know.
 */
#ifndef KYMO_CLI_SYSCALL_WORDS_H
#define KYMO_CLI_SYSCALL_WORDS_H

#include <stdbool.h>

#include "cli/syscall_output.h"
#include "cli/targets.h"
#include "hub/identity.h"
#include "strace/strace.h"

struct cli_syscall_words {
	struct kymo_strace_request request;
	struct kymo_strace_injections *injections; /* of the request */
	struct cli_syscall_output output;
	char **command; /* NULL-terminated; or NULL */
	struct cli_targets targets;
	struct kymo_identity identity; /* -u */
	bool all, in_kernel, has_backend;
};

/*
 * Read argv[1], …: -1: all is well and `words` has it; else the exit status: help was given (0), or the user told what
 * is wrong. cli_syscall_words_deinit() either way. -E changes this process's environment, which the command inherits.
 */
int cli_syscall_words_read(struct cli_syscall_words *words, int argc, char **argv);

void cli_syscall_words_deinit(struct cli_syscall_words *words);

#endif
