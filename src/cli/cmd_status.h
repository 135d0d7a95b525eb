/* The command `kymo status`. */
#ifndef KYMO_CLI_CMD_STATUS_H
#define KYMO_CLI_CMD_STATUS_H

/* argv[0] is its own name; the exit status comes back. */
int cmd_status(int argc, char **argv);

#endif
