/* Whether the words of `kymo syscalls` go together. */
#ifndef KYMO_CLI_SYSCALL_CHECK_H
#define KYMO_CLI_SYSCALL_CHECK_H

struct cli_syscall_words;

/* Whether all that was asked for goes together: -1, or the exit status, as cli_syscall_words_read(). */
int cli_syscall_words_check(struct cli_syscall_words *words);

#endif
