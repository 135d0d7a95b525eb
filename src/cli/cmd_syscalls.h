/* The command `kymo syscalls`. */
#ifndef KYMO_CLI_CMD_SYSCALLS_H
#define KYMO_CLI_CMD_SYSCALLS_H

/* argv[0] is its own name; the exit status comes back. */
int cmd_syscalls(int argc, char **argv);

#endif
