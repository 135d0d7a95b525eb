/* The system calls that a command line records. */
#ifndef KYMO_CLI_RECORD_SYSCALLS_H
#define KYMO_CLI_RECORD_SYSCALLS_H

struct cli_recording;

/* Take the set of a --syscall. 0, or the exit status: it is none, which is said. */
int cli_record_take_syscalls(struct cli_recording *recording, const char *text);

/* Add what was taken to the specs. All sets are one spec: a call is recorded once. 0, or the exit status. */
int cli_record_add_syscalls(struct cli_recording *recording);

#endif
