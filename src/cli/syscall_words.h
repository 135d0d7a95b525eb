/*
 * The words of `kymo syscalls`: options with the letters and long names that strace's users know.
 */
#ifndef KYMO_CLI_SYSCALL_WORDS_H
#define KYMO_CLI_SYSCALL_WORDS_H

#include <stdbool.h>

#include "cli/syscalls.h"
#include "cli/targets.h"

struct cli_syscall_words {
	struct cli_syscalls tracing;
	const char *output; /* -o; or NULL */
	char **command;     /* NULL-terminated; or NULL */
	struct cli_targets targets;
	bool all, in_kernel, has_backend, appends;
};

/*
 * Read argv[1], …: -1: all is well and `words` has it; else the exit status: help was given (0), or the user told what
 * is wrong. cli_syscall_words_deinit() either way. -E changes this process's environment, which the command inherits.
 */
int cli_syscall_words_read(struct cli_syscall_words *words, int argc, char **argv);

void cli_syscall_words_deinit(struct cli_syscall_words *words);

/* Whether all that was asked for goes together (syscall_check.c). The same. */
int cli_syscall_words_check(struct cli_syscall_words *words);

/* The value of -e: a set, or strace's "trace=SET", "signal=SET", "inject=…" and so on. -1, or the exit status
 * (syscall_express.c). */
int cli_syscall_words_express(struct cli_syscall_words *words, const char *text);

/* The same of one of those by its name, for the long options: "trace", "signal", … */
int cli_syscall_words_qualify(struct cli_syscall_words *words, const char *qualifier, const char *text);

#endif
