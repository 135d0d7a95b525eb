/* The values of -e. */
#ifndef KYMO_CLI_SYSCALL_EXPRESS_H
#define KYMO_CLI_SYSCALL_EXPRESS_H

struct cli_syscall_words;

/* The value of -e: a set, or strace's "trace=SET", "signal=SET", "inject=…" and so on. -1, or the exit status. */
int cli_syscall_words_express(struct cli_syscall_words *words, const char *text);

/* The same of one of those by its name, for the long options: "trace", "signal", … */
int cli_syscall_words_qualify(struct cli_syscall_words *words, const char *qualifier, const char *text);

#endif
